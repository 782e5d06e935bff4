"""Texts as the words in them."""

from collections.abc import Hashable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deciban import kernels
from deciban.arrays import CORES, LANES, Codes, Flags, Floats, Integers, SparseRows, kernel_view, take_cells
from deciban.errors import BadCell, UsageError
from deciban.families.base import LeftOut, Readable, Sampled, Spoken, check_amount, score_anew
from deciban.families.bernoulli import Exchange
from deciban.families.multinomial import add_amounts_doubt
from deciban.families.smoothing import fraction
from deciban.families.tokens import Analyzer, Tokenizer, Tokens, parts_of
from deciban.statistics.words import (
    RARE,
    Vocabulary,
    Words,
    bucket_number,
    buckets_of,
    gathered,
)

# What most_words is at most.
MOST_WORDS = 1 << 24

# So many words are worth a second thread.
MANY_WORDS = 1 << 14

Kind = Literal["multinomial", "bernoulli", "complement", "lift"]
Amounts = Literal["count", "log", "root"]


@dataclass(frozen=True, repr=False)
class Text(Spoken):
    """Texts as words, each drawn by itself from those of the class: (count + alpha) / (all + alpha * vocabulary).

    kind: "multinomial" counts every word of a text; "bernoulli" asks which words are there, and which are not;
        "complement" scores a class by how little the others use the words; "lift" by how much more probable each word
        makes it (log P(class | word) / P(class), or a part of it linearly). These two are scores, not likelihoods.
    alpha: what is added to every count. linear: which share of a lift l is heard as l - 1 instead of log l.
    analyzer, ngram_range, lowercase, strip_accents, stop_words, tokenizer: as for scikit-learn's CountVectorizer; its
        words are ours. A tokenizer of one's own runs in Python and is slow.
    shortest: the characters that a word has at least.
    amounts: what a word that is there n times counts: n ("count"), 1 + log n ("log") or the root of n ("root").
    normalize: the amounts of a text are divided by their length, the root of the sum of their squares.
    min_count: words that were counted less than this are not in the vocabulary.
    most_words: how many words are kept; rarer ones share a count with others of the same hash.
    tempering: the evidence of a text of n known words counts n ** -tempering times, because words repeat each other.

    >>> from deciban import BayesClassifier, Text
    >>> mails = ["win money now", "cheap money", "lunch at noon", "see you at lunch"]
    >>> clf = BayesClassifier(Text(), tune=None).fit(mails, ["spam", "spam", "ham", "ham"])
    >>> clf.predict(["money at last", "lunch?"]).tolist()
    ['spam', 'ham']
    """

    kind: Kind = "multinomial"
    alpha: float = 1.0
    analyzer: Analyzer = "word"
    ngram_range: tuple[int, int] = (1, 1)
    lowercase: bool = True
    strip_accents: bool = False
    stop_words: tuple[str, ...] = ()
    tokenizer: Tokenizer | None = None
    shortest: int = 2
    amounts: Amounts = "count"
    normalize: bool = False
    min_count: float = 0.0
    most_words: int | None = None
    tempering: float = 0.0
    linear: float = 0.0

    joint = False
    absorbs = False

    def __post_init__(self) -> None:
        check_amount("alpha", self.alpha)
        check_amount("min_count", self.min_count)
        check_amount("tempering", self.tempering)
        check_amount("linear", self.linear)
        for name, kind in (("kind", Kind), ("analyzer", Analyzer), ("amounts", Amounts)):
            if getattr(self, name) not in get_args(kind):
                allowed = ", ".join(map(repr, get_args(kind)))
                raise UsageError(f"Text({name}={getattr(self, name)!r}): choose one of {allowed}")
        if self.linear > 1.0:
            raise UsageError(f"Text(linear={self.linear!r}): give a share between 0 and 1")
        for name, theirs, ours in (
            ("stop_words", None, ()),
            ("strip_accents", None, False),
            ("strip_accents", "unicode", True),
        ):
            if getattr(self, name) is theirs or getattr(self, name) == theirs:  # as scikit-learn says it
                object.__setattr__(self, name, ours)
        for name in ("lowercase", "strip_accents", "normalize"):
            if not isinstance(getattr(self, name), bool):
                raise UsageError(f"Text({name}={getattr(self, name)!r}): give True or False")
        object.__setattr__(self, "stop_words", _checked_words(self.stop_words))
        object.__setattr__(self, "ngram_range", _checked_range(self.ngram_range))
        for name, least in (("shortest", 1), ("most_words", 16)):
            value = getattr(self, name)
            whole = isinstance(value, int) and not isinstance(value, bool) and least <= value <= MOST_WORDS
            if not whole and not (value is None and name == "most_words"):
                raise UsageError(f"Text({name}={value!r}): give a whole number from {least} to {MOST_WORDS}")
        if self.min_count > 0.0 and self.most_words is not None:
            raise UsageError("Text(min_count=, most_words=): a bound already drops rare words; give one of the two")
        if self.tokenizer is not None and not callable(self.tokenizer):
            raise UsageError(f"Text(tokenizer={self.tokenizer!r}): give a function from a text to its words")
        if self.tokenizer is not None and self.analyzer != "word":
            raise UsageError(f"Text(tokenizer=...): a tokenizer finds words; leave out analyzer={self.analyzer!r}")

    @property
    def counts(self) -> Hashable:
        amount = "presence" if self.kind == "bernoulli" else (self.amounts, self.normalize)
        return "Text", self.tokens, amount, self.most_words

    @cached_property
    def tokens(self) -> Tokens:
        return Tokens(
            self.analyzer, self.ngram_range, self.lowercase, self.strip_accents, self.stop_words, self.shortest,
            self.tokenizer,
        )  # fmt: skip

    def read(self, batch: Readable, columns: Sequence[int]) -> list[pa.Array]:
        cells = batch.values(columns)
        if isinstance(cells, np.ndarray):
            raise BadCell(0, None, "it holds numbers, expected text", "use Gaussian() or Categorical() for this column")
        return [as_text(array, k) for k, array in enumerate(cells)]

    def empty(self, classes: int, columns: int) -> Words:
        return Words.empty(classes, columns, self.most_words)

    def count(self, cells: list[pa.Array], labels: Codes, weights: Floats, classes: int) -> Words:
        columns = []
        texts = np.zeros((classes, len(cells)))
        counted = np.flatnonzero((labels >= 0) & (weights > 0.0))
        labelled = counted[np.argsort(labels[counted], kind="stable")], labels, weights
        for j, array in enumerate(cells):
            if self.counts_plainly:
                found, index = self.tokens.counted(array, labelled, classes)
            else:
                numbers, firsts, index = self.tokens.learned(array)
                rows = self.heard(gathered(numbers, firsts, index.known))
                amounts, indices, indptr = rows.kernel_arrays()
                found = kernels.count_words(indices, amounts, indptr, *labelled, index.known, classes)
            words, counts, ends = found
            columns.append((index.words, SparseRows(counts, words, ends, index.known)))
            there = (labels >= 0) & parts_of(array)[2]
            texts[:, j] = np.bincount(labels[there], weights[there], classes)
        return Words.of(columns, texts, self.most_words)

    @property
    def counts_plainly(self) -> bool:
        return self.kind != "bernoulli" and self.amounts == "count" and not self.normalize

    def heard(self, rows: SparseRows) -> SparseRows:
        """What the words of each text count, from how often they are there."""
        if self.counts_plainly:
            return rows
        if self.kind == "bernoulli":
            return rows.holding(np.ones(rows.stored.size))
        stored = rows.stored
        if self.amounts != "count":
            stored = 1.0 + np.log(stored) if self.amounts == "log" else np.sqrt(stored)
        if self.normalize:
            length = np.sqrt(row_sums(rows.holding(stored**2)))
            stored = stored / np.repeat(np.maximum(length, 1e-300), np.diff(rows.indptr))
        return rows.holding(stored)

    def estimate(self, statistic: Words) -> "TextLikelihood":
        columns = tuple(self._column(statistic, j) for j in range(len(statistic.counts)))
        for column in columns:
            column.prepare()
        return TextLikelihood(columns)

    def _column(self, statistic: Words, j: int) -> "TextColumn":
        """Frequent words come first: they stay together in the cache."""
        words, counts = statistic.vocabularies[j], statistic.counts[j]
        if self.kind == "bernoulli" and words.rare:  # a text may have several words of a bucket: it is there or not
            counts = counts.holding(np.minimum(counts.stored, np.repeat(statistic.texts[:, j], np.diff(counts.indptr))))
        total = kernels.column_sums(*counts.kernel_arrays(), len(words))
        order = _by_frequency(total)
        if words.rare:
            order = np.concatenate([np.arange(words.rare), order[order >= words.rare]])
        if (rarest := total.min(initial=np.inf)) <= 0.0 or rarest < self.min_count:
            order = order[(total[order] > 0.0) & (total[order] >= self.min_count)]
        return TextColumn(self, words, counts, order, statistic.texts[:, j])

    def _counted(self, column: "TextColumn", statistic: Words, j: int, texts: pa.Array) -> SparseRows:
        """The amounts of the words of texts as they were counted, of those that are in the vocabulary of the column."""
        if self.min_count == 0.0:
            return column.rows(texts)
        everything = replace(self, min_count=0.0)._column(statistic, j)
        return SparseRows.of(everything.rows(texts).matrix()[:, : len(column.words)])  # the others come last

    def score_left_out(
        self, statistic: Words, cells: list[pa.Array], rows: LeftOut, slot: Integers, out: Floats
    ) -> None:
        for j, array in enumerate(cells):
            column = self._column(statistic, j)
            part = np.zeros((rows.labels.size, 1, out.shape[2]))
            alone = column.texts[rows.labels] <= rows.taken * (1.0 + 1e-9)
            bare = self.alpha == 0.0 and (self.kind == "bernoulli" or not column.sums.all())
            anew = bare | ((rows.taken > 0.0) & alone)
            column.score_left_out(self._counted(column, statistic, j, array), rows, part)
            part[~parts_of(array)[2]] = 0.0
            again = np.flatnonzero(anew)
            only = statistic.place_columns(np.where(np.arange(len(cells)) == j, 0, -1), 1)
            found = np.zeros((again.size, 1, out.shape[2]))
            score_anew(self, only, [take_cells(array, again)], rows[again], np.zeros(1, dtype=np.int64), found)
            part[again] = found
            out[:, slot[j]] += part[:, 0]

    def add_doubt(self, statistic: Words, cells: list[pa.Array], weight: Floats, out: Floats) -> None:
        for j, array in enumerate(cells):
            column = self._column(statistic, j)
            if len(column.words):
                doubt = np.zeros_like(out)
                column.add_doubt(column.rows(array), weight[j], doubt)
                out += np.where(parts_of(array)[2][:, None], doubt, 0.0)


