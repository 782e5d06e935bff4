"""Texts however they are stored, and cells that are none."""

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

from deciban import BayesClassifier, Categorical, Text, load
from deciban.errors import DataError, UsageError
from tests.support.corpora import (
    INVALID,
    MAIL_LABELS,
    MAILS,
    vocabulary,
    words_of,
)

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
    clf = BayesClassifier(Text(min_word_length=1), tune=None).fit(texts, ["spam", "ham"] * 10)
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
    expected = BayesClassifier(Text(), tune=None).fit({"x": STRINGS}, MAIL_LABELS)
    clf = BayesClassifier(Text(), tune=None).fit(texts, MAIL_LABELS)
    assert vocabulary(clf) == vocabulary(expected)
    assert_array_equal(words_of(clf)[1], words_of(expected)[1])
    assert_array_equal(clf.predict_proba(texts), expected.predict_proba({"x": STRINGS}))
    other = texts.to_frame("x") if isinstance(texts, pd.Series) else {"x": texts}
    if not isinstance(texts, pl.Series | pd.Series):  # a name must be that of the column
        assert_array_equal(clf.predict_proba(other), expected.predict_proba({"x": STRINGS}))


def test_numpy_arrays_of_strings() -> None:
    expected = BayesClassifier(Text(), tune=None).fit(MAILS, MAIL_LABELS).predict_proba(MAILS)
    for texts in (np.array(MAILS), np.array(MAILS, dtype=np.dtypes.StringDType()), np.array(MAILS).reshape(-1, 1)):
        assert_array_equal(BayesClassifier(Text(), tune=None).fit(texts, MAIL_LABELS).predict_proba(texts), expected)


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        ([[1.0]] * 20, "column 'x0': found numbers, expected text"),
        ({"a": [1] * 20}, "column 'a', row 0: found 1"),
        ({"a": [True] * 20}, "found True"),
        ({"a": [b"bytes"] * 20}, "decode the bytes"),
        ({"a": [["x"]] * 20}, "expected text"),
        ([*MAILS[:-1], 3], "row 19: found 3 (int), expected text"),
        ([*MAILS[:-1], b"x"], "row 19: found b'x' (bytes), expected text"),
        (sparse.csr_array(np.eye(20)), "found numbers, expected text"),
    ],
)
def test_cells_that_are_no_texts(texts: Any, says: str) -> None:
    for tune in ("auto", None):
        with pytest.raises(DataError, match=re.escape(says)) as caught:
            BayesClassifier(Text(), tune=tune).fit(texts, MAIL_LABELS)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("family", [Text(), Text("bernoulli"), Text(analyzer="char_wb", ngram_range=(1, 2))])
def test_bytes_that_are_no_utf8_go_all_the_way(family: Text, tmp_path: Path) -> None:
    texts, labels = pa.chunked_array([INVALID] * 4).combine_chunks(), ["spam", "ham", "spam", "ham"] * 4
    table = pa.table({"x": texts, "y": texts})
    BayesClassifier(tune=None).fit(table, labels).predict(table)  # by inference
    clf = BayesClassifier({"x": family, "y": Text()}).fit(table, labels)
    assert "win" in str(clf.explain(table[:2]))
    accuracy = f"{clf.leave_one_out().accuracy:.4f}"
    assert re.search(rf"accuracy .*{accuracy}$", str(clf.diagnose()), re.MULTILINE)
    clf.save(tmp_path / "model.dcb")
    assert_array_equal(load(tmp_path / "model.dcb").predict_proba(table), clf.predict_proba(table))
    clf.forget(table[:4], labels[:4])


def test_categories_that_are_no_utf8_are_not_saved(tmp_path: Path) -> None:
    clf = BayesClassifier(Categorical(), tune=None).fit(pa.table({"x": INVALID}), ["a", "b", "a", "b"])
    with pytest.raises(UsageError, match="not UTF-8"):
        clf.save(tmp_path / "model.dcb")


@pytest.mark.parametrize(
    "text", ["x" * 100_000_000, "lorem ipsum dolor " * 2_000_000, "日本語" * 3_000_000, "日本語" * 1_000_000 + "Σ"],
    ids=["one word", "many words", "no white space", "sigma"],
)  # fmt: skip
def test_a_huge_text(text: str) -> None:
    clf = BayesClassifier(Text(), tune=None).fit([text, "other words"], [0, 1])
    assert clf.predict([text, "words"]).tolist() == [0, 1]
    assert len(vocabulary(clf)) == (5 if " " in text else 3)


def test_a_million_empty_texts() -> None:
    clf = BayesClassifier(Text(), tune=None).fit([*[""] * 1_000_000, "ab", "cd"], [*[0, 1] * 500_000, 0, 1])
    assert clf.predict(["ab", "cd"]).tolist() == [0, 1]


@pytest.mark.parametrize(
    "texts", [MAILS, np.array(MAILS), pd.Series(MAILS), MAILS[::-1]], ids=["list", "numpy", "pandas", "x"]
)
def test_lists_of_strings_in_cross_validation(texts: Any) -> None:
    labels = MAIL_LABELS if texts is not MAILS[::-1] else MAIL_LABELS[::-1]
    found = cross_val_score(BayesClassifier(Text(), tune=None), texts, labels, cv=4, error_score="raise")
    peer = cross_val_score(make_pipeline(CountVectorizer(), MultinomialNB()), texts, labels, cv=4)
    assert_array_equal(found, peer)
    chosen = GridSearchCV(
        BayesClassifier(tune=None), {"families": [Text(), Text("bernoulli")]}, cv=2, error_score="raise"
    )
    assert chosen.fit(texts, labels).best_params_["families"] == Text()
