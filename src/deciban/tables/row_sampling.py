"""Rows drawn by lot: those with the lowest lots, so that a stream of unknown length and a table draw the same rows."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from deciban import kernels
from deciban.arrays import Integers

RowHashes = npt.NDArray[np.uint64]

# Of so many rows the lots are drawn at once: memory does not grow with their number.
PART = 1 << 17


def row_hashes(first: int, rows: int) -> RowHashes:
    """The lots of so many rows from `first` on."""
    drawn = np.empty(rows, dtype=np.uint64)
    kernels.hash_rows(first, drawn)
    return drawn


def drawn(size: int, most: int) -> Integers:
    """At most so many of the places 0 .. size - 1, the same ones each time, in order."""
    if size <= most:
        return np.arange(size)
    drawing = RowSampler(most)
    for first in range(0, size, PART):
        drawing.add(pa.table({"place": np.arange(first, min(first + PART, size))}))
    return np.asarray(drawing.table().column(0).to_numpy())


def _lowest(of: RowHashes, most: int) -> Integers:
    return np.argpartition(of, most - 1)[:most] if of.size > most else np.arange(of.size)


class RowSampler:
    """The rows with the lowest lots of a stream of tables, whose rows are numbered on."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.rows = 0
        self._pieces: list[pa.Table] = []
        self._places: list[Integers] = []
        self._lots: list[RowHashes] = []
        self._limit = np.uint64(2**64 - 1)
        self._held = 0

    def add(self, table: pa.Table) -> None:
        every = row_hashes(self.rows, table.num_rows)
        kept = np.flatnonzero(every <= self._limit)
        if kept.size or not self._pieces:
            self._pieces.append(table if kept.size == table.num_rows else table.take(pa.array(kept)))
            self._places.append(kept + self.rows)
            self._lots.append(every[kept])
            self._held += kept.size
        self.rows += table.num_rows
        if self._held > 2 * self.most:
            self._thin()

    def _thin(self) -> None:
        """Keep the lowest lots of what is held."""
        every = np.concatenate(self._lots)
        kept = np.sort(_lowest(every, self.most))
        self._pieces = [pa.concat_tables(self._pieces).take(pa.array(kept))]
        self._places = [np.concatenate(self._places)[kept]]
        self._lots = [every[kept]]
        self._held = kept.size
        self._limit = every[kept].max()

    def table(self) -> pa.Table:
        """The rows that were drawn, in their order."""
        if self._held > self.most:
            self._thin()
        return pa.concat_tables(self._pieces)


# Bytes of the rows that are drawn by lot, about; a thousand rows are drawn in any case.
SAMPLE_BYTES = 1 << 28


LONG_ROWS = 1_000


def rows_that_fit(most: int, row_bytes: float) -> int:
    """How many rows of so many bytes are drawn, if it were `most` of short ones."""
    return min(most, max(LONG_ROWS, int(SAMPLE_BYTES / max(row_bytes, 1.0))))
