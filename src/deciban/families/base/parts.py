"""Parts of cells that have a distribution of their own: month, weekday and hour of a date, beginnings of a text."""

from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deciban.errors import Argument, BadCell, UsageError
from deciban.tables.cells import drop_infinite, is_moment, is_text
from deciban.tables.table import decode_cells
from deciban.util.arrays import Integers
from deciban.util.arrow_values import as_values

DatePart = Literal["month", "weekday", "hour"]

TextPart = Literal["first word", "first character", "first 2 characters", "first 3 characters"]

Part = DatePart | TextPart

DATE_PARTS: tuple[DatePart, ...] = get_args(DatePart)

TEXT_PARTS: tuple[TextPart, ...] = get_args(TextPart)

# Number of characters of the parts that are beginnings of a text; the first word ends before the first space.
PREFIX_LENGTHS: dict[str, int] = dict(zip(TEXT_PARTS[1:], (1, 2, 3), strict=True))

# Names of months and weekdays, counted from 1.
NAMES: dict[str, tuple[str, ...]] = {
    "month": (
        *("January", "February", "March", "April", "May", "June"),
        *("July", "August", "September", "October", "November", "December"),
    ),
    "weekday": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
}


def check_part(part: Any) -> None:
    """Raise a UsageError if this is not None or the name of a part."""
    if part is not None and part not in (*DATE_PARTS, *TEXT_PARTS):
        raise UsageError(
            f"Categorical(part={part!r}): expected one of {', '.join(map(repr, (*DATE_PARTS, *TEXT_PARTS)))}"
        )


def read_part(cells: pa.Array, part: Part, column: int = 0) -> pa.Array:
    """Return a part of each cell; raise BadCell, with this column, for cells that do not have it.

    Months count from 1, weekdays from Monday = 1, and hours from 0. Timestamps with a time zone are read in UTC.
    Infinite dates are missing.

    >>> days = pa.array(["2024-02-29", None]).cast(pa.date32())
    >>> read_part(days, "month").to_pylist(), read_part(days, "weekday").to_pylist()
    ([2, None], [4, None])
    >>> read_part(pa.array(["ford torino", "A 5"]), "first word").to_pylist()
    ['ford', 'A']
    """
    if pa.types.is_dictionary(cells.type):
        cells = as_values(cells, column)
    wanted = is_moment if part in DATE_PARTS else is_text
    if pa.types.is_null(cells.type):
        return cells
    if not wanted(cells.type):
        expected, start = ("dates", "read the column as dates, or use ") if part in DATE_PARTS else ("text", "use ")
        raise BadCell(
            column,
            None,
            f"found {cells.type}, expected {expected}, to read the {part}",
            (start, Argument("family", "Categorical"), " for this column"),
        )
    if part in DATE_PARTS:
        unit = cells.type.unit if pa.types.is_timestamp(cells.type) else "ms"
        moments = drop_infinite(cells).cast(pa.timestamp(unit))
        found = pc.day_of_week(moments, count_from_zero=False) if part == "weekday" else getattr(pc, part)(moments)
        return found.cast(pa.int64())
    texts = pa.array(decode_cells(cells), pa.string())
    if part == "first word":
        return pc.list_element(pc.split_pattern(texts, " ", max_splits=1), 0)
    return pc.utf8_slice_codeunits(texts, 0, PREFIX_LENGTHS[part])


def name_part(part: str | None, value: Any) -> Any:
    """Return the name of a month or a weekday; any other part, and None, as it is.

    >>> name_part("month", 2), name_part("weekday", 4), name_part("hour", 17)
    ('February', 'Thursday', 17)
    """
    return value if value is None or part not in NAMES else NAMES[part][value - 1]


def sample_moments(values: Integers, part: Part) -> pa.Array:
    """Return a timestamp of 1970 with each of these parts."""
    if part == "month":
        months = (values - 1).astype("datetime64[M]").astype("datetime64[us]") + np.timedelta64(14, "D")
        return pa.array(months)
    first_monday, hour, day = 4, np.timedelta64(3_600_000_000, "us"), np.timedelta64(86_400_000_000, "us")
    steps = (values - 1 + first_monday) * day if part == "weekday" else values * hour
    return pa.array(np.datetime64(0, "us") + steps)
