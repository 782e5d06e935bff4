"""Cells of CSV files that are numbers or dates, though they are not written in DuckDB's way."""

import csv
import random
import re
import shlex
import subprocess
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deciban import BayesClassifier, DataError, UsageError, load, scan
from deciban.sources.write import open_writer
from tests.support.command import Deciban

ADVICE = r" as (?:numbers|dates), use "  # before the query of a warning


def lines(cells: list[str], header: str = "x,kind") -> str:
    return "\n".join([header, *(f"{cell},{'yes' if i % 2 else 'no'}" for i, cell in enumerate(cells))]) + "\n"


def numbers(count: int = 60) -> list[str]:
    draw = random.Random(1)
    return [f"{draw.gauss(3 * (i % 2), 1):.2f}" for i in range(count)]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("word", ["n/a", "?", "-", "none", "missing", ".", "#N/A", " N/a "])
def test_words_for_missing_cells_among_numbers_are_missing_as_pandas_reads_them_when_told(
    here: Path, word: str
) -> None:
    cells = [word if i % 10 == 0 else cell for i, cell in enumerate(numbers())]
    Path("a.csv").write_text(lines(cells))
    clf = BayesClassifier(tune=None).fit("a.csv", "kind")
    frame = pd.read_csv("a.csv", na_values=[word.strip(), word])
    peer = BayesClassifier(tune=None).fit(frame[["x"]], frame["kind"])
    assert str(clf.schema_.groups[0].family) == "Gaussian()"
    assert np.array_equal(clf.predict_proba(frame[["x"]]), peer.predict_proba(frame[["x"]]))
    assert f"6 cells such as {word!r} read as missing" in str(clf.schema_)


def test_a_model_reads_the_words_as_missing_wherever_they_come_later(here: Path) -> None:
    Path("a.csv").write_text(lines(["n/a", *numbers()]))
    BayesClassifier().fit("a.csv", "kind").save("m.dcb")
    clf = load("m.dcb")
    Path("only.csv").write_text(lines(["n/a", "?"]))
    late = [*numbers(30_000), "n/a"]
    Path("late.csv").write_text(lines(late))
    nothing = clf.predict_proba([{"x": None}])
    assert np.array_equal(clf.predict_proba("only.csv"), np.repeat(nothing, 2, axis=0))
    assert np.array_equal(clf.predict_proba("late.csv")[-1:], nothing)
    assert clf.partial_fit("only.csv", "kind").counts_.rows == 63


def test_words_beside_other_words_stay_categories(here: Path) -> None:
    Path("a.csv").write_text(lines(["n/a", "red", *numbers(8)]))
    assert "Categorical" in str(BayesClassifier(tune=None).fit("a.csv", "kind").schema_)


def test_labels_keep_the_words(here: Path) -> None:
    Path("a.csv").write_text("kind,x\n" + "".join(f"{label},{i}\n" for i, label in enumerate(["1", "2", "none"] * 10)))
    assert BayesClassifier(tune=None).fit("a.csv", "kind").classes_.tolist() == ["1", "2", "none"]


def test_thousands_are_read_as_pandas_reads_them_and_remembered(here: Path) -> None:
    cells = [f'"{1234 + 997 * i:,}.5"' for i in range(30)]
    Path("a.csv").write_text(lines(cells))
    clf = BayesClassifier(tune=None).fit(scan("a.csv", thousands=","), "kind")
    frame = pd.read_csv("a.csv", thousands=",")
    assert np.array_equal(clf.counts_.statistics[0].mean[0], [frame["x"][frame["kind"] == "no"].mean()])
    clf.save("m.dcb")
    assert np.array_equal(load("m.dcb").predict_proba("a.csv"), clf.predict_proba(frame[["x"]]))


