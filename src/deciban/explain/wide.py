"""Explanations as columns beside the rows: what each column says for the predicted class, in decibans."""

from typing import Any

import numpy as np

from deciban.explain.columns import column_evidence
from deciban.model.model import Model
from deciban.tables.table import Table
from deciban.util.arrays import Floats
from deciban.util.text_tables import DECIBANS, evidence_name


def wide_explanation(model: Model, table: Table) -> dict[str, Any]:
    """For each row the predicted class, the next best, the log odds of the one against the other, and what the prior
    and each column say for it, which add up to these. NaN where no class can be, or there is only one.

    The table has the columns of the model, in its order.
    """
    evidence = model.evidence(table)
    columns = column_evidence(model, table, evidence)
    order = np.argsort(-evidence.log_posterior, axis=1, kind="stable")
    best, other = order[:, 0], order[:, min(1, order.shape[1] - 1)]
    told = ~evidence.impossible & (best != other)
    rows = np.arange(table.rows)

    def decibans(values: Floats) -> Floats:
        """The difference of two classes, of values row by class."""
        with np.errstate(invalid="ignore"):
            return np.where(told, DECIBANS * (values[rows, best] - values[rows, other]), np.nan)

    start = np.broadcast_to(evidence.log_prior, (table.rows, model.classes.size))
    labels, values = model.classes, columns.values
    found = {"predicted": labels[best], "against": labels[other], "decibans": decibans(evidence.log_joint)}
    found[evidence_name("prior")] = decibans(start)
    for k, column in enumerate(columns.columns):
        name = evidence_name(column)
        found[f"{name}_" if name in found else name] = decibans(values[:, k])  # a column may be called prior
    return found
