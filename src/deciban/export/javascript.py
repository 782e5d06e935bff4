"""A model as one JavaScript module: the scorer, which needs nothing else, and the model as JSON."""

import json
from importlib.resources import files
from typing import Any

from deciban.export.model_json import model_as_json
from deciban.model.fitted import Fitted
from deciban.model.model import Model
from deciban.util.version import __version__

# The files that the scorer is made of, in their order: each defines functions that the next ones use.
SCORER_PARTS = ("arrays", "cells", "families", "shares", "joint", "texts", "corrections", "scorer")

# What JSON may hold and a script in a page must not, as JSON can write it too.
UNSAFE_IN_PAGES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}

# What the module offers; each is what the scorer of the model has under this name.
MODULE_EXPORTS = ("columns", "classes", "predict", "proba", "logProba", "logJoint", "evidence", "columnEvidence")


def scorer_source() -> str:
    """The scorer as a script that defines one name, `decibanScorer`, a function from a model (JSON that was parsed) to
    what scores rows with it. It can stand in a page or in a module."""
    folder = files("deciban.export") / "js"
    parts = [(folder / f"{name}.js").read_text("utf-8") for name in SCORER_PARTS]
    body = "\n".join(parts).rstrip("\n")
    return f'const decibanScorer = (() => {{\n"use strict";\n\n{body}\n\nreturn decibanScorer;\n}})();\n'


def embedded_json(value: Any) -> str:
    """JSON that is also an expression of JavaScript, within any page: it cannot end a script or begin a comment.

    >>> print(embedded_json({"a": "</script>"}))
    {"a":"\\u003c/script\\u003e"}
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign, written in UNSAFE_IN_PAGES.items():
        text = text.replace(sign, written)
    return text


def to_javascript(fitted: Fitted | Model) -> str:
    """A model as the source of one ES module that needs nothing else, for browsers and for Node 18 or later.

    Parameters
    ----------
    fitted : Fitted or Model
        What is known, or the model of it.

    Returns
    -------
    str
        It exports `columns`, `classes` and, of a row as an object from names of columns to cells, `predict(row)`,
        `proba(row)`, `logProba(row)`, `logJoint(row)`, `evidence(row)`, `columnEvidence(row)`.

    Raises
    ------
    UsageError
        If JavaScript cannot score a column; it is named.

    See Also
    --------
    deciban.export.model_json.model_as_json : The model alone.

    Examples
    --------
    >>> from deciban import BayesClassifier
    >>> from deciban.datasets import weather
    >>> module = to_javascript(BayesClassifier(tune=None).fit(weather(), "play").model_)
    >>> module.splitlines()[-1]
    'export const { columns, classes, predict, proba, logProba, logJoint, evidence, columnEvidence } = scorer;'
    """
    model = embedded_json(model_as_json(fitted))
    return (
        f"// A model of deciban {__version__}: import {{ proba }} from it, and call proba({{column: value, ...}}).\n"
        f"{scorer_source()}\n"
        f"const model = JSON.parse({_as_string(model)});\n"
        f"const scorer = decibanScorer(model);\n"
        f"export {{ model, decibanScorer }};\n"
        f"export const {{ {', '.join(MODULE_EXPORTS)} }} = scorer;\n"
    )


def _as_string(text: str) -> str:
    """A text as a string of JavaScript: engines parse JSON in it several times faster than the same as an expression,
    and a key "__proto__" is a key."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
