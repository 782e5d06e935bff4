"""One table in every form that people have it: in memory, in files, as a query, from standard input.

What some forms cannot say by their nature is kept out of the table, or told to every model:
- CSV does not tell an empty text from a missing cell, nor the text NA from one: the table has neither.
- CSV has no types: a column of text that all looks like numbers would be numbers there. No column here does.
- CSV that is not UTF-8 is rewritten with lines that end in \\n, inside of cells too: no cell here holds \\r.
- pandas makes floats of whole numbers with missing cells unless its nullable types are used. A column of floats is
  taken for a quantity, so there `grade` has to be told: see TOLD.
- JSON has no dates, but text of that form; DuckDB finds them. true and false are its own.
"""

import csv
import datetime as dt
import gzip
import io
import json
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from pyarrow import parquet

from deciban import Categorical, scan

TOWNS = ["Ulm", "St. Gallen, SG", 'the "old" town', "two\nlines", "Zürich", "🏔️ Alp", "semi;colon", " spaces ", "it's"]
CLASSES = ["no", "perhaps", "yes"]

Give = Callable[[], Any]  # what to hand to fit or predict; standard input has to be set up each time


def mixed(rows: int, seed: int = 0, target: str = "text") -> pa.Table:
    """Numbers, whole numbers, codes, text, flags, dates and times, all with missing cells, and labels of that type."""
    rng = np.random.default_rng(seed)
    label = rng.choice(3, rows, p=[0.5, 0.3, 0.2])
    days = rng.integers(0, 4000, rows) + 300 * label
    seconds = rng.integers(0, 10**8, rows)
    town = np.minimum(rng.geometric(0.25 + 0.1 * label) - 1, len(TOWNS) - 1)
    columns = {
        "height": pa.array(rng.normal(170.0 + 4.0 * label, 9.0)),
        "income": pa.array(np.round(rng.lognormal(7.0 + 0.3 * label), 2)),
        "visits": pa.array(rng.poisson(20 + 3 * label)),
        "grade": pa.array(np.minimum(1 + rng.binomial(4, 0.3 + 0.2 * label), 5)),
        "town": pa.array([TOWNS[k] for k in town]),
        "member": pa.array(rng.random(rows) < 0.3 + 0.2 * label),
        "born": pa.array([dt.date(1970, 1, 1) + dt.timedelta(int(day)) for day in days]),
        "seen": pa.array([dt.datetime(2020, 1, 1) + dt.timedelta(seconds=int(second)) for second in seconds]),
    }
    kinds = {"text": CLASSES, "whole": [10, -2, 3], "flag": [False, True, True]}
    columns["label"] = pa.array([kinds[target][k] for k in label])
    for place, (name, cells) in enumerate(columns.items()):
        gone = pa.array(rng.random(rows) < 0.02 + 0.01 * (place % 3))
        columns[name] = pa.compute.if_else(gone, pa.scalar(None, cells.type), cells)
    return pa.table(columns)


def numeric(rows: int) -> pa.Table:
    """Doubles alone, which a NumPy array holds too."""
    rng = np.random.default_rng(1)
    label = rng.integers(0, 3, rows)
    cells = rng.normal(size=(rows, 5)) + label[:, None] * np.arange(5) * 0.2
    cells[rng.random(cells.shape) < 0.03] = np.nan
    return pa.table({f"x{j}": pa.array(cells[:, j], from_pandas=True) for j in range(5)} | {"label": label})


# in memory


def as_pandas(table: pa.Table, folder: Path) -> Give:
    return lambda: table.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}.get)


def as_pandas_floats(table: pa.Table, folder: Path) -> Give:
    return lambda: table.to_pandas()


def as_polars(table: pa.Table, folder: Path) -> Give:
    return lambda: pl.from_arrow(table)


def as_arrow(table: pa.Table, folder: Path) -> Give:
    return lambda: table


def as_arrow_pieces(table: pa.Table, folder: Path) -> Give:
    return lambda: pa.Table.from_batches(table.to_batches(max_chunksize=997))


def as_lists(table: pa.Table, folder: Path) -> Give:
    return table.to_pydict


def as_relation(table: pa.Table, folder: Path) -> Give:
    return lambda: duckdb.from_arrow(table)


