"""Evidence of cells against NumPy."""

from itertools import product

import numpy as np
import pytest
from scipy import sparse

from deciban import kernels
from deciban.families.bernoulli import Exchange
from deciban.util.arrays import in_lanes
from deciban.util.sparse import SparseRows
from tests.kernels.blocks import WEIGHT, collapsed, scored
from tests.kernels.data import RNG, K, M, N, X, parameters


def test_score_lookup() -> None:
    codes = RNG.integers(-2, 3, (N, M)).astype(np.int32)
    start, table = np.array([0, 3, 6, 9]), parameters(9, K)
    apart, _ = scored(kernels.scoring.score_lookup, codes, start, table, room=(np.empty(K),))
    terms = np.where((codes >= 0)[:, :, None], table[start[:M] + np.maximum(codes, 0)], 0.0)
    np.testing.assert_allclose(apart, collapsed(terms), rtol=1e-12)


def test_score_binary() -> None:
    one, zero = parameters(M, K), parameters(M, K)
    apart, _ = scored(kernels.scoring.score_binary, X, 0.2, one, zero)
    terms = np.where((X > 0.2)[:, :, None], one, zero) + np.where(np.isnan(X), np.nan, 0.0)[:, :, None]
    np.testing.assert_allclose(apart, collapsed(terms), rtol=1e-12)


def test_score_half_line() -> None:
    x, power, slope, offset = np.abs(X), parameters(M, K), parameters(M, K), parameters(M, K)
    x[0] = 0.0
    apart, _ = scored(kernels.scoring.score_half_line, x, power, slope, offset)
    with np.errstate(divide="ignore"):
        logs = np.where(x == 0.0, 0.0, np.log(x))
    terms = offset + power * logs[:, :, None] + slope * x[:, :, None]
    np.testing.assert_allclose(apart, collapsed(terms), rtol=1e-12, atol=1e-12)


