"""Folders, pipes, Parquet, JSON and queries are read as CSV files are; what is no table is called by what it is."""

import datetime as dt
import decimal
import gzip
import json
import os
import sqlite3
import threading
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from deciban import load
from tests.support.command import HEADER, Deciban, records, table, with_line

TEXT = table()
JSON = [json.dumps({"age": 30.5 + i % 20, "town": "Ulm" if i % 3 else "Graz", "kind": "yn"[i % 2]}) for i in range(60)]


def test_things_that_are_no_table(deciban: Deciban, model: str) -> None:
    """Each is called by what it is; the exit code says whether the data, the model or the path is wrong."""
    with zipfile.ZipFile("a.xlsx", "w") as archive:
        archive.writestr("a.xml", "")
    with sqlite3.connect("a.db") as database:
        database.execute("CREATE TABLE t (a)")
    os.mkdir("empty")
    Path("header.csv").write_text(HEADER)
    for source, code, words in (
        ("a.xlsx", 3, "a.xlsx: this is a zip archive or a damaged workbook"),
        ("a.db", 3, "a.db: this is an SQLite database"),
        (model, 3, "m.dcb: this is a deciban model, not a table"),
        ("empty", 3, "empty: no tables and no documents found in the folder"),
        ("/dev/null", 3, "/dev/null: the file is empty"),
        ("no.csv", 5, "no.csv: no such file"),
        ("no*.csv", 5, "no*.csv: no file matches"),
        ("header.csv", 3, "nothing to learn from"),
    ):
        answer = deciban("fit", source, "-t", "kind", "-o", "x.dcb")
        assert (answer.code, words in answer.err) == (code, True), answer.err
    assert deciban("predict", model, "header.csv").out == f"{HEADER},predicted,probability\n"
    assert deciban("predict", "base.csv", "base.csv").code == 4
    assert deciban("predict", "header.csv", "base.csv").code == 4
    assert deciban("predict", "no.dcb", "base.csv").code == 5
    assert deciban("predict", "empty", "base.csv").code == 2
    Path("cut.dcb").write_bytes(Path(model).read_bytes()[:-20])
    assert deciban("predict", "cut.dcb", "base.csv").code == 4


def test_folders_globs_and_partitions(deciban: Deciban, model: str) -> None:
    for year in (2000, 2001):
        os.makedirs(f"all/year={year}")
        few = pa.table({"age": [40.0, 41.0], "town": ["Ulm", "Graz"], "kind": ["yes", "no"]})
        parquet.write_table(few, f"all/year={year}/a.parquet")
    assert "4 rows" in deciban("fit", "all", "-t", "kind", "-o", "x.dcb").out
    assert load("x.dcb").schema_.names == ("age", "town", "year")
    assert deciban("predict", model, "all/*/*.parquet").out.splitlines()[1].startswith("40,Ulm,yes,2000,yes,")


