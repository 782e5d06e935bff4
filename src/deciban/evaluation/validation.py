"""Evaluate a model on labeled rows: new rows, folds of a table, learned rows that are left out.

Tables are cut into folds that spread each class evenly, the same way each time.
"""

import pickle
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np
import pyarrow as pa

from deciban.errors import Argument, DataError, DecibanError
from deciban.evaluation.diagnose import Diagnosis, diagnose
from deciban.evaluation.leave_one_out import MAX_EVIDENCE, LeaveOneOut, leave_one_out
from deciban.evaluation.metrics import Evaluation
from deciban.fitting.fit import fit_examples, open_examples
from deciban.fitting.tune.rows import Copies, find_copies
from deciban.fitting.update import find_class_places
from deciban.model.batches import batches, count
from deciban.model.counts import Counts
from deciban.model.fitted import Fitted, Settings
from deciban.model.model import Model
from deciban.scoring.predict import loss_for, predict, predict_posteriors
from deciban.sources.source import Source
from deciban.sources.streams import Examples, LabeledStream
from deciban.store.model_file import identity, shards_of
from deciban.tables.examples import LabeledTable
from deciban.tables.labels import UNKNOWN_LABEL, Labels, encode_labels
from deciban.tables.row_sampling import row_hashes, sample_places
from deciban.tables.table import Table
from deciban.util.arrays import Codes, Floats, Integers
from deciban.util.parallel import map_in_threads
from deciban.util.progress import Advance, progress, stages

# Rows and cells of a file that are held in memory to find copies of rows.
MAX_ROWS_HELD = 1 << 20
MAX_CELLS_HELD = 1 << 24


class FoldAssigner:
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


def separate_fold(rows: Examples, folds: int, fold: int) -> tuple[Examples, Examples]:
    """The rows of one of some folds, and all others."""
    if isinstance(rows, LabeledTable):
        inside = _assign_folds(rows, folds) == fold
        return rows.take(np.flatnonzero(inside)), rows.take(np.flatnonzero(~inside))
    stream = rows.stream
    streams = (Fold(stream.name, stream.names, stream, rows.target, folds, fold, side) for side in (True, False))
    one, others = (replace(rows, stream=stream, rows=None) for stream in streams)
    return one, others


