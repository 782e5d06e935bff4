"""Texts in files: with line breaks in quotes, long, in every kind of file."""

import gzip
import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import event, given, settings, strategies as st

from deciban import BayesClassifier, Text, scan
from deciban.sources.csv import quotes_in, quotes_of
from deciban.testing import assert_same_counts
from tests import example_count

ROWS = 3_000


@pytest.fixture(scope="module")
def texts() -> pa.Table:
    """Texts of many lines, whose lines look like rows of a CSV file."""
    rng = np.random.default_rng(0)
    words = np.array(["win", "lunch", "a,b", 'say "yes"', "Grüße", "end.\nspam,next", "x;y", "\n\n", 'ham,"1",2'])
    label = rng.integers(0, 2, ROWS)
    said = [" ".join(words[rng.integers(0, words.size, rng.integers(0, 200))]) for _ in range(ROWS)]
    return pa.table({"label": np.array(["ham", "spam"])[label], "text": said})


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_texts_of_many_lines_are_read_as_they_are(texts: pa.Table, kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"texts.{kind}"
    if kind == "csv":
        texts.to_pandas().to_csv(path, index=False)
    elif kind == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in texts.to_pylist()))
    else:
        pq.write_table(texts, path)
    found = pd.concat([piece.to_pandas() for piece in scan(str(path)).tables()])
    assert found["text"].fillna("").tolist() == texts["text"].to_pylist()
    whole = BayesClassifier({"text": Text()}, tune=None).fit(texts, "label")
    streamed = BayesClassifier({"text": Text()}, tune=None).fit(str(path), "label")
    if kind != "csv":  # an empty cell of a CSV file is a missing one
        assert_same_counts(streamed.counts_, whole.counts_, exact=True)
    np.testing.assert_array_equal(streamed.counts_.statistics[0].tables[0], whole.counts_.statistics[0].tables[0])


def test_line_breaks_that_come_late_are_noticed(tmp_path: Path) -> None:
    """The first megabyte has none; a thread that begins in the middle of a cell must not take its lines for rows."""
    path = tmp_path / "late.csv"
    short = "".join(f"ham,lunch {k}\n" for k in range(150_000))
    long = "".join(f'spam,"win\n{chr(10).join(f"line {j} of {k}" for j in range(3_000))}"\n' for k in range(300))
    path.write_text("label,text\n" + short + long)
    rows = sum(piece.num_rows for piece in scan(str(path)).tables())
    assert rows == 150_300
    clf = BayesClassifier({"text": Text()}, tune=None).fit(str(path), "label")
    assert clf.counts_.class_weight.tolist() == [150_000.0, 300.0]


@pytest.mark.parametrize("late", [False, True])
def test_lines_in_quotes_that_look_like_rows(tmp_path: Path, late: bool) -> None:
    """DuckDB reads a file in parts; what it took for rows before it noticed was kept, one time in three."""
    path = tmp_path / "table.csv"
    long = "word " * 12_000 + ",1,so\n"
    break_soon = "" if late else '"one\nbreak",1,so\n'
    path.write_text("text,x,y\n" + 4 * long + break_soon + 36 * long + 400 * ('"' + "l1,2,so\n" * 3_000 + '",2.5,no\n'))
    for _ in range(6):
        assert sum(piece.num_rows for piece in scan(path).tables()) == (440 if late else 441)


@settings(max_examples=example_count(300))
@given(
    st.lists(st.sampled_from(['"', ',"', '"', ',"x"', "\n", "\r\n", "x", "y" * 40, "z" * 100, '"",']), max_size=30),
    st.integers(1, 200),
)
def test_quotes(parts: list[str], block: int) -> None:
    """Whether they are closed, around cells, and around line breaks, however the file is cut into blocks."""
    text = "".join(parts)
    inside = [text[:k].count('"') % 2 == 1 for k in range(len(text))]
    data = text.encode()
    found = quotes_of((data[k : k + block] for k in range(0, len(data), block)), ",")
    broken = any(is_inside and sign in "\r\n" for is_inside, sign in zip(inside, text, strict=True))
    around = f"\n{text}\n"
    beside = [around[k] if not inside[k] else around[k + 2] for k, sign in enumerate(text) if sign == '"']
    around_cells = all(sign in ',\r\n"' for sign in beside)
    closed = text.count('"') % 2 == 0
    event(f"breaks: {broken}, around cells: {around_cells}, closed: {closed}")
    assert found[:3] == (closed, broken or not around_cells, closed and around_cells)


