"""Texts: against scikit-learn and brute force, with bad input, and through everything a classifier can do."""

import math
import pickle
import re
import subprocess
import sys
import warnings
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

from deciban import BayesClassifier, Categorical, Text, kernels, load, merge
from deciban.errors import DataError, DecibanError, ForgetError, UsageError
from deciban.families.protocols import Covariance, LeftOut
from deciban.statistics import Words
from deciban.statistics.vocabulary import Vocabulary
from deciban.statistics.words import _buckets

MAILS = ["win money now", "cheap money", "lunch at noon", "see you at lunch"] * 5
KINDS = ["spam", "spam", "ham", "ham"] * 5


def words_of(clf: BayesClassifier, column: int = 0) -> tuple[list[str], np.ndarray]:
    """The vocabulary of a column and its counts, word by class."""
    statistic = next(s for s in clf.counts_.statistics if isinstance(s, Words)).in_sorted_order
    return statistic.vocabularies[column].array.to_pylist(), statistic.tables[column]


def vocabulary(clf: BayesClassifier) -> list[str]:
    return words_of(clf)[0]


def test_a_pickled_model_knows_its_words_in_another_process(tmp_path: Path) -> None:
    """Processes hash words by different seeds: neither the vocabulary nor the stop words may bring theirs along."""
    clf = BayesClassifier(Text(stop_words=["win"]), tune=None).fit(MAILS, KINDS)
    expected = clf.predict_proba(MAILS[:4])
    (tmp_path / "model").write_bytes(pickle.dumps(clf))
    code = (
        "import pickle, sys; clf = pickle.load(open(sys.argv[1], 'rb'));"
        f"print(clf.predict_proba({MAILS[:4]!r}).tolist(), clf.columns.tokens.words('win money'))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "model")], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == f"{expected.tolist()} ['money']"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"stop_words": "english"}, "in a list"),
        ({"stop_words": [1]}, "in a list"),
        ({"ngram_range": 3}, "(1, 2)"),
        ({"ngram_range": None}, "(1, 2)"),
        ({"ngram_range": (2, 1)}, "(1, 2)"),
        ({"ngram_range": (0, 1)}, "(1, 2)"),
        ({"strip_accents": "ascii"}, "True or False"),
        ({"lowercase": None}, "True or False"),
        ({"normalize": "l2"}, "True or False"),
        ({"tokenizer": 3}, "function"),
        ({"tokenizer": str.split, "analyzer": "char"}, "leave out analyzer"),
        ({"kind": "poisson"}, "choose one of"),
        ({"analyzer": "line"}, "choose one of"),
        ({"amounts": "tf"}, "choose one of"),
        ({"alpha": -1.0}, "at least 0"),
        ({"linear": 1.5}, "between 0 and 1"),
        ({"shortest": 0}, "whole number from 1"),
        ({"most_words": 3}, "whole number from 16"),
        ({"min_count": math.nan}, "at least 0"),
        ({"tempering": "x"}, "at least 0"),
    ],
)
def test_options_that_cannot_be(options: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=re.escape(says)):
        Text(**options)


def test_stop_words_may_hold_half_a_character() -> None:
    clf = BayesClassifier(Text(stop_words={"\ud800", "win"}), tune=None).fit(MAILS, KINDS)
    assert "win" not in vocabulary(clf)


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
    np.add.at(total, _buckets(statistic.vocabularies[0], statistic.buckets), statistic.tables[0])
    return total


@pytest.mark.parametrize("most", [16, 64, 500])
def test_a_bound_of_words(most: int, tmp_path: Path) -> None:
    """Memory is bounded, nothing that was counted is lost, and frequent words keep their own counts."""
    rng = np.random.default_rng(most)
    texts, labels = many_words(rng)
    full = BayesClassifier(Text(), tune=None).fit(texts, labels)
    clf = BayesClassifier(Text(most_words=most), tune=None).fit(texts, labels)
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

    shards = [BayesClassifier(Text(most_words=most), tune=None).fit(texts[k::7], labels[k::7]) for k in range(7)]
    merge_models = sum(shards[1:], shards[0])
    assert len(words_of(merge_models)[0]) <= most + merge_models.counts_.statistics[0].buckets
    assert_allclose(groups_of(merge_models), groups_of(clf))
    assert "common" in words_of(merge_models)[0]

    for whole in (clf, merge_models):
        left = whole
        for shard in shards[:-1]:
            left = left - shard
        assert_allclose(groups_of(left), groups_of(shards[-1]), atol=1e-9)
        again = BayesClassifier(Text(most_words=most), tune=None)
        again.fitted_ = whole.fitted_
        for k in range(6):
            again.forget(texts[k::7], labels[k::7])
        assert_allclose(groups_of(again), groups_of(shards[-1]), atol=1e-9)

    clf.save(tmp_path / "model.dcb")
    strange = ["neverseen words zzz", "common often1 neverseen", "", None]
    assert_array_equal(load(tmp_path / "model.dcb").predict_proba(strange), clf.predict_proba(strange))
    assert np.isfinite(clf.leave_one_out().log_loss)


