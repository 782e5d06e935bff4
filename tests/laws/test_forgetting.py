"""What is learned and forgotten leaves no trace, for every family, in whatever batches and order."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st
from scipy import sparse

from deciban import (
    Bernoulli,
    Binned,
    Complement,
    Counts,
    Gamma,
    Gaussian,
    JointGaussian,
    LogNormal,
    Multinomial,
    Poisson,
)
from deciban.errors import ForgetError
from deciban.sources.open import open_table
from deciban.testing import assert_same_counts, count_rows, estimate_model as model, infer_trial_schema, take_rows
from tests.laws.cases import CASES, Case

every_family = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
seeds = st.integers(0, 2**32 - 1)

# How far cells may reach, in powers of ten: those that are squared up to 1e139.
SQUARED, ANY_SIZE = (-300.0, 139.0), (-300.0, 300.0)

WEIGHTS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "none": lambda rng, n: np.ones(n),
    "whole": lambda rng, n: rng.integers(0, 5000, n).astype(np.float64),
    "fractions": lambda rng, n: rng.random(n) * 10.0 ** rng.integers(-2, 3, n),
}


def with_any_sizes(case: Case, X: Any, rng: np.random.Generator) -> Any:
    """Some cells, of families of numbers, of any size that they take."""
    family = case.family
    if isinstance(X, pa.Table) or isinstance(family, Bernoulli) or X.dtype.kind == "i" or "halves" in case.name:
        return X
    dense = X.toarray() if sparse.issparse(X) else X.copy()
    low, high = ANY_SIZE if isinstance(family, LogNormal | Multinomial | Complement) else SQUARED
    if dense.dtype == np.float32:
        low, high = -45.0, 38.0
    size = 10.0 ** rng.uniform(low, high, dense.shape)
    if isinstance(family, Poisson):
        size = np.floor(size)
    if isinstance(family, Gaussian | JointGaussian | Binned):
        size *= rng.choice([-1.0, 1.0], dense.shape)
    wide = (rng.random(dense.shape) < 0.3) & ~np.isnan(dense)
    dense[wide] = size[wide].astype(dense.dtype)
    return sparse.csr_array(dense) if sparse.issparse(X) else dense


@dataclass
class Rows:
    """Rows with labels and weights, counted in batches."""

    X: Any
    y: np.ndarray
    w: np.ndarray
    schema: Any

    def batches(self, edges: list[int], rng: np.random.Generator) -> list[Counts]:
        """The counts of the rows in another order, cut at these places."""
        order = rng.permutation(len(self.y))
        bounds = [0, *sorted(edges), len(self.y)]
        return [self.counts(order[a:b]) for a, b in pairwise(bounds)]

    def counts(self, rows: Any) -> Counts:
        return count_rows(self.schema, take_rows(self.X, rows), self.y[rows], self.w[rows])


@every_family
@pytest.mark.parametrize("weights", WEIGHTS)
@settings(max_examples=8, deadline=None, derandomize=True)
@given(seed=seeds, learned=st.lists(st.integers(0, 30), max_size=5), forgotten=st.lists(st.integers(0, 30), max_size=5))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # variances of 1e280 overflow when they are multiplied
def test_rows_that_are_learned_and_forgotten_leave_no_trace(
    case: Case, weights: str, seed: int, learned: list[int], forgotten: list[int]
) -> None:
    rng = np.random.default_rng(seed)
    before_X, more_X = case.draw(rng, 40), with_any_sizes(case, case.draw(rng, 30), rng)
    if seed % 2:
        before_X = with_any_sizes(case, before_X, rng)
    schema = infer_trial_schema(case, before_X)
    before = Rows(before_X, rng.integers(0, 3, 40), WEIGHTS[weights](rng, 40), schema).counts(np.arange(40))
    more = Rows(more_X, rng.integers(0, 5, 30), WEIGHTS[weights](rng, 30), schema)
    total = before
    for part in more.batches(learned, rng):
        total = total + part
    # fractions are added in doubles: of a class, 1e-16 of the largest sum may be left per addition (see Counts in docs)
    rounding = 1e-13 * (before.class_weight.sum() + more.w.sum()) if weights == "fractions" else None
    for part in more.batches(forgotten, rng):
        total = total.subtract(part, rounding)
    if weights == "fractions":  # weights are added up in doubles, but for those of moments and totals
        np.testing.assert_allclose(total.class_weight, before.class_weight, rtol=1e-12)
        total = Counts(**{**vars(total), "class_weight": before.class_weight})
        tolerance = 1e-9
    else:
        tolerance = 0.0 if case.exact else 1e-12
    assert_same_counts(total, before, tolerance == 0.0, before.class_weight.max() + more.w.sum())
    rows = schema.table_as_learned(open_table(before_X))
    found, expected = model(total).log_joint(rows), model(before).log_joint(rows)
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@every_family
@settings(max_examples=5, deadline=None, derandomize=True)
@given(seed=seeds)
def test_any_batches_of_any_sizes_give_the_same_counts(case: Case, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = with_any_sizes(case, case.draw(rng, 60), rng)
    rows = Rows(X, rng.integers(0, 3, 60), np.ones(60), infer_trial_schema(case, X))
    whole = rows.counts(np.arange(60))
    one_by_one = sum(rows.batches(list(range(1, 60)), rng), Counts.empty(rows.schema))
    assert_same_counts(one_by_one, whole, case.exact)


MOMENTS = [case for case in CASES if isinstance(case.family, Gaussian | JointGaussian | Binned | Gamma | LogNormal)]


@pytest.mark.parametrize("case", MOMENTS, ids=lambda case: case.name)
@settings(max_examples=10, deadline=None, derandomize=True)
@given(seed=seeds)
def test_rows_that_were_never_learned_are_refused(case: Case, seed: int) -> None:
    """A cell further from the mean than any can be, in a column of any size; or one that is off by its last digit."""
    rng = np.random.default_rng(seed)
    X = np.nan_to_num(case.draw(rng, 40).astype(np.float64), nan=1.0)
    y = np.zeros(40, dtype=np.int64)
    schema = infer_trial_schema(case, X)
    counts = count_rows(schema, X, y)
    row = X[:1].copy()
    row[0, 1] = 1e300 if isinstance(case.family, LogNormal) else np.abs(X[:, 1]).max() * 100.0
    with pytest.raises(ForgetError, match="cannot forget these rows"):
        counts - count_rows(schema, row, y[:1])
    constant = np.repeat(X[:1], 3, axis=0)
    other = constant[:1].copy()
    other[0, 1] = np.nextafter(other[0, 1], np.inf) if not isinstance(case.family, LogNormal) else other[0, 1] * 1.5
    for rows in (other, np.concatenate([other, constant[:2]])):
        with pytest.raises(ForgetError, match="cannot forget these rows"):
            count_rows(schema, constant, y[:3]) - count_rows(schema, rows, y[: len(rows)])
