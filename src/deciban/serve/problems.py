"""Problems (RFC 9457): the status, place, cause and remedy of a request that cannot be answered."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any

from deciban.errors import Argument, DecibanError, Message, Place, render_message

PROBLEM_JSON = "application/problem+json"

# The titles of RFC 9110 that Python has from 3.13 on: the same on every version.
TITLES = {413: "Content Too Large", 414: "URI Too Long", 416: "Range Not Satisfiable", 422: "Unprocessable Content"}

# Seconds after which a client that was told 503 may try again.
RETRY_AFTER = "1"


@dataclass(frozen=True)
class RowPlace:
    """A row of a request, and what is behind it: ``rows[3].age``. The row "*" stands for all of them."""

    row: int | str
    rest: str = ""

    def __str__(self) -> str:
        return f"rows[{self.row}]{self.rest}"


class Problem(Exception):  # noqa: N818 - what HTTP calls it (RFC 9457, problem details)
    """A request that cannot be answered.

    status: of the answer. cause: what is wrong. place: where it is in the request, such as ``rows[3].age``; empty where
    it has none. remedy: what to do about it. undone: whether nothing was done, so that who is told 503 may just send it
    again.
    """

    def __init__(self, status: int, cause: str, remedy: str, place: str | RowPlace = "", undone: bool = True) -> None:
        super().__init__(cause)
        self.status = status
        self.cause = cause
        self.remedy = remedy
        self.undone = undone
        self._place = place

    @property
    def place(self) -> str:
        return str(self._place)

    def in_request(self, rows: Sequence[int]) -> "Problem":
        """Return the problem with its place in the request; rows: where each row that it may be about is there."""
        place = self._place
        if isinstance(place, RowPlace) and isinstance(place.row, int) and place.row < len(rows):
            place = replace(place, row=rows[place.row])
        return Problem(self.status, self.cause, self.remedy, place, self.undone)

    def to_dict(self) -> dict[str, Any]:
        """The problem as RFC 9457 writes it, with place, cause and remedy apart.

        >>> Problem(422, "found 'abc', expected a number", "send a number, or null", "rows[0].age").to_dict()["detail"]
        "rows[0].age: found 'abc', expected a number; send a number, or null"
        """
        where = f"{self.place}: " if self.place else ""
        return {
            "type": "about:blank",
            "title": TITLES.get(self.status) or HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": f"{where}{self.cause}; {self.remedy}",
            "place": self.place,
            "cause": self.cause,
            "remedy": self.remedy,
        }

    def as_bytes(self) -> bytes:
        """The body of the answer that tells the problem."""
        told = json.dumps(self.to_dict(), separators=(",", ":"), ensure_ascii=False)
        return told.encode(errors="backslashreplace") + b"\n"  # half a character as JSON writes it

    @property
    def headers(self) -> dict[str, str]:
        """The headers of this answer, in small letters."""
        told = {"content-type": PROBLEM_JSON}
        again = self.status == HTTPStatus.SERVICE_UNAVAILABLE and self.undone
        return {**told, "retry-after": RETRY_AFTER} if again else told


def usual_problem(status: int) -> Problem:
    """What is told where nothing but the status is known."""
    match status:
        case 404:
            return Problem(404, "there is nothing at this address", "see /openapi.json for what there is", "path")
        case 405:
            return Problem(405, "this address has no such method", "see the header Allow, or /openapi.json", "method")
        case 500:
            return Problem(500, "the service has a fault", "tell whoever runs it, who finds more in its log")
        case _:
            return Problem(status, "the request cannot be answered", "see /openapi.json for what can be asked")


def place_of(row: int | str, column: str, named: bool = True) -> RowPlace:
    """Return where a cell is in a request; columns without names are known by their numbers."""
    return RowPlace(row, f".{column}" if named else f"[{column.removeprefix('x')}]")


def problem_of(error: DecibanError, first_row: int = 0) -> Problem:
    """Return the problem of a request whose rows the library rejects.

    first_row: the number that the error gives the first row.
    """
    return Problem(
        422, render_message(error.cause), remedy_for_clients(error.remedy), _place_in_rows(error.place, first_row)
    )


def _place_in_rows(place: Place, first_row: int) -> str | RowPlace:
    row = "*" if place.row is None else place.row - first_row
    if place.column is not None:
        return place_of(row, place.column)
    return place.source or "" if place.row is None else RowPlace(row)


def remedy_for_clients(remedy: Message) -> str:
    """Return a remedy of the library for a client, who has no arguments and no families to choose."""
    if isinstance(remedy, tuple) and any(isinstance(part, Argument) for part in remedy):
        return "correct the cell, or leave it out"
    return render_message(remedy) or "correct the request"


def without_folders(text: str, path: str) -> str:
    """A message about a file and what lies beside it, with their names alone: where they are is not for clients.

    >>> without_folders("/srv/models/a.dcb.journal: the journal is damaged", "/srv/models/a.dcb")
    'a.dcb.journal: the journal is damaged'
    """
    folders = {os.path.dirname(name) for name in (path, os.path.abspath(path), os.path.realpath(path))}
    for folder in sorted(folders - {"", os.sep}, key=len, reverse=True):
        text = text.replace(folder + os.sep, "")
    return text
