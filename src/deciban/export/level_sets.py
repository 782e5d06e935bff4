"""The values of discrete columns, as JSON has them; groups that have the same ones share them."""

from typing import Any

import numpy as np
import pyarrow as pa

from deciban.errors import UsageError
from deciban.export.encoding import number

# Whole numbers beyond this are texts: a number of JavaScript would lose their last digits.
LARGEST_EXACT = 1 << 53


class LevelSets:
    """Sets of levels, each once, and the name of the column that the next ones belong to."""

    def __init__(self) -> None:
        self.sets: list[dict[str, Any]] = []
        self._place: dict[tuple[Any, ...], int] = {}

    def place_of(self, levels: pa.Array, column_name: str) -> int:
        """The place of these levels among all sets; a UsageError that names the column where they cannot be written."""
        kind, values = levels_as_json(levels, column_name)
        key = (kind, *values)
        if key not in self._place:
            self._place[key] = len(self.sets)
            self.sets.append({"type": kind, "values": values})
        return self._place[key]

    def type_of(self, place: int) -> str:
        """What the levels of a set are: text, integer, number, flag, date, time, or none."""
        return str(self.sets[place]["type"])


def levels_as_json(levels: pa.Array, column_name: str) -> tuple[str, list[Any]]:
    kind = levels.type
    if pa.types.is_null(kind):
        return "none", []
    if pa.types.is_string(kind):
        return "text", levels.to_pylist()
    if pa.types.is_int64(kind):
        return "integer", [exact(value) for value in levels.to_pylist()]
    if pa.types.is_float64(kind):
        return "number", [number(value) for value in levels.to_pylist()]
    if pa.types.is_boolean(kind):
        return "flag", levels.to_pylist()
    if pa.types.is_date(kind) or (pa.types.is_timestamp(kind) and kind.tz is None):
        return "date", _microseconds(levels.cast(pa.timestamp("us"), safe=False))
    if pa.types.is_time(kind):
        return "time", _microseconds(levels.cast(pa.time64("us"), safe=False))
    raise UsageError(
        f"column {column_name!r}: its values are {kind}, which cannot be exported; "
        f"turn the column into text or numbers, and fit again"
    )


def exact(value: int) -> int | str:
    """A whole number, as text where a double would not hold it.

    >>> exact(7), exact(2**60)
    (7, '1152921504606846976')
    """
    return value if abs(value) < LARGEST_EXACT else str(value)


def _microseconds(levels: pa.Array) -> list[str]:
    return [str(value) for value in np.asarray(levels.cast(pa.int64())).tolist()]
