"""What is read without DuckDB is what DuckDB would read, and what cannot be read so DuckDB does."""

import csv
import gzip
import io
import json
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from deciban import BayesClassifier, Text, scan
from deciban.errors import DataError, DecibanError, UsageError
from deciban.files import direct_readers as quick, locate as sources
from deciban.files.duckdb_errors import translated_errors
from deciban.files.scan import Scan
from deciban.kernels.csv_cells import copy_cells, find_cells
from deciban.kernels.json_cells import copy_values, find_values

OFTEN = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

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
    """A header and cells, or whatever: mostly a CSV file."""
    columns, end = draw(st.integers(1, 3)), draw(st.sampled_from(["\n", "\n", "\r\n"]))
    header = ",".join("abc"[:columns]) + end
    if draw(st.integers(0, 3)) == 0:
        return header + "".join(draw(st.lists(MARKS, min_size=1, max_size=25)))
    width = st.integers(0, 19).map(lambda k: {0: 0, 1: columns + 1}.get(k, columns))
    rows = draw(st.lists(width.flatmap(lambda n: st.lists(CELLS, min_size=n, max_size=n)), min_size=1, max_size=6))
    text = header + "".join(",".join(row) + end for row in rows)
    return text if draw(st.booleans()) else text.removesuffix(end)


def rows_of(source: Any) -> Any:
    """The rows, or how the error begins."""
    try:
        return pa.concat_tables(source.tables()).to_pylist()
    except DecibanError as problem:
        return str(problem)


@OFTEN
@given(tables_of_text())
def test_tables_of_text(tmp_path: Path, text: str) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(text.encode())
    try:
        found = scan(path)
    except DecibanError:
        return
    assert isinstance(found, Scan)
    if found.quick is None:
        return
    by_duckdb = rows_of(replace(found, quick=None))
    if isinstance(by_duckdb, str) and ("\r" in text.replace("\r\n", "")):
        return  # it refuses lines that end in several ways, and nobody has to
    assert rows_of(found) == by_duckdb


VALUES = st.sampled_from(
    [
        "x",
        "hello world",
        "",
        "é",
        'a"b',
        "l\nm",
        "\\",
        "12",
        "2020-01-01",
        "12:30",
        "true",
        None,
        "\u2028",
        "😀",
        "[1]",
        5,
    ]
)
LINES = st.lists(st.dictionaries(st.sampled_from(["a", "b", "text", "A"]), VALUES, max_size=3), min_size=1, max_size=6)


@OFTEN
@given(
    LINES,
    st.booleans(),
    st.sampled_from(["", "\n", "\n\n", '{"a": "x", "a": "y"}', '{"a": "\\ud800"}', "[]"]),
    st.sampled_from([0, 1 << 20]),
)
def test_lines_of_json(tmp_path: Path, lines: list[dict[str, Any]], plain: bool, end: str, one_piece: int) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_text("".join(json.dumps(line, ensure_ascii=plain) + "\n" for line in lines) + end)

    def read() -> Any:
        try:
            return rows_of(scan(path))
        except DecibanError as problem:
            return str(problem)

    with mock.patch.object(quick, "ONE_PIECE", one_piece):  # or in halves
        found = read()
    with mock.patch.object(sources, "json_reader", return_value=None):
        assert found == read()


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
    ("late", "says"),
    [
        ('with a "quote" in it,label\n', None),
        ("one,two,three\n", "found 3 cells"),
        ('"never closed,label\n', "quote"),
        (b"\xff\xfe,label\n", "UTF-8"),
    ],
)
def test_what_is_strange_late_in_a_file_is_told_by_duckdb(tmp_path: Path, late: str | bytes, says: str | None) -> None:
    path = tmp_path / "late.csv"
    data = late if isinstance(late, bytes) else late.encode()
    path.write_bytes(b"text,label\n" + GOOD.encode() * 150_000 + data)
    found = scan(path)
    assert isinstance(found, Scan)
    assert found.quick is not None
    expected = rows_of(replace(found, quick=None))
    assert rows_of(found) == expected
    assert (says in expected) if says is not None else len(expected) == 150_001 or "line" in expected


def test_a_row_that_is_longer_than_what_is_read_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text("text,label\n" + GOOD * 60_000 + '"' + "word " * 1_200_000 + '",label\n' + GOOD * 10)
    found = pa.concat_tables(scan(path).tables())
    assert found.num_rows == 60_011
    assert len(found["text"][60_000].as_py()) == 6_000_000


def by_python(text: str, width: int) -> list[list[str | None]] | None:
    """The rows as Python's csv reads them; None where a quote is neither around a cell nor doubled, or a row too long.

    Python itself lets a quote be in the middle of a cell.
    """
    cell = '"(?:[^"]|"")*"|[^",\r\n]*'
    if not re.fullmatch(f"(?:(?:{cell})(?:[,\r\n]|$))*", text):
        return None
    rows = [row or [""] for row in csv.reader(io.StringIO(text, newline=""), strict=True) if row or width == 1]
    if any(len(row) != width for row in rows):
        return None
    return [[None if cell in ("", "NA") else cell for cell in row] for row in rows]


