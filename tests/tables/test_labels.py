"""From labels to the places of classes."""

import numpy as np
import pytest

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
