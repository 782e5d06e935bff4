"""After predict, decide and evaluate people are told how many cells said nothing."""

from pathlib import Path

import pytest

from tests.support.command import HEADER, Deciban, rows

NEW = f"{HEADER}\n41.5,Ulm,yes\n,Wien,no\n39.0,Wien,no\n,,yes\nnan,Graz,yes\n"
NOTE = (
    "deciban: note: 4 missing cells: age (3), town (1); 2 cells with unseen values: town (2, such as 'Wien'); "
    "missing cells are ignored; unseen values are scored as unknown\n"
)


@pytest.mark.parametrize("command", [["predict"], ["decide"], ["evaluate"], ["predict", "--json"]])
def test_cells_that_are_missing_or_never_seen_are_counted(command: list[str], deciban: Deciban, model: str) -> None:
    Path("new.csv").write_text(NEW)
    answer = deciban(*command, model, "new.csv")
    assert (answer.code, answer.err) == (0, NOTE)


def test_nothing_is_said_where_every_cell_is_known(deciban: Deciban, model: str) -> None:
    Path("new.csv").write_text("\n".join([HEADER, *rows(5, seed=3)]) + "\n")
    assert deciban("predict", model, "new.csv").err == ""
    Path("new.csv").write_text(f"{HEADER}\n41.5,,yes\n")
    assert "1 missing cell: town (1); missing cells are ignored\n" in deciban("predict", model, "new.csv").err


def test_columns_that_are_not_there_are_told_as_such_and_not_counted(deciban: Deciban, model: str) -> None:
    Path("new.csv").write_text("town\nUlm\nWien\n")
    answer = deciban("predict", model, "new.csv")
    assert "new.csv has no column 'age': treated as missing" in answer.err
    assert "note: 1 cell with unseen values: town (1, such as 'Wien')" in answer.err
