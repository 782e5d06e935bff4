"""URLs of databases, and passwords hidden in texts and process arguments."""

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote

from deciban.errors import UsageError

SCHEMES = ("postgresql://", "postgres://")

# A URL as libpq parses it; several hosts are separated by commas. An @ after the hosts would end a password with
# unescaped characters.
URL = re.compile(
    r"postgres(?:ql)?://(?:(?P<user>[^/?#:@]*)(?::(?P<password>[^/?#@]*))?@)?"
    r"(?P<hosts>[^/?#@]*)(?:/(?P<database>[^?#@]*))?(?:\?(?P<options>(?:\w+=[^#&]*&?)*))?"
)
HOST = re.compile(r"(\[[^\]]*\]|[^:\[\]]*)(:\d*)?")
NO_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")

# Passwords in anything that looks like a URL, up to the last @: an unescaped password may contain any character.
BEFORE_HOST = re.compile(r"(?P<before>\b\w+://[^\s/?#:@]*:)(?P<secret>\S+)(?=@)")
IN_OPTIONS = re.compile(r"(?P<before>\b(?:ssl)?password=)(?P<secret>[^&\s'\"]+)", re.IGNORECASE)

HIDDEN = "***"

# Minimum length of a secret that is hidden everywhere: shorter texts occur in messages by chance.
MIN_SECRET = 4


@dataclass(frozen=True)
class Address:
    """Address of a database.

    url: the complete URL, never shown.
    shown: the URL without password and options, for messages.
    secrets: texts that must not appear in any message.
    """

    url: str = field(repr=False)
    shown: str
    secrets: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, url: str) -> "Address":
        """Parse the URL of a database; raise a UsageError, which does not repeat the URL, if it is invalid."""
        found = _parse(url)
        if found is None:
            raise UsageError(
                "invalid database URL",
                remedy="write it as postgresql://user@host:port/database; escape @ / : and % in names and passwords "
                "as %40, %2F, %3A and %25",
            )
        user = f"{found['user']}@" if found["user"] else ""
        shown = f"postgresql://{user}{found['hosts']}" + (f"/{found['database']}" if found["database"] else "")
        secrets = {secret for text in passwords_in(url) for secret in (text, unquote(text))}
        names = {
            found["user"],
            found["database"],
            *found["hosts"].split(","),
        }  # messages need these names
        long = (secret for secret in secrets - names if len(secret) >= MIN_SECRET)
        return cls(url, shown, tuple(sorted(long, key=len, reverse=True)))

    def hide(self, text: str) -> str:
        """Return a text without the passwords of this address."""
        for secret in self.secrets:
            text = text.replace(secret, HIDDEN)
        return mask_passwords(text)


def is_address(source: object) -> bool:
    """Return True for the URL of a database."""
    return isinstance(source, str) and source.startswith(SCHEMES)


def passwords_in(url: str) -> list[str]:
    """Return the passwords in the URL of a database, as written there."""
    found = _parse(url)
    before_host = _secrets(BEFORE_HOST, url) if found is None else [found["password"] or ""]
    return [text for text in (*before_host, *_secrets(IN_OPTIONS, url)) if text]


def mask_passwords(text: str) -> str:
    """Return a text in which the passwords of URLs are hidden.

    >>> mask_passwords("postgresql://ann:s3cret@db/shop?sslpassword=x is not there")
    'postgresql://ann:***@db/shop?sslpassword=*** is not there'
    """
    for pattern in (BEFORE_HOST, IN_OPTIONS):
        text = pattern.sub(lambda found: found["before"] + HIDDEN, text)
    return text


def _parse(url: str) -> re.Match[str] | None:
    """Split the URL of a database into parts; None if it is invalid."""
    found = URL.fullmatch(url)
    plain = found is not None and all(map(HOST.fullmatch, found["hosts"].split(",")))
    return found if plain and NO_ESCAPE.search(url) is None else None


def _secrets(pattern: re.Pattern[str], text: str) -> list[str]:
    return [found["secret"] for found in pattern.finditer(text)]


def find_passwords(arguments: Sequence[str]) -> list[str]:
    """Return the passwords in URLs among the arguments of a command."""
    return [password for argument in arguments if "://" in argument for password in passwords_in(argument)]


def hide_passwords() -> None:
    """Overwrite passwords in the arguments of this process (Linux), so that other users cannot see them."""
    passwords = find_passwords(sys.argv)
    if not passwords or sys.platform != "linux":
        return
    import ctypes

    try:
        with open("/proc/self/stat", "rb") as file:
            first, end = (int(field) for field in file.read().rpartition(b")")[2].split()[45:47])
        shown = ctypes.string_at(first, end - first)
        for secret in (password.encode(errors="surrogateescape") for password in passwords):
            shown = shown.replace(secret, b"*" * len(secret))
        ctypes.memmove(first, shown, len(shown))
    except (OSError, ValueError):  # the system does not expose them this way
        return
