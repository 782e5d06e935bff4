"""Page /docs: the OpenAPI description of the service as static HTML, without scripts."""

import json
from collections.abc import Iterator
from typing import Any

from deciban.serve.bodies.body import JSON
from deciban.serve.problems import PROBLEM_CODES
from deciban.web.html import Html, common_css, details, html_table, page_head, paragraph, tag
from deciban.web.scripts import content_policy

# Part of the description.
Json = dict[str, Any]

# Maximum number of columns in an example, and of values in a table cell.
MAX_COLUMNS_IN_EXAMPLE, MAX_VALUES = 6, 8

# Maximum number of columns listed per model; /openapi.json has all.
MAX_COLUMNS = 200

# Examples of properties of a body besides rows.
EXAMPLES: dict[str, Any] = {"ids": ["a1"], "labels": ["CLASS"], "reject": 0.4}

CSS = """
body { padding: 0 1rem 3rem; }
main, header, footer { max-width: 60rem; margin: 0 auto; }
h3 code { font-weight: bold; }
section { margin: 1.6rem 0; }
code, pre { font: .9rem/1.45 ui-monospace, monospace; overflow-wrap: anywhere; }
pre { background: var(--panel); border-radius: .4rem; padding: .6rem .8rem; white-space: pre-wrap; margin: .4rem 0; }
th, td { text-align: left; vertical-align: top; }
td { overflow-wrap: anywhere; min-width: 6rem; }
thead th { text-align: left; }
"""


def render_docs_page(description: Json, base: str) -> tuple[str, str]:
    """Return the page of an OpenAPI description and its Content-Security-Policy; `base` is the URL in examples."""
    css = common_css() + CSS
    policy = content_policy([], [css])
    title = description["info"]["title"]
    schemas = description["components"]["schemas"]
    lead = [
        "HTTP API of deciban ",
        description["info"]["version"],
        ". The same for programs: ",
        tag("a", "OpenAPI description", href="openapi.json"),
        ".",
    ]
    token = "Requests need the header Authorization: Bearer TOKEN." if "security" in description else ""
    body = tag(
        "body",
        tag("header", tag("h1", title), paragraph(*lead, class_="quiet"), paragraph(token) if token else ""),
        tag(
            "main",
            tag("h2", "Endpoints"),
            (_endpoint(path, operations, schemas, base) for path, operations in description["paths"].items()),
            _columns(schemas),
            tag("h2", "Errors"),
            paragraph("An error is application/problem+json with place, cause, remedy and one of these codes."),
            html_table(["code", "meaning"], PROBLEM_CODES.items(), "Codes of problems"),
        ),
    )
    return f"<!doctype html>\n{tag('html', page_head(title, css, policy), body, lang='en')}\n", policy


def _endpoint(path: str, operations: Json, schemas: Json, base: str) -> Iterator[Html]:
    for method, operation in operations.items():
        parts: list[Html] = [tag("h3", tag("code", f"{method.upper()} {path}")), paragraph(operation["summary"])]
        fields = [
            (f"{parameter['in']}: {parameter['name']}", _type(parameter["schema"]), parameter["description"])
            for parameter in operation["parameters"]
        ]
        if "requestBody" in operation:
            _, form = operation["requestBody"]["content"][JSON]["schema"]["anyOf"]
            properties = form["properties"]
            fields += [(name, _type(schema), schema.get("description", "")) for name, schema in properties.items()]
            parts.append(paragraph("Body: a list of rows, or an object with these properties; also CSV or Arrow."))
        if fields:
            parts.append(html_table(["parameter or property", "type", "meaning"], fields, f"Request of {path}"))
        if "requestBody" in operation:
            example = json.dumps(_example(path, properties, schemas), ensure_ascii=False)
            quoted = example.replace("'", "'\\''")
            parts.append(tag("pre", f"curl --json '{quoted}' {base}{path}"))
        kinds = operation["responses"]["200"]["content"]
        answer = schemas.get(kinds.get(JSON, {}).get("schema", {}).get("$ref", "").rpartition("/")[2])
        if answer is not None:
            parts.append(details("Response", tag("pre", _outline(answer))))
        yield tag("section", parts)


def _columns(schemas: Json) -> Iterator[Html]:
    """Return a table of the columns of each model."""
    for name, schema in schemas.items():
        if name != "Row" and not name.startswith("Row of "):
            continue
        cells = schema.get("properties", {}) or {f"[{k}]": cell for k, cell in enumerate(schema.get("prefixItems", ()))}
        lines = [
            (column, cell["description"], _type(cell), ", ".join(map(_value, cell.get("examples", ())[:MAX_VALUES])))
            for column, cell in list(cells.items())[:MAX_COLUMNS]
        ]
        yield tag("h2", "Columns" if name == "Row" else f"Columns of {name.removeprefix('Row of ')}")
        if "description" in schema:
            yield paragraph(schema["description"])
        yield html_table(["column", "kind", "type", "examples"], lines, "Columns of a row")
        if len(cells) > MAX_COLUMNS:
            yield paragraph(f"{len(cells) - MAX_COLUMNS:,} more are in the OpenAPI description.")


def _type(schema: Json) -> str:
    """Return the type of a value in words."""
    if "enum" in schema:
        return ", ".join(map(_value, schema["enum"]))
    if schema.get("type") == "array":
        return f"list of {_type(schema['items'])}" if schema.get("items") else "list"
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    found = schema.get("type", "any")
    return " or ".join(found) if isinstance(found, list) else str(found)


def _example(path: str, properties: Json, schemas: Json) -> Json:
    """Return an example of a body."""
    if path.endswith("/forget"):
        return {"ids": EXAMPLES["ids"]}
    row = schemas.get("Row", {})
    cells = {name: cell["examples"][0] for name, cell in row.get("properties", {}).items() if cell.get("examples")}
    first: Any = dict(list(cells.items())[:MAX_COLUMNS_IN_EXAMPLE])
    if "prefixItems" in row:
        first = [1.5] * len(row["prefixItems"][:MAX_COLUMNS_IN_EXAMPLE])
    return {"rows": [first], **{name: EXAMPLES[name] for name in properties if name in EXAMPLES}}


def _outline(schema: Json, indent: str = "") -> str:
    """Return the properties of a response, indented by their depth."""
    properties = schema.get("properties") or {name: {} for name in schema.get("required", ())}
    lines = []
    for name, inner in properties.items():
        lines.append(f"{indent}{name}: {_type(inner)}")
        below = inner.get("items") or inner
        if below.get("properties"):
            lines.append(_outline(below, f"{indent}  "))
    return "\n".join(lines)


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
