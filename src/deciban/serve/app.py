"""ASGI application, built from the table of routes, with its middleware."""

import logging
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as StarletteRoute

from deciban.serve.access import Tokens
from deciban.serve.middleware import guard
from deciban.serve.problems import Problem, default_problem
from deciban.serve.responses import problem_response
from deciban.serve.routes import BELOW_FOLDER, ROUTES, Route
from deciban.serve.service import Service

log = logging.getLogger("deciban.serve")


def create_app(service: Service) -> Starlette:
    """Return the application of an open service. The caller closes the service."""
    folder = service.models.is_folder
    routes = [
        _starlette_route(service, (BELOW_FOLDER if folder and route.per_model else "") + route.path, route)
        for route in ROUTES
        if folder or not (route.per_model and route.folder_only)
    ]
    app = Starlette(routes=routes, exception_handlers={HTTPException: _handle_http_exception})
    app.router.redirect_slashes = False
    app.state.service = service
    return app


def create_guarded_app(service: Service) -> Any:
    """Return the application with its middleware, as it is run."""
    settings, metrics = service.settings, service.metrics
    tokens = None if settings.token_file is None else Tokens.open(settings.token_file)
    hosts = settings.hosts if tokens is None else None
    app = create_app(service)
    return guard(app, settings.requests, metrics.observe_request, metrics.observe_drop, hosts=hosts, tokens=tokens)


def _starlette_route(service: Service, path: str, route: Route) -> StarletteRoute:
    async def endpoint(request: Request) -> Response:
        try:
            return await route.endpoint(service, request)
        except Problem as problem:
            return problem_response(problem)
        except Exception:
            log.exception("internal error while handling %s", path)
            return problem_response(default_problem(500))

    return StarletteRoute(path, endpoint, methods=[route.method])


def _handle_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException), "registered for this class"
    response = problem_response(default_problem(error.status_code))
    for name, value in (error.headers or {}).items():
        response.headers[name] = value
    return response
