"""What Arrow reads without DuckDB is what DuckDB and Python would read, and what it cannot read so DuckDB does."""

import csv
import gzip
import io
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, event, example, given, settings, strategies as st

from deciban import BayesClassifier, Text, scan
from deciban.errors import DataError, DecibanError, UsageError
from deciban.sources import arrow_readers, json_files, parquet_files
from deciban.sources.arrow_readers import UNSUITABLE, JsonText, ParquetReader
from deciban.sources.csv_files import CsvScan
from deciban.sources.duckdb import column_types, translated_errors
from deciban.sources.scan import Scan
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


def rows_of_arrow(found: Scan) -> Any:
    """The rows as Arrow reads them; None where it leaves them to DuckDB."""
    if (reader := found.arrow_reader) is None:
        return None
    try:
        return [row for batch in reader.batches(found.names) for row in batch.to_pylist()]
    except UNSUITABLE:
        return None


def rows_by_python(text: str) -> list[dict[str, str | None]] | None:
    """The rows as Python's csv reads them; None where they have not as many cells as the header."""
    header, *rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows = [row or [""] for row in rows if row or len(header) == 1]
    if any(len(row) != len(header) for row in rows):
        return None
    cells = ([None if cell in ("", "NA") else cell for cell in row] for row in rows)
    return [dict(zip(header, row, strict=True)) for row in cells]


def test_tables_of_text(tmp_path: Path) -> None:
    """Arrow's rows are those of DuckDB and of Python, however few bytes are read at a time; else DuckDB is asked."""
    path, outcomes = tmp_path / "table.csv", Counter[str]()

    @OFTEN
    @example("a,b\nsome words,some words\nx,y z\n", 16)  # by Arrow
    @given(tables_of_text(), st.sampled_from([16, 64, 1 << 20]))
    def check(text: str, block: int) -> None:
        path.write_bytes(text.encode())
        try:
            found = scan(path)
        except DecibanError:
            outcomes["refused"] += 1
            return
        assert isinstance(found, CsvScan)
        by_duckdb = rows_of(replace(found, arrow=None))
        with mock.patch.object(arrow_readers, "_piece_bytes", return_value=block):
            rows, by_arrow = rows_of(found), rows_of_arrow(found)
        lines_end_alike = text.count("\n") == text.count("\r\n") or "\r\n" not in text
        if isinstance(by_duckdb, list) or lines_end_alike:  # else it refuses what nobody has to
            assert rows == by_duckdb
        if by_arrow is not None:
            assert rows == by_arrow == rows_by_python(text)
        outcome = "by Arrow" if by_arrow is not None else "by DuckDB"
        event(outcome)
        outcomes[outcome] += 1

    check()
    assert outcomes["by Arrow"]


def test_line_ends_in_cells_at_the_end_of_what_is_read_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(b'a,b\nsome words,"l1\r\nl2"\nx,"\r\n"\nx,"\r\r\n\n"\n')
    found = scan(path)
    assert isinstance(found, CsvScan)
    for block in range(24, 60):
        with mock.patch.object(arrow_readers, "_piece_bytes", return_value=block):
            assert [row["b"] for row in rows_of_arrow(found)] == ["l1\r\nl2", "\r\n", "\r\r\n\n"]


VALUES = st.sampled_from(
    ["x", "hello world", "", "é", 'a"b', "l\nm", "\\", "12", "2020-01-01", "12:30", "true", None, "\u2028", "😀", "[1]"]
)
STRANGE = [{"text": 5}, {"text": "x", "late": "y"}, {"A": "x"}, {"text": ["x"]}, {"text": {"a": "x"}}, {"a": True}, {}]
ENDS = ["", "", "\n", "\n\n", '{"a": "x", "a": "y"}', '{"a": "\\ud800"}', "[]", '{"a": "x"} {"a": "y"}', '{"a": "x"}}']
ENDS += ['{"a": "x\\u0000y"}', '{"a":\n"x"}', '{"a": "x\ty"}', "null", '{"a": nul}', '{"\\u0061": "x"}', "\ufeff", "{"]


