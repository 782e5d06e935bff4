"""Random samples of rows: those whose numbers have the lowest hashes.

So a stream of unknown length and a table in memory sample the same rows, each time.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from deciban import kernels
from deciban.arrays import Integers

RowHashes = npt.NDArray[np.uint64]

# Rows that are hashed at a time: memory does not grow with their number.
HASHED_ROWS = 1 << 17


def row_hashes(first: int, rows: int) -> RowHashes:
    """The hashes of the numbers of so many rows from `first` on."""
    hashes = np.empty(rows, dtype=np.uint64)
    kernels.hash_rows(first, hashes)
    return hashes


def sampled_places(size: int, most: int) -> Integers:
    """At most so many of the places 0 .. size - 1, the same ones each time, in order."""
    if size <= most:
        return np.arange(size)
    sampler = RowSampler(most)
    for first in range(0, size, HASHED_ROWS):
        sampler.add(pa.table({"place": np.arange(first, min(first + HASHED_ROWS, size))}))
    return np.asarray(sampler.table().column(0).to_numpy())


def _lowest(of: RowHashes, most: int) -> Integers:
    return np.argpartition(of, most - 1)[:most] if of.size > most else np.arange(of.size)


class RowSampler:
    """Samples the rows of a stream of tables, which are numbered on: those with the lowest hashes."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.rows = 0
        self._pieces: list[pa.Table] = []
        self._places: list[Integers] = []
        self._hashes: list[RowHashes] = []
        self._limit = np.uint64(2**64 - 1)
        self._held = 0

    def add(self, table: pa.Table) -> None:
        every = row_hashes(self.rows, table.num_rows)
        kept = np.flatnonzero(every <= self._limit)
        if kept.size or not self._pieces:
            self._pieces.append(table if kept.size == table.num_rows else table.take(pa.array(kept)))
            self._places.append(kept + self.rows)
            self._hashes.append(every[kept])
            self._held += kept.size
        self.rows += table.num_rows
        if self._held > 2 * self.most:
            self._thin()

    def _thin(self) -> None:
        """Keep the rows with the lowest hashes of those that are held."""
        every = np.concatenate(self._hashes)
        kept = np.sort(_lowest(every, self.most))
        self._pieces = [pa.concat_tables(self._pieces).take(pa.array(kept))]
        self._places = [np.concatenate(self._places)[kept]]
        self._hashes = [every[kept]]
        self._held = kept.size
        self._limit = every[kept].max()

    def table(self) -> pa.Table:
        """The rows of the sample, in their order."""
        if self._held > self.most:
            self._thin()
        return pa.concat_tables(self._pieces)


# Bytes of a sample, about; but it has a thousand rows in any case.
SAMPLE_BYTES = 1 << 28
LONG_ROWS = 1_000


def rows_that_fit(most: int, row_bytes: float) -> int:
    """How many rows of so many bytes a sample has, if it has `most` of short ones."""
    return min(most, max(LONG_ROWS, int(SAMPLE_BYTES / max(row_bytes, 1.0))))
