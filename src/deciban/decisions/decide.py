"""Decisions from posteriors: `decide`, `Decisions`, expected losses and `CoverageCurve`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from deciban import kernels
from deciban.decisions.loss import Loss
from deciban.errors import Argument, DataError, Labels, Place, UsageError
from deciban.model.batches import row_ranges
from deciban.sources.open import open_table
from deciban.tables.labels import LabelArray
from deciban.tables.table import Table
from deciban.typing import Costs, SupportsArrow
from deciban.util.arrays import Codes, Floats
from deciban.util.frames import remember_library
from deciban.util.parallel import map_in_threads
from deciban.util.results import Part, Result, TextTable
from deciban.util.text_tables import format_class

# Posteriors printed with three digits need not sum to exactly 1.
MAX_SUM_ERROR = 1e-3

# Tables of at most this many rows are printed in full.
MAX_ROWS_PRINTED = 20

# Points of a coverage curve that are printed.
MAX_POINTS_PRINTED = 12


# Columns of tables of decisions.
COLUMNS = ("decision", "risk", "second_best", "second_best_risk")


@dataclass(frozen=True, repr=False)
class Decisions(Result):
    """Decision with the least expected loss for each row, its risk, and the second-best decision.

    Ties go to the decision that comes first in the loss. Print it for a table. `to_frame` returns a line for each row:
    ``decision``, ``risk``, ``second_best`` and ``second_best_risk``.

    Attributes
    ----------
    loss : Loss
        The loss, with labels for its decisions and classes.
    decision, second_best : ndarray of shape (n_rows,)
        Labels of the best and of the second-best decision.
    risk, second_best_risk : ndarray of shape (n_rows,)
        Expected losses of these two decisions.
    decision_index, second_best_index : ndarray of shape (n_rows,)
        Positions of the two decisions in `loss.decisions`; -1 if the loss has only one decision.
    """

    loss: Loss
    decision_index: Codes
    risk: Floats
    second_best_index: Codes
    second_best_risk: Floats

    @property
    def labels(self) -> LabelArray:
        """Labels of all decisions of the loss, as an array."""
        decisions = self.loss.decisions or ()
        found = np.asarray(decisions)
        same = found.ndim == 1 and len({type(label) for label in decisions}) == 1
        if same and found.dtype.kind in "biufUMm":
            return found
        found = np.empty(len(decisions), dtype=object)
        found[:] = decisions
        return found

    @property
    def decision(self) -> LabelArray:
        """Label of the best decision for each row."""
        return np.asarray(self.labels[self.decision_index])

    @property
    def second_best(self) -> LabelArray:
        """Label of the second-best decision for each row; the best one if the loss has only one decision."""
        return np.asarray(
            self.labels[np.where(self.second_best_index >= 0, self.second_best_index, self.decision_index)]
        )

    def __len__(self) -> int:
        return self.decision_index.size

    def _columns(self) -> dict[str, LabelArray]:
        return {name: getattr(self, name) for name in COLUMNS}

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the columns of `to_frame` as lists.

        Returns
        -------
        dict
            ``decision``, ``risk``, ``second_best`` and ``second_best_risk``.
        """
        return {name: values.tolist() for name, values in self._columns().items()}

    def _parts(self) -> list[Part]:
        lines: list[tuple[str, ...]] = []
        shown = range(len(self)) if len(self) <= MAX_ROWS_PRINTED else [*range(10), *range(len(self) - 5, len(self))]
        last = -1
        decision, second_best = self.decision, self.second_best
        for i in shown:
            if i != last + 1:
                lines.append(("…", "", "", "", ""))
            last = i
            risks = f"{self.risk[i]:.4g}", f"{self.second_best_risk[i]:.4g}"
            lines.append((str(i), format_class(decision[i]), risks[0], format_class(second_best[i]), risks[1]))
        return [TextTable(lines, ("", "decision", "risk", "second best", "second-best risk"))]


