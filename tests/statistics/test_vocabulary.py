"""Words and their numbers: many, long, alike, and chosen to collide."""

import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from deciban import BayesClassifier, Text, kernels
from deciban.statistics.vocabulary import Vocabulary
from tests.support.corpora import vocabulary, words_of


def displacement(words: Vocabulary, seeds: np.ndarray) -> float:
    """How many slots are looked at in vain, on average, to find each of these words."""
    text = np.concatenate([words.text, np.zeros(16, dtype=np.uint8)])
    entries = np.zeros_like(words.index.entries)
    kernels.word_index.index_words(text, words.starts, seeds, np.empty((512, 3), dtype=np.uint64), entries)
    held = np.flatnonzero(entries[:, 1])
    home = (entries[held, 3] & np.uint64(len(entries) - 1)).astype(np.int64)
    assert sorted(entries[held, 2]) == list(range(len(words)))
    return float(((held - home) % len(entries)).mean())


def test_words_cannot_be_chosen_to_collide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever knew the seeds could; they are fresh in every process, and then no words are worse than others."""
    crafted = [f"aaaaaaaa{k:x}" for k in range(4000)]
    known = np.frombuffer(b"abcdefgh" * 3 + b"aaaaaaaa" + b"qqqqqqqq", dtype=np.uint64).copy()
    assert displacement(Vocabulary.of(crafted), known) > 1000.0
    rng = np.random.default_rng(11)
    same_middle = [f"{'prefix' * 5}{k:06d}{'suffix' * 5}" for k in range(4000)]
    same_ends = [f"{k:06d}{'middle' * 8}{k:06d}" for k in range(4000)]
    numbers = [f"{k:08d}zzzzzzz" for k in range(4000)]
    for words in map(Vocabulary.of, (crafted, same_middle, same_ends, numbers)):
        seeds = rng.integers(0, 2**64, (200, 5), dtype=np.uint64) | np.uint64(1)
        assert max(displacement(words, some) for some in seeds) < 0.65  # words drawn by chance: 0.475 +- 0.025
    monkeypatch.setattr("deciban.statistics.vocabulary.SEEDS", known)
    monkeypatch.setattr("deciban.families.text.tokens.SEEDS", known)
    clf = BayesClassifier(Text(stop_words=crafted[:10]), tune=None).fit(
        [" ".join(crafted), *crafted], [0] + [1, 2] * 2000
    )
    assert vocabulary(clf) == sorted(crafted[10:])  # right all the same
    assert words_of(clf)[1].sum() == 2 * 3990
    run = "import sys; sys.path[:0] = ['src']; from deciban.statistics.vocabulary import SEEDS; print(SEEDS.tolist())"
    seen = {subprocess.run([sys.executable, "-c", run], capture_output=True, text=True).stdout for _ in range(2)}
    assert len(seen) == 2


def test_buckets_are_the_same_in_every_model_file() -> None:
    """Whoever changes them has to change the format of model files."""
    words = ["free", "prize", "meeting", "a word that is longer than sixteen bytes", "prix élevé"]
    assert Vocabulary.of(words).buckets(64).tolist() == [41, 28, 45, 4, 43]


@pytest.mark.parametrize("size", [7, 8, 15, 16, 17, 64])
def test_many_words_with_the_same_beginning(size: int) -> None:
    words = [f"{'p' * (size - 6)}{k:06d}"[-max(size, 6) :] for k in range(20_000)]
    rng = np.random.default_rng(size)
    labels = rng.integers(0, 2, len(words))
    clf = BayesClassifier(Text(), tune=None).fit(words, labels)
    assert vocabulary(clf) == words
    assert_array_equal(words_of(clf)[1], np.stack([labels == 0, labels == 1], axis=1))
    assert (clf.predict(words) == labels).mean() == 1.0


def test_a_million_words_with_the_same_beginning() -> None:
    words = [f"thesamebeginningofall{k:07d}" for k in range(1_000_000)]
    text = " ".join(words[::-1])
    clf = BayesClassifier(Text(), tune=None).fit([text, "thesamebeginningofall0000007 other"], [0, 1])
    assert len(vocabulary(clf)) == 1_000_001
    assert clf.predict(["thesamebeginningofall0000007", "thesamebeginningofall0000008"]).tolist() == [1, 0]
