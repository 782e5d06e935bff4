"""What goes wrong in a database is one error that says what and where, without a password, and changes no model."""

import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from deciban import BayesClassifier, DataError, UsageError, scan
from deciban.sources import postgres as postgres_source
from deciban.sources.postgres import driver
from tests import PATIENCE
from tests.support.postgres_tables import created, new_name, open_connections
from tests.support.servers import Postgres, new_postgres

LONG = "SELECT g::float8 AS x, g % 2 AS y, repeat('x', 50) AS t FROM generate_series(1, 3000000) AS g"


@pytest.fixture
def clf() -> BayesClassifier:
    return BayesClassifier(tune=None).fit({"x": [1.0, 2.0, 3.0]}, [0, 1, 0])


def check_unchanged(clf: BayesClassifier) -> None:
    same = BayesClassifier(tune=None).fit({"x": [1.0, 2.0, 3.0]}, [0, 1, 0])
    np.testing.assert_array_equal(clf.predict_proba({"x": [1.0, 5.0]}), same.predict_proba({"x": [1.0, 5.0]}))


@pytest.fixture(scope="module")
def mortal() -> Iterator[Postgres]:
    """A server that may be killed; whoever does so starts it again."""
    server = new_postgres()
    yield server
    server.stop()
    shutil.rmtree(server.folder, ignore_errors=True)


