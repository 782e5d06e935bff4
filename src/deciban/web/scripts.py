"""Scripts of a page that is one file: ES modules joined into one, their data, and the policy that allows no other."""

import base64
import hashlib
import json
import re
from collections.abc import Iterable
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from deciban.web.html import Html

# What a module takes from others, and what it gives.
IMPORT = re.compile(r'^import \{([^}]*)\} from "(?:[^"]*/)?([^"/]+)\.js";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|class)\b)", re.MULTILINE)
EXPORTED = re.compile(r"^export (?:async )?(?:function\*?|const|class) ([\w$]+)", re.MULTILINE)
LEFT = re.compile(r"^(?:import|export)\b.*$", re.MULTILINE)

# The modules that forms are made of.
FORM_MODULES = ("dom", "form", "posterior", "evidence", "risk")

# What JSON may hold and a script in a page must not, as JSON can write it too.
UNSAFE_IN_PAGES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}

# Whatever is not named is forbidden.
NOTHING_ELSE = "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'"


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


def content_policy(scripts: Iterable[str], styles: Iterable[str], *, connect: bool = False) -> str:
    """The Content-Security-Policy of a page with these scripts and styles; connect: it may ask its own server.

    >>> content_policy([], [])
    "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'"
    """
    found = [NOTHING_ELSE]
    for directive, texts in (("script-src", scripts), ("style-src", styles)):
        if hashes := [_hash(text) for text in texts if text]:
            found.append(f"{directive} {' '.join(hashes)}")
    return "; ".join([*found, "connect-src 'self'"] if connect else found)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def form_modules() -> list[Traversable]:
    """The modules that forms are made of."""
    return [files("deciban.web") / f"{name}.js" for name in FORM_MODULES]


def embedded_json(value: Any) -> str:
    """JSON that is also an expression of JavaScript, within any page: it cannot end a script or begin a comment.

    >>> print(embedded_json({"a": "</script>"}))
    {"a":"\\u003c/script\\u003e"}
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign, written in UNSAFE_IN_PAGES.items():
        text = text.replace(sign, written)
    return text


def data_script(name: str, value: Any) -> Html:
    """Data that a script reads; `embedded_json` has no sign that could end it."""
    return Html(f'<script type="application/json" id="{name}">{embedded_json(value)}</script>')
