"""ES modules put together into one script, so that a page is one file."""

import re
from collections.abc import Iterable
from importlib.resources.abc import Traversable

# What a module takes from others, which stand before it in the script, and what it gives to those behind it.
IMPORT = re.compile(r"^import\b[^;]*;\n", re.MULTILINE)
EXPORT = re.compile(r"^export (?=(async )?(function|const|class|let)\b)", re.MULTILINE)


def assembled(modules: Iterable[Traversable]) -> str:
    """The modules as one script, in this order; each may import from those before it. Their names must differ."""
    return "\n".join(EXPORT.sub("", IMPORT.sub("", module.read_text("utf-8"))) for module in modules)
