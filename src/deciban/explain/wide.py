"""Explanations as columns beside the rows: what each column says for the predicted class, in decibans."""

from typing import Any

import numpy as np

from deciban.arrays import Floats
from deciban.explain.columns import column_evidence
from deciban.explain.words import DECIBANS
from deciban.model import Model
from deciban.tables.table import Table

# What stands before the bracket in the name of a column of evidence, as P does in those of posteriors.
EVIDENCE_NAME = "decibans"


def evidence_name(term: str) -> str:
    """The name of the column that has what a term says.

    >>> evidence_name("age")
    'decibans(age)'
    """
    return f"{EVIDENCE_NAME}({term})"


def wide_explanation(model: Model, table: Table) -> dict[str, Any]:
    """For each row the predicted class, the next best, and what the prior and each column say for the one against the
    other: they add up to the log odds. All are missing where no class can be, or there is only one.

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

    start = np.broadcast_to(evidence.log_prior + evidence.bias, (table.rows, model.classes.size))
    labels, values = model.classes, columns.values
    found = {"predicted": labels[best], "against": labels[other], evidence_name("prior"): decibans(start)}
    return found | {evidence_name(name): decibans(values[:, k]) for k, name in enumerate(columns.columns)}
