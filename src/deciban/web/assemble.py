"""ES modules put together into one script, so that a page is one file."""

import re
from collections.abc import Iterable
from importlib.resources.abc import Traversable

# What a module takes from others, and what it gives.
IMPORT = re.compile(r'^import \{([^}]*)\} from "(?:[^"]*/)?([^"/]+)\.js";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|class)\b)", re.MULTILINE)
EXPORTED = re.compile(r"^export (?:async )?(?:function\*?|const|class) ([\w$]+)", re.MULTILINE)
LEFT = re.compile(r"^(?:import|export)\b.*$", re.MULTILINE)


def assembled(modules: Iterable[Traversable], last: str = "") -> str:
    """The modules as one script; each keeps a scope of its own, and stands behind those that it imports from.

    What a module `dom.js` exports is `$dom` to the statement `last`, which runs when all are there. Modules import by
    name (`import { a, b as c } from "./dom.js";`) and export functions, constants and classes where they define them.
    """
    sources = {module.name.removesuffix(".js"): module.read_text("utf-8") for module in modules}
    order: dict[str, None] = {}
    for name in sources:
        _place(name, sources, order, ())
    scopes = "\n".join(_in_its_scope(name, sources[name]) for name in order)
    return f'(() => {{\n"use strict";\n{scopes}\n{last}\n}})();\n'


def _place(name: str, sources: dict[str, str], order: dict[str, None], above: tuple[str, ...]) -> None:
    """Put a module into the order, behind those it imports from."""
    if name in above or name not in sources:
        fault = "imports it too" if name in above else "is not there"
        raise ValueError(f"{above[-1]}.js imports from {name}.js, which {fault}")
    for found in IMPORT.finditer(sources[name]):
        if found[2] not in order:
            _place(found[2], sources, order, (*above, name))
    order[name] = None


def _in_its_scope(name: str, source: str) -> str:
    names = EXPORTED.findall(source)
    body = EXPORT.sub("", IMPORT.sub(_taken, source))
    if left := LEFT.search(body):
        raise ValueError(f"{name}.js: {left[0]!r} cannot be put into one script; import and export by name")
    return f"const ${name} = (() => {{\n{body}return {{ {', '.join(names)} }};\n}})();\n"


def _taken(found: re.Match[str]) -> str:
    """An import as what the other module has returned."""
    return f"const {{{found[1].replace(' as ', ': ')}}} = ${found[2]};\n"
