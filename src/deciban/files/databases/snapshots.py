"""One moment of a PostgreSQL database: every pass over its rows sees them as they were then.

Each pass has a connection of its own, which can be cut off anywhere. As long as a snapshot is held, one more connection
keeps the moment alive, which the others take over from it; the tables that are read cannot be altered meanwhile.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from threading import Lock
from typing import Any

from deciban.files.databases.addresses import Address
from deciban.files.databases.postgres import Statement, connected
from deciban.sql import POSTGRES

BEGIN = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"

# How rows are read: as UTF-8, and each time in the same order, which several processes, or a scan that joins in where
# another one is, would not keep. A moment that is held is not ended for doing nothing.
SETTINGS = {
    "client_encoding": "UTF8",
    "synchronize_seqscans": "off",
    "max_parallel_workers_per_gather": "0",
    "idle_in_transaction_session_timeout": "0",
}


class Snapshots:
    """The moments at which a database is read: a new one for each pass, unless one is held, by whomever."""

    own = True  # its connections may be cut off

    def __init__(self, address: Address) -> None:
        self.address = address
        self._lock = Lock()
        self._holders = 0
        self._held: ExitStack | None = None
        self._moment: str | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.address,)

    @contextmanager
    def held(self, place: str, look: Callable[[Statement], object]) -> Iterator[None]:
        """While it lasts, all passes see one moment, and the tables at which one looks first stay as they are."""
        with self._lock:
            if not self._holders:
                self._held, self._moment = self._hold(place, look)
            self._holders += 1
        try:
            yield
        finally:
            with self._lock:
                self._holders -= 1
                if not self._holders and self._held is not None:
                    self._moment = None
                    self._held.close()

    def _hold(self, place: str, look: Callable[[Statement], object]) -> tuple[ExitStack, str]:
        """A transaction that is to be closed, and the name of its moment."""
        with ExitStack() as stack:
            connection = stack.enter_context(_reading(self.address, None, place))
            with Statement(connection, place) as statement:
                (found,) = statement.rows("SELECT pg_export_snapshot() AS moment")
                look(statement)
            return stack.pop_all(), found["moment"]

    @contextmanager
    def reading(self, place: str) -> Iterator[Any]:
        """A connection that sees the moment that is held, or else its own."""
        with _reading(self.address, self._moment, place) as connection:
            yield connection


@contextmanager
def _reading(address: Address, moment: str | None, place: str) -> Iterator[Any]:
    """A connection in a transaction that changes nothing and sees one moment."""
    with connected(address) as connection:
        with Statement(connection, place) as statement:
            statement.run(BEGIN)
            if moment is not None:
                statement.run(f"SET TRANSACTION SNAPSHOT {POSTGRES.literal(moment)}")
            settings = (f"set_config('{name}', '{value}', true)" for name, value in SETTINGS.items())
            statement.rows(f"SELECT {', '.join(settings)}")
        yield connection
