"""Tuning by leave-one-out: the family of each column, the columns that speak together, the weight of each block.

Rows are scored by what is counted without them, so that a choice is judged by rows it has not seen. Counts do not
depend on any of it: a choice says which statistics are kept beside those of plain Bayes, and how all are heard.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.optimize import minimize

from deciban import kernels
from deciban.arrays import Codes, Floats, Integers, log
from deciban.data.labels import LabelArray, Labels
from deciban.data.schema import GIVEN, Part, Schema
from deciban.data.tables import SparseMatrix, Table, is_numeric
from deciban.errors import BadCell, DataError
from deciban.families import (
    Bernoulli,
    Binned,
    Categorical,
    Family,
    Gamma,
    Gaussian,
    JointGaussian,
    JointTable,
    LogNormal,
    Poisson,
)
from deciban.families.base import LeftOut, Pooled, Shrunk, cells_of
from deciban.fit import CORES, in_order, one_blas_thread
from deciban.model import Counts, Model, estimate, normalized
from deciban.progress import Advance, progress
from deciban.statistics import Moments
from deciban.statistics.levels import distinct

# Fewer rows than this are not tuned, and no more than MOST_ROWS are looked at (fewer where they have much to say).
FEWEST_ROWS = 20
MOST_ROWS = 6_000
MOST_EVIDENCE = 1 << 23

# With more blocks than this all of them share one weight.
MOST_BLOCKS = 500

# The widest joint Gaussian, the largest share of missing cells in its columns, and the multiplications that choose its
# shrinkage.
MOST_JOINED = 128
MOST_MISSING = 0.1
SHRINKAGE_WORK = 2e7

# What another family than the inferred one must gain in log-likelihood to be worth the change.
CHANGE_NATS = 1.0

# A class whose variance in a column is below this share of the column's has shown no spread there.
LEAST_SPREAD = 1e-3

# Rows that are worth a thread of their own.
CHUNK_ROWS = 500

# Steps from where L-BFGS stops to where the optimum is.
POLISHING_STEPS = 3
MOST_POLISHING = 2e8

# Evidence beyond this, for or against, counts as this while weights are learned.
MOST_EXTREME = 700.0

# How strongly weights are drawn to the weight of their group, and that to its start: as much as so many rows would.
GROUP_ROWS, BLOCK_ROWS, BIAS_ROWS = 1.0, 10.0, 1.0

# Pairs of columns: how many of the best columns are paired, how many levels they may have, their smoothing, how many
# pairs join at a time and how often, and what log-likelihood each must promise.
PAIRED_COLUMNS, PAIRED_LEVELS, PAIR_ALPHA, PAIRS_A_ROUND, ROUNDS, LEAST_GAIN = 24, 16, 0.5, 6, 6, 4.0

POOLED = tuple(JointGaussian(Pooled(shrinkage=share)) for share in (0.002, 0.02, 0.2))
PER_CLASS = tuple(
    JointGaussian(Shrunk(amount, share)) for amount, share in ((0.02, 0.005), (0.1, 0.02), (0.1, 0.1), (0.5, 0.5))
)


@dataclass(frozen=True)
class Choice:
    """The family a column speaks by, and those it was preferred to, each with its leave-one-out log-loss alone."""

    column: str
    family: Family
    loss: float
    others: tuple[tuple[Family, float], ...]

    def __str__(self) -> str:
        runners_up = ", ".join(f"{family} {loss:.4f}" for family, loss in self.others[:3])
        return f"{self.column}: {self.family} {self.loss:.4f}" + (f" before {runners_up}" if runners_up else "")


@dataclass(frozen=True)
class Tuning:
    """The parts that are heard, the weight of each of their blocks, the bias of each class, and how they were found.

    `stale`: the counts have changed since.
    """

    schema: Schema
    weights: Floats
    bias: Floats
    rows: int
    note: str = ""
    choices: tuple[Choice, ...] = ()
    stale: bool = False

    @property
    def groups(self) -> Integers:
        """The group of each block: all single columns, each joint Gaussian beside them; -1 for tables beside them."""
        groups = np.zeros(len(self.schema.block_names), dtype=np.int64)
        beside = 0
        for slot, part in zip(self.schema.slots, self.schema.parts, strict=True):
            if part.beside and isinstance(part.family, JointGaussian):
                beside += 1
                groups[slot] = beside
            elif part.beside:
                groups[slot] = -1
        return groups

    @classmethod
    def plain(cls, counts: Counts) -> "Tuning":
        """Every block of plain Bayes with weight 1."""
        schema = counts.schema.plain
        return cls(schema, np.ones(len(schema.block_names)), np.zeros(counts.classes.size), 0)

    def without_idle_blocks(self) -> "Tuning":
        """Without the blocks beside the columns that weigh nothing."""
        slots = self.schema.slots
        kept = [p for p, part in enumerate(self.schema.parts) if not part.beside or self.weights[slots[p]].any()]
        schema = replace(self.schema, parts=tuple(self.schema.parts[p] for p in kept))
        weights = np.empty(len(schema.block_names))
        for place, p in enumerate(kept):
            weights[schema.slots[place]] = self.weights[slots[p]]
        return replace(self, schema=schema, weights=weights)

    def model(self, counts: Counts, log_prior: Floats) -> Model:
        """The model that these counts support."""
        return estimate(counts.heard(self.schema), log_prior, weights=self.weights, bias=self.bias)

    def after(self, counts: Counts, classes: Any) -> "Tuning":
        """The same, marked stale, for counts that have changed; `classes` are those of the bias.

        What is not counted any more is dropped: a column then speaks by its plain family with the weight it had. New
        columns have the mean weight of the others.
        """
        weight_of = {
            (part.family, column): self.weights[self.schema.slots[p][0 if part.family.joint else k]]
            for p, part in enumerate(self.schema.parts)
            for k, column in enumerate(part.columns)
        }
        place = _places(self.schema, counts.schema)
        held: list[tuple[Part, list[float]]] = []
        alone: dict[int, float] = {}
        for part in self.schema.parts:
            moved = replace(part, columns=tuple(place[column] for column in part.columns))
            own = [weight_of[part.family, column] for column in part.columns]
            if counts.schema.find(moved) is not None:
                held.append((moved, own[:1] if part.family.joint else own))
            elif not part.beside:
                alone.update(zip(moved.columns, own, strict=True))
        heard = {column for part, _ in held if not part.beside for column in part.columns}
        usual = float(np.mean(self.weights)) if self.weights.size else 1.0
        for part in counts.schema.plain.parts:
            missing = [k for k, column in enumerate(part.columns) if column not in heard]
            if part.family.joint and missing:
                held.append((part, [alone.get(part.columns[0], usual)]))
            elif missing:
                some = part.only(missing)
                held.append((some, [alone.get(column, usual) for column in some.columns]))
        schema = Schema(counts.schema.names, counts.schema.width, tuple(part for part, _ in held))
        weights = np.empty(len(schema.block_names))
        for p, (_, own) in enumerate(held):
            weights[schema.slots[p]] = own
        bias = np.zeros(counts.classes.size)
        known = np.isin(counts.classes, classes)
        bias[known] = self.bias[np.isin(classes, counts.classes)]
        return replace(self, schema=schema, weights=weights, bias=bias, stale=True)

    def __str__(self) -> str:
        lines = [f"tuned on {self.rows} rows" + ("; the counts have changed since: retune" if self.stale else "")]
        if self.note:
            lines.append(self.note)
        width = max((len(name) for name in self.schema.block_names), default=0)
        lines += [
            f"{name:{width}}  {weight:.3f}" for name, weight in zip(self.schema.block_names, self.weights, strict=True)
        ]
        return "\n".join(lines)


def _places(old: Schema, new: Schema) -> list[int]:
    """Where each column of `old` stands in `new`."""
    if old.names is None or new.names is None:
        return list(range(old.width))
    place = {name: k for k, name in enumerate(new.names)}
    return [place[name] for name in old.names]


@dataclass(frozen=True)
class Rows:
    """Rows to tune on: their table, class and weight."""

    table: Table
    labels: Codes
    weights: Floats
    log_prior: Floats
    threads: int | None = None
    advance: Advance = field(default=lambda done: None, compare=False)  # called for every candidate that was tried

    @classmethod
    def of(cls, table: Table, labels: Codes, weights: Floats | None, classes: int, most: int) -> "Rows":
        """The rows that have a label and a weight, or as many of them as are to be looked at, drawn by lot."""
        every = np.ones(labels.size) if weights is None else weights
        usable = np.flatnonzero((labels >= 0) & (every > 0.0))
        share = np.bincount(labels[usable], every[usable], classes)
        usable = usable[_drawn(usable.size, most)]
        whole = usable.size == labels.size
        log_prior = log(share / max(share.sum(), 1e-300))
        return cls(table if whole else table.take(usable), labels[usable], every[usable], log_prior)

    @property
    def classes(self) -> int:
        return self.log_prior.size

    def among(self, classes: LabelArray, counts: Counts) -> "Rows":
        """The same rows with the classes of the counts, whose empirical prior they take."""
        place = np.searchsorted(counts.classes, classes).astype(np.int32)
        share = counts.class_weight / max(counts.class_weight.sum(), 1e-300)
        return replace(self, labels=place[self.labels], log_prior=log(share))

    @property
    def total(self) -> float:
        return float(self.weights.sum())

    @property
    def left_out(self) -> LeftOut:
        return LeftOut(self.labels, np.minimum(self.weights, 1.0))

    def taken_out(self, learned: bool) -> LeftOut:
        """Each row to be left out if it was `learned`, or to be scored as it is."""
        return self.left_out if learned else replace(self.left_out, taken=np.zeros(self.labels.size))

    def some(self, most: int) -> "Rows":
        if self.labels.size <= most:
            return self
        kept = _drawn(self.labels.size, most)
        return replace(self, table=self.table.take(kept), labels=self.labels[kept], weights=self.weights[kept])

    def of_classes_present(self) -> "Rows":
        """The same rows as if there were no other classes than theirs."""
        present, labels = np.unique(self.labels, return_inverse=True)
        if present.size == self.classes:
            return self
        share = np.exp(self.log_prior[present])
        return replace(self, labels=labels.astype(np.int32), log_prior=log(share / share.sum()))

    def losses(self, evidence: Floats) -> Floats:
        """The log-loss of each block alone."""
        losses = np.empty(evidence.shape[1])
        kernels.block_losses(evidence, self.log_prior, self.labels, self.weights, losses)
        return losses


def _drawn(size: int, most: int) -> Integers:
    """At most so many of the places 0 .. size - 1, the same ones each time, in order."""
    return np.sort(np.random.default_rng(size).permutation(size)[:most])


@dataclass(frozen=True)
class Heard:
    """A part with the evidence of its blocks."""

    part: Part
    evidence: Floats


@one_blas_thread()
def tuned(
    table: Table,
    labels: Labels,
    weights: Floats | None,
    base: Schema,
    count: Callable[[Schema], Counts],
    threads: int | None = None,
) -> tuple[Counts, Tuning]:
    """The counts of a table and how they are to be heard; `count` counts all of it under a schema."""
    rows = Rows.of(table, labels.codes, weights, labels.classes.size, most_rows(base, labels.classes.size))
    blocks = len(base.block_names)
    present = rows.of_classes_present()
    if present.classes < 2 or rows.total < FEWEST_ROWS:
        few = "one class" if present.classes < 2 else f"{rows.total:g} rows"
        return _untuned(count(base), f"plain Bayes: {few} cannot be tuned on")
    if blocks > MOST_BLOCKS:
        counts = count(base)
        weight, bias = shared_weight(rows.among(labels.classes, counts), counts, learned=True)
        note = f"one weight for all: {blocks} blocks are more than {MOST_BLOCKS}"
        return counts, Tuning(base, np.full(blocks, weight), bias, rows.labels.size, note)
    try:
        with progress("tuning", "candidates") as advance:
            found = choose(replace(present, advance=advance, threads=threads), base)
    except (BadCell, np.linalg.LinAlgError) as problem:
        return _untuned(count(base), f"plain Bayes: tuning met {problem}")
    counts = count(wide(base, found.schema.parts))
    if rows.labels.size == counts.rows and present.classes == counts.classes.size:
        return counts, found  # the rows it was found on are all there are
    return counts, reweighed(found, counts, rows.among(labels.classes, counts))


def _untuned(counts: Counts, note: str) -> tuple[Counts, Tuning]:
    return counts, replace(Tuning.plain(counts), note=note)


@one_blas_thread()
def retuned(
    tuning: Tuning, counts: Counts, table: Table, labels: Labels, weights: Floats | None, learned: bool
) -> Tuning:
    """The same parts with weights learned anew from these rows."""
    classes = labels.classes.size
    rows = Rows.of(table, labels.codes, weights, classes, most_rows(tuning.schema, classes))
    rows = rows.among(labels.classes, counts)
    if classes < 2 or rows.total < FEWEST_ROWS:
        raise DataError(
            f"{rows.labels.size} rows of {classes} classes are too few to tune on; give at least {FEWEST_ROWS}"
        )
    if len(tuning.schema.block_names) > MOST_BLOCKS:
        weight, bias = shared_weight(rows, counts.heard(tuning.schema), learned)
        weights = np.full_like(tuning.weights, weight)
        return replace(tuning, weights=weights, bias=bias, rows=rows.labels.size, stale=False)
    return reweighed(tuning, counts, rows, learned)


def reweighed(tuning: Tuning, counts: Counts, rows: Rows, learned: bool = True) -> Tuning:
    """The same parts with the weights that these rows support, which are among those counted if they were `learned`."""
    heard = counts.heard(tuning.schema)
    model = estimate(heard, rows.log_prior)
    evidence = model.evidence_left_out(heard, rows.table, rows.taken_out(learned))
    weights, bias = learn_weights(evidence, rows, tuning.groups)
    return replace(tuning, weights=weights, bias=bias, rows=rows.labels.size, stale=False, note="")


def choose(rows: Rows, base: Schema) -> Tuning:
    """The parts to hear and their weights, found on rows that are counted here for this purpose alone."""
    heard, choices = _best_families(rows, base)
    heard += _joint_gaussians(rows, base)
    heard += _pairs(rows, base, heard, {choice.column: choice.loss for choice in choices})
    schema = Schema(base.names, base.width, tuple(part.part for part in heard))
    tuning = Tuning(schema, np.ones(0), np.zeros(0), rows.labels.size, choices=choices)
    evidence = np.empty((rows.labels.size, len(schema.block_names), rows.classes))
    for slot, part in zip(schema.slots, heard, strict=True):
        evidence[:, slot] = part.evidence
    weights, bias = learn_weights(evidence, rows, tuning.groups)
    return replace(tuning, weights=weights, bias=bias).without_idle_blocks()


def most_rows(schema: Schema, classes: int) -> int:
    """How many rows are tuned on."""
    blocks = min(len(schema.block_names), MOST_BLOCKS) + PAIRS_A_ROUND * ROUNDS
    return max(min(MOST_ROWS, MOST_EVIDENCE // max(1, blocks * classes)), FEWEST_ROWS)


def wide(base: Schema, heard: Iterable[Part]) -> Schema:
    """The base and, beside it, all that has to be counted for the parts that are heard."""
    schema = base
    for part in heard:
        if schema.find(part) is None:
            schema = Schema(base.names, base.width, (*schema.parts, replace(part, beside=True)))
    return schema


def shared_weight(rows: Rows, counts: Counts, learned: bool) -> tuple[float, Floats]:
    """One weight for all blocks, and the bias of each class: for models of too many blocks to weigh each."""
    schema, left_out = counts.schema, rows.taken_out(learned)
    evidence = np.zeros((rows.labels.size, 1, rows.classes))
    for p, (part, statistic) in enumerate(zip(schema.parts, counts.statistics, strict=True)):
        cells = part.family.read(rows.table, part.columns)
        part.family.score_left_out(statistic, cells, left_out, schema.together[p], evidence)
    weights, bias = learn_weights(evidence, rows, np.zeros(1, dtype=np.int64))
    return float(weights[0]), bias


def learn_weights(evidence: Floats, rows: Rows, group: Integers, polish: bool = True) -> tuple[Floats, Floats]:
    """Weights (none negative) and bias with the highest penalised likelihood of the labels.

    First one weight for each group of blocks, then one for each block, drawn to that of its group; blocks of group -1
    are drawn to 0.
    """
    evidence = centred(evidence)
    groups = [evidence[:, group == g].sum(axis=1) for g in range(group.max(initial=-1) + 1)]
    start = np.zeros(group.size)
    bias = np.zeros(rows.classes)
    if groups:
        together = np.stack(groups, axis=1)
        shared, bias = _maximise(together, rows, np.full(len(groups), group.size**-0.5), bias, GROUP_ROWS, polish)
        start = np.where(group >= 0, shared[group], 0.0)
    if group.size == len(groups):
        return start, bias
    return _maximise(evidence, rows, start, bias, BLOCK_ROWS, polish)


def centred(evidence: Floats) -> Floats:
    """The evidence about its mean over the classes, which changes no posterior, and not beyond what is reasonable."""
    finite = np.clip(np.nan_to_num(evidence, nan=0.0), -1e200, 1e200)
    finite = finite - finite.max(axis=2, keepdims=True)
    finite = np.maximum(finite, -MOST_EXTREME)
    return np.asarray(finite - finite.mean(axis=2, keepdims=True))


def _maximise(
    evidence: Floats, rows: Rows, target: Floats, bias: Floats, strength: float, polish: bool = True
) -> tuple[Floats, Floats]:
    """The weights and the bias of the highest likelihood, less what they differ from their targets."""
    size, blocks, classes = evidence.shape
    total = rows.weights.sum()
    share = rows.weights / total
    flat = np.ascontiguousarray(evidence.transpose(0, 2, 1)).reshape(size * classes, blocks)
    row = np.arange(size)
    # in units of the deviation of each block's evidence all directions are about equally steep
    unit = 1.0 / np.maximum(np.sqrt((flat**2).mean(axis=0)), 1e-6)
    unit = np.minimum(unit, 1.0 / np.sqrt(strength / total))

    def objective(point: Floats) -> tuple[float, Floats]:
        weight, lift = point[:blocks] * unit, point[blocks:]
        score = (flat @ weight).reshape(size, classes) + rows.log_prior + lift
        highest = score.max(axis=1)
        odds = np.exp(score - highest[:, None])
        heap = odds.sum(axis=1)
        loss = float(share @ (highest + np.log(heap) - score[row, rows.labels]))
        excess = odds * (share / heap)[:, None]
        excess[row, rows.labels] -= share
        away = weight - target
        loss += 0.5 * (strength * float(away @ away) + BIAS_ROWS * float(lift @ lift)) / total
        slope = (flat.T @ excess.ravel() + strength / total * away) * unit
        return loss, np.concatenate([slope, excess.sum(axis=0) + BIAS_ROWS / total * lift])

    def newton_step(point: Floats) -> Floats:
        """A step to the optimum that does not depend on the way there; weights at 0 that want to stay do."""
        _, slope = objective(point)
        score = (flat @ (point[:blocks] * unit)).reshape(size, classes) + rows.log_prior + point[blocks:]
        odds = np.exp(score - score.max(axis=1, keepdims=True))
        chance = odds / odds.sum(axis=1, keepdims=True)
        terms = np.concatenate([flat * unit, np.tile(np.eye(classes), (size, 1))], axis=1)
        mean = np.einsum("nc,nck->nk", chance, terms.reshape(size, classes, -1))
        curvature = terms.T @ (terms * (chance * share[:, None]).reshape(-1, 1)) - mean.T @ (mean * share[:, None])
        curvature[np.diag_indices(blocks)] += strength / total * unit**2
        lifts = np.arange(blocks, blocks + classes)
        curvature[lifts, lifts] += BIAS_ROWS / total
        free = np.ones(point.size, dtype=np.bool_)
        free[:blocks] = (point[:blocks] > 0.0) | (slope[:blocks] < 0.0)
        step = np.zeros(point.size)
        step[free] = np.linalg.lstsq(curvature[np.ix_(free, free)], slope[free], rcond=None)[0]
        moved = point - step
        moved[:blocks] = np.maximum(moved[:blocks], 0.0)
        return moved if objective(moved)[0] <= objective(point)[0] + 1e-14 else point

    start = np.concatenate([target / unit, bias])
    bounds = [(0.0, None)] * blocks + [(None, None)] * classes
    options = {"maxiter": 200, "ftol": 1e-8, "gtol": 1e-6} if polish else {"maxiter": 50, "ftol": 1e-6, "gtol": 1e-5}
    solved: Any = minimize(  # type: ignore[call-overload]  # its stubs are stricter than it is
        objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options
    )
    point = solved.x
    for _ in range(POLISHING_STEPS if polish and size * classes * blocks**2 < MOST_POLISHING else 0):
        point = newton_step(point)
    return point[:blocks] * unit, point[blocks:]


# the families of single columns


def _best_families(rows: Rows, base: Schema) -> tuple[list[Heard], tuple[Choice, ...]]:
    """The parts of the base, each inferred column with the family that has the least log-loss by itself."""
    options: dict[Family, list[int]] = {}
    kept = []
    for part in base.parts:
        inferred = [] if part.family.joint else _inferred(part)
        for column in inferred:
            for family in candidates(part.family, rows, column):
                options.setdefault(family, []).append(column)
        if rest := tuple(k for k, column in enumerate(part.columns) if column not in inferred):
            kept.append(part.only(rest))
    ledger: dict[int, list[tuple[float, Family]]] = {}
    best: dict[int, Floats] = {}
    counted: dict[Any, Any] = {}
    for family, columns in options.items():
        evidence = left_out_evidence(rows, family, columns, counted)
        for k, loss in enumerate(rows.losses(evidence)):
            tried = ledger.setdefault(columns[k], [])
            charged = float(loss) + (CHANGE_NATS / rows.total if tried else 0.0)  # the inferred family comes first
            if not tried or charged < min(tried, key=lambda entry: entry[0])[0]:
                best[columns[k]] = evidence[:, k].copy()
            tried.append((charged, family))
    heard = [Heard(part, left_out_evidence(rows, part.family, part.columns, {})) for part in kept]
    chosen: dict[Family, list[int]] = {}
    choices = []
    for column in sorted(ledger):
        (loss, family), *others = sorted(ledger[column], key=lambda entry: entry[0])
        chosen.setdefault(family, []).append(column)
        choices.append(Choice(base.column_name(column), family, loss, tuple((f, other) for other, f in others)))
    by_column = dict(zip(sorted(ledger), choices, strict=True))
    for family, columns in chosen.items():
        why = tuple(_reason(by_column[column]) for column in columns)
        evidence = np.stack([best[column] for column in columns], axis=1)
        heard.append(Heard(Part(family, tuple(columns), why), evidence))
    return heard, tuple(choices)


def _inferred(part: Part) -> list[int]:
    """The columns that nobody spoke of."""
    return [column for column, why in zip(part.columns, part.why, strict=True) if why != GIVEN]


def _reason(choice: Choice) -> str:
    if not choice.others:
        return "the only candidate"
    family, loss = choice.others[0]
    return f"log-loss {choice.loss:.4f} alone, before {family} {loss:.4f}"


def left_out_evidence(rows: Rows, family: Family, columns: Sequence[int], counted: dict[Any, Any]) -> Floats:
    """The evidence of each row by what the other rows count; `counted` remembers what was."""
    cells = family.read(rows.table, columns)
    key = family.counts, tuple(columns)
    if key not in counted:
        counted[key] = family.count(cells, rows.labels, rows.weights, rows.classes)
    blocks = 1 if family.joint else len(columns)
    size = rows.labels.size
    out = np.zeros((size, blocks, rows.classes))

    def score(start: int) -> None:
        some = np.arange(start, min(start + step, size))
        family.score_left_out(
            counted[key], cells_of(cells, some), rows.left_out[some], np.arange(blocks), out[start : start + step]
        )

    step = max(CHUNK_ROWS, -(-size // (rows.threads or CORES)))
    for _ in in_order(score, range(0, size, step), rows.threads):
        pass
    rows.advance(1)
    return out


def candidates(family: Family, rows: Rows, column: int) -> list[Family]:
    """The families that may suit a column that was inferred to be of this one; that one first."""
    table = rows.table
    others: list[Family] = []
    dropped: Family | None = None
    if isinstance(family, Categorical) and family.unseen == "error":
        return [family, *(replace(family, alpha=alpha) for alpha in (0.1, 0.5, 1.0) if alpha != family.alpha)]
    if isinstance(family, Categorical):
        others += [replace(family, alpha=alpha) for alpha in (0.1, 0.5, 1.0)]
    if isinstance(family, Gaussian | Categorical) and _is_number(table, column):
        cells = np.asarray(table.numbers([column])[:, 0], dtype=np.float64)
        cells = cells[~np.isnan(cells)]
        values = np.unique(cells)
        if values.size < 2:
            return [family]
        own, pooled = _least_spread(rows, column)
        if pooled:
            others.append(Gaussian(variance=Pooled()))
        if own:
            others.append(Gaussian())
        elif isinstance(family, Gaussian):
            dropped = family
        others += [Binned(bins=bins) for bins in (4, 8, 16, 32, 64) if bins <= max(rows.total / 8, 4)]
        if values[0] > 0.0 and pooled:
            others.append(LogNormal(variance=Pooled(), outside="ignore"))
        if values[0] > 0.0 and own:
            others += [LogNormal(outside="ignore"), Gamma(outside="ignore")]
        if values[0] >= 0.0 and values[-1] < 1e6 and (values == np.floor(values)).all():
            others.append(Poisson(alpha=1.0, outside="ignore"))
        if values.size <= min(30, rows.total / 4):
            others += [Categorical(alpha=alpha) for alpha in (0.5, 1.0)]
    return [option for option in dict.fromkeys([family, *others]) if option is not dropped]


def _joins(rows: Rows, column: int) -> bool:
    """Whether a column may join the others: its classes spread together, and each that has few rows by itself."""
    return all(_least_spread(rows, column, few=30.0))


def _least_spread(rows: Rows, column: int, few: float = np.inf) -> tuple[bool, bool]:
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


def _is_number(table: Table, column: int) -> bool:
    if isinstance(table, SparseMatrix):
        return False
    cells = table.values([column])
    return is_numeric(cells[0].type) if isinstance(cells, list) else True


# blocks of several columns


def _joint_gaussians(rows: Rows, base: Schema) -> list[Heard]:
    """The linear and the quadratic discriminant of all numeric columns, each with the best of a few shrinkages."""
    columns = [
        column
        for part in base.parts
        if isinstance(part.family, Gaussian | Categorical | Bernoulli)
        for column in _inferred(part)
        if _is_number(rows.table, column)
    ]
    if len(columns) < 2:
        return []
    cells = np.asarray(rows.table.numbers(columns), dtype=np.float64)
    full = (np.isnan(cells).mean(axis=0) <= MOST_MISSING) & (np.fmax.reduce(cells) > np.fmin.reduce(cells))
    columns = sorted(c for c, usable in zip(columns, full, strict=True) if usable and _joins(rows, c))
    if not 2 <= len(columns) <= min(MOST_JOINED, rows.total / 2):
        return []
    counted: dict[Any, Any] = {}
    heard = []
    for families in (POOLED, PER_CLASS):
        some = rows.some(max(FEWEST_ROWS, int(SHRINKAGE_WORK / (rows.classes * len(columns) ** 3 / 6))))
        statistic = families[0].count(families[0].read(rows.table, columns), rows.labels, rows.weights, rows.classes)
        counted[families[0].counts, tuple(columns)] = statistic
        losses = [float(some.losses(left_out_evidence(some, family, columns, counted))[0]) for family in families]
        family = families[int(np.argmin(losses))]
        evidence = left_out_evidence(rows, family, columns, counted)
        why = "all numeric columns together, log-loss " + f"{rows.losses(evidence)[0]:.4f} alone"
        heard.append(Heard(Part(family, tuple(columns), (why,) * len(columns), beside=True), evidence))
    return heard


def _pairs(rows: Rows, base: Schema, heard: list[Heard], losses: dict[str, float]) -> list[Heard]:
    """Tables of two columns, as long as they promise to add to what the others say."""
    known = [column for column in range(base.width) if base.column_name(column) in losses]
    best = sorted(known, key=lambda column: losses[base.column_name(column)])
    bins = int(np.clip((rows.total / 2.0) ** (1.0 / 3.0), 4, PAIRED_LEVELS))
    coded: dict[int, tuple[Codes, tuple[float, ...] | None, int]] = {}
    for column in best:
        if len(coded) < PAIRED_COLUMNS and (member := few_levels(rows, column, bins)) is not None:
            coded[column] = member
    columns = sorted(coded)
    sizes = np.array([coded[column][2] for column in columns], dtype=np.int64)
    pairs = [
        (a, b) for a, b in combinations(range(len(columns)), 2) if sizes[a] * sizes[b] * rows.classes <= rows.total
    ]
    if not pairs:
        return []
    codes = np.stack([coded[column][0] for column in columns], axis=1)
    evidence = centred(np.concatenate([part.evidence for part in heard], axis=1))
    singles = sum(part.evidence.shape[1] for part in heard if not part.part.beside)
    groups = np.concatenate([np.zeros(singles), 1 + np.arange(evidence.shape[1] - singles)]).astype(np.int64)
    weights, bias = learn_weights(evidence, rows, groups, polish=False)
    joined: list[Heard] = []
    for _ in range(ROUNDS):
        if not pairs:
            break
        score = np.einsum("nbk,b->nk", evidence, weights) + rows.log_prior + bias
        posterior, _ = normalized(score, rows.log_prior)
        gains = np.empty(len(pairs))
        kernels.pair_gains(
            codes, sizes, rows.labels, rows.weights, PAIR_ALPHA, posterior, np.array(pairs, dtype=np.int64), gains
        )
        found = [k for k in np.argsort(-gains)[:PAIRS_A_ROUND] if gains[k] > LEAST_GAIN]
        if not found:
            break
        for k in found:
            members = tuple(columns[m] for m in pairs[k])
            cuts = tuple(coded[column][1] for column in members)
            family = JointTable(PAIR_ALPHA, cuts=None if cuts == (None, None) else cuts)
            why = f"together they promised {gains[k]:.1f} nats"
            part = Part(family, members, (why, why), beside=True)
            joined.append(Heard(part, left_out_evidence(rows, family, members, {})))
        pairs = [pair for k, pair in enumerate(pairs) if k not in set(found)]
        more = centred(np.concatenate([part.evidence for part in joined[-len(found) :]], axis=1))
        evidence = np.concatenate([evidence, more], axis=1)
        target = np.concatenate([weights, np.zeros(len(found))])
        weights, bias = _maximise(evidence, rows, target, bias, BLOCK_ROWS, polish=False)
    return joined


def few_levels(rows: Rows, column: int, bins: int) -> tuple[Codes, tuple[float, ...] | None, int] | None:
    """A column as a few levels: the code of each cell (-1: missing), where it is cut (None: nowhere), their number."""
    table = rows.table
    if _is_number(table, column):
        cells = np.asarray(table.numbers([column])[:, 0], dtype=np.float64)
        here = ~np.isnan(cells)
        values = np.unique(cells[here])
        if values.size < 2:
            return None
        if values.size <= bins + 2:
            cuts = (values[1:] + values[:-1]) / 2.0
        else:
            share = np.arange(1, bins) / bins
            cuts = np.unique(np.quantile(cells[here], share, method="inverted_cdf", weights=rows.weights[here]))
        codes = np.where(np.isnan(cells), -1, np.searchsorted(cuts, cells, side="right")).astype(np.int32)
        return codes, tuple(cuts.tolist()), cuts.size + 1
    values_of = table.values([column])
    array = values_of[0] if isinstance(values_of, list) else pa.array(values_of[:, 0], from_pandas=True)
    codes, levels = distinct(array, 0)
    return (codes.astype(np.int32), None, len(levels)) if 2 <= len(levels) <= PAIRED_LEVELS else None
