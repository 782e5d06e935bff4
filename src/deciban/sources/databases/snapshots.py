"""One moment of a PostgreSQL database: every pass over its rows sees them as they were then.

Each pass has a connection of its own, which can be cut off anywhere. As long as a snapshot is held, one more connection
keeps the moment alive, which the others take over from it; the tables that are read cannot be altered meanwhile.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from threading import Lock
from typing import Any, NamedTuple

from deciban.sources.databases.addresses import Address
from deciban.sources.databases.postgres import Statement, connected
from deciban.sources.dialects import POSTGRES

BEGIN = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"

# How rows are read: as UTF-8, and each time in the same order, which several processes, or a scan that joins in where
# another one is, would not keep. A moment that is held is not ended for doing nothing; a query ends with its reader.
SESSION_SETTINGS = {
    "client_encoding": "UTF8",
    "synchronize_seqscans": "off",
    "max_parallel_workers_per_gather": "0",
    "idle_in_transaction_session_timeout": "0",
    "client_connection_check_interval": "2s",
}

# Those that the server knows; on Windows it cannot see that a reader is gone.
SET_THEM = f"""
SELECT set_config(name, wanted, true)
FROM (VALUES {", ".join(f"('{name}', '{value}')" for name, value in SESSION_SETTINGS.items())}) AS asked(name, wanted)
JOIN pg_settings USING (name)
WHERE name <> 'client_connection_check_interval' OR version() !~* 'mingw|visual|windows'
"""


class Held(NamedTuple):
    """A connection that keeps a moment alive, the name of the moment, and what ends it."""

    connection: Any
    moment: str
    closing: ExitStack


class Snapshots:
    """The moments at which a database is read: a new one for each pass, unless one is held, by whomever."""

    own = True  # its connections may be cut off

    def __init__(self, address: Address) -> None:
        self.address = address
        self._lock = Lock()
        self._holders = 0
        self._held: Held | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.address,)

    @contextmanager
    def held(self, place: str, look: Callable[[Statement], object]) -> Iterator[None]:
        """While it lasts, all passes see one moment, and the tables at which one looks first stay as they are."""
        with self._lock:
            if self._held is None:
                self._held = self._hold(place, look)
            self._holders += 1
        try:
            yield
        finally:
            with self._lock:
                self._holders -= 1
                if not self._holders and self._held is not None:
                    held, self._held = self._held, None
                    held.closing.close()

    def _hold(self, place: str, look: Callable[[Statement], object]) -> Held:
        with ExitStack() as closing:
            connection = closing.enter_context(self.reading(place))
            with Statement(connection, place) as statement:
                (found,) = statement.rows("SELECT pg_export_snapshot() AS moment")
                look(statement)
            return Held(connection, found["moment"], closing.pop_all())

    @contextmanager
    def reading(self, place: str) -> Iterator[Any]:
        """A connection in a transaction that changes nothing and sees one moment: that which is held, or its own."""
        held = self._held
        with connected(self.address, None if held is None else held.connection) as connection:
            with Statement(connection, place) as statement:
                statement.run(BEGIN)
                if held is not None:
                    statement.run(f"SET TRANSACTION SNAPSHOT {POSTGRES.literal(held.moment)}")
                statement.rows(SET_THEM)
            yield connection
