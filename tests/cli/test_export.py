"""export: a model becomes a program; what cannot be written is said before any work."""

import json
import os
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from onnxruntime import InferenceSession

from deciban import BayesClassifier, Text, load
from tests.export.targets import run_node, run_python
from tests.support.command import Deciban, started
from tests.support.node import needs_node


@needs_node
def test_the_program_says_what_the_model_says(deciban: Deciban, model: str) -> None:
    answer = deciban("export", model, "--to", "js", "--output", "m.mjs")
    assert (answer.code, answer.out) == (0, f"m.mjs: {os.path.getsize('m.mjs'):,} bytes\n")
    found = run_node([(Path("m.mjs").read_text("utf-8"), [{"age": "44.5", "town": "Ulm"}])], ["predict_proba"])[0].rows[
        0
    ]
    expected = load(model).predict_proba([{"age": 44.5, "town": "Ulm"}])[0]
    assert found["predict_proba"] == pytest.approx(expected.tolist(), abs=1e-14)


def test_a_python_file_says_what_the_model_says(deciban: Deciban, model: str) -> None:
    answer = deciban("export", model, "--to", "python", "--output", "m.py")
    assert (answer.code, answer.out) == (0, f"m.py: {os.path.getsize('m.py'):,} bytes\n")
    found = run_python([(Path("m.py").read_text("utf-8"), [{"age": "44.5", "town": "Ulm"}])], ["predict_proba"])[
        0
    ].rows[0]
    expected = load(model).predict_proba([{"age": 44.5, "town": "Ulm"}])[0]
    assert found["predict_proba"] == pytest.approx(expected.tolist(), abs=1e-14)


def test_an_onnx_model_says_what_the_model_says(deciban: Deciban, model: str) -> None:
    answer = deciban("export", model, "--to", "onnx", "--output", "m.onnx")
    assert (answer.code, answer.out) == (0, f"m.onnx: {os.path.getsize('m.onnx'):,} bytes\n")
    cells = {"age": np.array([[44.5]]), "town": np.array([["Ulm"]], dtype=object)}
    found = InferenceSession("m.onnx").run(["probabilities"], cells)[0]
    np.testing.assert_allclose(found, load(model).predict_proba([{"age": 44.5, "town": "Ulm"}]), rtol=1e-12)
    assert started("export", model, "--to", "onnx").stdout == Path("m.onnx").read_bytes()


def test_a_statement_says_what_the_model_says(deciban: Deciban, model: str) -> None:
    options = ("--to", "sql", "--table", "people", "--keep", "town", "--explain")
    answer = deciban("export", model, *options, "--output", "m.sql")
    assert (answer.code, answer.out) == (0, f"m.sql: {os.path.getsize('m.sql'):,} bytes\n")
    people = pa.table({"age": [44.5], "town": ["Ulm"]})
    with duckdb.connect() as connection:
        found = connection.register("people", people).sql(Path("m.sql").read_text("utf-8")).to_arrow_table().to_pylist()
    expected = load(model).predict_proba(people)[0]
    chances = [cell for name, cell in found[0].items() if name.startswith("P(")]
    assert chances == pytest.approx(expected.tolist(), abs=1e-12)
    assert found[0]["town"] == "Ulm"
    assert "decibans of age" in found[0]
    assert "age" not in found[0]


def test_bytes_are_not_printed_as_text(deciban: Deciban, model: str) -> None:
    answer = deciban("export", model, "--to", "onnx", "--json")
    assert (answer.code, "name it with --output" in answer.err) == (2, True)


def test_standard_output_has_the_same_bytes(deciban: Deciban, model: str) -> None:
    assert deciban("export", model, "--to", "js", "-o", "m.mjs").code == 0
    assert deciban("export", model, "--to", "js").out == Path("m.mjs").read_text("utf-8")


def test_programs_get_json(deciban: Deciban, model: str) -> None:
    found = json.loads(deciban("export", model, "--to", "js", "-o", "m.mjs", "--json").out)
    assert found == {"output": "m.mjs", "to": "js", "bytes": os.path.getsize("m.mjs")}
    found = json.loads(deciban("export", model, "--to", "js", "--json").out)
    assert found["source"] == Path("m.mjs").read_text("utf-8")


def test_faults_are_told_in_one_line(deciban: Deciban, model: str) -> None:
    Path("no.dcb").write_text("no model")
    for arguments, code, words in (
        ((model, "--to", "js", "-o", model), 2, "output and input are the same file"),
        ((model, "--to", "js", "-o", "no/m.mjs"), 5, "the folder no does not exist"),
        ((model, "--to", "cobol"), 2, "'cobol' is not"),
        ((model,), 2, "--to"),
        ((model, "--to", "sql"), 2, "use --table"),
        ((model, "--to", "sql", "--table", "t", "--dialect", "oracle"), 2, "'oracle' is not"),
        ((model, "--to", "js", "--table", "t"), 2, "require --to sql"),
        (("no.dcb", "--to", "js"), 4, "no.dcb"),
        (("not.dcb", "--to", "js"), 5, "not.dcb"),
    ):
        answer = deciban("export", *arguments)
        assert (answer.code, words in answer.err) == (code, True), (arguments, answer)
    assert not os.path.exists("m.mjs")


def test_an_old_file_stays_where_nothing_can_be_written_in_its_place(deciban: Deciban, tmp_path: Path) -> None:
    """A column of durations has values that no program has."""
    from deciban import Categorical

    waits = pa.table({"wait": pa.array([1, 2, 1, 2], pa.duration("s"))})
    BayesClassifier({"wait": Categorical()}, tune=None).fit(waits, [0, 1, 0, 1]).save("waits.dcb")
    Path("old.mjs").write_text("old")
    answer = deciban("export", "waits.dcb", "--to", "js", "-o", "old.mjs")
    assert (answer.code, "column 'wait'" in answer.err) == (2, True)
    assert Path("old.mjs").read_text() == "old"


@needs_node
def test_models_of_texts_are_exported_too(deciban: Deciban) -> None:
    texts = {"mail": ["win money now", "cheap money", "lunch at noon", "see you at lunch"]}
    BayesClassifier({"mail": Text()}).fit(texts, ["spam", "spam", "ham", "ham"]).save("mail.dcb")
    source = deciban("export", "mail.dcb", "--to", "js").out
    found = run_node([(source, [{"mail": "Money!"}, {"mail": "lunch?"}])], ["predict"])[0].rows
    assert [answer["predict"] for answer in found] == ["spam", "ham"]
