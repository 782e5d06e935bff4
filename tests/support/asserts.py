"""Assertions that tests of several rooms share."""

from typing import Any

import numpy as np

from deciban import Counts
from deciban.statistics import Bins, Combined, Levels, Moments, Scatter, Totals, Tuples, Words
from deciban.statistics.exact import ExactSums


def assert_same_typed_counts(a: Counts, b: Counts) -> None:
    assert a.schema == b.schema
    assert [(type(label), label) for label in a.classes.tolist()] == [
        (type(label), label) for label in b.classes.tolist()
    ]
    assert a.classes.dtype == b.classes.dtype
    np.testing.assert_array_equal(a.class_weight, b.class_weight)
    assert (a.rows, a.unlabelled) == (b.rows, b.unlabelled)
    for one, other in zip(a.statistics, b.statistics, strict=True):
        assert type(one) is type(other)
        if isinstance(one, Moments):
            assert_same_moments(one, other)
        elif isinstance(one, Levels):
            assert [levels.to_pylist() for levels in one.levels] == [levels.to_pylist() for levels in other.levels]
            assert [str(levels.type) for levels in one.levels] == [str(levels.type) for levels in other.levels]
            for table, its in zip(one.tables, other.tables, strict=True):
                np.testing.assert_array_equal(table, its)
        else:
            assert_same_statistic(one, other, exact=False)


def assert_same_moments(one: Moments, other: Moments) -> None:
    np.testing.assert_array_equal(one.weight, other.weight)
    spread = np.sqrt(one.variance())
    np.testing.assert_array_less(np.abs(one.mean - other.mean + one.mean_low - other.mean_low), 1e-12 * spread + 1e-300)
    np.testing.assert_allclose(one.scatter + one.scatter_low, other.scatter + other.scatter_low, rtol=1e-12)


def _floats_agree(a: np.ndarray, b: np.ndarray, exact: bool, scale: np.ndarray | float = 0.0) -> None:
    """Cell by cell: to the bit, or to 1e-12 of the larger of the cell and its scale."""
    if exact:
        np.testing.assert_array_equal(a, b)
    else:
        assert (np.abs(a - b) <= 1e-12 * np.maximum(np.abs(a), scale)).all(), np.abs(a - b).max()


def assert_same_sums(a: ExactSums, b: ExactSums) -> None:
    """The same numbers, written with the same digits."""
    assert a.low == b.low
    np.testing.assert_array_equal(a.limbs, b.limbs)


def assert_same_statistic(a: Any, b: Any, exact: bool, weight: float = 0.0) -> None:
    """Equal to the bit; or to 1e-12, counts to 1e-12 of such a weight."""
    assert type(a) is type(b)
    if isinstance(a, Combined):
        for one, other in zip(a.parts, b.parts, strict=True):
            assert_same_statistic(one, other, exact, weight)
    elif isinstance(a, Levels):
        for one, other in zip(a.levels, b.levels, strict=True):
            assert one.to_pylist() == other.to_pylist()
        for one, other in zip(a.tables, b.tables, strict=True):
            _floats_agree(one, other, exact, weight)
    elif isinstance(a, Totals):
        _floats_agree(a.present, b.present, exact)
        _floats_agree(a.total, b.total, exact)
        if exact:
            assert_same_sums(a.rows, b.rows)
            assert_same_sums(a.sums, b.sums)
    elif isinstance(a, Tuples):
        for one, other in zip(a.levels, b.levels, strict=True):
            assert one.to_pylist() == other.to_pylist()
        np.testing.assert_array_equal(a.tuples, b.tuples)
        _floats_agree(a.table, b.table, exact, weight)
    elif isinstance(a, Words):
        a, b = a.in_sorted_order, b.in_sorted_order
        for one, other in zip(a.vocabularies, b.vocabularies, strict=True):
            assert one.array.to_pylist() == other.array.to_pylist()
        for one, other in zip((*a.tables, a.texts), (*b.tables, b.texts), strict=True):
            _floats_agree(one, other, exact, weight)
    elif isinstance(a, Bins):
        for one, other in zip(a.columns, b.columns, strict=True):
            assert one.exponent == other.exponent
            np.testing.assert_array_equal(one.edges, other.edges)
            _floats_agree(one.table, other.table, exact, weight)
    elif exact:
        assert isinstance(a, Moments | Scatter)
        assert (a.rounding_error is None) == (b.rounding_error is None)
        for name in ("present", "first", "second"):
            assert_same_sums(getattr(a, name), getattr(b, name))
    else:
        assert isinstance(a, Moments | Scatter)
        _floats_agree(a.weight, b.weight, exact)
        spread = a.scatter + a.scatter_low
        if isinstance(a, Scatter):  # a covariance is as exact as the variances it belongs to
            own = np.diagonal(spread, axis1=1, axis2=2)
            scale = np.sqrt(own[:, :, None] * own[:, None, :])
            deviation = np.sqrt(own)
        else:
            scale, deviation = 0.0, np.sqrt(spread)
        _floats_agree(a.mean + a.mean_low, b.mean + b.mean_low, exact, deviation)
        _floats_agree(spread, b.scatter + b.scatter_low, exact, scale)


def assert_same_counts(a: Counts, b: Counts, exact: bool, weight: float = 0.0) -> None:
    assert a.classes.tolist() == b.classes.tolist()
    np.testing.assert_array_equal(a.class_weight, b.class_weight)
    assert (a.rows, a.unlabelled) == (b.rows, b.unlabelled)
    for one, other in zip(a.statistics, b.statistics, strict=True):
        assert_same_statistic(one, other, exact, weight)
