"""Predictions and decisions are written into a table in one transaction: all rows, or none."""

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
import pytest

from deciban import BayesClassifier, DataError, UsageError, load, scan
from deciban.sources import postgres as write_module
from deciban.sources.postgres import write_to_table
from tests.support.postgres_tables import created, new_name, open_connections, stored
from tests.support.servers import Postgres
from tests.support.sources import mixed

HOSTILE = ['x"; drop table t; --', "x'); drop table t; --", "%s {0} $1 \\ é🏔️ ;"]

TABLE = mixed(2_000)
CLF = BayesClassifier(tune=None).fit(TABLE, "label")


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deciban.sources.source.STREAM_ROWS", 300)


def content(server: Postgres, name: str) -> pa.Table:
    return scan(server.url, table=name).table()


def test_what_is_written_is_what_is_predicted(postgres: Postgres, small_pieces: None) -> None:
    """From the same database, from memory, with and without the probability of each class."""
    rows, name = scan(postgres.url, table=stored(postgres, TABLE)), new_name()
    assert CLF.predict_to(postgres.url, rows, table=f"public.{name}", probabilities=True) == 2_000
    found = content(postgres, name)
    assert found.select(TABLE.column_names) == TABLE
    assert found["predicted"].to_pylist() == CLF.predict(TABLE).tolist()
    posterior = CLF.predict_proba(TABLE)
    for k, label in enumerate(CLF.classes_):
        np.testing.assert_array_equal(found[f"P({label})"], posterior[:, k])
    assert CLF.predict_to(postgres.url, TABLE, table=f"{name}_memory") == 2_000
    assert content(postgres, f"{name}_memory") == found.select([*TABLE.column_names, "predicted", "probability"])
    assert CLF.decide_to(postgres.url, rows, reject=0.2, table=f"{name}_decided") == 2_000
    decided = content(postgres, f"{name}_decided")
    assert decided["decision"].to_pylist() == CLF.decide(TABLE, reject=0.2).decision.tolist()
    assert open_connections(postgres) == 0


def test_files_are_written_into_a_database_with_their_types(postgres: Postgres, tmp_path: Path) -> None:
    (tmp_path / "days.csv").write_text("height,born,town\n170.5,2001-02-03,Ulm\n,2002-03-04,\n")
    name = new_name()
    CLF.predict_to(postgres.url, tmp_path / "days.csv", table=name)
    rows = content(postgres, name).to_pylist()
    assert rows[0] | {"predicted": "", "probability": 0} == {
        "height": 170.5, "born": dt.date(2001, 2, 3), "town": "Ulm", "predicted": "", "probability": 0
    }  # fmt: skip
    assert (rows[1]["height"], rows[1]["town"]) == (None, None)


def test_a_table_that_is_there_is_kept_replaced_or_continued(postgres: Postgres) -> None:
    name = new_name()
    assert CLF.predict_to(postgres.url, TABLE.slice(0, 10), table=name) == 10
    with pytest.raises(
        UsageError, match=rf'^{name} \(.*\): relation "{name}" already exists; write to another table, or'
    ):
        CLF.predict_to(postgres.url, TABLE.slice(0, 20), table=name)
    assert content(postgres, name).num_rows == 10
    CLF.predict_to(postgres.url, TABLE.slice(10, 20), table=name, if_exists="append")
    assert content(postgres, name).select(TABLE.column_names) == TABLE.slice(0, 30)
    CLF.predict_to(postgres.url, TABLE.slice(5, 3).select(["town"]), table=name, if_exists="replace")
    assert content(postgres, name).column_names == ["town", "predicted", "probability"]
    CLF.predict_to(postgres.url, TABLE.slice(5, 3).select(["town"]), table=f"{name}_new", if_exists="replace")
    with pytest.raises(UsageError, match=r'column "height" of relation .* does not exist'):
        CLF.predict_to(postgres.url, TABLE.slice(0, 5).select(["height"]), table=name, if_exists="append")
    with pytest.raises(UsageError, match=f'relation "{name}_not" does not exist'):
        CLF.predict_to(postgres.url, TABLE.slice(0, 5), table=f"{name}_not", if_exists="append")
    with pytest.raises(UsageError, match="if_exists='keep': choose 'fail', 'replace', 'append'"):
        CLF.predict_to(postgres.url, TABLE, table=name, if_exists="keep")  # type: ignore[arg-type]
    assert content(postgres, name).num_rows == 3


def test_rows_are_appended_to_columns_of_other_types(postgres: Postgres) -> None:
    """The server casts them where it can; columns that are not written have their defaults."""
    name = new_name()
    columns = (
        "id serial, town varchar(40), visits numeric, predicted text, probability real, at timestamp DEFAULT now()"
    )
    postgres.execute(f"CREATE TABLE {name} ({columns})")
    CLF.predict_to(postgres.url, TABLE.select(["town", "visits"]), table=name, if_exists="append")
    assert postgres.execute(f"SELECT count(*), count(at), max(id) FROM {name}") == [(2_000, 2_000, 2_000)]
    assert postgres.execute(f"SELECT sum(visits) FROM {name}") == [(pa.compute.sum(TABLE["visits"]).as_py(),)]


def write_all(server: Postgres, name: str, tables: Iterator[pa.Table], if_exists: Any = "fail") -> None:
    with write_to_table(server.url, name, if_exists) as write:
        for table in tables:
            write(table)


def failing() -> Iterator[pa.Table]:
    yield from (TABLE, TABLE, TABLE)
    raise KeyError("somewhere in the middle")


