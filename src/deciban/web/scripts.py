"""Scripts of a self-contained page: ES modules bundled into one, their data, and the Content-Security-Policy."""

import base64
import hashlib
import json
import re
from collections.abc import Iterable
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from deciban.web.html import Html

# Import and export statements of the modules here; others are rejected.
IMPORT = re.compile(r'^import \{([^}]*)\} from "(?:[^"]*/)?([^"/]+)\.js";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|class)\b)", re.MULTILINE)
EXPORTED = re.compile(r"^export (?:async )?(?:function\*?|const|class) ([\w$]+)", re.MULTILINE)
LEFT = re.compile(r"^(?:import|export)\b.*$", re.MULTILINE)

# Modules of a form.
FORM_MODULES = ("dom", "form", "posterior", "evidence", "risk")

# Characters that must not occur in a script within a page, as JSON escapes.
UNSAFE_IN_PAGES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}

# Base of the policy: everything not listed is forbidden.
BASE_POLICY = "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'"


def bundle(modules: Iterable[Traversable], last: str = "") -> str:
    """Bundle ES modules into one script; each keeps its own scope and follows the modules that it imports.

    The exports of `dom.js` are available as `$dom` in the statement `last`, which runs at the end. Modules must import
    by name (`import { a, b as c } from "./dom.js";`) and export functions, constants and classes at their definition.
    """
    sources = {module.name.removesuffix(".js"): module.read_text("utf-8") for module in modules}
    order: dict[str, None] = {}
    for name in sources:
        _place(name, sources, order, ())
    scopes = "\n".join(_wrap_in_scope(name, sources[name]) for name in order)
    return f'(() => {{\n"use strict";\n{scopes}\n{last}\n}})();\n'


def _place(name: str, sources: dict[str, str], order: dict[str, None], above: tuple[str, ...]) -> None:
    """Add a module to the order after those it imports."""
    if name in above or name not in sources:
        fault = "is a circular import" if name in above else "does not exist"
        raise ValueError(f"{above[-1]}.js imports from {name}.js, which {fault}")
    for found in IMPORT.finditer(sources[name]):
        if found[2] not in order:
            _place(found[2], sources, order, (*above, name))
    order[name] = None


def _wrap_in_scope(name: str, source: str) -> str:
    names = EXPORTED.findall(source)
    body = EXPORT.sub("", IMPORT.sub(_rewrite_import, source))
    if left := LEFT.search(body):
        raise ValueError(f"{name}.js: {left[0]!r} cannot be bundled; import and export by name")
    return f"const ${name} = (() => {{\n{body}return {{ {', '.join(names)} }};\n}})();\n"


def _rewrite_import(found: re.Match[str]) -> str:
    """Return an import statement as a destructuring of the other module."""
    return f"const {{{found[1].replace(' as ', ': ')}}} = ${found[2]};\n"


def content_policy(scripts: Iterable[str], styles: Iterable[str], *, connect: bool = False) -> str:
    """Return the Content-Security-Policy of a page with these scripts and styles; connect: allow its own server.

    >>> content_policy([], [])
    "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'"
    """
    found = [BASE_POLICY]
    for directive, texts in (("script-src", scripts), ("style-src", styles)):
        if hashes := [_hash(text) for text in texts if text]:
            found.append(f"{directive} {' '.join(hashes)}")
    return "; ".join([*found, "connect-src 'self'"] if connect else found)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def form_modules() -> list[Traversable]:
    """Return the modules of a form."""
    return [files("deciban.web") / f"{name}.js" for name in FORM_MODULES]


def embed_json(value: Any) -> str:
    r"""Return JSON that is safe inside a script element: it cannot end the script or start a comment.

    >>> print(embed_json({"a": "</script>"}))
    {"a":"\u003c/script\u003e"}
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign, written in UNSAFE_IN_PAGES.items():
        text = text.replace(sign, written)
    return text


def data_script(name: str, value: Any) -> Html:
    """Return a script element with data; `embed_json` escapes what could end it."""
    return Html(f'<script type="application/json" id="{name}">{embed_json(value)}</script>')
