"""Assertions that tests of several rooms share."""

import numpy as np

from deciban import Counts
from deciban.statistics import Levels, Moments
from deciban.testing import assert_same_statistic


def assert_same_typed_counts(a: Counts, b: Counts) -> None:
    """The same counts, by the same schema, of labels and levels of the same types."""
    assert a.schema == b.schema
    assert [(type(label), label) for label in a.classes.tolist()] == [
        (type(label), label) for label in b.classes.tolist()
    ]
    assert a.classes.dtype == b.classes.dtype
    np.testing.assert_array_equal(a.class_weight, b.class_weight)
    assert (a.rows, a.unlabeled) == (b.rows, b.unlabeled)
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
