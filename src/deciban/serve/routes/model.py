"""What is asked of the service itself: the model, its scorer and its report, health, metrics, the page."""

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from deciban.errors import DecibanError
from deciban.export.model_json import model_as_json
from deciban.serve.bodies.records import cause_and_remedy
from deciban.serve.problems import RETRY_AFTER, Problem
from deciban.serve.reader import Reader
from deciban.serve.routes.describe import described_model
from deciban.serve.routes.exchange import answer, json_answer
from deciban.serve.routes.openapi import description
from deciban.serve.routes.pages import folder_page, form_of, model_page, report_fragment
from deciban.serve.routes.results import encode_json
from deciban.serve.service import Service

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
            raise Problem(404, *cause_and_remedy(str(error))) from None

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


async def openapi(service: Service, request: Request) -> Response:
    """The description of all this, made from the columns of the model."""
    found: dict[str, Any] = await service.in_thread(lambda: description(service))
    return json_answer(found)


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
