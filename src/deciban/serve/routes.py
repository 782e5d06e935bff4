"""The table of routes: the application, the access rules, the metrics and the OpenAPI description are made from it.

A new route is one entry of `ROUTES` and one function in `deciban.serve.endpoints`.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from starlette.requests import Request
from starlette.responses import Response

from deciban.serve import endpoints
from deciban.serve.answers import json_answer
from deciban.serve.openapi import description
from deciban.serve.service import Service

Endpoint = Callable[[Service, Request], Awaitable[Response]]

# Routes of a model of a folder are below this.
BELOW_FOLDER = "/models/{name}"


@dataclass(frozen=True)
class Route:
    """An address of the service.

    path: by which it is also counted in metrics. endpoint: the function that answers. summary: for OpenAPI; empty:
    it is not described. answer: the schema of the JSON that is answered, "object" for any, "html" or "text".
    of_model: whether it belongs to a model, and is below `BELOW_FOLDER` if a folder is served. of_folder: whether it is
    there, or described, for folders only. learns: whether it needs a token that may learn. is_open: whether it needs no
    token. about_health: whether it is answered however busy the service is. options, query: what the body may hold
    besides rows, and parameters of the query. unchanging: whether the answer is the same for one version of the model.
    """

    path: str
    endpoint: Endpoint
    summary: str
    answer: str
    method: Literal["GET", "POST"] = "GET"
    of_model: bool = False
    of_folder: bool = False
    learns: bool = False
    is_open: bool = False
    about_health: bool = False
    options: tuple[str, ...] = ()
    query: tuple[str, ...] = ()
    unchanging: bool = False

    @property
    def name(self) -> str:
        """The last part of the path, by which a request is recognized; empty for a page."""
        return last_part(self.path)


def last_part(path: str) -> str:
    """Return the last part of a path, whatever is before it."""
    return path.rstrip("/").rpartition("/")[2]


def _rows(path: str, endpoint: Endpoint, summary: str, answer: str, *options: str, by: bool = False) -> Route:
    """Return a route to which rows are posted."""
    columns = tuple(name for option, name in (("ids", "id"), ("labels", "target"), ("weights", "weight"))
                    if option in options)  # fmt: skip
    query = ("by", *columns) if by else columns
    learns = "labels" in options
    return Route(path, endpoint, summary, answer, "POST", of_model=True, learns=learns, options=options, query=query)


async def openapi(service: Service, request: Request) -> Response:
    """Answer the description of all routes, made from the columns of the models."""
    return json_answer(await service.in_thread(lambda: description(service, ROUTES)))


LEARNED = ("ids", "labels", "weights")

ROUTES = (
    _rows("/predict", endpoints.predict, "The most probable class of each row, and the probability of each",
          "Predictions", "ids"),
    _rows("/explain", endpoints.explain, "Why each row is classified as it is", "Explanations", "ids", by=True),
    _rows("/decide", endpoints.decide, "The decision of least risk for each row", "Decisions",
          "ids", "costs", "reject"),
    _rows("/learn", endpoints.learn, "Rows are learned", "Results", *LEARNED),
    _rows("/forget", endpoints.forget, "Rows are forgotten", "Results", *LEARNED),
    Route("/model", endpoints.model, "What the model is", "Model", of_model=True),
    Route("/model/scorer", endpoints.scorer, "The model for programs that score by themselves", "object",
          of_model=True, unchanging=True),
    Route("/model/form", endpoints.form, "What the page makes its form of", "object", of_model=True, unchanging=True),
    Route("/model/report", endpoints.report, "The sections of the report, as HTML", "html",
          of_model=True, unchanging=True),
    Route("/", endpoints.page, "The page of a model", "html", of_model=True, of_folder=True, is_open=True),
    Route("", endpoints.to_page, "", "html", of_model=True, of_folder=True, is_open=True),
    Route("/models", endpoints.models, "The models that are served", "Models", of_folder=True),
    Route("/", endpoints.page, "The page", "html", is_open=True),
    Route("/health/live", endpoints.live, "Whether the process runs", "Live", is_open=True, about_health=True),
    Route("/health/ready", endpoints.ready, "Whether requests can be answered", "Ready",
          is_open=True, about_health=True),
    Route("/metrics", endpoints.metrics, "Metrics for Prometheus", "text", about_health=True),
    Route("/openapi.json", openapi, "This description", "object"),
)  # fmt: skip

BY_NAME = {route.name: route for route in ROUTES}

# The routes of the service that need no token; the page of a model is told by its path.
OPEN_PATHS = frozenset(route.path for route in ROUTES if route.is_open and not route.of_model)


def find_route(path: str) -> Route | None:
    """Return the route that a path looks like; None: none of them."""
    return BY_NAME.get(last_part(path))
