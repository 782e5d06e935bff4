"""The same table in every form people have it gives the same model."""

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from deciban import BayesClassifier, Bernoulli, Categorical, Gaussian, Multinomial

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
