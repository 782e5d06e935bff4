"""What is known of the error of a rule: its risk, the least possible one, and where each decision is taken."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from deciban.decisions.loss import Loss
from deciban.errors import UsageError
from deciban.util.arrays import Floats

# Regions that are printed.
MOST_REGIONS_SHOWN = 12


@dataclass(frozen=True)
class Region:
    """An interval in which one decision is taken.

    Attributes
    ----------
    low, high : float
        Its ends.
    decision : object
        The decision that is taken in it.
    areas : ndarray of shape (n_classes,)
        The probability that a row of each class lies in it, joint with the prior of the class.
    """

    low: float
    high: float
    decision: Any
    areas: Floats


@dataclass(frozen=True)
class BayesError:
    """The expected loss of a rule under known distributions; for zero-one loss that is its error.

    Attributes
    ----------
    risk : float
        The expected loss of this rule.
    least : float
        The expected loss of the best rule: the Bayes risk.
    loss : Loss
        What each decision costs under each truth.
    regions : tuple of Region
        In one dimension, the intervals from the left; otherwise none.
    interval : (float, float) or None
        Where the risk was simulated, the bounds between which it lies with 95 %.
    bounds : dict or None
        For two Gaussians in several dimensions, the Bhattacharyya and the Chernoff bound of the error, from above.
    distributions : tuple
        The distribution of each class.
    prior : ndarray of shape (n_classes,) or None
        The prior of each class.
    """

    risk: float
    least: float
    loss: Loss
    regions: tuple[Region, ...] = ()
    interval: tuple[float, float] | None = None
    bounds: dict[str, float] | None = None
    distributions: tuple[Any, ...] = ()
    prior: Floats | None = None

    @property
    def error(self) -> float:
        """The risk, where every mistake costs 1."""
        if not self.loss.is_zero_one:
            raise UsageError("with this loss there is no error, only a risk; ask for .risk")
        return self.risk

    @property
    def avoidable(self) -> float:
        """The risk of the rule less that of the best one."""
        return max(self.risk - self.least, 0.0)

    @property
    def boundaries(self) -> tuple[float, ...]:
        """The points at which the decision changes, in one dimension."""
        return tuple(region.low for region in self.regions[1:])

    @property
    def areas(self) -> Floats:
        """The probability of each decision with each truth; off the matching places these are the error areas."""
        if not self.regions:
            raise UsageError("areas are known in one dimension; in more only the risk is simulated")
        decisions = list(self.loss.decisions or ())
        total = np.zeros((len(decisions), len(self.loss.classes or ())))
        for region in self.regions:
            total[decisions.index(region.decision)] += region.areas
        return total

    def __str__(self) -> str:
        name = "error" if self.loss.is_zero_one else "risk"
        lines = [
            f"{name} {self.risk:.6g}" + (f", of which {self.avoidable:.6g} is avoidable" if self.avoidable else "")
        ]
        if self.interval is not None:
            lines[0] += f" (between {self.interval[0]:.6g} and {self.interval[1]:.6g} with 95 %)"
        shown, more = self.regions[:MOST_REGIONS_SHOWN], len(self.regions) - MOST_REGIONS_SHOWN
        lines += [f"  {r.low:.6g} to {r.high:.6g}: decide {r.decision}" for r in shown]
        if more > 0:
            lines.append(f"  ({more} more regions)")
        lines += [f"  {bound} bound {value:.6g}" for bound, value in (self.bounds or {}).items()]
        return "\n".join(lines)
