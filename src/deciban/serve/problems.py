"""Problem details (RFC 9457) of failed requests: status, place, cause and remedy."""

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any

from deciban.errors import Argument, DecibanError, Message, Place, render_message

PROBLEM_JSON = "application/problem+json"

# Titles of RFC 9110, which Python only has since 3.13.
TITLES = {413: "Content Too Large", 414: "URI Too Long", 416: "Range Not Satisfiable", 422: "Unprocessable Content"}

# Seconds after which a client may retry after a 503, for the header Retry-After.
RETRY_AFTER = "1"


# Codes of problems, which are stable, and their meanings.
PROBLEM_CODES = {
    "malformed-request": "malformed HTTP/1.1 request",
    "invalid-token": "missing or invalid token",
    "read-only-token": "a token with the role read was sent to /learn or /forget",
    "cross-site": "a request from a page of another site",
    "learning-disabled": "the service runs without --learn",
    "not-found": "unknown path",
    "unknown-model": "no model of this name",
    "not-exportable": "the model has no form for client-side scoring",
    "method-not-allowed": "method not allowed",
    "request-timeout": "the body was not received in time",
    "too-large": "too many bytes, rows, columns or headers, or a URL that is too long",
    "unsupported-type": "unsupported content type, charset or compression",
    "unknown-host": "unknown name in the Host header",
    "invalid-body": "the body cannot be read, such as invalid JSON, CSV or Arrow",
    "invalid-rows": "the rows have the wrong form",
    "invalid-cell": "a cell has the wrong type or value",
    "unknown-column": "a column that the model does not have",
    "unknown-property": "an unexpected property next to rows",
    "invalid-label": "a missing or invalid label",
    "unknown-class": "a label that is not a class of the model",
    "invalid-id": "an invalid or repeated id",
    "unknown-id": "no row is known by this id",
    "invalid-weight": "an invalid weight",
    "invalid-costs": "invalid costs",
    "invalid-parameter": "an invalid query parameter",
    "internal-error": "internal error (a bug)",
    "unsupported-http": "an HTTP version or method that is not supported",
    "unavailable": "overload, timeout, startup, shutdown, or the journal cannot be written",
    "model-full": "the model or its journal has reached its maximum size",
}

# Default codes by status.
STATUS_CODES = {
    400: "malformed-request",
    401: "invalid-token",
    403: "cross-site",
    404: "not-found",
    405: "method-not-allowed",
    408: "request-timeout",
    413: "too-large",
    414: "too-large",
    415: "unsupported-type",
    421: "unknown-host",
    431: "too-large",
    500: "internal-error",
    501: "unsupported-http",
    503: "unavailable",
    505: "unsupported-http",
    507: "model-full",
}

# Default codes of invalid content, by the beginning of the place.
PLACE_CODES = {
    "rows": "invalid-rows",
    "labels": "invalid-label",
    "ids": "invalid-id",
    "weights": "invalid-weight",
    "costs": "invalid-costs",
    "reject": "invalid-costs",
    "query": "invalid-parameter",
}

# A cell in a place: of a row, or of all rows.
CELL_PLACE = re.compile(r"rows\[[^]]*\].")


@dataclass(frozen=True)
class RowPlace:
    """Place of a row in a request and what follows it, such as ``rows[3].age``; row "*" means all rows."""

    row: int | str
    rest: str = ""

    def __str__(self) -> str:
        return f"rows[{self.row}]{self.rest}"


