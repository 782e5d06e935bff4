"""Correction tables are grown as a few lines of NumPy do it."""

from typing import Any

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from deciban import kernels
from tests.kernels.data import RNG

ROWS, COLUMNS, BINS, DEPTH = 200, 5, 6, 3
CODES = RNG.integers(0, BINS, (COLUMNS, ROWS)).astype(np.uint8)


def grow(
    codes: np.ndarray, labels: np.ndarray, start: np.ndarray, mix: np.ndarray, held: tuple[int, int], **more: Any
) -> tuple[Any, Any, float]:
    """Grow tables with all columns from scores, series by row by class; return the rows, the tables and the loss."""
    columns, size, classes, tables = *codes.shape, start.shape[2], len(mix)
    if classes == 2:
        posterior = np.exp(start[:, None, :, 1] - start[:, None, :, 0])
    else:
        posterior = softmax(start, axis=2).transpose(0, 2, 1)
    growth, outputs, most = kernels.table_growth, 1 if classes == 2 else 2, int(codes.max()) + 1
    rows = growth.GrowthRows(
        codes=codes,
        labels=labels.astype(np.int32),
        repeats=more.get("repeats", np.ones(size)).astype(np.int32),
        weight=more.get("weight", np.ones(size)).astype(np.float32),
        posterior=np.ascontiguousarray(posterior, dtype=np.float32),
        held=np.array(held),
    )
    scratch = growth.GrowthScratch(
        slopes=np.zeros((outputs + 1, size), dtype=np.float32),
        packed=np.empty((2, size), dtype=np.int64),
        order=np.empty((2, size), dtype=np.uint32),
        moved=np.empty((2, outputs, size), dtype=np.int64),
        sums=np.empty((1 << DEPTH >> 1, columns, outputs, most), dtype=np.int64),
        room=np.empty((5, outputs, most), dtype=np.int64),
        run=np.empty(most, dtype=np.int64),
        below=np.empty(most),
        gains=np.empty((columns, most)),
        first=np.empty((1 << DEPTH) + 1, dtype=np.int64),
        cell=np.empty(size, dtype=np.uint8),
        totals=np.zeros((2, 1 << DEPTH), dtype=np.int64),
    )
    tests, values = np.full((tables, DEPTH, 2), -1), np.zeros((tables, 1 << DEPTH, 2, posterior.shape[1]))
    bins, ridge, rate, units = np.full(columns, most), more.get("ridge", 1.0), more.get("rate", 0.2), np.empty((2, 2))
    for t in range(tables):
        lead = t % 2
        if classes == 2:
            many = kernels.table_growth.pack_two_classes(rows, lead, scratch, units)
        else:
            many = kernels.table_growth.pack_mixtures(rows, lead, mix[t].astype(np.float32), scratch, units)
        unit = units[lead if classes == 2 else 0]
        depth = kernels.table_growth.search_table(codes, bins, np.arange(columns), many, unit, ridge, scratch, tests[t])
        step = kernels.table_growth.step_two_classes if classes == 2 else kernels.table_growth.step_classes
        step(rows, tests[t], depth, ridge, rate, scratch, units, values[t])
    return rows, (tests, values), kernels.table_growth.measure_held_loss(rows)


def gain(cell: np.ndarray, slopes: np.ndarray, curvature: np.ndarray, ridge: float) -> float:
    """Sum over cells of |slopes|² / (curvature + ridge)."""
    size = cell.max() + 1
    below = np.bincount(cell, curvature, size) + ridge
    return sum(float((np.bincount(cell, slope, size) ** 2 / below).sum()) for slope in slopes.T)


