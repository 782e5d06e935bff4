"""Texts drawn from a class."""

from collections import Counter

import numpy as np
import pytest

from deciban import BayesClassifier, Multinomial, Text
from deciban.errors import DataError, UsageError
from tests.support.corpora import MAIL_LABELS, MAILS, vocabulary


@pytest.mark.parametrize("family", [Text(), Text("bernoulli"), Text(term_counts="root"), Text(alpha=0.0)])
def test_texts_drawn_from_a_class(family: Text) -> None:
    clf = BayesClassifier(family).fit([*MAILS, None], [*MAIL_LABELS, "spam"])
    drawn_rows = clf.sample(200, 3, label="ham", length=30)
    texts, labels = drawn_rows.to_dict()["x0"], drawn_rows.y
    assert set(labels.tolist()) == {"ham"}
    assert all(len(text.split()) == 30 for text in texts)
    drawn = Counter(" ".join(texts).split())
    assert set(drawn) <= set(vocabulary(clf))
    assert {word for word, _ in drawn.most_common(2)} == {"at", "lunch"}
    if family.alpha == 0.0:
        assert set(drawn) == {"lunch", "at", "noon", "see", "you"}
    assert clf.sample(3, 0, length=0).to_dict()["x0"] == ["", "", ""]
    means = [len(text.split()) for text in clf.sample(3000, 0, label="ham").to_dict()["x0"]]
    assert np.mean(means) == pytest.approx(3.5, abs=0.2)


def test_what_cannot_be_drawn_or_told() -> None:
    clf = BayesClassifier(Text(), tune=None).fit(MAILS, MAIL_LABELS)
    with pytest.raises(UsageError, match="unknown class 'eggs'"):
        clf.sample(1, label="eggs")
    with pytest.raises(UsageError, match="unknown class 'eggs'"):
        clf.top_words("eggs")
    for length in (-1, 2.5, "x"):
        with pytest.raises(UsageError, match="length"):
            clf.sample(1, length=length)
    with pytest.raises(UsageError, match="n=-1"):
        clf.top_words("ham", -1)
    for kind in ("complement", "lift"):
        scores = BayesClassifier(Text(kind), tune=None).fit(MAILS, MAIL_LABELS)  # type: ignore[arg-type]
        for call in (scores.sample, scores.bayes_error):
            with pytest.raises(DataError, match="is a score, not a distribution; use"):
                call()
    numbers = BayesClassifier(tune=None).fit(np.eye(20), MAIL_LABELS)
    with pytest.raises(UsageError, match=r"the model has no text column; fit a column as Text\(\)"):
        numbers.top_words("ham")
    with pytest.raises(UsageError, match=r"length=5: no column has the family Text"):
        numbers.sample(2, length=5)
    two = BayesClassifier(Text(), tune=None).fit({"a": MAILS, "b": MAILS}, MAIL_LABELS)
    with pytest.raises(UsageError, match="several text columns"):
        two.top_words("ham")
    with pytest.raises(UsageError, match=r"column='c': this column is not Text\(\); choose from \['"):
        two.top_words("ham", column="c")
    assert two.top_words("ham", column="b") == clf.top_words("ham")


def test_rows_of_counts_have_as_many_words_as_they_are_given() -> None:
    """Their means are those of the multinomial distribution."""
    counts = np.array([[8, 1, 1], [7, 2, 1], [1, 8, 1], [0, 9, 1]])
    clf = BayesClassifier(Multinomial(), tune=None).fit(counts, ["a", "a", "b", "b"])
    drawn, labels = clf.sample(4000, 1, length=20)
    assert set(drawn.sum(axis=1)) == {20}
    share = clf.estimates()["x0+x1+x2"]["probability"]
    for c, label in enumerate("ab"):
        np.testing.assert_allclose(drawn[labels == label].mean(axis=0) / 20, share[c], atol=0.01)
    assert clf.sample(2, 1, label="a", length=0)[0].sum() == 0
    assert clf.sample(2, 1)[0].shape == (2, 3)
