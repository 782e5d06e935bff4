"""The journal: what was learned online since the model file was written, in an SQLite database beside it.

A change is committed, and with it on the disk, before anybody is told of it. The model file is a snapshot: which
changes are in it is known by the hash of its content, which is committed before the file takes its place. So whatever
ends the process, the file and the changes behind it are all that was acknowledged.

The journal is kept small: what the model file has is dropped, and of the rest the oldest beyond a bound.
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
class Numbers:
    """Where learning on line stands.

    sequence: the number of the last change. decay: the logarithm, to base 2, of what is left of a row that was learned
    when the journal began. learned, untuned: rows learned since the last decay and the last tuning. weight_ever: the
    weight of all rows that were ever learned or forgotten, decayed like them: sums of weights may be wrong by a tiny
    share of it. tunings: how often the model was tuned since the journal began. clock: seconds of service so far.
    kept, pending: how many rows have an id, and wait for a label; pending_bytes: of the latter. unverified: how many
    rows were forgotten without an id, of which nobody knows whether they were those of some id.
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

    def left_of(self, weight: float, decay: float) -> float:
        """What is left of a weight that was learned when the decay was `decay`."""
        return weight if decay == self.decay else float(weight * 2.0 ** (self.decay - decay))

    def packed(self) -> str:
        """As text for the journal."""
        return msgspec.json.encode(self).decode()


def unpacked(text: str) -> Numbers:
    """What `Numbers.packed` wrote."""
    return msgspec.json.decode(text, type=Numbers)


# "dcbj", and the form of the tables.
APPLICATION, FORM = 0x6463626A, 2

# How a database of SQLite begins: bytes of its header, of which these are the first.
HEAD, SQLITE_START = 100, b"SQLite format 3\0"

# Bytes of the log of SQLite that are not given back after a checkpoint.
MAX_LOG_BYTES = 8 << 20

# Seconds to wait for a process that is just ending.
LOCK_PATIENCE = 1.0

# What SQLite and the system say where there is no room, or no answer, on the disk.
NO_ROOM = ("SQLITE_FULL", "SQLITE_IOERR")
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
    """A journal that cannot be opened because the disk is full or fails: in contrast to all else, this may pass."""


def opened(path: str, model: str, numbers: Numbers, model_hash: str, classes: str) -> sqlite3.Connection:
    """The database at `path`, which nobody else has open; an error where that cannot be.

    model: the path of the model file, for errors. numbers, model_hash, classes: what a new one starts with.
    """
    try:
        _look(path)
        if not os.path.exists(path):  # rows are nobody else's business, whoever may read the model
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        connection = sqlite3.connect(path, timeout=LOCK_PATIENCE, isolation_level=None, check_same_thread=False)
    except (sqlite3.Error, OSError) as problem:
        raise _unusable(path, model, problem) from None
    try:
        _lock(connection)
        if not connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
            _create(connection, numbers, model_hash, classes)
        _check(connection)
    except (sqlite3.Error, OSError) as problem:
        connection.close()
        raise _unusable(path, model, problem) from None
    return connection


def damaged(path: str, problem: object) -> ModelFileError:
    """The error for a journal whose content cannot be."""
    remedy = "restore it from a copy, or move it away: what was learned since the model file was written is lost then"
    return ModelFileError(f"the journal is damaged ({problem})", place=Place(path), remedy=remedy)


def _unusable(path: str, model: str, problem: sqlite3.Error | OSError) -> ModelFileError:
    """The error for a journal that cannot be opened."""
    if isinstance(problem, sqlite3.Error) and not isinstance(problem, sqlite3.OperationalError):
        return damaged(path, problem)
    if isinstance(problem, sqlite3.Error) and "locked" in str(problem):
        cause, remedy = "another process learns on line with this model", "stop that one, or serve a copy"
        return ModelFileError(cause, place=Place(model), remedy=remedy)
    reason = (problem.strerror if isinstance(problem, OSError) else None) or str(problem)
    name, number = getattr(problem, "sqlite_errorname", ""), getattr(problem, "errno", None)
    if name.startswith(NO_ROOM) or number in NO_ROOM_ERRORS:
        remedy = "nothing is learned until the disk has room; predictions go on"
        return JournalSpaceError(f"the journal cannot be written ({reason})", place=Place(path), remedy=remedy)
    remedy = "give the service a folder it may write to"
    return ModelFileError(f"the journal cannot be opened ({reason})", place=Place(path), remedy=remedy)


