"""Each kernel against a few lines of NumPy."""

from itertools import product

import numpy as np
import pytest
from scipy import sparse
from scipy.special import logsumexp

from deciban import kernels
from deciban.arrays import in_lanes
from deciban.families.bernoulli import Exchange
from deciban.sparse import SparseRows
from deciban.statistics.bins import counted_column

RNG = np.random.default_rng(5)
N, M, K = 40, 3, 4
X = RNG.normal(size=(N, M))
X[RNG.random((N, M)) < 0.15] = np.nan
LABELS = RNG.integers(-1, K, N).astype(np.int32)
WEIGHTS = RNG.integers(0, 3, N).astype(np.float64)
SLOT = np.arange(M)
WEIGHT = RNG.random(M)


def parameters(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape)


def collapsed(terms: np.ndarray, weight: np.ndarray = WEIGHT) -> np.ndarray:
    """Weighted terms [row, column, class], missing ones 0, as `out` holds them apart."""
    return weight[None, :, None] * np.nan_to_num(terms, nan=0.0)


def scored(kernel, *arguments, room: tuple[np.ndarray, ...] = ()) -> tuple[np.ndarray, np.ndarray]:
    """What the kernel adds with blocks apart and together."""
    apart, together = np.zeros((N, M, K)), np.zeros((N, 1, K))
    kernel(*arguments, WEIGHT, SLOT, *room, apart)
    kernel(*arguments, WEIGHT, np.zeros(M, dtype=np.int64), *room, together)
    np.testing.assert_allclose(apart.sum(axis=1), together[:, 0], rtol=1e-12, atol=1e-12)
    return apart, together


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_sums_of_deviations(kind: type) -> None:
    """Of whole rows by the plain loop, of rows with holes by the other; many rows, so that parts are moved."""
    rows = np.tile(np.arange(N), 20)
    labels, weights, shift = LABELS[rows], WEIGHTS[rows], parameters(K, M)
    for x in (X[rows].astype(kind), np.nan_to_num(X[rows]).astype(kind)):
        sums, part = np.zeros((4, K, M)), np.zeros((2, K, M))
        if np.isnan(x).any():
            kernels.sum_present_deviations(x, labels, weights, shift, sums)
        else:
            kernels.sum_deviations(x, labels, weights, shift, part, np.zeros(K, dtype=np.int64), sums)
            sums[0] = sums[0, :, :1]
        for c in range(K):
            w = np.where((labels == c)[:, None] & ~np.isnan(x), weights[:, None], 0.0)
            away = np.nan_to_num(x.astype(np.float64) - shift[c])
            np.testing.assert_allclose(sums[0, c], w.sum(axis=0))
            np.testing.assert_allclose(sums[1, c] + part[0, c], (w * away).sum(axis=0), rtol=1e-10, atol=1e-10)
            squares = sums[2, c] - sums[3, c] + part[1, c]
            np.testing.assert_allclose(squares, (w * away**2).sum(axis=0), rtol=1e-13)


def test_sums_of_first_rows() -> None:
    """They stop where enough rows were seen and no cell is without a value."""
    sums = np.zeros((4, K, M))
    counted = (LABELS >= 0) & (WEIGHTS > 0.0)
    kernels.sum_first_rows(X, LABELS, WEIGHTS, 12, 0, sums)
    for c in range(K):
        rows = X[:12][(c == LABELS)[:12] & counted[:12]]
        for j in range(M):
            values = rows[~np.isnan(rows[:, j]), j]
            assert sums[0, c, j] == values.size
            if values.size:
                away = values - values[0]
                np.testing.assert_allclose(sums[1:, c, j], [values[0], away.sum(), (away**2).sum()], atol=1e-15)
    sums[:] = 0.0
    kernels.sum_first_rows(X, LABELS, WEIGHTS, 0, K * M, sums)
    assert (sums[0] > 0.0).all()
    assert sums[0].sum() < (~np.isnan(X[counted])).sum()


