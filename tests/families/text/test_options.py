"""The parameters of Text: what is refused, and what is understood."""

import math
import re
from typing import Any

import pytest

from deciban import BayesClassifier, Text
from deciban.errors import UsageError
from tests.support.corpora import (
    MAIL_LABELS,
    MAILS,
    vocabulary,
)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"stop_words": "english"}, "expected a list of words"),
        ({"stop_words": [1]}, "expected a list of words"),
        ({"ngram_range": 3}, "(1, 2)"),
        ({"ngram_range": None}, "(1, 2)"),
        ({"ngram_range": (2, 1)}, "(1, 2)"),
        ({"ngram_range": (0, 1)}, "(1, 2)"),
        ({"strip_accents": "ascii"}, "True or False"),
        ({"lowercase": None}, "True or False"),
        ({"normalize": "l2"}, "True or False"),
        ({"tokenizer": 3}, "function"),
        ({"tokenizer": str.split, "analyzer": "char"}, "remove analyzer"),
        ({"kind": "poisson"}, "choose one of"),
        ({"analyzer": "line"}, "choose one of"),
        ({"term_counts": "tf"}, "choose one of"),
        ({"alpha": -1.0}, "at least 0"),
        ({"linear": 1.5}, "between 0 and 1"),
        ({"min_word_length": 0}, "whole number from 1"),
        ({"max_features": 3}, "whole number from 16"),
        ({"min_count": math.nan}, "at least 0"),
        ({"tempering": "x"}, "at least 0"),
    ],
)
def test_options_that_cannot_be(options: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=re.escape(says)):
        Text(**options)


def test_stop_words_may_hold_half_a_character() -> None:
    clf = BayesClassifier(Text(stop_words={"\ud800", "win"}), tune=None).fit(MAILS, MAIL_LABELS)
    assert "win" not in vocabulary(clf)


def test_a_bound_and_a_least_count_are_one_too_many() -> None:
    with pytest.raises(UsageError, match="one of the two"):
        Text(min_count=3.0, max_features=16)


@pytest.mark.parametrize("options", [{"min_word_length": None}, {"max_features": 1 << 25}, {"min_word_length": 0}])
def test_sizes_that_cannot_be_meant(options: Any) -> None:
    with pytest.raises(UsageError, match="whole number"):
        Text(**options)


def test_options_as_scikit_learn_says_them() -> None:
    assert Text(stop_words=None, strip_accents=None) == Text()
    assert Text(strip_accents="unicode") == Text(strip_accents=True)