def _by_frequency(total: Floats) -> Integers:
    """The numbers of words, frequent ones first, and equals as they are: the same on every machine."""
    if not (total == np.floor(total)).all():
        return np.argsort(-total, kind="stable")
    many = np.uint16(np.iinfo(np.uint16).max)  # short numbers are sorted fast
    order = np.argsort(many - np.minimum(total, many).astype(np.uint16), kind="stable")
    most = order[: np.count_nonzero(total >= many)]
    most[:] = most[np.argsort(-total[most], kind="stable")]
    return order


def _checked_words(words: Any) -> tuple[str, ...]:
    """Stop words, each once; refuses anything else."""
    found = words if isinstance(words, str) or not isinstance(words, Iterable) else list(words)
    if not isinstance(found, list) or not all(isinstance(word, str) for word in found):
        raise UsageError(f"Text(stop_words={found!r}): give the words themselves, in a list")
    return tuple(sorted({word.encode(errors="replace").decode() for word in found}))


def _checked_range(ngram_range: Any) -> tuple[int, int]:
    found = tuple(ngram_range) if isinstance(ngram_range, tuple | list) else ()
    if len(found) != 2 or not all(isinstance(n, int) for n in found) or not 1 <= found[0] <= found[1] <= 100:
        raise UsageError(f"Text(ngram_range={ngram_range!r}): give (1, 2) for single words and pairs")
    return found[0], found[1]


