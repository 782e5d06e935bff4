"""OpenAPI 3.1 description of the service, generated from the table of routes and the columns of the models."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from deciban.serve.bodies.body import ARROW_STREAM, CSV, JSON
from deciban.serve.bodies.checks import MAX_ID_LENGTH
from deciban.serve.bodies.records import MATRIX_TYPE
from deciban.serve.describe import kinds_and_levels
from deciban.serve.predictions import Predictor
from deciban.serve.problems import PROBLEM_CODES, PROBLEM_JSON
from deciban.serve.responses import IGNORED_HEADER
from deciban.serve.service import Service
from deciban.tables.cells import kind_of
from deciban.util.text_tables import to_json
from deciban.util.version import __version__

if TYPE_CHECKING:
    from deciban.serve.routes import Route

# Part of the description.
Json = dict[str, Any]

LABEL_SCHEMA: Json = {"type": ["string", "number", "boolean", "null"]}
PROBABILITY_SCHEMA: Json = {"type": "number", "minimum": 0, "maximum": 1.000001}


def _object(properties: Json, optional: tuple[str, ...] = ()) -> Json:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _rows(row: Json) -> Json:
    text: Json = {"type": "string"}
    rows: Json = {"type": "array", "items": row}
    return _object({"model": text, "rows": rows, "ignored": {"type": "array", "items": text}}, ("ignored",))


COMMON_SCHEMAS: Json = {
    "Problem": _object(
        {
            "type": {"type": "string", "description": "urn:deciban:problem: and the code"},
            "code": {"enum": list(PROBLEM_CODES)},
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
                "set": {"type": "array", "items": LABEL_SCHEMA},
            },
            ("id", "set"),
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
            "about",
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


# Maximum number of levels given as examples.
MAX_EXAMPLES = 20

# Schema of the cells of a column, by its type; each cell may be null, and a flag may be 0 or 1.
CELL_SCHEMAS: dict[str, Json] = {
    "DOUBLE": {"type": ["number", "null"]},
    "BOOLEAN": {"enum": [True, False, 0, 1, None]},
    "VARCHAR": {"type": ["string", "null"]},
    "TIMESTAMP": {"type": ["string", "null"], "format": "date-time"},
    "TIME": {"type": ["string", "null"]},
}
ANY_CELL: Json = {"type": ["string", "number", "boolean", "null"]}
DAY_SCHEMA: Json = {"type": ["string", "null"], "format": "date"}

# Descriptions of the error statuses.
STATUS_DESCRIPTIONS = {
    "400": "Malformed request or Host header.",
    "401": "Missing or invalid token.",
    "403": "Permission denied: the token has the role read, or online learning is disabled.",
    "404": "Unknown path or model.",
    "405": "Method not allowed.",
    "408": "The request was not received in time.",
    "413": "Too many bytes, rows or columns.",
    "415": "Unsupported content type.",
    "421": "Unknown name in the Host header.",
    "422": "Invalid content; see place, cause and remedy.",
    "503": "The service is overloaded, starting or shutting down.",
    "507": "The model or its journal has reached its maximum size.",
}
# Statuses that every route can return.
COMMON_STATUSES = ("400", "401", "403", "404", "405", "408", "413", "421", "503")


def describe_service(service: Service, routes: Sequence["Route"]) -> Json:
    """Return the description of all routes of the service."""
    folder = service.models.is_folder
    schemas = dict(COMMON_SCHEMAS)
    if folder:
        for model in service.models:
            if model.predictor is not None:
                schemas[f"Row of {model.name}"] = row_schema(model.predictor)
        row: Json = {"type": ["object", "array"], "description": "Row of the model; see the schemas for its columns."}
    else:
        served = service.models.get()
        schemas["Row"] = {} if served is None or served.predictor is None else row_schema(served.predictor)
        row = _reference("Row")
    paths: Json = {}
    for route in routes:
        if route.summary and (folder or not route.folder_only):
            below = folder and route.per_model
            parameters = [*([NAME_PARAMETER] if below else []), *(QUERY[name] for name in route.query)]
            operation = _post(route, row, parameters) if route.method == "POST" else _get(route, parameters)
            paths[f"{'/models/{name}' if below else ''}{route.path}"] = {route.method.lower(): operation}
    title = "deciban: models" if service.models.is_folder else f"deciban: {_title(service)}"
    document: Json = {
        "openapi": "3.1.0",
        "info": {"title": title, "version": __version__},
        "paths": paths,
        "components": {"schemas": schemas, "responses": _responses()},
    }
    if service.settings.token_file is not None:
        document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"token": []}]
    return document


def _title(service: Service) -> str:
    served = service.models.get()
    return "model" if served is None else served.name


def row_schema(predictor: Predictor) -> Json:
    """Return the schema of a row: an object with a property per column, or an array if columns have no names."""
    fitted = predictor.state.fitted
    schema = fitted.schema
    kinds, levels = kinds_and_levels(fitted)
    types = schema.types or (MATRIX_TYPE,) * schema.width
    cells = [
        cell_schema(kinds.get(column, "unused"), learned, levels.get(column)) for column, learned in enumerate(types)
    ]
    if schema.names is None:
        size = {"minItems": schema.width, "maxItems": schema.width}
        return {"type": "array", "prefixItems": cells, "items": False, **size}
    properties = dict(zip(schema.column_names, cells, strict=True))
    return {
        "type": "object",
        "properties": properties,
        "description": "Null or absent cells are missing values. Unknown columns are ignored.",
    }


def cell_schema(kind: str, learned: str, levels: Any = None) -> Json:
    """Return the schema of a cell. Levels are given as examples, since other values are accepted too."""
    known = DAY_SCHEMA if learned.startswith("date") else CELL_SCHEMAS.get(kind_of(learned), ANY_CELL)
    schema: Json = {**known, "description": kind}
    if levels is not None:
        schema["examples"] = [to_json(level) for level in levels.slice(0, MAX_EXAMPLES).to_pylist()]
    elif kind == "number":
        schema["examples"] = [1.5]
    elif kind == "date":
        schema["examples"] = ["2026-01-31"] if known is DAY_SCHEMA else ["2026-01-31T12:30:00Z", "2026-01-31 12:30:00"]
    elif kind == "time":
        schema["examples"] = ["12:30:00"]
    return schema


def _post(route: "Route", row: Json, parameters: list[Json]) -> Json:
    """Return the operation of a route that accepts rows."""
    rows: Json = {"type": "array", "items": row}
    form: Json = {
        "type": "object",
        "properties": {"rows": rows, **{name: OPTIONS[name] for name in route.options}},
        "additionalProperties": False,
    }
    if not route.learns:
        form["required"] = ["rows"]
    table = {"schema": {"type": "string", "format": "binary"}}
    statuses = (*COMMON_STATUSES, "415", "422", *(("507",) if route.learns else ()))
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
                "content": {JSON: {"schema": _reference(route.response)}, CSV: table, ARROW_STREAM: table},
            },
            **_problems(statuses),
        },
    }


def _get(route: "Route", parameters: list[Json]) -> Json:
    """Return the operation of a GET route."""
    text: Json = {"schema": {"type": "string"}}
    if route.response in ("html", "text"):
        content = {"text/html" if route.response == "html" else "text/plain": text}
    else:
        content = {JSON: {"schema": {"type": "object"} if route.response == "object" else _reference(route.response)}}
    responses: Json = {"200": {"description": route.summary, "content": content}}
    if route.cacheable:
        responses["304"] = {"description": "Not modified."}
    responses |= _problems(COMMON_STATUSES)
    if route.response == "Ready":
        responses["503"] = {"description": "Not ready.", "content": {**PROBLEM_CONTENT, **content}}
    operation = {"operationId": route.name.removesuffix(".json")} if JSON in content else {}
    return {**operation, "summary": route.summary, "parameters": parameters, "responses": responses}


def _reference(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def _problems(statuses: tuple[str, ...]) -> Json:
    return {status: {"$ref": f"#/components/responses/{status}"} for status in sorted(statuses)}


PROBLEM_CONTENT: Json = {PROBLEM_JSON: {"schema": _reference("Problem")}}


def _responses() -> Json:
    return {status: {"description": why, "content": PROBLEM_CONTENT} for status, why in STATUS_DESCRIPTIONS.items()}


def _column_parameter(name: str, content: str) -> Json:
    text = f"For CSV and Arrow: name of the column with {content}."
    return {"name": name, "in": "query", "schema": {"type": "string"}, "description": text}


# Query parameters by name.
QUERY: dict[str, Json] = {
    "by": {
        "name": "by",
        "in": "query",
        "schema": {"enum": ["column", "block"]},
        "description": "Unit of the explanation.",
    },
    "coverage": {
        "name": "coverage",
        "in": "query",
        "schema": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        "description": "Add prediction sets, which contain the true class of this share of rows.",
    },
    "id": _column_parameter("id", "row ids"),
    "target": _column_parameter("target", "labels"),
    "weight": _column_parameter("weight", "weights"),
}

# Properties of the body besides rows, by name.
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
    "description": "Name of the model.",
}
MODEL_HEADER: Json = {"Deciban-Model": {"description": "Version of the model.", "schema": {"type": "string"}}}
IGNORED = "For CSV and Arrow: names of ignored columns, percent-encoded and comma-separated."
IGNORED_COLUMNS: Json = {IGNORED_HEADER: {"description": IGNORED, "schema": {"type": "string"}}}
