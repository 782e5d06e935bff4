"""The cells and the labels of a loss matrix."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from deciban.errors import LossError
from deciban.util.text_tables import spelled_alike

Cell = Any  # a number, the name of a column that holds one for each row, or an array with one for each row


def as_cells(costs: Any) -> npt.NDArray[np.object_]:
    """The matrix with one object for each cost, which may be an array."""
    if not isinstance(costs, np.ndarray):
        try:
            rows = [list(row) for row in costs]
        except TypeError:
            raise LossError(f"a loss is a matrix of decisions by classes, not {costs!r}") from None
        if not rows or not rows[0]:
            raise LossError("the loss is empty; give a cost for each decision and class")
        if any(len(row) != len(rows[0]) for row in rows):
            raise LossError("the rows of the loss have different lengths; give a cost for every class in each")
        cells = np.empty((len(rows), len(rows[0])), dtype=object)
        for place in np.ndindex(cells.shape):
            cells[place] = rows[place[0]][place[1]]
        return cells
    if costs.ndim == 3:  # row by decision by truth
        cells = np.empty(costs.shape[1:], dtype=object)
        for place in np.ndindex(cells.shape):
            cells[place] = costs[(slice(None), *place)]
        return cells
    return costs.astype(object)


def is_number(cell: Cell) -> bool:
    """Whether a cost is a number; true and false are none."""
    return isinstance(cell, int | float | np.integer | np.floating) and not isinstance(cell, bool)


def is_constant(cells: npt.NDArray[np.object_]) -> bool:
    """Whether a decision costs the same number whatever is true."""
    return all(is_number(cell) and cell == cells[0] for cell in cells)


def check_cell(cell: Cell, place: str) -> None:
    """Refuse anything but a finite number, the name of a column or an array."""
    if is_number(cell):
        try:
            finite = bool(np.isfinite(float(cell)))
        except OverflowError:
            finite = False
        if not finite:
            raise LossError(f"the cost {place} is {cell}; give a finite number")
    elif not isinstance(cell, str) and np.ndim(cell) != 1:
        raise LossError(f"the cost {place} is {cell!r}; give a number, a column's name or an array")


def parse_cell(cell: str) -> float | str:
    """A number where the text is one; otherwise the name of a column."""
    try:
        return float(cell)
    except ValueError:
        return cell.strip()


def cell_text(cell: Cell) -> str:
    """A cost as it is printed."""
    return f"{float(cell):g}" if is_number(cell) else (cell if isinstance(cell, str) else "per row")


def plain_labels(labels: Any) -> tuple[Any, ...]:
    """Labels as Python has them; dates stay as NumPy has them."""
    if isinstance(labels, set | frozenset):
        raise LossError("the labels of a loss stand in an order; give a list, not a set")
    return tuple(
        label.item()
        if isinstance(label, np.generic) and not isinstance(label, np.datetime64 | np.timedelta64)
        else label
        for label in labels
    )


def find_label(label: Any, among: Sequence[Any]) -> int | None:
    """The position of a label: the same one, or, as files know only text, the one that is spelled the same."""
    for k, other in enumerate(among):
        if type(other) is type(label) and other == label:
            return k
    equal = [k for k, other in enumerate(among) if bool(other == label)]
    spelled = [k for k, other in enumerate(among) if spelled_alike(other, label)]
    for found in (equal, spelled):
        if len(found) > 1:
            raise LossError(f"the label {label!r} may be any of {[among[k] for k in found]}; give it exactly")
        if found:
            return found[0]
    return None
