"""Access to the service: the tokens of a file, and the rules by which a request is judged before its body is read.

A line of the token file has what the token may do and the token, ``read TOKEN`` or ``learn TOKEN``; learn implies read.
Empty lines and lines that begin with # are left out. The file is read again when it has changed, so that tokens can be
replaced while the service runs. If the new file has a fault the old tokens stay in force, and the log says so.

A request is judged by the host that it is for, the page it comes from, and its token.
"""

import hashlib
import hmac
import logging
import os
import re
import stat
import time
from collections.abc import Mapping
from typing import Any, Literal, Self

from deciban.errors import Place, UsageError
from deciban.serve.problems import Problem
from deciban.serve.routes import OPEN_PATHS, find_route
from deciban.store.layout import open_at_once

Role = Literal["read", "learn"]

# Shorter ones can be guessed; 16 random letters and digits have 95 bits.
MIN_TOKEN_LENGTH = 16

# The characters that a token may have in the header Authorization (RFC 6750).
TOKEN_CHARACTERS = re.compile(r"[A-Za-z0-9._~+/-]+=*")

# Bytes of a token file at most.
MAX_TOKEN_FILE = 1 << 20

# Seconds between two looks at whether the file has changed.
LOOK_EVERY = 1.0

log = logging.getLogger("deciban.serve")


class Tokens:
    """The tokens of a file. Of each only its SHA-256 is kept.

    problem: what is wrong with the file as it is now, if the tokens in force are those that it had before.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._seen = _signature(path)
        self._known = _read(path)
        self._looked = time.monotonic()
        self.problem: str | None = None

    @classmethod
    def open(cls, path: str) -> Self:
        """The tokens of the file; a UsageError where it has none, a fault, or can be read by everybody."""
        return cls(path)

    def role(self, token: bytes) -> Role | None:
        """What the token may do; None: nothing. It takes the same steps whatever the token is: all known ones are
        compared, and in constant time."""
        self._look()
        sent = hashlib.sha256(token).digest()
        may_read = may_learn = False
        for digest, learns in self._known:
            same = hmac.compare_digest(sent, digest)
            may_read |= same
            may_learn |= same & learns
        return "learn" if may_learn else "read" if may_read else None

    def _look(self) -> None:
        """Read the file again if it has changed."""
        now = time.monotonic()
        if now - self._looked < LOOK_EVERY:
            return
        self._looked = now
        seen = _signature(self._path)
        if seen == self._seen:
            return
        self._seen = seen
        try:
            self._known = _read(self._path)
            self.problem = None
            log.info("the token file was read again")
        except UsageError as problem:
            self.problem = str(problem)
            log.error("%s; the tokens it had before stay in force", problem)


def _signature(path: str) -> tuple[int, ...] | None:
    """What changes when the file does."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_mode


def _read(path: str) -> tuple[tuple[bytes, bool], ...]:
    """The SHA-256 of each token, and whether it may learn."""
    try:
        with open(path, "rb", opener=open_at_once) as file:
            _check_file(path, os.fstat(file.fileno()))
            content = file.read(MAX_TOKEN_FILE)
    except OSError as problem:
        raise UsageError(f"the token file cannot be read: {problem.strerror}", place=Place(path)) from None
    known: dict[str, bool] = {}
    for number, line in enumerate(content.decode("ascii", "replace").splitlines(), 1):
        words = line.split()
        if words and not words[0].startswith("#"):
            place = Place(f"{path}, line {number}")
            token = _token(place, words)
            if token in known:
                raise UsageError("this token is there twice", place=place, remedy="give each its own line, once")
            known[token] = words[0] == "learn"
    if not known:
        remedy = f"write a line such as: read {'x' * 8}... (random)"
        raise UsageError("there are no tokens", place=Place(path), remedy=remedy)
    return tuple((hashlib.sha256(token.encode("ascii")).digest(), learns) for token, learns in known.items())


