"""What the words of texts say: the likelihood of Text, and texts that are drawn from it."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deciban import kernels
from deciban.arrays import (
    CORES,
    LANES,
    Codes,
    Flags,
    Floats,
    Integers,
    SparseRows,
    decoded_cells,
    kernel_view,
    log,
    summed_cells,
)
from deciban.errors import BadCell
from deciban.families.bases import BaseLikelihood
from deciban.families.bernoulli import Exchange
from deciban.families.estimates import Estimated, Parameters
from deciban.families.multinomial import add_amounts_variance, add_complement_covariance, score_amounts
from deciban.families.protocols import Covariance, LeftOut, Sampled
from deciban.families.smoothing import fraction
from deciban.families.text.tokens import parts_of
from deciban.statistics.vocabulary import RARE, Vocabulary
from deciban.statistics.words import bucket_number, buckets_of, gathered

if TYPE_CHECKING:
    from deciban.families.text.family import Text

# So many words are worth a second thread.
MANY_WORDS = 1 << 14

# No more words are drawn at once: they and their texts are in memory.
MOST_WORDS_DRAWN = 1 << 26


def row_sums(rows: SparseRows) -> Floats:
    """The sum of what is stored in each row."""
    row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    return np.bincount(row, rows.stored, rows.shape[0]).astype(np.float64)


class TextTerms(NamedTuple):
    """The evidence of a text as a sum over words, which are numbers in the vocabulary.

    words: those in the text that are known, with how much there is of each and what it says for each class. absent:
    those that are not in it, where that is evidence too.
    """

    words: Integers
    amounts: Floats
    said: Floats
    absent: Integers
    said_absent: Floats


def lift_score(lift: Floats, linear: float) -> Floats:
    """What a lift says: its logarithm, or a part of it linearly."""
    return lift - 1.0 if linear == 1.0 else (1.0 - linear) * log(lift) + linear * (lift - 1.0)


@dataclass(frozen=True)
class TextColumn:
    """The words of one column and what they say; `texts` is the weight of the texts of each class.

    Those of `learned` that are heard are in `order`, and their counts, class by word, in `table`.
    """

    family: "Text"
    learned: Vocabulary
    table: SparseRows
    order: Integers
    texts: Floats

    def prepare(self) -> None:
        """Make what texts are scored by at once, of many words on two threads; of few it is made when it is needed."""
        if self.order.size < MANY_WORDS or self.family.kind == "bernoulli" or CORES == 1:
            return
        with ThreadPoolExecutor(1) as pool:
            index = pool.submit(lambda: self.words.index)
            _ = self.slope
            index.result()

    @cached_property
    def words(self) -> Vocabulary:
        """Frequent words come first."""
        return self.learned.take(self.order)

    @cached_property
    def counted(self) -> SparseRows:
        """The counts of the words, word by class."""
        by_word = self.table.matrix().T.tocsr()[self.order]
        return SparseRows(by_word.data, by_word.indices, by_word.indptr, self.texts.size)

    @cached_property
    def sums(self) -> Floats:
        """The counts of all words of each class."""
        return summed_cells(self.counted.indices, self.counted.data, self.texts.size)

    @cached_property
    def counts(self) -> Floats:
        """Of the words, word by class."""
        return self.counted.matrix().toarray()

    @cached_property
    def slope(self) -> Floats:
        """What each occurrence of a word adds, word by class, in lanes: log P(word | class), or the score of it."""
        family, classes = self.family, self.texts.size
        slope = np.zeros((self.order.size, classes + -classes % LANES))
        if family.kind == "lift":
            slope[:, :classes] = self._lift_scores()
        else:
            slope[:, :classes] = self._log_shares()
        return slope

    def _lift_scores(self) -> Floats:
        """What each word says of each class by how much more probable it makes it."""
        family, counted, sums = self.family, self.counted, self.sums
        unit = family.alpha * (self.texts.sum() / max(sums.sum(), 1e-300) if family.normalize else 1.0)
        inverse = np.divide(sums.sum(), sums, out=np.zeros_like(sums), where=sums > 0.0)  # of the share of a class
        word = np.repeat(np.arange(self.order.size), np.diff(counted.indptr))
        total = unit + summed_cells(word, counted.data, self.order.size)
        found = np.empty((self.order.size, sums.size))
        found[:] = lift_score(unit / total, family.linear)[:, None]
        lift = (counted.data * inverse[counted.indices] + unit) / total[word]
        found[word, counted.indices] = lift_score(lift, family.linear)
        return found

    def _log_shares(self) -> Floats:
        """log P(word | class), or for complements what the share in the other classes lacks."""
        alpha, counted, others = self.family.alpha, self.counted, self.family.kind == "complement"
        word = np.repeat(np.arange(self.order.size), np.diff(counted.indptr))
        found, log_bottom = np.empty((self.order.size, self.texts.size)), log(self._bottom)
        found[:] = log(np.full(1, alpha)) - log_bottom
        top = counted.data
        if others or self._as_all.any():
            total = summed_cells(word, counted.data, self.order.size)
            all_classes = slice(None) if others else self._as_all
            found[:, all_classes] = log(total + alpha)[:, None] - log_bottom[all_classes]
            top = total[word] - counted.data if others else top
        found[word, counted.indices] = log(top + alpha) - log_bottom[counted.indices]
        return -np.maximum(found, np.log(1e-300)) if others else found

    @property
    def _as_all(self) -> Flags:
        """The classes without counts that take the shares of all together, because nothing is added to theirs."""
        return np.asarray((self.sums <= 0.0) & (self.family.alpha == 0.0) & (self.family.kind != "complement"))

    @cached_property
    def basis(self) -> Floats:
        """The counts that shares are of: those of the class, or of all others."""
        if self.family.kind == "complement":
            return np.asarray(self.counts.sum(axis=1, keepdims=True) - self.counts)
        if not self._as_all.any():
            return self.counts
        return np.where(self._as_all, self.counts.sum(axis=1, keepdims=True), self.counts)

    @cached_property
    def _bottom(self) -> Floats:
        """What the shares of each class are divided by."""
        every = self.sums.sum()
        sums = every - self.sums if self.family.kind == "complement" else np.where(self._as_all, every, self.sums)
        return np.asarray(sums + self.family.alpha * self.order.size)

    @cached_property
    def exchange(self) -> Exchange:
        """For "bernoulli": what the absence of all words says, and each word that is there instead."""
        alpha = self.family.alpha
        ones, zeros = self.counts + alpha, self.texts - self.counts + alpha
        rows = np.maximum(self.texts + 2.0 * alpha, 1e-300)
        with np.errstate(divide="ignore"):
            one, zero = np.log(ones / rows), np.log(np.maximum(zeros, 0.0) / rows)
        nothing = self.texts + alpha <= 0.0  # a class without texts says nothing
        one[:, nothing], zero[:, nothing] = 0.0, 0.0
        return Exchange.of(one, zero, np.ones(len(one)))

    @cached_property
    def _tail(self) -> Codes:
        """The number of each bucket of rare words, -1 where it is empty."""
        tail = np.full(buckets_of(self.family.most_words), -1, dtype=np.int32)
        for number in range(self.words.rare):
            tail[bucket_number(self.words[number])] = number
        return tail

    def rows(self, texts: pa.Array) -> SparseRows:
        """The amounts of the words that are known, each text a row; a text that is missing has none."""
        return self.family.term_weights(gathered(*self._numbers(texts), len(self.words)))

    def _numbers(self, texts: pa.Array) -> tuple[Codes, Integers]:
        """The numbers of the words that are known, as they come, and where those of each text begin."""
        return self.family.tokens.numbers(texts, self.words, self._tail)

    def score(self, texts: pa.Array, weight: float, slot: int, out: Floats) -> None:
        if not len(self.words) or weight == 0.0:
            return
        if self.family.counts_plainly and not self.family.tempering:  # each word as often as it comes
            numbers, firsts = self._numbers(texts)
            rows = SparseRows(np.ones(numbers.size), numbers, firsts, len(self.words))
            score_amounts(rows, self.slope, np.array([weight]), np.array([slot]), out)
            return
        rows = self.rows(texts)
        part = np.zeros((len(texts), 1, out.shape[2]))
        self._score_plainly(rows, part)
        if texts.null_count:
            part[~parts_of(texts)[2]] = 0.0
        out[:, slot] += weight * self.tempered(row_sums(rows))[:, None] * part[:, 0]

    def _score_plainly(self, rows: SparseRows, part: Floats) -> None:
        if self.family.kind == "bernoulli":
            self.exchange.score(rows, 0.5, part)
        else:
            score_amounts(rows, self.slope, np.ones(1), np.zeros(1, dtype=np.int64), part)

    def tempered(self, length: Floats) -> Floats:
        """What the evidence of texts with so many known words counts."""
        return np.asarray(np.maximum(length, 1.0) ** -self.family.tempering)

    def score_left_out(self, rows: SparseRows, left: LeftOut, part: Floats) -> None:
        """Add to part[row, 0, class] the evidence of each text by the others; without smoothing it may be wrong."""
        family, total = self.family, self.counts.sum(axis=1)
        length = np.zeros(left.labels.size)
        if family.kind == "bernoulli":
            texts = kernel_view(self.texts)
            absent = log(np.maximum(self.texts - self.counts, 0.0) + family.alpha).sum(axis=0)
            kernels.left_out_presence(
                *rows.kernel_arrays(), left.labels, left.removed, self.counts, texts, total, family.alpha,
                family.min_count, absent, np.zeros(texts.size), np.full(texts.size, -1.0), length, part,
            )  # fmt: skip
        elif family.kind == "lift":
            kernels.left_out_lifts(
                *rows.kernel_arrays(), left.labels, left.removed, self.counts, self.sums,
                float(self.texts.sum()), total, family.alpha, family.min_count, family.normalize, family.linear,
                np.empty_like(self.sums), length, part,
            )  # fmt: skip
        else:
            kernels.left_out_words(
                *rows.kernel_arrays(), left.labels, left.removed, self.basis, total, family.alpha, family.min_count,
                family.kind == "complement", family.normalize, self.slope, self._bottom,
                np.empty_like(self._bottom), length, part,
            )  # fmt: skip
        part[:, 0] *= self.tempered(length)[:, None]

    def add_covariance(self, rows: SparseRows, weight: Floats, out: Covariance) -> None:
        """Of what the texts say, each of its own weight; see `Family.add_covariance`."""
        weight = (weight * self.tempered(row_sums(rows)))[:, None]
        if self.family.normalize and self.family.kind != "bernoulli":  # amounts of about this size were added, not ones
            weight = weight * np.sqrt(self.texts.sum() / max(float(self.sums.sum()), 1e-300))
        if self.family.kind == "complement":
            add_complement_covariance(self.counts.T, self.family.alpha, rows, weight, np.ones(self.texts.size), out)
        elif self.family.kind != "bernoulli":
            add_amounts_variance(self.basis.T, self.family.alpha, rows, weight, out.own)
        else:
            share = (self.counts + 0.5) / (self.texts + 1.0)
            absent, there = share / (1.0 - share), (1.0 - share) / share
            own = absent.sum(axis=0) + rows.matrix() @ (there - absent)
            out.own[:] += weight**2 * own / np.maximum(self.texts, 0.5)

    def estimated(self) -> Estimated:
        """P(word | class): that a word of the class is this one, or ("bernoulli") that a text has it; or its score."""
        classes = self.texts.size
        if self.family.kind in ("complement", "lift"):
            found = {"score": self.slope[:, :classes]}
        else:
            log_share = self.exchange.one if self.family.kind == "bernoulli" else self.slope[:, :classes]
            found = {"probability": np.exp(log_share)}
        words = tuple(shown(word or "") for word in decoded_cells(self.words.array))
        return Estimated({name: np.ascontiguousarray(table.T) for name, table in found.items()}, words)

    def parameters(self) -> int:
        """How many numbers had to be learned: shares of words sum to 1, the presence of each is free; of lifts, what a
        word makes of the classes."""
        words, classes = self.order.size, self.texts.size
        if self.family.kind == "bernoulli":
            return classes * words
        return words * (classes - 1) if self.family.kind == "lift" else classes * max(words - 1, 0)

    def terms(self, text: pa.Array) -> "TextTerms":
        """What one text says for each class, word by word."""
        rows = self.rows(text)
        classes = self.texts.size
        factor = float(self.tempered(row_sums(rows))[0])
        indices = rows.indices[: rows.indptr[1]].astype(np.int64)
        amounts = rows.data[: rows.indptr[1]]
        if self.family.kind != "bernoulli":
            each = self.slope[indices, :classes] * amounts[:, None]
            return TextTerms(indices, amounts, factor * each, np.zeros(0, dtype=np.int64), np.zeros((0, classes)))
        absent = np.delete(np.arange(len(self.words)), indices)
        one, zero = self.exchange.one[indices], self.exchange.zero[absent]
        return TextTerms(indices, amounts, factor * one, absent, factor * zero)


def shown(word: str) -> str:
    """A word as people read it."""
    return f"(rare words {word[1:]})" if word.startswith(RARE) else word


@dataclass(frozen=True)
class TextLikelihood(BaseLikelihood):
    """What the words of each column say."""

    columns: tuple[TextColumn, ...]

    @property
    def texts(self) -> tuple[TextColumn, ...]:
        return self.columns

    def score(self, cells: list[pa.Array], weight: Floats, slot: Integers, out: Floats) -> None:
        for j, texts in enumerate(cells):
            self.columns[j].score(texts, float(weight[j]), int(slot[j]), out)

    def sample(self, labels: Integers, rng: np.random.Generator, length: int | None = None) -> list[Sampled]:
        return [written(column, labels, rng, length) for column in self.columns]

    def estimates(self) -> list[Estimated]:
        return [column.estimated() for column in self.columns]

    def parameters(self) -> Parameters:
        each = [column.parameters() for column in self.columns]
        present, counted = (
            sum(int(column.order.size) for column in self.columns if (column.family.kind == "bernoulli") == asked)
            for asked in (True, False)
        )
        return Parameters.of_columns(each, 2**present, counted)

    def formula(self, cells: list[pa.Array], row: int, column: int, label: int) -> str | None:
        mine, text = self.columns[column], cells[column][row : row + 1]
        if text.null_count:
            return None
        rows = mine.rows(text)
        indices, amounts = rows.indices[: rows.indptr[1]], rows.data[: rows.indptr[1]]
        factor = float(mine.tempered(row_sums(rows))[0])
        power = "" if factor == 1.0 else f"^{factor:.3g}"
        if mine.family.kind in ("complement", "lift"):
            return f"exp(score of {indices.size} words){power}"
        if mine.family.kind == "bernoulli":
            return f"({indices.size} words there, {len(mine.words) - indices.size} not){power}"
        if not indices.size:
            return None
        counts, bottom = mine.basis[:, label], mine.basis[:, label].sum()
        order = np.argsort(-np.abs(mine.slope[indices, label] * amounts), kind="stable")
        parts = [
            f"[{fraction(counts[indices[k]], bottom, mine.family.alpha, len(mine.words))}]"
            + (f"^{amounts[k]:.3g}" if amounts[k] != 1.0 else "")
            for k in order[:2]
        ]
        more = f" · ({indices.size - 2} more)" if indices.size > 2 else ""
        product = " · ".join(parts) + more
        return f"({product}){power}" if power else product


def _present(column: TextColumn, labels: Integers, rng: np.random.Generator) -> tuple[Integers, Integers]:
    """Which words are there, each by itself, and how many in each text; in any order."""
    share = np.exp(column.exchange.one[column.words.rare :]).T
    found = [rng.permutation(np.flatnonzero(rng.random(share.shape[1]) < share[label])) for label in labels]
    return np.concatenate([np.zeros(0, dtype=np.int64), *found]), np.array(
        [some.size for some in found], dtype=np.int64
    )


def _thrown(
    column: TextColumn, labels: Integers, rng: np.random.Generator, length: int | None
) -> tuple[Integers, Integers]:
    """Words thrown one after the other, and how many in each text: as many as the class has on average."""
    shares = np.exp(column.exchange.one if column.family.kind == "bernoulli" else column.slope)[column.words.rare :]
    texts = np.maximum(column.texts, 1e-300)
    means = (column.sums / texts)[labels] if length is None else np.full(len(labels), float(length))
    if not means.sum() <= MOST_WORDS_DRAWN:
        raise BadCell(0, None, f"{means.sum():.3g} words are too many to draw", "draw fewer rows, or give a length")
    sizes = rng.poisson(means) if length is None else np.full(len(labels), length)
    owner = np.repeat(labels, sizes)
    drawn = np.empty(owner.size, dtype=np.int64)
    for label in np.unique(owner):
        cumulative = np.cumsum(shares[:, label])
        throws = rng.random(int((owner == label).sum())) * cumulative[-1]
        drawn[owner == label] = np.minimum(np.searchsorted(cumulative, throws, side="right"), len(shares) - 1)
    return drawn, sizes


def written(column: TextColumn, labels: Integers, rng: np.random.Generator, length: int | None) -> pa.Array:
    """Texts drawn for rows of the given classes: words in the order in which they were drawn."""
    if column.family.kind in ("complement", "lift"):
        raise BadCell(0, None, f"{column.family} is a score, not a distribution", "use Text() to write texts")
    words = column.words.array[column.words.rare :]
    drawn, sizes = np.zeros(0, dtype=np.int64), np.zeros(len(labels), dtype=np.int64)
    if len(words) and column.family.kind == "bernoulli" and length is None:
        drawn, sizes = _present(column, labels, rng)
    elif len(words):
        drawn, sizes = _thrown(column, labels, rng, length)
    lists = pa.LargeListArray.from_arrays(np.concatenate([[0], np.cumsum(sizes)]), words.take(pa.array(drawn)))
    return pc.binary_join(lists, pa.scalar(" ", pa.large_string()))
