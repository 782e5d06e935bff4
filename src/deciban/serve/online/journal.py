"""Journal of online changes since the model file was written: an SQLite database next to it.

A change is committed, and thus on disk, before it is acknowledged. The model file is a snapshot. The journal records by
the hash of its content which changes it includes, and commits that before the file is replaced. So however the process
ends, the file and the changes after it are exactly what was acknowledged.

The journal is kept small: changes included in the model file are dropped, and so are the oldest rows beyond a limit.
"""

import errno
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from secrets import token_hex
from typing import Any, NamedTuple

import msgspec

from deciban.errors import ModelFileError, Place


@dataclass
class Counters:
    """Persistent counters of the online learner.

    sequence: number of the last change. decay: logarithm (base 2) of the remaining weight of a row learned when the
    journal was created. learned, untuned: rows learned since the last decay step and since the last tuning.
    weight_ever: weight of all rows ever learned or forgotten, decayed; sums of weights may be off by a tiny share of
    it. tunings: number of retunes since the journal was created. clock: uptime in seconds, over all runs. kept,
    pending: number of retained rows with an id, and of rows waiting for a label; pending_bytes: size of the latter.
    unverified: number of rows forgotten without an id, which may have been learned with one. unretained: number of rows
    learned since the model was fitted that are not retained, because they had no id or were dropped.
    """

    sequence: int = 0
    decay: float = 0.0
    learned: int = 0
    untuned: int = 0
    weight_ever: float = 0.0
    tunings: int = 0
    clock: float = 0.0
    kept: int = 0
    pending: int = 0
    pending_bytes: int = 0
    unverified: int = 0
    unretained: int = 0

    def decay_weight(self, weight: float, decay: float) -> float:
        """Return the remaining weight of a row learned when the decay was `decay`."""
        return weight if decay == self.decay else float(weight * 2.0 ** (self.decay - decay))

    def pack(self) -> str:
        """Return the counters as JSON text."""
        return msgspec.json.encode(self).decode()


def unpack_counters(text: str) -> Counters:
    """Return counters from the text of `Counters.pack`."""
    return msgspec.json.decode(text, type=Counters)


# Application id of journals in SQLite: "dcbj".
APPLICATION_ID = 0x6463626A

# Version of the tables.
FORMAT_VERSION = 2

# Size of the header of an SQLite database.
HEADER_BYTES = 100

# First bytes of that header.
SQLITE_START = b"SQLite format 3\0"

# Size to which the write-ahead log is truncated after a checkpoint.
MAX_LOG_BYTES = 8 << 20

# Seconds to wait for a process that is shutting down.
LOCK_TIMEOUT = 1.0

# SQLite errors of a full or failing disk.
NO_ROOM = ("SQLITE_FULL", "SQLITE_IOERR")

# System errors of a full or failing disk.
NO_ROOM_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EIO)

JOURNAL_TABLES = """
CREATE TABLE state (name TEXT NOT NULL, numbers TEXT NOT NULL, classes TEXT NOT NULL);
CREATE TABLE snapshots (hash TEXT PRIMARY KEY, sequence INTEGER NOT NULL, numbers TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE changes (
    sequence INTEGER PRIMARY KEY, batch INTEGER NOT NULL, kind INTEGER NOT NULL, row INTEGER, record TEXT, label TEXT,
    weight REAL NOT NULL);
CREATE TABLE rows (
    sequence INTEGER PRIMARY KEY, id TEXT, record TEXT NOT NULL, label TEXT NOT NULL, weight REAL NOT NULL,
    decay REAL NOT NULL, forgotten INTEGER);
CREATE UNIQUE INDEX rows_by_id ON rows (id) WHERE id IS NOT NULL;
CREATE INDEX rows_forgotten ON rows (forgotten) WHERE forgotten IS NOT NULL;
CREATE TABLE pending (id TEXT PRIMARY KEY, kept REAL NOT NULL, record TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX pending_by_age ON pending (kept);
"""


