"""The counts of the words of one column, by which its texts are scored."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from deciban.statistics.vocabulary import Vocabulary
from deciban.statistics.words import Words
from deciban.util.arrays import Floats, Integers, summed_cells
from deciban.util.sparse import SparseRows


@dataclass(frozen=True)
class WordCounts:
    """The words of one column and their counts in each class.

    learned, table: all words that were counted, and their counts, class by word. order: the numbers of those that are
    scored, frequent ones first, which stay together in the cache. texts: the weight of the texts of each class.
    """

    learned: Vocabulary
    table: SparseRows
    order: Integers
    texts: Floats

    @classmethod
    def of(cls, statistic: Words, column: int, min_count: float, presence: bool) -> "WordCounts":
        """The counts of the words of a column that were counted no less than min_count.

        presence: texts that have a word were counted. A text may have several words of a bucket, and still it is one.
        """
        words, counts, texts = statistic.vocabularies[column], statistic.counts[column], statistic.texts[:, column]
        if presence and words.bucket_count:
            counts = counts.with_values(np.minimum(counts.stored, np.repeat(texts, np.diff(counts.indptr))))
        total = summed_cells(counts.indices, counts.data, len(words))
        order = _by_frequency(total)
        if buckets := words.bucket_count:
            order = np.concatenate([np.arange(buckets), order[order >= buckets]])
        if (rarest := total.min(initial=np.inf)) <= 0.0 or rarest < min_count:
            order = order[(total[order] > 0.0) & (total[order] >= min_count)]
        return cls(words, counts, order, texts)

    @property
    def size(self) -> int:
        """How many words there are."""
        return self.order.size

    @property
    def classes(self) -> int:
        return self.texts.size

    @cached_property
    def words(self) -> Vocabulary:
        """The words that are scored."""
        return self.learned.take(self.order)

    @cached_property
    def stored(self) -> SparseRows:
        """The counts of the words, word by class, without zeros."""
        by_word = self.table.matrix().T.tocsr()[self.order]
        return SparseRows(by_word.data, by_word.indices, by_word.indptr, self.classes)

    @property
    def stored_words(self) -> Integers:
        """The word of each count that is stored."""
        return np.repeat(np.arange(self.size), np.diff(self.stored.indptr))

    @cached_property
    def counts(self) -> Floats:
        """The counts of the words, word by class."""
        return self.stored.matrix().toarray()

    @cached_property
    def sums(self) -> Floats:
        """The counts of all words in each class."""
        return summed_cells(self.stored.indices, self.stored.data, self.classes)

    @property
    def total(self) -> Floats:
        """The counts of each word in all classes."""
        return np.asarray(self.counts.sum(axis=1))

    @property
    def texts_per_amount(self) -> float:
        """The weight of all texts divided by the sum of all amounts."""
        return float(self.texts.sum() / max(self.sums.sum(), 1e-300))


def _by_frequency(total: Floats) -> Integers:
    """The numbers of words, frequent ones first, and equals as they are: the same on every machine."""
    if not (total == np.floor(total)).all():
        return np.argsort(-total, kind="stable")
    many = np.uint16(np.iinfo(np.uint16).max)  # short numbers are sorted fast
    order = np.argsort(many - np.minimum(total, many).astype(np.uint16), kind="stable")
    most = order[: np.count_nonzero(total >= many)]
    most[:] = most[np.argsort(-total[most], kind="stable")]
    return order
