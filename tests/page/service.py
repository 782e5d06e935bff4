"""The real service on loopback, for the page that it serves."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn

from deciban import BayesClassifier
from deciban.datasets import weather
from deciban.serve.app import create_guarded_app
from deciban.serve.predictions import State
from deciban.serve.service import Service
from deciban.serve.settings import ServeSettings


@dataclass
class Served:
    """A service that runs, and what was asked of it."""

    service: Service
    url: str
    asked: list[str] = field(default_factory=list)

    def show(self, clf: BayesClassifier) -> None:
        """Answer by another model from now on."""
        (model,) = self.service.models
        model.publish(State(clf.fitted_, f"rows-{clf.counts_.rows}", 0, time.time()))


@contextmanager
def serving(
    clf: BayesClassifier, folder: Path, name: str | None = None, shown: bool = True, **options: Any
) -> Iterator[Served]:
    """The model at an address of its own; with a name, as the one model of a folder. shown: answer by it, and not by
    that of the weather, which is in the file. options: of the settings."""
    path = folder / f"{name or 'model'}.dcb"
    BayesClassifier(tune=None).fit(weather(), "play").save(path)  # some models cannot be saved
    settings = ServeSettings.of(str(path if name is None else folder), reload_interval=0.0, **options)
    service = Service(settings)
    service.open()
    listening = socket.create_server(("127.0.0.1", 0))
    served = Served(service, f"http://127.0.0.1:{listening.getsockname()[1]}/")
    if shown and settings.learning is None:
        served.show(clf)
    app = create_guarded_app(service)

    async def listened(scope: Any, receive: Any, send: Any) -> None:
        served.asked.append(scope["path"])
        await app(scope, receive, send)

    server = uvicorn.Server(uvicorn.Config(listened, log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        yield served
    finally:
        server.should_exit = True
        thread.join(10)
        listening.close()
        service.close()
