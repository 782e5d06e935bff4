"""Whatever file people have is read rightly, or refused in one line that says where, what and what to do."""

import datetime as dt
import decimal
import gzip
import json
import os
import pickle
import re
import sqlite3
import threading
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from deciban import load
from deciban.schema.looks_like import MeantAs
from tests.cli.conftest import HEADER, Deciban, rows, table

TEXT = table()
LINES = TEXT.splitlines()
UMLAUT = TEXT.replace("Graz", "Zürich")
JSON = [json.dumps({"age": 30.5 + i % 20, "town": "Ulm" if i % 3 else "Graz", "kind": "yn"[i % 2]}) for i in range(60)]
LONG = 25_000


def cells(values: list[object], name: str = "v") -> str:
    """A table of one column and labels."""
    return f"{name},kind\n" + "".join(f"{value},{'yn'[i % 2]}\n" for i, value in enumerate(values))


def with_line(line: str, at: int, lines: list[str] = LINES) -> str:
    """The table with one more line, which becomes the line of this number."""
    return "\n".join([*lines[: at - 1], line, *lines[at - 1 :]]) + "\n"


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
    assert deciban("fit", name, "-t", "kind", "-o", "same.dcb", "--plain", *options).code == 0
    assert Path("same.dcb").read_bytes() == Path(model).read_bytes()
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
        answer = deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb", "--plain")
        assert answer.code == 3
        assert f"a.csv, line {line}: the byte 0x" in answer.err
        assert "latin-1" in answer.err
    assert deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb", "--plain", "--encoding", encoding).code == 0
    assert "Zürich" in deciban("predict", "m.dcb", "a.csv", "--encoding", encoding).out


def test_bytes_that_are_no_text_far_in_the_file_name_their_line(deciban: Deciban) -> None:
    Path("a.csv").write_bytes((TEXT + "40,Ulm,yes\n" * 120_000 + "40,Zürich,yes\n").encode("latin-1"))
    answer = deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb", "--plain")
    assert answer.code == 3
    assert "a.csv, line 120202: this is not UTF-8 text" in answer.err
    assert deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb", "--plain", "--encoding", "latin-1").code == 0


BROKEN = {
    "short row": (with_line("40,Ulm", 3), ["line 3", "found 2 cells", "has 3", "'40,Ulm'"]),
    "long row": (with_line("40,Ulm,yes,9", 3), ["line 3", "found 4 cells", "has 3"]),
    "CR LF": (with_line("40,Ulm", 6).replace("\n", "\r\n"), ["line 6", "found 2 cells", "'40,Ulm'"]),
    "far short row": (with_line("40,Ulm", 30_001, [HEADER, *rows(30_005)]), ["line 30001", "found 2 cells"]),
    "open quote": (with_line('40,"Ulm,yes', 51), ["line 51", "quote", "close it", '40,"Ulm,yes']),
    "far open quote": (with_line('40,"Ulm,yes', 30_001, [HEADER, *rows(30_005)]), ["line 30001", "quote"]),
    "open quote in the header": (TEXT.replace("town", '"town', 1), ["header", "quote not closed"]),
    "name twice": (TEXT.replace("town", "age", 1), ["line 1", "'age'", "more than once"]),
    "CR among LF": (TEXT.replace("\n", "\r", 50), ["end", "one kind of end"]),
    "only NUL bytes": ("a\0b\0,\0" * 200, ["NUL", "encoding"]),
    "nothing": ("", ["empty", "header and rows"]),
    "only newlines": ("\n\n\n", ["empty"]),
    "a zip": ("PK\3\4xx", ["zip archive or a spreadsheet", "CSV"]),
    "a pickle": (pickle.dumps([1]), ["pickle"]),
    "an old pickle": (pickle.dumps([1], 2), ["pickle"]),
    "cut gzip": (gzip.compress(table(3000).encode())[:5000], ["cannot be decompressed"]),
    "damaged gzip": (gzip.compress(TEXT.encode())[:-6] + b"\0" * 6, ["cannot be decompressed"]),
    "cut Parquet": (b"PAR1xxxxxxxxxxxxxxxxxxxx", ["Parquet file is damaged or cut off"]),
    "far inf": (with_line("inf,Ulm,yes", 150), ["column 'age', row 149", "found inf"]),
    "1e400": (with_line("1e400,Ulm,yes", 150), ["column 'age', row 149", "found inf"]),
}


