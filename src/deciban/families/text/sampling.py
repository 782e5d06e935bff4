"""Words drawn for texts of given classes."""

from typing import NamedTuple

import numpy as np

from deciban.errors import BadCell
from deciban.families.text.word_counts import WordCounts
from deciban.util.arrays import Floats, Integers

# No more words are drawn at once: they and their texts are in memory.
MOST_WORDS_DRAWN = 1 << 26


class Drawn(NamedTuple):
    """The words of texts, as numbers behind the buckets of rare words, and how many each text has."""

    words: Integers
    sizes: Integers


def draw_present_words(shares: Floats, counts: WordCounts, labels: Integers, rng: np.random.Generator) -> Drawn:
    """Which words are there, each by itself with its share in the class; in any order."""
    share = shares[counts.words.bucket_count :].T
    found = [np.zeros(0, dtype=np.int64) for _ in labels]
    if share.shape[1]:
        found = [rng.permutation(np.flatnonzero(rng.random(share.shape[1]) < share[label])) for label in labels]
    sizes = np.array([words.size for words in found], dtype=np.int64)
    return Drawn(np.concatenate([np.zeros(0, dtype=np.int64), *found]), sizes)


def draw_words(
    shares: Floats, counts: WordCounts, labels: Integers, rng: np.random.Generator, length: int | None
) -> Drawn:
    """Words one after the other, by their shares in the class: `length`, or as many as the class has on average."""
    shares = shares[counts.words.bucket_count :]
    if not len(shares):
        return Drawn(np.zeros(0, dtype=np.int64), np.zeros(len(labels), dtype=np.int64))
    texts = np.maximum(counts.texts, 1e-300)
    means = (counts.sums / texts)[labels] if length is None else np.full(len(labels), float(length))
    if not means.sum() <= MOST_WORDS_DRAWN:
        raise BadCell(0, None, f"{means.sum():.3g} words are too many to draw", "draw fewer rows, or give a length")
    sizes = rng.poisson(means) if length is None else np.full(len(labels), length)
    owner = np.repeat(labels, sizes)
    drawn = np.empty(owner.size, dtype=np.int64)
    for label in np.unique(owner):
        cumulative = np.cumsum(shares[:, label])
        throws = rng.random(int((owner == label).sum())) * cumulative[-1]
        drawn[owner == label] = np.minimum(np.searchsorted(cumulative, throws, side="right"), len(shares) - 1)
    return Drawn(drawn, sizes)
