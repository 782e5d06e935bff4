"""Scoring of rows batch by batch on threads: posteriors, predictions and decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from deciban.decisions.decide import Decisions, choose_decisions
from deciban.decisions.loss import Loss
from deciban.decisions.sets import PredictionSets, choose_sets, decide_by_sets, format_set
from deciban.errors import Argument, UsageError, warn_user
from deciban.model.batches import row_ranges, rows_per_batch
from deciban.model.fitted import Fitted
from deciban.model.intervals import posterior_intervals
from deciban.model.model import Model, posteriors
from deciban.model.priors import prior_variance
from deciban.sources.open import open_rows, open_table
from deciban.sources.source import Source
from deciban.sources.write import FileKind, IfExists, kind_of_output, open_writer, refuse_inputs
from deciban.tables.cells import as_whole
from deciban.tables.labels import LabelArray
from deciban.tables.table import Frame, Table, map_columns, with_columns
from deciban.util.arrays import Floats, Integers
from deciban.util.parallel import map_in_threads
from deciban.util.progress import progress
from deciban.util.results import Pair, Part, TextTable
from deciban.util.text_tables import format_class, note_hidden

# Approximate bytes of text per batch; larger batches leave the CPU cache.
SCORED_TEXT = 2 << 20

# Maximum number of scores per batch: they fit into the CPU cache, and bound the memory for many classes.
SCORES_OF_A_BATCH = 1 << 18

# Function of the log joint of some rows and the log prior that returns one or several arrays with a line per row.
Finish = Callable[[Floats, Floats], Any]


def score_table(
    model: Model, table: Table, finish: Finish, full: bool = False, threads: int | None = None, first_row: int = 0
) -> Any:
    """Return finish(log joint, log prior) for all rows of a table with the columns of the model's schema.

    full: include the terms that are the same for every class. first_row: row number of the first row in error messages.
    """
    scores = model.classes.size * model.n_slots
    max_rows = min(rows_per_batch(table, SCORED_TEXT), max(1, SCORES_OF_A_BATCH // scores))
    if table.rows <= max_rows:
        return finish(model.log_joint(table, first_row, full), model.log_prior)
    nothing = finish(np.empty((0, model.classes.size)), model.log_prior)
    arrays = nothing if isinstance(nothing, tuple) else (nothing,)
    results = tuple(np.empty((table.rows, *array.shape[1:]), array.dtype) for array in arrays)

    def fill(rows: tuple[int, int]) -> int:
        found = finish(model.log_joint(table.slice(*rows), first_row + rows[0], full), model.log_prior)
        for result, part in zip(results, found if isinstance(found, tuple) else (found,), strict=True):
            result[slice(*rows)] = part
        return rows[1] - rows[0]

    with progress("scoring", "rows", table.rows) as advance:
        for done in map_in_threads(fill, row_ranges(table.rows, max_rows), threads):
            advance(done)
    return results if isinstance(nothing, tuple) else results[0]


def score_rows(
    fitted: Fitted, X: Any, finish: Finish, full: bool = False, model: Model | None = None
) -> npt.NDArray[Any]:
    """Return finish(log joint, log prior) for all rows of any source, by one and the same model."""
    model, threads = fitted.model if model is None else model, fitted.settings.threads
    source = open_for_model(fitted, X)
    if not isinstance(source, Source):
        return np.asarray(score_table(model, model.schema.table_as_learned(source), finish, full, threads))

    def score(table: Table, first_row: int, shown: Table) -> npt.NDArray[Any]:
        aligned = model.schema.table_as_learned(table, first_row)
        return np.asarray(score_table(model, aligned, finish, full, threads, first_row))

    return np.concatenate(list(_each_piece(fitted, source, score, others_as_text=True)))


def predict(fitted: Fitted, X: Any) -> LabelArray:
    """Return the most probable class of each row, the first of equal ones, or the median of ordered classes."""
    model = fitted.model
    return np.asarray(model.classes[score_rows(fitted, X, model.predict, model=model)])


def predict_posteriors(fitted: Fitted, X: Any) -> Floats:
    """Return the posterior of each row, row by class."""
    return score_rows(fitted, X, posteriors)


def predict_sets(fitted: Fitted, X: Any, coverage: float, per_class: bool, allow_empty: bool) -> PredictionSets:
    """Return the prediction sets of all rows; see `deciban.model.conformity`."""
    prepare_sets(fitted, coverage)
    return choose_sets(fitted, predict_posteriors(fitted, X), coverage, per_class, allow_empty)


def prepare_sets(fitted: Fitted, coverage: float) -> None:
    """Raise an error if the model has no prediction sets of this coverage; warn if the coverage is approximate."""
    sets = choose_sets(fitted, np.zeros((0, fitted.classes.size)), coverage)
    if sets.stale:
        cause = "the model has changed since its conformity scores were computed: the coverage of sets is approximate; "
        methods = Argument("method", "retune"), " or ", Argument("method", "conformalize")
        warn_user((cause, *methods, " computes them again"))


# Lines of intervals that are printed.
MAX_LINES_PRINTED = 20


@dataclass(frozen=True, repr=False)
class Intervals(Pair):
    """Posterior of each row and class, with the bounds of its confidence interval: ``low, high = intervals``.

    classes: class labels. level: confidence level. posterior, low, high: row by class.
    """

    classes: LabelArray
    level: float
    posterior: Floats
    low: Floats
    high: Floats

    @property
    def _pair(self) -> tuple[Floats, Floats]:
        return self.low, self.high

    def to_dict(self) -> dict[str, Any]:
        """Return the classes, the level and the arrays as plain values."""
        arrays = {name: getattr(self, name).tolist() for name in ("classes", "posterior", "low", "high")}
        return {"level": self.level, **arrays}

    def _columns(self) -> dict[str, Any]:
        """Return a line for each row and class: ``row``, ``class``, ``posterior``, ``low`` and ``high``."""
        row, place = (places.ravel() for places in np.indices(self.low.shape))
        numbers = {name: getattr(self, name).ravel() for name in ("posterior", "low", "high")}
        return {"row": row, "class": self.classes[place], **numbers}

    def _parts(self) -> list[Part]:
        head = ("row", "class", "posterior", f"{100 * self.level:g}% from", "to")
        columns = {name: cells[:MAX_LINES_PRINTED] for name, cells in self._columns().items()}
        lines = [
            (str(row), format_class(label), *(f"{chance:.4f}" for chance in chances))
            for row, label, *chances in zip(*columns.values(), strict=True)
        ]
        bars = [*zip(columns["low"].tolist(), columns["high"].tolist(), strict=True)]
        notes = note_hidden(self.low.size - len(lines), "more line", ": to_frame()")
        return [TextTable(lines, head, range(2, 5), notes=notes, bars=bars, bar_column=2, bar_reach=1.0)]


def intervals(fitted: Fitted, X: Any, level: float) -> Intervals:
    """Return the posteriors with the bounds of their intervals; see `deciban.model.intervals`."""
    if not 0.0 < level < 1.0:
        raise UsageError("use a probability between 0 and 1, such as 0.95", parameter=Argument("level", level))
    model = fitted.model
    counts = fitted.learned.select_schema(model.schema)
    variance = prior_variance(fitted.settings.prior, counts.class_weight)
    table = align_rows(fitted, X)
    posterior = np.asarray(score_table(model, table, posteriors, threads=fitted.settings.threads))
    return Intervals(model.classes, level, posterior, *posterior_intervals(model, counts, variance, table, level))


def table_of(fitted: Fitted, X: Any) -> Table:
    """Return all rows in memory, with cells read as in training."""
    return open_table(X, fitted.column_types(), fitted.origin.habit)


def align_rows(fitted: Fitted, X: Any) -> Table:
    """Return all rows in memory, with the columns of the model in their order."""
    return fitted.model.schema.table_as_learned(table_of(fitted, X))


def open_for_model(fitted: Fitted, X: Any) -> Table | Source:
    """Return rows of any source, with cells read as in training."""
    return open_rows(X, fitted.column_types(), fitted.origin.habit)


def predict_batches(
    fitted: Fitted,
    X: Any,
    *,
    probabilities: bool = False,
    coverage: float | None = None,
    observe: Callable[[Table], None] | None = None,
    output_format: FileKind | None = None,
) -> Iterator[pa.Table]:
    """Yield tables of the rows, piece by piece, with the columns `predicted` and `probability` added.

    probabilities: also add the probability of every class. coverage: also add the prediction set, as text. observe:
    function called with each piece as the model reads it. output_format: format of the output: with "csv", cells of a
    CSV file keep their spelling; with "json", its integers stay integers; None gives typed columns. Memory does not
    grow with the size of a file.
    """
    model = fitted.model
    if coverage is not None:
        prepare_sets(fitted, coverage)

    def predict_piece(table: Table, first_row: int, shown: Table) -> pa.Table:
        table = model.schema.cells_as_learned(table, first_row)
        if observe is not None:
            observe(table)
        posterior, best = _score_as_learned(fitted, table, first_row)
        added: dict[str, Any] = {"predicted": model.classes[best], "probability": posterior[np.arange(best.size), best]}
        if coverage is not None:
            added["set"] = np.array(list(map(format_set, choose_sets(fitted, posterior, coverage))), dtype=object)
        if probabilities:
            added |= {f"P({format_class(label)})": posterior[:, c] for c, label in enumerate(model.classes.tolist())}
        return with_columns(shown, added)

    yield from _each_piece(fitted, X, predict_piece, others_as_text=True, output_format=output_format)


def predict_to(
    fitted: Fitted,
    path: Any,
    X: Any,
    *,
    probabilities: bool = False,
    coverage: float | None = None,
    table: str | None = None,
    if_exists: IfExists = "fail",
) -> int:
    """Write the tables of `predict_batches` with `write_tables`; return the number of rows."""
    source = open_for_model(fitted, X)
    kind = kind_of_output(path)
    tables = predict_batches(fitted, source, probabilities=probabilities, coverage=coverage, output_format=kind)
    return write_tables(path, tables, source, table, if_exists)


def write_tables(
    path: Any,
    tables: Iterable[pa.Table],
    source: Table | Source,
    table: str | None = None,
    if_exists: IfExists = "fail",
) -> int:
    """Write tables to a .csv, .jsonl, .parquet or .xlsx file, or to a database table; return the number of rows.

    source: the input, which must not be overwritten. if_exists: what to do if the table exists.
    """
    if isinstance(source, Source):
        refuse_inputs(path, source.inputs)
    rows = 0
    with open_writer(path, table=table, if_exists=if_exists) as write:
        for one in tables:
            write(one)
            rows += one.num_rows
    return rows


def loss_for(fitted: Fitted, loss: Any, reject: float | None = None) -> Loss:
    """Return the loss for the model's classes; None is zero-one loss, or the absolute distance of ordered classes.

    reject: cost of leaving a row undecided.
    """
    labels = list(fitted.model.classes)
    given = _usual_loss(fitted.model) if loss is None else Loss.from_costs(loss).for_classes(labels)
    return given if reject is None else given.with_reject(reject)


def _usual_loss(model: Model) -> Loss:
    """Return the loss that the predictions of a model minimize."""
    labels, order = list(model.classes), model.order
    found = Loss.zero_one(labels) if order is None else Loss.absolute_distance([labels[c] for c in order])
    return found.for_classes(labels)


def decide_table(
    fitted: Fitted, table: Table, loss: Loss, first_row: int = 0, coverage: float | None = None
) -> Decisions:
    """Return the decisions of least risk for rows in memory; `loss` is for the model's classes.

    coverage: that of prediction sets; see `decide_by_sets`.
    """
    posterior, best = _score_as_learned(fitted, table, first_row)
    if coverage is not None:
        return decide_by_sets(posterior, choose_sets(fitted, posterior, coverage, allow_empty=False), loss)
    return break_ties_as_predict(fitted.model, choose_decisions(posterior, loss, column_of(table)), best)


def break_ties_as_predict(model: Model, decisions: Decisions, best: Integers) -> Decisions:
    """Return the decisions, with ties resolved as by `predict` if the loss is the one that it minimizes."""
    loss = decisions.loss
    if model.order is None:
        chosen, same = best, loss.is_zero_one
    else:
        chosen, usual = np.argsort(model.order)[best], _usual_loss(model)
        same = (
            not loss.varies_by_row and loss.decisions == usual.decisions and np.array_equal(loss.matrix, usual.matrix)
        )
    if not same:
        return decisions
    second = np.where(decisions.second_best_index == chosen, decisions.decision_index, decisions.second_best_index)
    return replace(decisions, decision_index=chosen.astype(np.int32), second_best_index=second)


def decide_batches(
    fitted: Fitted,
    X: Any,
    loss: Any = None,
    *,
    reject: float | None = None,
    coverage: float | None = None,
    observe: Callable[[Table], None] | None = None,
    output_format: FileKind | None = None,
) -> Iterator[pa.Table]:
    """Yield tables of the rows, piece by piece, with the decision, its risk and the second best decision added.

    coverage: see `decide_by_sets`. observe, output_format: see `predict_batches`.
    """
    if coverage is not None:
        prepare_sets(fitted, coverage)
    wanted = loss_for(fitted, loss, reject)
    schema = fitted.model.schema

    def decide_piece(table: Table, first_row: int, shown: Table) -> pa.Table:
        table = schema.cells_as_learned(table, first_row)
        if observe is not None:
            observe(table)
        found = decide_table(fitted, table, wanted, first_row, coverage)
        chosen = {"decision": found.decision, "risk": found.risk}
        return with_columns(
            shown, {**chosen, "second_best": found.second_best, "second_best_risk": found.second_best_risk}
        )

    others_as_text = not wanted.varies_by_row  # costs that vary by row may be columns
    yield from _each_piece(fitted, X, decide_piece, others_as_text=others_as_text, output_format=output_format)


def decide_to(
    fitted: Fitted,
    path: Any,
    X: Any,
    loss: Any = None,
    *,
    reject: float | None = None,
    table: str | None = None,
    if_exists: IfExists = "fail",
) -> int:
    """Write the tables of `decide_batches` with `write_tables`; return the number of rows."""
    source = open_for_model(fitted, X)
    tables = decide_batches(fitted, source, loss, reject=reject, output_format=kind_of_output(path))
    return write_tables(path, tables, source, table, if_exists)


def column_of(table: Table) -> Callable[[str], Any]:
    """Return a function from a column name of a table to its cells as numbers."""

    def column(name: str) -> Any:
        if table.names is None or name not in table.names:
            raise UsageError(
                f"the loss refers to the column {name!r}, which is not in the table",
                remedy="give the costs as an array",
            )
        return table.numbers([table.names.index(name)])[:, 0]

    return column


def posterior_and_best(model: Model) -> Callable[[Floats, Floats], tuple[Floats, Integers]]:
    """Return a function that returns the posterior of each row and the index of the predicted class."""
    return lambda joint, prior: (posteriors(joint, prior), model.predict(joint, prior))


def _score_as_learned(fitted: Fitted, table: Table, first_row: int) -> tuple[Floats, Integers]:
    """Return the posteriors and predicted classes of the rows of a table, with columns read as in training."""
    model = fitted.model
    aligned = model.schema.table_as_learned(table, first_row)
    posterior, best = score_table(model, aligned, posterior_and_best(model), False, fitted.settings.threads, first_row)
    return posterior, best


def _each_piece(
    fitted: Fitted,
    X: Any,
    action: Callable[[Table, int, Table], Any],
    others_as_text: bool = False,
    output_format: FileKind | None = None,
) -> Iterator[Any]:
    """Yield action(table, number of its first row, the table as shown in the output) for each piece.

    others_as_text: pass on columns of a CSV file that the model does not have as they are written.
    """
    types, source = fitted.column_types(), open_for_model(fitted, X)
    if not isinstance(source, Source):
        yield action(source, 0, source)
        return
    if others_as_text and output_format != "excel":  # a sheet has typed cells
        source = source.as_text([name for name in source.names if name not in types])
    with source.locate_errors(), progress("reading", "rows", source.expected) as advance:
        first_row = 1  # rows of files are numbered from 1
        for table, shown in _with_shown(source, output_format):
            yield action(Frame(table), first_row, Frame(shown))
            first_row += table.num_rows
            advance(table.num_rows)


def _with_shown(source: Source, output_format: FileKind | None) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Yield the tables of a stream, each with its form in the output."""
    if output_format in ("csv", "tsv"):
        yield from source.beside_text()
        return
    for table in source.tables():
        yield table, map_columns(table, as_whole) if output_format == "json" and not source.typed else table