def choose_decisions(posterior: Floats, loss: Loss, column: Callable[[str], Any] | None = None) -> Decisions:
    """Return the decisions with the least expected loss.

    `loss` must have the classes of the posterior. `column` returns a column by name, for costs that vary by row.
    """
    costs = collect_costs(loss, len(posterior), column)
    best, second = (np.empty(len(posterior), dtype=np.int32) for _ in range(2))
    risk, second_risk = (np.empty(len(posterior)) for _ in range(2))
    rows = np.ascontiguousarray(posterior)
    constant = (costs == costs[:, :, :1]).all(axis=(0, 2)) & (len(costs) == 1)

    def batch(span: tuple[int, int]) -> None:
        here = slice(*span)
        some = costs if len(costs) == 1 else costs[here]
        kernels.scoring.least_risk(rows[here], some, constant, best[here], risk[here], second[here], second_risk[here])

    for _ in map_in_threads(batch, row_ranges(len(rows))):
        pass
    return Decisions(loss, best, risk, second, second_risk)


def collect_costs(loss: Loss, rows: int, column: Callable[[str], Any] | None) -> Floats:
    """Return the costs as (row, decision, class), with a single row if they are the same for all rows."""
    return loss.per_row(rows, column or _no_column) if loss.varies_by_row else loss.matrix[None]


def _no_column(name: str) -> Any:
    raise UsageError(
        f"the loss refers to the column {name!r}, but the columns of the table have no names",
        remedy="give the costs as an array",
    )


def compute_risks(posterior: Floats, loss: Loss, column: Callable[[str], Any] | None = None) -> Floats:
    """Return the expected loss of every decision, row by decision."""
    if not loss.varies_by_row:
        return np.asarray(posterior @ loss.matrix.T)
    return np.asarray(np.einsum("ndc,nc->nd", collect_costs(loss, len(posterior), column), posterior))


def compute_incurred_costs(decisions: Decisions, labels: Codes, column: Callable[[str], Any] | None = None) -> Floats:
    """Return the cost of the decision taken for each row, given the true classes."""
    costs = collect_costs(decisions.loss, len(decisions), column)
    row = np.arange(len(decisions)) if len(costs) > 1 else 0
    return np.asarray(costs[row, decisions.decision_index, labels])


def decide(
    posterior: npt.ArrayLike | Mapping[Any, Any] | SupportsArrow,
    loss: Loss | Costs | None = None,
    *,
    classes: npt.ArrayLike | None = None,
    reject: float | None = None,
    costs: Mapping[str, Any] | None = None,
) -> Decisions:
    r"""Return the decision with the least expected loss for each row of posteriors.

    The posteriors may come from any classifier.

    Parameters
    ----------
    posterior : array-like of shape (n_rows, n_classes), table, or mapping from class to float
        An array, as `predict_proba` returns; a table (pandas, polars, Arrow, a dict of columns) whose columns have the
        names of the classes, or P(class) as written by `deciban predict`; or the probabilities of one row, as `bayes`
        returns.
    loss : Loss or any form that `Loss.from_costs` accepts, default=None
        Cost of each decision under each true class, decision first. None is zero-one loss: every mistake costs 1.
    classes : sequence of labels, default=None
        Labels of the columns of an array, in order (such as `clf.classes_`), or the columns of a table to use. None:
        0, 1, … for an array; for a table the classes of the loss, or all columns.
    reject : float, default=None
        Cost of leaving a row undecided. None: every row is decided.
    costs : mapping from str to array-like of shape (n_rows,), default=None
        Costs that vary by row, by the names used in the loss. None: they are columns of the table.

    Returns
    -------
    Decisions
        ``decision``, ``risk``, ``second_best`` and ``second_best_risk`` of each row, as arrays or by `to_frame()`.
        Ties go to the decision that comes first in the loss.

    Raises
    ------
    DataError
        If a row is not a probability distribution, or a class has no column.
    UsageError
        If the loss does not match the classes, or costs that it refers to are missing.

    See Also
    --------
    Loss : Costs of decisions.
    MinimumRisk : The same as a scikit-learn classifier.
    BayesClassifier.decide : The same for the rows of a table.

    Notes
    -----
    The decision d of least risk, by the loss L and the posterior of each class c:

    .. math:: d(x) = \arg \min_d \sum_c L(d, c) \, P(c \mid x)

    Examples
    --------
    >>> from deciban import decide
    >>> print(decide({"healthy": [0.98, 0.7], "sick": [0.02, 0.3]}, {"healthy": 1, "sick": 10}))
       decision  risk  second best  second-best risk
    0  healthy   0.2   sick         0.98
    1  sick      0.7   healthy      3
    """
    given = None if loss is None else Loss.from_costs(loss)
    if isinstance(posterior, Mapping) and all(np.ndim(share) == 0 for share in posterior.values()):
        posterior = {str(label): [share] for label, share in posterior.items()}
    table = open_table(posterior)
    loss_classes = None if given is None else given.classes
    if table.names is None:
        labels, columns = _match_positions(table, classes, loss_classes)
    else:
        labels, columns = _match_names(table, loss_classes if classes is None else classes)
    shares = np.ascontiguousarray(table.numbers(columns), dtype=np.float64)
    _check(shares)
    loss_for_classes = (Loss.zero_one(labels) if given is None else given).for_classes(labels)
    loss_for_classes = loss_for_classes if reject is None else loss_for_classes.with_reject(reject)

    def column(name: str) -> Any:
        if costs is not None and name in costs:
            return costs[name]
        if table.names is None or name not in table.names:
            raise UsageError(f"the costs {name!r} of the loss are missing", remedy=("pass them in ", Argument("costs")))
        return table.numbers([table.names.index(name)])[:, 0]

    return remember_library(choose_decisions(shares, loss_for_classes, column), posterior)


