"""The database of a journal: made, opened for this process alone, and refused where it is something else."""

import errno
import os
import sqlite3
from secrets import token_hex

from deciban.errors import ModelFileError, naming_source
from deciban.serve.learning.numbers import Numbers

# "dcbj", and the form of the tables.
APPLICATION, FORM = 0x6463626A, 2

# How a database of SQLite begins: bytes of its header, of which these are the first.
HEAD, SQLITE_START = 100, b"SQLite format 3\0"

# Bytes of the log of SQLite that are not given back after a checkpoint.
LONGEST_LOG = 8 << 20

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
    return naming_source(ModelFileError(f"{path}: the journal is damaged ({problem}); {remedy}"))


def _unusable(path: str, model: str, problem: sqlite3.Error | OSError) -> ModelFileError:
    """The error for a journal that cannot be opened."""
    if isinstance(problem, sqlite3.Error) and not isinstance(problem, sqlite3.OperationalError):
        return damaged(path, problem)
    if isinstance(problem, sqlite3.Error) and "locked" in str(problem):
        cause = "another process learns on line with this model; stop that one, or serve a copy"
        return naming_source(ModelFileError(f"{model}: {cause}"))
    reason = (problem.strerror if isinstance(problem, OSError) else None) or str(problem)
    name, number = getattr(problem, "sqlite_errorname", ""), getattr(problem, "errno", None)
    if name.startswith(NO_ROOM) or number in NO_ROOM_ERRORS:
        remedy = "nothing is learned until the disk has room; predictions go on"
        return naming_source(JournalSpaceError(f"{path}: the journal cannot be written ({reason}); {remedy}"))
    remedy = "give the service a folder it may write to"
    return naming_source(ModelFileError(f"{path}: the journal cannot be opened ({reason}); {remedy}"))


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
    settings = ["journal_mode = WAL", "synchronous = FULL", f"journal_size_limit = {LONGEST_LOG}"]
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
