"""Endpoints, one function per route: rows are predicted, explained and decided; learned and forgotten; and the
model, health, metrics and pages are read.
"""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from deciban.errors import DecibanError, render_message
from deciban.export.model_json import model_as_json
from deciban.serve.answers import (
    answer,
    content_type,
    decisions_as_json,
    decisions_as_table,
    encode_json,
    ignored_header,
    json_answer,
    predictions_as_json,
    predictions_as_table,
    reasons_as_json,
    reasons_as_table,
    results_as_json,
    results_as_table,
    settled,
    table_as_bytes,
    wanted_type,
)
from deciban.serve.bodies.body import CSV, JSON, Body, read_body
from deciban.serve.describe import described_model, folder_page, form_of, model_page, report_fragment
from deciban.serve.online.draft import Learned
from deciban.serve.online.learner import Learner
from deciban.serve.predictions import Reader
from deciban.serve.problems import RETRY_AFTER, Problem, remedy_for_clients
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
        return read_body(given.data, given.kind, query, reader.state.fitted, service.settings.requests, allowed)

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


async def learn(service: Service, request: Request) -> Response:
    """Rows are learned, each of them once where it has an id."""
    learner, reader = _with_learner(service, request)
    return await _changed(service, request, reader, lambda body: learner.learn(body.learnable(reader.state.fitted)))


async def forget(service: Service, request: Request) -> Response:
    """Rows are forgotten, by their ids or as they were learned."""
    learner, reader = _with_learner(service, request)
    return await _changed(service, request, reader, lambda body: learner.forget(body.forgettable(reader.state.fitted)))


async def _changed(
    service: Service, request: Request, reader: Reader, begin: Callable[[Body], "Future[Learned]"]
) -> Response:
    """Answer what became of the rows of a request, which `begin` gives to the learner."""
    given = await asked(request)

    def read() -> tuple[Body, "Future[Learned]"]:
        query, fitted = request.query_params, reader.state.fitted
        body = read_body(given.data, given.kind, query, fitted, service.settings.requests, ("ids", "labels", "weights"))
        return body, begin(body)

    much = is_much(given)
    body, future = await service.in_thread(read) if much else read()
    found = await settled(future)
    return await service.in_thread(lambda: _told(found, body, given)) if much else _told(found, body, given)


def _with_learner(service: Service, request: Request) -> tuple[Learner, Reader]:
    served, reader = service.model(request.path_params.get("name"))
    if served.learner is None and service.settings.learning is not None:
        raise Problem(503, "nothing can be learned now", "send it again later; /health/ready says what is wrong")
    if served.learner is None:
        remedy = "ask whoever runs it to start it with --learn"
        raise Problem(403, "this service does not learn", remedy)
    return served.learner, reader


def _told(found: Any, body: Body, given: Asked) -> Response:
    version = found.state.version
    if given.wanted == JSON:
        return answer(results_as_json(version, found.results, body.ids), JSON, version)
    return answer(table_as_bytes(results_as_table(found.results, body.ids), given.wanted), given.wanted, version)


HTML = "text/html; charset=utf-8"


async def model(service: Service, request: Request) -> Response:
    """What the model is."""
    served, reader = service.model(request.path_params.get("name"))
    found = await service.in_thread(lambda: described_model(served, reader))
    return json_answer(found, reader.state.version)


async def models(service: Service, request: Request) -> Response:
    """The names of all models, and what is wrong with them."""
    if not service.models.is_folder:
        raise Problem(404, "one model is served, and no folder", "see /model", "path")
    states = [(one, one.state) for one in service.models]
    return json_answer(
        {
            "models": [
                {"name": one.name, "model": None if state is None else state.version, "problem": one.problem}
                for one, state in states
            ]
        }
    )


async def scorer(service: Service, request: Request) -> Response:
    """The model for programs that score by themselves, such as the page."""

    def made(reader: Reader) -> bytes:
        try:
            return encode_json(model_as_json(reader.state.fitted))
        except DecibanError as error:
            raise Problem(404, render_message(error.cause), remedy_for_clients(error.remedy)) from None

    return await _unchanging(service, request, "application/json", made)


async def report(service: Service, request: Request) -> Response:
    """The sections of the report, as HTML without a page around them."""
    name = request.path_params.get("name") or "model"

    def made(reader: Reader) -> bytes:
        return report_fragment(reader, name, service.loss_of(reader)).encode()

    return await _unchanging(service, request, HTML, made)


async def form(service: Service, request: Request) -> Response:
    """What the page makes its form of."""
    name = request.path_params.get("name") or "model"

    def made(reader: Reader) -> bytes:
        return encode_json(form_of(reader, name, service.loss_of(reader)))

    return await _unchanging(service, request, "application/json", made)


async def _unchanging(service: Service, request: Request, kind: str, made: Callable[[Reader], bytes]) -> Response:
    """What is the same for one version of a model, which a client that has it already need not get again."""
    _, reader = service.model(request.path_params.get("name"))
    tag = f'"{reader.state.version}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache", "Deciban-Model": reader.state.version}
    if tag in (one.strip().removeprefix("W/") for one in request.headers.get("if-none-match", "").split(",")):
        return Response(status_code=304, headers=headers)
    what = request.url.path.rpartition("/")[2]
    content = await reader.once(what, lambda: service.in_thread(lambda: made(reader)))
    return Response(content, headers={**headers, "content-type": kind})


async def live(service: Service, request: Request) -> Response:
    """Whether the process runs."""
    return json_answer({"live": True})


async def ready(service: Service, request: Request) -> Response:
    """Whether requests can be answered."""
    found = service.ready()
    if found["ready"]:
        return json_answer(found)
    response = json_answer(found, status=503)
    response.headers["retry-after"] = RETRY_AFTER
    return response


async def metrics(service: Service, request: Request) -> Response:
    """What has been counted, as Prometheus reads it."""
    return answer(await service.in_thread(lambda: service.metrics.text(service.models)), service.metrics.content_type)


async def to_page(service: Service, request: Request) -> Response:
    """From the name of a model to its page, whose links are relative to it."""
    return Response(status_code=308, headers={"location": quote(request.path_params["name"], safe="") + "/"})


async def page(service: Service, request: Request) -> Response:
    """The page of a model, or of a folder the page that links to its models."""
    name = request.path_params.get("name")
    if service.models.is_folder and name is None:
        content, policy = folder_page()
    else:
        served, _ = service.model(name)
        content, policy = await service.in_thread(lambda: model_page(served.name))
    return Response(content, headers={"content-type": HTML, "content-security-policy": policy})
