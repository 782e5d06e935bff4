"""What a page may do: nothing may be loaded, and what runs or styles it is known by its hash."""

import base64
import hashlib
from collections.abc import Iterable

# Whatever is not named is forbidden.
NOTHING_ELSE = "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'"


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