class JournalSpaceError(ModelFileError):
    """Journal that cannot be opened because the disk is full or failing, which may be temporary."""


def open_database(path: str, model: str, counters: Counters, model_hash: str, classes: str) -> sqlite3.Connection:
    """Open the database at `path` for this process only; raise an error if that fails.

    model: path of the model file, for errors. counters, model_hash, classes: initial content of a new journal.
    """
    try:
        _check_file(path)
        if not os.path.exists(path):  # rows are private, even if others can read the model
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        connection = sqlite3.connect(path, timeout=LOCK_TIMEOUT, isolation_level=None, check_same_thread=False)
    except (sqlite3.Error, OSError) as problem:
        raise _make_open_error(path, model, problem) from None
    try:
        _lock(connection)
        if not connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
            _create(connection, counters, model_hash, classes)
        _check(connection)
    except (sqlite3.Error, OSError) as problem:
        connection.close()
        raise _make_open_error(path, model, problem) from None
    return connection


def make_damage_error(path: str, problem: object) -> ModelFileError:
    """Return the error for a damaged journal."""
    remedy = "restore it from a backup, or move it away and lose the changes since the last snapshot"
    return ModelFileError(f"the journal is damaged ({problem})", place=Place(path), remedy=remedy)


def _make_open_error(path: str, model: str, problem: sqlite3.Error | OSError) -> ModelFileError:
    """Return the error for a journal that cannot be opened."""
    if isinstance(problem, sqlite3.Error) and not isinstance(problem, sqlite3.OperationalError):
        return make_damage_error(path, problem)
    if isinstance(problem, sqlite3.Error) and "locked" in str(problem):
        cause, remedy = "the model is in use by another process", "stop it, or serve a copy"
        return ModelFileError(cause, place=Place(model), remedy=remedy)
    reason = (problem.strerror if isinstance(problem, OSError) else None) or str(problem)
    name, number = getattr(problem, "sqlite_errorname", ""), getattr(problem, "errno", None)
    if name.startswith(NO_ROOM) or number in NO_ROOM_ERRORS:
        remedy = "free disk space; until then only predictions are available"
        return JournalSpaceError(f"cannot write the journal ({reason})", place=Place(path), remedy=remedy)
    remedy = "make the folder of the model writable for the service"
    return ModelFileError(f"cannot open the journal ({reason})", place=Place(path), remedy=remedy)


def _check_file(path: str) -> None:
    """Raise a DatabaseError if the file is not a journal, before SQLite can change it."""
    if not _size(path) or _size(f"{path}-wal"):  # only SQLite can read the latter
        return
    with open(path, "rb") as file:
        head = file.read(HEADER_BYTES)
    if head[: len(SQLITE_START)] != SQLITE_START or len(head) < HEADER_BYTES:
        raise sqlite3.DatabaseError("not a database")
    if not any(head[60:64] + head[68:72]) and _size(path) == int.from_bytes(head[16:18], "big"):
        return  # one page without tables: its creation was interrupted, e.g. by a full disk
    _check_format(int.from_bytes(head[68:72], "big"), int.from_bytes(head[60:64], "big"))


def _check_format(application: int, version: int) -> None:
    if application != APPLICATION_ID:
        raise sqlite3.DatabaseError("not a deciban journal")
    if version != FORMAT_VERSION:
        raise sqlite3.DatabaseError(f"it has format version {version}, expected {FORMAT_VERSION}")


def _size(path: str) -> int:
    return os.path.getsize(path) if os.path.exists(path) else 0


def _lock(connection: sqlite3.Connection) -> None:
    """Lock the database for this process, and make every commit durable.

    Exclusive mode comes first: without it SQLite creates a file for the index of its log, which fails on a full disk.
    """
    connection.execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()
    new = not connection.execute("PRAGMA page_count").fetchone()[0]
    settings = ["journal_mode = WAL", "synchronous = FULL", f"journal_size_limit = {MAX_LOG_BYTES}"]
    for setting in [*(["auto_vacuum = INCREMENTAL"] if new else []), *settings]:
        connection.execute(f"PRAGMA {setting}").fetchall()
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("COMMIT")