@pytest.mark.parametrize("problem", BROKEN)
@pytest.mark.parametrize("command", ["fit", "predict"])
def test_a_broken_file_says_where_and_what(problem: str, command: str, deciban: Deciban, model: str) -> None:
    """One line on standard error with the file, the line and the remedy; exit code 3; no output."""
    content, words = BROKEN[problem]
    Path("bad.csv").write_bytes(content.encode() if isinstance(content, str) else content)
    first = ("fit", "bad.csv", "-t", "kind", "-o", "x.dcb", "--plain")
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
    assert (answer.code, "several kinds (csv, parquet)" in answer.err) == (2, True)


@pytest.mark.parametrize("late", [0, 25_000])
def test_a_word_in_a_numeric_column_is_found_at_predict(late: int, deciban: Deciban, model: str) -> None:
    Path("a.csv").write_text("age,town\n" + "40,Ulm\n" * late + "old,Ulm\n")
    answer = deciban("predict", model, "a.csv", "-o", "p.csv")
    assert answer.code == 3
    assert f"a.csv, line {late + 2}, column 'age': found 'old', expected a number; correct the cell" in answer.err
    assert not Path("p.csv").exists()


LATE = {
    "a fraction": ([i % 97 for i in range(LONG)], "3.5"),
    "a number": ([""] * LONG + [f"{i / 7:.3f}" for i in range(5000)], "3.5"),
}


@pytest.mark.parametrize("what", LATE)
def test_what_comes_late_is_not_changed_by_what_came_first(what: str, deciban: Deciban) -> None:
    """A guess from the first rows changes no later cell: the last one comes out of predict as it went in."""
    first, last = LATE[what]
    Path("a.csv").write_text(cells([*first, last]))
    assert "Gaussian()" in deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb", "--plain").out
    lines = deciban("predict", "m.dcb", "a.csv", "--keep", "v").out.splitlines()
    assert len(lines) == len(first) + 2
    assert lines[-1].split(",")[0] == last


def test_a_word_that_comes_late_among_numbers_is_refused(deciban: Deciban) -> None:
    Path("a.csv").write_text(cells([*range(LONG), "word"]))
    answer = deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb", "--plain")
    assert answer.code == 3
    assert f"a.csv, line {LONG + 2}, column 'v': found 'word', expected a number" in answer.err
    assert "Categorical()" in deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb", "--plain", "--type", "v=text").out


def test_a_word_among_numbers_makes_text_and_is_told(deciban: Deciban) -> None:
    Path("a.csv").write_text(cells([*range(200), "many"]))
    answer = deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb", "--plain")
    assert "numbers but for cells like 'many', and taken for categories; --missing many" in answer.err
    assert "Gaussian()" in deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb", "--plain", "--missing", "many").out


def test_decimals_are_no_text_that_holds_numbers(deciban: Deciban) -> None:
    money = pa.array([decimal.Decimal(i) / 4 for i in range(100)], pa.decimal128(10, 2))
    parquet.write_table(pa.table({"money": money, "kind": ["a", "b"] * 50}), "a.parquet")
    answer = deciban("fit", "a.parquet", "-t", "kind", "-o", "m.dcb", "--plain")
    assert (answer.code, answer.err) == (0, "")
    assert "decimal numbers" in deciban("inspect", "m.dcb").out


