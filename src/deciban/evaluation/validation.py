"""Evaluation on labeled rows: new rows, cross-validation, leave-one-out of training rows.

Folds are stratified by class, and the same each time.
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
from typing import Any, Self

import numpy as np
import pyarrow as pa

from deciban.errors import Argument, DataError, DecibanError, Place, UsageError, warn_user
from deciban.evaluation.diagnose import Diagnosis, diagnose
from deciban.evaluation.leave_one_out import MAX_EVIDENCE, LeaveOneOut, leave_one_out
from deciban.evaluation.metrics import Evaluation
from deciban.fitting.fit import fit_examples, open_examples
from deciban.fitting.remarks import IN_ORDER, Reading, list_last_rows_remarks, list_order_remarks
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
from deciban.tables.labels import MANY_CLASSES, ROWS_OF_A_CLASS_PER_ROW, UNKNOWN_LABEL, Labels, encode_labels
from deciban.tables.row_sampling import row_hashes, sample_places
from deciban.tables.table import Table
from deciban.util.arrays import Codes, Floats, Integers
from deciban.util.budget import Budget
from deciban.util.parallel import map_in_threads
from deciban.util.progress import Advance, progress, stages
from deciban.util.text_tables import count_noun

# Rows of a file that are held in memory to find copies of rows: about a million.
MAX_ROWS_HELD = 1 << 20

# Cells of a file that are held in memory: 128 MB of numbers.
MAX_CELLS_HELD = 1 << 24


class FoldAssigner:
    """Assigns the rows of each class to folds in rounds, one per fold, in an order given by a hash."""

    def __init__(self, folds: int) -> None:
        self._folds = folds
        self._assigned: dict[Any, int] = {}

    def assign(self, labels: Labels) -> Integers:
        """Return the fold of each of the next rows; rows without a label are in the first."""
        folds = np.zeros(labels.codes.size, dtype=np.int64)
        for c, label in enumerate(labels.classes.tolist()):
            rows = np.flatnonzero(labels.codes == c)
            if not rows.size:
                continue
            numbers = self._assigned.get(label, 0) + np.arange(rows.size)
            self._assigned[label] = self._assigned.get(label, 0) + rows.size
            rounds = numbers // self._folds
            drawn = row_hashes(int(rounds[0]), int(rounds[-1] - rounds[0]) + 1)
            turns = (drawn % np.uint64(self._folds)).astype(np.int64)
            folds[rows] = (numbers + turns[rounds - rounds[0]]) % self._folds
        return folds


def separate_fold(rows: Examples, folds: int, fold: int) -> tuple[Examples, Examples]:
    """Return the rows of one fold, and all others; of a table in memory, these have all rows without a label."""
    if isinstance(rows, LabeledTable):
        inside = _assign_folds(rows, folds) == fold
        outside = ~inside | (rows.labels.codes < 0)
        return rows.take(np.flatnonzero(inside)), rows.take(np.flatnonzero(outside))
    stream = rows.stream
    streams = (Fold(stream.name, stream.names, stream, rows.target, folds, fold, side) for side in (True, False))
    one, others = (replace(rows, stream=stream, rows=None) for stream in streams)
    return one, others


def hold_in_memory(rows: Examples) -> Examples:
    """Return the rows as a table if they are few enough, so that all copies of a row are found."""
    if isinstance(rows, LabeledTable) or rows.elsewhere or rows.pushdown:
        return rows
    return rows.sample(max(1_000, min(MAX_ROWS_HELD, MAX_CELLS_HELD // max(len(rows.names), 1))))[1]


def _assign_folds(rows: LabeledTable, folds: int) -> Integers:
    """Return the fold of each row; copies of a row are in the same fold."""
    unit = find_copies(rows.table, rows.labels.codes, rows.row_weights).units
    first = np.unique(unit, return_index=True)[1]
    return FoldAssigner(folds).assign(Labels(rows.labels.classes, rows.labels.codes[first]))[unit]


@dataclass(frozen=True)
class Part(Source):
    """Some rows of a source."""

    stream: Source

    @property
    def typed(self) -> bool:
        return self.stream.typed

    @property
    def in_order(self) -> bool:
        return self.stream.in_order

    def resolve_types(self, sample: pa.Table) -> tuple[Self, pa.Table]:
        stream, table = self.stream.resolve_types(sample)
        return replace(self, stream=stream), table

    def steady(self) -> AbstractContextManager[None]:
        return self.stream.steady()


@dataclass(frozen=True)
class RowRange(Part):
    """The rows of a source from `first` on, up to `stop`."""

    first: int
    stop: int | None

    def tables(self) -> Iterator[pa.Table]:
        row, empty = 0, True
        for table in self.stream.tables():
            stop = table.num_rows if self.stop is None else min(self.stop - row, table.num_rows)
            begin = max(self.first - row, 0)
            row += table.num_rows
            if begin < stop or (empty and stop <= 0):
                empty = False
                yield table.slice(begin, max(stop - begin, 0))


@dataclass(frozen=True)
class Fold(Part):
    """The rows of a source in one fold (`inside`), or all others."""

    target: str
    folds: int
    fold: int
    inside: bool

    @property
    def expected(self) -> int | None:
        whole = self.stream.expected
        share = 1 / self.folds if self.inside else 1 - 1 / self.folds
        return None if whole is None else int(whole * share)

    def tables(self) -> Iterator[pa.Table]:
        dealer = FoldAssigner(self.folds)
        for table in self.stream.tables():
            folds = dealer.assign(encode_labels(table[self.target], table.num_rows))
            yield table.filter(pa.array((folds == self.fold) == self.inside))


def check_enough_rows(rows: Examples, folds: int) -> None:
    """Raise a DataError if no class has a row for each fold: a fold would be empty."""
    table_rows, times, most = 0, Counter[Any](), 0
    with rows.locate_errors():
        for piece in rows.pieces():
            table_rows += piece.table.rows
            codes = piece.labels.codes[piece.row_weights > 0.0]
            times.update(piece.labels.classes[codes[codes >= 0]].tolist())
            most = max(times.values(), default=0)
            if most >= folds:
                return
        if not table_rows:
            raise DataError("the table has no rows; there is nothing to learn from")
        if not times:
            raise _make_no_labels_error(rows)
        if times.total() == 1:
            raise DataError("only one row has a label, too few for folds", remedy="pass more rows")
        if times.total() < ROWS_OF_A_CLASS_PER_ROW * len(times) and len(times) >= MANY_CLASSES:
            classes = f"the target has {count_noun(len(times), 'class')} in {count_noun(times.total(), 'row')}"
            raise DataError(f"{classes}: it looks like an identifier", remedy="name the column with the classes")
        if most == 1:
            raise DataError("no class has two rows, one to train on and one to test", remedy="pass more rows")
        raise DataError(
            f"no class has more than {most} rows, too few for {folds} folds",
            remedy=("pass more rows, or ", Argument("folds", most)),
        )


def _make_no_labels_error(rows: Examples) -> DataError:
    if isinstance(rows, LabeledTable):
        return DataError("no row has a label and a weight", remedy="pass at least one")
    weight = "" if rows.weight is None else " and a weight"
    return DataError(
        f"no row has a label{weight}", remedy=f"fill in {rows.target!r}, or choose a different target column"
    )


# Scores rows whose labels are known classes: returns their posteriors and the number of copies among them.
ScoringFunction = Callable[[Fitted, LabeledTable], tuple[Floats, int]]

# Works on pieces of labeled rows; the result can be pickled.
PartFunction = Callable[[Fitted, Iterable[LabeledTable]], Any]

LEFT_OUT_IN_PART = (
    "labeled rows had a part in the expected counts of rows without a label, which are not left out with them: the "
    "result is too good; cross-validate, or use new rows"
)
NO_LABELED_ROWS = "no row has a label and a weight; pass at least one labeled row"


def evaluate_rows(fitted: Fitted, rows: Examples, loss: Any = None) -> Evaluation:
    """Return the metrics of rows that were not learned."""
    return _evaluate_parts(fitted, rows, loss, _score_new_rows)


def compute_accuracy(fitted: Fitted, rows: Examples) -> float:
    """Return the share of labeled rows whose class is predicted."""
    hits = np.array(_map_parts(fitted, rows, _count_hits)).reshape(-1, 2).sum(axis=0)
    if not hits[1] > 0.0:
        raise DataError(NO_LABELED_ROWS)
    return float(hits[0] / hits[1])


def evaluate_and_recognize(
    fitted: Fitted, rows: Examples, loss: Any, observe: Callable[[Table], None]
) -> tuple[Evaluation, bool]:
    """Return the metrics of rows, and True if they are exactly the training rows.

    These are all rows that the model has learned, or a set that it learned at once. The rows are read once; `observe`
    is called with each piece.
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
    """Return the metrics of training rows, each left out in turn, with its copies."""
    return replace(_evaluate_parts(fitted, hold_in_memory(rows), loss, _score_learned_rows), leave_one_out=True)


