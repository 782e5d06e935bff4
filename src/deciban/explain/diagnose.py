"""Diagnosis of the assumptions: which one fails, where, what it costs, and what was or can be done about it."""

from dataclasses import dataclass
from itertools import combinations
from textwrap import indent
from typing import Any

import numpy as np

from deciban.arrays import Codes, Floats
from deciban.evaluation import Calibration
from deciban.explain.independence import chance_of, grouped
from deciban.leave_one_out import LeaveOneOut
from deciban.model import Model
from deciban.posterior import log_normalize
from deciban.schema.schema import Schema
from deciban.tables.labels import LabelArray
from deciban.tables.table import Table
from deciban.text_tables import aligned, counted
from deciban.tune.binning import few_levels
from deciban.tune.rows import Rows

BITS = 1.0 / np.log(2.0)

# Findings are reported at this level, whatever the number of things looked at.
SIGNIFICANCE = 0.01

# Columns that are compared with each other, rows that are looked at, and levels a number is cut into.
MOST_COMPARED = 60
MOST_ROWS_DIAGNOSED = 10_000
LEVELS_COMPARED = 6

# A column that determines this share of another's entropy within the classes is redundant.
REDUNDANT = 0.95

# Classes with fewer rows are reported.
SMALL_CLASS = 10


@dataclass(frozen=True)
class Dependence:
    """Two columns that depend on each other within the classes.

    bits: their conditional mutual information given the class.
    p: the chance of as much in any of the pairs that were tested, were all independent.
    share: how much of the smaller entropy that is; 1 where one column determines the other.
    cost: the leave-one-out bits a row that are lost by multiplying their shares instead of counting pairs; 0 where
        nothing is lost, because the classes depend alike on both, or because there are too few rows of each pair.
    """

    columns: tuple[str, str]
    bits: float
    p: float
    share: float
    cost: float

    @property
    def redundant(self) -> bool:
        return self.share >= REDUNDANT


@dataclass(frozen=True)
class Misfit:
    """A column that is not distributed within a class as its family says; the distance is Kolmogorov's."""

    column: str
    label: Any
    family: str
    distance: float
    expected: float


@dataclass(frozen=True, repr=False)
class Diagnosis:
    """What is wrong with the assumptions of plain Bayes here, as figures; print it for a summary.

    before, after: leave-one-out of plain Bayes and of the model as it is (the same where it is not tuned).
    """

    before: LeaveOneOut
    after: LeaveOneOut
    dependences: tuple[Dependence, ...]
    pairs_tested: int
    misfits: tuple[Misfit, ...]
    small_classes: tuple[tuple[Any, float], ...]
    weights: tuple[tuple[str, float], ...]

    @property
    def redundant(self) -> tuple[Dependence, ...]:
        return tuple(found for found in self.dependences if found.redundant)

    @property
    def calibration_before(self) -> Calibration:
        return self.before.calibration()

    @property
    def calibration_after(self) -> Calibration:
        return self.after.calibration()

    @property
    def saved_bits(self) -> float:
        """The leave-one-out bits a row that tuning has saved."""
        return float((self.before.log_loss - self.after.log_loss) * BITS)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        tuned = self.after.given_tuning
        lines = ["leave-one-out, bits a row      plain" + ("   as tuned (given the tuning)" if tuned else "")]
        for name, before, after in (
            ("log-loss", self.before.log_loss * BITS, self.after.log_loss * BITS),
            ("calibration error", self.calibration_before.error, self.calibration_after.error),
            ("accuracy", self.before.accuracy, self.after.accuracy),
        ):
            lines.append(f"  {name:26}  {before:6.4f}" + (f"   {after:6.4f}" if tuned else ""))
        lines += ["", *self._dependent()]
        if self.misfits:
            lines += ["", "not as their family says (Kolmogorov distance, and what chance explains):"]
            for misfit in self.misfits[:8]:
                lines.append(
                    f"  {misfit.column} in {misfit.label}: {misfit.family}  "
                    f"{misfit.distance:.3f} > {misfit.expected:.3f}"
                )
            lines.append("  remedy: another family (Binned, LogNormal, Gamma); tune='auto' chooses by log-loss")
        if self.small_classes:
            few = ", ".join(f"{label} ({counted(rows, 'row')})" for label, rows in self.small_classes[:8])
            lines += ["", f"few rows: {few}", "  remedy: more rows, stronger smoothing, Pooled() variances"]
        idle = [name for name, weight in self.weights if weight == 0.0]
        if idle:
            lines += ["", f"weigh nothing: {', '.join(idle[:8])}" + (" …" if len(idle) > 8 else "")]
        return "\n".join(lines)

    def _dependent(self) -> list[str]:
        if not self.pairs_tested:
            return ["no two columns to compare"]
        if not self.dependences:
            return [f"no dependence between columns within the classes ({counted(self.pairs_tested, 'pair')} tested)"]
        lines = [f"columns that depend on each other within the classes ({counted(self.pairs_tested, 'pair')} tested):"]
        table = [("", "mutual bits", "cost in bits a row", "")]
        for found in self.dependences[:8]:
            cost = f"{found.cost:.4f}" if found.cost > 0.0 else "none"
            table.append((" and ".join(found.columns), f"{found.bits:.4f}", cost, "redundant" * found.redundant))
        lines.append(indent(aligned(table, right=[1, 2]), "  "))
        if len(self.dependences) > 8:
            lines.append(f"  ({len(self.dependences) - 8} more)")
        lines.append("  remedy: " + self._remedy())
        return lines

    def _remedy(self) -> str:
        if self.after.given_tuning and self.saved_bits > 0.0:
            return f"done: weights and joint blocks save {self.saved_bits:.4f} bits a row"
        if self.after.given_tuning:
            return "tuned, which saves nothing on these rows; plain Bayes does as well"
        if not any(found.cost > 0.0 for found in self.dependences):
            return "none is needed: to multiply their shares loses nothing against counting pairs"
        return "tune='auto' weighs and corrects them; or drop a redundant one, or form a block"


