"""Tables cut into folds: each class is spread evenly over all of them, the same way each time."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from deciban.errors import Argument, DataError
from deciban.model.folds_by_content import find_copies
from deciban.sources.examples import Examples
from deciban.sources.source import Stream
from deciban.tables.labelled import LabelledTable
from deciban.tables.labels import Labels, encode_labels
from deciban.tables.row_sampling import row_hashes
from deciban.util.arrays import Integers

# Rows and cells of a file that are held in memory to find copies of rows.
MAX_ROWS_HELD = 1 << 20
MAX_CELLS_HELD = 1 << 24


class Dealer:
    """Deals the rows of each class out in rounds, one to each fold, in an order that is drawn by a hash."""

    def __init__(self, folds: int) -> None:
        self._folds = folds
        self._dealt: dict[Any, int] = {}

    def folds_of(self, labels: Labels) -> Integers:
        """The fold of each of the next rows; those without a label are in the first."""
        folds = np.zeros(labels.codes.size, dtype=np.int64)
        for c, label in enumerate(labels.classes.tolist()):
            rows = np.flatnonzero(labels.codes == c)
            if not rows.size:
                continue
            numbers = self._dealt.get(label, 0) + np.arange(rows.size)
            self._dealt[label] = self._dealt.get(label, 0) + rows.size
            rounds = numbers // self._folds
            drawn = row_hashes(int(rounds[0]), int(rounds[-1] - rounds[0]) + 1)
            turns = (drawn % np.uint64(self._folds)).astype(np.int64)
            folds[rows] = (numbers + turns[rounds - rounds[0]]) % self._folds
        return folds


def split(rows: Examples, folds: int, fold: int) -> tuple[Examples, Examples]:
    """The rows of one of some folds, and all others."""
    if isinstance(rows, LabelledTable):
        inside = _folds_of_table(rows, folds) == fold
        return rows.take(np.flatnonzero(inside)), rows.take(np.flatnonzero(~inside))
    streams = (Fold(rows.stream, rows.target, folds, fold, side) for side in (True, False))
    one, others = (replace(rows, stream=stream, rows=None) for stream in streams)
    return one, others


def held_in_memory(rows: Examples) -> Examples:
    """The rows as a table where they are few enough: copies of a row are then seen, wherever they stand."""
    if isinstance(rows, LabelledTable) or rows.elsewhere or rows.where == "engine":
        return rows
    return rows.sample(max(1_000, min(MAX_ROWS_HELD, MAX_CELLS_HELD // max(len(rows.names), 1))))[1]


def _folds_of_table(rows: LabelledTable, folds: int) -> Integers:
    """The fold of each row; copies of a row are in one."""
    weights = np.ones(rows.table.rows) if rows.weights is None else rows.weights
    unit = find_copies(rows.table, rows.labels.codes, weights).units
    first = np.unique(unit, return_index=True)[1]
    return Dealer(folds).folds_of(Labels(rows.labels.classes, rows.labels.codes[first]))[unit]


@dataclass(frozen=True)
class Fold(Stream):
    """The rows of a stream that are in one of some folds (`inside`), or all others."""

    stream: Stream
    target: str
    folds: int
    fold: int
    inside: bool

    @property
    def names(self) -> tuple[str, ...]:
        return self.stream.names

    @property
    def expected(self) -> int | None:
        whole = self.stream.expected
        share = 1 / self.folds if self.inside else 1 - 1 / self.folds
        return None if whole is None else int(whole * share)

    @property
    def typed(self) -> bool:
        return self.stream.typed

    def tables(self) -> Iterator[pa.Table]:
        dealer = Dealer(self.folds)
        for table in self.stream.tables():
            folds = dealer.folds_of(encode_labels(table[self.target], table.num_rows))
            yield table.filter(pa.array((folds == self.fold) == self.inside))

    def reading_as(self, types: Mapping[str, str]) -> "Fold":
        return replace(self, stream=self.stream.reading_as(types))

    def resolve_types(self, sample: pa.Table) -> tuple[Stream, pa.Table]:
        stream, table = self.stream.resolve_types(sample)
        return replace(self, stream=stream), table

    def naming(self) -> AbstractContextManager[None]:
        return self.stream.naming()

    def steady(self) -> AbstractContextManager[None]:
        return self.stream.steady()


def refuse_few_rows(rows: Examples, folds: int) -> None:
    """Refuse a table in which no class has a row for each fold: then a fold is empty, or all rows are in one."""
    table_rows, times, most = 0, Counter[Any](), 0
    with rows.naming():
        for piece in rows.pieces():
            table_rows += piece.table.rows
            codes = piece.labels.codes if piece.weights is None else piece.labels.codes[piece.weights > 0.0]
            times.update(piece.labels.classes[codes[codes >= 0]].tolist())
            most = max(times.values(), default=0)
            if most >= folds:
                return
        if not table_rows:
            raise DataError("the table has no rows; there is nothing to learn from")
        if not times:
            raise _no_labels(rows)
        if times.total() == 1:
            raise DataError("only one row has a label, and one row cannot be cut into folds; give more rows")
        if most == 1:
            raise DataError("no class has two rows, one to learn and one to judge; give more rows")
        raise DataError(
            f"no class has more than {most} rows, too few for {folds} folds",
            remedy=("give more rows, or ", Argument("folds", most)),
        )


def _no_labels(rows: Examples) -> DataError:
    if isinstance(rows, LabelledTable):
        return DataError("no row has a label and a weight; give at least one")
    weight = "" if rows.weight is None else " and a weight"
    return DataError(f"no row has a label{weight}; fill in {rows.target!r}, or name another column")
