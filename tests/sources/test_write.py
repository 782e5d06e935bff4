"""Tables written to files."""

import csv
import fcntl
import io
import os
from pathlib import Path

import pyarrow as pa
import pytest

from deciban import BayesClassifier
from deciban.sources.csv import LineEnds
from deciban.sources.write import escape_formulas, remove_leftovers, replace_file, to_stream


@pytest.mark.parametrize("kind", ["string", "large_string", "string_view", "dictionary"])
def test_text_of_any_arrow_type_is_written_and_runs_nothing(kind: str, tmp_path: Path) -> None:
    """pandas and polars hold text in their own ways; a spreadsheet must not run any of it."""
    cells = pa.array(["=1+1", "ok", "@x", "a,b"])
    given = cells.dictionary_encode() if kind == "dictionary" else cells.cast(getattr(pa, kind)())
    clf = BayesClassifier(tune=None).fit({"a": [1.0, 2.0, 3.0, 4.0]}, ["u", "v", "u", "v"])
    clf.predict_to(tmp_path / "p.csv", pa.table({"a": [1.0, 2.0, 3.0, 4.0], "note": given}))
    with (tmp_path / "p.csv").open(newline="") as file:
        assert [row["note"] for row in csv.DictReader(file)] == ["'=1+1", "ok", "'@x", "a,b"]


def test_an_empty_chunk_leaves_no_trace() -> None:
    """Arrow's own writer makes NUL bytes of it."""
    rows = pa.table({"a": ["x", "y"], "b": [1.0, 2.0]})
    file = io.BytesIO()
    with to_stream(file, "csv") as write:
        write(pa.concat_tables([rows.slice(0, 0), rows, rows.slice(0, 0), rows]))
    assert file.getvalue() == b"a,b\nx,1\ny,2\nx,1\ny,2\n"


@pytest.mark.parametrize(
    "cell",
    [
        *("\n=1+1", "\r\n=1", " =1", "\t=1", "\t@SUM(1)", "\u00a0=1", "\ufeff=1", "\v=1", "\x00=1", "+\n=1", "\n-1+1"),
        "＝1+1",
    ],
)
def test_formulas_behind_blanks_and_line_breaks_get_an_apostrophe(cell: str) -> None:
    assert escape_formulas(pa.table({"a": [cell, None, ""]}))["a"].to_pylist() == ["'" + cell, None, ""]


def test_numbers_and_plain_text_stay_as_they_are() -> None:
    cells = ["-5", " -5", "+1.5e3\n", "a=1", "\nword", " - ", "-", "1-1", "x\n=1"]
    found = escape_formulas(pa.table({"a": cells}))["a"].to_pylist()
    assert found == [cell if cell != " - " else "' - " for cell in cells]


def test_what_a_killed_process_left_half_written_is_swept(tmp_path: Path) -> None:
    """But never what somebody writes, what is new, or what is called in another way."""
    names = [
        ".m.dcb.0123456789ab.part",
        ".m.dcb.00000000000a.part",
        ".m.dcb.00000000000b.part",
        ".other.part",
        "m.part",
    ]
    for name in names:
        (tmp_path / name).write_text("half")
        os.utime(tmp_path / name, (0.0, 0.0))
    os.utime(tmp_path / names[2])
    with open(tmp_path / names[1], "rb") as mine:
        fcntl.flock(mine, fcntl.LOCK_EX)
        with replace_file(tmp_path / "m.dcb") as file:
            file.write(b"whole")
            os.utime(file.name, (0.0, 0.0))
            remove_leftovers(tmp_path)  # another process, at the same time
        assert sorted(os.listdir(tmp_path)) == sorted([*names[1:], "m.dcb"])
    remove_leftovers(tmp_path)
    assert sorted(os.listdir(tmp_path)) == sorted([*names[2:], "m.dcb"])


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_breaks_within_quotes_stay_whatever_ends_the_lines(end: str) -> None:
    """As Python's csv module reads them, however the text is cut into pieces; a quote within a cell opens nothing."""
    lines = ['a;"p\rq";c', '"u\r\nv";5" disk;"say ""\r\n"""', '"";"\n";x"', '"end\r"']
    text = end.join(lines) + end
    expected = list(csv.reader(io.StringIO(text, newline=""), delimiter=";"))
    for size in range(1, len(text) + 1):
        ends = LineEnds(";")
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        found = "".join([*map(ends.unify, pieces), ends.unify("", final=True)])
        assert list(csv.reader(io.StringIO(found, newline=""), delimiter=";")) == expected
        assert found == "\n".join(lines) + "\n"
