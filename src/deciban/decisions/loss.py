"""The cost of each decision under each true class: `Loss`, read from matrices, mappings, tables and CSV files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from deciban.errors import Argument, BadCell, Labels, LossError, Place, warn_user
from deciban.util.arrays import Floats
from deciban.util.text_tables import align_table, same_label

# The label of the decision not to decide.
REJECT = "reject"

Cell = Any  # a number, the name of a column that holds one for each row, or an array with one for each row
LossParts = tuple[Any, tuple[Any, ...] | None, tuple[Any, ...] | None]  # costs, decisions, classes


@dataclass(frozen=True, eq=False)
class Loss:
    """What each decision costs under each true class: `loss[decision, truth]`.

    The order is **decision first, truth second**, everywhere. There may be more decisions than classes: to refer a
    case, to wait, to order a test. A right decision that costs more than a wrong one is warned of, because most often
    the matrix was transposed.

    Parameters
    ----------
    costs : array-like of shape (n_decisions, n_classes)
        The matrix of costs. A cell is a finite number or, where the cost differs from row to row of the data, the name
        of a column of the table or an array of shape (n_rows,). An array of shape (n_rows, n_decisions, n_classes)
        gives each row a matrix of its own.
    decisions : sequence of labels, default=None
        The labels of the decisions. None stands for the classes of the model, in their order, where there are as many;
        one more row of equal costs is then the decision "reject".
    classes : sequence of labels, default=None
        The labels of the columns. None stands for the classes of the model, in their order.

    Attributes
    ----------
    varies_by_row : bool
        Whether some cost differs from row to row.
    matrix : ndarray of shape (n_decisions, n_classes)
        The costs as numbers, where they are the same for all rows.
    is_zero_one : bool
        Whether every mistake costs 1 and every right decision nothing.

    Raises
    ------
    UsageError
        If the costs are no matrix, a cost is not finite, or labels are not as many as the costs or not all different.

    See Also
    --------
    decide : The decision of least expected loss for given posteriors.
    MinimumRisk : Least expected loss for any classifier of scikit-learn's kind.
    Threshold : Where the decision between two classes turns.

    Examples
    --------
    >>> from deciban import Loss
    >>> loss = Loss([[0, 100], [1, 0]], decisions=["healthy", "sick"], classes=["healthy", "sick"])
    >>> print(loss)
    decide   if healthy  if sick
    healthy           0      100
    sick              1        0
    >>> loss["healthy", "sick"]
    100
    >>> print(Loss.from_costs({"healthy": 1, "sick": 100}).with_reject(0.5))
    decide   if healthy  if sick
    healthy           0      100
    sick              1        0
    reject          0.5      0.5
    """

    costs: Any
    decisions: tuple[Any, ...] | None = None
    classes: tuple[Any, ...] | None = None

    def __post_init__(self) -> None:
        self._check()
        self._warn_of_dear_truths()

    @classmethod
    def _derived(cls, costs: Any, decisions: tuple[Any, ...] | None, classes: tuple[Any, ...] | None) -> "Loss":
        """A loss made from another, which has been warned of already: it is checked, and not warned of again."""
        loss = object.__new__(cls)
        for name, value in (("costs", costs), ("decisions", decisions), ("classes", classes)):
            object.__setattr__(loss, name, value)
        loss._check()
        return loss

    def _check(self) -> None:
        """Take over costs and labels in their own form, and refuse what is no loss."""
        object.__setattr__(self, "costs", as_cells(self.costs))
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
                raise LossError((f"the {what} ", Labels(labels), " of the loss are not all different"))
        for decision, truth in np.ndindex(self.costs.shape):
            check_cell(self.costs[decision, truth], self._place(decision, truth))

    @classmethod
    def from_costs(cls, given: Any) -> "Loss":
        """A loss from any form in which costs can be given.

        Parameters
        ----------
        given : Loss, array-like, mapping, DataFrame, Arrow table, str or Path
            A matrix; a mapping {(decision, truth): cost}, {decision: {truth: cost}} or {class: cost of missing it}; a
            table with decisions down and truths across; or the name of a CSV file of such a table.

        Returns
        -------
        Loss
            The same object where it is a Loss already.
        """
        return given if isinstance(given, Loss) else cls(*parts_of(given))

    @classmethod
    def zero_one(cls, classes: Sequence[Any]) -> "Loss":
        """The loss under which every mistake costs 1: least risk is highest posterior.

        Parameters
        ----------
        classes : sequence of labels
            The classes, which are the decisions too.

        Returns
        -------
        Loss
            1 off the diagonal, 0 on it.
        """
        return cls(1.0 - np.eye(len(classes)), tuple(classes), tuple(classes))

    @classmethod
    def from_class_costs(cls, costs: Mapping[Any, float]) -> "Loss":
        """The loss under which a row of a class costs its price wherever it is taken for another class.

        Parameters
        ----------
        costs : mapping from class to float
            What it costs to miss a row of each class.

        Returns
        -------
        Loss
            With the classes of the mapping, in its order.
        """
        return cls(*parts_of_misses(costs))

    @classmethod
    def from_pairs(cls, costs: Mapping[tuple[Any, Any], Cell]) -> "Loss":
        """A loss from its cells.

        Parameters
        ----------
        costs : mapping from (decision, truth) to cost
            A right decision that is not named costs nothing; every other pair must be named.

        Returns
        -------
        Loss
            With decisions and classes in the order in which they are first named.
        """
        return cls(*parts_of_pairs(costs))

    @classmethod
    def from_csv(cls, path: str | Path) -> "Loss":
        """A loss from a CSV file.

        Parameters
        ----------
        path : str or Path
            A file whose first line names the true classes and whose first column names the decisions.

        Returns
        -------
        Loss
            A cell that is no number names a column of the table that is decided on.
        """
        return cls(*parts_of_csv(path))

    def with_reject(self, cost: float) -> "Loss":
        """The same loss with one more decision: to leave the row undecided.

        Parameters
        ----------
        cost : float
            What that costs, whatever is true. Infinite: it never pays, and the loss is returned as it is.

        Returns
        -------
        Loss
            With the decision "reject" in its last row.
        """
        if not is_number(cost) or not float(cost) >= 0.0:
            raise LossError(
                "give what it costs to leave a row undecided, at least 0", parameter=Argument("reject", cost)
            )
        decisions = self.decisions if self.decisions is not None else self.classes
        if decisions is not None and REJECT in decisions:
            raise LossError(
                f"the loss has a decision {REJECT!r} already", remedy=("leave ", Argument("reject"), " out")
            )
        if np.isinf(float(cost)):
            return self  # it never pays
        row = np.full((1, self.costs.shape[1]), float(cost), dtype=object)
        named = None if decisions is None else (*decisions, REJECT)
        return Loss._derived(np.concatenate([self.costs, row]), named, self.classes)

    def for_classes(self, classes: Sequence[Any]) -> "Loss":
        """The same loss with its columns in the order of a model's classes, and labels for all.

        Parameters
        ----------
        classes : sequence of labels
            The classes of the model. A label of the loss that is text stands for one that is spelled the same.

        Returns
        -------
        Loss
            With `classes` and `decisions` set.
        """
        known = plain_labels(classes)
        costs = self.costs if self.classes is None else self.costs[:, self._columns_of(known)]
        if costs.shape[1] != len(known):
            raise LossError(
                (f"the loss has {costs.shape[1]} columns, the model {len(known)} classes ", Labels(known)),
                remedy="give a row for each decision and a column for each class",
            )
        return Loss._derived(costs, self._decisions_among(known), known)

    def _columns_of(self, known: tuple[Any, ...]) -> list[int]:
        """The column of each of these classes, which must be all that the loss has."""
        own = self.classes or ()
        found = [find_label(label, own) for label in known]
        absent = [label for label, at in zip(known, found, strict=True) if at is None]
        unknown = [label for k, label in enumerate(own) if k not in found]
        if absent or unknown:
            what = f"{absent[0]!r} has no column" if absent else f"{unknown[0]!r} is no class of the model"
            raise LossError(("the loss does not fit the classes ", Labels(known), f": {what}; it has ", Labels(own)))
        return [at for at in found if at is not None]

    def _decisions_among(self, known: tuple[Any, ...]) -> tuple[Any, ...]:
        """The labels of the decisions; those that are classes as the model spells them."""
        if self.decisions is not None:
            places = [find_label(label, known) for label in self.decisions]
            return tuple(label if at is None else known[at] for label, at in zip(self.decisions, places, strict=True))
        extra = self.costs.shape[0] - len(known)
        if extra == 0:
            return known
        if extra == 1 and is_constant(self.costs[-1]):
            return (*known, REJECT)
        raise LossError(
            f"the loss has {self.costs.shape[0]} decisions for {len(known)} classes",
            remedy=("name them in ", Argument("decisions")),
        )

    @property
    def varies_by_row(self) -> bool:
        """Whether some cost differs from row to row."""
        return any(not is_number(cell) for cell in self.costs.flat)

    @property
    def matrix(self) -> Floats:
        """The costs as numbers, of shape (n_decisions, n_classes)."""
        if self.varies_by_row:
            raise LossError("the costs of this loss differ from row to row; there is no one matrix of them")
        return np.asarray(self.costs, dtype=np.float64)

    @property
    def is_zero_one(self) -> bool:
        """Whether every mistake costs 1 and every right decision nothing."""
        return (
            not self.varies_by_row
            and self.costs.shape[0] == self.costs.shape[1]
            and self.decisions == self.classes
            and np.array_equal(self.matrix, 1.0 - np.eye(len(self.costs)))
        )

    def per_row(self, rows: int, column: Any) -> Floats:
        """The costs of each row.

        Parameters
        ----------
        rows : int
            The number of rows.
        column : callable
            Gives the column of the table that has a name.

        Returns
        -------
        ndarray of shape (n_rows, n_decisions, n_classes)
        """
        out = np.empty((rows, *self.costs.shape))
        for place in np.ndindex(self.costs.shape):
            cell = self.costs[place]
            try:
                numbers = np.asarray(column(cell) if isinstance(cell, str) else cell, dtype=np.float64)
            except (TypeError, ValueError, BadCell) as error:
                raise LossError(
                    f"the costs {self._place(*place)} are no numbers ({error})", remedy="give numbers"
                ) from None
            if numbers.ndim and numbers.shape != (rows,):
                raise LossError(
                    f"the costs {self._place(*place)} are {numbers.shape}", remedy=f"give one for each of {rows} rows"
                )
            if not np.isfinite(numbers).all():
                raise LossError(f"a cost {self._place(*place)} is missing or infinite")
            out[(slice(None), *place)] = numbers
        return out

    def _place(self, decision: int, truth: int) -> str:
        """A cell as messages name it."""
        decided = self.decisions[decision] if self.decisions is not None else decision
        true = self.classes[truth] if self.classes is not None else truth
        return f"of deciding {decided!r} when {true!r} is true"

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
                if is_number(right) and is_number(wrong) and float(right) > float(wrong):
                    warn_user(
                        f"to decide {truth!r} rightly costs {right:g}, to decide {named[d]!r} wrongly only {wrong:g}; "
                        f"the order is decision first, truth second"
                    )
                    return

    def __str__(self) -> str:
        decisions = self.decisions if self.decisions is not None else tuple(range(self.costs.shape[0]))
        classes = self.classes if self.classes is not None else tuple(range(self.costs.shape[1]))
        lines = [("decide", *(f"if {label}" for label in classes))]
        for k, decision in enumerate(decisions):
            lines.append((str(decision), *(cell_text(cell) for cell in self.costs[k])))
        return align_table(lines, right=range(1, len(lines[0])))

    def decision_index(self, label: Any) -> int:
        """Return the position of a decision in `decisions`.

        Parameters
        ----------
        label : object
            The label of the decision.

        Returns
        -------
        int
            Position, from 0.

        Raises
        ------
        UsageError
            If the loss has no such decision.
        """
        return self._index("decision", label, self.decisions or ())

    def class_index(self, label: Any) -> int:
        """Return the position of a class in `classes`.

        Parameters
        ----------
        label : object
            The label of the class.

        Returns
        -------
        int
            Position, from 0.

        Raises
        ------
        UsageError
            If the loss has no such class.
        """
        return self._index("class", label, self.classes or ())

    @staticmethod
    def _index(role: str, label: Any, labels: tuple[Any, ...]) -> int:
        position = find_label(label, labels)
        if position is None:
            raise LossError((f"{label!r} is not a {role} of the loss; it has ", Labels(labels)))
        return position

    def __getitem__(self, place: tuple[Any, Any]) -> Cell:
        """The cost of a decision under a truth, by their labels."""
        decision, truth = place
        return self.costs[self.decision_index(decision), self.class_index(truth)]

    def __repr__(self) -> str:
        return f"Loss({self.costs.tolist()}, decisions={self.decisions}, classes={self.classes})"


# --- the forms in which a loss can be given, each as (costs, decisions, classes)


def parts_of(given: Any) -> LossParts:
    """The costs and labels of whatever `Loss.from_costs` takes but a Loss."""
    if isinstance(given, str | Path):
        return parts_of_csv(given)
    if isinstance(given, Mapping):
        return parts_of_mapping(given)
    if hasattr(given, "columns") and hasattr(given, "index"):
        index, columns = list(given.index), list(given.columns)
        unnamed = index == list(range(len(index))) and columns != index
        return given.to_numpy(dtype=object), None if unnamed else tuple(index), tuple(columns)
    if hasattr(given, "__arrow_c_stream__"):
        return parts_of_arrow(given)
    return given.toarray() if hasattr(given, "toarray") else given, None, None


def parts_of_mapping(given: Mapping[Any, Any]) -> LossParts:
    """{(decision, truth): cost}, {decision: {truth: cost}}, or {class: cost of missing it}."""
    if all(isinstance(cell, Mapping) for cell in given.values()):
        return parts_of_pairs(
            {(decision, truth): cost for decision, row in given.items() for truth, cost in row.items()}
        )
    kinds = {isinstance(key, tuple) and len(key) == 2 for key in given}
    if len(kinds) != 1:
        raise LossError("a loss is a mapping from pairs (decision, truth) or from classes, not from both or none")
    return parts_of_pairs(given) if kinds == {True} else parts_of_misses(given)


def parts_of_misses(costs: Mapping[Any, Cell]) -> LossParts:
    """{class: cost of missing it}, whatever a row of the class is taken for."""
    classes = tuple(costs)
    matrix = np.tile(np.array([costs[label] for label in classes], dtype=object), (len(classes), 1))
    matrix[np.diag_indices(len(classes))] = 0.0
    return matrix, classes, classes


def parts_of_pairs(costs: Mapping[tuple[Any, Any], Cell]) -> LossParts:
    """{(decision, truth): cost}; a right decision that is not named costs nothing."""
    decisions = tuple(dict.fromkeys(decision for decision, _ in costs))
    classes = tuple(dict.fromkeys(truth for _, truth in costs))
    matrix = np.empty((len(decisions), len(classes)), dtype=object)
    for k, decision in enumerate(decisions):
        for c, truth in enumerate(classes):
            if (decision, truth) not in costs and decision != truth:
                raise LossError(f"the loss does not say what it costs to decide {decision!r} when {truth!r} is true")
            matrix[k, c] = costs.get((decision, truth), 0.0)
    return matrix, decisions, classes


def parts_of_arrow(given: Any) -> LossParts:
    """A table whose columns are the truths; a column of text, if it comes first, names the decisions."""
    import pyarrow as pa

    table = pa.table(given)
    columns = [column.to_pylist() for column in table.columns]
    named = bool(columns) and all(isinstance(cell, str) for cell in columns[0])
    decisions = tuple(columns.pop(0)) if named else None
    return list(zip(*columns, strict=True)), decisions, tuple(table.column_names[1 if named else 0 :])


def parts_of_csv(path: str | Path) -> LossParts:
    """A file whose first line names the true classes and whose first column names the decisions."""
    import csv

    name = str(path)
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            first = file.readline()
            file.seek(0)
            sign = max(",;\t", key=first.count)
            lines = [[cell.strip() for cell in line] for line in csv.reader(file, delimiter=sign) if any(line)]
    except OSError as error:
        raise LossError(f"the costs cannot be read: {error.strerror}", place=Place(name)) from None
    except (UnicodeDecodeError, csv.Error):
        raise LossError(
            "the costs are no text in UTF-8 with commas", place=Place(name), remedy="save the file so"
        ) from None
    if len(lines) < 2 or len(lines[0]) < 2 or any(len(line) != len(lines[0]) for line in lines):
        raise LossError(
            "this is no table of decisions by classes, named on both sides, with commas between", place=Place(name)
        )
    for line in lines[1:]:
        if "" in line[1:]:
            raise LossError(
                f"there is an empty cell in the line of {line[0]!r}", place=Place(name), remedy="give every cost"
            )
    cells = [[parse_cell(cell) for cell in line[1:]] for line in lines[1:]]
    return cells, tuple(line[0] for line in lines[1:]), tuple(lines[0][1:])


# --- cells and labels


def as_cells(costs: Any) -> npt.NDArray[np.object_]:
    """The matrix with one object for each cost, which may be an array."""
    if not isinstance(costs, np.ndarray):
        try:
            rows = [list(row) for row in costs]
        except TypeError:
            raise LossError(f"a loss is a matrix of decisions by classes, not {costs!r}") from None
        if not rows or not rows[0]:
            raise LossError("the loss is empty", remedy="give a cost for each decision and class")
        if any(len(row) != len(rows[0]) for row in rows):
            raise LossError("the rows of the loss have different lengths", remedy="give a cost for every class in each")
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
            raise LossError(f"the cost {place} is {cell}", remedy="give a finite number")
    elif not isinstance(cell, str) and np.ndim(cell) != 1:
        raise LossError(f"the cost {place} is {cell!r}", remedy="give a number, a column's name or an array")


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
        raise LossError("the labels of a loss stand in an order", remedy="give a list, not a set")
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
    spelled = [k for k, other in enumerate(among) if same_label(other, label)]
    for found in (equal, spelled):
        if len(found) > 1:
            raise LossError(
                (f"the label {label!r} may be any of ", Labels([among[k] for k in found])), remedy="give it exactly"
            )
        if found:
            return found[0]
    return None
