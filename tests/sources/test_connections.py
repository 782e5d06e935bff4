"""Rows of connections that the user has: what a column is does not depend on the piece that is read."""

import datetime as dt
import sqlite3
import uuid
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import duckdb
import psycopg
import pyarrow as pa
import pytest

from deciban import BayesClassifier, DataError, UsageError, scan
from deciban.sources import connections
from tests.support.postgres_tables import adbc_connection, created
from tests.support.servers import Postgres


@pytest.fixture
def sqlite() -> Iterator[sqlite3.Connection]:
    """Cursors of SQLite say nothing of types, and its columns may hold anything."""
    connection = sqlite3.connect(":memory:")
    yield connection
    connection.close()


@pytest.fixture(autouse=True)
def few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "FETCHED_ROWS", 7)
    monkeypatch.setattr(connections, "SHOWN_ROWS", 30)
    monkeypatch.setattr("deciban.sources.source.STREAM_ROWS", 11)


def fill(connection: sqlite3.Connection, columns: str, rows: list[tuple[Any, ...]]) -> None:
    connection.execute(f"CREATE TABLE t ({columns})")
    connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(rows[0]))})", rows)


def test_numbers_are_of_one_type_in_all_pieces(sqlite: sqlite3.Connection) -> None:
    """Missing ones first, whole ones then, others long after; whole in the schema only where all are."""
    rows = [(None if k < 50 else k, k if k < 60 else k + 0.5, k % 3, 2**60 + k) for k in range(100)]
    fill(sqlite, "late, mixed, code, long", rows)
    source = scan(sqlite, query="SELECT * FROM t")
    assert {piece.num_rows for piece in source.tables()} == {11, 1}
    assert len({str(piece.schema) for piece in source.tables()}) == 1
    table = source.table()
    assert table["late"].to_pylist() == [row[0] for row in rows]
    assert table["mixed"].to_pylist() == [row[1] for row in rows]
    assert table["long"].to_pylist() == [row[3] for row in rows]
    assert [str(kind) for kind in table.schema.types] == ["int64", "double", "int64", "int64"]
    clf = BayesClassifier(tune=None).fit(source, "code")
    same = BayesClassifier(tune=None).fit(table, "code")
    assert clf.classes_.tolist() == [0, 1, 2]
    assert clf.classes_.dtype == same.classes_.dtype
    assert clf.fitted_.column_types() == same.fitted_.column_types()
    assert clf.predict(source).tolist() == same.predict(table).tolist()


def test_a_cell_of_another_type_is_named(sqlite: sqlite3.Connection) -> None:
    fill(sqlite, "a, y", [(k, 0) if k != 70 else ("seventy", 1) for k in range(100)])
    with pytest.raises(DataError, match=r"column 'a', row 71: found 'seventy', expected double; cast it"):
        BayesClassifier(tune=None).fit(scan(sqlite, table="t"), "y")


def test_a_long_number_behind_short_ones_is_not_rounded(sqlite: sqlite3.Connection) -> None:
    """The first rows make the column one of doubles, and two long codes could become the same one."""
    fill(sqlite, "id, y", [(2**60 if k == 60 else 2**60 + 1 if k == 70 else k, k % 2) for k in range(100)])
    with pytest.raises(
        DataError, match=r"column 'id', row 71: found 1152921504606846977, which a double cannot represent; cast it"
    ):
        BayesClassifier(tune=None).fit(sqlite, "y", table="t")
    codes = scan(sqlite, query="SELECT CAST(id AS TEXT) AS id FROM t").table()["id"].to_pylist()
    assert (codes[60], codes[70]) == (str(2**60), str(2**60 + 1))