def test_a_first_cut_is_made_if_only_two_columns_together_are_informative() -> None:
    """In a table of exclusive or no cut gains anything by itself."""
    bits = np.array([[0, 0, 1, 1], [0, 1, 0, 1]]).repeat(50, axis=1)
    labels, start = np.array([0, 1, 1, 0]).repeat(50), np.zeros((2, 200, 2))
    _, grown, _ = grow((1 + bits).astype(np.uint8), labels, start, np.zeros((1, 0, 2)), (200, 200))
    assert sorted(grown[0][0, :2].tolist()) == [[0, 1], [1, 1]]


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("classes", [2, 4])
def test_a_table_is_the_best_by_brute_force(classes: int, whole: bool) -> None:
    """Each test is the cut that gains most over all cells, each value a damped Newton step for its cell."""
    labels, tables, ridge, rate = RNG.integers(0, classes, ROWS), 3, 0.7, 0.3
    amounts = RNG.integers(1, 3, ROWS) if whole else RNG.random(ROWS)
    weights = {"repeats": amounts} if whole else {"weight": amounts}
    held = (40, 80)
    mix = RNG.normal(size=(tables, classes, 2)).astype(np.float32)
    scores = RNG.normal(size=(2, ROWS, classes))
    rows, grown, loss = grow(CODES, labels, scores, mix, held, ridge=ridge, rate=rate, **weights)
    learned = np.where((np.arange(ROWS) >= held[0]) & (np.arange(ROWS) < held[1]), 0.0, amounts)
    for t in range(tables):
        cell = np.zeros(ROWS, dtype=int)
        posterior = softmax(scores, axis=2)
        slopes = learned[:, None] * (np.eye(classes)[labels] - posterior)
        bend = learned[:, None] * posterior * (1.0 - posterior)
        lead = t % 2
        shown = slopes[lead, :, 1:] if classes == 2 else slopes[lead] @ mix[t]
        total = bend[lead, :, 1] if classes == 2 else bend[lead].sum(axis=1) * (classes - 1) / classes
        for level in range(DEPTH):
            gains = {
                (j, b): gain(2 * cell + (CODES[j] > b), shown, total, ridge)
                for j in range(COLUMNS)
                for b in range(BINS - 1)
            }
            column, cut = max(gains, key=gains.__getitem__)
            assert grown[0][t, level].tolist() == [column, cut]
            cell = 2 * cell + (CODES[column] > cut)
        for s in range(2):
            step, below = (
                np.stack([np.bincount(cell, one, 1 << DEPTH) for one in each[s].T], axis=1) for each in (slopes, bend)
            )
            more = 1.0 if classes == 2 else classes / (classes - 1)
            values = rate * step / (more * below + ridge)
            expected = values[:, 1:] if classes == 2 else values
            np.testing.assert_allclose(grown[1][t, :, s], expected, rtol=1e-4, atol=1e-5)
            scores[s] += 0.5 * values[cell] if classes == 2 else values[cell]
    posterior = softmax(scores, axis=2).transpose(0, 2, 1)
    found = rows.posterior if classes > 2 else rows.posterior / (1.0 + rows.posterior)
    np.testing.assert_allclose(found, posterior if classes > 2 else posterior[:, 1:], rtol=1e-4, atol=1e-5)
    mean = log_softmax(scores.mean(axis=0), axis=1)[np.arange(ROWS), labels]
    here = slice(*held)
    assert loss == pytest.approx(-amounts[here] @ mean[here], rel=1e-4)


@pytest.mark.parametrize("classes", [2, 3])
def test_repeated_rows_in_any_order_grow_the_same_tables(classes: int) -> None:
    """Sums of whole numbers are exact."""
    labels, repeats = RNG.integers(0, classes, ROWS), RNG.integers(1, 4, ROWS)
    start, mix = RNG.normal(size=(2, ROWS, classes)), RNG.normal(size=(4, classes, 2))
    _, one, _ = grow(CODES, labels, start, mix, (ROWS, ROWS), repeats=repeats)
    rows = RNG.permutation(np.repeat(np.arange(ROWS), repeats))
    codes = np.ascontiguousarray(CODES[:, rows])
    _, other, _ = grow(codes, labels[rows], start[:, rows], mix, (rows.size, rows.size))
    np.testing.assert_array_equal(one[0], other[0])
    np.testing.assert_array_equal(one[1], other[1])


def test_rows_that_are_wrong_for_sure_do_no_harm() -> None:
    labels = np.zeros(ROWS, dtype=int)
    start = np.zeros((2, ROWS, 3))
    start[:, :, 1] = 30.0
    rows, grown, loss = grow(CODES, labels, start, RNG.normal(size=(40, 3, 2)), (0, 40), rate=0.5)
    assert np.isfinite(grown[1]).all()
    assert np.isfinite(rows.posterior).all()
    assert loss < 40.0


@pytest.mark.parametrize("classes", [2, 3])
def test_the_mean_of_members_has_the_mean_loss_less_their_spread(classes: int) -> None:
    """Whatever the labels are."""
    scores = RNG.normal(size=(5, 2, 60, classes))
    posterior = np.exp(scores[..., 1:] - scores[..., :1]) if classes == 2 else softmax(scores, axis=3)
    posterior = np.ascontiguousarray(posterior.transpose(0, 1, 3, 2), dtype=np.float32)
    weight, ends, begin = RNG.random(60).astype(np.float32), np.arange(6) * 12, np.ones_like(posterior[0])
    found, unseen = kernels.table_growth.measure_spread(
        posterior, begin, ends, np.ones(60, dtype=np.int32), weight, 2, np.empty(classes)
    )
    log_members = log_softmax(scores.mean(axis=1), axis=2)
    log_mean = log_softmax(log_members.mean(axis=0), axis=1)
    labels, every, share = RNG.integers(0, classes, 60), np.arange(60), np.where(np.arange(60) % 2, 0.0, weight)
    gain = log_mean[every, labels] - log_members[:, every, labels].mean(axis=0)
    assert found == pytest.approx(share @ gain / share.sum(), rel=1e-5)
    sums = np.log(posterior).sum(axis=1)
    squares = ((sums - (sums.mean(axis=1, keepdims=True) if classes > 2 else 0.0)) ** 2).sum(axis=1)
    held = every // 12 == np.arange(5)[:, None]
    mean = [np.average(squares[some], weights=np.broadcast_to(share, held.shape)[some]) for some in (held, ~held)]
    assert unseen == pytest.approx(mean[0] / mean[1], rel=1e-5)