def test_what_a_column_looks_like_is_kept_with_the_model(deciban: Deciban) -> None:
    """It is a fact of the schema, not read out of the words that are shown."""
    names = [f"{i},n{i},{'x' if i == 60 else i / 2},{'ab'[i % 2]}" for i in range(100)]
    Path("a.csv").write_text("\n".join(["number,name,amount,kind", *names]))
    Path("b.csv").write_text("\n".join(["other,kind", *(f"{i % 3},{'ab'[i % 2]}" for i in range(60))]))
    warned = deciban("fit", "a.csv", "-t", "kind", "-o", "a.dcb", "--plain").err
    assert deciban("fit", "b.csv", "-t", "kind", "-o", "b.dcb", "--plain").err == ""
    assert deciban("merge", "b.dcb", "a.dcb", "-o", "both.dcb").err == warned
    schema = load("both.dcb").counts_.schema
    identifier = MeantAs("identifier")
    assert schema.columns_like("identifier") == {"number": identifier, "name": identifier}
    assert schema.columns_like("numbers") == {"amount": MeantAs("numbers", "x")}
    assert schema.looks_like == (None, identifier, identifier, MeantAs("numbers", "x"))


def test_codes_with_leading_zeros_stay_text(deciban: Deciban) -> None:
    Path("a.csv").write_text(cells([f"{i % 9:05d}" for i in range(100)]))
    assert "Categorical()" in deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb", "--plain").out
    assert deciban("predict", "m.dcb", "a.csv").out.splitlines()[2].startswith("00001,")


@pytest.mark.parametrize("cell", ["nan", "NaN", "NA", "N/A", "null", "NULL", "None", ""])
def test_missing_cells_of_a_numeric_column(cell: str, deciban: Deciban, model: str) -> None:
    """They are missing, not text, at fit and at predict."""
    Path("a.csv").write_text(cells([*(i / 7 for i in range(100)), cell, cell]))
    assert "Gaussian()" in deciban("fit", "a.csv", "-t", "kind", "-o", "x.dcb", "--plain").out
    Path("b.csv").write_text(f"age,town\n{cell},Ulm\n")
    assert deciban("predict", model, "b.csv").out.splitlines()[1].startswith(f"{cell},Ulm,yes,")


def test_a_sign_for_missing_cells_can_be_given(deciban: Deciban) -> None:
    Path("a.csv").write_text(cells([*(i / 7 for i in range(100)), "x"]))
    assert "Categorical" in deciban("fit", "a.csv", "-t", "kind", "-o", "x.dcb", "--plain").out
    assert "Gaussian" in deciban("fit", "a.csv", "-t", "kind", "-o", "x.dcb", "--plain", "--missing", "x").out


def test_cells_of_a_megabyte_newlines_in_quotes_and_nul_bytes_come_through(deciban: Deciban) -> None:
    long = "x" * 1_000_000
    Path("a.csv").write_text(TEXT + f'40,{long},yes\n41,"two\nlines",no\n42,nul\0byte,yes\n')
    assert "203 rows" in deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb", "--plain").out
    out = deciban("predict", "m.dcb", "a.csv").out
    for text in (long, '"two\nlines"', "nul\0byte"):
        assert text in out


def test_names_of_columns(deciban: Deciban) -> None:
    """Names that differ only in case are two; a column without a name gets one."""
    Path("a.csv").write_text(TEXT.replace("town", "Age", 1))
    assert deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb", "--plain").code == 0
    assert load("m.dcb").schema_.names == ("age", "Age")
    Path("b.csv").write_text(TEXT.replace("town", "", 1))
    assert deciban("fit", "b.csv", "-t", "kind", "-o", "m.dcb", "--plain").code == 0
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
    assert "warning: c.csv has no 'age'" in fewer.err
    answer = deciban("predict", model, "d.csv")
    assert answer.code == 3
    assert "d.csv: none of the model's columns is in the table: it has 'x', the model knows 'age', 'town'" in answer.err


def test_a_target_that_is_not_there_lists_the_columns_that_are(deciban: Deciban, model: str) -> None:
    answer = deciban("fit", "base.csv", "-t", "Kind", "-o", "x.dcb")
    assert answer.code == 3
    assert "no column 'Kind'" in answer.err
    assert "'age', 'town', 'kind'" in answer.err


def test_one_class_is_warned_of(deciban: Deciban) -> None:
    Path("a.csv").write_text(TEXT.replace("no", "yes"))
    answer = deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb")
    assert (answer.code, "warning: there is only one class, 'yes'" in answer.err) == (0, True)


