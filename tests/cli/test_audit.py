"""The command audit: its output is a list of rows that other commands take."""

import json
import random
from pathlib import Path

import numpy as np
import pytest

from deciban import load
from tests.support.command import Deciban, records

WRONG = (7, 40, 111)


def lines(corrected: bool = False) -> list[str]:
    """Rows with two clear columns and the labels of WRONG exchanged; the first column is written as text."""
    draw, found = random.Random(3), ["code,size,color,kind"]
    for number in range(1, 161):
        big = draw.random() < 0.5
        label = big if corrected or number not in WRONG else not big
        cells = (f"{number:04d}", f"{draw.gauss(8 if big else 2, 1):.3f}0", "red" if big else "blue")
        found.append(",".join([*cells, "plum" if label else "cherry"]))
    return found


@pytest.fixture
def fruit(deciban: Deciban) -> str:
    Path("fruit.csv").write_text("\n".join(lines()) + "\n")
    return "fruit.csv"


def test_rows_are_audited_forgotten_and_learned_with_the_suggested_label(deciban: Deciban, fruit: str) -> None:
    options = ("--ignore", "code")
    deciban("fit", fruit, "-t", "kind", "-o", "fruit.dcb", "--tune", "none", *options)
    answer = deciban("audit", "fruit.dcb", fruit, "-o", "issues.csv")
    assert answer.out.splitlines()[0] == "exact leave-one-out"
    assert answer.out.splitlines()[-1] == "issues.csv: 3 rows"
    issues = records(Path("issues.csv").read_text())
    assert sorted(int(issue["code"]) for issue in issues) == list(WRONG)
    assert {",".join(list(issue.values())[:4]) for issue in issues} == {lines()[number] for number in WRONG}
    assert all(issue["suggested"] != issue["kind"] for issue in issues)
    assert all(issue["evidence"].startswith(("size = ", "color = ")) for issue in issues)

    added = ("--ignore", "probability", "--ignore", "evidence")
    assert deciban("forget", "fruit.dcb", "issues.csv", "--ignore", "suggested", *added).code == 0
    assert load("fruit.dcb").counts_.rows == 157
    assert (
        deciban("learn", "fruit.dcb", "issues.csv", "-t", "suggested", "--ignore", "kind", *added, *options).code == 0
    )
    Path("right.csv").write_text("\n".join(lines(corrected=True)) + "\n")
    deciban("fit", "right.csv", "-t", "kind", "-o", "right.dcb", "--tune", "none", *options)
    corrected, right = (load(name).predict_proba("right.csv") for name in ("fruit.dcb", "right.dcb"))
    np.testing.assert_allclose(corrected, right, rtol=1e-9)
    assert deciban("audit", "right.csv", "-t", "kind", "--tune", "none").out.splitlines()[1].startswith("0 issues")


def test_a_table_is_audited_by_a_model_of_its_own(deciban: Deciban, fruit: str) -> None:
    found = json.loads(deciban("audit", fruit, "-t", "kind", "--ignore", "code", "--json").out)
    assert found["method"] == "exact leave-one-out (given the tuning)"
    assert sorted(issue["row"] for issue in found["issues"]) == list(WRONG)
    assert found["rows"] == 160
    deciban("audit", fruit, "-t", "kind", "--ignore", "code", "-o", "issues.csv")
    issues = records(Path("issues.csv").read_text())
    assert {",".join(list(issue.values())[:4]) for issue in issues} == {lines()[number] for number in WRONG}
    few = json.loads(deciban("audit", fruit, "-t", "kind", "--min-probability", "99%", "--json").out)
    assert all(issue["probability"] >= 0.99 for issue in few["issues"])


def test_a_part_of_the_rows_and_new_rows(deciban: Deciban, fruit: str) -> None:
    deciban("fit", fruit, "-t", "kind", "-o", "fruit.dcb", "--tune", "none", "--ignore", "code")
    Path("part.csv").write_text("\n".join(lines()[:50]) + "\n")
    assert deciban("audit", "fruit.dcb", "part.csv").out.splitlines()[0] == "new rows"
    answer = deciban("audit", "fruit.dcb", "part.csv", "--leave-one-out", "-o", "two.jsonl", "--min-probability", "1/5")
    assert answer.out.splitlines()[:2] == [
        "exact leave-one-out", "2 issues in 49 labels; expected number of wrong labels: 2",
    ]  # fmt: skip
    written = [json.loads(line) for line in Path("two.jsonl").read_text().splitlines()]
    assert sorted(int(row["code"]) for row in written) == list(WRONG[:2])


def test_without_issues_the_output_has_only_a_header(deciban: Deciban) -> None:
    Path("right.csv").write_text("\n".join(lines(corrected=True)) + "\n")
    assert deciban("audit", "right.csv", "-t", "kind", "--tune", "none", "-o", "issues.csv").code == 0
    assert Path("issues.csv").read_text() == "code,size,color,kind,suggested,probability,evidence\n"


def test_what_is_rejected(deciban: Deciban, fruit: str) -> None:
    deciban("fit", fruit, "-t", "kind", "-o", "fruit.dcb", "--tune", "none")
    for arguments, cause in (
        ((fruit,), "missing --target: the column to check"),
        (("fruit.dcb",), "missing table: deciban audit MODEL TABLE"),
        (("fruit.dcb", fruit, "--tune", "none"), "--tune and --weight cannot be used with a model"),
        ((fruit, "-t", "kind", "-o", "issues.txt"), "issues.txt"),
        ((fruit, "-t", "kind", "-o", fruit), fruit),
        (("sql: select * from 'fruit.csv'", "-t", "kind", "-o", "issues.csv"), "--output needs rows in a fixed order"),
    ):
        answer = deciban("audit", *arguments)
        assert answer.code
        assert cause in answer.err
