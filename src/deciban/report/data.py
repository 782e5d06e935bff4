"""Contents of a report as data: the model, its quality, columns, diagnosis, decisions and example rows."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from deciban.decisions.loss import Loss
from deciban.decisions.threshold import Threshold
from deciban.errors import DataError, Labels, UsageError
from deciban.evaluation.comparison import compare
from deciban.evaluation.importance import (
    Importance,
    compute_left_out_importance,
    compute_new_row_importance,
    compute_simulated_importance,
    compute_training_importance,
)
from deciban.evaluation.metrics import Evaluation
from deciban.evaluation.validation import diagnose_rows, evaluate_and_recognize, evaluate_left_out, sample_left_out
from deciban.explain.calculation import roll_up
from deciban.explain.column_values import (
    ColumnValues,
    compute_density_of_each,
    compute_evidence_of_each,
    get_column_values,
)
from deciban.explain.columns import form_cell, read_row_values
from deciban.explain.estimates import ParameterCount
from deciban.explain.explanation import Explanation
from deciban.explain.words import list_top_words
from deciban.model.fitted import Fitted
from deciban.model.model import choose_class
from deciban.model.tuning import Tuning
from deciban.scoring.predict import loss_for, predict_posteriors
from deciban.sources.streams import Examples
from deciban.store.model_file import shards_of
from deciban.tables.table import Table
from deciban.util.arrays import Codes, Floats, Integers
from deciban.util.progress import one_call
from deciban.util.text_tables import DECIBANS, count_noun, format_class, integer_if_whole
from deciban.util.version import __version__

# --- columns: evidence over the values of each column, computed from counts for many columns in one pass

# Points of a curve in an open chart.
POINTS_OPEN = 61

# Points of a curve in a folded chart or one with many lines, which keeps the page small.
POINTS_FOLDED = 21

# Above this number of classes a chart has many lines.
MANY_LINES = 6

# Categories of a column in its chart and table; more do not fit a card.
MAX_CATEGORIES_SHOWN = 12

# Characteristic words of a text column per class.
MAX_WORDS_SHOWN = 10


@dataclass(frozen=True)
class ColumnData:
    """Evidence of one column if all other columns are missing.

    values: values at which the column is shown; None for texts and for columns without cells. evidence: decibans for
    each class against all others, value by class. density: density within each class under the family that the model
    uses for the column, value by class. note: the reason for missing values. words: for a text column, the
    characteristic words of each class.
    """

    column: int
    name: str
    values: ColumnValues | None
    evidence: Floats
    density: Floats
    note: str = ""
    words: tuple[tuple[str, tuple[tuple[str, float], ...]], ...] = ()

    @property
    def reach(self) -> tuple[float, float]:
        """Lowest and highest evidence for any class, in decibans; infinite if a value rules a class out."""
        known = self.evidence[~np.isnan(self.evidence)]
        return (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)

    @property
    def typical(self) -> list[Any]:
        """Value of highest density for each class."""
        if self.values is None:
            return []
        density = np.where(np.isfinite(self.density), self.density, -1.0)
        best = np.where(density.any(axis=0), density.argmax(axis=0), len(density) // 2)
        return [_round_for_form(self.values.cells[int(place)].as_py()) for place in best]


def _round_for_form(value: Any) -> Any:
    """Round a value as a user would type it: four digits of a number, a date without the time."""
    if isinstance(value, float):
        return form_cell(float(f"{value:.4g}"))
    return form_cell(value.date() if isinstance(value, datetime) else value)


def collect_columns(fitted: Fitted, importance: Importance, n_open: int, max_columns: int) -> list[ColumnData]:
    """Return at most `max_columns` columns, the most important first; the first `n_open` get more points."""
    draws: dict[int, list[Any]] = {}
    found: list[ColumnValues | str] = []
    order = importance.order[:max_columns].tolist()
    for rank, column in enumerate(order):
        few_lines = fitted.classes.size <= MANY_LINES
        points = POINTS_OPEN if rank < n_open and few_lines else POINTS_FOLDED
        try:
            found.append(get_column_values(fitted, column, points, draws))
        except UsageError as error:
            found.append(str(error))
    shown = [one for one in found if isinstance(one, ColumnValues)]
    evidence = dict(zip((one.column for one in shown), compute_evidence_of_each(fitted.model, shown), strict=True))
    density = dict(zip((one.column for one in shown), compute_density_of_each(fitted.generative, shown), strict=True))
    return [
        ColumnData(column, fitted.schema.column_name(column), one, evidence[column], density[column])
        if isinstance(one, ColumnValues)
        else _describe_without_values(fitted, column, one)
        for column, one in zip(order, found, strict=True)
    ]


def _describe_without_values(fitted: Fitted, column: int, note: str) -> ColumnData:
    """Describe a text column by its words, or an unused column by the reason why."""
    name, nothing = fitted.schema.column_name(column), np.zeros((0, fitted.classes.size))
    try:
        words = tuple(
            (
                format_class(label),
                tuple((word.word, word.decibans) for word in list_top_words(fitted.plain, c, MAX_WORDS_SHOWN, name)),
            )
            for c, label in enumerate(fitted.classes.tolist())
        )
    except UsageError:
        return ColumnData(column, name, None, nothing, nothing, note)
    return ColumnData(column, name, None, nothing, nothing, "", words)


# --- example rows: the most confident correct prediction, the least confident one, the most confident mistake

# Terms and words of a row that are listed one by one; the rest is summed up.
MAX_TERMS_SHOWN = 12


def choose_rows(
    posterior: Floats, labels: Codes, max_rows: int, order: Integers | None = None
) -> list[tuple[int, str]]:
    """Return the positions of the most instructive rows, and why each was chosen; order: that of the classes."""
    rows, best = np.arange(labels.size), choose_class(posterior, order)
    right, chance = best == labels, posterior[rows, labels]
    found: list[tuple[int, str]] = []

    def add(places: Integers, by: Floats, why: str) -> None:
        if places.size and (place := int(places[np.argmax(by[places])])) not in [known for known, _ in found]:
            found.append((place, why))

    add(np.flatnonzero(right), chance, "Most confident correct prediction")
    add(rows, -posterior.max(axis=1), "Least confident prediction")
    add(np.flatnonzero(~right), -chance, "Most confident mistake")
    return found[:max_rows]


def explain_rows(fitted: Fitted, table: Table, posterior: Floats, labels: Codes, max_rows: int) -> list[dict[str, Any]]:
    """Return example rows as data: the reason for the choice, true class, terms of the evidence, cells."""
    chosen = choose_rows(posterior, labels, max_rows, fitted.order)
    return [_explain_row(fitted, table.slice(place, place + 1), int(labels[place]), why) for place, why in chosen]


def _explain_row(fitted: Fitted, row: Table, label: int, why: str) -> dict[str, Any]:
    explanation = Explanation.from_model(fitted.model, row)
    reasons = explanation.to_dict(0)
    against = reasons["against"]
    terms = [] if against is None else roll_up(explanation.terms(0), MAX_TERMS_SHOWN)
    words = {
        text.column: [[word.word, word.decibans] for word in text.words[:MAX_TERMS_SHOWN]]
        for text in explanation.words(0)
    }
    return {
        "why": why,
        "truth": format_class(fitted.classes.tolist()[label]),
        "predicted": format_class(reasons["predicted"]),
        "against": None if against is None else format_class(against),
        "posterior": reasons["posterior"],
        "terms": [{"label": name, "decibans": decibans} for name, decibans in terms],
        "words": words,
        "cells": dict(zip(fitted.model.schema.column_names, map(form_cell, read_row_values(row)), strict=True)),
    }


# --- diagnosis, and what tuning did about it

# Pairs of more columns than this take too long for a report.
MAX_COLUMNS_DIAGNOSED = 60


def collect_diagnosis(fitted: Fitted, learned: Examples | None) -> dict[str, Any]:
    """Return failed assumptions of plain Bayes (if training rows are available) and what tuning did about them."""
    found: dict[str, Any] = {"done": _describe_tuning(fitted), "dependences": None, "misfits": None}
    if learned is None:
        found["cannot_know"] = "Finding columns that depend on each other needs the training rows; none were given."
    elif fitted.model.schema.width > MAX_COLUMNS_DIAGNOSED:
        found["cannot_know"] = f"A report compares at most {MAX_COLUMNS_DIAGNOSED} columns; use diagnose() for more."
    else:
        diagnosis = diagnose_rows(fitted, learned)
        found["saved_bits"] = diagnosis.saved_bits
        found["pairs_tested"] = diagnosis.pairs_tested
        found["dependences"] = [
            {"columns": list(one.columns), "bits": one.bits, "cost": one.cost, "kind": one.kind}
            for one in (*diagnosis.triples, *diagnosis.dependences)
        ]
        found["remedies"] = diagnosis.remedies() if found["dependences"] else []
        found["misfits"] = [
            {"column": one.column, "class": format_class(one.label), "family": one.family, "distance": one.distance}
            for one in sorted(diagnosis.misfits, key=lambda one: -one.distance)
        ]
        found["small_classes"] = [
            {"class": format_class(label), "rows": integer_if_whole(rows)} for label, rows in diagnosis.small_classes
        ]
    return found


def _describe_tuning(fitted: Fitted) -> list[str]:
    """Return what tuning did, one sentence each."""
    tuning = fitted.tuning
    if tuning is None or not tuning.rows:
        return [tuning.note if tuning is not None and tuning.note else "Nothing: this is plain Bayes."]
    done = [_describe_weights(tuning)]
    for slots, group in zip(tuning.schema.block_slots, tuning.schema.groups, strict=True):
        if group.auxiliary:
            names = [tuning.schema.column_name(column) for column in group.columns]
            of = [count_noun(len(names), "column")] if group.family.joint else names
            what = group.family if group.family.part is None else f"the {group.family.part}"
            done += [
                f"Added {what} of {name} with weight {tuning.weights[slot]:.2g}."
                for name, slot in zip(of, slots, strict=True)
            ]
    if tuning.corrections is not None:
        tables = count_noun(len(tuning.corrections.tests), "correction table")
        done.append(f"Fitted {tables} on left-out rows; they correct the sum of the evidence.")
    if np.isfinite(tuning.cap):
        done.append(
            f"Capped the evidence of each block (a column or a joint model) at {DECIBANS * tuning.cap:.0f} decibans."
        )
    if np.isfinite(tuning.limit):
        done.append(f"Limited the total evidence against a class to {DECIBANS * tuning.limit:.0f} decibans.")
    return done


def _describe_weights(tuning: Tuning) -> str:
    """Return one sentence about the weights of single columns."""
    groups = zip(tuning.schema.block_slots, tuning.schema.groups, strict=True)
    alone = np.concatenate([tuning.weights[slot] for slot, group in groups if not group.auxiliary])
    used = alone[alone > 0.0]
    text = "Weighted the evidence of each column and joint model, so that redundant columns count once."
    spread = f"{used.min():.2g} to {used.max():.2g}" if used.size else ""
    if used.size == alone.size:
        return f"{text} Weights of single columns: {spread}."
    rest = f"; the other weights are {spread}" if used.size else ""
    return f"{text} {alone.size - used.size} of {alone.size} columns are not used on their own{rest}."


# --- the whole report

# Columns with an open chart; the rest is folded.
OPEN_COLUMNS = 30

# Columns in a report; more make the page too large.
MAX_COLUMNS_SHOWN = 500

# Training rows that are left out in turn; a sample of more rows gives the same metrics in less time.
MAX_ROWS_LEFT_OUT = 10_000

# Rows from which the examples are chosen.
MAX_ROWS_CHOSEN_FROM = 2_000

# Name of the training rows in sentences.
LEFT_OUT = "the training rows (each left out in turn)"


@dataclass(frozen=True)
class ReportData:
    """Contents of a report: `data` as plain JSON values, and each column, the most important first."""

    fitted: Fitted
    loss: Loss | None
    data: dict[str, Any]
    columns: list[ColumnData]


@one_call()
def collect_report_data(
    fitted: Fitted,
    title: str,
    held_out: Examples | None = None,
    training: Examples | None = None,
    loss: Any = None,
    examples: int = 3,
    keeps_no_rows: str = "",
) -> ReportData:
    """Collect the contents of a report from held-out rows, left-out training rows, or counts alone.

    keeps_no_rows: the note to show without rows, if none can be given.
    """
    costs = None if loss is None else loss_for(fitted, loss)
    results = _evaluate_rows(fitted, held_out, training, costs)
    columns = collect_columns(fitted, results.importance, OPEN_COLUMNS, MAX_COLUMNS_SHOWN)
    shown = [] if results.rows is None or not examples else explain_rows(fitted, *results.rows, examples)
    data: dict[str, Any] = {
        "title": title,
        "deciban": __version__,
        "model": _model(fitted),
        "quality": results.quality,
        "drift": None if held_out is None or results.learned is held_out else _drift(fitted, held_out, costs),
        "importance": {"rows": results.importance.rows, "source": results.importance.source},
        "columns": _columns(fitted, columns, results.importance),
        "diagnosis": collect_diagnosis(fitted, results.learned),
        "decisions": _decisions(fitted, costs, results.quality),
        "rows": shown,
        "rows_learned": held_out is not None and results.learned is held_out,
    }
    for part in ("quality", "diagnosis"):
        if keeps_no_rows and "cannot_know" in data[part]:
            data[part]["cannot_know"] = keeps_no_rows
    return ReportData(fitted, costs, data, columns)


@dataclass(frozen=True)
class _RowResults:
    """Metrics, importance of columns, candidate rows for examples with posteriors and classes, training rows."""

    quality: dict[str, Any]
    importance: Importance
    rows: tuple[Table, Floats, Codes] | None
    learned: Examples | None


def _evaluate_rows(
    fitted: Fitted, held_out: Examples | None, training: Examples | None, loss: Loss | None
) -> _RowResults:
    """Evaluate the model on held-out rows if given, else on left-out training rows, else without rows."""
    if held_out is not None:
        found, learned = evaluate_and_recognize(fitted, held_out, loss, lambda table: None)
        some = _candidate_rows(fitted, held_out)
        if learned:
            quality = _quality_data(evaluate_left_out(fitted, held_out, loss), LEFT_OUT, fitted.is_tuned)
            return _RowResults(quality, compute_training_importance(fitted, held_out), some, held_out)
        absent = [name for name in fitted.schema.names or () if name not in (held_out.names or ())]
        quality = _quality_data(found, "the given rows", fitted.is_tuned) | {"absent": absent}
        return _RowResults(quality, compute_new_row_importance(fitted, some[0]), some, training)
    if training is not None:
        table, left = sample_left_out(fitted, training, MAX_ROWS_LEFT_OUT)
        importance = compute_left_out_importance(fitted, table, left)
        return _RowResults(_quality_data(left.evaluate(loss), LEFT_OUT, fitted.is_tuned), importance, None, training)
    return _RowResults(_quality_without_rows(fitted), _importance_without_rows(fitted), None, None)


def _quality_data(found: Evaluation, source: str, tuned: bool) -> dict[str, Any]:
    quality = found.to_dict()
    quality["baseline"]["class"] = format_class(quality["baseline"]["class"])
    if "decision" in quality["baseline"]:
        quality["baseline"]["decision"] = format_class(quality["baseline"]["decision"])
        quality["decisions"] = [format_class(label) for label in quality["decisions"]]
    quality["beats_baseline"] = found.beats_baseline
    quality["classes"] = [format_class(label) for label in quality["classes"]]
    for one in quality["per_class"]:
        one["class"] = format_class(one["class"])
    return {"source": source, "optimistic": found.leave_one_out and tuned, **quality}


def _drift(fitted: Fitted, rows: Examples, loss: Loss | None) -> dict[str, Any]:
    """Compare new rows with what was learned; of a long file, a sample."""
    drift = compare(fitted, rows.sample()[0].drop_zero_weights(), loss).to_dict()
    drift["classes"] = [{**one, "class": format_class(one["class"])} for one in drift["classes"]]
    return drift


def _quality_without_rows(fitted: Fitted) -> dict[str, Any]:
    """Return why metrics are missing, and those that tuning recorded."""
    found: dict[str, Any] = {
        "source": None,
        "cannot_know": "No rows were given. Accuracy, calibration and costs cannot be computed from counts alone; "
        "pass rows that the model has not learned.",
    }
    tuning = fitted.tuning
    if tuning is not None and tuning.accuracy is not None and not tuning.stale:
        found["tuning"] = {"rows": tuning.rows, "accuracy": tuning.accuracy, "log_loss": tuning.log_loss}
    return found


def _candidate_rows(fitted: Fitted, rows: Examples) -> tuple[Table, Floats, Codes]:
    """Return candidate rows for examples with posteriors and classes: the first rows of a known class."""
    schema = fitted.model.schema
    for piece in rows.pieces():
        labels = piece.labels.places_among(fitted.classes)
        kept = np.flatnonzero(labels >= 0)[:MAX_ROWS_CHOSEN_FROM]
        if kept.size:
            some = piece.table.take(kept)
            table = schema.table_as_learned(schema.cells_as_learned(some, piece.first_row))
            return table, predict_posteriors(fitted, some), labels[kept]
    raise DataError(
        ("no row has one of the model's classes ", Labels(fitted.classes.tolist())), remedy="pass at least one"
    )


def _importance_without_rows(fitted: Fitted) -> Importance:
    """Return the importance of columns in rows sampled from the model, or zeros if it cannot be sampled."""
    try:
        return compute_simulated_importance(fitted)
    except UsageError:  # some families only score
        width = fitted.model.schema.width
        return Importance(fitted.schema.column_names, np.zeros(width), np.zeros(width), 0, "not known")


def _model(fitted: Fitted) -> dict[str, Any]:
    """Return the description of the model."""
    counts, tuning = fitted.counts, fitted.tuning
    prior = np.exp(fitted.model.log_prior).tolist()
    return {
        "target": fitted.origin.target,
        "rows": counts.rows,
        "unlabeled": counts.unlabeled,
        "sets_of_rows": len(shards_of(fitted)),
        "classes": [
            {"class": format_class(label), "rows": integer_if_whole(weight), "prior": share}
            for label, weight, share in zip(counts.classes.tolist(), counts.class_weight.tolist(), prior, strict=True)
        ],
        "columns": counts.schema.width,
        "parameters": ParameterCount.from_counts(counts, fitted.plain, fitted.model).to_dict(),
        "tuning": "Plain Bayes: the evidence of every block has weight 1." if tuning is None else tuning.describe(),
        "stale": fitted.is_tuned and tuning is not None and tuning.stale,
    }


def _columns(fitted: Fitted, columns: list[ColumnData], importance: Importance) -> list[dict[str, Any]]:
    """Return each column: family and reason, weights of its blocks, importance, range of its evidence."""
    described: dict[str, list[tuple[str, str]]] = {}
    for name, family, why in fitted.schema.descriptions():
        described.setdefault(name, []).append((family, why))
    blocks = _blocks_of(fitted)
    types = fitted.counts.schema.types or ()
    found = []
    for one in columns:
        families = described.get(one.name, [])
        low, high = one.reach
        found.append(
            {
                "column": one.name,
                "type": types[one.column] if one.column < len(types) else None,
                "family": families[0][0] if families else None,
                "why": families[0][1] if families else None,
                "blocks": blocks.get(one.column, []),
                **_matters(importance, one.column),
                "min": low,
                "max": high,
                "note": one.note,
                **_values(fitted, one),
            }
        )
    return found


def _matters(importance: Importance, column: int) -> dict[str, float]:
    if not importance.rows:
        return {}
    return {"decibans": float(importance.decibans[column]), "bits": float(importance.bits[column])}


def _values(fitted: Fitted, one: ColumnData) -> dict[str, Any]:
    if one.values is None:
        return {"words": [{"class": label, "words": [list(word) for word in words]} for label, words in one.words]}
    names = [format_class(label) for label in fitted.classes]
    return {
        "kind": one.values.kind,
        "values": list(one.values.names),
        "evidence": dict(zip(names, one.evidence.T.tolist(), strict=True)),
        "density": dict(zip(names, np.nan_to_num(one.density).T.tolist(), strict=True)),
    }


def _blocks_of(fitted: Fitted) -> dict[int, list[dict[str, Any]]]:
    """Return the blocks of each column by its position: family, size and weight."""
    model = fitted.model
    found: dict[int, list[dict[str, Any]]] = {}
    for group, slots in zip(model.schema.groups, model.schema.block_slots, strict=True):
        for k, column in enumerate(group.columns):
            joint = group.family.joint and len(group.columns) > 1
            weight = float(model.weights[slots[0 if group.family.joint else k]])
            found.setdefault(column, []).append(
                {
                    "family": str(group.family),
                    "part": group.family.part,
                    "columns": len(group.columns) if joint else 1,
                    "weight": weight,
                }
            )
    return found


def _decisions(fitted: Fitted, loss: Loss | None, quality: dict[str, Any]) -> dict[str, Any]:
    """Return the given losses, the threshold between two classes, and the cost of decisions."""
    names = [format_class(label) for label in fitted.classes]
    if loss is None:
        return {"loss": None}
    matrix, decisions = loss.matrix, [format_class(one) for one in loss.decisions or names]
    found: dict[str, Any] = {"loss": matrix.tolist(), "decisions": decisions, "classes": names}
    if set(decisions) == set(names) and len(names) == 2:
        labels = fitted.classes.tolist()
        prior = float(np.exp(fitted.model.log_prior[1]))
        threshold = Threshold.from_loss(loss, prior, (labels[1], labels[0]), (labels[0], labels[1]))
        found["threshold"] = {"class": names[1], "posterior": threshold.posterior}
    if "mean_cost" in quality:
        found["mean_cost"] = quality["mean_cost"]
        found["baseline_cost"] = quality["baseline"].get("mean_cost")
        found["baseline_decision"] = quality["baseline"].get("decision")
        found["decision_counts"] = quality["decision_counts"]
    return found
