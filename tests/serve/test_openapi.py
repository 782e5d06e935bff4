"""The description of the service is true: nothing that it allows, and nothing near that, brings about a fault."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from deciban.serve import problems
from deciban.serve.app import create_app
from deciban.serve.bodies.body import ARROW_STREAM, CSV
from deciban.serve.openapi import STATUS_DESCRIPTIONS
from deciban.serve.problems import PLACE_CODES, PROBLEM_CODES, STATUS_CODES
from deciban.serve.service import Service
from deciban.serve.settings import ServeSettings
from tests import example_count
from tests.serve.conftest import Opened

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


@schemathesis.serializer(ARROW_STREAM, CSV)
def as_bytes(context: Any, value: Any) -> Any:
    """Bytes as they are: what the description says of tables is that they are bytes."""
    return value.encode(errors="replace") if isinstance(value, str) else bytes(getattr(value, "data", value))


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("model", ["mixed.dcb", "matrix.dcb", ""], ids=lambda model: model or "folder")
def test_no_request_that_is_like_the_description_is_a_fault(opened: Opened, model: str, mode: GenerationMode) -> None:
    tried = ask_everything(opened(model).app, mode, {} if model else {"name": "weather"})
    assert any("predict" in label for label in tried)


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
def test_nor_where_it_learns(models: Path, tmp_path: Path, mode: GenerationMode) -> None:
    shutil.copy(models / "plain.dcb", tmp_path / "model.dcb")
    service = Service(ServeSettings.of(str(tmp_path / "model.dcb"), learn=True))
    service.open()
    try:
        assert any("learn" in label for label in ask_everything(create_app(service), mode, {}))
    finally:
        service.close()


def ask_everything(app: Any, mode: GenerationMode, path: dict[str, str]) -> set[str]:
    """What was asked: some requests of each kind, each of whose answers is as described."""
    schema = schemathesis.openapi.from_asgi("/openapi.json", app)
    tried = set()
    for found in schema.get_all_operations():
        operation = found.ok()
        takes_rows = operation.method == "post"
        if mode is GenerationMode.NEGATIVE and not takes_rows:
            continue  # there is nothing in these requests that could be wrong
        names = {"path_parameters": path} if path and takes_rows else {}

        @settings(
            max_examples=example_count(20 if takes_rows else 2),
            phases=(Phase.explicit, Phase.generate),
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=mode, **names))
        def ask(case: Case) -> None:
            case.call_and_validate(checks=CHECKS)

        ask()
        tried.add(operation.label)
    return tried


def test_columns_are_described(opened: Opened) -> None:
    found: dict[str, Any] = opened("mixed.dcb").get("/openapi.json").json()
    row = found["components"]["schemas"]["Row"]["properties"]
    assert set(row) == {"age", "income", "city", "calls", "member", "since", "seen", "at", "note"}
    assert "null" in row["age"]["type"]
    assert "Bern" in row["city"]["examples"]
    assert set(found["paths"]["/predict"]["post"]["responses"]) > {"200", "413", "415", "422"}


def test_the_codes_of_problems_are_those_that_are_documented(opened: Opened) -> None:
    described = opened("weather.dcb").get("/openapi.json").json()["components"]["schemas"]["Problem"]
    document = (Path(__file__).parent.parent.parent / "docs" / "reference" / "rest.md").read_text()
    documented = dict(re.findall(r"^\| `([a-z][a-z-]+)` \| (.*) \|$", document, re.MULTILINE))
    assert documented == PROBLEM_CODES
    assert described["properties"]["code"]["enum"] == list(PROBLEM_CODES)
    assert {*STATUS_CODES.values(), *PLACE_CODES.values()} <= PROBLEM_CODES.keys()
    written = "".join(path.read_text() for path in Path(problems.__file__).parent.rglob("*.py"))
    assert set(re.findall(r'code="([a-z-]+)"', written)) <= PROBLEM_CODES.keys()
    assert {int(status) for status in STATUS_DESCRIPTIONS} <= {*STATUS_CODES, 422}


@pytest.mark.parametrize(
    ("path", "sent", "code", "said"),
    [
        ("/predict", {"outlook": "rain"}, "invalid-rows", 'send a list of rows: [{"outlook": "rain"}]'),
        ("/explain", {"rows": {"outlook": "rain"}}, "invalid-rows", 'send a list of rows: [{"outlook": "rain"}]'),
        ("/decide", {"outlook": {"a": 1}}, "invalid-rows", "send a list of rows: [{column: value, ...}]"),
        ("/predict", {"outlook": "r" * 300}, "invalid-rows", "send a list of rows: [{column: value, ...}]"),
        ("/predict", [{"outlook": 3}], "invalid-cell", "send text, or null"),
        ("/predict", [{"moon": 3}], "unknown-column", "send columns of the model"),
        ("/predict", {"rows": [], "moon": 3}, "unknown-property", "remove it"),
        ("/explain?by=moon", [], "invalid-parameter", "use column or block"),
        ("/predict", {"rows": [{"outlook": "rain"}], "ids": [None]}, "invalid-id", ""),
        ("/decide", {"rows": [{"outlook": "rain"}], "costs": 1}, "invalid-costs", ""),
        ("/learn", [{"outlook": "rain"}], "learning-disabled", ""),
        ("/nowhere", [], "not-found", ""),
        ("/model", [], "method-not-allowed", ""),
    ],
)
def test_a_problem_has_a_code(opened: Opened, path: str, sent: object, code: str, said: str) -> None:
    found = opened("weather.dcb").post(path, json=sent).json()
    assert (found["code"], found["type"]) == (code, f"urn:deciban:problem:{code}")
    assert said in found["remedy"]
