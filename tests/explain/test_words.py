"""What an explanation says of the words of texts."""

import re
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from deciban import BayesClassifier, Text
from deciban.families.text.tokens import Tokens
from tests.support.corpora import MAIL_LABELS, MAILS, many_words, words_of

EXPLAINED = [
    Text(), Text("bernoulli"), Text("complement"), Text("lift"),
    Text("lift", term_counts="root", normalize=True, linear=0.4), Text(tempering=0.5), Text("bernoulli", tempering=0.3),
    Text(term_counts="log", normalize=True), Text(ngram_range=(1, 2)), Text(analyzer="char_wb", ngram_range=(2, 3)),
    Text(max_features=16), Text(min_count=4, strip_accents=True),
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
    evidence, columns = steps.evidence, steps.columns
    spoken_somewhere = False
    for row in range(9):
        best, other = np.argsort(-evidence.log_posterior[row], kind="stable")[:2]
        said = 10.0 / np.log(10.0) * (columns.values[row, :, best] - columns.values[row, :, other])
        found = {spoken.column: spoken for spoken in steps.words(row)}
        for block, name in enumerate(columns.columns):
            if str(name) in found:
                spoken = found[str(name)]
                assert spoken.decibans == pytest.approx(said[block], rel=1e-9, abs=1e-9)
                assert sum(value for _, value in spoken.terms) == pytest.approx(said[block], abs=1e-9)
                assert not (spoken.absent or spoken.more_absent) or family.kind == "bernoulli" or tune == "auto"
                sizes = [abs(word.decibans) for word in spoken.words]
                assert sizes == sorted(sizes, reverse=True)
                spoken_somewhere |= bool(spoken.words)
                if spoken.tokens.analyzer == "word" and family.ngram_range == (1, 1):
                    for word in spoken.words[:12]:
                        assert word.word.startswith("(rare") or f"[{word.word}" in spoken.marked
                assert str(spoken).startswith(f"{name}, ")
                assert str(spoken).splitlines()[0].endswith(f" {spoken.decibans:+z.1f}:")
        assert f"\ndecision: {evidence.classes[best]}\n" in steps.calculation(row)
    assert spoken_somewhere


def test_a_text_is_cut_into_words_once_for_all_that_is_said_of_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice with all rows, to score them and to count the orders of their words, and once to explain its row: whatever
    is printed, and however many classes."""
    texts, labels = many_words(np.random.default_rng(8), 60, 60)
    clf = BayesClassifier(Text(), tune=None).fit({"a": texts, "b": texts[::-1]}, labels)
    calls: list[int] = []
    look_up = Tokens.look_up

    def counted(self: Tokens, texts: Any, *more: Any) -> Any:
        calls.append(len(texts))
        return look_up(self, texts, *more)

    monkeypatch.setattr(Tokens, "look_up", counted)
    steps = clf.explain({"a": texts[:3], "b": texts[3:6]})
    assert calls == [3, 3] * 2
    for row in range(3):
        calls.clear()
        assert steps.words(row)
        steps.steps(row), steps.to_dict(row), steps.summary(row), steps.calculation(row)
        assert calls == [1, 1]


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
    clf = BayesClassifier(Text(), tune=None).fit(MAILS, MAIL_LABELS)
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
    tuned = BayesClassifier(Text()).fit(MAILS, MAIL_LABELS)
    assert tuned.top_words("spam", 3) == found


def test_absent_words_are_told_apart_from_those_that_are_there() -> None:
    clf = BayesClassifier(Text("bernoulli"), tune=None).fit(MAILS, MAIL_LABELS)
    [spoken] = clf.explain(["money lunch lunch"]).words()
    words, table = words_of(clf)
    share = (table + 1.0) / (10.0 + 2.0)
    said = 10.0 * np.log10(share[:, 0] / share[:, 1])
    absent = 10.0 * np.log10((1.0 - share[:, 0]) / (1.0 - share[:, 1]))
    sign = 1.0 if clf.predict(["money lunch lunch"])[0] == "ham" else -1.0
    there = [words.index("money"), words.index("lunch")]
    assert_allclose(sorted(w.decibans for w in spoken.words), np.sort(sign * said[there]))
    rest = sum(word.decibans for word in spoken.absent) + spoken.more_absent_decibans
    assert rest == pytest.approx(sign * np.delete(absent, there).sum())
    assert len(spoken.absent) + spoken.more_absent == len(words) - 2


def test_n_grams_are_marked() -> None:
    clf = BayesClassifier(Text(ngram_range=(2, 2)), tune=None).fit(MAILS, MAIL_LABELS)
    [spoken] = clf.explain(["Win  MONEY now"]).words()
    assert spoken.marked.startswith("[Win MONEY +")


def test_n_grams_over_words_that_do_not_count_are_marked() -> None:
    said = ["not a bad film", "a good film", "bad film", "really bad"]
    clf = BayesClassifier(Text(ngram_range=(2, 2), stop_words=["the"]), tune=None).fit(said, ["+", "+", "-", "-"])
    [spoken] = clf.explain(["not the bad film"]).words()
    assert "[not the bad " in spoken.marked
