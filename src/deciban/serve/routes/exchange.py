"""The forms of requests and answers: content types, what a client accepts, headers of every answer of a model."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from typing import TypeVar
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from deciban.serve.bodies.body import CONTENT_TYPES, CSV, JSON
from deciban.serve.problems import Problem
from deciban.serve.routes.results import encode_json

Result = TypeVar("Result")

# The header that names the columns that were ignored, where the answer has no other place for them; its longest value.
IGNORED_HEADER, LONGEST_IGNORED = "Deciban-Ignored", 4_096

# What a charset may be called.
UTF_8 = ("utf-8", "utf8")


def content_type(request: Request) -> str:
    """What the body is; a Problem where it is none of the three that are read."""
    headers = request.headers
    kind, _, parameters = headers.get("content-type", "").partition(";")
    kind = kind.strip().lower()
    if kind not in CONTENT_TYPES:
        found = f"found {kind[:60]!r}, which is not read" if kind else "there is none"
        raise Problem(415, found, f"send {', '.join(CONTENT_TYPES)}", "Content-Type")
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise Problem(415, "the body is compressed", "send it as it is", "Content-Encoding")
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset" and value.strip(' "').lower() not in UTF_8:
            raise Problem(415, "the body is not in UTF-8", "send text in UTF-8", "Content-Type")
    return kind


def wanted_type(request: Request, given: str) -> str:
    """What the answer is to be: what the client would rather have of the three, else as the request is."""
    accept = request.headers.get("accept")
    if accept is None or accept == "*/*":
        return given
    best, found = 0.0, given
    for one in accept.split(","):
        kind, *parameters = (part.strip().lower() for part in one.split(";"))
        if kind in CONTENT_TYPES and (quality := _quality(parameters)) > best:
            best, found = quality, kind
    return found


def _quality(parameters: list[str]) -> float:
    for parameter in parameters:
        if parameter.startswith("q="):
            try:
                return float(parameter[2:])
            except ValueError:
                return 0.0
    return 1.0


def answer(content: bytes, kind: str = JSON, version: str | None = None, status: int = 200) -> Response:
    """An answer with the version of the model that it comes from."""
    headers = {} if version is None else {"Deciban-Model": version}
    shown = f"{CSV}; charset=utf-8" if kind == CSV else kind
    headers["content-type"] = shown
    return Response(content + b"\n" if kind == JSON else content, status, headers)


def ignored_header(names: Sequence[str]) -> dict[str, str]:
    """The names of columns that were ignored, percent-encoded, with commas between; those that there is room for."""
    told = ""
    for name in names:
        longer = f"{told},{quote(name, safe='')}" if told else quote(name, safe="")
        if len(longer) > LONGEST_IGNORED:
            break
        told = longer
    return {IGNORED_HEADER: told} if told else {}


def json_answer(value: object, version: str | None = None, status: int = 200) -> Response:
    """The same of a value, as JSON."""
    return answer(encode_json(value), JSON, version, status)


def problem_response(problem: Problem) -> Response:
    """A problem as RFC 9457 has it."""
    return Response(problem.as_bytes(), problem.status, problem.headers)


async def settled(future: "Future[Result]") -> Result:
    """What the learner has done; it goes on with it also where the client has gone."""
    return await asyncio.shield(asyncio.wrap_future(future))