@pytest.mark.parametrize("options", [{}, {"kind": "bernoulli"}, {"amounts": "log", "normalize": True}], ids=str)
def test_rows_with_a_bound_are_forgotten_in_any_order(options: dict[str, Any]) -> None:
    for seed in range(12):
        rng = np.random.default_rng(seed)
        parts = [many_words(rng, int(rng.integers(20, 60)), 5000) for _ in range(6)]
        clf = BayesClassifier(Text(most_words=32, **options), tune=None)
        for part in parts:
            clf.partial_fit(*part)
        *gone, last = rng.permutation(6)
        for k in gone:
            clf.forget(*parts[k])
        left = BayesClassifier(Text(most_words=32, **options), tune=None).fit(*parts[last])
        assert_allclose(groups_of(clf), groups_of(left), atol=1e-9)
        with pytest.raises(ForgetError, match="nothing would be left"):
            clf.forget(*parts[last])


def test_rows_with_a_bound_that_were_never_learned_are_not_forgotten() -> None:
    texts, labels = many_words(np.random.default_rng(5))
    clf = BayesClassifier(Text(most_words=16), tune=None).fit(texts, labels)
    with pytest.raises(ForgetError, match="give just the rows"):
        clf.forget([" ".join(["common"] * 10_000)], labels[:1])


def test_unknown_words_are_heard_by_their_bucket() -> None:
    """The evidence of a word that is not kept is that of its bucket, by hand."""
    texts, labels = many_words(np.random.default_rng(6))
    clf = BayesClassifier(Text(most_words=16), tune=None, prior="uniform").fit(texts, labels)
    words, table = words_of(clf)
    unknown = "wordthatneverwas"
    bucket = int(_buckets(Vocabulary.of([unknown]), 16)[0])
    counts = table[words.index(f"\0{bucket:06x}")] + 1.0
    share = counts / (table.sum(axis=0) + len(words))
    assert_allclose(clf.predict_proba([unknown])[0], share / share.sum())


HALVES = ["a\ud800b win money", "lunch \0 noon"] * 10


@pytest.mark.parametrize(
    "texts",
    [
        HALVES, tuple(HALVES), np.array(HALVES), np.array(HALVES, dtype=object), pd.Series(HALVES, dtype=object),
        pd.DataFrame({"a": HALVES}, dtype=object), {"a": HALVES}, [{"a": text} for text in HALVES],
        [[text] for text in HALVES],
    ],
    ids=["list", "tuple", "numpy", "objects", "series", "pandas", "dict", "dicts", "rows"],
)  # fmt: skip
def test_half_a_character_and_nul_are_no_part_of_a_word(texts: Any) -> None:
    clf = BayesClassifier(Text(shortest=1), tune=None).fit(texts, ["spam", "ham"] * 10)
    assert vocabulary(clf) == ["a", "b", "lunch", "money", "noon", "win"]
    assert clf.predict(texts).tolist() == ["spam", "ham"] * 10


STRINGS = [*MAILS[:-1], None]


@pytest.mark.parametrize(
    "texts",
    [
        STRINGS, tuple(STRINGS), [*MAILS[:-1], math.nan], np.array(STRINGS, dtype=object), pd.Series(STRINGS),
        pd.Series(STRINGS, name="mail"), pd.Series(STRINGS, dtype="category"), pd.Series(STRINGS, dtype="string"),
        pd.Index(STRINGS), pd.array(STRINGS, dtype="string"), pl.Series(STRINGS),
        pl.Series(STRINGS, dtype=pl.Categorical), pl.Series("mail", STRINGS),
        pa.array(STRINGS), pa.array(STRINGS, pa.large_string()),
        pa.array(STRINGS, pa.string_view()), pa.array(STRINGS).dictionary_encode(),
        pa.array(STRINGS, pa.large_string()).dictionary_encode(),
        pa.DictionaryArray.from_arrays(
            pa.array(STRINGS).dictionary_encode().indices,
            pa.array(STRINGS).dictionary_encode().dictionary.cast(pa.string_view()),
        ),
        pa.chunked_array([STRINGS[:3], [], STRINGS[3:]], pa.string()),
        pa.chunked_array([pa.array(STRINGS[:9]).dictionary_encode(), pa.array(STRINGS[9:]).dictionary_encode()]),
        pa.array(["no", "not this", *STRINGS, "nor that"])[2:-1],
        pa.chunked_array([pa.array(["no", *STRINGS[:5]])[1:], pa.array([*STRINGS[5:], "no"])[:-1]]),
    ],
    ids=lambda texts: f"{type(texts).__module__.split('.')[0]}-{getattr(texts, 'type', getattr(texts, 'dtype', ''))}",
)  # fmt: skip
def test_texts_alone_however_they_are_stored(texts: Any) -> None:
    expected = BayesClassifier(Text(), tune=None).fit({"x": STRINGS}, KINDS)
    clf = BayesClassifier(Text(), tune=None).fit(texts, KINDS)
    assert vocabulary(clf) == vocabulary(expected)
    assert_array_equal(words_of(clf)[1], words_of(expected)[1])
    assert_array_equal(clf.predict_proba(texts), expected.predict_proba({"x": STRINGS}))
    other = texts.to_frame("x") if isinstance(texts, pd.Series) else {"x": texts}
    if not isinstance(texts, pl.Series | pd.Series):  # a name must be that of the column
        assert_array_equal(clf.predict_proba(other), expected.predict_proba({"x": STRINGS}))


