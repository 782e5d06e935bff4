"""The metrics of a report as data: of the model, its quality, each column, the diagnosis, decisions, a few rows."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from deciban.decisions.loss import Loss
from deciban.decisions.threshold import Threshold
from deciban.errors import DataError, Labels, UsageError
from deciban.evaluation.evaluate import diagnose_rows, evaluate_and_recognize, evaluate_left_out, sample_left_out
from deciban.evaluation.importance import (
    Importance,
    importance_left_out,
    importance_of_drawn,
    importance_of_learned,
    importance_of_new,
)
from deciban.evaluation.metrics import Evaluation
from deciban.explain.calculation import rolled_up
from deciban.explain.column_values import ColumnValues, density_of_each, evidence_of_each, values_of
from deciban.explain.columns import form_cell, values_of_row
from deciban.explain.estimates import ParameterCount
from deciban.explain.explanation import Explanation
from deciban.explain.words import top_words_of
from deciban.model.fitted import Fitted
from deciban.model.tuning import Tuning
from deciban.scoring.predict import loss_for, predict_posteriors
from deciban.sources.labeled import Examples
from deciban.store.model_file import shards_of
from deciban.tables.table import Table
from deciban.util.arrays import Codes, Floats, Integers
from deciban.util.text_tables import DECIBANS, count_noun, format_class, integer_if_whole
from deciban.util.version import __version__

# --- each column over its values, from counts: many columns in one pass

# Values at which a number is shown, in a picture that is open and in one that is folded or has many lines; and how
# many lines are many.
POINTS_OPEN = 61
POINTS_FOLDED = 21
MANY_LINES = 6

# Categories and words that are shown of a column.
MAX_CATEGORIES_SHOWN = 12
MAX_WORDS_SHOWN = 10


@dataclass(frozen=True)
class ColumnFigures:
    """What a column says, all other columns missing.

    values: at which it is shown; None for texts and for columns without cells. evidence: for each class against all
    others, in decibans; density: within each class, by the family that the model uses for the column; value by class.
    note: why there are no values. words: of a text, for each class those that are typical of it.
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
        """The least and the most that it says for any class, in decibans; infinite where a value rules a class out."""
        known = self.evidence[~np.isnan(self.evidence)]
        return (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)

    @property
    def typical(self) -> list[Any]:
        """Of each class the value of highest density, for programs; None where there is none."""
        if self.values is None:
            return []
        density = np.where(np.isfinite(self.density), self.density, -1.0)
        best = np.where(density.any(axis=0), density.argmax(axis=0), len(density) // 2)
        return [_typed(self.values.cells[int(place)].as_py()) for place in best]


def _typed(value: Any) -> Any:
    """A value as somebody would type it: a number in four digits, a date without the time."""
    if isinstance(value, float):
        return form_cell(float(f"{value:.4g}"))
    return form_cell(value.date() if isinstance(value, datetime) else value)


def column_figures(fitted: Fitted, importance: Importance, opened: int, most: int) -> list[ColumnFigures]:
    """The figures of at most so many columns, the most important first; more points for the first `opened` of them."""
    draws: dict[int, list[Any]] = {}
    found: list[ColumnValues | str] = []
    order = importance.order[:most].tolist()
    for rank, column in enumerate(order):
        few_lines = fitted.classes.size <= MANY_LINES
        points = POINTS_OPEN if rank < opened and few_lines else POINTS_FOLDED
        try:
            found.append(values_of(fitted, column, points, draws))
        except UsageError as error:
            found.append(str(error))
    shown = [one for one in found if isinstance(one, ColumnValues)]
    evidence = dict(zip((one.column for one in shown), evidence_of_each(fitted.model, shown), strict=True))
    density = dict(zip((one.column for one in shown), density_of_each(fitted.generative, shown), strict=True))
    return [
        ColumnFigures(column, fitted.schema.column_name(column), one, evidence[column], density[column])
        if isinstance(one, ColumnValues)
        else _without_values(fitted, column, one)
        for column, one in zip(order, found, strict=True)
    ]


def _without_values(fitted: Fitted, column: int, note: str) -> ColumnFigures:
    """A text, by its words, or a column of which nothing was learned."""
    name, nothing = fitted.schema.column_name(column), np.zeros((0, fitted.classes.size))
    try:
        words = tuple(
            (
                format_class(label),
                tuple((word.word, word.decibans) for word in top_words_of(fitted.plain, c, MAX_WORDS_SHOWN, name)),
            )
            for c, label in enumerate(fitted.classes.tolist())
        )
    except UsageError:
        return ColumnFigures(column, name, None, nothing, nothing, note)
    return ColumnFigures(column, name, None, nothing, nothing, "", words)


# --- a few rows: the surest that is right, the least sure, the one that is most wrong

# Terms and words of a row that are told one by one.
MAX_TERMS_TOLD = 12


def telling_rows(posterior: Floats, labels: Codes, most: int) -> list[tuple[int, str]]:
    """The places of rows that tell most about a model, and why each was chosen."""
    rows, best = np.arange(labels.size), posterior.argmax(axis=1)
    right, chance = best == labels, posterior[rows, labels]
    found: list[tuple[int, str]] = []

    def add(places: Integers, by: Floats, why: str) -> None:
        if places.size and (place := int(places[np.argmax(by[places])])) not in [known for known, _ in found]:
            found.append((place, why))

    add(np.flatnonzero(right), chance, "the surest of those that are right")
    add(rows, -posterior.max(axis=1), "the least sure")
    add(np.flatnonzero(~right), -chance, "the most mistaken")
    return found[:most]


def explained_rows(fitted: Fitted, table: Table, posterior: Floats, labels: Codes, most: int) -> list[dict[str, Any]]:
    """A few rows as data: why each was chosen, its true class, the terms of its evidence, and its cells."""
    chosen = telling_rows(posterior, labels, most)
    return [_explained(fitted, table.slice(place, place + 1), int(labels[place]), why) for place, why in chosen]


def _explained(fitted: Fitted, row: Table, label: int, why: str) -> dict[str, Any]:
    explanation = Explanation.from_model(fitted.model, row)
    reasons = explanation.to_dict(0)
    against = reasons["against"]
    terms = [] if against is None else rolled_up(explanation.terms(0), MAX_TERMS_TOLD)
    words = {
        text.column: [[word.word, word.decibans] for word in text.words[:MAX_TERMS_TOLD]]
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
        "cells": dict(zip(fitted.model.schema.column_names, map(form_cell, values_of_row(row)), strict=True)),
    }


# --- the diagnosis, and what tuning has done about it

# Columns that a report compares with each other; where there are more, that is left out.
MAX_COLUMNS_DIAGNOSED = 60


def diagnosis_figures(fitted: Fitted, learned: Examples | None) -> dict[str, Any]:
    """What is wrong with the assumptions of plain Bayes, where learned rows are known; and what tuning has done."""
    found: dict[str, Any] = {"done": _done(fitted), "dependences": None, "misfits": None}
    if learned is None:
        found["cannot_know"] = (
            "Which columns depend on each other is found on the rows that were learned; none are given."
        )
    elif fitted.model.schema.width > MAX_COLUMNS_DIAGNOSED:
        found["cannot_know"] = f"A report compares up to {MAX_COLUMNS_DIAGNOSED} columns; diagnose() compares more."
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
            for one in diagnosis.misfits
        ]
        found["small_classes"] = [
            {"class": format_class(label), "rows": integer_if_whole(rows)} for label, rows in diagnosis.small_classes
        ]
    return found