@pytest.mark.parametrize("if_exists", ["fail", "replace", "append"])
def test_an_error_half_way_leaves_everything_as_it_was(if_exists: Any, postgres: Postgres) -> None:
    name = new_name() if if_exists == "fail" else stored(postgres, TABLE.slice(0, 7))
    with pytest.raises(KeyError, match="middle"):
        write_all(postgres, name, failing(), if_exists)
    if if_exists == "fail":
        assert postgres.execute(f"SELECT to_regclass('{name}')::text") == [(None,)]
    else:
        assert content(postgres, name) == TABLE.slice(0, 7)
    assert open_connections(postgres) == 0


def test_readers_see_the_old_rows_until_all_new_ones_are_there(postgres: Postgres) -> None:
    name = stored(postgres, TABLE.slice(0, 7))
    with write_to_table(postgres.url, name, "replace") as write:
        write(TABLE)
        assert content(postgres, name).num_rows == 7  # and nobody waits for a lock
    assert content(postgres, name).num_rows == 2_000


def test_what_is_read_is_not_replaced(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is any table that others use, for which is waited only so long."""
    monkeypatch.setattr(write_module, "FIRST_WAIT", "200ms")
    name = stored(postgres, TABLE)
    for rows in (scan(postgres.url, table=name), scan(postgres.url, query=f"select * from {name} where visits > 0")):
        with pytest.raises(TimeoutError, match="canceling statement due to lock timeout; the table is in use, "):
            CLF.predict_to(postgres.url, rows, table=name, if_exists="replace")
    assert content(postgres, name) == TABLE


def test_what_the_server_refuses_is_known_before_the_first_row_is_written(postgres: Postgres) -> None:
    rest = iter([TABLE] * 5)
    with pytest.raises(UsageError, match='schema "nowhere" does not exist; create it first'):
        write_all(postgres, "nowhere.scores", rest)
    assert len(list(rest)) == 4


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_names_of_tables_columns_classes_and_values_mean_themselves(hostile: str, postgres: Postgres) -> None:
    """As table, schema, column, target, class and level: what they say is not done."""
    postgres.execute("CREATE TABLE IF NOT EXISTS t (a int)")
    quoted = psycopg.sql.Identifier(hostile).as_string(None)
    schema = psycopg.sql.Identifier(f"{hostile} schema").as_string(None)
    postgres.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
    labels = [hostile, "other"] * 20
    table = pa.table({hostile: labels, f"{hostile} y": labels[::-1], "x": np.arange(40.0)})
    stored(postgres, table, hostile)
    clf = BayesClassifier(tune=None).fit(postgres.url, f"{hostile} y", table=hostile)
    assert clf.schema_.names == (hostile, "x")
    assert sorted(clf.classes_.tolist()) == sorted({hostile, "other"})
    rows = scan(postgres.url, query=f"SELECT * FROM {quoted}", types={hostile: "text"}, ignore=["x"])
    found = pa.concat_tables(clf.predict_batches(rows, probabilities=True))
    target = f"{hostile} schema.{hostile}"
    assert clf.predict_to(postgres.url, rows, table=target, probabilities=True) == 40
    assert content(postgres, target) == found
    assert clf.predict_to(postgres.url, rows, table=target, probabilities=True, if_exists="replace") == 40
    assert postgres.execute("SELECT to_regclass('t')::text") == [("t",)]
    postgres.execute(f"DROP TABLE {quoted}; DROP SCHEMA {schema} CASCADE")


def test_names_that_the_server_would_cut_off_are_refused(postgres: Postgres) -> None:
    name = new_name()
    table = pa.table({"a" * 80: ["x", "y"], "y": [0, 1]})
    clf = BayesClassifier(tune=None).fit(table, "y")
    with pytest.raises(UsageError, match="is too long for PostgreSQL; rename it"):
        clf.predict_to(postgres.url, table, table=name)
    with pytest.raises(UsageError, match="is too long for PostgreSQL; rename it"):
        clf.predict_to(postgres.url, table, table="b" * 70)
    assert postgres.execute(f"SELECT to_regclass('{name}')::text") == [(None,)]


def test_a_table_is_named_for_a_database_and_for_nothing_else(postgres: Postgres, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no table of the database given; give table="):
        CLF.predict_to(postgres.url, TABLE)
    with pytest.raises(UsageError, match="table= applies to databases; give a URL"):
        CLF.predict_to(tmp_path / "a.csv", TABLE, table="scores")
    assert CLF.decide_to(tmp_path / "a.csv", TABLE, reject=0.3) == 2_000


def test_texts_that_the_database_cannot_hold_are_refused(postgres: Postgres) -> None:
    name = new_name()
    with pytest.raises(DataError, match="invalid byte sequence"):
        CLF.predict_to(postgres.url, pa.table({"town": ["a\0b"]}), table=name)
    assert postgres.execute(f"SELECT to_regclass('{name}')::text") == [(None,)]


def test_no_password_is_in_a_model_file(postgres: Postgres, tmp_path: Path) -> None:
    name = created(postgres, "SELECT g::float8 AS x, g % 2 AS y FROM generate_series(1, 50) AS g")
    clf = BayesClassifier().fit(postgres.url, "y", table=name)
    clf.save(tmp_path / "m.dcb")
    written = (tmp_path / "m.dcb").read_bytes()
    for secret in (b"s3cr", b"127.0.0.1", b"postgresql://"):
        assert secret not in written
    assert load(tmp_path / "m.dcb").partial_fit(postgres.url, "y", table=name).counts_.rows == 100
