"""Warnings about columns that were read as text name what reads them, and it does."""

import datetime as dt
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from deciban import BayesClassifier, Gaussian, scan
from deciban.errors import DecibanWarning
from tests.sources.test_excel import save
from tests.support.command import Deciban

ROWS = 120
MOMENTS = [dt.datetime(2023, 3, 30, 9, 5) + dt.timedelta(hours=31 * i) for i in range(ROWS)]
KINDS = ["a", "b"] * (ROWS // 2)
FORMATS = [
    *("%d.%m.%Y %H:%M", "%d/%m/%Y %H:%M:%S", "%m/%d/%Y %I:%M %p", "%d-%b-%Y %H:%M", "%B %d, %Y %H:%M"),
    *("%d %b %Y %H:%M", "%Y/%m/%d %H:%M", "%m/%d/%y, %I:%M:%S %p"),
]


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def fit(rows: Any, **more: Any) -> tuple[BayesClassifier, list[str]]:
    """A model, and the warnings of its fit."""
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        clf = BayesClassifier(tune=None, **more).fit(rows, "kind")
    return clf, [str(one.message) for one in given if isinstance(one.message, DecibanWarning)]


def write(cells: list[str], name: str = "a.csv") -> pd.DataFrame:
    frame = pd.DataFrame({"when": cells, "size": np.arange(ROWS) / 7.0, "kind": KINDS})
    frame.to_csv(name, index=False)
    return frame


@pytest.mark.parametrize("form", FORMATS)
def test_the_option_of_the_warning_reads_the_dates(form: str, deciban: Deciban) -> None:
    frame = write([moment.strftime(form) for moment in MOMENTS])
    (warning,) = fit("a.csv")[1]
    assert warning == (
        f"column 'when' looks like dates ({form}), but was read as text; use date_format={form!r} to read it as dates"
    )
    rows = scan("a.csv", date_format=form)
    expected = pd.to_datetime(frame["when"], format=form).dt.to_pydatetime().tolist()
    assert rows.table()["when"].to_pylist() == expected
    clf, warned = fit(rows)
    assert (warned, clf.schema_.groups[0].family) == ([], Gaussian())
    answer = deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb", "--tune", "none")
    assert answer.err.count("column 'when' looks like dates") == 1
    assert f"use --date-format '{form}' to read it as dates" in answer.err


def test_a_column_of_several_formats_is_read_by_the_option() -> None:
    forms = ["%Y-%m-%d", "%d/%m/%Y", "%d/%m/%Y %H:%M"]
    days = [moment.replace(hour=0, minute=0) if i % 10 < 9 else moment for i, moment in enumerate(MOMENTS)]
    write([day.strftime(forms[0 if i % 10 < 8 else i % 10 - 7]) for i, day in enumerate(days)])
    (warning,) = fit("a.csv")[1]
    form = "%d/%m/%Y|%d/%m/%Y %H:%M"
    assert warning.startswith(
        "column 'when' looks like dates (%d/%m/%Y, %d/%m/%Y %H:%M), but was read as text; use date"
    )
    assert f"date_format={form!r}" in warning
    assert scan("a.csv", date_format=form).table()["when"].to_pylist() == days


def test_a_word_among_dates_is_named_with_both_options() -> None:
    write([*(moment.strftime("%d.%m.%Y") for moment in MOMENTS[1:]), "soon"])
    (warning,) = fit("a.csv")[1]
    assert "except for 'soon', but was read as text; use date_format='%d.%m.%Y' and missing='soon' to read" in warning
    rows = scan("a.csv", date_format="%d.%m.%Y", missing=["soon"])
    assert rows.table()["when"].to_pylist() == [*(moment.date() for moment in MOMENTS[1:]), None]
    write([*(moment.date().isoformat() for moment in MOMENTS[1:]), "soon"])
    (warning,) = fit("a.csv")[1]
    assert "except for 'soon', but was read as text; use missing='soon' to treat such cells as missing" in warning


AMOUNTS = {
    "$": ([f"${i},{237 + i}.50" for i in range(1, ROWS + 1)], [237.5 + 1001 * i for i in range(1, ROWS + 1)]),
    "€": ([f"€ {i}.{237 + i},50" for i in range(1, ROWS + 1)], [237.5 + 1001 * i for i in range(1, ROWS + 1)]),
    "USD": ([f"{i},{237 + i}.50 USD" for i in range(1, ROWS + 1)], [237.5 + 1001 * i for i in range(1, ROWS + 1)]),
    "minus": ([f"-${i},{237 + i}.50" for i in range(1, ROWS + 1)], [-237.5 - 1001 * i for i in range(1, ROWS + 1)]),
    "parentheses": (
        [f"({i},{237 + i})" if i % 3 else f"{i},{237 + i}" for i in range(1, ROWS + 1)],
        [(-237 - 1001 * i) if i % 3 else 237 + 1001 * i for i in range(1, ROWS + 1)],
    ),
    "%": ([f"{i}%" for i in range(1, ROWS + 1)], list(range(1, ROWS + 1))),
}


@pytest.mark.parametrize("what", AMOUNTS)
def test_the_query_of_the_warning_reads_the_amounts(what: str, deciban: Deciban) -> None:
    cells, numbers = AMOUNTS[what]
    write(cells)
    warned = fit("a.csv")[1]
    assert warned[0].startswith("column 'when' looks like numbers ")
    prefix = "to read 'when' as numbers, use X="
    assert warned[1].startswith(prefix)
    query = eval(warned[1].removeprefix(prefix))
    clf, again = fit(query)
    assert (again, clf.schema_.groups[0].family) == ([], Gaussian())
    assert scan(query).table()["when"].to_pylist() == numbers
    answer = deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb", "--tune", "none")
    assert answer.err.count("column 'when' looks like numbers") == answer.err.count('use "sql: select') == 1


@pytest.mark.parametrize(
    ("cells", "as_text", "in_memory"),
    [
        (
            [f"{i},{i:03d}" for i in range(1, ROWS + 1)],
            "use thousands=',' to read it as numbers",
            "convert it to numbers",
        ),
        ([f"{i % 99}%" for i in range(ROWS)], "to read 'when' as numbers", "convert it to numbers"),
        ([f"n{i}" for i in range(ROWS)], "use deciban.scan('a.csv', ignore='when') to leave it out", "drop it"),
        ([f"{m:%d.%m.%Y}" for m in MOMENTS], "use date_format='%d.%m.%Y' to read it as dates", "convert it to dates"),
    ],
)
def test_fit_warns_wherever_the_rows_come_from(cells: list[str], as_text: str, in_memory: str) -> None:
    """In Python as on the command line, whatever holds the table; only the remedy depends on it."""
    frame = write(cells)
    parquet.write_table(pa.Table.from_pandas(frame), "a.parquet")
    save("a.xlsx", {"S": [frame.columns.tolist(), *frame.values.tolist()]})
    for rows in (frame, pa.Table.from_pandas(frame), "a.csv", "a.parquet", "a.xlsx"):
        clf, warned = fit(rows)
        assert warned[0].startswith("column 'when' looks like ")
        remedy = in_memory if not isinstance(rows, str) else as_text if rows == "a.csv" else ""
        assert remedy in " ".join(warned)
        assert str(clf.schema_.looks_like[0]) in warned[0]


def test_iso_dates_in_text_columns_are_not_identifiers() -> None:
    frame = write([moment.isoformat() for moment in MOMENTS])
    assert fit("a.csv")[1] == []
    assert fit(frame)[1] == ["column 'when' looks like dates, but was read as text; convert it to dates"]
    parquet.write_table(pa.Table.from_pandas(frame), "a.parquet")
    (warning,) = fit("a.parquet")[1]
    assert warning.endswith("; use types={'when': 'date'} to read it as dates")
    assert fit(scan("a.parquet", types={"when": "date"}))[1] == []


@pytest.mark.parametrize("tune", ["auto", "weights"])
def test_a_tuned_schema_keeps_the_mark(tune: str) -> None:
    rng = np.random.default_rng(0)
    kinds = rng.integers(0, 2, 300)
    frame = pd.DataFrame({
        "id": [f"P{i:05d}" for i in range(300)],
        "number": range(300),
        "day": [f"{1 + i % 28}.{1 + i % 12}.2024" for i in range(300)],
        "size": rng.normal(size=300) + kinds,
        "kind": [("no", "yes")[k] for k in kinds],
    })  # fmt: skip
    with pytest.warns(DecibanWarning, match="column 'day' looks like dates"):
        clf = BayesClassifier(tune=tune).fit(frame, "kind")
    why = {name: reason for name, _, reason in clf.schema_.descriptions()}
    assert "log-loss" in why["size"]
    for name in ("id", "number"):
        assert "looks like an identifier" in why[name]
    assert "looks like dates (%d.%m.%Y)" in why["day"]


def mixed_table(names: list[str], copies: int = 1) -> tuple[pd.DataFrame, dict[str, list[Any]]]:
    """A table with these columns of cells in uncommon forms, and their values."""
    numbers = [1237.5 + 1001 * i for i in range(ROWS)]
    days = [moment.replace(hour=0, minute=0) for moment in MOMENTS]
    point_and_comma = str.maketrans(".,", ",.")
    forms: dict[str, tuple[list[str], list[Any]]] = {
        "day": ([f"{day:%d.%m.%Y}" for day in days], days),
        "moment": ([f"{moment:%d.%m.%Y %H:%M}" for moment in MOMENTS], MOMENTS),
        "either": ([f"{day:{('%d.%m.%Y', '%Y-%m-%d')[i % 2]}}" for i, day in enumerate(days)], days),
        "british": ([f"{day:%d/%m/%Y}" for day in days], days),
        "american": ([f"{day:%m/%d/%Y}" for day in days], days),
        "word": (["soon", *(f"{day:%d.%m.%Y}" for day in days[1:])], [None, *days[1:]]),
        "dollars": ([f"${number:,.2f}" for number in numbers], numbers),
        "commas": ([f"{number:,.2f}" for number in numbers], numbers),
        "points": ([f"{number:,.2f}".translate(point_and_comma) for number in numbers], numbers),
        "many": (["many", *(f"{number}" for number in numbers[1:])], [None, *numbers[1:]]),
        "id": ([f"P{i}" for i in range(ROWS)], [f"P{i}" for i in range(ROWS)]),
    }
    cells = {f"{name}{k}": forms[name][0] for k in range(copies) for name in names}
    frame = pd.DataFrame({**cells, "kind": KINDS})
    return frame, {name: forms[name.rstrip("0123456789")][1] for name in cells}


def as_moments(cells: list[Any]) -> list[Any]:
    return [dt.datetime(cell.year, cell.month, cell.day) if type(cell) is dt.date else cell for cell in cells]


def test_options_for_several_columns_can_be_given_together() -> None:
    frame, values = mixed_table(["day", "moment", "either", "word", "american", "commas", "many"], copies=8)
    frame.to_csv("a.csv", index=False)
    warned = fit("a.csv")[1]
    assert [one.split("look like")[1] for one in warned] == [
        " numbers, except for 'many', but were read as text; use missing='many' to treat such cells as missing",
        " numbers with ',' between thousands, but were read as text; use thousands=',' to read them as numbers",
        " dates, but were read as text; use date_format='%d.%m.%Y|%d.%m.%Y %H:%M|%m/%d/%Y' and missing='soon' "
        "to read them as dates",
    ]
    assert warned[2].startswith("columns 'day0', 'moment0', 'either0', 'word0', 'american0', … (35 more) look")
    form = "%d.%m.%Y|%d.%m.%Y %H:%M|%m/%d/%Y"
    rows = scan("a.csv", date_format=form, missing=["soon", "many"], thousands=",")
    table = rows.table()
    assert {name: as_moments(table[name].to_pylist()) for name in values} == values
    assert fit(rows)[1] == []


@pytest.mark.parametrize(
    "names",
    [["british", "american"], ["commas", "points"], ["dollars", "day", "either", "word", "many", "commas", "moment"]],
)
def test_if_options_exclude_each_other_one_query_reads_all_columns(names: list[str]) -> None:
    """A date format, and a separator of thousands, apply to all columns; options do not apply to a query."""
    frame, values = mixed_table([*names, "id"], copies=6)
    for name in ("a.csv", "a.parquet"):
        if name == "a.csv":
            frame.to_csv(name, index=False)
        else:
            parquet.write_table(pa.Table.from_pandas(frame), name)
        identifiers, *warned, advice = fit(name)[1]
        assert identifiers.startswith("columns 'id0', 'id1', 'id2', 'id3', 'id4', … (1 more) look like identifiers")
        assert len(warned) <= 4
        assert all(one.endswith("but were read as text") for one in warned)
        query = eval(advice.partition(" use X=")[2])
        table = scan(query).table()
        assert {name: as_moments(table[name].to_pylist()) for name in values} == values
        assert fit(query)[1] == [identifiers.replace(repr(name), "…")]


def test_ambiguous_dates_are_read_in_the_order_of_other_columns() -> None:
    days = [dt.datetime(2024, 1 + i % 12, 1 + i // 12) for i in range(ROWS)]
    sure = [f"{moment:%m/%d/%Y}" for moment in MOMENTS]
    frame = pd.DataFrame({"unsure": [f"{day:%m/%d/%Y}" for day in days], "sure": sure, "kind": KINDS})
    frame.to_csv("a.csv", index=False)
    (warning,) = fit("a.csv")[1]
    assert warning == (
        "columns 'unsure', 'sure' look like dates (%m/%d/%Y), but were read as text; use date_format='%m/%d/%Y' to "
        "read them as dates"
    )


@pytest.mark.parametrize("how", [("--folds", "3"), ("--hold-out-last", "0.3")])
def test_folds_of_a_file_get_the_advice_for_the_file(how: tuple[str, str], deciban: Deciban) -> None:
    days = [f"{1 + k % 28:02d}.{1 + k % 12:02d}.2024,{'yes' if k % 3 else 'no'}" for k in range(90)]
    Path("days.csv").write_text("\n".join(["day,kind", *days]) + "\n")
    found = deciban("evaluate", "days.csv", "-t", "kind", *how)
    assert found.err.count("use --date-format %d.%m.%Y to read it as dates") == 1, found.err
    assert "convert" not in found.err


def test_dates_written_as_integers_are_noted_and_read_by_the_option(deciban: Deciban) -> None:
    days = [dt.date(2023, 12, 20) + dt.timedelta(days=3 * i) for i in range(ROWS)]
    frame = pd.DataFrame({"day": [f"{day:%Y%m%d}" for day in days], "age": range(20, 20 + ROWS), "kind": KINDS})
    frame["age"] %= 60
    frame.to_csv("a.csv", index=False)
    (warning,) = fit("a.csv")[1]
    assert warning == (
        "column 'day' looks like dates (%Y%m%d), but was read as numbers; use date_format='%Y%m%d' to read it as dates"
    )
    rows = scan("a.csv", date_format="%Y%m%d")
    assert rows.table()["day"].to_pylist() == days
    clf, warned = fit(rows)
    assert (warned, clf.schema_.types) == ([], ("date32[day]", "int64"))
    assert np.array_equal(clf.predict_proba("a.csv"), clf.predict_proba({"day": days, "age": frame["age"]}))
    frame["day"] = frame["day"].astype(int)
    assert "looks like dates (%Y%m%d), but was read as numbers; convert it to dates" in fit(frame)[1][0]
    parquet.write_table(pa.Table.from_pandas(frame), "a.parquet")
    advice = fit("a.parquet")[1][-1]
    moments = scan(eval(advice.partition(" use X=")[2])).table()["day"].to_pylist()
    assert [moment.date() if isinstance(moment, dt.datetime) else moment for moment in moments] == days
    frame.loc[:, "day"] = frame["day"].where(frame.index > 0, 20241332)  # not a date
    assert not [one for one in fit(frame)[1] if "dates" in one]


def test_the_query_has_the_same_names_for_columns_without_one(deciban: Deciban) -> None:
    frame = pd.DataFrame({"": range(ROWS), "fare": [f"${1.5 * i:,.2f}" for i in range(ROWS)], "kind": KINDS, "x": 7.5})
    for columns in (0, 10):
        for k in range(columns):
            frame[f"more{k}"] = np.arange(ROWS) * 7.5 % (k + 2)
        frame.to_csv("a.csv", index=False)
        identifier, _, advice = fit("a.csv")[1]
        assert identifier == (
            "column 'column1' looks like an identifier; use deciban.scan('a.csv', ignore='column1') to leave it out"
        )
        query = eval(advice.partition(" use X=")[2])
        assert scan(query).names == scan("a.csv").names
        clf, warned = fit(scan(query, ignore="column1"))
        assert (warned, clf.schema_.names[0]) == ([], "fare")


@pytest.mark.parametrize("options", [{}, {"thousands": ",", "date_format": "%d.%m.%Y"}])
def test_the_query_converts_the_columns_that_options_or_words_for_missing_cells_convert(
    options: dict[str, str],
) -> None:
    fares = [f"{i},{237 + i}.5" for i in range(1, ROWS + 1)]
    days = [f"{moment:%d.%m.%Y}" if options else str(moment.date()) for moment in MOMENTS]
    ages = ["N/A" if i % 4 == 0 else str(i % 60) for i in range(ROWS)]
    frame = pd.DataFrame({"paid": [f"${fare}" for fare in fares], "age": ages, "day": days, "kind": KINDS})
    if options:
        frame["fare"] = fares
    frame.to_csv("a.csv", index=False)
    rows = scan("a.csv", **options)
    _, advice = fit(rows)[1]
    query = eval(advice.partition("to read 'paid' as numbers, use X=")[2])
    clf, warned = fit(query)
    assert (warned, {group.family for group in clf.schema_.groups}) == ([], {Gaussian()})
    expected, found = rows.table(), scan(query).table()
    for name in frame.columns.drop(["paid", "kind"]):
        assert as_moments(found[name].to_pylist()) == as_moments(expected[name].to_pylist())
