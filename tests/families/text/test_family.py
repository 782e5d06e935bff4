"""Text through everything a classifier can do."""

import pickle
import re
import subprocess
import sys
import warnings
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from deciban import BayesClassifier, Text, load, merge
from deciban.errors import DataError, DecibanError, ForgetError, UsageError
from tests.support.corpora import FAMILIES, LABELS, MAIL_LABELS, MAILS, TABLE, rows_of, words_of


def test_a_pickled_model_knows_its_words_in_another_process(tmp_path: Path) -> None:
    """Processes hash words by different seeds: neither the vocabulary nor the stop words may bring theirs along."""
    clf = BayesClassifier(Text(stop_words=["win"]), tune=None).fit(MAILS, MAIL_LABELS)
    expected = clf.predict_proba(MAILS[:4])
    (tmp_path / "model").write_bytes(pickle.dumps(clf))
    code = (
        "import pickle, sys; clf = pickle.load(open(sys.argv[1], 'rb'));"
        f"print(clf.predict_proba({MAILS[:4]!r}).tolist(), clf.families.tokens.words('win money'))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "model")], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == f"{expected.tolist()} ['money']"


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
        assert "decision: b" in str(clf.explain(["ab x"], by="block"))
        assert clf.top_words("a") == []
        if family.kind in ("multinomial", "bernoulli"):
            assert len(clf.sample(3, 0, length=4).X) == 3


EVERY_FAMILY = pytest.mark.parametrize("family", FAMILIES, ids=str)
TUNED_OR_NOT = pytest.mark.parametrize("tune", ["auto", None])


@cache
def fitted(family: Text, tune: Any) -> BayesClassifier:
    """A classifier of texts, numbers and categories; tests do not change it."""
    return BayesClassifier({"text": family}, tune=tune).fit(TABLE, LABELS)


@EVERY_FAMILY
@TUNED_OR_NOT
def test_texts_beside_numbers_and_categories_in_any_table(family: Text, tune: Any) -> None:
    clf = fitted(family, tune)
    posterior = clf.predict_proba(TABLE)
    assert_allclose(posterior.sum(axis=1), 1.0)
    frames = (pd.DataFrame(TABLE), pl.DataFrame(TABLE), pa.table(TABLE), pl.DataFrame(TABLE).lazy().collect())
    for other in (*frames, [dict(zip(TABLE, row, strict=True)) for row in zip(*TABLE.values(), strict=True)]):
        assert_array_equal(clf.predict_proba(other), posterior)
    without = clf.predict({"n": TABLE["n"], "c": TABLE["c"]})
    assert_array_equal(clf.predict({**TABLE, "text": [None] * len(LABELS)}), without)
    with pytest.raises(DataError, match=r"column 'text', row 0: found 1\.0"):
        clf.predict({**TABLE, "text": [1.0] * len(LABELS)})


@EVERY_FAMILY
@TUNED_OR_NOT
def test_the_parameters_of_texts_are_counted(family: Text, tune: Any) -> None:
    """Shares of words sum to 1 in each class, the presence of each word is free, and lifts compare the classes."""
    others = BayesClassifier(tune=None).fit({"n": TABLE["n"], "c": TABLE["c"]}, LABELS)
    clf, plain = fitted(family, tune), fitted(family, None)
    words = len(plain.estimates()["text"].values)
    expected = {"bernoulli": 3 * words, "lift": 2 * words}.get(family.kind, 3 * (words - 1))
    assert clf.parameter_count().naive == others.parameter_count().naive + expected
    assert words > 15


@EVERY_FAMILY
@TUNED_OR_NOT
def test_what_a_classifier_tells_of_texts(family: Text, tune: Any) -> None:
    clf = fitted(family, tune)
    left_out = clf.leave_one_out()
    assert left_out.posterior.shape == (len(LABELS), 3)
    assert f"accuracy                  {left_out.accuracy:.4f}" in re.sub(r"\d\.\d+ +(?=\d)", "", str(clf.diagnose()))
    assert "text" in clf.select_columns()
    assert len(clf.select_columns(2)) == 2
    if tune is None:
        rows = rows_of(TABLE, slice(0, 20))
        off = clf.quadratic_form().scores(rows) - clf.log_joint(rows)
        assert_allclose(off, np.broadcast_to(off[:, :1], off.shape), atol=1e-9)
        with pytest.raises(UsageError, match="n: Gaussian"):
            clf.linear_form()
    rows = rows_of(TABLE, slice(0, 3))
    decisions = re.findall(r"^decision: (\d)$", str(clf.explain(rows, by="block")), re.MULTILINE)
    assert decisions == [str(label) for label in clf.predict(rows)]


@EVERY_FAMILY
@TUNED_OR_NOT
def test_what_is_decided_and_expected_of_texts(family: Text, tune: Any) -> None:
    clf = fitted(family, tune)
    posterior = clf.predict_proba(TABLE)
    low, high = clf.predict_interval(TABLE)
    assert ((low <= posterior + 1e-12) & (posterior <= high + 1e-12)).all()
    assert not np.isnan(clf.log_density(TABLE)).any()
    assert clf.decide(TABLE, reject=0.1).decision.shape == LABELS.shape
    with warnings.catch_warnings(action="ignore"):  # of so few rows some are not calibrated
        prior = re.findall(r"^\d: (\S+)", str(clf.estimate_prior(TABLE)), re.MULTILINE)
    assert sum(map(float, prior)) == pytest.approx(1.0, abs=1e-3)
    if family.kind in ("multinomial", "bernoulli"):
        assert 0.0 <= clf.bayes_error(n_samples=200).risk <= 1.0
        drawn, labels = clf.sample(50, 0)
        assert list(drawn) == ["text", "n", "c"]
        assert clf.predict(drawn).shape == labels.shape


@EVERY_FAMILY
@TUNED_OR_NOT
def test_texts_are_kept_and_learned_again(family: Text, tune: Any, tmp_path: Path) -> None:
    clf = pickle.loads(pickle.dumps(fitted(family, tune)))
    posterior = fitted(family, tune).predict_proba(TABLE)
    clf.save(tmp_path / "model.dcb")
    for again in (clf, load(tmp_path / "model.dcb"), clone(clf).fit(TABLE, LABELS)):
        assert_array_equal(again.predict_proba(TABLE), posterior)
    assert clf.retune(TABLE, LABELS).predict(TABLE).shape == LABELS.shape


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
    merged = merge([tmp_path / "one.dcb", tmp_path / "other.dcb"])
    both = BayesClassifier({"text": family}, tune=None).fit(whole, LABELS)
    grown = pickle.loads(pickle.dumps(one)).partial_fit(second, LABELS[45:])
    if family.max_features is None:
        for clf in (one + other, merged, grown):
            assert_allclose(clf.predict_proba(TABLE), both.predict_proba(TABLE), rtol=1e-9)
        assert_allclose((both - other).predict_proba(TABLE), before, rtol=1e-9)
        assert_allclose(grown.forget(second, LABELS[45:]).predict_proba(TABLE), before, rtol=1e-9)
        assert_array_equal(words_of(grown)[0], words_of(one)[0])
    else:
        assert_allclose(grown.forget(second, LABELS[45:]).counts_.class_weight, one.counts_.class_weight)
    halved = pickle.loads(pickle.dumps(both)).decay(0.5)
    assert_allclose(words_of(halved)[1], 0.5 * words_of(both)[1])
    never = ["words that were never learned"] * 10 + [" ".join(["never"] * 2000)]
    with pytest.raises(ForgetError, match="pass only rows the model was trained on"):
        both.forget({name: never if name == "text" else [None] * 11 for name in TABLE}, LABELS[:11])
    with pytest.raises(DecibanError, match="fit both with the same families"):
        one + BayesClassifier({"text": Text(lowercase=False, max_features=99)}, tune=None).fit(first, LABELS[:45])


def test_columns_of_text_are_inferred() -> None:
    table = {
        "mail": [f"{mail} number {k}" for k, mail in enumerate(MAILS)],
        "kind": ["new", "old"] * 10,
        "id": range(20),
    }
    schema = str(BayesClassifier(tune=None).fit(table, MAIL_LABELS).schema_)
    assert re.search(r"mail +Text\(\) +text, \d words on average", schema)
    assert re.search(r"kind +Categorical\(\)", schema)
    assert "Text()" in str(BayesClassifier(tune=None).fit(table["mail"], MAIL_LABELS).schema_)
    assert "Text" not in str(BayesClassifier(tune=None).fit(["red", "green"] * 10, MAIL_LABELS).schema_)
    repeated = BayesClassifier(tune=None).fit(["a long name of a category", "and still another name"] * 10, MAIL_LABELS)
    assert "Text" not in str(repeated.schema_)
    for empty in ([None] * 20, [""] * 19 + [None]):
        BayesClassifier().fit({"a": empty, "b": table["mail"]}, MAIL_LABELS).predict({"a": empty, "b": table["mail"]})


def test_texts_without_spaces_are_heard_by_their_characters() -> None:
    said = ["我今天很高兴见到你们大家", "这家餐厅的菜非常难吃啊", "今日はとても良い天気ですね", "ผมชอบอาหารไทยมากๆครับ"]
    clf = BayesClassifier(tune=None).fit({"said": said, "code": ["北京", "上海", "北京", "上海"]}, ["a", "b", "a", "b"])
    families = {column: family for column, family, _ in clf.schema_.descriptions()}
    assert families["said"] == "Text(analyzer='char', ngram_range=(1, 2))"
    assert families["code"] == "Categorical()"
    assert clf.predict([{"said": "很高兴见到你"}]).tolist() == ["a"]


def test_models_of_the_same_texts_have_the_same_name() -> None:
    """Whatever the order of texts; and the name of a large vocabulary is found without looking at bytes one by one."""
    clf = BayesClassifier(Text(), tune=None).fit(MAILS, MAIL_LABELS)
    assert clf.shards_ == BayesClassifier(Text(), tune=None).fit(MAILS[::-1], MAIL_LABELS[::-1]).shards_
    assert (
        clf.shards_
        != BayesClassifier(Text(), tune=None).fit([*MAILS[:-1], "see you at lunchtime"], MAIL_LABELS).shards_
    )
    assert clf.shards_ != BayesClassifier(Text(), tune=None).fit([*MAILS[:-1], "seeyou at lunch"], MAIL_LABELS).shards_
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


def test_weights_that_are_next_to_nothing() -> None:
    """Half of the least number is 0: such words count nothing, however many there are, and no others."""
    texts, labels = ["aa bb cc dd", "ee"] * 2_000, ["x", "y"] * 2_000
    clf = BayesClassifier(Text(normalize=True), tune=None).fit(texts, labels, sample_weight=np.full(4_000, 5e-324))
    assert words_of(clf)[0] == ["ee"]