def cross_validate(
    settings: Settings,
    rows: Examples,
    folds: int,
    loss: Any = None,
    only: int | None = None,
    max_seconds: float | None = None,
) -> Evaluation:
    """Return the metrics over all folds, each scored by a model fitted on the others.

    only: evaluate only this many folds; one of five is a hold-out of a fifth. max_seconds: time for each fit.
    """
    total: Evaluation | None = None
    evaluated = folds if only is None else only
    given_before: set[str] = set()
    with rows.locate_errors(), stages("fold", evaluated) as begin:
        with _warn_once(given_before):
            for remark in list_order_remarks(rows):
                warn_user(remark)
        check_enough_rows(rows, folds if only is None else 2)
        reading, rows = Reading.of(rows), hold_in_memory(rows)
        for fold in range(evaluated):
            begin(fold)
            inside, outside = separate_fold(rows, folds, fold)
            with _warn_once(given_before), outside.locate_errors():
                learned = fit_examples(settings, outside, budget=Budget.of(max_seconds), reading=reading)
            one = evaluate_rows(learned, inside, loss)
            total = one if total is None else total + one
    assert total is not None, "there is at least one fold"
    return total


def evaluate_last(
    settings: Settings, rows: Examples, share: float, loss: Any = None, max_seconds: float | None = None
) -> Evaluation:
    """Return the metrics of the last rows, this share of the labeled ones, by a model fitted on the rows before them.

    The order is that of the rows; they are not sorted. max_seconds: time for the fit.
    """
    parameter = Argument("hold_out_last", share)
    if not 0.0 < share < 1.0:
        raise UsageError("expected a number between 0 and 1", parameter=parameter)
    if isinstance(rows, LabeledStream) and not rows.stream.in_order:
        remedy = "sort them with ORDER BY in the query, or give a file"
        raise UsageError("these rows have no order", place=Place(rows.stream.name), remedy=remedy, parameter=parameter)
    with rows.locate_errors():
        check_enough_rows(rows, 2)
        for remark in list_last_rows_remarks(rows):
            warn_user(remark)
        reading, (earlier, last) = Reading.of(rows), separate_last(hold_in_memory(rows), share)
        with warnings.catch_warnings(), earlier.locate_errors():
            warnings.filterwarnings("ignore", re.escape(IN_ORDER))
            fitted = fit_examples(settings, earlier, budget=Budget.of(max_seconds), reading=reading)
        return evaluate_rows(fitted, last, loss)


