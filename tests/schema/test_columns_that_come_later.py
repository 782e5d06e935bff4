"""The schema of columns that are declared, rare, empty or many."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from deciban import Binned, DecibanError, Gaussian, JointGaussian
from tests import textbook

RNG = np.random.default_rng(11)
X = RNG.normal(size=(60, 2))


def test_a_rare_value_does_not_defeat_the_inference() -> None:
    codes = RNG.integers(0, 2, (200_000, 1))
    codes[1] = 2
    clf = textbook().fit(codes, np.arange(200_000) % 2)
    assert clf.counts_.statistics[0].levels[0].to_pylist() == [0, 1, 2]


def test_columns_may_be_declared_before_they_come() -> None:
    spec = {"a": Gaussian(), "later": Binned()}
    clf = textbook(spec).partial_fit([{"a": 1.0}, {"a": 2.0}], [0, 1])
    clf.partial_fit([{"a": 1.0, "later": 3.0}, {"a": 2.0, "later": 4.0}], [0, 1])
    assert [str(part.family) for part in clf.schema_.groups] == ["Gaussian()", "Binned()"]
    with pytest.raises(DecibanError, match="'later'"):
        textbook(spec).fit([{"a": 1.0}, {"a": 2.0}], [0, 1])


def test_printing_a_wide_block_is_quick() -> None:
    """It took a minute for 20,000 words."""
    clf = textbook().fit(sparse.eye_array(20_000, format="csr")[:50], np.arange(50) % 2)
    assert "with 19999 others" in str(clf.schema_)


def test_a_block_comes_whole_or_not_at_all() -> None:
    clf = textbook({("a", "b"): JointGaussian()})
    with pytest.raises(DecibanError, match="give all columns of the block"):
        clf.partial_fit(pd.DataFrame({"a": X[:6, 0]}), [0, 1] * 3)


def test_a_column_without_cells_has_no_opinion() -> None:
    empty = textbook().fit({"a": [None, None], "b": [1.0, 2.0]}, [0, 1])
    filled = textbook().fit({"a": [1.5, 2.5], "b": [1.0, 2.0]}, [0, 1])
    for both in (empty + filled, filled + empty):
        assert [str(part.family) for part in both.schema_.groups] == ["Gaussian()"]
        assert both.counts_.statistics[0].weight.sum() == 6.0
    assert "undecided" in str(empty.schema_)
    assert list(empty.sample(3, random_state=0).X) == ["a", "b"]
    typed = pd.DataFrame({"n": pd.array([None, None], dtype="Int64"), "z": [1.0, 2.0]})
    assert "undecided" in str(textbook().fit(typed, [0, 1]).schema_)
