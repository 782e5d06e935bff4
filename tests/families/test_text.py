"""Texts: against scikit-learn and brute force, with bad input, and through everything a classifier can do."""

import math
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deciban import BayesClassifier, Text
from deciban.errors import UsageError
from deciban.statistics import Words

MAILS = ["win money now", "cheap money", "lunch at noon", "see you at lunch"] * 5
KINDS = ["spam", "spam", "ham", "ham"] * 5


def words_of(clf: BayesClassifier, column: int = 0) -> tuple[list[str], np.ndarray]:
    """The vocabulary of a column and its counts, word by class."""
    statistic = next(s for s in clf.counts_.statistics if isinstance(s, Words))
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
        ({"stop_words": None}, "in a list"),
        ({"stop_words": "english"}, "in a list"),
        ({"stop_words": [1]}, "in a list"),
        ({"ngram_range": 3}, "(1, 2)"),
        ({"ngram_range": None}, "(1, 2)"),
        ({"ngram_range": (2, 1)}, "(1, 2)"),
        ({"ngram_range": (0, 1)}, "(1, 2)"),
        ({"strip_accents": "unicode"}, "True or False"),
        ({"lowercase": None}, "True or False"),
        ({"normalize": "l2"}, "True or False"),
        ({"tokenizer": 3}, "function"),
        ({"tokenizer": str.split, "analyzer": "char"}, "leave out analyzer"),
        ({"kind": "poisson"}, "choose one of"),
        ({"analyzer": "line"}, "choose one of"),
        ({"amounts": "tf"}, "choose one of"),
        ({"alpha": -1.0}, "at least 0"),
        ({"linear": 1.5}, "between 0 and 1"),
        ({"shortest": 0}, "at least 1"),
        ({"most_words": 3}, "at least 16"),
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