def _look(path: str) -> None:
    """A DatabaseError where there is something else than a journal, before SQLite could change it."""
    if not _size(path) or _size(f"{path}-wal"):  # what is in the latter is only known to SQLite
        return
    with open(path, "rb") as file:
        head = file.read(HEAD)
    if head[: len(SQLITE_START)] != SQLITE_START or len(head) < HEAD:
        raise sqlite3.DatabaseError("it is no database")
    if not any(head[60:64] + head[68:72]) and _size(path) == int.from_bytes(head[16:18], "big"):
        return  # a database of one page, without tables: its creation was interrupted, as by a full disk
    _check_form(int.from_bytes(head[68:72], "big"), int.from_bytes(head[60:64], "big"))


def _check_form(application: int, form: int) -> None:
    if application != APPLICATION:
        raise sqlite3.DatabaseError("it is no journal of deciban")
    if form != FORM:
        raise sqlite3.DatabaseError(f"it has form {form}, and this deciban reads form {FORM}")


def _size(path: str) -> int:
    return os.path.getsize(path) if os.path.exists(path) else 0


def _lock(connection: sqlite3.Connection) -> None:
    """Open the database for this process alone, every commit on the disk when it returns.

    Exclusive mode comes first: without it SQLite makes a file for the index of its log, for which a full disk has no
    room.
    """
    connection.execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()
    new = not connection.execute("PRAGMA page_count").fetchone()[0]
    settings = ["journal_mode = WAL", "synchronous = FULL", f"journal_size_limit = {MAX_LOG_BYTES}"]
    for setting in [*(["auto_vacuum = INCREMENTAL"] if new else []), *settings]:
        connection.execute(f"PRAGMA {setting}").fetchall()
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("COMMIT")


def _create(connection: sqlite3.Connection, numbers: Numbers, model_hash: str, classes: str) -> None:
    connection.executescript(
        f"BEGIN; {JOURNAL_TABLES} PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {FORM};"
    )
    connection.execute("INSERT INTO state VALUES (?, ?, ?)", (token_hex(4), numbers.packed(), classes))
    connection.execute("INSERT INTO snapshots VALUES (?, 0, ?)", (model_hash, numbers.packed()))
    connection.execute("COMMIT")


def _check(connection: sqlite3.Connection) -> None:
    """A DatabaseError where the database is damaged, or something else than a journal."""
    names = ("application_id", "user_version")
    _check_form(*(connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names))
    told = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if told != "ok":
        raise sqlite3.DatabaseError(" ".join(told.split()))


# Kinds of changes.
LEARN, FORGET, DECAY = 1, 2, 3


class Change(NamedTuple):
    """A change, as it is replayed: record and label as JSON.

    batch: the number of the first of those that were applied together. row: the number by which the row was learned
    that is forgotten; None where nobody knows.
    """

    sequence: int
    batch: int
    kind: int
    row: int | None
    record: str | None
    label: str | None
    weight: float


class KeptRow(NamedTuple):
    """A row that was learned with an id: its number, label (as JSON), weight, and the decay when it was learned."""

    sequence: int
    label: str
    weight: float
    decay: float