def _create(connection: sqlite3.Connection, counters: Counters, model_hash: str, classes: str) -> None:
    connection.executescript(
        f"BEGIN; {JOURNAL_TABLES} PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {FORMAT_VERSION};"
    )
    connection.execute("INSERT INTO state VALUES (?, ?, ?)", (token_hex(4), counters.pack(), classes))
    connection.execute("INSERT INTO snapshots VALUES (?, 0, ?)", (model_hash, counters.pack()))
    connection.execute("COMMIT")


def _check(connection: sqlite3.Connection) -> None:
    """Raise a DatabaseError if the database is damaged or not a journal."""
    names = ("application_id", "user_version")
    _check_format(*(connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names))
    result = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if result != "ok":
        raise sqlite3.DatabaseError(" ".join(result.split()))


# Change that learns a row.
LEARN = 1

# Change that forgets a row.
FORGET = 2

# Change that decays all counts.
DECAY = 3


class Change(NamedTuple):
    """Change to replay; record and label as JSON.

    batch: number of the first change applied together with this one. row: number of the change that learned a forgotten
    row; None if unknown.
    """

    sequence: int
    batch: int
    kind: int
    row: int | None
    record: str | None
    label: str | None
    weight: float


class RetainedRow(NamedTuple):
    """Row learned with an id: its sequence number, label (as JSON), weight, and the decay at that time."""

    sequence: int
    label: str
    weight: float
    decay: float


