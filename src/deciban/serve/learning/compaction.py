"""The journal kept small: what the model file has is dropped, and of the rest the oldest beyond a bound."""

from collections.abc import Iterator

from deciban.serve.learning.journal import Journal, pending_bytes

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
