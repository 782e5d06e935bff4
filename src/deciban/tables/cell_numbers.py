"""Numbers of cells, and cells of numbers: what the types of Arrow columns are read as."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deciban.errors import Argument, BadCell
from deciban.statistics.decimals import as_doubles
from deciban.statistics.levels import as_values
from deciban.util.arrays import Floats

# Where the numbers made of dates and times start, as error messages and the schema say it.
DATE_ORIGIN = "days since 1970-01-01"
TIME_ORIGIN = "seconds since midnight"

# The largest double that is an integer of 64 bits, and the days of the years 1 to 9999.
LARGEST_INTEGER = 2.0**63 - 1024.0
DAYS = (-719_162.0, 2_932_896.0)

# Dates and times are counted in microseconds.
DAY_MICROSECONDS, SECOND_MICROSECONDS = 86_400e6, 1e6


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type of cells, whatever the way they are stored."""
    if pa.types.is_dictionary(kind):
        return plain_type(kind.value_type)
    return pa.string() if pa.types.is_large_string(kind) or pa.types.is_string_view(kind) else kind


def is_text(kind: pa.DataType) -> bool:
    """Whether cells of this type are texts."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_numeric(kind: pa.DataType) -> bool:
    """Whether cells of this type can be read as numbers."""
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_temporal(kind)
        or pa.types.is_null(kind)
    )


def as_numbers(array: pa.Array, column: int = 0) -> Floats:
    """The cells as doubles, NaN where one is missing; dates and times count from their origin."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        array = as_values(array, column)
        kind = array.type
    if not is_numeric(kind):
        filled = pc.indices_nonzero(array.is_valid())
        if not len(filled):
            return np.full(len(array), np.nan)
        row = filled[0].as_py()
        problem = f"found {_shown(array[row].as_py())} ({kind}), expected a number"
        raise BadCell(
            column,
            row,
            problem,
            ("correct the cell, leave it empty, or use ", Argument("family", "Categorical"), " for this column"),
        )
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return _ticks(_finite(array).cast(pa.timestamp("us"), safe=False)) / DAY_MICROSECONDS
    if pa.types.is_time(kind):
        return _ticks(array.cast(pa.time64("us"), safe=False)) / SECOND_MICROSECONDS
    if pa.types.is_duration(kind):
        return _ticks(array.cast(pa.duration("us"), safe=False)) / SECOND_MICROSECONDS
    if pa.types.is_decimal(kind):
        array = as_doubles(array)
    elif not pa.types.is_float64(kind):
        array = array.cast(pa.float64(), safe=False)
    return np.asarray(array.to_numpy(zero_copy_only=False), dtype=np.float64)


def from_numbers(numbers: Floats, kind: str) -> pa.Array:
    """Numbers as cells of the type that they were read from; the ends of its range stand for what is beyond."""
    array = pa.array(numbers, from_pandas=True)
    if kind == "bool":
        return pc.greater(array, 0.5)
    if kind.startswith(("int", "uint")):
        return pc.round(_within(array, -LARGEST_INTEGER, LARGEST_INTEGER)).cast(pa.int64())
    if kind.startswith("date"):
        return pc.floor(_within(array, *DAYS)).cast(pa.int32()).cast(pa.date32())
    if kind.startswith("timestamp"):
        return _microseconds(array, *DAYS, DAY_MICROSECONDS).cast(pa.timestamp("us"))
    if kind.startswith("time"):
        return _microseconds(array, 0.0, 86_399.999999, SECOND_MICROSECONDS).cast(pa.time64("us"))
    if kind.startswith("duration"):
        return _microseconds(array, -9.2e12, 9.2e12, SECOND_MICROSECONDS).cast(pa.duration("us"))
    return array


def _microseconds(array: pa.Array, least: float, most: float, unit: float) -> pa.Array:
    """Numbers of days or seconds as whole microseconds, of which such a unit has so many."""
    return pc.round(pc.multiply(_within(array, least, most), unit)).cast(pa.int64())


def _within(array: pa.Array, least: float, most: float) -> pa.Array:
    return pc.min_element_wise(pc.max_element_wise(array, least, skip_nulls=False), most, skip_nulls=False)


def _finite(dates: pa.Array) -> pa.Array:
    """Dates, missing where they are infinite: DuckDB has the ends of the range of integers for these."""
    ticks = dates.cast(pa.int32() if pa.types.is_date32(dates.type) else pa.int64())
    end = np.iinfo(ticks.type.to_pandas_dtype()).max
    infinite = pc.or_(pc.equal(ticks, end), pc.equal(ticks, -end))
    return pc.if_else(infinite, pa.scalar(None, dates.type), dates) if pc.any(infinite).as_py() else dates


def _ticks(array: pa.Array) -> Floats:
    """The integers behind dates and times, NaN where one is missing."""
    return np.asarray(array.cast(pa.int64()).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))


def _shown(value: object) -> str:
    """A cell as error messages quote it."""
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
