"""`deciban.testing.check_family` and families that are registered from outside of the package."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from deciban import BayesClassifier, Bernoulli, Binned, Gamma, Gaussian, ModelFileError, Poisson, UsageError, load
from deciban.families import _REGISTERED, COUNTS, ColumnFamily, Likelihood, register
from deciban.families.base.checks import check_finite, score_impossible
from deciban.families.gamma import GammaLikelihood
from deciban.families.poisson import PoissonLikelihood
from deciban.statistics import Moments, Totals
from deciban.testing import LAWS, Trial, check_exports_score_the_same, check_family
from deciban.util.arrays import Codes, Floats, Integers, Numbers
from tests.laws.cases import draw_positive, with_edges_of


@dataclass(frozen=True, repr=False)
class Answers(Bernoulli):
    """A family that is not in the package."""


@dataclass(frozen=True, repr=False)
class Forgetful(Poisson):
    """Counts the rows of a batch, and not their weights."""

    def count(self, cells: Numbers, labels: Codes, weights: Floats, classes: int) -> Totals:
        return super().count(cells, labels, (weights > 0.0).astype(np.float64), classes)


@dataclass(frozen=True, repr=False)
class Careless(Poisson):
    """Counts what a model file can hold, but nobody can read."""

    def count(self, cells: Numbers, labels: Codes, weights: Floats, classes: int) -> Totals:
        return replace(super().count(cells, labels, weights, classes), exact=1)  # type: ignore[arg-type]  # no flag


class Mixin:
    """Counts in its own way, beside any family."""

    def count(self, cells: Numbers, labels: Codes, weights: Floats, classes: int) -> Any:
        return super().count(np.abs(cells), labels, weights, classes)  # type: ignore[misc]  # that of the family


class Sizes(Mixin, Gamma):
    """Counts in its own way by inheritance."""


class Halved(GammaLikelihood):
    """Scores in its own way."""

    def score(self, cells: Numbers, weight: Floats, slot: Integers, out: Floats) -> None:
        super().score(cells, 0.5 * weight, slot, out)


@dataclass(frozen=True, repr=False)
class HalfGamma(Gamma):
    """Estimates another likelihood from what its parent counts."""

    def estimate(self, statistic: Any) -> Halved:
        return Halved(**vars(super().estimate(statistic)))


class Unlimited(PoissonLikelihood):
    """Scores cells of any size as they are, where the term that it is exported as limits them."""

    lower = PoissonLikelihood.lower

    def score(self, cells: Numbers, weight: Floats, slot: Integers, out: Floats) -> None:
        check_finite(cells)
        score_impossible(~COUNTS.contains(cells) & ~np.isnan(cells), weight, slot, out)
        for j in np.flatnonzero(weight):
            x = COUNTS.mask_outside(cells[:, j, None])
            out[:, slot[j]] += weight[j] * np.where(np.isnan(x), 0.0, x * self.log_rate[j] - self.rate[j])


@dataclass(frozen=True, repr=False)
class UnlimitedPoisson(Poisson):
    """A family whose export says something else of huge cells."""

    def estimate(self, statistic: Totals) -> Unlimited:
        return Unlimited(**vars(super().estimate(statistic)))


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


def test_a_family_that_holds_a_part_fixed_says_what_is_refitted() -> None:
    with pytest.raises(AssertionError, match=r"breaks 1 of 16 laws:\nleft_out_equals_refit"):
        check_family(Binned(), seeds=[1])
    assert check_family(Binned(), refit=with_edges_of, seeds=[0, 1]) == list(LAWS)


def test_counts_must_be_read_back_too(registered: None) -> None:
    register(Careless)
    with pytest.raises(AssertionError, match=r"1 of 16 laws:\nsaved_and_loaded .*Totals has 1 as 'exact'"):
        check_family(Careless(), seeds=[0])


def test_a_family_that_counts_in_its_own_way_does_not_inherit_how_sql_counts() -> None:
    questions: Any = None  # nothing is asked
    assert Forgetful().count_in_sql(questions, [0]) is None
    assert Sizes().count_in_sql(questions, [0]) is None
    assert Answers.count_in_sql is Bernoulli.count_in_sql
    assert TooWide.count_in_sql is Gaussian.count_in_sql
    assert Sizes().statistic_key != Gamma().statistic_key


def test_a_likelihood_that_scores_in_its_own_way_does_not_inherit_what_is_exported() -> None:
    X, y = {"x": [1.0, 2.0, 4.0, 8.0]}, [0, 1, 0, 1]
    with pytest.raises(UsageError, match=r"column 'x': HalfGamma\(\) cannot be exported"):
        BayesClassifier(HalfGamma(), tune=None).fit(X, y).to_sql("t")
    check_exports_score_the_same(Trial(HalfGamma(), draw_positive), 0)  # nothing is exported


def test_what_is_exported_must_score_the_same(registered: None) -> None:
    register(UnlimitedPoisson)
    with pytest.raises(AssertionError, match=r"1 of 16 laws:\nexports_score_the_same .*the export of {'x0': 1e\+308"):
        check_family(UnlimitedPoisson(), seeds=[0])


def test_the_report_names_the_laws_that_fail(registered: None) -> None:
    register(Forgetful)
    with pytest.raises(AssertionError, match=r"Forgetful\(\) breaks 1 of 16 laws:\nweights_are_repetitions \(seed 0\)"):
        check_family(Forgetful())
    register(TooWide)
    with pytest.raises(AssertionError) as broken:
        check_family(TooWide(), oracle=lambda x: stats.norm(x.mean(), x.std()), seeds=[0])
    failed = [line.partition(" ")[0] for line in str(broken.value).splitlines()[1:]]
    expected = ["left_out_equals_refit", "densities_match_the_oracle", "densities_integrate_to_one"]
    assert failed == expected


def test_a_registered_family_is_saved_and_loaded(registered: None, tmp_path: Path) -> None:
    rng, path = np.random.default_rng(0), tmp_path / "model.dcb"
    X, y = {"x": rng.integers(0, 2, 50)}, rng.integers(0, 2, 50)
    clf = BayesClassifier(families={"x": Answers(alpha=0.5)}, tune=None).fit(X, y)
    with pytest.raises(UsageError, match=r"register your family with deciban\.families\.register"):
        clf.save(path)
    assert register(Answers) is Answers
    check_family(Answers(alpha=0.5), seeds=[0])
    clf.save(path)
    np.testing.assert_array_equal(load(path).predict_proba(X), clf.predict_proba(X))
    _REGISTERED.clear()
    with pytest.raises(ModelFileError, match=r"'Answers'.*first import the module that registers it") as unknown:
        load(path)
    assert "backup" not in str(unknown.value)


@pytest.mark.parametrize("absent", ["read", "empty", "count", "estimate"])
def test_a_family_that_lacks_a_method_is_rejected_by_its_name(absent: str) -> None:
    methods = {name: getattr(Bernoulli, name) for name in ("read", "empty", "count", "estimate") if name != absent}
    family: Any = dataclass(frozen=True, repr=False)(type("Partial", (ColumnFamily,), methods))()
    with pytest.raises(UsageError, match=rf"^families\['x'\] is Partial\(\), which lacks '{absent}'; define"):
        BayesClassifier({"x": family}).fit({"x": [0, 1]}, ["a", "b"])


def test_what_cannot_be_registered(registered: None) -> None:
    with pytest.raises(UsageError, match="expected a dataclass"):
        register(Answers())  # type: ignore[type-var]  # an instance
    other = dataclass(frozen=True)(type("Gaussian", (Answers,), {}))
    with pytest.raises(UsageError, match=r"a family of this name exists in .*; choose a different name"):
        register(other)