def test_numpy_arrays_of_strings() -> None:
    expected = BayesClassifier(Text(), tune=None).fit(MAILS, KINDS).predict_proba(MAILS)
    for texts in (np.array(MAILS), np.array(MAILS, dtype=np.dtypes.StringDType()), np.array(MAILS).reshape(-1, 1)):
        assert_array_equal(BayesClassifier(Text(), tune=None).fit(texts, KINDS).predict_proba(texts), expected)


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        ([[1.0]] * 20, "column 'x0': it holds numbers, expected text"),
        ({"a": [1] * 20}, "column 'a', row 0: found 1"),
        ({"a": [True] * 20}, "found True"),
        ({"a": [b"bytes"] * 20}, "decode the bytes"),
        ({"a": [["x"]] * 20}, "expected text"),
        ([*MAILS[:-1], 3], "row 19: found 3 (int) among texts"),
        ([*MAILS[:-1], b"x"], "row 19: found b'x' (bytes) among texts"),
        (sparse.csr_array(np.eye(20)), "it holds numbers, expected text"),
    ],
)
def test_cells_that_are_no_texts(texts: Any, says: str) -> None:
    for tune in ("auto", None):
        with pytest.raises(DataError, match=re.escape(says)) as caught:
            BayesClassifier(Text(), tune=tune).fit(texts, KINDS)
        assert "\n" not in str(caught.value)


INVALID = pa.Array.from_buffers(
    pa.string(), 4, [None, pa.py_buffer(np.array([0, 20, 44, 44, 47], dtype=np.int32)),
                     pa.py_buffer(b"win \xff money now caf\xc3lunch \xed\xa0\x80 at noon now \xe2\x82\xf0\x9f\x98")],
)  # fmt: skip


@pytest.mark.parametrize("family", [Text(), Text("bernoulli"), Text(analyzer="char_wb", ngram_range=(1, 2))])
def test_bytes_that_are_no_utf8_go_all_the_way(family: Text, tmp_path: Path) -> None:
    texts, labels = pa.chunked_array([INVALID] * 4).combine_chunks(), ["spam", "ham", "spam", "ham"] * 4
    table = pa.table({"x": texts, "y": texts})
    BayesClassifier(tune=None).fit(table, labels).predict(table)  # by inference
    clf = BayesClassifier({"x": family, "y": Text()}).fit(table, labels)
    assert "win" in str(clf.explain(table[:2]))
    assert f" {clf.leave_one_out().log_loss / np.log(2):.4f}" in str(clf.diagnose())
    clf.save(tmp_path / "model.dcb")
    assert_array_equal(load(tmp_path / "model.dcb").predict_proba(table), clf.predict_proba(table))
    clf.forget(table[:4], labels[:4])


def displacement(words: Vocabulary, seeds: np.ndarray) -> float:
    """How many slots are looked at in vain, on average, to find each of these words."""
    text = np.concatenate([words.text, np.zeros(16, dtype=np.uint8)])
    entries = np.zeros_like(words.index.entries)
    kernels.index_words(text, words.starts, seeds, np.empty((512, 3), dtype=np.uint64), entries)
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
    assert _buckets(Vocabulary.of(words), 64).tolist() == [41, 28, 45, 4, 43]


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


@pytest.mark.parametrize(
    "text", ["x" * 100_000_000, "lorem ipsum dolor " * 2_000_000, "日本語" * 3_000_000, "日本語" * 1_000_000 + "Σ"],
    ids=["one word", "many words", "no white space", "sigma"],
)  # fmt: skip
def test_a_huge_text(text: str) -> None:
    clf = BayesClassifier(Text(), tune=None).fit([text, "other words"], [0, 1])
    assert clf.predict([text, "words"]).tolist() == [0, 1]
    assert len(vocabulary(clf)) == (5 if " " in text else 3)


@pytest.mark.parametrize("family", [Text(), Text("bernoulli"), Text("lift"), Text("complement"), Text(analyzer="char")])
@pytest.mark.parametrize(
    "texts", [[""] * 40, [" ", "\n"] * 20, ["ab", "ab ab"] * 20, pa.nulls(40, pa.string()), [None] * 39 + [""]],
    ids=["empty", "blank", "stop words", "missing", "one"],
)  # fmt: skip
def test_texts_without_words_say_nothing(family: Text, texts: Any) -> None:
    if family.analyzer == "word":
        family = replace(family, stop_words=("ab",))
    elif "ab" in texts or " " in texts:
        return
    for tune in ("auto", None):
        clf = BayesClassifier(family, tune=tune).fit(texts, ["a", "b", "b", "b"] * 10)
        assert_allclose(clf.predict_proba(["ab", "x", "", None]), [[0.25, 0.75]] * 4)
        assert clf.leave_one_out().posterior.shape == (40, 2)
        assert "x0 = ab x  +0.00" in str(clf.explain(["ab x"])).splitlines()
        assert len(clf.top_words("a")) == 0
        if family.kind in ("multinomial", "bernoulli"):
            assert clf.sample(3, 0, length=4)[0].num_rows == 3


def test_a_million_empty_texts() -> None:
    clf = BayesClassifier(Text(), tune=None).fit([*[""] * 1_000_000, "ab", "cd"], [*[0, 1] * 500_000, 0, 1])
    assert clf.predict(["ab", "cd"]).tolist() == [0, 1]


# What a classifier of texts explains


EXPLAINED = [
    Text(), Text("bernoulli"), Text("complement"), Text("lift"),
    Text("lift", amounts="root", normalize=True, linear=0.4), Text(tempering=0.5), Text("bernoulli", tempering=0.3),
    Text(amounts="log", normalize=True), Text(ngram_range=(1, 2)), Text(analyzer="char_wb", ngram_range=(2, 3)),
    Text(most_words=16), Text(min_count=4, strip_accents=True),
]  # fmt: skip


