"""The kinds of Text: presence and buckets, rows left out, errors of what was estimated, no smoothing."""

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose

from deciban import BayesClassifier, Text
from deciban.families.base.contract import Covariance, LeftOutRows
from tests.support.corpora import (
    LABELS,
    TABLE,
)


@pytest.mark.parametrize("alpha", [1.0, 0.01])
def test_a_bucket_of_rare_words_is_in_a_text_or_not(alpha: float) -> None:
    """A text has many words of one bucket; that the bucket is there is no more probable than 1."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 120)
    texts = [" ".join([*(f"r{k}" for k in rng.integers(0, 500, 40)), f"class{label}"]) for label in labels]
    clf = BayesClassifier(Text("bernoulli", max_features=16, alpha=alpha), tune=None).fit(texts, labels)
    evidence = clf.evidence([*texts, "class1", "never", ""]).values
    assert np.isfinite(evidence).all()
    assert (evidence < 0.0).all()
    assert clf.score(texts, labels) == 1.0
    assert clf.leave_one_out().accuracy > 0.95
    assert clf.predict(["class0", "class1", "class2"]).tolist() == [0, 1, 2]


def _open(*options: Any) -> Any:
    why = "leave-one-out hears the words of a bucket together, which were counted one by one"
    return pytest.param(*options, marks=pytest.mark.xfail(strict=True, reason=why))


@pytest.mark.parametrize(
    "family",
    [
        Text(max_features=16),
        Text("complement", max_features=16),
        Text("lift", max_features=16),
        _open(Text("bernoulli", max_features=16)),
        _open(Text(term_counts="root", normalize=True, max_features=16)),
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


@pytest.mark.parametrize("taken", [0.0, 1.0])
def test_rows_left_out_without_smoothing_are_numbers(taken: float) -> None:
    family, texts = Text("bernoulli", alpha=0.0), [pa.array(["aa bb", "aa", "bb cc", None])]
    labels = np.array([0, 0, 1, 1], dtype=np.int32)
    statistic, out = family.count(texts, labels, np.ones(4), 2), np.zeros((4, 1, 2))
    family.score_left_out(statistic, texts, LeftOutRows(labels, np.full(4, taken)), np.zeros(1, dtype=np.int64), out)
    assert not np.isnan(out).any()
    if taken == 0.0:
        plain = np.zeros((4, 1, 2))
        family.estimate(statistic).score(texts, np.ones(1), np.zeros(1, dtype=np.int64), plain)
        np.testing.assert_allclose(out, plain)


@pytest.mark.parametrize("kind", ["multinomial", "bernoulli", "complement"])
def test_a_missing_text_has_no_error(kind: Any) -> None:
    family, texts = Text(kind), [pa.array(["aa bb", "aa", "bb cc", None])]
    statistic = family.count(texts, np.array([0, 0, 1, 1], dtype=np.int32), np.ones(4), 2)
    covariance = Covariance.zeros_along(np.ones((4, 2)))
    family.add_covariance(family.estimate(statistic), statistic, texts, np.ones(1), covariance)
    assert (covariance.own[:3] > 0.0).all()
    assert (covariance.multiply(0)[3] == 0.0).all()


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
