"""Diagnosis of the independence and distribution assumptions: which fail, what that costs, and the remedies.

Dependence within the classes is tested by a chi-square with exact moments (`compute_p_value`), which is valid in small
tables too.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from math import comb
from textwrap import indent
from typing import Any

import numpy as np

from deciban.errors import Argument, Part
from deciban.evaluation.leave_one_out import LeaveOneOut
from deciban.evaluation.metrics import Calibration
from deciban.families import Family, JointTable
from deciban.fitting.tune.binning import find_quantile_cuts, reduce_to_levels
from deciban.fitting.tune.rows import Rows
from deciban.model.corrections import Corrections
from deciban.model.model import Model, log_normalize
from deciban.schema.schema import Schema
from deciban.tables.labels import LabelArray
from deciban.tables.table import Table
from deciban.util import results
from deciban.util.arrays import Codes, Flags, Floats, Integers, sum_at
from deciban.util.progress import track
from deciban.util.results import Result, TextTable
from deciban.util.text_tables import count_noun, integer_if_whole, line_width, terminal_width, wrap_lines

# Levels with fewer rows in a class are merged: with rarer ones, the gamma approximation of chi-square is poor.
MIN_ROWS_IN_LEVEL = 10.0


def group_rare_levels(codes: Codes, size: int, ordered: bool, rows: Rows) -> Codes:
    """Merge levels that are rare in a class: neighbors if ordered, else the rarest first.

    Each column is merged without looking at others, so this cannot make two columns look dependent.
    """
    result = codes.copy()
    for label in range(rows.classes):
        here = (rows.labels == label) & (codes >= 0)
        held = np.bincount(codes[here], rows.weights[here], size).astype(np.float64)
        result[here] = _make_groups(held, np.arange(size) if ordered else np.argsort(held, kind="stable"))[codes[here]]
    return result


def _make_groups(held: Floats, order: Integers) -> Codes:
    """Return the group of each level: neighbors in this order, with at least MIN_ROWS_IN_LEVEL rows each."""
    group, last, total = np.zeros(held.size, dtype=np.int32), 0, 0.0
    for level in order:
        if total >= MIN_ROWS_IN_LEVEL:
            last, total = last + 1, 0.0
        group[level] = last
        total += held[level]
    return np.minimum(group, last - 1 if last and total < MIN_ROWS_IN_LEVEL else last)


def compute_p_value(counts: Floats) -> float:
    """Return the p-value of dependence in counts (class by level by level), given the class.

    The statistic is Pearson's chi-square, summed over classes. Its mean and variance are the exact ones over all tables
    with the same margins (Haldane 1940, Dawson 1954), which differ from the degrees of freedom in small tables. The
    p-value is that of the gamma distribution with this mean and variance.
    """
    from scipy.special import gammaincc

    total = counts.sum(axis=(1, 2))
    by_a, by_b = counts.sum(axis=2), counts.sum(axis=1)
    levels_a, levels_b = (by_a > 0.0).sum(axis=1), (by_b > 0.0).sum(axis=1)
    testable = (levels_a > 1) & (levels_b > 1) & (total > 3.0)
    if not testable.any():
        return 1.0
    n, by_a, by_b = total[testable], by_a[testable], by_b[testable]
    expected = by_a[:, :, None] * by_b[:, None, :] / n[:, None, None]
    square = np.divide((counts[testable] - expected) ** 2, expected, out=np.zeros_like(expected), where=expected > 0.0)
    (free_a, uneven_a), (free_b, uneven_b) = _freedom(by_a, n), _freedom(by_b, n)
    mean = n / (n - 1.0) * (levels_a[testable] - 1) * (levels_b[testable] - 1)
    variance = 2.0 * n / (n - 3.0) * (free_a - uneven_a) * (free_b - uneven_b) + n**2 / (n - 1.0) * uneven_a * uneven_b
    scale = variance.sum() / mean.sum()
    return float(gammaincc(mean.sum() / scale, square.sum() / scale)) if scale > 0.0 else 1.0


def _freedom(held: Floats, n: Floats) -> tuple[Floats, Floats]:
    """Return Dawson's v and w of the margins, class by level."""
    there: Flags = held > 0.0
    levels = there.sum(axis=1)
    inverse = np.divide(1.0, held, out=np.zeros_like(held), where=there).sum(axis=1)
    return (n - levels) * (levels - 1) / (n - 1.0), (n * inverse - levels**2) / (n - 2.0)


