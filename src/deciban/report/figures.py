"""The figures of a report as data: from counts, and from rows where some are given."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from deciban.decisions.loss import Loss
from deciban.decisions.threshold import Threshold
from deciban.errors import DataError, UsageError
from deciban.evaluation.evaluate import evaluate_and_recognise, evaluate_left_out, sample_left_out
from deciban.evaluation.importance import (
    Importance,
    importance_left_out,
    importance_of_drawn,
    importance_of_learned,
    importance_of_new,
)
from deciban.evaluation.metrics import Evaluation
from deciban.explain.parameters import ParameterCount
from deciban.model.fitted import Fitted
from deciban.report.columns import ColumnFigures, column_figures
from deciban.report.diagnosis import diagnosis_figures
from deciban.report.rows import explained_rows
from deciban.scoring.scoring import loss_for, predict_posteriors
from deciban.sources.labelled_stream import Examples
from deciban.store.model_file import shards_of
from deciban.tables.table import Table
from deciban.util.arrays import Codes, Floats
from deciban.util.text_tables import class_name, whole
from deciban.util.version import __version__

# Columns whose pictures are open, and all that are shown: those between are folded.
OPEN_COLUMNS = 30
MOST_COLUMNS_SHOWN = 500

# Rows of the fit that are left out in turn, and given rows that telling ones are chosen from.
MOST_ROWS_LEFT_OUT = 10_000
MOST_ROWS_CHOSEN_FROM = 2_000

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
    columns = column_figures(fitted, judged.importance, OPEN_COLUMNS, MOST_COLUMNS_SHOWN)
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
        found, learned = evaluate_and_recognise(fitted, held_out, loss, lambda table: None)
        some = _some_rows(fitted, held_out)
        if learned:
            quality = _evaluated(evaluate_left_out(fitted, held_out, loss), LEFT_OUT)
            return _Judged(quality, importance_of_learned(fitted, held_out), some, held_out)
        absent = [name for name in fitted.schema.names or () if name not in (held_out.names or ())]
        quality = _evaluated(found, "the rows that were given, taken as new ones") | {"absent": absent}
        return _Judged(quality, importance_of_new(fitted, some[0]), some, training)
    if training is not None:
        table, left = sample_left_out(fitted, training, MOST_ROWS_LEFT_OUT)
        importance = importance_left_out(fitted, table, left)
        return _Judged(_evaluated(left.evaluation(loss), LEFT_OUT), importance, None, training)
    return _Judged(_unknown(fitted), _importance_of_counts(fitted), None, None)


def _evaluated(found: Evaluation, source: str) -> dict[str, Any]:
    figures = found.as_dict()
    figures["baseline"]["class"] = class_name(figures["baseline"]["class"])
    if "decision" in figures["baseline"]:
        figures["baseline"]["decision"] = class_name(figures["baseline"]["decision"])
        figures["decisions"] = [class_name(label) for label in figures["decisions"]]
    figures["beats_baseline"] = found.beats_baseline
    figures["classes"] = [class_name(label) for label in figures["classes"]]
    for one in figures["per_class"]:
        one["class"] = class_name(one["class"])
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
        kept = np.flatnonzero(labels >= 0)[:MOST_ROWS_CHOSEN_FROM]
        if kept.size:
            some = piece.table.take(kept)
            table = schema.table_as_learned(schema.cells_as_learned(some, piece.first_row))
            return table, predict_posteriors(fitted, some), labels[kept]
    raise DataError(f"no row is of one of the model's classes {fitted.classes.tolist()}; give at least one")


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
        "unlabelled": counts.unlabelled,
        "sets_of_rows": len(shards_of(fitted)),
        "classes": [
            {"class": class_name(label), "rows": whole(weight), "prior": share}
            for label, weight, share in zip(counts.classes.tolist(), counts.class_weight.tolist(), prior, strict=True)
        ],
        "columns": counts.schema.width,
        "parameters": ParameterCount.of(counts, fitted.plain, fitted.model).as_dict(),
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
    names = [class_name(label) for label in fitted.classes]
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
    names = [class_name(label) for label in fitted.classes]
    if loss is None:
        return {"loss": None}
    matrix, decisions = loss.matrix, [class_name(one) for one in loss.decisions or names]
    found: dict[str, Any] = {"loss": matrix.tolist(), "decisions": decisions, "classes": names}
    if set(decisions) == set(names) and len(names) == 2:
        labels = fitted.classes.tolist()
        prior = float(np.exp(fitted.model.log_prior[1]))
        threshold = Threshold.of(loss, prior, (labels[1], labels[0]), (labels[0], labels[1]))
        found["threshold"] = {"class": names[1], "posterior": threshold.posterior}
    if "mean_cost" in quality:
        found["mean_cost"] = quality["mean_cost"]
        found["baseline_cost"] = quality["baseline"].get("mean_cost")
        found["baseline_decision"] = quality["baseline"].get("decision")
        found["decided"] = quality["decided"]
    return found
