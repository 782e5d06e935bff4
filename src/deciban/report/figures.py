"""The figures of a report as data: from counts, and from rows where some are given."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from deciban.arrays import Codes, Floats
from deciban.decisions.loss import Loss
from deciban.decisions.ratio import Threshold
from deciban.errors import UsageError
from deciban.evaluate import diagnose_rows, evaluate_and_recognise, evaluate_left_out, learned_rows, left_out
from deciban.evaluation import Evaluation
from deciban.files.labelled_stream import Examples
from deciban.fitted import Fitted
from deciban.importance import Importance, importance_of_drawn, importance_of_learned, importance_of_new
from deciban.report.columns import ColumnFigures, column_figures
from deciban.report.rows import explained_rows
from deciban.scoring import loss_for, predict_posteriors
from deciban.store.model_file import shards_of
from deciban.tables.labelled import LabelledTable
from deciban.tables.row_sampling import sampled_places
from deciban.tables.table import Table
from deciban.text_tables import class_name, whole
from deciban.version import __version__

# Columns whose pictures are open; those of the others are folded.
OPEN_COLUMNS = 30

# Rows of the fit that are left out in turn, and given rows that telling ones are chosen from.
MOST_ROWS_LEFT_OUT = 10_000
MOST_ROWS_CHOSEN_FROM = 2_000

# Columns that the diagnosis compares with each other in a report, where there are more than this it is left out.
MOST_COLUMNS_DIAGNOSED = 60


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
) -> ReportFigures:
    """The figures of a model: on rows that were held out, or on its training rows, each left out; else from counts."""
    costs = None if loss is None else loss_for(fitted, loss)
    quality, rows, learned = _quality(fitted, held_out, training, costs)
    known = held_out if learned and held_out is not None else training
    importance = _importance(fitted, rows, known if learned else None)
    columns = column_figures(fitted, importance, OPEN_COLUMNS)
    data = {
        "title": title,
        "deciban": __version__,
        "model": _model(fitted),
        "quality": quality,
        "diagnosis": _diagnosis(fitted, known),
        "decisions": _decisions(fitted, costs, quality),
        "columns": _columns(fitted, columns, importance),
        "rows": [] if rows is None or not examples else explained_rows(fitted, *rows, examples),
    }
    return ReportFigures(fitted, costs, data, columns)


Scored = tuple[Table, Floats, Codes]


def _quality(
    fitted: Fitted, held_out: Examples | None, training: Examples | None, loss: Loss | None
) -> tuple[dict[str, Any], Scored | None, bool]:
    """How good the model is, some rows with their posteriors and classes, and whether they were learned."""
    if held_out is not None:
        found, learned = evaluate_and_recognise(fitted, held_out, loss, lambda table: None)
        if learned:
            found = evaluate_left_out(fitted, held_out, loss)
        source = "rows that the model has learned, each left out in its turn" if learned else "rows that were held out"
        return _evaluated(found, source), _some_rows(fitted, held_out), learned
    if training is not None:
        table, labels, weights = learned_rows(fitted, training, few=True)
        kept = np.flatnonzero((labels >= 0) & (weights > 0.0))
        kept = kept[sampled_places(kept.size, MOST_ROWS_LEFT_OUT)]
        found = left_out(fitted, table.take(kept), labels[kept], weights[kept]).evaluation(loss)
        return _evaluated(found, "rows that the model has learned, each left out in its turn"), None, True
    return _unknown(fitted), None, False


def _evaluated(found: Evaluation, source: str) -> dict[str, Any]:
    figures = found.as_dict()
    figures["baseline"]["class"] = class_name(figures["baseline"]["class"])
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


def _some_rows(fitted: Fitted, rows: Examples) -> Scored | None:
    """Rows that examples are chosen from: the first ones that have a known class."""
    piece: LabelledTable = next(iter(rows.pieces()))
    labels = piece.labels.places_among(fitted.classes)
    kept = np.flatnonzero(labels >= 0)[:MOST_ROWS_CHOSEN_FROM]
    if not kept.size:
        return None
    table = fitted.model.schema.table_as_learned(
        fitted.model.schema.cells_as_learned(piece.table.take(kept), piece.first_row)
    )
    return table, predict_posteriors(fitted, piece.table.take(kept)), labels[kept]


def _importance(fitted: Fitted, rows: Scored | None, learned: Examples | None) -> Importance:
    """How much each column matters: on learned rows left out, on given rows, or on rows drawn from the model."""
    if learned is not None:
        return importance_of_learned(fitted, learned)
    if rows is not None:
        return importance_of_new(fitted, rows[0])
    try:
        return importance_of_drawn(fitted)
    except UsageError:  # a score cannot be drawn from
        width = fitted.model.schema.width
        names = tuple(fitted.schema.column_name(column) for column in range(width))
        return Importance(names, np.zeros(width), np.zeros(width), 0, "not known")


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
        "tuning": "plain Bayes: every column by itself, weight 1" if tuning is None else tuning.summary,
        "stale": tuning is not None and tuning.stale,
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
                "decibans": float(importance.decibans[one.column]),
                "bits": float(importance.bits[one.column]),
                "least": low,
                "most": high,
                "note": one.note,
                **_values(fitted, one),
            }
        )
    return found


def _values(fitted: Fitted, one: ColumnFigures) -> dict[str, Any]:
    if one.values is None:
        return {"words": [{"class": label, "words": [list(word) for word in words]} for label, words in one.words]}
    names = [class_name(label) for label in fitted.classes]
    finite = np.nan_to_num(one.evidence, posinf=1e300, neginf=-1e300)
    return {
        "kind": one.values.kind,
        "values": list(one.values.names),
        "evidence": dict(zip(names, finite.T.tolist(), strict=True)),
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


def _diagnosis(fitted: Fitted, learned: Examples | None) -> dict[str, Any]:
    """What is wrong with the assumptions of plain Bayes, where learned rows are known; and what tuning has done."""
    found: dict[str, Any] = {"done": _done(fitted), "dependences": None, "misfits": None}
    if learned is None:
        found["cannot_know"] = (
            "Which columns depend on each other is found on the rows that were learned; none are given."
        )
    elif fitted.model.schema.width > MOST_COLUMNS_DIAGNOSED:
        found["cannot_know"] = f"A report compares up to {MOST_COLUMNS_DIAGNOSED} columns; diagnose() compares more."
    else:
        diagnosis = diagnose_rows(fitted, learned)
        found["saved_bits"] = diagnosis.saved_bits
        found["pairs_tested"] = diagnosis.pairs_tested
        found["dependences"] = [
            {"columns": list(one.columns), "bits": one.bits, "cost": one.cost, "redundant": one.redundant}
            for one in diagnosis.dependences
        ]
        found["misfits"] = [
            {"column": one.column, "class": class_name(one.label), "family": one.family, "distance": one.distance}
            for one in diagnosis.misfits
        ]
        found["small_classes"] = [
            {"class": class_name(label), "rows": whole(rows)} for label, rows in diagnosis.small_classes
        ]
    return found


def _done(fitted: Fitted) -> list[str]:
    """What tuning has done, a sentence each."""
    tuning = fitted.tuning
    if tuning is None or not tuning.rows:
        return [tuning.note if tuning is not None and tuning.note else "Nothing: this is plain Bayes."]
    schema, weights = tuning.schema, tuning.weights
    alone = np.concatenate(
        [weights[slot] for slot, group in zip(schema.block_slots, schema.groups, strict=True) if not group.auxiliary]
    )
    idle, used = int((alone == 0.0).sum()), alone[alone > 0.0]
    done = [
        "The evidence of each block has a weight, so that what several columns say alike counts once: "
        f"{idle} of {alone.size} columns weigh nothing by themselves, the others {used.min(initial=1.0):.2g} to "
        f"{used.max(initial=0.0):.2g}."
    ]
    done += [
        f"{len(group.columns)} columns are modelled together too, as {group.family}, weight {weights[slot[0]]:.2g}."
        for slot, group in zip(schema.block_slots, schema.groups, strict=True)
        if group.auxiliary
    ]
    if tuning.corrections is not None:
        done.append(
            f"{len(tuning.corrections.tests)} small tables correct the sum where it was wrong on rows left out."
        )
    if np.isfinite(tuning.cap):
        done.append(f"No block is worth more than {10.0 / np.log(10.0) * tuning.cap:.0f} decibans.")
    return done


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
    return found
