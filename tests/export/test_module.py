"""The module as a whole: what it exports, hostile names, ties, labels, the JSON in it, the scorer in a page."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from deciban import BayesClassifier, Categorical, Gaussian
from deciban.datasets import weather
from deciban.errors import UsageError
from deciban.export import javascript
from deciban.export.javascript import SCORER_PARTS, scorer_source, to_javascript
from deciban.export.model_json import model_as_json
from deciban.families.base.contract import BaseLikelihood
from deciban.families.base.lowering import ExportedColumns
from deciban.model.model import Model
from deciban.web.scripts import embed_json
from tests.export.agreement import assert_agree
from tests.export.models import HOSTILE, hostile_model
from tests.export.targets import everywhere, run_node
from tests.support.node import NODE, needs_node


def test_hostile_names_and_values_are_names_and_values() -> None:
    clf, cells = hostile_model()
    rows = [{name: str(cells[name][k]) for name in HOSTILE} for k in range(10)]
    assert_agree([clf.model_], [rows])
    for (found,) in everywhere([clf.model_], [rows], ["predict"]):
        assert [column["name"] for column in found.columns] == HOSTILE
        assert found.classes == clf.classes_.tolist()
        assert [answer["predict"] for answer in found.rows] == clf.predict(rows).tolist()


def test_a_module_cannot_end_the_script_that_it_stands_in() -> None:
    source = to_javascript(hostile_model()[0].model_)
    assert not re.search(r"</?script|<!--|-->|]]>|\u2028|\u2029", source, re.IGNORECASE)


def test_the_json_is_strict_and_survives_being_written() -> None:
    rng = np.random.default_rng(1)
    clf = BayesClassifier({0: Gaussian(), 1: Categorical(alpha=0)}, prior=[1.0, 0.0], tune=None)
    found = model_as_json(clf.fit(np.column_stack([rng.normal(size=20), rng.integers(0, 9, 20)]), [0, 1] * 10).model_)
    assert found["log_prior"] == [0.0, "-inf"]
    assert [block["cap"] for block in found["blocks"]] == ["inf", "inf"]
    assert json.loads(embed_json(found)) == found
    assert (found["format"], found["version"]) == ("deciban model", 2)


@pytest.mark.parametrize(
    "labels",
    [[False, True], [3, 7], [2**60, 2**60 + 1], [1.0, 2.0], ["a", "b"], [-1, 0]],
    ids=["flags", "integers", "long", "floats", "texts", "negative"],
)
def test_labels_keep_their_type(labels: list[Any]) -> None:
    model = BayesClassifier(tune=None).fit({"x": [0.0, 1.0, 5.0, 6.0]}, [labels[0]] * 2 + [labels[1]] * 2).model_
    for (found,) in everywhere([model], [[{"x": 0.5}, {"x": 5.5}]], ["predict"]):
        assert found.classes == labels
        assert [answer["predict"] for answer in found.rows] == labels
        assert [type(answer["predict"]) for answer in found.rows] in ([type(label) for label in labels], [int, int])


def test_ties_go_to_the_first_class_and_impossible_rows_to_the_prior() -> None:
    def model(cells: str, labels: str, **options: Any) -> Model:
        clf = BayesClassifier({"x": Categorical(alpha=0, unseen="smooth")}, tune=None, **options)
        return clf.fit({"x": list(cells)}, list(labels)).model_

    models = [model("pp", "ba"), model("pqrr", "aabb"), model("pqrr", "aabb", prior=[0.25, 0.75])]
    rows = [[{"x": "p"}], [{"x": "p"}], [{"x": "?"}]]
    for answers in everywhere(models, rows, ["predict", "predict_proba", "predict_log_proba"]):
        tie, sure, never = (found.rows[0] for found in answers)
        assert (tie["predict"], tie["predict_proba"]) == ("a", [0.5, 0.5])
        assert (sure["predict"], sure["predict_proba"], sure["predict_log_proba"]) == ("a", [1.0, 0.0], [0.0, -np.inf])
        assert never["predict"] == "b"
        assert never["predict_proba"] == pytest.approx([0.25, 0.75], abs=1e-15)


@needs_node
def test_the_scorer_stands_in_a_page_as_a_plain_script() -> None:
    """Without modules: as a classic script it defines one name, and reads the JSON of a script beside it."""
    clf = BayesClassifier(tune=None).fit({"x": [0.0, 1.0, 5.0, 6.0]}, list("aabb"))
    script = (
        f"{scorer_source()}\nresult = decibanScorer({embed_json(model_as_json(clf.model_))}).predictProba({{x: 2}});"
    )
    run = "const vm = require('vm'); const page = {atob, TextEncoder, result: null};"
    run += f"vm.runInNewContext({json.dumps(script)}, page); console.log(JSON.stringify(page.result))"
    assert NODE is not None
    done = subprocess.run([NODE, "-"], input=run, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == pytest.approx(clf.predict_proba([{"x": 2.0}])[0], abs=1e-15)


@needs_node
def test_a_model_of_another_format_is_refused() -> None:
    clf = BayesClassifier(tune=None).fit({"x": [0.0, 1.0]}, [0, 1])
    found = embed_json({**model_as_json(clf.model_), "version": 3})
    assert NODE is not None
    done = subprocess.run(
        [NODE, "-"], input=f"{scorer_source()}\ndecibanScorer({found})", capture_output=True, text=True
    )
    assert "unsupported format 'deciban model 3', expected 'deciban model 2'; export the model again" in done.stderr


def test_a_family_that_cannot_be_exported_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match=r"column 'size': Gaussian\(\) cannot be exported; choose a different family"):
        BaseLikelihood().lower(ExportedColumns(Gaussian(), (0,), ["size"]))


def test_values_that_programs_do_not_have_are_refused_by_name() -> None:
    waits = pa.array([1, 2, 1, 2], pa.duration("s"))
    clf = BayesClassifier({"wait": Categorical()}, tune=None).fit(pa.table({"wait": waits}), [0, 1, 0, 1])
    with pytest.raises(UsageError, match=r"column 'wait': values of type duration\[s\]"):
        to_javascript(clf.model_)


def test_columns_say_what_may_be_entered() -> None:
    table = {"size": [1.5, 2.5], "town": ["Ulm", "Bern"], "flag": [True, False], "when": ["2020-01-01", "2020-01-02"]}
    clf = BayesClassifier(tune=None).fit(pa.table({**table, "none": pa.nulls(2)}), [0, 1])
    kinds = {column["name"]: column["kind"] for column in model_as_json(clf.model_)["columns"]}
    assert (kinds["size"], kinds["town"], kinds["flag"], kinds["none"]) == ("number", "category", "yes/no", "unused")


def test_every_file_of_the_scorer_is_a_part_of_it() -> None:
    assert {path.stem for path in Path(javascript.__file__).parent.glob("javascript_runtime/*.js")} == set(SCORER_PARTS)


@needs_node
def test_the_example_of_the_documents_says_what_it_shows() -> None:
    page = (Path(__file__).parents[2] / "docs" / "howto" / "export.md").read_text("utf-8")
    example = page.split("```js\n")[1].split("```")[0]
    module = to_javascript(BayesClassifier(tune=None).fit(weather(), "play").model_)
    calls = re.findall(r"^(\w+)\((.*)\);\s+// (.*?)(?:, in the order.*)?$", example, re.MULTILINE)
    assert [name for name, _, _ in calls] == ["predict", "predictProba"]
    row = {"outlook": "sunny", "wind": "weak"}
    assert all(json.loads(re.sub(r"(\w+):", r'"\1":', given)) == row for _, given, _ in calls)
    answer = run_node([(module, [row])], ["predict", "predict_proba"])[0].rows[0]
    assert calls[0][2] == repr(answer["predict"])
    assert calls[1][2] == "[ " + ", ".join(f"{share:.3f}" for share in answer["predict_proba"]) + " ]"