@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(CELLS, max_size=12),
    st.text('a"\n,', max_size=60).map(lambda text: text.replace("a", "word " * 15)),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.integers(1, 3),
    st.integers(1, 100),
    st.integers(1, 10),
)
def test_cells_are_those_that_python_finds(
    tmp_path: Path, cells: list[str], rest: str, end: str, width: int, block: int, most: int
) -> None:
    """However few bytes are read and cells are cut at a time: no row is cut, and none is lost."""
    signs = [end if (k + 1) % width == 0 else "," for k in range(len(cells))]
    for text in ("".join(cell + sign for cell, sign in zip(cells, signs, strict=True)), rest.replace("\n", end)):
        path = tmp_path / "table.csv"
        path.write_bytes(text.encode())
        names = tuple("abc"[:width])
        copy = partial(copy_cells, *quick._one_behind_the_other(["NA"]))
        files = quick.TextFiles((path,), None, names, partial(find_cells, ord(","), width), copy)
        assert found_in(files, block, most) == by_python(text, width)


def found_in(files: quick.TextFiles, block: int, most: int) -> list[list[str | None]] | None:
    """All rows, where so many bytes are read and cells are found at a time; None if they are strange."""
    with mock.patch.object(quick, "MOST_CELLS", most):
        try:
            return [[*row.values()] for batch in files._batches(files.names, block) for row in batch.to_pylist()]
        except (quick.UnsuitableError, pa.ArrowInvalid):
            return None


def lines_by_python(text: bytes) -> list[list[str | None]] | None:
    """The texts of lines of JSON with the keys "a" and "long key"; None where anything is else."""
    rows = []
    for line in text.split(b"\n"):
        if not line.strip(b" \t\r"):
            continue
        try:
            pairs = json.loads(line.decode(), object_pairs_hook=list)
        except ValueError:
            return None
        is_object = line.strip(b" \t\r").startswith(b"{")
        if not is_object or not pairs or len({key for key, _ in pairs}) < len(pairs):
            return None
        cells = {"a": None, "long key": None}
        for key, value in pairs:
            if key not in cells or not (value is None or isinstance(value, str)):
                return None
            if value is not None and ("\0" in value or any("\ud800" <= c < "\ue000" for c in value)):
                return None
            cells[key] = value
        rows.append([*cells.values()])
    return rows


GOOD_PARTS = [
    "x",
    "word " * 15,
    "\\\\",
    '\\"',
    "\\n",
    "\\/\\b\\f\\r\\t",
    "\\u00e9",
    "\\u12aB",
    "\\ud83d\\ude00",
    "é",
    ",",
    ":",
    "}",
]
PARTS = ["x", "\\ud83d", "\\ude00", "\\u0000", "\\", '"', "\\x", "\\u12", "\n", "\t", "\0", "{", "\x7f", *GOOD_PARTS]
TEXTS_OF_JSON = st.lists(st.sampled_from(GOOD_PARTS), max_size=6).map(lambda parts: f'"{"".join(parts)}"')
STRANGE_JSON = st.lists(st.sampled_from(PARTS), max_size=3).map(lambda parts: f'"{"".join(parts)}"')


@st.composite
def lines_of_json(draw: st.DrawFn) -> bytes:
    """Mostly lines of texts; about every second time with something that is none."""
    good, text = draw(st.booleans()), ""
    blank = st.sampled_from(["", "", " ", "\t", " \r"])
    texts = TEXTS_OF_JSON | st.just("null")
    for _ in range(draw(st.integers(0, 5))):
        keys = draw(st.permutations(['"a"', '"long key"']))[: draw(st.integers(1, 2))]
        cells = [draw(texts) for _ in keys]
        if not good and draw(st.integers(0, 2)) == 0:
            cells[0] = draw(STRANGE_JSON | st.sampled_from(["1", "nul", "true", "[]", '{"a": "x"}', "", '"x" "y"']))
        if not good and draw(st.integers(0, 5)) == 0:
            keys[0] = draw(st.sampled_from(['"b"', '"a"', '"lon\\u0067 key"', '"A"', '""', "a"]))
        space = [draw(blank) for _ in range(7)]
        pairs = (f"{space[0]}{k}{space[1]}:{space[2]}{cell}{space[3]}" for k, cell in zip(keys, cells, strict=True))
        text += f"{space[4]}{{{','.join(pairs)}}}{space[5]}" + draw(st.sampled_from(["\n", "\n", "\r\n", "\n\n"]))
    data = text.encode()
    if draw(st.booleans()):
        data = data.removesuffix(b"\n")
    if not good:
        at = draw(st.integers(0, len(data)))
        data = (
            data[:at]
            + draw(st.sampled_from([b"", b"", b"\xff", b"}", b",", b" ", b'"']))
            + data[at + draw(st.integers(0, 1)) :]
        )
    return data


