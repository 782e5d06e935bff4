"""What is asked of rows: predict, explain, decide."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from deciban.serve.bodies.body import CSV, JSON, Body, read_body
from deciban.serve.problems import Problem
from deciban.serve.reader import Reader
from deciban.serve.routes.exchange import answer, content_type, ignored_header, wanted_type
from deciban.serve.routes.results import (
    decisions_as_json,
    decisions_as_table,
    predictions_as_json,
    predictions_as_table,
    reasons_as_json,
    reasons_as_table,
    table_as_bytes,
)
from deciban.serve.service import Service

# Bodies of at most so many bytes, and at most so many cells, are worked on in the event loop: handing them to a thread
# would take longer than the work.
SMALL_BODY = 512 << 10
FEW_CELLS = 1 << 15

# What can be asked to speak, in explanations.
SPEAKERS = ("column", "block")

# From the rows of a request to its answer, and the names of columns that were ignored.
Work = Callable[[Reader, Body, str], tuple[bytes, list[str]]]


@dataclass(frozen=True)
class Asked:
    """A request for rows: its bytes, what they are, and what the answer is to be."""

    data: bytes
    kind: str
    wanted: str


async def asked(request: Request) -> Asked:
    """What is asked; a Problem where it is no form that is read."""
    kind = content_type(request)
    return Asked(await request.body(), kind, wanted_type(request, kind))


async def answered(
    service: Service, request: Request, allowed: tuple[str, ...], work: Work, slow: bool = False
) -> Response:
    """The answer of `work`, done here or, where it is much, in a thread."""
    _, reader = service.model(request.path_params.get("name"))
    given = await asked(request)
    query = request.query_params

    def read() -> Body:
        return read_body(given.data, given.kind, query, reader.state.fitted, service.settings, allowed)

    if slow or is_much(given):
        content, ignored = await service.in_thread(lambda: work(reader, read(), given.wanted))
    else:
        body = read()
        if body.size * reader.state.fitted.schema.width > FEW_CELLS:
            content, ignored = await service.in_thread(lambda: work(reader, body, given.wanted))
        else:
            content, ignored = work(reader, body, given.wanted)
    response = answer(content, given.wanted, reader.state.version)
    if given.wanted != JSON:
        response.headers.update(ignored_header(ignored))
    return response


def is_much(given: Asked) -> bool:
    """Whether a body takes so long to be read that it is for a thread: CSV always does."""
    return given.kind == CSV or len(given.data) > SMALL_BODY


async def predict(service: Service, request: Request) -> Response:
    """The most probable class of each row and the probability of each class."""
    served, _ = service.model(request.path_params.get("name"))

    def work(reader: Reader, body: Body, wanted: str) -> tuple[bytes, list[str]]:
        table = body.table(reader.state.fitted.model.schema)
        found = reader.predict(table, body.first_row)
        service.metrics.observe_rows(served.name, reader.state, table, found.posterior, body.body_bytes)
        ignored = body.unknown(reader.state.fitted.schema, table)
        if body.ids is not None and served.learner is not None:
            _keep(served.learner.keep(body.ids, body.records(reader.state.fitted.schema)))
        if wanted == JSON:
            return predictions_as_json(reader, found, body.ids, ignored), ignored
        return table_as_bytes(predictions_as_table(reader, found, body.ids), wanted), ignored

    return await answered(service, request, ("ids",), work)


def _keep(kept: "Future[None]") -> None:
    """Rows are to be kept for their labels: soon, and nobody waits for it. A Problem where they cannot be."""
    if kept.done() and isinstance(problem := kept.exception(), Problem) and problem.status == 422:
        raise problem


async def explain(service: Service, request: Request) -> Response:
    """Why each row is classified as it is: what each column, or block, says."""
    by = request.query_params.get("by", "column")
    if by not in SPEAKERS:
        raise Problem(422, f"found {by[:40]!r}", f"choose {' or '.join(SPEAKERS)}", "query.by")

    def work(reader: Reader, body: Body, wanted: str) -> tuple[bytes, list[str]]:
        table = body.table(reader.state.fitted.model.schema)
        found = reader.explain(table, by, body.first_row)
        ignored = body.unknown(reader.state.fitted.schema, table)
        if wanted == JSON:
            return reasons_as_json(reader, found, body.ids, ignored), ignored
        return table_as_bytes(reasons_as_table(found, by, body.ids), wanted), ignored

    return await answered(service, request, ("ids",), work, slow=True)


async def decide(service: Service, request: Request) -> Response:
    """The decision of least risk for each row."""
    served, _ = service.model(request.path_params.get("name"))

    def work(reader: Reader, body: Body, wanted: str) -> tuple[bytes, list[str]]:
        own = "costs" in body.options
        reject = body.options.get("reject", None if own else service.settings.reject)
        loss = reader.loss(body.options.get("costs"), reject, service.loss)
        table = body.table(reader.state.fitted.model.schema)
        found = reader.predict(table, body.first_row)
        decided = reader.decide(found, loss, body.numbers)
        service.metrics.observe_rows(served.name, reader.state, table, found.posterior, body.body_bytes)
        service.metrics.observe_decisions(served.name, decided.risk)
        ignored = body.unknown(reader.state.fitted.schema, table)
        if wanted == JSON:
            return decisions_as_json(reader, decided, body.ids, ignored), ignored
        return table_as_bytes(decisions_as_table(decided, body.ids), wanted), ignored

    return await answered(service, request, ("ids", "costs", "reject"), work)
