"""The service process: sockets, signals, workers and shutdown."""

import contextlib
import gc
import json
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
from datetime import UTC, datetime
from functools import partial
from typing import Any

import msgspec
import uvicorn
from uvicorn.supervisors import Multiprocess

from deciban.serve.app import create_guarded_app
from deciban.serve.connections import make_protocol
from deciban.serve.middleware import REQUEST_FIELDS
from deciban.serve.service import Service
from deciban.serve.settings import ServeSettings
from deciban.util.text_tables import escape_line

# Environment variable that passes the settings to worker processes.
SETTINGS_VARIABLE = "DECIBAN_SERVE_SETTINGS"

# Signals that shut down the service gracefully.
SHUTDOWN_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))

# Maximum number of connections waiting to be accepted.
BACKLOG = 2_048

# Files that a process may need besides connections.
RESERVED_FILES = 256

# Seconds a worker may be unresponsive, as it is while it starts on a busy machine, before it is replaced.
WORKER_STARTUP_SECONDS = 30

# Called with the address, the names of all models, and the names of those that cannot be loaded.
Announce = Callable[[str, list[str], list[str]], None]

log = logging.getLogger("deciban.serve")


def serve(settings: ServeSettings, announce: Announce) -> None:
    """Run the service until a signal arrives, then shut down gracefully.

    Raises an OSError if the address is not available, and a ModelFileError if the model cannot be loaded.
    """
    listening = bind_socket(settings.host, settings.port)
    try:
        _prepare_process(settings)
        service = Service(settings)
        service.open()
        names = [model.name for model in service.models]
        failed = [model.name for model in service.models if model.predictor is None]
        announce_start = partial(announce, format_address(listening, settings.host), names, failed)
        if settings.workers > 1:
            service.close()  # opened only to check that the models can be loaded; each worker loads its own
            _serve_by_workers(replace(settings, folder=service.models.is_folder), listening, announce_start)
            return
        try:
            _serve_here(settings, service, listening, announce_start)
        finally:
            service.close()
    finally:
        listening.close()


def bind_socket(host: str, port: int) -> socket.socket:
    """Return a socket bound to this address; raise an OSError that names the address if that fails."""
    try:
        family, kind, number, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind, number)
        if os.name == "posix":
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind(address)
        except OSError:
            bound.close()
            raise
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "no such address"
        remedy = (
            "choose another --port, or stop the program that uses this one"
            if isinstance(error, OSError)
            else "check --host"
        )
        raise OSError(f"cannot listen on {host} port {port}: {reason}; {remedy}") from None
    bound.set_inheritable(True)
    return bound


def format_address(listening: socket.socket, host: str) -> str:
    """Return the URL of the service."""
    port = listening.getsockname()[1]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _prepare_process(settings: ServeSettings) -> None:
    """Set up logging to standard error and disable Python warnings.

    A warning for each malformed value that clients send would be remembered by Python for ever.
    """
    warnings.simplefilter("ignore")
    handler = logging.StreamHandler(sys.stderr)
    line = LineFormatter("%(asctime)s deciban: %(levelname)s: %(message)s")
    handler.setFormatter(JsonFormatter() if settings.json_log else line)
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    logging.getLogger("deciban.serve").setLevel(logging.INFO)
    logging.getLogger("deciban.serve.access").setLevel(logging.INFO if settings.access_log else logging.WARNING)
    _allow_open_files(settings.connections.max_connections + RESERVED_FILES)


class LineFormatter(logging.Formatter):
    """Formatter that writes one line per record.

    Control characters in file names and request data are escaped. The lines of a traceback are indented, so that none
    of them can be mistaken for a record.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name of the standard library
        record.message = escape_line(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802 - the name of the standard library
        return "\n".join("    " + escape_line(line) for line in super().formatException(ei).split("\n"))


class JsonFormatter(logging.Formatter):
    """Formatter that writes a JSON object per record: time, level and message, and the fields of a request.

    A traceback is in the field "traceback".
    """

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {"time": moment.replace("+00:00", "Z"), "level": record.levelname, "message": record.getMessage()}
        line |= getattr(record, REQUEST_FIELDS, {})
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)


def _allow_open_files(files: int) -> None:
    """Raise the limit on open files of this process to the given number, as far as permitted."""
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
        http=make_protocol(replace(limits, head_timeout=min(settings.requests.read_timeout, limits.head_timeout))),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,  # the middleware has its own access log, with durations
        proxy_headers=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=max(1, int(limits.idle_timeout)),
        timeout_graceful_shutdown=max(1, int(limits.shutdown_timeout)),
        **more,
    )


def _has_uvloop() -> bool:
    try:
        import uvloop  # noqa: F401 - availability check
    except ImportError:
        return False
    return True


class DrainingServer(uvicorn.Server):
    """Server that reports not ready as soon as shutdown begins, and exits with code 0 after a signal."""

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
        before = {
            number: signal.signal(number, self.handle_exit) for number in SHUTDOWN_SIGNALS if not _is_ignored(number)
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: Any) -> None:
        self._service.draining = True
        super().handle_exit(sig, frame)


def _serve_here(
    settings: ServeSettings, service: Service, listening: socket.socket, started: Callable[[], None]
) -> None:
    app = create_guarded_app(service)
    gc.collect()
    gc.freeze()  # exclude the model from garbage collection
    DrainingServer(_config(app, settings), service, started).run([listening])


def _is_ignored(number: int) -> bool:
    """Return True if the parent process asked for a signal to be ignored, as nohup does for SIGHUP."""
    return signal.getsignal(number) is signal.SIG_IGN


class Workers(Multiprocess):
    """Supervisor of the worker processes: restarts those that die; SIGHUP shuts down the service."""

    def __init__(self, config: uvicorn.Config, sockets: list[socket.socket]) -> None:
        ignored = [number for number in SHUTDOWN_SIGNALS if _is_ignored(number)]
        super().__init__(config, sockets)
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)

    def handle_hup(self) -> None:
        self.handle_term()


def _serve_by_workers(settings: ServeSettings, listening: socket.socket, started: Callable[[], None]) -> None:
    """Run the service in worker processes, each with its own copy of the models."""
    os.environ[SETTINGS_VARIABLE] = msgspec.json.encode(settings).decode()
    ready = threading.Thread(target=_call_when_connected, args=(listening.getsockname(), started), daemon=True)
    config = _config("deciban.serve.run:worker_app", settings, factory=True, workers=settings.workers)
    config.timeout_worker_healthcheck = WORKER_STARTUP_SECONDS
    supervisor = Workers(config, [listening])
    ready.start()
    supervisor.run()


def worker_app() -> Any:
    """Return the application of a worker process, with settings from the environment.

    The worker starts even if the model cannot be loaded, and rejects requests until it can. A worker that exited would
    be restarted in a loop.
    """
    settings = msgspec.json.decode(os.environ[SETTINGS_VARIABLE], type=ServeSettings)
    _prepare_process(settings)
    _end_with_parent()
    service = Service(settings)
    service.open(allow_failure=True)
    gc.collect()
    gc.freeze()
    return create_guarded_app(service)


def _end_with_parent() -> None:
    """Shut down gracefully on SIGHUP and when the parent process is gone, however it ended."""
    if hasattr(signal, "SIGHUP") and not _is_ignored(signal.SIGHUP):  # a terminal sends it to workers too
        signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def wait() -> None:
        parent.join()
        log.warning("the parent process is gone; shutting down this worker")
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
