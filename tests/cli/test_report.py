"""The command `report` writes a page or its figures, and says in one line what is wrong."""

import json
from pathlib import Path

import pytest

from tests.support.command import Deciban


def test_a_page_and_its_figures(deciban: Deciban, model: str) -> None:
    Path("costs.csv").write_text("decision,no,yes\nno,0,9\nyes,1,0\n")
    answer = deciban("report", model, "base.csv", "--costs", "costs.csv", "--output", "r.html")
    page = Path("r.html").read_text(encoding="utf-8")
    assert answer.out == f"r.html: {Path('r.html').stat().st_size:,} bytes\n"
    assert "<title>m: report</title>" in page
    figures = json.loads(deciban("report", model, "base.csv", "--costs", "costs.csv", "--json").out)
    judged = json.loads(deciban("evaluate", model, "base.csv", "--costs", "costs.csv", "--json").out)
    assert figures["quality"]["log_loss"] == pytest.approx(judged["log_loss"])
    assert figures["decisions"]["mean_cost"] == pytest.approx(judged["mean_cost"])
    assert figures["decisions"]["threshold"]["posterior"] == pytest.approx(0.1)
    assert {one["column"] for one in figures["columns"]} == {"age", "town"}
    alone = json.loads(deciban("report", model, "--json").out)
    assert alone["quality"]["source"] is None
    assert alone["rows"] == []


def test_bad_input_has_one_line_and_writes_nothing(deciban: Deciban, model: str) -> None:
    Path("new.csv").write_text("age,town\n30,Ulm\n")
    Path("costs.csv").write_text("decision,no,yes\nno,0,9\nyes,1,0\n")
    for arguments, code, text in (
        ((model,), 2, "missing --output: the HTML file to write"),
        ((model, "new.csv", "-o", "r.html"), 3, "no column"),
        (("nothing.dcb", "-o", "r.html"), 5, "nothing.dcb"),
        ((model, "-o", "no/folder/r.html"), 5, "the folder no/folder does not exist"),
        ((model, "base.csv", "--costs", "none.csv", "-o", "r.html"), 5, "none.csv"),
        ((model, "-o", model), 2, model),
        ((model, "base.csv", "--costs", "costs.csv", "-o", "costs.csv"), 2, "costs.csv"),
    ):
        answer = deciban("report", *arguments)
        assert (answer.code, answer.err.count("\n")) == (code, 1)
        assert text in answer.err
        assert not Path("r.html").exists()
