"""Classifiers that were fitted apart add up."""

import numpy as np
import pandas as pd
import pytest
from sklearn.covariance import OAS
from sklearn.exceptions import NotFittedError

from deciban import dropin
from deciban.errors import DataError, UsageError

ALL = [thing for thing in map(vars(dropin).get, dropin.__all__) if isinstance(thing, type)]
RNG = np.random.default_rng(0)
X = RNG.poisson(2.0, (90, 4))
Y = np.arange(90) % 3
PARTS = [slice(0, 30), slice(30, 50), slice(50, 90)]
each_kind = pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)


def same(a, b) -> None:
    assert a.classes_.tolist() == b.classes_.tolist()
    np.testing.assert_allclose(a.predict_proba(X), b.predict_proba(X), rtol=1e-9, atol=1e-14)


@each_kind
def test_a_sum_has_learned_the_rows_of_all(kind) -> None:
    whole = kind().fit(X, Y)
    parts = [kind().fit(X[part], Y[part]) for part in PARTS]
    before = parts[0].predict_proba(X)
    same(sum(parts), whole)
    same(parts[0] + (parts[1] + parts[2]), whole)
    same(parts[2] + parts[0] + parts[1], whole)
    np.testing.assert_array_equal(parts[0].predict_proba(X), before)
    same((parts[0] + parts[1]).partial_fit(X[PARTS[2]], Y[PARTS[2]]), whole)


@each_kind
def test_classes_join_unless_they_were_declared(kind) -> None:
    both = kind().fit(X[Y < 2], Y[Y < 2]) + kind().fit(X[Y > 0], Y[Y > 0])
    same(both, kind().fit(np.concatenate([X[Y < 2], X[Y > 0]]), np.concatenate([Y[Y < 2], Y[Y > 0]])))
    declared = kind().partial_fit(X[Y < 2], Y[Y < 2], classes=[0, 1])
    with pytest.raises(DataError, match=r"the label 2 is not among the declared classes \[0, 1\]"):
        declared + kind().fit(X[Y > 0], Y[Y > 0])
    wide = kind().partial_fit(X[Y < 1], Y[Y < 1], classes=[0, 1, 2])
    same(wide + kind().fit(X[Y > 0], Y[Y > 0]), kind().fit(X, Y))


@each_kind
def test_nothing_is_the_identity(kind) -> None:
    whole, nothing = kind().fit(X, Y), kind().partial_fit(X[:9], Y[:9], [0, 1, 2], np.zeros(9))
    for total in (whole + nothing, nothing + whole, nothing + nothing + whole):
        same(total, whole)
    with pytest.raises(DataError, match="nothing was learned: every row had weight 0"):
        (nothing + nothing).predict(X)
    same(nothing.partial_fit(X, Y), whole)


@each_kind
def test_a_fit_that_fails_changes_nothing(kind) -> None:
    frame = pd.DataFrame(X, columns=list("abcd"))
    clf = kind().fit(frame, Y)
    before = clf.predict_proba(frame)
    with pytest.raises(ValueError, match="every label is missing"):
        clf.fit(X[:9, :2], [None] * 9)
    np.testing.assert_array_equal(clf.predict_proba(frame), before)
    assert clf.feature_names_in_.tolist() == list("abcd")


@each_kind
def test_what_does_not_fit_together_is_refused(kind) -> None:
    clf = kind().fit(X, Y)
    other = {"alpha": 0.5, "priors": [0.2, 0.3, 0.5], "solver": "eigen"}
    name, value = next((name, other[name]) for name in clf.get_params() if name in other)
    with pytest.raises(UsageError, match=rf"^{name} is .* add only classifiers with the same parameters"):
        clf + kind(**{name: value}).fit(X, Y)
    with pytest.raises(DataError, match="X has 3 features"):
        clf + kind().fit(X[:, :3], Y)
    with pytest.raises(NotFittedError):
        clf + kind()
    with pytest.raises(TypeError):
        clf + 1
    names = [list("abcd"), list("abce")]
    framed = [kind().fit(pd.DataFrame(X, columns=columns), Y) for columns in names]
    with pytest.raises(UsageError, match="different column names"):
        framed[0] + framed[1]


@pytest.mark.parametrize("kind", ["LinearDiscriminantAnalysis", "QuadraticDiscriminantAnalysis"])
@pytest.mark.parametrize("how", [{"shrinkage": "auto"}, {"covariance_estimator": OAS()}], ids=["auto", "estimator"])
def test_covariances_that_are_estimated_from_rows_do_not_add(kind: str, how) -> None:
    a, b = (getattr(dropin, kind)(solver="eigen", **how).fit(X[part], Y[part]) for part in PARTS[:2])
    with pytest.raises(UsageError, match="estimated from all rows; fit all rows at once"):
        a + b
