"""Which family the cells of a column suggest, and why."""

import datetime as dt
import decimal

import numpy as np
import pyarrow as pa
import pytest

from deciban import BayesClassifier, Gaussian
from deciban.schema.infer import Defaults, infer_schema, needs_cells
from deciban.sources.open import open_table
from deciban.tables.row_sampling import sample_places


def test_text_and_numbers_in_one_list() -> None:
    clf = BayesClassifier().fit([["red", 1.5], ["blue", 2.5], ["red", 1.0]], [0, 1, 0])
    assert [str(part.family) for part in clf.schema_.groups] == ["Categorical()", "Gaussian()"]


def families(table: object) -> list[tuple[str, str]]:
    rows = infer_schema(open_table(table), None, Defaults()).descriptions()
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
        ("Categorical()", "integers, 3 distinct values"),
        ("Gaussian()", "integers, 12 distinct values"),
        ("Categorical()", "integers, 2 distinct values"),
        ("Bernoulli()", "true or false"),
        ("Categorical()", "text, 2 distinct values"),
        ("Gaussian()", "dates, as days since 1970-01-01"),
        ("Gaussian()", "dates, as days since 1970-01-01"),
        ("Gaussian()", "times, as seconds since midnight"),
        ("Gaussian()", "durations, in seconds"),
        ("Gaussian()", "decimal numbers"),
        ("undecided", "no values yet"),
    ]
    assert BayesClassifier().fit(table, ["a", "b"] * 6).predict(table).tolist() == ["a", "b"] * 6


def test_one_row_tells_little() -> None:
    assert families([{"n": 3}]) == [("Gaussian()", "integers, 1 distinct value")]
    assert families(np.array([[True], [False]])) == [("Bernoulli()", "true or false")]


def test_an_empty_column_may_fill_later() -> None:
    clf = BayesClassifier().fit([{"a": None, "b": 1.0}, {"a": None, "b": 2.0}], [0, 1])
    clf.partial_fit([{"a": "x", "b": 1.0}, {"a": "y", "b": 2.0}], [0, 1])
    assert clf.predict([{"a": "y", "b": None}]).tolist() == [1]


@pytest.mark.parametrize("first", [0, 7_000_001])
@pytest.mark.parametrize("shuffled", [False, True])
def test_numbered_rows_are_identifiers_however_many_there_are(first: int, shuffled: bool) -> None:
    rows = 200_000
    numbers = first + np.arange(rows)
    if shuffled:
        np.random.default_rng(0).shuffle(numbers)
    amounts = np.random.default_rng(1).integers(0, rows, rows)
    wide = np.random.default_rng(2).integers(0, 100 * rows, rows)
    some = sample_places(rows, 1 << 14)
    table = open_table({"id": numbers[some], "amount": amounts[some], "wide": wide[some]})
    schema = infer_schema(table, None, Defaults(), rows=rows)
    assert list(schema.columns_like("identifier")) == ["id"]


def test_cells_are_needed_only_where_they_change_the_schema() -> None:
    """Other cells of the same types give the same schema unless `needs_cells` is True."""
    rng = np.random.default_rng(0)
    numbers, whole = rng.normal(size=(200, 2)), rng.integers(0, 1000, (200, 2))
    mixed = {"x": numbers[:, 0], "n": whole[:, 0]}
    cases = [
        (numbers, np.zeros((200, 2)), None, False),
        (numbers.astype(np.float32), np.full((200, 2), np.nan, np.float32), None, False),
        (numbers > 0.0, np.zeros((200, 2), np.bool_), None, False),
        (whole, whole % 2, None, True),
        (whole, whole % 2, Gaussian(), False),
        (whole, whole % 2, {"x0": Gaussian()}, True),
        (pa.table({"x": numbers[:, 0]}), pa.table({"x": [None] * 200}, pa.schema({"x": pa.float64()})), None, False),
        (pa.table(mixed), pa.table({**mixed, "n": whole[:, 0] % 2}), None, True),
        (pa.table(mixed), pa.table({**mixed, "n": whole[:, 0] % 2}), {"n": Gaussian()}, False),
    ]
    for one, other, spec, needed in cases:
        tables = open_table(one), open_table(other)
        assert [needs_cells(table, spec) for table in tables] == [needed, needed]
        first, second = (infer_schema(table, spec, Defaults()) for table in tables)
        assert (first == second) != needed