def _match_positions(table: Table, classes: Any, loss_classes: Any) -> tuple[list[Any], list[int]]:
    """Return the classes and columns of an array; classes are required if the loss has labels of its own."""
    labels = list(range(table.width)) if classes is None else list(classes)
    if classes is None and loss_classes is not None and set(loss_classes) != set(labels):
        raise UsageError(
            ("the columns of the posteriors have no names, and the loss has the classes ", Labels(loss_classes)),
            remedy=("give the class of each column, in order, in ", Argument("classes")),
        )
    if len(labels) != table.width:
        raise UsageError(
            (f"the posteriors have {table.width} columns for {len(labels)} classes ", Labels(labels)),
            remedy="give one for each",
        )
    return labels, list(range(table.width))


def _match_names(table: Table, classes: Any) -> tuple[list[Any], list[int]]:
    """Return the classes and their columns, found by the name of the class or as P(class)."""
    names = list(table.names or ())
    place = {name[2:-1]: k for k, name in enumerate(names) if name.startswith("P(") and name.endswith(")")}
    place = place or {name: k for k, name in enumerate(names)}
    labels = list(place) if classes is None else list(classes)
    place |= {name.capitalize(): k for name, k in place.items() if name in ("true", "false")}  # as Python has them
    if absent := [label for label in labels if str(label) not in place]:
        raise DataError(f"the posteriors have no column {str(absent[0])!r}; there are {', '.join(map(repr, names))}")
    return labels, [place[str(label)] for label in labels]


def _check(shares: Floats) -> None:
    """Raise a DataError for the first row that is not a probability distribution."""
    bad = ~((shares >= 0.0).all(axis=1) & (np.abs(shares.sum(axis=1) - 1.0) <= MAX_SUM_ERROR))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        found = ", ".join(f"{share:.6g}" for share in shares[row, :6]) + (", …" if shares.shape[1] > 6 else "")
        raise DataError(
            f"the posterior {found} is invalid",
            place=Place(row=row),
            remedy="give the probability of every class; they must sum to 1",
        )


