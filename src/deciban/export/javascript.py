"""A model as one JavaScript module: the scorer, which needs nothing else, and the model as JSON."""

from importlib.resources import files

from deciban.export.model_json import model_as_json
from deciban.model.fitted import Fitted
from deciban.model.model import Model
from deciban.util.version import __version__
from deciban.web.scripts import embed_json

# The files that the scorer is made of, in their order: each defines functions that the next ones use.
SCORER_PARTS = ("cells", "terms", "texts", "scorer")

# What the module offers; each is what the scorer of the model has under this name.
MODULE_EXPORTS = ("columns", "classes", "predict", "proba", "logProba", "logJoint", "evidence", "columnEvidence")


def scorer_source() -> str:
    """The scorer as a script that defines one name, `decibanScorer`, a function from a model (JSON that was parsed) to
    what scores rows with it. It can stand in a page or in a module."""
    folder = files("deciban.export") / "js"
    parts = [(folder / f"{name}.js").read_text("utf-8") for name in SCORER_PARTS]
    body = "\n".join(parts).rstrip("\n")
    return f'const decibanScorer = (() => {{\n"use strict";\n\n{body}\n\nreturn decibanScorer;\n}})();\n'


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
    model = embed_json(model_as_json(fitted))
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