@pytest.mark.parametrize("delimiter", [";", ","])
def test_amounts_with_points_between_thousands_have_decimal_commas(
    deciban: Deciban, delimiter: str
) -> None:  # fmt: skip
    rows = "".join(
        f'"{1 + k % 9}.{100 + 7 * k},{10 + k}"{delimiter}{k % 13}{delimiter}{"ab"[k % 2]}\n' for k in range(60)
    )
    Path("a.csv").write_text(f"x{delimiter}z{delimiter}y\n{rows}")
    fit = ["fit", "a.csv", "-t", "y", "-o", "m.dcb", "--tune", "none"]
    assert "use --thousands . to read it as numbers" in deciban(*fit).err
    assert "warning" not in deciban(*fit, "--thousands", ".").err
    frame = pd.read_csv("a.csv", sep=delimiter, thousands=".", decimal=",")
    clf = load("m.dcb")
    assert clf.schema_.types == ("double", "int64")
    means = frame.groupby("y").mean().to_numpy()
    assert np.allclose(clf.counts_.statistics[0].mean, means, rtol=1e-12)
    assert np.array_equal(clf.predict_proba("a.csv"), clf.predict_proba(frame[["x", "z"]]))  # it is remembered


def test_one_column_to_ignore_and_one_word_for_missing_cells_need_no_list(here: Path) -> None:
    Path("a.csv").write_text("id,size\na,1\nb,soon\nc,3\n")
    rows = scan("a.csv", ignore="id", missing="soon")
    assert rows.names == ("size",)
    assert rows.table()["size"].to_pylist() == [1, None, 3]


def test_dates_are_read_in_the_form_that_is_given_and_remembered(here: Path) -> None:
    cells = [f"{1 + i % 28:02d}.{1 + i % 12:02d}.2024" for i in range(40)]
    Path("a.csv").write_text(lines([*cells, "n/a"]))
    clf = BayesClassifier(tune=None).fit(scan("a.csv", date_format="%d.%m.%Y"), "kind")
    days = [date(2024, 1 + i % 12, 1 + i % 28) for i in range(40)]
    peer = BayesClassifier(tune=None).fit({"x": days}, ["yes" if i % 2 else "no" for i in range(40)])
    assert clf.schema_.types == ("date32[day]",)
    assert np.array_equal(clf.predict_proba({"x": days}), BayesClassifier(tune=None).fit(
        {"x": [*days, None]}, ["yes" if i % 2 else "no" for i in range(41)]).predict_proba({"x": days}))  # fmt: skip
    assert peer.schema_.types == clf.schema_.types
    clf.save("m.dcb")
    assert np.array_equal(load("m.dcb").predict_proba("a.csv")[:40], clf.predict_proba({"x": days}))
    Path("b.csv").write_text(lines(["31.02.2024"]))
    with pytest.raises(DataError, match=r"column 'x', row 1: found '31.02.2024', expected a date as %d.%m.%Y"):
        clf.predict("b.csv")


@pytest.mark.parametrize(
    "options", [{"thousands": "ab"}, {"thousands": "1"}, {"date_format": "%Y"}, {"date_format": "x"}]
)
def test_forms_that_cannot_be_meant_are_refused(here: Path, options: dict[str, str]) -> None:
    Path("a.csv").write_text(lines(["1", "2"]))
    with pytest.raises(UsageError, match=next(iter(options))):
        scan("a.csv", **options)


@pytest.mark.parametrize(
    ("cells", "remedy"),
    [
        ([f'"{1000 + 997 * i:,}"' for i in range(40)], "--thousands ,"),
        ([f"{1 + i % 28:02d}.{1 + i % 12:02d}.2024" for i in range(40)], "--date-format %d.%m.%Y"),
        ([f"{1 + i % 12:02d}/{1 + i % 28:02d}/2024" for i in range(40)], "--date-format %m/%d/%Y"),
        ([*numbers(), *["abc"] * 3], "--missing abc"),
    ],
)
def test_the_warning_names_the_option_that_helps(deciban: Deciban, cells: list[str], remedy: str) -> None:
    Path("a.csv").write_text(lines(cells))
    first = deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb", "--tune", "none")
    assert remedy in first.err
    then = deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb", "--tune", "none", *shlex.split(remedy))
    assert "warning" not in then.err
    assert "Gaussian" in then.out
    assert deciban("predict", "m.dcb", "a.csv").code == 0  # without the option