def as_text(array: pa.Array, column: int = 0) -> pa.Array:
    """The cells as texts; a BadCell where they are something else."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        if pa.types.is_string_view(kind.value_type):  # of which Arrow can take none
            array = pa.DictionaryArray.from_arrays(array.indices, array.dictionary.cast(pa.large_string()))
        return as_text(array.cast(array.type.value_type), column)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return array
    if pa.types.is_string_view(kind) or pa.types.is_null(kind):
        return array.cast(pa.large_string())
    filled = pc.indices_nonzero(array.is_valid())
    if not len(filled):
        return pa.nulls(len(array), pa.large_string())
    row = filled[0].as_py()
    binary = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    remedy = "decode the bytes, for instance as UTF-8" if binary else "use Gaussian() or Categorical() for it"
    raise BadCell(column, row, f"found {array[row].as_py()!r} ({kind}), expected text", remedy)


def row_sums(rows: SparseRows) -> Floats:
    """The sum of what is stored in each row."""
    row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    return np.bincount(row, rows.stored, rows.shape[0]).astype(np.float64)


@dataclass(frozen=True)
class TextColumn:
    """The words of one column and what they say; `texts` is the weight of the texts of each class.

    Those of `learned` that are heard are in `order`, and their counts, class by word, in `table`.
    """

    family: Text
    learned: Vocabulary
    table: SparseRows
    order: Integers
    texts: Floats

    def prepare(self) -> None:
        """Make what texts are scored by, of many words on two threads: it is not made before it is asked for."""
        if self.order.size < MANY_WORDS or self.family.kind == "bernoulli" or CORES == 1:
            return
        with ThreadPoolExecutor(1) as pool:
            index = pool.submit(lambda: self.words.index)
            assert self.slope is not None
            index.result()

    @cached_property
    def words(self) -> Vocabulary:
        """Frequent words come first."""
        return self.learned.take(self.order)

    @cached_property
    def counted(self) -> SparseRows:
        """The counts of the words, word by class."""
        found = kernels.transposed(*self.table.kernel_arrays(), self.order, len(self.learned))
        return SparseRows(*found, self.texts.size)  # type: ignore[call-arg]

    @cached_property
    def sums(self) -> Floats:
        """The counts of all words of each class."""
        return np.asarray(kernels.column_sums(*self.counted.kernel_arrays(), self.texts.size))

    @cached_property
    def counts(self) -> Floats:
        """Of the words, word by class."""
        return self.counted.matrix().toarray()

    @cached_property
    def slope(self) -> Floats:
        """What each occurrence of a word adds, word by class, in lanes: log P(word | class), or the score of it."""
        family, classes = self.family, self.texts.size
        slope = np.empty((self.order.size, classes + -classes % LANES))
        slope[:, classes:] = 0.0
        if family.kind == "lift":
            unit = family.alpha * (self.texts.sum() / max(self.sums.sum(), 1e-300) if family.normalize else 1.0)
            kernels.log_lifts(*self.counted.kernel_arrays(), self.sums, unit, family.linear, slope)
        else:
            kernels.log_shares(
                *self.counted.kernel_arrays(), family.alpha, self._bottom, family.kind == "complement", self._as_all,
                slope,
            )  # fmt: skip
        return slope

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
        return self.family.heard(gathered(*self._numbers(texts), len(self.words)))

    def _numbers(self, texts: pa.Array) -> tuple[Codes, Integers]:
        """The numbers of the words that are known, as they come, and where those of each text begin."""
        return self.family.tokens.numbers(texts, self.words, self._tail)

    def score(self, texts: pa.Array, weight: float, slot: int, out: Floats) -> None:
        if not len(self.words) or weight == 0.0:
            return
        if self.family.counts_plainly and not self.family.tempering:  # each word as often as it comes
            numbers, firsts = self._numbers(texts)
            kernels.score_sparse_linear(np.ones(numbers.size), numbers, firsts, self.slope, weight, slot, out)
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
            kernels.score_sparse_linear(*rows.kernel_arrays(), self.slope, 1.0, 0, part)

    def tempered(self, length: Floats) -> Floats:
        """What the evidence of texts with so many known words counts."""
        return np.asarray(np.maximum(length, 1.0) ** -self.family.tempering)

    def score_left_out(self, rows: SparseRows, left: LeftOut, part: Floats) -> None:
        """Add to part[row, 0, class] the evidence of each text by the others; without smoothing it may be wrong."""
        family, total = self.family, self.counts.sum(axis=1)
        length = np.zeros(left.labels.size)
        if family.kind == "bernoulli":
            texts = kernel_view(self.texts)
            kernels.left_out_presence(
                *rows.kernel_arrays(), left.labels, left.taken, self.counts, texts, total, family.alpha,
                family.min_count, length, part,
            )  # fmt: skip
        elif family.kind == "lift":
            kernels.left_out_lifts(
                *rows.kernel_arrays(), left.labels, left.taken, self.counts, self.sums,
                float(self.texts.sum()), total, family.alpha, family.min_count, family.normalize, family.linear, length,
                part,
            )  # fmt: skip
        else:
            kernels.left_out_words(
                *rows.kernel_arrays(), left.labels, left.taken, self.basis, total, family.alpha, family.min_count,
                family.kind == "complement", family.normalize, self.slope, self._bottom, length, part,
            )  # fmt: skip
        part[:, 0] *= self.tempered(length)[:, None]

    def add_doubt(self, rows: SparseRows, weight: float, out: Floats) -> None:
        strength = weight * self.tempered(row_sums(rows))
        doubt = np.zeros_like(out)
        if self.family.kind != "bernoulli":
            add_amounts_doubt(self.basis.T, self.family.alpha, rows, np.ones(1), doubt)
        else:
            share = (self.counts + 0.5) / (self.texts + 1.0)
            absent, there = share / (1.0 - share), (1.0 - share) / share
            doubt += (absent.sum(axis=0) + rows.matrix() @ (there - absent)) / np.maximum(self.texts, 0.5)
        out += strength[:, None] ** 2 * doubt

    def terms(self, text: pa.Array) -> tuple[list[str], Floats, Floats, Floats]:
        """Of one text: its known words, how much of each there is, what each says for each class, and what is left.

        The terms and what is left (of "bernoulli": that all other words are absent) add up to the evidence.
        """
        rows = self.rows(text)
        classes = self.texts.size
        factor = float(self.tempered(row_sums(rows))[0])
        indices = rows.indices[: rows.indptr[1]]
        amounts = rows.data[: rows.indptr[1]]
        rest = np.zeros(classes)
        if self.family.kind != "bernoulli":
            each = self.slope[indices, :classes] * amounts[:, None]
        else:
            absent = np.ones(len(self.words), dtype=np.bool_)
            absent[indices] = False
            each, rest = self.exchange.one[indices], self.exchange.zero[absent].sum(axis=0)
        return [shown(self.words[k]) for k in indices], amounts, factor * each, factor * rest


def shown(word: str) -> str:
    """A word as people read it."""
    return f"(rare words {word[1:]})" if word.startswith(RARE) else word


@dataclass(frozen=True)
class TextLikelihood:
    """What the words of each column say."""

    columns: tuple[TextColumn, ...]

    def score(self, cells: list[pa.Array], weight: Floats, slot: Integers, out: Floats) -> None:
        for j, texts in enumerate(cells):
            self.columns[j].score(texts, float(weight[j]), int(slot[j]), out)

    def base(self, cells: list[pa.Array]) -> None:
        return None

    def sample(self, labels: Integers, rng: np.random.Generator, length: int | None = None) -> list[Sampled]:
        return [written(column, labels, rng, length) for column in self.columns]

    def working(self, cells: list[pa.Array], row: int, column: int, label: int) -> str | None:
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
    sizes = rng.poisson((column.sums / texts)[labels]) if length is None else np.full(len(labels), length)
    owner = np.repeat(labels, sizes)
    drawn = np.empty(owner.size, dtype=np.int64)
    for label in np.unique(owner):
        heap = np.cumsum(shares[:, label])
        throws = rng.random(int((owner == label).sum())) * heap[-1]
        drawn[owner == label] = np.minimum(np.searchsorted(heap, throws, side="right"), len(shares) - 1)
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
