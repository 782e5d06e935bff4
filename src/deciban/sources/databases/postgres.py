"""PostgreSQL by ADBC's driver: connections, and statements that can be interrupted. Nobody else imports the driver."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, Self, TypeVar

import pyarrow as pa

from deciban.errors import missing_package
from deciban.sources.databases.addresses import Address
from deciban.sources.databases.postgres_errors import cannot_connect, translated_errors
from deciban.sources.databases.waiting import result_of, started

T = TypeVar("T")

# Bytes of a batch that the driver hands over, about.
BATCH_BYTES = 4 << 20

# Seconds for a statement that was cancelled to end.
CANCEL_SECONDS = 5.0


def driver() -> Any:
    """The driver; a UsageError that says how to install it where it is not there."""
    try:
        from adbc_driver_postgresql import dbapi
    except ImportError:
        raise missing_package("reading PostgreSQL", "adbc-driver-postgresql", "postgres") from None
    return dbapi


@contextmanager
def connected(address: Address, sibling: Any = None) -> Iterator[Any]:
    """A connection in a transaction of its own, which is rolled back in the end unless it was committed.

    sibling: another connection to the same database, beside which one more is made in a tenth of the time.
    """
    dbapi = driver()
    connecting = started(lambda: dbapi.connect(address.url) if sibling is None else sibling.adbc_clone())
    try:
        connection = result_of(connecting)
    except dbapi.Error as problem:
        raise cannot_connect(address, str(problem)) from None
    except BaseException:  # an interrupt: what is opened later is closed then
        connecting.add_done_callback(_close_opened)
        raise
    try:
        yield connection
    finally:
        with suppress(Exception):  # the server may be gone
            connection.close()


def _close_opened(connecting: "Future[Any]") -> None:
    if connecting.exception() is None:
        connecting.result().close()


class Statement:
    """What a connection is asked. Waiting for the answer can be interrupted, which cancels the statement.

    place: what messages call what is asked. own: whether the connection is ours, so that an answer may be cut off; one
    that the user has is left in its transaction.
    """

    def __init__(self, connection: Any, place: str, own: bool = True) -> None:
        self._connection, self._place, self._own = connection, place, own
        self._cursor = connection.cursor(adbc_stmt_kwargs={"adbc.postgresql.batch_size_hint_bytes": str(BATCH_BYTES)})
        self._running: Future[Any] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: object, trace: TracebackType | None) -> None:
        if self._running is not None and not self._running.done():
            if self._own or kind not in (None, GeneratorExit):
                with suppress(Exception):
                    self._cursor.adbc_cancel()
            if not wait([self._running], timeout=CANCEL_SECONDS).done:
                return  # the network is silent: what is still used cannot be closed
        with suppress(Exception):
            self._cursor.close()

    def run(self, text: str) -> None:
        """Run what has no answer."""
        self._wait(lambda: self._cursor.execute(text))

    def table(self, text: str) -> pa.Table:
        """A short answer to a query."""
        return self._wait(lambda: self._cursor.execute(text).fetch_arrow_table())

    def rows(self, text: str) -> list[dict[str, Any]]:
        """A short answer to a query, row by row."""
        return list(self.table(text).to_pylist())

    def schema(self, text: str) -> pa.Schema:
        """The columns of a query, which is not run; what it reads from is there until the transaction ends."""
        return self._wait(lambda: self._cursor.adbc_execute_schema(text))

    def reader(self, text: str) -> pa.RecordBatchReader:
        """A long answer to a query, which begins."""
        self._wait(lambda: self._cursor.execute(text))
        results = getattr(self._cursor, "_results", None)  # whose errors have a state, which Arrow's lose
        return getattr(results, "reader", None) or self._cursor.fetch_record_batch()

    def batches(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        """What a reader has: each batch is fetched while the one before is used."""
        batches = iter(reader)
        coming = self._start(lambda: next(batches, None))
        while (batch := self._result(coming)) is not None:
            coming = self._start(lambda: next(batches, None))
            yield batch

    def append(self, table: str, rows: pa.Table, *, new: bool) -> None:
        """Write rows into a temporary table, which is `new`."""
        mode = "create" if new else "append"
        self._wait(lambda: self._cursor.adbc_ingest(table, rows, mode=mode, temporary=True))

    def commit(self) -> None:
        """Make what was written in the transaction last."""
        self._wait(self._connection.commit)

    def _wait(self, action: Callable[[], T]) -> T:
        return self._result(self._start(action))

    def _start(self, action: Callable[[], T]) -> "Future[T]":
        self._running = future = started(action)
        return future

    def _result(self, future: "Future[T]") -> T:
        with translated_errors(self._place, self._connection):
            return result_of(future)