@pytest.mark.parametrize("form", ["{} %", "$ {}", "{} C", "{}€", "-{}kg"])
def test_the_warning_of_units_names_a_query_that_reads_the_numbers(deciban: Deciban, form: str) -> None:
    amounts = [round(0.5 + i * 1.7, 1) for i in range(40)]
    Path("a.csv").write_text(lines([form.format(amount) for amount in amounts], header="my $x,kind"))
    warning = deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb", "--tune", "none").err
    command = f"printf %s {re.split(ADVICE, warning)[-1]}"
    query = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True).stdout
    assert deciban("fit", query, "-t", "kind", "-o", "m.dcb", "--tune", "none").err == ""
    sign = -1 if form.startswith("-") else 1
    clf = load("m.dcb")
    assert clf.counts_.statistics[0].mean.ravel().tolist() == pytest.approx(
        [sign * np.mean(amounts[k::2]) for k in range(2)]
    )


@pytest.mark.parametrize(
    ("cells", "read"),
    [
        ([f"{1000 + 997 * i:,}" for i in range(40)], lambda cell: float(cell.replace(",", ""))),
        ([f"{1 + i % 9}.{100 + i},5" for i in range(40)], lambda cell: float(cell.replace(".", "").replace(",", "."))),
        ([f"{1 + i}'000" for i in range(40)], lambda cell: float(cell.replace("'", ""))),
        ([f"{i},5" for i in range(200)], lambda cell: float(cell.replace(",", "."))),
        ([f"{i},5 kg" for i in range(40)], lambda cell: float(cell[:-3].replace(",", "."))),
        ([*numbers(), *["n/a"] * 2], lambda cell: np.nan if cell == "n/a" else float(cell)),
        ([f"{1 + i % 28:02d}.{1 + i % 12:02d}.2024" for i in range(40)],
         lambda cell: datetime.strptime(cell, "%d.%m.%Y").replace(tzinfo=UTC).timestamp() / 86400),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["when", 'a "b"'])
def test_the_warning_of_a_query_names_the_query_that_helps(
    deciban: Deciban, cells: list[str], read: Any, name: str
) -> None:  # fmt: skip
    pq.write_table(pa.table({name: cells, "kind": ["no", "yes"] * (len(cells) // 2)}), "a.parquet")
    inner = "select * from (select * from 'a.parquet') where kind <> '$x'"
    fit = ["-t", "kind", "-o", "m.dcb", "--tune", "none"]
    warning = deciban("fit", f"sql: {inner};", *fit).err
    assert re.search(ADVICE, warning)
    assert "--thousands" not in warning
    assert "--missing" not in warning
    assert all(len(line) <= 200 for line in warning.splitlines() if "sql:" not in line)
    command = f"printf %s {re.split(ADVICE, warning)[-1]}"
    query = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True).stdout
    assert deciban("fit", query, *fit).err == ""
    means = load("m.dcb").counts_.statistics[0].mean.ravel()
    assert means == pytest.approx([np.nanmean([read(cell) for cell in cells[k::2]]) for k in range(2)])


@pytest.mark.parametrize("option", [["--missing", "n/a"], ["--thousands", ","], ["--date-format", "%d.%m.%Y"]])
def test_options_of_csv_files_are_refused_elsewhere(deciban: Deciban, option: list[str]) -> None:
    answer = deciban("fit", "sql: select 1 as x, 'a' as kind", "-t", "kind", "-o", "m.dcb", *option)
    assert answer.code == 2
    assert f"{option[0]} applies to CSV and Excel files" in answer.err


def test_the_count_of_words_is_told_once_and_types_say_otherwise(deciban: Deciban) -> None:
    Path("a.csv").write_text(lines(["n/a", "?", *numbers()]))
    translated_errors = deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb", "--tune", "none").err
    assert translated_errors.count("2 cells such as 'n/a' read as missing") == 1
    text = deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb", "--tune", "none", "--type", "x=text")
    assert "read as missing" not in text.err
    assert "Categorical" in text.out


def test_cells_of_a_csv_file_are_passed_on_as_they_are_written(deciban: Deciban) -> None:
    header = "id,when,flag,size,day,note,kind"
    rows = [
        f"{i:03d},15:32:{i:02d},{'True' if i % 3 else 'FALSE'},{i}.0,2024-01-{1 + i:02d} 00:00,"
        f"{'NA' if i == 3 else 'b'},{'yes' if i % 2 else 'no'}"
        for i in range(12)
    ]
    Path("a.csv").write_text("\n".join([header, *rows]) + "\n")
    deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb", "--tune", "none", "--ignore", "id")
    for command in ("predict", "decide"):
        said = deciban(command, "m.dcb", "a.csv").out.splitlines()
        assert [line.rsplit(",", 2 if command == "predict" else 4)[0] for line in said] == [header, *rows]
    deciban("predict", "m.dcb", "a.csv", "-o", "p.csv")
    assert Path("p.csv").read_text().splitlines()[1].startswith(rows[0])
    lines_of_json = deciban("predict", "m.dcb", "a.csv", "--json").out.splitlines()
    assert '"size":7,' in lines_of_json[7]
    assert load("m.dcb").schema_.types is not None
    assert {"time64[us]", "bool"} <= set(load("m.dcb").schema_.types or ())


@pytest.mark.parametrize("sign", [",", "\t"])
def test_only_cells_that_need_quotes_get_them_and_all_cells_come_back(here: Path, sign: str) -> None:
    name = "t.csv" if sign == "," else "t.tsv"
    rows = {
        "text": ['a"b', "c,d", "e\nf", "", None, "plain", "tab\t", "cr\r"],
        "number": [1.5, None, -0.0, 1e300, 3.0, 1e-7, 123456789.0, 0.1],
        "whole": [1, 2, None, 4, 5, 6, 7, 8],
        "flag": [True, False, None, True, True, False, True, False],
        "day": [date(2024, 1, k) for k in range(1, 9)],
    }
    with open_writer(name, safe=False) as write:
        write(pa.table(rows))
        write(pa.table(rows).slice(5, 1))
    text = Path(name).read_bytes().decode()
    assert text.split("\n").count(sign.join(["plain", "1e-7", "6", "false", "2024-01-06"])) == 2
    with open(name, newline="") as file:
        found = list(csv.reader(file, delimiter=sign))
    assert [row[0] for row in found[1:9]] == [cell or "" for cell in rows["text"]]
    assert [float(row[1]) if row[1] else None for row in found[1:9]] == rows["number"]


def test_predictions_beside_cells_as_they_are_written_are_those_of_the_table(here: Path) -> None:
    draw = random.Random(2)
    rows = [
        f"{draw.gauss(i % 2, 1)},{draw.choice('ab ')},{draw.randint(0, 23):02d}:10,{i % 2 == 0},{'yn'[i % 2]}"
        for i in range(200)
    ]
    Path("a.csv").write_text("x,c,t,b,kind\n" + "\n".join(rows) + "\n")
    clf = BayesClassifier().fit("a.csv", "kind")
    assert clf.predict_to("p.csv", "a.csv") == 200
    assert np.allclose(pd.read_csv("p.csv")["probability"], clf.predict_proba("a.csv").max(axis=1), atol=0, rtol=1e-15)


def test_a_cell_that_cannot_be_read_is_told_with_its_line(here: Path, deciban: Deciban) -> None:
    Path("a.csv").write_text(lines(numbers()))
    deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb", "--tune", "none")
    Path("b.csv").write_text(lines([*numbers(30_000), "many"]))
    answer = deciban("predict", "m.dcb", "b.csv", "-o", "p.csv")
    assert answer.code == 3
    assert "line 30002, column 'x': found 'many', expected a number" in answer.err
