"""Family of flags: yes or no, where "no" is evidence too."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Self

import numpy as np

from deciban import kernels
from deciban.errors import UsageError
from deciban.families.base.checks import FINITE, FLAGS, Alpha, Support, check_alpha
from deciban.families.base.contract import (
    BaseLikelihood,
    ColumnFamily,
    Covariance,
    DiscriminantTerms,
    FreeParameters,
    LeftOutRows,
    ParameterEstimates,
    Sampled,
)
from deciban.families.base.lowering import CutPlace, ExportedColumns, Lowered, lookup, reject_other_than_flags
from deciban.families.base.smoothing import format_fraction, smooth_shares
from deciban.families.base.sql_questions import Flag, Later, SqlQuestions
from deciban.families.categorical import add_share_variance, score_counts_left_out
from deciban.statistics import Totals
from deciban.tables.table import Readable
from deciban.util.arrays import Codes, Floats, Integers, Numbers, in_lanes, log
from deciban.util.sparse import SparseRows, dense_row

# Maximum number of cells of a sparse matrix that are made dense at a time.
MAX_DENSE_CELLS = 1 << 22


@dataclass(frozen=True, repr=False)
class Bernoulli(ColumnFamily):
    r"""Flags: a probability of 1 for each class and column, (ones + alpha) / (rows + 2 alpha).

    Absence is evidence too: a cell of 0 has the probability 1 - p. Each column is a separate block.

    Parameters
    ----------
    alpha : float or tuple of float, default=1.0
        Smoothing: number of ones, and of zeros, added to each class; a tuple has one entry per column. 0 is maximum
        likelihood, 1 Laplace's rule.
    threshold : float, default=None
        Cells above it count as 1, others as 0. None accepts only 0 and 1, true and false.

    Raises
    ------
    UsageError
        If a parameter is out of range.

    See Also
    --------
    Categorical : More than two values.
    Multinomial : Counts instead of presence.

    Notes
    -----
    Where :math:`m_c` of the :math:`n_c` cells of class c are 1:

    .. math:: P(x \mid c) = p_c^x \, (1 - p_c)^{1 - x}, \quad p_c = \frac{m_c + \alpha}{n_c + 2 \alpha}

    Examples
    --------
    >>> from deciban import BayesClassifier, Bernoulli
    >>> clf = BayesClassifier(Bernoulli(), tune=None).fit({"fever": [1, 1, 0, 0]}, ["ill", "ill", "ill", "well"])
    >>> print(clf.estimates()["fever"])                        # (2 + 1)/(3 + 2), (0 + 1)/(1 + 2)
    fever: Bernoulli()
          ill  well
    P(1)  0.6  0.333333
    """

    alpha: Alpha = 1.0
    threshold: float | None = None

    def __post_init__(self) -> None:
        check_alpha(self.alpha)
        if self.threshold is not None and not (isinstance(self.threshold, int | float) and np.isfinite(self.threshold)):
            raise UsageError(f"Bernoulli(threshold={self.threshold!r}): expected a finite number, or None")

    @property
    def statistic_key(self) -> Hashable:
        return type(self).__name__, self.cut

    @property
    def cut(self) -> float:
        """Threshold above which a cell counts as 1."""
        return 0.5 if self.threshold is None else self.threshold

    @property
    def support(self) -> Support:
        return FLAGS if self.threshold is None else FINITE

    def read(self, batch: Readable, columns: Sequence[int]) -> Numbers | SparseRows:
        cells = batch.amounts(columns)
        if not isinstance(cells, np.ndarray) and self.cut < 0.0:
            raise UsageError(
                f"Bernoulli(threshold={self.threshold}): negative thresholds are not supported for sparse data",
                remedy="choose a threshold of at least 0, or pass dense data",
            )
        if self.threshold is None:
            FLAGS.check(cells)
        return cells

    def empty(self, classes: int, columns: int) -> Totals:
        return Totals.empty(classes, columns)

    def count(self, cells: Numbers | SparseRows, labels: Codes, weights: Floats, classes: int) -> Totals:
        return Totals.count(cells, labels, weights, classes, self.cut)

    def count_in_sql(self, questions: SqlQuestions, columns: Sequence[int]) -> Later[Totals]:
        return questions.totals([Flag(column, self.cut) for column in columns], whole=self.threshold is None)

    def check_statistic(self, statistic: Totals) -> None:
        possible = 1.000001 * statistic.present + 1e-6  # removing fractional weights leaves rounding errors
        if (statistic.total > possible).any():
            raise ValueError("there are more ones than rows")

    def estimate(self, statistic: Totals) -> BernoulliLikelihood:
        alpha = np.array(self.alpha)[:, None, None] if isinstance(self.alpha, tuple) else self.alpha
        counts = np.stack([statistic.total.T, statistic.present.T - statistic.total.T], axis=-1)
        one, zero = np.ascontiguousarray(np.moveaxis(smooth_shares(counts, alpha), -1, 0))
        return BernoulliLikelihood(one, log(one), log(zero), self.cut, self.alpha, statistic)

    def score_left_out(
        self, statistic: Totals, cells: Numbers | SparseRows, rows: LeftOutRows, slot: Integers, out: Floats
    ) -> None:
        if not isinstance(cells, np.ndarray):
            step = max(1, MAX_DENSE_CELLS // max(1, cells.shape[1]))
            for first in range(0, cells.shape[0], step):
                some = slice(first, min(first + step, cells.shape[0]))
                dense = cells.slice(some.start, some.stop).dense()
                self.score_left_out(statistic, dense, rows[some], slot, out[some])
            return
        whole, columns = self.estimate(statistic), cells.shape[1]
        codes = np.where(np.isnan(cells), -1, cells > self.cut).astype(np.int32)
        ones, zeros = statistic.total.T, statistic.present.T - statistic.total.T
        blank = np.zeros_like(ones)
        table, counts = (
            np.stack(levels, axis=1).reshape(3 * columns, -1)
            for levels in ((whole.zero, whole.one, blank), (zeros, ones, blank))
        )
        alpha = np.broadcast_to(np.asarray(self.alpha, dtype=np.float64), (columns,)).copy()
        start = 3 * np.arange(columns + 1)
        score_counts_left_out(codes, rows, start, table, counts, alpha, np.zeros(columns), True, False, slot, out)

    def add_covariance(
        self,
        whole: BernoulliLikelihood,
        statistic: Totals,
        cells: Numbers | SparseRows,
        weight: Floats,
        out: Covariance,
    ) -> None:
        dense = cells if isinstance(cells, np.ndarray) else cells.dense()
        alpha = np.broadcast_to(np.asarray(self.alpha, dtype=np.float64), (dense.shape[1],))
        counts = np.stack([statistic.present - statistic.total, statistic.total], axis=-1)
        codes = np.where(np.isnan(dense), -1, dense > self.cut).astype(np.int32)
        for j in np.flatnonzero(weight):
            add_share_variance(counts[:, j], codes[:, j], alpha[j], weight[j], out.own)


# From this number of columns on, starting from the sum of all zeros is faster than adding up all cells.
MANY_COLUMNS = 16


@dataclass(frozen=True)
class BernoulliLikelihood(BaseLikelihood):
    """P(1 | class), column by class, and the logarithms of it and of its complement."""

    probability: Floats
    one: Floats
    zero: Floats
    threshold: float
    alpha: Alpha
    statistic: Totals

    def score(self, cells: Numbers | SparseRows, weight: Floats, slot: Integers, out: Floats) -> None:
        # with one slot per block, `out` is as large as a dense matrix
        if out.shape[1] > 1 or (len(self.one) < MANY_COLUMNS and isinstance(cells, np.ndarray)):
            dense = cells if isinstance(cells, np.ndarray) else cells.dense()
            kernels.scoring.score_binary(dense, self.threshold, self.one, self.zero, weight, slot, out)
            return
        exchange = self._exchange if (weight == 1.0).all() else Exchange.of(self.one, self.zero, weight)
        exchange.score(cells, self.threshold, out)

    @cached_property
    def _exchange(self) -> Exchange:
        return Exchange.of(self.one, self.zero, np.ones(len(self.one)))

    def lower(self, columns: ExportedColumns) -> Lowered:
        cuts = (float(np.nextafter(self.threshold, np.inf)),)
        tables = np.stack([self.zero, self.one], axis=1)
        places = [CutPlace(column, cuts) for column in columns.numbers]
        flags_only = columns.family.threshold is None
        refusals = [reject_other_than_flags(column) for column in columns.numbers] if flags_only else []
        return Lowered([[lookup(place, rows)] for place, rows in zip(places, tables, strict=True)], refusals)

    def sample(self, labels: Integers, rng: np.random.Generator) -> list[Sampled]:
        chance = self.probability[:, labels]
        return list((rng.random(chance.shape) < chance).astype(np.int64))

    def estimates(self) -> list[ParameterEstimates]:
        return [ParameterEstimates({"probability": chance}) for chance in self.probability]

    def free_parameters(self) -> FreeParameters:
        columns, classes = self.probability.shape
        return FreeParameters.of_columns([classes] * columns, n_values=[2] * columns)

    def discriminant_terms(self, names: Sequence[str]) -> list[DiscriminantTerms]:
        return [
            DiscriminantTerms((name,), partial(self._flags, j), (self.one[j] - self.zero[j])[None], self.zero[j])
            for j, name in enumerate(names)
        ]

    def _flags(self, column: int, cells: Numbers | SparseRows) -> Floats:
        some = cells[:, column] if isinstance(cells, np.ndarray) else cells.take_columns([column]).dense()[:, 0]
        return np.where(np.isnan(some), np.nan, some > self.threshold)[:, None]

    def formula(self, cells: Numbers | SparseRows, row: int, column: int, label: int) -> str | None:
        cell = dense_row(cells, row)[column]
        if np.isnan(cell):
            return None
        ones, rows = self.statistic.total[label, column], self.statistic.present[label, column]
        top = ones if cell > self.threshold else rows - ones
        return format_fraction(top, rows, self.alpha if isinstance(self.alpha, float | int) else self.alpha[column], 2)


@dataclass(frozen=True)
class Exchange:
    """Weighted evidence of all columns together, starting from the sum of all zeros and replacing those that are ones.

    Terms of -inf are counted in `blocked` and left out of `zeros`, so that they can be subtracted again. finite: True
    if no term is -inf.
    """

    one: Floats
    zero: Floats
    gain: Floats
    zeros: Floats
    blocked: Floats
    finite: bool

    @classmethod
    def of(cls, one: Floats, zero: Floats, weight: Floats) -> Self:
        used = weight[:, None] != 0.0
        one, zero = (np.multiply(weight[:, None], term, out=np.zeros_like(term), where=used) for term in (one, zero))
        shut = np.isneginf(zero)
        finite = not (shut.any() or np.isneginf(one).any())
        gain = in_lanes(one - zero) if finite else np.zeros((0, 0))
        return cls(one, zero, gain, np.where(shut, 0.0, zero).sum(axis=0), shut.sum(axis=0).astype(np.float64), finite)

    def score(self, cells: Numbers | SparseRows, threshold: float, out: Floats) -> None:
        terms = kernels.scoring.BinaryTerms(self.one, self.zero, self.gain, self.zeros, self.blocked, self.finite)
        total = np.empty(max(self.zeros.size, self.gain.shape[1]))
        if isinstance(cells, np.ndarray):
            columns = cells.shape[1]
            room = np.arange(columns), np.ones(columns), np.empty(columns + 1, dtype=np.int64), total
            kernels.scoring.score_all_binary(cells, threshold, terms, *room, out)
        else:
            kernels.scoring.score_sparse_binary(*cells.kernel_arrays(), threshold, terms, total, out)