def _check_file(path: str, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise UsageError("this is not a file", place=Place(path), remedy="write the tokens into one")
    if found.st_size >= MAX_TOKEN_FILE:
        cause = f"a token file has less than {MAX_TOKEN_FILE} bytes"
        raise UsageError(cause, place=Place(path), remedy="is it another file?")
    if os.name == "posix" and found.st_mode & (stat.S_IRWXO | stat.S_IWGRP):
        cause = "others than its owner and group can read the tokens, or change them"
        raise UsageError(cause, place=Place(path), remedy="chmod 600 it")


def _token(place: Place, words: list[str]) -> str:
    """The token of a line. Messages never have it: they end up in logs."""
    if len(words) != 2 or words[0] not in ("read", "learn"):
        raise UsageError("expected 'read TOKEN' or 'learn TOKEN', with nothing behind", place=place)
    if len(words[1]) < MIN_TOKEN_LENGTH:
        cause = f"the token has fewer than {MIN_TOKEN_LENGTH} characters"
        raise UsageError(cause, place=place, remedy="make a longer, random one")
    if not TOKEN_CHARACTERS.fullmatch(words[1]):
        cause = "a token may have letters of ASCII, digits and . _ ~ + / - only, and = at its end"
        raise UsageError(cause, place=place)
    return words[1]


# The page of a model of a folder: it asks for data apart, and with a token.
PAGE_OF_MODEL = re.compile(r"/models/[^/]+/?")

# The headers by which requests are judged.
HEADERS_THAT_MATTER = frozenset(
    {b"host", b"content-length", b"transfer-encoding", b"authorization", b"origin", b"sec-fetch-site"}
)

# A Host header: an address of IPv6 in brackets or a name, and maybe a port.
HOST_AND_PORT = re.compile(r"(\[(?P<address>[^\[\]]+)\]|(?P<name>[^\[\]:@/]+))(:[0-9]*)?")


class Request:
    """What the head of a request says.

    path: without the part that a proxy has put before it. route: by which it is counted, or "other". hosts, origins,
    authorizations: of each header all values, since there may be more than one. length: of the body; None: unknown.
    learns: whether it asks to learn or to forget. is_about_health: whether it is answered however busy the service is.
    """

    __slots__ = ("authorizations", "has_body", "hosts", "is_about_health", "is_cross_site", "is_http_1_1", "learns",
                 "length", "origins", "path", "route")  # fmt: skip

    def __init__(self, scope: Mapping[str, Any]) -> None:
        self.path: str = scope["path"].removeprefix(scope.get("root_path", ""))
        found = find_route(self.path)
        self.route = "other" if found is None else found.path
        self.learns = found is not None and found.learns
        self.is_about_health = found is not None and found.about_health
        self.is_http_1_1 = scope.get("http_version") != "1.0"
        self.hosts: list[bytes] = []
        self.origins: list[bytes] = []
        self.authorizations: list[bytes] = []
        self.is_cross_site = False
        self.has_body = False
        self.length: int | None = None
        for name, value in scope["headers"]:
            if name in HEADERS_THAT_MATTER:
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
    """Says of each request why it is refused, if it is."""

    def __init__(self, hosts: frozenset[str] | None, tokens: Tokens | None) -> None:
        self._hosts = None if hosts is None else frozenset(host.lower().strip("[]") for host in hosts)
        self._tokens = tokens

    def refused(self, request: Request) -> Problem | None:
        """Why the request is refused; None: it is not."""
        if not request.path.isprintable():
            # a route's pattern would match a path with a line break behind it, whose last part is not "learn"
            return Problem(400, "the path has characters that cannot be printed", "send a path such as /predict")
        if len(request.hosts) > 1 or (request.is_http_1_1 and not request.hosts):
            return Problem(400, f"found {len(request.hosts)} Host headers, expected 1", "send one Host header")
        if self._hosts is not None and (problem := self._from_elsewhere(request)) is not None:
            return problem
        return None if self._tokens is None else self._without_token(request, self._tokens)

    def _from_elsewhere(self, request: Request) -> Problem | None:
        """Why a request without a token does not come from this machine's own programs: a page of some other site has
        the browser send it, under the site's name, or under ours."""
        host = request.hosts[0] if request.hosts else b"localhost"
        name = _name_of_host(host)
        if self._hosts is not None and name not in self._hosts:
            remedy = "ask for localhost, or start the service with --allow-host and this name"
            return Problem(421, "the Host header names a host that this service does not answer for", remedy, "Host")
        if request.is_cross_site or any(origin.partition(b"://")[2] != host for origin in request.origins):
            return Problem(403, "the request comes from a page of another site", "ask from a program", "Origin")
        return None

    def _without_token(self, request: Request, tokens: Tokens) -> Problem | None:
        if request.path in OPEN_PATHS or PAGE_OF_MODEL.fullmatch(request.path):
            return None
        sent = request.authorizations[0] if len(request.authorizations) == 1 else b""
        scheme, _, token = sent.partition(b" ")
        role = tokens.role(token.strip() if scheme.lower() == b"bearer" else b"")
        if role is None:
            remedy = "send the header Authorization: Bearer TOKEN, with a token of the service's token file"
            return Problem(401, "the token is missing or wrong", remedy, "Authorization")
        if role != "learn" and request.learns:
            remedy = "send a token that the token file has as learn"
            return Problem(403, "this token may read, but neither learn nor forget", remedy, "Authorization")
        return None


def _name_of_host(host: bytes) -> str:
    """The name in a Host header, without its port; empty where it is no host.

    >>> _name_of_host(b"LocalHost:8000"), _name_of_host(b"[::1]:8000"), _name_of_host(b"localhost:80@elsewhere")
    ('localhost', '::1', '')
    """
    found = HOST_AND_PORT.fullmatch(host.decode("latin-1").lower())
    return found["address"] or found["name"] or "" if found else ""
