"""A model as one Python file that needs nothing but the standard library: the scorer, and the model as JSON."""

import ast
import json
import re
from importlib.resources import files

from deciban.export.model_json import model_as_json
from deciban.model.fitted import Fitted
from deciban.model.model import Model
from deciban.util.version import __version__

# The modules that the scorer is made of, in their order: each defines what the next ones use.
PYTHON_PARTS = ("cells", "terms", "texts", "scorer")

# Where they are: what they import from here is in the same file when they are put together.
PARTS_PACKAGE = "deciban.export.py"

# What the file offers; each is what the scorer of the model has under this name.
PYTHON_NAMES = (
    "columns", "classes", "predict", "proba", "log_proba", "log_joint", "evidence", "column_evidence", "main",
)  # fmt: skip

# So many characters of the model's JSON are on a line.
MODEL_LINE = 110

OPENING = f'''"""A model of deciban {__version__}, for Python 3.8 or later and nothing else.

proba({{"column": value, ...}}) is the posterior of each of `classes`; `python FILE < rows.jsonl` scores rows of JSON.
"""

from __future__ import annotations
'''


def python_scorer() -> str:
    """The scorer as the source of one module, which defines `DecibanScorer`: from a model (JSON that was parsed) to
    what scores rows with it."""
    folder = files(PARTS_PACKAGE)
    imports: set[str] = set()
    bodies = []
    for name in PYTHON_PARTS:
        needed, body = _cut_apart((folder / f"{name}.py").read_text("utf-8"))
        imports |= needed
        bodies.append(body)
    return "\n".join(sorted(imports)) + "\n\n\n" + "\n\n\n".join(bodies) + "\n"


def _cut_apart(source: str) -> tuple[set[str], str]:
    """What a part imports of the standard library, and what stands behind its imports."""
    lines, last, needed = source.splitlines(), 0, set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            last = node.end_lineno or 0
            home = getattr(node, "module", None) or ""
            if home != "__future__" and not home.startswith(PARTS_PACKAGE):
                needed |= {ast.unparse(type(node)(**{**vars(node), "names": [one]})) for one in node.names}
    return needed, "\n".join(lines[last:]).strip("\n")


def to_python(fitted: Fitted | Model) -> str:
    """A model as the source of one Python file that needs nothing but the standard library of Python 3.8 or later.

    Parameters
    ----------
    fitted : Fitted or Model
        What is known, or the model of it.

    Returns
    -------
    str
        The module has `columns`, `classes` and, of a row as a dict from names of columns to cells, `predict(row)`,
        `proba(row)`, `log_proba(row)`, `log_joint(row)`, `evidence(row)`, `column_evidence(row)`. As a program it reads
        rows as lines of JSON.

    Raises
    ------
    UsageError
        If a column cannot be exported; it is named.

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
    del model["characters"]  # Python has tables of them
    written = json.dumps(model, allow_nan=False, separators=(",", ":"))
    offered = "".join(f"{name} = _scorer.{name}\n" for name in PYTHON_NAMES)
    return (
        f"{OPENING}\n{python_scorer()}\n\n"
        f"_scorer = DecibanScorer(json.loads({_as_literal(written)}))\n"
        f"__all__ = {list(PYTHON_NAMES)!r}\n{offered}\n"
        f'if __name__ == "__main__":\n    sys.exit(main())\n'
    )


def _as_literal(text: str) -> str:
    """ASCII as one string of Python, on lines that are not too long."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    lines = re.findall(rf"(?:\\.|[^\\]){{1,{MODEL_LINE}}}", escaped)
    return "'''\\\n" + "\\\n".join(lines) + "'''"