def test_score_linear_dense_and_sparse() -> None:
    x, slope = np.where(X > 0, X, 0.0), parameters(M, K)
    slope[0, 0] = -np.inf
    x[:, 0] = 0.0  # nothing times -inf is nothing
    dense, thin = np.zeros((N, 2, K)), np.zeros((N, 2, K))
    kernels.scoring.score_linear(x, slope, False, 0.5, 1, np.empty(K), dense)
    csr = sparse.csr_array(x)
    kernels.scoring.score_sparse_linear(csr.data, csr.indices, csr.indptr, slope, 0.5, 1, np.empty(K), thin)
    np.testing.assert_allclose(dense[:, 1], 0.5 * x[:, 1:] @ slope[1:], rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(thin, dense)


@pytest.mark.parametrize("classes", [1, 2, 4, 5, 8, 9, 12, 13, 30])
def test_dense_rows_add_up_whatever_the_number_of_classes(classes: int) -> None:
    """The same bits with and without branches; missing cells add nothing."""
    x, slope = RNG.poisson(1.0, (9, 60)).astype(np.float64), parameters(60, classes)
    x[RNG.random(x.shape) < 0.1] = np.nan
    found = [np.zeros((9, 1, classes)) for _ in range(2)]
    for finite, out in zip((False, True), found, strict=True):
        kernels.scoring.score_linear(x, in_lanes(slope), finite, 0.5, 0, np.empty(32), out)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_allclose(found[0][:, 0], 0.5 * np.nan_to_num(x) @ slope, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("classes", [1, 2, 3, 4, 5, 8, 9, 12, 13, 24, 30])
def test_sparse_rows_add_up_whatever_the_number_of_classes(classes: int) -> None:
    """In lanes by three and by one; a slice of the rows shares their data."""
    slope = parameters(60, classes)
    csr = sparse.random_array((9, 60), density=0.3, format="csr", rng=RNG)
    part = SparseRows(csr.data, csr.indices, csr.indptr, 60).slice(2, 9)
    out = np.zeros((7, 1, classes))
    kernels.scoring.score_sparse_linear(*part.kernel_arrays(), in_lanes(slope), 1.0, 0, np.empty(32), out)
    np.testing.assert_allclose(out[:, 0], csr[2:] @ slope, rtol=1e-12, atol=1e-13)


def binary_terms(one: np.ndarray, zero: np.ndarray):
    shut = np.isneginf(zero)
    finite = not (shut.any() or np.isneginf(one).any())
    gain = in_lanes(one - zero) if finite else np.zeros((0, 0))
    zeros, blocked = np.where(shut, 0.0, zero).sum(axis=0), shut.sum(axis=0).astype(np.float64)
    return kernels.scoring.BinaryTerms(one, zero, gain, zeros, blocked, finite)


def scored_binary(cells: np.ndarray, threshold: float, one: np.ndarray, zero: np.ndarray) -> list[np.ndarray]:
    """What the kernels of dense and of sparse rows add."""
    terms, (rows, columns), total = binary_terms(one, zero), cells.shape, np.empty(one.shape[1] + 3)
    dense, thin = np.zeros((rows, 1, one.shape[1])), np.zeros((rows, 1, one.shape[1]))
    room = np.arange(columns), np.ones(columns), np.empty(columns + 1, dtype=np.int64), total
    kernels.scoring.score_all_binary(cells, threshold, terms, *room, dense)
    csr = sparse.csr_array(cells)
    kernels.scoring.score_sparse_binary(csr.data, csr.indices, csr.indptr, threshold, terms, total, thin)
    return [dense[:, 0], thin[:, 0]]


@pytest.mark.parametrize("classes", [1, 2, 3, 4, 5, 8, 9, 12, 13, 24, 30])
def test_flags_of_all_columns_add_up_whatever_the_number_of_classes(classes: int) -> None:
    """In lanes by three and by one."""
    one, zero = -np.abs(parameters(60, classes)), -np.abs(parameters(60, classes))
    cells = sparse.random_array((9, 60), density=0.3, rng=RNG).toarray()
    above = cells > 0.5
    for found in scored_binary(cells, 0.5, one, zero):
        np.testing.assert_allclose(found, above @ one + ~above @ zero, rtol=1e-12)


@pytest.mark.parametrize("shut", [False, True])
def test_flags_of_all_columns_where_cells_are_missing_and_terms_infinite(shut: bool) -> None:
    x = np.where(np.isnan(X) | (X > 0), X, 0.0)
    one, zero = -np.abs(parameters(M, K)), -np.abs(parameters(M, K))
    if shut:
        one[0, 1] = zero[1, 0] = zero[2, 2] = one[2, 3] = -np.inf
    terms = np.where((x > 0.4)[:, :, None], one, zero)
    expected = np.where(np.isnan(x)[:, :, None], 0.0, terms).sum(axis=1)
    for found in scored_binary(x, 0.4, one, zero):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_weighted_flags_of_all_columns_are_those_of_each() -> None:
    """As column by column, also where a term is infinite, a cell missing, a weight 0."""
    x = np.where(np.isnan(X) | (X > 0), X, 0.0)
    one, zero = -np.abs(parameters(M, K)), -np.abs(parameters(M, K))
    shut_one, shut_zero = one.copy(), zero.copy()
    shut_one[0, 1] = shut_zero[1, 0] = shut_zero[2, 2] = shut_one[2, 3] = -np.inf
    csr = sparse.csr_array(x)
    weights = (WEIGHT, np.array([1.0, 0.0, 0.5]))
    for weight, (yes, no) in product(weights, ((one, zero), (shut_one, shut_zero))):
        dense, thin = np.zeros((N, 1, K)), np.zeros((N, 1, K))
        kernels.scoring.score_binary(x, 0.4, yes, no, weight, np.zeros(M, dtype=np.int64), dense)
        for cells in (x, SparseRows(csr.data, csr.indices, csr.indptr, M)):
            thin[:] = 0.0
            Exchange.of(yes, no, weight).score(cells, 0.4, thin)
            np.testing.assert_allclose(thin, dense, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("rows", [1, 5, 8, 200])
def test_find_bins(rows: int) -> None:
    """As `searchsorted` counts the cuts, for any number of them."""
    x = RNG.normal(size=(rows, 5)).round(1)
    x[RNG.random(x.shape) < 0.1] = np.nan
    x[0, 1:4] = np.inf, -np.inf, 0.3
    cuts = [np.unique(RNG.normal(size=size).round(1)) for size in (0, 1, 2, 40, 250)]
    start, out = np.cumsum([0, *map(len, cuts)]), np.zeros((5, rows), dtype=np.int32)
    kernels.scoring.find_bins(x, np.concatenate(cuts), start, np.empty(8), np.empty(8, dtype=np.uint64), out)
    for j, own in enumerate(cuts):
        expected = np.where(np.isnan(x[:, j]), 0, 1 + np.searchsorted(own, x[:, j], side="right"))
        np.testing.assert_array_equal(out[j], expected)


def test_raise_to_limit() -> None:
    total = np.random.default_rng(3).normal(scale=5.0, size=(50, 4))
    total[0], total[1, 2] = -np.inf, -np.inf
    expected = np.where(total == -np.inf, total, np.maximum(total, total.max(axis=1, keepdims=True) - 3.0))
    kernels.scoring.raise_to_limit(total, 3.0)
    np.testing.assert_array_equal(total, expected)


def test_limit_blocks() -> None:
    """A block far below its best class, or far below 0, is limited; NaN spreads to all classes of its block."""
    cap, vast, uncapped = 2.0, 1e6, np.array([False, True, False])
    weighted = RNG.normal(size=(N, 3, K)) * RNG.choice([0.1, 1.0, 3.0], (N, 3, 1))
    weighted[0], weighted[1, :, 1], weighted[2] = -np.inf, -np.inf, weighted[2] - 1e7
    weighted[3, :, 2], weighted[4, 0, 0], weighted[5, 2] = np.nan, np.inf, np.inf
    top, low = weighted.max(axis=2), weighted.min(axis=2)
    beyond = (~(low >= top - cap) | (top < -vast)) & ~uncapped
    with np.errstate(invalid="ignore"):
        below = np.where(np.isneginf(top)[:, :, None], 0.0, weighted - top[:, :, None])
    limited = np.where(beyond[:, :, None], np.maximum(below, -cap), weighted)
    start, flags = RNG.normal(size=(N, K)), np.empty((N, 3), dtype=np.bool_)
    total = start.copy()
    kernels.scoring.limit_blocks(weighted, cap, vast, uncapped, flags, total)
    np.testing.assert_array_equal(flags, beyond)
    np.testing.assert_array_equal(weighted, limited)
    np.testing.assert_array_equal(total, start + limited[:, 0] + limited[:, 1] + limited[:, 2])
