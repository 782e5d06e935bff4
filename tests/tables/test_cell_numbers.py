"""Numbers of cells, and cells of numbers."""

import datetime as dt
import decimal

import numpy as np
import pyarrow as pa
import pytest

from deciban.errors import BadCell
from deciban.tables import table as tables
from deciban.tables.cells import as_numbers, from_numbers
from deciban.tables.table import Frame, missing_cells


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


DAYS = pa.array([0, None, 2**31 - 1, 5], pa.int32()).cast(pa.date32())  # the third is infinite
FRAMES = {
    "doubles": [pa.array([1.5, None, np.nan, -0.0]), pa.array([1.0, 2.0, 3.0, np.inf])],
    "integers": [pa.array([1, None, 2**62 + 1, 4]), pa.array([1, 2, 3, 2**64 - 1], pa.uint64())],
    "narrow": [pa.array([1, 2, 2**31 - 1, None], pa.int32()), pa.array([0.1, None, np.nan, 4.0], pa.float32())],
    "mixed": [pa.array([1.5, None, np.nan, 4.0]), pa.array([True, None, False, True]), DAYS],
    "text": [pa.array([1, None, 3, 4]), pa.array(["a", None, "b", "a"]), pa.array([None, 0.5, np.nan, 1.0])],
    "nothing": [pa.array([1.0, 2.0, 3.0, 4.0]), pa.nulls(4)],
}


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("columns", FRAMES.values(), ids=FRAMES)
def test_frames_give_the_numbers_of_their_columns(
    columns: list[pa.Array], kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read once or twice, alone or together, in any order, whole or in chunks; missing are null and NaN."""
    if not kept:
        monkeypatch.setattr(tables, "MAX_KEPT_CELLS", 0)
    names = [f"x{j}" for j in range(len(columns))]
    numeric = [j for j, column in enumerate(columns) if not pa.types.is_string(column.type)]
    expected = {j: as_numbers(columns[j]) for j in numeric}
    whole = pa.table(columns, names=names)
    for table in (whole, pa.concat_tables([whole.slice(0, 1), whole.slice(1)])):
        frame = Frame(table)
        for asked in ([numeric[0]], numeric, numeric[::-1], tuple(numeric)):
            found = frame.numbers(asked)
            assert found.dtype == np.float64
            assert frame.numbers([]).shape == (4, 0)
            np.testing.assert_array_equal(found, np.stack([expected[j] for j in asked], axis=1))
        missing = missing_cells(frame)
        cells = [
            [cell is None or (isinstance(cell, float) and np.isnan(cell)) for cell in column.to_pylist()]
            for column in (column.cast(pa.int32()) if pa.types.is_date(column.type) else column for column in columns)
        ]
        assert missing is not None
        np.testing.assert_array_equal(missing, np.array(cells).T)
    assert missing_cells(Frame(pa.table({"a": [1, 2], "b": ["x", "y"], "c": [0.5, np.inf]}))) is None