def kill_at(piece: int, server: Postgres, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the server stopped when a stream has given so many pieces."""
    cut = postgres_source.in_measured_pieces

    def dying(batches: Any, schema: pa.Schema) -> Iterator[pa.Table]:
        for number, table in enumerate(cut(batches, schema)):
            if number == piece:
                server.stop(mode)
            yield table

    monkeypatch.setattr(postgres_source, "in_measured_pieces", dying)


@pytest.mark.parametrize("mode", ["immediate", "fast"])
def test_a_server_that_goes_away_amid_the_rows_is_one_error(
    mode: str, mortal: Postgres, clf: BayesClassifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = scan(mortal.url, query=LONG, ignore=["t"])
    with monkeypatch.context() as patched:
        kill_at(1, mortal, mode, patched)
        with pytest.raises(ConnectionError) as caught:
            clf.fit(rows, "y")
    place = f"the query (postgresql://tester@127.0.0.1:{mortal.port}/postgres)"
    assert str(caught.value).startswith(f"{place}: lost the connection to the server (")
    assert "s3cr" not in str(caught.value)
    check_unchanged(clf)
    with pytest.raises(ConnectionError, match=r"cannot connect: .* refused .*; check the address, and that"):
        clf.partial_fit(rows, "y")
    check_unchanged(clf)
    mortal.start()
    assert rows.head(2)["x"].to_pylist() == [1.0, 2.0]  # it is as good as before
    few = scan(mortal.url, query=f"SELECT * FROM ({LONG}) AS q LIMIT 100", ignore=["t"])
    assert clf.partial_fit(few, "y").counts_.rows == 103


def test_a_server_that_goes_away_while_rows_are_written_leaves_no_table(
    mortal: Postgres, clf: BayesClassifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = scan(mortal.url, query=LONG)
    with monkeypatch.context() as patched:
        kill_at(2, mortal, "immediate", patched)
        with pytest.raises(ConnectionError, match="lost the connection to the server"):
            clf.predict_to(mortal.url, rows, table="scores")
    mortal.start()
    assert mortal.execute("SELECT to_regclass('scores')::text") == [(None,)]


def test_an_error_amid_the_rows_has_the_words_of_the_server(postgres: Postgres, clf: BayesClassifier) -> None:
    query = "SELECT g::float8 AS x, 1 / (100000 - g) AS z, g % 2 AS y FROM generate_series(1, 200000) AS g"
    with pytest.raises(DataError, match=r"\): division by zero; fix the rows or the query$"):
        clf.fit(postgres.url, "y", query=query)
    with pytest.raises(DataError, match=r"\): division by zero; fix the rows or the query$"):
        scan(postgres.url, query="SELECT 1 / (g - g) AS x FROM generate_series(1, 2) AS g").table()
    check_unchanged(clf)
    assert open_connections(postgres) == 0


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("selec 1", 'syntax error at or near "selec"; fix the query'),
        ("select 1; select 2", "found several statements; give one query"),
        ("select 1; drop table x", "found several statements; give one query"),
        ("select 1) as q; drop table x; --", 'syntax error at or near "\\)"'),
        (
            "select * from nowhere",
            'relation "nowhere" does not exist; check the name of the table .it is case-sensitive',
        ),
        ("select nothing", 'column "nothing" does not exist; check the names of the columns'),
        ("select relnme from pg_class", 'Perhaps you meant to reference the column "pg_class.relname"$'),
        ("insert into t values (1)", "does not exist"),
        ("show all", "syntax error"),
        ("", "no query or table given for the database; give query="),
        (" ; ", "no query or table given for the database; give query="),
        ("-- nothing", "the query has no columns; select at least one column"),
    ],
)
def test_a_query_that_cannot_be_meant_is_refused(query: str, problem: str, postgres: Postgres) -> None:
    with pytest.raises(UsageError, match=problem):
        scan(postgres.url, query=query)


def test_queries_change_nothing(postgres: Postgres) -> None:
    name = created(postgres, "SELECT 1 AS a")
    postgres.execute(f"CREATE FUNCTION {name}_f() RETURNS int LANGUAGE sql AS 'DELETE FROM {name} RETURNING a'")
    with pytest.raises(UsageError, match="cannot execute DELETE in a read-only transaction; deciban reads in"):
        scan(postgres.url, query=f"SELECT {name}_f() AS a").table()
    assert postgres.execute(f"SELECT a FROM {name}") == [(1,)]


@pytest.fixture
def without_password(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody knows a password that is not given."""
    monkeypatch.delenv("PGPASSWORD", raising=False)
    monkeypatch.setenv("PGPASSFILE", "/nowhere")


@pytest.mark.parametrize(
    ("url", "kind", "problem"),
    [
        ("tester:wr0ngword@{host}/postgres", PermissionError, "password authentication failed"),
        ("nobody:wr0ngword@{host}/postgres", PermissionError, "set the password in PGPASSWORD or ~/.pgpass"),
        ("tester@{host}/postgres", PermissionError, "no password supplied"),
        ("{tester}@{host}/nowhere", ConnectionError, 'database "nowhere" does not exist; check the name'),
        ("{tester}@{host}/postgres?sslmode=require", ConnectionError, "SSL was required; set another sslmode="),
        ("{tester}@127.0.0.1:1/postgres", ConnectionError, "check the address, and that the server is running"),
        ("{tester}@nowhere.invalid/postgres", ConnectionError, "could not translate host name"),
        ("{tester}@{host}/postgres?wrong=1", ConnectionError, "invalid URI query parameter"),
    ],
)
def test_what_prevents_a_connection_is_said_without_the_password(
    url: str, kind: type[Exception], problem: str, postgres: Postgres, clf: BayesClassifier, without_password: None
) -> None:
    parts = {"tester": "tester:s3cr%26t%20pass", "host": f"127.0.0.1:{postgres.port}"}
    with pytest.raises(kind) as caught:
        clf.fit(f"postgresql://{url.format(**parts)}", "y", table="t")
    said = str(caught.value)
    assert problem in said
    assert said.startswith("postgresql://")
    assert "\n" not in said
    assert "s3cr" not in said
    assert "wr0ng" not in said
    assert caught.value.__suppress_context__  # nor is it in what that came from
    check_unchanged(clf)


def test_passwords_may_come_from_the_environment_or_a_file(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch, without_password: None, tmp_path: Path
) -> None:
    url = f"postgresql://{postgres.user}@127.0.0.1:{postgres.port}/postgres"
    with monkeypatch.context() as patched:
        patched.setenv("PGPASSWORD", postgres.password)
        assert scan(url, query="SELECT 1 AS a").table().num_rows == 1
    (tmp_path / "pass").write_text(f"127.0.0.1:{postgres.port}:*:{postgres.user}:{postgres.password}\n")
    (tmp_path / "pass").chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "pass"))
    assert scan(url, query="SELECT 1 AS a").table().num_rows == 1


def test_a_user_without_the_right_is_told_so(postgres: Postgres) -> None:
    name, role = created(postgres, "SELECT 1 AS a"), new_name()
    postgres.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'other'")
    url = f"postgresql://{role}:other@127.0.0.1:{postgres.port}/postgres"
    with pytest.raises(PermissionError, match=f"permission denied for table {name}; ask the owner of the database"):
        scan(url, table=name)
    with pytest.raises(PermissionError, match="permission denied for schema public"):
        BayesClassifier(tune=None).fit({"a": [1, 2]}, [0, 1]).predict_to(url, {"a": [1]}, table=f"{name}_scores")


