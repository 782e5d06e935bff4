"""Tuning: posteriors that can be trusted, within an additive and exact model."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline

from deciban import (
    BayesClassifier,
    Categorical,
    EvidenceSelector,
    Gamma,
    Gaussian,
    JointGaussian,
    JointTable,
    LogNormal,
    Poisson,
    Pooled,
    Shrunk,
)
from deciban.fitting.fit import count_examples, open_examples
from deciban.fitting.update import replace_counts
from tests import textbook

RNG = np.random.default_rng(0)
N = 300
Y = np.arange(N) % 3
MIXED = pd.DataFrame(
    {
        "height": RNG.normal(size=N) + Y,
        "income": np.exp(RNG.normal(size=N) + 0.5 * Y),
        "visits": RNG.poisson(1 + Y),
        "color": np.array(["red", "green", "blue"])[(Y + RNG.integers(0, 2, N)) % 3],
        "member": RNG.random(N) < 0.3 + 0.2 * Y,
    }
)
MIXED.loc[RNG.random(N) < 0.1, "height"] = np.nan
MIXED.loc[RNG.random(N) < 0.1, "color"] = None


def held_out(clf, X, y) -> float:
    return log_loss(y, cross_val_predict(clf, X, y, cv=5, method="predict_proba"))


def test_the_default_is_tuned_and_none_is_the_textbook() -> None:
    assert BayesClassifier().tune == "auto"
    assert textbook().fit(MIXED, Y).tuning_ is None
    tuning = BayesClassifier().fit(MIXED, Y).tuning_
    assert tuning.rows == N
    assert not tuning.stale
    assert (tuning.weights >= 0.0).all()
    with pytest.raises(ValueError, match="tune='much'"):
        BayesClassifier(tune="much").fit(MIXED, Y)


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
def test_held_out_log_loss_is_far_below_plain_bayes(load) -> None:
    X, y = load(return_X_y=True)
    assert held_out(BayesClassifier(), X, y) < 0.6 * held_out(textbook(), X, y)


def test_explanations_add_up_exactly() -> None:
    clf = BayesClassifier().fit(MIXED, Y)
    found = clf.evidence(MIXED)
    total = found.log_prior + found.bias + (found.weights[:, None] * found.values).sum(axis=1) + found.raised
    np.testing.assert_allclose(found.log_joint, total, atol=1e-12)
    odds = clf.predict_log_proba(MIXED)
    np.testing.assert_allclose(odds[:, 0] - odds[:, 1], total[:, 0] - total[:, 1], atol=1e-11)
    np.testing.assert_allclose(clf.log_joint(MIXED), total, rtol=1e-12, atol=1e-11)
    assert "posterior" in str(clf.explain(MIXED[:2], by="block"))


def test_twenty_copies_of_a_column_say_no_more_than_one() -> None:
    x, test = (RNG.normal(size=2000) + (np.arange(2000) % 2) for _ in range(2))
    y = np.arange(2000) % 2
    losses = []
    for copies in (1, 20):
        clf = BayesClassifier().fit(np.repeat(x[:, None], copies, axis=1), y)
        losses.append(log_loss(y, clf.predict_proba(np.repeat(test[:, None], copies, axis=1))))
    assert losses[1] == pytest.approx(losses[0], rel=0.01)
    plain = textbook().fit(np.repeat(x[:, None], 20, axis=1), y)
    assert log_loss(y, plain.predict_proba(np.repeat(test[:, None], 20, axis=1))) > 3.0 * losses[0]


@pytest.mark.parametrize("kind", ["words", "codes", "numbers"])
def test_xor_is_solved(kind: str) -> None:
    bits = RNG.integers(0, 2, (600, 2))
    y = bits[:, 0] ^ bits[:, 1]
    X = {
        "words": pd.DataFrame(np.where(bits == 1, "yes", "no"), columns=["a", "b"]),
        "codes": bits,
        "numbers": np.where(bits == 1, 1.0, -1.0) * RNG.uniform(0.5, 1.5, (600, 2)),
    }[kind]
    assert held_out(textbook(), X, y) > 0.6
    assert held_out(BayesClassifier(), X, y) < 0.1


def test_classes_that_differ_in_correlation_alone_are_told_apart() -> None:
    y = np.arange(1000) % 2
    noise = RNG.multivariate_normal([0, 0], [[1, 0.9], [0.9, 1]], 1000)
    X = np.where(y[:, None] == 1, noise, noise * [1, -1])
    assert held_out(textbook(), X, y) > 0.65
    assert held_out(BayesClassifier(), X, y) < 0.35


def test_columns_get_the_family_that_fits_them() -> None:
    y = np.arange(2000) % 2
    table = pd.DataFrame(
        {
            "bell": RNG.normal(y, 1.0),
            "tail": np.exp(RNG.normal(0.7 * y, 1.0)),
            "two_humps": np.where(y == 1, RNG.choice([-3.0, 3.0], 2000), 0.0) + RNG.normal(size=2000),
        }
    )
    clf = BayesClassifier().fit(table, y)
    chosen = {choice.column: type(choice.family).__name__ for choice in clf.tuning_.choices}
    assert chosen["bell"] == "Gaussian"
    assert chosen["tail"] in ("LogNormal", "Gamma")
    assert chosen["two_humps"] == "Binned"
    losses = [loss for choice in clf.tuning_.choices for _, loss in choice.others]
    assert len(losses) > 15
    assert "next: " in str(clf.tuning_.choices[0])
    assert "next" in str(clf.schema_)


def test_families_that_were_given_are_kept() -> None:
    spec = {"height": Gaussian(), ("color", "member"): JointTable(), "visits": Categorical(alpha=2.0)}
    clf = BayesClassifier(spec).fit(MIXED, Y)
    shown = {name: family for name, family, _ in clf.schema_.descriptions()}
    assert shown["height"] == "Gaussian()"
    assert shown["visits"] == "Categorical(alpha=2.0)"
    assert shown["color"].startswith("JointTable()")
    assert clf.tuning_.rows == N


@pytest.mark.parametrize("weighted", [False, True])
def test_leave_one_out_is_refitting_without_the_row(weighted: bool) -> None:
    """With structure and weights held, by counting all other rows anew."""
    clf = BayesClassifier().fit(MIXED[:80], Y[:80])
    weights = RNG.choice([1.0, 2.0], 80) if weighted else np.ones(80)
    clf = BayesClassifier(tune="weights").fit(MIXED[:80], Y[:80], weights)
    found = clf.leave_one_out(MIXED[:80], Y[:80], weights)
    binned = [b for b, name in enumerate(found.evidence.blocks) if "Binned" in str(_family(clf, b))]
    for i in range(0, 80, 7):
        left = weights.copy()
        left[i] = 0.0  # a row of weight 2 is there twice, and both are left out
        rest = BayesClassifier(tune=None).fit(MIXED[:80], Y[:80])
        others = count_examples(clf.counts_.schema, open_examples(clf.fitted_, MIXED[:80], Y[:80], left))
        rest.fitted_ = replace_counts(clf.fitted_, others)
        expected = rest.evidence(MIXED[i : i + 1])
        others = [b for b in range(len(expected.blocks)) if b not in binned]
        np.testing.assert_allclose(
            found.evidence.values[i, others], expected.values[0, others], rtol=1e-8, atol=1e-8, err_msg=f"row {i}"
        )
        np.testing.assert_allclose(found.evidence.log_prior[i], expected.log_prior, atol=1e-12)
    scores = found.evidence.log_joint
    np.testing.assert_allclose(found.posterior, np.exp(scores - logsumexp(scores, axis=1, keepdims=True)), atol=1e-12)
    assert found.given_tuning
    assert "given the tuning" in str(found)


def _family(clf: BayesClassifier, block: int):
    return clf.model_.schema.groups[clf.model_.schema.group_of_block(block)[0]].family


def test_leave_one_out_figures() -> None:
    X, y = load_iris(return_X_y=True)
    clf = textbook().fit(X, y)
    found = clf.leave_one_out()
    same = [np.flatnonzero((X[i] == X).all(axis=1) & (y == y[i])) for i in range(150)]  # one row is there twice
    assert found.copies == sum(map(len, same)) - 150 - 1
    fits = [textbook().fit(np.delete(X, some, 0), np.delete(y, some)) for some in same]
    literal = np.concatenate([fits[i].predict_proba(X[i : i + 1]) for i in range(150)])
    np.testing.assert_allclose(found.posterior, literal, rtol=1e-8, atol=1e-12)
    assert found.log_loss == pytest.approx(log_loss(y, literal))
    assert found.accuracy == pytest.approx((literal.argmax(axis=1) == y).mean())
    assert found.mean_cost(1.0 - np.eye(3)) == pytest.approx(1.0 - found.accuracy)
    assert 0.0 <= found.expected_calibration_error <= 1.0
    assert found.calibration().rows.sum() == 150
    assert not found.given_tuning
    with pytest.raises(ValueError, match="expected a matrix of costs"):
        found.mean_cost([1.0, 2.0])
    assert found.mean_cost({0: 1, 1: 1, 2: 1}) == pytest.approx(1.0 - found.accuracy)


def test_leave_one_out_has_the_loss_of_each_row() -> None:
    X, y = load_iris(return_X_y=True)
    found = textbook().fit(X, y).leave_one_out()
    np.testing.assert_allclose(found.log_losses, -np.log(found.posterior[np.arange(150), found.labels]), rtol=1e-12)
    assert found.log_loss == pytest.approx(np.average(found.log_losses, weights=found.weights))
    frame = found.to_frame()
    assert list(frame) == ["class", "predicted", "probability", "log_loss", "weight"]
    np.testing.assert_array_equal(frame["log_loss"], found.log_losses)
    np.testing.assert_array_equal(frame["class"], y)
    assert (frame["class"] == frame["predicted"]).mean() == found.accuracy
    told = found.to_dict()
    assert told["given_tuning"] is False
    for name in ("accuracy", "log_loss", "roc_auc", "brier_score", "expected_calibration_error"):
        assert told[name] == getattr(found, name)


def test_the_only_row_of_a_class_is_left_out_and_counted() -> None:
    X, y = load_iris(return_X_y=True)
    y = y.copy()
    y[0] = 7
    found = textbook().fit(X, y).leave_one_out(X, y)
    assert found.posterior[0, 3] == 0.0
    assert np.isfinite(found.log_loss)
    assert found.accuracy < 1.0


def test_leave_one_out_remembers_the_rows_of_the_last_fit() -> None:
    X, y = load_iris(return_X_y=True)
    clf = BayesClassifier().fit(X, y)
    assert clf.leave_one_out().labels.size == 150
    clf.partial_fit(X[:10], y[:10])
    with pytest.raises(ValueError, match="pass X and y"):
        clf.leave_one_out()
    loaded = pickle.loads(pickle.dumps(BayesClassifier().fit(X, y)))
    with pytest.raises(ValueError, match="pass X and y"):
        loaded.leave_one_out()
    assert loaded.leave_one_out(X, y).accuracy > 0.9


def test_what_is_learned_later_leaves_the_tuning_stale_until_it_is_retuned() -> None:
    half = N // 2
    clf = BayesClassifier().fit(MIXED[:half], Y[:half])
    weights = clf.tuning_.weights
    clf.partial_fit(MIXED[half:], Y[half:])
    assert clf.tuning_.stale
    assert clf.counts_.rows == N
    np.testing.assert_array_equal(clf.tuning_.weights, weights)
    assert "retuning is recommended" in str(clf.tuning_)
    clf.retune(MIXED, Y)
    assert not clf.tuning_.stale
    assert clf.leave_one_out(MIXED, Y).log_loss < textbook().fit(MIXED, Y).leave_one_out(MIXED, Y).log_loss
    clf.forget(MIXED[half:], Y[half:])
    assert clf.tuning_.stale
    again = BayesClassifier().fit(MIXED[:half], Y[:half])
    np.testing.assert_allclose(clf.counts_.class_weight, again.counts_.class_weight)
    with pytest.raises(ValueError, match="too few"):
        clf.retune(MIXED[:5], Y[:5])


def test_plain_counts_of_a_tuned_model_are_those_of_the_textbook() -> None:
    clf = BayesClassifier().fit(MIXED, Y)
    plain = textbook().fit(MIXED, Y)
    np.testing.assert_allclose(clf.log_density(MIXED), plain.log_density(MIXED), rtol=1e-12)
    counted = clf.estimates(plain=True)
    for name, block in plain.estimates().items():
        for parameter, values in block.parameters.items():
            np.testing.assert_array_equal(counted[name][parameter], values)


def test_models_that_were_tuned_apart_add() -> None:
    skewed = MIXED.assign(income=MIXED["income"] ** 3, height=np.where(Y == 0, 5.0, 0.0) + RNG.choice([-9, 9], N))
    one, other = BayesClassifier().fit(MIXED, Y), BayesClassifier().fit(skewed, Y)
    assert [str(c.family) for c in one.tuning_.choices] != [str(c.family) for c in other.tuning_.choices]
    both = one + other
    assert both.counts_.rows == 2 * N
    assert both.tuning_.stale
    everything = pd.concat([MIXED, skewed])
    plain = textbook().fit(MIXED, Y) + textbook().fit(skewed, Y)
    np.testing.assert_allclose(both.log_density(MIXED), plain.log_density(MIXED), rtol=1e-9)
    assert np.isfinite(both.predict_proba(everything)).all()
    both.retune(everything, np.concatenate([Y, Y]))
    assert (both - other).counts_.rows == N


def test_new_columns_and_classes_may_come_to_a_tuned_model() -> None:
    clf = BayesClassifier().fit(MIXED, Y)
    more = MIXED.assign(age=np.arange(N) * 1.0)
    clf.partial_fit(more, np.where(Y == 0, 9, Y))
    assert clf.classes_.tolist() == [0, 1, 2, 9]
    assert np.isfinite(clf.predict_proba(more)).all()
    assert "age" in clf.evidence(more).blocks
    clf.retune(more, np.where(Y == 0, 9, Y))


def test_the_prior_may_change_after_tuning() -> None:
    clf = BayesClassifier().fit(MIXED, Y)
    odds = clf.predict_log_proba(MIXED)
    moved = clf.with_prior([0.2, 0.3, 0.5]).predict_log_proba(MIXED)
    shift = (moved[:, 0] - moved[:, 2]) - (odds[:, 0] - odds[:, 2])
    np.testing.assert_allclose(shift, np.log(0.2 / 0.5), atol=1e-9)
    given = BayesClassifier(prior=[0.2, 0.3, 0.5]).fit(MIXED, Y)
    np.testing.assert_allclose(given.predict_log_proba(MIXED), moved, atol=1e-9)


def test_weights_are_repetitions_and_threads_change_nothing() -> None:
    weights = RNG.integers(0, 3, N)
    weighted = BayesClassifier().fit(MIXED, Y, weights)
    repeated = BayesClassifier().fit(MIXED.loc[np.repeat(np.arange(N), weights)], np.repeat(Y, weights))
    np.testing.assert_allclose(weighted.predict_proba(MIXED), repeated.predict_proba(MIXED), atol=1e-6)
    one = BayesClassifier(threads=1).fit(MIXED, Y).predict_proba(MIXED)
    np.testing.assert_array_equal(one, BayesClassifier(threads=8).fit(MIXED, Y).predict_proba(MIXED))


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (MIXED[:4], Y[:4]),
        (MIXED[:30], np.zeros(30)),
        (MIXED.assign(empty=np.nan), Y),
        (MIXED.assign(constant=1.0), Y),
        (MIXED.assign(name=[f"id{i}" for i in range(N)]), Y),
        (MIXED[["color"]], Y),
        (np.zeros((40, 3)), np.arange(40) % 2),
        (np.full((40, 2), np.nan), np.arange(40) % 2),
        (RNG.normal(size=(40, 1)) * 1e100, np.arange(40) % 2),
        (np.repeat(RNG.normal(size=(40, 1)), 3, axis=1), np.arange(40) % 2),
        (RNG.normal(size=(25, 60)), np.arange(25) % 2),
        (RNG.normal(size=(60, 3)), np.arange(60) // 2),
    ],
    ids=["few rows", "one class", "no cells", "constant", "names", "one column", "zeros", "nothing", "huge", "copies",
         "wide", "many classes"],
)  # fmt: skip
def test_it_never_fails_where_plain_bayes_works(X, y) -> None:
    clf = BayesClassifier().fit(X, y)
    assert np.isfinite(clf.predict_proba(X)).all()
    textbook().fit(X, y)
    if len(X) >= 20 and len(set(y)) > 1:
        left_out = clf.leave_one_out()
        assert np.isfinite(left_out.log_loss)
        assert f" {left_out.log_loss / np.log(2):.4f}" in str(clf.diagnose())
    else:
        assert "plain Bayes" in str(clf.tuning_)


def test_ten_thousand_columns_share_one_weight() -> None:
    y = np.arange(60) % 2
    X = RNG.normal(size=(60, 10_000)) + 0.05 * y[:, None]
    clf = BayesClassifier().fit(X, y)
    assert "one weight for all 10,000 blocks" in str(clf.tuning_)
    assert np.unique(clf.tuning_.weights).size == 1
    assert clf.tuning_.weights[0] < 0.5


def test_diagnosis_names_what_is_wrong() -> None:
    y = np.arange(1500) % 2
    x, noise, tail, own = RNG.normal(size=(4, 1500))
    x += y
    table = pd.DataFrame({"x": x, "again": x + 1e-3 * noise, "skew": np.exp(tail), "own": own})
    plain = textbook().fit(table, y).diagnose()
    assert [found.columns for found in plain.dependences] == [("x", "again")]
    assert plain.redundant
    assert plain.dependences[0].cost > 0.01
    assert {misfit.column for misfit in plain.misfits} == {"skew"}
    assert plain.pairs_tested == 6
    tuned = BayesClassifier().fit(table, y).diagnose()
    assert tuned.saved_bits > 0.02
    assert tuned.after.expected_calibration_error < tuned.before.expected_calibration_error
    assert "x and again" in str(tuned)
    assert "given the tuning" in str(tuned)
    small = textbook().fit(table[:103], [*y[:100], 8, 8, 8]).diagnose(table[:103], [*y[:100], 8, 8, 8])
    assert small.small_classes == ((8, 3.0),)


def test_no_dependence_is_found_where_there_is_none() -> None:
    """At the 1 % level over all pairs, in ten tables of 28 pairs each."""
    found = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        y = rng.integers(0, 3, 400)
        X = rng.normal(size=(400, 8)) + y[:, None]
        found += len(textbook().fit(X, y).diagnose().dependences)
    assert found <= 1


def test_the_most_telling_columns() -> None:
    y = np.arange(1000) % 2
    strong, weak = RNG.normal(size=1000) + 2.0 * y, RNG.normal(size=1000) + 0.7 * y
    table = pd.DataFrame({"noise": RNG.normal(size=1000), "weak": weak, "strong": strong, "copy": strong})
    clf = BayesClassifier().fit(table, y)
    assert clf.select_columns(2)[1] == "weak"
    assert clf.select_columns(2)[0] in ("strong", "copy")
    assert clf.select_columns(0) == []
    assert len(clf.select_columns(4)) == 4
    with pytest.raises(ValueError, match="k=9: expected an integer"):
        clf.select_columns(9)
    selector = EvidenceSelector(k=2).fit(table, y)
    assert set(selector.get_feature_names_out()) == set(clf.select_columns(2))
    assert make_pipeline(clone(selector), BayesClassifier()).fit(table, y).score(table, y) > 0.8
    assert EvidenceSelector(k=1, estimator=textbook()).fit(table.to_numpy(), y).get_support().sum() == 1


def test_overlapping_blocks_may_be_tuned_together_with_given_ones() -> None:
    X, y = load_wine(return_X_y=True)
    clf = BayesClassifier({(0, 1, 2): JointGaussian()}).fit(X, y)
    assert clf.score(X, y) > 0.95
    assert clf.tuning_.rows == len(y)


# found by trying hard


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_labels_that_take_turns_do_not_fool_the_sample(classes: int) -> None:
    y = np.arange(6000 * classes) % classes
    X = RNG.normal(size=(y.size, 2)) + 0.5 * y[:, None]
    tuned, plain = (log_loss(y, BayesClassifier(tune=tune).fit(X, y).predict_proba(X)) for tune in ("auto", None))
    assert tuned < 1.01 * plain


def test_a_class_that_the_sample_misses() -> None:
    y = RNG.integers(0, 2, 9000)
    X = RNG.normal(size=(9000, 3)) + y[:, None]
    y[7] = 2
    clf = BayesClassifier().fit(X, y)
    assert clf.classes_.tolist() == [0, 1, 2]
    assert clf.score(X, y) > 0.7


def test_polars_text_is_tuned_too() -> None:
    import polars as pl

    table = pl.DataFrame({"a": ["u", "v", "u"] * 20, "b": RNG.normal(size=60)})
    y = np.arange(60) % 2
    assert BayesClassifier().fit(table, y).tuning_.rows == 60
    assert textbook().fit(table, np.where(np.arange(60) == 3, np.nan, y)).counts_.rows == 59


def test_intervals_of_certain_and_of_impossible_rows() -> None:
    clf = textbook().fit([[0.0], [0.1], [0.2], [10.0], [10.1], [10.2]], [0, 0, 0, 1, 1, 1])
    low, high = clf.predict_interval([[0.0], [10.0]])
    assert ((low <= clf.predict_proba([[0.0], [10.0]])) & (clf.predict_proba([[0.0], [10.0]]) <= high)).all()
    positive = textbook(LogNormal()).fit(np.exp(RNG.normal(size=(40, 2))), np.arange(40) % 2)
    assert np.isfinite(positive.predict_interval([[-1.0, 1.0]])).all()
    words = sparse.csr_array(np.where(np.eye(40, 6) > 0, np.nan, 1.0))
    assert np.isfinite(textbook().fit(words, np.arange(40) % 2).predict_interval(words)).all()


@pytest.mark.parametrize("family", [JointGaussian(), JointGaussian(Pooled(0.2)), JointGaussian(Shrunk(0.2, 0.1))])
def test_a_row_that_carries_all_the_spread_of_a_column(family) -> None:
    y = np.arange(60) % 3
    X = np.column_stack([np.r_[0.1, np.full(59, 0.7)], RNG.normal(size=(60, 3)) + y[:, None]])
    left_out = textbook(family).fit(X, y).leave_one_out(X, y).log_joint[0]
    np.testing.assert_allclose(left_out, textbook(family).fit(X[1:], y[1:]).log_joint(X[:1])[0], rtol=1e-8)


@pytest.mark.parametrize("family", [JointGaussian(), JointGaussian(Pooled()), JointGaussian(Shrunk(0.2, 0.1)), Gamma()])
def test_a_declared_class_without_rows(family) -> None:
    y = np.arange(60) % 2
    X = np.exp(RNG.normal(size=(60, 3)) + 0.3 * y[:, None])
    found = textbook(family, classes=[0, 1, 2], prior="uniform").fit(X, y).leave_one_out(X, y)
    for i in (0, 31):
        rest = textbook(family, classes=[0, 1, 2], prior="uniform").fit(np.delete(X, i, 0), np.delete(y, i))
        np.testing.assert_allclose(found.log_joint[i], rest.log_joint(X[i : i + 1])[0], rtol=1e-8)


def test_sample_weights_of_a_temporary_array_are_remembered() -> None:
    X = RNG.normal(size=(200, 3))
    y = (X[:, 0] + RNG.normal(size=200) > 0).astype(int)
    weights = RNG.integers(1, 50, 200) * 1.0
    clf = textbook().fit(X, y, weights.copy())
    assert clf.leave_one_out().log_loss == clf.leave_one_out(X, y, weights).log_loss


def test_a_class_of_weight_zero_is_no_class() -> None:
    X = RNG.normal(size=(60, 2))
    y = np.arange(60) % 3
    weights = (y != 0) * 1.0
    clf = BayesClassifier().fit(X, y, weights)
    assert clf.leave_one_out(X, y, weights).labels.size == 40
    clf.retune(X, y, weights).select_columns(1, X, y, weights)
    assert f" {clf.leave_one_out(X, y, weights).log_loss / np.log(2):.4f}" in str(clf.diagnose(X, y, weights))


def test_rows_that_were_not_learned_are_refused() -> None:
    X = RNG.integers(0, 10, (200, 2))
    y = np.arange(200) % 2
    other = RNG.integers(0, 10, (200, 2))
    textbook(JointTable()).fit(X, y).leave_one_out(other, y)  # may have been learned, for all one can tell
    with pytest.raises(ValueError, match="not trained on them"):
        textbook().fit(X, y).decay(0.01).leave_one_out(X, y)
    with pytest.raises(ValueError, match="not trained on them"):
        textbook().fit(X, y).leave_one_out(np.concatenate([X, X]), np.concatenate([y, y]))


def test_unseen_values_that_are_errors_stay_errors() -> None:
    codes = RNG.integers(0, 8, (300, 1))
    clf = BayesClassifier(unseen="error").fit(codes, np.arange(300) % 2)
    with pytest.raises(ValueError, match="never seen"):
        clf.predict([[57]])


def test_impossible_rows_have_the_prior_of_the_others() -> None:
    table = pd.DataFrame({"a": list("pqqqqp"), "b": list("sstttt")})
    y = np.array([0, 0, 0, 1, 1, 1])
    assert textbook(alpha=0).fit(table, y).leave_one_out(table, y).posterior[0].tolist() == pytest.approx([0.4, 0.6])


def test_retuning_many_blocks_with_other_rows() -> None:
    y = np.arange(200) % 2
    X = RNG.normal(size=(200, 600)) + 0.1 * y[:, None]
    clf = BayesClassifier().fit(X, y)
    left_out = clf.retune(X, y).tuning_.weights[0]
    assert clf.retune(X, y, already_learned=False).tuning_.weights[0] > left_out
    assert clf.tuning_.rows == 200


def test_columns_of_blocks_and_pairs_are_selected() -> None:
    y = np.arange(300) % 2
    words = RNG.poisson(1, (300, 40))
    words[:, 30] = RNG.poisson(1 + 8 * y)
    assert BayesClassifier().fit(sparse.csr_array(words), y).select_columns(1) == ["x30"]
    numbers = RNG.normal(size=(300, 8))
    numbers[:, 7] += 3 * y
    assert BayesClassifier(JointGaussian()).fit(numbers, y).select_columns(1) == ["x7"]
    bits = RNG.integers(0, 2, (800, 6))
    assert set(BayesClassifier().fit(bits.astype(str), bits[:, 2] ^ bits[:, 4]).select_columns(2)) == {"x2", "x4"}
    with_holes = np.where(RNG.random(numbers.shape) < 0.1, np.nan, numbers)
    assert EvidenceSelector(k=1).fit_transform(with_holes, y).shape == (300, 1)


def test_a_column_that_is_constant_in_a_small_class_is_not_certain() -> None:
    """A flag that was right in all of 24 rows by chance must not outweigh everything."""
    losses = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        y, test_y = np.arange(24) % 2, np.arange(2000) % 2
        flags = np.where(rng.random(2000) < 0.94, test_y, 1 - test_y)
        train = np.column_stack([y, rng.normal(size=(24, 3))])
        test = np.column_stack([flags, rng.normal(size=(2000, 3))])
        losses.append(log_loss(test_y, BayesClassifier().fit(train, y).predict_proba(test)))
    assert np.mean(losses) < 0.6


def test_another_family_is_charged_whatever_the_order_of_the_columns() -> None:
    """Codes get the same family alone and behind a column of real numbers, and never one of real numbers."""
    y = np.arange(400) % 2
    for seed in range(5):
        rng = np.random.default_rng(seed)
        codes, x = rng.integers(0, 3, 400), rng.normal(size=400)
        alone = BayesClassifier().fit(pd.DataFrame({"code": codes}), y).tuning_.choices[0]
        behind = BayesClassifier().fit(pd.DataFrame({"x": x, "code": codes}), y).tuning_.choices[1]
        assert alone.family == behind.family
        assert isinstance(alone.family, Categorical | Poisson)


def test_blocks_that_were_given_keep_their_own_weights() -> None:
    bits = RNG.integers(0, 2, (3000, 4))
    y = (bits[:, 0] ^ bits[:, 1]) + 2 * (bits[:, 0] ^ bits[:, 2])
    table = pd.DataFrame(np.where(bits == 1, "yes", "no"), columns=list("abcd"))
    pairs = {("a", "b"): JointTable(), ("c", "d"): JointTable()}
    clf = BayesClassifier(pairs, tune="weights").fit(table, y)
    before = dict(zip(clf.model_.schema.block_names, clf.tuning_.weights.tolist(), strict=True))
    clf.partial_fit(table[:10], y[:10])
    assert dict(zip(clf.model_.schema.block_names, clf.tuning_.weights.tolist(), strict=True)) == before


@pytest.mark.parametrize("case", ["mixed", "weighted", "rare class", "many blocks"])
def test_tuning_says_how_good_it_is_and_leave_one_out_agrees(case: str) -> None:
    X, y, weights = MIXED, Y.astype(str), None
    if case == "weighted":
        weights = RNG.integers(0, 4, N).astype(np.float64) / 2
    if case == "rare class":
        y = np.where(np.arange(N) == 7, "once", y)
    if case == "many blocks":
        X = np.random.default_rng(3).normal(size=(N, 501)) + 0.05 * Y[:, None]
    clf = BayesClassifier(tune="weights").fit(X, y, weights)
    found = clf.leave_one_out()
    assert clf.tuning_.accuracy == pytest.approx(found.accuracy, rel=1e-9)
    assert clf.tuning_.log_loss == pytest.approx(found.log_loss, rel=1e-6)
    assert f"leave-one-out (given the tuning) accuracy {found.accuracy:.4f}, log-loss {found.log_loss:.4f}" in str(
        clf.tuning_
    )


def test_figures_of_rows_of_before_are_dropped_when_more_are_learned() -> None:
    clf = BayesClassifier(tune="weights").fit(MIXED, Y).partial_fit(MIXED, Y)
    assert clf.tuning_.accuracy is clf.tuning_.log_loss is None
    clf.retune(MIXED, Y)
    assert clf.tuning_.accuracy == pytest.approx(clf.leave_one_out(MIXED, Y).accuracy)


def test_a_rare_class_keeps_its_share_where_a_sample_is_tuned_on() -> None:
    """Weights and biases are learned on 6,000 of the rows, which may have too few or too many of a rare class."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60_000, 4))
    y = rng.random(60_000) < 1.0 / (1.0 + np.exp(5.6 - 0.6 * X[:, 0] - 0.4 * X[:, 1]))
    clf = BayesClassifier(tune="weights").fit(X, y)
    assert clf.tuning_.rows < 10_000
    assert clf.predict_proba(X)[:, 1].mean() == pytest.approx(y.mean(), rel=0.1)
