"""The description of the service is true: nothing that it allows, and nothing near that, brings about a fault."""

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

from deciban.serve.bodies import ARROW_STREAM, CSV
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
@pytest.mark.parametrize("model", ["mixed.dcb", "weather.dcb", "matrix.dcb", ""], ids=lambda model: model or "folder")
def test_no_request_that_is_like_the_description_is_a_fault(opened: Opened, model: str, mode: GenerationMode) -> None:
    schema = schemathesis.openapi.from_asgi("/openapi.json", opened(model).app)
    tried = set()
    for found in schema.get_all_operations():
        operation = found.ok()
        takes_rows = operation.method == "post"
        if mode is GenerationMode.NEGATIVE and not takes_rows:
            continue  # there is nothing in these requests that could be wrong
        names = {} if model or not takes_rows else {"path_parameters": {"name": "weather"}}

        @settings(
            max_examples=30 if takes_rows else 2,
            deadline=None,
            derandomize=True,
            database=None,
            phases=(Phase.explicit, Phase.generate),
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=mode, **names))
        def ask(case: Case) -> None:
            case.call_and_validate(checks=CHECKS)

        ask()
        tried.add(operation.label)
    assert any("predict" in label for label in tried)


def test_columns_are_described(opened: Opened) -> None:
    found: dict[str, Any] = opened("mixed.dcb").get("/openapi.json").json()
    row = found["components"]["schemas"]["Row"]["properties"]
    assert set(row) == {"age", "income", "city", "calls", "member", "since", "seen", "at", "note"}
    assert "null" in row["age"]["type"]
    assert "Bern" in row["city"]["examples"]
    assert set(found["paths"]["/predict"]["post"]["responses"]) > {"200", "413", "415", "422"}
