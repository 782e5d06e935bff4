"""CSV, JSON and Parquet are read as Python and Arrow read them, or refused."""

import csv
import gzip
import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, event, example, given, settings, strategies as st

from deciban import BayesClassifier, Text, scan
from deciban.errors import DataError, DecibanError, UsageError
from deciban.sources import arrow as parquet_files
from deciban.sources.csv import quotes_of
from deciban.sources.duckdb import column_types, translate_errors
from tests import example_count

OFTEN = settings(max_examples=example_count(60), suppress_health_check=[HealthCheck.function_scoped_fixture])


CELLS = st.sampled_from(
    [
        "",
        "x",
        "y z",
        '"x"',
        '"a,b"',
        '"l1\nl2"',
        '"a ""b"""',
        "NA",
        '"NA"',
        '""',
        "é",
        " s ",
        "word word",
        '"\r\n"',
        "1",
    ]
)
MARKS = st.sampled_from(
    ["", "x", "yy", '"', '""', "NA", " ", "\n", "\r\n", "\r", ",", "é", '"q,\nr"', '"a ""b"" c"', "\t", ";", "\0"]
)


@st.composite
def tables_of_text(draw: st.DrawFn) -> str:
    """A header, a row of words, and cells or whatever: mostly a CSV file."""
    columns, end = draw(st.integers(1, 3)), draw(st.sampled_from(["\n", "\n", "\r\n"]))
    start = ",".join("abc"[:columns]) + end + ",".join(["some words"] * columns) + end
    if draw(st.integers(0, 4)) == 0:
        return start + "".join(draw(st.lists(MARKS, min_size=1, max_size=25)))
    width = st.integers(0, 29).map(lambda k: {0: 0, 1: columns + 1}.get(k, columns))
    rows = draw(st.lists(width.flatmap(lambda n: st.lists(CELLS, min_size=n, max_size=n)), min_size=1, max_size=6))
    text = start + "".join(",".join(row) + end for row in rows)
    return text if draw(st.booleans()) else text.removesuffix(end)


def rows_of(source: Any) -> Any:
    """The rows, or the error."""
    try:
        return pa.concat_tables(source.tables()).to_pylist()
    except DecibanError as problem:
        return str(problem)


def rows_by_python(text: str) -> list[dict[str, str | None]] | None:
    """The rows as Python's csv reads them; None where they have not as many cells as the header."""
    header, *rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows = [row or [""] for row in rows if row or len(header) == 1]
    if any(len(row) != len(header) for row in rows):
        return None
    cells = ([None if cell in ("", "NA") else cell for cell in row] for row in rows)
    return [dict(zip(header, row, strict=True)) for row in cells]


def test_tables_of_text(tmp_path: Path) -> None:
    """Rows are those of Python, where quotes are plain."""
    path, outcomes = tmp_path / "table.csv", Counter[str]()

    @OFTEN
    @example("a,b\nsome words,some words\nx,y z\n")
    @given(tables_of_text())
    def check(text: str) -> None:
        path.write_bytes(text.encode())
        try:
            found = scan(path)
        except DecibanError:
            outcomes["refused"] += 1
            return
        rows = rows_of(found)
        plain = quotes_of([text.encode()], ",").plain
        if isinstance(rows, list) and plain:
            assert rows == rows_by_python(text)
        outcome = "refused" if isinstance(rows, str) else "plain" if plain else "odd"
        event(outcome)
        outcomes[outcome] += 1

    check()
    assert outcomes["plain"]


GOOD = '"good text, and\na second line",label\n'


@pytest.mark.parametrize(
    ("late", "says"),
    [
        ('with a "quote" in it,label\n', None),
        ("one,two,three\n", "'one,two,three' has 3 cells"),
        ('"never closed,label\n', "quote"),
        (b"\xff\xfe,label\n", "UTF-8"),
    ],
)
def test_what_is_strange_late_in_a_file(tmp_path: Path, late: str | bytes, says: str | None) -> None:
    path = tmp_path / "late.csv"
    data = late if isinstance(late, bytes) else late.encode()
    path.write_bytes(b"text,label\n" + GOOD.encode() * 150_000 + data)
    expected = rows_of(scan(path))
    assert (says in expected) if says is not None else len(expected) == 150_001 or "line" in expected


def test_a_row_that_is_longer_than_what_is_read_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text("text,label\n" + GOOD * 60_000 + '"' + "word " * 1_200_000 + '",label\n' + GOOD * 10)
    found = pa.concat_tables(scan(path).tables())
    assert found.num_rows == 60_011
    assert len(found["text"][60_000].as_py()) == 6_000_000


def plain(rows: int) -> pa.Table:
    text = pa.array([f"text {k} " * 100 for k in range(rows)], pa.string())
    return pa.table({"text": text, "n": np.arange(rows, dtype=np.int32), "y": np.arange(rows) % 2 == 0})


