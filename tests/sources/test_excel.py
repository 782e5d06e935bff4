"""Sheets of workbooks are read as CSV files with the same cells, and predictions are written to them."""

import datetime as dt
import os
import sys
import warnings
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pytest

from deciban import BayesClassifier, DataError, UsageError, scan
from deciban.errors import DecibanWarning
from deciban.sources import excel
from tests.support.command import Deciban, records, started, table

Rows = Sequence[Sequence[Any]]

# Cells of every type, with missing ones.
MIXED: Rows = [
    ["age", "seen", "day", "ok", "town", "code", "at", "kind"],
    *(
        [
            None if i % 9 == 0 else 20 + i / 4,
            dt.datetime(2024, 1, 1, 14, 30) + dt.timedelta(hours=i),
            dt.date(2024, 1, 1) + dt.timedelta(i),
            i % 3 == 0,
            None if i % 7 == 0 else ["Ulm", "St. Gallen, SG", 'the "old" town', "two\nlines"][i % 4],
            f"{i % 12:03d}",
            dt.time(8 + i % 5, 30),
            "yn"[i % 2],
        ]
        for i in range(60)
    ),
]


def save(path: Path | str, sheets: dict[str, Rows], row: int = 1, column: int = 1) -> None:
    """Write a workbook; each sheet starts at this row and column."""
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for i, cells in enumerate(rows):
            for j, cell in enumerate(cells):
                if cell is not None:
                    sheet.cell(row + i, column + j, cell)
    book.save(path)


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def read_by_pandas(name: str, **options: Any) -> pd.DataFrame:
    return pd.read_excel(name, engine="openpyxl", **options)


@pytest.mark.parametrize(("row", "column"), [(1, 1), (3, 2)])
def test_cells_are_those_that_pandas_reads(row: int, column: int) -> None:
    save("a.xlsx", {"Data": MIXED}, row, column)
    found = scan("a.xlsx").table().to_pandas()
    there = {"skiprows": row - 1, "usecols": range(column - 1, column - 1 + len(MIXED[0])), "dtype": {"code": str}}
    expected = read_by_pandas("a.xlsx", **there)
    assert found.columns.tolist() == expected.columns.tolist()
    np.testing.assert_array_equal(found["age"], expected["age"])
    assert found["seen"].tolist() == expected["seen"].tolist()
    assert found["day"].tolist() == expected["day"].dt.date.tolist()
    for name in ("ok", "town", "code", "at", "kind"):
        assert [None if pd.isna(cell) else cell for cell in found[name]] == [
            None if pd.isna(cell) else cell for cell in expected[name]
        ]


def test_a_sheet_and_the_csv_file_saved_from_it_give_one_model() -> None:
    save("a.xlsx", {"Data": MIXED})
    read_by_pandas("a.xlsx", dtype={"code": str}).to_csv("a.csv", index=False)
    book, text = (BayesClassifier(tune=None).fit(name, "kind") for name in ("a.xlsx", "a.csv"))
    assert book.shards_ == text.shards_
    assert book.schema_.types == text.schema_.types
    np.testing.assert_array_equal(book.predict_proba("a.xlsx"), text.predict_proba("a.csv"))


