"""Prediction sets contain the true class as often as requested, and their scores are counts that add."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import softmax
from sklearn.metrics import log_loss

from deciban import BayesClassifier, Loss, load, merge
from deciban.datasets import weather
from deciban.decisions.sets import decide_by_sets
from deciban.errors import DecibanWarning, ModelFileError, UsageError
from deciban.model.conformity import HALF, Conformity, bin_posteriors, lowest_posterior
from deciban.store import model_file
from deciban.tables.convert import as_table
from tests.store.make_golden import GOLDEN


def draw(rows: int, seed: int) -> tuple[pa.Table, np.ndarray]:
    """Three overlapping classes of unequal size; the last two columns repeat each other."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, rows, p=[0.6, 0.3, 0.1])
    x = rng.normal(1.3 * y, 1.0)
    kind = np.array(list("abcd"))[np.minimum(y + rng.integers(0, 3, rows), 3)]
    return pa.table({"x": x, "near": x + rng.normal(0.0, 0.3, rows), "kind": kind}), np.array(list("uvw"))[y]


def covered(clf: BayesClassifier, X: pa.Table, y: np.ndarray, coverage: float, **options: bool) -> np.ndarray:
    """True for each row whose set contains its class."""
    sets = clf.predict_set(X, coverage, **options)
    return sets.members[np.arange(y.size), np.searchsorted(clf.classes_, y)]


@pytest.mark.parametrize("held_out", [False, True])
def test_sets_of_a_plain_model_have_the_requested_coverage(held_out: bool) -> None:
    """Means over 60 models: the standard error is 0.4%. More than requested is at most 1 in 100 rows, and ties."""
    found = []
    for seed in range(60):
        X, y = draw(99, seed)
        clf = BayesClassifier(tune=None).fit(X, y)
        if held_out:
            clf.conformalize(*draw(99, 1000 + seed), already_learned=False)
        found.append(covered(clf, *draw(500, 2000 + seed), 0.9).mean())
    assert 0.89 < np.mean(found) < 0.92


def test_sets_of_a_tuned_model_have_the_requested_coverage() -> None:
    found, by_class = [], []
    for seed in range(5):
        clf, (X, y) = BayesClassifier().fit(*draw(500, seed)), draw(3000, 100 + seed)
        found.append(covered(clf, X, y, 0.9).mean())
        strict = covered(clf, X, y, 0.9, per_class=True)
        by_class.append([strict[y == label].mean() for label in "uvw"])
    assert abs(np.mean(found) - 0.9) < 0.02
    assert np.abs(np.mean(by_class, axis=0) - 0.9).max() < 0.04  # 50 rows of the rarest class


def test_the_lowest_bin_is_that_of_the_definition() -> None:
    """A class belongs to the set unless the share of rows with a score as low, the new one included, is <= 10%."""
    rng = np.random.default_rng(0)
    posterior, labels = rng.dirichlet(np.ones(3), 57), rng.integers(0, 3, 57).astype(np.int32)
    scores = Conformity.of(posterior, labels, np.ones(57))
    bins = bin_posteriors(posterior)
    own = bins[np.arange(57), labels]
    for per_class in (False, True):
        for c in range(3):
            some = own[labels == c] if per_class else own
            p_values = [(1 + (some <= b).sum()) / (1 + some.size) for b in range(2 * HALF)]
            wanted = next(b for b, p in enumerate(p_values) if p > 0.1)
            assert scores.first_bins(0.9, per_class)[c] == wanted


def test_bins_and_their_lowest_posteriors_agree() -> None:
    bins = np.arange(1, 2 * HALF)
    inside = bins[(lowest_posterior(bins) < 1.0 - 1e-9) & (lowest_posterior(bins) > 0.0)]
    edges = lowest_posterior(inside)
    assert (np.diff(edges) > 0.0).all()
    np.testing.assert_array_equal(bin_posteriors(0.5 * (edges[1:] + edges[:-1])), inside[:-1])
    np.testing.assert_array_equal(bin_posteriors(np.array([0.0, 1.0, 1.0 + 1e-15])) >= 0, True)
    assert bin_posteriors(np.array([0.0, 1.0])).tolist() == [bin_posteriors(np.array([1e-300]))[0], 2 * HALF - 1]


