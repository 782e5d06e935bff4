"""What changes a model: learn and forget."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from deciban.serve.bodies.body import CSV, JSON, Body, read_body
from deciban.serve.learning.learner import Learner
from deciban.serve.problems import Problem
from deciban.serve.reader import Reader
from deciban.serve.routes.exchange import answer, settled
from deciban.serve.routes.results import results_as_json, results_as_table, table_as_bytes
from deciban.serve.routes.rows import SMALL_BODY, Asked, asked
from deciban.serve.service import Service

# Rows as they are learned: records, labels, ids and weights.
Learnable = tuple[list[Any], list[Any], list[str] | None, list[float] | None]


async def learn(service: Service, request: Request) -> Response:
    """Rows are learned, each of them once where it has an id."""
    learner, reader = _with_learner(service, request)
    given = await asked(request)
    body = await _read(service, request, given, reader, ("ids", "labels", "weights"))
    if body.rows is None:
        assert body.ids is not None, "a body has rows or ids"
        labels = _labels_for_ids(body)
        found = await settled(learner.learn_later(body.ids, labels))
    else:
        records, labels, ids, weights = _learnable(body, reader)
        found = await settled(learner.learn(records, labels, ids, weights))
    return _told(found, body, given)


async def forget(service: Service, request: Request) -> Response:
    """Rows are forgotten, by their ids or as they were learned."""
    learner, reader = _with_learner(service, request)
    given = await asked(request)
    body = await _read(service, request, given, reader, ("ids", "labels", "weights"))
    if body.rows is None:
        if body.ids is None or "labels" in body.options or "weights" in body.options:
            raise Problem(422, "there are ids and labels", 'send {"ids": [...]}, or rows with their labels', "labels")
        found = await settled(learner.forget_ids(body.ids))
    else:
        if body.ids is not None:
            raise Problem(422, "there are rows and ids", "send either ids, or rows with their labels", "ids")
        records, labels, _, weights = _learnable(body, reader)
        found = await settled(learner.forget_rows(records, labels, weights))
    return _told(found, body, given)


def _with_learner(service: Service, request: Request) -> tuple[Learner, Reader]:
    served, reader = service.model(request.path_params.get("name"))
    if served.learner is None:
        remedy = "ask whoever runs it to start it with --learn"
        raise Problem(403, "this service does not learn", remedy)
    return served.learner, reader


async def _read(service: Service, request: Request, given: Asked, reader: Reader, allowed: tuple[str, ...]) -> Body:
    def read() -> Body:
        return read_body(given.data, given.kind, request.query_params, reader.state.fitted, service.settings, allowed)

    return await service.in_thread(read) if given.kind == CSV or len(given.data) > SMALL_BODY else read()


def _labels_for_ids(body: Body) -> list[Any]:
    if "labels" not in body.options:
        raise Problem(422, "there are ids without labels", 'send {"ids": [...], "labels": [...]}', "labels")
    if "weights" in body.options:
        raise Problem(422, "there are weights without rows", "leave them out, or send the rows", "weights")
    labels: list[Any] = body.options["labels"]
    return labels


def _learnable(body: Body, reader: Reader) -> Learnable:
    """Records without the columns of labels and weights, and these apart."""
    origin = reader.state.fitted.origin
    records = body.records()
    labels = body.options.get("labels")
    if labels is None:
        if origin.target is None:
            raise Problem(422, "there are no labels", "send labels, one for each row", "labels")
        records, labels = _taken_out(records, origin.target, "labels")
    weights = body.options.get("weights")
    if weights is None and origin.weight is not None and _has(records, origin.weight):
        records, weights = _taken_out(records, origin.weight, "weights")
    return records, labels, body.ids, weights


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
