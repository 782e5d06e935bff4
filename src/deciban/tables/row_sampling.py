"""Random samples of rows, drawn by the content of rows.

Each row has a hash of its cells. If c rows have the same content, copy k = 0, 1 .. c - 1 has the priority (k + u) / c,
where u is the hash as a number from 0 to 1. The sample consists of the rows with the lowest priorities. So every row is
drawn with the same probability, a frequent content has its share of the sample, and neither the order of the rows nor
their storage matters.

Copies are found by a hash table of at most 262,144 contents. If there are more, the contents least likely to be drawn
are dropped. Copies that are far apart in a longer table may then be counted as fewer.
"""

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from deciban import kernels
from deciban.errors import BadCell
from deciban.tables.cells import as_numbers, is_numeric
from deciban.util.arrays import SLOTS_PER_CONTENT, SPARE, Floats, Integers
from deciban.util.sparse import SparseRows

RowHashes = npt.NDArray[np.uint64]

# Rows hashed at a time, which bounds memory.
HASHED_ROWS = 1 << 17

# Initial size of the table of contents. Each entry takes 32 bytes.
FIRST_CONTENTS = 1 << 12

# Maximum size of that table, unless the sample is large.
MAX_CONTENTS = 1 << 18

# Share of contents kept when the table is full: those most likely to be drawn.
NEAR = 0.25

# Slots examined to find the threshold for that share.
LOOKED_AT_SLOTS = 1 << 12

# Approximate maximum size of a sample in bytes.
SAMPLE_BYTES = 1 << 28

# Minimum number of rows in a sample of long rows.
LONG_ROWS = 1_000


def row_hashes(first: int, rows: int) -> RowHashes:
    """Return hashes of the row numbers first, first + 1, ...: what the generator splitmix64 returns there."""
    z = np.arange(first + 1, first + rows + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


def sample_places(size: int, max_rows: int) -> Integers:
    """Return at most `max_rows` of the places 0 .. size - 1, always the same ones, in order."""
    if size <= max_rows:
        return np.arange(size)
    places, hashes = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.uint64)
    for first in range(0, size, HASHED_ROWS):
        more = row_hashes(first, min(HASHED_ROWS, size - first))
        hashes, places = np.append(hashes, more), np.append(places, np.arange(first, first + more.size))
        lowest = np.argpartition(hashes, max_rows - 1)[:max_rows] if hashes.size > max_rows else np.arange(hashes.size)
        hashes, places = hashes[lowest], places[lowest]
    return np.sort(places)


def rows_that_fit(max_rows: int, row_bytes: float) -> int:
    """Return the number of rows in a sample if rows have this many bytes; `max_rows` if they are short."""
    return min(max_rows, max(LONG_ROWS, int(SAMPLE_BYTES / max(row_bytes, 1.0))))


# Hashes of contents


def content_hashes(columns: Iterable[pa.ChunkedArray | pa.Array], rows: int) -> RowHashes:
    """Return a hash of the cells of each row, never 0. Equal numbers have equal hashes in all types."""
    out = np.zeros(rows, dtype=np.uint64)
    for column in columns:
        _hash_cells(column, out)
    return out


def matrix_hashes(matrix: npt.NDArray[np.generic]) -> RowHashes:
    """Return the hashes of the rows of a matrix, equal to those of the same numbers in columns."""
    out = np.zeros(matrix.shape[0], dtype=np.uint64)
    for column in np.asarray(matrix, dtype=np.float64).T:
        kernels.row_hashes.hash_numbers(np.ascontiguousarray(column).view(np.uint64), out)
    return out


def sparse_hashes(cells: SparseRows) -> RowHashes:
    """Return the hashes of sparse rows, from the places and values of their stored cells."""
    place, value = np.zeros((2, cells.stored.size), dtype=np.uint64)
    stored = cells.with_values(cells.stored)
    kernels.row_hashes.hash_numbers(stored.data.astype(np.float64).view(np.uint64), value)
    kernels.row_hashes.hash_numbers(stored.indices.astype(np.float64).view(np.uint64), place)
    ends = np.append(np.uint64(0), np.cumsum(value * place, dtype=np.uint64))
    return np.asarray(ends[stored.indptr[1:]] - ends[stored.indptr[:-1]])


def with_cells(hashes: RowHashes, cells: pa.ChunkedArray | pa.Array) -> RowHashes:
    """Return the hashes of rows with one more cell."""
    out = hashes.copy()
    _hash_cells(cells, out)
    return out


