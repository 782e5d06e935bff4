"""The order of rows, and where they are, change neither the sample nor what columns are taken for."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from deciban import BayesClassifier, scan
from deciban.fitting.fit import open_examples
from deciban.tables.table import Frame
from tests.support.postgres_tables import stored
from tests.support.servers import Postgres
from tests.support.sources import as_csv, as_json_lines, as_parquet, mixed

ROWS = 30_000


def borderline() -> pa.Table:
    """Columns of ten whole numbers, and an eleventh in one row: codes if the row is not in the sample."""
    rng = np.random.default_rng(5)
    table = mixed(ROWS)
    for k in range(8):
        cells = rng.integers(0, 10, ROWS)
        cells[rng.integers(0, ROWS)] = 10
        table = table.append_column(f"code{k}", pa.array(cells))
    return table


TABLE = borderline()
ORDERS: dict[str, Callable[[], pa.Table]] = {
    "as it is": lambda: TABLE,
    "turned around": lambda: TABLE.take(np.arange(ROWS)[::-1]),
    "sorted": lambda: TABLE.sort_by("height"),
    "shuffled": lambda: TABLE.take(np.random.default_rng(6).permutation(ROWS)),
}


def schema_of(rows: Any, **more: Any) -> list[str]:
    """The columns with their families and the reasons for these, which have numbers of the sample."""
    return str(BayesClassifier(tune=None).fit(rows, "label", **more).schema_).splitlines()


def test_the_table_is_borderline() -> None:
    """Some of its columns are codes in a sample, and some are not."""
    codes = [line for line in schema_of(TABLE) if line.startswith("code")]
    assert 0 < sum("Categorical" in line for line in codes) < len(codes)


@pytest.mark.parametrize("order", ORDERS)
def test_rows_in_any_order_have_one_schema(order: str, tmp_path: Path) -> None:
    table, expected = ORDERS[order](), schema_of(TABLE)
    assert schema_of(table) == expected
    for write in (as_parquet, as_csv, as_json_lines):
        assert schema_of(write(table, tmp_path)()) == expected
    with duckdb.connect() as connection:
        connection.register("given", table)
        assert schema_of(connection.table("given"), pushdown=True) == expected
        assert schema_of(connection, table="given", pushdown=True) == expected


@pytest.mark.parametrize("order", ORDERS)
def test_postgres_has_the_same_sample_in_any_order(order: str, postgres: Postgres) -> None:
    """Whether its rows are read, or it hashes them itself."""
    source = scan(postgres.url, table=stored(postgres, ORDERS[order]()))
    expected = schema_of(TABLE)
    assert schema_of(source) == expected
    assert schema_of(source, pushdown=True) == expected


@pytest.mark.parametrize("rows", [17_000, 40_000])
def test_copies_have_their_share_in_postgres_too(rows: int, postgres: Postgres) -> None:
    """Few different rows, with missing cells and weights, and texts of many lengths."""
    rng = np.random.default_rng(7)
    words = np.array(["", "a", "Zürich", "🏔️ Alp", "x" * 30])
    table = pa.table(
        {
            "word": pa.array(words[rng.integers(0, 5, rows)], mask=rng.random(rows) < 0.1),
            "number": pa.array(rng.integers(-3, 4, rows) * 0.5, mask=rng.random(rows) < 0.1),
            "flag": rng.random(rows) < 0.5,
            "day": pa.array(rng.integers(-3, 3, rows).astype("int32"), pa.date32()),
            "at": pa.array(rng.integers(-3, 3, rows) * 1_234_567_891, pa.timestamp("us")),
            "clock": pa.array(rng.integers(0, 5, rows) * 7_654_321, pa.time64("us")),
            "times": rng.integers(1, 3, rows).astype(np.float64),
            "label": np.array(["a", "b"])[rng.integers(0, 2, rows)],
        }
    )
    source = scan(postgres.url, table=stored(postgres, table.take(rng.permutation(rows))))
    samples = []
    for X, pushdown in ((table, False), (source, False), (source, True)):
        sample, _ = open_examples(None, X, "label", "times", pushdown).sample()
        frame = sample.table
        assert isinstance(frame, Frame)
        labels = [sample.labels.label(row) for row in range(frame.rows)]
        samples.append((frame.table.to_pylist(), labels, sample.weights.tolist() if sample.weights is not None else []))
    assert len(samples[0][0]) == 1 << 14
    assert samples[0] == samples[1] == samples[2]
