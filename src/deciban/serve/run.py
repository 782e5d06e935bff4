"""The service as a process: sockets, signals, workers, and how it ends."""

import contextlib
import gc
import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec
import uvicorn
from uvicorn.supervisors import Multiprocess

from deciban.serve.app import create_guarded_app
from deciban.serve.connections import guarded_protocol
from deciban.serve.service import Service
from deciban.serve.settings import ServeSettings
from deciban.util.text_tables import escape_line

# What workers get their settings from.
SETTINGS_VARIABLE = "DECIBAN_SERVE_SETTINGS"

# Signals at which a service ends in order.
ENDING_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))

# Connections that wait to be taken.
BACKLOG = 2_048

# Files that a process may have open besides connections.
OTHER_FILES = 256

# Seconds for which a worker may be silent, as it is while it starts on a busy machine, before another takes its place.
STARTING_SECONDS = 30

# Is called with the address, the names of the models, and of those that cannot be read, when requests are answered.
Started = Callable[[str, list[str], list[str]], None]

log = logging.getLogger("deciban.serve")


def serve(settings: ServeSettings, started: Started) -> None:
    """Serve until a signal comes, and end in order.

    An OSError where the address cannot be had, a ModelFileError where the model cannot be read.
    """
    listening = bound_socket(settings.host, settings.port)
    try:
        _prepare_process(settings)
        service = Service(settings)
        service.open()
        names = [model.name for model in service.models]
        wrong = [model.name for model in service.models if model.reader is None]
        tell = partial(started, address_of(listening, settings.host), names, wrong)
        if settings.workers > 1:
            service.close()  # it was opened to see that all can be read: each worker has its own
            _serve_by_workers(replace(settings, folder=service.models.is_folder), listening, tell)
            return
        try:
            _serve_here(settings, service, listening, tell)
        finally:
            service.close()
    finally:
        listening.close()


def bound_socket(host: str, port: int) -> socket.socket:
    """A socket at this address; an OSError that names the address where it cannot be had."""
    try:
        family, kind, number, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        found = socket.socket(family, kind, number)
        if os.name == "posix":
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind(place)
        except OSError:
            found.close()
            raise
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "there is no such address"
        remedy = "choose another --port, or end what listens there" if isinstance(error, OSError) else "check --host"
        raise OSError(f"{host} port {port} cannot be listened at: {reason}; {remedy}") from None
    found.set_inheritable(True)
    return found


def address_of(listening: socket.socket, host: str) -> str:
    """The address to open in a browser."""
    port = listening.getsockname()[1]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _prepare_process(settings: ServeSettings) -> None:
    """Log to standard error; and warn nobody of what clients send, each of which would be remembered for ever."""
    warnings.simplefilter("ignore")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter("%(asctime)s deciban: %(levelname)s: %(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    logging.getLogger("deciban.serve").setLevel(logging.INFO)
    logging.getLogger("deciban.serve.access").setLevel(logging.INFO if settings.access_log else logging.WARNING)
    _allow_open_files(settings.connections.max_connections + OTHER_FILES)


class LineFormatter(logging.Formatter):
    """One line for each record, whatever names of files and contents of requests are in it; lines of a traceback are
    indented, so that none looks like a record."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name of the standard library
        record.message = escape_line(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802 - the name of the standard library
        return "\n".join("    " + escape_line(line) for line in super().formatException(ei).split("\n"))


def _allow_open_files(files: int) -> None:
    """Raise the process's limit of open files to what the bound of connections needs, as far as it may."""
    if sys.platform != "win32":
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = files if hard == resource.RLIM_INFINITY else min(files, hard)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _config(app: Any, settings: ServeSettings, **more: Any) -> uvicorn.Config:
    limits = settings.connections
    return uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        loop="uvloop" if _has_uvloop() else "asyncio",
        http=guarded_protocol(replace(limits, head_timeout=min(settings.requests.read_timeout, limits.head_timeout))),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,  # the guard has its own, with times
        proxy_headers=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=max(1, int(limits.idle_timeout)),
        timeout_graceful_shutdown=max(1, int(limits.shutdown_timeout)),
        **more,
    )


def _has_uvloop() -> bool:
    try:
        import uvloop  # noqa: F401 - whether it is there
    except ImportError:
        return False
    return True


class DrainingServer(uvicorn.Server):
    """A server that says that it ends as soon as it is told to, and whose end by a signal is no failure."""

    def __init__(self, config: uvicorn.Config, service: Service, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._service = service
        self._started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._started()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {one: signal.signal(one, self.handle_exit) for one in ENDING_SIGNALS if not _is_ignored(one)}
        try:
            yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)

    def handle_exit(self, sig: int, frame: Any) -> None:
        self._service.draining = True
        super().handle_exit(sig, frame)


def _serve_here(
    settings: ServeSettings, service: Service, listening: socket.socket, started: Callable[[], None]
) -> None:
    app = create_guarded_app(service)
    gc.collect()
    gc.freeze()  # the model stays: it need not be looked at again and again
    DrainingServer(_config(app, settings), service, started).run([listening])


def _is_ignored(number: int) -> bool:
    """Whether whoever started the process wants a signal to be ignored, as nohup does SIGHUP."""
    return signal.getsignal(number) is signal.SIG_IGN


class Workers(Multiprocess):
    """Processes that answer, started again when they die; SIGHUP ends them, as it ends a service of one process."""

    def __init__(self, config: uvicorn.Config, sockets: list[socket.socket]) -> None:
        ignored = [one for one in ENDING_SIGNALS if _is_ignored(one)]
        super().__init__(config, sockets)
        for one in ignored:
            signal.signal(one, signal.SIG_IGN)

    def handle_hup(self) -> None:
        self.handle_term()


def _serve_by_workers(settings: ServeSettings, listening: socket.socket, started: Callable[[], None]) -> None:
    """Other processes answer, each with a model of its own; one that dies is replaced."""
    os.environ[SETTINGS_VARIABLE] = msgspec.json.encode(settings).decode()
    ready = threading.Thread(target=_call_when_connected, args=(listening.getsockname(), started), daemon=True)
    config = _config("deciban.serve.run:worker_app", settings, factory=True, workers=settings.workers)
    config.timeout_worker_healthcheck = STARTING_SECONDS
    supervisor = Workers(config, [listening])
    ready.start()
    supervisor.run()


def worker_app() -> Any:
    """The application of a worker, which has its settings from the environment.

    It starts also while the model cannot be read, and then refuses requests: one that ended would be started again and
    again, and nobody would answer.
    """
    settings = msgspec.json.decode(os.environ[SETTINGS_VARIABLE], type=ServeSettings)
    _prepare_process(settings)
    _end_with_parent()
    service = Service(settings)
    service.open(patient=True)
    gc.collect()
    gc.freeze()
    return create_guarded_app(service)


def _end_with_parent() -> None:
    """End in order when the process that started this one is gone, however it ended, and at SIGHUP."""
    if hasattr(signal, "SIGHUP") and not _is_ignored(signal.SIGHUP):  # a terminal sends it to workers too
        signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def wait() -> None:
        parent.join()
        log.warning("the process that started this worker is gone; the worker ends")
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="deciban-parent", daemon=True).start()


def _call_when_connected(place: Any, started: Callable[[], None]) -> None:
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(place[0], place[0])
    while True:
        try:
            socket.create_connection((host, place[1]), timeout=1.0).close()
        except OSError:
            time.sleep(0.05)
            continue
        started()
        return
