"""All passes of a fit read one moment of the database; connections are closed behind every pass, however it ends."""

import pickle
from typing import Any

import numpy as np
import psycopg
import pytest

from deciban import BayesClassifier, DataError, scan
from deciban.fitting import fit
from tests.support.postgres_tables import created, open_connections
from tests.support.servers import Postgres

ROWS = 2_000
QUERY = f"SELECT g AS id, (g % 7)::float8 AS x, 'k' || g % 3 AS kind, g % 2 AS y FROM generate_series(1, {ROWS}) AS g"
MORE = "INSERT INTO {name} SELECT g, 99, 'new', 1 FROM generate_series(1, 500) AS g"


def test_a_table_that_grows_while_it_is_read_has_the_same_rows_in_every_pass(postgres: Postgres) -> None:
    name = created(postgres, QUERY)
    rows = scan(postgres.url, table=name)
    with rows.steady():
        first = rows.table()
        postgres.execute(MORE.format(name=name))
        postgres.execute(f"DELETE FROM {name} WHERE id < 100")
        assert rows.table() == first
        with rows.steady():  # whoever holds it longest decides
            assert rows.without(["x"]).table() == first.drop_columns(["x"])
        assert rows.table() == first
    assert rows.table().num_rows == ROWS + 500 - 198
    assert open_connections(postgres) == 0


def test_a_fit_knows_no_rows_that_come_while_it_counts(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are added between the sample, on which the columns are looked at, and the pass that counts."""
    name = created(postgres, QUERY)
    count = fit.count_examples

    def grown(*arguments: Any) -> Any:
        postgres.execute(MORE.format(name=name))
        return count(*arguments)

    for module in ("deciban.fitting.fit", "deciban.fitting.update"):
        monkeypatch.setattr(f"{module}.count_examples", grown)
    monkeypatch.setattr("deciban.tables.examples.SAMPLE_ROWS", 1_500)  # so that there are two passes
    clf = BayesClassifier(tune=None).fit(postgres.url, "y", table=name)
    assert clf.counts_.rows == ROWS
    assert "new" not in str(clf.estimates())
    assert clf.partial_fit(postgres.url, "y", table=name).counts_.rows == 2 * ROWS + 500
    assert open_connections(postgres) == 0


def test_tables_that_are_read_cannot_be_altered_meanwhile(postgres: Postgres) -> None:
    name = created(postgres, QUERY)
    rows = scan(postgres.url, table=name)
    with rows.steady(), postgres.connect() as other:
        other.execute("SET lock_timeout = '100ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            other.execute(f"ALTER TABLE {name} DROP COLUMN x")
    postgres.execute(f"ALTER TABLE {name} DROP COLUMN x")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            "ALTER TABLE {name} DROP COLUMN x",
            "'x' no longer exists; scan it again",
        ),
        ("ALTER TABLE {name} RENAME kind TO sort", "column 'kind' no longer exists"),
        (
            "ALTER TABLE {name} ALTER x TYPE text",
            "column 'x' is text, but was double precision when the query was opened",
        ),
        ("ALTER TABLE {name} ALTER y TYPE boolean USING y = 1", "column 'y' is boolean, but was integer"),
        ("DROP TABLE {name}", "does not exist; .*it has changed since it was opened: scan it again"),
    ],
)
def test_a_column_that_changes_between_two_passes_is_named(change: str, problem: str, postgres: Postgres) -> None:
    name = created(postgres, QUERY)
    rows = scan(postgres.url, table=name)
    clf = BayesClassifier(tune=None).fit(rows, "y")
    before = clf.predict_proba({"x": [1.0]})
    postgres.execute(change.format(name=name))
    for call in (lambda: clf.fit(rows, "y"), lambda: clf.partial_fit(rows, "y"), rows.table):
        with pytest.raises(DataError, match=problem):
            call()
    np.testing.assert_array_equal(clf.predict_proba({"x": [1.0]}), before)
    assert open_connections(postgres) == 0


def test_columns_that_come_later_do_not_disturb(postgres: Postgres) -> None:
    name = created(postgres, QUERY)
    rows = scan(postgres.url, table=name)
    postgres.execute(f"ALTER TABLE {name} ADD COLUMN more int")
    assert rows.table().column_names == ["id", "x", "kind", "y"]


def test_passes_may_run_side_by_side_and_be_cut_off(postgres: Postgres) -> None:
    long = "SELECT g, repeat('x', 100) AS t FROM generate_series(1, 3000000) AS g"
    rows = scan(postgres.url, query=long)
    with rows.steady():
        for one, other in zip(rows.tables(), rows.tables(), strict=True):
            assert one == other
            break
        assert rows.head(3)["g"].to_pylist() == [1, 2, 3]
        assert rows.at([30_000])["g"].to_pylist() == [30_001]
    assert open_connections(postgres) == 0


def test_a_source_can_be_sent_to_another_process(postgres: Postgres) -> None:
    rows = scan(postgres.url, query="SELECT 1 AS a, 2.5::numeric AS b")
    with rows.steady():
        sent = pickle.loads(pickle.dumps(rows))
    assert sent.table().to_pylist() == [{"a": 1, "b": 2.5}]
    assert "s3cr" not in repr(rows) + str(rows) + rows.name + repr(vars(rows))


def test_rows_of_large_tables_come_in_the_same_order_each_time(postgres: Postgres) -> None:
    """Several processes, or scans that join in where another one is, would mix them."""
    settings = postgres.execute("SHOW max_parallel_workers_per_gather")
    assert settings != [("0",)]
    query = (
        "SELECT current_setting('max_parallel_workers_per_gather') AS a, current_setting('synchronize_seqscans') AS b"
    )
    assert scan(postgres.url, query=query).table().to_pylist() == [{"a": "0", "b": "off"}]