def test_duckdb_is_asked_in_the_transaction_of_the_user() -> None:
    """A cursor of its connection would be another connection."""
    with duckdb.connect() as connection:
        connection.execute("CREATE TEMP TABLE held AS SELECT k AS a, k % 2 AS y FROM range(20) AS t(k)")
        connection.execute("BEGIN; INSERT INTO held VALUES (20, 0)")
        rows = scan(connection, table="held")
        assert rows.table()["a"].to_pylist() == list(range(21))
        assert BayesClassifier(tune=None).fit(rows, "y").counts_.rows == 21
        connection.execute("ROLLBACK")
        assert rows.table().num_rows == 20


def test_columns_of_several_kinds_are_refused_unless_they_are_text(sqlite: sqlite3.Connection) -> None:
    fill(sqlite, "a, b, y", [(k if k % 2 else f"n{k}", b"x", k % 2) for k in range(40)])
    with pytest.raises(DataError, match="the query: column 'a' has the unsupported type int and str; "):
        BayesClassifier(tune=None).fit(sqlite, "y", query="SELECT a, y FROM t")
    with pytest.raises(DataError, match="column 'b' has the unsupported type bytes"):
        BayesClassifier(tune=None).fit(scan(sqlite, query="SELECT * FROM t", ignore=["a"]), "y")
    text = scan(sqlite, query="SELECT * FROM t", types={"a": "text"}, ignore=["b"]).table()
    assert text["a"].to_pylist()[:3] == ["n0", "1", "n2"]
    clf = BayesClassifier(tune=None).fit({"a": ["1", "2"]}, [0, 1])
    assert clf.predict(scan(sqlite, query="SELECT * FROM t")).size == 40


def test_columns_are_read_as_other_types_on_request(sqlite: sqlite3.Connection) -> None:
    fill(sqlite, "n, t, d", [(1.5, "2.5", "2024-01-02"), (2.0, "x", "2024-01-03")])
    (row, _) = scan(sqlite, query="SELECT * FROM t", types={"n": "text", "d": "date"}).table().to_pylist()
    assert row == {"n": "1.5", "t": "2.5", "d": dt.datetime(2024, 1, 2)}
    with pytest.raises(DataError, match="column 't', row 2: found 'x', expected a number"):
        scan(sqlite, query="SELECT * FROM t", types={"t": "number"}).table()


def test_every_kind_of_value_has_its_type(postgres: Postgres) -> None:
    """psycopg says of each column what it is, also where all cells are missing."""
    day, moment = dt.date(2024, 1, 2), dt.datetime(2024, 1, 2, 3, 4, 5, 6)
    key = uuid.uuid4()
    expressions = {
        "1::smallint": (pa.int16(), 1),
        "2": (pa.int32(), 2),
        "3::bigint": (pa.int64(), 3),
        "0.1::numeric": (pa.float64(), 0.1),
        "0.1::float8": (pa.float64(), 0.1),
        "true": (pa.bool_(), True),
        "'x'::varchar": (pa.string(), "x"),
        f"'{key}'::uuid": (pa.string(), str(key)),
        f"'{day}'::date": (pa.date32(), day),
        f"'{moment}'::timestamp": (pa.timestamp("us"), moment),
        "'2024-01-02 00:00+02'::timestamptz": (pa.timestamp("us", "UTC"), dt.datetime(2024, 1, 1, 22, tzinfo=dt.UTC)),
        "'01:02'::time": (pa.time64("us"), dt.time(1, 2)),
    }
    some = ", ".join(f"{expression} AS c{k}" for k, expression in enumerate(expressions))
    with postgres.connect() as connection:
        table = scan(connection, query=f"SELECT {some} FROM generate_series(1, 30)").table()
        empty = scan(connection, query=f"SELECT {some} LIMIT 0").table()
    assert table.schema.types == empty.schema.types == [kind for kind, _ in expressions.values()]
    assert list(table.to_pylist()[29].values()) == [cell for _, cell in expressions.values()]


