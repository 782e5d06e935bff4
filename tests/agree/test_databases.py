"""The same rows through databases give the same model as in memory: PostgreSQL, connections of the user's, Ibis."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from deciban import BayesClassifier, merge, scan
from tests.agree.databases import Databases
from tests.agree.models import FEW, LABELED, MANY, TABLES, assert_same, expected
from tests.support.asserts import assert_same_typed_counts
from tests.support.postgres_tables import stored
from tests.support.servers import Postgres
from tests.support.sources import mixed, parts

DATABASES = tuple(name for name in vars(Databases) if not name.startswith("_"))
Give = Callable[[pa.Table], Any]


@pytest.fixture
def databases(postgres: Postgres, tmp_path: Path) -> Iterator[Databases]:
    with ExitStack() as stack:
        yield Databases(postgres, tmp_path, stack)


@pytest.mark.parametrize(
    ("rows", "tune", "database"),
    [(FEW, None, database) for database in DATABASES]
    + [(MANY, None, database) for database in ("postgres_query", "psycopg", "duckdb_rows", "ibis")]
    + [(FEW, "auto", database) for database in ("postgres", "duckdb_rows")],
)
def test_a_model_does_not_depend_on_the_database(rows: int, tune: Any, database: str, databases: Databases) -> None:
    """Discrete counts to the bit, moments to 1e-12, the same predictions of the rows wherever they are."""
    source = getattr(databases, database)(TABLES[rows])
    model = expected(rows, tune, "arrow")
    found = BayesClassifier(tune=tune).fit(source, "label")
    assert_same(found, model)
    assert found.target_ == "label"
    posterior = model.predict_proba(TABLES[rows])
    np.testing.assert_allclose(model.predict_proba(source), posterior, rtol=0, atol=1e-10)
    if tune is not None:
        assert found.tuning_ is not None
        assert model.tuning_ is not None
        assert found.schema_ == model.schema_
        np.testing.assert_allclose(found.tuning_.weights, model.tuning_.weights, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("target", ["whole", "flag"])
@pytest.mark.parametrize("database", [name for name in DATABASES if name != "postgres_query"])
def test_labels_keep_their_type(database: str, target: str, databases: Databases) -> None:
    table = LABELED[300, target]
    found = BayesClassifier(tune=None).fit(getattr(databases, database)(table), "label")
    assert_same_typed_counts(found.counts_, BayesClassifier(tune=None).fit(table, "label").counts_)


@pytest.mark.parametrize("database", ["postgres", "adbc", "psycopg", "ibis"])
def test_rows_are_learned_later_forgotten_and_judged(database: str, databases: Databases) -> None:
    """What takes rows takes those of a database: the answers are those of the table."""
    first, second, third = parts(TABLES[FEW], 3)
    give = getattr(databases, database)
    clf = BayesClassifier(tune=None).fit(give(first), "label").partial_fit(give(second), "label")
    shard = clf.shard(give(third), "label")
    assert_same(clf + shard, expected(FEW, None, "arrow"))
    assert_same(merge([clf, shard]), expected(FEW, None, "arrow"))
    clf.partial_fit(give(third), "label").forget(give(second), "label")
    whole = BayesClassifier(tune=None).fit(first, "label").partial_fit(third, "label")
    np.testing.assert_allclose(clf.predict_proba(second), whole.predict_proba(second), atol=1e-9)
    rows = give(second)
    assert clf.score(rows, "label") == whole.score(second, "label")
    assert clf.evaluate(rows, "label").log_loss == pytest.approx(whole.evaluate(second, "label").log_loss, abs=1e-9)
    left_out = clf.leave_one_out(give(first), "label").posterior
    np.testing.assert_allclose(left_out, whole.leave_one_out(first, "label").posterior, atol=1e-9)
    folds = BayesClassifier(tune=None).cross_validate(rows, "label", folds=3)
    assert folds.accuracy == BayesClassifier(tune=None).cross_validate(second, "label", folds=3).accuracy
    predicted = pa.concat_tables(clf.predict_batches(rows, probabilities=True))
    assert predicted["predicted"].to_pylist() == clf.predict(second).tolist()
    decided = pa.concat_tables(clf.decide_batches(rows, reject=0.2))
    assert decided["decision"].to_pylist() == clf.decide(second, reject=0.2).decision.tolist()


def test_queries_and_tables_are_given_beside_the_database(postgres: Postgres) -> None:
    name = stored(postgres, TABLES[FEW])
    model = expected(FEW, None, "arrow")
    assert_same(BayesClassifier(tune=None).fit(postgres.url, "label", table=f"public.{name}"), model)
    found = BayesClassifier(tune=None).fit(postgres.url, "label", query=f"select * from {name} where visits < 20")
    found.partial_fit(postgres.url, "label", query=f"select * from {name} where visits >= 20 or visits is null")
    np.testing.assert_array_equal(found.counts_.class_weight, model.counts_.class_weight)
    some = f"select * from {name} where visits < 20"
    labels = scan(postgres.url, query=some).table()["label"]
    assert found.shard(postgres.url, "label", query=some).counts_.rows == len(labels) - labels.null_count
    found.forget(postgres.url, "label", query=some)
    with postgres.connect() as connection:
        assert found.forget(connection, "label", query=f"select * from {name} where visits = 25").counts_.rows > 0


def test_the_pieces_of_a_stream_do_not_depend_on_the_batches(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = stored(postgres, mixed(3_000))
    pieces = []
    for size in (1 << 12, 1 << 22):
        monkeypatch.setattr("deciban.sources.postgres.BATCH_BYTES", size)
        monkeypatch.setattr("deciban.sources.source.STREAM_ROWS", 700)
        pieces.append([piece.num_rows for piece in scan(postgres.url, table=name).tables()])
    assert pieces[0] == pieces[1] == [700, 700, 700, 700, 200]
