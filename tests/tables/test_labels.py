"""Labels in every form, and their places among classes."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from deciban import BayesClassifier
from deciban.tables.labels import MISSING_LABEL, UNKNOWN_LABEL, encode_labels


def test_places_of_labels_among_classes_in_any_order():
    labels = encode_labels(["b", "a", None, "c", "b"], 5)
    places = labels.places_among(np.array(["b", "x", "a"], dtype=object))
    assert places.tolist() == [0, 2, MISSING_LABEL, UNKNOWN_LABEL, 0]
    assert places.dtype == np.int32
    assert [labels.label(row) for row in range(5)] == ["b", "a", None, "c", "b"]


@pytest.mark.parametrize(
    ("given", "classes", "places"),
    [
        ([1, 0, 1], np.array([0.0, 1.0]), [1, 0, 1]),  # whole numbers and floats
        ([1.0, float("nan")], np.array([0, 1]), [1, MISSING_LABEL]),
        ([True, False], np.array([False, True]), [1, 0]),
        (["a", "b"], np.array(["a", "b"]), [0, 1]),  # text as objects and as NumPy's
        (["1", "0"], np.array([0, 1]), [UNKNOWN_LABEL, UNKNOWN_LABEL]),  # text is no number
        ([2**53 + 1], np.array([2.0**53]), [UNKNOWN_LABEL]),  # equal only after rounding
        (np.array(["2020-01-02"], "M8[ns]"), np.array(["2020-01-01", "2020-01-02"], "M8[us]"), [1]),
        (np.array(["2020-01-02"], "M8[D]"), np.array([18263, 18264]), [UNKNOWN_LABEL]),
        ([None, None], np.array(["a"], dtype=object), [MISSING_LABEL, MISSING_LABEL]),
        ([], np.array(["a"], dtype=object), []),
        (["a"], np.array([], dtype=object), [UNKNOWN_LABEL]),
    ],
)
def test_equal_labels_of_two_types_are_one_class(given, classes, places):
    assert encode_labels(given, len(given)).places_among(classes).tolist() == places


@pytest.mark.parametrize("given", [["x", "y"], [3, 4], [True, False], np.array(["2020-01-01", "2021-01-01"], "M8[us]")])
def test_the_label_of_a_row_is_what_python_has(given):
    labels = encode_labels(given, 2)
    assert labels.label(1) == (given.tolist() if isinstance(given, np.ndarray) else given)[1]


LABELS = ["a", "b", "a", "a", "b", "b"]


@pytest.mark.parametrize(
    "labels",
    [
        pd.Series(LABELS),
        pd.Series(LABELS, dtype="category"),
        pl.Series(LABELS),
        pa.array(LABELS),
        pa.chunked_array([LABELS[:2], LABELS[2:]]),
        pa.array(LABELS).dictionary_encode(),
        np.array(LABELS),
        np.array(LABELS, dtype=object),
        tuple(LABELS),
    ],
    ids=lambda labels: type(labels).__module__ + "." + type(labels).__name__,
)
def test_every_form_of_labels(labels) -> None:
    found = encode_labels(labels, 6)
    assert found.classes.tolist() == ["a", "b"]
    assert found.codes.tolist() == [0, 1, 0, 0, 1, 1]


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([3, None, 1], [1, 3]),
        (pd.Series([3, pd.NA, 1], dtype="Int64"), [1, 3]),
        (pa.array([True, None, False]), [False, True]),
        (pl.Series([3, None, 1]), [1, 3]),
        ([2.0, float("nan"), 1.0], [1.0, 2.0]),
        (["z", None, "a"], ["a", "z"]),
    ],
    ids=str,
)
def test_missing_labels(labels, classes) -> None:
    found = encode_labels(labels, 3)
    assert found.classes.tolist() == classes
    assert found.codes.tolist() == [1, -1, 0]


def test_missing_labels_in_a_column() -> None:
    table = pl.DataFrame({"x": [1.0, 2.0, 3.0, 9.0], "y": [0, None, 0, 1]})
    clf = BayesClassifier().fit(table, "y")
    assert clf.classes_.tolist() == [0, 1]
    assert clf.counts_.unlabeled == 1