# in files


def text_of(table: pa.Table, delimiter: str = ",", decimal: str = ".") -> str:
    """The table as CSV, in the way of Python's own writer."""
    columns = []
    for column in table.columns:
        cells = column.to_pylist()
        if pa.types.is_floating(column.type) and decimal != ".":
            cells = [None if cell is None else repr(cell).replace(".", decimal) for cell in cells]
        columns.append(cells)
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    writer.writerow(table.column_names)
    writer.writerows(zip(*columns, strict=True))
    return out.getvalue()


def to_file(content: bytes, path: Path) -> Give:
    path.write_bytes(content)
    return lambda: path


def as_csv(table: pa.Table, folder: Path) -> Give:
    return to_file(text_of(table).encode(), folder / "table.csv")


def as_csv_gzip(table: pa.Table, folder: Path) -> Give:
    return to_file(gzip.compress(text_of(table).encode(), 1), folder / "table.csv.gz")


def as_csv_semicolons(table: pa.Table, folder: Path) -> Give:
    return to_file(text_of(table, ";", ",").encode(), folder / "table.csv")


def as_csv_utf16(table: pa.Table, folder: Path) -> Give:
    return to_file(text_of(table).encode("utf-16"), folder / "table.csv")


def as_csv_windows(table: pa.Table, folder: Path) -> Give:
    """As a spreadsheet saves it: a byte order mark, and lines that end otherwise than those inside of cells."""
    rows = text_of(table).replace("\n", "\r\n").replace("two\r\nlines", "two\nlines")
    return to_file(rows.encode("utf-8-sig"), folder / "table.csv")


def as_csv_shards(table: pa.Table, folder: Path) -> Give:
    for k, part in enumerate(parts(table, 3)):
        (folder / f"shard-{k}.csv").write_bytes(text_of(part).encode())
    return lambda: str(folder / "shard-*.csv")


def as_parquet(table: pa.Table, folder: Path) -> Give:
    parquet.write_table(table, folder / "table.parquet")
    return lambda: folder / "table.parquet"


def as_parquet_groups(table: pa.Table, folder: Path) -> Give:
    parquet.write_table(table, folder / "table.parquet", row_group_size=1_000)
    return lambda: str(folder / "table.parquet")


def as_parquet_folder(table: pa.Table, folder: Path) -> Give:
    for k, part in enumerate(parts(table, 4)):
        parquet.write_table(part, folder / f"part-{k}.parquet")
    return lambda: folder


def as_parquet_list(table: pa.Table, folder: Path) -> Give:
    as_parquet_folder(table, folder)
    return lambda: scan([folder / f"part-{k}.parquet" for k in range(4)])


def lines_of(table: pa.Table) -> bytes:
    return "".join(json.dumps(row, default=str, ensure_ascii=False) + "\n" for row in table.to_pylist()).encode()


def as_json_lines(table: pa.Table, folder: Path) -> Give:
    return to_file(lines_of(table), folder / "table.jsonl")


def as_json_gzip(table: pa.Table, folder: Path) -> Give:
    return to_file(gzip.compress(lines_of(table), 1), folder / "table.jsonl.gz")


def as_query(table: pa.Table, folder: Path) -> Give:
    as_parquet_groups(table, folder)
    return lambda: f"sql: SELECT * FROM '{folder}/table.parquet'"


def as_standard_input(table: pa.Table, folder: Path) -> Give:
    content = text_of(table).encode()

    def give() -> str:
        sys.stdin = io.TextIOWrapper(io.BytesIO(content))  # the test puts the old one back
        return "-"

    return give


def parts(table: pa.Table, count: int) -> list[pa.Table]:
    """The rows in so many parts of about equal length, in order."""
    cuts = np.linspace(0, table.num_rows, count + 1).astype(int)
    return [table.slice(start, stop - start) for start, stop in pairwise(cuts)]


SOURCES: dict[str, Callable[[pa.Table, Path], Give]] = {
    name.removeprefix("as_"): make for name, make in list(globals().items()) if name.startswith("as_")
}

# What has to be said of columns that a source cannot tell by itself.
TOLD = {"pandas_floats": {"grade": Categorical()}}
