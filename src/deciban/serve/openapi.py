"""What answers look like, as OpenAPI describes it: the same for every model.

The description of the service (OpenAPI 3.1), made from the columns of its models.
"""

from typing import Any

from deciban.serve.answers import IGNORED_HEADER
from deciban.serve.bodies.body import ARROW_STREAM, CSV, JSON
from deciban.serve.bodies.checks import LONGEST_ID
from deciban.serve.bodies.records import MATRIX_TYPE
from deciban.serve.describe import kinds_and_levels
from deciban.serve.problems import PROBLEM_JSON
from deciban.serve.reader import Reader
from deciban.serve.service import Service
from deciban.tables.cells import kind_of
from deciban.util.text_tables import plain_json
from deciban.util.version import __version__

# A part of a description.
Json = dict[str, Any]

LABEL_SCHEMA: Json = {"type": ["string", "number", "boolean", "null"]}
PROBABILITY_SCHEMA: Json = {"type": "number", "minimum": 0, "maximum": 1.000001}


def _object(properties: Json, optional: tuple[str, ...] = (), more: bool = False) -> Json:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": more}


def _rows(row: Json) -> Json:
    text: Json = {"type": "string"}
    rows: Json = {"type": "array", "items": row}
    return _object({"model": text, "rows": rows, "ignored": {"type": "array", "items": text}}, ("ignored",))


COMMON_SCHEMAS: Json = {
    "Problem": _object(
        {
            "type": {"type": "string"},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "detail": {"type": "string"},
            "place": {"type": "string"},
            "cause": {"type": "string"},
            "remedy": {"type": "string"},
        }
    ),
    "Predictions": _rows(
        _object(
            {
                "id": {"type": "string"},
                "predicted": LABEL_SCHEMA,
                "probability": PROBABILITY_SCHEMA,
                "probabilities": {"type": "object", "additionalProperties": PROBABILITY_SCHEMA},
            },
            ("id",),
        )
    ),
    "Explanations": _rows(
        _object(
            {
                "id": {"type": "string"},
                "predicted": LABEL_SCHEMA,
                "posterior": {"type": "object", "additionalProperties": PROBABILITY_SCHEMA},
                "against": LABEL_SCHEMA,
                "evidence": {"type": "array", "items": {"type": "object"}},
                "sum": {"type": ["number", "null"]},
                "words": {"type": "object"},
                "shared_out": {"type": "object"},
            },
            ("id", "sum", "words", "shared_out"),
        )
    ),
    "Decisions": _rows(
        _object(
            {
                "id": {"type": "string"},
                "decision": LABEL_SCHEMA,
                "risk": {"type": "number"},
                "runner_up": LABEL_SCHEMA,
                "runner_up_risk": {"type": "number"},
            },
            ("id",),
        )
    ),
    "Results": _rows(
        _object(
            {
                "id": {"type": "string"},
                "result": {"enum": ["learned", "already learned", "relearned", "forgotten", "not known"]},
            },
            ("id",),
        )
    ),
    "Model": {
        "type": "object",
        "required": ["model", "version", "target", "rows", "classes", "columns", "tuning", "learning", "loaded", "age"],
    },
    "Models": _object(
        {
            "models": {
                "type": "array",
                "items": _object(
                    {
                        "name": {"type": "string"},
                        "model": {"type": ["string", "null"]},
                        "problem": {"type": "string"},
                    }
                ),
            }
        }
    ),
    "Ready": _object(
        {
            "ready": {"type": "boolean"},
            "problems": {
                "type": "array",
                "items": _object({"model": {"type": "string"}, "problem": {"type": "string"}}, ("model",)),
            },
        }
    ),
}


# The most levels of a column that are given as examples.
MOST_EXAMPLES = 20

# What cells of a column may be in JSON, by what it was learned as; each may be null. A flag may be 0 or 1.
CELL_SCHEMAS: dict[str, Json] = {
    "DOUBLE": {"type": ["number", "null"]},
    "BOOLEAN": {"enum": [True, False, 0, 1, None]},
    "VARCHAR": {"type": ["string", "null"]},
    "TIMESTAMP": {"type": ["string", "null"], "format": "date-time"},
    "TIME": {"type": ["string", "null"]},
}
ANY_CELL: Json = {"type": ["string", "number", "boolean", "null"]}
DAY_SCHEMA: Json = {"type": ["string", "null"], "format": "date"}

# What is wrong, by status, in the words of the problems that are answered.
PROBLEMS = {
    "400": "The request is malformed, or its Host header is.",
    "401": "There is no token, or a wrong one.",
    "403": "The token may only read, or the service does not learn.",
    "404": "There is no such address or model.",
    "405": "The address has no such method.",
    "408": "The request came in too slowly.",
    "413": "There are too many bytes, rows or columns.",
    "415": "The content type is none that is read.",
    "421": "The Host header names another host.",
    "422": "The content is wrong: place, cause and remedy are told.",
    "503": "The service is busy, starting or ending.",
    "507": "The model or its journal has reached its bound.",
}
ALWAYS = ("400", "401", "403", "404", "405", "408", "413", "421", "503")


