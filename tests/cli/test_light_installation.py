"""Scoring in processes that cannot import scikit-learn, SciPy or DuckDB."""

import json
import re
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather

import deciban as dc
from tests import PATIENCE
from tests.serve.processes import ask, serving
from tests.store.models import every_family
from tests.support.command import records
from tests.support.models import mixed_table

ROOT = Path(__file__).parents[2]

# Modules of packages that a light installation lacks are not found.
WITHOUT = """
import sys

class Without:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in ("scipy", "sklearn", "duckdb"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Without)
"""

# Program: arguments are those of the command.
LIGHT = f"""{WITHOUT}
from deciban.__main__ import main
main()
"""

# Program: runs a list of commands, which is its argument as JSON, and prints what they print as a list.
SEVERAL = f"""{WITHOUT}
import io, json
from deciban.cli import run

printed = []
for arguments in json.loads(sys.argv[1]):
    sys.stdout = io.TextIOWrapper(io.BytesIO(), "utf-8")
    assert run(arguments) == 0, arguments
    sys.stdout.flush()
    printed.append(sys.stdout.buffer.getvalue().decode())
sys.__stdout__.write(json.dumps(printed))
"""


def light(*arguments: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", LIGHT, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def answers_of(*commands: list[Any]) -> list[str]:
    """What several commands print, in one process."""
    given = json.dumps([list(map(str, command)) for command in commands])
    found = subprocess.run([sys.executable, "-c", SEVERAL, given], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    return list(json.loads(found.stdout))


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[dc.BayesClassifier, pa.Table, Path]]:
    """Models with every family, texts or ordered classes, with their rows as an Arrow file beside them."""
    folder, found = tmp_path_factory.mktemp("light"), {}
    mixed = pa.Table.from_pandas(mixed_table(), preserve_index=False)
    texts = mixed.drop_columns("buys")
    for tune in (None, "auto"):
        found[f"every-{tune}"] = every_family(tune)
        found[f"mixed-{tune}"] = dc.BayesClassifier(tune=tune).fit(mixed, "buys"), texts
    kinds = ("multinomial", "bernoulli", "complement", "lift")
    notes = pa.table(dict.fromkeys(kinds, mixed["note"]))
    families = {kind: dc.Text(kind, max_features=16) for kind in kinds}
    found["texts"] = dc.BayesClassifier(families, tune=None).fit(notes, mixed["buys"].to_numpy()), notes
    ordered = dc.BayesClassifier(ordered=True, classes=["no", "yes"], monotone={"age": 1, "income": 1})
    found["ordered"] = ordered.fit(mixed, "buys"), texts
    for name, (clf, X) in found.items():
        clf.save(folder / f"{name}.dcb")
        feather.write_feather(X.slice(0, 12), folder / f"{name}.arrow")
    return {name: (clf, X.slice(0, 12), folder / name) for name, (clf, X) in found.items()}


@pytest.mark.parametrize("name", ["every-None", "every-auto", "mixed-None", "mixed-auto", "texts", "ordered"])
def test_commands_that_score(models: dict[str, Any], name: str) -> None:
    clf, X, path = models[name]
    model, table = path.with_suffix(".dcb"), path.with_suffix(".arrow")
    costs = path.with_name("costs.csv")
    costs.write_text(f";{';'.join(clf.classes_)}\nact{';1,5' * len(clf.classes_)}\n")
    expected = clf.predict_proba(X)
    predicted, explained, steps, decided, inspected = answers_of(
        ["predict", model, table, "--probabilities"],
        ["explain", model, table, "--row", "3", "--json", "--by", "block"],
        ["explain", model, table, "--rows", "4", "--steps"],
        ["decide", model, table, "--costs", costs],
        ["inspect", model, "--json"],
    )
    found = [[float(row[f"P({label})"]) for label in clf.classes_] for row in records(predicted)]
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    [row] = json.loads(explained)
    assert list(row["posterior"].values()) == pytest.approx(expected[2].tolist(), rel=1e-12)
    assert "row 4" in steps
    assert [row["risk"] for row in records(decided)] == ["1.5"] * len(X)
    assert json.loads(inspected)["model"] == str(model)


@pytest.mark.parametrize("name", ["every-auto", "mixed-auto"])
def test_service(models: dict[str, Any], name: str) -> None:
    clf, X, path = models[name]
    rows = json.loads(json.dumps(X.to_pylist(), default=str))
    with serving(path.with_suffix(".dcb"), program=("-c", LIGHT)) as address:
        answer = ask(f"{address}/predict", rows)
        assert answer.status == 200, answer.body
        found = [[row["probabilities"][label] for label in clf.classes_] for row in answer.json["rows"]]
        np.testing.assert_allclose(found, clf.predict_proba(X), rtol=1e-12)
        for path in ("explain", "decide"):
            assert ask(f"{address}/{path}", rows).status == 200
        monitored = ""  # in the background
        end = time.monotonic() + PATIENCE
        while "deciban_estimated_prior_ratio{" not in monitored:
            assert time.monotonic() < end, monitored
            monitored = ask(f"{address}/metrics").body.decode()
        assert f'deciban_outlier_checked_rows_total{{model="{name}"}}' in monitored
        refused = ask(f"{address}/predict", b"a\n1\n", {"Content-Type": "text/csv"})
        assert refused.status == 415
        assert refused.json["code"] == "unsupported-type"
        assert refused.json["detail"].endswith("because DuckDB is not installed; send JSON")


def test_missing_packages_are_named(models: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("age\n1\n")
    answers = {
        "duckdb": light("predict", models["mixed-auto"][2].with_suffix(".dcb"), tmp_path / "rows.csv"),
        "scikit-learn": light("demo", "--files"),
    }
    for package, answer in answers.items():
        assert answer.returncode == 2
        assert re.fullmatch(rf"deciban: error: .* not installed; run pip install {package}\n", answer.stderr)


def test_list_of_requirements() -> None:
    """The list for light installations repeats the requirements of the package, except for the three."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    left_out = ("scipy", "scikit-learn", "duckdb")
    kept = [one for one in project["dependencies"] if re.match(r"[\w-]+", one)[0] not in left_out]  # type: ignore[index]
    listed = (ROOT / "deploy" / "scoring.txt").read_text().splitlines()
    required = [line for line in listed if line and not line.startswith("#")]
    assert required == [*kept, *project["optional-dependencies"]["serve"]]
