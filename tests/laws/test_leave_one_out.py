"""Leaving a row out is the same as never having counted it, for every family."""

import numpy as np
import pytest

from deciban import (
    Bernoulli,
    Categorical,
    Complement,
    Counts,
    Gaussian,
    JointGaussian,
    JointTable,
    LogNormal,
    Multinomial,
    PerClass,
    Pooled,
    Shrunk,
)
from deciban.families.base.contract import LeftOut
from deciban.families.binned import BinnedLikelihood
from deciban.model.model import Model, estimate
from deciban.sources.open import open_table
from tests.laws.cases import (
    CASES,
    Case,
    counted,
    draw_counts,
    draw_normal,
    draw_positive,
    draw_words,
    rows_of,
    schema_of,
)

MORE = [
    Case("categorical-plain", dict.fromkeys("abc", Categorical(alpha=0.0)), draw_words, True),
    Case("bernoulli-alphas", Bernoulli(alpha=(0.5, 1.0, 2.0)), lambda rng, n: rng.integers(0, 2, (n, 3)), True),
    Case("complement-norm", Complement(norm=True), draw_counts, True),
    Case("multinomial-alphas", Multinomial(alpha=(0.5, 1.0, 2.0, 3.0)), draw_counts, True),
    Case("gaussian-ddof", Gaussian(ddof=1.0, floor=0.3), draw_normal, False),
    Case("gaussian-added", Gaussian(floor=0.0, added=0.1), draw_normal, False),
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


def _with_edges_of(whole: Model, rest: Counts) -> BinnedLikelihood:
    """Binned densities of the rest in the bins of the whole: edges are held fixed."""
    bins, cells = whole.likelihoods[0].bins, rest.statistics[0].parts[1].columns
    columns = [column.coarser(wide.exponent) for column, wide in zip(cells, bins, strict=True)]
    return BinnedLikelihood.of(columns, np.ones(len(columns), dtype=bool), 1.0, "ignore")


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("lonely", [False, True], ids=["full classes", "a class of one row"])
@pytest.mark.parametrize("case", CASES + MORE, ids=lambda case: case.name)
def test_evidence_left_out_is_that_of_a_fit_without_the_row(case: Case, lonely: bool, weighted: bool) -> None:
    rng = np.random.default_rng(5)
    n = 60
    X = case.draw(rng, n)
    y = np.concatenate([[3 if lonely else 0], rng.integers(0, 3, n - 1)])
    weights = rng.choice([0.25, 0.5, 1.0], n) if weighted else np.ones(n)
    schema = schema_of(case, X)
    counts = counted(schema, X, y, weights)
    prior = np.zeros(counts.classes.size)
    model = estimate(counts, prior)
    codes = np.searchsorted(counts.classes, y).astype(np.int32)
    found = model.left_out_evidence_of(counts, schema.table_as_learned(open_table(X)), LeftOut(codes, weights))
    for i in range(1, n):
        others = np.arange(n) != i
        rest = counted(schema, rows_of(X, others), y[others], weights[others])
        likelihoods = (_with_edges_of(model, rest),) if case.name == "binned" else None
        without = estimate(rest, prior, likelihoods)
        expected = without.evidence(schema.table_as_learned(open_table(rows_of(X, [i])))).values[0]
        np.testing.assert_allclose(found[i], expected, rtol=1e-9, atol=1e-9, err_msg=f"row {i} of class {y[i]}")
