"""Decimal numbers become the doubles nearest to them."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from deciban.tables.cells import as_numbers
from deciban.util.arrow_values import as_doubles, as_values


def expected(cells: list[Decimal | None]) -> list[float | None]:
    """As Python rounds them."""
    return [None if cell is None else float(cell) for cell in cells]


@given(st.lists(st.none() | st.integers(-(10**20), 10**20), max_size=20), st.integers(-3, 30), st.integers(0, 3))
def test_decimals_are_rounded_as_python_rounds_them(digits: list[int | None], scale: int, skipped: int) -> None:
    cells = [None if digit is None else Decimal(digit).scaleb(-scale) for digit in digits]
    array = pa.array(cells, pa.decimal256(60, scale))
    assert as_doubles(array.slice(skipped)).to_pylist() == expected(cells[skipped:])


@pytest.mark.parametrize("kind", [pa.decimal32(9, 2), pa.decimal64(18, 2), pa.decimal128(18, 2), pa.decimal128(38, 2)])
def test_every_width_of_decimals_is_read(kind: pa.DataType) -> None:
    cells = [Decimal("0.30"), None, Decimal("-17.35"), Decimal("1234567.89")]
    array = pa.array(cells, kind)
    assert as_doubles(array).to_pylist() == expected(cells)
    np.testing.assert_array_equal(as_numbers(array), [0.3, np.nan, -17.35, 1234567.89])
    assert as_values(array).to_pylist() == expected(cells)


def test_whole_decimals_are_integers_as_levels() -> None:
    assert as_values(pa.array([Decimal("3.00"), None], pa.decimal128(9, 2))).equals(pa.array([3, None]))
