"""What mistakes cost."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from deciban.arrays import Floats
from deciban.errors import BadCell, LossError
from deciban.text_tables import aligned, spelled_alike

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
    said: bool = False  # whether what there is to warn of was said already

    def __post_init__(self) -> None:
        object.__setattr__(self, "costs", _as_cells(self.costs))
        for name in ("decisions", "classes"):
            labels = getattr(self, name)
            if labels is not None:
                object.__setattr__(self, name, plain_labels(labels))
        if self.costs.ndim != 2 or not self.costs.size:
            raise LossError(f"a loss is a matrix of decisions by classes; this one has shape {self.costs.shape}")
        for axis, what, labels in ((0, "decisions", self.decisions), (1, "classes", self.classes)):
            if labels is not None and len(labels) != self.costs.shape[axis]:
                raise LossError(f"the loss has {self.costs.shape[axis]} {what}, but {len(labels)} labels for them")
            if labels is not None and len(set(labels)) != len(labels):
                raise LossError(f"the {what} {list(labels)} of the loss are not all different")
        for decision, truth in np.ndindex(self.costs.shape):
            _check_cell(self.costs[decision, truth], self._place(decision, truth))
        if not self.said:
            self._warn_of_dear_truths()

    @classmethod
    def of(cls, given: Any) -> "Loss":
        """A loss from whatever says it: a Loss, a matrix, a mapping from (decision, truth) to cost, a mapping from a
        class to what it costs to miss it, a table with truths across and decisions down, or a CSV file of that."""
        if isinstance(given, Loss):
            return given
        if isinstance(given, str | Path):
            return cls.from_csv(given)
        if isinstance(given, Mapping):
            return cls._from_mapping(given)
        if hasattr(given, "columns") and hasattr(given, "index"):
            index, columns = list(given.index), list(given.columns)
            unnamed = index == list(range(len(index))) and columns != index
            return cls(given.to_numpy(dtype=object), None if unnamed else tuple(index), tuple(columns))
        if hasattr(given, "__arrow_c_stream__"):
            return cls._from_arrow(given)
        return cls(given.toarray() if hasattr(given, "toarray") else given)

    @classmethod
    def _from_mapping(cls, given: Mapping[Any, Any]) -> "Loss":
        """{(decision, truth): cost}, {decision: {truth: cost}}, or {class: cost of missing it}."""
        if all(isinstance(cell, Mapping) for cell in given.values()):
            pairs = {(decision, truth): cost for decision, row in given.items() for truth, cost in row.items()}
            return cls.from_pairs(pairs)
        kinds = {isinstance(key, tuple) and len(key) == 2 for key in given}
        if len(kinds) != 1:
            raise LossError("a loss is a mapping from pairs (decision, truth) or from classes, not from both or none")
        return cls.from_pairs(given) if kinds == {True} else cls.false_negative(given)

    @classmethod
    def _from_arrow(cls, given: Any) -> "Loss":
        """A table whose columns are the truths; a column of text, if it comes first, names the decisions."""
        import pyarrow as pa

        table = pa.table(given)
        columns = [column.to_pylist() for column in table.columns]
        named = bool(columns) and all(isinstance(cell, str) for cell in columns[0])
        decisions = tuple(columns.pop(0)) if named else None
        return cls(list(zip(*columns, strict=True)), decisions, tuple(table.column_names[1 if named else 0 :]))

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
                    raise LossError(
                        f"the loss does not say what it costs to decide {decision!r} when {truth!r} is true"
                    )
                matrix[k, c] = costs.get((decision, truth), 0.0)
        return cls(matrix, decisions, classes)

    @classmethod
    def from_csv(cls, path: str | Path) -> "Loss":
        """From a file whose first line names the true classes and whose first column names the decisions."""
        import csv

        name = str(path)
        try:
            with Path(path).open(newline="", encoding="utf-8-sig") as file:
                first = file.readline()
                file.seek(0)
                sign = max(",;\t", key=first.count)
                lines = [[cell.strip() for cell in line] for line in csv.reader(file, delimiter=sign) if any(line)]
        except OSError as error:
            raise LossError(f"{name}: the costs cannot be read: {error.strerror}") from None
        except (UnicodeDecodeError, csv.Error):
            raise LossError(f"{name}: the costs are no text in UTF-8 with commas; save the file so") from None
        if len(lines) < 2 or len(lines[0]) < 2 or any(len(line) != len(lines[0]) for line in lines):
            raise LossError(
                f"{name}: this is no table of decisions by classes, named on both sides, with commas between"
            )
        for line in lines[1:]:
            if "" in line[1:]:
                raise LossError(f"{name}: there is an empty cell in the line of {line[0]!r}; give every cost")
        cells = [[_parsed(cell) for cell in line[1:]] for line in lines[1:]]
        return cls(cells, tuple(line[0] for line in lines[1:]), tuple(lines[0][1:]))

    def with_reject(self, cost: float) -> "Loss":
        """The same with one more decision, to leave the row undecided, at a fixed cost."""
        if not _is_number(cost) or not float(cost) >= 0.0:
            raise LossError(f"reject={cost!r}: give what it costs to leave a row undecided, at least 0")
        decisions = self.decisions if self.decisions is not None else self.classes
        if decisions is not None and REJECT in decisions:
            raise LossError(f"the loss has a decision {REJECT!r} already; leave reject= out")
        if np.isinf(float(cost)):
            return self  # it never pays
        row = np.full((1, self.costs.shape[1]), float(cost), dtype=object)
        named = None if decisions is None else (*decisions, REJECT)
        return Loss(np.concatenate([self.costs, row]), named, self.classes, said=True)

    def for_classes(self, classes: Sequence[Any]) -> "Loss":
        """The loss with its columns in the order of these classes, and labels for all."""
        known = plain_labels(classes)
        costs = self.costs
        if self.classes is None:
            if costs.shape[1] != len(known):
                raise LossError(
                    f"the loss has {costs.shape[1]} columns, the model {len(known)} classes {list(known)}; "
                    f"give a row for each decision and a column for each class"
                )
        else:
            place = [_find(label, self.classes) for label in known]
            absent = [label for label, at in zip(known, place, strict=True) if at is None]
            unknown = [label for k, label in enumerate(self.classes) if k not in place]
            if absent or unknown:
                what = f"{absent[0]!r} has no column" if absent else f"{unknown[0]!r} is no class of the model"
                has = f"it speaks of {list(self.classes)}"
                raise LossError(f"the loss does not fit the classes {list(known)}: {what}; {has}")
            costs = costs[:, place]
        decisions = self.decisions
        if decisions is None:
            extra = costs.shape[0] - len(known)
            if extra == 1 and _is_constant(costs[-1]):
                decisions = (*known, REJECT)
            elif extra != 0:
                raise LossError(
                    f"the loss has {costs.shape[0]} decisions for {len(known)} classes; name them by decisions=[…]"
                )
            else:
                decisions = known
        else:
            places = [_find(label, known) for label in decisions]
            decisions = tuple(label if at is None else known[at] for label, at in zip(decisions, places, strict=True))
        return Loss(costs, decisions, known, said=True)

    @property
    def varies(self) -> bool:
        """Whether some cost differs from row to row."""
        return any(not _is_number(cell) for cell in self.costs.flat)

    @property
    def matrix(self) -> Floats:
        """The costs as numbers."""
        if self.varies:
            raise LossError("the costs of this loss differ from row to row; there is no one matrix of them")
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
            try:
                numbers = np.asarray(column(cell) if isinstance(cell, str) else cell, dtype=np.float64)
            except (TypeError, ValueError, BadCell) as error:
                raise LossError(f"the costs {self._place(*place)} are no numbers ({error}); give numbers") from None
            if numbers.ndim and numbers.shape != (rows,):
                raise LossError(
                    f"the costs {self._place(*place)} are {numbers.shape}; give one for each of {rows} rows"
                )
            if not np.isfinite(numbers).all():
                raise LossError(f"a cost {self._place(*place)} is missing or infinite")
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
        return aligned(lines, right=range(1, len(lines[0])))

    def place(self, role: str, label: Any) -> int:
        """Where the label of a "decision" or a "class" stands."""
        labels = self.decisions if role == "decision" else self.classes
        found = _find(label, labels or ())
        if found is None:
            raise LossError(f"{label!r} is no {role} of the loss; it has {list(labels or ())}")
        return found

    def __getitem__(self, place: tuple[Any, Any]) -> Cell:
        """The cost of a decision under a truth, by their labels."""
        decision, truth = place
        return self.costs[self.place("decision", decision), self.place("class", truth)]

    def __repr__(self) -> str:
        return f"Loss({self.costs.tolist()}, decisions={self.decisions}, classes={self.classes})"


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


def _find(label: Any, among: Sequence[Any]) -> int | None:
    """Where a label stands: the same one, or, as files know only text, the one that is spelled the same."""
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


def _as_cells(costs: Any) -> npt.NDArray[np.object_]:
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


def _is_number(cell: Cell) -> bool:
    return isinstance(cell, int | float | np.integer | np.floating) and not isinstance(cell, bool)


def _is_constant(cells: npt.NDArray[np.object_]) -> bool:
    return all(_is_number(cell) and cell == cells[0] for cell in cells)


def _check_cell(cell: Cell, place: str) -> None:
    if _is_number(cell):
        try:
            finite = bool(np.isfinite(float(cell)))
        except OverflowError:
            finite = False
        if not finite:
            raise LossError(f"the cost {place} is {cell}; give a finite number")
    elif not isinstance(cell, str) and np.ndim(cell) != 1:
        raise LossError(f"the cost {place} is {cell!r}; give a number, a column's name or an array")


def _parsed(cell: str) -> float | str:
    try:
        return float(cell)
    except ValueError:
        return cell.strip()


def _shown(cell: Cell) -> str:
    return f"{float(cell):g}" if _is_number(cell) else (cell if isinstance(cell, str) else "per row")
