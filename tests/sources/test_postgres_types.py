"""Columns of PostgreSQL are read as what they are: numbers, texts, dates; what is none of these is refused by name."""

import datetime as dt
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from deciban import BayesClassifier, DataError, UsageError, scan
from tests.support.postgres_tables import created, new_name
from tests.support.servers import Postgres

# An expression, the type of Arrow's that it is read as, and the cell.
READ: list[tuple[str, pa.DataType, Any]] = [
    ("true", pa.bool_(), True),
    ("-7::smallint", pa.int16(), -7),
    ("7::int", pa.int32(), 7),
    ("9007199254740993::bigint", pa.int64(), 2**53 + 1),
    ("1.5::real", pa.float32(), 1.5),
    ("0.1::float8", pa.float64(), 0.1),
    ("0.1::numeric", pa.float64(), 0.1),
    ("12345.67::numeric(7, 2)", pa.float64(), 12345.67),
    ("sum(3::bigint) over ()", pa.float64(), 3.0),
    ("'Infinity'::numeric", pa.float64(), math.inf),
    ("12.34::money", pa.float64(), 12.34),
    ("'it''s é🏔️'::text", pa.string(), "it's é🏔️"),
    ("'ab'::varchar(5)", pa.string(), "ab"),
    ("'ab'::char(5)", pa.string(), "ab"),
    ("'a'::\"char\"", pa.string(), "a"),
    ("'ab'::name", pa.string(), "ab"),
    ("'literal'", pa.string(), "literal"),
    ("NULL", pa.string(), None),
    ("'6a1a4b3e-0000-4000-8000-000000000001'::uuid", pa.string(), "6a1a4b3e-0000-4000-8000-000000000001"),
    ("'10.0.0.1'::inet", pa.string(), "10.0.0.1/32"),
    ("B'101'", pa.string(), "101"),
    ("5::oid", pa.int64(), 5),
    ("'2024-02-29'::date", pa.date32(), dt.date(2024, 2, 29)),
    ("'12:34:56.789'::time", pa.time64("us"), dt.time(12, 34, 56, 789_000)),
    ("'2024-02-29 12:34:56.789'::timestamp", pa.timestamp("us"), dt.datetime(2024, 2, 29, 12, 34, 56, 789_000)),
    ("'2024-02-29 12:00+02'::timestamptz", pa.timestamp("us", "UTC"), dt.datetime(2024, 2, 29, 10, tzinfo=dt.UTC)),
    ("'infinity'::date", pa.date32(), None),
    ("'-infinity'::timestamp", pa.timestamp("us"), None),
    ("'infinity'::timestamptz", pa.timestamp("us", "UTC"), None),
    ("'294276-01-01'::timestamp", pa.timestamp("us"), None),
]

REFUSED = {
    "'{}'::json": "json",
    "'{}'::jsonb": "jsonb",
    "ARRAY[1, 2]": "integer[]",
    "'\\x00'::bytea": "bytea",
    "ROW(1, 2)": "record",
    "'1 day'::interval": "interval",
    "point(1, 2)": "point",
    "'[1,2]'::int4range": "int4range",
    "'12:00+02'::timetz": "time with time zone",
    "'a'::tsvector": "tsvector",
}


def test_columns_are_read_as_what_they_are(postgres: Postgres) -> None:
    query = "SELECT " + ", ".join(f"{expression} AS c{k}" for k, (expression, _, _) in enumerate(READ))
    table = scan(postgres.url, query=query).table()
    assert table.schema.types == [kind for _, kind, _ in READ]
    assert table.to_pylist()[0] == {f"c{k}": cell for k, (_, _, cell) in enumerate(READ)}
    nothing = scan(postgres.url, query=f"SELECT * FROM ({query}) AS found WHERE c1 > 0").table()
    assert (nothing.num_rows, nothing.schema.types) == (0, table.schema.types)