def _hash_cells(column: pa.ChunkedArray | pa.Array, out: RowHashes) -> None:
    """Add the next cell of each row to its hash."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):  # too long for one array
        array = pa.concat_arrays(array.cast(pa.large_string()).chunks)
    kind = array.type
    if pa.types.is_dictionary(kind):
        known = np.append(content_hashes([array.dictionary], len(array.dictionary)), np.uint64(0))
        place = array.indices.fill_null(len(array.dictionary)).to_numpy(zero_copy_only=False)
        np.add(out * np.uint64(31), known[place], out=out)
    elif is_numeric(kind):
        try:
            numbers = np.ascontiguousarray(as_numbers(array))
        except (BadCell, pa.ArrowException):  # raised later, when a family reads the column
            numbers = np.full(len(array), np.nan)
        kernels.row_hashes.hash_numbers(numbers.view(np.uint64), out)
    elif pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        there = array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else np.empty(0, dtype=np.bool_)
        offsets = np.frombuffer(array.buffers()[1], np.int64, len(array) + 1, 8 * array.offset)
        first, last = (int(offsets[0]), int(offsets[-1])) if offsets.size else (0, 0)
        text = np.zeros(last - first + SPARE, dtype=np.uint8)
        text[: last - first] = np.frombuffer(array.buffers()[2] or b"", np.uint8)[first:last]
        kernels.row_hashes.hash_texts(offsets - first, text, there, out)
    elif pa.types.is_string(kind) or pa.types.is_string_view(kind) or pa.types.is_binary(kind):
        _hash_cells(array.cast(pa.large_binary()), out)
    else:  # no family supports this type
        out *= np.uint64(31)


# Samples


def lowest_priorities(hashes: RowHashes, counts: Integers, max_rows: int) -> tuple[Integers, Floats]:
    """Return the contents of the rows with the lowest priorities, one per row, and the priorities, in order.

    counts: number of rows with each content.
    """
    lots = ((hashes >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    enough = (max_rows + hashes.size) / counts.sum()  # at least max_rows rows have a priority up to this
    copies = np.minimum(np.maximum(np.floor(counts * enough - lots) + 1, 0), counts).astype(np.int64)
    content = np.repeat(np.arange(hashes.size), copies)
    copy = np.arange(content.size) - np.repeat(np.cumsum(copies) - copies, copies)
    priority = (copy + lots[content]) / counts[content]
    order = np.lexsort((copy, hashes[content], priority))[:max_rows]
    return content[order], priority[order]


def places_by_content(cells: pa.Array, max_rows: int) -> Integers:
    """Return at most `max_rows` places of cells, those with the lowest priorities, in order."""
    if len(cells) <= max_rows:
        return np.arange(len(cells))
    known, first, counts = np.unique(content_hashes([cells], len(cells)), return_index=True, return_counts=True)
    return np.asarray(first[lowest_priorities(known, counts, max_rows)[0]])


class RowSampler:
    """Sampler for the rows of a stream of tables; `rows` is the number of rows seen so far."""

    def __init__(self, max_rows: int) -> None:
        self.max_rows = max_rows
        self.rows = 0
        self._waiting: list[tuple[pa.Table, Callable[[], RowHashes]]] = []  # while all rows fit into the sample
        self._pieces: list[pa.Table] = []
        self._hashes: list[RowHashes] = []
        self._held = 0
        self._known = 0
        self._limit = 1.0  # upper bound of the priorities in the sample
        self._contents = _empty(FIRST_CONTENTS)

    def add(self, table: pa.Table, hashes: Callable[[], RowHashes]) -> None:
        """Add rows. `hashes` computes the hashes of their contents, only if needed."""
        self.rows += table.num_rows
        self._waiting.append((table, hashes))
        if self.rows > self.max_rows:
            self._count_waiting()

    def table(self) -> pa.Table:
        """Return the sample in the order of priorities; all rows in their order if they fit."""
        if self.rows <= self.max_rows and not self._pieces:
            return pa.concat_tables([table for table, _ in self._waiting])
        self._count_waiting()
        hashes, counts = self._count_held()
        content, _ = lowest_priorities(hashes, counts, self.max_rows)
        return pa.concat_tables(self._pieces).take(pa.array(content))

    def _count_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        for table, hashes in waiting:
            self._count(table, np.maximum(hashes(), np.uint64(1)))

    def _count(self, table: pa.Table, hashes: RowHashes) -> None:
        drawn, row = np.zeros(hashes.size, dtype=np.uint8), 0
        while True:
            row, self._known = kernels.row_hashes.count_contents(
                self._contents, hashes, row, self._known, self._limit, drawn
            )
            if row == hashes.size:
                break
            self._make_room()
        kept = np.flatnonzero(drawn)
        if kept.size or not self._pieces:
            self._pieces.append(table if kept.size == table.num_rows else table.take(pa.array(kept)))
            self._hashes.append(hashes[kept])
            self._held += kept.size
        if self._held > 2 * self.max_rows:
            self._thin()

    def _count_held(self) -> tuple[RowHashes, Integers]:
        """Return the contents of held rows, and the number of rows seen with each."""
        hashes = np.concatenate(self._hashes)
        counts = np.empty(hashes.size, dtype=np.int64)
        kernels.row_hashes.look_up_contents(self._contents, hashes, counts)
        return hashes, counts

    def _thin(self) -> None:
        """Keep only the held contents with the lowest priorities."""
        hashes, counts = self._count_held()
        content, priority = lowest_priorities(hashes, counts, self.max_rows)
        self._limit = float(priority[-1])
        kept = np.zeros(hashes.size, dtype=np.bool_)
        kept[content] = True
        kernels.row_hashes.release_contents(self._contents, hashes[~kept])
        self._pieces = [pa.concat_tables(self._pieces).take(pa.array(np.flatnonzero(kept)))]
        self._hashes = [hashes[kept]]
        self._held = int(kept.sum())

    def _make_room(self) -> None:
        """Replace the table of contents by a larger one; at the maximum size, keep those most likely to be drawn."""
        room, furthest = 4 * self._known, np.inf
        if room > max(MAX_CONTENTS, 8 * self.max_rows):
            keys, counts = (part[:LOOKED_AT_SLOTS] for part in self._contents)
            some = np.flatnonzero(keys)
            room = max(self._known, 2 * int(np.count_nonzero(self._contents.counts < 0)))
            distance = (keys[some] >> np.uint64(11)) * 2.0**-53 - np.abs(counts[some]) * self._limit
            furthest = float(np.quantile(distance, NEAR))
        before, self._contents = self._contents, _empty(room)
        self._known = kernels.row_hashes.move_contents(before, self._contents, self._limit, furthest)


def _empty(contents: int) -> "kernels.row_hashes.Contents":
    """Return an empty table with room for at least this many contents."""
    slots = 1 << (SLOTS_PER_CONTENT * contents - 1).bit_length()
    return kernels.row_hashes.Contents(np.zeros(slots, dtype=np.uint64), np.zeros(slots, dtype=np.int64))
