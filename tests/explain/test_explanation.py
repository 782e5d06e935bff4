"""Explanations add up, say each thing once and as people write it, and fit the screen; programs get all of it."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import BernoulliNB

from deciban import BayesClassifier, Categorical, Gaussian, JointGaussian, JointTable, Multinomial, Text
from deciban.datasets import messages, weather
from deciban.explain import explanation
from deciban.explain.explanation import Explanation
from deciban.model.counts import Counts
from deciban.model.model import estimate
from deciban.schema.schema import GIVEN, ColumnGroup
from deciban.tables.table import Frame
from deciban.util.text_tables import text_width
from tests import textbook

RNG = np.random.default_rng(5)
Y = np.arange(60) % 2
WIDE = {f"measure_number_{j}": RNG.normal(Y, 1.0).round(3) for j in range(6)}


def test_absent_words_are_terms_too() -> None:
    """Against scikit-learn: what each word says by being there or not."""
    mails = messages()
    texts, labels = mails["text"].to_pylist(), mails["label"].to_pylist()
    clf = textbook(Text(kind="bernoulli")).fit(texts, labels)
    words = CountVectorizer(token_pattern=r"\w\w+")
    oracle = BernoulliNB().fit(words.fit_transform(texts), labels)
    new = "Claim your free lunch today, call me"
    steps = clf.explain([new])
    found, present = steps.to_dict(0), words.transform([new]).toarray()[0] > 0
    best, other = (clf.classes_.tolist().index(found[name]) for name in ("predicted", "against"))
    one = oracle.feature_log_prob_
    said = 10 / np.log(10) * np.where(present, one, np.log1p(-np.exp(one)))
    expected = dict(zip(words.get_feature_names_out(), said[best] - said[other], strict=True))
    terms = dict(found["words"]["x0"])
    assert math.fsum(terms.values()) == pytest.approx(math.fsum(expected.values()), abs=1e-9)
    assert math.fsum(terms.values()) == pytest.approx(found["evidence"][1]["decibans"], abs=1e-9)
    for name, value in terms.items():
        if not name.endswith("absent words)"):
            assert value == pytest.approx(expected[name.removeprefix("(no ").removesuffix(")")], abs=1e-9)
    others = len(expected) - len(terms) + 1
    assert list(terms)[-1] == f"({others} other absent words)"
    spoken = steps.words(0)[0]
    assert {word.word for word in spoken.words} == {
        name for name, there in zip(expected, present, strict=True) if there
    }
    assert f"{others} other absent words {spoken.more_absent_decibans:+.1f}" in steps.summary(0)
    assert f"{spoken.absent[0].word} {spoken.absent[0].decibans:+.1f}" in steps.summary(0)
    nothing = clf.explain(["zzz"])
    assert math.fsum(dict(nothing.to_dict(0)["words"]["x0"]).values()) == pytest.approx(nothing.words(0)[0].decibans)


def test_the_prior_is_always_shown_and_one_column_is_not_counted_as_another() -> None:
    even = {"a": ["x", "x", "y", "y"] * 5, "b": ["p", "p", "q", "q"] * 5, "c": ["s"] * 20}
    text = (
        textbook().fit(even, ["one", "one", "two", "two"] * 5).explain({"a": ["x"], "b": [None], "c": ["s"]}).summary(0)
    )
    assert "prior      +0.00\n" in text
    assert "2 others   +0.00\n" in text
    text = (
        textbook().fit(even, ["one", "one", "two", "two"] * 5).explain({"a": ["x"], "b": ["p"], "c": ["s"]}).summary(0)
    )
    assert "c = s   +0.00\n" in text
    assert "other" not in text


def test_a_column_that_speaks_twice_is_told_by_its_family() -> None:
    """As tuning may have it: joint blocks of the same columns, by different families and by one."""
    table = pa.table({"a": RNG.normal(Y, 1.0), "b": RNG.normal(Y, 1.0)})
    base = textbook(JointGaussian()).fit(table, Y)
    schema = base.counts_.schema
    part = schema.groups[0]
    more = (part, ColumnGroup(JointTable(cuts=((0.0,), (0.0,))), (0, 1), (GIVEN, GIVEN), auxiliary=True))
    wide = replace(schema, groups=(*more, replace(more[1], family=JointTable(alpha=0.5, cuts=((0.0,), (0.0,))))))
    counts = Counts.empty(wide, np.array([0, 1]))
    cells = [p.family.read(Frame(table), p.columns) for p in wide.groups]
    statistics = tuple(
        p.family.count(c, Y.astype(np.int32), np.ones(60), 2) for p, c in zip(wide.groups, cells, strict=True)
    )
    counts = replace(counts, statistics=statistics, class_weight=np.array([30.0, 30.0]))
    steps = Explanation.from_model(estimate(counts, np.log([0.5, 0.5])), Frame(table.slice(0, 1)), by="block")
    labels = [term.label for term in steps.terms(0)]
    assert len(set(labels)) == 4
    assert sum(" as JointGaussian()" in label for label in labels) == 1


def test_values_are_shown_as_people_write_them() -> None:
    table = {"price": RNG.normal(1242486 + 1000 * Y, 300.0).round(), "share": RNG.normal(Y, 0.3)}
    clf = textbook().fit(table, Y)
    new = {"price": [1242486.0], "share": [0.1 + 0.2]}
    text = str(clf.explain(new, by="block"))
    assert "price = 1242486 " in text
    assert "N(1242486; mean 124" in text
    assert "share = 0.3 " in text
    assert "e+06" not in text
    narrow = textbook().fit(pa.table({"x": pa.array(RNG.normal(Y), pa.float32())}), Y)
    assert "x = 0.1 " in str(narrow.explain(pa.table({"x": pa.array([0.1], pa.float32())})))
    many = textbook(Categorical()).fit({"a": ["u", "v"]}, [0, 1], sample_weight=[1234567.0, 7654321.0])
    assert "(1234567 + 1)/(1234567 + 1·2)" in str(many.explain({"a": ["u"]}, by="block"))


@pytest.mark.parametrize("width", [70, 80, 100, 400])
def test_the_calculation_fits_the_screen(width: int) -> None:
    columns = {tuple(WIDE)[:4]: JointGaussian(), **{name: Gaussian() for name in tuple(WIDE)[4:]}}
    clf = textbook(columns).fit(WIDE, np.array(["benign_finding", "malignant_finding"])[Y])
    steps = clf.explain({name: cells[:1] for name, cells in WIDE.items()})
    text = steps.calculation(0, width)
    assert max(map(text_width, text.splitlines())) <= width
    last = tuple(WIDE)[5]
    mean = np.mean([cell for cell, label in zip(WIDE[last], Y, strict=True) if label == 0])
    assert f"mean {mean:.6g}" in text  # nothing of a single column is lost
    assert ("    benign_finding: N(" in text) == (width < 400)
    assert max(map(text_width, steps.summary(0, width).splitlines())) <= width


def test_of_many_columns_those_that_say_most_are_shown() -> None:
    cells = RNG.normal(Y[:, None], 1.0, (60, 90))
    steps = textbook(Gaussian()).fit(cells, Y).explain(cells[:1])
    found = steps.to_dict(0)
    assert len(found["evidence"]) == 91
    assert sum(term["decibans"] for term in found["evidence"]) == pytest.approx(found["sum"])
    lines = steps.summary(0).splitlines()[2:]
    assert any(line.startswith("prior") for line in lines)
    assert lines[-2].startswith("50 others ") or lines[-2].startswith("51 others ")
    shown = sum(float(line.split()[-1]) for line in lines[:-1])
    assert shown == pytest.approx(float(lines[-1].split()[-1]), abs=0.3)  # rounded one by one
    counts = np.zeros((60, 40))
    counts[np.arange(60), np.arange(60) % 40] = 2.0
    clf = textbook(Multinomial()).fit(sparse.csr_array(counts), Y)
    words = clf.explain(sparse.csr_array(counts[:1]), by="block").to_dict(0)
    block = next(term for term in words["evidence"] if term["columns"])
    assert (block["columns"], block["values"]) == (["x0"], [2.0])
    told = clf.explain(sparse.csr_array(counts[:1])).to_dict(0)["evidence"]
    assert {term["column"]: term["value"] for term in told} == {None: None, "x0": 2.0}


def test_the_lecture_stays_a_table() -> None:
    text = str(textbook(alpha=0).fit(weather(), "play").explain([{"outlook": "sunny", "wind": "strong"}], by="block"))
    assert "outlook = sunny                       3/5 = 0.6  2/9 = 0.2222\n" in text
    assert "temperature = missing  (no evidence)  1          1\n" in text


def test_a_row_is_read_and_explained_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Terms, words and cells are found once, however often they are asked for."""
    asked: list[str] = []
    for name in ("make_column_terms", "tokenize_texts", "read_row_values"):
        original = getattr(explanation, name)

        def noted(*given: Any, name: str = name, original: Any = original) -> Any:
            asked.append(name)
            return original(*given)

        monkeypatch.setattr(explanation, name, noted)
    mails = messages()
    found = textbook().fit(mails.select(["text"]), mails["label"]).explain(mails.select(["text"]).slice(0, 1))
    assert str(found) == found.summary(0)
    assert found.words(0) == found.words(0)
    assert sorted(asked) == ["make_column_terms", "read_row_values", "tokenize_texts"]


