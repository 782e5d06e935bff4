"""Texts as the words in them."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deciban.arrays import Codes, Floats, Integers, SparseRows, summed_cells, take_cells
from deciban.errors import BadCell, UsageError
from deciban.families.bases import ColumnFamily
from deciban.families.checks import check_amount
from deciban.families.leave_one_out import score_anew
from deciban.families.protocols import Covariance, LeftOut
from deciban.families.support import TEXTS
from deciban.families.text.likelihood import TextColumn, TextLikelihood, row_sums
from deciban.families.text.tokens import Analyzer, Tokenizer, Tokens, parts_of
from deciban.statistics.words import Words, counted_words, gathered
from deciban.tables.readable import Readable

# What most_words is at most.
MOST_WORDS = 1 << 24

Kind = Literal["multinomial", "bernoulli", "complement", "lift"]
Amounts = Literal["count", "log", "root"]


@dataclass(frozen=True, repr=False)
class Text(ColumnFamily):
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

    holds_texts = True
    support = TEXTS

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
            numbers, firsts, index = self.tokens.learned(array)
            amounts = None
            if not self.counts_plainly:
                amounts, numbers, firsts = self.term_weights(gathered(numbers, firsts, index.known)).kernel_arrays()
            columns.append((index.words, counted_words(numbers, amounts, firsts, labelled, index.known, classes)))
            there = (labels >= 0) & parts_of(array)[2]
            texts[:, j] = np.bincount(labels[there], weights[there], classes)
        return Words.of(columns, texts, self.most_words)

    @property
    def counts_plainly(self) -> bool:
        return self.kind != "bernoulli" and self.amounts == "count" and not self.normalize

    def term_weights(self, rows: SparseRows) -> SparseRows:
        """What the words of each text count, from how often they are there."""
        if self.counts_plainly:
            return rows
        if self.kind == "bernoulli":
            return rows.with_values(np.ones(rows.stored.size))
        stored = rows.stored
        if self.amounts != "count":
            stored = 1.0 + np.log(stored) if self.amounts == "log" else np.sqrt(stored)
        if self.normalize:
            length = np.sqrt(row_sums(rows.with_values(stored**2)))
            stored = stored / np.repeat(np.maximum(length, 1e-300), np.diff(rows.indptr))
        return rows.with_values(stored)

    def estimate(self, statistic: Words) -> TextLikelihood:
        columns = tuple(self._column(statistic, j) for j in range(len(statistic.counts)))
        for column in columns:
            column.prepare()
        return TextLikelihood(columns)

    def _column(self, statistic: Words, j: int) -> TextColumn:
        """Frequent words come first: they stay together in the cache."""
        words, counts = statistic.vocabularies[j], statistic.counts[j]
        if self.kind == "bernoulli" and words.rare:  # a text may have several words of a bucket: it is there or not
            counts = counts.with_values(
                np.minimum(counts.stored, np.repeat(statistic.texts[:, j], np.diff(counts.indptr)))
            )
        total = summed_cells(counts.indices, counts.data, len(words))
        order = _by_frequency(total)
        if words.rare:
            order = np.concatenate([np.arange(words.rare), order[order >= words.rare]])
        if (rarest := total.min(initial=np.inf)) <= 0.0 or rarest < self.min_count:
            order = order[(total[order] > 0.0) & (total[order] >= self.min_count)]
        return TextColumn(self, words, counts, order, statistic.texts[:, j])

    def _counted(self, column: TextColumn, statistic: Words, j: int, texts: pa.Array) -> SparseRows:
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
            alone = column.texts[rows.labels] <= rows.removed * (1.0 + 1e-9)
            bare = self.alpha == 0.0 and (self.kind == "bernoulli" or not column.sums.all())
            anew = bare | ((rows.removed > 0.0) & alone)
            column.score_left_out(self._counted(column, statistic, j, array), rows, part)
            part[~parts_of(array)[2]] = 0.0
            again = np.flatnonzero(anew)
            only = statistic.place_columns(np.where(np.arange(len(cells)) == j, 0, -1), 1)
            found = np.zeros((again.size, 1, out.shape[2]))
            score_anew(self, only, [take_cells(array, again)], rows[again], np.zeros(1, dtype=np.int64), found)
            part[again] = found
            out[:, slot[j]] += part[:, 0]

    def add_covariance(
        self, whole: TextLikelihood, statistic: Words, cells: list[pa.Array], weight: Floats, out: Covariance
    ) -> None:
        for j, (array, column) in enumerate(zip(cells, whole.columns, strict=True)):
            if len(column.words):
                column.add_covariance(column.rows(array), weight[j] * parts_of(array)[2], out)


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
