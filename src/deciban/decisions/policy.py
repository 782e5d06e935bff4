"""From posteriors to decisions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from deciban import kernels
from deciban.decisions.loss import Loss
from deciban.errors import UsageError
from deciban.model.batching import row_ranges
from deciban.util.arrays import Codes, Floats
from deciban.util.parallel import map_in_threads
from deciban.util.text_tables import aligned

Labels = npt.NDArray[Any]


@dataclass(frozen=True, repr=False)
class Decisions:
    """The decision of least risk for each row, its expected loss, and the next best decision with its own.

    Ties go to the decision that stands first in the loss.

    Attributes
    ----------
    loss : Loss
        The loss, with labels for its decisions and classes.
    chosen, second : ndarray of shape (n_rows,)
        The positions of the decision and of the next best one in `loss.decisions`; -1 where there is no other.
    risk, runner_up_risk : ndarray of shape (n_rows,)
        Their expected losses.
    """

    loss: Loss
    chosen: Codes
    risk: Floats
    second: Codes
    runner_up_risk: Floats

    @property
    def labels(self) -> Labels:
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
    def decision(self) -> Labels:
        """The decision of each row, as a label."""
        return np.asarray(self.labels[self.chosen])

    @property
    def runner_up(self) -> Labels:
        """The next best decision of each row, as a label; where there is but one decision, that."""
        return np.asarray(self.labels[np.where(self.second >= 0, self.second, self.chosen)])

    def __len__(self) -> int:
        return self.chosen.size

    def __repr__(self) -> str:
        return str(self)

    def to_frame(self) -> Any:
        """A pandas DataFrame with a line for each row."""
        import pandas as pd

        columns = {"decision": self.decision, "risk": self.risk, "runner_up": self.runner_up}
        return pd.DataFrame({**columns, "runner_up_risk": self.runner_up_risk})

    def to_arrow(self) -> Any:
        """An Arrow table with a line for each row."""
        import pyarrow as pa

        def column(values: Labels) -> Any:
            mixed = values.dtype == object and len({type(value) for value in values}) > 1
            return pa.array([str(value) for value in values] if mixed else values.tolist())

        names = ("decision", "risk", "runner_up", "runner_up_risk")
        return pa.table({name: column(getattr(self, name)) for name in names})

    def __str__(self) -> str:
        lines = [("", "decision", "risk", "runner-up", "its risk")]
        shown = range(len(self)) if len(self) <= 20 else [*range(10), *range(len(self) - 5, len(self))]
        last = -1
        decision, runner_up = self.decision, self.runner_up
        for i in shown:
            if i != last + 1:
                lines.append(("…", "", "", "", ""))
            last = i
            risks = f"{self.risk[i]:.4g}", f"{self.runner_up_risk[i]:.4g}"
            lines.append((str(i), str(decision[i]), risks[0], str(runner_up[i]), risks[1]))
        return aligned(lines)


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
    return loss.per_row(rows, column or _no_column) if loss.varies else loss.matrix[None]


def _no_column(name: str) -> Any:
    raise UsageError(f"the loss names a column {name!r}, but the table's columns have no names; give an array instead")


def risks(posterior: Floats, loss: Loss, column: Callable[[str], Any] | None = None) -> Floats:
    """The expected loss of every decision, row by decision."""
    if not loss.varies:
        return np.asarray(posterior @ loss.matrix.T)
    return np.asarray(np.einsum("ndc,nc->nd", costs_of(loss, len(posterior), column), posterior))


def incurred(decisions: Decisions, labels: Codes, column: Callable[[str], Any] | None = None) -> Floats:
    """What the decisions really cost, given the true classes."""
    costs = costs_of(decisions.loss, len(decisions), column)
    row = np.arange(len(decisions)) if len(costs) > 1 else 0
    return np.asarray(costs[row, decisions.chosen, labels])


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
    def of(cls, decisions: Decisions, costs: Floats, weights: Floats | None = None) -> "CoverageCurve":
        """The curve of decisions that were made without reject, from what each of them cost in truth."""
        if not len(decisions):
            raise UsageError("there are no rows to draw a curve of")
        weight = np.ones(len(decisions)) if weights is None else weights
        levels, place = np.unique(np.append(decisions.risk, 0.0), return_inverse=True)  # ties go to a decision
        behind = np.cumsum(np.bincount(place[:-1], weight, levels.size))
        spent = np.cumsum(np.bincount(place[:-1], weight * costs, levels.size))
        risk = np.divide(spent, behind, out=np.zeros_like(spent), where=behind > 0.0)
        return cls(levels, behind / behind[-1], risk)

    def choose(self, *, risk: float | None = None, coverage: float | None = None) -> float:
        """The cost of rejecting that keeps a bound.

        Parameters
        ----------
        risk : float, default=None
            The highest mean cost of the decided rows: the highest cost of rejecting that keeps it is returned.
        coverage : float, default=None
            The least share of rows to decide: the least cost of rejecting that reaches it is returned.

        Returns
        -------
        float
            For `reject=`.
        """
        if (risk is None) == (coverage is None):
            raise UsageError("choose(risk=…) or choose(coverage=…): give one of the two")
        if coverage is not None:
            if not 0.0 <= coverage <= 1.0:
                raise UsageError(f"coverage={coverage!r}: give a share between 0 and 1")
            return float(self.reject[np.flatnonzero(self.coverage >= coverage - 1e-12)[0]])
        low = np.flatnonzero(self.risk <= (np.inf if risk is None else float(risk)))
        if not low.size:
            raise UsageError(f"risk={risk!r}: no cost of rejecting makes the decided rows that cheap")
        return float(self.reject[low[-1]])

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        shown = np.unique(np.linspace(0, self.reject.size - 1, 12).astype(np.int64))
        lines = [("reject", "decided", "their cost", "cost of all")]
        for k in shown:
            figures = f"{self.reject[k]:.4g}", f"{self.coverage[k]:.3f}", f"{self.risk[k]:.4g}", f"{self.cost[k]:.4g}"
            lines.append(figures)
        return aligned(lines, right=range(4))
