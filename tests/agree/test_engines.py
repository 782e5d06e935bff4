"""Rows that are counted by the engine that has them give the model that reading them gives."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from deciban import BayesClassifier, Binned, DataError, Text, UsageError, scan
from deciban.sources.duckdb import DuckDbSource
from deciban.sources.postgres import PostgresSource
from deciban.sources.spark import SparkRows
from tests.agree.databases import Databases
from tests.agree.models import FEW, MANY, TABLES, assert_same, expected
from tests.support.asserts import assert_same_typed_counts
from tests.support.postgres_tables import adbc_connection, created, stored
from tests.support.servers import Postgres
from tests.support.sources import as_json_lines, as_parquet, as_parquet_folder, as_query, mixed, parts

FILES = {"parquet": as_parquet, "parquet_folder": as_parquet_folder, "query": as_query, "json_lines": as_json_lines}
ENGINES = [*FILES, "relation", "postgres", "postgres_query", "spark"]
Give = Callable[[pa.Table], Any]


@pytest.fixture
def give(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Give]:
    """What makes a table of an engine."""
    engine = request.param
    if engine in FILES:
        folders = iter(range(9))

        def in_files(table: pa.Table) -> Any:
            folder = tmp_path / str(next(folders))
            folder.mkdir()
            return FILES[engine](table, folder)()

        yield in_files
    elif engine == "relation":
        with duckdb.connect() as connection:
            yield lambda table: connection.from_arrow(table)
    elif engine == "spark":
        session = request.getfixturevalue("spark")
        yield lambda table: session.createDataFrame(table).repartition(3)
    else:
        with ExitStack() as stack:
            yield getattr(Databases(request.getfixturevalue("postgres"), tmp_path, stack), engine)


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """No rows are read but those of a sample; for this, those of files are hashed here, once."""

    def refuse(*arguments: Any) -> Any:
        raise AssertionError("rows are read")

    read, passes = DuckDbSource.tables, iter([True])

    def read_once(scan: DuckDbSource) -> Any:
        return read(scan) if next(passes, False) else refuse()

    monkeypatch.setattr(DuckDbSource, "tables", read_once)
    monkeypatch.setattr(PostgresSource, "tables", refuse)
    monkeypatch.setattr(SparkRows, "tables", refuse)
    monkeypatch.setattr(SparkRows, "each_part", refuse)


@pytest.mark.usefixtures("unread")
@pytest.mark.parametrize("give", ENGINES, indirect=True)
def test_a_model_does_not_depend_on_who_counts(give: Give) -> None:
    found = BayesClassifier(tune=None).fit(give(TABLES[MANY]), "label", pushdown=True)
    assert_same(found, expected(MANY, None, "arrow"))


@pytest.mark.usefixtures("unread")
@pytest.mark.parametrize("give", ["postgres"], indirect=True)
def test_a_tuned_model_does_not_depend_on_who_counts(give: Give) -> None:
    """The sample has the same rows, whoever draws it."""
    table = mixed(17_000)
    model = BayesClassifier().fit(table, "label")
    found = BayesClassifier().fit(give(table), "label", pushdown=True)
    assert_same(found, model)
    assert found.tuning_ is not None
    assert model.tuning_ is not None
    assert found.schema_ == model.schema_
    np.testing.assert_allclose(found.tuning_.weights, model.tuning_.weights, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("give", ["parquet", "postgres", "adbc", "spark"], indirect=True)
def test_rows_are_learned_later_and_forgotten_in_the_engine(give: Give) -> None:
    first, second, third = parts(TABLES[FEW], 3)
    clf = BayesClassifier(tune=None).fit(first, "label")
    clf.partial_fit(give(second), "label", pushdown=True)
    assert_same(clf + clf.shard(give(third), "label", pushdown=True), expected(FEW, None, "arrow"))
    before = BayesClassifier(tune=None).fit(first, "label").counts_
    assert_same_typed_counts(clf.forget(give(second), "label", pushdown=True).counts_, before)


def test_weights_and_declared_classes_are_as_when_rows_are_read(postgres: Postgres) -> None:
    weights = np.random.default_rng(1).integers(0, 3, MANY)
    table = TABLES[MANY].append_column("times", pa.array(weights))
    source = scan(postgres.url, table=stored(postgres, table))
    found = BayesClassifier(tune=None).fit(source, "label", "times", pushdown=True)
    assert_same_typed_counts(found.counts_, BayesClassifier(tune=None).fit(table, "label", "times").counts_)
    strict = BayesClassifier(tune=None, classes=["no", "yes"])
    with pytest.raises(DataError, match=r"the label 'perhaps' is not among the declared classes \['no', 'yes'\]"):
        strict.fit(source, "label", "times", pushdown=True)
    assert not hasattr(strict, "fitted_")


@pytest.mark.parametrize("give", ["parquet"], indirect=True)
def test_rows_that_do_not_count_do_not_matter_in_the_sample(give: Give) -> None:
    """They would allow coarser bins than those that count."""
    rng = np.random.default_rng(3)
    rows = 20_000
    part = np.arange(rows) % 4
    x = np.where(part < 2, rng.integers(0, 9, rows), rng.normal(size=rows))
    label = pa.array(np.array(["a", "b", "a", ""])[part], mask=part == 3)
    table = pa.table({"x": x, "label": label, "weight": np.where(part == 2, 0.0, 1.0)})
    found = BayesClassifier({"x": Binned()}, tune=None).fit(give(table), "label", "weight", pushdown=True)
    assert_same_typed_counts(
        found.counts_, BayesClassifier({"x": Binned()}, tune=None).fit(table, "label", "weight").counts_
    )


def test_texts_are_read_and_all_else_is_counted(postgres: Postgres) -> None:
    rng = np.random.default_rng(2)
    words = np.array(["red", "green", "blue", "gray"])
    table = mixed(20_000).append_column(
        "note", pa.array([" ".join(row) for row in words[rng.integers(0, 4, (20_000, 5))]])
    )
    source = scan(postgres.url, table=stored(postgres, table))
    clf = BayesClassifier({"note": Text()}, tune=None)
    with pytest.warns(UserWarning, match="pushdown=True: SQL cannot count 'note'; this column is read instead") as told:
        clf.fit(source, "label", pushdown=True)
    assert told[0].filename == __file__
    assert_same_typed_counts(clf.counts_, BayesClassifier({"note": Text()}, tune=None).fit(table, "label").counts_)


def test_rows_that_no_engine_has_are_refused(tmp_path: Path) -> None:
    clf = BayesClassifier()
    with pytest.raises(UsageError, match="pushdown=True: the rows are in memory, not in a database"):
        clf.fit(TABLES[FEW], "label", pushdown=True)
    (tmp_path / "table.csv").write_text("x,label\n1,a\n2,b\n")
    with pytest.raises(
        UsageError, match=r"table\.csv: pushdown=True: CSV files cannot be counted by SQL; leave pushdown="
    ):
        clf.fit(tmp_path / "table.csv", "label", pushdown=True)
    with pytest.raises(UsageError, match="pushdown='database': expected True or False"):
        clf.fit(TABLES[FEW], "label", pushdown="database")  # type: ignore[arg-type]
    query = f"sql: SELECT * FROM '{tmp_path}/table.csv'"
    assert clf.fit(query, "label", pushdown=True).classes_.tolist() == ["a", "b"]


def test_the_server_says_what_it_cannot_count(postgres: Postgres) -> None:
    """An error of the server in one line, and the model as it was."""
    name = created(postgres, "SELECT k::float8 AS x, (k % 2)::text AS label FROM generate_series(1, 20000) AS k")
    clf = BayesClassifier(tune=None).fit(scan(postgres.url, table=name), "label")
    before = clf.counts_
    query = f"SELECT 1 / (20000 - x)::int AS x, label FROM {name} ORDER BY x"
    with pytest.raises(DataError, match=r"^the query .*: division by zero; fix the rows or the query$"):
        clf.partial_fit(postgres.url, "label", query=query, pushdown=True)
    infinite = f"SELECT CASE x WHEN 19999 THEN 'inf' ELSE x END AS x, label FROM {name}"
    with pytest.raises(DataError, match=r"^the query .*, column 'x': found inf, expected a finite number"):
        clf.partial_fit(postgres.url, "label", query=infinite, pushdown=True)
    assert clf.counts_ is before
    with adbc_connection(postgres) as connection:  # whose transaction goes on
        with connection.cursor() as cursor:
            cursor.execute(
                "CREATE TEMPORARY TABLE mine AS SELECT 1e200::float8 AS x, 'a' AS label FROM generate_series(1, 9)"
            )
        with pytest.raises(DataError, match=r"column 'x': found 1e.200, expected a number up to 1e"):
            clf.partial_fit(connection, "label", table="mine", pushdown=True)
        assert scan(connection, table="mine").table().num_rows == 9
