"""What every answer of the service has in common: headers that keep browsers from harm, and problems as JSON."""

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


def secured(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """The headers with those of `SECURITY_HEADERS` that they lack, and without the name of the server."""
    given = [(name.lower(), value) for name, value in headers]
    names = {name for name, _ in given}
    lacking = [header for header in SECURITY_HEADERS.items() if header[0] not in names]
    return [header for header in given if header[0] != b"server"] + lacking


def problem_answer(problem: Problem, *more: tuple[bytes, bytes]) -> tuple[Headers, bytes]:
    """The headers and the body that tell a problem (RFC 9457). more: headers that go with it."""
    body = problem.as_bytes()
    given = {name for name, _ in more}
    told = [(name.encode(), value.encode()) for name, value in problem.headers.items() if name.encode() not in given]
    return secured([*told, (b"content-length", b"%d" % len(body)), *more]), body