def test_five_thousand_classes(deciban: Deciban) -> None:
    """Tuned too, which once took minutes and ten gigabytes."""
    Path("a.csv").write_text("u,v,kind\n" + "".join(f"{i * 37 % 1000},{i % 3},k{i % 5000}\n" for i in range(10_000)))
    assert "5,000 classes" in deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb").out
    assert deciban("inspect", "m.dcb").out.count("\n") < 50
    assert len(deciban("predict", "m.dcb", "a.csv", "-o", "p.csv").out) > 0


def test_long_identifiers_are_warned_of_and_stay_exact(deciban: Deciban, model: str) -> None:
    numbers = [123456789012345678 + 7 * i for i in range(200)]
    lines = [f"id,{HEADER}", *(f"{number},{line}" for number, line in zip(numbers, LINES[1:], strict=True))]
    Path("a.csv").write_text("\n".join(lines))
    answer = deciban("fit", "a.csv", "-t", "kind", "-o", "x.dcb", "--plain")
    assert "warning: column 'id' looks like an identifier; --ignore id" in answer.err
    for one in ("x.dcb", model):
        for command in ("predict", "decide"):
            out = deciban(command, one, "a.csv", "--keep", "id").out
            assert [int(line.split(",")[0]) for line in out.splitlines()[1:]] == numbers


def test_things_that_are_no_table(deciban: Deciban, model: str) -> None:
    """Each is called by what it is; the exit code says whether the data, the model or the path is wrong."""
    with zipfile.ZipFile("a.xlsx", "w") as archive:
        archive.writestr("a.xml", "")
    with sqlite3.connect("a.db") as database:
        database.execute("CREATE TABLE t (a)")
    os.mkdir("empty")
    Path("header.csv").write_text(HEADER)
    for source, code, words in (
        ("a.xlsx", 3, "a.xlsx: this is a zip archive or a spreadsheet"),
        ("a.db", 3, "a.db: this is an SQLite database"),
        (model, 3, "m.dcb: this is a model, not a table"),
        ("empty", 3, "empty: the folder holds no CSV, JSON or Parquet files"),
        ("/dev/null", 3, "/dev/null: the file is empty"),
        ("no.csv", 5, "no.csv: there is no such file"),
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
            assert "pipe, line 3: found 2 cells" in answer.err
            assert "standard input, line 3: found 2 cells" in other.err


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        (decimal.Decimal("1.50"), "1.50"),
        (dt.datetime(2020, 1, 2, tzinfo=dt.UTC), "2020-01-02"),
        (dt.date(2020, 1, 2), "2020-01-02"),
        (dt.time(1, 2), "01:02:00"),
        ({"a": 1}, None),
        ([1, 2], None),
        (b"\xff", None),
        (None, ""),
    ],
)
def test_types_of_parquet(cell: object, shown: str | None, deciban: Deciban) -> None:
    """Decimals, dates and times are numbers; lists, records and bytes are refused with the name of the column."""
    parquet.write_table(pa.table({"v": [cell, cell] * 20, "kind": ["yes", "no"] * 20}), "a.parquet")
    answer = deciban("fit", "a.parquet", "-t", "kind", "-o", "m.dcb", "--plain")
    if shown is None:
        assert answer.code == 3
        assert "a.parquet: column 'v': it holds" in answer.err
        assert deciban("fit", "a.parquet", "-t", "kind", "-o", "m.dcb", "--ignore", "v").code != 1
        return
    assert answer.code == 0
    assert deciban("predict", "m.dcb", "a.parquet").out.splitlines()[1].startswith(shown)
    assert deciban("explain", "m.dcb", "a.parquet").code == 0
    assert deciban("predict", "m.dcb", "a.parquet", "-o", "p.parquet").code == 0
    kept = parquet.read_table("p.parquet")["v"].to_pylist()
    assert kept[0] == cell