def test_drivers_may_say_types_by_classes_and_give_rows_by_name() -> None:
    """As drivers of ODBC do, and cursors that make a dict of each row."""

    class Cursor:
        description = (("a", int), ("b", Decimal), ("c", str))

        def __init__(self) -> None:
            self._rows = [{"a": None, "b": Decimal("0.5"), "c": None}, {"a": 2, "b": None, "c": "x"}]

        def execute(self, query: str) -> None:
            assert query == "SELECT 1"

        def fetchmany(self, size: int) -> list[dict[str, Any]]:
            found, self._rows = self._rows[:size], self._rows[size:]
            return found

        def close(self) -> None:
            pass

    class Connection:
        def cursor(self) -> Cursor:
            return Cursor()

    table = scan(Connection(), query="SELECT 1").table()
    assert [str(kind) for kind in table.schema.types] == ["int64", "double", "string"]
    assert table.to_pylist() == [{"a": None, "b": 0.5, "c": None}, {"a": 2, "b": None, "c": "x"}]


def test_rows_of_psycopg_do_not_fill_the_memory(postgres: Postgres) -> None:
    """A cursor without a name would hold all of them at once."""
    query = "SELECT g, repeat('x', 1000) AS t FROM generate_series(1, 300000) AS g"
    with postgres.connect() as connection:
        assert scan(connection, query=query).head(3)["g"].to_pylist() == [1, 2, 3]
        assert connection.execute("SELECT count(*) FROM pg_cursors").fetchone() == (0,)  # closed behind it


def test_errors_of_the_driver_are_ours_with_theirs_as_the_cause(postgres: Postgres, sqlite: sqlite3.Connection) -> None:
    with pytest.raises(DataError, match="the query: no such table: nowhere; fix") as caught:
        scan(sqlite, query="SELECT * FROM nowhere")
    assert isinstance(caught.value.__cause__, sqlite3.OperationalError)
    with postgres.connect() as connection:
        with pytest.raises(UsageError, match='the query: relation "nowhere" does not exist; check the name') as caught:
            scan(connection, query="SELECT * FROM nowhere")
        assert isinstance(caught.value.__cause__, psycopg.errors.UndefinedTable)
        connection.autocommit = False
        late = scan(connection, query="SELECT 1 / (100 - g) AS a FROM generate_series(1, 200) AS g")
        with pytest.raises(DataError, match="division by zero; fix the rows"):
            late.table()
    with duckdb.connect() as connection, pytest.raises(DataError, match="Table with name nowhere does not exist"):
        scan(connection, query="SELECT * FROM nowhere")
    with pytest.raises(UsageError, match="the query: the query has no columns"):
        scan(sqlite, query="CREATE TABLE t (a)")
    with pytest.raises(DataError, match="duplicate column 'a'"):
        scan(sqlite, query="SELECT 1 AS a, 2 AS a")


def test_a_connection_that_breaks_amid_the_rows_is_one_error(postgres: Postgres) -> None:
    clf = BayesClassifier(tune=None).fit({"g": [1.0, 2.0]}, [0, 1])
    connection = postgres.connect()
    rows = scan(connection, query="SELECT g::float8 AS g, g % 2 AS y FROM generate_series(1, 100000) AS g")
    tables = rows.tables()
    next(tables)
    postgres.execute(f"SELECT pg_terminate_backend({connection.info.backend_pid})")
    with pytest.raises(ConnectionError, match="the query: lost the connection to the server"):
        list(tables)
    with pytest.raises(OSError, match="the query"):
        clf.fit(rows, "y")
    assert clf.counts_.rows == 2
    connection.close()


