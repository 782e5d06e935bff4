"""Export of a model as one JavaScript module without dependencies."""

from importlib.resources import files

from deciban.export.model_json import model_as_json
from deciban.model.fitted import Fitted
from deciban.model.model import Model
from deciban.util.version import __version__
from deciban.web.scripts import embed_json

# Files of the scorer, in the order in which they are concatenated: each defines functions that the next ones use.
SCORER_PARTS = ("cells", "terms", "texts", "scorer")

# Public names of the exported module; each is a property of its scorer.
MODULE_EXPORTS = (
    "columns",
    "classes",
    "predict",
    "predictProba",
    "predictLogProba",
    "predictJointLogProba",
    "evidence",
    "columnEvidence",
)


def scorer_source() -> str:
    """Return the source code of the scorer, for a page or a module.

    It defines one name, `decibanScorer`: a function that takes a model (parsed JSON) and returns an object that scores
    rows.
    """
    folder = files("deciban.export") / "javascript_runtime"
    parts = [(folder / f"{name}.js").read_text("utf-8") for name in SCORER_PARTS]
    body = "\n".join(parts).rstrip("\n")
    return f'const decibanScorer = (() => {{\n"use strict";\n\n{body}\n\nreturn decibanScorer;\n}})();\n'


def to_javascript(fitted: Fitted | Model) -> str:
    """Return the model as the source code of one ES module without dependencies.

    Parameters
    ----------
    fitted : Fitted or Model
        The fitted state of a classifier, or its model.

    Returns
    -------
    str
        Source code for browsers and Node 18 or later. It exports `columns`, `classes` and functions of a row, an object
        from column name to value: `predict(row)`, `predictProba(row)`, `predictLogProba(row)`,
        `predictJointLogProba(row)`, `evidence(row)` and `columnEvidence(row)`.

    Raises
    ------
    UsageError
        If a column cannot be exported; the message names it.

    See Also
    --------
    deciban.export.model_json.model_as_json : The model without the scorer.

    Examples
    --------
    >>> from deciban import BayesClassifier
    >>> from deciban.datasets import weather
    >>> module = to_javascript(BayesClassifier(tune=None).fit(weather(), "play").model_)
    >>> module.splitlines()[-1][:59]
    'export const { columns, classes, predict, predictProba, pre'
    """
    model = embed_json(model_as_json(fitted))
    return (
        f"// A classifier exported by deciban {__version__}, without dependencies.\n"
        f"// predictProba({{column: value, ...}}) returns the probability of each class, in the order of `classes`.\n"
        f"{scorer_source()}\n"
        f"const model = JSON.parse({_string_literal(model)});\n"
        f"const scorer = decibanScorer(model);\n"
        f"export {{ model, decibanScorer }};\n"
        f"export const {{ {', '.join(MODULE_EXPORTS)} }} = scorer;\n"
    )


def _string_literal(text: str) -> str:
    """Return text as a JavaScript string literal.

    Engines parse JSON in a string several times faster than the same JSON as an expression, and a key "__proto__" stays
    an ordinary key.
    """
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
