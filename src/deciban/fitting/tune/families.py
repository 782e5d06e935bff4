"""The choice of a family for each column."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from deciban.families import Family, known_families
from deciban.families.base.contract import ColumnNumbers
from deciban.fitting.tune.rows import Rows, is_number, left_out_evidence, measure_of
from deciban.model.tuning import Choice
from deciban.schema.schema import ColumnGroup, Reason, Schema
from deciban.statistics import Moments
from deciban.util.arrays import Floats

# What another family than the inferred one must gain in log-likelihood to be worth the change.
CHANGE_NATS = 1.0

# A class whose variance in a column is below this share of the column's does not vary there.
LEAST_SPREAD = 1e-3


@dataclass(frozen=True)
class ScoredGroup:
    """A column group with the evidence of its blocks."""

    group: ColumnGroup
    evidence: Floats


def choose_families(rows: Rows, base: Schema) -> tuple[list[ScoredGroup], tuple[Choice, ...]]:
    """The groups of the base but texts, each inferred column with the family that has the least log-loss alone."""
    options: dict[Family, list[int]] = {}
    inferred_as: dict[int, Family] = {}
    kept = []
    for group in base.groups:
        if group.family.holds_texts:
            continue  # see choose_texts
        inferred = [] if group.family.joint else group.inferred_columns
        inferred_as.update(dict.fromkeys(inferred, group.family))
        for column in inferred:
            for family in candidates(group.family, rows, column):
                options.setdefault(family, []).append(column)
        if rest := tuple(k for k, column in enumerate(group.columns) if column not in inferred):
            kept.append(group.subset(rest))
    ledger: dict[int, list[tuple[float, float, Family]]] = {}  # what each costs with the charge, its loss, and it
    best: dict[int, Floats] = {}
    counted: dict[Any, Any] = {}
    for family, columns in options.items():
        evidence = left_out_evidence(rows, family, columns, counted)
        for k, loss in enumerate(rows.losses(evidence)):
            tried = ledger.setdefault(columns[k], [])
            charged = float(loss) + (0.0 if family == inferred_as[columns[k]] else CHANGE_NATS / rows.total)
            if not tried or charged < min(tried, key=lambda entry: entry[0])[0]:
                best[columns[k]] = evidence[:, k].copy()
            tried.append((charged, float(loss), family))
    scored = [ScoredGroup(group, left_out_evidence(rows, group.family, group.columns, {})) for group in kept]
    chosen: dict[Family, list[int]] = {}
    choices = []
    for column in sorted(ledger):
        (_, loss, family), *others = sorted(ledger[column], key=lambda entry: entry[0])
        chosen.setdefault(family, []).append(column)
        choices.append(Choice(base.column_name(column), family, loss, tuple((f, other) for _, other, f in others)))
    by_column = dict(zip(sorted(ledger), choices, strict=True))
    for family, columns in chosen.items():
        reasons = tuple(_with_mark(by_column[column].reason, base, column) for column in columns)
        evidence = np.stack([best[column] for column in columns], axis=1)
        scored.append(ScoredGroup(ColumnGroup(family, tuple(columns), reasons), evidence))
    return scored, tuple(choices)


def _with_mark(reason: Reason, base: Schema, column: int) -> Reason:
    """The reason for a family, with what the column may be meant as."""
    meant = None if base.looks_like is None else base.looks_like[column]
    return reason if meant is None else replace(reason, text=f"{reason.text}, {meant}")


def candidates(family: Family, rows: Rows, column: int) -> list[Family]:
    """The families that may suit a column that was inferred to be of this one; that one first, if it does."""
    numbers = numbers_of(rows, column) if is_number(rows.table, column) else None
    if numbers is not None and numbers.values.size < 2:
        return [family]
    others = [other for kind in known_families() for other in kind.suited_to(numbers)] if numbers is not None else []
    return list(dict.fromkeys(family.alternatives(numbers, others)))


def numbers_of(rows: Rows, column: int) -> ColumnNumbers:
    """The numbers of a column, as families ask for them."""
    cells = np.asarray(rows.table.numbers([column])[:, 0], dtype=np.float64)
    values = np.unique(cells[~np.isnan(cells)])
    return ColumnNumbers(values, rows.total, measure_of(rows.table, column), *least_spread(rows, column))


def least_spread(rows: Rows, column: int, few: float = np.inf) -> tuple[bool, bool]:
    """Whether every class (of less than `few` rows) varies in a column, and whether the classes together do."""
    cells = np.asarray(rows.table.numbers([column]), dtype=np.float64)
    moments = Moments.count(cells, rows.labels, rows.weights, rows.classes)
    overall = float(moments.over_classes().variance()[0, 0])
    several = (moments.weight[:, 0] > 0.0) & (moments.weight[:, 0] < few)
    own = moments.variance()[several, 0]
    pooled = moments.scatter[:, 0].sum() / max(moments.weight[:, 0].sum(), 1e-300)
    return bool((own > LEAST_SPREAD * overall).all()), bool(pooled > LEAST_SPREAD * overall)
