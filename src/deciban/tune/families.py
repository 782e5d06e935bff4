"""The family that each column speaks by."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from deciban.arrays import Floats
from deciban.families import (
    Binned,
    Categorical,
    Family,
    Gamma,
    Gaussian,
    LogNormal,
    Poisson,
    Text,
)
from deciban.families.spreads import Pooled
from deciban.schema.reasons import ChosenBy, Reason
from deciban.schema.schema import ColumnGroup, Schema
from deciban.statistics import Moments
from deciban.tune.rows import Rows, is_number, left_out_evidence, measure_of

# What another family than the inferred one must gain in log-likelihood to be worth the change.
CHANGE_NATS = 1.0

# A class whose variance in a column is below this share of the column's has shown no spread there.
LEAST_SPREAD = 1e-3


@dataclass(frozen=True)
class Choice:
    """The family a column speaks by, and those it was preferred to, each with its leave-one-out log-loss alone."""

    column: str
    family: Family
    loss: float
    others: tuple[tuple[Family, float], ...]

    @property
    def reason(self) -> Reason:
        """Why the column has this family."""
        return Reason(ChosenBy.TUNED, self._comparison)

    @property
    def _comparison(self) -> str:
        """How the family compares with the others, in words."""
        if not self.others:
            return "the only family that suits it"
        family, loss = self.others[0]
        name = str(family).replace(", outside='ignore'", "").replace("outside='ignore'", "").removesuffix("()")
        if loss < self.loss:  # by less than a change has to gain
            return f"kept, log-loss {self.loss:.4f} alone: {name} {loss:.4f} gains too little"
        return f"best of {len(self.others) + 1} tried: log-loss {self.loss:.4f} alone, next {name} {loss:.4f}"

    def __str__(self) -> str:
        runners_up = ", ".join(f"{family} {loss:.4f}" for family, loss in self.others[:3])
        return f"{self.column}: {self.family} {self.loss:.4f}" + (f" before {runners_up}" if runners_up else "")


@dataclass(frozen=True)
class ScoredGroup:
    """A part with the evidence of its blocks."""

    group: ColumnGroup
    evidence: Floats


def choose_families(rows: Rows, base: Schema) -> tuple[list[ScoredGroup], tuple[Choice, ...]]:
    """The parts of the base but texts, each inferred column with the family that has the least log-loss by itself."""
    options: dict[Family, list[int]] = {}
    inferred_as: dict[int, Family] = {}
    kept = []
    for group in base.groups:
        if isinstance(group.family, Text):
            continue  # they are chosen for in another way
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
        reasons = tuple(by_column[column].reason for column in columns)
        evidence = np.stack([best[column] for column in columns], axis=1)
        scored.append(ScoredGroup(ColumnGroup(family, tuple(columns), reasons), evidence))
    return scored, tuple(choices)


def candidates(family: Family, rows: Rows, column: int) -> list[Family]:
    """The families that may suit a column that was inferred to be of this one; that one first."""
    table = rows.table
    others: list[Family] = []
    dropped: Family | None = None
    if isinstance(family, Categorical) and family.unseen == "error":
        return [family, *(replace(family, alpha=alpha) for alpha in (0.1, 0.5, 1.0) if alpha != family.alpha)]
    if isinstance(family, Categorical):
        others += [replace(family, alpha=alpha) for alpha in (0.1, 0.5, 1.0)]
    if isinstance(family, Gaussian | Categorical) and is_number(table, column):
        cells = np.asarray(table.numbers([column])[:, 0], dtype=np.float64)
        cells = cells[~np.isnan(cells)]
        values = np.unique(cells)
        if values.size < 2:
            return [family]
        own, pooled = least_spread(rows, column)
        if pooled:
            others.append(Gaussian(variance=Pooled()))
        if own:
            others.append(Gaussian())
        elif isinstance(family, Gaussian):
            dropped = family
        others += [Binned(bins=bins) for bins in (4, 8, 16, 32, 64) if bins <= max(rows.total / 8, 4)]
        measure = measure_of(table, column)
        if measure != "position" and values[0] > 0.0 and pooled:
            others.append(LogNormal(variance=Pooled(), outside="ignore"))
        if measure != "position" and values[0] > 0.0 and own:
            others += [LogNormal(outside="ignore"), Gamma(outside="ignore")]
        whole = values[0] >= 0.0 and values[-1] < 1e6 and (values == np.floor(values)).all()
        if measure == "number" and whole:
            others.append(Poisson(alpha=1.0, outside="ignore"))
        if values.size <= min(30, rows.total / 4):
            others += [Categorical(alpha=alpha) for alpha in (0.5, 1.0)]
    return [option for option in dict.fromkeys([family, *others]) if option is not dropped]


def least_spread(rows: Rows, column: int, few: float = np.inf) -> tuple[bool, bool]:
    """Whether every class (of less than `few` rows) spreads in a column, and whether the classes together do.

    Where a class never varied, a bell shape is certain that it never will; no row left out contradicts it.
    """
    cells = np.asarray(rows.table.numbers([column]), dtype=np.float64)
    moments = Moments.count(cells, rows.labels, rows.weights, rows.classes)
    overall = float(moments.over_classes().variance()[0, 0])
    several = (moments.weight[:, 0] > 0.0) & (moments.weight[:, 0] < few)
    own = moments.variance()[several, 0]
    pooled = moments.scatter[:, 0].sum() / max(moments.weight[:, 0].sum(), 1e-300)
    return bool((own > LEAST_SPREAD * overall).all()), bool(pooled > LEAST_SPREAD * overall)
