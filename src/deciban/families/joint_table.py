"""Family of blocks of discrete columns: the full joint distribution, one probability per tuple of values."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
import pyarrow as pa

from deciban import kernels
from deciban.errors import Argument, BadCell, UsageError
from deciban.families.base.checks import Unseen, check_amount, check_unseen
from deciban.families.base.contract import (
    BaseLikelihood,
    BlockFamily,
    Covariance,
    FreeParameters,
    LeftOutRows,
    ParameterEstimates,
    Sampled,
    group_by_missing,
    score_block,
    score_by_refitting,
    take_rows,
)
from deciban.families.base.lowering import (
    NEVER_SEEN,
    OTHER_PLACE,
    SUMMED_OVER,
    CellPlace,
    CutPlace,
    ExportedColumns,
    Lowered,
    Refusal,
    TupleTerm,
)
from deciban.families.base.shapley import ShapleyValues, shapley
from deciban.families.base.smoothing import draw, format_fraction, smooth_shares
from deciban.families.base.sql_questions import Interval, Later, SqlQuestions
from deciban.families.categorical import Categorical, add_share_variance
from deciban.statistics import Tuples
from deciban.tables.table import Readable
from deciban.util.arrays import Codes, Flags, Floats, Integers, in_lanes, log

Cuts = tuple[tuple[float, ...] | None, ...] | None


@dataclass(frozen=True, repr=False)
class JointTable(BlockFamily):
    r"""Several discrete columns together: P(tuple | class) = (count + alpha) / (rows + alpha * possible tuples).

    All columns are one block. Rows with a missing cell are left out in training. In scoring, missing cells are summed
    over, and by default also values not seen in training (see `unseen`).

    Parameters
    ----------
    alpha : float, default=1.0
        Smoothing: number of rows added to each possible tuple of each class. With 0 and all columns in one
        block, the posterior is plain counting.
    unseen : {"ignore", "smooth", "error"}, default="ignore"
        How to score a value not seen in training: no evidence, the probability of a zero count, or a DataError.
    cuts : tuple of (tuple of float or None), default=None
        For each column, the ascending numbers at which it is cut into intervals, or None to use its values as they are.
        None: no column is cut.

    Raises
    ------
    UsageError
        If a parameter is out of range.

    See Also
    --------
    Categorical : Each column on its own.

    Notes
    -----
    Where :math:`n_{tc}` of the :math:`n_c` rows of class c have the tuple t, and T tuples are possible:

    .. math:: P(t \mid c) = \frac{n_{tc} + \alpha}{n_c + \alpha T}

    Examples
    --------
    >>> from deciban import BayesClassifier, JointTable
    >>> xor = {"a": [0, 0, 1, 1], "b": [0, 1, 0, 1]}
    >>> clf = BayesClassifier({("a", "b"): JointTable(alpha=0)}, tune=None).fit(xor, ["no", "yes", "yes", "no"])
    >>> clf.predict(xor).tolist()
    ['no', 'yes', 'yes', 'no']
    """

    alpha: float = 1.0
    unseen: Unseen = "ignore"
    cuts: Cuts = None

    interaction = True

    def __post_init__(self) -> None:
        check_amount("alpha", self.alpha)
        check_unseen(self.unseen)
        for cuts in self.cuts or ():
            if cuts is not None and not all(a < b for a, b in pairwise((-np.inf, *cuts, np.inf))):
                raise UsageError(f"JointTable(cuts=…): expected finite numbers in ascending order, found {cuts!r}")

    def marginal_family(self) -> Categorical:
        return Categorical()

    @property
    def statistic_key(self) -> Hashable:
        return type(self).__name__, self.cuts

    @property
    def column_order_matters(self) -> bool:
        return self.cuts is not None

    def __str__(self) -> str:
        """Return the repr without the cuts, which may be many."""
        if self.cuts is None:
            return repr(self)
        cut = ", ".join("as it is" if cuts is None else f"{len(cuts) + 1} intervals" for cuts in self.cuts)
        return f"{replace(self, cuts=None)!r} of {cut}"

    def read(self, batch: Readable, columns: Sequence[int]) -> list[pa.Array]:
        if self.cuts is not None and len(self.cuts) != len(columns):
            raise UsageError(f"JointTable(cuts=…): found cuts of {len(self.cuts)} columns, expected {len(columns)}")
        return [self._member(batch, column, k) for k, column in enumerate(columns)]

    def _member(self, batch: Readable, column: int, k: int) -> pa.Array:
        cuts = None if self.cuts is None else self.cuts[k]
        if cuts is not None:
            numbers = batch.numbers([column])[:, 0]
            return pa.array(np.searchsorted(cuts, numbers, side="right"), mask=np.isnan(numbers))
        cells = batch.values([column])
        return pa.array(cells[:, 0], from_pandas=True) if isinstance(cells, np.ndarray) else cells[0]

    def empty(self, classes: int, columns: int) -> Tuples:
        return Tuples.empty(classes, columns)

    def count(self, cells: list[pa.Array], labels: Codes, weights: Floats, classes: int) -> Tuples:
        return Tuples.count(cells, labels, weights, classes)

    def count_in_sql(self, questions: SqlQuestions, columns: Sequence[int]) -> Later[Tuples]:
        pairs = zip(columns, self.cuts or (None,) * len(columns), strict=True)
        found = questions.tuples([column if cuts is None else Interval(column, cuts) for column, cuts in pairs])
        return lambda: self.count(*found())

    def estimate(self, statistic: Tuples) -> JointTableLikelihood:
        every = np.arange(len(statistic.levels))
        table = TupleTable.of(statistic, self.alpha, every)
        return JointTableLikelihood(statistic, self.alpha, self.unseen, table, self.cuts)

    def score_left_out(
        self, statistic: Tuples, cells: list[pa.Array], rows: LeftOutRows, slot: Integers, out: Floats
    ) -> None:
        """Score by formula; rows with the only cell of some level are refitted, because the level disappears."""
        whole = self.estimate(statistic)
        evidence = np.zeros((rows.labels.size, 1, out.shape[2]))
        first = np.zeros(1, dtype=np.int64)
        whole.score(cells, np.ones(1), first, evidence)
        codes = statistic.codes(cells)
        known = whole.complete.find(codes) < statistic.table.shape[1]
        counted = np.flatnonzero((rows.removed > 0.0) & (codes >= 0).all(axis=1) & known)
        alone = np.zeros(counted.size, dtype=np.bool_)
        for j in range(codes.shape[1]):
            held = np.bincount(statistic.tuples[:, j], statistic.table.sum(axis=0), len(statistic.levels[j]))
            alone |= held[codes[counted, j]] <= rows.removed[counted] * (1.0 + 1e-9)
        again, rest = counted[alone], counted[~alone]
        labels, removed = rows.labels[rest], rows.removed[rest]
        place = whole.complete.find(codes[rest])
        own = np.stack([statistic.table[labels, place] - removed, np.zeros(rest.size)], axis=1)
        own[:, 1] = statistic.table.sum(axis=1)[labels] - removed - own[:, 0]
        every = statistic.table.sum(axis=0)[place] - removed
        pair = np.stack([own, np.stack([every, statistic.table.sum() - removed - every], axis=1) - own], axis=1)
        shares = smooth_shares(np.maximum(pair, 0.0), self.alpha, whole.complete.possible)
        evidence[rest, 0, labels] = log(shares[:, 0, 0])
        part = np.zeros((again.size, 1, out.shape[2]))
        score_by_refitting(self, statistic, take_rows(cells, again), rows[again], first, part)
        evidence[again] = part
        out[:, slot[0]] += evidence[:, 0]

    def add_covariance(
        self, whole: JointTableLikelihood, statistic: Tuples, cells: list[pa.Array], weight: Floats, out: Covariance
    ) -> None:
        """Add the variance of the shares of the known members."""
        codes = statistic.codes(cells)
        for pattern, rows in group_by_missing(codes < 0):
            if not pattern.all():
                table = whole.table_of(np.flatnonzero(~pattern))
                part = np.zeros((rows.size, out.own.shape[1]))
                add_share_variance(table.counts, table.find(codes[rows]), table.alpha, weight[0], part)
                out.own[rows] += part


@dataclass(frozen=True)
class JointTableLikelihood(BaseLikelihood):
    """P(tuple | class) of complete tuples; tables for missing members are built on demand."""

    statistic: Tuples
    alpha: float
    unseen: Unseen
    complete: TupleTable
    cuts: Cuts

    def score(self, cells: list[pa.Array], weight: Floats, slot: Integers, out: Floats) -> None:
        codes = self.statistic.codes(cells)
        absent = self._absent(codes, cells)
        for pattern, rows in group_by_missing(absent):
            if pattern.all():
                continue
            table = self.table_of(np.flatnonzero(~pattern))
            place = table.find(codes[rows])[:, None]
            part = np.zeros((rows.size, 1, out.shape[2]))
            first = np.zeros(1, dtype=np.int64)
            kernels.scoring.score_lookup(place, first, table.lanes, weight, first, np.empty(table.lanes.shape[1]), part)
            out[rows, slot[0]] += part[:, 0]

    def shapley_values(self, cells: list[pa.Array]) -> ShapleyValues:
        """Return Shapley values from the tables of subsets of columns, the others summed over."""

        def evidence_of(known: Flags) -> Floats:
            some = [cell if keep else pa.nulls(len(cell), cell.type) for cell, keep in zip(cells, known, strict=True)]
            return score_block(self, some, len(self.statistic.table))

        return shapley(evidence_of, len(cells))

    def table_of(self, columns: Integers) -> TupleTable:
        if columns.size == len(self.statistic.levels):
            return self.complete
        return TupleTable.of(self.statistic, self.alpha, columns)

    def _absent(self, codes: Integers, cells: list[pa.Array]) -> Flags:
        """Return a flag for each cell that is summed over."""
        unseen = codes == -2
        if self.unseen == "error" and unseen.any():
            row, column = (int(i) for i in np.argwhere(unseen)[0])
            found = cells[column][row].as_py()
            raise BadCell(
                column,
                row,
                f"found {found!r}, never seen in training",
                ("correct it, or choose ", Argument("unseen", "ignore")),
            )
        return codes == -1 if self.unseen == "smooth" else codes < 0

    def lower(self, columns: ExportedColumns) -> Lowered:
        cuts, levels = self.cuts or (None,) * len(columns.numbers), self.statistic.levels
        unseen = SUMMED_OVER if self.unseen == "ignore" else NEVER_SEEN
        members: list[CellPlace] = []
        codes, refusals = [], []
        for k, (column, own) in enumerate(zip(columns.numbers, cuts, strict=True)):
            if own is None:
                place: CellPlace = columns.level_place(k, levels[k])
                code = np.array([SUMMED_OVER, unseen, *range(len(levels[k]))])
                never = [OTHER_PLACE]
            else:
                place = CutPlace(column, tuple(map(float, own)))
                code = np.full(place.size, unseen)
                code[0] = SUMMED_OVER
                code[1 + np.asarray(levels[k], dtype=np.int64)] = np.arange(len(levels[k]))
                never = np.flatnonzero(code == unseen).tolist() if unseen == NEVER_SEEN else []
            members.append(place)
            codes.append(code)
            if self.unseen == "error" and never:
                refusals.append(Refusal(place, tuple(never), never="never seen in training"))
        sizes, statistic = tuple(map(len, levels)), self.statistic
        term = TupleTerm(tuple(members), tuple(codes), sizes, statistic.tuples, statistic.table, self.alpha)
        return Lowered([[term]], refusals)

    def sample(self, labels: Integers, rng: np.random.Generator) -> list[Sampled]:
        """Draw tuples that occur; with smoothing also any possible tuple, uniformly; of an interval, a number in it."""
        columns = len(self.statistic.levels)
        if not len(self.statistic.tuples):
            return [pa.nulls(len(labels)) for _ in range(columns)]
        table = self.statistic.table
        counted, added = table.sum(axis=1), self.complete.alpha * self.complete.possible
        uniform = rng.random(len(labels)) * (counted + added)[labels] < added
        tuples = self.statistic.tuples[draw(smooth_shares(table, 0.0).T, labels, rng)].copy()
        for j, levels in enumerate(self.statistic.levels):
            tuples[uniform, j] = rng.integers(0, len(levels), int(uniform.sum()))
        return [self._draw_cells(j, tuples[:, j], rng) for j in range(columns)]

    def _draw_cells(self, j: int, codes: Integers, rng: np.random.Generator) -> Sampled:
        """Return values, or numbers in intervals: an interval without an end is as wide as the one next to it."""
        cells = self.statistic.levels[j].take(pa.array(codes))
        if self.cuts is None or (cuts := self.cuts[j]) is None:
            return cells
        cuts = cuts or (0.0,)  # a single interval
        widths = np.diff(cuts) if len(cuts) > 1 else np.ones(1)
        edges = np.array([cuts[0] - widths[0], *cuts, cuts[-1] + widths[-1]])
        place = cells.to_numpy(zero_copy_only=False)
        return rng.uniform(edges[place], edges[place + 1])

    def estimates(self) -> list[ParameterEstimates]:
        """Return P(tuple | class) of the tuples that occur, and `unseen`, that of each other possible tuple."""
        shares = np.exp(self.complete.log_shares)
        levels = [self._values(j) for j in range(len(self.statistic.levels))]
        codes, _ = self.statistic.marginal(np.arange(len(levels)))
        tuples = tuple(tuple(levels[j][code] for j, code in enumerate(row)) for row in codes)
        found = {"probability": np.ascontiguousarray(shares[:-1].T)}
        if len(tuples) < self.complete.possible:
            found["unseen"] = shares[-1]
        return [ParameterEstimates(found, tuples)]

    def _values(self, j: int) -> list[Any]:
        """Return the values of a column, or the intervals (low, high) that it is cut into."""
        values: list[Any] = self.statistic.levels[j].to_pylist()
        cuts = None if self.cuts is None else self.cuts[j]
        if cuts is None:
            return values
        edges = (-np.inf, *map(float, cuts), np.inf)
        return [(edges[place], edges[place + 1]) for place in values]

    def free_parameters(self) -> FreeParameters:
        """Return the number of possible tuples minus one, for each class."""
        sizes, classes = [len(levels) for levels in self.statistic.levels], len(self.statistic.table)
        apart = classes * sum(max(size - 1, 0) for size in sizes)
        joint = classes * max(prod(sizes) - 1, 0)
        return FreeParameters((joint,), apart, n_values=tuple(max(size, 1) for size in sizes))

    def formula(self, cells: list[pa.Array], row: int, column: int, label: int) -> str | None:
        one = [cell[row : row + 1] for cell in cells]
        codes = self.statistic.codes(one)
        kept = np.flatnonzero(~self._absent(codes, one)[0])
        if not kept.size:
            return None
        table = self.table_of(kept)
        place = table.find(codes)[0]
        count = table.counts[label, place] if place < table.counts.shape[1] else 0.0
        return format_fraction(count, table.counts[label].sum(), table.alpha, int(table.possible))


@dataclass(frozen=True)
class TupleTable:
    """Tuples of some columns, the others summed over, with their counts and log P(tuple | class), tuple by class.

    alpha: the family's alpha times the number of combinations of the other columns. The last row of `log_shares` is
    that of a tuple that does not occur.
    """

    columns: Integers
    radix: Integers
    keys: Integers
    tuples: Integers
    order: Integers
    counts: Floats
    log_shares: Floats
    alpha: float
    possible: float

    @cached_property
    def lanes(self) -> Floats:
        return in_lanes(self.log_shares)

    @classmethod
    def of(cls, statistic: Tuples, alpha: float, columns: Integers) -> TupleTable:
        sizes = np.array([len(levels) for levels in statistic.levels], dtype=np.float64)
        tuples, counts = statistic.marginal(columns)
        hidden, possible = np.delete(sizes, columns).prod(), sizes[columns].prod()
        padded = np.concatenate([counts, np.zeros((len(counts), 1))], axis=1)
        shares = smooth_shares(padded, alpha * hidden, possible).T
        radix = _radix(sizes[columns])
        keys = tuples @ radix
        order = np.argsort(keys, kind="stable")
        return cls(columns, radix, keys[order], tuples[order], order, counts, log(shares), alpha * hidden, possible)

    def find(self, codes: Integers) -> Codes:
        """Return the position of the tuple of each row of `codes`; the number of tuples if it does not occur."""
        wanted = codes[:, self.columns]
        missing = np.int32(self.keys.size)
        if not missing:
            return np.zeros(len(wanted), dtype=np.int32)
        if self.possible >= 2.0**62:  # too many for one number each
            return self._find_by_sorting(wanted)
        keys = wanted @ self.radix
        place = np.minimum(np.searchsorted(self.keys, keys), self.keys.size - 1)
        found = (self.keys[place] == keys) & (wanted >= 0).all(axis=1)
        return np.where(found, self.order[place], missing).astype(np.int32)

    def _find_by_sorting(self, wanted: Integers) -> Codes:
        size = self.keys.size
        _, place = np.unique(np.concatenate([self.tuples, wanted]), axis=0, return_inverse=True)
        home = np.full(place.max(initial=0) + 1, size, dtype=np.int32)
        home[place.ravel()[:size]] = self.order
        return home[place.ravel()[size:]]


def _radix(sizes: Floats) -> Integers:
    """Return the factors that turn a tuple of codes into one number; they overflow if there are too many tuples."""
    factors = np.ones(sizes.size, dtype=np.int64)
    with np.errstate(over="ignore"):
        for j in range(sizes.size - 2, -1, -1):
            factors[j] = factors[j + 1] * np.int64(sizes[j + 1])
    return factors
