"""Responses: predictions, explanations, decisions and results as JSON, CSV or an Arrow stream, with their headers."""

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
from deciban.decisions.sets import format_set
from deciban.explain.calculation import BLOCK_KEYS, COLUMN_KEYS
from deciban.serve.bodies.body import ARROW_STREAM, CONTENT_TYPES, CSV, JSON
from deciban.serve.predictions import Predictions, Predictor
from deciban.serve.problems import Problem
from deciban.sources.write import to_stream
from deciban.util.text_tables import format_class, to_json

encode_json = msgspec.json.Encoder().encode


def predictions_as_json(
    predictor: Predictor, predicted: Predictions, ids: Sequence[str] | None = None, ignored: Sequence[str] = ()
) -> bytes:
    """Return the predicted class of each row, its probability, and the probability of every class."""
    labels, names = predictor.labels, predictor.names
    lines = predicted.posterior.tolist()
    rows = [
        {"predicted": labels[k], "probability": line[k], "probabilities": dict(zip(names, line, strict=True))}
        for k, line in zip(predicted.best.tolist(), lines, strict=True)
    ]
    if predicted.sets is not None:
        rows = [{**row, "set": to_json(labels)} for row, labels in zip(rows, predicted.sets, strict=True)]
    return _as_json(predictor, rows, ids, ignored)


def predictions_as_table(predictor: Predictor, predicted: Predictions, ids: Sequence[str] | None = None) -> pa.Table:
    """Return predictions as columns: predicted, probability, and P(class) for each class."""
    columns = {"predicted": _labels(predictor.labels, predicted.best), "probability": pa.array(predicted.probability)}
    if predicted.sets is not None:
        columns["set"] = pa.array(list(map(format_set, predicted.sets)))
    chances = {f"P({name})": pa.array(predicted.posterior[:, c]) for c, name in enumerate(predictor.names)}
    return _as_table({**columns, **chances}, ids)


def decisions_as_json(
    predictor: Predictor, decided: Decisions, ids: Sequence[str] | None = None, ignored: Sequence[str] = ()
) -> bytes:
    """Return the least-cost decision for each row, its risk, and the second best."""
    columns = _decision_columns(decided)
    rows = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    return _as_json(predictor, rows, ids, ignored)


def decisions_as_table(decided: Decisions, ids: Sequence[str] | None = None) -> pa.Table:
    """Return decisions as columns."""
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
    predictor: Predictor, reasons: list[dict[str, Any]], ids: Sequence[str] | None = None, ignored: Sequence[str] = ()
) -> bytes:
    """Return the explanations of all rows."""
    return _as_json(predictor, reasons, ids, ignored)


def reasons_as_table(reasons: list[dict[str, Any]], by: str, ids: Sequence[str] | None = None) -> pa.Table:
    """Return a line per row and term of its sum; values are text, since a column has one type."""
    keys = COLUMN_KEYS if by == "column" else BLOCK_KEYS
    numbers = {"row", "decibans", "nats", "weight", "own", "joint", "correction"}
    columns: dict[str, list[Any]] = {name: [] for name in ("id", "row", "predicted", "against", *keys)}
    for row, reason in enumerate(reasons):
        for term in reason["evidence"]:
            head = {"row": row, "predicted": reason["predicted"], "against": reason["against"]}
            line = {**head, **term, "id": None if ids is None else ids[row]}
            for name, cells in columns.items():
                cells.append(line.get(name) if name in numbers else _text(line.get(name)))
    if ids is None:
        del columns["id"]
    kinds = {
        name: pa.int64() if name == "row" else pa.float64() if name in numbers else pa.string() for name in columns
    }
    return pa.table({name: pa.array(cells, kinds[name]) for name, cells in columns.items()})


def results_as_json(version: str, results: Sequence[str], ids: Sequence[str] | None) -> bytes:
    """Return the result of learning or forgetting each row."""
    rows: list[dict[str, Any]] = [{"result": result} for result in results]
    return encode_json({"model": version, "rows": _with_ids(rows, ids)})


def results_as_table(results: Sequence[str], ids: Sequence[str] | None) -> pa.Table:
    """Return results as columns."""
    return _as_table({"result": pa.array(list(results), pa.string())}, ids)


