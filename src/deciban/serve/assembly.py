"""How the parts of the service are put together: the application, the guard around it, the connections below it."""

from typing import Any

from deciban.serve.access import Tokens
from deciban.serve.connections import ConnectionSettings, guarded_protocol
from deciban.serve.guard import GuardSettings, guarded
from deciban.serve.service import Service
from deciban.serve.settings import LOOPBACK_NAMES, ServeSettings


def guard(app: Any, service: Service) -> Any:
    """The application behind the guard."""
    settings = service.settings
    tokens = None if settings.token_file is None else Tokens.open(settings.token_file)
    chosen = GuardSettings(
        most_body_bytes=settings.most_body_bytes,
        body_limit=settings.time_limit,
        answer_limit=settings.answer_limit,
        most_waiting=settings.most_waiting,
        hosts=hosts_of(settings) if tokens is None else None,
        tokens=tokens,
    )
    return guarded(app, chosen, service.metrics.observe_request, service.metrics.observe_cut)


def protocol(settings: ServeSettings) -> Any:
    """How connections are spoken with, for uvicorn."""
    head_limit = min(settings.time_limit, ConnectionSettings.head_limit)
    return guarded_protocol(
        ConnectionSettings(
            head_limit=head_limit,
            most_connections=settings.most_connections,
            max_per_address=settings.max_connections_per_address,
        )
    )


def hosts_of(settings: ServeSettings) -> frozenset[str]:
    """The names that requests without a token may be for: those of this machine, and those that are allowed."""
    return frozenset({*LOOPBACK_NAMES, "127.0.0.1", "::1", settings.host, *settings.allow_hosts})
