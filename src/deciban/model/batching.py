"""How tables are cut into batches of rows."""

from deciban.tables.table import Frame, Table
from deciban.util.arrays import even_part

# Rows of one batch at most. Batches depend on the table alone, so that threads never change a bit of the result.
BATCH_ROWS = 1 << 16

# Rows, and bytes of text, that are too few to be cut into batches.
UNCUT_ROWS = 64
UNCUT_TEXT = 2 << 20


def row_ranges(rows: int, most: int | None = None) -> list[tuple[int, int]]:
    """The first row of each batch and the one after its last; one empty range where there are no rows.

    Batches are equally long, and if there are several their number is even.
    """
    size = BATCH_ROWS if most is None else min(most, BATCH_ROWS)
    if rows > size:
        size = even_part(rows, size)
    return [(start, min(start + size, rows)) for start in range(0, max(rows, 1), size)]


def rows_per_batch(table: Table, text: int, halved: bool = False) -> int:
    """The most rows of one batch of a table, so that a batch has about `text` bytes of text at most.

    halved: nor more than half of all text, so that two threads have work.
    """
    if table.rows <= UNCUT_ROWS or not isinstance(table, Frame):
        return BATCH_ROWS
    size = table.text_bytes
    if halved:
        text = max(UNCUT_TEXT, min(text, -(-size // 2)))
    return BATCH_ROWS if size <= text else max(UNCUT_ROWS, table.rows * text // size)