def _done(fitted: Fitted) -> list[str]:
    """What tuning has done, a sentence each."""
    tuning = fitted.tuning
    if tuning is None or not tuning.rows:
        return [tuning.note if tuning is not None and tuning.note else "Nothing: this is plain Bayes."]
    done = [_weighed(tuning)]
    done += [
        f"{len(group.columns)} columns together, as {group.family}, speak too, weight {tuning.weights[slot[0]]:.2g}."
        for slot, group in zip(tuning.schema.block_slots, tuning.schema.groups, strict=True)
        if group.auxiliary
    ]
    if tuning.corrections is not None:
        tables = count_noun(len(tuning.corrections.tests), "small table")
        done.append(f"{tables} of corrections were learned where the sum was wrong on rows left out.")
    if np.isfinite(tuning.cap):
        done.append(f"No block is worth more than {DECIBANS * tuning.cap:.0f} decibans.")
    return done


def _weighed(tuning: Tuning) -> str:
    """The weights of the columns by themselves."""
    groups = zip(tuning.schema.block_slots, tuning.schema.groups, strict=True)
    alone = np.concatenate([tuning.weights[slot] for slot, group in groups if not group.auxiliary])
    used = alone[alone > 0.0]
    text = "The evidence of each block has a weight, so that what several columns say alike counts once"
    text += f": {alone.size - used.size} of {alone.size} columns weigh nothing by themselves"
    return text + (f", the others {used.min():.2g} to {used.max():.2g}." if used.size else ".")


