"""Rows whose columns come with other types than those that were learned."""

import json
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deciban import BayesClassifier
from deciban.families import Categorical, Gaussian
from tests.support.command import Deciban

COMMANDS = [["predict"], ["decide"], ["evaluate"], ["explain"]]
TARGET = {"evaluate": ["--target", "play"]}
NAMES = ("level", "day", "flag", "ratio", "size", "when")


@pytest.fixture(scope="module")
def codes(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model of a column of each type; level, day, flag and ratio are categories."""
    rows = [
        {
            "level": 1 + k % 4,
            "day": date(2024, 1, 1 + k % 3),
            "flag": k // 2 % 2 == 0,
            "ratio": (0.5, 1.5)[k // 3 % 2],
            "size": k % 7 + k % 3 / 4,
            "when": date(2024, 1, 1) + timedelta(days=k % 29),
        }
        for k in range(80)
    ]
    kinds = dict.fromkeys(("level", "day", "flag", "ratio"), Categorical()) | dict.fromkeys(
        ("size", "when"), Gaussian()
    )
    clf = BayesClassifier(families=kinds, tune=None).fit(rows, [("yes", "no")[k % 4 > 1] for k in range(80)])
    model = tmp_path_factory.mktemp("model") / "codes.dcb"
    clf.save(model)
    return str(model)


def lines(*rows: dict[str, Any]) -> str:
    Path("new.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return "new.jsonl"


def probabilities(deciban: Deciban, model: str, table: str) -> list[float]:
    answer = deciban("predict", model, table, "--json")
    assert answer.code == 0, answer.err
    return [json.loads(line)["probability"] for line in answer.out.splitlines()]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_column_of_missing_cells_is_missing_whatever_its_type(
    command: list[str], deciban: Deciban, codes: str
) -> None:
    for kind in ("varchar", "date", "double", "integer[]", "time", "boolean"):
        cells = ", ".join(f'null::{kind} as "{name}"' for name in NAMES)
        answer = deciban(*command, codes, f"sql: select {cells}, 'yes' as play", *TARGET.get(command[0], []))
        assert answer.code == 0, answer.err


def test_missing_cells_of_text_in_parquet_are_missing(deciban: Deciban, codes: str) -> None:
    pq.write_table(pa.table({"level": pa.nulls(3, pa.string()), "size": [1.0, 2.0, 3.0]}), "new.parquet")
    answer = deciban("predict", codes, "new.parquet")
    assert answer.code == 0
    assert "3 missing cells: level (3)" in answer.err


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("level", "2", 2),
        ("ratio", "1.5", 1.5),
        ("size", " 2.25", 2.25),
        ("flag", "true", True),
        ("day", "2024-01-02", None),
        ("when", "2024-01-09", None),
    ],
)
def test_text_that_reads_as_the_learned_type_is_read_so(
    name: str, text: str, value: Any, deciban: Deciban, codes: str
) -> None:
    as_learned = lines({name: value}) if value is not None else f"sql: select date '{text}' as \"{name}\""
    wanted = probabilities(deciban, codes, as_learned)
    assert probabilities(deciban, codes, lines({name: text})) == wanted
    assert probabilities(deciban, codes, lines({name: None})) != wanted  # it says something


@pytest.mark.parametrize(
    ("cell", "found"),
    [
        ("'2x' as level", "found '2x' (string), expected a number"),
        ("date '2024-01-01' as level", "found 2024-01-01 (date32[day]), expected a number"),
        ("[1, 2] as level", "found [1, 2] (list"),
        ("date '2024-01-01' as ratio", "found 2024-01-01 (date32[day]), expected a number"),
        ("date '2024-01-01' as size", "found 2024-01-01 (date32[day]), expected a number"),
        ("time '10:00' as size", "found 10:00:00 (time64[us]), expected a number"),
        ("'perhaps' as flag", "found 'perhaps' (string), expected true or false"),
        ("date '2024-01-01' as flag", "found 2024-01-01 (date32[day]), expected"),
        ('5 as "when"', "found 5 (int32), expected a date"),
        ('true as "when"', "found True (bool), expected a date"),
        ("time '10:00' as \"when\"", "found 10:00:00 (time64[us]), expected a date"),
        ("'soon' as \"when\"", "found 'soon' (string), expected a date"),
        ("5 as day", "found 5 (int32), expected a date"),
    ],
)
def test_other_cells_are_refused_with_column_row_and_value(cell: str, found: str, deciban: Deciban, codes: str) -> None:
    name = cell.rpartition(" as ")[2].strip('"')
    for command in COMMANDS:
        table = f"sql: select null as gap, {cell}, 'yes' as play"
        answer = deciban(*command, codes, table, *TARGET.get(command[0], []))
        assert answer.code == 3, answer.err
        assert f"column {name!r}, row " in answer.err
        assert found in answer.err


def test_the_row_of_a_cell_is_that_of_the_file(deciban: Deciban, codes: str) -> None:
    answer = deciban(
        "evaluate",
        codes,
        lines(*[{"level": "1", "play": "yes"}] * 3, {"level": "x", "play": "no"}),
        *TARGET["evaluate"],
    )
    assert answer.code == 3
    assert "new.jsonl, column 'level', row 4: found 'x'" in answer.err


def test_a_time_of_a_day_is_no_fault_among_dates(deciban: Deciban, codes: str) -> None:
    days = "sql: select timestamp '2024-01-02' as day union all select timestamp '2024-01-02 10:00'"
    answer = deciban("predict", codes, days)
    assert answer.code == 0
    assert "1 cell with unseen values: day" in answer.err


def test_a_number_that_is_no_flag_is_a_level_never_seen(deciban: Deciban, codes: str) -> None:
    answer = deciban("predict", codes, lines({"flag": 0.5}))
    assert answer.code == 0
    assert "1 cell with unseen values: flag" in answer.err