@pytest.mark.parametrize("family", EXPLAINED, ids=str)
@pytest.mark.parametrize("tune", ["auto", None])
def test_words_and_the_rest_add_up_to_the_evidence(family: Text, tune: Any) -> None:
    texts, labels = many_words(np.random.default_rng(8), 120, 60)
    number = np.random.default_rng(9).normal(labels, 2.0)
    table = {"text": texts, "n": number, "again": texts[::-1]}
    clf = BayesClassifier({("text"): family, "again": family}, tune=tune).fit(table, labels)
    shown = {
        "text": [*texts[:6], "never seen words", "", None],
        "n": number[:9],
        "again": ["common w1 w1", *texts[10:18]],
    }
    steps = clf.explain(shown)
    evidence = steps.evidence
    spoken_somewhere = False
    for row in range(9):
        best, other = np.argsort(-evidence.log_posterior[row], kind="stable")[:2]
        said = 10.0 / np.log(10.0) * (evidence.weighted[row, :, best] - evidence.weighted[row, :, other])
        found = {spoken.column: spoken for spoken in steps.words(row)}
        for block, name in enumerate(evidence.blocks):
            if str(name) in found:
                spoken = found[str(name)]
                assert spoken.decibans == pytest.approx(said[block], rel=1e-9, abs=1e-9)
                assert sum(value for _, value in spoken.terms) == pytest.approx(said[block], abs=1e-9)
                assert not (spoken.absent or spoken.others_absent) or family.kind == "bernoulli" or tune == "auto"
                sizes = [abs(word.decibans) for word in spoken.words]
                assert sizes == sorted(sizes, reverse=True)
                spoken_somewhere |= bool(spoken.words)
                if spoken.column_words.family.analyzer == "word" and family.ngram_range == (1, 1):
                    for word in spoken.words[:12]:
                        assert word.word.startswith("(rare") or f"[{word.word}" in spoken.marked
                assert str(spoken).startswith(spoken.column)
        assert f"decision: {evidence.classes[best]}" in str(steps.calculation(row)).splitlines()
    assert spoken_somewhere


@pytest.mark.parametrize(
    ("text", "family"),
    [
        ("ΑΣ.Α ΟΔΟΣ", Text()),
        ("e\u0301te\u0301 cafe\u0301 naïve", Text(strip_accents=True)),
        ("Straße ﬁne İzmir", Text()),
        ("ﬁne ½ Σίσυφος", Text(strip_accents=True)),
        ("\u0301win\u0301\u0301, money\u0301\u0323!", Text(strip_accents=True)),
    ],
)
def test_words_are_marked_where_they_are(text: str, family: Text) -> None:
    """Also those that are not written in the text as they are in the vocabulary."""
    clf = BayesClassifier(family, tune=None).fit([text, "other words entirely"] * 3, [0, 1] * 3)
    [spoken] = clf.explain([text]).words()
    assert len(spoken.words) == spoken.marked.count("[")
    assert re.sub(r"\[(.+?)(?: [+-]\d+\.\d)?\]", r"\1", spoken.marked) == text


def test_top_words_by_hand() -> None:
    clf = BayesClassifier(Text(), tune=None).fit(MAILS, KINDS)
    words, table = words_of(clf)
    spam, ham = table[:, 1] + 1.0, table[:, 0] + 1.0
    spam, ham = spam / spam.sum(), ham / ham.sum()
    said = 10.0 * np.log10(spam / ham)
    found = clf.top_words("spam", 3)
    assert [word.word for word in found] == [words[k] for k in np.argsort(-spam * said, kind="stable")[:3]]
    assert found[0].word == "money"
    assert (found[0].count, found[0].elsewhere) == (10.0, 0.0)
    assert_allclose([word.decibans for word in found], [said[words.index(word.word)] for word in found])
    assert "money" in str(found)
    assert {word.word for word in clf.top_words("ham", 100)} == {"lunch", "at", "noon", "see", "you"}
    tuned = BayesClassifier(Text()).fit(MAILS, KINDS)
    assert tuned.top_words("spam", 3) == found


@pytest.mark.parametrize("family", [Text(), Text("bernoulli"), Text(amounts="root"), Text(alpha=0.0)])
def test_texts_drawn_from_a_class(family: Text) -> None:
    clf = BayesClassifier(family).fit([*MAILS, None], [*KINDS, "spam"])
    table, labels = clf.sample(200, 3, label="ham", length=30)
    texts = table.column(0).to_pylist()
    assert set(labels.tolist()) == {"ham"}
    assert all(len(text.split()) == 30 for text in texts)
    drawn = Counter(" ".join(texts).split())
    assert set(drawn) <= set(vocabulary(clf))
    assert {word for word, _ in drawn.most_common(2)} == {"at", "lunch"}
    if family.alpha == 0.0:
        assert set(drawn) == {"lunch", "at", "noon", "see", "you"}
    assert clf.sample(3, 0, length=0)[0].column(0).to_pylist() == ["", "", ""]
    means = [len(text.split()) for text in clf.sample(3000, 0, label="ham")[0].column(0).to_pylist()]
    assert np.mean(means) == pytest.approx(3.5, abs=0.2)


