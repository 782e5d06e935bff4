"""Whatever users pass in place of a table is read, or refused in one line that names it and what to do."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import dataset, feather, orc, parquet

from deciban import BayesClassifier, DataError, UsageError, scan
from tests.support.sources import as_parquet, mixed

TABLE = pa.table({"size": [1.0, 2.0, 3.5, 4.0], "town": ["Ulm", "Bern", "Ulm", None], "kind": ["a", "b", "a", "b"]})
CSV = "size,town,kind\n1,Ulm,a\n2,Bern,b\n3.5,Ulm,a\n4,,b\n"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def many(rows: int) -> pa.Table:
    """Columns of all types."""
    table = mixed(rows)
    return table.rename_columns([*table.column_names[:-1], "kind"])


def learned(source: Any, **more: Any) -> BayesClassifier:
    return BayesClassifier(tune=None).fit(source, "kind", **more)


def assert_same_model(found: BayesClassifier, table: pa.Table = TABLE) -> None:
    """That of the table in memory."""
    expected = learned(table)
    assert found.schema_ == expected.schema_
    assert found.counts_.rows == expected.counts_.rows
    np.testing.assert_allclose(found.predict_proba(table), expected.predict_proba(table), rtol=1e-9, atol=1e-15)


# read


def write_arrow(table: pa.Table, path: str) -> None:
    with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=3)


def write_stream(table: pa.Table, path: str) -> None:
    with pa.OSFile(path, "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=3)


WRITERS: dict[str, Callable[[pa.Table, str], Any]] = {
    "arrow": write_arrow,
    "arrows": write_stream,
    "feather": feather.write_feather,
    "orc": orc.write_table,
}


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("rows", [4, 17_000])
def test_files_of_arrow_and_orc(kind: str, rows: int) -> None:
    """By their first bytes, whatever their names are; alone, several, in a folder, and to predict."""
    table = TABLE if rows == 4 else many(rows)
    Path("folder").mkdir()
    WRITERS[kind](table, "any name")
    WRITERS[kind](table.slice(0, rows // 2), f"folder/1.{kind}")
    WRITERS[kind](table.slice(rows // 2), f"folder/2.{kind}")
    found = learned("any name")
    assert_same_model(found, table)
    for source in ("folder", f"folder/*.{kind}", [f"folder/1.{kind}", f"folder/2.{kind}"]):
        assert learned(source).counts_.rows == found.counts_.rows
    assert found.predict("any name").tolist() == found.predict(table).tolist()
    assert scan("any name", types={table.column_names[0]: "text"}).head(1).schema.types[0] == pa.string()
    assert scan("any name", ignore=["kind"]).names == tuple(table.column_names[:-1])


def test_a_file_of_arrow_comes_through_a_pipe() -> None:
    WRITERS["arrows"](TABLE, "t.arrows")
    code = "from deciban import scan; print(scan('-').table().num_rows)"
    with open("t.arrows", "rb") as file:
        done = subprocess.run([sys.executable, "-c", code], stdin=file, capture_output=True, text=True, check=True)
    assert done.stdout == "4\n"


def test_a_damaged_file_of_arrow_is_named() -> None:
    for kind in ("arrow", "arrows", "orc"):
        WRITERS[kind](TABLE, f"t.{kind}")
        data = Path(f"t.{kind}").read_bytes()
        Path(f"t.{kind}").write_bytes(data[:20] + data[-20:])
        with pytest.raises(DataError, match=rf"^t\.{kind}: .*(damaged or truncated|cannot be read)"):
            scan(f"t.{kind}").table()


def test_a_header_may_begin_as_other_files_do() -> None:
    for name in ("ORC", "ARROW1", "FEA1"):
        Path("t.csv").write_text(f"{name},kind\n1,a\n2,b\n")
        assert scan("t.csv").names == (name, "kind")


@pytest.mark.parametrize("rows", [500, 17_000])
def test_datasets_and_lazy_frames_are_streamed(rows: int) -> None:
    table = many(rows)
    source = as_parquet(table, Path())()
    (path,) = Path().glob("*.parquet")
    lazy = pl.scan_parquet(path)
    for given in (dataset.dataset(str(path)), lazy, pl.LazyFrame(pl.from_arrow(table))):
        found = learned(given)
        assert found.schema_ == learned(source).schema_
        assert_same_model(found, table)
        np.testing.assert_allclose(found.predict_proba(given), found.predict_proba(table), rtol=1e-12)
    assert scan(lazy, ignore=["town"]).names == tuple(name for name in table.column_names if name != "town")
    with pytest.raises(UsageError, match="these rows are not in a database"):
        learned(lazy, pushdown=True)


def test_a_list_of_names_is_a_list_of_files() -> None:
    Path("a.csv").write_text(CSV)
    Path("b.csv").write_text(CSV)
    clf = learned(["a.csv", "b.csv"])
    assert clf.counts_.rows == 8
    assert learned((Path("a.csv"), Path("b.csv"))).counts_.rows == 8
    assert clf.partial_fit(["a.csv"], "kind").counts_.rows == 12
    assert clf.forget(["a.csv"], "kind").counts_.rows == 8
    assert len(clf.predict(["a.csv", "b.csv"])) == len(clf.predict([Path("a.csv"), Path("b.csv")])) == 8
    assert clf.evaluate(["a.csv"], "kind").accuracy == clf.evaluate("a.csv", "kind").accuracy
    with pytest.raises(UsageError, match=r"a\.csv and a\.csv are the same file"):
        learned(["a.csv", "a.csv"])


def test_texts_in_a_list_are_rows_where_they_can_be() -> None:
    Path("a.csv").write_text(CSV)
    texts = BayesClassifier(tune=None).fit(["a.csv", "not a file"], ["x", "y"])
    assert texts.predict(["a.csv", "not a file"]).tolist() == ["x", "y"]
    with pytest.raises(DataError, match="X has 1 features, but BayesClassifier is expecting 2"):
        learned("a.csv").predict(["Ulm", "Bern"])


def test_a_file_url_is_a_file() -> None:
    Path("a b.csv").write_text(CSV)
    assert_same_model(learned(Path("a b.csv").absolute().as_uri()))


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet", "jsonl", "arrow"])
@pytest.mark.parametrize("name", ["a*b", "a[x]b", "a?b", "a[*?]b"])
def test_a_name_is_a_pattern_only_if_there_is_no_such_file(name: str, ending: str) -> None:
    frame = TABLE.to_pandas()
    writers = {
        "csv": lambda path, frame: frame.to_csv(path, index=False),
        "csv.gz": lambda path, frame: frame.to_csv(path, index=False),
        "parquet": lambda path, frame: frame.to_parquet(path),
        "jsonl": lambda path, frame: frame.to_json(path, orient="records", lines=True),
        "arrow": lambda path, frame: write_arrow(pa.Table.from_pandas(frame), path),
    }
    writers[ending](f"axb.{ending}", frame.iloc[:2])
    if name != "a[*?]b":
        assert len(scan(f"{name}.{ending}").table()) == 2
    writers[ending](f"{name}.{ending}", frame)
    assert_same_model(learned(f"{name}.{ending}"))
    assert len(scan(["axb." + ending, f"{name}.{ending}"]).table()) == 6


@pytest.mark.parametrize("rows", [4, 20_000])
def test_a_connection_of_duckdb_counts_its_tables(rows: int) -> None:
    table = TABLE if rows == 4 else many(rows)
    with duckdb.connect() as connection:
        connection.register("given", table)
        connection.execute("create table main.visits as from given")
        expected = learned(connection.sql("from visits"), pushdown=True)
        for more in ({"table": "visits"}, {"query": "select * from visits"}):
            found = learned(connection, pushdown=True, **more)
            assert found.schema_ == expected.schema_
            assert_same_model(found, table)
        as_text = scan(connection, table="visits", types={table.column_names[0]: "text"})
        assert learned(as_text, pushdown=True).schema_.types[0] == "string"


def test_an_ibis_table_of_duckdb_is_counted_there() -> None:
    ibis = pytest.importorskip("ibis")
    backend = ibis.duckdb.connect()
    backend.con.register("some", TABLE)
    assert_same_model(learned(backend.table("some"), pushdown=True))
    assert_same_model(learned(ibis.memtable(TABLE), pushdown=True))


# refused


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (
            "s3://bucket/t.parquet",
            "not a local file; download it, or in Python pass pyarrow.dataset.dataset('s3://bucket",
        ),
        ("gs://bucket/t.csv", "not a local file; download it"),
        ("hdfs://node/t.csv", "not a local file; download it"),
        ("abfss://c@account/t.csv", "not a local file; download it"),
        ("https://example.org/t.csv", "remote files are not supported; download it"),
        ("file://elsewhere/t.csv", "not a local file; download it"),
        (
            "sql: select * from 's3://bucket/t.parquet'",
            "t.parquet is not a local file; download it, or load httpfs in",
        ),
        ("sql: select * from 'https://example.org/t.csv'", "t.csv is not a local file; download it, or load httpfs"),
        ("sql: select * from delta_scan('t')", "delta_scan needs DuckDB's extension delta, which is not loaded"),
        ("sql: select * from 't.xlsx'", "t.xlsx is a spreadsheet, which SQL cannot read; pass the file name"),
        ("sql: select * from 't.orc'", "t.orc is an ORC file, which DuckDB does not support; pass the file name"),
        ("sql: select * from 't.duckdb'", "t.duckdb is a database; open it with duckdb.connect"),
        ("", "the file name is empty; give a file, a folder"),
    ],
)
def test_what_is_elsewhere_is_named(url: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        learned(url)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"Obj\x01\x04\x14avro.codec\x80", "this is an Avro file; save the table as Parquet"),
        (pa.compress(CSV.encode(), "lz4", asbytes=True), "this is compressed with lz4; use gzip or zstd"),
        (b"\x93NUMPY\x01\x00v\x00{'descr': '<f8'}", "this is a NumPy array; load it with numpy.load"),
        (b"\x89HDF\r\n\x1a\n\x00\x00", "this is an HDF5 file; save the table as Parquet"),
        (b"\x01\x02\x00\x9c\xff\x00\x00some other thing", "unsupported file format"),
        (
            CSV.encode() + b"\x9c",
            "the byte 0x9c is not valid utf-8; give the encoding of the file, e.g. encoding='latin-1'",
        ),
    ],
)
def test_other_files_are_named(content: bytes, message: str) -> None:
    Path("t.dat").write_bytes(content)
    with pytest.raises(DataError) as caught:
        learned("t.dat")
    assert str(caught.value).startswith("t.dat")
    assert message in str(caught.value)


def test_a_database_of_duckdb_is_named() -> None:
    with duckdb.connect("t.duckdb") as connection:
        connection.execute("create table t as select 1 as x, 'a' as kind")
    with pytest.raises(DataError, match=r"t\.duckdb: this is a DuckDB database; open it with duckdb\.connect"):
        learned("t.duckdb")


def test_tables_of_other_packages_are_named() -> None:
    dask = pytest.importorskip("dask.dataframe")
    frame = dask.from_pandas(TABLE.to_pandas(), npartitions=2)
    with pytest.raises(UsageError, match=r"found DataFrame of dask; pass table\.compute\(\), or learn its partitions"):
        learned(frame)
    with pytest.raises(UsageError, match="found DataFrame of dask"):
        learned(TABLE).predict(frame)
    delta = type("DeltaTable", (SimpleNamespace,), {"__module__": "deltalake.table"})()
    with pytest.raises(UsageError, match=r"found DeltaTable of deltalake; pass table\.to_pyarrow_dataset\(\)"):
        learned(delta)


def test_a_file_is_named_once() -> None:
    Path("t.csv").write_text(CSV)
    with pytest.raises(UsageError) as caught:
        learned("t.csv", pushdown=True)
    assert str(caught.value).count("t.csv") == 1


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom"])
def test_a_device_without_an_end_is_refused(device: str) -> None:
    if not os.path.exists(device):
        pytest.skip(f"there is no {device}")
    with pytest.raises(DataError, match="this is an endless device; give a file, a folder or a pipe"):
        learned(device)
    with open(device, "rb") as file:
        code = "from deciban import scan; scan('-')"
        done = subprocess.run([sys.executable, "-c", code], stdin=file, capture_output=True, text=True, timeout=60)
    assert "standard input: this is an endless device" in done.stderr


def test_a_pipe_ends_before_the_disk_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is left of the disk here is too little."""
    monkeypatch.setattr("deciban.sources.temporary.MIN_FREE_SPACE", 2.0)
    os.mkfifo("pipe")
    with subprocess.Popen(["sh", "-c", "yes > pipe"], stderr=subprocess.DEVNULL) as writing:
        with pytest.raises(OSError, match="pipe: more than 1 MB, and the folder for temporary files is nearly"):
            learned("pipe")
        assert writing.wait(timeout=60) != 0