def test_workbooks_are_read_wherever_a_file_name_is_accepted(deciban: Deciban, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [line.split(",") for line in table().splitlines()]
    header, *rows = [[float(cell) if cell[0].isdigit() else cell for cell in line] for line in lines]
    Path("all.csv").write_text(table())
    Path("parts").mkdir()
    save("all.xlsx", {"Data": [header, *rows]})
    save("parts/a.xlsx", {"Data": [header, *rows[:90]]})
    save("parts/b.xlsx", {"Data": [header, *rows[90:]]}, row=4)
    Path("parts/~$b.xlsx").write_bytes(b"\6user")  # written by Excel while the workbook is open
    whole = BayesClassifier(tune=None).fit("all.csv", "kind")
    for source in ("all.xlsx", "parts", "parts/*.xlsx", ["parts/a.xlsx", "parts/b.xlsx"], Path("all.xlsx")):
        assert BayesClassifier(tune=None).fit(source, "kind").shards_ == whole.shards_
    with open("all.xlsx", "rb") as file:
        monkeypatch.setattr(sys, "stdin", type("Stream", (), {"buffer": file}))
        assert scan("-").table() == scan("all.csv").table()
    assert deciban("fit", "all.xlsx", "-t", "kind", "-o", "m.dcb", "--tune", "none").code == 0
    predictions = [records(deciban("predict", "m.dcb", name, "--keep", "").out) for name in ("all.xlsx", "all.csv")]
    assert predictions[0] == predictions[1]
    assert deciban("evaluate", "m.dcb", "all.xlsx").out == deciban("evaluate", "m.dcb", "all.csv").out
    assert deciban("learn", "m.dcb", "parts/a.xlsx", "-o", "n.dcb").out.startswith("n.dcb: 90 rows added")


def test_the_sheet_is_chosen_by_name_and_other_sheets_are_named(deciban: Deciban) -> None:
    save("a.xlsx", {"Cover": [], "Data": MIXED, "Empty": [], "More": [["x", "kind"], [1, "p"], [2, "q"]]})
    with pytest.warns(DecibanWarning, match=r"a\.xlsx: only the sheet 'Data' is read; use sheet='More' to read"):
        assert scan("a.xlsx").names == tuple(MIXED[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert scan("a.xlsx", sheet="More").table().to_pylist() == [{"x": 1, "kind": "p"}, {"x": 2, "kind": "q"}]
    answer = deciban("evaluate", "a.xlsx", "-t", "kind", "--tune", "none")
    assert answer.err.count("only the sheet 'Data' is read; use --sheet More to read another") == 1
    assert deciban("evaluate", "a.xlsx", "-t", "kind", "--sheet", "Data").code == 0
    answer = deciban("evaluate", "a.xlsx", "-t", "kind", "--sheet", "Mora")
    assert "no sheet 'Mora'; did you mean 'More'? The sheets are 'Cover', 'Data', 'Empty', 'More'" in answer.err
    with pytest.raises(DataError, match="the sheet 'Empty' is empty"):
        scan("a.xlsx", sheet="Empty")
    Path("a.csv").write_text("x,kind\n1,p\n")
    with pytest.raises(UsageError, match="sheet= applies to Excel files only"):
        scan("a.csv", sheet="Data")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [["Sales 2024"], [], ["a", "b", "c"], [1, 2, 3], [4, 5, 6]],
            "bad.xlsx, sheet 'S', row 2: only 1 of 3 columns have a name in this row; the header may be 2 rows",
        ),
        ([["a", None, None], [1, 2, 3]], "only 1 of 3 columns have a name in this row; the header may be 1 row"),
        ([["a", "b", "a"], [1, 2, 3]], "bad.xlsx, sheet 'S', row 2: duplicate column 'a'"),
    ],
)
def test_a_bad_header_is_an_error_with_its_place(rows: Rows, message: str) -> None:
    save("bad.xlsx", {"S": rows}, row=2, column=3)
    with pytest.raises(DataError) as error:
        scan("bad.xlsx")
    assert message in str(error.value)


def test_row_names_may_lack_a_header_and_blank_rows_are_rows() -> None:
    save("a.xlsx", {"S": [[None, "b", "c"], ["r1", 2, 3], [], ["r2", 2, "#N/A"]]})
    rows = scan("a.xlsx").table().to_pylist()
    assert rows == [
        {"column1": "r1", "b": 2, "c": 3},
        {"column1": None, "b": None, "c": None},
        {"column1": "r2", "b": 2, "c": None},  # an error is missing
    ]
    assert scan("a.xlsx", header=False).names == ("column1", "column2", "column3")


def test_a_bad_cell_is_named_by_the_row_of_the_sheet() -> None:
    rows = [["x", "note", "kind"], *([i, "two\nlines", "p"] for i in range(20_000)), ["old", "", "q"]]
    save("a.xlsx", {"S": rows}, row=5)
    with pytest.raises(DataError, match=r"a\.xlsx, line 20006, column 'x': found 'old', expected a number"):
        BayesClassifier(tune=None).fit("a.xlsx", "kind")