def test_pipes_and_standard_input(deciban: Deciban, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are read as files are, and errors call them by their name."""
    os.mkfifo("pipe")
    expected = deciban("predict", model, "base.csv").out
    for text in (TEXT, with_line("40,Ulm", 3)):
        writer = threading.Thread(target=Path("pipe").write_text, args=(text,))
        writer.start()
        answer = deciban("predict", model, "pipe")
        writer.join()
        Path("input").write_text(text)
        with open("input") as file:
            monkeypatch.setattr("sys.stdin", file)
            other = deciban("predict", model, "-")
        if text == TEXT:
            assert answer.out == other.out == expected
        else:
            assert "pipe, line 3: '40,Ulm' has 2 cells" in answer.err
            assert "standard input, line 3: '40,Ulm' has 2 cells" in other.err


def column_of(cell: object) -> None:
    parquet.write_table(pa.table({"v": [cell] * 40, "w": range(40), "kind": ["yes", "no"] * 20}), "a.parquet")


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        (decimal.Decimal("1.50"), "1.50"),
        (dt.datetime(2020, 1, 2, tzinfo=dt.UTC), "2020-01-02 00:00:00.000000+0000"),
        (dt.date(2020, 1, 2), "2020-01-02"),
        (dt.time(1, 2), "01:02:00.000000"),
        (None, ""),
    ],
)
def test_decimals_dates_and_times_of_parquet_are_kept(cell: object, shown: str, deciban: Deciban) -> None:
    column_of(cell)
    answer = deciban("fit", "a.parquet", "-t", "kind", "-o", "m.dcb", "--tune", "none")
    assert answer.code == 0
    assert "column 'v' is" not in answer.err
    assert records(deciban("predict", "m.dcb", "a.parquet").out)[0]["v"] == shown
    assert ("\nv = " in deciban("explain", "m.dcb", "a.parquet").out) == (cell is not None)
    assert deciban("predict", "m.dcb", "a.parquet", "-o", "p.parquet").code == 0
    assert parquet.read_table("p.parquet")["v"].to_pylist() == [cell] * 40


@pytest.mark.parametrize("cell", [{"a": 1}, [1, 2], b"\xff"])
def test_records_lists_and_bytes_of_parquet_are_refused_by_name(cell: object, deciban: Deciban) -> None:
    column_of(cell)
    answer = deciban("fit", "a.parquet", "-t", "kind", "-o", "m.dcb", "--tune", "none")
    assert answer.code == 3
    assert "a.parquet, column 'v': unsupported type" in answer.err
    assert "w" in deciban("fit", "a.parquet", "-t", "kind", "-o", "m.dcb", "--ignore", "v").out
    assert load("m.dcb").schema_.names == ("w",)


def test_categories_and_damage_of_parquet(deciban: Deciban, model: str) -> None:
    towns = pa.array(["Ulm", "Graz"] * 20).dictionary_encode()
    parquet.write_table(pa.table({"town": towns, "age": [40.0, 41.0] * 20}), "a.parquet")
    assert deciban("predict", model, "a.parquet").out.splitlines()[1].startswith("Ulm,40,yes,")
    whole = Path("a.parquet").read_bytes()
    for damaged in (whole[: len(whole) // 2], whole[:6], whole[:20] + b"\xff" * 60 + whole[80:]):
        Path("b.parquet").write_bytes(damaged)
        answer = deciban("predict", model, "b.parquet")
        assert answer.code == 3
        assert "b.parquet: the Parquet file is damaged or truncated" in answer.err


def test_lines_of_json(deciban: Deciban, model: str) -> None:
    """Missing keys are missing cells; arrays, other encodings and gzip are read; text among numbers makes text."""
    lines = "\n".join(JSON) + "\n"
    Path("plain.jsonl").write_text(lines)
    expected = deciban("predict", model, "plain.jsonl").out
    for name, content in {
        "array.json": ("[" + ",".join(JSON) + "]").encode(),
        "mark.jsonl": b"\xef\xbb\xbf" + lines.encode(),
        "wide.jsonl": b"\xff\xfe" + lines.encode("utf-16-le"),
        "packed.jsonl": gzip.compress(lines.encode()),
    }.items():
        Path(name).write_bytes(content)
        assert deciban("predict", model, name).out == expected
    both = deciban("predict", model, "plain.jsonl", "packed.jsonl").out  # one compressed, the other not
    assert both.splitlines() == [*expected.splitlines(), *expected.splitlines()[1:]]
    Path("few.jsonl").write_text('{"town": "Ulm"}\n{"age": 40, "town": "Ulm"}\n')
    assert deciban("predict", model, "few.jsonl").out.splitlines()[1].startswith("Ulm,,yes,")
    Path("word.jsonl").write_text(lines + '{"age": "old", "town": "Ulm", "kind": "y"}\n')
    assert (
        "age     string  Categorical()"
        in deciban("fit", "word.jsonl", "-t", "kind", "-o", "x.dcb", "--tune", "none").out
    )
    answer = deciban("predict", model, "word.jsonl")
    assert (answer.code, "word.jsonl, column 'age', row 61: found 'old'" in answer.err) == (3, True)
    Path("deep.jsonl").write_text('{"age": {"years": 3}, "kind": "y"}\n' * 9)
    answer = deciban("fit", "deep.jsonl", "-t", "kind", "-o", "x.dcb")
    assert (answer.code, "deep.jsonl, column 'age': unsupported type struct" in answer.err) == (3, True)


@pytest.mark.parametrize("before", [30, 30_000])
@pytest.mark.parametrize("broken", ['{"age": 3, "town"', '{"age": 3,, "town": "Ulm"}', "age"])
def test_a_broken_line_of_json_is_named(before: int, broken: str, deciban: Deciban, model: str) -> None:
    lines = (JSON * (before // 60 + 1))[:before]
    Path("a.jsonl").write_text("\n".join([*lines, broken, *JSON]) + "\n")
    answer = deciban("predict", model, "a.jsonl")
    assert answer.code == 3
    assert f"a.jsonl, line {before + 1}: invalid JSON: " in answer.err


@pytest.mark.parametrize(
    ("query", "code", "words"),
    [
        ("", 2, "contains no query"),
        ("selekt 1", 2, "the query: syntax error"),
        ("select * from nope", 2, "nope does not exist"),
        ("select * from 'nope.csv'", 3, "nope.csv"),
        ("select 1; select 2", 2, "syntax error"),
        ("drop table t", 2, "syntax error"),
        ("copy (select 1) to 'evil.csv'", 2, "syntax error"),
        ("select * from 'base.csv'); copy (select 1) to 'evil.csv'; --", 2, "syntax error"),
        ("select 1); copy (select 1) to 'evil.csv'; select (1", 2, "several statements"),
        ("select cast(town as int) as kind from 'base.csv'", 3, "base.csv, line 2, column 'town': found '"),
        ("select * from 'base.csv' where false", 3, "nothing to learn from"),
    ],
)
def test_queries_that_are_wrong(query: str, code: int, words: str, deciban: Deciban, model: str) -> None:
    answer = deciban("fit", f"sql: {query}", "-t", "kind", "-o", "x.dcb")
    assert (answer.code, words in answer.err) == (code, True), answer.err
    assert sorted(os.listdir()) == ["base.csv", "m.dcb"]


def test_a_query_learns_what_its_file_does(deciban: Deciban, model: str) -> None:
    query = "sql: select * replace (kind || '!' as kind) from read_csv('base.csv', all_varchar = true) -- all of it"
    answer = deciban("fit", query, "-t", "kind", "-o", "x.dcb", "--tune", "none", "--type", "age=number")
    assert answer.code == 0
    found, expected = deciban("predict", "x.dcb", "base.csv").out, deciban("predict", model, "base.csv").out
    assert found.replace("!", "") == expected
