"""Checks of values."""

import numpy as np
import pytest

from deciban import kernels


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_all_finite(kind: type) -> None:
    for values, finite in (([0.0, 1e30], True), ([], True), ([1.0, np.nan], False), ([-np.inf, 2.0], False)):
        assert kernels.cell_counts.all_finite(np.array(values, dtype=kind)) is finite


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_all_within(kind: type) -> None:
    for values, within in (([0.0, np.nan, 5.0], True), ([], True), ([5.1], False), ([np.nan, -0.1], False)):
        assert kernels.cell_counts.all_within(np.array(values, dtype=kind), 0.0, 5.0) is within