def test_a_bin_holds_few_rows() -> None:
    """The rows in the bin of a threshold are covered beyond what was requested."""
    edges = lowest_posterior(np.arange(1, 2 * HALF))
    assert np.diff(edges[(edges > 0.01) & (edges < 0.99)]).max() < 0.002


def test_the_gain_of_the_mean_of_all_folds_is_that_on_new_rows() -> None:
    """Left-out scores are raised by it: mean log-loss of each fold's tables on new rows, less that of their mean."""
    X, y = draw(3000, 99)
    codes, found = np.unique(y, return_inverse=True)[1], []
    for seed in range(4):
        clf = BayesClassifier().fit(*draw(300, seed))
        model, tuning = clf.fitted_.model, clf.tuning_
        assert tuning is not None
        assert model.corrections is not None
        table = model.schema.table_as_learned(as_table(X))
        joint, corrections = model.log_joint(table), model.corrections
        every = np.zeros(joint.shape)
        corrections.add_to(corrections.read(table), every)
        losses = [log_loss(codes, softmax(joint, axis=1))]
        for fold in np.eye(corrections.folds):
            one = np.zeros(joint.shape)
            corrections.add_left_out(corrections.read_left_out(table), np.tile(fold, (codes.size, 1)), one)
            losses.append(log_loss(codes, softmax(joint - every + one, axis=1)))
        found.append((tuning.fold_gain, np.mean(losses[1:]) - losses[0]))
    gain, on_new_rows = np.mean(found, axis=0)
    assert gain == pytest.approx(on_new_rows, rel=0.15)


def test_sets_grow_with_the_coverage_and_need_not_be_empty() -> None:
    clf, (X, _) = BayesClassifier(tune=None).fit(*draw(300, 0)), draw(200, 1)
    sets = [clf.predict_set(X, coverage).members for coverage in (0.3, 0.6, 0.9, 0.99)]
    for small, large in pairwise(sets):
        assert (small <= large).all()
    full = clf.predict_set(X, 0.3, allow_empty=False)
    assert (sets[0].sum(axis=1) == 0).any()
    assert full.sizes.min() == 1
    assert [labels[0] for labels in full] == clf.predict(X).tolist()


def test_too_few_rows_give_every_class() -> None:
    sets = BayesClassifier(tune=None).fit(weather(), "play").predict_set(weather(), 0.95)
    assert sets[0] == ["no", "yes"]
    assert "{no, yes}" in str(sets)
    assert sets.to_frame("pyarrow")["size"].to_pylist() == [2] * 14
    assert sets.to_dict()["sets"] == [["no", "yes"]] * 14


def test_thresholds_give_the_same_sets_from_posteriors() -> None:
    clf, (X, _) = BayesClassifier(tune=None).fit(*draw(300, 0)), draw(200, 1)
    sets = clf.predict_set(X, 0.9, per_class=True)
    np.testing.assert_array_equal(clf.predict_proba(X) >= sets.thresholds, sets.members)


def scores_of(clf: BayesClassifier) -> np.ndarray:
    assert clf.tuning_ is not None
    assert clf.tuning_.conformity is not None
    return clf.tuning_.conformity.counts


