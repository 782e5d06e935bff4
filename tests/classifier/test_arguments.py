"""What is given to a classifier beside the table: priors, classes, weights, parameters."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse

import deciban as dc
from tests import textbook

RNG = np.random.default_rng(11)
X = RNG.normal(size=(60, 2))
Y = np.arange(60) % 2


def test_a_prior_with_an_index_is_read_by_it() -> None:
    clf = textbook(prior=pd.Series({"b": 0.9, "a": 0.1})).fit(X, np.where(Y == 0, "a", "b"))
    np.testing.assert_allclose(np.exp(clf.model_.log_prior), [0.1, 0.9])


def test_weights_beyond_counting_are_refused() -> None:
    with pytest.raises(dc.DecibanError, match=r"at most 1e\+15"):
        textbook().fit(X, Y, np.full(60, 1e308))


@pytest.mark.parametrize(
    "family", [dc.JointGaussian(), dc.LogNormal(), dc.Gamma(), dc.Poisson(), dc.Multinomial(), dc.Gaussian()], ids=str
)
def test_a_row_of_weight_0_is_not_there_whatever_it_holds(family) -> None:
    table = np.ceil(np.abs(X)) + 1
    weights = np.ones(60)
    weights[7] = 0.0
    bad = table.copy()
    bad[7] = np.inf
    ours = textbook(family).fit(bad, Y, weights)
    without = textbook(family).fit(np.delete(table, 7, axis=0), np.delete(Y, 7))
    assert ours.counts_.rows == 59
    np.testing.assert_allclose(ours.predict_proba(table), without.predict_proba(table), rtol=1e-10)


def test_declaring_classes_late() -> None:
    clf = textbook().fit(X, Y)
    with pytest.raises(dc.DecibanError, match="2 is not among the declared"):
        clf.partial_fit(X[:1], [2], classes=[0, 1])
    with pytest.raises(dc.DecibanError, match="but the model has the classes"):
        clf.partial_fit(X[:1], [0], classes=[0, 5])
    assert clf.partial_fit(X[:1], [0], classes={0, 1, 2}).classes_.tolist() == [0, 1, 2]
    with pytest.raises(dc.DecibanError, match="missing value is not a class"):
        textbook(classes=["a", None]).fit(X, np.where(Y == 0, "a", "b"))


def test_score_takes_what_fit_takes() -> None:
    table = pa.table({"x": [1.0, 2.0, 9.0, 8.0], "y": ["a", None, "b", "b"], "w": [1.0, 1.0, 2.0, 1.0]})
    clf = textbook().fit(table.drop_columns(["w"]), "y")
    assert clf.score(table, "y") == 1.0
    assert clf.score(table, "y", sample_weight="w") == 1.0
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
    assert clf.score(reader, "y") == 1.0


def test_a_score_of_rows_without_weight_is_refused() -> None:
    clf = textbook().fit([[1.0], [2.0]], [0, 1])
    with pytest.raises(dc.DecibanError, match="weight"):
        clf.score([[1.0], [2.0]], [0, 1], [0, 0])


def test_an_empty_declared_class_does_not_move_the_others() -> None:
    """The shrinkage of a pooled matrix is found from all rows, whichever classes are declared."""
    for spread in (dc.Pooled(shrinkage="oas"), dc.PerClass(shrinkage="oas")):
        plain = textbook(dc.JointGaussian(spread)).fit(X, Y).predict_proba(X)
        declared = textbook(dc.JointGaussian(spread), classes=[0, 1, 9]).fit(X, Y).predict_proba(X)
        np.testing.assert_allclose(declared[:, :2], plain, rtol=1e-10)


@pytest.mark.parametrize(
    "bad",
    [
        lambda: dc.Gaussian(dc.Pooled),
        lambda: dc.Gaussian("pooled"),
        lambda: dc.JointGaussian(dc.PerClass),
        lambda: dc.Gaussian(dc.PerClass(shrinkage=0.5)),
        lambda: dc.Categorical(levels=("x", 1)),
        lambda: dc.Categorical(levels=5),
        lambda: dc.Bernoulli(threshold="a"),
        lambda: dc.Bernoulli(threshold=float("nan")),
        lambda: dc.Binned(bins="a"),
        lambda: textbook(threads=-1).fit(X, Y),
        lambda: textbook(threads="2").fit(X, Y),
        lambda: textbook().fit(X, Y).decay("a"),
        lambda: textbook().fit(X, Y).sample(-1),
        lambda: textbook().fit(sparse.coo_array([1.0, 2.0]), [0, 1]),
    ],
)
def test_parameters_are_checked_where_they_are_given(bad) -> None:
    with pytest.raises(dc.DecibanError):
        bad()
