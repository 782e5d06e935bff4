"""Corrections that are learned: what they mend, what they leave alone, and what they may not see."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.special import logsumexp
from scipy.stats import chi2_contingency, f_oneway
from sklearn.metrics import log_loss

import deciban
from deciban import BayesClassifier, Text
from deciban.errors import UsageError
from deciban.fitting.tune.binning import bin_columns, measure_associations
from deciban.fitting.tune.rows import Rows, assign_folds, find_copies
from deciban.tables.table import Frame, Matrix

RNG = np.random.default_rng(7)


def parity(rows: int, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Three flags whose parity is the class, and two columns of noise."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2, (rows, 3))
    table = pd.DataFrame(np.where(bits == 1, "yes", "no"), columns=["a", "b", "c"])
    table["noise"], table["more"] = rng.normal(size=rows), rng.integers(0, 9, rows)
    return table, np.array(["even", "odd"])[bits.sum(axis=1) % 2]


@pytest.fixture(scope="module")
def fitted() -> tuple[BayesClassifier, pd.DataFrame, np.ndarray]:
    table, y = parity(1_000)
    return BayesClassifier().fit(table, y), table, y


def test_what_no_two_columns_tell_is_learned(fitted) -> None:
    clf, _, _ = fitted
    table, y = parity(500, seed=1)
    assert log_loss(y, clf.predict_proba(table)) < 0.1
    assert log_loss(y, BayesClassifier(tune="weights").fit(*parity(1_000)).predict_proba(table)) > 0.6


def test_noise_is_not_corrected() -> None:
    """Left-out rows see that nothing is gained, and leave-one-out stays honest: no row is judged by its own tables."""
    X, y = RNG.normal(size=(600, 6)), RNG.integers(0, 2, 600)
    clf = BayesClassifier().fit(X, y)
    assert clf.leave_one_out().log_loss == pytest.approx(np.log(2), abs=0.02)
    assert clf.tuning_.log_loss == pytest.approx(np.log(2), abs=0.02)
    fresh = RNG.normal(size=(2_000, 6))
    assert log_loss(RNG.integers(0, 2, 2_000), clf.predict_proba(fresh)) < np.log(2) + 0.03


def test_left_out_figures_are_those_of_new_rows() -> None:
    """On a table that corrections fit closely, leave-one-out is as bad as new rows, not as good as learned ones."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(3_000, 5))
    chance = 1 / (1 + np.exp(-2 * X[:, 0] * X[:, 1] - X[:, 2]))
    y = (rng.random(3_000) < chance).astype(int)
    clf = BayesClassifier().fit(X[:1_000], y[:1_000])
    new = log_loss(y[1_000:], clf.predict_proba(X[1_000:]))
    assert clf.leave_one_out().log_loss == pytest.approx(new, abs=0.04)
    assert clf.tuning_.log_loss == pytest.approx(new, abs=0.04)


def test_evidence_and_explanations_add_up_exactly(fitted) -> None:
    clf, table, _ = fitted
    evidence = clf.evidence(table[:50])
    joint = clf.log_joint(table[:50])
    np.testing.assert_allclose(evidence.log_joint, joint, rtol=0, atol=1e-12)
    total = evidence.log_prior + evidence.bias + evidence.weighted.sum(axis=1)
    np.testing.assert_allclose(total, joint, rtol=0, atol=1e-12)
    posterior = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    np.testing.assert_allclose(clf.predict_proba(table[:50]), posterior, atol=1e-12)
    assert [name for name in evidence.blocks if name.startswith("correction of ")] == [
        f"correction of {name}" for name in table.columns
    ]
    steps = clf.explain(table[:3])
    for row in range(3):
        reasons = steps.to_dict(row)
        best, other = np.sort(joint[row])[::-1]
        assert reasons["sum"] == pytest.approx(10 / np.log(10) * (best - other), abs=1e-9)
        assert sum(term["decibans"] for term in reasons["evidence"]) == pytest.approx(reasons["sum"], abs=1e-9)
    assert "correction of a = " in clf.explain(table[:3], by="block").summary(0)
    told = {term["column"]: term for term in steps.to_dict(0)["evidence"]}
    assert told["a"]["correction"] != 0.0
    assert "corrections" in steps.calculation(0)


