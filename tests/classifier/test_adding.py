"""Classifiers that learned apart are added: which fit together, and what their sum is."""

import copy

import numpy as np
import pyarrow as pa
import pytest

from deciban import BayesClassifier, Bernoulli, Categorical, JointGaussian, JointTable, Multinomial, SchemaError
from tests import textbook
from tests.support.tables import MIXED

RNG = np.random.default_rng(11)
X = RNG.normal(size=(60, 2))
Y = np.arange(60) % 2


@pytest.mark.parametrize("family", [JointGaussian(), JointTable()], ids=str)
def test_shards_whose_columns_come_in_another_order_add(family) -> None:
    table = pa.table({"a": np.ceil(X[:, 0]), "b": np.round(X[:, 1], 1)})
    spec = {("a", "b"): family}
    one = textbook(spec).fit(table.slice(0, 30), Y[:30])
    other = textbook(spec).fit(table.slice(30).select(["b", "a"]), Y[30:])
    whole = textbook(spec).fit(table, Y)
    for both in (one + other, other + one):
        np.testing.assert_allclose(both.predict_proba(table), whole.predict_proba(table), rtol=1e-10)


def test_blocks_of_counts_that_disagree_are_refused() -> None:
    table = pa.table({name: RNG.poisson(2.0, 60).astype(float) for name in "abcd"})

    def fitted(*blocks: str) -> BayesClassifier:
        return textbook({tuple(block): Multinomial() for block in blocks}).fit(table.select(list("".join(blocks))), Y)

    for one, other in ((("ab",), ("a", "b")), (("a", "b"), ("ab",)), (("ab", "cd"), ("ac", "bd"))):
        with pytest.raises(SchemaError, match="one block in one"):
            fitted(*one) + fitted(*other)
    apart = textbook({("a", "b"): Multinomial()}).fit(table.select(["a", "b"]), Y)
    apart.set_params(families={("a", "b"): Multinomial(), ("c", "d"): Multinomial()}).partial_fit(table, Y)
    assert apart.model_.schema.block_names == ("a+b", "c+d")


def test_models_that_count_alike_add_whatever_their_smoothing() -> None:
    words = [["x"], ["y"], ["x"], ["z"]]
    one, other = (textbook(Categorical(alpha=alpha)).fit(words, [0, 1, 1, 0]) for alpha in (1.0, 0.5))
    assert (one + other).counts_.rows == 8
    assert str((other + one).schema_.groups[0].family) == "Categorical(alpha=0.5)"
    mixed = textbook({"a": Categorical(alpha=0.1), "b": Categorical()}).fit({"a": ["x", "y"], "b": ["p", "q"]}, [0, 1])
    plain = textbook().fit({"a": ["x", "x"], "b": ["p", "r"]}, [0, 1])
    assert [len(levels) for s in (plain + mixed).counts_.statistics for levels in s.levels] == [2, 3]
    with pytest.raises(SchemaError, match="Bernoulli"):
        textbook(Bernoulli(threshold=1)).fit(X, Y) + textbook(Bernoulli(threshold=2)).fit(X, Y)


def test_sums_of_classifiers() -> None:
    parts = [textbook().fit(X[k::3], Y[k::3]) for k in range(3)]
    np.testing.assert_allclose(sum(parts).predict_proba(X), textbook().fit(X, Y).predict_proba(X), rtol=1e-10)
    assert sum(part.counts_ for part in parts).rows == 60
    np.testing.assert_array_equal((0.5 * parts[0].counts_).class_weight, parts[0].counts_.class_weight / 2)
    with pytest.raises(TypeError):
        parts[0] + 1


def test_open_vocabularies_add_whatever_their_smoothing_and_forget_again() -> None:
    one, other = (
        pa.table({"a": [1.0, 2.0, 3.0], "b": [4.0, 1.0, 0.0]}),
        pa.table({"b": [1.0, 0.0, 5.0], "c": [2.0, 2.0, 1.0]}),
    )
    y = [0, 1, 0]
    a, b = textbook(Multinomial()).fit(one, y), textbook(Multinomial(alpha=0.5)).fit(other, y)
    both = a + b
    assert both.schema_.block_names == ("a+b+c",)
    at_once = textbook(Multinomial()).fit(one, y).partial_fit(other, y)
    query = {"a": [1.0], "b": [1.0], "c": [3.0]}
    np.testing.assert_allclose(both.predict_proba(query), at_once.predict_proba(query), rtol=1e-12)
    np.testing.assert_allclose((both - b).predict_proba(query), a.predict_proba(query), rtol=1e-12)


def test_given_levels_belong_to_what_is_counted() -> None:
    given = textbook({"c": Categorical(levels=("x", "y"))}).fit({"c": ["x", "y"]}, [0, 1])
    with pytest.raises(SchemaError, match="column 'c'"):
        given + textbook({"c": Categorical()}).fit({"c": ["z", "y"]}, [0, 1])


def test_adding_and_forgetting_models() -> None:
    a, b = textbook().fit(MIXED.slice(0, 70), "label"), textbook().fit(MIXED.slice(70), "label")
    whole = textbook().fit(MIXED, "label")
    np.testing.assert_allclose((a + b).predict_proba(MIXED), whole.predict_proba(MIXED), rtol=1e-11)
    np.testing.assert_allclose((whole - b).predict_proba(MIXED), a.predict_proba(MIXED), rtol=1e-9)
    forgotten = copy.deepcopy(whole).forget(MIXED.slice(70), "label")
    np.testing.assert_allclose(forgotten.predict_proba(MIXED), a.predict_proba(MIXED), rtol=1e-9)


def test_shards_with_different_columns_add() -> None:
    a = textbook().fit([{"x": 1.0, "y": "p"}, {"x": 3.0, "y": "q"}, {"x": 2.0, "y": "q"}], [0, 1, 0])
    b = textbook().fit([{"z": 1.5, "x": 2.5}, {"z": 2.5, "x": 0.5}, {"z": 0.5, "x": 0.0}], [0, 1, 1])
    both = textbook().fit(
        [{"x": 1.0, "y": "p"}, {"x": 3.0, "y": "q"}, {"x": 2.0, "y": "q"},
         {"z": 1.5, "x": 2.5}, {"z": 2.5, "x": 0.5}, {"z": 0.5, "x": 0.0}],
        [0, 1, 0, 0, 1, 1],
    )  # fmt: skip
    row = [{"x": 1.0, "y": "q", "z": 1.0}]
    for merged in (a + b, b + a):
        np.testing.assert_allclose(merged.predict_proba(row), both.predict_proba(row), rtol=1e-12)