def separate_last(rows: Examples, share: float) -> tuple[Examples, Examples]:
    """Return the rows before the last ones, and the last ones: this share of the labeled rows, at least one."""
    known = [(piece.labels.codes >= 0) & (piece.row_weights > 0.0) for piece in rows.pieces()]
    places = np.flatnonzero(np.concatenate(known))
    first = int(places[-min(max(round(share * places.size), 1), places.size - 1)])
    if isinstance(rows, LabeledTable):
        return rows.take(np.arange(first)), rows.take(np.arange(first, rows.table.rows))
    stream = rows.stream
    parts = (RowRange(stream.name, stream.names, stream, *bounds) for bounds in ((0, first), (first, None)))
    earlier, last = (replace(rows, stream=part, rows=None) for part in parts)
    return earlier, last


def score_left_out(
    fitted: Fitted,
    table: Table,
    labels: Codes,
    weights: Floats,
    model: Model | None = None,
    copies: Copies | None = None,
) -> LeaveOneOut:
    """Run leave-one-out on training rows, by the model or by another model of the same counts.

    labels: indices of the true classes. copies: copies among all training rows; None if these are all training rows.
    """
    fitted.counts.check_no_noise()
    if fitted.learned is not fitted.counts:
        warn_user(LEFT_OUT_IN_PART)
    used = fitted.model if model is None else model
    counts = fitted.learned.select_schema(used.schema)
    tuned = model is None and fitted.is_tuned
    threads, prior = fitted.settings.threads, fitted.settings.prior
    return leave_one_out(used, counts, prior, table, labels, weights, threads, tuned, copies)


def read_learned_rows(fitted: Fitted, rows: Examples, sample: bool = False) -> tuple[Table, Codes, Floats]:
    """Return the table, the class indices and the weights of training rows.

    sample: use a sample of a long file.
    """
    held = rows.sample()[0] if sample and isinstance(rows, LabeledStream) else rows.whole()
    table = fitted.counts.schema.table_as_learned(held.table)
    return table, find_class_places(fitted, held.labels, held.weights), held.row_weights


