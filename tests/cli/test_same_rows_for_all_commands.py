"""Every command reads the rows of a table in the same way, whatever kind of source they are in."""

import json
import math
import random
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from deciban import BayesClassifier, load, scan
from tests.support.command import Deciban

HEADER = "zip,code,smoker,day,height,kind"


def line(draw: random.Random) -> str:
    """Cells that are easily taken for something else: codes, yes and no, whole numbers that were learned as text."""
    known = draw.random() < 0.5
    cells = (
        draw.choice(["01234", "22222"] if known else ["22222", "00099"]),
        draw.choice("12" if known else "23"),
        draw.choice(["yes", "yes", "no"] if known else ["no", "no", "yes"]),
        f"2026-0{draw.choice('123' if known else '234')}-11",
        f"{draw.gauss(known, 1.0):.2f}",
        "a" if known else "b",
    )
    return ",".join(cells)


@pytest.fixture
def model(deciban: Deciban) -> str:
    draw = random.Random(3)
    Path("all.csv").write_text("\n".join([HEADER, *(line(draw) for _ in range(200))]) + "\n")
    BayesClassifier(tune=None).fit(scan("all.csv", types={"code": "text"}), "kind").save("m.dcb")
    Path("new.csv").write_text("\n".join([HEADER, *(line(draw) for _ in range(12))]) + "\n")
    table = csv.read_csv("new.csv", convert_options=csv.ConvertOptions(column_types={"zip": pa.string()}))
    assert table.schema.field("code").type == pa.int64()
    parquet.write_table(table, "new.parquet")
    rows = [{**row, "day": str(row["day"])} for row in table.to_pylist()]
    Path("new.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    return "m.dcb"


@pytest.mark.parametrize(
    "source",
    ["new.csv", "-", "new.parquet", "new.jsonl", "sql: from 'new.csv' limit 12", "sql: from read_csv('new.csv')"],
)
def test_all_commands_see_the_same_posterior(
    source: str, deciban: Deciban, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def said(command: str, *options: object) -> list[dict[str, object]]:
        with open("new.csv") as file:
            monkeypatch.setattr(sys, "stdin", file)
            answer = deciban(command, model, source, "--json", *options)
        assert answer.code == 0, answer.err
        return [json.loads(line) for line in answer.out.splitlines()]

    expected = load(model).predict_proba("new.csv")[:, 0].tolist()
    predicted = said("predict", "--probabilities")
    assert [row["P(a)"] for row in predicted] == pytest.approx(expected, rel=1e-12)
    (explained,) = said("explain", "--rows", 12)
    assert [row["posterior"]["a"] for row in explained] == pytest.approx(expected, rel=1e-12)  # type: ignore[index]
    (seventh,) = said("explain", "--row", 7)
    assert seventh[0]["posterior"]["a"] == pytest.approx(expected[6], rel=1e-12)  # type: ignore[index]
    risks = [row["risk"] for row in said("decide")]
    assert risks == pytest.approx([min(one, 1.0 - one) for one in expected], rel=1e-9)
    right = [one if row["kind"] == "a" else 1.0 - one for one, row in zip(expected, predicted, strict=True)]
    (judged,) = said("evaluate")
    assert judged["log_loss"] == pytest.approx(-sum(map(math.log, right)) / 12, rel=1e-9)
    (learned,) = said("learn", "--output", "learned.dcb")
    assert learned["rows"] == 212
    again = load("learned.dcb").forget(scan("new.csv", types={"code": "text"}), "kind")
    assert again.predict_proba("new.csv")[:, 0].tolist() == pytest.approx(expected, rel=1e-9)
