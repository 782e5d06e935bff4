"""Families of counts over a vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from deciban import kernels
from deciban.errors import Argument, BadCell
from deciban.families.base.checks import AMOUNTS, Alpha, alpha_to_array, check_alpha
from deciban.families.base.contract import (
    BaseLikelihood,
    BlockFamily,
    Covariance,
    DiscriminantTerms,
    FreeParameters,
    LeftOutRows,
    ParameterEstimates,
    Sampled,
    add_common_factor,
    score_by_refitting,
    take_rows,
)
from deciban.families.base.lowering import ExportedColumns, LinearTerm, Lowered, reject_other_than_amounts
from deciban.families.base.shapley import Rule, ShapleyValues
from deciban.families.base.smoothing import draw_counts, format_fraction, smooth_shares
from deciban.families.base.sql_questions import Amount, Later, SqlQuestions
from deciban.families.poisson import Poisson
from deciban.statistics import Totals
from deciban.tables.table import Readable
from deciban.util.arrays import TOO_LARGE, Codes, Floats, Integers, Numbers, in_lanes, kernel_view, log
from deciban.util.sparse import SparseRows, dense_row
from deciban.util.special import log_gamma
from deciban.util.text_tables import format_digits

Amounts = Numbers | SparseRows


def read_amounts(batch: Readable, columns: Sequence[int]) -> Amounts:
    """Return the cells, limited to TOO_LARGE so that sums stay finite; negative and infinite cells raise BadCell."""
    cells = batch.amounts(columns)
    stored = cells if isinstance(cells, np.ndarray) else cells.stored
    if kernels.cell_counts.all_within(kernel_view(stored).ravel(), 0.0, TOO_LARGE):
        return cells
    AMOUNTS.check(cells)
    cut = np.minimum(stored, TOO_LARGE)
    return cut if isinstance(cells, np.ndarray) else cells.with_values(cut)


def _to_sparse(cells: Amounts) -> tuple[SparseRows, Floats]:
    """Return the cells as sparse rows, with 0 for missing cells, and the sum of each row."""
    words = SparseRows.of_dense(cells) if isinstance(cells, np.ndarray) else cells
    words = words.with_values(np.nan_to_num(words.stored.astype(np.float64)))
    return words, words.sum()[:, None]


def share_amounts(cells: Amounts, slope: Floats, base: Floats | None = None) -> ShapleyValues:
    """Return the Shapley value of each column: its amount times its slope (column by class).

    base: log factor of each row that is the same for every class; it is distributed in proportion to the amounts.
    """
    words, length = _to_sparse(cells)
    amounts = words.dense()
    with np.errstate(invalid="ignore"):
        values = np.where(amounts[:, :, None] > 0.0, amounts[:, :, None] * slope, 0.0)
    if base is not None:
        values += (amounts * np.divide(base, length, out=np.zeros_like(base), where=length > 0.0))[:, :, None]
    return ShapleyValues(values, Rule.EXACT)


def add_amounts_variance(counts: Floats, alpha: Alpha, cells: Amounts, weight: float | Floats, out: Floats) -> None:
    """Add to out[row, class] the variance of x1 log p1 + x2 log p2 + ...: sum of x²/k minus (sum of x)²/n.

    counts: class by column. weight: one for all rows, or one per row.
    """
    words, length = _to_sparse(cells)
    added = counts + np.maximum(alpha_to_array(alpha), 1e-3)
    out += weight**2 * np.maximum(
        words.with_values(words.stored**2).multiply(1.0 / added.T) - length**2 / added.sum(axis=1), 0.0
    )


def add_complement_covariance(
    counts: Floats, alpha: Alpha, cells: Amounts, weight: float | Floats, size: Floats, out: Covariance
) -> None:
    """Add the estimation errors of shares among the other classes.

    The errors of two classes are correlated through the counts of third classes. The count of a word has itself as
    variance. The evidence of a class changes with it by (amount of the word) / (count in the other classes) minus
    length / (words of the other classes). The evidence of each class is divided by its `size`, which is held fixed.
    """
    own = np.zeros_like(out.own)
    others = counts.sum(axis=0) - counts
    add_amounts_variance(others, alpha, cells, weight, own)
    out.own[:] += own / size**2
    words, length = _to_sparse(cells)
    x, row = words.data, words.stored_rows
    added = others + np.maximum(alpha_to_array(alpha), 1e-3)
    inverse, share = 1.0 / added, length / added.sum(axis=1)
    third = others - counts  # corrects the product below, which treats a class and itself as two classes
    twice = words.with_values(x**2).multiply((third * inverse**2).T)
    twice -= 2.0 * share * words.multiply((third * inverse).T)
    twice += share**2 * third.sum(axis=1)

    def at_words(table: Floats, along: Floats) -> Floats:
        """Return the sum over classes of table[class, word] * along[row, class], for each word of each row."""
        found = np.zeros(x.size)
        for c in range(len(table)):
            found += table[c, words.indices] * along[row, c]
        return found

    def product(direction: Floats) -> Floats:
        along = direction / size
        absent = share * along
        changes, counted = x * at_words(inverse, along), x * at_words(counts * inverse, along)
        of_all = absent.sum(axis=1)
        found = words.with_values(x * (changes - of_all[row])).multiply((others * inverse).T)
        found -= words.with_values(x * (counted - at_words(counts, absent))).multiply(inverse.T)
        over_words = words.with_values(changes).multiply(others.T) - of_all[:, None] * others.sum(axis=1)
        over_words -= (words.with_values(counted).sum() - absent @ counts.sum(axis=1))[:, None]
        return np.asarray(weight**2 * (found - share * over_words - twice * along) / size)

    out.add_shared(product)


class AmountsFamily(BlockFamily):
    """Base class of blocks of counts that accept new columns."""

    accepts_new_columns = True
    statistic_key = "amounts"
    support = AMOUNTS

    def marginal_family(self) -> Poisson:
        return Poisson(alpha=1.0, outside="ignore")

    def read(self, batch: Readable, columns: Sequence[int]) -> Amounts:
        return read_amounts(batch, columns)

    def empty(self, classes: int, columns: int) -> Totals:
        return Totals.empty(classes, columns)

    def count(self, cells: Amounts, labels: Codes, weights: Floats, classes: int) -> Totals:
        return Totals.count(cells, labels, weights, classes)

    def count_in_sql(self, questions: SqlQuestions, columns: Sequence[int]) -> Later[Totals]:
        return questions.totals([Amount(column) for column in columns])


def _count_parameters(statistic: Totals) -> FreeParameters:
    """Return the number of words that occur minus one, for each class."""
    words, classes = int(statistic.present.any(axis=0).sum()), len(statistic.total)
    each = classes * max(words - 1, 0)
    return FreeParameters((each,), each, unbounded=True)


def _build_amount_terms(names: Sequence[str], slope: Floats) -> DiscriminantTerms:
    """Return the terms of amounts times slopes; a missing amount counts as 0."""

    def amounts(cells: Amounts) -> Floats:
        dense = cells if isinstance(cells, np.ndarray) else cells.dense()
        return np.nan_to_num(dense.astype(np.float64))

    return DiscriminantTerms(tuple(names), amounts, slope, np.zeros(slope.shape[1]))


def score_amounts(
    cells: Amounts, slope: Floats, weight: Floats, slot: Integers, out: Floats, finite: bool = False
) -> None:
    """Add weight * (cells times slope) to the slot of the block; `slope` is padded to lanes.

    finite: True if all slopes are known to be finite, which is faster for dense cells.
    """
    if weight[0] == 0.0:
        return
    total = np.empty(slope.shape[1])
    if isinstance(cells, np.ndarray):
        kernels.scoring.score_linear(cells, slope, finite, weight[0], slot[0], total, out)
    else:
        kernels.scoring.score_sparse_linear(*cells.kernel_arrays(), slope, weight[0], slot[0], total, out)


def score_amounts_left_out(
    family: Multinomial | Complement,
    statistic: Totals,
    counts: Floats,
    table: Floats,
    cells: Amounts,
    rows: LeftOutRows,
    slot: Integers,
    out: Floats,
    by_others: bool = False,
    normed: bool = False,
) -> None:
    """Score each row by the shares of words among the other rows; by_others: in the other classes.

    Rows are refitted if weights are `normed`, if a column occurs in no other row, or if their class has no other row.
    """
    words = SparseRows.of_dense(cells) if isinstance(cells, np.ndarray) else cells
    weight = statistic.present.max(axis=1)
    lonely = statistic.present.sum(axis=0) <= rows.removed.max(initial=0.0)
    last = weight[rows.labels] <= rows.removed * (1.0 + 1e-9)
    refitted = (rows.removed > 0.0) & (normed | lonely.any() | last)
    plain, again = np.flatnonzero(~refitted), np.flatnonzero(refitted)
    seen = float(statistic.present.any(axis=0).sum())
    alpha = np.broadcast_to(np.asarray(family.alpha, dtype=np.float64), (counts.shape[1],)).copy()
    added = float(alpha.sum()) if isinstance(family.alpha, tuple) else float(family.alpha) * seen
    part = np.zeros((plain.size, 1, out.shape[2]))
    some, by_class = rows[plain], np.ascontiguousarray(counts.T)
    sums = by_class.sum(axis=0)
    arrays = (words if plain.size == rows.labels.size else words.take(plain)).kernel_arrays()
    shares = kernels.left_out.ShareCounts(counts=by_class, sums=sums, alpha=alpha, added=added, worth=table)
    kernels.left_out.score_linear(*arrays, some.labels, some.removed, shares, by_others, part[:, 0])
    add_common_factor(
        family.estimate(statistic), take_rows(cells, plain), np.ones(1), np.zeros(1, dtype=np.int64), part
    )
    out[plain, slot[0]] += part[:, 0]
    part = np.zeros((again.size, 1, out.shape[2]))
    score_by_refitting(family, statistic, take_rows(cells, again), rows[again], np.zeros(1, dtype=np.int64), part)
    out[again, slot[0]] += part[:, 0]


def lower_amounts(columns: ExportedColumns, slope: Floats) -> Lowered:
    """Return the amount of each column times its slope (column by class) as terms of one block."""
    terms = [LinearTerm(column, slope[j]) for j, column in enumerate(columns.numbers)]
    return Lowered([[*terms]], [reject_other_than_amounts(column) for column in columns.numbers])


@dataclass(frozen=True, repr=False)
class Multinomial(AmountsFamily):
    r"""Counts over a vocabulary, one column per word: P(word | class) = (total + alpha) / (sum + alpha * words).

    All columns are one block: the counts of a row have a multinomial distribution. Columns that first appear in later
    rows join the block.

    Parameters
    ----------
    alpha : float or tuple of float, default=1.0
        Smoothing: amount added to the total of each column in each class; a tuple has one entry per column. 0 is
        maximum likelihood, 1 Laplace's rule.

    Raises
    ------
    UsageError
        If a parameter is out of range.

    See Also
    --------
    Complement : Scores by the words of the other classes.
    Poisson : Independent counts.
    Text : The same model for columns of texts.

    Notes
    -----
    Where :math:`N_{wc}` is the total of word w in class c, :math:`N_c` that of all words, and V the number of words:

    .. math:: P(x \mid c) \propto \prod_w p_{wc}^{x_w}, \quad p_{wc} = \frac{N_{wc} + \alpha}{N_c + \alpha V}

    Examples
    --------
    >>> from deciban import BayesClassifier, Multinomial
    >>> words = {"free": [3, 2, 0, 0], "lunch": [0, 1, 2, 1]}
    >>> clf = BayesClassifier({("free", "lunch"): Multinomial()}, tune=None).fit(words, ["spam", "spam", "ham", "ham"])
    >>> print(clf.estimates()["free+lunch"])
    free+lunch: Multinomial()
              ham  spam
    P(free)   0.2  0.75
    P(lunch)  0.8  0.25
    """

    alpha: Alpha = 1.0

    def __post_init__(self) -> None:
        check_alpha(self.alpha)

    def estimate(self, statistic: Totals) -> MultinomialLikelihood:
        seen = np.asarray(
            statistic.present.any(axis=0)
        )  # a column that is missing in all rows is not in the vocabulary
        share = np.where(
            seen, smooth_shares(statistic.total, alpha_to_array(self.alpha), float(seen.sum())), 0.0
        ).T.copy()
        log_share = np.where(seen[:, None], log(share), 0.0)
        return MultinomialLikelihood(share, log_share, statistic, self.alpha)

    def score_left_out(self, statistic: Totals, cells: Amounts, rows: LeftOutRows, slot: Integers, out: Floats) -> None:
        score_amounts_left_out(
            self, statistic, statistic.total, self.estimate(statistic).log_share, cells, rows, slot, out
        )

    def add_covariance(self, whole: Any, statistic: Totals, cells: Amounts, weight: Floats, out: Covariance) -> None:
        add_amounts_variance(statistic.total, self.alpha, cells, weight[0], out.own)


@dataclass(frozen=True)
class MultinomialLikelihood(BaseLikelihood):
    """P(word | class), column by class, and its logarithm."""

    share: Floats
    log_share: Floats
    statistic: Totals
    alpha: Alpha

    accepts_length: ClassVar[bool] = True

    def score(self, cells: Amounts, weight: Floats, slot: Integers, out: Floats) -> None:
        score_amounts(cells, self._slope, weight, slot, out, self._finite)

    @cached_property
    def _slope(self) -> Floats:
        return in_lanes(self.log_share)

    @cached_property
    def _finite(self) -> bool:
        return bool(np.isfinite(self.log_share).all())

    def log_common_factor(self, cells: Amounts) -> Floats:
        """Return the log multinomial coefficient, log m! - sum of log x!."""
        if isinstance(cells, np.ndarray):
            filled = np.nan_to_num(cells.astype(np.float64))
            length, ways = filled.sum(axis=1), log_gamma(filled + 1.0).sum(axis=1)
        else:
            stored = np.nan_to_num(cells.stored.astype(np.float64))
            length, ways = (cells.with_values(values).sum() for values in (stored, log_gamma(stored + 1.0)))
        return np.asarray(log_gamma(length + 1.0) - ways)[:, None]

    def shapley_values(self, cells: Amounts) -> ShapleyValues:
        return share_amounts(cells, self.log_share, self.log_common_factor(cells))

    def lower(self, columns: ExportedColumns) -> Lowered:
        return lower_amounts(columns, self.log_share)

    def sample(self, labels: Integers, rng: np.random.Generator, length: int | None = None) -> list[Sampled]:
        """Draw counts of `length` words; by default of a Poisson number of words with the mean length of the class."""
        if length is not None:
            share = self.share / np.maximum(self.share.sum(axis=0), 1e-300)
            drawn = np.zeros((len(labels), len(share)), dtype=np.int64)
            for label in np.unique(labels):
                here = labels == label
                drawn[here] = rng.multinomial(length, share[:, label], int(here.sum()))
            return list(drawn.T)
        rows = self.statistic.present.max(axis=1)
        length = np.divide(self.statistic.total.sum(axis=1), rows, out=np.zeros_like(rows), where=rows > 0.0)
        return list(draw_counts((self.share * length)[:, labels], rng))

    def estimates(self) -> list[ParameterEstimates]:
        return [ParameterEstimates({"probability": np.ascontiguousarray(self.share.T)})]

    def free_parameters(self) -> FreeParameters:
        return _count_parameters(self.statistic)

    def discriminant_terms(self, names: Sequence[str]) -> list[DiscriminantTerms]:
        return [_build_amount_terms(names, self.log_share)]

    def _fraction(self, totals: Floats, word: int) -> str:
        if isinstance(self.alpha, tuple):
            count, total = format_digits(totals[word]), format_digits(totals.sum())
            return f"({count} + {self.alpha[word]:g})/({total} + {sum(self.alpha):g})"
        return format_fraction(totals[word], totals.sum(), self.alpha, totals.size)

    def formula(self, cells: Amounts, row: int, column: int, label: int) -> str:
        one = np.nan_to_num(dense_row(cells, row))
        totals = self.statistic.total[label]
        powers = ["" if amount == 1.0 else f"^{format_digits(amount)}" for amount in one]
        words = [f"[{self._fraction(totals, j)}]{powers[j]}" for j in np.flatnonzero(one)[:4]]
        more = np.count_nonzero(one) - len(words)
        orders = np.exp(self.log_common_factor(one.astype(np.float64)[None])[0, 0])
        return (
            f"{format_digits(orders)} orders · "
            + " · ".join(words or ["1"])
            + (f" · ({more} more)" if more > 0 else "")
        )


@dataclass(frozen=True, repr=False)
class Complement(AmountsFamily):
    r"""Counts over a vocabulary, each class scored by how rarely the *other* classes use the words.

    It is a score, not a likelihood: posteriors are softmax(score + log prior), and sampling is not supported. All
    columns are one block.

    Parameters
    ----------
    alpha : float or tuple of float, default=1.0
        Smoothing: amount added to the total of each column in each class; a tuple has one entry per column. 0 is
        maximum likelihood, 1 Laplace's rule.
    norm : bool, default=False
        Divide the weights of each class by the sum of their absolute values.

    Raises
    ------
    UsageError
        If a parameter is out of range.

    See Also
    --------
    Multinomial : The likelihood of the same counts.
    deciban.dropin.ComplementNB : With scikit-learn's parameters, and without the prior.

    Notes
    -----
    Where :math:`M_{wc}` is the total of word w in all classes but c, :math:`M_c` that of all words, and V the number of
    words:

    .. math:: \mathrm{score}_c(x) = - \sum_w x_w \log \frac{M_{wc} + \alpha}{M_c + \alpha V}

    Examples
    --------
    >>> from deciban import BayesClassifier, Complement
    >>> words = {"free": [3, 2, 0, 0], "lunch": [0, 1, 2, 1]}
    >>> clf = BayesClassifier({("free", "lunch"): Complement()}, tune=None).fit(words, ["spam", "spam", "ham", "ham"])
    >>> clf.predict({"free": [2, 0], "lunch": [0, 3]}).tolist()
    ['spam', 'ham']
    """

    alpha: Alpha = 1.0
    norm: bool = False

    def __post_init__(self) -> None:
        check_alpha(self.alpha)

    def estimate(self, statistic: Totals) -> ComplementScore:
        seen = np.asarray(statistic.present.any(axis=0))
        others = statistic.total.sum(axis=0) - statistic.total
        shares = smooth_shares(others, alpha_to_array(self.alpha), float(seen.sum()))
        weight = np.where(seen, -np.log(np.maximum(shares, 1e-300)), 0.0)
        if self.norm:
            size = np.abs(weight).sum(axis=1, keepdims=True)
            weight = np.divide(weight, size, out=np.zeros_like(weight), where=size > 0.0)
        return ComplementScore(weight.T.copy(), statistic)

    def score_left_out(self, statistic: Totals, cells: Amounts, rows: LeftOutRows, slot: Integers, out: Floats) -> None:
        others = statistic.total.sum(axis=0) - statistic.total
        table = self.estimate(statistic).weight
        score_amounts_left_out(self, statistic, others, table, cells, rows, slot, out, by_others=True, normed=self.norm)

    def add_covariance(self, whole: Any, statistic: Totals, cells: Amounts, weight: Floats, out: Covariance) -> None:
        size = np.ones(len(statistic.total))
        if self.norm:
            size = np.maximum(np.abs(replace(self, norm=False).estimate(statistic).weight).sum(axis=0), 1e-300)
        add_complement_covariance(statistic.total, self.alpha, cells, weight[0], size, out)


@dataclass(frozen=True)
class ComplementScore(BaseLikelihood):
    """Score that each occurrence of a word adds to a class, column by class."""

    weight: Floats
    statistic: Totals

    def score(self, cells: Amounts, weight: Floats, slot: Integers, out: Floats) -> None:
        score_amounts(cells, self._slope, weight, slot, out, self._finite)

    @cached_property
    def _slope(self) -> Floats:
        return in_lanes(self.weight)

    @cached_property
    def _finite(self) -> bool:
        return bool(np.isfinite(self.weight).all())

    def shapley_values(self, cells: Amounts) -> ShapleyValues:
        return share_amounts(cells, self.weight)

    def lower(self, columns: ExportedColumns) -> Lowered:
        return lower_amounts(columns, self.weight)

    def sample(self, labels: Integers, rng: np.random.Generator) -> list[Sampled]:
        raise BadCell(
            0,
            None,
            "Complement is a score, not a distribution",
            ("use ", Argument("family", "Multinomial"), " to draw samples"),
        )

    def estimates(self) -> list[ParameterEstimates]:
        return [ParameterEstimates({"score": np.ascontiguousarray(self.weight.T)})]

    def free_parameters(self) -> FreeParameters:
        return _count_parameters(self.statistic)

    def discriminant_terms(self, names: Sequence[str]) -> list[DiscriminantTerms]:
        return [_build_amount_terms(names, self.weight)]

    def formula(self, cells: Amounts, row: int, column: int, label: int) -> str:
        return "exp(score), by how rarely the other classes use these words"