@pytest.mark.parametrize("binary", [False, True])
def test_count_totals(binary: bool) -> None:
    present, total = np.zeros((K, M)), np.zeros((K, M))
    kernels.count_totals(X, LABELS, WEIGHTS, binary, 0.3, present, total)
    amounts = np.nan_to_num(X > 0.3 if binary else X)
    for c in range(K):
        w = np.where(c == LABELS, WEIGHTS, 0.0)
        np.testing.assert_allclose(present[c], w @ ~np.isnan(X))
        np.testing.assert_allclose(total[c], w @ amounts, rtol=1e-12)
    csr = sparse.csr_array(np.where(np.isnan(X), np.nan, np.where(X > 0, X, 0.0)))
    sparse_present, sparse_total = np.zeros((K, M)), np.zeros((K, M))
    known = LABELS >= 0
    sparse_present[:] = np.bincount(LABELS[known], WEIGHTS[known], K)[:, None]
    kernels.count_sparse_totals(
        csr.data, csr.indices, csr.indptr, LABELS, WEIGHTS, binary, 0.3, sparse_present, sparse_total
    )
    dense_present, dense_total = np.zeros((K, M)), np.zeros((K, M))
    kernels.count_totals(csr.toarray(), LABELS, WEIGHTS, binary, 0.3, dense_present, dense_total)
    np.testing.assert_allclose(sparse_present, dense_present)
    np.testing.assert_allclose(sparse_total, dense_total)


def test_count_codes() -> None:
    codes = RNG.integers(-1, 5, N).astype(np.int32)
    table = np.zeros((K, 5))
    kernels.count_codes(codes, LABELS, WEIGHTS, table)
    for c in range(K):
        for v in range(5):
            assert table[c, v] == WEIGHTS[(c == LABELS) & (codes == v)].sum()


def test_whole_numbers() -> None:
    x = RNG.integers(-2, 6, (N, M)).astype(np.float64)
    x[3, 1] = np.nan
    low, high = np.full(M, np.inf), np.full(M, -np.inf)
    assert kernels.integer_ranges(x, low, high)
    np.testing.assert_array_equal(low, np.nanmin(x, axis=0))
    np.testing.assert_array_equal(high, np.nanmax(x, axis=0))
    assert not kernels.integer_ranges(x + 0.5, low.copy(), high.copy())
    start = np.concatenate([[0], np.cumsum(high - low + 1)]).astype(np.int64)
    table = np.zeros((K, start[-1]))
    kernels.count_integers(x, LABELS, WEIGHTS, low, start, table)
    for j in range(M):
        for k in range(int(high[j] - low[j]) + 1):
            for c in range(K):
                expected = WEIGHTS[(c == LABELS) & (x[:, j] == low[j] + k)].sum()
                assert table[c, start[j] + k] == expected
    code_of = np.arange(start[-1], dtype=np.int32)
    codes = np.zeros((2, M), dtype=np.int32)
    assert not kernels.encode_integers(np.array([[99.0] * M, [np.nan] * M]), low, start, code_of, codes)
    assert codes.tolist() == [[-2] * M, [-1] * M]
    codes = np.zeros((N, M), dtype=np.int32)
    assert kernels.encode_integers(np.nan_to_num(x, nan=low[1]), low, start, code_of, codes)
    np.testing.assert_array_equal(codes, np.nan_to_num(x, nan=low[1]) - low + start[:-1])


@pytest.mark.parametrize("most", [8, 100])
def test_count_cells(most: int) -> None:
    x = np.concatenate([RNG.normal(1000.0, 3.0, 200), [-5.0, 0.0, np.nan]])
    labels, weights = RNG.integers(-1, 2, x.size).astype(np.int32), RNG.integers(0, 3, x.size).astype(np.float64)
    used = (labels >= 0) & (weights > 0) & ~np.isnan(x)
    column = counted_column(x[used], labels[used], weights[used], 2, most, 48)
    exponent, cells, table = column.exponent, column.cells, column.table
    place = np.floor(np.ldexp(x, -exponent))
    np.testing.assert_array_equal(cells, np.unique(place[used]))
    assert cells.size <= most
    if exponent > np.floor(np.log2(np.abs(x[used]).max())) + 1 - 48:  # one finer would have been too many
        assert np.unique(np.floor(np.ldexp(x[used], 1 - exponent))).size > most
    for c in range(2):
        for k, cell in enumerate(cells):
            assert table[c, k] == weights[used & (labels == c) & (place == cell)].sum()


