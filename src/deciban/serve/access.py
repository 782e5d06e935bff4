"""Access control: tokens, and checks of a request before its body is read.

Each line of the token file has a role and a token, ``read TOKEN`` or ``learn TOKEN``; learn implies read. Empty lines
and lines that start with # are ignored. The file is read again when it changes, so tokens can be replaced while the
service runs. If the new file is invalid, the old tokens stay in force and the error is logged.

A request is checked by its Host header, the site it comes from, and its token.
"""

import hashlib
import hmac
import logging
import os
import re
import shlex
import stat
import time
from collections.abc import Mapping
from typing import Any, Literal, Self

from deciban.errors import Place, UsageError
from deciban.serve.problems import Problem
from deciban.serve.routes import OPEN_PATHS, find_route
from deciban.store.layout import open_at_once

Role = Literal["read", "learn"]

# Minimum length of a token: 16 random letters and digits have 95 bits. Shorter ones can be guessed.
MIN_TOKEN_LENGTH = 16

# Characters of a bearer token (RFC 6750).
TOKEN_CHARACTERS = re.compile(r"[A-Za-z0-9._~+/-]+=*")

# Maximum size of the token file; a larger one is probably another file.
MAX_TOKEN_FILE_BYTES = 1 << 20

# Seconds between two checks for a changed file.
CHECK_SECONDS = 1.0

log = logging.getLogger("deciban.serve")


class Tokens:
    """Tokens of a file. Only the SHA-256 of each token is kept.

    problem: what is wrong with the current file, if the tokens in force are those of an earlier version.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._file_signature = _signature(path)
        self._known = _read(path)
        self._checked_at = time.monotonic()
        self.problem: str | None = None

    @classmethod
    def open(cls, path: str) -> Self:
        """Read the file; raise a UsageError if it has no tokens, is invalid, or is readable by everybody."""
        return cls(path)

    def role(self, token: bytes) -> Role | None:
        """Return the role of a token, or None if it is unknown.

        All known tokens are compared, each in constant time, so the duration does not depend on the token.
        """
        self._reload_if_changed()
        sent = hashlib.sha256(token).digest()
        may_read = may_learn = False
        for digest, learns in self._known:
            same = hmac.compare_digest(sent, digest)
            may_read |= same
            may_learn |= same & learns
        return "learn" if may_learn else "read" if may_read else None

    def _reload_if_changed(self) -> None:
        """Read the file again if it has changed."""
        now = time.monotonic()
        if now - self._checked_at < CHECK_SECONDS:
            return
        self._checked_at = now
        seen = _signature(self._path)
        if seen == self._file_signature:
            return
        self._file_signature = seen
        try:
            self._known = _read(self._path)
            self.problem = None
            log.info("reloaded the token file")
        except UsageError as problem:
            self.problem = str(problem)
            log.error("%s; the previous tokens stay in force", problem)


def _signature(path: str) -> tuple[int, ...] | None:
    """Return values that change when the file does."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, status.st_mode


def _read(path: str) -> tuple[tuple[bytes, bool], ...]:
    """Return the SHA-256 of each token, and True if it has the role learn."""
    try:
        with open(path, "rb", opener=open_at_once) as file:
            _check_file(path, os.fstat(file.fileno()))
            content = file.read(MAX_TOKEN_FILE_BYTES)
    except OSError as problem:
        raise UsageError(f"cannot read the token file: {problem.strerror}", place=Place(path)) from None
    known: dict[str, bool] = {}
    for number, line in enumerate(content.decode("ascii", "replace").splitlines(), 1):
        words = line.split()
        if words and not words[0].startswith("#"):
            place = Place(f"{path}, line {number}")
            token = _token(place, words)
            if token in known:
                raise UsageError("duplicate token", place=place, remedy="remove one of the lines")
            known[token] = words[0] == "learn"
    if not known:
        remedy = "add a line 'read TOKEN' or 'learn TOKEN'"
        raise UsageError("the token file has no tokens", place=Place(path), remedy=remedy)
    return tuple((hashlib.sha256(token.encode("ascii")).digest(), learns) for token, learns in known.items())