def test_the_text_of_a_wide_row_shows_some_blocks_and_a_calculation_all() -> None:
    draw = np.random.default_rng(0)
    clf = BayesClassifier(tune=None).fit(draw.normal(size=(40, 300)), draw.integers(0, 2, 40))
    found = clf.explain(draw.normal(size=(1, 300)), by="block")
    assert repr(found) == str(found)
    assert "(260 blocks not shown: calculation(row) shows them)" in str(found)
    assert "260 others" in str(found)
    assert str(found).count("\n") < 200 < 900 < found.calculation(0).count("\n")
    assert found._repr_html_().count("\n") < 200


def test_control_characters_of_names_and_cells_are_escaped_in_text() -> None:
    name, cells = "a\n\x1b[31mred", ["x\n\x1b[2J", "y\u202e"] * 10
    clf = BayesClassifier(tune=None).fit({name: cells, "b": list("pq") * 10}, ["long class name " * 10, "k"] * 10)
    row = {name: cells[:1], "b": ["p"]}
    shown = [clf.explain(row), clf.explain(row, by="block"), clf.schema_, clf.estimates(), clf.evidence(row)]
    for result in shown:
        text = repr(result)
        assert all(line.isprintable() for line in text.splitlines())
        assert "a\\n\\x1b[31mred" in "".join(text.split())
    assert max(map(len, str(shown[0]).splitlines())) <= 100


def test_one_hidden_class_is_counted_in_the_singular() -> None:
    clf = BayesClassifier(tune=None).fit([[float(k)] for k in range(10)], list("abcde") * 2)
    assert "\n(1 less probable class not shown)\n" in str(clf.explain([[3.0]], by="block"))
