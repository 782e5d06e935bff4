"""What changes a model: learn and forget."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pyarrow as pa
from starlette.requests import Request
from starlette.responses import Response

from deciban.serve.bodies.body import JSON, Body, read_body
from deciban.serve.bodies.records import refuse_wrong_kinds
from deciban.serve.learning.learner import Learner
from deciban.serve.learning.requests import Learned
from deciban.serve.problems import Problem
from deciban.serve.reader import Reader
from deciban.serve.routes.exchange import answer, settled
from deciban.serve.routes.results import results_as_json, results_as_table, table_as_bytes
from deciban.serve.routes.rows import Asked, asked, is_much
from deciban.serve.service import Service

# Rows as they are learned: records, labels, ids and weights.
Learnable = tuple[list[Any], list[Any], list[str] | None, list[float] | None]


async def learn(service: Service, request: Request) -> Response:
    """Rows are learned, each of them once where it has an id."""
    learner, reader = _with_learner(service, request)
    given = await asked(request)

    def begun(body: Body) -> "Future[Learned]":
        if body.rows is None:
            assert body.ids is not None, "a body has rows or ids"
            return learner.learn_later(body.ids, _labels_for_ids(body))
        return learner.learn(*_learnable(body, reader))

    return await _changed(service, request, given, reader, begun)


async def forget(service: Service, request: Request) -> Response:
    """Rows are forgotten, by their ids or as they were learned."""
    learner, reader = _with_learner(service, request)
    given = await asked(request)

    def begun(body: Body) -> "Future[Learned]":
        if body.rows is None:
            if body.ids is None or "labels" in body.options or "weights" in body.options:
                remedy = "send the ids alone, or rows with their labels"
                raise Problem(422, "there are ids, and labels or weights", remedy, "labels")
            return learner.forget_ids(body.ids)
        if body.ids is not None:
            raise Problem(422, "there are rows and ids", "send either ids, or rows with their labels", "ids")
        records, labels, _, weights = _learnable(body, reader)
        return learner.forget_rows(records, labels, weights)

    return await _changed(service, request, given, reader, begun)


async def _changed(
    service: Service, request: Request, given: Asked, reader: Reader, begun: Callable[[Body], "Future[Learned]"]
) -> Response:
    """What became of the rows of a request, which `begun` gives to the learner."""

    def read() -> tuple[Body, "Future[Learned]"]:
        query, fitted = request.query_params, reader.state.fitted
        body = read_body(given.data, given.kind, query, fitted, service.settings, ("ids", "labels", "weights"))
        return body, begun(body)

    much = is_much(given)
    body, future = await service.in_thread(read) if much else read()
    found = await settled(future)
    return await service.in_thread(lambda: _told(found, body, given)) if much else _told(found, body, given)


def _with_learner(service: Service, request: Request) -> tuple[Learner, Reader]:
    served, reader = service.model(request.path_params.get("name"))
    if served.learner is None and service.settings.learn:
        raise Problem(503, "nothing can be learned now", "send it again later; /health/ready says what is wrong")
    if served.learner is None:
        remedy = "ask whoever runs it to start it with --learn"
        raise Problem(403, "this service does not learn", remedy)
    return served.learner, reader


def _labels_for_ids(body: Body) -> list[Any]:
    if "labels" not in body.options:
        raise Problem(422, "there are ids without labels", 'send {"ids": [...], "labels": [...]}', "labels")
    if "weights" in body.options:
        raise Problem(422, "there are weights without rows", "leave them out, or send the rows", "weights")
    labels: list[Any] = body.options["labels"]
    return labels


def _learnable(body: Body, reader: Reader) -> Learnable:
    """Records without the columns of labels and weights, and these apart."""
    fitted = reader.state.fitted
    target, weight = fitted.origin.target, fitted.origin.weight
    records = body.records(fitted.schema)
    labels, weights = body.options.get("labels"), body.options.get("weights")
    if labels is not None:
        _refuse_again(records, target, "labels")
    elif target is None:
        raise Problem(422, "there are no labels", "send labels, one for each row", "labels")
    else:
        records, labels = _taken_out(records, target, "labels")
    if weights is not None:
        _refuse_again(records, weight, "weights")
    elif weight is not None and _has(records, weight):
        records, weights = _taken_out(records, weight, "weights")
    if not isinstance(body.rows, pa.Table):
        refuse_wrong_kinds(fitted.counts.schema, records)
    return records, labels, body.ids, weights


def _refuse_again(records: list[Any], name: str | None, what: str) -> None:
    """A Problem where a row has the column of the labels, or weights, that the request has beside its rows."""
    if name is None:
        return
    for row, record in enumerate(records):
        if isinstance(record, dict) and name in record:
            raise Problem(
                422, f"the row holds the column of the {what} too", f"send {what} once", f"rows[{row}].{name}"
            )


def _has(records: list[Any], name: str) -> bool:
    return any(isinstance(record, dict) and name in record for record in records)


def _taken_out(records: list[Any], name: str, what: str) -> tuple[list[Any], list[Any]]:
    """The records without a column, and its cells."""
    left, cells = [], []
    for row, record in enumerate(records):
        if not isinstance(record, dict) or name not in record:
            remedy = f"send {what}, or the column {name!r} in each row"
            raise Problem(422, f"the row has no {name!r}", remedy, f"rows[{row}]")
        left.append({other: cell for other, cell in record.items() if other != name})
        cells.append(record[name])
    return left, cells


def _told(found: Any, body: Body, given: Asked) -> Response:
    version = found.state.version
    if given.wanted == JSON:
        return answer(results_as_json(version, found.results, body.ids), JSON, version)
    return answer(table_as_bytes(results_as_table(found.results, body.ids), given.wanted), given.wanted, version)
