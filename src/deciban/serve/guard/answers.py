"""What every answer of the service has in common: headers that keep browsers from harm, and problems as JSON."""

import json
from collections.abc import Iterable

from deciban.serve.problems import Problem

# The name and the value of each header, as ASGI has them.
Headers = list[tuple[bytes, bytes]]

# Nothing that is answered may run, be framed, be guessed to be something else, or tell others where a reader came from.
# An answer that has one of these headers of its own keeps it: the page has a policy that lets its own script run.
SECURITY_HEADERS = {
    b"content-security-policy": (
        b"default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox"
    ),
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"cache-control": b"no-store",
}

# Seconds after which a client that was told 503 may try again.
RETRY_AFTER = b"1"


def secured(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """The headers with those of `SECURITY_HEADERS` that they lack, and without the name of the server."""
    given = [(name.lower(), value) for name, value in headers]
    names = {name for name, _ in given}
    lacking = [header for header in SECURITY_HEADERS.items() if header[0] not in names]
    return [header for header in given if header[0] != b"server"] + lacking


def problem_answer(problem: Problem, *more: tuple[bytes, bytes]) -> tuple[Headers, bytes]:
    """The headers and the body that tell a problem (RFC 9457). more: headers that go with it."""
    body = json.dumps(problem.as_dict()).encode("ascii")
    headers = [(b"content-type", b"application/problem+json"), (b"content-length", b"%d" % len(body)), *more]
    if problem.status == 503 and problem.undone and all(name != b"retry-after" for name, _ in more):
        headers.append((b"retry-after", RETRY_AFTER))
    return secured(headers), body
