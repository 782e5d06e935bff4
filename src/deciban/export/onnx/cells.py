"""Cells in an ONNX graph: a matrix or one input per column, their places, and missing cells."""

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from deciban.export.ir import TermModel
from deciban.export.onnx.tensors import Graph, Tensor, as_constant
from deciban.families.base.lowering import MISSING_PLACE, OTHER_PLACE, CellPlace, CutPlace, LevelPlace
from deciban.model.partial_rows import PartialRows


class Cells(Protocol):
    """Cells of columns, which are identified by index."""

    @property
    def graph(self) -> Graph: ...

    def rows(self) -> Tensor:
        """Return the number of rows, as a tensor of one number."""
        ...

    def are_texts(self, column: int) -> bool:
        """Return True if the cells of a column are texts."""
        ...

    def numbers(self, columns: Sequence[int]) -> Tensor:
        """Return doubles, row by column; NaN for missing cells."""
        ...

    def texts(self, columns: Sequence[int]) -> Tensor:
        """Return texts, row by column."""
        ...


class MatrixCells:
    """Columns of a matrix of doubles."""

    def __init__(self, matrix: Tensor, width: int) -> None:
        self.matrix, self.width, self.graph = matrix, width, matrix.graph

    def rows(self) -> Tensor:
        return self.matrix.size(0)

    def are_texts(self, column: int) -> bool:
        return False

    def numbers(self, columns: Sequence[int]) -> Tensor:
        return self.matrix if [*columns] == [*range(self.width)] else self.matrix.take(np.array(columns), 1)

    def texts(self, columns: Sequence[int]) -> Tensor:
        raise AssertionError("a matrix of doubles has no texts")


class InputCells:
    """Columns as separate inputs of shape (rows, 1); some of them are texts."""

    def __init__(self, graph: Graph, inputs: Mapping[int, Tensor], texts: Container[int]) -> None:
        self.graph, self.inputs, self._texts = graph, inputs, texts
        self._found: dict[tuple[int, ...], Tensor] = {}

    def are_texts(self, column: int) -> bool:
        return column in self._texts

    def rows(self) -> Tensor:
        return next(iter(self.inputs.values())).size(0)

    def numbers(self, columns: Sequence[int]) -> Tensor:
        if (key := tuple(columns)) not in self._found:
            self._found[key] = self.graph.side_by_side([self.inputs[column] for column in key])
        return self._found[key]

    texts = numbers


# Microseconds per unit of numeric dates (days) and times (seconds).
MICROSECONDS = {"date": 86_400e6, "time": 1e6}

# Representation of a missing text, unless it is a level.
MISSING_TEXT = ""


class Places:
    """Places of single cells, row by place; each kind of place is computed for all its columns at once."""

    def __init__(self, cells: Cells, places: Iterable[CellPlace]) -> None:
        alike: dict[Any, list[CellPlace]] = defaultdict(list)
        for place in dict.fromkeys(places):
            alike[_kind(place, cells)].append(place)
        found = [_WRITERS[kind[0]](cells, some) for kind, some in alike.items()]
        self._order = {place: k for k, place in enumerate(place for some in alike.values() for place in some)}
        self._all = cells.graph.side_by_side(found) if found else None

    def of(self, places: Sequence[CellPlace]) -> Tensor:
        """Return some of the places, row by place, as integers."""
        assert self._all is not None, "there are places"
        columns = [self._order[place] for place in places]
        return self._all if columns == [*range(len(self._order))] else self._all.take(np.array(columns), 1)


def _kind(place: CellPlace, cells: Cells) -> tuple[Any, ...]:
    """Return a key; places with equal keys are computed together."""
    if isinstance(place, CutPlace):
        return "cuts", len(place.cuts).bit_length()
    if _is_consecutive(place):
        return "whole", place.part
    return "levels", cells.are_texts(place.column), place.kind, place.levels, place.merged, place.part


def _is_consecutive(place: LevelPlace) -> bool:
    """Return True if the levels are consecutive integers."""
    if place.kind != "number" or not place.levels:
        return False
    levels = np.array(place.levels)
    return bool(levels[0] == np.floor(levels[0]) and (np.diff(levels) == 1.0).all())


def _among_whole_numbers(cells: Cells, places: Sequence[LevelPlace]) -> Tensor:
    numbers = _numbers_of(cells, places)
    low, high = (np.array([place.levels[end] for place in places]) for end in (0, -1))
    first, other = (np.array(values, dtype=np.float64) for values in zip(*map(_first_and_other, places), strict=True))
    level = numbers.equals(numbers.floor()) & (numbers >= low) & (numbers <= high)
    none = cells.graph.select(numbers.is_nan(), np.array(float(MISSING_PLACE)), other)
    return cells.graph.select(level, numbers - (low - first), none).cast(np.int64)


def _first_and_other(place: LevelPlace) -> tuple[int, int]:
    """Return the places of the first level, and of an unknown value."""
    return place.first, MISSING_PLACE if place.merged else OTHER_PLACE


