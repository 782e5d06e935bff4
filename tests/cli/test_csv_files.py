"""Whatever CSV file people have is read rightly, or refused in one line that says where, what and what to do."""

import gzip
import os
import pickle
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from deciban import load
from deciban.store.model_file import read
from tests.support.command import HEADER, Deciban, rows, table, with_line

TEXT = table()
LINES = TEXT.splitlines()
UMLAUT = TEXT.replace("Graz", "Zürich")
SAME = {
    "byte order mark": (b"\xef\xbb\xbf" + TEXT.encode(), ()),
    "UTF-16 LE": (b"\xff\xfe" + TEXT.encode("utf-16-le"), ()),
    "UTF-16 BE": (b"\xfe\xff" + TEXT.encode("utf-16-be"), ()),
    "CR": (TEXT.replace("\n", "\r").encode(), ()),
    "CR LF": (TEXT.replace("\n", "\r\n").encode(), ()),
    "mixed ends": (TEXT.replace("\n", "\r\n", 50).encode(), ()),
    "semicolons": (TEXT.replace(",", ";").encode(), ()),
    "decimal comma": (TEXT.replace(",", ";").replace(".", ",").encode(), ()),
    "tabs": (TEXT.replace(",", "\t").encode(), ()),
    "pipes": (TEXT.replace(",", "|").encode(), ()),
    "a given sign": (TEXT.replace(",", "~").encode(), ("--delimiter", "~")),
    "blank lines first": (b"\n\n" + TEXT.encode(), ()),
    "gzip": (gzip.compress(TEXT.encode()), ()),
    "zstd": (pa.compress(TEXT.encode(), "zstd", asbytes=True), ()),
    "all quoted": ("\n".join(",".join(f'"{c}"' for c in line.split(",")) for line in LINES).encode(), ()),
}


@pytest.mark.parametrize(("form", "name"), [*((form, "same.csv") for form in SAME), ("tabs", "same.csv.gz")])
def test_a_csv_file_is_read_alike_however_it_is_written(form: str, name: str, deciban: Deciban, model: str) -> None:
    """Fit and predict answer as for the plain file; what the file is, its first bytes say and not its name."""
    content, options = SAME[form]
    Path(name).write_bytes(content)
    assert deciban("fit", name, "-t", "kind", "-o", "same.dcb", "--tune", "none", *options).code == 0
    assert read("same.dcb").version == read(model).version
    found, expected = deciban("predict", model, name, *options), deciban("predict", model, "base.csv")
    assert found.code == 0
    given = found.out.replace('"', "").splitlines()  # of cells as they are written
    if form == "decimal comma":
        given = [re.sub(r"^(\d+),(\d+)", r"\1.\2", line) for line in given]
    assert given == expected.out.splitlines()


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16"])
def test_other_encodings_are_asked_for_and_then_read(encoding: str, deciban: Deciban) -> None:
    text = UMLAUT.replace("Bern", "„Bern“") if encoding == "cp1252" else UMLAUT
    Path("a.csv").write_bytes(text.encode(encoding))
    line = next(i for i, one in enumerate(text.splitlines(), 1) if not one.isascii())
    if encoding != "utf-16":
        answer = deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb", "--tune", "none")
        assert answer.code == 3
        assert f"a.csv, line {line}: the byte 0x" in answer.err
        assert "latin-1" in answer.err
    assert deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb", "--tune", "none", "--encoding", encoding).code == 0
    assert "Zürich" in deciban("predict", "m.dcb", "a.csv", "--encoding", encoding).out


def test_bytes_that_are_no_text_far_in_the_file_name_their_line(deciban: Deciban) -> None:
    Path("a.csv").write_bytes((TEXT + "40,Ulm,yes\n" * 120_000 + "40,Zürich,yes\n").encode("latin-1"))
    answer = deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb", "--tune", "none")
    assert answer.code == 3
    assert "a.csv, line 120202: invalid UTF-8" in answer.err
    assert deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb", "--tune", "none", "--encoding", "latin-1").code == 0


