"""Reads jobs ({module, names, rows}) from standard input and writes what the module says of each row, as JSON.

It is run by a Python that finds nothing but its standard library; run.mjs is the same for Node.
"""

from __future__ import annotations  # older Pythons run it too

import importlib.util
import json
import sys
from datetime import date, datetime
from typing import Any
from urllib.parse import urlparse
from urllib.request import url2pathname


def cell_of(cell: Any) -> Any:
    if not isinstance(cell, dict):
        return cell
    if "number" in cell:
        return float(cell["number"])
    if "integer" in cell:
        return int(cell["integer"])
    if "date" in cell:
        text = cell["date"]
        return datetime.fromisoformat(text[:-1]) if text.endswith("Z") else date.fromisoformat(text)
    return None if "undefined" in cell else cell


def answers(module: Any, names: list[str], pairs: list[list[Any]]) -> dict[str, Any]:
    row = {name: cell_of(cell) for name, cell in pairs}
    try:
        return {name: getattr(module, name)(row) for name in names}
    except ValueError as problem:
        return {"error": str(problem)}


def loaded(uri: str, name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, url2pathname(urlparse(uri).path))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    found = []
    for k, job in enumerate(json.load(sys.stdin)):
        model = loaded(job["module"], f"model{k}")
        rows = [answers(model, job["names"], pairs) for pairs in job["rows"]]
        found.append({"columns": model.columns, "classes": model.classes, "rows": rows})
    json.dump(found, sys.stdout)