def test_the_transaction_of_the_user_is_left_as_it_is(postgres: Postgres) -> None:
    """Tables that only it sees are read, and what it has changed is neither lost nor made to last."""
    name = created(postgres, "SELECT 1 AS a, 1 AS y")
    with adbc_connection(postgres) as connection:
        with connection.cursor() as cursor:
            cursor.execute(f"INSERT INTO {name} SELECT g, g % 2 FROM generate_series(2, 50) AS g")
            cursor.execute(f"CREATE TEMPORARY TABLE {name}_own AS SELECT * FROM {name}")
        clf = BayesClassifier(tune=None).fit(connection, "y", table=f"{name}_own")
        assert clf.counts_.rows == 50
        rows = scan(connection, query=f"SELECT * FROM {name}")
        assert rows.head(2)["a"].to_pylist() == [1, 2]  # an answer that is cut off
        assert clf.partial_fit(rows, "y").counts_.rows == 100
        assert postgres.execute(f"SELECT count(*) FROM {name}") == [(1,)]
        connection.commit()
    assert postgres.execute(f"SELECT count(*) FROM {name}") == [(50,)]


def test_columns_that_change_between_two_passes_are_named(sqlite: sqlite3.Connection, postgres: Postgres) -> None:
    fill(sqlite, "a, b, y", [(k, k, k % 2) for k in range(20)])
    rows = scan(sqlite, query="SELECT * FROM t")
    sqlite.execute("ALTER TABLE t DROP COLUMN b")
    with pytest.raises(DataError, match="the query: column 'b' no longer exists; scan"):
        BayesClassifier(tune=None).fit(rows, "y")
    dbapi = pytest.importorskip("adbc_driver_duckdb.dbapi")
    with dbapi.connect() as connection:
        with connection.cursor() as cursor:
            cursor.execute("CREATE TABLE t AS SELECT 1 AS a, 2 AS b")
        rows = scan(connection, table="t")
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE t DROP COLUMN b")
        with pytest.raises(DataError, match="column 'b' no longer exists"):
            rows.table()


def test_ibis_tables_are_read_as_they_are() -> None:
    ibis = pytest.importorskip("ibis")
    table = ibis.memtable(pa.table({"a": [1.0, 2.0, 3.0], "b": ["x", None, "y"], "y": [0, 1, 0]}))
    rows = scan(table.filter(table.a > 1.5).mutate(c=table.a * 2), ignore=["a"])
    assert rows.table().to_pylist() == [{"b": None, "y": 1, "c": 4.0}, {"b": "y", "y": 0, "c": 6.0}]
    assert scan(table, types={"a": "text"}).table()["a"].to_pylist() == ["1", "2", "3"]
    with pytest.raises(
        UsageError, match="an Ibis table cannot be combined with a query or a table name; leave query= and table= out"
    ):
        scan(table, query="select 1")
    with pytest.raises(UsageError, match="no column 'z'; the columns are a, b, y"):
        scan(table, ignore=["z"])
    sqlite = ibis.sqlite.connect()
    sqlite.raw_sql("CREATE TABLE t (a real, y text)")
    sqlite.raw_sql("INSERT INTO t VALUES (1.5, 'p'), (2.5, 'q')")
    assert BayesClassifier(tune=None).fit(sqlite.table("t"), "y").classes_.tolist() == ["p", "q"]


def test_tables_in_memory_are_no_databases() -> None:
    """Whatever the names of their columns are."""
    import pandas as pd

    table = pd.DataFrame({"cursor": [1.0, 2.0], "to_pyarrow_batches": [1.0, 1.0], "y": [0, 1]})
    assert BayesClassifier(tune=None).fit(table, "y").schema_.names == ("cursor", "to_pyarrow_batches")


def test_a_connection_needs_a_query(sqlite: sqlite3.Connection) -> None:
    with pytest.raises(UsageError, match="no query or table given for the database"):
        BayesClassifier().fit(sqlite, "y")
    hostile = 'x"; drop table t; --'
    fill(sqlite, "a, y", [(1, 0), (2, 1)])
    sqlite.execute('CREATE TABLE "x""; drop table t; --" AS SELECT * FROM t')
    assert scan(sqlite, table=hostile).table().num_rows == 2
    assert scan(sqlite, table="t").table().num_rows == 2
