"""What cells of a column are taken for: numbers, text, codes, missing."""

import decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from deciban import load
from deciban.schema.schema import LooksLike
from tests.support.command import HEADER, Deciban, table

TEXT = table()
LINES = TEXT.splitlines()
LONG = 25_000


def cells(values: list[object], name: str = "v") -> str:
    """A table of one column and labels."""
    return f"{name},kind\n" + "".join(f"{value},{'yn'[i % 2]}\n" for i, value in enumerate(values))


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
    assert "Gaussian()" in deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb", "--tune", "none").out
    lines = deciban("predict", "m.dcb", "a.csv", "--keep", "v").out.splitlines()
    assert len(lines) == len(first) + 2
    assert lines[-1].split(",")[0] == last


def test_a_word_that_comes_late_among_numbers_is_refused(deciban: Deciban) -> None:
    Path("a.csv").write_text(cells([*range(LONG), "word"]))
    answer = deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb", "--tune", "none")
    assert answer.code == 3
    assert f"a.csv, line {LONG + 2}, column 'v': found 'word', expected a number" in answer.err
    assert (
        "Categorical()"
        in deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb", "--tune", "none", "--type", "v=text").out
    )


def test_a_word_among_numbers_makes_text_and_is_told(deciban: Deciban) -> None:
    Path("a.csv").write_text(cells([*range(200), "many"]))
    answer = deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb", "--tune", "none")
    assert "looks like numbers, except for 'many', but was read as text; use --missing many" in answer.err
    assert (
        "Gaussian()" in deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb", "--tune", "none", "--missing", "many").out
    )


def test_decimals_are_no_text_that_holds_numbers(deciban: Deciban) -> None:
    money = pa.array([decimal.Decimal(i) / 4 for i in range(100)], pa.decimal128(10, 2))
    parquet.write_table(pa.table({"money": money, "kind": ["a", "b"] * 50}), "a.parquet")
    answer = deciban("fit", "a.parquet", "-t", "kind", "-o", "m.dcb", "--tune", "none")
    assert (answer.code, answer.err) == (0, "")
    assert "decimal numbers" in deciban("inspect", "m.dcb").out


def test_what_a_column_looks_like_is_kept_with_the_model(deciban: Deciban) -> None:
    """It is a fact of the schema, not read out of the words that are shown."""
    names = [f"{i},n{i},{'x' if i == 60 else i / 2},{'ab'[i % 2]}" for i in range(100)]
    Path("a.csv").write_text("\n".join(["number,name,amount,kind", *names]))
    Path("b.csv").write_text("\n".join(["other,kind", *(f"{i % 3},{'ab'[i % 2]}" for i in range(60))]))
    assert "look like identifiers" in deciban("fit", "a.csv", "-t", "kind", "-o", "a.dcb", "--tune", "none").err
    assert deciban("fit", "b.csv", "-t", "kind", "-o", "b.dcb", "--tune", "none").err == ""
    assert deciban("merge", "b.dcb", "a.dcb", "-o", "both.dcb", "--force").err == ""  # the fit has warned
    schema = load("both.dcb").counts_.schema
    identifier = LooksLike("identifier")
    assert schema.columns_like("identifier") == {"number": identifier, "name": identifier}
    assert schema.columns_like("numbers") == {"amount": LooksLike("numbers", "x")}
    assert schema.looks_like == (None, identifier, identifier, LooksLike("numbers", "x"))


def test_codes_with_leading_zeros_stay_text(deciban: Deciban) -> None:
    Path("a.csv").write_text(cells([f"{i % 9:05d}" for i in range(100)]))
    assert "Categorical()" in deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb", "--tune", "none").out
    assert deciban("predict", "m.dcb", "a.csv").out.splitlines()[2].startswith("00001,")


@pytest.mark.parametrize("cell", ["nan", "NaN", "NA", "N/A", "null", "NULL", "None", ""])
def test_missing_cells_of_a_numeric_column(cell: str, deciban: Deciban, model: str) -> None:
    """They are missing, not text, at fit and at predict."""
    Path("a.csv").write_text(cells([*(i / 7 for i in range(100)), cell, cell]))
    assert "Gaussian()" in deciban("fit", "a.csv", "-t", "kind", "-o", "x.dcb", "--tune", "none").out
    Path("b.csv").write_text(f"age,town\n{cell},Ulm\n")
    assert deciban("predict", model, "b.csv").out.splitlines()[1].startswith(f"{cell},Ulm,yes,")


def test_a_sign_for_missing_cells_can_be_given(deciban: Deciban) -> None:
    Path("a.csv").write_text(cells([*(i / 7 for i in range(100)), "x"]))
    assert "Categorical" in deciban("fit", "a.csv", "-t", "kind", "-o", "x.dcb", "--tune", "none").out
    assert "Gaussian" in deciban("fit", "a.csv", "-t", "kind", "-o", "x.dcb", "--tune", "none", "--missing", "x").out


def test_long_identifiers_are_warned_of_and_stay_exact(deciban: Deciban, model: str) -> None:
    numbers = [123456789012345678 + 7 * i for i in range(200)]
    lines = [f"id,{HEADER}", *(f"{number},{line}" for number, line in zip(numbers, LINES[1:], strict=True))]
    Path("a.csv").write_text("\n".join(lines))
    answer = deciban("fit", "a.csv", "-t", "kind", "-o", "x.dcb", "--tune", "none")
    assert "warning: column 'id' looks like an identifier; use --ignore id to leave it out" in answer.err
    for one in ("x.dcb", model):
        for command in ("predict", "decide"):
            out = deciban(command, one, "a.csv", "--keep", "id").out
            assert [int(line.split(",")[0]) for line in out.splitlines()[1:]] == numbers
