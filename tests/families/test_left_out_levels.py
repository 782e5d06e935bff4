"""Leaving a row out of few rows, by counting the others."""

from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from deciban import Categorical
from deciban.families.base.contract import LeftOutRows, score_by_refitting


@pytest.mark.parametrize("levels", [None, ("x", "y", "z")])
@pytest.mark.parametrize("unseen", ["ignore", "smooth"])
@pytest.mark.parametrize("alpha", [0.0, 1.0])
@pytest.mark.parametrize("proportional", [False, True])
def test_evidence_is_that_of_the_other_rows(alpha: float, proportional: bool, unseen: Any, levels: Any) -> None:
    """Also where no row, or none of a class, or none of a level is left: a share is never 0 / 0."""
    family, slot = Categorical(alpha, levels, unseen, proportional), np.zeros(1, dtype=np.int64)
    for cells, labels in product(["x", "xy", "xx", "xyz", "xxy"], ["0", "01", "00", "001", "012"]):
        n = len(cells)
        if n != len(labels):
            continue
        column, y = [pa.array(list(cells))], np.array(list(labels), dtype=np.int32)
        counted, rows = family.count(column, y, np.ones(n), 3), LeftOutRows(y, np.ones(n))
        found, expected = np.zeros((2, n, 1, 3))
        with np.errstate(divide="ignore"):
            family.score_left_out(counted, column, rows, slot, found)
            score_by_refitting(family, counted, column, rows, slot, expected)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12, err_msg=f"{cells} {labels}")


@pytest.mark.parametrize("alpha", [0.0, 1.0])
@pytest.mark.parametrize("unseen", ["ignore", "smooth"])
def test_new_rows_may_have_values_that_were_not_counted(alpha: float, unseen: Any) -> None:
    """Nothing is removed with such rows, as in `retune(already_learned=False)`."""
    family, y, slot = (
        Categorical(alpha, unseen=unseen),
        np.array([0, 1, 0], dtype=np.int32),
        np.zeros(1, dtype=np.int64),
    )
    counted = family.count([pa.array(["x", "x", "x"])], y, np.ones(3), 2)
    cells, found, expected = [pa.array(["x", "new", None])], *np.zeros((2, 3, 1, 2))
    with np.errstate(divide="ignore"):
        family.score_left_out(counted, cells, LeftOutRows(y, np.zeros(3)), slot, found)
        family.estimate(counted).score(cells, np.ones(1), slot, expected)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
