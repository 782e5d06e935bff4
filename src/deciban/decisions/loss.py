"""Costs of decisions: `Loss`, from matrices, mappings, tables and CSV files."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from deciban.errors import Argument, BadCell, DataError, DecibanError, Labels, LossError, Place, warn_user
from deciban.typing import Costs
from deciban.util.arrays import Floats
from deciban.util.results import Part, Result, TextTable
from deciban.util.text_tables import count_noun, list_some, same_label

if TYPE_CHECKING:
    from deciban.sources.sniff import FileFormat

# Label of the decision to leave a row undecided.
REJECT = "reject"

Cell = Any  # a number, the name of a column that holds one for each row, or an array with one for each row
LossParts = tuple[Any, tuple[Any, ...] | None, tuple[Any, ...] | None]  # costs, decisions, classes


@dataclass(frozen=True, eq=False)
class Loss(Result):
    r"""Cost of each decision under each true class: `loss[decision, truth]`.

    The order is always **decision first, truth second**. There may be more decisions than classes, for example to refer
    a case or to order a test. A warning is issued if, for some class, the correct decision costs more than a wrong one.
    A transposed matrix whose correct decisions cost 0 cannot be detected.

    Parameters
    ----------
    costs : array-like of shape (n_decisions, n_classes)
        Matrix of costs. A cell is a finite number or, if the cost varies by row of the data, the name of a column of
        the table or an array of shape (n_rows,). An array of shape (n_rows, n_decisions, n_classes) gives each row its
        own matrix.
    decisions : sequence of labels, default=None
        Labels of the decisions. None: the classes of the model, in order; one additional row of equal costs is the
        decision "reject".
    classes : sequence of labels, default=None
        Labels of the columns. None: the classes of the model, in order.

    Attributes
    ----------
    varies_by_row : bool
        True if some cost varies by row of the data.
    matrix : ndarray of shape (n_decisions, n_classes)
        The costs as numbers; an error if they vary by row.
    is_zero_one : bool
        True if every mistake costs 1 and every correct decision 0.

    Raises
    ------
    UsageError
        If the costs are not a matrix, a cost is not finite, or the labels are not unique or do not match the shape.

    See Also
    --------
    decide : Decisions with the least expected loss for given posteriors.
    MinimumRisk : Decisions with the least expected loss for any scikit-learn classifier.
    Threshold : Decision threshold for two classes.

    Notes
    -----
    The best decision d has the least risk, the loss L weighted by the posterior of each class c:

    .. math:: R(d \mid x) = \sum_c L(d, c) \, P(c \mid x)

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
        self._warn_if_transposed()

    @classmethod
    def _derive(cls, costs: Any, decisions: tuple[Any, ...] | None, classes: tuple[Any, ...] | None) -> Loss:
        """Create a loss derived from another one, without repeating its warning."""
        loss = object.__new__(cls)
        for name, value in (("costs", costs), ("decisions", decisions), ("classes", classes)):
            object.__setattr__(loss, name, value)
        loss._check()
        return loss

    def _check(self) -> None:
        """Convert costs and labels, and raise a LossError if they are invalid."""
        object.__setattr__(self, "costs", to_cells(self.costs))
        for name in ("decisions", "classes"):
            labels = getattr(self, name)
            if labels is not None:
                object.__setattr__(self, name, to_plain_labels(labels))
        if self.costs.ndim != 2 or not self.costs.size:
            raise LossError(
                f"the costs have shape {self.costs.shape}",
                remedy="give a matrix with a row per decision, a column per class",
            )
        for axis, what, labels in ((0, "decisions", self.decisions), (1, "classes", self.classes)):
            if labels is not None and len(labels) != self.costs.shape[axis]:
                raise LossError(
                    f"the costs have {self.costs.shape[axis]} {what}, but {count_noun(len(labels), 'label')} given"
                )
            if labels is not None and len(set(labels)) != len(labels):
                twice = next(label for k, label in enumerate(labels) if label in labels[:k])
                noun = {"decisions": "decision", "classes": "class"}[what]
                raise LossError(f"duplicate {noun} {twice!r} in the costs")
        for decision, truth in np.ndindex(self.costs.shape):
            check_cell(self.costs[decision, truth], self._place(decision, truth))

    @classmethod
    def from_costs(cls, costs: Loss | Costs) -> Loss:
        """Create a loss from costs in any supported form.

        Parameters
        ----------
        costs : Loss, array-like, mapping, DataFrame, Arrow table, str or Path
            A matrix; a mapping {(decision, truth): cost}, {decision: {truth: cost}} or {class: cost of missing it}; a
            table with a row per decision and a column per class; or the path of a CSV file with such a table.

        Returns
        -------
        Loss
            The same object if `costs` is a Loss.
        """
        return costs if isinstance(costs, Loss) else cls(*parse_costs(costs))

    @classmethod
    def zero_one(cls, classes: Sequence[Any]) -> Loss:
        """Create zero-one loss: every mistake costs 1.

        Its decision with the least risk is the most probable class.

        Parameters
        ----------
        classes : sequence of labels
            Labels of the classes, which are also the decisions.

        Returns
        -------
        Loss
            0 on the diagonal, 1 elsewhere.
        """
        return cls(1.0 - np.eye(len(classes)), tuple(classes), tuple(classes))

    @classmethod
    def absolute_distance(cls, classes: Sequence[Any]) -> Loss:
        """Create the loss of ordered classes: a mistake costs the number of steps between the two classes.

        Its decision with the least risk is the posterior median.

        Parameters
        ----------
        classes : sequence of labels
            Labels of the classes, in ascending order, which are also the decisions.

        Returns
        -------
        Loss

        Examples
        --------
        >>> from deciban import Loss
        >>> print(Loss.absolute_distance(["low", "medium", "high"]))
        decide  if low  if medium  if high
        low          0          1        2
        medium       1          0        1
        high         2          1        0
        """
        place = np.arange(len(classes), dtype=np.float64)
        return cls(np.abs(place[:, None] - place), tuple(classes), tuple(classes))

    @classmethod
    def from_class_costs(cls, costs: Mapping[Any, float]) -> Loss:
        """Create a loss from the cost of misclassifying a row of each class.

        Parameters
        ----------
        costs : mapping from class to float
            Cost of missing a row of each class, whichever other class is decided.

        Returns
        -------
        Loss
            Classes and decisions are the keys of the mapping, in order.

        Examples
        --------
        >>> from deciban import Loss
        >>> print(Loss.from_class_costs({"healthy": 1, "sick": 100}))
        decide   if healthy  if sick
        healthy           0      100
        sick              1        0
        """
        return cls(*parse_class_costs(costs))

    @classmethod
    def from_pairs(cls, costs: Mapping[tuple[Any, Any], Cell]) -> Loss:
        """Create a loss from the cost of each pair of decision and true class.

        Parameters
        ----------
        costs : mapping from (decision, truth) to cost
            Correct decisions may be omitted and then cost 0; every other pair is required.

        Returns
        -------
        Loss
            Decisions in order of their first appearance; classes in the same order.

        Examples
        --------
        >>> from deciban import Loss
        >>> print(Loss.from_pairs({("healthy", "sick"): 100, ("sick", "healthy"): 1}))
        decide   if healthy  if sick
        healthy           0      100
        sick              1        0
        """
        return cls(*parse_pairs(costs))

    @classmethod
    def from_csv(cls, path: str | Path) -> Loss:
        """Read a loss from a CSV file, or from any other file that `scan` reads.

        Parameters
        ----------
        path : str or Path
            File with the true classes in its first line and the decisions in its first column. It is read like a table:
            encoding, delimiter and decimal commas are detected.

        Returns
        -------
        Loss
            A cell that is not a number is the name of a column of the data.
        """
        return cls(*read_costs(path))

    def with_reject(self, cost: float) -> Loss:
        """Return the loss with one more decision: to leave the row undecided.

        Parameters
        ----------
        cost : float
            Cost of leaving a row undecided. If infinite, the loss is returned unchanged.

        Returns
        -------
        Loss
            The last decision is "reject".
        """
        if not is_number(cost) or not float(cost) >= 0.0:
            raise LossError(
                "expected the cost of leaving a row undecided, at least 0", parameter=Argument("reject", cost)
            )
        decisions = self.decisions if self.decisions is not None else self.classes
        if decisions is not None and REJECT in decisions:
            raise LossError(f"the loss already has a decision {REJECT!r}", remedy=("omit ", Argument("reject")))
        if np.isinf(float(cost)):
            return self  # it never pays
        row = np.full((1, self.costs.shape[1]), float(cost), dtype=object)
        named = None if decisions is None else (*decisions, REJECT)
        return Loss._derive(np.concatenate([self.costs, row]), named, self.classes)

    def for_classes(self, classes: Sequence[Any]) -> Loss:
        """Return the loss with its columns in the order of the given classes, and with all labels set.

        Parameters
        ----------
        classes : sequence of labels
            Classes of the model. A text label of the loss matches a class that is spelled the same.

        Returns
        -------
        Loss
            `classes` and `decisions` are set.
        """
        known = to_plain_labels(classes)
        costs = self.costs if self.classes is None else self.costs[:, self._match_classes(known)]
        if costs.shape[1] != len(known):
            raise LossError(
                (f"the loss has {costs.shape[1]} columns, the model {len(known)} classes ", Labels(known)),
                remedy="give a row per decision and a column per class",
            )
        return Loss._derive(costs, self._match_decisions(known), known)

    def _match_classes(self, known: tuple[Any, ...]) -> list[int]:
        """Return the column of each class; raise a LossError unless the loss has exactly these classes."""
        own = self.classes or ()
        found = [find_label(label, own) for label in known]
        absent = [label for label, at in zip(known, found, strict=True) if at is None]
        unknown = [label for k, label in enumerate(own) if k not in found]
        if own and len(absent) == len(known):
            names = tuple(map(repr, own))
            transposed = all(find_label(label, self.decisions or ()) is not None for label in known)
            raise LossError(
                (f"the costs name the classes {list_some(names)}; the model has ", Labels(known)),
                remedy="exchange rows and columns" if transposed else "use the classes of the model",
            )
        if absent or unknown:
            problem = (
                f"unknown class {unknown[0]!r} in the costs" if unknown else f"no costs for the class {absent[0]!r}"
            )
            raise LossError(problem, remedy=("the classes of the model are ", Labels(known)))
        return [at for at in found if at is not None]

    def _match_decisions(self, known: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the labels of the decisions; decisions that are classes get the label of the model."""
        if self.decisions is not None:
            places = [find_label(label, known) for label in self.decisions]
            return tuple(label if at is None else known[at] for label, at in zip(self.decisions, places, strict=True))
        extra = self.costs.shape[0] - len(known)
        if extra == 0:
            return known
        if extra == 1 and is_constant(self.costs[-1]):
            return (*known, REJECT)
        raise LossError(
            f"the costs have {count_noun(self.costs.shape[0], 'decision')} for {count_noun(len(known), 'class')}",
            remedy=("give their labels in ", Argument("decisions")),
        )

    @property
    def varies_by_row(self) -> bool:
        """True if some cost varies by row of the data."""
        return any(not is_number(cell) for cell in self.costs.flat)

    @property
    def matrix(self) -> Floats:
        """The costs as numbers, of shape (n_decisions, n_classes)."""
        if self.varies_by_row:
            raise LossError("the costs vary by row: the loss has a matrix per row", remedy="use per_row()")
        return np.asarray(self.costs, dtype=np.float64)

    @property
    def is_zero_one(self) -> bool:
        """True if every mistake costs 1 and every correct decision 0."""
        return (
            not self.varies_by_row
            and self.costs.shape[0] == self.costs.shape[1]
            and self.decisions == self.classes
            and np.array_equal(self.matrix, 1.0 - np.eye(len(self.costs)))
        )

    def per_row(self, rows: int, column: Any) -> Floats:
        """Return the costs of each row.

        Parameters
        ----------
        rows : int
            Number of rows.
        column : callable
            Returns the column of the table with a given name.

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
                if isinstance(error, DecibanError) and not isinstance(error, BadCell):
                    raise
                raise LossError(
                    f"the costs {self._place(*place)} are not numbers ({error})", remedy="give numbers"
                ) from None
            if numbers.ndim and numbers.shape != (rows,):
                raise LossError(
                    f"the costs {self._place(*place)} have shape {numbers.shape}",
                    remedy=f"give one for each of {rows:,} rows",
                )
            if not np.isfinite(numbers).all():
                raise LossError(f"a cost {self._place(*place)} is missing or infinite")
            out[(slice(None), *place)] = numbers
        return out

    def _place(self, decision: int, truth: int) -> str:
        """Return the name of a cell for messages."""
        decided = self.decisions[decision] if self.decisions is not None else decision
        true = self.classes[truth] if self.classes is not None else truth
        return f"of deciding {decided!r} when {true!r} is true"

    def _warn_if_transposed(self) -> None:
        """Warn if a correct decision costs more than a wrong one: usually the matrix is transposed."""
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
                        f"deciding {truth!r} correctly costs {right:g}, but deciding {named[d]!r} wrongly costs only "
                        f"{wrong:g}; check that the matrix is not transposed (decision first, truth second)"
                    )
                    return

    def _parts(self) -> list[Part]:
        decisions, classes = self._labels
        head = ("decide", *(f"if {label}" for label in classes))
        lines = [(str(decision), *map(format_cell, self.costs[k])) for k, decision in enumerate(decisions)]
        return [TextTable(lines, head, range(1, len(head)))]

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
        """Return the cost of a decision under a true class, by their labels."""
        decision, truth = place
        return self.costs[self.decision_index(decision), self.class_index(truth)]

    def _columns(self) -> dict[str, Any]:
        """Return the decisions, and the costs under each class."""
        decisions, classes = self._labels
        columns = {str(label): self.costs[:, c].tolist() for c, label in enumerate(classes)}
        return {"decision": list(decisions), **columns}

    def to_dict(self) -> dict[Any, dict[Any, Any]]:
        """Return the costs as {decision: {truth: cost}}, which `Loss.from_costs` accepts.

        Returns
        -------
        dict
        """
        decisions, classes = self._labels
        return {decision: dict(zip(classes, self.costs[k], strict=True)) for k, decision in enumerate(decisions)}

    @property
    def _labels(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Labels of decisions and classes, or their numbers if they have none."""
        decisions = self.decisions if self.decisions is not None else tuple(range(self.costs.shape[0]))
        return decisions, self.classes if self.classes is not None else tuple(range(self.costs.shape[1]))

    def __repr__(self) -> str:
        return f"Loss({self.costs.tolist()}, decisions={self.decisions}, classes={self.classes})"


# --- forms of costs; each parser returns (costs, decisions, classes)


def parse_costs(given: Any) -> LossParts:
    """Return the costs and labels of any form that `Loss.from_costs` accepts, except a Loss."""
    if isinstance(given, str | Path):
        return read_costs(given)
    if isinstance(given, Mapping):
        return parse_mapping(given)
    if hasattr(given, "columns") and hasattr(given, "index"):
        index, columns = list(given.index), list(given.columns)
        unnamed = index == list(range(len(index))) and columns != index
        return given.to_numpy(dtype=object), None if unnamed else tuple(index), tuple(columns)
    if hasattr(given, "__arrow_c_stream__"):
        return parse_arrow(given)
    return given.toarray() if hasattr(given, "toarray") else given, None, None


def parse_mapping(given: Mapping[Any, Any]) -> LossParts:
    """Parse {(decision, truth): cost}, {decision: {truth: cost}} or {class: cost of missing it}."""
    if all(isinstance(cell, Mapping) for cell in given.values()):
        return parse_pairs({(decision, truth): cost for decision, row in given.items() for truth, cost in row.items()})
    kinds = {isinstance(key, tuple) and len(key) == 2 for key in given}
    if len(kinds) != 1:
        raise LossError(
            "the keys of the costs are neither all pairs nor all classes",
            remedy="use (decision, truth) or class as keys",
        )
    return parse_pairs(given) if kinds == {True} else parse_class_costs(given)


def parse_class_costs(costs: Mapping[Any, Cell]) -> LossParts:
    """Parse {class: cost of missing it}."""
    classes = tuple(costs)
    matrix = np.tile(np.array([costs[label] for label in classes], dtype=object), (len(classes), 1))
    matrix[np.diag_indices(len(classes))] = 0.0
    return matrix, classes, classes


def parse_pairs(costs: Mapping[tuple[Any, Any], Cell]) -> LossParts:
    """Parse {(decision, truth): cost}; missing correct decisions cost 0."""
    decisions = tuple(dict.fromkeys(decision for decision, _ in costs))
    truths = dict.fromkeys(truth for _, truth in costs)
    classes = (*(one for one in decisions if one in truths), *(one for one in truths if one not in decisions))
    if len(classes) == 1 and classes[0] not in decisions:
        raise LossError(
            f"there are costs for only one true class, {classes[0]!r}", remedy="give every pair of decision and class"
        )
    matrix = np.empty((len(decisions), len(classes)), dtype=object)
    for k, decision in enumerate(decisions):
        for c, truth in enumerate(classes):
            if (decision, truth) not in costs and decision != truth:
                raise LossError(
                    f"the cost of deciding {decision!r} when {truth!r} is true is missing", remedy="give every pair"
                )
            matrix[k, c] = costs.get((decision, truth), 0.0)
    return matrix, decisions, classes


def parse_arrow(given: Any) -> LossParts:
    """Parse a table with a column per class; a first column of text holds the decisions."""
    import pyarrow as pa

    table = pa.table(given)
    columns = [column.to_pylist() for column in table.columns]
    named = bool(columns) and all(isinstance(cell, str) for cell in columns[0])
    decisions = tuple(columns.pop(0)) if named else None
    return list(zip(*columns, strict=True)), decisions, tuple(table.column_names[1 if named else 0 :])


def read_costs(path: str | Path) -> LossParts:
    """Read a file with a column for each class; its first column has the decisions."""
    from deciban.sources.open import scan
    from deciban.sources.sniff import sniff

    name, decimal = str(path), "."
    try:
        found = sniff(Path(path), name) if Path(path).is_file() else None
        if found is not None and found.kind == "csv":
            columns, decimal = read_csv_cells(Path(path), found), found.decimal
        else:
            source = scan(path, missing=())
            columns = source.with_types(dict.fromkeys(source.names, "VARCHAR")).table().to_pydict()
    except OSError as error:
        raise LossError("cannot read the costs", place=Place(name), remedy=error.strerror or "check the name") from None
    except DataError as error:
        cause = error.cause if isinstance(error.cause, tuple) else (error.cause,)
        place = error.place if error.place.source else replace(error.place, source=name)
        remedy = error.remedy if isinstance(error.remedy, str) else "save the file as CSV in UTF-8"  # no options here
        raise LossError(("cannot read the costs: ", *cause), place=place, remedy=remedy) from None
    (_, decisions), *costs = columns.items()
    if not costs or not decisions:
        raise LossError(
            "the costs are not a table of decisions by classes",
            place=Place(name),
            remedy="put the classes in the first line and the decisions in the first column",
        )
    lines = list(zip(*(cells for _, cells in costs), strict=True))
    for decision, line in zip(decisions, lines, strict=True):
        if not all(cell and cell.strip() for cell in line):
            raise LossError(f"row {decision!r} has an empty cell", place=Place(name), remedy="give every cost")
    named = tuple((decision or "").strip() for decision in decisions)
    return [[parse_cell(cell, decimal) for cell in line] for line in lines], named, tuple(label for label, _ in costs)


def read_csv_cells(path: Path, found: FileFormat) -> dict[str, list[str]]:
    """Return the columns of a small CSV file as text. DuckDB, which reads tables, may not be installed."""
    import pyarrow as pa

    with pa.input_stream(str(path), compression=found.compression) as stream:
        data: bytes = stream.read()
    text = data.decode("utf-8-sig" if found.encoding == "utf-8" else found.encoding, errors="replace")
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=found.delimiter, strict=True)
    lines, width = [], len(found.header)
    try:
        for row in rows:
            if row and len(row) != width:
                cause = f"expected {count_noun(width, 'cell')}, found {len(row)}"
                raise DataError(cause, place=Place(f"{path}, line {rows.line_num}"), remedy="give every cost")
            lines += [row] if row else []
    except csv.Error as error:
        raise DataError(str(error), place=Place(f"{path}, line {rows.line_num}"), remedy="close all quotes") from None
    return {label: [line[k] for line in lines[1:]] for k, label in enumerate(found.header)}


# --- cells and labels


def to_cells(costs: Any) -> npt.NDArray[np.object_]:
    """Return the matrix as an object array; a cell may itself be an array."""
    if not isinstance(costs, np.ndarray):
        try:
            rows = [list(row) for row in costs]
        except TypeError:
            raise LossError(
                f"expected a matrix of costs, found {costs!r}", remedy="give a row per decision and a column per class"
            ) from None
        if not rows or not rows[0]:
            raise LossError("the matrix of costs is empty", remedy="give a row per decision and a column per class")
        if any(len(row) != len(rows[0]) for row in rows):
            raise LossError(
                "the rows of the costs have different lengths", remedy="give a cost for every class in each"
            )
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
    """Return True if a cost is a number; booleans are not."""
    return isinstance(cell, int | float | np.integer | np.floating) and not isinstance(cell, bool)


def is_constant(cells: npt.NDArray[np.object_]) -> bool:
    """Return True if a decision has the same cost under every class."""
    return all(is_number(cell) and cell == cells[0] for cell in cells)


def check_cell(cell: Cell, place: str) -> None:
    """Raise a LossError unless a cost is a finite number, the name of a column or an array."""
    if is_number(cell):
        try:
            finite = bool(np.isfinite(float(cell)))
        except OverflowError:
            finite = False
        if not finite:
            raise LossError(f"the cost {place} is {cell}", remedy="give a finite number")
    elif not isinstance(cell, str) and np.ndim(cell) != 1:
        raise LossError(f"the cost {place} is {cell!r}", remedy="give a number, the name of a column or an array")


def parse_cell(cell: str, decimal: str) -> float | str:
    """Return a number, or the name of a column if the text is not a number."""
    try:
        return float(cell.replace(decimal, "."))
    except ValueError:
        return cell.strip()


def format_cell(cell: Cell) -> str:
    """Return the text of a cost."""
    return f"{float(cell):g}" if is_number(cell) else (cell if isinstance(cell, str) else "per row")


def to_plain_labels(labels: Any) -> tuple[Any, ...]:
    """Return labels as Python objects; dates stay NumPy values."""
    if isinstance(labels, set | frozenset):
        raise LossError("the labels of a loss need an order", remedy="give a list instead of a set")
    return tuple(
        label.item()
        if isinstance(label, np.generic) and not isinstance(label, np.datetime64 | np.timedelta64)
        else label
        for label in labels
    )


def find_label(label: Any, among: Sequence[Any]) -> int | None:
    """Return the position of a label: the equal one or, since files hold only text, the one spelled the same."""
    for k, other in enumerate(among):
        if type(other) is type(label) and other == label:
            return k
    equal = [k for k, other in enumerate(among) if bool(other == label)]
    spelled = [k for k, other in enumerate(among) if same_label(other, label)]
    for found in (equal, spelled):
        if len(found) > 1:
            raise LossError(
                (f"the label {label!r} is ambiguous: it matches ", Labels([among[k] for k in found])),
                remedy="use the exact label",
            )
        if found:
            return found[0]
    return None