def test_a_row_alone_has_the_same_bits(fitted) -> None:
    clf, table, _ = fitted
    together = clf.predict_proba(table[:40])
    alone = np.concatenate([clf.predict_proba(table[k : k + 1]) for k in range(40)])
    np.testing.assert_array_equal(alone, together)


def test_the_order_of_rows_does_not_matter() -> None:
    table, y = parity(400)
    order = RNG.permutation(400)
    one, other = BayesClassifier().fit(table, y), BayesClassifier().fit(table.iloc[order], y[order])
    # the last digits of a value decide to which multiple of the unit it is rounded
    np.testing.assert_allclose(one.predict_proba(table), other.predict_proba(table), atol=1e-5)


def test_a_missing_cell_may_be_evidence() -> None:
    """Bought or blank, as in a table of receipts: plain Bayes knows nothing of what was not bought.

    Of a row of blanks alone nothing is known, whatever was tuned."""
    y = RNG.integers(0, 2, 1_500)
    bought = RNG.random((1_500, 4)) < np.where(y[:, None] == 1, 0.6, 0.3)
    table = pd.DataFrame(np.where(bought, "t", None), columns=list("abcd"))
    filled = np.flatnonzero(bought.any(axis=1) & (np.arange(1_500) >= 1_000))
    new, judged = table.iloc[filled], y[filled]
    plain = BayesClassifier(tune=None).fit(table[:1_000], y[:1_000])
    tuned = BayesClassifier().fit(table[:1_000], y[:1_000])
    known = (bought * np.log(0.6 / 0.3) + ~bought * np.log(0.4 / 0.7)).sum(axis=1)[filled]
    best = log_loss(judged, 1 / (1 + np.exp(-known)))
    assert log_loss(judged, plain.predict_proba(new)) > best + 0.1
    assert log_loss(judged, tuned.predict_proba(new)) < best + 0.05
    empty = tuned.predict_proba(table[~bought.any(axis=1)][:1])[0]
    np.testing.assert_allclose(empty, np.exp(tuned.model_.log_prior), atol=1e-9)
    assert "missing cells are evidence" in str(tuned.tuning_)
    partly = table[~bought[:, 0] & bought.any(axis=1)]
    assert "correction of a = missing" in tuned.explain(partly[:1], by="block").summary(0)


@pytest.mark.parametrize("where", ["alone", "with others"])
def test_a_mistyped_cell_is_not_certain(where: str) -> None:
    """No cell is worth more than about the logarithm of the rows behind it, though it be 250 deviations away."""
    y = np.arange(800) % 2
    X = pd.DataFrame({"pressure": RNG.normal(120 + 5 * y, 20.0 + 5 * y), "age": RNG.normal(50 + 9 * y, 10)})
    X = X[["pressure"]] if where == "alone" else X
    clf = BayesClassifier().fit(X, y)
    wrong = X[:1].assign(pressure=5503.1)
    evidence = clf.evidence(wrong)
    limit = np.log(801) + 1e-9
    assert (np.abs(np.diff(evidence.weighted[0], axis=1)) <= limit).all()
    plain = BayesClassifier(tune=None).fit(X, y).evidence(wrong)
    assert np.abs(np.diff(plain.weighted[0], axis=1)).max() > 1_000
    assert clf.predict_proba(wrong).max() < 1 - 1e-9


def test_corrections_are_kept_in_files_and_pickles(fitted, tmp_path) -> None:
    clf, table, _ = fitted
    clf.save(tmp_path / "model.dcb")
    again = deciban.load(tmp_path / "model.dcb")
    np.testing.assert_array_equal(again.predict_proba(table), clf.predict_proba(table))
    assert str(again.tuning_) == str(clf.tuning_)
    again.save(tmp_path / "again.dcb")
    assert (tmp_path / "again.dcb").read_bytes() == (tmp_path / "model.dcb").read_bytes()


