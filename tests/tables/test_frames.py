"""Tables of pandas, polars, NumPy and Arrow that are not what they seem."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.model_selection import cross_val_score, train_test_split

from deciban import Bernoulli, Binned, Categorical, DecibanError, Gaussian
from deciban.tables.labels import encode_labels
from tests import textbook

RNG = np.random.default_rng(11)
X = RNG.normal(size=(60, 2))
Y = np.arange(60) % 2


def test_the_index_of_a_pandas_frame_is_no_column() -> None:
    frame = pd.DataFrame({"x": RNG.normal(size=200)})
    y = np.repeat([0, 1], 100)
    train, _, labels, _ = train_test_split(frame, y, random_state=0)
    assert textbook().fit(train, labels).schema_.names == ("x",)
    iris, kinds = load_iris(return_X_y=True, as_frame=True)
    ours = cross_val_score(textbook(), iris, kinds)
    np.testing.assert_array_equal(ours, cross_val_score(textbook(), iris.to_numpy(), kinds.to_numpy()))


def test_pandas_columns_that_arrow_does_not_know() -> None:
    frame = pd.DataFrame({"age": pd.cut([1, 20, 40, np.nan, 22], [0, 10, 30, 50]), "z": [1.0, 2.0, 3.0, 4.0, 5.0]})
    clf = textbook().fit(frame, ["a", "b", "a", "b", "b"])
    assert clf.counts_.statistics[0].levels[0].to_pylist() == ["(0, 10]", "(10, 30]", "(30, 50]"]
    for bad in (pd.DataFrame({"p": [object(), object()]}), pd.DataFrame({"p": [2**70, 1]})):
        with pytest.raises(DecibanError, match="column 'p'"):
            textbook().fit(bad, [0, 1])
    with pytest.raises(DecibanError, match="duplicate column 'a'"):
        textbook().fit(pd.DataFrame([[1.0, 2.0], [3.0, 4.0]], columns=["a", "a"]), [0, 1])


def test_frames_with_some_numbers_for_names() -> None:
    frame = pd.DataFrame(X)
    frame["target"] = Y
    clf = textbook({1: Binned()}).fit(frame, "target")
    assert clf.schema_.names == ("0", "1")
    assert [str(part.family) for part in clf.schema_.groups] == ["Binned()", "Gaussian()"]


def test_masked_cells_are_missing() -> None:
    masked = np.ma.masked_values([[1.0], [2.0], [999.0], [4.0]], 999.0)
    clf = textbook().fit(masked, [0, 1, 0, 1])
    np.testing.assert_array_equal(clf.counts_.statistics[0].weight[:, 0], [1.0, 2.0])
    labels = np.ma.masked_values([0, 1, 99, 1], 99)
    assert encode_labels(labels, 4).codes.tolist() == [0, 1, -1, 1]


def test_one_row_as_a_dict_is_not_a_table() -> None:
    clf = textbook().fit([{"o": "rain"}, {"o": "sun"}], [0, 1])
    with pytest.raises(DecibanError, match="single row as a list"):
        clf.predict({"o": "rain"})
    with pytest.raises(DecibanError, match="duplicate column"):
        textbook().fit({1: [1.0, 2.0], "1": [3.0, 4.0]}, [0, 1])


def test_a_table_is_named_in_errors_by_its_own_column_and_row() -> None:
    with pytest.raises(DecibanError, match="column 'k'"):
        textbook().fit(pa.table({"c": ["x", "y"], "k": [[1], [2]]}), [0, 1])
    dense = np.zeros((6, 5))
    dense[5, 4] = 7.0
    with pytest.raises(DecibanError, match=r"column 'x4', row 5: found 7\.0"):
        textbook(Bernoulli()).fit(sparse.csr_array(dense), np.arange(6) % 2)
    with pytest.raises(DecibanError, match="column 'x0', row 2: found inf"):
        textbook().fit([[1.0], [2.0], [np.inf]], [0, None, 1])


def test_integers_beyond_two_to_the_53_are_told_apart() -> None:
    for base in (2**53, 2**60):
        codes = np.array([base + 1, base + 3, base + 1, base + 4] * 10)[:, None]
        clf = textbook().fit(codes, ["u", "v", "u", "v"] * 10)
        assert clf.predict_proba(codes)[0, 0] > 0.9
        assert clf.predict_proba(pd.DataFrame({"k": [float(base), None]}).to_numpy()).shape == (2, 2)
    with pytest.raises(DecibanError, match=r"2\*\*63"):
        textbook(Categorical()).fit(np.array([[2**64 - 1], [1]], dtype=np.uint64), [0, 1])


def test_minus_zero_and_zero_are_one_level() -> None:
    clf = textbook(Categorical()).fit([[0.0], [-0.0], [0.5], [0.5]], [0, 1, 0, 1])
    assert clf.counts_.statistics[0].levels[0].to_pylist() == [0.0, 0.5]


def test_a_dictionary_may_hold_a_value_twice() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 0, 1, 2], pa.int32()), pa.array(["a", "a", "b"]))
    clf = textbook().fit(pa.table({"c": column}), [0, 1] * 3)
    assert sum(table.sum() for table in clf.counts_.statistics[0].tables) == 6.0
    assert clf.counts_.statistics[0].levels[0].to_pylist() == ["a", "b"]


def test_sparse_columns_of_pandas_are_read() -> None:
    dummies = pd.get_dummies(pd.Series(list("abab")), sparse=True)
    assert textbook().fit(dummies, [0, 1] * 2).predict(dummies).tolist() == [0, 1, 0, 1]


def test_categories_of_polars_are_no_numbers() -> None:
    with pytest.raises(DecibanError, match="column 'c', row 0: found 'a'"):
        textbook({"c": Gaussian()}).fit(pl.DataFrame({"c": pl.Series(["a", "b"], dtype=pl.Categorical)}), [0, 1])