def sample_left_out(fitted: Fitted, rows: Examples, max_rows: int) -> tuple[Table, LeaveOneOut]:
    """Sample at most `max_rows` training rows; return their table and leave-one-out."""
    table, labels, weights = read_learned_rows(fitted, rows, sample=True)
    kept = np.flatnonzero((labels >= 0) & (weights > 0.0))
    size = (1 + len(fitted.model.schema.block_names)) * fitted.classes.size
    table, labels, weights = table.take(kept), labels[kept], weights[kept]
    copies = find_copies(table, labels, weights)
    drawn = sample_places(kept.size, min(max_rows, MAX_EVIDENCE // size))
    some = table.take(drawn)
    found = score_left_out(fitted, some, labels[drawn], weights[drawn], copies=copies.take(drawn))
    return fitted.model.schema.table_as_learned(some), found


def diagnose_rows(fitted: Fitted, rows: Examples) -> Diagnosis:
    """Diagnose the assumptions of plain Bayes on training rows; of a long file, on a sample."""
    some = read_learned_rows(fitted, rows, sample=True)
    after = score_left_out(fitted, *some)
    before = after if fitted.tuning is None else score_left_out(fitted, *some, fitted.plain)
    return diagnose(fitted.model, before, after, *some)


def is_learned(fitted: Fitted, rows: Examples) -> bool:
    """Return True if these are all training rows, or a set that was learned at once."""
    recount = _Recount(fitted)
    for piece in rows.pieces():
        recount.add(piece)
    return recount.is_known


class _Recount:
    """Counts rows as the model counted its own, as long as they may be the training rows."""

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
        except DecibanError:  # a row that cannot be learned has not been learned
            self._counts = None
            return
        if self._counts.rows > self._fitted.counts.rows:
            self._counts = None

    @property
    def is_known(self) -> bool:
        """True if these are all training rows, or a set that was learned at once."""
        if self._counts is None or not self._counts.rows:
            return False
        return identity(self._counts) in (*shards_of(self._fitted), identity(self._fitted.counts))


def _score_new_rows(fitted: Fitted, piece: LabeledTable) -> tuple[Floats, int]:
    return predict_posteriors(fitted, piece.table), 0


def _score_learned_rows(fitted: Fitted, piece: LabeledTable) -> tuple[Floats, int]:
    found = score_left_out(fitted, *read_learned_rows(fitted, piece))
    return found.posterior, found.copies


def _evaluate_parts(fitted: Fitted, rows: Examples, loss: Any, posterior: ScoringFunction) -> Evaluation:
    """Return the metrics of all rows."""
    return _check_rows_found(
        _add_up(_map_parts(fitted, rows, partial(_evaluate_pieces, loss=loss, posterior=posterior)))
    )


def _map_parts(fitted: Fitted, rows: Examples, what: PartFunction) -> list[Any]:
    """Apply a function to each part of the rows, where the parts are; rows in this process are one part."""
    with rows.locate_errors(), progress("evaluating", "rows", rows.expected) as advance:
        if isinstance(rows, LabeledStream) and rows.elsewhere:
            work = _PartWork(fitted, rows.target, rows.weight, what)
            return [pickle.loads(part) for part in rows.stream.each_part(work)]
        return [what(fitted, _report_progress(rows.pieces(), advance))]


@dataclass(frozen=True)
class _PartWork:
    """A function applied to a part of the rows, in another process."""

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
        raise DataError(NO_LABELED_ROWS)
    return found


def _count_hits(fitted: Fitted, pieces: Iterable[LabeledTable]) -> tuple[float, float]:
    """Return the weight of correct predictions, and of all labeled rows."""
    right = total = 0.0
    for piece in pieces:
        known = piece.labels.codes >= 0
        weights = piece.row_weights[known]
        hits = predict(fitted, piece.table)[known] == piece.labels.classes[piece.labels.codes[known]]
        right += float(weights @ hits)
        total += float(weights.sum())
    return right, total


def _evaluate_pieces(
    fitted: Fitted, pieces: Iterable[LabeledTable], loss: Any, posterior: ScoringFunction
) -> Evaluation | None:
    """Return the metrics of all pieces together; None without any piece."""
    model = fitted.model
    costs = None if loss is None else loss_for(fitted, loss)

    def figures(piece: LabeledTable) -> Evaluation:
        weights = piece.row_weights
        places = piece.labels.places_among(model.classes)
        kept = np.flatnonzero((places >= 0) & (weights > 0.0))
        unknown = float(weights[places == UNKNOWN_LABEL].sum())
        table = model.schema.cells_as_learned(piece.table, piece.first_row)
        part = replace(piece, table=table, weights=weights).take(kept)
        found, copies = posterior(fitted, part) if kept.size else (np.zeros((0, model.classes.size)), 0)
        figures = Evaluation.from_posterior(
            found, places[kept], weights[kept], model.classes, unknown, costs, model.order
        )
        return replace(figures, copies=copies)

    return _add_up(map(figures, pieces))


@contextmanager
def _warn_once(given_before: set[str]) -> Iterator[None]:
    """Suppress warnings that differ from those `given_before` only in numbers."""
    with warnings.catch_warnings(record=True) as given:
        yield
    for one in given:
        text = re.sub(r"\b\d[\d,]*\b", "0", str(one.message))
        if text not in given_before:
            given_before.add(text)
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