BROKEN = {
    "short row": (with_line("40,Ulm", 3), ["line 3", "'40,Ulm' has 2 cells, but the header has 3"]),
    "long row": (with_line("40,Ulm,yes,9", 3), ["line 3", "has 4 cells, but the header has 3"]),
    "CR LF": (with_line("40,Ulm", 6).replace("\n", "\r\n"), ["line 6", "'40,Ulm' has 2 cells"]),
    "far short row": (with_line("40,Ulm", 30_001, [HEADER, *rows(30_005)]), ["line 30001", "has 2 cells"]),
    "open quote": (with_line('40,"Ulm,yes', 51), ["line 51", "quote", "close it", '40,"Ulm,yes']),
    "far open quote": (with_line('40,"Ulm,yes', 30_001, [HEADER, *rows(30_005)]), ["line 30001", "quote"]),
    "open quote in the header": (TEXT.replace("town", '"town', 1), ["header", "unclosed quote"]),
    "name twice": (TEXT.replace("town", "age", 1), ["line 1", "'age'", "duplicate column"]),
    "CR among LF": (TEXT.replace("\n", "\r", 50), ["end", "one kind of line end"]),
    "only NUL bytes": ("a\0b\0,\0" * 200, ["NUL", "encoding"]),
    "nothing": ("", ["empty", "header and at least one row"]),
    "only newlines": ("\n\n\n", ["empty"]),
    "a zip": ("PK\3\4xx", ["zip archive or a damaged workbook", "unpack it"]),
    "a pickle": (pickle.dumps([1]), ["pickle"]),
    "an old pickle": (pickle.dumps([1], 2), ["pickle"]),
    "cut gzip": (gzip.compress(table(3000).encode())[:5000], ["cannot decompress the file"]),
    "damaged gzip": (gzip.compress(TEXT.encode())[:-6] + b"\0" * 6, ["cannot decompress the file"]),
    "cut Parquet": (b"PAR1xxxxxxxxxxxxxxxxxxxx", ["Parquet file is damaged or truncated"]),
    "far inf": (with_line("inf,Ulm,yes", 150), ["column 'age', row 149", "found inf"]),
    "1e400": (with_line("1e400,Ulm,yes", 150), ["column 'age', row 149", "found inf"]),
}


@pytest.mark.parametrize("problem", BROKEN)
@pytest.mark.parametrize("command", ["fit", "predict"])
def test_a_broken_file_says_where_and_what(problem: str, command: str, deciban: Deciban, model: str) -> None:
    """One line on standard error with the file, the line and the remedy; exit code 3; no output."""
    content, words = BROKEN[problem]
    Path("bad.csv").write_bytes(content.encode() if isinstance(content, str) else content)
    first = ("fit", "bad.csv", "-t", "kind", "-o", "x.dcb", "--tune", "none")
    answer = deciban(*(first if command == "fit" else ("predict", model, "bad.csv", "-o", "x.csv")))
    assert answer.code == 3
    assert "bad.csv" in answer.err
    for word in words:
        assert word in answer.err
    assert sorted(os.listdir()) == ["bad.csv", "base.csv", "m.dcb"]


def test_the_name_of_the_file_in_a_folder_or_list_is_told(deciban: Deciban, model: str) -> None:
    """Also where its columns are in another order than those of the first file."""
    os.mkdir("all")
    Path("all/a.csv").write_text(TEXT)
    Path("all/b.csv").write_text("kind,age,town\nyes,44,Ulm\nno,old,Graz\n")
    for source in (["all"], ["all/*.csv"], ["all/a.csv", "all/b.csv"]):
        answer = deciban("predict", model, *source)
        assert answer.code == 3
        assert "all/b.csv, line 3, column 'age': found 'old', expected a number" in answer.err


