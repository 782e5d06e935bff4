"""What was learned on line since the model file was written, in an SQLite database beside it.

A change is committed, and with it on the disk, before anybody is told of it. The model file is a snapshot: which
changes are in it is known by the hash of its content, which is committed before the file takes its place. So whatever
ends the process, the file and the changes behind it are all that was acknowledged.
"""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from deciban.errors import ModelFileError, naming_source
from deciban.serve.learning.journal_database import damaged, opened
from deciban.serve.learning.numbers import Numbers, unpacked

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
            raise naming_source(
                ModelFileError(
                    f"{path}: the journal belongs to another model than {os.path.basename(model)} has now; restore the "
                    f"model file that it was written for, or move the journal away"
                )
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
