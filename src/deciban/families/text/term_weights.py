"""What the words of a text count, from how often they are there."""

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

from deciban.util.arrays import Floats
from deciban.util.sparse import SparseRows

Amounts = Literal["count", "log", "root"]


class TermWeights(NamedTuple):
    """What a word that is in a text n times counts: n, 1 + log n, the root of n, or 1 ("presence").

    normalize: the amounts of a text are divided by their length, the root of the sum of their squares.
    """

    amounts: Literal["count", "log", "root", "presence"]
    normalize: bool = False

    @property
    def plain(self) -> bool:
        """Whether each word counts as often as it is there."""
        return self.amounts == "count" and not self.normalize

    @property
    def presence(self) -> bool:
        """Whether words are there or not."""
        return self.amounts == "presence"

    def of(self, rows: SparseRows) -> SparseRows:
        """The amounts of the words of texts, each a row, from how often they are there."""
        if self.plain:
            return rows
        amounts = AMOUNT_RULES[self.amounts](rows.stored)
        if self.normalize:
            length = np.sqrt(row_sums(rows.with_values(amounts**2)))
            amounts = amounts / np.repeat(np.maximum(length, 1e-300), np.diff(rows.indptr))
        return rows.with_values(amounts)


AMOUNT_RULES: dict[str, Callable[[Floats], Floats]] = {
    "count": lambda times: times,
    "log": lambda times: 1.0 + np.log(times),
    "root": np.sqrt,
    "presence": np.ones_like,
}


def row_sums(rows: SparseRows) -> Floats:
    """The sum of what is stored in each row."""
    row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    return np.bincount(row, rows.stored, rows.shape[0]).astype(np.float64)
