"""Texts are cut into the same words, in any language, by every way of cutting and counting them."""

from collections.abc import Callable

import numpy as np
import pytest

from deciban import BayesClassifier, Text
from deciban.errors import UsageError
from deciban.model.model import Model
from tests.export.agreement import assert_agree
from tests.export.targets import TARGETS, everywhere

# All characters that have a capital or a small form, an accent or a decomposition, and some beyond.
POINTS = [point for point in [*range(0x32000), *range(0xE0000, 0xE0200), 0x10FFFF] if not 0xD800 <= point < 0xE000]
LINES = [" ".join(f"q{chr(point)}{chr(point)}z" for point in POINTS[k : k + 60]) for k in range(0, len(POINTS), 60)]
ODD = [
    "ΑΣ ΑΣΑ Σ ΑΣ. ΑΣ'Α ΑΣ'", "some qaaz averyveryverylongwordindeedofmorethan16bytes", "", "   ", "\0", "q\0q", "a\tb",
    "a\t\tb", " a b ", "\u2003x\u2003\u2003y", "\ud83d",
]  # fmt: skip

FAMILIES_OF_TEXT = [
    Text(strip_accents=True, lowercase=False, min_word_length=1),
    Text(analyzer="char", ngram_range=(1, 2), strip_accents=True),
    Text(analyzer="char_wb", ngram_range=(3, 4)),
    Text(analyzer="char_wb", ngram_range=(6, 7)),  # longer than most words
    Text(max_features=64),
    Text(max_features=200, analyzer="char_wb", ngram_range=(3, 12)),
    Text(ngram_range=(1, 3), stop_words=("qaaz", "QBBz"), min_word_length=3, max_features=1000),
    Text("bernoulli", max_features=500),
    Text("bernoulli", alpha=0.0),
    Text("complement", alpha=0.0, term_counts="log"),
    Text("lift", linear=1.0, normalize=True, tempering=0.25),
    Text(alpha=0.0, min_count=1.0),
]


@pytest.mark.parametrize("accents", [False, True])
def test_every_character_is_folded_as_in_python(accents: bool) -> None:
    """A word that were cut or folded otherwise would not be known: each is in one class alone."""
    labels = np.arange(len(LINES)) % 2
    model = BayesClassifier({"text": Text(strip_accents=accents)}, tune=None).fit({"text": LINES}, labels).model_
    assert_agree([model], [[{"text": line} for line in LINES]])


def test_all_ways_of_cutting_and_counting_agree() -> None:
    rng, some = np.random.default_rng(5), LINES[:400:4]
    labels = rng.integers(0, 3, len(some))
    models = [
        BayesClassifier({"text": family}, tune=None).fit({"text": some}, labels).model_ for family in FAMILIES_OF_TEXT
    ]
    rows = [{"text": text} for text in [*LINES[:400:11], *ODD, None]]
    assert_agree(models, [rows] * len(models))


def test_a_text_has_the_evidence_of_all_its_words() -> None:
    """Checked by hand: P(word | class) is (1 + 1)/(3 + 4) and (0 + 1)/(2 + 4)."""
    model = (
        BayesClassifier({"text": Text()}, tune=None).fit({"text": ["win money now", "lunch now"]}, ["a", "b"]).model_
    )
    for answers in everywhere([model], [[{"text": "Money, MONEY!"}]], ["evidence"]):
        values = answers[0].rows[0]["evidence"][0]["values"]
        assert values == pytest.approx([2 * np.log(2 / 7), 2 * np.log(1 / 6)], abs=1e-15)


@pytest.mark.parametrize("write", [write for write, _ in TARGETS])
def test_a_tokenizer_of_the_users_is_refused_by_name(write: Callable[[Model], str]) -> None:
    with pytest.warns(UserWarning, match="runs in Python"):
        clf = BayesClassifier({"mail": Text(tokenizer=str.split)}, tune=None).fit({"mail": ["a b", "c d"]}, [0, 1])
    with pytest.raises(UsageError, match=r"column 'mail': Text\(tokenizer=…\) cannot be exported, .*; fit again"):
        write(clf.model_)