@dataclass(frozen=True)
class Journal:
    """Open journal, locked by this process. name: identifies the journal."""

    path: str
    connection: sqlite3.Connection
    name: str

    @classmethod
    def open(cls, path: str, model: str, model_hash: str, weight: float, classes: Sequence[Any]) -> "Journal":
        """Open or create the journal; raise a ModelFileError if it does not belong to this model.

        model: path of the model file. weight: of all its rows. classes: its labels as JSON values.
        """
        connection = open_database(path, model, Counters(weight_ever=weight), model_hash, as_json(list(classes)))
        try:
            name = connection.execute("SELECT name FROM state").fetchone()[0]
            journal = cls(path, connection, name)
            known = journal.snapshot(model_hash) is not None
            _ = journal.counters(), journal.classes()
        except (sqlite3.Error, TypeError, msgspec.DecodeError) as problem:  # TypeError: a row is missing
            connection.close()
            raise make_damage_error(path, problem) from problem
        if not known:
            connection.close()
            raise ModelFileError(
                f"the journal does not belong to the current content of {os.path.basename(model)}",
                place=Place(path),
                remedy="restore the matching model file, or move the journal away",
            )
        return journal

    def set_max_bytes(self, max_bytes: int) -> None:
        """Limit the size of the database; beyond it, writes fail as on a full disk."""
        size = self.connection.execute("PRAGMA page_size").fetchone()[0]
        self.connection.execute(f"PRAGMA max_page_count = {max_bytes // size}").fetchall()

    def close(self) -> None:
        self.connection.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run a transaction: at its end, all changes are on disk, or none."""
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.connection.execute("COMMIT")
        except BaseException:
            if self.connection.in_transaction:  # SQLite may have rolled it back
                with suppress(sqlite3.Error):
                    self.connection.execute("ROLLBACK")
            raise

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Run a part of a transaction that is rolled back alone if it fails."""
        self.connection.execute("SAVEPOINT part")
        try:
            yield
        except BaseException:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK TO part")
                self.connection.execute("RELEASE part")
            raise
        self.connection.execute("RELEASE part")

    # Counters and snapshots.

    def counters(self) -> Counters:
        return unpack_counters(self._one("SELECT numbers FROM state")[0])

    def classes(self) -> list[Any]:
        """Return all labels that have ever been classes, as JSON values."""
        return msgspec.json.decode(self._one("SELECT classes FROM state")[0], type=list[Any])

    def save(self, counters: Counters) -> None:
        self.connection.execute("UPDATE state SET numbers = ?", (counters.pack(),))

    def save_classes(self, classes: Sequence[Any]) -> None:
        self.connection.execute("UPDATE state SET classes = ?", (as_json(list(classes)),))

    def snapshot(self, model_hash: str) -> Counters | None:
        """Return the counters at the time when the model with this hash was written; None for an unknown model."""
        found = self._one("SELECT numbers FROM snapshots WHERE hash = ?", model_hash)
        return None if found is None else unpack_counters(found[0])

    def add_snapshot(self, model_hash: str, counters: Counters) -> None:
        """Commit that the model with this hash includes all changes up to these counters."""
        with self.transaction():
            self.connection.execute(
                "INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?)", (model_hash, counters.sequence, counters.pack())
            )

    # Changes.

    def learn(
        self, sequence: int, batch: int, row_id: str | None, record: str, label: str, weight: float, decay: float
    ) -> None:
        if row_id is None:
            self._change(sequence, batch, LEARN, None, record, label, weight)
            return
        self._change(sequence, batch, LEARN, sequence, None, None, weight)
        self.connection.execute(
            "INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?, NULL)", (sequence, row_id, record, label, weight, decay)
        )

    def forget(self, sequence: int, batch: int, record: str, label: str, weight: float) -> None:
        self._change(sequence, batch, FORGET, None, record, label, weight)

    def forget_row(self, sequence: int, batch: int, row: int, weight: float) -> None:
        """Forget the row learned as change `row`, with its remaining weight."""
        self._change(sequence, batch, FORGET, row, None, None, weight)
        self.connection.execute("UPDATE rows SET id = NULL, forgotten = ? WHERE sequence = ?", (sequence, row))

    def decay(self, sequence: int, batch: int, amount: float) -> None:
        self._change(sequence, batch, DECAY, None, None, None, amount)

    def changes_after(self, sequence: int) -> Iterator[Change]:
        return map(
            Change._make,
            self.connection.execute(
                "SELECT c.sequence, c.batch, c.kind, c.row, coalesce(c.record, r.record), coalesce(c.label, r.label), "
                "c.weight FROM changes c LEFT JOIN rows r ON r.sequence = c.row "
                "WHERE c.sequence > ? ORDER BY c.sequence",
                (sequence,),
            ),
        )

    # Rows with an id.

    def row(self, row_id: str) -> RetainedRow | None:
        found = self._one("SELECT sequence, label, weight, decay FROM rows WHERE id = ?", row_id)
        return None if found is None else RetainedRow._make(found)

    def record(self, sequence: int) -> str:
        """Return the record of a retained row, as JSON."""
        found: str = self._one("SELECT record FROM rows WHERE sequence = ?", sequence)[0]
        return found

    def newest_rows(self, max_rows: int) -> list[tuple[str, str, float, float]]:
        """Return record, label, weight and decay of the most recently learned retained rows."""
        return self.connection.execute(
            "SELECT record, label, weight, decay FROM rows WHERE id IS NOT NULL ORDER BY sequence DESC LIMIT ?",
            (max_rows,),
        ).fetchall()

    def retained_rows(self) -> Iterator[tuple[str, str, str, float, float]]:
        """Yield id, record, label, weight and decay of each retained row, in the order of learning."""
        return self.connection.execute(
            "SELECT id, record, label, weight, decay FROM rows WHERE id IS NOT NULL ORDER BY sequence"
        )

    # Rows waiting for a label.

    def add_pending(self, row_id: str, clock: float, record: str) -> bool:
        """Retain a row until it is labeled; return False if its id is already pending or learned."""
        if self.row(row_id) is not None:
            return False
        query = "INSERT OR IGNORE INTO pending VALUES (?, ?, ?)"
        return self.connection.execute(query, (row_id, clock, record)).rowcount > 0

    def read_pending(self, row_id: str) -> str | None:
        """Return the record of a row waiting for its label, as JSON."""
        found = self._one("SELECT record FROM pending WHERE id = ?", row_id)
        return None if found is None else found[0]

    def drop_pending(self, row_id: str) -> int:
        """Drop a row waiting for its label; return its size, or 0 if it was not found."""
        found = self.read_pending(row_id)
        self.connection.execute("DELETE FROM pending WHERE id = ?", (row_id,))
        return 0 if found is None else measure_pending(row_id, found)

    def _change(self, *fields: int | float | str | None) -> None:
        self.connection.execute("INSERT INTO changes VALUES (?, ?, ?, ?, ?, ?, ?)", fields)

    def _one(self, query: str, *values: Any) -> Any:
        return self.connection.execute(query, values).fetchone()


