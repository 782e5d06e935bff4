"""Rows without a label: expectation-maximization against NumPy, laws, and what changes a fitted model."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pytest

import deciban as dc
from deciban.errors import DecibanWarning
from deciban.evaluation.validation import separate_fold
from deciban.families.base.contract import BaseFamily
from deciban.tables.convert import as_table
from deciban.tables.examples import LabeledTable
from deciban.testing import assert_same_counts
from tests.support.command import Deciban
from tests.support.model_files import content

Codes = npt.NDArray[np.int64]
ALPHA = 1.0
KNOWN = 40


def flags(rows: int = 400, columns: int = 16, seed: int = 0) -> tuple[pd.DataFrame, Codes]:
    """Return independent flags of two classes, which naive Bayes describes exactly, and the class of each row."""
    rng = np.random.default_rng(seed)
    labels = np.arange(rows) % 2
    cells = np.where(rng.random((rows, columns)) < np.where(labels == 1, 0.7, 0.3)[:, None], "yes", "no")
    return pd.DataFrame(cells, columns=[f"x{k}" for k in range(columns)]), labels


def hide(labels: Codes, known: int = KNOWN) -> list[Any]:
    return [label if row < known else None for row, label in enumerate(labels.tolist())]


def em(**parameters: Any) -> dc.BayesClassifier:
    return dc.BayesClassifier(dc.Categorical(), tune=None, unlabeled="em", **parameters)


def expected(clf: dc.BayesClassifier) -> Any:
    """Return what was learned from rows without a label."""
    assert clf.tuning_ is not None
    assert clf.tuning_.unlabeled is not None
    return clf.tuning_.unlabeled


def run_em(cells: Codes, labels: Codes, known: int, weight: float, rounds: int) -> tuple[npt.NDArray[Any], list[float]]:
    """Return P(yes | class) of each column, and the log posterior density of the parameters after each round.

    The prior is that of the labeled rows; Laplace smoothing is a Dirichlet prior of the parameters.
    """
    own = np.eye(2)[labels[:known]]
    log_prior, shares, values = np.log(own.mean(axis=0)), np.zeros((len(cells) - known, 2)), []
    for _ in range(rounds + 1):
        mass = np.concatenate([own, weight * shares])
        yes = (mass.T @ cells + ALPHA) / (mass.sum(axis=0)[:, None] + 2 * ALPHA)
        joint = cells @ np.log(yes).T + (1 - cells) @ np.log1p(-yes).T + log_prior
        total = np.logaddexp(joint[:, 0], joint[:, 1])
        smoothing = ALPHA * (np.log(yes) + np.log1p(-yes)).sum()
        values.append(float((own * joint[:known]).sum() + weight * total[known:].sum() + smoothing))
        shares = np.exp(joint - total[:, None])[known:]
    return yes, values


def test_rounds_are_those_of_numpy_and_raise_the_likelihood() -> None:
    X, labels = flags()
    clf = em().fit(X, hide(labels))
    found = expected(clf)
    assert found.counts is not None
    assert (found.rows, found.rounds >= 1) == (360, True)
    assert found.log_loss < found.ignored_log_loss
    cells = (X.to_numpy() == "yes").astype(np.int64)
    yes, values = run_em(cells, labels, KNOWN, found.weight, found.rounds)
    assert (np.diff(values) > -1e-9).all()
    joint = cells @ np.log(yes).T + (1 - cells) @ np.log1p(-yes).T + clf.model_.log_prior
    np.testing.assert_allclose(
        clf.predict_proba(X), np.exp(joint - np.logaddexp(joint[:, :1], joint[:, 1:])), rtol=1e-6
    )
    ignored = dc.BayesClassifier(dc.Categorical(), tune=None).fit(X, hide(labels))
    assert clf.score(X[KNOWN:], labels[KNOWN:]) > ignored.score(X[KNOWN:], labels[KNOWN:])
    assert_same_counts(clf.counts_, ignored.counts_, exact=True)
    assert clf.counts_.unlabeled == 360


@pytest.mark.parametrize("tune", [None, "auto"])
def test_without_such_rows_or_without_gain_the_fit_is_that_of_ignoring_them(tune: Any) -> None:
    X, labels = flags(60)
    same = [dc.BayesClassifier(tune=tune, unlabeled=unlabeled).fit(X, labels) for unlabeled in ("em", None)]
    assert content(same[0].set_params(unlabeled=None).fit(X, labels)) == content(same[1])
    assert np.array_equal(same[0].predict_proba(X), same[1].predict_proba(X))
    noise = np.random.default_rng(1).integers(0, 2, len(X))
    learned, ignored = (
        dc.BayesClassifier(tune=tune, unlabeled=unlabeled).fit(X, hide(noise, 30)) for unlabeled in ("em", None)
    )
    assert expected(learned).counts is None
    assert "30 rows without a label ignored: no gain beyond noise" in str(learned.tuning_)
    assert np.array_equal(learned.predict_proba(X), ignored.predict_proba(X))


def test_order_does_not_matter_and_weights_are_repetitions() -> None:
    X, labels = flags(200)
    y = hide(labels)
    posterior = em().fit(X, y).predict_proba(X)
    order = np.random.default_rng(3).permutation(len(X))
    shuffled = em().fit(X.iloc[order], [y[row] for row in order])
    np.testing.assert_allclose(shuffled.predict_proba(X), posterior, rtol=1e-6)
    weights = np.where(np.arange(len(X)) < KNOWN, 1.0, 2.0)
    twice = np.concatenate([np.arange(len(X)), np.arange(KNOWN, len(X))])
    heavy, repeated = em().fit(X, y, weights), em().fit(X.iloc[twice], [y[row] for row in twice])
    np.testing.assert_allclose(heavy.predict_proba(X), repeated.predict_proba(X), rtol=1e-6)


def test_labeled_rows_are_forgotten_exactly_and_models_add(tmp_path: Path) -> None:
    X, labels = flags()
    y = hide(labels)
    clf = em().fit(X, y)
    clf.save(tmp_path / "model.dcb")
    loaded = dc.load(tmp_path / "model.dcb")
    assert np.array_equal(loaded.predict_proba(X), clf.predict_proba(X))
    assert loaded.get_params()["unlabeled"] == "em"
    assert "learned from 360 rows without a label" in str(loaded.tuning_)

    loaded.forget(X[:4], labels[:4])
    assert_same_counts(
        loaded.counts_, dc.BayesClassifier(dc.Categorical(), tune=None).fit(X[4:], y[4:]).counts_, exact=True
    )
    statistic, former = (model.tuning_.unlabeled.counts.statistics[0] for model in (loaded, clf))  # type: ignore[union-attr]
    np.testing.assert_allclose(statistic.tables[0], former.tables[0] * (KNOWN - 4) / KNOWN)  # less than before

    more, others = flags(seed=1)
    second = em().fit(more, hide(others))
    both = clf + second
    assert expected(both).rows == 2 * 360
    assert both.counts_.rows == 2 * KNOWN
    again = both - second
    np.testing.assert_allclose(again.predict_proba(X), clf.predict_proba(X), rtol=1e-6)
    third = pd.DataFrame({"x0": ["yes"], "new": ["a"]})
    wider = clf + dc.BayesClassifier(dc.Categorical(), tune=None).fit(third, [7])
    assert wider.predict_proba(X).shape == (400, 3)
    decayed = (clf + second).decay(0.5)
    np.testing.assert_allclose(
        expected(decayed).counts.statistics[0].tables[0], expected(both).counts.statistics[0].tables[0] / 2
    )


def test_batches_are_learned_without_their_rows_without_a_label() -> None:
    X, labels = flags()
    online = em().partial_fit(X, hide(labels))
    assert online.tuning_ is None
    assert online.counts_.unlabeled == 360
    clf = em().fit(X, hide(labels))
    former = expected(clf).counts
    clf.partial_fit(X[:50], hide(labels[:50]))
    assert_same_counts(expected(clf).counts, former, exact=True)
    assert (clf.counts_.rows, clf.counts_.unlabeled) == (2 * KNOWN, 360 + 10)
    with pytest.warns(DecibanWarning, match="had a part in the expected counts"):
        em().fit(X, hide(labels)).leave_one_out(X[:KNOWN], labels[:KNOWN])


def test_cross_validation_learns_from_all_rows_without_a_label() -> None:
    X, labels = flags()
    rows = LabeledTable.of(as_table(X), hide(labels))
    for fold in range(3):
        inside, outside = separate_fold(rows, 3, fold)
        assert (outside.whole().labels.codes < 0).sum() == 360
        assert sum((part.whole().labels.codes >= 0).sum() for part in (inside, outside)) == KNOWN


def test_tuned_models_score_left_out_rows_without_them() -> None:
    X, labels = flags(700)
    clf = dc.BayesClassifier(unlabeled="em").fit(X, hide(labels, 120))
    assert expected(clf).counts is not None
    assert clf.tuning_ is not None
    assert clf.tuning_.accuracy is not None
    assert abs(clf.tuning_.accuracy - clf.score(X[120:], labels[120:])) < 0.06
    sets = clf.predict_set(X[120:], 0.9)
    assert 0.8 < sets.members[np.arange(580), labels[120:]].mean() < 0.98
    assert clf.retune(X[:120], labels[:120]).tuning_.unlabeled.counts is not None  # type: ignore[union-attr]


@pytest.mark.parametrize("options", [{}, {"kind": "lift", "term_counts": "root", "normalize": True}])
def test_texts_are_counted_at_once_as_class_by_class(options: dict[str, Any]) -> None:
    family = dc.Text(**options)
    cells = [pa.array(["a word or two", None, "two words", "a word more, a word less"], pa.large_string())]
    shares = np.array([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5], [1.0, 0.0, 0.0], [0.0, 0.25, 0.75]])
    found, by_class = family.count_shares(cells, shares), BaseFamily.count_shares(family, cells, shares)
    for one, other in zip(found.sorted_words.tables, by_class.sorted_words.tables, strict=True):
        np.testing.assert_allclose(one, other)
    np.testing.assert_allclose(found.text_weight, by_class.text_weight)
    assert found.sorted_words.vocabularies[0].array == by_class.sorted_words.vocabularies[0].array


def test_unknown_values_are_rejected() -> None:
    with pytest.raises(dc.UsageError, match="unlabeled='self': use 'em', or None to ignore them"):
        dc.BayesClassifier(unlabeled="self").fit([[1.0], [2.0]], [0, 1])  # type: ignore[arg-type]
    for spec, cell in ((dc.Gaussian(), np.inf), (dc.Poisson(), -1.0)):
        rows = pd.DataFrame({"x": [1.0, 2.0] * 10 + [cell]})
        with pytest.raises(dc.DataError, match="column 'x': a row without a label: found"):
            dc.BayesClassifier(spec, tune=None, unlabeled="em").fit(rows, [0, 1] * 10 + [None])
    with pytest.raises(dc.DataError, match="no rows to learn from"):
        em().fit(pd.DataFrame({"x": ["a", "b"]}), [None, None])


def test_the_command_says_what_was_learned(deciban: Deciban) -> None:
    X, labels = flags()
    X.assign(kind=[None if label is None else f"k{label}" for label in hide(labels)]).to_csv("flags.csv", index=False)
    options = ("-t", "kind", "-o", "flags.dcb", "--tune", "none", "--family", "x0=Categorical", "--unlabeled", "em")
    assert "learned from 360 rows without a label with weight" in deciban("fit", "flags.csv", *options).out
    assert "learned from 360 rows without a label with weight" in deciban("inspect", "flags.dcb").out
    found = json.loads(deciban("inspect", "flags.dcb", "--json").out)["expected_counts"]
    assert (found["used"], found["rows"]) == (True, 360)