def test_lines_of_json(tmp_path: Path) -> None:
    """Arrow's rows are those of DuckDB and of Python, and where they might not be, DuckDB is asked."""
    path, outcomes = tmp_path / "lines.jsonl", Counter[str]()
    lines = st.lists(st.dictionaries(st.sampled_from(["a", "b", "text"]), VALUES, min_size=1, max_size=3), max_size=6)
    strange = st.one_of(st.just([]), st.just([]), st.sampled_from(STRANGE).map(lambda line: [line]))

    @OFTEN
    @example([{"a": "x"}, {"b": "y", "text": None}], [], True, "", 1 << 20)  # by Arrow
    @example([{"a": "x"}], [{"text": 5}], True, "", 1 << 20)  # by DuckDB
    @given(lines, strange, st.booleans(), st.sampled_from(ENDS), st.sampled_from([64, 1 << 20]))
    def check(good: list[Any], odd: list[Any], plain: bool, end: str, block: int) -> None:
        rows = [dict.fromkeys(("a", "b", "text"), "some words"), *good, *odd]
        path.write_text("".join(json.dumps(row, ensure_ascii=plain) + "\n" for row in rows) + end)

        def read() -> Any:
            try:
                found = scan(path)
                return rows_of(found), isinstance(found, Scan) and found.arrow is not None
            except DecibanError as problem:
                return str(problem), False

        with mock.patch.object(arrow_readers, "JSON_BLOCK", block):
            found, by_arrow = read()
        with mock.patch.object(json_files.JsonText, "of", return_value=None):
            by_duckdb, _ = read()
        assert found == by_duckdb
        if by_arrow:
            by_python = [json.loads(line) for line in path.read_text().split("\n") if line.strip()]
            names = dict.fromkeys(name for row in by_python for name in row)
            assert found == [names | row for row in by_python]
        outcome = "by Arrow" if by_arrow else "by DuckDB"
        event(outcome)
        outcomes[outcome] += 1

    check()
    assert outcomes["by Arrow"]
    assert outcomes["by DuckDB"]