def description(service: Service) -> Json:
    """The description of all that can be asked."""
    paths: Json = {}
    schemas = dict(COMMON_SCHEMAS)
    if service.models.is_folder:
        for model in service.models:
            if model.reader is not None:
                schemas[f"Row of {model.name}"] = row_schema(model.reader)
        row: Json = {"type": ["object", "array"], "description": "A row of the model; see the schemas for its columns."}
        paths.update(_model_paths("/models/{name}", row, [NAME_PARAMETER]))
        paths["/models/{name}/"] = {"get": _page("The page of a model", [NAME_PARAMETER])}
        paths["/models"] = {
            "get": _read("models", "The models that are served", {"$ref": "#/components/schemas/Models"})
        }
    else:
        served = service.models.get()
        row = {} if served is None or served.reader is None else row_schema(served.reader)
        schemas["Row"] = row
        paths.update(_model_paths("", {"$ref": "#/components/schemas/Row"}, []))
    paths.update(_service_paths())
    title = "deciban: models" if service.models.is_folder else f"deciban: {_title(service)}"
    found: Json = {
        "openapi": "3.1.0",
        "info": {"title": title, "version": __version__},
        "paths": paths,
        "components": {"schemas": schemas, "responses": _responses()},
    }
    if service.settings.token_file is not None:
        found["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        found["security"] = [{"token": []}]
    return found


def _title(service: Service) -> str:
    served = service.models.get()
    return "model" if served is None else served.name


def row_schema(reader: Reader) -> Json:
    """What a row of this model is: an object with a property for each column, or a list where they have no names."""
    fitted = reader.state.fitted
    schema = fitted.schema
    kinds, levels = kinds_and_levels(fitted)
    types = schema.types or (MATRIX_TYPE,) * schema.width
    cells = [
        cell_schema(kinds.get(column, "unused"), learned, levels.get(column)) for column, learned in enumerate(types)
    ]
    if schema.names is None:
        size = {"minItems": schema.width, "maxItems": schema.width}
        return {"type": "array", "prefixItems": cells, "items": False, **size}
    named = dict(zip(schema.column_names, cells, strict=True))
    return {
        "type": "object",
        "properties": named,
        "description": "Cells that are null or not there are missing. Columns that are not here are ignored.",
    }


def cell_schema(kind: str, learned: str, levels: Any = None) -> Json:
    """What a cell of such a column is; its levels are examples, for others are taken too."""
    known = DAY_SCHEMA if learned.startswith("date") else CELL_SCHEMAS.get(kind_of(learned), ANY_CELL)
    found: Json = {**known, "description": kind}
    if levels is not None:
        found["examples"] = [plain_json(level) for level in levels.slice(0, MOST_EXAMPLES).to_pylist()]
    elif kind == "number":
        found["examples"] = [1.5]
    elif kind == "date":
        found["examples"] = ["2026-01-31"] if known is DAY_SCHEMA else ["2026-01-31T12:30:00Z", "2026-01-31 12:30:00"]
    elif kind == "time":
        found["examples"] = ["12:30:00"]
    return found


def _model_paths(before: str, row: Json, parameters: list[Json]) -> Json:
    rows: Json = {"type": "array", "items": row}
    ids: Json = {"type": "array", "items": {"type": ["string", "integer"], "minLength": 1, "maxLength": LONGEST_ID}}
    labels: Json = {"type": "array", "items": {"type": ["string", "number", "boolean", "null"]}}
    weights: Json = {"type": "array", "items": {"type": "number", "minimum": 0, "maximum": 1e15}}
    costs: Json = {
        "type": "object",
        "description": "{decision: {class: cost}}",
        "additionalProperties": {"type": "object", "additionalProperties": {"type": ["number", "string"]}},
    }
    reject: Json = {"type": "number", "minimum": 0}
    by = {"name": "by", "in": "query", "schema": {"enum": ["column", "block"]}, "description": "What speaks."}
    learned = {"rows": rows, "labels": labels, "ids": ids, "weights": weights}
    posts = {
        "predict": (
            "The most probable class of each row, and the probability of each",
            {"rows": rows, "ids": ids},
            "Predictions",
            [ID],
        ),
        "explain": ("Why each row is classified as it is", {"rows": rows, "ids": ids}, "Explanations", [by, ID]),
        "decide": (
            "The decision of least risk for each row",
            {"rows": rows, "ids": ids, "costs": costs, "reject": reject},
            "Decisions",
            [ID],
        ),
        "learn": ("Rows are learned", learned, "Results", [ID, TARGET_COLUMN, WEIGHT]),
        "forget": ("Rows are forgotten", learned, "Results", [ID, TARGET_COLUMN, WEIGHT]),
    }
    paths: Json = {}
    for name, (summary, options, answer, query) in posts.items():
        needs_rows = name not in ("learn", "forget")
        paths[f"{before}/{name}"] = {
            "post": _post(name, summary, rows, options, answer, parameters + query, needs_rows)
        }
    paths[f"{before}/model"] = {"get": _read("model", "What the model is", _reference("Model"), parameters)}
    paths[f"{before}/model/scorer"] = {
        "get": _read("scorer", "The model for programs that score by themselves", {"type": "object"}, parameters, True)
    }
    paths[f"{before}/model/form"] = {
        "get": _read("form", "What the page makes its form of", {"type": "object"}, parameters, True)
    }
    paths[f"{before}/model/report"] = {"get": _page("The sections of the report, as HTML", parameters, True)}
    return paths


def _post(
    name: str, summary: str, rows: Json, options: Json, answer: str, parameters: list[Json], needs_rows: bool
) -> Json:
    form: Json = {"type": "object", "properties": options, "additionalProperties": False}
    if needs_rows:
        form["required"] = ["rows"]
    table = {"schema": {"type": "string", "format": "binary"}}
    learns = not needs_rows
    statuses = (*ALWAYS, "415", "422", *(("507",) if learns else ()))
    return {
        "operationId": name,
        "summary": summary,
        "parameters": parameters,
        "requestBody": {
            "required": True,
            "content": {JSON: {"schema": {"anyOf": [rows, form]}}, CSV: table, ARROW_STREAM: table},
        },
        "responses": {
            "200": {
                "description": summary,
                "headers": MODEL_HEADER if learns else {**MODEL_HEADER, **IGNORED_COLUMNS},
                "content": {JSON: {"schema": _reference(answer)}, CSV: table, ARROW_STREAM: table},
            },
            **_problems(statuses),
        },
    }


def _read(
    name: str, summary: str, schema: Json, parameters: list[Json] | None = None, unchanging: bool = False
) -> Json:
    responses: Json = {"200": {"description": summary, "content": {JSON: {"schema": schema}}}}
    if unchanging:
        responses["304"] = {"description": "The client has it already."}
    return {
        "operationId": name,
        "summary": summary,
        "parameters": parameters or [],
        "responses": {**responses, **_problems(ALWAYS)},
    }


def _page(summary: str, parameters: list[Json], unchanging: bool = False) -> Json:
    responses: Json = {"200": {"description": summary, "content": {"text/html": {"schema": {"type": "string"}}}}}
    if unchanging:
        responses["304"] = {"description": "The client has it already."}
    return {"summary": summary, "parameters": parameters, "responses": {**responses, **_problems(ALWAYS)}}


def _service_paths() -> Json:
    ready = _read("ready", "Whether requests can be answered", _reference("Ready"))
    busy = {**PROBLEM_CONTENT, JSON: {"schema": _reference("Ready")}}
    ready["responses"]["503"] = {"description": "Not now.", "content": busy}
    text = {"200": {"description": "What has been counted", "content": {"text/plain": {"schema": {"type": "string"}}}}}
    live = {"type": "object", "properties": {"live": {"const": True}}, "required": ["live"]}
    return {
        "/": {"get": _page("The page", [])},
        "/health/live": {"get": _read("live", "Whether the process runs", live)},
        "/health/ready": {"get": ready},
        "/metrics": {"get": {"summary": "Metrics for Prometheus", "responses": {**text, **_problems(ALWAYS)}}},
        "/openapi.json": {"get": _read("openapi", "This description", {"type": "object"})},
    }


def _reference(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def _problems(statuses: tuple[str, ...]) -> Json:
    return {status: {"$ref": f"#/components/responses/{status}"} for status in sorted(statuses)}


PROBLEM_CONTENT: Json = {PROBLEM_JSON: {"schema": _reference("Problem")}}


def _responses() -> Json:
    return {status: {"description": why, "content": PROBLEM_CONTENT} for status, why in PROBLEMS.items()}


def _column_parameter(name: str, holds: str) -> Json:
    told = f"Of CSV and Arrow: the column that holds {holds}."
    return {"name": name, "in": "query", "schema": {"type": "string"}, "description": told}


ID = _column_parameter("id", "the ids of the rows")
TARGET_COLUMN = _column_parameter("target", "the labels")
WEIGHT = _column_parameter("weight", "the weights")
NAME_PARAMETER: Json = {
    "name": "name",
    "in": "path",
    "required": True,
    "schema": {"type": "string"},
    "description": "The name of the model.",
}
MODEL_HEADER: Json = {"Deciban-Model": {"description": "The version of the model.", "schema": {"type": "string"}}}
IGNORED = "Of CSV and Arrow: the columns that the model does not know, percent-encoded, with commas between."
IGNORED_COLUMNS: Json = {IGNORED_HEADER: {"description": IGNORED, "schema": {"type": "string"}}}
