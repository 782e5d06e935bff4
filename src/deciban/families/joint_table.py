"""The full joint distribution of a few discrete columns: one die with a side for each tuple."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from deciban import kernels
from deciban.arrays import Codes, Flags, Floats, Integers, log
from deciban.errors import BadCell
from deciban.families.base import (
    OfBlocks,
    Readable,
    Sampled,
    Unseen,
    by_missing_pattern,
    check_amount,
    check_unseen,
)
from deciban.families.bernoulli import fraction
from deciban.families.categorical import draw
from deciban.families.smoothing import smoothed
from deciban.statistics import Tuples


@dataclass(frozen=True, repr=False)
class JointTable(OfBlocks):
    """P(tuple | class) = (count + alpha) / (rows + alpha * number of possible tuples).

    A missing member is summed over; so is one with a value that no class has seen, unless `unseen` says otherwise.
    alpha, unseen: as for Categorical.
    """

    alpha: float = 1.0
    unseen: Unseen = "ignore"

    def __post_init__(self) -> None:
        check_amount("alpha", self.alpha)
        check_unseen(self.unseen)

    def read(self, batch: Readable, columns: Sequence[int]) -> list[pa.Array]:
        cells = batch.values(columns)
        if isinstance(cells, np.ndarray):
            return [pa.array(cells[:, j], from_pandas=True) for j in range(cells.shape[1])]
        return cells

    def empty(self, classes: int, columns: int) -> Tuples:
        return Tuples.empty(classes, columns)

    def count(self, cells: list[pa.Array], labels: Codes, weights: Floats, classes: int) -> Tuples:
        return Tuples.count(cells, labels, weights, classes)

    def estimate(self, statistic: Tuples) -> "JointTableLikelihood":
        return JointTableLikelihood(statistic, self.alpha, self.unseen)


@dataclass(frozen=True)
class JointTableLikelihood:
    """Shares of the tuples that occur and, as the last row, of one that does not."""

    statistic: Tuples
    alpha: float
    unseen: Unseen

    def _sizes(self) -> Floats:
        return np.array([len(levels) for levels in self.statistic.levels], dtype=np.float64)

    def shares(self, kept: Integers) -> tuple[Integers, Floats]:
        """The tuples of the columns `kept`, and P(tuple | class), tuple by class, the other columns summed over.

        A tuple of these columns stands for as many whole tuples as the others have combinations, and each of those
        was smoothed.
        """
        tuples, table = self.statistic.marginal(kept)
        sizes = self._sizes()
        possible = sizes[kept].prod()
        hidden = np.delete(sizes, kept).prod()
        padded = np.concatenate([table, np.zeros((len(table), 1))], axis=1)
        return tuples, smoothed(padded, self.alpha * hidden, possible).T

    def score(self, cells: list[pa.Array], weight: Floats, slot: Integers, out: Floats) -> None:
        codes = self.statistic.codes(cells)
        absent = self._absent(codes, cells)
        for pattern, rows in by_missing_pattern(absent):
            kept = np.flatnonzero(~pattern)
            if not kept.size:
                continue
            tuples, shares = self.shares(kept)
            place = _find(codes[np.ix_(rows, kept)], tuples)
            part = np.zeros((rows.size, 1, out.shape[2]))
            start, first = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
            kernels.score_lookup(place[:, None], start, log(shares), weight, first, part)
            out[rows, slot[0]] += part[:, 0]

    def _absent(self, codes: Integers, cells: list[pa.Array]) -> Flags:
        """Which members to sum over."""
        unseen = codes == -2
        if self.unseen == "error" and unseen.any():
            row, column = (int(i) for i in np.argwhere(unseen)[0])
            found = cells[column][row].as_py()
            raise BadCell(column, row, f"found {found!r}, never seen in training", "or choose unseen='ignore'")
        return codes == -1 if self.unseen == "smooth" else codes < 0

    def base(self, cells: list[pa.Array]) -> None:
        return None

    def sample(self, labels: Integers, rng: np.random.Generator) -> list[Sampled]:
        """Tuples that occur, and with smoothing also others: uniformly among all that are possible."""
        columns = len(self.statistic.levels)
        if not len(self.statistic.tuples):
            return [pa.nulls(len(labels)) for _ in range(columns)]
        possible = self._sizes().prod()
        table = self.statistic.table
        counted, added = table.sum(axis=1), self.alpha * possible
        uniform = rng.random(len(labels)) * (counted + added)[labels] < added
        tuples = self.statistic.tuples[draw(smoothed(table, 0.0).T, labels, rng)].copy()
        for j, size in enumerate(self._sizes()):
            tuples[uniform, j] = rng.integers(0, int(size), int(uniform.sum()))
        return [self.statistic.levels[j].take(pa.array(tuples[:, j])) for j in range(columns)]

    def working(self, cells: list[pa.Array], row: int, column: int, label: int) -> str:
        one = [cell[row : row + 1] for cell in cells]
        codes = self.statistic.codes(one)
        kept = np.flatnonzero(~self._absent(codes, one)[0])
        if not kept.size:
            return "1 (missing or never seen: no evidence)"
        tuples, table = self.statistic.marginal(kept)
        place = _find(codes[:, kept], tuples)[0]
        count = table[label, place] if place < len(tuples) else 0.0
        sizes = self._sizes()
        alpha = self.alpha * np.delete(sizes, kept).prod()
        return fraction(count, table[label].sum(), alpha, int(sizes[kept].prod()))


def _find(codes: Integers, tuples: Integers) -> Codes:
    """Where each row of `codes` stands among `tuples`; their number where it does not occur."""
    both = np.concatenate([tuples, codes])
    _, place = np.unique(both, axis=0, return_inverse=True)
    place = place.ravel()
    home = np.full(place.max(initial=0) + 1, len(tuples), dtype=np.int32)
    home[place[: len(tuples)]] = np.arange(len(tuples))
    return home[place[len(tuples) :]]
