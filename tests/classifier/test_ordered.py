"""Ordered classes: the posterior median, its loss and metrics; monotone columns: exactly, in every form of a model."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st
from sklearn.datasets import load_iris
from sklearn.isotonic import isotonic_regression

from deciban import BayesClassifier, Binned, DataError, Gaussian, Loss, SchemaError, UsageError, decide, load, merge
from deciban.errors import DecibanError, ModelFileError
from deciban.families.base.contract import LeftOutRows
from deciban.families.base.monotone import MonotoneShares
from deciban.model.model import find_median
from deciban.report.data import choose_rows
from deciban.store.model_file import content, from_content
from tests import example_count, textbook
from tests.export.agreement import assert_agree
from tests.export.targets import everywhere

GRADES = ["low", "medium", "high"]
SIGNS = {"income": 1, "age": -1}


def draw_table(rows: int = 400, classes: int = 3, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Two numbers that move the classes, one that does so together with a category; some cells are missing."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"income": rng.gamma(2.0, size=rows), "age": rng.integers(20, 60, rows).astype(float)})
    table["size"], table["town"] = rng.normal(size=rows), rng.choice(["Ulm", "Bern"], rows)
    turn = np.where(table["town"] == "Ulm", 1.5, -1.5)
    along = table["income"] - 0.05 * table["age"] + turn * table["size"] + rng.logistic(size=rows)
    table.loc[rng.random(rows) < 0.1, "age"] = np.nan
    return table, np.digitize(along, np.quantile(along, np.arange(1, classes) / classes))


def as_grades(y: np.ndarray) -> pd.Categorical:
    return pd.Categorical([GRADES[k] for k in y], GRADES, ordered=True)


def measure_steps(clf: BayesClassifier, rows: pd.DataFrame, column: str, values: np.ndarray, order: Any) -> np.ndarray:
    """How the log-odds of neighboring classes change from value to value, all else being equal: value, row, pair."""
    log_odds = [np.diff(clf.predict_log_proba(rows.assign(**{column: x}))[:, order], axis=1) for x in values]
    return np.diff(np.array(log_odds), axis=0)


# --- ordered classes


def test_predictions_are_medians_of_least_distance_and_decide_agrees() -> None:
    X, y = draw_table()
    clf = BayesClassifier(ordered=True).fit(X, as_grades(y))
    assert clf.classes_.tolist() == ["high", "low", "medium"]
    posterior = clf.predict_proba(X)[:, [1, 2, 0]]
    risks = [[sum(p * abs(d - c) for c, p in enumerate(row)) for d in range(3)] for row in posterior.tolist()]
    best = [GRADES[int(np.argmin(risk))] for risk in risks]
    assert clf.predict(X).tolist() == best == clf.decide(X).decision.tolist()
    assert np.allclose(clf.decide(X).risk, np.min(risks, axis=1))
    assert (np.array(best) != np.array(GRADES)[posterior.argmax(axis=1)]).any()
    assert clf.explain(X[:9]).to_dict(0)["predicted"] == best[0]
    unordered = BayesClassifier().fit(X, as_grades(y))
    assert np.array_equal(unordered.predict_proba(X), clf.predict_proba(X))
    assert clf.decide(X, Loss.zero_one(clf.classes_)).decision.tolist() == unordered.predict(X).tolist()


@given(st.lists(st.floats(0.01, 1.0), min_size=2, max_size=6), st.randoms(use_true_random=False))
@settings(max_examples=example_count(60), deadline=None)
def test_a_median_has_the_least_absolute_distance(weights: list[float], random: Any) -> None:
    order = random.sample(range(len(weights)), len(weights))
    posterior = np.array(weights)[None] / sum(weights)
    loss = Loss.absolute_distance([int(c) for c in order])
    risk = decide(posterior, loss, classes=range(len(weights))).risk[0]
    chosen = order.index(int(find_median(posterior, np.array(order))[0]))
    assert sum(posterior[0, c] * abs(k - chosen) for k, c in enumerate(order)) == pytest.approx(risk, abs=1e-8)


def test_metrics_of_ordered_classes_equal_their_definition_and_add_up() -> None:
    X, y = draw_table()
    clf = textbook(ordered=True, classes=GRADES).fit(X[::2], as_grades(y[::2]))
    held_out, truth = X[1::2], y[1::2]
    found = clf.evaluate(held_out, as_grades(truth))
    posterior = clf.predict_proba(held_out)[:, [1, 2, 0]]
    ranked = np.mean(
        [sum((row[: k + 1].sum() - (t <= k)) ** 2 for k in range(2)) for row, t in zip(posterior, truth, strict=True)]
    )
    distance = np.mean([abs(GRADES.index(label) - t) for label, t in zip(clf.predict(held_out), truth, strict=True)])
    assert found.ranked_probability_score == pytest.approx(ranked)
    assert found.mean_absolute_distance == pytest.approx(distance)
    parts = clf.evaluate(held_out[:50], as_grades(truth[:50])) + clf.evaluate(held_out[50:], as_grades(truth[50:]))
    assert parts.to_dict()["ranked_probability_score"] == pytest.approx(ranked)
    assert "mean absolute distance" in str(found)
    for table in (str(found), str(parts)):
        first = [line.split()[0] for line in table.splitlines() if line.split()[:1] and line.split()[0] in GRADES]
        assert first == [*GRADES, *GRADES]  # truth by predicted, then each class
    matrix = next(line for line in str(found).splitlines() if line.split()[:1] == ["low"])
    at = [found.classes.tolist().index(grade) for grade in GRADES]
    assert matrix.split()[1:] == [f"{weight:.0f}" for weight in found.confusion[at[0], at]]
    assert clf.leave_one_out(X[::2], as_grades(y[::2])).evaluate().ranked_probability_score is not None
    assert clf.cross_validate(X, as_grades(y)).mean_absolute_distance < 1.0
    assert textbook().fit(X, y).evaluate(X, y).ranked_probability_score is None


def test_the_order_comes_from_classes_or_from_the_type_of_the_target() -> None:
    X, y = draw_table()
    labels = np.array(GRADES)[y]
    by_classes = textbook(ordered=True, classes=GRADES).fit(X, labels).predict(X).tolist()
    frame = X.assign(grade=as_grades(y))
    enum = pl.from_pandas(X.assign(grade=labels)).with_columns(pl.col("grade").cast(pl.Enum(GRADES)))
    for rows in (frame, enum):
        assert textbook(ordered=True).fit(rows, "grade").predict(rows).tolist() == by_classes
        assert textbook(ordered=True).partial_fit(rows, "grade").predict(rows).tolist() == by_classes
        assert textbook(ordered=True).cross_validate(rows, "grade").mean_absolute_distance < 1.0
    numbers = textbook(ordered=True).fit(X, y).predict(X)
    assert [GRADES[k] for k in numbers] == by_classes
    with pytest.raises(UsageError, match="texts without an order"):
        textbook(ordered=True).fit(X, labels)
    changed = textbook().fit(X, y).set_params(ordered=True)
    assert np.array_equal(changed.predict(X), numbers)


def test_a_set_of_classes_has_no_order_and_a_list_of_them_no_repetition() -> None:
    X, y = draw_table(100, 4)
    numbers, some = np.array([3, 8, 33, 100]), {3, 8, 33, 100}  # a set of these does not iterate in ascending order
    for clf in (textbook(ordered=True, classes=some).fit(X, numbers[y]),
                textbook(ordered=True).partial_fit(X, numbers[y], classes=some)):  # fmt: skip
        assert clf.model_.order.tolist() == [0, 1, 2, 3]
        assert (clf + textbook(ordered=True).fit(X, numbers[y])).model_.order.tolist() == [0, 1, 2, 3]
    flags = np.where(y > 1, "yes", "no")
    assert textbook(ordered=True).partial_fit(X, flags, classes={"no", "yes"}).model_.order.tolist() == [0, 1]
    with pytest.raises(UsageError, match="a class is listed twice"):
        textbook(ordered=True, classes=[0, 1, 2, 3, 1]).fit(X, y)


@pytest.mark.parametrize("unit", ["D", "s", "ns"])
def test_times_are_ordered_as_declared_in_any_unit(unit: str) -> None:
    X, y = draw_table(60)
    days = np.array(["2026-01-01", "2026-01-02", "2026-01-03"], dtype="datetime64[ns]")
    clf = textbook(ordered=True, classes=days[::-1].astype(f"datetime64[{unit}]")).fit(X, days[y])
    assert clf.model_.order.tolist() == [2, 1, 0]


def test_labels_in_another_order_are_rejected() -> None:
    X, y = draw_table(60)
    clf = textbook(ordered=True).fit(X, as_grades(y))
    with pytest.raises(DataError, match=r"in the order .*use the same order"):
        clf.partial_fit(X, as_grades(y).reorder_categories(GRADES[::-1]))
    assert clf.partial_fit(X, as_grades(y)).counts_.rows == 120


@pytest.mark.parametrize("classes", [2, 3, 4])
def test_decisions_are_predictions_also_if_classes_tie(classes: int) -> None:
    rng = np.random.default_rng(classes)
    for _ in range(20):
        X = {name: rng.choice(["u", "v", "w"], 2 * classes) for name in "ab"}
        y = rng.permutation(np.repeat(np.arange(classes), 2))
        clf = textbook(ordered=True, prior="uniform", classes=rng.permutation(classes).tolist()).fit(X, y)
        assert clf.decide(X).decision.tolist() == clf.predict(X).tolist()


def test_reports_find_mistakes_by_the_median() -> None:
    posterior = np.array([[0.4, 0.25, 0.35], [0.45, 0.1, 0.45]])
    order = np.arange(3)
    assert choose_rows(posterior, np.array([1, 1]), 3, order)[0] == (0, "Most confident correct prediction")
    assert choose_rows(posterior, np.array([1, 1]), 3)[-1][1] == "Most confident mistake"


# --- monotone columns


@given(st.integers(0, 10**6), st.integers(2, 5), st.sampled_from([1, -1]))
@settings(max_examples=example_count(30), deadline=None)
def test_shares_have_monotone_ratios_and_the_totals_of_the_counts(seed: int, classes: int, sign: int) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.poisson(rng.gamma(1.0, 20.0, (classes, rng.integers(1, 30)))) + 1.0
    found = MonotoneShares.of(counts, sign)
    fitted = np.exp(found.log_shares) * counts.sum(axis=1, keepdims=True)
    assert np.allclose(fitted.sum(axis=0), counts.sum(axis=0))
    assert np.allclose(fitted.sum(axis=1), counts.sum(axis=1))
    assert (sign * np.diff(np.diff(found.log_shares, axis=0), axis=1) > -1e-9).all()
    for k, (low, high) in enumerate(pairwise(counts)):
        share = isotonic_regression(high / (low + high), sample_weight=low + high, increasing=sign > 0)
        ratio = found.log_shares[k + 1] - found.log_shares[k]
        expected = np.log(share) - np.log1p(-share)
        assert np.allclose(ratio - ratio[0], expected - expected[0])


def test_left_out_rows_of_two_classes_are_scored_as_by_a_refit_in_the_same_pools() -> None:
    rng = np.random.default_rng(1)
    counts = rng.poisson(8.0, (2, 12)) + 1.0
    whole = MonotoneShares.of(counts, 1)
    pool = np.unique(whole.lower[0] / whole.upper[0], return_inverse=True)[1]
    for label, code in np.ndindex(2, 12):
        out = np.zeros((1, 2))
        whole.score_left_out(np.array([code]), LeftOutRows(np.array([label]), np.array([0.5])), out, 0.0)
        rest = counts.copy()
        rest[label, code] -= 0.5
        together = np.stack([np.bincount(pool, one)[pool[code]] / one.sum() for one in rest])
        assert out[0, 1] - out[0, 0] == pytest.approx(np.log(together[1] / together[0]))


@pytest.mark.parametrize("tune", [None, "weights", "auto"])
@pytest.mark.parametrize("classes", [2, 3])
def test_monotone_columns_move_no_class_against_the_order(classes: int, tune: Any) -> None:
    X, y = draw_table(600, classes)
    labels = np.array(GRADES)[y] if classes == 3 else y
    more = {"classes": GRADES} if classes == 3 else {}
    clf = BayesClassifier(tune=tune, ordered=classes == 3, monotone=SIGNS, **more).fit(X, labels)
    assert {str(clf.schema_.to_dict()[name]["family"])[:6] for name in SIGNS} == {"Binned"}
    order = [1, 2, 0] if classes == 3 else [0, 1]
    rows = pd.concat([X[:40], X[:3].assign(size=np.nan, town=None)])
    for column, sign in SIGNS.items():
        ends = [-1e308, -50.0, *np.linspace(X[column].min() - 1.0, X[column].max() + 1.0, 60), 1e9, 1e308]
        steps = sign * measure_steps(clf, rows, column, np.array(ends), order)
        assert steps.min() > -1e-12
        assert steps.max() > 0.01
        shown = [clf.evidence(X[:1].assign(**{column: x}), by="column") for x in ends]
        place = list(shown[0].columns).index(column)
        evidence = np.array([one.values[0, place, order] for one in shown])
        assert (sign * np.diff(np.diff(evidence, axis=1), axis=0) > -1e-12).all()


def test_counts_stay_raw_and_rows_can_be_learned_forgotten_and_merged() -> None:
    X, y = draw_table()
    one, two, whole = (
        textbook(monotone=SIGNS, ordered=True).fit(X[part], y[part])
        for part in (slice(0, 250), slice(250, None), slice(None))
    )
    raw = sum(np.histogram(X["income"][y == k], 8)[0].sum() for k in range(3))
    income = next(part for group, part in zip(whole.schema_.groups, whole.counts_.statistics, strict=True)
                  if group.columns == (0,))  # fmt: skip
    assert income.parts[1].columns[0].table.sum() == raw == len(X)
    assert np.array_equal(income.parts[1].columns[0].table, np.rint(income.parts[1].columns[0].table))
    expected = whole.predict_proba(X)
    both = merge([one, two])
    assert np.allclose(both.predict_proba(X), expected)
    assert np.allclose(both.forget(X[250:], y[250:]).predict_proba(X), one.predict_proba(X))
    assert np.allclose(one.partial_fit(X[250:], y[250:]).predict_proba(X), expected)


def test_models_with_other_constraints_cannot_be_merged() -> None:
    X, y = draw_table()
    one = textbook(monotone={"income": 1}, ordered=True).fit(X[:250], y[:250])
    others = [{"monotone": {"income": -1}, "ordered": True}, {"ordered": True}, {}]
    for parameters, name in zip(others, ("monotone", "monotone", "ordered"), strict=True):
        with pytest.raises(SchemaError, match=f"{name}="):
            merge([one, textbook(**parameters).fit(X[250:], y[250:])])
    grades = [textbook(ordered=True, classes=some).fit(X[k::2], np.array(GRADES)[y[k::2]])
              for k, some in enumerate((GRADES, GRADES[::-1]))]  # fmt: skip
    with pytest.raises(SchemaError, match="classes="):
        merge(grades)


def test_a_model_file_and_a_pickle_keep_the_order_and_the_constraints(tmp_path: Any) -> None:
    X, y = draw_table()
    clf = BayesClassifier(ordered=True, monotone=SIGNS).fit(X, as_grades(y))
    clf.save(tmp_path / "grades.dcb")
    kept = load(tmp_path / "grades.dcb")
    assert (kept.ordered, kept.monotone) == (True, SIGNS)
    assert kept.predict(X).tolist() == clf.predict(X).tolist()
    assert np.array_equal(kept.predict_proba(X), clf.predict_proba(X))


def test_an_invalid_order_in_a_model_file_is_refused() -> None:
    X, y = draw_table(60)
    fitted = textbook(ordered=True).fit(X, as_grades(y)).fitted_
    for order in ((*GRADES, "low"), GRADES[:2], (["low"], "medium", "high"), None):
        damaged = replace(fitted, origin=replace(fitted.origin, order=order))
        with pytest.raises(ModelFileError, match="invalid model file"):
            from_content(content(damaged), "a file")


def test_exports_predict_the_median_and_are_as_monotone() -> None:
    X, y = draw_table()
    clf = BayesClassifier(ordered=True, monotone=SIGNS).fit(X, as_grades(y))
    table = pa.Table.from_pandas(X[:60].assign(income=[*X["income"][:55], -5.0, 1e300, 1e-9, 7.77, -1e300]))
    rows, expected, model = table.to_pylist(), clf.predict(table).tolist(), clf.model_
    sql = duckdb.sql(clf.to_sql("table", keep=[])).arrow().read_all()
    assert sql["predicted"].to_pylist() == expected
    assert np.allclose(np.stack([sql[f"P({c})"] for c in clf.classes_], axis=1), clf.predict_proba(table))
    assert_agree([model], [rows])
    for answers in everywhere([model], [rows], ("predict",)):
        assert [found["predict"] for found in answers[0].rows] == expected


def test_constraints_that_cannot_be_kept_are_rejected_by_name() -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    X, two = X.rename(columns=lambda name: name.split()[0] + name.split()[1]), y > 0
    X["kind"] = "text"
    cases: list[tuple[dict[str, Any], Any, str]] = [
        ({"monotone": {"petalwidth": 1}}, y, "3 classes without an order"),
        ({"monotone": {"petalwidht": 1}}, two, "did you mean 'petalwidth'"),
        ({"monotone": {"kind": 1}}, two, "column 'kind'.*expected a number"),
        ({"monotone": {"petalwidth": 2}}, two, "1 or -1"),
        ({"monotone": ["petalwidth"]}, two, "a mapping from columns"),
        (
            {"families": {"petalwidth": Gaussian()}, "monotone": {"petalwidth": 1}},
            two,
            r"Gaussian\(\) cannot be monotone",
        ),
        ({"ordered": "yes"}, y, "True or False"),
    ]
    for parameters, labels, message in cases:
        with pytest.raises(UsageError, match=message):
            BayesClassifier(**parameters).fit(X, labels)
    with pytest.raises(UsageError, match="alpha > 0"):
        Binned(alpha=0.0, monotone=1)
    for order in (0, 2, (0, 0, 1), (1, 2)):
        with pytest.raises(UsageError, match="expected 1, -1 or the indices of all classes"):
            Binned(monotone=order)
    clf = textbook(monotone={"petalwidth": 1}).fit(X[y < 2], y[y < 2])
    before = clf.predict_proba(X)
    with pytest.raises(UsageError, match="3 classes without an order"):
        clf.partial_fit(X, y)
    assert np.array_equal(clf.predict_proba(X), before)
    with pytest.raises(DecibanError):
        textbook(ordered=True, classes=GRADES).fit(X, np.where(two, "low", "lower"))
    assert issubclass(DataError, DecibanError)


def test_monotone_columns_may_be_flags_dates_and_positions() -> None:
    X, y = draw_table(300, 2)
    days = pd.DataFrame(
        {"day": pd.Timestamp("2026-01-01") + pd.to_timedelta(X["income"] * 30, "D"), "rich": X["income"] > 2}
    )
    clf = BayesClassifier(monotone={"day": 1, "rich": 1}).fit(days, y)
    assert clf.predict_proba(days.sort_values("day"))[:, 1][[0, -1]].tolist() == pytest.approx(
        [clf.predict_proba(days)[:, 1].min(), clf.predict_proba(days)[:, 1].max()]
    )
    numbers = BayesClassifier(monotone={0: 1}).fit(X[["income", "size"]].to_numpy(), y)
    assert np.diff(numbers.predict_proba([[x, 0.0] for x in range(6)])[:, 1]).min() > -1e-12
