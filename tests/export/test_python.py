"""The Python file as such: old Pythons can read it, it imports nothing else, and it runs as a program."""

import ast
import json
import subprocess
import sys
from datetime import UTC, date, datetime, time
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deciban import BayesClassifier, Categorical, Text
from deciban.datasets import weather
from deciban.export import python
from deciban.export.model_json import model_as_json
from deciban.export.python import PYTHON_NAMES, PYTHON_PARTS, to_python
from deciban.export.python_runtime.scorer import DecibanScorer
from tests.export.agreement import assert_same, expected_of
from tests.export.models import HOSTILE, hostile_model

ALONE = (sys.executable, "-I", "-S")


def run_program(path: Path, lines: bytes) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*ALONE, str(path)], input=lines, capture_output=True, check=False)


@pytest.fixture
def days() -> BayesClassifier:
    return BayesClassifier(tune=None).fit(weather(), "play")


def test_python_3_8_can_read_it(days: BayesClassifier) -> None:
    ast.parse(days.to_python(), feature_version=(3, 8))


def test_it_imports_the_standard_library_alone(days: BayesClassifier) -> None:
    found = set()
    for node in ast.walk(ast.parse(days.to_python())):
        if isinstance(node, ast.Import):
            found |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(str(node.module))
    assert "json" in found
    assert found <= sys.stdlib_module_names


def test_no_name_is_defined_twice(days: BayesClassifier) -> None:
    """Parts share one file: a name of one must not be another's."""
    found: list[str] = []
    for node in ast.parse(days.to_python()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.append(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            found += [
                part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
            ]
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found += [one.asname or one.name for one in node.names]
    assert len(found) == len(set(found))
    assert set(PYTHON_NAMES) <= set(found)


def test_every_module_of_the_scorer_is_a_part_of_it() -> None:
    found = {path.stem for path in Path(python.__file__).parent.glob("python_runtime/*.py")}
    assert found == {*PYTHON_PARTS, "__init__"}


def test_the_program_scores_lines_of_json(days: BayesClassifier, tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text(days.to_python(), "utf-8")
    rows = [{"outlook": "sunny", "wind": "weak"}, {"outlook": None}, {}]
    lines = "\ufeff" + "\n\n".join(json.dumps(row) for row in rows)
    done = run_program(path, lines.encode())
    assert (done.returncode, done.stderr) == (0, b"")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    whole = [{**dict.fromkeys(days.feature_names_in_), **row} for row in rows]
    assert [answer["predicted"] for answer in found] == days.predict(whole).tolist()
    np.testing.assert_allclose(
        [answer["probabilities"] for answer in found], days.predict_proba(whole), rtol=0, atol=1e-15
    )


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b'{"outlook": 5}', "line 2: column 'outlook': found number, expected text; use one type"),
        (b'["sunny"]', "line 2: expected a row as {column: value, ...}, found a value of type list"),
        (b"age", "line 2, character 1: not valid JSON; write each row as {column: value, ...}"),
        (b'{"outlook": "su', "line 2, character 16: not valid JSON; write each row as {column: value, ...}"),
        (b'{"outlook": "\xff"}', "line 2: not valid JSON; write each row as {column: value, ...}"),
        (b"[" * 100_000, "line 2: not valid JSON; write each row as {column: value, ...}"),
    ],
    ids=["cell", "list", "word", "cut", "bytes", "deep"],
)
def test_the_program_names_the_line_that_it_cannot_score(
    days: BayesClassifier, tmp_path: Path, line: bytes, words: str
) -> None:
    path = tmp_path / "model.py"
    path.write_text(days.to_python(), "utf-8")
    done = run_program(path, b'{"outlook": "rain"}\n' + line + b"\n")
    assert (done.returncode, len(done.stdout.splitlines())) == (1, 1)
    assert done.stderr.decode().startswith(words)
    assert b"Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_file_of_hostile_names_is_plain_ascii_on_short_lines() -> None:
    source = to_python(hostile_model()[0].model_)
    body = source[source.index("json.loads(") :]
    assert body.isascii()
    assert max(map(len, source.split("\n"))) <= 124
    scope: dict[str, Any] = {"__name__": "model"}
    exec(source, scope)
    assert [column["name"] for column in scope["columns"]] == HOSTILE


def test_dates_times_and_numbers_of_other_libraries_are_cells() -> None:
    spec = {"at": Categorical(), "clock": Categorical(unseen="smooth")}
    stamps, clocks = [datetime(2020, 1, k, 12) for k in (1, 2, 3, 4)], [time(k, 30) for k in (1, 2, 1, 2)]
    model = (
        BayesClassifier(spec, tune=None).fit({"at": stamps, "clock": clocks, "n": [1, 2, 5, 6]}, list("aabb")).model_
    )
    scorer = DecibanScorer(model_as_json(model))
    rows: list[dict[str, Any]] = [{"at": stamps[0], "clock": clocks[1], "n": np.int64(2)}, {"at": date(2020, 1, 1)}]
    rows += [{"clock": clock, "n": np.float32(1.5)} for clock in (*clocks, time(1, 30, 0, 1), time(23))]
    for row in rows:
        assert_same({"predict_log_proba": scorer.predict_log_proba(row)}, expected_of(model, row), row)
    assert scorer.columns[0]["levels"][0] == "2020-01-01 12:00:00"
    assert scorer.columns[1]["levels"] == ["01:30:00", "02:30:00"]
    half = scorer.predict_log_proba({"n": 1.5})
    assert scorer.predict_log_proba({"n": Fraction(3, 2)}) == half == scorer.predict_log_proba({"n": np.float32(1.5)})


@pytest.mark.parametrize(
    "row",
    [
        {"at": time(1, tzinfo=UTC)},
        {"n": Decimal("1.5")},
        {"n": Fraction(10) ** 400},
        {"n": -(2**63) - 1},
        {"n": b"1"},
        {"n": date(2020, 1, 1)},
        {"at": time(1)},
    ],
    ids=str,
)
def test_other_values_are_refused_with_the_name_of_the_column(row: dict[str, Any]) -> None:
    cells = {"at": [datetime(2020, 1, k) for k in (1, 2, 3, 4)], "n": [1, 2, 5, 6]}
    scorer = DecibanScorer(model_as_json(BayesClassifier(tune=None).fit(cells, list("aabb")).model_))
    with pytest.raises(ValueError, match=f"column '{next(iter(row))}': found"):
        scorer.predict_proba(row)


def test_a_model_of_another_version_is_refused(days: BayesClassifier) -> None:
    with pytest.raises(
        ValueError, match="unsupported format 'deciban model 3', expected 'deciban model 2'; export the model again"
    ):
        DecibanScorer({**model_as_json(days.model_), "version": 3})


def test_stop_words_and_short_words_are_left_out() -> None:
    """By hand: of "at lunch we met" only `lunch` is known, P(lunch | class) is (1 + 1)/(2 + 3) and (0 + 1)/(1 + 3)."""
    family = Text(stop_words=("we",), min_word_length=3)
    model = BayesClassifier({"text": family}, tune=None).fit({"text": ["lunch now", "win we at"]}, ["a", "b"]).model_
    evidence = DecibanScorer(model_as_json(model)).evidence({"text": "AT lunch we met"})
    assert evidence[0]["values"] == pytest.approx([np.log(2 / 5), np.log(1 / 4)], abs=1e-15)