# tables in folders


def test_a_table_of_delta_lake_is_not_its_files() -> None:
    """Those of rows that were overwritten are still there."""
    Path("delta/_delta_log").mkdir(parents=True)
    Path("delta/_delta_log/00000000000000000000.json").write_text('{"commitInfo":{}}\n')
    parquet.write_table(pa.table({"add": [{"path": "x"}]}), "delta/_delta_log/00000000000000000010.checkpoint.parquet")
    Path("delta/day=1").mkdir()
    parquet.write_table(TABLE, "delta/day=1/part-0.parquet")
    for source in ("delta", ".", "delta/*/*.parquet", "delta/**/*.parquet", "delta/day=1/*"):
        with pytest.raises(DataError, match=r"delta: Delta Lake tables are not supported, .*\.to_pyarrow_dataset\(\)"):
            scan(source)
    assert len(scan("delta/day=1/part-0.parquet").table()) == 4


def test_a_table_of_iceberg_is_not_its_files() -> None:
    Path("ice/metadata").mkdir(parents=True)
    Path("ice/metadata/v1.metadata.json").write_text("{}")
    Path("ice/data").mkdir()
    parquet.write_table(TABLE, "ice/data/0.parquet")
    for source in ("ice", "ice/data/*.parquet"):
        with pytest.raises(DataError, match=r"ice: Apache Iceberg tables are not supported, .*pyiceberg"):
            scan(source)


