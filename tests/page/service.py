"""A small service that gives the page real answers of the engine: what the page asks for, and nothing else."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Mount, Route

from deciban.errors import UsageError
from deciban.explain.explanation import Explanation
from deciban.export.model_json import model_as_json
from deciban.fitted import Fitted
from deciban.page.build import folder_html, page_html
from deciban.plain_json import plain_json
from deciban.report.figures import report_figures
from deciban.report.form_data import form_data
from deciban.report.page import report_sections
from deciban.serve.problems import Problem
from deciban.serve.records import table_of_records


@dataclass
class Served:
    """A model that is served, which a test may replace, and what was asked for."""

    fitted: Fitted
    token: str | None = None
    version: int = 1
    url: str = ""
    asked: list[str] = field(default_factory=list)

    def learn(self, fitted: Fitted) -> None:
        self.fitted = fitted
        self.version += 1

    def exported(self) -> dict[str, Any] | None:
        try:
            return model_as_json(self.fitted)
        except UsageError:
            return None

    def described(self) -> dict[str, Any]:
        weights = zip(self.fitted.classes.tolist(), self.fitted.counts.class_weight.tolist(), strict=True)
        classes = [{"class": label, "rows": rows} for label, rows in weights]
        return {"version": str(self.version), "rows": self.fitted.counts.rows, "classes": classes, "learning": None}


def _routes(served: Served) -> list[Route]:
    def page(request: Request) -> Response:
        html, policy = page_html(None, service=True, title="served")
        return HTMLResponse(html, headers={"Content-Security-Policy": f"{policy}; frame-ancestors 'none'"})

    def answer(request: Request) -> Response:
        served.asked.append(request.url.path)
        if served.token and request.headers.get("authorization") != f"Bearer {served.token}":
            return JSONResponse(Problem(401, "there is no token", "send one").as_dict(), 401)
        name = request.url.path.rsplit("/", 1)[1]
        if name == "report":
            return HTMLResponse(report_sections(report_figures(served.fitted, "served")))
        if name == "scorer":
            return JSONResponse(served.exported())
        if name == "form":
            scorer = served.exported() is not None
            return JSONResponse(form_data(report_figures(served.fitted, "served"), scorer=scorer))
        return JSONResponse(served.described())

    async def explain(request: Request) -> Response:
        served.asked.append(request.url.path)
        rows = (await request.json())["rows"]
        explained = Explanation.of(served.fitted.model, table_of_records(served.fitted.model.schema, rows))
        found = [plain_json(explained.reasons(k)) for k in range(len(rows))]
        return JSONResponse({"model": str(served.version), "rows": found})

    gets = [Route(path, answer) for path in ("/model", "/model/scorer", "/model/form", "/model/report")]
    return [Route("/", page), *gets, Route("/explain", explain, methods=["POST"])]


@contextmanager
def serving(served: Served, name: str | None = None) -> Iterator[Served]:
    """The model at an address of its own; with a name, as the one model of a folder."""
    routes: list[Any] = _routes(served)
    if name is not None:

        def folder(request: Request) -> Response:
            html, policy = folder_html("Models")
            return HTMLResponse(html, headers={"Content-Security-Policy": policy})

        names = Route("/models", lambda request: JSONResponse({"models": [{"name": name}]}))
        routes = [Route("/", folder), names, Mount("/models/{name}", routes=routes)]
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(Starlette(routes=routes), log_level="error"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    served.url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
    try:
        yield served
    finally:
        server.should_exit = True
        thread.join(10)
        listening.close()
