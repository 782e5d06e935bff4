"""The same table in every form people have it gives the same model."""

import datetime as dt
import decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from deciban import BayesClassifier, Bernoulli, Categorical, Gaussian, Multinomial
from deciban.files.open import open_table
from deciban.schema.infer import Defaults, infer_schema
from deciban.tables.cell_numbers import from_numbers
from deciban.tables.labels import encode_labels

ROWS = [
    {"age": 31.5, "town": "Ulm", "smokes": True, "visits": 2},
    {"age": None, "town": "Bern", "smokes": False, "visits": 0},
    {"age": 44.0, "town": None, "smokes": True, "visits": 11},
    {"age": 52.25, "town": "Ulm", "smokes": None, "visits": 3},
    {"age": 18.0, "town": "Graz", "smokes": False, "visits": None},
    {"age": 61.0, "town": "Bern", "smokes": False, "visits": 1},
]
LABELS = ["a", "b", "a", "a", "b", "b"]
SPEC = {"age": Gaussian(), "town": Categorical(), "smokes": Bernoulli(), "visits": Gaussian()}
COLUMNS = {name: [row[name] for row in ROWS] for name in ROWS[0]}
ARROW = pa.table(COLUMNS)


FORMS = {
    "rows": ROWS,
    "columns": COLUMNS,
    "arrow": ARROW,
    "chunked arrow": pa.concat_tables([ARROW.slice(0, 2), ARROW.slice(2)]),
    "record batch reader": ARROW,
    "pandas": pd.DataFrame(COLUMNS),
    "pandas nullable": pd.DataFrame(COLUMNS).convert_dtypes(),
    "pandas objects": pd.DataFrame(COLUMNS).astype(object),
    "pandas categories": pd.DataFrame(COLUMNS).astype({"town": "category"}),
    "polars": pl.DataFrame(COLUMNS),
    "polars categories": pl.DataFrame(COLUMNS).with_columns(pl.col("town").cast(pl.Categorical)),
    "duckdb": None,
    "large strings": ARROW.set_column(1, "town", ARROW["town"].cast(pa.large_string())),
    "dictionary": ARROW.set_column(1, "town", ARROW["town"].dictionary_encode()),
    "float32": ARROW.set_column(0, "age", ARROW["age"].cast(pa.float32())),
    "decimals": ARROW.set_column(0, "age", ARROW["age"].cast(pa.decimal128(10, 2))),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_model(form: str) -> None:
    table = FORMS[form]
    if form == "duckdb":
        table = duckdb.from_arrow(ARROW)
    if form == "record batch reader":
        table = pa.RecordBatchReader.from_batches(ARROW.schema, ARROW.to_batches())
    clf = BayesClassifier(SPEC).fit(table, LABELS)
    expected = BayesClassifier(SPEC).fit(ROWS, LABELS)
    for one, other in zip(clf.counts_.statistics, expected.counts_.statistics, strict=True):
        if hasattr(one, "tables"):
            assert [level.to_pylist() for level in one.levels] == [level.to_pylist() for level in other.levels]
    np.testing.assert_array_equal(clf.predict_proba(ROWS), expected.predict_proba(ROWS))
    if form != "record batch reader":
        np.testing.assert_array_equal(clf.predict_proba(table), expected.predict_proba(ROWS))


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
    assert clf.counts_.unlabelled == 1


def test_arrays_of_every_kind() -> None:
    X = np.array([[1.0, 2.0], [3.0, 5.0], [2.0, 1.0], [4.0, 4.0]])
    y = [0, 1, 0, 1]
    expected = BayesClassifier().fit(X, y).predict_proba(X)
    read_only = X.copy()
    read_only.flags.writeable = False
    for form in (
        X.tolist(),
        np.asfortranarray(X),
        np.repeat(X, 2, axis=0)[::2],
        X.astype(">f8"),
        read_only,
        X.astype(object),
        pd.DataFrame(X),
    ):
        clf = BayesClassifier().fit(form, y)
        np.testing.assert_allclose(clf.predict_proba(form), expected, rtol=1e-13)
        assert clf.schema_.names is None
    small = BayesClassifier().fit(X.astype(np.float32), y)
    np.testing.assert_allclose(small.predict_proba(X.astype(np.float16)), expected, rtol=1e-6)


def test_text_and_numbers_in_one_list() -> None:
    clf = BayesClassifier().fit([["red", 1.5], ["blue", 2.5], ["red", 1.0]], [0, 1, 0])
    assert [str(part.family) for part in clf.schema_.groups] == ["Categorical()", "Gaussian()"]


def families(table: object, **options: object) -> list[tuple[str, str]]:
    rows = infer_schema(open_table(table), None, Defaults()).rows()
    return [(family, why) for _, family, why in rows]


def test_inference() -> None:
    days = [dt.date(1970, 1, 2), dt.date(1970, 1, 11)] * 6
    table = pa.table(
        {
            "float": pa.array(np.linspace(0, 1, 12)),
            "codes": pa.array([1, 2, 3] * 4),
            "amounts": pa.array(range(12)),
            "flags": pa.array([0, 1] * 6),
            "bool": pa.array([True, False] * 6),
            "text": pa.array(["x", "y"] * 6),
            "date": pa.array(days),
            "stamp": pa.array([dt.datetime(2020, 1, 1, 6)] * 12),
            "time": pa.array([dt.time(0, 1)] * 12),
            "wait": pa.array([dt.timedelta(minutes=1)] * 12),
            "money": pa.array([decimal.Decimal("1.50")] * 12),
            "nothing": pa.nulls(12),
        }
    )
    assert families(table) == [
        ("Gaussian()", "floating point"),
        ("Categorical()", "3 distinct integers in 12 rows"),
        ("Gaussian()", "12 distinct integers in 12 rows"),
        ("Categorical()", "2 distinct integers in 12 rows"),
        ("Bernoulli()", "true or false"),
        ("Categorical()", "text, 2 distinct in 12 rows"),
        ("Gaussian()", "dates, as days since 1970-01-01"),
        ("Gaussian()", "dates, as days since 1970-01-01"),
        ("Gaussian()", "times, as seconds since midnight"),
        ("Gaussian()", "durations, in seconds"),
        ("Gaussian()", "decimal numbers"),
        ("undecided", "no cell is filled yet"),
    ]
    numbers = open_table(table).numbers([6, 7, 8, 9])
    np.testing.assert_array_equal(numbers[0], [1.0, 18262.25, 60.0, 60.0])
    assert BayesClassifier().fit(table, ["a", "b"] * 6).predict(table).tolist() == ["a", "b"] * 6


def test_one_row_tells_little() -> None:
    assert families([{"n": 3}]) == [("Gaussian()", "1 distinct integer in 1 row")]
    assert families(np.array([[True], [False]])) == [("Bernoulli()", "true or false")]


def test_an_empty_column_may_fill_later() -> None:
    clf = BayesClassifier().fit([{"a": None, "b": 1.0}, {"a": None, "b": 2.0}], [0, 1])
    clf.partial_fit([{"a": "x", "b": 1.0}, {"a": "y", "b": 2.0}], [0, 1])
    assert clf.predict([{"a": "y", "b": None}]).tolist() == [1]


def test_whole_floats_are_the_same_level_as_integers() -> None:
    """A missing cell makes floats of a column of codes."""
    clf = BayesClassifier({"code": Categorical()}).fit(pd.DataFrame({"code": [1, 2, 1, 3]}), [0, 1, 0, 1])
    clf.partial_fit(pd.DataFrame({"code": [1.0, np.nan, 3.0]}), [0, 0, 1])
    assert clf.counts_.statistics[0].levels[0].to_pylist() == [1, 2, 3]
    np.testing.assert_array_equal(clf.counts_.statistics[0].tables[0], [[3, 0, 0], [0, 1, 2]])


def test_wide_and_odd_integers_as_categories() -> None:
    X = np.array([[10**15, -5], [10**15 + 1, 7], [10**15, 7]])
    clf = BayesClassifier(Categorical()).fit(X, [0, 1, 0])
    assert clf.counts_.statistics[0].levels[0].to_pylist() == [10**15, 10**15 + 1]
    assert clf.predict(X).tolist() == [0, 1, 0]


def test_duplicate_entries_of_a_sparse_matrix_add_up() -> None:
    from scipy import sparse

    twice = sparse.coo_array(([1.0, 2.0, 4.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    found = BayesClassifier(Multinomial()).fit(twice, [0, 1]).counts_.statistics[0].total
    np.testing.assert_array_equal(found, [[0.0, 3.0], [4.0, 0.0]])


@pytest.mark.parametrize("kind", ["int64", "date32[day]", "timestamp[us]", "time64[us]", "duration[us]"])
def test_drawn_numbers_stay_within_the_type_of_their_column(kind: str) -> None:
    drawn = from_numbers(np.array([-1e300, -1e19, 0.0, 1e19, 1e300, np.nan]), kind)
    assert drawn.null_count == 1
    assert len(drawn.to_pylist()) == 6  # of years that Python has
    assert drawn.to_pylist()[0] == drawn.to_pylist()[1]
