"""What is wrong with the assumptions of plain Bayes, and what tuning has done about it, as figures of a report."""

from typing import Any

import numpy as np

from deciban.evaluation.evaluate import diagnose_rows
from deciban.model.fitted import Fitted
from deciban.model.tuning import Tuning
from deciban.sources.labelled_stream import Examples
from deciban.util.text_tables import DECIBANS, class_name, counted, whole

# Columns that a report compares with each other; where there are more, that is left out.
MOST_COLUMNS_DIAGNOSED = 60


def diagnosis_figures(fitted: Fitted, learned: Examples | None) -> dict[str, Any]:
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
            {"columns": list(one.columns), "bits": one.bits, "cost": one.cost, "kind": one.kind}
            for one in (*diagnosis.triples, *diagnosis.dependences)
        ]
        found["remedies"] = diagnosis.remedies() if found["dependences"] else []
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
    done = [_weighed(tuning)]
    done += [
        f"{len(group.columns)} columns together, as {group.family}, speak too, weight {tuning.weights[slot[0]]:.2g}."
        for slot, group in zip(tuning.schema.block_slots, tuning.schema.groups, strict=True)
        if group.auxiliary
    ]
    if tuning.corrections is not None:
        tables = counted(len(tuning.corrections.tests), "small table")
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