def as_json(value: Any) -> str:
    """Return a value as JSON text."""
    return msgspec.json.encode(value).decode()


def measure_pending(row_id: str, record: str) -> int:
    """Return the size of a row waiting for its label."""
    return len(row_id.encode()) + len(record.encode())


# Maximum number of rows dropped per transaction, so that requests do not wait long.
MAX_DROPPED_ROWS = 2_000

# Maximum number of pages released at a time, for the same reason.
MAX_RELEASED_PAGES = 2_000


def measure_used(journal: Journal) -> int:
    """Return the size of the journal without free pages."""
    names = ("page_count", "freelist_count", "page_size")
    pages, free, size = (journal.connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names)
    return int((pages - free) * size)


def drop_saved_changes(journal: Journal, model_hash: str, sequence: int) -> Iterator[None]:
    """Drop the changes included in the model file with this hash, step by step; rows with ids stay."""
    with journal.transaction():
        journal.connection.execute("DELETE FROM snapshots WHERE hash != ?", (model_hash,))
    yield
    for table, column in (("changes", "sequence"), ("rows", "forgotten")):
        while True:
            with journal.transaction():
                dropped = _drop(journal, table, column, f"{column} <= ?", (sequence,), MAX_DROPPED_ROWS)
            yield
            if dropped < MAX_DROPPED_ROWS:
                break


def drop_oldest_rows(journal: Journal, max_rows: int, sequence: int) -> int:
    """Drop the oldest rows with ids that are included in the model file; return their number."""
    return _drop(journal, "rows", "sequence", "id IS NOT NULL AND sequence <= ?", (sequence,), max_rows)


def drop_oldest_pending(journal: Journal, rows: int, size: int = 0, before: float = float("inf")) -> tuple[int, int]:
    """Drop the oldest rows waiting for a label, until both limits are met; return their number and size.

    rows, size: minimum number and bytes to drop. before: only drop rows older than this time.
    """
    dropped, freed = list[tuple[str]](), 0
    waiting = journal.connection.execute("SELECT id, record FROM pending WHERE kept < ? ORDER BY kept", (before,))
    for row_id, record in waiting:
        if len(dropped) >= rows and freed >= size:
            break
        dropped.append((row_id,))
        freed += measure_pending(row_id, record)
    waiting.close()
    journal.connection.executemany("DELETE FROM pending WHERE id = ?", dropped)
    return len(dropped), freed


def release_pages(journal: Journal) -> Iterator[None]:
    """Return free pages to the file system, step by step."""
    while journal.connection.execute("PRAGMA freelist_count").fetchone()[0]:
        # executescript: execute would stop after one page, for lack of rows to fetch
        journal.connection.executescript(f"PRAGMA incremental_vacuum({MAX_RELEASED_PAGES})")
        yield
    journal.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _drop(journal: Journal, table: str, key: str, where: str, values: tuple[float, ...], max_rows: int) -> int:
    query = f"DELETE FROM {table} WHERE {key} IN (SELECT {key} FROM {table} WHERE {where} ORDER BY {key} LIMIT ?)"
    return journal.connection.execute(query, (*values, max_rows)).rowcount
