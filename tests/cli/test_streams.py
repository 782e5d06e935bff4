"""No label, no narrow encoding and no closed stream is a fault, and a terminal obeys no data."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from deciban.cli.output import accept_all_characters
from tests import PATIENCE
from tests.support.command import Answer, Deciban


class Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "ascii"])
def test_every_label_can_be_written_in_every_encoding(encoding: str) -> None:
    """To a file in UTF-8; on a terminal what it cannot show is escaped."""
    for kind, expected in ((io.TextIOWrapper, "→日".encode()), (Terminal, b"\\u2192\\u65e5")):
        stream = kind(io.BytesIO(), encoding=encoding)
        accept_all_characters(stream)
        stream.write("→日")
        stream.flush()
        assert stream.buffer.getvalue() == expected  # type: ignore[attr-defined]


def closed(numbers: tuple[int, ...], *arguments: str) -> Answer:
    """A command some of whose streams are closed."""

    def close() -> None:
        for number in numbers:
            os.close(number)

    command = [sys.executable, "-m", "deciban", *arguments]
    done = subprocess.run(command, capture_output=True, preexec_fn=close, timeout=PATIENCE)
    return Answer(done.returncode, done.stdout.decode(), done.stderr.decode())


def test_nothing_is_lost_where_streams_are_closed(deciban: Deciban, model: str) -> None:
    """Files are written, and get no word of any library; what only standard output would have is an error."""
    expected = deciban("predict", model, "base.csv").out
    assert closed((0, 1, 2), "predict", model, "base.csv", "-o", "p.csv").code == 0
    assert Path("p.csv").read_text() == expected
    for arguments in (["predict", model, "base.csv"], ["inspect", model]):
        said = closed((1,), *arguments)
        assert said.code == 5
        assert "standard output is closed" in said.err
    said = closed((0,), "predict", model, "-")
    assert said.code == 3
    assert "standard input is closed" in said.err


def test_class_names_are_shown_and_not_obeyed(deciban: Deciban) -> None:
    label = "\x1b[31mred"
    Path("t.csv").write_text(f"t,kind\nthe cat sat on the mat,{label}\nthe dog barked at the moon,no\n")
    assert deciban("fit", "t.csv", "-t", "kind", "--tune", "none", "--family", "t=Text", "-o", "m.dcb").code == 0
    for command in (["top-words", "m.dcb"], ["inspect", "m.dcb"], ["explain", "m.dcb", "t.csv"]):
        said = deciban(*command)
        assert "\x1b" not in said.out
        assert "\\u001b[31mred" in said.out


def test_names_that_are_no_text_are_shown(deciban: Deciban, model: str) -> None:
    """A file may have any bytes for a name."""
    name = os.fsdecode(b"m\xff.dcb")
    os.rename(model, name)
    said = deciban("inspect", name)
    assert said.code == 0
    assert said.out.startswith("m\\udcff.dcb: 200 rows")


def test_line_breaks_in_quotes_are_passed_on_as_they_are(deciban: Deciban, model: str) -> None:
    cells = ['"p\rq"', '"u\r\nv"', '"s\nt"', '"\n=1"']
    for end in ("\n", "\r\n"):
        lines = ["age,town,note", *(f"4{k},Ulm,{cell}" for k, cell in enumerate(cells))]
        Path("breaks.csv").write_bytes((end.join(lines) + end).encode())
        assert deciban("predict", model, "breaks.csv", "--keep", "note", "--no-escape", "-o", "p.csv").code == 0
        written = Path("p.csv").read_bytes().decode()
        assert all(cell in written for cell in cells)


def test_the_command_itself_reads_and_writes(deciban: Deciban, model: str) -> None:
    """Not only in this process: as it is started by a shell, where pandas is refused."""
    done = subprocess.run(
        [sys.executable, "-m", "deciban", "predict", model, "base.csv"], capture_output=True, timeout=PATIENCE
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode() == deciban("predict", model, "base.csv").out
