"""Family of real numbers of any distribution, counted in bins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from deciban import kernels
from deciban.errors import Argument, BadCell, UsageError
from deciban.families.base.checks import FINITE, Unseen, check_amount, check_finite, check_unseen
from deciban.families.base.contract import (
    BaseLikelihood,
    ColumnFamily,
    Covariance,
    DiscriminantTerms,
    FreeParameters,
    LeftOutRows,
    Monotone,
    NumericSummary,
    ParameterEstimates,
    Sampled,
)
from deciban.families.base.lowering import CutPlace, ExportedColumns, Lowered, Refusal, Term, lookup, reject_infinite
from deciban.families.base.monotone import MonotoneShares
from deciban.families.base.smoothing import draw, format_fraction, smooth_shares
from deciban.families.base.spread import find_varying
from deciban.families.base.sql_questions import Later, Number, SqlQuestions
from deciban.families.categorical import add_share_variance, build_lookup_terms, score_lookup_left_out
from deciban.statistics import Bins, Combined, Moments
from deciban.statistics.bins import ColumnBins, Cuts
from deciban.tables.table import Readable
from deciban.util.arrays import Codes, Floats, Integers, Numbers, in_lanes, log

# Maximum number of bits of the index of a bin in a likelihood.
BIN_DIGITS = 48

# Code of a cell in a bin without training rows, if that is an error.
UNSEEN = -2

# Moments of the cells, which determine the width of the bins, and the bins.
MomentsAndBins = Combined[Moments, Bins]


@dataclass(frozen=True, repr=False)
class Binned(ColumnFamily):
    r"""Numbers of any distribution: a histogram per class, (count + alpha) / (rows + alpha * occupied bins) / width.

    The width of a bin is a power of two: the bins of any two shards nest, and their counts merge exactly. Each column
    is a separate block.

    Parameters
    ----------
    bins : int, default=16
        Approximate number of bins that cover four standard deviations of the column.
    alpha : float, default=1.0
        Smoothing: number of rows added to each occupied bin of each class.
    unseen : {"ignore", "smooth", "error"}, default="ignore"
        How to score a value in a bin without training rows: no evidence, the density of a zero count, or a DataError.
    monotone : int or tuple of int, default=None
        Set by `BayesClassifier(monotone=…)`: the ratio of the densities of neighboring classes grows with the number
        (1), falls (-1), or grows in the order of these class indices. A bin without training rows then has the
        density of the bin below.

    Raises
    ------
    UsageError
        If a parameter is out of range.

    See Also
    --------
    Gaussian : Normally distributed numbers.

    Notes
    -----
    Where :math:`n_{bc}` of the :math:`n_c` cells of class c are in the bin b of x, of width :math:`h_b`, and B bins are
    occupied:

    .. math:: p(x \mid c) = \frac{n_{bc} + \alpha}{(n_c + \alpha B) \, h_b}

    Examples
    --------
    >>> from deciban import BayesClassifier, Binned
    >>> sizes = {"size": [1.0, 1.1, 5.0, 5.1, 3.0, 3.1]}        # one class has two modes
    >>> clf = BayesClassifier(Binned(bins=8), tune=None).fit(sizes, ["a", "a", "a", "a", "b", "b"])
    >>> clf.predict({"size": [1.05, 3.05, 5.05]}).tolist()
    ['a', 'b', 'a']
    """

    bins: int = 16
    alpha: float = 1.0
    unseen: Unseen = "ignore"
    monotone: Monotone | None = field(default=None, metadata={"optional": True})

    support = FINITE
    is_binned: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_amount("alpha", self.alpha)
        check_unseen(self.unseen)
        if not isinstance(self.bins, int) or self.bins < 1:
            raise UsageError(f"Binned(bins={self.bins!r}): expected a whole number, at least 1")
        order = self.monotone
        if order not in (None, 1, -1) and (isinstance(order, int) or sorted(order) != list(range(len(order)))):
            raise UsageError(f"Binned(monotone={order!r}): expected 1, -1 or the indices of all classes")
        if self.monotone is not None and (self.alpha == 0.0 or self.unseen != "ignore"):
            raise UsageError("Binned(monotone=…) needs alpha > 0 and unseen='ignore'")

    @classmethod
    def candidates_for(cls, summary: NumericSummary) -> list[Self]:
        return [cls(bins=bins) for bins in (4, 8, 16, 32, 64) if bins <= max(summary.rows / 8, 4)]

    def alternatives(self, summary: NumericSummary | None, others: Sequence[Any], values: int) -> list[Any]:
        """Return only this family, or, if it is monotone, other widths too."""
        same = others if self.monotone is not None else ()
        return [self, *(replace(one, monotone=self.monotone) for one in same if isinstance(one, Binned))]

    def constrain(self, monotone: Monotone) -> Self:
        return replace(self, monotone=monotone)

    def read(self, batch: Readable, columns: Sequence[int]) -> Numbers:
        return batch.numbers(columns)

    def empty(self, classes: int, columns: int) -> MomentsAndBins:
        return Combined((Moments.empty(classes, columns), Bins.empty(classes, columns)))

    def count(self, cells: Numbers, labels: Codes, weights: Floats, classes: int) -> MomentsAndBins:
        moments = Moments.count(cells, labels, weights, classes)  # rejects infinite cells
        return Combined((moments, Bins.count(cells, labels, weights, classes)))

    def count_in_sql(self, questions: SqlQuestions, columns: Sequence[int]) -> Later[MomentsAndBins]:
        numbers = [Number(column) for column in columns]
        moments, bins = questions.moments(numbers), questions.bins(numbers)
        return lambda: Combined((moments(), bins()))

    def estimate(self, statistic: MomentsAndBins) -> BinnedLikelihood:
        moments, cells = statistic.parts
        overall = moments.merge_classes()
        varies = find_varying(overall.variance()[0], overall.mean[0])
        deviation = np.sqrt(overall.variance()[0])
        columns = []
        for j, column in enumerate(cells.columns):
            largest = float(np.abs(column.edges).max(initial=0.0))
            exponent = max(column.exponent, int(np.frexp(largest)[1]) - BIN_DIGITS if largest else 0)
            if varies[j]:
                exponent = max(exponent, round(float(np.log2(4.0 * deviation[j] / self.bins))))
            columns.append(column.coarsen(exponent))
        return BinnedLikelihood.of(columns, varies, self.alpha, self.unseen, self.monotone)

    def score_left_out(
        self, statistic: MomentsAndBins, cells: Numbers, rows: LeftOutRows, slot: Integers, out: Floats
    ) -> None:
        whole = self.estimate(statistic)
        codes = whole.codes(cells)
        codes[:, [not whole.varies(j) for j in range(codes.shape[1])]] = -1
        if self.monotone is not None:
            for j, pooled in enumerate(whole.pooled):
                pooled.score_left_out(codes[:, j], rows, out[:, slot[j]], whole.bins[j].exponent * np.log(2.0))
            return
        log_width = np.array([column.exponent * np.log(2.0) for column in whole.bins])
        score_lookup_left_out(
            whole, [column.table for column in whole.bins], codes, rows, slot, out, log_width=log_width
        )

    def add_covariance(
        self, whole: BinnedLikelihood, statistic: MomentsAndBins, cells: Numbers, weight: Floats, out: Covariance
    ) -> None:
        codes = whole.codes(cells)
        for j, column in enumerate(whole.bins):
            if whole.varies(j):
                add_share_variance(column.table, codes[:, j], self.alpha, weight[j], out.own)


def find_bin_edges(bins: ColumnBins) -> tuple[Floats, Integers]:
    """Return the edges of the occupied bins and of the gaps between them, and how many are not above each bin."""
    edges = np.unique(np.concatenate([bins.cells, bins.cells + 1.0]))
    return np.ldexp(edges, bins.exponent), np.searchsorted(edges, bins.cells, side="right")


def find_bins_below(home: Integers, edges: Floats) -> Integers:
    """Return the last bin not above each place between edges; the first bin for those below it."""
    return np.maximum(np.searchsorted(home, np.arange(edges.size + 1), side="right") - 1, 0)


@dataclass(frozen=True)
class BinEdges:
    """Edges of the bins of all columns, by which cells are encoded.

    codes: of a missing cell and of the cells between edges, those of column j from first[j] on.
    """

    cuts: Cuts
    codes: Codes
    first: Integers

    @classmethod
    def of(cls, bins: list[ColumnBins], unseen: Unseen, monotone: bool) -> Self:
        cuts, codes = [], []
        for column in bins:
            edges, home = find_bin_edges(column)
            other = {"ignore": -1, "smooth": home.size, "error": UNSEEN}[unseen]
            codes.append(np.full(edges.size + 2, other, dtype=np.int32))
            codes[-1][0], codes[-1][1 + home] = -1, np.arange(home.size)
            if monotone and home.size:
                codes[-1][1:] = find_bins_below(home, edges)
            cuts.append(edges)
        first = np.cumsum([0, *map(len, codes[:-1])])
        return cls(Cuts.of(cuts), np.concatenate(codes), first)


@dataclass(frozen=True)
class BinnedLikelihood(BaseLikelihood):
    """Log densities of the occupied bins of all columns in one table; the last row of a column is for a zero count."""

    bins: list[ColumnBins]
    table: Floats
    start: Integers
    alpha: float
    unseen: Unseen
    pooled: tuple[MonotoneShares, ...] = ()

    @classmethod
    def of(
        cls, bins: list[ColumnBins], varies: np.ndarray, alpha: float, unseen: Unseen, monotone: Monotone | None = None
    ) -> BinnedLikelihood:
        rows = []
        fit = MonotoneShares.of
        pooled = () if monotone is None else tuple(fit(column.table + alpha, monotone) for column in bins)
        for j, column in enumerate(bins):
            padded = np.concatenate([column.table, np.zeros((len(column.table), 1))], axis=1)
            shares = log(smooth_shares(padded, alpha, column.cells.size).T)
            if pooled:
                shares[:-1] = pooled[j].log_shares.T
            rows.append(shares - column.exponent * np.log(2.0) if varies[j] else np.zeros_like(shares))
        start = np.concatenate([[0], np.cumsum([len(part) for part in rows])]).astype(np.int64)
        return cls(bins, np.concatenate(rows), start, alpha, unseen, pooled)

    def _shares(self, j: int) -> Floats:
        """Return the probability of each occupied bin of a column, class by bin."""
        return np.exp(self.pooled[j].log_shares) if self.pooled else smooth_shares(self.bins[j].table, self.alpha)

    def varies(self, j: int) -> bool:
        """Return True if column j has evidence."""
        return bool(self.table[self.start[j] : self.start[j + 1]].any())

    def codes(self, cells: Numbers) -> Codes:
        """Return the index of the occupied bin of every cell; -1 if the cell has no evidence."""
        check_finite(cells)
        edges = self._edges
        codes: Codes = edges.codes.take(edges.cuts.find_bins(cells).T + edges.first)
        if self.unseen == "error" and (unseen := codes == UNSEEN).any():
            row, column = (int(i) for i in np.argwhere(unseen)[0])
            raise BadCell(
                column,
                row,
                f"found {cells[row, column].item()!r}, in a bin without training rows",
                ("correct it, or choose ", Argument("unseen", "ignore")),
            )
        return codes

    @cached_property
    def _edges(self) -> BinEdges:
        return BinEdges.of(self.bins, self.unseen, bool(self.pooled))

    def score(self, cells: Numbers, weight: Floats, slot: Integers, out: Floats) -> None:
        kernels.scoring.score_lookup(
            self.codes(cells), self.start, self._lanes, weight, slot, np.empty(self._lanes.shape[1]), out
        )

    @cached_property
    def _lanes(self) -> Floats:
        return in_lanes(self.table)

    def lower(self, columns: ExportedColumns) -> Lowered:
        """Return lookups whose cuts are the edges of the bins and of the gaps between them."""
        blocks: list[list[Term]] = []
        refusals = []
        for j, (column, bins) in enumerate(zip(columns.numbers, self.bins, strict=True)):
            edges, home = find_bin_edges(bins)
            place = CutPlace(column, tuple(edges.tolist()))
            rows = self.table[self.start[j] : self.start[j + 1]]
            unseen = rows[-1] if self.unseen == "smooth" else np.zeros(rows.shape[1])
            between = np.tile(unseen, (edges.size + 1, 1))
            between[home] = rows[:-1]
            if self.pooled and home.size:
                between = rows[find_bins_below(home, edges)]
            blocks.append([lookup(place, between)])
            refusals.append(reject_infinite(column))
            if self.unseen == "error":
                gaps = np.setdiff1d(np.arange(edges.size + 1), home)
                refusals.append(Refusal(place, tuple((1 + gaps).tolist()), never="in a bin without training rows"))
        return Lowered(blocks, refusals)

    def sample(self, labels: Integers, rng: np.random.Generator) -> list[Sampled]:
        drawn: list[Sampled] = []
        for j, column in enumerate(self.bins):
            if not column.cells.size:
                drawn.append(np.full(len(labels), np.nan))
                continue
            place = draw(self._shares(j).T, labels, rng)
            drawn.append(np.ldexp(column.cells[place] + rng.random(len(labels)), column.exponent))
        return drawn

    def estimates(self) -> list[ParameterEstimates]:
        """Return the density in each occupied bin; all bins have the same width."""
        found = []
        for j, column in enumerate(self.bins):
            low, high = (np.ldexp(column.cells + side, column.exponent).tolist() for side in (0.0, 1.0))
            density = np.ldexp(self._shares(j), -column.exponent)
            found.append(ParameterEstimates({"density": density}, tuple(zip(low, high, strict=True))))
        return found

    def curve_points(self, column: int) -> Floats:
        """Return both sides of the edges of each occupied bin."""
        bins = self.bins[column]
        edges = np.unique(np.ldexp(np.concatenate([bins.cells, bins.cells + 1.0]), bins.exponent))
        before = np.minimum(np.nextafter(edges, -np.inf), edges - np.ldexp(1.0, bins.exponent - 40))
        return np.stack([before, edges], axis=1).ravel()

    def free_parameters(self) -> FreeParameters:
        """Return the number of bins minus one, for each class."""
        sizes = [int(column.cells.size) for column in self.bins]
        classes = self.table.shape[1]
        each = [classes * max(size - 1, 0) for size in sizes]
        return FreeParameters.of_columns(each, n_values=[max(size, 1) for size in sizes])

    def discriminant_terms(self, names: Sequence[str]) -> list[DiscriminantTerms]:
        return build_lookup_terms(self, [self._bin_names(j, name) for j, name in enumerate(names)])

    def _bin_names(self, j: int, name: str) -> list[str]:
        column, width = self.bins[j], 2.0 ** self.bins[j].exponent
        named = [f"{name} in [{cell * width:.6g}, {(cell + 1) * width:.6g})" for cell in column.cells]
        return [*named, f"{name} = something else"]

    def formula(self, cells: Numbers, row: int, column: int, label: int) -> str | None:
        code = int(self.codes(cells[row : row + 1])[0, column])
        if code < 0:
            return None
        bins = self.bins[column]
        if not self.varies(column):
            return "constant"
        count = bins.table[label, code] if code < bins.cells.size else 0.0
        if self.pooled:
            total = self.pooled[column].total[label]
            share = format_fraction(float(total * self._shares(column)[label, code]), float(total), 0.0, 1)
            return f"{share} / width {2.0**bins.exponent:g}"
        share = format_fraction(count, bins.table[label].sum(), self.alpha, bins.cells.size)
        return f"{share} / width {2.0**bins.exponent:g}"