# Bits per nat.
BITS = 1.0 / np.log(2.0)

# The tuning that remedies name.
TUNED = Argument("tune", "auto")

# Family-wise significance level of all tests of dependence.
SIGNIFICANCE = 0.01

# Columns that are compared with each other, at most 1,770 pairs, which bounds the time.
MAX_COMPARED = 60

# Rows of a long table that are used.
MAX_ROWS_DIAGNOSED = 10_000

# Levels that a number is cut into to compare two columns.
LEVELS_COMPARED = 6

# A column is redundant if another determines this share of its entropy, with and without the class.
REDUNDANT = 0.95

# Columns interact only if their mutual information without the class is at most this share of that within the classes.
MAX_SHARED_WITHOUT_CLASS = 0.5

# Differences in log-likelihood below this, in nats, are chance.
MAX_NATS_BY_CHANCE = 2.0

# Sets of three columns that are tested. If there are more, only those that corrections use are tested.
MAX_TRIPLES = 600

# Levels that a number is cut into to compare three columns: the tables have more cells.
LEVELS_OF_A_TRIPLE = 3

# Sets of columns that corrections use most, tested if there are too many sets of three.
MAX_CORRECTED_SETS = 24

# Classes with fewer rows are reported: their distributions are uncertain.
SMALL_CLASS = 10

# Findings of each kind that the summary prints.
MAX_FINDINGS = 8

# Remedies of each kind.
MAX_REMEDIES = 3


@dataclass(frozen=True)
class Dependence:
    """Columns that depend on each other within the classes: two, or three of which no two are dependent.

    columns: their names.
    bits: their conditional mutual information given the class; of three, that of the last with the first two.
    bits_without_class: their mutual information without the class.
    p: p-value, corrected for the number of tests.
    share: `bits` as a share of the smaller entropy; 1 if one column determines the other within the classes.
    cost: leave-one-out bits per row lost by treating them as independent instead of counting tuples; 0 if nothing is
        lost, because the classes depend on both alike, or because each tuple has too few rows.
    rows: the weight of the rows used.
    droppable: the column that the other one determines, so that dropping it loses nothing; None otherwise.
    block: the family that models them jointly.
    places: the positions of the columns. named: True if the table has column names.
    """

    columns: tuple[str, ...]
    bits: float
    bits_without_class: float
    p: float
    share: float
    cost: float
    rows: float
    droppable: str | None
    block: Family
    places: tuple[int, ...]
    named: bool

    @property
    def redundant(self) -> bool:
        """True if one of the columns can be dropped without loss."""
        return self.droppable is not None

    @property
    def interaction(self) -> bool:
        """True if the columns are informative only jointly.

        They depend on each other within the classes, but hardly without the class, and counting them jointly gains more
        than chance.
        """
        return (
            self.cost * self.rows > MAX_NATS_BY_CHANCE * BITS
            and self.bits_without_class <= MAX_SHARED_WITHOUT_CLASS * self.bits
            and not self.redundant
        )

    @property
    def kind(self) -> str:
        """Kind of dependence: "interaction", "redundant" or "dependent"."""
        return "interaction" if self.interaction else "redundant" if self.redundant else "dependent"

    @property
    def block_argument(self) -> Argument:
        """Argument that models these columns jointly."""
        return Argument("families", {self.columns if self.named else self.places: self.block})

    @property
    def python(self) -> str:
        """Python expression of a classifier that models these columns jointly."""
        return f"BayesClassifier({{{self.columns if self.named else self.places!r}: {self.block!r}}})"

    @property
    def option(self) -> str | None:
        """Option of `deciban fit` that models these columns jointly; None if columns have no names."""
        if not self.named:
            return None
        names = ",".join(f'"{name}"' if set(name) & set(',"=') else name for name in self.columns)
        return f"--family {shlex.quote(f'{names}={self.block!r}')}"

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain values."""
        return {
            "columns": list(self.columns),
            "kind": self.kind,
            "bits": self.bits,
            "bits_without_class": self.bits_without_class,
            "p": self.p,
            "share": self.share,
            "cost": self.cost,
            "droppable": self.droppable,
            "python": self.python,
            "option": self.option,
        }


@dataclass(frozen=True)
class Misfit:
    """A column whose distribution within a class differs from its family; `distance` is Kolmogorov's."""

    column: str
    label: Any
    family: str
    distance: float
    expected: float