def test_files_with_columns_in_another_order_are_united_by_name(deciban: Deciban, model: str) -> None:
    Path("a.csv").write_text("age,town\n40,Ulm\n41,Graz\n")
    Path("b.csv").write_text("town,age\nUlm,40\n")
    Path("c.csv").write_text("town\nUlm\n")
    lines = deciban("predict", model, "a.csv", "b.csv", "c.csv").out.splitlines()
    assert len(lines) == 5
    assert lines[3] == lines[1]
    assert lines[4].startswith(",Ulm,yes")
    parquet.write_table(pa.table({"age": [1.0]}), "k.parquet")
    answer = deciban("predict", model, "a.csv", "k.parquet")
    assert (answer.code, "different formats (csv, parquet)" in answer.err) == (2, True)


def test_cells_of_a_megabyte_and_newlines_in_quotes_come_through(deciban: Deciban) -> None:
    long = "x" * 1_000_000
    Path("a.csv").write_text(TEXT + f'40,{long},yes\n41,"two\nlines",no\n')
    assert "202 rows" in deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb", "--tune", "none").out
    out = deciban("predict", "m.dcb", "a.csv").out
    for text in (long, '"two\nlines"'):
        assert text in out


@pytest.mark.parametrize("pack", [None, gzip.compress])
def test_a_nul_byte_is_damage_wherever_it_is(deciban: Deciban, model: str, pack: Any) -> None:
    """Also behind what is looked at first, on any way of reading, and in a table to predict."""
    rows = TEXT + "40,Ulm,yes\n" * 200_000
    for text, line in (
        (TEXT + "42,nul\0byte,yes\n", 202),
        (rows + "42,Ulm,y\0s\n", 200_202),
        (f"{TEXT}4\0,a,no\n", 202),
    ):
        Path("a.csv").write_bytes(text.encode() if pack is None else pack(text.encode()))
        for answer in (
            deciban("fit", "a.csv", "-t", "kind", "-o", "new.dcb", "--tune", "none"),
            deciban("predict", model, "a.csv"),
        ):
            assert answer.code == 3
            assert f"a.csv, line {line}: found a NUL byte; the file is damaged" in answer.err
        assert not Path("new.dcb").exists()


def test_names_of_columns(deciban: Deciban) -> None:
    """Names that differ only in case are two; a column without a name gets one."""
    Path("a.csv").write_text(TEXT.replace("town", "Age", 1))
    assert deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb", "--tune", "none").code == 0
    assert load("m.dcb").schema_.names == ("age", "Age")
    Path("b.csv").write_text(TEXT.replace("town", "", 1))
    assert deciban("fit", "b.csv", "-t", "kind", "-o", "m.dcb", "--tune", "none").code == 0
    assert load("m.dcb").schema_.names == ("age", "column2")
    Path("c.jsonl").write_text('{"age": 1, "Age": 2, "kind": "yes"}\n' * 5)
    answer = deciban("fit", "c.jsonl", "-t", "kind", "-o", "m.dcb")
    assert (answer.code, "c.jsonl: the key 'Age'" in answer.err) == (3, True)


def test_columns_at_predict_may_be_reordered_missing_or_more(deciban: Deciban, model: str) -> None:
    """Found by name; a missing one is warned of; others are passed on as they are written."""
    Path("a.csv").write_text("age,town\n40,Ulm\n")
    Path("b.csv").write_text("more,town,age\n007,Ulm,40\n")
    Path("c.csv").write_text("town\nUlm\n")
    Path("d.csv").write_text("x\n1\n")
    plain, more, fewer = (deciban("predict", model, f"{name}.csv") for name in "abc")
    assert more.out.splitlines()[1] == "007,Ulm,40" + plain.out.splitlines()[1].removeprefix("40,Ulm")
    assert plain.err == more.err == ""
    assert "warning: c.csv has no column 'age'" in fewer.err
    answer = deciban("predict", model, "d.csv")
    assert answer.code == 3
    assert "d.csv: the table has none of the model's columns ('age', 'town'); its columns are 'x'" in answer.err