def test_a_query_that_takes_too_long_for_the_server_is_told_so(postgres: Postgres, clf: BayesClassifier) -> None:
    url = f"{postgres.url}?options=-c%20statement_timeout%3D300"
    late = f"SELECT *, CASE WHEN x > 1000 THEN pg_sleep(0.01)::text END AS z FROM ({LONG}) AS q"
    for query in (late, "SELECT pg_sleep(9)::text AS x, 1 AS y"):
        with pytest.raises(TimeoutError, match="canceling statement due to statement timeout; raise the timeout"):
            clf.fit(url, "y", query=query)
    check_unchanged(clf)


def learn_for_ever(clf: BayesClassifier, rows: Any) -> None:
    while True:
        clf.fit(rows, "y")


@pytest.mark.parametrize("query", ["SELECT pg_sleep(900)::text AS x, 1 AS y", LONG])
def test_an_interrupt_cancels_the_query(query: str, postgres: Postgres, clf: BayesClassifier) -> None:
    """Also while the driver waits for the first row."""
    rows = scan(postgres.url, query=query)
    main = threading.main_thread().ident
    assert main is not None
    threading.Timer(0.7, signal.pthread_kill, (main, signal.SIGINT)).start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        learn_for_ever(clf, rows)
    assert time.monotonic() - start < PATIENCE  # of the 15 minutes that it would take
    assert open_connections(postgres) == 0


def test_an_interrupt_while_connecting_leaves_no_connection(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is opened behind the back of who has left is closed, whoever else still knows of it."""
    left, done, opened = threading.Event(), threading.Event(), []
    connect = driver().connect

    def slow(url: str) -> Any:
        left.wait(30.0)
        opened.append(connect(url))
        done.set()
        return opened[0]

    def interrupted(connecting: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(driver(), "connect", slow)
    monkeypatch.setattr("deciban.sources.postgres.wait_for_result", interrupted)
    with pytest.raises(KeyboardInterrupt):
        scan(postgres.url, query="SELECT 1 AS a")
    left.set()
    assert done.wait(30.0)
    assert open_connections(postgres) == 0


def test_without_the_driver_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "adbc_driver_postgresql", None)
    with pytest.raises(UsageError, match=r"which is not installed; run pip install '\.\[postgres\]'"):
        scan("postgresql://localhost/db", table="t")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "no query or table given for the database; give query='select ...', or table='schema.table'"),
        ({"query": "select 1 as a", "table": "t"}, "query= and table= cannot be combined"),
        ({"table": ""}, "no query or table given for the database"),
        ({"table": "a..b"}, "the name '' is empty for PostgreSQL"),
        ({"table": "x" * 64}, "is too long for PostgreSQL"),
        ({"query": "select 1 as a", "thousands": ","}, "thousands= applies to CSV and Excel files"),
        ({"query": "select 1 as a", "ignore": ["b"]}, "no column 'b'; the columns are a"),
        ({"query": "select 1 as a", "types": {"b": "text"}}, "no column 'b'; the columns are a"),
    ],
)
def test_what_is_asked_of_a_database_makes_sense(arguments: dict[str, Any], problem: str, postgres: Postgres) -> None:
    with pytest.raises(UsageError) as caught:
        scan(postgres.url, **arguments)
    assert problem in str(caught.value)


def test_databases_and_files_are_told_apart(postgres: Postgres, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="query= and table= apply to databases; give a URL such as"):
        scan(tmp_path / "a.csv", query="select 1")
    with pytest.raises(UsageError, match="only one source can be read if it is a database"):
        scan([postgres.url, "a.csv"])
    with pytest.raises(UsageError, match="no query or table given for the database"):
        BayesClassifier().fit(postgres.url, "y")
    with pytest.raises(
        UsageError, match=r"in Python, pass deciban.scan\(url, query='select ...'\) to predict and other methods"
    ):
        BayesClassifier(tune=None).fit({"a": [1.0, 2.0]}, [0, 1]).predict(postgres.url)
    with pytest.raises(DataError, match=r"no target column 'y'; columns: 'a'"):
        BayesClassifier().fit(postgres.url, "y", query="select 1 as a")
    with pytest.raises(DataError, match="the table has no rows"):
        BayesClassifier().fit(postgres.url, "y", query="select 1 as a, 1 as y where false")