@dataclass(frozen=True, repr=False)
class Diagnosis(Result):
    """Failed assumptions of plain Bayes on the training rows; print it for a summary.

    before, after: leave-one-out of plain Bayes and of the model (the same if it is not tuned).
    dependences: pairs of columns that depend on each other within the classes.
    triples: sets of three columns that interact, though no two of them depend on each other.
    misfits: columns that do not follow the distribution of their family.
    small_classes: classes with few rows.
    weights: the evidence weight of each block.
    unused: columns that the model does not use: they are in no block with a weight and in no correction.
    indirect: columns without a weight of their own that are used in joint blocks or corrections.
    """

    _made_with = ("before", "after")

    before: LeaveOneOut
    after: LeaveOneOut
    dependences: tuple[Dependence, ...]
    pairs_tested: int
    misfits: tuple[Misfit, ...]
    small_classes: tuple[tuple[Any, float], ...]
    weights: tuple[tuple[str, float], ...]
    triples: tuple[Dependence, ...] = ()
    triples_tested: int = 0
    unused: tuple[str, ...] = ()
    indirect: tuple[str, ...] = ()

    @property
    def interactions(self) -> tuple[Dependence, ...]:
        """Dependences of columns that are informative only jointly."""
        return (*(found for found in self.dependences if found.interaction), *self.triples)

    @property
    def redundant(self) -> tuple[Dependence, ...]:
        """Dependences of which one column can be dropped without loss."""
        return tuple(found for found in self.dependences if found.redundant)

    @property
    def calibration_before(self) -> Calibration:
        """Calibration of plain Bayes."""
        return self.before.calibration()

    @property
    def calibration_after(self) -> Calibration:
        """Calibration of the model."""
        return self.after.calibration()

    @property
    def saved_bits(self) -> float:
        """Leave-one-out bits per row that tuning saves."""
        return float((self.before.log_loss - self.after.log_loss) * BITS)

    def __str__(self) -> str:
        return wrap_lines(self.summary(), terminal_width())

    def _parts(self) -> list[results.Part]:
        tuned = ["tuned (given the tuning)"] if self.after.given_tuning else []
        lines = [(name, *(f"{value:.4f}" for value in values[: 1 + len(tuned)])) for name, *values in self._metrics()]
        found: list[results.Part] = [TextTable(lines, ("leave-one-out", "plain", *tuned), [1, 2])]
        title, pairs, notes = self._dependence_table(str)
        found.append(replace(pairs, title=title, notes=notes) if pairs is not None else title)
        if self.misfits:
            misfits = [
                (
                    str(misfit.column),
                    str(misfit.label),
                    misfit.family,
                    f"{misfit.distance:.3f}",
                    f"{misfit.expected:.3f}",
                )
                for misfit in self.misfits[:MAX_FINDINGS]
            ]
            head = ("column", "class", "family", "Kolmogorov–Smirnov distance", "largest expected by chance")
            title, remedy = self._misfit_texts(str)
            found.append(TextTable(misfits, head, [3, 4], title, [remedy]))
        return [*found, *("\n".join(lines) for lines in self._remarks(str))]

    def _metrics(self) -> list[tuple[str, float, float]]:
        """Return leave-one-out metrics, each of plain Bayes and of the model."""
        return [
            ("log-loss, bits per row", self.before.log_loss * BITS, self.after.log_loss * BITS),
            ("calibration error", self.before.expected_calibration_error, self.after.expected_calibration_error),
            ("accuracy", self.before.accuracy, self.after.accuracy),
        ]

    def _misfit_texts(self, argument: Callable[[Part], str]) -> tuple[str, str]:
        """Return the title of the table of misfits, and the remedy."""
        advice = f"remedy: another family (Binned, LogNormal, Gamma); {argument(TUNED)} chooses by log-loss"
        remedy = "tuning has compared families by log-loss" if self.after.given_tuning else advice
        return "columns that their family fits poorly", remedy

    def _remarks(self, argument: Callable[[Part], str]) -> list[list[str]]:
        """Return remarks on small classes and on unused columns, each as lines."""
        found = []
        if self.small_classes:
            few = ", ".join(f"{label} ({count_noun(rows, 'row')})" for label, rows in self.small_classes[:MAX_FINDINGS])
            pooled = argument(Argument("family", "Pooled"))
            remedy = f"  remedy: more rows, stronger smoothing, {pooled} variances"
            found.append([f"classes with few rows: {few}", remedy])
        for title, names in (
            ("columns that the model does not use", self.unused),
            ("columns used only in joint blocks or corrections", self.indirect),
        ):
            if names:
                more = " …" if len(names) > MAX_FINDINGS else ""
                found.append([f"{title}: {', '.join(names[:MAX_FINDINGS])}{more}"])
        return found

    def summary(self, argument: Callable[[Part], str] = str) -> str:
        """Return all findings and remedies as text.

        Parameters
        ----------
        argument : callable, default=str
            Function that renders arguments and families.

        Returns
        -------
        str
            The same text as printing it, with remedies for Python by default.
        """
        tuned = self.after.given_tuning
        lines = ["leave-one-out               plain" + ("   tuned (given the tuning)" if tuned else "")]
        for name, before, after in self._metrics():
            lines.append(f"  {name:24}  {before:6.4f}" + (f"  {after:6.4f}" if tuned else ""))
        title, pairs, notes = self._dependence_table(argument)
        lines += ["", title]
        if pairs is not None:
            lines += [indent(pairs.format(line_width() - 2), "  "), *(f"  {note}" for note in notes)]
        if self.misfits:
            title, remedy = self._misfit_texts(argument)
            lines += ["", f"{title} (Kolmogorov–Smirnov distance > largest expected by chance):"]
            for misfit in self.misfits[:MAX_FINDINGS]:
                lines.append(
                    f"  {misfit.column} in {misfit.label}: {misfit.family}  "
                    f"{misfit.distance:.3f} > {misfit.expected:.3f}"
                )
            lines.append(f"  {remedy}")
        for remark in self._remarks(argument):
            lines += ["", *remark]
        return "\n".join(lines)

    def _dependence_table(self, argument: Callable[[Part], str]) -> tuple[str, TextTable | None, list[str]]:
        """Return a title, the dependences as a table (None without any), and notes on them."""
        if not self.pairs_tested:
            return "fewer than two columns to compare", None, []
        tested = count_noun(self.pairs_tested, "pair") + (
            f" and {count_noun(self.triples_tested, 'set')} of three" if self.triples_tested else ""
        )
        dependences = [*self.triples, *self.dependences]
        if not dependences:
            return f"no dependence between columns within the classes ({tested} tested)", None, []
        head = ("", "mutual information", "without class", "cost, bits per row", "")
        table = []
        for found in dependences[:MAX_FINDINGS]:
            cost = f"{found.cost:.4f}" if found.cost > 0.0 else "none"
            kind = "" if found.kind == "dependent" else found.kind
            bits = f"{found.bits:.4f}", f"{found.bits_without_class:.4f}"
            table.append((_join_names(found.columns), *bits, cost, kind))
        notes = [f"({len(dependences) - MAX_FINDINGS:,} more)"] if len(dependences) > MAX_FINDINGS else []
        notes += [f"remedy: {remedy}" for remedy in self.remedies(argument)]
        title = f"columns that depend on each other within the classes ({tested} tested):"
        return title, TextTable(table, head, right=[1, 2, 3]), notes

    def remedies(self, argument: Callable[[Part], str] = str) -> list[str]:
        """Return what was or can be done about dependent columns, one sentence each.

        Parameters
        ----------
        argument : callable, default=str
            Function that renders arguments and families.

        Returns
        -------
        list of str
            Sentences, the most useful remedy first.
        """
        if self.after.given_tuning and self.saved_bits > 0.0:
            saved = f"save {self.saved_bits:.4f} bits per row compared with plain Bayes"
            return [f"tuning already compensates: weights, joint blocks and corrections {saved}"]
        remedies = [
            f"model {_join_names(found.columns)} jointly, because they interact: "
            f"{found.python if argument is str else argument(found.block_argument)}"
            for found in self.interactions[:MAX_REMEDIES]
        ]
        dropped: set[str] = set()
        for found in self.redundant:
            kept = next(name for name in found.columns if name != found.droppable)
            known = kept in dropped or found.droppable is None or found.droppable in dropped
            if not known and len(dropped) < MAX_REMEDIES:
                assert found.droppable is not None
                dropped.add(found.droppable)
                remedies.append(f"drop {found.droppable}: {kept} determines it, so nothing is lost")
        if self.after.given_tuning:
            return [*remedies, "tuning saves nothing on these rows; plain Bayes is as good"]
        if any(found.cost > 0.0 for found in (*self.triples, *self.dependences)):
            return [*remedies, f"{argument(TUNED)} weights the columns and corrects for dependence"]
        return ["nothing to do: treating the columns as independent loses nothing compared with counting pairs"]

    def _columns(self) -> dict[str, Any]:
        """Return ``columns``, ``kind``, ``bits`` and so on of each dependent pair or set of three."""
        lines = [found.to_dict() for found in (*self.triples, *self.dependences)]
        names = ("kind", "bits", "bits_without_class", "p", "share", "cost", "droppable")
        columns = {"columns": [", ".join(line["columns"]) for line in lines]}
        return columns | {name: [line[name] for line in lines] for name in names}

    def to_dict(self, argument: Callable[[Part], str] = str) -> dict[str, Any]:
        """Return all findings as plain values.

        Parameters
        ----------
        argument : callable, default=str
            Function that renders arguments and families in remedies.

        Returns
        -------
        dict
            Numbers, lists and dicts that can be written as JSON.
        """
        metrics = ("accuracy", "log_loss", "expected_calibration_error")
        return {
            "plain": {name: getattr(self.before, name) for name in metrics},
            "tuned": {name: getattr(self.after, name) for name in metrics},
            "saved_bits": self.saved_bits,
            "pairs_tested": self.pairs_tested,
            "triples_tested": self.triples_tested,
            "dependences": [found.to_dict() for found in (*self.triples, *self.dependences)],
            "remedies": self.remedies(argument) if self.dependences or self.triples else [],
            "misfits": [vars(misfit) for misfit in self.misfits],
            "small_classes": [{"class": label, "rows": integer_if_whole(rows)} for label, rows in self.small_classes],
            "weights": dict(self.weights),
            "unused": list(self.unused),
            "indirect": list(self.indirect),
        }