def test_what_cannot_be_drawn_or_told() -> None:
    clf = BayesClassifier(Text(), tune=None).fit(MAILS, KINDS)
    with pytest.raises(UsageError, match="'eggs' is none of"):
        clf.sample(1, label="eggs")
    with pytest.raises(UsageError, match="'eggs' is none of"):
        clf.top_words("eggs")
    for length in (-1, 2.5, "x"):
        with pytest.raises(UsageError, match="length"):
            clf.sample(1, length=length)
    with pytest.raises(UsageError, match="n=-1"):
        clf.top_words("ham", -1)
    for kind in ("complement", "lift"):
        scores = BayesClassifier(Text(kind), tune=None).fit(MAILS, KINDS)  # type: ignore[arg-type]
        for call in (scores.sample, scores.bayes_error):
            with pytest.raises(DataError, match="is a score, not a distribution; use"):
                call()
    numbers = BayesClassifier(tune=None).fit(np.eye(20), KINDS)
    with pytest.raises(UsageError, match=r"is Text\(\)"):
        numbers.top_words("ham")
    with pytest.raises(UsageError, match=r"Text\(\)"):
        numbers.sample(2, length=5)
    two = BayesClassifier(Text(), tune=None).fit({"a": MAILS, "b": MAILS}, KINDS)
    with pytest.raises(UsageError, match="several columns"):
        two.top_words("ham")
    with pytest.raises(UsageError, match="column 'c' is not Text"):
        two.top_words("ham", column="c")
    assert two.top_words("ham", column="b") == clf.top_words("ham")


# Texts beside numbers and categories


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


@pytest.mark.parametrize("family", FAMILIES, ids=str)
@pytest.mark.parametrize("tune", ["auto", None])
def test_everything_a_classifier_can_do_it_can_do_with_texts(family: Text, tune: Any, tmp_path: Path) -> None:
    clf = BayesClassifier({"text": family}, tune=tune).fit(TABLE, LABELS)
    posterior = clf.predict_proba(TABLE)
    assert_allclose(posterior.sum(axis=1), 1.0)
    frames = (pd.DataFrame(TABLE), pl.DataFrame(TABLE), pa.table(TABLE), pl.DataFrame(TABLE).lazy().collect())
    for other in (*frames, [dict(zip(TABLE, row, strict=True)) for row in zip(*TABLE.values(), strict=True)]):
        assert_array_equal(clf.predict_proba(other), posterior)
    assert f" {clf.leave_one_out().log_loss / np.log(2):.4f}" in str(clf.diagnose())
    assert "text" in clf.select()
    assert len(clf.select(2)) == 2
    with pytest.raises(UsageError, match=r"text: Text\(.*has no linear or quadratic form|n: Gaussian"):
        clf.linear_form()
    with pytest.raises(UsageError, match=r"text: Text\(.*has no linear or quadratic form"):
        clf.quadratic_form()
    without_text = BayesClassifier(tune=None).fit({"n": TABLE["n"], "c": TABLE["c"]}, LABELS)
    words = clf.parameter_count().naive - without_text.parameter_count().naive
    most = len(vocabulary(clf)) * (2 if family.kind == "lift" else 3)  # of three classes; a lift has one less
    assert most - 6 <= words <= most
    low, high = clf.predict_interval(TABLE)
    assert ((low <= posterior + 1e-12) & (posterior <= high + 1e-12)).all()
    density = clf.log_density(TABLE)
    assert not np.isnan(density).any()
    if family.kind in ("multinomial", "bernoulli"):
        assert 0.0 <= clf.bayes_error(rows=200).risk <= 1.0
        drawn, labels = clf.sample(50, 0)
        assert drawn.column_names == ["text", "n", "c"]
        assert clf.predict(drawn).shape == labels.shape
    steps = clf.explain(rows_of(TABLE, slice(0, 3)))
    assert re.findall(r"decision: (\S+)", str(steps)) == [str(best) for best in clf.predict(TABLE)[:3]]
    assert clf.decide(TABLE, reject=0.1).decision.shape == LABELS.shape
    with warnings.catch_warnings(action="ignore"):  # of so few rows some are not calibrated
        prior = clf.estimate_prior(TABLE).to_dict()
    assert_allclose([prior[label] for label in clf.classes_], np.bincount(LABELS) / len(LABELS), atol=0.15)
    clf.save(tmp_path / "model.dcb")
    for again in (load(tmp_path / "model.dcb"), pickle.loads(pickle.dumps(clf)), clone(clf).fit(TABLE, LABELS)):
        assert_array_equal(again.predict_proba(TABLE), posterior)
    assert clf.retune(TABLE, LABELS).predict(TABLE).shape == LABELS.shape
    without = clf.predict({"n": TABLE["n"], "c": TABLE["c"]})
    assert_array_equal(clf.predict({**TABLE, "text": [None] * len(LABELS)}), without)
    with pytest.raises(DataError, match=r"column 'text', row 0: found 1\.0"):
        clf.predict({**TABLE, "text": [1.0] * len(LABELS)})


