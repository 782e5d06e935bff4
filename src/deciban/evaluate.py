"""Figures of rows whose class is known: new ones, folds of a table, rows that were learned and are left out."""

import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from deciban.arrays import Floats, Integers
from deciban.classifier import Classifier
from deciban.counting import batches, count
from deciban.counts import Counts
from deciban.decisions.loss import Loss
from deciban.errors import DataError, DecibanError
from deciban.figures import Evaluation
from deciban.files.labelled_stream import LabelledStream
from deciban.files.stream import Stream
from deciban.parallel import map_in_threads
from deciban.progress import Advance, progress, stages
from deciban.store.model_file import identity
from deciban.tables.labelled import LabelledTable
from deciban.tables.labels import encode_labels
from deciban.tables.row_sampling import row_hashes
from deciban.tables.table import Table


def evaluate_rows(clf: Classifier, rows: LabelledTable | LabelledStream, loss: Any = None) -> Evaluation:
    """What a classifier says of rows that it has not learned."""
    with progress("judging", "rows", rows.expected) as advance:
        return _summed(clf, rows, loss, lambda piece: clf.predict_proba(piece.table), advance)


def evaluate_and_recognise(
    clf: Classifier, rows: LabelledTable | LabelledStream, loss: Any, observe: Callable[[Table], None]
) -> tuple[Evaluation, bool]:
    """What a classifier says of rows, and whether they are just what it has learned: all of it, or a set of rows that
    was learned at once. In one pass, in which each piece is shown to `observe`."""
    recount = _Recount(clf)

    def posterior(piece: LabelledTable) -> Floats:
        observe(piece.table)
        recount.add(piece)
        return clf.predict_proba(piece.table)

    with progress("judging", "rows", rows.expected) as advance:
        found = _summed(clf, rows, loss, posterior, advance)
    return found, not found.unknown and recount.is_known


class _Recount:
    """Counts rows as a model has counted its own, as long as they may be those."""

    def __init__(self, clf: Classifier) -> None:
        self._clf, self._known = clf, clf.counts_
        self._counts: Counts | None = Counts.empty(self._known.schema.plain)

    def add(self, piece: LabelledTable) -> None:
        if self._counts is None:
            return
        schema = self._counts.schema
        try:
            for more in map_in_threads(lambda batch: count(batch, schema), batches(piece, schema), self._clf.threads):
                self._counts = self._counts + more
        except DecibanError:  # a row that cannot be learned was not
            self._counts = None
            return
        if self._counts.rows > self._known.rows:
            self._counts = None

    @property
    def is_known(self) -> bool:
        if self._counts is None or not self._counts.rows:
            return False
        return identity(self._counts) in (*self._clf.shards_, identity(self._known))


def evaluate_left_out(clf: Classifier, rows: LabelledTable | LabelledStream, loss: Any = None) -> Evaluation:
    """What it says of rows that it has learned, each left out in its turn."""

    def posterior(piece: LabelledTable) -> Floats:
        y = piece.labels.classes[piece.labels.codes]
        return clf.leave_one_out(piece.table, y, piece.weights).posterior

    return replace(_summed(clf, rows, loss, posterior), left_out=True)


def _summed(
    clf: Classifier,
    rows: LabelledTable | LabelledStream,
    loss: Any,
    posterior: Callable[[LabelledTable], Floats],
    advance: Advance = lambda done: None,
) -> Evaluation:
    classes, schema = clf.model_.classes, clf.model_.schema
    loss_for_classes = None if loss is None else Loss.of(loss).for_classes(list(classes))
    total: Evaluation | None = None
    with rows.naming():
        for piece in rows.pieces():
            labels, weights = piece.labels, np.ones(piece.table.rows) if piece.weights is None else piece.weights
            known = np.append(np.isin(labels.classes, classes), False)[labels.codes]
            kept = np.flatnonzero(known & (weights > 0.0))
            unknown = float(weights[(labels.codes >= 0) & ~known].sum())
            place = np.append(np.searchsorted(classes, labels.classes), -1)[labels.codes[kept]].astype(np.int32)
            table = schema.as_learned_types(piece.table, piece.first_row)
            part = LabelledTable(table.take(kept), replace(labels, codes=labels.codes[kept]), weights[kept])
            found = posterior(part) if kept.size else np.zeros((0, classes.size))
            one = Evaluation.of(found, place, weights[kept], classes, unknown, loss_for_classes)
            total = one if total is None else total + one
            advance(piece.table.rows)
    if total is None or not total.weight > 0.0:
        raise DataError("no row has a label and a weight; give at least one to compare with")
    return total


