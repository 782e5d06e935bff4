"""Yes or no, where "no" counts as evidence too."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from deciban import kernels
from deciban.arrays import Codes, Floats, Integers, Numbers, log
from deciban.errors import UsageError
from deciban.families.base import Alpha, LeftOut, OfColumns, Readable, Sampled, check_alpha, refuse_stored
from deciban.families.smoothing import fraction, smoothed
from deciban.statistics import Totals
from deciban.statistics.totals import sparse_arrays

# Cells of a sparse matrix that are written out at a time.
MOST_CELLS = 1 << 22


@dataclass(frozen=True, repr=False)
class Bernoulli(OfColumns):
    """A probability of 1 for each class and column: (ones + alpha) / (rows + 2 alpha).

    threshold: cells above it count as 1, others as 0; None accepts only 0 and 1 (and true and false).
    """

    alpha: Alpha = 1.0
    threshold: float | None = None

    def __post_init__(self) -> None:
        check_alpha(self.alpha)
        if self.threshold is not None and not (isinstance(self.threshold, int | float) and np.isfinite(self.threshold)):
            raise UsageError(f"Bernoulli(threshold={self.threshold!r}): give a finite number, or None")

    @property
    def counts(self) -> Hashable:
        return "Bernoulli", self.cut

    @property
    def cut(self) -> float:
        return 0.5 if self.threshold is None else self.threshold

    def read(self, batch: Readable, columns: Sequence[int]) -> Numbers | sparse.csr_array:
        cells = batch.amounts(columns)
        if not isinstance(cells, np.ndarray) and self.cut < 0.0:
            raise UsageError(f"Bernoulli(threshold={self.threshold}): on sparse data the threshold must be at least 0")
        if self.threshold is None:
            stored = cells if isinstance(cells, np.ndarray) else cells.data
            usable = (stored == 0) | (stored == 1)
            if not usable.all():
                refuse_stored(
                    usable, cells, "0 or 1", "give Bernoulli a threshold=, or use Categorical() or Gaussian()"
                )
        return cells

    def empty(self, classes: int, columns: int) -> Totals:
        return Totals.empty(classes, columns)

    def count(self, cells: Numbers | sparse.csr_array, labels: Codes, weights: Floats, classes: int) -> Totals:
        return Totals.count(cells, labels, weights, classes, self.cut)

    def estimate(self, statistic: Totals) -> "BernoulliLikelihood":
        alpha = np.array(self.alpha)[:, None, None] if isinstance(self.alpha, tuple) else self.alpha
        counts = np.stack([statistic.total.T, statistic.present.T - statistic.total.T], axis=-1)
        one, zero = np.ascontiguousarray(np.moveaxis(smoothed(counts, alpha), -1, 0))
        return BernoulliLikelihood(one, log(one), log(zero), self.cut, self.alpha, statistic)

    def score_left_out(
        self, statistic: Totals, cells: Numbers | sparse.csr_array, rows: LeftOut, slot: Integers, out: Floats
    ) -> None:
        if not isinstance(cells, np.ndarray):
            step = max(1, MOST_CELLS // max(1, cells.shape[1]))
            for first in range(0, cells.shape[0], step):
                some = slice(first, first + step)
                self.score_left_out(statistic, cells[some].toarray(), rows[some], slot, out[some])
            return
        whole, columns = self.estimate(statistic), cells.shape[1]
        codes = np.where(np.isnan(cells), -1, cells > self.cut).astype(np.int32)
        ones, zeros = statistic.total.T, statistic.present.T - statistic.total.T
        blank = np.zeros_like(ones)
        table, counts = (
            np.stack(levels, axis=1).reshape(3 * columns, -1)
            for levels in ((whole.zero, whole.one, blank), (zeros, ones, blank))
        )
        alpha = np.broadcast_to(np.asarray(self.alpha, dtype=np.float64), (columns,))
        start = 3 * np.arange(columns + 1)
        kernels.left_out_lookup(
            codes, rows.labels, rows.taken, start, table, counts, alpha, True, False, np.zeros(columns), slot, out
        )


@dataclass(frozen=True)
class BernoulliLikelihood:
    """P(1 | class), column by class, and the logs of it and of its complement."""

    probability: Floats
    one: Floats
    zero: Floats
    threshold: float
    alpha: Alpha
    statistic: Totals

    def score(self, cells: Numbers | sparse.csr_array, weight: Floats, slot: Integers, out: Floats) -> None:
        if isinstance(cells, np.ndarray):
            kernels.score_binary(cells, self.threshold, self.one, self.zero, weight, slot, out)
            return
        if out.shape[1] > 1:  # block by block every absent word speaks for itself, and `out` is larger than this
            self.score(cells.toarray(), weight, slot, out)
            return
        kernels.score_sparse_binary(*sparse_arrays(cells), self.threshold, self.one, self.zero, weight, out)

    def base(self, cells: Numbers | sparse.csr_array) -> None:
        return None

    def sample(self, labels: Integers, rng: np.random.Generator) -> list[Sampled]:
        chance = self.probability[:, labels]
        return list((rng.random(chance.shape) < chance).astype(np.int64))

    def working(self, cells: Numbers | sparse.csr_array, row: int, column: int, label: int) -> str | None:
        if np.isnan(cells[row, column]):
            return None
        ones, rows = self.statistic.total[label, column], self.statistic.present[label, column]
        top = ones if cells[row, column] > self.threshold else rows - ones
        return fraction(top, rows, self.alpha if isinstance(self.alpha, float | int) else self.alpha[column], 2)