@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_texts_that_come_and_go(family: Text, tmp_path: Path) -> None:
    """partial_fit, shard, merge and + learn the same; forget and - undo it; decay changes no shares."""
    first, second = rows_of(TABLE, slice(0, 45)), rows_of(TABLE, slice(45, None))
    second["text"] = [None if text is None else f"{text} brandnew{k}" for k, text in enumerate(second["text"])]
    whole = {name: first[name] + second[name] for name in first}
    one = BayesClassifier({"text": family}, tune=None).fit(first, LABELS[:45])
    before = one.predict_proba(TABLE)
    other = one.shard(second, LABELS[45:])
    for name, clf in (("one", one), ("other", other)):
        clf.save(tmp_path / f"{name}.dcb")
    merge_models = merge([tmp_path / "one.dcb", tmp_path / "other.dcb"])
    both = BayesClassifier({"text": family}, tune=None).fit(whole, LABELS)
    grown = pickle.loads(pickle.dumps(one)).partial_fit(second, LABELS[45:])
    if family.most_words is None:
        for clf in (one + other, merge_models, grown):
            assert_allclose(clf.predict_proba(TABLE), both.predict_proba(TABLE), rtol=1e-9)
        assert_allclose((both - other).predict_proba(TABLE), before, rtol=1e-9)
        assert_allclose(grown.forget(second, LABELS[45:]).predict_proba(TABLE), before, rtol=1e-9)
        assert_array_equal(words_of(grown)[0], words_of(one)[0])
    else:
        assert_allclose(grown.forget(second, LABELS[45:]).counts_.class_weight, one.counts_.class_weight)
    halved = pickle.loads(pickle.dumps(both)).decay(0.5)
    assert_allclose(words_of(halved)[1], 0.5 * words_of(both)[1])
    never = ["words that were never learned"] * 10 + [" ".join(["never"] * 2000)]
    with pytest.raises(ForgetError, match="give just the rows"):
        both.forget({name: never if name == "text" else [None] * 11 for name in TABLE}, LABELS[:11])
    with pytest.raises(DecibanError, match="fit both with the same columns"):
        one + BayesClassifier({"text": Text(lowercase=False, most_words=99)}, tune=None).fit(first, LABELS[:45])


@pytest.mark.parametrize(
    "texts", [MAILS, np.array(MAILS), pd.Series(MAILS), MAILS[::-1]], ids=["list", "numpy", "pandas", "x"]
)
def test_lists_of_strings_in_cross_validation(texts: Any) -> None:
    labels = KINDS if texts is not MAILS[::-1] else KINDS[::-1]
    found = cross_val_score(BayesClassifier(Text(), tune=None), texts, labels, cv=4, error_score="raise")
    peer = cross_val_score(make_pipeline(CountVectorizer(), MultinomialNB()), texts, labels, cv=4)
    assert_array_equal(found, peer)
    chosen = GridSearchCV(
        BayesClassifier(tune=None), {"columns": [Text(), Text("bernoulli")]}, cv=2, error_score="raise"
    )
    assert chosen.fit(texts, labels).best_params_["columns"] == Text()


def test_columns_of_text_are_inferred() -> None:
    table = {
        "mail": [f"{mail} number {k}" for k, mail in enumerate(MAILS)],
        "kind": ["new", "old"] * 10,
        "id": range(20),
    }
    schema = str(BayesClassifier(tune=None).fit(table, KINDS).schema_)
    assert re.search(r"mail +Text\(\) +text of \d words on average", schema)
    assert re.search(r"kind +Categorical\(\)", schema)
    assert "Text()" in str(BayesClassifier(tune=None).fit(table["mail"], KINDS).schema_)
    assert "Text" not in str(BayesClassifier(tune=None).fit(["red", "green"] * 10, KINDS).schema_)
    repeated = BayesClassifier(tune=None).fit(["a long name of a category", "and still another name"] * 10, KINDS)
    assert "Text" not in str(repeated.schema_)
    for empty in ([None] * 20, [""] * 19 + [None]):
        BayesClassifier().fit({"a": empty, "b": table["mail"]}, KINDS).predict({"a": empty, "b": table["mail"]})


def test_a_tokenizer_of_ones_own_counts_what_it_finds(tmp_path: Path) -> None:
    def tokenizer(text: str) -> list[str]:
        return [text[k : k + 3] for k in range(0, len(text), 2)]

    clf = BayesClassifier(Text(tokenizer=tokenizer), tune=None)
    with pytest.warns(UserWarning, match=r"Text\(tokenizer=...\) runs in Python"):
        clf.fit(MAILS, KINDS)
    pipeline = make_pipeline(CountVectorizer(tokenizer=tokenizer, token_pattern=None), MultinomialNB()).fit(
        MAILS, KINDS
    )
    with pytest.warns(UserWarning, match="slower"):
        found = clf.predict_log_proba(MAILS)
    assert_allclose(found, pipeline.predict_log_proba(MAILS), rtol=1e-9, atol=1e-12)
    assert sorted(vocabulary(clf)) == pipeline[0].get_feature_names_out().tolist()
    with pytest.raises(UsageError, match="code; leave it out, or pickle"):
        clf.save(tmp_path / "model.dcb")
    assert not list(tmp_path.iterdir())
    for wrong in (None, [1, 2], [b"x"], 3):
        with pytest.warns(UserWarning, match="slower"), pytest.raises(UsageError, match="let it return words"):
            BayesClassifier(Text(tokenizer=lambda text, wrong=wrong: wrong), tune=None).fit(MAILS, KINDS)  # type: ignore[misc]
    with pytest.warns(UserWarning, match="slower"), pytest.raises(ZeroDivisionError):
        BayesClassifier(Text(tokenizer=lambda text: 1 / 0), tune=None).fit(MAILS, KINDS)  # type: ignore[arg-type]
    strange = Text(tokenizer=lambda text: iter(["\0ab", "", "a b", "\ud800"]))
    with pytest.warns(UserWarning, match="slower"):
        assert vocabulary(BayesClassifier(strange, tune=None).fit(MAILS, KINDS)) == [" ab", "?", "a b"]


