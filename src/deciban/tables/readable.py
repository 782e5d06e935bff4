"""What families need of a table."""

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from deciban.util.arrays import Numbers
from deciban.util.sparse import SparseRows


class Readable(Protocol):
    """Rows of a table, seen as one of the things that families count."""

    def numbers(self, columns: Sequence[int]) -> Numbers:
        """The cells as a C-ordered matrix of real numbers, NaN where one is missing."""
        ...

    def values(self, columns: Sequence[int]) -> Numbers | list[pa.Array]:
        """The cells as they are: a matrix of numbers, or an Arrow array for each column."""
        ...

    def amounts(self, columns: Sequence[int]) -> Numbers | SparseRows:
        """The cells as numbers, of which most may be zero: a matrix, dense or in CSR form."""
        ...