def test_score_normal() -> None:
    centre, mean, root, offset = parameters(M), parameters(M, K), parameters(M, K), parameters(M, K)
    apart, _ = scored(kernels.score_normal, X, centre, mean, root, offset, room=(np.empty(8), np.zeros((K, 8))))
    terms = offset - (((X - centre)[:, :, None] - mean) * root) ** 2
    np.testing.assert_allclose(apart, collapsed(terms), rtol=1e-12, atol=1e-12)


def test_score_normal_sees_infinite_cells() -> None:
    one = np.ones((1, 1))
    for value, finite in ((1e300, True), (np.nan, True), (np.inf, False), (-np.inf, False)):
        x, out = np.array([[1.0], [value]]), np.zeros((2, 1, 1))
        found = kernels.score_normal(
            x, one[0], one, one, one, one[0], np.zeros(1, dtype=np.int64), np.empty(2), np.zeros((1, 2)), out
        )
        assert found is finite


def test_normalize() -> None:
    joint, prior = RNG.normal(size=(N, K)) * 500, np.log(np.full(K, 1 / K))
    joint[3] = -np.inf
    joint[4, 1] = -np.inf
    posterior, log_posterior, density = np.empty((N, K)), np.empty((N, K)), np.empty(N)
    kernels.normalize(joint, prior, True, log_posterior, density)
    kernels.normalize(joint, prior, False, posterior, density)
    rest = np.arange(N) != 3
    np.testing.assert_allclose(density[rest], logsumexp(joint[rest], axis=1), rtol=1e-12)
    np.testing.assert_allclose(log_posterior[rest], joint[rest] - density[rest, None], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(np.exp(log_posterior), posterior, rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(posterior[3], 1 / K)
    assert density[3] == -np.inf


def test_weight_slope() -> None:
    """Against the slope and curvature of the log-likelihood by differences."""
    cells, labels = RNG.integers(-1, 5, N), np.maximum(LABELS, 0)
    evidence, own, score = parameters(5, K), parameters(5, K), parameters(N, K)
    said = np.where(np.arange(K) == labels[:, None], own[cells], evidence[cells]) * (cells >= 0)[:, None]

    def likelihood(weight: float) -> float:
        joint = score + weight * said
        return float(WEIGHTS @ (joint[np.arange(N), labels] - logsumexp(joint, axis=1)))

    sums, step = np.zeros(2), 1e-4
    posterior = np.exp(score - logsumexp(score, axis=1, keepdims=True))
    kernels.weight_slope(cells, labels, WEIGHTS, evidence, own, posterior, sums)
    low, here, high = (likelihood(weight) for weight in (-step, 0.0, step))
    np.testing.assert_allclose(sums, [(high - low) / (2 * step), -(high - 2 * here + low) / step**2], rtol=1e-5)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_all_finite(kind: type) -> None:
    for values, finite in (([0.0, 1e30], True), ([], True), ([1.0, np.nan], False), ([-np.inf, 2.0], False)):
        assert kernels.all_finite(np.array(values, dtype=kind)) is finite


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_all_within(kind: type) -> None:
    for values, within in (([0.0, np.nan, 5.0], True), ([], True), ([5.1], False), ([np.nan, -0.1], False)):
        assert kernels.all_within(np.array(values, dtype=kind), 0.0, 5.0) is within


def test_score_joint_normal() -> None:
    x, centre, mean, offset = np.nan_to_num(X), parameters(M), parameters(K, M), parameters(K)
    whiten, reach = np.tril(parameters(2, M, M)), np.arange(1, M + 1)
    group = np.array([0, 0, 1, 0])
    out = np.zeros((N, 2, K))
    room = (np.zeros((M, 40)), np.zeros((M, 32)), np.empty(32))
    kernels.score_joint_normal(x, centre, whiten, reach, group, mean, offset, 0.5, 1, *room, out)
    white = np.einsum("nk,clk->ncl", x - centre, whiten[group])
    np.testing.assert_allclose(out[:, 1], 0.5 * (offset - ((white - mean) ** 2).sum(axis=2)), rtol=1e-12)
    assert not out[:, 0].any()


def test_score_lookup() -> None:
    codes = RNG.integers(-2, 3, (N, M)).astype(np.int32)
    start, table = np.array([0, 3, 6, 9]), parameters(9, K)
    apart, _ = scored(kernels.score_lookup, codes, start, table, room=(np.empty(K),))
    terms = np.where((codes >= 0)[:, :, None], table[start[:M] + np.maximum(codes, 0)], 0.0)
    np.testing.assert_allclose(apart, collapsed(terms), rtol=1e-12)


def test_score_binary() -> None:
    one, zero = parameters(M, K), parameters(M, K)
    apart, _ = scored(kernels.score_binary, X, 0.2, one, zero)
    terms = np.where((X > 0.2)[:, :, None], one, zero) + np.where(np.isnan(X), np.nan, 0.0)[:, :, None]
    np.testing.assert_allclose(apart, collapsed(terms), rtol=1e-12)


def test_score_half_line() -> None:
    x, power, slope, offset = np.abs(X), parameters(M, K), parameters(M, K), parameters(M, K)
    x[0] = 0.0
    apart, _ = scored(kernels.score_half_line, x, power, slope, offset)
    with np.errstate(divide="ignore"):
        logs = np.where(x == 0.0, 0.0, np.log(x))
    terms = offset + power * logs[:, :, None] + slope * x[:, :, None]
    np.testing.assert_allclose(apart, collapsed(terms), rtol=1e-12, atol=1e-12)


def test_score_linear_dense_and_sparse() -> None:
    x, slope = np.where(X > 0, X, 0.0), parameters(M, K)
    slope[0, 0] = -np.inf
    x[:, 0] = 0.0  # nothing times -inf is nothing
    dense, thin = np.zeros((N, 2, K)), np.zeros((N, 2, K))
    kernels.score_linear(x, slope, 0.5, 1, np.empty(K), dense)
    csr = sparse.csr_array(x)
    kernels.score_sparse_linear(csr.data, csr.indices, csr.indptr, slope, 0.5, 1, np.empty(K), thin)
    np.testing.assert_allclose(dense[:, 1], 0.5 * x[:, 1:] @ slope[1:], rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(thin, dense)


@pytest.mark.parametrize("classes", [1, 2, 3, 4, 5, 8, 9, 12, 13, 24, 30])
def test_sparse_rows_add_up_whatever_the_number_of_classes(classes: int) -> None:
    """In lanes by three and by one; a slice of the rows shares their data."""
    slope = parameters(60, classes)
    csr = sparse.random_array((9, 60), density=0.3, format="csr", rng=RNG)
    part = SparseRows(csr.data, csr.indices, csr.indptr, 60).slice(2, 9)
    out = np.zeros((7, 1, classes))
    kernels.score_sparse_linear(*part.kernel_arrays(), in_lanes(slope), 1.0, 0, np.empty(32), out)
    np.testing.assert_allclose(out[:, 0], csr[2:] @ slope, rtol=1e-12, atol=1e-13)
    flags = np.zeros((7, 1, classes))
    one, zero = -np.abs(slope), -np.abs(parameters(60, classes))
    above = csr[2:].toarray() > 0.5
    for cells in (part, csr[2:].toarray()):
        flags[:] = 0.0
        Exchange.of(one, zero, np.ones(60)).score(cells, 0.5, flags)
        np.testing.assert_allclose(flags[:, 0], above @ one + ~above @ zero, rtol=1e-12)


def test_score_all_binary_dense_and_sparse() -> None:
    """As column by column, also where a term is infinite, a cell missing, a weight 0."""
    x = np.where(np.isnan(X) | (X > 0), X, 0.0)
    one, zero = -np.abs(parameters(M, K)), -np.abs(parameters(M, K))
    shut_one, shut_zero = one.copy(), zero.copy()
    shut_one[0, 1] = shut_zero[1, 0] = shut_zero[2, 2] = shut_one[2, 3] = -np.inf
    csr = sparse.csr_array(x)
    weights = (WEIGHT, np.array([1.0, 0.0, 0.5]))
    for weight, (yes, no) in product(weights, ((one, zero), (shut_one, shut_zero))):
        dense, thin = np.zeros((N, 1, K)), np.zeros((N, 1, K))
        kernels.score_binary(x, 0.4, yes, no, weight, np.zeros(M, dtype=np.int64), dense)
        for cells in (x, SparseRows(csr.data, csr.indices, csr.indptr, M)):
            thin[:] = 0.0
            Exchange.of(yes, no, weight).score(cells, 0.4, thin)
            np.testing.assert_allclose(thin, dense, rtol=1e-12, atol=1e-12)
