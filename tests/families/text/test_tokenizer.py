"""A tokenizer of one's own."""

import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

from deciban import BayesClassifier, Text
from deciban.errors import UsageError
from tests.support.corpora import MAIL_LABELS, MAILS, vocabulary


def test_a_tokenizer_of_ones_own_counts_what_it_finds(tmp_path: Path) -> None:
    def tokenizer(text: str) -> list[str]:
        return [text[k : k + 3] for k in range(0, len(text), 2)]

    clf = BayesClassifier(Text(tokenizer=tokenizer), tune=None)
    with pytest.warns(UserWarning, match=r"Text\(tokenizer=...\) runs in Python"):
        clf.fit(MAILS, MAIL_LABELS)
    pipeline = make_pipeline(CountVectorizer(tokenizer=tokenizer, token_pattern=None), MultinomialNB()).fit(
        MAILS, MAIL_LABELS
    )
    with pytest.warns(UserWarning, match="slower"):
        found = clf.predict_log_proba(MAILS)
    assert_allclose(found, pipeline.predict_log_proba(MAILS), rtol=1e-9, atol=1e-12)
    assert sorted(vocabulary(clf)) == pipeline[0].get_feature_names_out().tolist()
    with pytest.raises(UsageError, match="code; omit it, or pickle"):
        clf.save(tmp_path / "model.dcb")
    assert not list(tmp_path.iterdir())
    for wrong in (None, [1, 2], [b"x"], 3):
        with pytest.warns(UserWarning, match="slower"), pytest.raises(UsageError, match="return a list of str"):
            BayesClassifier(Text(tokenizer=lambda text, wrong=wrong: wrong), tune=None).fit(MAILS, MAIL_LABELS)  # type: ignore[misc]
    with pytest.warns(UserWarning, match="slower"), pytest.raises(ZeroDivisionError):
        BayesClassifier(Text(tokenizer=lambda text: 1 / 0), tune=None).fit(MAILS, MAIL_LABELS)  # type: ignore[arg-type]
    strange = Text(tokenizer=lambda text: iter(["\0ab", "", "a b", "\ud800"]))
    with pytest.warns(UserWarning, match="slower"):
        assert vocabulary(BayesClassifier(strange, tune=None).fit(MAILS, MAIL_LABELS)) == [" ab", "?", "a b"]


def test_a_tokenizer_may_find_empty_words() -> None:
    """They would come before the buckets of rare words."""
    family = Text(tokenizer=lambda text: text.split(" "), max_features=16)
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