def test_files_that_are_no_workbooks_are_rejected() -> None:
    save("a.xlsx", {"S": MIXED})
    Path("cut.xlsx").write_bytes(Path("a.xlsx").read_bytes()[:2000])
    Path("old.xls").write_bytes(b"\xd0\xcf\x11\xe0" + bytes(2000))
    with zipfile.ZipFile("letter.docx", "w") as archive:
        archive.writestr("word/document.xml", "<x/>")
    save("none.xlsx", {"S": []})
    for name, message in {
        "cut.xlsx": "a zip archive or a damaged workbook",
        "old.xls": "old.xls: not a readable workbook",
        "letter.docx": "a zip archive or a damaged workbook",
        "none.xlsx": "none.xlsx: the workbook has no data",
    }.items():
        with pytest.raises(DataError, match=message):
            scan(name)


def test_without_the_packages_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    save("a.xlsx", {"S": MIXED})
    clf = BayesClassifier(tune=None).fit("a.xlsx", "kind")
    for package in ("python_calamine", "openpyxl"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UsageError, match=r"reading spreadsheets needs python-calamine.*pip install '\.\[excel\]'"):
        scan("a.xlsx")
    with pytest.raises(UsageError, match=r"writing spreadsheets needs openpyxl.*pip install '\.\[excel\]'"):
        clf.predict_to("p.xlsx", {"age": [1.0]})
    assert not Path("p.xlsx").exists()


def test_predictions_are_written_with_types_that_pandas_reads(deciban: Deciban) -> None:
    save("a.xlsx", {"Data": [["id", *MIXED[0]], *([i + 1, *row] for i, row in enumerate(MIXED[1:]))]})
    clf = BayesClassifier(tune=None).fit(scan("a.xlsx", ignore=["id"]), "kind")
    assert clf.predict_to("p.xlsx", "a.xlsx", probabilities=True) == 60
    found, given = read_by_pandas("p.xlsx", dtype={"code": str}), read_by_pandas("a.xlsx", dtype={"code": str})
    pd.testing.assert_frame_equal(found[given.columns], given)
    np.testing.assert_allclose(found[["P(n)", "P(y)"]], clf.predict_proba("a.xlsx"), rtol=1e-15)  # 16 digits
    assert found["predicted"].tolist() == clf.predict("a.xlsx").tolist()
    clf.save("m.dcb")
    answer = deciban("predict", "m.dcb", "a.xlsx", "-p", "-o", "q.xlsx")
    assert answer.out == "q.xlsx: 60 rows\n"
    pd.testing.assert_frame_equal(read_by_pandas("q.xlsx"), read_by_pandas("p.xlsx"))
    answer = deciban("predict", "m.dcb", "a.xlsx", "-o", "a.xlsx")
    assert answer.code == 2
    assert "output and input are the same file" in answer.err


def test_no_cell_of_an_output_is_a_formula_or_damaged() -> None:
    cells = ["=1+1", "@x", "-2+3", "#N/A", "plain", "", None, "＝1", "TRUE", "1e5"]
    rows = pa.table({
        "a": [1.0, np.inf, np.nan, *range(7)],
        "=note": cells,
        "long": [2**62 + 1, *range(9)],
        "day": pa.array([dt.date(1815, 1, 1)] * 10),
        "zone": pa.array([dt.datetime(2024, 1, 1, 12)] * 10, pa.timestamp("ns", "Europe/Berlin")),
        "until": pa.array([2**63 - 1] * 10, pa.timestamp("us")),  # how DuckDB stores infinity
    })  # fmt: skip
    clf = BayesClassifier(tune=None).fit({"b": [1.0, 2.0, 3.0, 4.0]}, ["u", "v", "u", "v"])
    clf.predict_to("p.xlsx", rows.append_column("b", pa.array([1.5] * 10)))
    header, *written = openpyxl.load_workbook("p.xlsx").active.iter_rows()
    assert all(cell.data_type != "f" for row in (header, *written) for cell in row)
    assert header[1].value == "=note"
    assert [row[1].value for row in written] == [cell or None for cell in cells]
    assert [row[1].quotePrefix for row in written] == [True, True, True, True, False, False, False, True, False, False]
    assert [row[0].value for row in written[:3]] == [1, None, None]
    assert [row[2].value for row in written[:2]] == [str(2**62 + 1), 0]
    assert (written[0][3].value, written[0][4].value) == ("1815-01-01", dt.datetime(2024, 1, 1, 12))
    assert isinstance(written[0][5].value, str)


