"""The application, made from the table of routes, and the guard around it."""

import logging
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as StarletteRoute

from deciban.serve.access import Tokens
from deciban.serve.answers import problem_response
from deciban.serve.guard import guarded
from deciban.serve.problems import Problem, usual_problem
from deciban.serve.routes import BELOW_FOLDER, ROUTES, Route
from deciban.serve.service import Service

log = logging.getLogger("deciban.serve")


def create_app(service: Service) -> Starlette:
    """The application of a service that is open; closing it is up to whoever opened it."""
    folder = service.models.is_folder
    routes = [
        _starlette_route(service, (BELOW_FOLDER if folder and route.of_model else "") + route.path, route)
        for route in ROUTES
        if folder or not (route.of_model and route.of_folder)
    ]
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
    return guarded(app, settings.requests, metrics.observe_request, metrics.observe_drop, hosts=hosts, tokens=tokens)


def _starlette_route(service: Service, path: str, route: Route) -> StarletteRoute:
    async def answered(request: Request) -> Response:
        try:
            return await route.endpoint(service, request)
        except Problem as problem:
            return problem_response(problem)
        except Exception:
            log.exception("a fault while answering %s", path)
            return problem_response(usual_problem(500))

    return StarletteRoute(path, answered, methods=[route.method])


def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException), "no other is given to it"
    response = problem_response(usual_problem(error.status_code))
    for name, value in (error.headers or {}).items():
        response.headers[name] = value
    return response