@pytest.mark.parametrize(
    ("more", "folder", "known"),
    [
        ({}, "", True),
        ({}, "kind=1", False),
        ({"day": pa.array([18_000] * 300, pa.date32())}, "", False),
        ({"TEXT": pa.array(["x"] * 300)}, "", False),
        ({"": pa.array(["x"] * 300)}, "", False),
        ({"c": pa.array(["x"] * 300).dictionary_encode()}, "", False),
        (
            {f"c{j}": pa.array([1] * 300, kind) for j, kind in enumerate((pa.int8(), pa.int16(), pa.float32()))},
            "",
            True,
        ),
    ],
)
def test_what_parquet_files_say_of_themselves(
    tmp_path: Path, more: dict[str, pa.Array], folder: str, known: bool
) -> None:
    """Sooner than DuckDB, and the same."""
    (tmp_path / folder).mkdir(exist_ok=True)
    path = tmp_path / folder / "table.parquet"
    table = plain(300)
    for name, cells in more.items():
        table = table.append_column(name, cells)
    pq.write_table(table, path, row_group_size=100)
    types = parquet_files.footer([path]).types
    assert (types is not None) is known
    assert types is None or types == column_types(f"SELECT * FROM '{path}'", "it")
    found = scan(path)
    assert sum(piece.num_rows for piece in found.tables()) == found.expected == 300