def test_counts_do_not_depend_on_corrections_and_go_on(fitted) -> None:
    _, table, y = fitted
    tuned = BayesClassifier().fit(table, y)
    plain = BayesClassifier(tune=None).fit(table, y)
    np.testing.assert_array_equal(tuned.log_density(table), plain.log_density(table))
    before = tuned.predict_proba(table)
    tuned.partial_fit(table[:10].assign(extra=1.0), np.where(np.arange(10) < 5, "neither", y[:10]))
    assert tuned.tuning_.stale
    assert tuned.tuning_.corrections is not None
    assert tuned.predict_proba(table[:5]).shape == (5, 3)
    assert "neither" in tuned.classes_
    both = BayesClassifier().fit(table[:500], y[:500]) + BayesClassifier().fit(table[500:], y[500:])
    assert both.counts_.rows == 1_000
    assert both.tuning_.stale
    both.retune(table, y)
    assert not both.tuning_.stale
    np.testing.assert_allclose(both.predict_proba(table), before, atol=0.2)


def test_without_corrections_there_are_forms(fitted) -> None:
    clf, table, y = fitted
    with pytest.raises(UsageError, match="tune='weights'"):
        clf.quadratic_form()
    assert BayesClassifier(tune="weights").fit(table[["a", "b"]], y).linear_form().names
    assert BayesClassifier(tune="weights").fit(table, y).tuning_.corrections is None
    assert BayesClassifier().fit(table[:99], y[:99]).tuning_.corrections is None
    with pytest.raises(UsageError, match="'weights'"):
        BayesClassifier(tune="some").fit(table, y)


def test_texts_are_left_to_their_words() -> None:
    words = np.array(["sun", "rain", "wind", "snow"])
    y = RNG.integers(0, 2, 300)
    notes = [" ".join(words[(RNG.integers(0, 3, 12) + c) % 4]) for c in y]
    table = pd.DataFrame({"note": notes, "x": RNG.normal(size=300) + y})
    clf = BayesClassifier({"note": Text()}).fit(table, y)
    names = [clf.schema_.column_name(column.column) for column in clf.tuning_.corrections.columns]
    assert names == ["x"]
    only = BayesClassifier().fit(table[["note"]].assign(note=notes), y)
    assert only.predict_proba(table[["note"]]).shape == (300, 2)


def test_the_report_names_columns_and_effects(fitted) -> None:
    clf, _, _ = fitted
    text = str(clf.tuning_)
    assert "correction tables with up to" in text
    assert "cross-validated accuracy" in text
    records = clf.tuning_.correction_effects(clf.classes_.tolist())
    assert {record["column"] for record in records} == {"a", "b", "c", "noise", "more"}
    assert {record["cell"] for record in records if record["column"] == "a"} == {"missing", "others", "yes", "no"}
    assert all(np.isfinite(record["nats"]) for record in records)
    assert clf.parameter_count().model > BayesClassifier(tune="weights").fit(*parity(1_000)).parameter_count().model
    assert set(clf.select_columns(3)) == {"a", "b", "c"} or len(clf.select_columns(3)) == 3