def diagnose(
    model: Model, before: LeaveOneOut, after: LeaveOneOut, table: Table, labels: Codes, weights: Floats
) -> Diagnosis:
    """Look at rows that a model has learned; `before` and `after` are the leave-one-out of plain Bayes and of it."""
    rows = Rows.of(table, labels, weights, model.classes.size, MOST_ROWS_DIAGNOSED)
    dependences, tested = dependences_of(rows, model.schema)
    share = np.bincount(labels[labels >= 0], weights[labels >= 0], model.classes.size)
    small = tuple((label, float(n)) for label, n in zip(model.classes.tolist(), share, strict=True) if n < SMALL_CLASS)
    weighted = tuple(zip(model.schema.block_names, (float(weight) for weight in model.weights), strict=True))
    misfits = _misfits(rows, model, model.classes)
    return Diagnosis(before, after, dependences, tested, misfits, small, weighted)


def dependences_of(rows: Rows, schema: Schema) -> tuple[tuple[Dependence, ...], int]:
    """The pairs of columns that depend on each other given the class, by a test that accounts for their number."""
    coded: dict[int, tuple[Codes, int, Codes]] = {}
    for column in range(schema.width):
        if len(coded) < MOST_COMPARED and (found := few_levels(rows, column, LEVELS_COMPARED)) is not None:
            codes, cuts, size = found
            coded[column] = codes, size, grouped(codes, size, cuts is not None, rows)
    pairs = list(combinations(coded, 2))
    found_pairs = []
    for a, b in pairs:
        (codes_a, size_a, groups_a), (codes_b, size_b, groups_b) = coded[a], coded[b]
        p = chance_of(_counted(groups_a, size_a, groups_b, size_b, rows)) * len(pairs)
        if p < SIGNIFICANCE:
            counts = _counted(codes_a, size_a, codes_b, size_b, rows)
            information, entropy = _conditional_information(counts)
            names = schema.column_name(a), schema.column_name(b)
            share = information / entropy if entropy > 0.0 else 0.0
            found_pairs.append(Dependence(names, information * BITS, p, share, _cost(counts, codes_a, codes_b, rows)))
    return tuple(sorted(found_pairs, key=lambda pair: -pair.bits)), len(pairs)