def test_columns_may_have_any_name(postgres: Postgres) -> None:
    """Also one that stands in what the server is asked about them."""
    names = ("type", "place", "called", "columns", "q", "one", "found", "oid", "user")
    cells = ", ".join(f'{k} AS "{name}"' for k, name in enumerate(names))
    table = scan(postgres.url, query=f"SELECT {cells}").table()
    assert table.to_pylist() == [{name: k for k, name in enumerate(names)}]


def test_what_is_read_as_text_is_as_the_server_writes_it(postgres: Postgres) -> None:
    query = "SELECT true AS a, 12345678901234567890123.10::numeric AS b, 7 AS c, '2024-02-29'::date AS d"
    table = scan(postgres.url, query=query, types=dict.fromkeys("abcd", "text")).table()
    assert table.to_pylist() == [{"a": "true", "b": "12345678901234567890123.10", "c": "7", "d": "2024-02-29"}]
    assert scan(postgres.url, query=query, types={"a": "number"}).table()["a"].to_pylist() == [1.0]


def test_nan_of_decimal_numbers_is_missing(postgres: Postgres) -> None:
    cell = "CASE WHEN g % 10 = 0 THEN 'NaN' ELSE (g % 4)::numeric END"
    query = f"SELECT {cell} AS x, g % 2 AS y FROM generate_series(1, 40) g"
    clf = BayesClassifier(tune=None).fit(postgres.url, "y", query=query)
    cells = [math.nan if g % 10 == 0 else float(g % 4) for g in range(1, 41)]
    same = BayesClassifier(tune=None).fit({"x": cells}, [g % 2 for g in range(1, 41)])
    np.testing.assert_array_equal(clf.predict_proba({"x": [1.0]}), same.predict_proba({"x": [1.0]}))


def test_types_of_the_database_are_texts_or_what_they_are_made_of(postgres: Postgres) -> None:
    """Enums, domains (also of domains), and texts of extensions."""
    name = new_name()
    postgres.execute(f"CREATE TYPE {name}_mood AS ENUM ('glad', 'it''s')")
    postgres.execute(f"CREATE DOMAIN {name}_age AS int CHECK (value > 0)")
    postgres.execute(f"CREATE DOMAIN {name}_old AS {name}_age CHECK (value > 60)")
    postgres.execute(f"CREATE DOMAIN {name}_price AS numeric(8, 2)")
    postgres.execute("CREATE EXTENSION IF NOT EXISTS citext")
    query = f"SELECT 'it''s'::{name}_mood AS a, 70::{name}_old AS b, 1.25::{name}_price AS c, 'Ab'::citext AS d"
    table = scan(postgres.url, query=query).table()
    assert table.to_pylist() == [{"a": "it's", "b": 70, "c": 1.25, "d": "Ab"}]
    assert table.schema.types == [pa.string(), pa.int32(), pa.float64(), pa.string()]


@pytest.mark.parametrize("expression", REFUSED)
def test_what_cannot_be_learned_is_refused_by_name(expression: str, postgres: Postgres) -> None:
    rows = scan(postgres.url, query=f"SELECT 1 AS x, {expression} AS odd, 0 AS y")
    with pytest.raises(DataError) as caught:
        BayesClassifier(tune=None).fit(rows, "y")
    place, kind = f"the query (postgresql://tester@127.0.0.1:{postgres.port}/postgres)", REFUSED[expression]
    assert str(caught.value).startswith(f"{place}: column 'odd' has the unsupported type {kind};")


