"""Models written as programs, in JavaScript and in Python, and run with nothing beside them."""

import json
import math
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deciban.export.javascript import to_javascript
from deciban.export.python import to_python
from deciban.model.model import Model
from tests.support.node import NO_NODE, NODE

Row = dict[str, Any]

# The source of a module, and rows to score with it.
Job = tuple[str, Sequence[Row]]


@dataclass(frozen=True)
class Answers:
    """What a module offers, and what it says of each row: a dict by the name of the function, or {"error": message}."""

    columns: list[dict[str, Any]]
    classes: list[Any]
    rows: list[dict[str, Any]]


def run_node(jobs: Sequence[Job], names: Sequence[str] = ("predict_log_proba",)) -> list[Answers]:
    """What JavaScript modules say of rows, all in one run of Node; functions are named as in Python."""
    assert NODE is not None
    camel = {re.sub(r"_(.)", lambda found: found[1].upper(), name): name for name in names}
    answers = _run([NODE], "run.mjs", ".mjs", jobs, list(camel))
    for found in answers:
        found.rows[:] = [{camel.get(name, name): value for name, value in row.items()} for row in found.rows]
    return answers


def run_python(jobs: Sequence[Job], names: Sequence[str] = ("predict_log_proba",)) -> list[Answers]:
    """What Python modules say of rows, all in one run of a Python that finds nothing but its standard library."""
    return _run([sys.executable, "-I", "-S"], "run_alone.py", ".py", jobs, names)


def _run(program: list[str], runner: str, suffix: str, jobs: Sequence[Job], names: Sequence[str]) -> list[Answers]:
    with tempfile.TemporaryDirectory() as folder:
        given = []
        for k, (source, rows) in enumerate(jobs):
            path = Path(folder) / f"model{k}{suffix}"
            path.write_text(source, "utf-8")
            given.append({"module": path.as_uri(), "names": names, "rows": [_pairs(row) for row in rows]})
        command = [*program, str(Path(__file__).parent / runner)]
        done = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, check=False)
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


# How a model is written and run; Python first, which is always there.
TARGETS: list[tuple[Callable[[Model], str], Callable[..., list[Answers]]]] = [
    (to_python, run_python),
    (to_javascript, run_node),
]


def everywhere(
    models: Sequence[Model], rows: Sequence[Sequence[Row]], names: Sequence[str] = ("predict_log_proba",)
) -> Iterator[list[Answers]]:
    """What each target says of the rows of each model; without Node the test is skipped behind what Python says."""
    for write, run in TARGETS:
        if run is run_node and NODE is None:
            pytest.skip(NO_NODE)
        yield run([(write(model), some) for model, some in zip(models, rows, strict=True)], names)