def test_categories_and_damage_of_parquet(deciban: Deciban, model: str) -> None:
    towns = pa.array(["Ulm", "Graz"] * 20).dictionary_encode()
    parquet.write_table(pa.table({"town": towns, "age": [40.0, 41.0] * 20}), "a.parquet")
    assert deciban("predict", model, "a.parquet").out.splitlines()[1].startswith("Ulm,40,yes,")
    whole = Path("a.parquet").read_bytes()
    for damaged in (whole[: len(whole) // 2], whole[:6], whole[:20] + b"\xff" * 60 + whole[80:]):
        Path("b.parquet").write_bytes(damaged)
        answer = deciban("predict", model, "b.parquet")
        assert answer.code == 3
        assert "b.parquet: the Parquet file is damaged or cut off" in answer.err


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
    assert "age     string  Categorical()" in deciban("fit", "word.jsonl", "-t", "kind", "-o", "x.dcb", "--plain").out
    answer = deciban("predict", model, "word.jsonl")
    assert (answer.code, "word.jsonl: column 'age', row 61: found 'old'" in answer.err) == (3, True)
    Path("deep.jsonl").write_text('{"age": {"years": 3}, "kind": "y"}\n' * 9)
    answer = deciban("fit", "deep.jsonl", "-t", "kind", "-o", "x.dcb")
    assert (answer.code, "deep.jsonl: column 'age': it holds struct" in answer.err) == (3, True)


@pytest.mark.parametrize("before", [30, 30_000])
@pytest.mark.parametrize("broken", ['{"age": 3, "town"', '{"age": 3,, "town": "Ulm"}', "age"])
def test_a_broken_line_of_json_is_named(before: int, broken: str, deciban: Deciban, model: str) -> None:
    lines = (JSON * (before // 60 + 1))[:before]
    Path("a.jsonl").write_text("\n".join([*lines, broken, *JSON]) + "\n")
    answer = deciban("predict", model, "a.jsonl")
    assert answer.code == 3
    assert f"a.jsonl, line {before + 1}: this is not a line of JSON" in answer.err


@pytest.mark.parametrize(
    ("query", "code", "words"),
    [
        ("", 2, "holds no query"),
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
    answer = deciban("fit", query, "-t", "kind", "-o", "x.dcb", "--plain", "--type", "age=number")
    assert answer.code == 0
    found, expected = deciban("predict", "x.dcb", "base.csv").out, deciban("predict", model, "base.csv").out
    assert found.replace("!", "") == expected


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (["1", "2", "3"], [1, 2, 3]),
        (["1.0", "2.0"], [1, 2]),
        (["true", "false"], [False, True]),
        (["2020-01-01", "2021-02-03"], ["2020-01-01", "2021-02-03"]),
        (["01", "02"], ["01", "02"]),
        (["1", "x"], ["1", "x"]),
        (["yes", "no", ""], ["no", "yes"]),
        (["123456789012345678", "123456789012345679"], [123456789012345678, 123456789012345679]),
    ],
)
def test_labels_of_every_kind(labels: list[str], classes: list[object] | None, deciban: Deciban) -> None:
    """They are learned, predicted, compared with and learned on; rows without one are left out and counted."""
    Path("a.csv").write_text("v,kind\n" + "".join(f"{i % 7},{label}\n" for i, label in enumerate(labels * 20)))
    answer = deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb", "--plain")
    assert answer.code == 0
    assert ("20 rows without a label left out" in answer.out) == ("" in labels)
    found = json.loads(deciban("evaluate", "m.dcb", "a.csv", "--json").out)
    assert found["rows"] == 20 * len([label for label in labels if label])
    assert classes is None or found["classes"] == classes
    assert deciban("learn", "m.dcb", "a.csv", "-o", "n.dcb", "--force").code == 0
    assert load("n.dcb").classes_.tolist() == load("m.dcb").classes_.tolist()


@pytest.mark.parametrize(
    ("labels", "words"), [(["1.5", "2.5"], "labels are fractions"), (["", ""], "every label is missing")]
)
def test_labels_that_cannot_be(labels: list[str], words: str, deciban: Deciban) -> None:
    Path("a.csv").write_text("v,kind\n" + "".join(f"{i % 7},{label}\n" for i, label in enumerate(labels * 20)))
    answer = deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb")
    assert (answer.code, words in answer.err) == (3, True)


@pytest.mark.parametrize(
    ("weight", "words"), [("-2", "row 2: its weight is -2.0"), ("", "row 2: its weight is nan"), ("x", "not numbers")]
)
def test_weights_that_cannot_be(weight: str, words: str, deciban: Deciban) -> None:
    Path("a.csv").write_text("v,kind,w\n" + f"1,yes,1\n2,no,{weight}\n" * 9)
    answer = deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb", "--weight", "w")
    assert (answer.code, words in answer.err) == (3, True)
    answer = deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb", "--weight", "z")
    assert (answer.code, "no column 'z'" in answer.err) == (3, True)


COSTS_THAT_ARE_WRONG = {
    "one line": (",yes,no\n", "no table of decisions by classes"),
    "an empty cell": (",yes,no\nyes,0,\nno,1,0\n", "an empty cell in the line of 'yes'"),
    "a word": (",yes,no\nyes,0,much\nno,1,0\n", "'much'"),
    "infinite": (",yes,no\nyes,0,inf\nno,1,0\n", "of deciding 'yes' when 'no' is true"),
    "another class": (",yes,perhaps\nyes,0,1\nno,1,0\n", "'no' has no column"),
    "a class too many": (",yes,no,perhaps\nyes,0,1,1\nno,1,0,1\n", "'perhaps' is no class of the model"),
    "the same twice": (",yes,no\nyes,0,1\nyes,1,0\n", "are not all different"),
    "no text": ("\udcff\udcfe,yes\n", "no text in UTF-8"),
}


@pytest.mark.parametrize("case", COSTS_THAT_ARE_WRONG)
@pytest.mark.parametrize("command", ["decide", "evaluate"])
def test_costs_that_are_wrong_are_data_and_their_file_is_named(
    case: str, command: str, deciban: Deciban, model: str
) -> None:
    content, words = COSTS_THAT_ARE_WRONG[case]
    Path("costs.csv").write_bytes(content.encode(errors="surrogateescape"))
    answer = deciban(command, model, "base.csv", "--costs", "costs.csv")
    assert answer.code == 3
    assert answer.err.startswith("deciban: error: costs.csv: ")
    assert "base.csv" not in answer.err
    assert words in answer.err


def test_costs_that_do_not_fit_folds_are_data_too(deciban: Deciban, model: str) -> None:
    Path("costs.csv").write_text(",yes,perhaps\nyes,0,1\nno,1,0\n")
    answer = deciban("evaluate", "base.csv", "-t", "kind", "--plain", "--folds", "2", "--costs", "costs.csv")
    assert (answer.code, answer.err.startswith("deciban: error: costs.csv: ")) == (3, True)


def test_costs_may_name_a_column(deciban: Deciban, model: str) -> None:
    Path("costs.csv").write_text(",yes,no\nyes,0,age\nno,1,0\n")
    assert deciban("decide", model, "base.csv", "--costs", "costs.csv").code == 0


@pytest.mark.parametrize(
    "command",
    [
        ["fit", "base.csv", "-t", "kinds", "-o", "x.dcb"],
        ["evaluate", "base.csv", "-t", "kinds"],
        ["evaluate", "m.dcb", "base.csv", "-t", "kinds"],
        ["learn", "m.dcb", "base.csv", "-t", "kinds"],
        ["forget", "m.dcb", "base.csv", "-t", "kinds"],
        ["fit", "base.csv", "-t", "kind", "--weight", "kinds", "-o", "x.dcb"],
    ],
)
def test_a_column_that_the_table_lacks_is_data(command: list[str], deciban: Deciban, model: str) -> None:
    answer = deciban(*command)
    assert answer.code == 3
    assert answer.err.startswith("deciban: error: base.csv: ")
    assert "there is no column 'kinds'" in answer.err
    assert "did you mean 'kind'?" in answer.err