@dataclass(frozen=True)
class Journal:
    """The database, which this process alone has open. name: tells the journals of two models apart."""

    path: str
    connection: sqlite3.Connection
    name: str

    @classmethod
    def open(cls, path: str, model: str, model_hash: str, weight: float, classes: Sequence[Any]) -> "Journal":
        """The journal at `path`, made if there is none; a ModelFileError where it cannot be used with this model.

        model: the path of the model file. weight: of all its rows. classes: its labels, as JSON has them.
        """
        connection = opened(path, model, Numbers(weight_ever=weight), model_hash, as_json(list(classes)))
        try:
            name = connection.execute("SELECT name FROM state").fetchone()[0]
            journal = cls(path, connection, name)
            known = journal.snapshot(model_hash) is not None
            _ = journal.numbers(), journal.classes()
        except (sqlite3.Error, TypeError, msgspec.DecodeError) as problem:  # TypeError: a row is missing
            connection.close()
            raise damaged(path, problem) from problem
        if not known:
            connection.close()
            raise ModelFileError(
                f"the journal belongs to another model than {os.path.basename(model)} has now",
                place=Place(path),
                remedy="restore the model file that it was written for, or move the journal away",
            )
        return journal

    def limit(self, most: int) -> None:
        """Let the database become no larger than so many bytes; what would make it larger is refused as by a full
        disk."""
        size = self.connection.execute("PRAGMA page_size").fetchone()[0]
        self.connection.execute(f"PRAGMA max_page_count = {most // size}").fetchall()

    def close(self) -> None:
        self.connection.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """While it lasts, what is written is not there yet; at its end it is on the disk, or nothing of it is."""
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.connection.execute("COMMIT")
        except BaseException:
            if self.connection.in_transaction:  # SQLite may have ended it
                with suppress(sqlite3.Error):
                    self.connection.execute("ROLLBACK")
            raise

    @contextmanager
    def part(self) -> Iterator[None]:
        """A part of a transaction that is undone alone where it fails."""
        self.connection.execute("SAVEPOINT part")
        try:
            yield
        except BaseException:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK TO part")
                self.connection.execute("RELEASE part")
            raise
        self.connection.execute("RELEASE part")

    # Where learning stands.

    def numbers(self) -> Numbers:
        return unpacked(self._one("SELECT numbers FROM state")[0])

    def classes(self) -> list[Any]:
        """All labels that were ever classes, as JSON has them."""
        return msgspec.json.decode(self._one("SELECT classes FROM state")[0], type=list[Any])

    def save(self, numbers: Numbers) -> None:
        self.connection.execute("UPDATE state SET numbers = ?", (numbers.packed(),))

    def save_classes(self, classes: Sequence[Any]) -> None:
        self.connection.execute("UPDATE state SET classes = ?", (as_json(list(classes)),))

    def snapshot(self, model_hash: str) -> Numbers | None:
        """Where learning stood when the model of this hash was written; None for a model it does not know."""
        found = self._one("SELECT numbers FROM snapshots WHERE hash = ?", model_hash)
        return None if found is None else unpacked(found[0])

    def add_snapshot(self, model_hash: str, numbers: Numbers) -> None:
        """Commit that the model of this hash has all changes up to here."""
        with self.transaction():
            self.connection.execute(
                "INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?)", (model_hash, numbers.sequence, numbers.packed())
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
        """Forget the row that was learned as change `row`, of which `weight` is left."""
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

    def row(self, row_id: str) -> KeptRow | None:
        found = self._one("SELECT sequence, label, weight, decay FROM rows WHERE id = ?", row_id)
        return None if found is None else KeptRow._make(found)

    def record(self, sequence: int) -> str:
        """The record of a row that is kept, as JSON."""
        found: str = self._one("SELECT record FROM rows WHERE sequence = ?", sequence)[0]
        return found

    def newest_rows(self, most: int) -> list[tuple[str, str, float, float]]:
        """Record, label, weight and decay of the rows that were learned last and are kept."""
        return self.connection.execute(
            "SELECT record, label, weight, decay FROM rows WHERE id IS NOT NULL ORDER BY sequence DESC LIMIT ?", (most,)
        ).fetchall()

    # Rows without a label yet.

    def keep_pending(self, row_id: str, clock: float, record: str) -> bool:
        """Whether the row is kept: one that waits by the same id, or is learned by it, stays as it is."""
        if self.row(row_id) is not None:
            return False
        query = "INSERT OR IGNORE INTO pending VALUES (?, ?, ?)"
        return self.connection.execute(query, (row_id, clock, record)).rowcount > 0

    def pending(self, row_id: str) -> str | None:
        """The record of a row that waits for its label, as JSON."""
        found = self._one("SELECT record FROM pending WHERE id = ?", row_id)
        return None if found is None else found[0]

    def drop_pending(self, row_id: str) -> int:
        """Drop a row that waits for its label; its bytes, or 0 where there is none."""
        found = self.pending(row_id)
        self.connection.execute("DELETE FROM pending WHERE id = ?", (row_id,))
        return 0 if found is None else pending_bytes(row_id, found)

    def _change(self, *fields: int | float | str | None) -> None:
        self.connection.execute("INSERT INTO changes VALUES (?, ?, ?, ?, ?, ?, ?)", fields)

    def _one(self, query: str, *values: Any) -> Any:
        return self.connection.execute(query, values).fetchone()


def as_json(value: Any) -> str:
    """A value as the journal writes it."""
    return msgspec.json.encode(value).decode()


def pending_bytes(row_id: str, record: str) -> int:
    """What a row that waits for its label takes."""
    return len(row_id.encode()) + len(record.encode())


# Rows that are dropped in one transaction, so that nobody waits long for it.
DROPPED_AT_ONCE = 2_000

# Pages that are given back to the system at once.
PAGES_AT_ONCE = 2_000


def used_bytes(journal: Journal) -> int:
    """What the journal holds, without free pages."""
    names = ("page_count", "freelist_count", "page_size")
    pages, free, size = (journal.connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names)
    return int((pages - free) * size)


def shorten(journal: Journal, model_hash: str, sequence: int) -> Iterator[None]:
    """Drop the changes that the model file of this hash has, bit by bit; rows that have an id stay."""
    with journal.transaction():
        journal.connection.execute("DELETE FROM snapshots WHERE hash != ?", (model_hash,))
    yield
    for table, column in (("changes", "sequence"), ("rows", "forgotten")):
        while True:
            with journal.transaction():
                dropped = _drop(journal, table, column, f"{column} <= ?", (sequence,), DROPPED_AT_ONCE)
            yield
            if dropped < DROPPED_AT_ONCE:
                break


def drop_oldest_rows(journal: Journal, most: int, sequence: int) -> int:
    """Drop the oldest rows that have an id, which the model file has with all changes up to here; how many it were."""
    return _drop(journal, "rows", "sequence", "id IS NOT NULL AND sequence <= ?", (sequence,), most)


def drop_oldest_pending(journal: Journal, rows: int, size: int = 0, before: float = float("inf")) -> tuple[int, int]:
    """Drop the rows that have waited longest for a label, of those kept before this time: so many, and so many bytes.
    How many it were, and their bytes."""
    dropped, freed = list[tuple[str]](), 0
    waiting = journal.connection.execute("SELECT id, record FROM pending WHERE kept < ? ORDER BY kept", (before,))
    for row_id, record in waiting:
        if len(dropped) >= rows and freed >= size:
            break
        dropped.append((row_id,))
        freed += pending_bytes(row_id, record)
    waiting.close()
    journal.connection.executemany("DELETE FROM pending WHERE id = ?", dropped)
    return len(dropped), freed


def give_back(journal: Journal) -> Iterator[None]:
    """Give free pages back to the system, bit by bit."""
    while journal.connection.execute("PRAGMA freelist_count").fetchone()[0]:
        # executescript: execute would give back one page and stop, there being no rows to fetch
        journal.connection.executescript(f"PRAGMA incremental_vacuum({PAGES_AT_ONCE})")
        yield
    journal.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _drop(journal: Journal, table: str, key: str, where: str, values: tuple[float, ...], most: int) -> int:
    query = f"DELETE FROM {table} WHERE {key} IN (SELECT {key} FROM {table} WHERE {where} ORDER BY {key} LIMIT ?)"
    return journal.connection.execute(query, (*values, most)).rowcount