def amounts(X: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    rows = Rows(Matrix(X), y.astype(np.int32), weights, np.log([0.5, 0.5]))
    columns, bins = bin_columns(rows, range(X.shape[1]))
    return assign_folds(columns, bins, rows.table, rows.labels, np.array(["no", "yes"]), weights, 5)


def test_equal_rows_stay_together_unless_their_classes_differ() -> None:
    X = np.concatenate([RNG.integers(0, 3, (60, 2)), 10.0 + np.arange(600).reshape(300, 2)]).astype(float)
    y, weights = RNG.integers(0, 2, 360), RNG.choice([0.5, 1.0, 2.0, 7.0, 100.0], 360)
    found = amounts(X, y, weights)
    unit = round(find_copies(Matrix(X), y.astype(np.int32), weights).usual)  # so many copies are dealt out at a time
    np.testing.assert_allclose(found.sum(axis=1), weights, rtol=1e-12)
    for content in {tuple(row) for row in X.tolist()}:
        same = (content == X).all(axis=1)
        if np.unique(y[same]).size == 1:
            assert (found[same].sum(axis=0) > 0).sum() == 1  # whatever they weigh
            continue
        for label in (0, 1):
            together = found[same & (y == label)].sum(axis=0)
            assert together.max() - together.min() <= unit + 1e-9
    order = RNG.permutation(360)
    moved = amounts(X[order], y[order], np.ones(360))
    np.testing.assert_array_equal(moved.sum(axis=0), amounts(X, y, np.ones(360)).sum(axis=0))
    some = amounts(X[20:], y[20:], np.ones(340))  # of which few are there twice
    assert (some[:40].sum(axis=0) > 2).all()
    few = amounts(X[:60], y[:60], np.ones(60))
    assert (few.sum(axis=0) > 5).all()


@pytest.mark.parametrize("weights", [0.97 ** np.arange(600)[::-1] * 4, np.where(np.arange(600) == 5, 1e-20, 1.5)])
def test_rows_of_hardly_any_weight_do_no_harm(weights: np.ndarray) -> None:
    X = np.round(RNG.normal(size=(600, 2)))
    y = (X.sum(axis=1) + RNG.normal(size=600) > 0).astype(int)
    found = amounts(X, y, weights)
    np.testing.assert_allclose(found.sum(axis=1), weights, rtol=1e-6)
    clf = BayesClassifier().fit(X, y, weights)
    assert clf.score(X, y) > 0.6


def test_heavy_rows_are_not_learned_by_heart() -> None:
    rng = np.random.default_rng(11)
    X = rng.normal(size=(2_500, 5))
    y = (rng.random(2_500) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)
    light, heavy = (BayesClassifier().fit(X[:500], y[:500], weight * np.ones(500)) for weight in (1.0, 100.0))
    new, judged = X[500:], y[500:]
    assert heavy.tuning_.corrections is None or len(heavy.tuning_.corrections.tests) < 1_000
    assert log_loss(judged, heavy.predict_proba(new)) < 2.0 * log_loss(judged, light.predict_proba(new))


@pytest.mark.parametrize("cell", [1e4, 999999999.0, 1e100, 1e200])
def test_a_cell_far_away_leaves_the_other_columns_their_say(cell: float) -> None:
    rng = np.random.default_rng(12)
    y = np.arange(1_000) % 2
    X = np.stack([rng.normal(size=1_000) * (1 + y), rng.normal(size=1_000) + 2 * y], axis=1)
    clf = BayesClassifier().fit(X, y)
    wrong = np.stack([np.full(200, cell), X[:200, 1]], axis=1)
    evidence = clf.evidence(wrong)
    total = evidence.bias + evidence.weighted.sum(axis=1)  # before the limit
    assert np.unique((total[:, 1] - total[:, 0]).round(6)).size > 50
    np.testing.assert_allclose(evidence.log_joint, clf.log_joint(wrong), rtol=0, atol=1e-7)
    assert evidence.capped.any()
    assert "(capped)" in clf.explain(wrong[:1]).calculation(0)


def test_neighboring_doubles_are_cut_and_saved(tmp_path) -> None:
    X = (RNG.integers(0, 8, (300, 1)) + 2**53).astype(float)
    clf = BayesClassifier().fit(X, (X[:, 0] > 2**53 + 3).astype(int))
    clf.save(tmp_path / "model.dcb")
    np.testing.assert_array_equal(deciban.load(tmp_path / "model.dcb").predict(X), clf.predict(X))


def test_a_row_of_weight_two_is_dealt_as_two_rows() -> None:
    X, y = RNG.normal(size=(30, 2)), RNG.integers(0, 2, 30)
    weights = RNG.integers(1, 4, 30)
    heavy = amounts(X, y, weights.astype(float))
    repeated = np.repeat(np.arange(30), weights)
    light = amounts(X[repeated], y[repeated], np.ones(repeated.size))
    summed = np.zeros_like(heavy)
    np.add.at(summed, repeated, light)
    np.testing.assert_array_equal(summed, heavy)


def test_a_model_file_that_asks_of_no_column_is_refused(fitted) -> None:
    from dataclasses import replace

    from deciban.store.checks import check

    clf, _, _ = fitted
    known = clf.fitted_
    right = known.tuning.corrections
    wrong = {
        "tests": np.where(right.tests == 0, 99, right.tests),
        "values": right.values[:, :, :1],
        "rows": -right.rows - 1.0,
        "fold": right.fold + 5,
        "columns": (replace(right.columns[3], cuts=right.columns[3].cuts[::-1]), *right.columns[1:]),
    }
    check(known)
    for name, value in wrong.items():
        tuning = replace(known.tuning, corrections=replace(right, **{name: value}))
        with pytest.raises(ValueError, match=r"correct|table|fold|asks"):
            check(replace(known, tuning=tuning))


def test_of_very_many_columns_those_that_tell_are_corrected() -> None:
    """Chosen fold by fold, so that columns of noise that fit the labels by chance do not look as if they helped."""
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(400, 700)), rng.integers(0, 2, 400)
    noise = BayesClassifier().fit(X, y)
    assert noise.tuning_.log_loss > np.log(2) - 0.02
    X[:, 650] += 1.5 * y
    clf = BayesClassifier().fit(X, y)
    assert clf.tuning_.log_loss < noise.tuning_.log_loss - 0.1
    assert 650 in {
        clf.tuning_.corrections.columns[k].column for k in np.argsort(-clf.tuning_.corrections.importance)[:3]
    }
    assert clf.leave_one_out().log_loss == pytest.approx(clf.tuning_.log_loss, abs=0.1)