@settings(max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines_of_json(), st.integers(1, 200), st.integers(1, 10))
def test_lines_are_those_that_python_finds(tmp_path: Path, data: bytes, block: int, most: int) -> None:
    path, names = tmp_path / "lines.jsonl", ("a", "long key")
    path.write_bytes(data)
    find = partial(find_values, *quick._one_behind_the_other(names))
    found = found_in(quick.TextFiles((path,), None, names, find, copy_values), block, most)
    expected = lines_by_python(data)
    assert found == expected or (found is None and b"\\u0067" in data)  # keys with backslashes are left to DuckDB


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
    types = sources._footer([path]).types
    assert (types is not None) is known
    assert types is None or types == sources._described(f"SELECT * FROM '{path}'", "it")
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
    assert quick.json_reader([path], None) is None
    with pytest.raises(DataError, match="line"):
        list(scan(path).tables())


@pytest.mark.parametrize("rows", [1, 2, 3, 10, 501])
def test_halves_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    """Every line is read once, wherever the middle is: in a line, at its end, or in one that is too long."""
    monkeypatch.setattr(quick, "ONE_PIECE", 1)
    monkeypatch.setattr(quick, "FIRST_LINES", 300)
    paths = [tmp_path / "one.jsonl", tmp_path / "two.jsonl"]
    rng, expected = np.random.default_rng(rows), []
    for _ in range(30):
        expected = [{"text": "word " * int(size)} for size in rng.choice([1, 3, 200], 2 * rows)]
        for path, lines in zip(paths, (expected[:rows], expected[rows:]), strict=True):
            path.write_text("\n".join(map(json.dumps, lines)) + "\n" * int(rng.integers(0, 3)))
        files = quick.json_reader(paths, None)
        assert files is not None
        assert files.rows == 2 * rows
        assert [row for batch in files.batches(["text"]) for row in batch.to_pylist()] == expected


def test_keys_in_another_order(tmp_path: Path) -> None:
    """A few are found wherever they are; of many it would take longer than DuckDB."""
    for width, known in ((20, True), (400, False)):
        keys = [f"key{k}" for k in range(width)]
        lines = [{key: f"good {key}" for key in order} for order in (keys, keys[::-1], keys)]
        path = tmp_path / "lines.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        assert (quick.json_reader([path], None) is not None) == known
        assert rows_of(scan(path)) == [lines[0]] * 3


def test_keys_that_look_like_a_number_of_duckdb(tmp_path: Path) -> None:
    """DuckDB calls the second of "A" and "a" by this name, and is not asked here."""
    path = tmp_path / "lines.jsonl"
    path.write_text('{"A": "some words", "a_1": "more"}\n')
    assert rows_of(scan(path)) == [{"A": "some words", "a_1": "more"}]


def test_words_that_are_dates_to_duckdb(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_text('{"when":"epoch"}\n{"when":"2020-01-01"}\n')
    assert quick.json_reader([path], None) is None


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
    assert none.quickly is None


def test_numbers_are_left_to_duckdb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No kernel is compiled to look at their quotes."""
    monkeypatch.setattr("deciban.files.direct_readers.TextFiles", lambda *_: pytest.fail("a kernel is asked"))
    path = tmp_path / "numbers.jsonl"
    path.write_text('{"x": 1.5, "label": "so"}\n' * 10)
    assert len(rows_of(scan(path))) == 10
    path = tmp_path / "numbers.csv"
    path.write_text("x,label\n" + "1.5,so\n" * 10)
    assert len(rows_of(scan(path))) == 10


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
def test_a_mark_in_the_middle_is_not_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: int) -> None:
    """Also where the second half begins."""
    monkeypatch.setattr(quick, "ONE_PIECE", 1)
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
        assert found.quickly is not None
        rows = [row for batch in found.quickly.batches(found.names) for row in batch.to_pylist()]
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
    assert isinstance(found.quick, quick.ParquetReader)
    for chosen in (found, found.without([name for name in names[1:] if data.draw(st.booleans())])):
        assert chosen.quickly is not None
        quickly, slowly = ([*one.tables()] for one in (chosen, replace(chosen, quick=None)))
        assert quickly[0].schema.equals(slowly[0].schema)
        assert repr(pa.concat_tables(quickly).to_pylist()) == repr(pa.concat_tables(slowly).to_pylist())  # NaN is NaN
        assert repr(chosen.head(2).to_pylist()) == repr(replace(chosen, quick=None).head(2).to_pylist())


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
    monkeypatch.setattr(quick, "SHORT", 1 << short)
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
