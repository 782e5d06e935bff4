"""The places of cells among levels and between cuts, as nodes of an ONNX graph: those of many columns at a time."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from deciban.export.onnx.cells import Cells
from deciban.export.onnx.tensors import Tensor, as_constant
from deciban.families.base.lowering import MISSING_PLACE, OTHER_PLACE, CutPlace, LevelPlace

CellPlace = LevelPlace | CutPlace

# Microseconds in the unit that cells of dates, and of times, are numbers of: a day, a second.
MICROSECONDS = {"date": 86_400e6, "time": 1e6}

# What stands for a missing text, unless it is a level.
MISSING_TEXT = ""


class Places:
    """The places of single cells, row by place; each kind of place is found for all its columns at once."""

    def __init__(self, cells: Cells, places: Iterable[CellPlace]) -> None:
        alike: dict[Any, list[CellPlace]] = defaultdict(list)
        for place in dict.fromkeys(places):
            alike[_kind(place, cells)].append(place)
        found = [_WRITERS[kind[0]](cells, some) for kind, some in alike.items()]
        self._order = {place: k for k, place in enumerate(place for some in alike.values() for place in some)}
        self._all = cells.graph.side_by_side(found) if found else None

    def of(self, places: Sequence[CellPlace]) -> Tensor:
        """Some of the places, row by place, whole numbers."""
        assert self._all is not None, "there are places"
        columns = [self._order[place] for place in places]
        return self._all if columns == [*range(len(self._order))] else self._all.take(np.array(columns), 1)


def _kind(place: CellPlace, cells: Cells) -> tuple[Any, ...]:
    """The places of one kind are written together."""
    if isinstance(place, CutPlace):
        return "cuts", len(place.cuts).bit_length()
    if _is_consecutive(place):
        return ("whole",)
    return "levels", cells.are_texts(place.column), place.kind, place.levels, place.merged


def _is_consecutive(place: LevelPlace) -> bool:
    """Whether the levels are whole numbers, each one more than the one before."""
    if place.kind != "number" or not place.levels:
        return False
    levels = np.array(place.levels)
    return bool(levels[0] == np.floor(levels[0]) and (np.diff(levels) == 1.0).all())


def _among_whole_numbers(cells: Cells, places: Sequence[LevelPlace]) -> Tensor:
    numbers = cells.numbers([place.column for place in places])
    low, high = (np.array([place.levels[end] for place in places]) for end in (0, -1))
    first, other = (np.array(values, dtype=np.float64) for values in zip(*map(_first_and_other, places), strict=True))
    level = numbers.equals(numbers.floor()) & (numbers >= low) & (numbers <= high)
    none = cells.graph.where(numbers.is_nan(), np.array(float(MISSING_PLACE)), other)
    return cells.graph.where(level, numbers - (low - first), none).cast(np.int64)


def _first_and_other(place: LevelPlace) -> tuple[int, int]:
    """The places of the first level, and of a value that is none of them."""
    return place.first, MISSING_PLACE if place.merged else OTHER_PLACE


def _among_levels(cells: Cells, places: Sequence[LevelPlace]) -> Tensor:
    """By a dictionary, in which what stands for a missing cell has its place too."""
    columns, are_texts = [place.column for place in places], cells.are_texts(places[0].column)
    first, other = _first_and_other(places[0])
    known = {key: first + k for k, key in enumerate(_keys(places[0]))}
    known.setdefault(MISSING_TEXT if are_texts else np.nan, MISSING_PLACE)
    return cells.graph.node(
        "LabelEncoder",
        cells.texts(columns) if are_texts else cells.numbers(columns),
        keys_tensor=as_constant(np.array([*known], dtype=object if are_texts else np.float64)),
        values_tensor=as_constant(np.array([*known.values()], dtype=np.int64)),
        default_tensor=as_constant(np.array([other], dtype=np.int64)),
    )


def _keys(place: LevelPlace) -> list[Any]:
    """The levels as an input has them."""
    if place.kind in MICROSECONDS:
        return [float(level) / MICROSECONDS[place.kind] for level in place.levels]
    return [*place.levels]


def _between_cuts(cells: Cells, places: Sequence[CutPlace]) -> Tensor:
    """1 + how many cuts do not lie above, by halving what is left of them; cuts that are not there lie above all."""
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
