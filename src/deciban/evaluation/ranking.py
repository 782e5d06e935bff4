"""The area under the ROC curve: how well the probability of a class ranks its rows above the others."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from deciban.util.arrays import Codes, Floats, Integers

# So many probabilities are kept one by one. Of more, the log-odds are counted in bins of a hundredth of a nat between
# -40 and 40 nats, unless there are more classes than MOST_TALLIED.
MOST_KEPT = 1 << 22
MOST_TALLIED = 256
BINS_PER_NAT = 100
MOST_NATS = 40
TALLY_BINS = 2 * MOST_NATS * BINS_PER_NAT


@dataclass(frozen=True)
class Ranking:
    """The posteriors of rows whose class is known; those of two sets of rows add.

    posterior: row by class. labels, weights: the class and the weight of each row.
    tallies: class by (others, own) by bin of log-odds: the weight of rows that are not kept one by one.
    given_up: there were too many rows of too many classes; no area is known.
    """

    posterior: Floats
    labels: Codes
    weights: Floats
    tallies: Floats | None = None
    given_up: bool = False

    def __add__(self, other: "Ranking") -> "Ranking":
        both = Ranking(
            np.concatenate([self.posterior, other.posterior]),
            np.concatenate([self.labels, other.labels]),
            np.concatenate([self.weights, other.weights]),
        )
        whole = self.tallies is None and other.tallies is None and not (self.given_up or other.given_up)
        if whole and both.posterior.size <= MOST_KEPT:
            return both
        if self.given_up or other.given_up or both.posterior.shape[1] > MOST_TALLIED:
            return both._without_rows(None)
        return both._without_rows(self._tallied() + other._tallied())

    @property
    def compact(self) -> "Ranking":
        """The same with tallies, where these are smaller than the rows; without both of too many classes."""
        if self.labels.size <= 2 * TALLY_BINS:
            return self
        return self._without_rows(self._tallied() if self.posterior.shape[1] <= MOST_TALLIED else None)

    def _without_rows(self, tallies: Floats | None) -> "Ranking":
        """What is left when no row is kept by itself: tallies, or nothing."""
        none: Any = slice(0, 0)
        rows = self.posterior[none], self.labels[none], self.weights[none]
        return Ranking(*rows, tallies, given_up=tallies is None)

    def among(self, places: Integers, classes: int) -> "Ranking":
        """The same among more classes, with the present ones at `places`; the others have the posterior 0."""
        posterior = np.zeros((self.labels.size, classes))
        posterior[:, places] = self.posterior
        moved = replace(self, posterior=posterior, labels=places[self.labels].astype(self.labels.dtype))
        if self.tallies is None:
            return moved
        tallies = np.zeros((classes, *self.tallies.shape[1:]))
        tallies[:, 0, 0] = self.tallies[0].sum()
        tallies[places] = self.tallies
        return replace(moved, tallies=tallies)

    def area(self, label: int) -> float | None:
        """P(a row of the class has a higher posterior of it than a row of another class); ties count half.

        None where there are no rows of the class, or of others, or where it is not known.
        """
        if self.given_up:
            return None
        if self.tallies is not None:
            others, own = self._tallied()[label]
        else:
            place = np.unique(self.posterior[:, label], return_inverse=True)[1]
            is_own = self.labels == label
            others, own = (np.bincount(place, self.weights * side) for side in (~is_own, is_own))
        pairs = own.sum() * others.sum()
        below = np.cumsum(others) - others
        return float(own @ (below + 0.5 * others) / pairs) if pairs > 0.0 else None

    @property
    def areas(self) -> list[float | None]:
        """The area of each class against all others."""
        return [self.area(label) for label in range(self.posterior.shape[1])]

    def _tallied(self) -> Floats:
        """The tallies with the rows that are kept one by one."""
        classes = self.posterior.shape[1]
        bins = TALLY_BINS
        with np.errstate(divide="ignore"):
            log_odds = np.log(self.posterior) - np.log1p(-np.minimum(self.posterior, 1.0))
        place = np.clip((log_odds + MOST_NATS) * BINS_PER_NAT, 0, bins - 1).astype(np.int64)
        found = np.zeros((classes, 2, bins)) if self.tallies is None else self.tallies.copy()
        for label in range(classes):
            side = (self.labels == label).astype(np.int64)
            found[label] += np.bincount(side * bins + place[:, label], self.weights, 2 * bins).reshape(2, bins)
        return found