def test_scores_merge_forget_and_decay_with_the_model(tmp_path: Path) -> None:
    (X, y), (Z, t) = draw(60, 0), draw(90, 1)
    only = np.flatnonzero(t != "w")  # the second model lacks a class
    one, other = BayesClassifier(tune="weights").fit(X, y), BayesClassifier(tune="weights").fit(Z.take(only), t[only])
    both = one + other
    assert scores_of(both).sum() == 60 + only.size
    np.testing.assert_array_equal(scores_of(other + one), scores_of(both))
    np.testing.assert_array_equal(scores_of(merge([one, other])), scores_of(both))
    np.testing.assert_array_equal(scores_of(both - other), scores_of(one))
    np.testing.assert_array_equal(scores_of((both - one).forget(Z.take(only[:5]), t[only[:5]])).sum(axis=1).round(9),
                                  (both - one).forget(Z.take(only[:5]), t[only[:5]]).counts_.class_weight)  # fmt: skip
    both.save(tmp_path / "both.dcb")
    np.testing.assert_array_equal(scores_of(load(tmp_path / "both.dcb")), scores_of(both))
    np.testing.assert_array_equal(scores_of(both.decay(0.25)), 0.25 * (scores_of(one + other)))


def test_a_changed_model_warns_that_its_coverage_is_approximate() -> None:
    X, y = draw(80, 0)
    for change in (
        lambda clf: clf.partial_fit(*draw(5, 1)),
        lambda clf: clf.forget(X.slice(0, 5), y[:5]),
        lambda clf: clf.with_prior("uniform"),
    ):
        changed = change(BayesClassifier(tune="weights").fit(X, y))
        with pytest.warns(DecibanWarning, match="approximate"):
            assert changed.predict_set(X, 0.9).stale
    changed = BayesClassifier(tune="weights").fit(X, y).partial_fit(*draw(5, 1)).conformalize(X, y)
    assert not changed.predict_set(X, 0.9).stale
    assert not changed.retune(X, y).predict_set(X, 0.9).stale


def test_a_file_of_an_earlier_version_has_no_scores() -> None:
    with pytest.raises(UsageError, match=r"conformalize\(\)"):
        load(GOLDEN).predict_set([{}], 0.9)


def test_scores_of_the_wrong_shape_are_rejected(tmp_path: Path) -> None:
    fitted = BayesClassifier(tune="weights").fit(*draw(80, 0)).fitted_
    assert fitted.tuning is not None
    object.__setattr__(fitted.tuning, "conformity", Conformity(np.ones((2, 2 * HALF))))
    with pytest.raises(ModelFileError, match="conformity"):
        model_file.from_content(model_file.content(fitted), "crafted")


@pytest.mark.parametrize("coverage", [0.0, 1.0, -1.0, float("nan"), 90])
def test_an_invalid_coverage_is_rejected(coverage: float) -> None:
    with pytest.raises(UsageError, match="coverage"):
        BayesClassifier(tune=None).fit(*draw(80, 0)).predict_set([{}], coverage)


def test_a_row_is_decided_if_one_decision_is_best_for_its_set() -> None:
    clf, (X, _) = BayesClassifier(tune=None).fit(*draw(300, 0)), draw(50, 1)
    loss = Loss([[0, 1, 5], [4, 0, 0]], decisions=["wait", "act"], classes=["u", "v", "w"])
    found, sets = clf.decide(X, loss, coverage=0.9), clf.predict_set(X, 0.9, allow_empty=False)
    best, posterior = {"u": "wait", "v": "act", "w": "act"}, clf.predict_proba(X)
    costs = {"wait": loss.matrix[0], "act": loss.matrix[1], "{wait, act}": loss.matrix.min(axis=0)}
    for row, labels in enumerate(sets):
        options = {best[label] for label in labels}
        wanted = options.pop() if len(options) == 1 else "{wait, act}"
        assert found.decision[row] == wanted
        np.testing.assert_allclose(found.risk[row], posterior[row] @ costs[wanted])
    assert len(set(found.decision.tolist())) == 3
    assert decide_by_sets(posterior[:0], clf.predict_set(X.slice(0, 0)), loss).decision.size == 0


def test_costs_that_vary_by_row_are_rejected_with_sets() -> None:
    clf, (X, _) = BayesClassifier(tune=None).fit(*draw(300, 0)), draw(5, 1)
    with pytest.raises(UsageError, match="coverage"):
        clf.decide(X, [[0, "x", 1], [1, 0, 1], [1, 1, 0]], coverage=0.9)
