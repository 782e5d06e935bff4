"""Family of categories: one of a few values."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Protocol, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deciban import kernels
from deciban.errors import Argument, BadCell, UsageError
from deciban.families.base.checks import VALUES, Support, Unseen, check_amount, check_flag, check_unseen
from deciban.families.base.contract import (
    BaseLikelihood,
    ColumnFamily,
    Covariance,
    DiscriminantTerms,
    FreeParameters,
    LeftOutRows,
    NumericSummary,
    ParameterEstimates,
    Sampled,
)
from deciban.families.base.lowering import OTHER_PLACE, ExportedColumns, Lowered, Refusal, Term, lookup
from deciban.families.base.parts import DATE_PARTS, TEXT_PARTS, Part, check_part, read_part, sample_moments
from deciban.families.base.smoothing import draw, format_fraction, smooth_in_proportion, smooth_shares
from deciban.families.base.sql_questions import DistinctRows, Later, SqlQuestions
from deciban.statistics import Levels
from deciban.statistics.levels import MAX_TABLE_WIDTH, encode, find_positions
from deciban.tables.cells import is_moment
from deciban.tables.table import Readable
from deciban.util.arrays import Codes, Flags, Floats, Integers, Numbers, in_lanes, log
from deciban.util.arrow_values import as_values

# With more values, tuning also tries proportional smoothing; with fewer, it makes no difference.
MAX_FEW_VALUES = 12

# Tuning tries no part of dates that fewer of them share on average, such as the month of dates in one year.
MIN_DATES_PER_PART = 2.0

# The same for texts.
MIN_TEXTS_PER_PART = 1.5

# Smoothings tried then, in rows per value: 2 follows the rows of each value, 128 nearly ignores rare values.
PROPORTIONAL_ALPHAS = (2.0, 8.0, 32.0, 128.0)


@dataclass(frozen=True, repr=False)
class Categorical(ColumnFamily):
    r"""Categories: a probability of each value for each class, (count + alpha) / (rows + alpha * values).

    With `proportional`, alpha is multiplied by the share of the class in all rows. A value without rows then has
    no evidence, and the posterior of one value alone is the class shares among its rows and alpha rows of the overall
    class shares.

    Each column is a separate block.

    Parameters
    ----------
    alpha : float, default=1.0
        Smoothing: number of rows added to each value of each class. 0 is maximum likelihood, 1 Laplace's rule,
        in between Lidstone's.
    levels : tuple, default=None
        All possible values. None: those that occur in training.
    unseen : {"ignore", "smooth", "error"}, default="ignore"
        How to score a value not seen in training: no evidence, the probability of a zero count, or a DataError.
    proportional : bool, default=False
        Divide alpha among the classes in proportion to their rows, instead of adding it to each class: for columns with
        many values.
    part : str, default=None
        A part of each cell to count instead of the cell. Of dates: "month", "weekday" (Monday = 1) or "hour". Of texts:
        "first word", "first character", "first 2 characters" or "first 3 characters".

    Raises
    ------
    UsageError
        If a parameter is out of range.

    See Also
    --------
    Bernoulli : Two values, 0 and 1.
    JointTable : Several columns together.

    Notes
    -----
    The probability of value v in class c, where :math:`n_{vc}` of the :math:`n_c` rows of the class have it, and the
    column has V values:

    .. math:: P(v \mid c) = \frac{n_{vc} + \alpha}{n_c + \alpha V}

    Examples
    --------
    >>> from deciban import BayesClassifier, Categorical
    >>> from deciban.datasets import weather
    >>> clf = BayesClassifier(Categorical(alpha=0), tune=None).fit(weather(), "play")
    >>> print(clf.estimates()["outlook"])
    outlook: Categorical(alpha=0)
                 no   yes
    P(overcast)  0    0.444444
    P(rain)      0.4  0.333333
    P(sunny)     0.6  0.222222
    """

    alpha: float = 1.0
    levels: tuple[Any, ...] | None = None
    unseen: Unseen = "ignore"
    proportional: bool = False
    part: Part | None = None

    def __post_init__(self) -> None:
        check_amount("alpha", self.alpha)
        check_unseen(self.unseen)
        check_flag("proportional", self.proportional)
        check_part(self.part)
        if self.part is not None and self.levels is not None:
            raise UsageError("Categorical(part=…, levels=…): only one of them may be given")
        if self.levels is not None:
            try:
                object.__setattr__(self, "levels", tuple(dict.fromkeys(self.levels)))
                as_values(pa.array(self.levels))
            except (TypeError, pa.ArrowException, BadCell) as error:
                raise UsageError(
                    f"Categorical(levels=…): the values have different types ({error})",
                    remedy="use values of one type, such as text",
                ) from None

    @property
    def statistic_key(self) -> Hashable:
        return (type(self).__name__, self.levels) if self.part is None else (type(self).__name__, self.part)

    @property
    def support(self) -> Support:
        return VALUES if self.levels is None else Support("one of its levels", "add it to levels=", self._are_levels)

    def _are_levels(self, values: pa.Array) -> Flags:
        known = set(self.levels or ())
        return np.array([value in known for value in values.to_pylist()], dtype=np.bool_)

    def alternatives(self, summary: NumericSummary | None, others: Sequence[Any], values: int) -> list[Any]:
        """Return other smoothings, and other families unless `unseen` is "error"."""
        smoothings = [replace(self, alpha=alpha) for alpha in (0.1, 0.5, 1.0)]
        if values > MAX_FEW_VALUES:
            smoothings += [replace(self, alpha=alpha, proportional=True) for alpha in PROPORTIONAL_ALPHAS]
        return [self, *smoothings, *(others if self.unseen != "error" else ())]

    @classmethod
    def candidates_for(cls, summary: NumericSummary) -> list[Self]:
        size = summary.values.size
        if size > min(30, summary.rows / 4):
            return []
        shared = [cls(alpha=alpha, proportional=True) for alpha in PROPORTIONAL_ALPHAS[1:3]]
        return [*(cls(alpha=alpha) for alpha in (0.5, 1.0)), *(shared if size > MAX_FEW_VALUES else ())]

    @classmethod
    def additions_for(cls, values: pa.Array) -> list[Self]:
        """Return a family for each part that varies and that values share."""
        parts, shared = (DATE_PARTS, MIN_DATES_PER_PART) if is_moment(values.type) else (TEXT_PARTS, MIN_TEXTS_PER_PART)
        sizes = {part: pc.count_distinct(read_part(values, part)).as_py() for part in parts}
        return [cls(part=part) for part, size in sizes.items() if 1 < size <= len(values) / shared]

    def read(self, batch: Readable, columns: Sequence[int]) -> Numbers | list[pa.Array]:
        cells = batch.values(columns)
        if self.part is None:
            return cells
        arrays = [pa.array(column) for column in cells.T] if isinstance(cells, np.ndarray) else cells
        return [read_part(array, self.part, j) for j, array in enumerate(arrays)]

    def empty(self, classes: int, columns: int) -> Levels:
        return Levels.empty(classes, columns)

    def count(self, cells: Numbers | list[pa.Array], labels: Codes, weights: Floats, classes: int) -> Levels:
        counted = Levels.count(cells, labels, weights, classes)
        if self.levels is not None:
            for j, values in enumerate(counted.levels):
                if (known := self._are_levels(values)).all():
                    continue
                extra = values[int(known.argmin())].as_py()
                raise BadCell(j, None, f"found {extra!r}, expected one of its levels", self.support.remedy)
        return counted

    def count_in_sql(self, questions: SqlQuestions, columns: Sequence[int]) -> Later[Levels] | None:
        if self.part is not None:
            return None
        found = questions.values(columns)

        def build() -> Levels:
            parts = [self._count_alone(j, rows) for j, rows in enumerate(found())]
            return Levels(tuple(part.levels[0] for part in parts), tuple(part.tables[0] for part in parts))

        return build

    def _count_alone(self, j: int, rows: DistinctRows) -> Levels:
        """Count the values of column j; the position in a BadCell is j."""
        try:
            return self.count(*rows)
        except BadCell as bad:
            bad.column = j
            raise

    def check_statistic(self, statistic: Levels) -> None:
        given = None if self.levels is None else set(self.levels)
        if given is not None and not all(given.issuperset(levels.to_pylist()) for levels in statistic.levels):
            raise ValueError(f"{self!r:.60} has counts of a value that is not one of its levels")

    def estimate(self, statistic: Levels) -> CategoricalLikelihood:
        levels, counts = list(statistic.levels), list(statistic.tables)
        if self.levels is not None:
            given = as_values(pa.array(self.levels))
            for j, values in enumerate(levels):
                table = np.zeros((counts[j].shape[0], len(given)))
                table[:, find_positions(values, given)] = counts[j]
                levels[j], counts[j] = given, table
        return CategoricalLikelihood.of(levels, counts, self.alpha, self.unseen, self.proportional, self.part)

    def score_left_out(
        self, statistic: Levels, cells: Numbers | list[pa.Array], rows: LeftOutRows, slot: Integers, out: Floats
    ) -> None:
        whole = self.estimate(statistic)
        codes = whole.codes(cells)
        fixed = self.levels is not None
        score_lookup_left_out(
            whole, whole.counts, codes, rows, slot, out, fixed, proportional=self.proportional and self.alpha > 0.0
        )

    def add_covariance(
        self,
        whole: CategoricalLikelihood,
        statistic: Levels,
        cells: Numbers | list[pa.Array],
        weight: Floats,
        out: Covariance,
    ) -> None:
        codes = whole.codes(cells)
        for j, counts in enumerate(whole.counts):
            alpha = divide_among_classes(counts, self.alpha)[:, None] if self.proportional else self.alpha
            add_share_variance(counts, codes[:, j], alpha, weight[j], out.own)


def divide_among_classes(counts: Floats, alpha: float) -> Floats:
    """Return what each class gets of alpha, in proportion to its rows; all of it if the class has none.

    counts: class by level.
    """
    rows = counts.sum(axis=1)
    return np.where(rows > 0.0, alpha * (rows / max(float(rows.sum()), np.finfo(np.float64).tiny)), alpha)


def add_share_variance(counts: Floats, codes: Codes, alpha: float | Floats, weight: float, out: Floats) -> None:
    """Add to out[row, class] the variance 1/k - 1/n of the logarithm of a share k/n.

    counts: class by level.
    """
    added = np.concatenate([counts, np.zeros((len(counts), 1))], axis=1) + np.maximum(alpha, 1e-3)
    variance = 1.0 / added - 1.0 / np.maximum(added[:, :-1].sum(axis=1, keepdims=True), added)
    there = codes >= 0
    out[there] += weight**2 * variance.T[codes[there]]


class Lookup(Protocol):
    """Table of log shares: those of the levels of column j from start[j] on, then that of a zero count."""

    @property
    def table(self) -> Floats: ...
    @property
    def start(self) -> Integers: ...
    @property
    def alpha(self) -> float: ...
    @property
    def unseen(self) -> Unseen: ...
    def codes(self, cells: Any) -> Codes: ...


def build_lookup_terms(lookup: Lookup, names: list[list[str]]) -> list[DiscriminantTerms]:
    """Return terms with one indicator feature per row of the table; names: of the features of each column."""

    def indicators(j: int, cells: Any) -> Floats:
        codes = lookup.codes(cells)[:, j]
        found: Floats = (codes[:, None] == np.arange(len(names[j]))).astype(np.float64)
        found[codes < 0] = np.nan
        return found

    tables = np.split(lookup.table, lookup.start[1:-1])
    return [
        DiscriminantTerms(tuple(named), partial(indicators, j), table, np.zeros(table.shape[1]))
        for j, (named, table) in enumerate(zip(names, tables, strict=True))
    ]


def score_lookup_left_out(
    whole: Lookup,
    counts: list[Floats],
    codes: Codes,
    rows: LeftOutRows,
    slot: Integers,
    out: Floats,
    fixed: bool = False,
    log_width: Floats | None = None,
    proportional: bool = False,
) -> None:
    """Score each row by the shares of levels among the other rows; counts: class by level, for each column."""
    padded = np.concatenate([np.concatenate([table.T, np.zeros((1, len(table)))]) for table in counts])
    width = np.zeros(len(counts)) if log_width is None else log_width
    alpha, smooth = np.full(len(counts), float(whole.alpha)), whole.unseen == "smooth"
    table, codes = np.ascontiguousarray(whole.table), codes.copy()
    for j, one in enumerate(counts if not proportional else ()):
        _score_where_nothing_is_left(one, codes[:, j], rows, whole.alpha, fixed, smooth, width[j], out[:, slot[j]])
    score_counts_left_out(codes, rows, whole.start, table, padded, alpha, width, fixed, smooth, slot, out, proportional)


def score_counts_left_out(
    codes: Codes,
    rows: LeftOutRows,
    start: Integers,
    table: Floats,
    counts: Floats,
    alpha: Floats,
    log_width: Floats,
    fixed: bool,
    smooth: bool,
    slot: Integers,
    out: Floats,
    proportional: bool = False,
) -> None:
    """Score each row by counts (level by class) of the other rows; see `kernels.left_out.score_lookup`."""
    counts = np.ascontiguousarray(counts)  # in one layout, or the kernel is compiled again
    total = np.add.reduceat(counts, start[:-1], axis=0)
    levels = kernels.left_out.LevelCounts(
        start=start,
        counts=counts,
        every=counts.sum(axis=1),
        total=total,
        all_total=total.sum(axis=1),
        alpha=alpha,
        log_width=log_width,
        log_share=table,
        proportional=proportional,
    )
    kernels.left_out.score_lookup(
        np.ascontiguousarray(codes), rows.labels, rows.removed, levels, fixed, smooth, slot, out
    )


def _score_where_nothing_is_left(
    counts: Floats,
    codes: Codes,
    rows: LeftOutRows,
    alpha: float,
    fixed: bool,
    smooth: bool,
    log_width: float,
    out: Floats,
) -> None:
    """Score, by definition, rows without which a share is 0 / 0, and set their codes to -1 to skip them."""
    size = counts.shape[1]
    if not size or (alpha > 0.0 and (fixed or size > 1)):
        return  # no share is 0 / 0
    every, labels, removed = counts.sum(axis=0), rows.labels, rows.removed
    of_level = every[np.clip(codes, 0, size - 1)]
    gone = (codes < size) & (of_level - removed <= 1e-9 * of_level) & (not fixed)
    of_class = counts.sum(axis=1)
    of_none = (of_class[labels] - removed <= 1e-9 * of_class[labels]) | (of_class == 0.0).any()  # of some class
    of_all = every.sum() - removed <= 1e-9 * every.sum()
    odd = (codes >= 0) & (removed > 0.0) & np.where(gone, smooth & of_none, of_all)
    for i in np.flatnonzero(odd):
        left = counts.copy()
        left[labels[i], codes[i]] = max(left[labels[i], codes[i]] - removed[i], 0.0)
        left = np.where(left <= 1e-9 * counts, 0.0, left)
        known = left if not gone[i] else np.delete(left, codes[i], axis=1)
        padded = np.concatenate([known, np.zeros((len(known), 1))], axis=1)
        out[i] += log(smooth_shares(padded, alpha, known.shape[1])[:, -1 if gone[i] else codes[i]]) - log_width
    codes[odd] = -1


@dataclass(frozen=True)
class CategoricalLikelihood(BaseLikelihood):
    """log P(level | class) of all columns in one table; the last row of a column is that of a zero count."""

    levels: list[pa.Array]
    counts: list[Floats]
    table: Floats
    start: Integers
    alpha: float
    unseen: Unseen
    proportional: bool
    whole: WholeNumbers | None
    part: Part | None = None

    @classmethod
    def of(
        cls,
        levels: list[pa.Array],
        counts: list[Floats],
        alpha: float,
        unseen: Unseen,
        proportional: bool = False,
        part: Part | None = None,
    ) -> Self:
        rows, smoothed = [], smooth_in_proportion if proportional else smooth_shares
        for table in counts:
            padded = np.concatenate([table, np.zeros((len(table), 1))], axis=1)
            rows.append(smoothed(padded, alpha, table.shape[1]).T)
        start = np.concatenate([[0], np.cumsum([len(part) for part in rows])]).astype(np.int64)
        whole = WholeNumbers.of(levels)
        return cls(levels, counts, log(np.concatenate(rows)), start, alpha, unseen, proportional, whole, part)

    def codes(self, cells: Numbers | list[pa.Array]) -> Codes:
        """Return the code of every cell within its column; -1 if the cell has no evidence."""
        if isinstance(cells, np.ndarray):
            if self.whole is not None:
                codes, known = self.whole.encode(cells)
                if known:
                    return codes
            else:
                return self.codes([pa.array(cells[:, j], from_pandas=True) for j in range(cells.shape[1])])
        else:
            codes = np.stack([encode(column, self.levels[j], j) for j, column in enumerate(cells)], axis=1)
        return self._apply_unseen(codes, cells)

    def _apply_unseen(self, codes: Codes, cells: Numbers | list[pa.Array]) -> Codes:
        """Apply `unseen` to values not seen in training (code -2)."""
        unseen = codes == -2
        if self.unseen == "ignore" or not unseen.any():
            return codes
        if self.unseen == "error":
            row, column = (int(i) for i in np.argwhere(unseen)[0])
            found = cells[row, column].item() if isinstance(cells, np.ndarray) else cells[column][row].as_py()
            raise BadCell(
                column,
                row,
                f"found {found!r}, never seen in training",
                ("correct it, or choose ", Argument("unseen", "ignore")),
            )
        sizes = np.diff(self.start).astype(np.int32) - 1
        return np.where(unseen, sizes, codes)

    def score(self, cells: Numbers | list[pa.Array], weight: Floats, slot: Integers, out: Floats) -> None:
        kernels.scoring.score_lookup(
            self.codes(cells), self.start, self._lanes, weight, slot, np.empty(self._lanes.shape[1]), out
        )

    @cached_property
    def _lanes(self) -> Floats:
        return in_lanes(self.table)

    def lower(self, columns: ExportedColumns) -> Lowered:
        """Return lookups; other values have the row of a zero count (unseen="smooth") or zeros."""
        blocks: list[list[Term]] = []
        refusals = []
        for j, levels in enumerate(self.levels):
            place = replace(columns.level_place(j, levels), part=self.part)
            rows = self.table[self.start[j] : self.start[j + 1]]
            other = rows[-1:] if self.unseen == "smooth" else np.zeros_like(rows[-1:])
            blocks.append([lookup(place, np.concatenate([other, rows[:-1]]))])
            if self.unseen == "error":
                refusals.append(Refusal(place, (OTHER_PLACE,), never="never seen in training"))
        return Lowered(blocks, refusals)

    def sample(self, labels: Integers, rng: np.random.Generator) -> list[Sampled]:
        drawn: list[Sampled] = []
        for j, levels in enumerate(self.levels):
            shares = np.exp(self.table[self.start[j] : self.start[j + 1] - 1])
            cells = levels.take(pa.array(draw(shares, labels, rng))) if len(levels) else pa.nulls(len(labels))
            if self.part is not None and self.part in DATE_PARTS and len(levels):
                cells = sample_moments(cells.to_numpy(), self.part)
            drawn.append(cells)
        return drawn

    def estimates(self) -> list[ParameterEstimates]:
        found = []
        for j, levels in enumerate(self.levels):
            shares = np.exp(self.table[self.start[j] : self.start[j + 1] - 1])
            found.append(ParameterEstimates({"probability": np.ascontiguousarray(shares.T)}, tuple(levels.to_pylist())))
        return found

    def free_parameters(self) -> FreeParameters:
        """Return the number of values minus one, for each class."""
        sizes = [len(levels) for levels in self.levels]
        classes = self.table.shape[1]
        each = [classes * max(size - 1, 0) for size in sizes]
        return FreeParameters.of_columns(each, n_values=[max(size, 1) for size in sizes])

    def list_known_values(self) -> list[pa.Array] | None:
        return self.levels if self.part is None else None

    def discriminant_terms(self, names: Sequence[str]) -> list[DiscriminantTerms]:
        of = "" if self.part is None else f"{self.part} of "
        named = zip([f"{of}{name}" for name in names], self.levels, strict=True)
        return build_lookup_terms(
            self, [[f"{name} = {level}" for level in [*levels.to_pylist(), "something else"]] for name, levels in named]
        )

    def formula(self, cells: Numbers | list[pa.Array], row: int, column: int, label: int) -> str | None:
        one = pa.array(cells[row : row + 1, column], from_pandas=True) if isinstance(cells, np.ndarray) else (
            cells[column][row : row + 1]
        )  # fmt: skip
        code = int(encode(one, self.levels[column], column)[0])
        if code == -2 and self.unseen == "smooth":
            code = len(self.levels[column])
        if code < 0:
            return None
        table = self.counts[column]
        own, alpha = table[label], self.alpha
        if self.proportional:
            alpha = float(divide_among_classes(table, alpha)[label])
            own = own if own.any() else table.sum(axis=0)  # a class without rows has the shares of all
        count = own[code] if code < own.size else 0.0
        return format_fraction(count, own.sum(), alpha, own.size)


@dataclass(frozen=True)
class WholeNumbers:
    """Tables from whole numbers to codes, for columns whose levels are integers in a small range."""

    low: Floats
    start: Integers
    code_of: Codes

    @classmethod
    def of(cls, levels: list[pa.Array]) -> WholeNumbers | None:
        if not all(pa.types.is_int64(column.type) and len(column) for column in levels):
            return None
        numbers = [column.to_numpy() for column in levels]
        if any(max(-int(column.min()), int(column.max())) >= 1 << 53 for column in numbers):
            return None
        low = np.array([column.min() for column in numbers], dtype=np.float64)
        width = np.array([column.max() for column in numbers], dtype=np.float64) - low + 1.0
        if width.max(initial=0.0) > MAX_TABLE_WIDTH:
            return None
        start = np.concatenate([[0], np.cumsum(width)]).astype(np.int64)
        code_of = np.full(start[-1], -2, dtype=np.int32)
        for j, column in enumerate(numbers):
            code_of[start[j] + (column - int(low[j]))] = np.arange(len(column))
        return cls(low, start, code_of)

    def encode(self, numbers: Numbers) -> tuple[Codes, bool]:
        """Return the codes, and True if every number has one."""
        codes = np.empty(numbers.shape, dtype=np.int32)
        return codes, kernels.cell_counts.encode_integers(numbers, self.low, self.start, self.code_of, codes)
