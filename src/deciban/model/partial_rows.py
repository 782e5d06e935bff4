"""Scoring of rows with missing cells by a tuned model."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from deciban.util.arrays import Flags, Floats, Integers, scatter_to

# Known shares of the evidence at which the scale of partial rows is learned, relative to `min_share`. The scale is
# interpolated between them, and 1 from `min_share` on.
SCALED_SHARES = (0.0, 0.25, 0.5, 0.75)


@dataclass(frozen=True)
class MissingAdjustment:
    """Bias and scale of rows with missing cells.

    unknown: the cells without evidence, row by column. bias: the sum of the offsets of the other columns, row by class.
    scale: the factor for the evidence, the bias and the corrections of each row.
    """

    unknown: Flags
    bias: Floats
    scale: Floats


@dataclass(frozen=True)
class PartialRows:
    """Parameters for scoring rows with missing cells by a tuned model.

    A bias learned on complete rows mostly cancels the mean of their evidence. So it is split into an offset per column,
    which is added only if the column is known. Weights learned for many columns do not fit a few of them. So the sum is
    multiplied by a scale that depends on the known share of the evidence. If nothing is known, the posterior is the
    prior.

    offsets: column by class; their sum over the columns is the bias of a complete row. shares: share of each column in
    the total evidence; they sum to 1. min_share: the known share of the evidence from which a row counts as complete,
    as in training; 1 if no training cell was missing. scales: scale of less complete rows, at the shares SCALED_SHARES
    * min_share. informative: columns whose missing cells were evidence in training. In complete rows such a cell counts
    as known.
    """

    offsets: Floats
    shares: Floats
    scales: Floats
    informative: Integers
    min_share: float

    @classmethod
    def even(cls, bias: Floats, columns: Sequence[int], width: int) -> "PartialRows":
        """Return a bias split evenly among the given columns, the default if nothing was learned."""
        shares = np.zeros(width)
        shares[list(columns)] = 1.0 / max(len(columns), 1)
        offsets = shares[:, None] * bias
        return cls(offsets, shares, np.ones(len(SCALED_SHARES)), np.zeros(0, dtype=np.int64), 1.0)

    @property
    def bias(self) -> Floats:
        """Bias of each class in a complete row."""
        return np.asarray(self.offsets.sum(axis=0))

    def adjust_for_missing(self, missing: Flags) -> MissingAdjustment:
        """Return the adjustment of rows with these missing cells, row by column."""
        share = np.where(missing, 0.0, self.shares).sum(axis=1)
        unknown = missing.copy()
        unknown[:, self.informative] &= (share < self.min_share)[:, None]
        bias = np.zeros((len(missing), self.offsets.shape[1]))
        for column in np.flatnonzero(self.offsets.any(axis=1)):  # fixed order, so that a single row gives the same bits
            bias += np.where(unknown[:, column, None], 0.0, self.offsets[column])
        shares, scales = zip(*self.scale_points, strict=True)
        scale = np.where(missing.any(axis=1), np.interp(share, shares, scales), 1.0)  # shares may sum to less than 1
        return MissingAdjustment(unknown, bias, scale)

    @property
    def scale_points(self) -> list[tuple[float, float]]:
        """Scale at increasing shares of the evidence; interpolated between them, and 1 beyond."""
        points = zip((*SCALED_SHARES, 1.0), (*self.scales.tolist(), 1.0), strict=True)
        return [(self.min_share * share, scale) for share, scale in points]

    def reindex_classes(self, positions: Integers, size: int) -> "PartialRows":
        """Return the same with classes moved to other positions among `size`; new classes have no offsets."""
        return replace(self, offsets=scatter_to(self.offsets, positions, size, axis=1))

    def reindex_columns(self, positions: Sequence[int], width: int) -> "PartialRows":
        """Return the same with columns moved to other positions among `width`."""
        places = np.asarray(positions, dtype=np.int64)
        return replace(
            self,
            offsets=scatter_to(self.offsets, places, width, axis=0),
            shares=scatter_to(self.shares, places, width, axis=0),
            informative=np.sort(places[self.informative]),
        )
