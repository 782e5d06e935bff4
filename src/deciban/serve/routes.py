"""Table of routes, from which the application, access rules, metrics and OpenAPI description are built.

A new route is one entry in `ROUTES` and one function in `deciban.serve.endpoints`.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from starlette.requests import Request
from starlette.responses import Response

from deciban.serve import endpoints
from deciban.serve.docs_page import render_docs_page
from deciban.serve.openapi import describe_service
from deciban.serve.responses import json_response
from deciban.serve.service import Service

Endpoint = Callable[[Service, Request], Awaitable[Response]]

# Prefix of the routes of a model if a folder is served.
BELOW_FOLDER = "/models/{name}"


@dataclass(frozen=True)
class Route:
    """Route of the service.

    Attributes
    ----------
    path
        Path of the route, also its label in metrics.
    endpoint
        Function that handles requests.
    summary
        Summary for OpenAPI; empty: the route is not documented.
    response
        Name of the schema of the JSON response, "object" for any JSON, "html" or "text".
    per_model
        True if the route belongs to a model; if a folder is served, it is below `BELOW_FOLDER`.
    folder_only
        True if the route exists, or is documented, only if a folder is served.
    learns
        True if the route requires a token with the role "learn".
    is_open
        True if the route requires no token.
    is_health_check
        True if the route is served regardless of load.
    options, query
        Properties of the body besides rows, and query parameters.
    cacheable
        True if the response only depends on the version of the model.
    """

    path: str
    endpoint: Endpoint
    summary: str
    response: str
    method: Literal["GET", "POST"] = "GET"
    per_model: bool = False
    folder_only: bool = False
    learns: bool = False
    is_open: bool = False
    is_health_check: bool = False
    options: tuple[str, ...] = ()
    query: tuple[str, ...] = ()
    cacheable: bool = False

    @property
    def name(self) -> str:
        """Last segment of the path, by which a request is matched; empty for a page."""
        return last_part(self.path)


def last_part(path: str) -> str:
    """Return the last segment of a path."""
    return path.rstrip("/").rpartition("/")[2]


def _rows(path: str, endpoint: Endpoint, summary: str, response: str, *options: str, more: str = "") -> Route:
    """Return a route that accepts rows; more: a further query parameter."""
    columns = tuple(name for option, name in (("ids", "id"), ("labels", "target"), ("weights", "weight"))
                    if option in options)  # fmt: skip
    query = (more, *columns) if more else columns
    learns = "labels" in options
    return Route(path, endpoint, summary, response, "POST", per_model=True, learns=learns, options=options, query=query)


async def openapi(service: Service, request: Request) -> Response:
    """Respond with the OpenAPI description of all routes."""
    return json_response(await service.in_thread(lambda: describe_service(service, ROUTES)))


async def docs(service: Service, request: Request) -> Response:
    """Respond with the OpenAPI description as a page."""
    base = str(request.base_url).rstrip("/")
    content, policy = await service.in_thread(lambda: render_docs_page(describe_service(service, ROUTES), base))
    return Response(content, headers={"content-type": endpoints.HTML, "content-security-policy": policy})


LEARNED = ("ids", "labels", "weights")

ROUTES = (
    _rows("/predict", endpoints.predict, "Predict the class of each row",
          "Predictions", "ids", more="coverage"),
    _rows("/explain", endpoints.explain, "Explain the prediction for each row", "Explanations", "ids", more="by"),
    _rows("/decide", endpoints.decide, "Make the least-cost decision for each row", "Decisions",
          "ids", "costs", "reject"),
    _rows("/learn", endpoints.learn, "Learn labeled rows", "Results", *LEARNED),
    _rows("/forget", endpoints.forget, "Forget rows", "Results", *LEARNED),
    Route("/model", endpoints.model, "Describe the model", "Model", per_model=True),
    Route("/model/scorer", endpoints.scorer, "Download the model as JSON for client-side scoring", "object",
          per_model=True, cacheable=True),
    Route("/model/form", endpoints.form, "Get the data for the input form of the web page", "object",
          per_model=True, cacheable=True),
    Route("/model/report", endpoints.report, "Get the sections of the report as an HTML fragment", "html",
          per_model=True, cacheable=True),
    Route("/", endpoints.page, "Web page of a model", "html", per_model=True, folder_only=True, is_open=True),
    Route("", endpoints.redirect_to_page, "", "html", per_model=True, folder_only=True, is_open=True),
    Route("/models", endpoints.models, "List the models", "Models", folder_only=True),
    Route("/", endpoints.page, "Web page", "html", is_open=True),
    Route("/health/live", endpoints.live, "Check that the process is running", "Live",
          is_open=True, is_health_check=True),
    Route("/health/ready", endpoints.ready, "Check that the service is ready", "Ready",
          is_open=True, is_health_check=True),
    Route("/metrics", endpoints.metrics, "Get metrics in the Prometheus text format", "text", is_health_check=True),
    Route("/openapi.json", openapi, "Get this OpenAPI description", "object"),
    Route("/docs", docs, "Web page of this description", "html"),
)  # fmt: skip

BY_NAME = {route.name: route for route in ROUTES}

# Paths that require no token; the pages of models are matched by a pattern.
OPEN_PATHS = frozenset(route.path for route in ROUTES if route.is_open and not route.per_model)


def find_route(path: str) -> Route | None:
    """Return the route that matches the last segment of a path, or None."""
    return BY_NAME.get(last_part(path))