def test_files_of_text_are_read_without_duckdb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without DuckDB, also those that are read twice."""
    words = [f"word{k % 7} in number{k} here, and\nthere " * 40 for k in range(300)]
    texts = pa.table({"text": words, "label": ["so", "thus"] * 150})
    texts.to_pandas().to_csv(tmp_path / "texts.csv", index=False)
    (tmp_path / "texts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in texts.to_pylist()))
    monkeypatch.setattr("duckdb.connect", lambda *_, **__: pytest.fail("DuckDB is asked"))
    expected = BayesClassifier({"text": Text()}).fit(texts, "label").predict_proba(texts)
    for kind in ("csv", "jsonl"):
        path = str(tmp_path / f"texts.{kind}")
        assert BayesClassifier(Text(), tune=None).fit(path, "label").classes_.tolist() == ["so", "thus"]
        clf = BayesClassifier({"text": Text()}).fit(path, "label")
        np.testing.assert_allclose(clf.predict_proba(path), expected, atol=1e-9)


GOOD = '"good text, and\na second line",label\n'


@pytest.mark.parametrize(
    ("late", "says", "by_arrow"),
    [
        ('with a "quote" in it,label\n', None, False),
        ("one,two,three\n", "found 3 cells", True),
        ('"never closed,label\n', "quote", False),
        (b"\xff\xfe,label\n", "UTF-8", True),
    ],
)
def test_what_is_strange_late_in_a_file_is_told_by_duckdb(
    tmp_path: Path, late: str | bytes, says: str | None, by_arrow: bool
) -> None:
    """Before Arrow is asked, if quotes are strange, and else behind the rows that it has read."""
    path = tmp_path / "late.csv"
    data = late if isinstance(late, bytes) else late.encode()
    path.write_bytes(b"text,label\n" + GOOD.encode() * 150_000 + data)
    found = scan(path)
    assert isinstance(found, Scan)
    assert (found.arrow is not None) == by_arrow
    expected = rows_of(replace(found, arrow=None))
    assert rows_of(found) == expected
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
    assert JsonText.of([path], None) is None
    with pytest.raises(DataError, match="line"):
        list(scan(path).tables())


def test_keys_in_another_order(tmp_path: Path) -> None:
    for width in (20, 400):
        keys = [f"key{k}" for k in range(width)]
        lines = [{key: f"good {key}" for key in order} for order in (keys, keys[::-1], keys)]
        path = tmp_path / "lines.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        assert JsonText.of([path], None) is not None
        assert rows_of(scan(path)) == [lines[0]] * 3


def test_keys_that_look_like_a_number_of_duckdb(tmp_path: Path) -> None:
    """DuckDB calls the second of "A" and "a" by this name, and is not asked here."""
    path = tmp_path / "lines.jsonl"
    path.write_text('{"A": "some words", "a_1": "more"}\n')
    assert rows_of(scan(path)) == [{"A": "some words", "a_1": "more"}]


def test_words_that_are_dates_to_duckdb(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_text('{"when":"epoch"}\n{"when":"2020-01-01"}\n')
    assert JsonText.of([path], None) is None


def test_signs_that_only_duckdb_knows(tmp_path: Path) -> None:
    """Delimiters that are not ASCII, cells that mean nothing and hold a delimiter, and no column at all."""
    path = tmp_path / "table.csv"
    path.write_text("text\u00a7label\n" + "good words\u00a7so\n" * 10)
    assert rows_of(scan(path, delimiter="\u00a7"))[0] == {"text": "good words", "label": "so"}
    path.write_text("text,label\n" + "good words,so\n" * 10)
    with pytest.raises(UsageError, match="DELIMITER"):
        scan(path, missing=["a,b"])
    none = scan(path, ignore=["text", "label"])
    assert isinstance(none, Scan)
    assert none.arrow_reader is None


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
        assert isinstance(found, Scan)
        assert found.arrow_reader is not None
        rows = [row for batch in found.arrow_reader.batches(found.names) for row in batch.to_pylist()]
        assert [row["column1"] for row in rows] == ["ham", "spam"] * 2


def test_lines_that_end_in_another_way_are_left_to_duckdb(tmp_path: Path) -> None:
    """One carriage return in a file of one column would be a row more."""
    path = tmp_path / "table.csv"
    path.write_bytes(b"text\n" + b"some words\n" * 200_000 + b"some\rwords\n")
    with pytest.raises(DataError, match="end in another way"):
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
    """Of all plain types, in groups of any size, one file or several, some of the columns: the rows of DuckDB."""
    names = data.draw(st.lists(st.sampled_from([*PLAIN_CELLS]), min_size=1, unique=True))
    files = data.draw(st.integers(1, 3))
    for k in range(files):
        rows = data.draw(st.integers(0, 9))
        columns = {
            name: pa.array([data.draw(st.none() | PLAIN_CELLS[name][1]) for _ in range(rows)], PLAIN_CELLS[name][0])
            for name in names
        }
        pq.write_table(pa.table(columns), tmp_path / f"{k}.parquet", row_group_size=data.draw(st.integers(1, 10)))
    found = scan([tmp_path / f"{k}.parquet" for k in range(files)])
    assert isinstance(found, Scan)
    assert isinstance(found.arrow, ParquetReader)
    for chosen in (found, found.without([name for name in names[1:] if data.draw(st.booleans())])):
        assert chosen.arrow_reader is not None
        by_arrow, by_duckdb = ([*one.tables()] for one in (chosen, replace(chosen, arrow=None)))
        assert by_arrow[0].schema.equals(by_duckdb[0].schema)
        assert repr(pa.concat_tables(by_arrow).to_pylist()) == repr(
            pa.concat_tables(by_duckdb).to_pylist()
        )  # NaN is NaN
        assert repr(chosen.head(2).to_pylist()) == repr(replace(chosen, arrow=None).head(2).to_pylist())


def test_a_parquet_file_whose_text_is_none(tmp_path: Path) -> None:
    texts = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(np.array([0, 2, 4], np.int32)), pa.py_buffer(b"ab\xff\xfe")]
    )
    pq.write_table(pa.table({"text": texts}), tmp_path / "table.parquet")
    with pytest.raises(DataError):
        list(scan(tmp_path / "table.parquet").tables())


@pytest.mark.parametrize(
    ("rows", "short", "expected"), [(10, 26, 1), (30_000, 26, 2), (230_000, 26, 2), (230_000, 21, 4)]
)
def test_pieces_of_one_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int, short: int, expected: int
) -> None:
    """Two or four and not three: else a thread would be idle. None is much shorter than the others."""
    monkeypatch.setattr(arrow_readers, "SHORT_BYTES", 1 << short)
    table = pa.table({"text": ["word " * 20 + str(k) for k in range(rows)], "label": ["so", "no"] * (rows // 2)})
    names = [tmp_path / f"table.{ending}" for ending in ("csv", "parquet", "jsonl")]
    pyarrow.csv.write_csv(table, names[0])
    pq.write_table(table, names[1], use_dictionary=False)
    names[2].write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    for name in names:
        pieces = [*scan(name).tables()]
        sizes = [piece.num_rows for piece in pieces]
        assert pa.concat_tables(pieces).equals(table)
        assert len(sizes) == expected
        assert min(sizes) > 0.6 * max(sizes)


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
    with pytest.raises(DataError, match=r"table\.csv\.gz.*cut off"):
        list(scan(path).tables())


def test_what_duckdb_cannot_say_of_a_damaged_file() -> None:
    """Its complaint may hold bytes of the file, which are no text."""
    with pytest.raises(DataError, match=r"^table\.parquet: the file is damaged"), translated_errors("table.parquet"):
        raise RuntimeError("nanobind::str(): conversion error!")
