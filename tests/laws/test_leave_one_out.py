"""Leaving a row out is the same as never having counted it, for every family."""

import pytest

from deciban import (
    Bernoulli,
    Categorical,
    Complement,
    Gaussian,
    JointGaussian,
    JointTable,
    LogNormal,
    Multinomial,
    PerClass,
    Pooled,
    Shrunk,
    testing,
)
from tests.laws.cases import CASES, Case, draw_counts, draw_normal, draw_positive, draw_words

MORE = [
    Case("categorical-plain", dict.fromkeys("abc", Categorical(alpha=0.0)), draw_words, True),
    Case("bernoulli-alphas", Bernoulli(alpha=(0.5, 1.0, 2.0)), lambda rng, n: rng.integers(0, 2, (n, 3)), True),
    Case("complement-norm", Complement(norm=True), draw_counts, True),
    Case("multinomial-alphas", Multinomial(alpha=(0.5, 1.0, 2.0, 3.0)), draw_counts, True),
    Case("gaussian-ddof", Gaussian(ddof=1.0, floor=0.3), draw_normal, False),
    Case("gaussian-var-smoothing", Gaussian(floor=0.0, var_smoothing=0.1), draw_normal, False),
    Case("log-normal-pooled", LogNormal(variance=Pooled()), draw_positive, False),
    Case("joint-gaussian-rank-one", JointGaussian(), draw_normal, False),
    Case("joint-gaussian-ddof", JointGaussian(Pooled(), ddof=1.0), draw_normal, False),
    Case("joint-gaussian-mixed", JointGaussian(Shrunk(0.3)), draw_normal, False),
    Case("joint-gaussian-mixed-shrunk", JointGaussian(Shrunk(0.3, shrinkage=0.2)), draw_normal, False),
    Case("joint-gaussian-pooled-shrunk", JointGaussian(Pooled(shrinkage=0.2)), draw_normal, False),
    Case("joint-gaussian-floor", JointGaussian(PerClass(), floor=0.5), draw_normal, False),
    Case(
        "joint-table-smooth", {("a", "b"): JointTable(alpha=0.5, unseen="smooth"), "c": Categorical()}, draw_words, True
    ),
]


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("lonely", [False, True], ids=["full classes", "a class of one row"])
@pytest.mark.parametrize("case", CASES + MORE, ids=lambda case: case.name)
def test_evidence_left_out_is_that_of_a_fit_without_the_row(case: Case, lonely: bool, weighted: bool) -> None:
    testing.check_left_out_equals_refit(case.trial, 5, lonely=lonely, weighted=weighted)