def test_cells_of_all_forms_of_quotes() -> None:
    for text, plain in (
        ('a,"b ""c"" d"\n', True),
        ('a,""\n"",b\n', True),
        ('a,b"c"\n', False),
        ('a,"b"c\n', False),
        ("a,b\rc,d\r", False),
        ('a,"b\rc"\r\n', True),
        ("a,b\r\nc\r,d\r\n", False),
        ("a,b\nc,d\r", False),
        ('a;"b"\n', False),
    ):
        assert quotes_of([text.encode()], ",").plain == plain
        assert quotes_of([bytes([sign]) for sign in text.encode()], ",").plain == plain


def rows_in_quotes(bare: str = "") -> bytes:
    """A million rows, and two cells of lines that look like rows where DuckDB has a part begin."""
    data = b"x,y,t,u\n" + b"".join(b"%d,%s,word,8in\n" % (i, b"ab"[i % 2 : i % 2 + 1]) for i in range(1_000_000))
    for place in (8_000_000, 1 << 23):
        at = data.rfind(b"\n", 0, place - 150_000) + 1
        cell = f'5,a{bare},"' + "7,c,row,here\n" * 23_000 + f'7,c,row",8{bare or "in"}\n'
        data = data[:at] + cell.encode() + data[at:]
    return data


def test_a_compressed_file_beside_one_with_line_breaks(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_bytes(rows_in_quotes())
    with gzip.open(tmp_path / "two.csv.gz", "wb") as file:
        file.write(b"x,y,t,u\n1,a,b,c\n")
    found = pa.concat_tables(scan([tmp_path / "one.csv", tmp_path / "two.csv.gz"]).tables())
    assert found.num_rows == 1_000_003
    assert set(found["y"].to_pylist()) == {"a", "b"}


def test_bare_quotes_do_not_hide_line_breaks(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(rows_in_quotes('"'))
    found = pa.concat_tables(scan(path).tables())
    assert found.num_rows == 1_000_002
    assert set(found["y"].to_pylist()) == {"a", "b", 'a"'}


def test_a_file_that_changes_is_looked_through_again(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    text = "x,y,t,u\n" + "1,a,word,8in\n" * 10
    path.write_text(text)
    found = scan(path)
    assert sum(piece.num_rows for piece in found.tables()) == 10
    times = path.stat()
    path.write_bytes(rows_in_quotes())
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert sum(piece.num_rows for piece in found.tables()) == 1_000_002


def test_quotes_far_from_each_other(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    for text, closed, with_breaks in (
        ("x" * (5 << 20), True, False),
        ('"' + "x" * (9 << 20) + '"', True, False),
        ('"' + "x" * (5 << 20) + "\n" + "x" * (5 << 20) + '"', True, True),
        ('"' + "x" * (5 << 20) + "\r", False, True),
    ):
        path.write_text(text)
        assert quotes_in(path, ",")[:2] == (closed, with_breaks)


def test_decimal_commas_behind_long_texts(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("text;x;y\n" + ("word " * 400 + ";1;so\n") * 70 + ("word " * 400 + ";2,5;so\n") * 100)
    assert pa.types.is_floating(next(iter(scan(path).tables()))["x"].type)


def test_the_pieces_of_long_texts_have_fewer_rows(tmp_path: Path) -> None:
    path = tmp_path / "long.parquet"
    pq.write_table(pa.table({"text": [f"{k} " + "word " * 20_000 for k in range(2_000)], "y": [0, 1] * 1_000}), path)
    pieces = [piece.num_rows for piece in scan(str(path)).tables()]
    assert sum(pieces) == 2_000
    assert max(pieces) < 2_000


def test_a_text_of_many_megabytes_in_a_csv_file(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    with path.open("w") as file:
        file.write('label,text\nham,"short one"\nspam,"')
        file.write("winning word\n" * 2_000_000)
        file.write('"\nham,short two\n')
    clf = BayesClassifier({"text": Text()}, tune=None).fit(str(path), "label")
    assert clf.top_words("spam")[0].count == 2_000_000.0
    assert clf.predict(["winning", "short"]).tolist() == ["spam", "ham"]
