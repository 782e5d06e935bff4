"""`deciban.testing.check_family` and families that are registered from outside of the package."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from deciban import BayesClassifier, Bernoulli, Gaussian, ModelFileError, Poisson, UsageError, load
from deciban.families import _REGISTERED, Likelihood, register
from deciban.statistics import Moments, Totals
from deciban.testing import LAWS, check_family
from deciban.util.arrays import Codes, Floats, Numbers


@dataclass(frozen=True, repr=False)
class Answers(Bernoulli):
    """A family that is not in the package."""


@dataclass(frozen=True, repr=False)
class Forgetful(Poisson):
    """Counts the rows of a batch, and not their weights."""

    def count(self, cells: Numbers, labels: Codes, weights: Floats, classes: int) -> Totals:
        return super().count(cells, labels, (weights > 0.0).astype(np.float64), classes)


@dataclass(frozen=True, repr=False)
class TooWide(Gaussian):
    """Has another density than its cumulative distribution says."""

    def estimate(self, statistic: Moments) -> Likelihood:
        normal = super().estimate(statistic)
        return type(normal)(**{**vars(normal), "offset": normal.offset + 0.1})


@pytest.fixture
def registered() -> Iterator[None]:
    before = dict(_REGISTERED)
    yield
    _REGISTERED.clear()
    _REGISTERED.update(before)


def test_a_good_family_keeps_all_laws() -> None:
    assert check_family(Poisson(), oracle=lambda x: stats.poisson(x.mean()), seeds=[1]) == list(LAWS)


def test_the_report_names_the_laws_that_fail(registered: None) -> None:
    register(Forgetful)
    with pytest.raises(AssertionError, match=r"Forgetful\(\) breaks 1 of 15 laws:\nweights_are_repetitions \(seed 0\)"):
        check_family(Forgetful())
    register(TooWide)
    with pytest.raises(AssertionError) as broken:
        check_family(TooWide(), oracle=lambda x: stats.norm(x.mean(), x.std()), seeds=[0])
    failed = [line.partition(" ")[0] for line in str(broken.value).splitlines()[1:]]
    expected = ["left_out_is_a_fit_without_the_row", "densities_are_those_of_the_oracle", "densities_add_up_to_one"]
    assert failed == expected


def test_a_registered_family_is_saved_and_loaded(registered: None, tmp_path: Path) -> None:
    rng, path = np.random.default_rng(0), tmp_path / "model.dcb"
    X, y = {"x": rng.integers(0, 2, 50)}, rng.integers(0, 2, 50)
    clf = BayesClassifier(columns={"x": Answers(alpha=0.5)}, tune=None).fit(X, y)
    with pytest.raises(UsageError, match=r"register one of your own with deciban\.families\.register"):
        clf.save(path)
    assert register(Answers) is Answers
    check_family(Answers(alpha=0.5), seeds=[0])
    clf.save(path)
    np.testing.assert_array_equal(load(path).predict_proba(X), clf.predict_proba(X))
    _REGISTERED.clear()
    with pytest.raises(ModelFileError, match=r"'Answers'.*first import the module that registers it"):
        load(path)


def test_what_cannot_be_registered(registered: None) -> None:
    with pytest.raises(UsageError, match="expected a dataclass"):
        register(Answers())  # type: ignore[type-var]  # an instance
    other = dataclass(frozen=True)(type("Gaussian", (Answers,), {}))
    with pytest.raises(UsageError, match="has a family of this name; choose another name"):
        register(other)
