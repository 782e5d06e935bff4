"""What mistakes cost."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from deciban.arrays import Floats
from deciban.errors import UsageError

# The label of the decision not to decide.
REJECT = "reject"

Cell = Any  # a number, the name of a column that holds one for each row, or an array with one for each row


@dataclass(frozen=True, eq=False)
class Loss:
    """What each decision costs under each truth. **Decision first, truth second**: `loss[decision, truth]`.

    costs: a matrix with a row for each decision and a column for each true class. A cell is a number, or, where the
        cost differs from row to row of the data, the name of a column of the table or an array.
    decisions, classes: their labels. Without, they are the classes of the model, in their order; decisions that are no
        classes (refer, wait, test) must have labels.

    >>> print(Loss([[0, 100], [1, 0]], decisions=["healthy", "sick"], classes=["healthy", "sick"]))
    decide   if healthy  if sick
    healthy           0      100
    sick              1        0
    """

    costs: Any
    decisions: tuple[Any, ...] | None = None
    classes: tuple[Any, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "costs", _as_cells(self.costs))
        for name in ("decisions", "classes"):
            labels = getattr(self, name)
            if labels is not None:
                object.__setattr__(self, name, tuple(np.asarray(labels, dtype=object).tolist()))
        if self.costs.ndim != 2 or not self.costs.size:
            raise UsageError(f"a loss is a matrix of decisions by classes; this one has shape {self.costs.shape}")
        for axis, what, labels in ((0, "decisions", self.decisions), (1, "classes", self.classes)):
            if labels is not None and len(labels) != self.costs.shape[axis]:
                raise UsageError(f"the loss has {self.costs.shape[axis]} {what}, but {len(labels)} labels for them")
            if labels is not None and len(set(labels)) != len(labels):
                raise UsageError(f"the {what} {list(labels)} of the loss are not all different")
        for decision, truth in np.ndindex(self.costs.shape):
            _check_cell(self.costs[decision, truth], self._place(decision, truth))
        self._warn_of_dear_truths()

    @classmethod
    def of(cls, given: Any) -> "Loss":
        """A loss from whatever says it: a Loss, a matrix, a mapping from (decision, truth) to cost, a mapping from a
        class to what it costs to miss it, a DataFrame with decisions down and truths across, or a CSV file of that."""
        if isinstance(given, Loss):
            return given
        if isinstance(given, str | Path):
            return cls.from_csv(given)
        if isinstance(given, Mapping):
            pairs = [isinstance(key, tuple) and len(key) == 2 for key in given]
            return cls.from_pairs(given) if pairs and all(pairs) else cls.false_negative(given)
        if hasattr(given, "columns") and hasattr(given, "index"):
            return cls(given.to_numpy(dtype=object), tuple(given.index), tuple(given.columns))
        return cls(given)

    @classmethod
    def zero_one(cls, classes: Sequence[Any]) -> "Loss":
        """Every mistake costs 1: least risk is highest posterior."""
        return cls(1.0 - np.eye(len(classes)), tuple(classes), tuple(classes))

    @classmethod
    def false_negative(cls, costs: Mapping[Any, float]) -> "Loss":
        """To miss a row of a class costs what is said of that class, whatever it is taken for."""
        classes = tuple(costs)
        matrix = np.tile(np.array([costs[label] for label in classes], dtype=object), (len(classes), 1))
        matrix[np.diag_indices(len(classes))] = 0.0
        return cls(matrix, classes, classes)

    @classmethod
    def from_pairs(cls, costs: Mapping[tuple[Any, Any], Cell]) -> "Loss":
        """From {(decision, truth): cost}; a right decision that is not named costs nothing."""
        decisions = tuple(dict.fromkeys(decision for decision, _ in costs))
        classes = tuple(dict.fromkeys(truth for _, truth in costs))
        matrix = np.empty((len(decisions), len(classes)), dtype=object)
        for k, decision in enumerate(decisions):
            for c, truth in enumerate(classes):
                if (decision, truth) not in costs and decision != truth:
                    raise UsageError(
                        f"the loss does not say what it costs to decide {decision!r} when {truth!r} is true"
                    )
                matrix[k, c] = costs.get((decision, truth), 0.0)
        return cls(matrix, decisions, classes)

    @classmethod
    def from_csv(cls, path: str | Path) -> "Loss":
        """From a file whose first line names the true classes and whose first column names the decisions."""
        import csv

        try:
            with Path(path).open(newline="", encoding="utf-8") as file:
                lines = [line for line in csv.reader(file) if line]
        except OSError as error:
            raise UsageError(f"the loss file {str(path)!r} cannot be read: {error.strerror}") from None
        if len(lines) < 2 or any(len(line) != len(lines[0]) for line in lines):
            raise UsageError(
                f"the loss file {str(path)!r} is no table of decisions by classes with names on both sides"
            )
        cells = [[_parsed(cell) for cell in line[1:]] for line in lines[1:]]
        return cls(np.array(cells, dtype=object), tuple(line[0] for line in lines[1:]), tuple(lines[0][1:]))

    def with_reject(self, cost: float) -> "Loss":
        """The same with one more decision, to leave the row undecided, at a fixed cost."""
        if not (isinstance(cost, int | float | np.number) and cost >= 0.0) or np.isnan(cost):
            raise UsageError(f"reject={cost!r}: give what it costs to leave a row undecided, at least 0")
        decisions = self.decisions if self.decisions is not None else self.classes
        if decisions is not None and REJECT in decisions:
            raise UsageError(f"the loss has a decision {REJECT!r} already; leave reject= out")
        row = np.full((1, self.costs.shape[1]), float(min(cost, 1e300)), dtype=object)
        named = None if decisions is None else (*decisions, REJECT)
        return Loss(np.concatenate([self.costs, row]), named, self.classes)

    def fitting(self, classes: Sequence[Any]) -> "Loss":
        """The loss with its columns in the order of these classes, and labels for all."""
        known = tuple(np.asarray(classes, dtype=object).tolist())
        costs = self.costs
        if self.classes is None:
            if costs.shape[1] != len(known):
                raise UsageError(
                    f"the loss has {costs.shape[1]} columns, the model {len(known)} classes {list(known)}; "
                    f"give a row for each decision and a column for each class"
                )
        else:
            place = {_spelling(label): k for k, label in enumerate(self.classes)}
            absent = [label for label in known if _spelling(label) not in place]
            strange = [label for label in self.classes if _spelling(label) not in {_spelling(one) for one in known}]
            if absent or strange:
                what = f"{absent[0]!r} has no column" if absent else f"{strange[0]!r} is no class of the model"
                raise UsageError(f"the loss does not fit the classes {list(known)}: {what}")
            costs = costs[:, [place[_spelling(label)] for label in known]]
        decisions = self.decisions
        if decisions is None:
            extra = costs.shape[0] - len(known)
            if extra == 1 and _is_constant(costs[-1]):
                decisions = (*known, REJECT)
            elif extra != 0:
                raise UsageError(
                    f"the loss has {costs.shape[0]} decisions for {len(known)} classes; name them by decisions=[…]"
                )
            else:
                decisions = known
        else:
            same = {_spelling(label): label for label in known}
            decisions = tuple(same.get(_spelling(label), label) for label in decisions)
        return Loss(costs, decisions, known)

    @property
    def varies(self) -> bool:
        """Whether some cost differs from row to row."""
        return any(not _is_number(cell) for cell in self.costs.flat)

    @property
    def matrix(self) -> Floats:
        """The costs as numbers."""
        if self.varies:
            raise UsageError("the costs of this loss differ from row to row; there is no one matrix of them")
        return np.asarray(self.costs, dtype=np.float64)

    @property
    def is_zero_one(self) -> bool:
        return (
            not self.varies
            and self.costs.shape[0] == self.costs.shape[1]
            and self.decisions == self.classes
            and np.array_equal(self.matrix, 1.0 - np.eye(len(self.costs)))
        )

    def per_row(self, rows: int, column: Any) -> Floats:
        """The costs of each row: row by decision by truth; `column(name)` gives a column of the table."""
        out = np.empty((rows, *self.costs.shape))
        for place in np.ndindex(self.costs.shape):
            cell = self.costs[place]
            values = column(cell) if isinstance(cell, str) else cell
            numbers = np.asarray(values, dtype=np.float64)
            if numbers.ndim and numbers.shape != (rows,):
                raise UsageError(
                    f"the costs {self._place(*place)} are {numbers.shape}; give one for each of {rows} rows"
                )
            if not np.isfinite(numbers).all():
                raise UsageError(f"a cost {self._place(*place)} is missing or infinite")
            out[(slice(None), *place)] = numbers
        return out

    def _place(self, decision: int, truth: int) -> str:
        said = self.decisions[decision] if self.decisions is not None else decision
        true = self.classes[truth] if self.classes is not None else truth
        return f"of deciding {said!r} when {true!r} is true"

    def _warn_of_dear_truths(self) -> None:
        """A right decision that costs more than a wrong one is seldom meant: often the matrix is transposed."""
        decisions = self.decisions
        if decisions is None and self.costs.shape[0] < self.costs.shape[1]:
            return
        truths = self.classes if decisions is not None else tuple(range(self.costs.shape[1]))
        named = decisions if decisions is not None else tuple(range(self.costs.shape[0]))
        for c, truth in enumerate(truths or ()):
            rivals = [d for d, decision in enumerate(named) if decision != truth and decision in (truths or ())]
            right: Any = self.costs[named.index(truth), c] if truth in named else None
            for d in rivals:
                wrong = self.costs[d, c]
                if _is_number(right) and _is_number(wrong) and float(right) > float(wrong):
                    warnings.warn(
                        f"to decide {truth!r} rightly costs {right:g}, to decide {named[d]!r} wrongly only {wrong:g}; "
                        f"the order is decision first, truth second",
                        stacklevel=5,
                    )
                    return

    def __str__(self) -> str:
        decisions = self.decisions if self.decisions is not None else tuple(range(self.costs.shape[0]))
        classes = self.classes if self.classes is not None else tuple(range(self.costs.shape[1]))
        lines = [("decide", *(f"if {label}" for label in classes))]
        for k, decision in enumerate(decisions):
            lines.append((str(decision), *(_shown(cell) for cell in self.costs[k])))
        widths = [max(len(line[j]) for line in lines) for j in range(len(lines[0]))]
        return "\n".join(
            f"{line[0]:{widths[0]}}  " + "  ".join(f"{text:>{w}}" for text, w in zip(line[1:], widths[1:], strict=True))
            for line in lines
        )

    def __repr__(self) -> str:
        return f"Loss({self.costs.tolist()}, decisions={self.decisions}, classes={self.classes})"


def _as_cells(costs: Any) -> npt.NDArray[np.object_]:
    """The matrix with one object for each cost, which may be an array."""
    if isinstance(costs, np.ndarray) and costs.ndim == 2:
        return costs.astype(object)
    if isinstance(costs, np.ndarray) and costs.ndim == 3:  # row by decision by truth
        cells = np.empty(costs.shape[1:], dtype=object)
        for place in np.ndindex(cells.shape):
            cells[place] = costs[(slice(None), *place)]
        return cells
    try:
        rows = [list(row) for row in costs]
    except TypeError:
        raise UsageError(f"a loss is a matrix of decisions by classes, not {costs!r}") from None
    if not rows or any(len(row) != len(rows[0]) for row in rows):
        raise UsageError("the rows of the loss have different lengths; give a cost for every class in each")
    cells = np.empty((len(rows), len(rows[0])), dtype=object)
    for place in np.ndindex(cells.shape):
        cells[place] = rows[place[0]][place[1]]
    return cells


def _is_number(cell: Cell) -> bool:
    return isinstance(cell, int | float | np.number) and not isinstance(cell, bool)


def _is_constant(cells: npt.NDArray[np.object_]) -> bool:
    return all(_is_number(cell) and cell == cells[0] for cell in cells)


def _check_cell(cell: Cell, place: str) -> None:
    if _is_number(cell):
        if not np.isfinite(cell):
            raise UsageError(f"the cost {place} is {cell}; give a finite number")
    elif not isinstance(cell, str) and not (hasattr(cell, "__len__") or hasattr(cell, "__array__")):
        raise UsageError(f"the cost {place} is {cell!r}; give a number, a column's name or an array")


def _parsed(cell: str) -> float | str:
    try:
        return float(cell)
    except ValueError:
        return cell.strip()


def _spelling(label: Any) -> str:
    """Labels from files are text: 1 and "1" are the same class."""
    return str(label)


def _shown(cell: Cell) -> str:
    return f"{float(cell):g}" if _is_number(cell) else (cell if isinstance(cell, str) else "per row")