@dataclass(frozen=True)
class Fold(Stream):
    """The rows of a stream that are in one of some folds, or all the others; each class is spread over all folds.

    The rows of a class are dealt out in rounds, one to each fold, in an order drawn by lot.
    """

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
        dealt: dict[Any, int] = {}
        for table in self.stream.tables():
            yield table.filter(pa.array((self._folds(table, dealt) == self.fold) == self.inside))

    def _folds(self, table: pa.Table, dealt: dict[Any, int]) -> Integers:
        labels = encode_labels(table[self.target], table.num_rows)
        folds = np.zeros(table.num_rows, dtype=np.int64)
        for c, label in enumerate(labels.classes.tolist()):
            rows = np.flatnonzero(labels.codes == c)
            numbers = dealt.get(label, 0) + np.arange(rows.size)
            dealt[label] = dealt.get(label, 0) + rows.size
            rounds = numbers // self.folds
            turns = (row_hashes(int(rounds[0]), int(rounds[-1] - rounds[0]) + 1) % np.uint64(self.folds)).astype(
                np.int64
            )
            folds[rows] = (numbers + turns[rounds - rounds[0]]) % self.folds
        return folds

    def reading_as(self, types: Mapping[str, str]) -> "Fold":
        return replace(self, stream=self.stream.reading_as(types))

    def resolve_types(self, sample: pa.Table) -> tuple[Stream, pa.Table]:
        stream, table = self.stream.resolve_types(sample)
        return replace(self, stream=stream), table

    def naming(self) -> AbstractContextManager[None]:
        return self.stream.naming()


@contextmanager
def _warning_once(given_before: set[str]) -> Iterator[None]:
    """Warnings that differ from those `given_before` before by nothing but numbers are not given again."""
    with warnings.catch_warnings(record=True) as given:
        yield
    for one in given:
        text = re.sub(r"\b\d[\d,]*\b", "0", str(one.message))
        if text not in given_before:
            given_before.add(text)
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)


def evaluate_folds(
    clf: Classifier, rows: LabelledStream, folds: int, loss: Any = None, only: int | None = None
) -> Evaluation:
    """Rows judged by what the others of the table teach: the table is cut into folds, each is judged by the rest.

    The classifier gives the parameters. With `only`, so many of the folds: one of five is a hold-out of a fifth.
    """
    _refuse_few(rows, folds if only is None else 2)
    total: Evaluation | None = None
    judged = folds if only is None else only
    given_before: set[str] = set()
    with stages("fold", judged) as begin:
        for fold in range(judged):
            begin(fold)
            inside, outside = (Fold(rows.stream, rows.target, folds, fold, side) for side in (True, False))
            with _warning_once(given_before):
                learned = type(clf)(**clf.parameters()).fit(outside, rows.target, rows.weight)
            one = evaluate_rows(learned, replace(rows, stream=inside), loss)
            total = one if total is None else total + one
    assert total is not None, "there is at least one fold"
    return total


def _refuse_few(rows: LabelledStream, folds: int) -> None:
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
            weight = "" if rows.weight is None else " and a weight"
            raise DataError(f"no row has a label{weight}; fill in {rows.target!r}, or name another column")
        if times.total() == 1:
            raise DataError("only one row has a label, and one row cannot be cut into folds; give more rows")
        if most == 1:
            raise DataError("no class has two rows, one to learn and one to judge; give more rows")
        raise DataError(
            f"no class has more than {most} rows, too few for {folds} folds; give more rows, or folds={most}"
        )