def diagnose(
    model: Model, before: LeaveOneOut, after: LeaveOneOut, table: Table, labels: Codes, weights: Floats
) -> Diagnosis:
    """Diagnose a model on training rows; `before`, `after`: leave-one-out of plain Bayes and of the model."""
    rows = Rows.of(table, labels, weights, model.classes.size, MAX_ROWS_DIAGNOSED)
    dependences, tested = find_dependences(rows, model.schema)
    triples, triples_tested = _find_triples(rows, model.schema, dependences, model.corrections)
    share = np.bincount(labels[labels >= 0], weights[labels >= 0], model.classes.size)
    small = tuple((label, float(n)) for label, n in zip(model.classes.tolist(), share, strict=True) if n < SMALL_CLASS)
    weighted = tuple(zip(model.schema.block_names, (float(weight) for weight in model.weights), strict=True))
    misfits = _find_misfits(rows, model, model.classes)
    return Diagnosis(
        before,
        after,
        dependences,
        tested,
        misfits,
        small,
        weighted,
        triples,
        triples_tested,
        *_find_idle_columns(model),
    )


def _find_idle_columns(model: Model) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the columns that a model does not use, and those used only in joint blocks or corrections."""
    alone: set[int] = set()
    silent: set[int] = set()
    together: set[int] = set()
    for slot, group in zip(model.schema.block_slots, model.schema.groups, strict=True):
        if group.family.joint and len(group.columns) > 1:
            together |= set(group.columns if model.weights[slot[0]] != 0.0 else ())
        else:
            for column, b in zip(group.columns, slot, strict=True):
                (alone if model.weights[b] != 0.0 else silent).add(column)
    if (corrections := model.corrections) is not None:
        together |= {corrections.columns[place].column for place in np.flatnonzero(corrections.importance).tolist()}
    names = [(column, model.schema.column_name(column)) for column in range(model.schema.width)]
    return (
        tuple(name for column, name in names if column not in alone | together),
        tuple(name for column, name in names if column in (together & silent) - alone),
    )


@dataclass(frozen=True)
class _Coded:
    """A column in few levels.

    codes: the level of each row (-1: missing). size: the number of levels. cuts: cuts of a number. groups: the codes
    with rare levels merged, on which dependence is tested.
    """

    column: int
    codes: Codes
    size: int
    cuts: tuple[float, ...] | None
    groups: Codes


def _code_columns(rows: Rows, columns: Iterable[int], levels: int) -> list[_Coded]:
    """Return the columns that can be cut into few levels, at most MAX_COMPARED."""
    found: list[_Coded] = []
    for column in columns:
        if len(found) < MAX_COMPARED and (few := reduce_to_levels(rows, column, levels)) is not None:
            codes, cuts, size = few
            found.append(_Coded(column, codes, size, cuts, group_rare_levels(codes, size, cuts is not None, rows)))
    return found


def find_dependences(rows: Rows, schema: Schema) -> tuple[tuple[Dependence, ...], int]:
    """Return the pairs of columns that depend on each other given the class, and the number of tests."""
    pairs = list(combinations(_code_columns(rows, range(schema.width), LEVELS_COMPARED), 2))
    tested = track(pairs, "testing", "pairs of columns", len(pairs))
    found = (_measure_dependence(pair, rows, schema, len(pairs)) for pair in tested)
    return _sort_by_strength(found), len(pairs)


def find_interactions(rows: Rows, schema: Schema) -> list[Dependence]:
    """Return the pairs and sets of three columns that are informative only jointly."""
    some = rows.some(MAX_ROWS_DIAGNOSED)
    pairs, _ = find_dependences(some, schema)
    return [*(pair for pair in pairs if pair.interaction), *_find_triples(some, schema, pairs, None)[0]]


def _find_triples(
    rows: Rows, schema: Schema, pairs: Sequence[Dependence], corrections: Corrections | None
) -> tuple[tuple[Dependence, ...], int]:
    """Return sets of three columns that interact though no two of them are dependent, and the number tested.

    All sets of few columns are tested; of many columns, those that corrections use.
    """
    coded = {one.column: one for one in _code_columns(rows, range(schema.width), LEVELS_OF_A_TRIPLE)}
    sets: list[tuple[int, ...]] = list(combinations(coded, 3)) if comb(len(coded), 3) <= MAX_TRIPLES else []
    if not sets and corrections is not None:
        sets = [
            found
            for found in corrections.top_column_sets(3, MAX_CORRECTED_SETS)
            if all(column in coded for column in found)
        ]
    dependent = {frozenset(pair.columns) for pair in pairs}
    triples = []
    for columns in sets:
        names = [schema.column_name(column) for column in columns]
        members = [coded[column] for column in columns]
        cells = rows.classes * np.prod([one.size for one in members])
        if cells <= rows.labels.size and not any(frozenset(two) in dependent for two in combinations(names, 2)):
            triples.append(members)
    tested = track(triples, "testing", "sets of columns", len(triples))
    found = (_measure_dependence(members, rows, schema, len(triples)) for members in tested)
    return _sort_by_strength(one for one in found if one is not None and one.interaction), len(triples)


def _sort_by_strength(found: Iterable[Dependence | None]) -> tuple[Dependence, ...]:
    return tuple(sorted((one for one in found if one is not None), key=lambda one: -one.bits))


def _measure_dependence(members: Sequence[_Coded], rows: Rows, schema: Schema, tested: int) -> Dependence | None:
    """Return the dependence of two or three columns, corrected for `tested` tests; None if not significant."""
    *firsts, last = members
    first, size = _combine_codes([one.codes for one in firsts], [one.size for one in firsts])
    groups = firsts[0].groups if len(firsts) == 1 else group_rare_levels(first, size, False, rows)
    p = compute_p_value(_count_pairs(groups, size, last.groups, last.size, rows)) * tested
    if p >= SIGNIFICANCE:
        return None
    counts = _count_pairs(first, size, last.codes, last.size, rows)
    information, entropy = _conditional_information(counts)
    without_class, whole_entropy = _conditional_information(counts.sum(axis=0, keepdims=True))
    share = information / entropy if entropy > 0.0 else 0.0
    there = np.flatnonzero((first >= 0) & (last.codes >= 0))
    joint = _combine_codes([first, last.codes], [size, last.size])
    together = _measure_loss([joint], rows, there)
    cost = max(_measure_loss([(one.codes, one.size) for one in members], rows, there) - together, 0.0)
    weight, droppable = float(rows.weights[there].sum()), None
    if len(members) == 2 and share >= REDUNDANT and without_class >= REDUNDANT * whole_entropy:
        for kept, dropped in (members, members[::-1]):
            alone = _measure_loss([(kept.codes, kept.size)], rows, there)
            difference = _rank_differences(kept, dropped, rows, there)
            if difference is None:
                losses = [together]
            else:  # a monotonic function of the other column adds nothing, though rows at a cut may change sides
                losses = [together, _measure_loss([difference], rows, there)] if difference[1] > 1 else []
            if all((alone - loss) * weight <= MAX_NATS_BY_CHANCE for loss in losses):
                droppable = schema.column_name(dropped.column)
                break
    names = tuple(schema.column_name(one.column) for one in members)
    return Dependence(
        names, information * BITS, without_class * BITS, p, share, cost * BITS, weight, droppable,
        _make_block(members, rows), tuple(one.column for one in members), schema.names is not None,
    )  # fmt: skip


def _rank_differences(kept: _Coded, dropped: _Coded, rows: Rows, there: Integers) -> tuple[Codes, int] | None:
    """Cut the levels of a number further by how far the ranks of another number differ.

    Returns the codes and their number, which is 1 if the ranks are the same; None if they are not both numbers.
    """
    if kept.cuts is None or dropped.cuts is None:
        return None
    numbers = np.asarray(rows.table.numbers([kept.column, dropped.column]), dtype=np.float64)[there]
    ranks = [np.unique(numbers[:, k], return_inverse=True)[1].astype(np.float64) for k in (0, 1)]
    if float(np.corrcoef(kept.codes[there], dropped.codes[there])[0, 1]) < 0.0:
        ranks[1] = ranks[1].max() - ranks[1]
    difference = ranks[1] / max(ranks[1].max(), 1.0) - ranks[0] / max(ranks[0].max(), 1.0)
    cuts = find_quantile_cuts(difference.round(12), rows.weights[there], LEVELS_COMPARED, LEVELS_COMPARED + 2)
    if not cuts.size:
        return kept.codes, 1
    codes = np.full(rows.labels.size, -1, dtype=np.int32)
    codes[there] = np.searchsorted(cuts, difference, side="right")
    return _combine_codes([kept.codes, codes], [kept.size, cuts.size + 1])


def _make_block(members: Sequence[_Coded], rows: Rows) -> JointTable:
    """Return a joint table of these columns; numbers are cut as here, at points of three digits if possible."""
    cuts: list[tuple[float, ...] | None] = []
    for one in members:
        if one.cuts is None or np.unique(rows.table.numbers([one.column])).size <= len(one.cuts) + 2:
            cuts.append(None)
        else:
            rounded = tuple(float(f"{cut:.3g}") for cut in one.cuts)
            cuts.append(rounded if all(a < b for a, b in pairwise(rounded)) else one.cuts)
    return JointTable() if all(one is None for one in cuts) else JointTable(cuts=tuple(cuts))


def _join_names(names: Iterable[str]) -> str:
    """Join names as in a sentence: a, b and c."""
    *firsts, last = names
    return f"{', '.join(firsts)} and {last}" if firsts else last


def _combine_codes(codes: Sequence[Codes], sizes: Sequence[int]) -> tuple[Codes, int]:
    """Return one code per tuple, -1 if a member is missing, and the number of tuples."""
    found, total = codes[0], sizes[0]
    for more, size in zip(codes[1:], sizes[1:], strict=True):
        found = np.where((found >= 0) & (more >= 0), found * size + more, -1).astype(np.int32)
        total *= size
    return found, total


def _count_pairs(a: Codes, size_a: int, b: Codes, size_b: int, rows: Rows) -> Floats:
    """Return the counts of class by level of a by level of b."""
    there = (a >= 0) & (b >= 0)
    place = (rows.labels[there].astype(np.int64) * size_a + a[there]) * size_b + b[there]
    counts = np.bincount(place, rows.weights[there], rows.classes * size_a * size_b)
    return counts.reshape(rows.classes, size_a, size_b).astype(np.float64)


def _conditional_information(counts: Floats) -> tuple[float, float]:
    """Return the mutual information given the class, in nats, and the smaller conditional entropy."""
    total = counts.sum()
    by_a, by_b, by_class = counts.sum(axis=2), counts.sum(axis=1), counts.sum(axis=(1, 2))

    def entropy(of: Floats) -> float:
        share = of[of > 0.0] / total
        return float(-(share * np.log(share)).sum())

    given_a, given_b = entropy(by_a) - entropy(by_class), entropy(by_b) - entropy(by_class)
    information = given_a + given_b - (entropy(counts) - entropy(by_class))
    return max(information, 0.0), min(given_a, given_b)


def _measure_loss(parts: Sequence[tuple[Codes, int]], rows: Rows, there: Integers) -> float:
    """Return the leave-one-out log-loss of some rows, in nats per row, with independent parts.

    parts: codes and their number. Shares are smoothed by 1/2.
    """
    labels, weight = rows.labels[there], rows.weights[there]
    left = np.minimum(weight, 1.0)[:, None]
    own = np.arange(rows.classes) == labels[:, None]
    total = np.bincount(labels, weight, rows.classes)[None] - own * left
    score = np.tile(rows.log_prior, (there.size, 1))
    for codes, size in parts:
        counts = sum_at(codes[there] * rows.classes + labels, weight, size * rows.classes)
        here = np.maximum(counts.reshape(size, rows.classes)[codes[there]] - own * left, 0.0)
        score += np.log((here + 0.5) / (total + 0.5 * size))
    _, normalizer = log_normalize(score, rows.log_prior)
    return float(np.average(normalizer - score[np.arange(there.size), labels], weights=weight))


def _find_misfits(rows: Rows, model: Model, classes: LabelArray) -> tuple[Misfit, ...]:
    """Return the continuous columns that do not follow their estimated distribution within a class."""
    found = []
    pairs = zip(model.schema.groups, model.likelihoods, strict=True)
    for group, likelihood in track(pairs, "testing", "families", len(model.likelihoods)):
        if likelihood.cdf(np.zeros(0), 0, 0) is None:
            continue
        cells = np.asarray(group.family.read(rows.table, group.columns), dtype=np.float64)
        varies = np.fmax.reduce(cells, initial=-np.inf) > np.fmin.reduce(cells, initial=np.inf)
        for j, column in enumerate(group.columns):
            for c, label in enumerate(classes.tolist() if varies[j] else ()):  # a constant column has no evidence
                here = (rows.labels == c) & ~np.isnan(cells[:, j])
                order = np.argsort(cells[here, j], kind="stable")
                x, weight = cells[here, j][order], rows.weights[here][order]
                total = weight.sum()
                if total < SMALL_CLASS or (cumulative := likelihood.cdf(x, j, c)) is None:
                    continue
                distance = _measure_distance(cumulative, weight)
                expected = 1.035 / np.sqrt(
                    total
                )  # Lilliefors' bound at 1%, for parameters estimated from the same cells
                if distance > expected + 0.5 / total:
                    name = model.schema.column_name(column)
                    found.append(Misfit(name, label, str(group.family), distance, float(expected)))
    return tuple(sorted(found, key=lambda misfit: misfit.expected - misfit.distance))


def _measure_distance(cumulated: Floats, weight: Floats) -> float:
    """Return the largest distance from the empirical distribution function."""
    steps = np.concatenate([[0.0], np.cumsum(weight) / weight.sum()])
    return float(max(np.abs(cumulated - steps[:-1]).max(), np.abs(cumulated - steps[1:]).max()))
