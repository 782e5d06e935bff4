"""From posteriors to decisions: `decide`, the risks of decisions, and how many rows a cost of rejecting leaves."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from deciban import kernels
from deciban.decisions.loss import Loss
from deciban.errors import Argument, DataError, Labels, Place, UsageError
from deciban.model.batches import row_ranges
from deciban.sources.open import open_table
from deciban.tables.labels import LabelArray
from deciban.tables.table import Table
from deciban.util.arrays import Codes, Floats
from deciban.util.frames import data_frame
from deciban.util.parallel import map_in_threads
from deciban.util.text_tables import align_table

# Posteriors that were rounded for people need not sum to just 1.
NEARLY_ONE = 1e-3


@dataclass(frozen=True, repr=False)
class Decisions:
    """The decision of least risk for each row, its expected loss, and the next best decision with its own.

    Ties go to the decision that stands first in the loss.

    Attributes
    ----------
    loss : Loss
        The loss, with labels for its decisions and classes.
    decision_index, second_best_index : ndarray of shape (n_rows,)
        The positions of the decision and of the next best one in `loss.decisions`; -1 where there is no other.
    risk, second_best_risk : ndarray of shape (n_rows,)
        Their expected losses.
    """

    loss: Loss
    decision_index: Codes
    risk: Floats
    second_best_index: Codes
    second_best_risk: Floats

    @property
    def labels(self) -> LabelArray:
        """The labels of the decisions, as an array of their own type."""
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
        """The decision of each row, as a label."""
        return np.asarray(self.labels[self.decision_index])

    @property
    def second_best(self) -> LabelArray:
        """The next best decision of each row, as a label; where there is but one decision, that."""
        return np.asarray(
            self.labels[np.where(self.second_best_index >= 0, self.second_best_index, self.decision_index)]
        )

    def __len__(self) -> int:
        return self.decision_index.size

    def __repr__(self) -> str:
        return str(self)

    def to_frame(self) -> Any:
        """A pandas DataFrame with a line for each row."""
        columns = {"decision": self.decision, "risk": self.risk, "second_best": self.second_best}
        return data_frame({**columns, "second_best_risk": self.second_best_risk})

    def to_arrow(self) -> Any:
        """An Arrow table with a line for each row."""
        import pyarrow as pa

        def column(values: LabelArray) -> Any:
            mixed = values.dtype == object and len({type(value) for value in values}) > 1
            return pa.array([str(value) for value in values] if mixed else values.tolist())

        names = ("decision", "risk", "second_best", "second_best_risk")
        return pa.table({name: column(getattr(self, name)) for name in names})

    def __str__(self) -> str:
        lines = [("", "decision", "risk", "second best", "its risk")]
        shown = range(len(self)) if len(self) <= 20 else [*range(10), *range(len(self) - 5, len(self))]
        last = -1
        decision, second_best = self.decision, self.second_best
        for i in shown:
            if i != last + 1:
                lines.append(("…", "", "", "", ""))
            last = i
            risks = f"{self.risk[i]:.4g}", f"{self.second_best_risk[i]:.4g}"
            lines.append((str(i), str(decision[i]), risks[0], str(second_best[i]), risks[1]))
        return align_table(lines)


def least_risk_decisions(posterior: Floats, loss: Loss, column: Callable[[str], Any] | None = None) -> Decisions:
    """The decisions of least risk; `loss` fits the classes, `column` finds the columns that its costs name."""
    costs = costs_of(loss, len(posterior), column)
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


def costs_of(loss: Loss, rows: int, column: Callable[[str], Any] | None) -> Floats:
    """The costs, row by decision by truth, with one row where they are the same for all."""
    return loss.per_row(rows, column or _no_column) if loss.varies_by_row else loss.matrix[None]


def _no_column(name: str) -> Any:
    raise UsageError(
        f"the loss names a column {name!r}, but the table's columns have no names", remedy="give an array instead"
    )


def risks(posterior: Floats, loss: Loss, column: Callable[[str], Any] | None = None) -> Floats:
    """The expected loss of every decision, row by decision."""
    if not loss.varies_by_row:
        return np.asarray(posterior @ loss.matrix.T)
    return np.asarray(np.einsum("ndc,nc->nd", costs_of(loss, len(posterior), column), posterior))


def incurred(decisions: Decisions, labels: Codes, column: Callable[[str], Any] | None = None) -> Floats:
    """What the decisions really cost, given the true classes."""
    costs = costs_of(decisions.loss, len(decisions), column)
    row = np.arange(len(decisions)) if len(costs) > 1 else 0
    return np.asarray(costs[row, decisions.decision_index, labels])


def decide(
    posterior: Any,
    loss: Any = None,
    *,
    classes: Any = None,
    reject: float | None = None,
    costs: Mapping[str, Any] | None = None,
) -> Decisions:
    """The decision of least expected loss for each row of posteriors, with its risk and the next best one.

    Posteriors alone are enough, whichever classifier they come from.

    Parameters
    ----------
    posterior : array-like of shape (n_rows, n_classes), table, or mapping from class to float
        An array such as `predict_proba` gives; a table (pandas, polars, Arrow, a dict of columns) whose columns are
        named by the classes, or P(class) as `deciban predict` writes them; or the probabilities of one row, such as
        `bayes` gives.
    loss : Loss or anything `Loss.from_costs` takes, default=None
        What each decision costs under each truth, decision first. None is zero-one loss: every mistake costs 1.
    classes : sequence of labels, default=None
        The labels of the columns of an array, in their order (such as `clf.classes_`), or the columns of a table that
        are meant. None: the columns of an array are 0, 1, …, those of a table are the classes of the loss, or all.
    reject : float, default=None
        What it costs to leave a row undecided. None: every row is decided.
    costs : mapping from str to array-like of shape (n_rows,), default=None
        Where the loss names columns, the costs of each name. None: they are columns of the table.

    Returns
    -------
    Decisions
        With `decision`, `risk`, `second_best` and `second_best_risk` of each row, `to_frame()` and `to_arrow()`.
        Ties go to the decision that stands first in the loss.

    Raises
    ------
    DataError
        If a row is no posterior, or a class has no column.
    UsageError
        If the loss does not fit the classes, or costs that it names are nowhere to be found.

    See Also
    --------
    Loss : What mistakes cost.
    MinimumRisk : The same as a classifier of scikit-learn's kind.
    BayesClassifier.decide : The same for the rows of a table.

    Examples
    --------
    >>> from deciban import decide
    >>> print(decide({"healthy": [0.98, 0.7], "sick": [0.02, 0.3]}, {"healthy": 1, "sick": 10}))
       decision  risk  second best  its risk
    0  healthy   0.2   sick         0.98
    1  sick      0.7   healthy      3
    """
    given = None if loss is None else Loss.from_costs(loss)
    if isinstance(posterior, Mapping) and all(np.ndim(share) == 0 for share in posterior.values()):
        posterior = {str(label): [share] for label, share in posterior.items()}
    table = open_table(posterior)
    loss_classes = None if given is None else given.classes
    if table.names is None:
        labels, columns = _unnamed(table, classes, loss_classes)
    else:
        labels, columns = _named(table, loss_classes if classes is None else classes)
    shares = np.ascontiguousarray(table.numbers(columns), dtype=np.float64)
    _check(shares)
    loss_for_classes = (Loss.zero_one(labels) if given is None else given).for_classes(labels)
    loss_for_classes = loss_for_classes if reject is None else loss_for_classes.with_reject(reject)

    def column(name: str) -> Any:
        if costs is not None and name in costs:
            return costs[name]
        if table.names is None or name not in table.names:
            raise UsageError(f"the loss names the costs {name!r}", remedy=("give them in ", Argument("costs")))
        return table.numbers([table.names.index(name)])[:, 0]

    return least_risk_decisions(shares, loss_for_classes, column)


def _unnamed(table: Table, classes: Any, of_loss: Any) -> tuple[list[Any], list[int]]:
    """The classes of the columns of an array, which must be given where the loss has other labels."""
    labels = list(range(table.width)) if classes is None else list(classes)
    if classes is None and of_loss is not None and set(of_loss) != set(labels):
        raise UsageError(
            ("the posteriors have no names of classes, and the loss has ", Labels(of_loss)),
            remedy=("name the class of each column, in their order, in ", Argument("classes")),
        )
    if len(labels) != table.width:
        raise UsageError(
            (f"the posteriors have {table.width} columns for {len(labels)} classes ", Labels(labels)),
            remedy="give one for each",
        )
    return labels, list(range(table.width))


def _named(table: Table, classes: Any) -> tuple[list[Any], list[int]]:
    """The classes, and where their columns are: under their own names, or as P(class)."""
    names = list(table.names or ())
    place = {name[2:-1]: k for k, name in enumerate(names) if name.startswith("P(") and name.endswith(")")}
    place = place or {name: k for k, name in enumerate(names)}
    labels = list(place) if classes is None else list(classes)
    place |= {name.capitalize(): k for name, k in place.items() if name in ("true", "false")}  # as Python has them
    if absent := [label for label in labels if str(label) not in place]:
        raise DataError(f"the posteriors have no column {str(absent[0])!r}; there are {', '.join(map(repr, names))}")
    return labels, [place[str(label)] for label in labels]


def _check(shares: Floats) -> None:
    """Refuse what is no posterior."""
    bad = ~((shares >= 0.0).all(axis=1) & (np.abs(shares.sum(axis=1) - 1.0) <= NEARLY_ONE))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        found = ", ".join(f"{share:.6g}" for share in shares[row, :6]) + (", …" if shares.shape[1] > 6 else "")
        raise DataError(
            f"{found} is no posterior", place=Place(row=row), remedy="give probabilities of all classes, which sum to 1"
        )


@dataclass(frozen=True, repr=False)
class CoverageCurve:
    """The share of rows that is decided, and what these cost, for every cost of rejecting.

    Attributes
    ----------
    reject : ndarray of shape (n_points,)
        Costs of rejecting a row, rising.
    coverage : ndarray of shape (n_points,)
        The share of rows that is decided at each.
    risk : ndarray of shape (n_points,)
        The mean cost of the rows that are decided; 0 where none is.
    cost : ndarray of shape (n_points,)
        The mean cost of all rows, the rejected ones at `reject`.
    """

    reject: Floats
    coverage: Floats
    risk: Floats

    @property
    def cost(self) -> Floats:
        """The mean cost of all rows, the rejected ones at `reject`."""
        return np.asarray(self.coverage * self.risk + (1.0 - self.coverage) * self.reject)

    @classmethod
    def from_decisions(cls, decisions: Decisions, costs: Floats, weights: Floats | None = None) -> "CoverageCurve":
        """The curve of decisions that were made without reject, from what each of them cost in truth."""
        if not len(decisions):
            raise UsageError("there are no rows to draw a curve of")
        weight = np.ones(len(decisions)) if weights is None else weights
        levels, place = np.unique(np.append(decisions.risk, 0.0), return_inverse=True)  # ties go to a decision
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

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        shown = np.unique(np.linspace(0, self.reject.size - 1, 12).astype(np.int64))
        lines = [("reject", "decided", "their cost", "cost of all")]
        for k in shown:
            figures = f"{self.reject[k]:.4g}", f"{self.coverage[k]:.3f}", f"{self.risk[k]:.4g}", f"{self.cost[k]:.4g}"
            lines.append(figures)
        return align_table(lines, right=range(4))
