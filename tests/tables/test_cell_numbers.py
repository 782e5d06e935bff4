"""Numbers of cells, and cells of numbers."""

import datetime as dt
import decimal

import numpy as np
import pyarrow as pa
import pytest

from deciban.errors import BadCell
from deciban.tables.cells import as_numbers, from_numbers


@pytest.mark.parametrize(
    ("cell", "number"),
    [
        (dt.date(1970, 1, 2), 1.0),
        (dt.datetime(2020, 1, 1, 6), 18262.25),
        (dt.time(0, 1), 60.0),
        (dt.timedelta(minutes=1), 60.0),
        (decimal.Decimal("1.50"), 1.5),
        (True, 1.0),
        (7, 7.0),
    ],
    ids=str,
)
def test_cells_of_every_kind_as_numbers(cell: object, number: float) -> None:
    for cells in (pa.array([cell, None]), pa.array([cell, None]).dictionary_encode()):
        np.testing.assert_array_equal(as_numbers(cells), [number, np.nan])


def test_a_text_is_no_number() -> None:
    with pytest.raises(BadCell, match="found 'x' \\(string\\), expected a number"):
        as_numbers(pa.array([None, "x"]))
    assert np.isnan(as_numbers(pa.array([None, None], pa.string()))).all()


@pytest.mark.parametrize("kind", ["int64", "date32[day]", "timestamp[us]", "time64[us]", "duration[us]"])
def test_drawn_numbers_stay_within_the_type_of_their_column(kind: str) -> None:
    drawn = from_numbers(np.array([-1e300, -1e19, 0.0, 1e19, 1e300, np.nan]), kind)
    assert drawn.null_count == 1
    assert len(drawn.to_pylist()) == 6  # of years that Python has
    assert drawn.to_pylist()[0] == drawn.to_pylist()[1]


@pytest.mark.parametrize(
    "kind", ["bool", "int64", "date32[day]", "timestamp[us]", "time64[us]", "duration[us]", "double"]
)
def test_numbers_become_the_cells_that_they_were_read_from(kind: str) -> None:
    numbers = np.array([0.0, 1.0, np.nan])
    np.testing.assert_array_equal(as_numbers(from_numbers(numbers, kind)), numbers)
