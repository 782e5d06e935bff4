"""Model files of texts that somebody has tampered with: they are refused, or work."""

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deciban import BayesClassifier, ModelFileError, Text, load
from deciban.statistics import Vocabulary
from deciban.store.checks import _check_words
from tests.store.crafted import MUTANTS, ignoring_overflow, predicts
from tests.support.corpora import MAILS, many_words
from tests.support.model_files import changed, content, nodes, put_together, taken_apart, written


def model(most: int | None = 16, **options: Any) -> tuple[BayesClassifier, list[str]]:
    texts, labels = many_words(np.random.default_rng(4), 60, 200)
    family = Text(max_features=most, stop_words=("often0", "über"), **options)
    return BayesClassifier(family).fit(texts, labels), [*texts[:5], *MAILS[:2], "", "über often0 common"]


@ignoring_overflow
@pytest.mark.parametrize("options", [{}, {"kind": "bernoulli"}], ids=str)
def test_any_node_of_a_model_of_texts_may_be_anything(options: dict[str, Any], tmp_path: Path) -> None:
    clf, texts = model(**options)
    header, arrays = taken_apart(content(clf))
    chance = random.Random(5)
    found: dict[str, int] = {}
    for at in nodes(header):
        for value in chance.sample([*MUTANTS, "word", [1, 2], ["a", "a"], 10**6], 2):
            try:
                became = predicts(put_together(changed(header, at, value), arrays), texts, tmp_path)
            except Exception as problem:
                raise AssertionError(f"{'.'.join(map(str, at))} = {str(value)[:20]}: {problem!r}") from problem
            found[became] = found.get(became, 0) + 1
    assert found["refused"] > 120
    assert "nan" not in found


@ignoring_overflow
@pytest.mark.parametrize("most", [16, None])
def test_any_byte_of_the_words_may_be_another(most: int | None, tmp_path: Path) -> None:
    """Words that are no UTF-8, out of order, twice there, without length, or buckets that are none."""
    clf, texts = model(most)
    fitted = clf.fitted_
    assert fitted.tuning is not None
    words = replace(fitted, tuning=replace(fitted.tuning, conformity=None))  # most of whose bytes may be anything
    header, arrays = taken_apart(content(BayesClassifier.from_fitted(words)))
    chance = random.Random(6)
    found: Counter[str] = Counter()
    for _ in range(150):
        data = bytearray(arrays)
        for _ in range(chance.randrange(1, 3)):
            data[chance.randrange(len(data))] = chance.choice([0, 1, 0x30, 0x61, 0x80, 0xC3, 0xFF])
        try:
            found[predicts(put_together(header, bytes(data)), texts, tmp_path)] += 1
        except Exception as problem:
            raise AssertionError(repr(problem)) from problem
    assert found["refused"] > 60
    assert found["loaded"] > 30
    assert found["nan"] == 0


def test_buckets_that_are_none(tmp_path: Path) -> None:
    clf, _ = model()
    header, arrays = taken_apart(content(clf))
    names = sorted(word for word in clf.counts_.statistics[0].vocabularies[0].array.to_pylist() if word[0] == "\0")
    assert len(names) > 3
    last = names[-1].encode()
    assert arrays.count(last) >= 1
    for strange in (b"\0ffffff", b"\0zzzzzz", b"\x00000 01", b"\0\xff\xff\xff\xff\xff\xff"):
        with pytest.raises(ModelFileError):
            load(written(tmp_path, put_together(header, arrays.replace(last, strange))))


def test_words_whose_beginnings_overflow_are_refused() -> None:
    """Their differences wrap around to positive numbers."""
    starts = np.array([0, 2**63 - 1, -(2**63), -1, 5])
    with pytest.raises(ValueError, match="negative length"):
        _check_words(Vocabulary(np.zeros(5, dtype=np.uint8), starts), 0)