# --- all metrics of a report

# Columns whose pictures are open, and all that are shown: those between are folded.
OPEN_COLUMNS = 30
MAX_COLUMNS_SHOWN = 500

# Rows of the fit that are left out in turn, and given rows that telling ones are chosen from.
MAX_ROWS_LEFT_OUT = 10_000
MAX_ROWS_CHOSEN_FROM = 2_000

# What rows are called that were learned.
LEFT_OUT = "rows that the model has learned, each left out in its turn"


@dataclass(frozen=True)
class ReportFigures:
    """All that a report tells: `data` as plain JSON, and the figures of each column, the most telling first."""

    fitted: Fitted
    loss: Loss | None
    data: dict[str, Any]
    columns: list[ColumnFigures]


def report_figures(
    fitted: Fitted,
    title: str,
    held_out: Examples | None = None,
    training: Examples | None = None,
    loss: Any = None,
    examples: int = 3,
    keeps_no_rows: str = "",
) -> ReportFigures:
    """The figures of a model: on rows that were held out, or on its training rows, each left out; else from counts.

    keeps_no_rows: what to tell where there are no rows, and none can be given.
    """
    costs = None if loss is None else loss_for(fitted, loss)
    judged = _judged(fitted, held_out, training, costs)
    columns = column_figures(fitted, judged.importance, OPEN_COLUMNS, MAX_COLUMNS_SHOWN)
    shown = [] if judged.rows is None or not examples else explained_rows(fitted, *judged.rows, examples)
    data: dict[str, Any] = {
        "title": title,
        "deciban": __version__,
        "model": _model(fitted),
        "quality": judged.quality,
        "importance": {"rows": judged.importance.rows, "source": judged.importance.source},
        "columns": _columns(fitted, columns, judged.importance),
        "diagnosis": diagnosis_figures(fitted, judged.learned),
        "decisions": _decisions(fitted, costs, judged.quality),
        "rows": shown,
        "rows_learned": held_out is not None and judged.learned is held_out,
    }
    for part in ("quality", "diagnosis"):
        if keeps_no_rows and "cannot_know" in data[part]:
            data[part]["cannot_know"] = keeps_no_rows
    return ReportFigures(fitted, costs, data, columns)


@dataclass(frozen=True)
class _Judged:
    """How good a model is, how much its columns matter, rows to choose examples from (with posteriors and classes), and
    the rows that it has learned, as far as these are known."""

    quality: dict[str, Any]
    importance: Importance
    rows: tuple[Table, Floats, Codes] | None
    learned: Examples | None


def _judged(fitted: Fitted, held_out: Examples | None, training: Examples | None, loss: Loss | None) -> _Judged:
    """What rows tell of a model: those that were held out, else those of its fit, left out in turn, else none."""
    if held_out is not None:
        found, learned = evaluate_and_recognize(fitted, held_out, loss, lambda table: None)
        some = _some_rows(fitted, held_out)
        if learned:
            quality = _evaluated(evaluate_left_out(fitted, held_out, loss), LEFT_OUT)
            return _Judged(quality, importance_of_learned(fitted, held_out), some, held_out)
        absent = [name for name in fitted.schema.names or () if name not in (held_out.names or ())]
        quality = _evaluated(found, "the rows that were given, taken as new ones") | {"absent": absent}
        return _Judged(quality, importance_of_new(fitted, some[0]), some, training)
    if training is not None:
        table, left = sample_left_out(fitted, training, MAX_ROWS_LEFT_OUT)
        importance = importance_left_out(fitted, table, left)
        return _Judged(_evaluated(left.evaluation(loss), LEFT_OUT), importance, None, training)
    return _Judged(_unknown(fitted), _importance_of_counts(fitted), None, None)


