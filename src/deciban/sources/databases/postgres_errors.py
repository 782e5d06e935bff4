"""Errors of PostgreSQL in the terms of the user: place, cause and remedy, without passwords."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from deciban.errors import DataError, DecibanError, UsageError, naming_source
from deciban.sources.databases.addresses import Address, without_passwords

# What the driver puts before the words of libpq, and libpq before the words of the server.
DRIVER_WORDS = re.compile(r"^(?:[A-Z_]+: )?(?:\[libpq\] )?(?:Failed to connect: )?")
SERVER_WORDS = re.compile(r"(?:failed|\[PGRES_FATAL_ERROR\]|query|COPY|'): *[^\W\d_]+: +(.*)")
HINT = re.compile(r"^HINT: +(.*)$", re.MULTILINE)

# The words of libpq for a server that is gone, where nothing else tells.
GONE = re.compile("closed the connection|terminating connection|could not receive data|SYSCALL error")

# What to do about errors of these states, or of all that begin so. The kinds of errors: see `_kind`.
REMEDIES = {
    "42P01": "check the name of the table, in which capitals count",
    "42703": "check the names of the columns, in which capitals count",
    "42501": "ask the owner of the database for the right to do this",
    "42P07": "write another table, or choose existing='replace' or existing='append'",
    "3F000": "make it first, or check its name",
    "25006": "deciban reads in a transaction that changes nothing; give a query that only selects",
    "57014": "allow it more time, or ask for fewer rows",
    "55P03": "somebody uses the table, and perhaps the rows are read from it; try later, or write another table",
    "22": "correct the rows, or the query",
    "53": "the server has no room for this; try later",
    "40": "try again",
    "42": "correct the query",
}


@contextmanager
def translated_errors(place: str, connection: Any) -> Iterator[None]:
    """While it lasts, errors of the driver become ours."""
    try:
        yield
    except (connection.Error, OSError, pa.ArrowException) as problem:
        raise as_user_error(place, problem, _is_gone(connection, str(problem))) from None


def as_user_error(place: str, problem: Exception, gone: bool) -> Exception:
    """The error that the user sees."""
    said = message_of(problem)
    state = getattr(problem, "sqlstate", None) or ("57014" if "statement timeout" in said else "22")
    if gone or state.startswith(("08", "57P")):
        return ConnectionError(f"{place}: the server went away ({said}); start again when it is back")
    if "multiple commands" in said:
        return naming_source(UsageError(f"{place}: these are several statements; give one query"))
    remedy = next((REMEDIES[state[:size]] for size in (5, 2) if state[:size] in REMEDIES), "")
    found = _kind(state)(f"{place}: {said}" + (f"; {remedy}" if remedy and ";" not in said else ""))
    return naming_source(found) if isinstance(found, DecibanError) else found


def _kind(state: str) -> type[Exception]:
    """The class of an error: of the system where neither the question nor the rows are to blame."""
    if state == "42501":
        return PermissionError
    if state in ("57014", "55P03"):
        return TimeoutError
    if state.startswith(("53", "54", "55", "57", "58", "40")):
        return OSError
    return UsageError if state.startswith(("42", "25", "0A", "3F", "26", "2B")) else DataError


def message_of(problem: Exception) -> str:
    """What the server says, and its hint, in one line."""
    text = str(problem)
    details = dict(getattr(problem, "details", None) or ())
    if primary := details.get(b"PG_DIAG_MESSAGE_PRIMARY"):
        said = primary.decode(errors="replace")
    elif found := SERVER_WORDS.search(text):
        said = found[1]
    else:
        said = DRIVER_WORDS.sub("", text.strip().partition("\n")[0]) or "no reason is given"
    hint = HINT.search(text)
    return without_passwords(said.strip().rstrip(".") + (f"; {hint[1].strip().rstrip('.')}" if hint else ""))


def cannot_connect(address: Address, text: str) -> Exception:
    """The error of a connection that was not made."""
    said = address.hide(DRIVER_WORDS.sub("", " ".join(text.split())))
    place = f"{address.shown}: cannot connect: {said}"
    if re.search("password|authentication", said):
        return PermissionError(f"{place}; give the password by PGPASSWORD or in ~/.pgpass, and check the user")
    if "SSL" in said:
        return ConnectionError(f"{place}; choose another sslmode= in the URL, or ask who runs the server")
    if "does not exist" in said:
        return ConnectionError(f"{place}; check the name")
    return ConnectionError(f"{place}; check the address, and whether the server runs")


def _is_gone(connection: Any, text: str) -> bool:
    """Whether the server does not answer any more."""
    try:
        status = connection.adbc_connection.get_option("adbc.postgresql.transaction_status")
    except (connection.Error, AttributeError):  # an older driver
        status = ""
    return status == "unknown" or GONE.search(text) is not None
