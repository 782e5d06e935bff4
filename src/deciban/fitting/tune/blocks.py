"""The choice of columns to model together: joint Gaussians of all numbers."""

from typing import Any

import numpy as np

from deciban.families import JointGaussian
from deciban.families.base.variance import Pooled, Shrunk
from deciban.fitting.tune.families import ScoredGroup, least_spread
from deciban.fitting.tune.rows import FEWEST_ROWS, Rows, is_number, left_out_evidence
from deciban.schema.schema import ChosenBy, ColumnGroup, Reason, Schema

# The widest joint Gaussian, the largest share of missing cells in its columns, and the multiplications that choose its
# shrinkage.
MOST_JOINED = 128
MOST_MISSING = 0.1
SHRINKAGE_WORK = 2e7

POOLED = tuple(JointGaussian(Pooled(shrinkage=share)) for share in (0.002, 0.02, 0.2))
PER_CLASS = tuple(
    JointGaussian(Shrunk(amount, share)) for amount, share in ((0.02, 0.005), (0.1, 0.02), (0.1, 0.1), (0.5, 0.5))
)


def choose_joint_gaussians(rows: Rows, base: Schema) -> list[ScoredGroup]:
    """The linear and the quadratic discriminant of all numeric columns, each with the best of a few shrinkages."""
    columns = [
        column
        for group in base.groups
        if not group.family.joint
        for column in group.inferred_columns
        if is_number(rows.table, column)
    ]
    if len(columns) < 2:
        return []
    cells = np.asarray(rows.table.numbers(columns), dtype=np.float64)
    missing = rows.weights @ np.isnan(cells) / rows.total
    full = (missing <= MOST_MISSING) & (np.fmax.reduce(cells) > np.fmin.reduce(cells))
    complete = cells[~np.isnan(cells[:, full]).any(axis=1)]  # which are all that a joint Gaussian counts
    if len(complete) < 2:
        return []
    full &= np.fmax.reduce(complete) > np.fmin.reduce(complete)
    columns = sorted(c for c, usable in zip(columns, full, strict=True) if usable and _joins(rows, c))
    if not 2 <= len(columns) <= min(MOST_JOINED, rows.total / 2):
        return []
    some = rows.some(max(FEWEST_ROWS, int(SHRINKAGE_WORK / (rows.classes * len(columns) ** 3 / 6))))
    any_of_them = POOLED[0]  # they all count the same
    statistic = any_of_them.count(any_of_them.read(rows.table, columns), rows.labels, rows.weights, rows.classes)
    counted: dict[Any, Any] = {(any_of_them.counts, tuple(columns)): statistic}
    scored = []
    for families in (POOLED, PER_CLASS):
        losses = [float(some.losses(left_out_evidence(some, family, columns, counted))[0]) for family in families]
        family = families[int(np.argmin(losses))]
        evidence = left_out_evidence(rows, family, columns, counted)
        reason = Reason(ChosenBy.TUNED, f"all numeric columns together: log-loss {rows.losses(evidence)[0]:.4f} alone")
        group = ColumnGroup(family, tuple(columns), (reason,) * len(columns), auxiliary=True)
        scored.append(ScoredGroup(group, evidence))
    return scored


def _joins(rows: Rows, column: int) -> bool:
    """Whether a column may join the others: its classes spread together, and each that has few rows by itself."""
    return all(least_spread(rows, column, few=30.0))