def _check_file(path: str, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise UsageError("not a regular file", place=Place(path), remedy="pass a file of tokens")
    if status.st_size >= MAX_TOKEN_FILE_BYTES:
        cause = f"the token file has {MAX_TOKEN_FILE_BYTES:,} bytes or more"
        raise UsageError(cause, place=Place(path), remedy="check the path")
    if os.name == "posix" and status.st_mode & (stat.S_IRWXO | stat.S_IWGRP):
        cause = "the token file is accessible by other users"
        raise UsageError(cause, place=Place(path), remedy=f"run chmod 600 {shlex.quote(os.path.basename(path))}")


def _token(place: Place, words: list[str]) -> str:
    """Return the token of a line. Error messages never contain it, since they are logged."""
    if len(words) != 2 or words[0] not in ("read", "learn"):
        raise UsageError("expected 'read TOKEN' or 'learn TOKEN'", place=place)
    if len(words[1]) < MIN_TOKEN_LENGTH:
        cause = f"the token has fewer than {MIN_TOKEN_LENGTH} characters"
        raise UsageError(cause, place=place, remedy="generate a longer random token")
    if not TOKEN_CHARACTERS.fullmatch(words[1]):
        cause = "invalid token: only ASCII letters, digits and . _ ~ + / - are allowed, and = at the end"
        raise UsageError(cause, place=place)
    return words[1]


# Page of a model in a folder. It has no data of the model: it requests these with a token.
PAGE_OF_MODEL = re.compile(r"/models/[^/]+/?")

# Headers used by the checks.
CHECKED_HEADERS = frozenset(
    {b"host", b"content-length", b"transfer-encoding", b"authorization", b"origin", b"sec-fetch-site"}
)

# Host header: an IPv6 address in brackets or a name, and an optional port.
HOST_AND_PORT = re.compile(r"(\[(?P<address>[^\[\]]+)\]|(?P<name>[^\[\]:@/]+))(:[0-9]*)?")


class Request:
    """Head of a request.

    path: without the prefix that a proxy added. route: its label in metrics, or "other". hosts, origins,
    authorizations: all values of each header, since there may be several. length: size of the body; None: unknown.
    learns: True for requests that change the model. is_health_check: True if it is served regardless of load.
    """

    __slots__ = (
        "authorizations",
        "has_body",
        "hosts",
        "is_cross_site",
        "is_health_check",
        "is_http_1_1",
        "learns",
        "length",
        "origins",
        "path",
        "route",
    )  # fmt: skip

    def __init__(self, scope: Mapping[str, Any]) -> None:
        self.path: str = scope["path"].removeprefix(scope.get("root_path", ""))
        route = find_route(self.path)
        self.route = "other" if route is None else route.path
        self.learns = route is not None and route.learns
        self.is_health_check = route is not None and route.is_health_check
        self.is_http_1_1 = scope.get("http_version") != "1.0"
        self.hosts: list[bytes] = []
        self.origins: list[bytes] = []
        self.authorizations: list[bytes] = []
        self.is_cross_site = False
        self.has_body = False
        self.length: int | None = None
        for name, value in scope["headers"]:
            if name in CHECKED_HEADERS:
                self._read(name, value)

    def _read(self, name: bytes, value: bytes) -> None:
        match name:
            case b"host":
                self.hosts.append(value)
            case b"content-length":
                self.length = int(value) if value.isdigit() else None
                self.has_body = self.has_body or self.length != 0
            case b"transfer-encoding":
                self.has_body = True
            case b"authorization":
                self.authorizations.append(value)
            case b"origin":
                self.origins.append(value)
            case b"sec-fetch-site":
                self.is_cross_site = self.is_cross_site or value not in (b"same-origin", b"none")


class Access:
    """Access rules of the service."""

    def __init__(self, hosts: frozenset[str] | None, tokens: Tokens | None) -> None:
        self._hosts = None if hosts is None else frozenset(host.lower().strip("[]") for host in hosts)
        self._tokens = tokens

    def check(self, request: Request) -> Problem | None:
        """Return the problem if a request is rejected, else None."""
        if not request.path.isprintable():
            # a route's pattern would match a path followed by a line break, whose last segment is not "learn"
            return Problem(400, "the path contains unprintable characters", "send a path such as /predict")
        if len(request.hosts) > 1 or (request.is_http_1_1 and not request.hosts):
            return Problem(400, f"found {len(request.hosts)} Host headers, expected 1", "send one Host header")
        if self._hosts is not None and (problem := self._check_origin(request)) is not None:
            return problem
        return None if self._tokens is None else self._check_token(request, self._tokens)

    def _check_origin(self, request: Request) -> Problem | None:
        """Return a problem if a request without a token comes from a page of another site.

        Such a page can make the browser send requests under its own name, or under that of the service.
        """
        host = request.hosts[0] if request.hosts else b"localhost"
        name = _host_name(host)
        if self._hosts is not None and name not in self._hosts:
            remedy = "use localhost, or start the service with --allow-host and this name"
            return Problem(421, "unknown name in the Host header", remedy, "Host")
        if request.is_cross_site or any(origin.partition(b"://")[2] != host for origin in request.origins):
            return Problem(403, "cross-site requests are not allowed", "send the request from a program", "Origin")
        return None

    def _check_token(self, request: Request, tokens: Tokens) -> Problem | None:
        if request.path in OPEN_PATHS or PAGE_OF_MODEL.fullmatch(request.path):
            return None
        sent = request.authorizations[0] if len(request.authorizations) == 1 else b""
        scheme, _, token = sent.partition(b" ")
        role = tokens.role(token.strip() if scheme.lower() == b"bearer" else b"")
        if role is None:
            remedy = "send the header Authorization: Bearer TOKEN"
            return Problem(401, "missing or invalid token", remedy, "Authorization")
        if role != "learn" and request.learns:
            remedy = "use a token with the role learn"
            return Problem(
                403, "permission denied: this token has the role read", remedy, "Authorization", code="read-only-token"
            )
        return None


def _host_name(host: bytes) -> str:
    """Return the name in a Host header without the port; empty if the header is invalid.

    >>> _host_name(b"LocalHost:8000"), _host_name(b"[::1]:8000"), _host_name(b"localhost:80@elsewhere")
    ('localhost', '::1', '')
    """
    match = HOST_AND_PORT.fullmatch(host.decode("latin-1").lower())
    return match["address"] or match["name"] or "" if match else ""
