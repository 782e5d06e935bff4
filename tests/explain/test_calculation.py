"""How a calculation shows cells that are missing, constant or outside the support."""

import numpy as np
import pandas as pd

from deciban import BayesClassifier, Gamma, JointGaussian, LogNormal
from tests import textbook

RNG = np.random.default_rng(11)
X = RNG.normal(size=(60, 2))
Y = np.arange(60) % 2


def test_a_value_called_missing_is_no_missing_cell() -> None:
    clf = textbook().fit([["missing"], ["there"], ["missing"], ["there"]], [0, 1, 0, 1])
    assert "no evidence" not in str(clf.explain([["missing"]], by="block"))
    assert "no evidence" in str(clf.explain([[None]], by="block"))


def test_a_missing_cell_that_is_evidence_is_not_called_no_evidence() -> None:
    rng = np.random.default_rng(3)
    y = np.arange(400) % 2
    deck = np.where((y == 1) & (rng.random(400) < 0.8), "A", None)
    clf = BayesClassifier().fit(pd.DataFrame({"deck": deck, "age": rng.normal(y)}), y)
    assert clf.model_.partial is not None
    assert clf.model_.partial.informative.tolist() == [0]
    row = [{"deck": None, "age": 0.5}]
    assert abs(clf.explain(row).to_dict(0)["evidence"][1]["decibans"]) > 1.0
    text = str(clf.explain(row, by="block"))
    assert "no evidence" not in text
    assert "deck = missing  (only offset and correction)" in text
    assert "deck = missing  (no evidence)" in str(clf.explain([{"deck": None, "age": None}], by="block"))
    assert "deck = B  (only offset and correction)" in str(clf.explain([{"deck": "B", "age": 0.5}], by="block"))


def test_a_block_with_one_missing_cell_is_evidence() -> None:
    text = str(textbook(JointGaussian()).fit(X, Y).explain([[1.0, np.nan]], by="block"))
    assert "no evidence" not in text
    assert "N((1, missing)" in text


def test_a_cell_outside_the_support_is_called_so() -> None:
    assert "outside the support" in str(textbook(LogNormal()).fit(np.exp(X), Y).explain([[-1.0, 1.0]], by="block"))


def test_a_constant_column_is_called_so() -> None:
    assert "constant = 1" in str(textbook(Gamma()).fit(np.full((4, 1), 2.0), [0, 1] * 2).explain([[2.0]], by="block"))
