"""The token file: who may read, and who may learn.

A line has what the token may do and the token, ``read TOKEN`` or ``learn TOKEN``; learn implies read. Empty lines and
lines that begin with # are left out. The file is read again when it has changed, so that tokens can be replaced while
the service runs; where the new file has a fault the tokens of the old one stay in force, and the log says so.
"""

import hashlib
import hmac
import logging
import os
import re
import stat
import time
from typing import Literal, Self

from deciban.errors import UsageError

Role = Literal["read", "learn"]

# Shorter ones can be guessed; 16 random letters and digits have 95 bits.
SHORTEST_TOKEN = 16

# The characters that a token may have in the header Authorization (RFC 6750).
TOKEN_CHARACTERS = re.compile(r"[A-Za-z0-9._~+/-]+=*")

# Bytes of a token file at most.
LARGEST_TOKEN_FILE = 1 << 20

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
        with open(path, "rb", opener=_without_waiting) as file:
            _check_file(path, os.fstat(file.fileno()))
            content = file.read(LARGEST_TOKEN_FILE)
    except OSError as problem:
        raise UsageError(f"{path}: the token file cannot be read: {problem.strerror}") from None
    known: dict[str, bool] = {}
    for number, line in enumerate(content.decode("ascii", "replace").splitlines(), 1):
        words = line.split()
        if words and not words[0].startswith("#"):
            token = _token(f"{path}, line {number}", words)
            if token in known:
                raise UsageError(f"{path}, line {number}: this token is there twice; give each its own line, once")
            known[token] = words[0] == "learn"
    if not known:
        raise UsageError(f"{path}: there are no tokens; write a line such as: read {'x' * 8}... (random)")
    return tuple((hashlib.sha256(token.encode("ascii")).digest(), learns) for token, learns in known.items())


def _without_waiting(path: str, flags: int) -> int:
    """A pipe without a writer would be waited for."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _check_file(path: str, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise UsageError(f"{path}: this is not a file; write the tokens into one")
    if found.st_size >= LARGEST_TOKEN_FILE:
        raise UsageError(f"{path}: a token file has less than {LARGEST_TOKEN_FILE} bytes; is it another file?")
    if os.name == "posix" and found.st_mode & (stat.S_IRWXO | stat.S_IWGRP):
        raise UsageError(f"{path}: others than its owner and group can read the tokens, or change them; chmod 600 it")


def _token(place: str, words: list[str]) -> str:
    """The token of a line. Messages never have it: they end up in logs."""
    if len(words) != 2 or words[0] not in ("read", "learn"):
        raise UsageError(f"{place}: expected 'read TOKEN' or 'learn TOKEN', with nothing behind")
    if len(words[1]) < SHORTEST_TOKEN:
        raise UsageError(f"{place}: the token has fewer than {SHORTEST_TOKEN} characters; make a longer, random one")
    if not TOKEN_CHARACTERS.fullmatch(words[1]):
        raise UsageError(f"{place}: a token may have letters of ASCII, digits and . _ ~ + / - only, and = at its end")
    return words[1]