def hold_in_memory(rows: Examples) -> Examples:
    """The rows as a table where they are few enough: copies of a row are then seen, wherever they stand."""
    if isinstance(rows, LabeledTable) or rows.elsewhere or rows.pushdown:
        return rows
    return rows.sample(max(1_000, min(MAX_ROWS_HELD, MAX_CELLS_HELD // max(len(rows.names), 1))))[1]


def _assign_folds(rows: LabeledTable, folds: int) -> Integers:
    """The fold of each row; copies of a row are in one."""
    weights = np.ones(rows.table.rows) if rows.weights is None else rows.weights
    unit = find_copies(rows.table, rows.labels.codes, weights).units
    first = np.unique(unit, return_index=True)[1]
    return FoldAssigner(folds).folds_of(Labels(rows.labels.classes, rows.labels.codes[first]))[unit]


@dataclass(frozen=True)
class Fold(Source):
    """The rows of a source that are in one of some folds (`inside`), or all others."""

    stream: Source
    target: str
    folds: int
    fold: int
    inside: bool

    @property
    def expected(self) -> int | None:
        whole = self.stream.expected
        share = 1 / self.folds if self.inside else 1 - 1 / self.folds
        return None if whole is None else int(whole * share)

    @property
    def typed(self) -> bool:
        return self.stream.typed

    def tables(self) -> Iterator[pa.Table]:
        dealer = FoldAssigner(self.folds)
        for table in self.stream.tables():
            folds = dealer.folds_of(encode_labels(table[self.target], table.num_rows))
            yield table.filter(pa.array((folds == self.fold) == self.inside))

    def resolve_types(self, sample: pa.Table) -> tuple["Fold", pa.Table]:
        stream, table = self.stream.resolve_types(sample)
        return replace(self, stream=stream), table

    def steady(self) -> AbstractContextManager[None]:
        return self.stream.steady()


def check_enough_rows(rows: Examples, folds: int) -> None:
    """Refuse a table in which no class has a row for each fold: then a fold is empty, or all rows are in one."""
    table_rows, times, most = 0, Counter[Any](), 0
    with rows.locate_errors():
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
            raise _make_no_labels_error(rows)
        if times.total() == 1:
            raise DataError("only one row has a label, and one row cannot be cut into folds", remedy="give more rows")
        if most == 1:
            raise DataError("no class has two rows, one to learn and one to judge", remedy="give more rows")
        raise DataError(
            f"no class has more than {most} rows, too few for {folds} folds",
            remedy=("give more rows, or ", Argument("folds", most)),
        )


def _make_no_labels_error(rows: Examples) -> DataError:
    if isinstance(rows, LabeledTable):
        return DataError("no row has a label and a weight", remedy="give at least one")
    weight = "" if rows.weight is None else " and a weight"
    return DataError(f"no row has a label{weight}", remedy=f"fill in {rows.target!r}, or name another column")


# From rows with labels, which are known classes, to their posteriors and the number of copies among them.
ScoringFunction = Callable[[Fitted, LabeledTable], tuple[Floats, int]]

# From pieces of rows with labels to what is found of them, which can be pickled.
PartFunction = Callable[[Fitted, Iterable[LabeledTable]], Any]

NOTHING_TO_COMPARE = "no row has a label and a weight; give at least one to compare with"


def evaluate_rows(fitted: Fitted, rows: Examples, loss: Any = None) -> Evaluation:
    """The figures of rows that were not learned."""
    return _evaluate_parts(fitted, rows, loss, _score_new_rows)


def compute_accuracy(fitted: Fitted, rows: Examples) -> float:
    """The share of labeled rows whose class is predicted."""
    hits = np.array(_map_parts(fitted, rows, _count_hits)).reshape(-1, 2).sum(axis=0)
    if not hits[1] > 0.0:
        raise DataError(NOTHING_TO_COMPARE)
    return float(hits[0] / hits[1])


def evaluate_and_recognize(
    fitted: Fitted, rows: Examples, loss: Any, observe: Callable[[Table], None]
) -> tuple[Evaluation, bool]:
    """The figures of rows, and whether they are just what was learned: all of it, or rows that were learned at once.

    In one pass, in which `observe` is called with each piece.
    """
    recount = _Recount(fitted)

    def posterior(fitted: Fitted, piece: LabeledTable) -> tuple[Floats, int]:
        observe(piece.table)
        recount.add(piece)
        return _score_new_rows(fitted, piece)

    with rows.locate_errors(), progress("evaluating", "rows", rows.expected) as advance:
        found = _check_rows_found(_evaluate_pieces(fitted, _report_progress(rows.pieces(), advance), loss, posterior))
    return found, not found.unknown_class_rows and recount.is_known


def evaluate_left_out(fitted: Fitted, rows: Examples, loss: Any = None) -> Evaluation:
    """The figures of rows that were learned, each left out in its turn, with its copies."""
    return replace(_evaluate_parts(fitted, hold_in_memory(rows), loss, _score_learned_rows), leave_one_out=True)


def cross_validate(
    settings: Settings, rows: Examples, folds: int, loss: Any = None, only: int | None = None
) -> Evaluation:
    """The figures of each fold of a table, by what the other folds teach, added up.

    only: so many of the folds: one of five is a hold-out of a fifth.
    """
    total: Evaluation | None = None
    evaluated = folds if only is None else only
    given_before: set[str] = set()
    with rows.locate_errors(), stages("fold", evaluated) as begin:
        check_enough_rows(rows, folds if only is None else 2)
        rows = hold_in_memory(rows)
        for fold in range(evaluated):
            begin(fold)
            inside, outside = separate_fold(rows, folds, fold)
            with _warn_once(given_before), outside.locate_errors():
                learned = fit_examples(settings, outside)
            one = evaluate_rows(learned, inside, loss)
            total = one if total is None else total + one
    assert total is not None, "there is at least one fold"
    return total


def score_left_out(
    fitted: Fitted,
    table: Table,
    labels: Codes,
    weights: Floats,
    model: Model | None = None,
    copies: Copies | None = None,
) -> LeaveOneOut:
    """Leave-one-out of rows that were learned, by the model or by another one of the same counts (the plain one).

    labels: the places of the true classes. copies: of these rows among all that were learned; None: these are all.
    """
    used = fitted.model if model is None else model
    counts = fitted.counts.select_schema(used.schema)
    tuned = model is None and fitted.is_tuned
    threads, prior = fitted.settings.threads, fitted.settings.prior
    return leave_one_out(used, counts, prior, table, labels, weights, threads, tuned, copies)


def read_learned_rows(fitted: Fitted, rows: Examples, few: bool = False) -> tuple[Table, Codes, Floats]:
    """Rows that were learned: their table, the places of their labels among the classes, their weights.

    few: a sample of a long file will do.
    """
    held = rows.sample()[0] if few and isinstance(rows, LabeledStream) else rows.whole()
    weights = np.ones(held.table.rows) if held.weights is None else held.weights
    return (
        fitted.counts.schema.table_as_learned(held.table),
        find_class_places(fitted, held.labels, held.weights),
        weights,
    )


def sample_left_out(fitted: Fitted, rows: Examples, most: int) -> tuple[Table, LeaveOneOut]:
    """Some rows that were learned, at most so many, with the columns of the model, and each scored without itself."""
    table, labels, weights = read_learned_rows(fitted, rows, few=True)
    kept = np.flatnonzero((labels >= 0) & (weights > 0.0))
    size = (1 + len(fitted.model.schema.block_names)) * fitted.classes.size
    table, labels, weights = table.take(kept), labels[kept], weights[kept]
    copies = find_copies(table, labels, weights)
    drawn = sample_places(kept.size, min(most, MAX_EVIDENCE // size))
    some = table.take(drawn)
    found = score_left_out(fitted, some, labels[drawn], weights[drawn], copies=copies.take(drawn))
    return fitted.model.schema.table_as_learned(some), found


def diagnose_rows(fitted: Fitted, rows: Examples) -> Diagnosis:
    """Which assumptions of plain Bayes fail on rows that were learned; of a long file a sample is looked at."""
    some = read_learned_rows(fitted, rows, few=True)
    after = score_left_out(fitted, *some)
    before = after if fitted.tuning is None else score_left_out(fitted, *some, fitted.plain)
    return diagnose(fitted.model, before, after, *some)


class _Recount:
    """Counts rows as a model has counted its own, as long as they may be those."""

    def __init__(self, fitted: Fitted) -> None:
        self._fitted = fitted
        self._counts: Counts | None = Counts.empty(fitted.counts.schema.plain)

    def add(self, piece: LabeledTable) -> None:
        if self._counts is None:
            return
        schema, threads = self._counts.schema, self._fitted.settings.threads
        try:
            for more in map_in_threads(lambda batch: count(batch, schema), batches(piece, schema), threads):
                self._counts = self._counts + more
        except DecibanError:  # a row that cannot be learned was not
            self._counts = None
            return
        if self._counts.rows > self._fitted.counts.rows:
            self._counts = None

    @property
    def is_known(self) -> bool:
        if self._counts is None or not self._counts.rows:
            return False
        return identity(self._counts) in (*shards_of(self._fitted), identity(self._fitted.counts))


def _score_new_rows(fitted: Fitted, piece: LabeledTable) -> tuple[Floats, int]:
    return predict_posteriors(fitted, piece.table), 0


def _score_learned_rows(fitted: Fitted, piece: LabeledTable) -> tuple[Floats, int]:
    found = score_left_out(fitted, *read_learned_rows(fitted, piece))
    return found.posterior, found.copies


def _evaluate_parts(fitted: Fitted, rows: Examples, loss: Any, posterior: ScoringFunction) -> Evaluation:
    """The figures of all rows."""
    return _check_rows_found(
        _add_up(_map_parts(fitted, rows, partial(_evaluate_pieces, loss=loss, posterior=posterior)))
    )


def _map_parts(fitted: Fitted, rows: Examples, what: PartFunction) -> list[Any]:
    """What is found of each part of the rows, where they are; of rows that are here, they are one part."""
    with rows.locate_errors(), progress("evaluating", "rows", rows.expected) as advance:
        if isinstance(rows, LabeledStream) and rows.elsewhere:
            work = _PartWork(fitted, rows.target, rows.weight, what)
            return [pickle.loads(part) for part in rows.stream.each_part(work)]
        return [what(fitted, _report_progress(rows.pieces(), advance))]


@dataclass(frozen=True)
class _PartWork:
    """What is found of a part of the rows, elsewhere."""

    fitted: Fitted
    target: str
    weight: str | None
    what: PartFunction

    def __call__(self, tables: Iterable[Any]) -> bytes:
        fitted = self.fitted.single_threaded
        pieces = (open_examples(fitted, table, self.target, self.weight).whole() for table in tables)
        found = self.what(fitted, pieces)
        return pickle.dumps(found.compact if isinstance(found, Evaluation) else found)


def _report_progress(pieces: Iterable[LabeledTable], advance: Advance) -> Iterator[LabeledTable]:
    for piece in pieces:
        yield piece
        advance(piece.table.rows)


def _add_up(parts: Iterable[Evaluation | None]) -> Evaluation | None:
    found = [part for part in parts if part is not None]
    return reduce(add, found) if found else None


def _check_rows_found(found: Evaluation | None) -> Evaluation:
    if found is None or not found.weight > 0.0:
        raise DataError(NOTHING_TO_COMPARE)
    return found


def _count_hits(fitted: Fitted, pieces: Iterable[LabeledTable]) -> tuple[float, float]:
    """The weight of rows whose class is predicted, and of all that have one."""
    right = total = 0.0
    for piece in pieces:
        known = piece.labels.codes >= 0
        weights = np.ones(known.size) if piece.weights is None else piece.weights
        hits = predict(fitted, piece.table)[known] == piece.labels.classes[piece.labels.codes[known]]
        right += float(weights[known] @ hits)
        total += float(weights[known].sum())
    return right, total


def _evaluate_pieces(
    fitted: Fitted, pieces: Iterable[LabeledTable], loss: Any, posterior: ScoringFunction
) -> Evaluation | None:
    """The figures of all pieces added up; None where there is none."""
    model = fitted.model
    costs = None if loss is None else loss_for(fitted, loss)

    def figures(piece: LabeledTable) -> Evaluation:
        weights = np.ones(piece.table.rows) if piece.weights is None else piece.weights
        places = piece.labels.places_among(model.classes)
        kept = np.flatnonzero((places >= 0) & (weights > 0.0))
        unknown = float(weights[places == UNKNOWN_LABEL].sum())
        table = model.schema.cells_as_learned(piece.table, piece.first_row)
        part = replace(piece, table=table, weights=weights).take(kept)
        found, copies = posterior(fitted, part) if kept.size else (np.zeros((0, model.classes.size)), 0)
        figures = Evaluation.of(found, places[kept], weights[kept], model.classes, unknown, costs)
        return replace(figures, copies=copies)

    return _add_up(map(figures, pieces))


@contextmanager
def _warn_once(given_before: set[str]) -> Iterator[None]:
    """Warnings that differ from those `given_before` before by nothing but numbers are not given again."""
    with warnings.catch_warnings(record=True) as given:
        yield
    for one in given:
        text = re.sub(r"\b\d[\d,]*\b", "0", str(one.message))
        if text not in given_before:
            given_before.add(text)
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