def _among_levels(cells: Cells, places: Sequence[LevelPlace]) -> Tensor:
    """Return places from a dictionary that also contains the missing value."""
    columns, are_texts = [place.column for place in places], cells.are_texts(places[0].column)
    first, other = _first_and_other(places[0])
    known = {key: first + k for k, key in enumerate(_keys(places[0]))}
    known.setdefault(MISSING_TEXT if are_texts else np.nan, MISSING_PLACE)
    return cells.graph.node(
        "LabelEncoder",
        cells.texts(columns) if are_texts else _numbers_of(cells, places),
        keys_tensor=as_constant(np.array([*known], dtype=object if are_texts else np.float64)),
        values_tensor=as_constant(np.array([*known.values()], dtype=np.int64)),
        default_tensor=as_constant(np.array([other], dtype=np.int64)),
    )


def _numbers_of(cells: Cells, places: Sequence[LevelPlace]) -> Tensor:
    """Return the cells of places with the same part, or these parts of dates, as doubles; NaN for missing cells."""
    numbers = cells.numbers([place.column for place in places])
    return numbers if places[0].part is None else _PARTS[places[0].part](numbers)


def _month_of(days: Tensor) -> Tensor:
    """Return the month; within the 400 years from March 1 of the year 0, a year begins in March."""
    day = _remainder(days.floor() + 719_468.0, 146_097.0)
    leaps = (day / 1_460.0).floor() - (day / 36_524.0).floor() + (day / 146_096.0).floor()
    year = ((day - leaps) / 365.0).floor()
    day = day - (year * 365.0 + (year / 4.0).floor() - (year / 100.0).floor())
    return _remainder(((day * 5.0 + 2.0) / 153.0).floor() + 2.0, 12.0) + 1.0


def _weekday_of(days: Tensor) -> Tensor:
    return _remainder(days.floor() + 3.0, 7.0) + 1.0


def _hour_of(days: Tensor) -> Tensor:
    """Return the hour; doubles of days determine microseconds from 1790 to 2149."""
    microseconds = days.graph.node("Round", days * MICROSECONDS["date"])
    return (_remainder(microseconds, MICROSECONDS["date"]) / 3_600e6).floor()


def _remainder(number: Tensor, divisor: float) -> Tensor:
    """Return the remainder, which is not negative."""
    return number - (number / divisor).floor() * divisor


_PARTS: dict[str, Callable[[Tensor], Tensor]] = {"month": _month_of, "weekday": _weekday_of, "hour": _hour_of}


def _keys(place: LevelPlace) -> list[Any]:
    """Return the levels in the type of the input."""
    if place.kind in MICROSECONDS:
        return [float(level) / MICROSECONDS[place.kind] for level in place.levels]
    return [*place.levels]


def _between_cuts(cells: Cells, places: Sequence[CutPlace]) -> Tensor:
    """Return 1 + the number of cuts not above each cell, by binary search; padding cuts are infinite."""
    numbers = cells.numbers([place.column for place in places])
    size = (1 << len(places[0].cuts).bit_length()) - 1
    cuts = np.array([(*place.cuts, *[np.nan] * (size - len(place.cuts))) for place in places]).reshape(
        len(places), size
    )
    count: Tensor | None = None
    step = (size + 1) // 2
    while step:
        probe: Any = cuts[:, step - 1]
        if count is not None:
            probe = cells.graph.constant(cuts.ravel()).take(count + (size * np.arange(len(places)) + step - 1), 0)
        more = (numbers >= probe).cast(np.int64) * step
        count, step = more if count is None else count + more, step // 2
    there = (~numbers.is_nan()).cast(np.int64)
    return there if count is None else there + count


_WRITERS: dict[str, Any] = {"cuts": _between_cuts, "whole": _among_whole_numbers, "levels": _among_levels}


class KnownCells:
    """Unknown cells, the bias of the known columns, and the scale of each row."""

    def __init__(self, model: TermModel, cells: Cells, places: Places, partial: PartialRows) -> None:
        numbers = [column for column, place in model.presence.items() if isinstance(place, CutPlace)]
        texts = [column for column in model.presence if column not in numbers]
        found = [cells.numbers(numbers).is_nan()] if numbers else []
        if texts:
            found.append(places.of([model.presence[column] for column in texts]).equals(np.array(MISSING_PLACE)))
        self._columns = {column: k for k, column in enumerate((*numbers, *texts))}
        self.partial, self._order = partial, [*numbers, *texts]
        missing = cells.graph.side_by_side(found)
        present = (~missing).cast(np.float64)
        self.share = present @ partial.shares[self._order][:, None]
        evident = np.isin(self._order, partial.informative)[None, :]
        self._unknown = missing & ~((self.share >= np.array(partial.min_share)) & evident) if evident.any() else missing

    def unknown(self, columns: Sequence[int]) -> Tensor:
        """Return flags of unknown cells in these columns, row by column."""
        return self._unknown.take(np.array([self._columns[column] for column in columns]), 1)

    def bias(self) -> Tensor:
        """Return the sum of the offsets of the known columns, row by class."""
        return (~self._unknown).cast(np.float64) @ self.partial.offsets[self._order]

    def scale(self) -> Tensor:
        """Return the scale of each row, as a matrix of one column."""
        shares, scales = (np.array(some) for some in zip(*self.partial.scale_points, strict=True))
        slopes = np.diff(scales) / np.diff(shares)
        turns = np.diff(slopes, prepend=0.0, append=0.0)
        beyond = (self.share - shares[None, :]).at_least(np.array(0.0))
        return beyond @ turns[:, None] + np.array(scales[0])
