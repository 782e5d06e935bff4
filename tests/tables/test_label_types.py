"""Labels of every type become classes, or are refused."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from deciban import DecibanError
from deciban.tables.labels import encode_labels
from tests import textbook


def test_missing_labels_of_a_categorical_column() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "y": pd.Categorical(["u", "v", None, "u"], ["u", "v", "w"])})
    for table in (frame, pl.from_pandas(frame)):
        counts = textbook().fit(table, "y").counts_
        assert counts.classes.tolist() == ["u", "v"]
        assert (counts.class_weight.tolist(), counts.unlabeled) == ([2.0, 1.0], 1)


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (np.array([-100, 100, 0], dtype=np.int8), [-100, 0, 100]),
        (np.array([-30000, 30000, 0], dtype=np.int16), [-30000, 0, 30000]),
        (np.array([2**63 + 2, 2**63 + 1, 2**63 + 9], dtype=np.uint64), [2**63 + 1, 2**63 + 2, 2**63 + 9]),
        ([1e300, 2e300, 1.0], [1.0, 1e300, 2e300]),
        (["yes", float("nan"), "no"], ["no", "yes"]),
        (np.array(["2020-01-01T00:00:00.000000001", "2020-01-01", "NaT"], dtype="M8[ns]"), None),
        (pd.Series([3, None, 1], dtype="Int64"), [1, 3]),
        (pl.Series([3, None, 1]), [1, 3]),
    ],
    ids=str,
)
def test_labels_of_every_kind(labels, classes) -> None:
    found = encode_labels(labels, 3)
    if classes is None:
        assert found.classes.size == 2
        assert found.codes.tolist() == [1, 0, -1]
    else:
        assert found.classes.tolist() == classes
        assert found.classes.dtype.kind != "f" or isinstance(classes[0], float)
    with pytest.raises(DecibanError, match="mix"):
        encode_labels([1, "a", 2], 3)


@pytest.mark.parametrize(
    "labels",
    [
        pd.Series(pd.cut([1, 2, 3, 1], [0, 1, 2, 3])),
        pd.Series(pd.interval_range(0, 4)),
        np.zeros(4, complex),
    ],
    ids=["cut", "intervals", "complex"],
)
def test_labels_of_other_types_are_refused(labels: object) -> None:
    with pytest.raises(DecibanError, match="label type"):
        textbook().fit(np.zeros((4, 1)), labels)


def test_encoded_labels_of_no_rows_add_nothing() -> None:
    table = pa.table({"a": [1.0, 2.0], "y": pa.array(["u", "v"]).dictionary_encode()})
    assert textbook().fit(table, "y").partial_fit(table.schema.empty_table(), "y").counts_.rows == 2


def test_unsigned_and_signed_labels_stay_integers() -> None:
    one = textbook().fit([[1.0], [2.0]], np.array([1, 2], dtype=np.uint64))
    both = one + textbook().fit([[1.0], [2.0]], np.array([1, 3]))
    assert both.classes_.tolist() == [1, 2, 3]
    assert both.classes_.dtype == np.int64
    big = textbook().fit([[1.0], [2.0]], np.array([2**63 + 1, 2**63 + 3], dtype=np.uint64))
    with pytest.raises(DecibanError, match=r"2\*\*63"):
        big + both
