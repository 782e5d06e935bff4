"""What a client is told when a request cannot be answered: its status, the place, the cause and the remedy."""

import json
import os
from http import HTTPStatus
from typing import Any

PROBLEM_JSON = "application/problem+json"

# The titles of RFC 9110 that Python has from 3.13 on: the same on every version.
TITLES = {413: "Content Too Large", 414: "URI Too Long", 416: "Range Not Satisfiable", 422: "Unprocessable Content"}

# Seconds after which a client that was told 503 may try again.
RETRY_AFTER = "1"


class Problem(Exception):  # noqa: N818 - what HTTP calls it (RFC 9457, problem details)
    """A request that cannot be answered.

    status: of the answer. cause: what is wrong. place: where it is in the request, such as ``rows[3].age``; empty where
    it has none. remedy: what to do about it. undone: whether nothing was done, so that who is told 503 may just send it
    again.
    """

    def __init__(self, status: int, cause: str, remedy: str, place: str = "", undone: bool = True) -> None:
        super().__init__(cause)
        self.status = status
        self.cause = cause
        self.remedy = remedy
        self.place = place
        self.undone = undone

    def as_dict(self) -> dict[str, Any]:
        """The problem as RFC 9457 writes it, with place, cause and remedy apart.

        >>> Problem(422, "found 'abc', expected a number", "send a number, or null", "rows[0].age").as_dict()["detail"]
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
        told = json.dumps(self.as_dict(), separators=(",", ":"), ensure_ascii=False)
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


def without_folders(text: str, path: str) -> str:
    """A message about a file and what lies beside it, with their names alone: where they are is not for clients.

    >>> without_folders("/srv/models/a.dcb.journal: the journal is damaged", "/srv/models/a.dcb")
    'a.dcb.journal: the journal is damaged'
    """
    folders = {os.path.dirname(name) for name in (path, os.path.abspath(path), os.path.realpath(path))}
    for folder in sorted(folders - {"", os.sep}, key=len, reverse=True):
        text = text.replace(folder + os.sep, "")
    return text
