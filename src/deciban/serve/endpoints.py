"""Endpoints, one function per route."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from deciban.errors import DecibanError, render_message
from deciban.export.model_json import model_as_json
from deciban.serve.bodies.body import CSV, JSON, Body, read_body
from deciban.serve.describe import describe_model, folder_page, form_json, model_page, report_fragment
from deciban.serve.online.change_set import LearnResult
from deciban.serve.online.learner import Learner
from deciban.serve.predictions import Predictor
from deciban.serve.problems import RETRY_AFTER, Problem, remedy_for_clients
from deciban.serve.responses import (
    decisions_as_json,
    decisions_as_table,
    encode_json,
    format_ignored_columns,
    json_response,
    make_response,
    predictions_as_json,
    predictions_as_table,
    reasons_as_json,
    reasons_as_table,
    request_type,
    response_type,
    results_as_json,
    results_as_table,
    table_as_bytes,
    wait_for,
)
from deciban.serve.service import Service

# Maximum size of a body processed in the event loop: handing it to a thread would take longer than the work.
MAX_INLINE_BYTES = 512 << 10

# Maximum number of cells of a table processed in the event loop, for the same reason.
MAX_INLINE_CELLS = 1 << 15

# Values of the query parameter `by` of explanations.
EXPLANATION_UNITS = ("column", "block")

# Function from the rows of a request to the content of the response and the names of ignored columns.
Work = Callable[[Predictor, Body, str], tuple[bytes, list[str]]]


@dataclass(frozen=True)
class RowsRequest:
    """Request with rows: its body, content type, and the content type of the response."""

    data: bytes
    kind: str
    response_kind: str


async def read_request(request: Request) -> RowsRequest:
    """Read a request; raise a Problem if its content type is not supported."""
    kind = request_type(request)
    return RowsRequest(await request.body(), kind, response_type(request, kind))


async def respond(
    service: Service, request: Request, allowed: tuple[str, ...], work: Work, slow: bool = False
) -> Response:
    """Return the response of `work`, run in a thread if the request is large."""
    _, predictor = service.model(request.path_params.get("name"))
    rows_request = await read_request(request)
    query = request.query_params

    def read() -> Body:
        return read_body(
            rows_request.data, rows_request.kind, query, predictor.state.fitted, service.settings.requests, allowed
        )

    if slow or is_large(rows_request):
        content, ignored = await service.in_thread(lambda: work(predictor, read(), rows_request.response_kind))
    else:
        body = read()
        if body.size * predictor.state.fitted.schema.width > MAX_INLINE_CELLS:
            content, ignored = await service.in_thread(lambda: work(predictor, body, rows_request.response_kind))
        else:
            content, ignored = work(predictor, body, rows_request.response_kind)
    response = make_response(content, rows_request.response_kind, predictor.state.version)
    if rows_request.response_kind != JSON:
        response.headers.update(format_ignored_columns(ignored))
    return response


def is_large(rows_request: RowsRequest) -> bool:
    """Return True if reading a body should be done in a thread; CSV always is."""
    return rows_request.kind == CSV or len(rows_request.data) > MAX_INLINE_BYTES


async def predict(service: Service, request: Request) -> Response:
    """Predict the class of each row, with its prediction set if a coverage is given."""
    coverage = _read_coverage(request)
    served, _ = service.model(request.path_params.get("name"))

    def work(predictor: Predictor, body: Body, response_kind: str) -> tuple[bytes, list[str]]:
        table = body.table(predictor.state.fitted.model.schema)
        found = predictor.predict(table, body.first_row, coverage)
        service.metrics.observe_rows(served.name, predictor.state, table, found.posterior, body.body_bytes)
        ignored = body.unknown(predictor.state.fitted.schema, table)
        if body.ids is not None and served.learner is not None:
            _raise_if_invalid(served.learner.add_pending(body.ids, body.records(predictor.state.fitted.schema)))
        if response_kind == JSON:
            return predictions_as_json(predictor, found, body.ids, ignored), ignored
        return table_as_bytes(predictions_as_table(predictor, found, body.ids), response_kind), ignored

    return await respond(service, request, ("ids",), work)


def _read_coverage(request: Request) -> float | None:
    """Return the query parameter `coverage`; raise a Problem if it is not a share between 0 and 1."""
    text = request.query_params.get("coverage")
    try:
        coverage = None if text is None else float(text)
    except ValueError:
        coverage = 0.0
    if coverage is not None and not 0.0 < coverage < 1.0:
        raise Problem(422, "invalid coverage", "use a share between 0 and 1, such as 0.9", "query.coverage")
    return coverage


def _raise_if_invalid(kept: "Future[None]") -> None:
    """Raise a Problem if rows to retain for labeling are invalid; do not wait for them to be retained."""
    if kept.done() and isinstance(problem := kept.exception(), Problem) and problem.status == 422:
        raise problem


async def explain(service: Service, request: Request) -> Response:
    """Explain the prediction for each row, by column or by block."""
    by = request.query_params.get("by", "column")
    if by not in EXPLANATION_UNITS:
        raise Problem(422, f"unknown value {by[:40]!r}", f"use {' or '.join(EXPLANATION_UNITS)}", "query.by")

    def work(predictor: Predictor, body: Body, response_kind: str) -> tuple[bytes, list[str]]:
        table = body.table(predictor.state.fitted.model.schema)
        found = predictor.explain(table, by, body.first_row)
        ignored = body.unknown(predictor.state.fitted.schema, table)
        if response_kind == JSON:
            return reasons_as_json(predictor, found, body.ids, ignored), ignored
        return table_as_bytes(reasons_as_table(found, by, body.ids), response_kind), ignored

    return await respond(service, request, ("ids",), work, slow=True)


async def decide(service: Service, request: Request) -> Response:
    """Make the least-cost decision for each row."""
    served, _ = service.model(request.path_params.get("name"))

    def work(predictor: Predictor, body: Body, response_kind: str) -> tuple[bytes, list[str]]:
        own = "costs" in body.options
        reject = body.options.get("reject", None if own else service.settings.reject)
        loss = predictor.loss(body.options.get("costs"), reject, service.loss)
        table = body.table(predictor.state.fitted.model.schema)
        found = predictor.predict(table, body.first_row)
        decided = predictor.decide(found, loss, body.numbers)
        service.metrics.observe_rows(served.name, predictor.state, table, found.posterior, body.body_bytes)
        service.metrics.observe_decisions(served.name, decided.risk)
        ignored = body.unknown(predictor.state.fitted.schema, table)
        if response_kind == JSON:
            return decisions_as_json(predictor, decided, body.ids, ignored), ignored
        return table_as_bytes(decisions_as_table(decided, body.ids), response_kind), ignored

    return await respond(service, request, ("ids", "costs", "reject"), work)


async def learn(service: Service, request: Request) -> Response:
    """Learn labeled rows; a row with an id is learned once."""
    learner, predictor = _find_learner(service, request)
    return await _change_model(
        service, request, predictor, lambda body: learner.learn(body.learnable(predictor.state.fitted))
    )


async def forget(service: Service, request: Request) -> Response:
    """Forget rows, by their ids or as they were learned."""
    learner, predictor = _find_learner(service, request)
    return await _change_model(
        service, request, predictor, lambda body: learner.forget(body.forgettable(predictor.state.fitted))
    )


async def _change_model(
    service: Service, request: Request, predictor: Predictor, begin: Callable[[Body], "Future[LearnResult]"]
) -> Response:
    """Read rows, pass them to the learner with `begin`, and respond with the result for each row."""
    rows_request = await read_request(request)

    def read() -> tuple[Body, "Future[LearnResult]"]:
        query, fitted = request.query_params, predictor.state.fitted
        body = read_body(
            rows_request.data, rows_request.kind, query, fitted, service.settings.requests, ("ids", "labels", "weights")
        )
        return body, begin(body)

    large = is_large(rows_request)
    body, future = await service.in_thread(read) if large else read()
    result = await wait_for(future)
    if large:
        return await service.in_thread(lambda: _results_response(result, body, rows_request))
    return _results_response(result, body, rows_request)


def _find_learner(service: Service, request: Request) -> tuple[Learner, Predictor]:
    served, predictor = service.model(request.path_params.get("name"))
    if served.learner is None and service.settings.learning is not None:
        raise Problem(503, "online learning is not available", "try again later; see /health/ready")
    if served.learner is None:
        remedy = "ask the operator to start the service with --learn"
        raise Problem(403, "online learning is disabled", remedy, code="learning-disabled")
    return served.learner, predictor


def _results_response(result: LearnResult, body: Body, rows_request: RowsRequest) -> Response:
    version = result.state.version
    if rows_request.response_kind == JSON:
        return make_response(results_as_json(version, result.results, body.ids), JSON, version)
    return make_response(
        table_as_bytes(results_as_table(result.results, body.ids), rows_request.response_kind),
        rows_request.response_kind,
        version,
    )


HTML = "text/html; charset=utf-8"


async def model(service: Service, request: Request) -> Response:
    """Describe the model."""
    served, predictor = service.model(request.path_params.get("name"))
    found = await service.in_thread(lambda: describe_model(served, predictor))
    return json_response(found, predictor.state.version)


async def models(service: Service, request: Request) -> Response:
    """List the models and their problems."""
    if not service.models.is_folder:
        raise Problem(404, "this service has a single model", "see /model", "path")
    states = [(served, served.state) for served in service.models]
    return json_response(
        {
            "models": [
                {"name": served.name, "model": None if state is None else state.version, "problem": served.problem}
                for served, state in states
            ]
        }
    )


async def scorer(service: Service, request: Request) -> Response:
    """Return the model as JSON for client-side scoring, as the web page does."""

    def render(predictor: Predictor) -> bytes:
        try:
            return encode_json(model_as_json(predictor.state.fitted))
        except DecibanError as error:
            problem = Problem(404, render_message(error.cause), remedy_for_clients(error.remedy), code="not-exportable")
            raise problem from None

    return await _cacheable_response(service, request, "application/json", render)


async def report(service: Service, request: Request) -> Response:
    """Return the sections of the report as an HTML fragment."""
    name = request.path_params.get("name") or "model"

    def render(predictor: Predictor) -> bytes:
        return report_fragment(predictor, name, service.loss_of(predictor)).encode()

    return await _cacheable_response(service, request, HTML, render)


async def form(service: Service, request: Request) -> Response:
    """Return the data for the input form of the web page."""
    name = request.path_params.get("name") or "model"

    def render(predictor: Predictor) -> bytes:
        return encode_json(form_json(predictor, name, service.loss_of(predictor)))

    return await _cacheable_response(service, request, "application/json", render)


async def _cacheable_response(
    service: Service, request: Request, kind: str, render: Callable[[Predictor], bytes]
) -> Response:
    """Respond with content that only depends on the version of the model, or with 304 if the client has it."""
    _, predictor = service.model(request.path_params.get("name"))
    tag = f'"{predictor.state.version}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache", "Deciban-Model": predictor.state.version}
    if tag in (value.strip().removeprefix("W/") for value in request.headers.get("if-none-match", "").split(",")):
        return Response(status_code=304, headers=headers)
    key = request.url.path.rpartition("/")[2]
    content = await predictor.compute_once(key, lambda: service.in_thread(lambda: render(predictor)))
    return Response(content, headers={**headers, "content-type": kind})


async def live(service: Service, request: Request) -> Response:
    """Report that the process is running."""
    return json_response({"live": True})


async def ready(service: Service, request: Request) -> Response:
    """Report readiness and problems."""
    found = service.ready()
    if found["ready"]:
        return json_response(found)
    response = json_response(found, status=503)
    response.headers["retry-after"] = RETRY_AFTER
    return response


async def metrics(service: Service, request: Request) -> Response:
    """Return all metrics in the Prometheus text format."""
    return make_response(
        await service.in_thread(lambda: service.metrics.text(service.models)), service.metrics.content_type
    )


async def redirect_to_page(service: Service, request: Request) -> Response:
    """Redirect from the name of a model to its page, whose links are relative."""
    return Response(status_code=308, headers={"location": quote(request.path_params["name"], safe="") + "/"})


async def page(service: Service, request: Request) -> Response:
    """Return the page of a model, or the page that lists the models of a folder."""
    name = request.path_params.get("name")
    if service.models.is_folder and name is None:
        content, policy = folder_page()
    else:
        served, _ = service.model(name)
        content, policy = await service.in_thread(lambda: model_page(served.name))
    return Response(content, headers={"content-type": HTML, "content-security-policy": policy})