def test_folders_that_begin_with_a_dot_or_a_line_are_left_out() -> None:
    for folder in ("rows", "rows/_temporary", "rows/.cache", "rows/more"):
        Path(folder).mkdir()
        parquet.write_table(TABLE, f"{folder}/part.parquet")
    assert len(scan("rows").table()) == 8
    assert len(scan("rows/_temporary").table()) == 4


DIFFERENT = {
    "text": pa.array(["1", "x"]),
    "flag": pa.array([True, False]),
    "date": pa.array([1, 2], pa.date32()),
    "time": pa.array([1, 2], pa.time64("us")),
}


@pytest.mark.parametrize("kind", DIFFERENT)
@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_files_whose_types_differ_are_refused_by_name(kind: str, ending: str) -> None:
    write = parquet.write_table if ending == "parquet" else write_arrow
    write(TABLE, f"a.{ending}")
    write(pa.table({"kind": ["a", "b"], "size": DIFFERENT[kind]}), f"b.{ending}")
    files = [f"a.{ending}", f"b.{ending}"]
    message = (
        f"b.{ending}: column 'size' is {DIFFERENT[kind].type}, but double in a.{ending}; use one type in all files"
    )
    for source in (files, ".", f"*.{ending}"):
        with pytest.raises(DataError, match=re.escape(message)):
            learned(source)
    assert scan(files, ignore=["size"]).table().num_rows == 6
    whole = scan(files, types={"size": "text"}).table()
    assert whole["size"].type == pa.string()
    assert whole["kind"].to_pylist() == ["a", "b", "a", "b", "a", "b"]
    assert whole["town"].null_count == 3


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.array([1, 2], pa.int32()), pa.array([1, 2**40])),
        (pa.array([1.5, 2], pa.float32()), pa.array([1.5, 2.5])),
        (pa.array([1, 2]), pa.array([1.5, 2.5])),
        (pa.array(["a", "b"]), pa.array(["a", "b"]).dictionary_encode()),
        (pa.array(["a", "b"]), pa.array(["a", "b"], pa.large_string())),
        (pa.array([1, 2], pa.timestamp("ms")), pa.array([1, 2], pa.timestamp("us"))),
        (pa.array([1, 2], pa.date32()), pa.array([1, 2], pa.timestamp("us"))),
        (pa.array([1.5, 2]), pa.nulls(2)),
    ],
    ids=lambda cells: str(cells.type),
)
@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_types_that_can_be_united_are(one: pa.Array, other: pa.Array, ending: str) -> None:
    write = parquet.write_table if ending == "parquet" else write_arrow
    for turn in ((one, other), (other, one)):
        for place, cells in enumerate(turn):
            write(pa.table({"x": cells, "kind": ["a", "b"]}), f"{place}.{ending}")
        found = scan([f"0.{ending}", f"1.{ending}"]).table()["x"]
        whole = pa.chunked_array([cells.cast(found.type, safe=False) for cells in turn])
        assert found.to_pylist() == whole.to_pylist()
        assert learned([f"0.{ending}", f"1.{ending}"]).counts_.rows == 4
