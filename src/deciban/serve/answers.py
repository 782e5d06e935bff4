"""Answers: predictions, explanations and decisions as JSON, CSV or an Arrow stream, with their headers."""

import asyncio
import io
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec
import numpy as np
import pyarrow as pa
from starlette.requests import Request
from starlette.responses import Response

from deciban.decisions.decide import Decisions
from deciban.explain.calculation import BLOCK_KEYS, COLUMN_KEYS
from deciban.serve.bodies.body import ARROW_STREAM, CONTENT_TYPES, CSV, JSON
from deciban.serve.predictions import Predicted, Reader
from deciban.serve.problems import Problem
from deciban.sources.write import to_stream
from deciban.util.text_tables import format_class, to_json

encode_json = msgspec.json.Encoder().encode


def predictions_as_json(
    reader: Reader, predicted: Predicted, ids: Sequence[str] | None = None, ignored: Sequence[str] = ()
) -> bytes:
    """The most probable class of each row, its probability and that of every class."""
    labels, names = reader.labels, reader.names
    lines = predicted.posterior.tolist()
    rows = [
        {"predicted": labels[k], "probability": line[k], "probabilities": dict(zip(names, line, strict=True))}
        for k, line in zip(predicted.best.tolist(), lines, strict=True)
    ]
    return _as_json(reader, rows, ids, ignored)


def predictions_as_table(reader: Reader, predicted: Predicted, ids: Sequence[str] | None = None) -> pa.Table:
    """The same as columns: predicted, probability, and P(class) for each class."""
    columns = {"predicted": _labels(reader.labels, predicted.best), "probability": pa.array(predicted.probability)}
    chances = {f"P({name})": pa.array(predicted.posterior[:, c]) for c, name in enumerate(reader.names)}
    return _as_table({**columns, **chances}, ids)


def decisions_as_json(
    reader: Reader, decided: Decisions, ids: Sequence[str] | None = None, ignored: Sequence[str] = ()
) -> bytes:
    """The decision of least risk for each row, its risk, and the next best one."""
    columns = _decision_columns(decided)
    rows = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    return _as_json(reader, rows, ids, ignored)


def decisions_as_table(decided: Decisions, ids: Sequence[str] | None = None) -> pa.Table:
    """The same as columns."""
    columns = _decision_columns(decided)
    for name in ("decision", "second_best"):
        columns[name] = _one_type(columns[name])
    return _as_table({name: pa.array(cells) for name, cells in columns.items()}, ids)


def _decision_columns(decided: Decisions) -> dict[str, list[Any]]:
    return {
        "decision": to_json(decided.decision.tolist()),
        "risk": decided.risk.tolist(),
        "second_best": to_json(decided.second_best.tolist()),
        "second_best_risk": decided.second_best_risk.tolist(),
    }


def reasons_as_json(
    reader: Reader, reasons: list[dict[str, Any]], ids: Sequence[str] | None = None, ignored: Sequence[str] = ()
) -> bytes:
    """The explanations of all rows."""
    return _as_json(reader, reasons, ids, ignored)


def reasons_as_table(reasons: list[dict[str, Any]], by: str, ids: Sequence[str] | None = None) -> pa.Table:
    """A line for each row and term of its sum; values are text, for columns have one type."""
    keys = COLUMN_KEYS if by == "column" else BLOCK_KEYS
    numbers = {"row", "decibans", "nats", "weight", "own", "joint", "correction"}
    columns: dict[str, list[Any]] = {name: [] for name in ("id", "row", "predicted", "against", *keys)}
    for row, found in enumerate(reasons):
        for term in found["evidence"]:
            whose = {"row": row, "predicted": found["predicted"], "against": found["against"]}
            line = {**whose, **term, "id": None if ids is None else ids[row]}
            for name, cells in columns.items():
                cells.append(line.get(name) if name in numbers else _text(line.get(name)))
    if ids is None:
        del columns["id"]
    kinds = {
        name: pa.int64() if name == "row" else pa.float64() if name in numbers else pa.string() for name in columns
    }
    return pa.table({name: pa.array(cells, kinds[name]) for name, cells in columns.items()})


def results_as_json(version: str, results: Sequence[str], ids: Sequence[str] | None) -> bytes:
    """What became of each row that was to be learned or forgotten."""
    rows: list[dict[str, Any]] = [{"result": result} for result in results]
    return encode_json({"model": version, "rows": _with_ids(rows, ids)})


def results_as_table(results: Sequence[str], ids: Sequence[str] | None) -> pa.Table:
    """The same as columns."""
    return _as_table({"result": pa.array(list(results), pa.string())}, ids)


def table_as_bytes(table: pa.Table, content_type: str) -> bytes:
    """A table as CSV, or as an Arrow stream."""
    if content_type == CSV:
        written = io.BytesIO()
        with to_stream(written, "csv") as write:
            write(table)
        return written.getvalue()
    assert content_type == ARROW_STREAM, "there is no other"
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def _as_json(reader: Reader, rows: list[dict[str, Any]], ids: Sequence[str] | None, ignored: Sequence[str]) -> bytes:
    answer: dict[str, Any] = {"model": reader.state.version, "rows": _with_ids(rows, ids)}
    if ignored:
        answer["ignored"] = ignored
    return encode_json(answer)


def _with_ids(rows: list[dict[str, Any]], ids: Sequence[str] | None) -> list[dict[str, Any]]:
    return rows if ids is None else [{"id": one, **row} for one, row in zip(ids, rows, strict=True)]


def _as_table(columns: dict[str, pa.Array], ids: Sequence[str] | None) -> pa.Table:
    return pa.table(columns if ids is None else {"id": pa.array(ids, pa.string()), **columns})


def _labels(labels: list[Any], places: Any) -> pa.Array:
    return pa.array(_one_type(labels)).take(pa.array(np.asarray(places)))


def _one_type(labels: list[Any]) -> list[Any]:
    """Labels of one type; as text where they are of several."""
    return labels if len({type(label) for label in labels}) <= 1 else [format_class(label) for label in labels]


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return encode_json(value).decode() if isinstance(value, list | dict) else format_class(value)


Result = TypeVar("Result")

# The header that names the columns that were ignored, where the answer has no other place for them; its longest value.
IGNORED_HEADER, MAX_IGNORED_LENGTH = "Deciban-Ignored-Columns", 4_096

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
        if len(longer) > MAX_IGNORED_LENGTH:
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
