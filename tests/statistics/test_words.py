"""Counts of words with a bound: buckets of rare words."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from deciban import BayesClassifier, Text, load
from deciban.errors import ForgetError
from deciban.statistics.vocabulary import Vocabulary
from tests.support.corpora import groups_of, many_words, words_of


@pytest.mark.parametrize("most", [16, 64, 500])
def test_a_bound_of_words(most: int, tmp_path: Path) -> None:
    """Memory is bounded, nothing that was counted is lost, and frequent words keep their own counts."""
    rng = np.random.default_rng(most)
    texts, labels = many_words(rng)
    full = BayesClassifier(Text(), tune=None).fit(texts, labels)
    clf = BayesClassifier(Text(max_features=most), tune=None).fit(texts, labels)
    words, table = words_of(clf)
    rare = [word for word in words if word.startswith("\0")]
    assert len(words) - len(rare) == most
    assert len(rare) <= clf.counts_.statistics[0].buckets <= max(16, most)
    every, counts = words_of(full)
    assert_array_equal(table.sum(axis=0), counts.sum(axis=0))
    assert {"common", "often0", "often1", "often2"} <= set(words)
    for word in ("common", "often1"):
        assert_array_equal(table[words.index(word)], counts[every.index(word)])
    kept = sorted(counts.sum(axis=1))[-most:]
    assert_array_equal(np.sort(table[len(rare) :].sum(axis=1)), kept)

    shards = [BayesClassifier(Text(max_features=most), tune=None).fit(texts[k::7], labels[k::7]) for k in range(7)]
    merged = sum(shards[1:], shards[0])
    assert len(words_of(merged)[0]) <= most + merged.counts_.statistics[0].buckets
    assert_allclose(groups_of(merged), groups_of(clf))
    assert "common" in words_of(merged)[0]

    for whole in (clf, merged):
        left = whole
        for shard in shards[:-1]:
            left = left - shard
        assert_allclose(groups_of(left), groups_of(shards[-1]), atol=1e-9)
        again = BayesClassifier(Text(max_features=most), tune=None)
        again.fitted_ = whole.fitted_
        for k in range(6):
            again.forget(texts[k::7], labels[k::7])
        assert_allclose(groups_of(again), groups_of(shards[-1]), atol=1e-9)

    clf.save(tmp_path / "model.dcb")
    strange = ["neverseen words zzz", "common often1 neverseen", "", None]
    assert_array_equal(load(tmp_path / "model.dcb").predict_proba(strange), clf.predict_proba(strange))
    assert np.isfinite(clf.leave_one_out().log_loss)


@pytest.mark.parametrize("options", [{}, {"kind": "bernoulli"}, {"term_counts": "log", "normalize": True}], ids=str)
def test_rows_with_a_bound_are_forgotten_in_any_order(options: dict[str, Any]) -> None:
    for seed in range(12):
        rng = np.random.default_rng(seed)
        parts = [many_words(rng, int(rng.integers(20, 60)), 5000) for _ in range(6)]
        clf = BayesClassifier(Text(max_features=32, **options), tune=None)
        for part in parts:
            clf.partial_fit(*part)
        *gone, last = rng.permutation(6)
        for k in gone:
            clf.forget(*parts[k])
        left = BayesClassifier(Text(max_features=32, **options), tune=None).fit(*parts[last])
        assert_allclose(groups_of(clf), groups_of(left), atol=1e-9)
        with pytest.raises(ForgetError, match="nothing would be left"):
            clf.forget(*parts[last])


def test_rows_with_a_bound_that_were_never_learned_are_not_forgotten() -> None:
    texts, labels = many_words(np.random.default_rng(5))
    clf = BayesClassifier(Text(max_features=16), tune=None).fit(texts, labels)
    with pytest.raises(ForgetError, match="pass only rows the model was trained on"):
        clf.forget([" ".join(["common"] * 10_000)], labels[:1])


def test_unknown_words_are_heard_by_their_bucket() -> None:
    """The evidence of a word that is not kept is that of its bucket, by hand."""
    texts, labels = many_words(np.random.default_rng(6))
    clf = BayesClassifier(Text(max_features=16), tune=None, prior="uniform").fit(texts, labels)
    words, table = words_of(clf)
    unknown = "wordthatneverwas"
    bucket = int(Vocabulary.of([unknown]).buckets(16)[0])
    counts = table[words.index(f"\0{bucket:06x}")] + 1.0
    share = counts / (table.sum(axis=0) + len(words))
    assert_allclose(clf.predict_proba([unknown])[0], share / share.sum())