@pytest.mark.parametrize("alpha", [1.0, 0.01])
def test_a_bucket_of_rare_words_is_in_a_text_or_not(alpha: float) -> None:
    """A text has many words of one bucket; that the bucket is there is no more probable than 1."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 120)
    texts = [" ".join([*(f"r{k}" for k in rng.integers(0, 500, 40)), f"class{label}"]) for label in labels]
    clf = BayesClassifier(Text("bernoulli", most_words=16, alpha=alpha), tune=None).fit(texts, labels)
    evidence = clf.evidence([*texts, "class1", "never", ""]).values
    assert np.isfinite(evidence).all()
    assert (evidence < 0.0).all()
    assert clf.score(texts, labels) == 1.0
    assert clf.leave_one_out().accuracy > 0.95
    assert clf.predict(["class0", "class1", "class2"]).tolist() == [0, 1, 2]


@pytest.mark.parametrize("kind", ["multinomial", "bernoulli", "lift", "complement"])
@pytest.mark.parametrize("tune", ["auto", None])
def test_without_smoothing_words_may_rule_a_class_out(kind: Any, tune: Any) -> None:
    """Explanations hold infinite decibans, but none that is not a number."""
    clf = BayesClassifier({"text": Text(kind, alpha=0.0)}, tune=tune).fit(TABLE, LABELS)
    steps = clf.explain(TABLE)
    assert not np.isnan(clf.predict_proba(TABLE)).any()
    assert "nan" not in str(steps)
    for row in range(len(LABELS)):
        for spoken in steps.words(row):
            assert not math.isnan(spoken.decibans)
            assert spoken.marked


def test_absent_words_are_told_apart_from_those_that_are_there() -> None:
    clf = BayesClassifier(Text("bernoulli"), tune=None).fit(MAILS, KINDS)
    [spoken] = clf.explain(["money lunch lunch"]).words()
    words, table = words_of(clf)
    share = (table + 1.0) / (10.0 + 2.0)
    said = 10.0 * np.log10(share[:, 0] / share[:, 1])
    absent = 10.0 * np.log10((1.0 - share[:, 0]) / (1.0 - share[:, 1]))
    sign = 1.0 if clf.predict(["money lunch lunch"])[0] == "ham" else -1.0
    there = [words.index("money"), words.index("lunch")]
    assert_allclose(sorted(w.decibans for w in spoken.words), np.sort(sign * said[there]))
    rest = sum(word.decibans for word in spoken.absent) + spoken.rest
    assert rest == pytest.approx(sign * np.delete(absent, there).sum())
    assert len(spoken.absent) + spoken.others_absent == len(words) - 2


def _open(*options: Any) -> Any:
    why = "leave-one-out hears the words of a bucket together, which were counted one by one"
    return pytest.param(*options, marks=pytest.mark.xfail(strict=True, reason=why))


def test_a_bound_and_a_least_count_are_one_too_many() -> None:
    with pytest.raises(UsageError, match="one of the two"):
        Text(min_count=3.0, most_words=16)


@pytest.mark.parametrize(
    "family",
    [
        Text(most_words=16),
        Text("complement", most_words=16),
        Text("lift", most_words=16),
        _open(Text("bernoulli", most_words=16)),
        _open(Text(amounts="root", normalize=True, most_words=16)),
    ],
    ids=str,
)
def test_rows_left_out_with_a_bound_are_those_that_are_taken_away(family: Text) -> None:
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 3, 80)
    texts = [" ".join(f"w{k}" for k in np.minimum(rng.zipf(1.3, rng.integers(0, 12)), 300)) for _ in labels]
    clf = BayesClassifier(family, tune=None, prior="uniform").fit(texts, labels)
    found = clf.leave_one_out().posterior
    for k, text in enumerate(texts):
        without = clf - clf.shard([text], labels[k : k + 1])
        assert_allclose(found[k], without.predict_proba([text])[0], rtol=1e-9)


def test_n_grams_are_marked() -> None:
    clf = BayesClassifier(Text(ngram_range=(2, 2)), tune=None).fit(MAILS, KINDS)
    [spoken] = clf.explain(["Win  MONEY now"]).words()
    assert spoken.marked.startswith("[Win MONEY +")


def test_categories_that_are_no_utf8_are_not_saved(tmp_path: Path) -> None:
    clf = BayesClassifier(Categorical(), tune=None).fit(pa.table({"x": INVALID}), ["a", "b", "a", "b"])
    with pytest.raises(UsageError, match="not UTF-8"):
        clf.save(tmp_path / "model.dcb")


def test_models_of_the_same_texts_have_the_same_name() -> None:
    """Whatever the order of texts; and the name of a large vocabulary is found without looking at bytes one by one."""
    clf = BayesClassifier(Text(), tune=None).fit(MAILS, KINDS)
    assert clf.shards_ == BayesClassifier(Text(), tune=None).fit(MAILS[::-1], KINDS[::-1]).shards_
    assert clf.shards_ != BayesClassifier(Text(), tune=None).fit([*MAILS[:-1], "see you at lunchtime"], KINDS).shards_
    assert clf.shards_ != BayesClassifier(Text(), tune=None).fit([*MAILS[:-1], "seeyou at lunch"], KINDS).shards_
    large = BayesClassifier(Text(), tune=None).fit([" ".join(f"word{k}" for k in range(300_000))], ["a"])
    calls = 0

    def count(*_: Any) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(count)
    try:
        assert len(large.shards_) == 1
    finally:
        sys.setprofile(None)
    assert calls < 20_000


def test_texts_without_spaces_are_heard_by_their_characters() -> None:
    said = ["我今天很高兴见到你们大家", "这家餐厅的菜非常难吃啊", "今日はとても良い天気ですね", "ผมชอบอาหารไทยมากๆครับ"]
    clf = BayesClassifier(tune=None).fit({"said": said, "code": ["北京", "上海", "北京", "上海"]}, ["a", "b", "a", "b"])
    families = {column: family for column, family, _ in clf.schema_.descriptions()}
    assert families["said"] == "Text(analyzer='char', ngram_range=(1, 2))"
    assert families["code"] == "Categorical()"
    assert clf.predict([{"said": "很高兴见到你"}]).tolist() == ["a"]


def test_a_tokenizer_may_find_empty_words() -> None:
    """They would come before the buckets of rare words."""
    family = Text(tokenizer=lambda text: text.split(" "), most_words=16)
    texts = pa.array([f"a  b{k} c{k}  d{k % 3}" for k in range(60)])
    labels, weights = (np.arange(60) % 2).astype(np.int32), np.ones(60)
    with pytest.warns(UserWarning, match="slower"):
        whole = family.count([texts], labels, weights, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shards = [family.count([texts[k : k + 20]], labels[k : k + 20], weights[k : k + 20], 2) for k in (0, 20, 40)]
    total = shards[0].merge(shards[1]).merge(shards[2])
    names = total.vocabularies[0].array.to_pylist()
    assert names == sorted(set(names))
    assert "" not in names
    assert total.tables[0].sum() == whole.tables[0].sum() == 4 * 60
    assert total.remove(shards[1]).tables[0].sum() == 4 * 40


@pytest.mark.parametrize("taken", [0.0, 1.0])
def test_rows_left_out_without_smoothing_are_numbers(taken: float) -> None:
    family, texts = Text("bernoulli", alpha=0.0), [pa.array(["aa bb", "aa", "bb cc", None])]
    labels = np.array([0, 0, 1, 1], dtype=np.int32)
    statistic, out = family.count(texts, labels, np.ones(4), 2), np.zeros((4, 1, 2))
    family.score_left_out(statistic, texts, LeftOut(labels, np.full(4, taken)), np.zeros(1, dtype=np.int64), out)
    assert not np.isnan(out).any()
    if taken == 0.0:
        plain = np.zeros((4, 1, 2))
        family.estimate(statistic).score(texts, np.ones(1), np.zeros(1, dtype=np.int64), plain)
        np.testing.assert_allclose(out, plain)


@pytest.mark.parametrize("kind", ["multinomial", "bernoulli", "complement"])
def test_a_missing_text_has_no_error(kind: Any) -> None:
    family, texts = Text(kind), [pa.array(["aa bb", "aa", "bb cc", None])]
    statistic = family.count(texts, np.array([0, 0, 1, 1], dtype=np.int32), np.ones(4), 2)
    covariance = Covariance.along(np.ones((4, 2)))
    family.add_covariance(family.estimate(statistic), statistic, texts, np.ones(1), covariance)
    assert (covariance.own[:3] > 0.0).all()
    assert (covariance.times(0)[3] == 0.0).all()


def test_n_grams_over_words_that_do_not_count_are_marked() -> None:
    said = ["not a bad film", "a good film", "bad film", "really bad"]
    clf = BayesClassifier(Text(ngram_range=(2, 2), stop_words=["the"]), tune=None).fit(said, ["+", "+", "-", "-"])
    [spoken] = clf.explain(["not the bad film"]).words()
    assert "[not the bad " in spoken.marked


def test_least_counts_do_not_cut_lifts() -> None:
    """Whose amounts are a fraction of one for each word."""
    rng = np.random.default_rng(0)
    said = [" ".join(f"w{k}" for k in rng.zipf(1.3, 60) % 500) + f" class{c}" for c in np.arange(200) % 2]
    clf = BayesClassifier(Text(min_count=5.0)).fit(said, np.arange(200) % 2)
    for choice in clf.tuning_.choices:
        lifts = [family for family, _ in ((choice.family, 0.0), *choice.others) if family.kind == "lift"]
        assert [family.min_count for family in lifts] == [0.0]


@pytest.mark.parametrize("options", [{"shortest": None}, {"most_words": 1 << 25}, {"shortest": 0}])
def test_sizes_that_cannot_be_meant(options: Any) -> None:
    with pytest.raises(UsageError, match="whole number"):
        Text(**options)


def test_options_as_scikit_learn_says_them() -> None:
    assert Text(stop_words=None, strip_accents=None) == Text()
    assert Text(strip_accents="unicode") == Text(strip_accents=True)


def test_weights_that_are_next_to_nothing() -> None:
    """Half of the least number is 0: such words count nothing, however many there are, and no others."""
    texts, labels = ["aa bb cc dd", "ee"] * 2_000, ["x", "y"] * 2_000
    clf = BayesClassifier(Text(normalize=True), tune=None).fit(texts, labels, sample_weight=np.full(4_000, 5e-324))
    assert words_of(clf)[0] == ["ee"]
