"""The description of the service (OpenAPI 3.1), made from the table of routes and the columns of the models."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from deciban.serve.answers import IGNORED_HEADER
from deciban.serve.bodies.body import ARROW_STREAM, CSV, JSON
from deciban.serve.bodies.checks import MAX_ID_LENGTH
from deciban.serve.bodies.records import MATRIX_TYPE
from deciban.serve.describe import kinds_and_levels
from deciban.serve.predictions import Reader
from deciban.serve.problems import PROBLEM_JSON
from deciban.serve.service import Service
from deciban.tables.cells import kind_of
from deciban.util.text_tables import to_json
from deciban.util.version import __version__

if TYPE_CHECKING:
    from deciban.serve.routes import Route

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
                "sharing_rules": {"type": "object"},
            },
            ("id", "sum", "words", "sharing_rules"),
        )
    ),
    "Decisions": _rows(
        _object(
            {
                "id": {"type": "string"},
                "decision": LABEL_SCHEMA,
                "risk": {"type": "number"},
                "second_best": LABEL_SCHEMA,
                "second_best_risk": {"type": "number"},
            },
            ("id",),
        )
    ),
    "Results": _rows(
        _object(
            {
                "id": {"type": "string"},
                "result": {"enum": ["learned", "already learned", "relearned", "forgotten", "not found"]},
            },
            ("id",),
        )
    ),
    "Model": {
        "type": "object",
        "required": [
            "model",
            "version",
            "target",
            "rows",
            "classes",
            "columns",
            "tuning",
            "learning",
            "loaded_at",
            "age_seconds",
        ],
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
    "Live": {"type": "object", "properties": {"live": {"const": True}}, "required": ["live"]},
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
MAX_EXAMPLES = 20

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


def description(service: Service, routes: Sequence["Route"]) -> Json:
    """Return the description of all routes that the service has."""
    folder = service.models.is_folder
    schemas = dict(COMMON_SCHEMAS)
    if folder:
        for model in service.models:
            if model.reader is not None:
                schemas[f"Row of {model.name}"] = row_schema(model.reader)
        row: Json = {"type": ["object", "array"], "description": "A row of the model; see the schemas for its columns."}
    else:
        served = service.models.get()
        schemas["Row"] = {} if served is None or served.reader is None else row_schema(served.reader)
        row = _reference("Row")
    paths: Json = {}
    for route in routes:
        if route.summary and (folder or not route.of_folder):
            below = folder and route.of_model
            parameters = [*([NAME_PARAMETER] if below else []), *(QUERY[name] for name in route.query)]
            operation = _post(route, row, parameters) if route.method == "POST" else _get(route, parameters)
            paths[f"{'/models/{name}' if below else ''}{route.path}"] = {route.method.lower(): operation}
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
        found["examples"] = [to_json(level) for level in levels.slice(0, MAX_EXAMPLES).to_pylist()]
    elif kind == "number":
        found["examples"] = [1.5]
    elif kind == "date":
        found["examples"] = ["2026-01-31"] if known is DAY_SCHEMA else ["2026-01-31T12:30:00Z", "2026-01-31 12:30:00"]
    elif kind == "time":
        found["examples"] = ["12:30:00"]
    return found


def _post(route: "Route", row: Json, parameters: list[Json]) -> Json:
    """Return the description of a route to which rows are posted."""
    rows: Json = {"type": "array", "items": row}
    form: Json = {
        "type": "object",
        "properties": {"rows": rows, **{name: OPTIONS[name] for name in route.options}},
        "additionalProperties": False,
    }
    if not route.learns:
        form["required"] = ["rows"]
    table = {"schema": {"type": "string", "format": "binary"}}
    statuses = (*ALWAYS, "415", "422", *(("507",) if route.learns else ()))
    return {
        "operationId": route.name,
        "summary": route.summary,
        "parameters": parameters,
        "requestBody": {
            "required": True,
            "content": {JSON: {"schema": {"anyOf": [rows, form]}}, CSV: table, ARROW_STREAM: table},
        },
        "responses": {
            "200": {
                "description": route.summary,
                "headers": MODEL_HEADER if route.learns else {**MODEL_HEADER, **IGNORED_COLUMNS},
                "content": {JSON: {"schema": _reference(route.answer)}, CSV: table, ARROW_STREAM: table},
            },
            **_problems(statuses),
        },
    }


def _get(route: "Route", parameters: list[Json]) -> Json:
    """Return the description of a route that is read."""
    text: Json = {"schema": {"type": "string"}}
    if route.answer in ("html", "text"):
        content = {"text/html" if route.answer == "html" else "text/plain": text}
    else:
        content = {JSON: {"schema": {"type": "object"} if route.answer == "object" else _reference(route.answer)}}
    responses: Json = {"200": {"description": route.summary, "content": content}}
    if route.unchanging:
        responses["304"] = {"description": "The client has it already."}
    responses |= _problems(ALWAYS)
    if route.answer == "Ready":
        responses["503"] = {"description": "Not now.", "content": {**PROBLEM_CONTENT, **content}}
    operation = {"operationId": route.name.removesuffix(".json")} if JSON in content else {}
    return {**operation, "summary": route.summary, "parameters": parameters, "responses": responses}


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


# Parameters of the query, by their names.
QUERY: dict[str, Json] = {
    "by": {"name": "by", "in": "query", "schema": {"enum": ["column", "block"]}, "description": "What speaks."},
    "id": _column_parameter("id", "the ids of the rows"),
    "target": _column_parameter("target", "the labels"),
    "weight": _column_parameter("weight", "the weights"),
}

# What a body may hold besides its rows, by name.
OPTIONS: dict[str, Json] = {
    "ids": {"type": "array", "items": {"type": ["string", "integer"], "minLength": 1, "maxLength": MAX_ID_LENGTH}},
    "labels": {"type": "array", "items": LABEL_SCHEMA},
    "weights": {"type": "array", "items": {"type": "number", "minimum": 0, "maximum": 1e15}},
    "costs": {
        "type": "object",
        "description": "{decision: {class: cost}}",
        "additionalProperties": {"type": "object", "additionalProperties": {"type": ["number", "string"]}},
    },
    "reject": {"type": "number", "minimum": 0},
}
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
