"""The application: which function answers which request."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from deciban.serve import endpoints as learning, endpoints as model, endpoints as rows
from deciban.serve.access import Tokens
from deciban.serve.answers import problem_response
from deciban.serve.guard import guarded
from deciban.serve.problems import Problem, usual_problem
from deciban.serve.service import Service

Endpoint = Callable[[Service, Request], Awaitable[Response]]

# What is asked of a model, by the last part of the path.
ROW_ROUTES: dict[str, Endpoint] = {
    "/predict": rows.predict,
    "/explain": rows.explain,
    "/decide": rows.decide,
    "/learn": learning.learn,
    "/forget": learning.forget,
}
MODEL_ROUTES: dict[str, Endpoint] = {
    "/model": model.model,
    "/model/scorer": model.scorer,
    "/model/report": model.report,
    "/model/form": model.form,
}

# What is asked of the service.
SERVICE_ROUTES: dict[str, Endpoint] = {
    "/": model.page,
    "/models": model.models,
    "/health/live": model.live,
    "/health/ready": model.ready,
    "/metrics": model.metrics,
    "/openapi.json": model.openapi,
}

log = logging.getLogger("deciban.serve")


def create_app(service: Service) -> Starlette:
    """The application of a service that is open; closing it is up to whoever opened it."""
    before = "/models/{name}" if service.models.is_folder else ""
    routes = [_route(service, before + path, one, "POST") for path, one in ROW_ROUTES.items()]
    routes += [_route(service, before + path, one, "GET") for path, one in MODEL_ROUTES.items()]
    routes += [_route(service, path, one, "GET") for path, one in SERVICE_ROUTES.items()]
    if before:
        routes.append(_route(service, f"{before}/", model.page, "GET"))
        routes.append(_route(service, before, model.to_page, "GET"))
    app = Starlette(routes=routes, exception_handlers={HTTPException: _refused})
    app.router.redirect_slashes = False
    app.state.service = service
    return app


def create_guarded_app(service: Service) -> Any:
    """Return the application of a service behind its guard, as it is run."""
    settings, metrics = service.settings, service.metrics
    tokens = None if settings.token_file is None else Tokens.open(settings.token_file)
    hosts = settings.hosts if tokens is None else None
    app = create_app(service)
    return guarded(app, settings.requests, metrics.observe_request, metrics.observe_cut, hosts=hosts, tokens=tokens)


def _route(service: Service, path: str, endpoint: Endpoint, method: str) -> Route:
    async def answered(request: Request) -> Response:
        try:
            return await endpoint(service, request)
        except Problem as problem:
            return problem_response(problem)
        except Exception:
            log.exception("a fault while answering %s", path)
            return problem_response(usual_problem(500))

    return Route(path, answered, methods=[method])


def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException), "no other is given to it"
    response = problem_response(usual_problem(error.status_code))
    for name, value in (error.headers or {}).items():
        response.headers[name] = value
    return response