def test_associations_are_those_of_analysis_of_variance_and_contingency() -> None:
    table = pa.table({"x": RNG.normal(size=90), "color": np.array(list("abc"))[RNG.integers(0, 3, 90)]})
    y = RNG.integers(0, 2, 90)
    rows = Rows(Frame(table), y.astype(np.int32), np.ones(90), np.log([0.5, 0.5]))
    found = measure_associations(rows, [0, 1], np.ones(90))
    x = table["x"].to_numpy()
    f = f_oneway(x[y == 0], x[y == 1]).statistic
    assert found[0] == pytest.approx(f / (f + 88))
    crossed = pd.crosstab(table["color"].to_pandas(), y)
    assert found[1] == pytest.approx(chi2_contingency(crossed).statistic / 90 / 2)


def test_a_category_of_many_values_may_have_one_frequent_value() -> None:
    """All other values are there once, and share a bin."""
    rng = np.random.default_rng(5)
    x, names = rng.normal(size=400), [f"only here {k}" for k in range(400)]
    table = pd.DataFrame({"x": x, "c": np.where(rng.random(400) < 0.3, "often", names)})
    clf = BayesClassifier().fit(table, (x + rng.normal(size=400) > 0).astype(int))
    assert np.isfinite(clf.predict_proba([{"x": 0.1, "c": "new"}, {"c": "often"}, {"x": 0.1}])).all()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([0.5, 1.0], [0.5, 0.5, 0.5]),  # the second row twice
        ([0.7, 3.0], [0.7, 1.0, 1.0, 1.0]),
        ([4000.0, 4000.0], [4001.0, 4001.0]),
    ],
)
def test_weights_of_any_size_count_as_rows(one: list[float], other: list[float]) -> None:
    """All rows have the first weight; the last row has the others, once for each."""
    rng = np.random.default_rng(6)
    X, noise = rng.normal(size=(1_000, 4)), rng.normal(size=1_000)
    y = (X[:, 0] * X[:, 1] + X[:, 2] + noise > 0).astype(int)
    found = []
    for first, *last in (one, other):
        rows = np.append(np.arange(999), np.full(len(last), 999))
        found.append(BayesClassifier().fit(X[rows], y[rows], np.append(np.full(999, first), last)).predict_proba(X))
    np.testing.assert_allclose(found[0], found[1], rtol=0, atol=1e-3)
