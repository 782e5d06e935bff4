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
    """What is known of some rows.

    unknown: the cells that say nothing, row by column. bias: the sum of the offsets of the other columns, row by class.
    scale: what the evidence, the bias and the corrections of each row are multiplied by.
    """

    unknown: Flags
    bias: Floats
    scale: Floats


@dataclass(frozen=True)
class PartialRows:
    """How a tuned model scores rows with missing cells.

    A bias that was learned on complete rows mostly cancels the mean of their evidence. So it is split into offsets of
    columns, each of which counts only where the column is known. And weights that were learned for many columns
    together are not those of a few: the sum is multiplied by a scale that depends on the share of the evidence that is
    known. With nothing known the posterior is the prior.

    offsets: column by class; their sum over the columns is the bias of a complete row. shares: the share of each column
    in the evidence of all; they add up to 1. min_share: the share of the evidence that is known of rows as complete as
    those learned from; 1 where these had no missing cells. scales: the scale of less complete rows, where the known
    columns have SCALED_SHARES of that share. informative: the columns whose missing cells were evidence in training,
    and are evidence in rows that are as complete; such a cell counts as known.
    """

    offsets: Floats
    shares: Floats
    scales: Floats
    informative: Integers
    min_share: float

    @classmethod
    def even(cls, bias: Floats, columns: Sequence[int], width: int) -> "PartialRows":
        """The bias split evenly among the columns that have a family: where nothing better was learned."""
        shares = np.zeros(width)
        shares[list(columns)] = 1.0 / max(len(columns), 1)
        offsets = shares[:, None] * bias
        return cls(offsets, shares, np.ones(len(SCALED_SHARES)), np.zeros(0, dtype=np.int64), 1.0)

    @property
    def bias(self) -> Floats:
        """The bias of each class in a complete row."""
        return np.asarray(self.offsets.sum(axis=0))

    def adjust_for_missing(self, missing: Flags) -> MissingAdjustment:
        """What is known of rows with these missing cells, row by column."""
        share = np.where(missing, 0.0, self.shares).sum(axis=1)
        unknown = missing.copy()
        unknown[:, self.informative] &= (share < self.min_share)[:, None]
        bias = np.zeros((len(missing), self.offsets.shape[1]))
        for column in np.flatnonzero(
            self.offsets.any(axis=1)
        ):  # in a fixed order, so that a row alone has the same bits
            bias += np.where(unknown[:, column, None], 0.0, self.offsets[column])
        shares, scales = zip(*self.scale_points, strict=True)
        return MissingAdjustment(unknown, bias, np.interp(share, shares, scales))

    @property
    def scale_points(self) -> list[tuple[float, float]]:
        """The scale at some shares of the evidence, rising; it is interpolated between them, and 1 beyond."""
        points = zip((*SCALED_SHARES, 1.0), (*self.scales.tolist(), 1.0), strict=True)
        return [(self.min_share * share, scale) for share, scale in points]

    def reindex_classes(self, positions: Integers, size: int) -> "PartialRows":
        """The same with the classes at other positions among `size`; a class that it does not know has no offsets."""
        return replace(self, offsets=scatter_to(self.offsets, positions, size, axis=1))

    def reindex_columns(self, positions: Sequence[int], width: int) -> "PartialRows":
        """The same where the columns of the table have moved to these positions among `width`."""
        places = np.asarray(positions, dtype=np.int64)
        return replace(
            self,
            offsets=scatter_to(self.offsets, places, width, axis=0),
            shares=scatter_to(self.shares, places, width, axis=0),
            informative=np.sort(places[self.informative]),
        )