@dataclass(frozen=True, repr=False)
class CoverageCurve(Result):
    """Share of rows that are decided, and their mean cost, for every cost of rejecting a row.

    `BayesClassifier.coverage_curve` returns it. `to_frame` returns ``reject``, ``coverage``, ``risk`` and ``cost``.

    Attributes
    ----------
    reject : ndarray of shape (n_points,)
        Costs of rejecting a row, ascending.
    coverage : ndarray of shape (n_points,)
        Share of rows that are decided.
    risk : ndarray of shape (n_points,)
        Mean cost of the decided rows; 0 if no row is decided.
    cost : ndarray of shape (n_points,)
        Mean cost of all rows, where a rejected row costs `reject`.
    """

    reject: Floats
    coverage: Floats
    risk: Floats

    @property
    def cost(self) -> Floats:
        """Mean cost of all rows, where a rejected row costs `reject`."""
        return np.asarray(self.coverage * self.risk + (1.0 - self.coverage) * self.reject)

    @classmethod
    def from_decisions(cls, decisions: Decisions, costs: Floats, weights: Floats | None = None) -> CoverageCurve:
        """Create the curve from decisions made without rejecting.

        Parameters
        ----------
        decisions : Decisions
            Decisions without the option to reject.
        costs : ndarray of shape (n_rows,)
            Cost of each decision, given the true class.
        weights : ndarray of shape (n_rows,), default=None
            Weight of each row. None: all 1.

        Returns
        -------
        CoverageCurve
        """
        if not len(decisions):
            raise UsageError("a coverage curve needs at least one row")
        weight = np.ones(len(decisions)) if weights is None else weights
        levels, place = np.unique(np.append(decisions.risk, 0.0), return_inverse=True)  # at equal risk a row is decided
        behind = np.cumsum(np.bincount(place[:-1], weight, levels.size))
        spent = np.cumsum(np.bincount(place[:-1], weight * costs, levels.size))
        risk = np.divide(spent, behind, out=np.zeros_like(spent), where=behind > 0.0)
        return cls(levels, behind / behind[-1], risk)

    def choose_reject(self, *, max_risk: float | None = None, min_coverage: float | None = None) -> float:
        """Return the cost of rejecting that keeps a bound on the risk or on the coverage.

        Parameters
        ----------
        max_risk : float, default=None
            Highest acceptable mean cost of the decided rows. The highest cost of rejecting that keeps it is returned.
        min_coverage : float, default=None
            Smallest acceptable share of decided rows. The lowest cost of rejecting that reaches it is returned.

        Returns
        -------
        float
            Cost of rejecting, to be passed as `reject`.

        Raises
        ------
        UsageError
            If not exactly one bound is given, or no cost of rejecting keeps it.
        """
        if (max_risk is None) == (min_coverage is None):
            raise UsageError(("give either ", Argument("max_risk"), " or ", Argument("min_coverage")))
        if min_coverage is not None:
            if not 0.0 <= min_coverage <= 1.0:
                raise UsageError("give a share between 0 and 1", parameter=Argument("min_coverage", min_coverage))
            return float(self.reject[np.flatnonzero(self.coverage >= min_coverage - 1e-12)[0]])
        low = np.flatnonzero(self.risk <= (np.inf if max_risk is None else float(max_risk)))
        if not low.size:
            raise UsageError(
                "no cost of rejecting makes the decided rows that cheap", parameter=Argument("max_risk", max_risk)
            )
        return float(self.reject[low[-1]])

    def to_dict(self) -> dict[str, list[float]]:
        """Return the columns of `to_frame` as lists.

        Returns
        -------
        dict
            ``reject``, ``coverage``, ``risk`` and ``cost``.
        """
        return {name: values.tolist() for name, values in self._columns().items()}

    def _columns(self) -> dict[str, Floats]:
        return {"reject": self.reject, "coverage": self.coverage, "risk": self.risk, "cost": self.cost}

    def _parts(self) -> list[Part]:
        shown = np.unique(np.linspace(0, self.reject.size - 1, MAX_POINTS_PRINTED).astype(np.int64))
        lines = []
        for k in shown:
            point = f"{self.reject[k]:.4g}", f"{self.coverage[k]:.3f}", f"{self.risk[k]:.4g}", f"{self.cost[k]:.4g}"
            lines.append(point)
        return [TextTable(lines, tuple(self._columns()), range(4))]
