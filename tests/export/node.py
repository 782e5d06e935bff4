"""Models written as JavaScript and run by Node, beside what Python says of the same rows."""

import json
import math
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deciban.errors import DataError
from deciban.export.javascript import to_javascript
from deciban.files.open import open_table
from deciban.model import VAST_EVIDENCE, Model
from deciban.posterior import log_normalize

NODE = shutil.which("node")

needs_node = pytest.mark.skipif(NODE is None, reason="there is no `node` on the PATH, which runs what is exported")

Row = dict[str, Any]


@dataclass(frozen=True)
class Answers:
    """What a module offers, and what it says of each row: a dict by the name of the function, or {"error": message}."""

    columns: list[dict[str, Any]]
    classes: list[Any]
    rows: list[dict[str, Any]]


def run_node(jobs: Sequence[tuple[str, Sequence[Row]]], names: Sequence[str] = ("logProba",)) -> list[Answers]:
    """What modules (their sources) say of rows, all in one run of Node."""
    assert NODE is not None
    with tempfile.TemporaryDirectory() as folder:
        given = []
        for k, (source, rows) in enumerate(jobs):
            path = Path(folder) / f"model{k}.mjs"
            path.write_text(source, "utf-8")
            given.append({"module": path.as_uri(), "names": names, "rows": [_pairs(row) for row in rows]})
        runner = Path(__file__).parent / "run.mjs"
        done = subprocess.run([NODE, str(runner)], input=json.dumps(given), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [Answers(**_numbers(found)) for found in json.loads(done.stdout)]


def _pairs(row: Row) -> list[tuple[str, Any]]:
    return [(name, _cell(cell)) for name, cell in row.items()]


def _cell(cell: Any) -> Any:
    if isinstance(cell, np.generic):
        cell = cell.item()
    if isinstance(cell, float) and not math.isfinite(cell):
        return {"number": "nan" if math.isnan(cell) else "inf" if cell > 0 else "-inf"}
    if isinstance(cell, int) and not isinstance(cell, bool) and abs(cell) >= 2**53:
        return {"integer": str(cell)}
    if isinstance(cell, date | datetime):
        return {"date": cell.isoformat() + ("Z" if isinstance(cell, datetime) else "")}
    return cell


def _numbers(value: Any) -> Any:
    """Texts that stand for numbers that JSON does not have, as numbers."""
    if isinstance(value, dict):
        return int(value["integer"]) if list(value) == ["integer"] else {k: _numbers(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_numbers(item) for item in value]
    return (
        {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}.get(value, value)
        if isinstance(value, str)
        else value
    )


@dataclass(frozen=True)
class Expected:
    """What Python says of a row that is alone, and by how much that may err.

    error: the message of the DataError where it refuses the row. rounded: where evidence is so large that sums of it
    have lost digits (beyond VAST_EVIDENCE), the size of these digits.
    """

    log_proba: list[float]
    error: str | None = None
    rounded: float = 0.0


def expected_of(model: Model, row: Row) -> Expected:
    """What Python says of a row."""
    names = model.schema.names
    try:
        if names is None:
            cells = [row.get(f"x{j}") for j in range(model.schema.width)]
            table = open_table([[math.nan if cell is None else cell for cell in cells]])
        else:
            table = open_table([{**dict.fromkeys(names), **row}])
        joint = model.log_joint(model.schema.table_as_learned(table), full=False)
    except DataError as error:
        return Expected([], str(error))
    largest = float(np.abs(joint[np.isfinite(joint)]).max(initial=0.0))
    rounded = 4.0 * np.spacing(largest) if largest > VAST_EVIDENCE else 0.0
    return Expected(log_normalize(joint, model.log_prior, logarithm=True)[0][0].tolist(), None, rounded)


def assert_same(found: dict[str, Any], expected: Expected, row: Row) -> None:
    """Both refuse a row, or give each class the same log probability to 1e-12 of the larger of 1 and itself."""
    if expected.error is not None:
        assert "error" in found, (row, expected, found)
        column = expected.error.split("'")[1]
        assert f"'{column}'" in found["error"], (row, expected, found)
        return
    assert "error" not in found, (row, found["error"], expected)
    for mine, theirs in zip(found["logProba"], expected.log_proba, strict=True):
        same = mine == theirs or abs(mine - theirs) <= 1e-12 * max(1.0, abs(theirs)) + expected.rounded
        assert same, (row, found["logProba"], expected)


def assert_agree(models: Sequence[Model], rows: Sequence[Sequence[Row]]) -> None:
    """Each model says of its rows under Node what it says in Python."""
    answers = run_node([(to_javascript(model), some) for model, some in zip(models, rows, strict=True)])
    for model, some, found in zip(models, rows, answers, strict=True):
        for row, answer in zip(some, found.rows, strict=True):
            assert_same(answer, expected_of(model, row), row)