def _counted(a: Codes, size_a: int, b: Codes, size_b: int, rows: Rows) -> Floats:
    """Counts of class by level of a by level of b."""
    there = (a >= 0) & (b >= 0)
    place = (rows.labels[there].astype(np.int64) * size_a + a[there]) * size_b + b[there]
    counts = np.bincount(place, rows.weights[there], rows.classes * size_a * size_b)
    return counts.reshape(rows.classes, size_a, size_b).astype(np.float64)


def _conditional_information(counts: Floats) -> tuple[float, float]:
    """The mutual information given the class in nats, and the smaller conditional entropy."""
    total = counts.sum()
    by_a, by_b, by_class = counts.sum(axis=2), counts.sum(axis=1), counts.sum(axis=(1, 2))

    def entropy(of: Floats) -> float:
        share = of[of > 0.0] / total
        return float(-(share * np.log(share)).sum())

    given_a, given_b = entropy(by_a) - entropy(by_class), entropy(by_b) - entropy(by_class)
    information = given_a + given_b - (entropy(counts) - entropy(by_class))
    return max(information, 0.0), min(given_a, given_b)


def _cost(counts: Floats, a: Codes, b: Codes, rows: Rows) -> float:
    """Leave-one-out bits a row that the product of shares loses against the shares of pairs, both smoothed by 1/2; 0
    where it loses none."""
    there = np.flatnonzero((a >= 0) & (b >= 0))
    labels, left = rows.labels[there], np.minimum(rows.weights[there], 1.0)[:, None]
    own = np.arange(rows.classes) == labels[:, None]
    total = counts.sum(axis=(1, 2))[None] - own * left

    def log_share(table: Floats, at: tuple[Any, ...]) -> Floats:
        here = np.maximum(np.moveaxis(table, 0, -1)[at] - own * left, 0.0)
        return np.asarray(np.log((here + 0.5) / (total + 0.5 * table[0].size)))

    apart = log_share(counts.sum(axis=2), (a[there],)) + log_share(counts.sum(axis=1), (b[there],))
    joint = log_share(counts, (a[there], b[there]))
    weight = rows.weights[there]
    losses = []
    for evidence in (apart, joint):
        score = rows.log_prior + evidence
        _, normalizer = log_normalize(score, rows.log_prior)
        losses.append(np.average(normalizer - score[np.arange(there.size), labels], weights=weight))
    return max(float((losses[0] - losses[1]) * BITS), 0.0)


def _misfits(rows: Rows, model: Model, classes: LabelArray) -> tuple[Misfit, ...]:
    """The continuous columns whose cells of a class do not follow the distribution that was estimated from them."""
    found = []
    for group, likelihood in zip(model.schema.groups, model.likelihoods, strict=True):
        if likelihood.cumulative(np.zeros(0), 0, 0) is None:
            continue
        cells = np.asarray(group.family.read(rows.table, group.columns), dtype=np.float64)
        varies = np.fmax.reduce(cells, initial=-np.inf) > np.fmin.reduce(cells, initial=np.inf)
        for j, column in enumerate(group.columns):
            for c, label in enumerate(classes.tolist() if varies[j] else ()):  # a constant column is no evidence
                here = (rows.labels == c) & ~np.isnan(cells[:, j])
                order = np.argsort(cells[here, j], kind="stable")
                x, weight = cells[here, j][order], rows.weights[here][order]
                total = weight.sum()
                if total < SMALL_CLASS or (cumulative := likelihood.cumulative(x, j, c)) is None:
                    continue
                distance = _distance(cumulative, weight)
                expected = 1.035 / np.sqrt(total)  # Lilliefors' bound at 1 %, for parameters found from the same cells
                if distance > expected + 0.5 / total:
                    name = model.schema.column_name(column)
                    found.append(Misfit(name, label, str(group.family), distance, float(expected)))
    return tuple(sorted(found, key=lambda misfit: misfit.expected - misfit.distance))


def _distance(cumulated: Floats, weight: Floats) -> float:
    """The largest difference to the steps of the empirical distribution."""
    steps = np.concatenate([[0.0], np.cumsum(weight) / weight.sum()])
    return float(max(np.abs(cumulated - steps[:-1]).max(), np.abs(cumulated - steps[1:]).max()))