def test_what_does_not_fit_into_a_sheet_is_rejected_and_nothing_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    clf = BayesClassifier(tune=None).fit({"b": [1.0, 2.0, 3.0, 4.0]}, ["u", "v", "u", "v"])
    assert (excel.MAX_SHEET_ROWS, excel.MAX_SHEET_COLUMNS, excel.MAX_CELL_LENGTH) == (1_048_576, 16_384, 32_767)
    monkeypatch.setattr(excel, "MAX_SHEET_ROWS", 100)
    assert clf.predict_to("p.xlsx", {"b": [1.0] * 99}) == 99
    Path("p.xlsx").unlink()
    for rows, note, message in (
        (100, "a", "an Excel sheet has at most 100 rows, with the header; write a .csv or .parquet file"),
        (2, "x" * 40_000, "column 'note': a cell of an Excel sheet has at most 32,767 characters, this one has 40,000"),
        (2, "a\x01b", r"column 'note': 'a\\x01b' contains a control character"),
    ):
        with pytest.raises(DataError, match=message):
            clf.predict_to("p.xlsx", {"b": [1.0] * rows, "note": [note] * rows})
    assert not list(Path().glob("*p.xlsx*"))


def test_sheets_of_other_programs_are_read(tmp_path: Path) -> None:
    """An OpenDocument sheet, as small as the format allows."""
    cell = '<table:table-cell office:value-type="{0}" office:{1}="{2}"><text:p>{2}</text:p></table:table-cell>'
    text = '<table:table-cell office:value-type="string"><text:p>{}</text:p></table:table-cell>'
    rows = [
        [text.format("x"), text.format("day")],
        [cell.format("float", "value", "1.5"), cell.format("date", "date-value", "2024-01-05")],
    ]
    spaces = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "table", "text")
    )
    body = "".join(f"<table:table-row>{''.join(row)}</table:table-row>" for row in rows)
    with zipfile.ZipFile("a.ods", "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("META-INF/manifest.xml", "<manifest/>")
        archive.writestr(
            "content.xml",
            f'<office:document-content {spaces}><office:body><office:spreadsheet><table:table table:name="S">{body}'
            "</table:table></office:spreadsheet></office:body></office:document-content>",
        )
    assert scan("a.ods").table().to_pylist() == [{"x": 1.5, "day": dt.date(2024, 1, 5)}]


def test_a_stray_cell_does_not_exhaust_memory() -> None:
    """A sheet is read into a dense table: with a cell in its last corner it would have 17 billion cells."""
    book = openpyxl.Workbook()
    sheet = book.active
    for row in (["a", "kind"], [1, "x"], [2, "y"]):
        sheet.append(row)
    sheet.cell(1_048_576, 1, 5)
    sheet.cell(2, 16_384, 5)
    book.save("far.xlsx")
    with pytest.raises(DataError, match="cells down to row 1,048,576 and up to column 16,384; delete the cells far"):
        scan("far.xlsx")


@pytest.mark.parametrize(
    ("words", "sheets"),
    [
        ("fit a.xlsx --sheet ", ["Data", "More rows"]),
        ("fit a.xlsx --sheet mo", ["More rows"]),
        ("fit no.xlsx --sheet ", []),
        ("fit --sheet ", []),
    ],
)
def test_the_shell_completes_sheets(words: str, sheets: list[str]) -> None:
    save("a.xlsx", {"Data": MIXED, "More rows": MIXED[:2]})
    given = ["deciban", *words.split(" ")]
    asked = {"COMP_WORDS": "\n".join(given), "COMP_CWORD": str(len(given) - 1)}
    answer = started(env={**os.environ, **asked, "_DECIBAN_COMPLETE": "bash_complete"})
    found = [line.partition(",")[2] for line in answer.stdout.decode().splitlines() if line]
    assert (found, answer.stderr) == (sheets, b"")