def test_what_cannot_be_learned_is_left_out_or_read_as_text(postgres: Postgres) -> None:
    """Predictions pass it on as text; a model that left it out leaves it out later, too."""
    query = "SELECT g::float8 AS x, '{\"a\": 1}'::jsonb AS odd, g % 2 AS y FROM generate_series(1, 20) AS g"
    clf = BayesClassifier(tune=None).fit({"x": [1.0, 2.0, 3.0]}, [0, 1, 0])
    before = clf.predict_proba({"x": [1.5]}).tolist()
    with pytest.raises(DataError, match="jsonb"):
        clf.fit(postgres.url, "y", query=query)
    assert clf.predict_proba({"x": [1.5]}).tolist() == before
    rows = scan(postgres.url, query=query)
    assert clf.predict(rows).size == 20
    assert pa.concat_tables(clf.predict_batches(rows))["odd"].to_pylist() == ['{"a": 1}'] * 20
    left_out = BayesClassifier(tune=None).fit(scan(postgres.url, query=query, ignore=["odd"]), "y")
    assert left_out.schema_.names == ("x",)
    assert left_out.partial_fit(rows, "y").counts_.rows == 40
    text = BayesClassifier(tune=None).fit(scan(postgres.url, query=query, types={"odd": "text"}), "y")
    assert text.fitted_.column_types() == {"x": "double", "odd": "string"}


def test_columns_are_read_as_other_types_on_request(postgres: Postgres) -> None:
    day = "'2024-01-02'"
    query = f"SELECT '12'::text AS a, 5 AS b, true AS c, {day} AS d, '11:00' AS e, 'yes' AS f, {day}::date AS g"
    types = {"a": "number", "b": "text", "c": "number", "d": "date", "e": "time", "f": "bool", "g": "text"}
    (row,) = scan(postgres.url, query=query, types=types).table().to_pylist()
    dates = {"d": dt.datetime(2024, 1, 2), "e": dt.time(11), "g": "2024-01-02"}
    assert row == {"a": 12.0, "b": "5", "c": 1.0, "f": True, **dates}
    with pytest.raises(UsageError, match="cannot cast type date to double precision; fix the query"):
        scan(postgres.url, query=query, types={"g": "number"}).table()
    with pytest.raises(DataError, match='invalid input syntax for type double precision: "yes"'):
        scan(postgres.url, query=query, types={"f": "number"}).table()


def test_later_rows_are_read_as_those_that_were_learned(postgres: Postgres) -> None:
    """A code that is text in the model is text also where it is a number."""
    clf = BayesClassifier(tune=None).fit({"code": ["1", "2", "1", "2"], "y": [0, 1, 0, 1]}, "y")
    query = "SELECT 1 + g % 2 AS code, g % 2 AS y FROM generate_series(0, 9) AS g"
    assert clf.predict(scan(postgres.url, query=query)).tolist() == [0, 1] * 5
    assert clf.partial_fit(postgres.url, "y", query=query).counts_.rows == 14


def test_databases_in_other_encodings_are_read_as_text(postgres: Postgres) -> None:
    name = new_name()
    urls = {}
    for encoding in ("LATIN1", "SQL_ASCII"):
        database = f"{name}_{encoding.lower()}"
        postgres.execute(f"CREATE DATABASE {database} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0")
        urls[encoding] = f"{postgres.url.removesuffix('/postgres')}/{database}"
    rows = scan(urls["LATIN1"], query="SELECT convert_from('\\x5afc72696368', 'LATIN1') AS town")
    assert rows.table().to_pylist() == [{"town": "Zürich"}]
    unknown = scan(urls["SQL_ASCII"], query="SELECT convert_from('\\x5afc', 'SQL_ASCII') AS town")
    with pytest.raises(DataError, match='invalid byte sequence for encoding "UTF8": 0xfc'):
        unknown.table()


def test_columns_of_one_name_and_of_none_are_refused(postgres: Postgres) -> None:
    with pytest.raises(DataError, match=r"duplicate column 'a'; give each column a unique name"):
        scan(postgres.url, query="SELECT 1 AS a, 2 AS a")
    name = created(postgres, "SELECT")
    with pytest.raises(UsageError, match="the query has no columns"):
        scan(postgres.url, query=f"SELECT FROM {name}")


def test_as_many_columns_as_a_table_can_have_are_read(postgres: Postgres) -> None:
    cells = ", ".join(f"{k}.5::numeric AS c{k}" for k in range(1_600))
    table = scan(postgres.url, query=f"SELECT {cells}").table()
    assert table.num_columns == 1_600
    assert table["c1599"].to_pylist() == [1599.5]
