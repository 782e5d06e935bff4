"""Tables in the PostgreSQL server of the tests, and connections to it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import pyarrow as pa

from tests.support.servers import Postgres

_numbers = count(1)


def new_name() -> str:
    """The name of a table that nobody has."""
    return f"rows_{next(_numbers)}"


@contextmanager
def adbc_connection(server: Postgres) -> Iterator[Any]:
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(server.url) as connection:
        yield connection


def stored(server: Postgres, table: pa.Table, name: str | None = None) -> str:
    """The name of a table of the server that has these rows, in their order."""
    name = name or new_name()
    with adbc_connection(server) as connection, connection.cursor() as cursor:
        cursor.adbc_ingest(name, table, mode="replace")  # tests share the server, and hostile names
        connection.commit()
    return name


def created(server: Postgres, query: str) -> str:
    """The name of a table of the server that has the rows of a query."""
    name = new_name()
    server.execute(f"CREATE TABLE {name} AS {query}")
    return name


def open_connections(server: Postgres) -> int:
    """How many others are connected, once those that leave have left."""
    query = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
    for _ in range(200):
        if not (found := len(server.execute(query))):
            break
        time.sleep(0.05)
    return found