class Problem(Exception):  # noqa: N818 - term of RFC 9457
    """Request that cannot be fulfilled.

    Attributes
    ----------
    status
        HTTP status.
    cause
        What is wrong.
    remedy
        What to do about it.
    place
        Place in the request, such as ``rows[3].age``; empty for the whole request.
    retryable
        True if nothing was done, so that after a 503 the same request can be sent again.
    code
        One of `PROBLEM_CODES`; by default it follows from the status and the place.
    """

    def __init__(
        self, status: int, cause: str, remedy: str, place: str | RowPlace = "", retryable: bool = True, code: str = ""
    ) -> None:
        super().__init__(cause)
        self.status = status
        self.cause = cause
        self.remedy = remedy
        self.retryable = retryable
        self._place = place
        self._code = code

    @property
    def place(self) -> str:
        return str(self._place)

    @property
    def code(self) -> str:
        """Stable code of the problem.

        >>> Problem(422, "found 'abc', expected a number", "send a number, or null", "rows[0].age").code
        'invalid-cell'
        """
        if self._code or self.status != 422:
            return self._code or STATUS_CODES.get(self.status, "malformed-request")
        if CELL_PLACE.match(self.place):
            return "invalid-cell"
        return PLACE_CODES.get(re.split(r"[.\[]", self.place)[0], "invalid-body")

    @property
    def row(self) -> int | None:
        """Number of the row in the request, if the problem is in one row."""
        row = self._place.row if isinstance(self._place, RowPlace) else None
        return row if isinstance(row, int) else None

    def in_request(self, rows: Sequence[int]) -> "Problem":
        """Return the problem with the row number of the request; rows: the number of each row there."""
        place = self._place
        if isinstance(place, RowPlace) and isinstance(place.row, int) and place.row < len(rows):
            place = replace(place, row=rows[place.row])
        return Problem(self.status, self.cause, self.remedy, place, self.retryable, self._code)

    def to_dict(self) -> dict[str, Any]:
        """Return the problem details, with place, cause and remedy as extension members.

        >>> Problem(422, "found 'abc', expected a number", "send a number, or null", "rows[0].age").to_dict()["detail"]
        "rows[0].age: found 'abc', expected a number; send a number, or null"
        """
        where = f"{self.place}: " if self.place else ""
        return {
            "type": f"urn:deciban:problem:{self.code}",
            "code": self.code,
            "title": TITLES.get(self.status) or HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": f"{where}{self.cause}; {self.remedy}",
            "place": self.place,
            "cause": self.cause,
            "remedy": self.remedy,
        }

    def to_bytes(self) -> bytes:
        """Return the body of the response."""
        text = json.dumps(self.to_dict(), separators=(",", ":"), ensure_ascii=False)
        return text.encode(errors="backslashreplace") + b"\n"  # lone surrogates as JSON escapes

    @property
    def headers(self) -> dict[str, str]:
        """Headers of the response, in lower case."""
        headers = {"content-type": PROBLEM_JSON}
        may_retry = self.status == HTTPStatus.SERVICE_UNAVAILABLE and self.retryable
        return {**headers, "retry-after": RETRY_AFTER} if may_retry else headers


def default_problem(status: int) -> Problem:
    """Return the problem for a status without further information."""
    match status:
        case 404:
            return Problem(404, "not found", "see /openapi.json for the available endpoints", "path")
        case 405:
            return Problem(
                405, "this endpoint does not accept this method", "see the header Allow, or /openapi.json", "method"
            )
        case 500:
            return Problem(500, "internal error", "report it to the operator; the log of the service has details")
        case _:
            return Problem(status, "the request failed", "see /openapi.json")


def cell_place(row: int | str, column: str, named: bool = True) -> RowPlace:
    """Return the place of a cell in a request; columns without names are numbered."""
    return RowPlace(row, f".{column}" if named else f"[{column.removeprefix('x')}]")


def to_problem(error: DecibanError, first_row: int = 0) -> Problem:
    """Return the problem for rows rejected by the library.

    first_row: the number of the first row in the error.
    """
    return Problem(
        422, render_message(error.cause), remedy_for_clients(error.remedy), _place_in_rows(error.place, first_row)
    )


def _place_in_rows(place: Place, first_row: int) -> str | RowPlace:
    row = "*" if place.row is None else place.row - first_row
    if place.column is not None:
        return cell_place(row, place.column)
    return place.source or "" if place.row is None else RowPlace(row)


def remedy_for_clients(remedy: Message) -> str:
    """Return a remedy for a client, who cannot change Python arguments or families."""
    if isinstance(remedy, tuple) and any(isinstance(part, Argument) for part in remedy):
        return "correct the cell, or omit it"
    return render_message(remedy) or "correct the request"


def strip_folders(text: str, path: str) -> str:
    """Return a message about a file without the folders in its path, which clients must not see.

    >>> strip_folders("/srv/models/a.dcb.journal: the journal is damaged", "/srv/models/a.dcb")
    'a.dcb.journal: the journal is damaged'
    """
    folders = {os.path.dirname(name) for name in (path, os.path.abspath(path), os.path.realpath(path))}
    for folder in sorted(folders - {"", os.sep}, key=len, reverse=True):
        text = text.replace(folder + os.sep, "")
    return text