def test_a_damaged_parquet_file_of_texts(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    pq.write_table(plain(3_000), path)
    data = bytearray(path.read_bytes())
    data[1_000:60_000] = bytes(59_000)
    path.write_bytes(data)
    with pytest.raises(DataError, match="damaged"):
        list(scan(path).tables())


@pytest.mark.parametrize(
    "line", [b'{"text":"caf\xe9 hello","label":"so"}', b'{"text":"x","label":"s\xe9"}', b'{"te\xe9t":"x"}']
)
def test_lines_that_are_no_utf_8(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_bytes(b'{"text":"good words","label":"so"}\n' * 20_000 + line + b"\n")
    with pytest.raises(DataError, match="line 20001"):
        BayesClassifier({"text": Text()}, tune=None).fit(str(path), "label")


def test_a_line_that_is_nested_too_deeply(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_text('{"text": "good words"}\n{"text": ' + "[" * 30_000 + "\n")
    with pytest.raises(DataError, match="line"):
        list(scan(path).tables())


def test_keys_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_text('{"\\ud800": "good words"}\n')
    with pytest.raises(DataError, match="line"):
        list(scan(path).tables())


def test_keys_in_another_order(tmp_path: Path) -> None:
    for width in (20, 400):
        keys = [f"key{k}" for k in range(width)]
        lines = [{key: f"good {key}" for key in order} for order in (keys, keys[::-1], keys)]
        path = tmp_path / "lines.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        assert rows_of(scan(path)) == [lines[0]] * 3


def test_keys_that_look_like_the_other_case_of_another(tmp_path: Path) -> None:
    """DuckDB calls the key a beside A a_1, which may be a key of its own."""
    for cell in ("x", 1):
        path, packed = tmp_path / "lines.jsonl", tmp_path / "lines.jsonl.gz"
        line = {"A": cell, "a_1": cell}
        path.write_text(json.dumps(line) + "\n")
        packed.write_bytes(gzip.compress(path.read_bytes()))
        assert rows_of(scan([path, packed])) == [line] * 2
        for other in ({"A": cell, "a": cell}, {**line, "a": cell}):
            packed.write_bytes(gzip.compress(json.dumps(other).encode()))
            with pytest.raises(DataError, match="the key 'A' occurs in different cases; use one spelling"):
                scan([path, packed])


def test_signs_that_only_duckdb_knows(tmp_path: Path) -> None:
    """Delimiters that are not ASCII, cells that mean nothing and hold a delimiter, and no column at all."""
    path = tmp_path / "table.csv"
    path.write_text("text\u00a7label\n" + "good words\u00a7so\n" * 10)
    assert rows_of(scan(path, delimiter="\u00a7"))[0] == {"text": "good words", "label": "so"}
    path.write_text("text,label\n" + "good words,so\n" * 10)
    with pytest.raises(UsageError, match="DELIMITER"):
        scan(path, missing=["a,b"])
    assert scan(path, ignore=["text", "label"]).names == ()


def test_large_groups_of_rows(tmp_path: Path) -> None:
    """Parquet as pyarrow writes it has a million rows in a group: more than DuckDB may hold."""
    path = tmp_path / "wide.parquet"
    cells = np.random.default_rng(0).normal(size=500_000)
    pq.write_table(pa.table({f"x{j}": np.roll(cells, j) for j in range(44)}), path, compression="none")
    assert path.stat().st_size > 170e6
    found = scan(path)
    assert sum(piece.num_rows for piece in found.tables()) == 500_000
    assert found.sample(100, lambda rows: None)[0].num_rows == 100


@pytest.mark.parametrize("line", [500, 1000, 1500])
def test_a_mark_in_the_middle_is_not_skipped(tmp_path: Path, line: int) -> None:
    path, rows = tmp_path / "lines.jsonl", [b'{"text": "good words"}\n'] * 2000
    path.write_bytes(b"".join([*rows[:line], b"\xef\xbb\xbf", *rows[line:]]))
    with pytest.raises(DataError, match="line"):
        list(scan(path).tables())


def test_a_mark_at_the_beginning_is_no_cell(tmp_path: Path) -> None:
    """Once it was a part of the first one, of which there was a class more then."""
    for first, text in (
        ("plain", "ham,some words\nspam,more words\n"),
        ("quoted", '"ham",some words\nspam,"more words"\n'),
    ):
        paths = [tmp_path / f"{first}{k}.csv" for k in range(2)]
        for path in paths:
            path.write_text(text, encoding="utf-8-sig")
        found = scan(paths, header=False)
        assert [row["column1"] for row in rows_of(found)] == ["ham", "spam"] * 2


def test_lines_that_end_in_another_way(tmp_path: Path) -> None:
    """One carriage return in a file of one column would be a row more."""
    path = tmp_path / "table.csv"
    path.write_bytes(b"text\n" + b"some words\n" * 200_000 + b"some\rwords\n")
    with pytest.raises(DataError, match="line ends are inconsistent"):
        list(scan(path).tables())


PLAIN_CELLS: dict[str, Any] = {
    "text": (pa.string(), st.text(max_size=5)),
    "n": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "big": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "x": (pa.float64(), st.floats()),
    "y": (pa.float32(), st.floats(width=32)),
    "yes": (pa.bool_(), st.booleans()),
}


@OFTEN
@given(st.data())
def test_short_parquet_files(tmp_path: Path, data: st.DataObject) -> None:
    """Of all plain types, in groups of any size, one file or several, some of the columns."""
    names = data.draw(st.lists(st.sampled_from([*PLAIN_CELLS]), min_size=1, unique=True))
    files = data.draw(st.integers(1, 3))
    written = []
    for k in range(files):
        rows = data.draw(st.integers(0, 9))
        columns = {
            name: pa.array([data.draw(st.none() | PLAIN_CELLS[name][1]) for _ in range(rows)], PLAIN_CELLS[name][0])
            for name in names
        }
        written.append(pa.table(columns))
        pq.write_table(written[-1], tmp_path / f"{k}.parquet", row_group_size=data.draw(st.integers(1, 10)))
    found = scan([tmp_path / f"{k}.parquet" for k in range(files)])
    for chosen in (found, found.without([name for name in names[1:] if data.draw(st.booleans())])):
        expected = pa.concat_tables(written).select(list(chosen.names))
        rows = pa.concat_tables(chosen.tables())
        assert rows.schema.equals(expected.schema)
        assert repr(rows.to_pylist()) == repr(expected.to_pylist())  # NaN is NaN
        assert repr(chosen.head(2).to_pylist()) == repr(expected.slice(0, 2).to_pylist())


def test_a_parquet_file_whose_text_is_none(tmp_path: Path) -> None:
    texts = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(np.array([0, 2, 4], np.int32)), pa.py_buffer(b"ab\xff\xfe")]
    )
    pq.write_table(pa.table({"text": texts}), tmp_path / "table.parquet")
    with pytest.raises(DataError):
        list(scan(tmp_path / "table.parquet").tables())


def test_many_files_of_json(tmp_path: Path) -> None:
    """DuckDB sets thirty megabytes aside for each: once four were too many."""
    for k in range(12):
        (tmp_path / f"{k}.jsonl").write_text('{"x": 1.5, "label": "so"}\n{"x": 2.5, "label": "no"}\n')
    assert sum(piece.num_rows for piece in scan(tmp_path).tables()) == 24


@pytest.mark.parametrize("row", ["{0},so\n", '"{0}\nand more",so\n'])
def test_a_compressed_file_that_is_cut_off(tmp_path: Path, row: str) -> None:
    """Far behind what is looked at first."""
    rng = np.random.default_rng(0)
    text = "text,label\n" + "".join(row.format(f"words {rng.random()}") for _ in range(100_000))
    data, path = gzip.compress(text.encode()), tmp_path / "table.csv.gz"
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(DataError, match=r"table\.csv\.gz.*truncated"):
        list(scan(path).tables())


def test_what_duckdb_cannot_say_of_a_damaged_file() -> None:
    """Its complaint may hold bytes of the file, which are no text."""
    with pytest.raises(DataError, match=r"^table\.parquet: the file is damaged"), translate_errors("table.parquet"):
        raise RuntimeError("nanobind::str(): conversion error!")