def _evaluated(found: Evaluation, source: str) -> dict[str, Any]:
    figures = found.to_dict()
    figures["baseline"]["class"] = format_class(figures["baseline"]["class"])
    if "decision" in figures["baseline"]:
        figures["baseline"]["decision"] = format_class(figures["baseline"]["decision"])
        figures["decisions"] = [format_class(label) for label in figures["decisions"]]
    figures["beats_baseline"] = found.beats_baseline
    figures["classes"] = [format_class(label) for label in figures["classes"]]
    for one in figures["per_class"]:
        one["class"] = format_class(one["class"])
    return {"source": source, **figures}


def _unknown(fitted: Fitted) -> dict[str, Any]:
    """What a model without rows cannot know, and what its tuning has kept."""
    found: dict[str, Any] = {
        "source": None,
        "cannot_know": "No rows were given, and counts alone do not tell how good predictions are on new rows, how "
        "far probabilities can be believed, or what decisions cost. Give rows that the model has not learned.",
    }
    tuning = fitted.tuning
    if tuning is not None and tuning.accuracy is not None and not tuning.stale:
        found["tuning"] = {"rows": tuning.rows, "accuracy": tuning.accuracy, "log_loss": tuning.log_loss}
    return found


def _some_rows(fitted: Fitted, rows: Examples) -> tuple[Table, Floats, Codes]:
    """Rows that examples are chosen from, with their posteriors and classes: the first ones of a known class."""
    schema = fitted.model.schema
    for piece in rows.pieces():
        labels = piece.labels.places_among(fitted.classes)
        kept = np.flatnonzero(labels >= 0)[:MAX_ROWS_CHOSEN_FROM]
        if kept.size:
            some = piece.table.take(kept)
            table = schema.table_as_learned(schema.cells_as_learned(some, piece.first_row))
            return table, predict_posteriors(fitted, some), labels[kept]
    raise DataError(
        ("no row is of one of the model's classes ", Labels(fitted.classes.tolist())), remedy="give at least one"
    )


def _importance_of_counts(fitted: Fitted) -> Importance:
    """How much each column matters in rows drawn from the model; of none where they cannot be drawn."""
    try:
        return importance_of_drawn(fitted)
    except UsageError:  # a score is no distribution
        width = fitted.model.schema.width
        return Importance(fitted.schema.column_names, np.zeros(width), np.zeros(width), 0, "not known")


def _model(fitted: Fitted) -> dict[str, Any]:
    """What the model is."""
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
        "tuning": "plain Bayes: the evidence of every block has weight 1" if tuning is None else tuning.summary,
        "stale": fitted.is_tuned and tuning is not None and tuning.stale,
    }


def _columns(fitted: Fitted, columns: list[ColumnFigures], importance: Importance) -> list[dict[str, Any]]:
    """Each column: its family and why, the weights of its blocks, how much it matters and how far it reaches."""
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
                "least": low,
                "most": high,
                "note": one.note,
                **_values(fitted, one),
            }
        )
    return found


def _matters(importance: Importance, column: int) -> dict[str, float]:
    if not importance.rows:
        return {}
    return {"decibans": float(importance.decibans[column]), "bits": float(importance.bits[column])}


def _values(fitted: Fitted, one: ColumnFigures) -> dict[str, Any]:
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
    """The blocks that each column is in, by its place: their family and weight."""
    model = fitted.model
    found: dict[int, list[dict[str, Any]]] = {}
    for group, slots in zip(model.schema.groups, model.schema.block_slots, strict=True):
        for k, column in enumerate(group.columns):
            joint = group.family.joint and len(group.columns) > 1
            weight = float(model.weights[slots[0 if group.family.joint else k]])
            found.setdefault(column, []).append(
                {"family": str(group.family), "columns": len(group.columns) if joint else 1, "weight": weight}
            )
    return found


def _decisions(fitted: Fitted, loss: Loss | None, quality: dict[str, Any]) -> dict[str, Any]:
    """The losses that were given, the threshold of two classes, and what decisions cost."""
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
        found["decided"] = quality["decided"]
    return found
