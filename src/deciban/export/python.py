"""Export of a model as one Python file that needs only the standard library."""

import ast
import json
import re
from importlib.resources import files

from deciban.export.model_json import model_as_json
from deciban.model.fitted import Fitted
from deciban.model.model import Model
from deciban.util.version import __version__

# Modules of the scorer, in the order in which they are concatenated: each uses names of the ones before it.
PYTHON_PARTS = ("cells", "terms", "texts", "scorer")

# Package of these modules. Imports from it are dropped: all parts end up in one file.
PARTS_PACKAGE = "deciban.export.python_runtime"

# Public names of the exported file; each is an attribute of its scorer.
PYTHON_NAMES = (
    "columns",
    "classes",
    "predict",
    "predict_proba",
    "predict_log_proba",
    "predict_joint_log_proba",
    "evidence",
    "column_evidence",
    "main",
)

# Characters of the model's JSON per line, so that editors and diffs can display the file.
MAX_LINE_LENGTH = 110

OPENING = f'''"""A classifier exported by deciban {__version__}. Requires Python 3.8 or later and no packages.

predict_proba({{"column": value, ...}}) returns the probability of each class, in the order of `classes`.
From a shell, `python FILE < rows.jsonl` scores rows in JSON Lines format.
"""

from __future__ import annotations
'''


def python_scorer() -> str:
    """Return the source code of the scorer as one module.

    The module defines `DecibanScorer`, a class that takes a model (parsed JSON) and scores rows.
    """
    folder = files(PARTS_PACKAGE)
    imports: set[str] = set()
    bodies = []
    for name in PYTHON_PARTS:
        needed, body = _separate_imports((folder / f"{name}.py").read_text("utf-8"))
        imports |= needed
        bodies.append(body)
    return "\n".join(sorted(imports)) + "\n\n\n" + "\n\n\n".join(bodies) + "\n"


def _separate_imports(source: str) -> tuple[set[str], str]:
    """Return the standard library imports of a module, and the code after its imports."""
    lines, last, needed = source.splitlines(), 0, set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            last = node.end_lineno or 0
            home = getattr(node, "module", None) or ""
            if home != "__future__" and not home.startswith(PARTS_PACKAGE):
                needed |= {ast.unparse(type(node)(**{**vars(node), "names": [one]})) for one in node.names}
    return needed, "\n".join(lines[last:]).strip("\n")


def to_python(fitted: Fitted | Model) -> str:
    """Return the model as the source code of one Python file that needs only the standard library.

    Parameters
    ----------
    fitted : Fitted or Model
        The fitted state of a classifier, or its model.

    Returns
    -------
    str
        Source code for Python 3.8 or later. The module has `columns`, `classes` and functions of a row, a dict from
        column name to value: `predict(row)`, `predict_proba(row)`, `predict_log_proba(row)`,
        `predict_joint_log_proba(row)`, `evidence(row)` and `column_evidence(row)`. As a script it scores rows in JSON
        Lines format.

    Raises
    ------
    UsageError
        If a column cannot be exported; the message names it.

    See Also
    --------
    deciban.export.javascript.to_javascript : The same for browsers and Node.

    Examples
    --------
    >>> from deciban import BayesClassifier
    >>> from deciban.datasets import weather
    >>> module = {"__name__": "model"}
    >>> exec(to_python(BayesClassifier(tune=None).fit(weather(), "play").model_), module)
    >>> module["predict"]({"outlook": "sunny", "wind": "weak"})
    'yes'
    """
    model = model_as_json(fitted)
    del model["characters"]  # Python has its own character tables
    written = json.dumps(model, allow_nan=False, separators=(",", ":"))
    names = "".join(f'    "{name}",\n' for name in PYTHON_NAMES)
    assignments = "".join(f"{name} = _scorer.{name}\n" for name in PYTHON_NAMES)
    return (
        f"{OPENING}\n{python_scorer()}\n\n"
        f"_scorer = DecibanScorer(json.loads({_string_literal(written)}))\n"
        f"__all__ = [\n{names}]\n{assignments}\n"
        f'if __name__ == "__main__":\n    sys.exit(main())\n'
    )


def _string_literal(text: str) -> str:
    """Return ASCII text as a Python string literal broken into short lines."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    lines = re.findall(rf"(?:\\.|[^\\]){{1,{MAX_LINE_LENGTH}}}", escaped)
    return "'''\\\n" + "\\\n".join(lines) + "'''"
