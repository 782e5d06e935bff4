"""The tuning of a model that learns on line, learned anew from rows that are kept."""

from collections.abc import Sequence

import msgspec
import numpy as np

from deciban.errors import DataError
from deciban.fitting import update
from deciban.model.fitted import Fitted
from deciban.model.tuning import Tuning
from deciban.serve.bodies.records import table_of_records
from deciban.serve.learning.changes import Row, by_kinds
from deciban.serve.learning.class_labels import ClassLabels
from deciban.serve.learning.numbers import Numbers
from deciban.serve.problems import Problem

# The newest rows that are looked at.
MOST_ROWS = 20_000

# Record and label as JSON, weight, and the decay when it was learned.
Kept = tuple[str, str, float, float]


def retuned(fitted: Fitted, rows: Sequence[Kept], now: Numbers, labels: ClassLabels) -> Tuning:
    """The tuning that these rows, which the model has learned, support; a DataError where they are too few."""
    known = set(fitted.classes.tolist())
    found = [
        Row(msgspec.json.decode(record), msgspec.json.decode(label), now.left_of(weight, decay), now.decay)
        for record, label, weight, decay in rows
    ]
    used = [row for row in found if row.weight > 0.0 and labels.known.get(row.label, row.label) in known]
    if not used:
        raise DataError("no rows are kept to tune on; learn rows with ids")
    try:
        table = table_of_records(fitted.counts.schema, [row.record for row in used])
    except Problem:  # cells of several kinds in a column: those of the most usual kinds are enough
        used = by_kinds(used, lambda row: row.record)[0]
        table = table_of_records(fitted.counts.schema, [row.record for row in used])
    names = labels.array([row.label for row in used])
    tuned = update.retune(fitted.on_one_core, table, names, np.array([row.weight for row in used]))
    assert tuned.tuning is not None, "it was just made"
    return tuned.tuning
