"""Interaction is told from redundancy, and nothing is advised to be dropped that would be missed."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_wine

from deciban import BayesClassifier, EvidenceSelector, JointTable
from tests import textbook

N = 2000


def named(bits: np.ndarray) -> np.ndarray:
    return np.where(bits == 1, "t", "f")


def parity(columns: int, noise: float = 0.0) -> tuple[pd.DataFrame, np.ndarray]:
    """Fair signs and a noise column; the class is the parity of the signs."""
    signs = np.random.default_rng(columns).integers(0, 2, (N, columns + 1))
    flipped = np.random.default_rng(5).random(N) < noise
    table = pd.DataFrame({name: named(signs[:, k]) for k, name in enumerate("ABCD"[:columns] + "N")})
    return table, named((signs[:, :columns].sum(axis=1) + flipped) % 2)


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_exclusive_or_is_an_interaction(noise: float) -> None:
    table, y = parity(2, noise)
    plain = textbook().fit(table, y)
    found = plain.diagnose()
    assert not found.redundant
    assert [one.columns for one in found.interactions] == [("A", "B")]
    assert "drop" not in str(found)
    assert "model A and B jointly, because they interact: BayesClassifier({('A', 'B'): JointTable()})" in str(found)
    blocked = eval(found.interactions[0].python).set_params(tune=None).fit(table, y)
    assert blocked.score(table, y) > 0.85
    assert set(plain.select_columns()) == {"A", "B"}
    tuned = BayesClassifier().fit(table, y)
    assert set(tuned.select_columns()) == {"A", "B"}
    assert "drop" not in str(tuned.diagnose())


@pytest.mark.parametrize("columns", [2, 3])
def test_losing_one_of_the_columns_of_a_parity_costs_all(columns: int) -> None:
    table, y = parity(columns)
    importance = BayesClassifier().fit(table, y).importance().to_frame().set_index("column")["bits"]
    assert (importance.drop("N") > 0.95).all()
    assert (importance.drop("N") < 1.2).all()
    assert abs(importance["N"]) < 0.02


def test_a_parity_of_three_is_found() -> None:
    table, y = parity(3)
    for clf in (textbook(), BayesClassifier()):
        found = clf.fit(table, y).diagnose()
        assert [one.columns for one in found.interactions] == [("A", "B", "C")]
        assert not {"A", "B", "C"} & set(found.unused)
        assert "weigh nothing" not in str(found)
        assert set(clf.select_columns()) == {"A", "B", "C"}
    assert found.saved_bits > 0.95
    chosen = EvidenceSelector().fit(table, y).get_feature_names_out()
    assert set(chosen) == {"A", "B", "C"}


def test_among_many_columns_the_corrections_name_a_parity_of_three() -> None:
    rng = np.random.default_rng(27)
    signs = rng.integers(0, 2, (4000, 3))
    wide = np.hstack([signs, rng.integers(0, 2, (4000, 15))])
    table = pd.DataFrame(np.where(wide == 1, "t", "f"), columns=[f"c{k}" for k in range(18)])
    clf = BayesClassifier().fit(table, signs.sum(axis=1) % 2)
    found = clf.diagnose()
    if found.saved_bits > 0.5:  # else tuning has not found it either
        assert ("c0", "c1", "c2") in [one.columns for one in found.interactions]
    assert not found.redundant


def test_numbers_that_interact_get_a_block_with_cuts() -> None:
    rng = np.random.default_rng(27)
    x, z = rng.uniform(-1, 1, (2, N))
    clf = textbook().fit(pd.DataFrame({"x": x, "z, w": z}), (x * z > 0).astype(int))
    found = clf.diagnose().interactions[0]
    assert isinstance(found.block, JointTable)
    assert all(len(cuts) == 5 for cuts in found.block.cuts)
    blocked = eval(found.python).fit(pd.DataFrame({"x": x, "z, w": z}), (x * z > 0).astype(int))
    assert blocked.score(pd.DataFrame({"x": x, "z, w": z}), (x * z > 0).astype(int)) > 0.9
    unnamed = textbook().fit(np.column_stack([x, z]), (x * z > 0).astype(int)).diagnose().interactions[0]
    assert unnamed.option is None
    assert unnamed.python.startswith("BayesClassifier({(0, 1): JointTable(")


def test_copies_are_redundant_and_nothing_is_lost_without_one() -> None:
    rng = np.random.default_rng(27)
    y = rng.integers(0, 2, N)
    x = named(np.where(rng.random(N) < 0.8, y, 1 - y))
    number = rng.normal(size=N) + y
    table = pd.DataFrame({"A": x, "B": np.where(x == "t", "yes", "no"), "x": number, "cube": -(number**3)})
    found = textbook().fit(table, y).diagnose()
    assert {one.droppable for one in found.redundant} == {"B", "cube"}
    assert "drop B: A determines it" in str(found)
    plain = textbook().fit(table.drop(columns=["B", "cube"]), y).diagnose()
    assert not plain.redundant
    assert plain.before.log_loss < found.before.log_loss


def test_a_copy_whose_exceptions_tell_the_class_is_not_dropped() -> None:
    """A and B are the same but in the rare class: only together do they name it."""
    rng = np.random.default_rng(27)
    y = (rng.random(N) < 0.02).astype(int)
    a = rng.integers(0, 2, N)
    found = textbook().fit(pd.DataFrame({"A": named(a), "B": named(a ^ y)}), y).diagnose()
    assert found.dependences[0].share > 0.9
    assert not found.redundant
    assert "drop" not in str(found)


@pytest.mark.parametrize("gap", [0.0, 0.004])
def test_numbers_that_are_nearly_the_same_are_dropped_only_if_their_difference_says_nothing(gap: float) -> None:
    rng = np.random.default_rng(27)
    y = np.arange(N) % 2
    x = rng.normal(size=N) + y
    table = pd.DataFrame({"x": x, "again": x + 1e-3 * rng.normal(size=N) + gap * y})
    found = textbook().fit(table, y).diagnose()
    assert found.dependences[0].redundant == (gap == 0.0)
    assert ("drop" in str(found)) == (gap == 0.0)


def test_correlated_normal_columns_are_neither() -> None:
    rng = np.random.default_rng(27)
    y = np.arange(N) % 2
    noise = rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], N)
    alike = textbook().fit(noise + y[:, None], y).diagnose()
    assert [one.kind for one in alike.dependences] == ["dependent"]
    opposed = np.where(y == 1, -1.0, 1.0)
    turned = textbook().fit(noise * np.column_stack([np.ones(N), opposed]), y).diagnose()
    assert [one.kind for one in turned.dependences] == ["interaction"]


@pytest.mark.parametrize("load", [load_wine, load_breast_cancer])
def test_on_real_tables_dropping_what_is_advised_loses_nothing(load) -> None:
    X, y = load(return_X_y=True, as_frame=True)
    X = X.iloc[:, :12].assign(copy=X.iloc[:, 0] * 2.54)
    clf = BayesClassifier().fit(X, y)
    found = clf.diagnose()
    assert "copy" in {one.droppable for one in found.redundant}
    kept = X.drop(columns=list({one.droppable for one in found.redundant}))
    before = BayesClassifier().cross_validate(X, y, folds=5).log_loss
    after = BayesClassifier().cross_validate(kept, y, folds=5).log_loss
    assert after < before + 0.02
