"""Texts that several tests are about."""

from typing import Any

import numpy as np
import pyarrow as pa

from deciban import BayesClassifier, Text
from deciban.statistics import Words

MAILS = ["win money now", "cheap money", "lunch at noon", "see you at lunch"] * 5


MAIL_LABELS = ["spam", "spam", "ham", "ham"] * 5


def words_of(clf: BayesClassifier, column: int = 0) -> tuple[list[str], np.ndarray]:
    """The vocabulary of a column and its counts, word by class."""
    statistic = next(s for s in clf.counts_.statistics if isinstance(s, Words)).in_sorted_order
    return statistic.vocabularies[column].array.to_pylist(), statistic.tables[column]


def vocabulary(clf: BayesClassifier) -> list[str]:
    return words_of(clf)[0]


def many_words(rng: np.random.Generator, texts: int = 400, words: int = 3000) -> tuple[list[str], np.ndarray]:
    """Texts with a few words that are frequent, and very many that are not."""
    labels = rng.integers(0, 3, texts)
    found = [
        " ".join([f"often{label}", "common", *(f"w{k}" for k in np.minimum(rng.zipf(1.3, 30), words))])
        for label in labels
    ]
    return found, labels


def groups_of(clf: BayesClassifier) -> np.ndarray:
    """What was counted in each bucket, words of the vocabulary included, bucket by class."""
    statistic = clf.counts_.statistics[0]
    total = np.zeros((statistic.buckets, len(clf.classes_)))
    np.add.at(total, statistic.vocabularies[0].buckets(statistic.buckets), statistic.tables[0])
    return total


INVALID = pa.Array.from_buffers(
    pa.string(), 4, [None, pa.py_buffer(np.array([0, 20, 44, 44, 47], dtype=np.int32)),
                     pa.py_buffer(b"win \xff money now caf\xc3lunch \xed\xa0\x80 at noon now \xe2\x82\xf0\x9f\x98")],
)  # fmt: skip


def mixed(rows: int = 90) -> tuple[dict[str, list[Any]], np.ndarray]:
    """Texts, numbers and categories, each with missing cells."""
    rng = np.random.default_rng(21)
    texts, labels = many_words(rng, rows, 40)
    table = {
        "text": [None if k % 17 == 0 else text for k, text in enumerate(texts)],
        "n": [None if k % 11 == 0 else x for k, x in enumerate(rng.normal(labels, 1.0).tolist())],
        "c": [None if k % 13 == 0 else "abc"[x] for k, x in enumerate((labels + rng.integers(0, 2, rows)) % 3)],
    }
    return table, labels


TABLE, LABELS = mixed()


FAMILIES = [
    Text(), Text("bernoulli"), Text("complement"), Text("lift", linear=0.2), Text(amounts="log", normalize=True),
    Text(most_words=16), Text(min_count=3.0), Text(analyzer="char_wb", ngram_range=(2, 2)), Text(ngram_range=(1, 2)),
]  # fmt: skip


def rows_of(table: dict[str, list[Any]], rows: slice) -> dict[str, list[Any]]:
    return {name: cells[rows] for name, cells in table.items()}