def table_as_bytes(table: pa.Table, content_type: str) -> bytes:
    """Return a table as CSV or as an Arrow stream."""
    if content_type == CSV:
        written = io.BytesIO()
        with to_stream(written, "csv") as write:
            write(table)
        return written.getvalue()
    assert content_type == ARROW_STREAM, "CSV is handled above"
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def _as_json(
    predictor: Predictor, rows: list[dict[str, Any]], ids: Sequence[str] | None, ignored: Sequence[str]
) -> bytes:
    content: dict[str, Any] = {"model": predictor.state.version, "rows": _with_ids(rows, ids)}
    if ignored:
        content["ignored"] = ignored
    return encode_json(content)


def _with_ids(rows: list[dict[str, Any]], ids: Sequence[str] | None) -> list[dict[str, Any]]:
    return rows if ids is None else [{"id": row_id, **row} for row_id, row in zip(ids, rows, strict=True)]


def _as_table(columns: dict[str, pa.Array], ids: Sequence[str] | None) -> pa.Table:
    return pa.table(columns if ids is None else {"id": pa.array(ids, pa.string()), **columns})


def _labels(labels: list[Any], places: Any) -> pa.Array:
    return pa.array(_one_type(labels)).take(pa.array(np.asarray(places)))


def _one_type(labels: list[Any]) -> list[Any]:
    """Return labels of one type, converted to text if they have several."""
    return labels if len({type(label) for label in labels}) <= 1 else [format_class(label) for label in labels]


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return encode_json(value).decode() if isinstance(value, list | dict) else format_class(value)


Result = TypeVar("Result")

# Header with the names of ignored columns, for responses that are not JSON.
IGNORED_HEADER = "Deciban-Ignored-Columns"

# Maximum length of that header, well below the limits of proxies.
MAX_IGNORED_LENGTH = 4_096

# Accepted names of the charset.
UTF_8 = ("utf-8", "utf8")


def request_type(request: Request) -> str:
    """Return the content type of the body; raise a Problem if it is not supported."""
    headers = request.headers
    kind, _, parameters = headers.get("content-type", "").partition(";")
    kind = kind.strip().lower()
    if kind not in CONTENT_TYPES:
        cause = f"unsupported content type {kind[:60]!r}" if kind else "missing content type"
        raise Problem(415, cause, f"send {', '.join(CONTENT_TYPES)}", "Content-Type")
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise Problem(415, "compressed bodies are not supported", "send the body uncompressed", "Content-Encoding")
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset" and value.strip(' "').lower() not in UTF_8:
            raise Problem(415, "unsupported charset", "send the body in UTF-8", "Content-Type")
    return kind


def response_type(request: Request, default: str) -> str:
    """Return the content type of the response: the preferred one in Accept, or that of the request."""
    accept = request.headers.get("accept")
    if accept is None or accept == "*/*":
        return default
    best, preferred = 0.0, default
    for entry in accept.split(","):
        kind, *parameters = (part.strip().lower() for part in entry.split(";"))
        if kind in CONTENT_TYPES and (quality := _quality(parameters)) > best:
            best, preferred = quality, kind
    return preferred


def _quality(parameters: list[str]) -> float:
    for parameter in parameters:
        if parameter.startswith("q="):
            try:
                return float(parameter[2:])
            except ValueError:
                return 0.0
    return 1.0


def make_response(content: bytes, kind: str = JSON, version: str | None = None, status: int = 200) -> Response:
    """Return a response with the version of the model."""
    headers = {} if version is None else {"Deciban-Model": version}
    shown = f"{CSV}; charset=utf-8" if kind == CSV else kind
    headers["content-type"] = shown
    return Response(content + b"\n" if kind == JSON else content, status, headers)


def format_ignored_columns(names: Sequence[str]) -> dict[str, str]:
    """Return the header with the names of ignored columns, percent-encoded and comma-separated, up to its limit."""
    value = ""
    for name in names:
        longer = f"{value},{quote(name, safe='')}" if value else quote(name, safe="")
        if len(longer) > MAX_IGNORED_LENGTH:
            break
        value = longer
    return {IGNORED_HEADER: value} if value else {}


def json_response(value: object, version: str | None = None, status: int = 200) -> Response:
    """Return a value as a JSON response."""
    return make_response(encode_json(value), JSON, version, status)


def problem_response(problem: Problem) -> Response:
    """Return a problem response (RFC 9457)."""
    return Response(problem.to_bytes(), problem.status, problem.headers)


async def wait_for(future: "Future[Result]") -> Result:
    """Wait for a result of the learner, which continues even if the client disconnects."""
    return await asyncio.shield(asyncio.wrap_future(future))
