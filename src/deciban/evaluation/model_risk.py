"""Risk of a classifier if its generative model were true."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from deciban.decisions.bayes_error import compute_mean_interval
from deciban.decisions.decide import choose_decisions
from deciban.decisions.loss import Loss
from deciban.errors import Argument, UsageError
from deciban.explain.decision_curves import compute_exact_risk
from deciban.model.fitted import Fitted
from deciban.model.model import posteriors
from deciban.scoring.predict import score_table
from deciban.scoring.simulate import sample_rows
from deciban.tables.convert import as_table
from deciban.util.results import Part, Result

# Smaller positive risks would be printed as 0.0000.
MIN_SHOWN = 0.00005


@dataclass(frozen=True, repr=False)
class BayesRiskEstimate(Result):
    """Risk of the best rule if the generative model were true, with its interval and the leave-one-out risk.

    risk: the plug-in estimate.
    interval: its 95% interval; of width 0 if the risk is exact.
    leave_one_out: the leave-one-out risk; None if the training rows are not in memory.
    loss: the costs.
    """

    risk: float
    interval: tuple[float, float]
    leave_one_out: float | None
    loss: Loss

    def to_dict(self) -> dict[str, Any]:
        """Return the risks as plain values."""
        return {"risk": self.risk, "interval": list(self.interval), "leave_one_out": self.leave_one_out}

    def _columns(self) -> dict[str, Any]:
        return {"risk": [self.risk], "low": [self.interval[0]], "high": [self.interval[1]],
                "leave_one_out": [self.leave_one_out]}  # fmt: skip

    def _parts(self) -> list[Part]:
        low, high = self.interval
        how = f"95% interval {max(low, 0.0):.4f} to {high:.4f}"
        if low == high:
            how = "exact"
        elif high < MIN_SHOWN:
            how = "95% interval below 0.0001"
        risk = "< 0.0001" if 0.0 < self.risk < MIN_SHOWN else f"{self.risk:.4f}"
        found = f"model-based estimate {risk} ({how})"
        return [found + ("" if self.leave_one_out is None else f"; leave-one-out {self.leave_one_out:.4f}")]


def model_risk(fitted: Fitted, loss: Loss, n_samples: int, random_state: Any) -> tuple[float, tuple[float, float]]:
    """Return the risk of the best decisions if the generative model were true, and its 95% interval.

    It is exact, with an interval of width 0, for one column whose distribution is known exactly; else it is simulated.
    """
    if not isinstance(n_samples, int | np.integer) or n_samples < 100:
        raise UsageError("expected at least 100 rows to simulate", parameter=Argument("n_samples", n_samples))
    _ = loss.matrix  # raises if costs vary by row: simulated rows have none
    if (exact := compute_exact_risk(fitted, loss)) is not None:
        return exact, (exact, exact)
    drawn, _ = sample_rows(fitted, n_samples, random_state)
    model = fitted.generative
    table = model.schema.table_as_learned(as_table(drawn))
    posterior = score_table(model, table, posteriors, False, fitted.settings.threads)
    return compute_mean_interval(choose_decisions(posterior, loss).risk)
