"""Tuning of a model: the family of each column, joint blocks, evidence weights and corrections.

All choices are made by leave-one-out: rows are scored by counts that do not include them. Counts do not depend on the
tuning. It selects among counted statistics and weights them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from deciban.families import Family
from deciban.model.conformity import Conformity
from deciban.model.corrections import Corrections
from deciban.model.counts import Counts, column_places
from deciban.model.model import Model, estimate
from deciban.model.partial_rows import PartialRows
from deciban.schema.schema import ChosenBy, ColumnGroup, Reason, Schema
from deciban.tables.labels import Labels
from deciban.util.arrays import Floats, Integers, scatter_to
from deciban.util.results import Part, Result, TextTable
from deciban.util.text_tables import count_noun, format_class

# Number of columns listed with their share of the corrections.
MAX_CORRECTIONS_SHOWN = 12

# Gain in log-likelihood that one fitted number without information exceeds by chance once in twenty times: half of
# 3.84, the 95% quantile of chi-square with one degree of freedom.
MAX_GAIN_BY_CHANCE = 1.92

# Note on a column whose missing cells were evidence in training.
MISSING_COUNTS = "missing cells are evidence"


@dataclass(frozen=True)
class Choice:
    """The family chosen for a column and its alternatives, with the leave-one-out log-loss of each."""

    column: str
    family: Family
    loss: float
    others: tuple[tuple[Family, float], ...]

    @property
    def reason(self) -> Reason:
        """Reason for the choice."""
        return Reason(ChosenBy.TUNED, self._comparison)

    @property
    def _comparison(self) -> str:
        """Comparison of the family with the alternatives, in words."""
        if not self.others:
            return "the only suitable family"
        family, loss = self.others[0]
        name = str(family).replace(", outside='ignore'", "").replace("outside='ignore'", "").removesuffix("()")
        if loss < self.loss:  # the gain is below the minimum for a change
            return f"kept (log-loss {self.loss:.4f}); {name} is hardly better ({loss:.4f})"
        return f"log-loss {self.loss:.4f}, best of {len(self.others) + 1} (next: {name} {loss:.4f})"

    def __str__(self) -> str:
        others = ", ".join(f"{family} {loss:.4f}" for family, loss in self.others[:3])
        return f"{self.column}: {self.family} {self.loss:.4f}" + (f" (next: {others})" if others else "")

    __repr__ = __str__


@dataclass(frozen=True)
class Unlabeled:
    """Expected counts of rows without a label, and what labeled rows gain by them.

    counts: each row counts in every class with its posterior; None if the rows are ignored. weight: of a row without a
    label, relative to a labeled one. rounds: of expectation and maximization. log_loss, ignored_log_loss: of labeled
    rows, cross-validated, with the best weight and number of rounds, and without the rows.
    """

    counts: Counts | None
    rows: int
    weight: float
    rounds: int
    log_loss: float
    ignored_log_loss: float

    def __str__(self) -> str:
        rows = f"{count_noun(self.rows, 'row')} without a label"
        losses = f"log-loss of labeled rows {self.log_loss:.4f} with them, {self.ignored_log_loss:.4f} without"
        if self.counts is None:
            return f"{rows} ignored: no gain beyond noise ({losses})"
        return f"learned from {rows} with weight {self.weight:g} in {count_noun(self.rounds, 'round')} ({losses})"

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the counts; `used`: whether there are any."""
        values = {name: getattr(self, name) for name in ("rows", "weight", "rounds", "log_loss", "ignored_log_loss")}
        return {"used": self.counts is not None, **values}

    def reindex(self, counts: Counts, positions: Integers, share: float = 1.0) -> Unlabeled:
        """Return this share of the same, for the columns and classes of other counts; see `Counts.extend_schema`."""
        if self.counts is None:
            return self
        size = counts.classes.size
        statistics = tuple(one.reindex_classes(positions, size).scale(share) for one in self.counts.statistics)
        moved = replace(self.counts, classes=counts.classes, class_weight=np.zeros(size), statistics=statistics)
        return replace(self, counts=moved.extend_schema(counts.schema))


@dataclass(frozen=True, repr=False)
class Tuning(Result):
    """Column groups in use, weight of each block, bias of each class, and how they were chosen.

    Attributes
    ----------
    stale : bool
        True if the counts have changed since.
    accuracy, log_loss : float or None
        Metrics of the tuning rows, each scored without itself. The weights were chosen on the same rows, so they are
        slightly optimistic. None if nothing was tuned, or if the counts have changed since. The accuracy is that of the
        most probable class, also of ordered classes.
    copies : int
        Approximate number of rows that are copies of others and were left out together with them.
    corrections : Corrections or None
        Correction tables added to the sum of the evidence.
    cap : float
        Maximum weighted evidence of a block for or against any class, in nats. Texts are not capped.
    limit : float
        Maximum total evidence for any class against another, in nats.
    partial : PartialRows or None
        Parameters for rows with missing cells. None if they were not learned: the bias is then split evenly.
    correction_rows : int
        Number of rows that corrections were learned from.
    fold_gain : float or None
        Log-loss by which the mean of the correction tables of all folds is better than those of one fold.
    conformity : Conformity or None
        Conformity scores of left-out rows, for prediction sets.
    unlabeled : Unlabeled or None
        Expected counts of rows without a label; None unless ``unlabeled="em"``.
    """

    schema: Schema
    weights: Floats
    bias: Floats
    rows: int
    note: str = ""
    choices: tuple[Choice, ...] = ()
    stale: bool = False
    accuracy: float | None = None
    log_loss: float | None = None
    corrections: Corrections | None = None
    cap: float = np.inf
    limit: float = np.inf
    copies: int = 0
    partial: PartialRows | None = None
    correction_rows: int = 0
    # not in files of version 0.1:
    fold_gain: float | None = field(default=None, metadata={"optional": True})
    conformity: Conformity | None = field(default=None, metadata={"optional": True})
    unlabeled: Unlabeled | None = field(default=None, metadata={"optional": True})

    def select(self, counts: Counts) -> Counts:
        """Return the counts that the model is estimated from: those of its blocks, with expected ones."""
        return self.add_unlabeled(counts).select_schema(self.schema)

    def add_unlabeled(self, counts: Counts) -> Counts:
        """Return the counts with the expected counts of rows without a label."""
        expected = None if self.unlabeled is None else self.unlabeled.counts
        return counts if expected is None else replace(counts + expected, declared=counts.declared)

    @property
    def weight_groups(self) -> Integers:
        """Group of each block, for shrinking weights toward their mean.

        One group for all single columns and one for each other set of blocks; -1 for interactions, whose weights shrink
        to 0.
        """
        groups = np.zeros(len(self.schema.block_names), dtype=np.int64)
        auxiliary = 0
        for slot, group in zip(self.schema.block_slots, self.schema.groups, strict=True):
            if group.auxiliary and group.family.interaction:
                groups[slot] = -1
            elif group.auxiliary:
                auxiliary += 1
                groups[slot] = auxiliary
        return groups

    @classmethod
    def plain(cls, counts: Counts) -> Tuning:
        """Return the tuning of plain Bayes: every block has weight 1."""
        schema = counts.schema.plain
        return cls(schema, np.ones(len(schema.block_names)), np.zeros(counts.classes.size), 0)

    def drop_zero_weights(self) -> tuple[Tuning, Integers]:
        """Return the same without auxiliary blocks of weight 0, and the places of the remaining blocks."""
        slots = self.schema.block_slots
        kept = [p for p, group in enumerate(self.schema.groups) if not group.auxiliary or self.weights[slots[p]].any()]
        schema = replace(self.schema, groups=tuple(self.schema.groups[p] for p in kept))
        places = np.empty(len(schema.block_names), dtype=np.int64)
        for place, p in enumerate(kept):
            places[schema.block_slots[place]] = slots[p]
        return replace(self, schema=schema, weights=self.weights[places]), places

    def model(self, counts: Counts, log_prior: Floats) -> Model:
        """Return the model estimated from these counts."""
        model = estimate(self.select(counts), log_prior, weights=self.weights)
        return replace(model, cap=self.cap, limit=self.limit, corrections=self.corrections, partial=self.scored_partial)

    @property
    def described_schema(self) -> Schema:
        """Schema with a note on each column whose missing cells are evidence."""
        informative = set() if self.partial is None else set(self.partial.informative.tolist())
        notes = {
            self.schema.column_name(column): f"{reason.note}, {MISSING_COUNTS}" if reason.note else MISSING_COUNTS
            for group in self.schema.groups
            for column, reason in zip(group.columns, group.reasons, strict=True)
            if column in informative
        }
        return self.schema.with_notes(notes)

    @property
    def scored_partial(self) -> PartialRows | None:
        """Parameters for rows with missing cells; None if these only remove the evidence of their block."""
        if self.partial is not None or (self.corrections is None and not self.bias.any()):
            return self.partial
        columns = sorted({column for group in self.schema.groups for column in group.columns})
        return PartialRows.even(self.bias, columns, self.schema.width)

    def mark_stale(self, counts: Counts, before: Counts) -> Tuning:
        """Return the same tuning for changed counts, marked stale; before: the counts it was learned for.

        Blocks that are no longer counted are dropped: their columns get their plain family with the former weight. New
        columns get the mean weight of the others. Conformity scores lose the share of a class that its counts lost,
        and expected counts the share of all rows.
        """
        classes = before.classes
        place = column_places(self.schema, counts.schema)
        held: list[tuple[ColumnGroup, list[float]]] = []
        alone: dict[int, float] = {}
        for slot, group in zip(self.schema.block_slots, self.schema.groups, strict=True):
            moved = replace(group, columns=tuple(place[column] for column in group.columns))
            own = self.weights[slot].tolist()
            if counts.schema.group_counting(moved) is not None:
                held.append((moved, own))
            elif not group.auxiliary:
                alone.update(zip(moved.columns, own * len(moved.columns) if group.family.joint else own, strict=True))
        scored = {column for group, _ in held if not group.auxiliary for column in group.columns}
        usual = float(np.mean(self.weights)) if self.weights.size else 1.0
        for group in counts.schema.plain.groups:
            missing = [k for k, column in enumerate(group.columns) if column not in scored]
            if group.family.joint and missing:
                held.append((group, [alone.get(group.columns[0], usual)]))
            elif missing:
                some = group.subset(missing)
                held.append((some, [alone.get(column, usual) for column in some.columns]))
        schema = replace(counts.schema, groups=tuple(group for group, _ in held))
        weights = np.empty(len(schema.block_names))
        for p, (_, own) in enumerate(held):
            weights[schema.block_slots[p]] = own
        bias = np.zeros(counts.classes.size)
        known = np.isin(counts.classes, classes)
        bias[known] = self.bias[np.isin(classes, counts.classes)]
        codes = Labels(classes, np.arange(classes.size, dtype=np.int32)).places_among(counts.classes)
        positions, size = codes.astype(np.int64), counts.classes.size
        corrections, partial, conformity = self.corrections, self.partial, self.conformity
        if corrections is not None:
            corrections = corrections.reindex_columns(place).reindex_classes(positions, size)
        if partial is not None:
            partial = partial.reindex_columns(place, schema.width).reindex_classes(positions, size)
        if conformity is not None:
            former = np.maximum(scatter_to(before.class_weight, positions, size), 1e-300)
            conformity = conformity.reindex_classes(positions, size).scale(
                np.minimum(counts.class_weight / former, 1.0)
            )
            conformity = replace(conformity, stale=True)
        unlabeled = self.unlabeled
        if unlabeled is not None:
            share = float(counts.class_weight.sum() / max(before.class_weight.sum(), 1e-300))
            unlabeled = unlabeled.reindex(counts, positions, min(share, 1.0))
        kept = replace(
            self,
            unlabeled=unlabeled,
            schema=schema,
            weights=weights,
            bias=bias,
            corrections=corrections,
            partial=partial,
        )
        return replace(kept, conformity=conformity, stale=True, accuracy=None, log_loss=None)

    def describe(self, counts: Counts | None = None, correction_seconds: float | None = None) -> str:
        """Describe the rows and the left-out metrics in one line.

        counts: those of the model; the accuracy is then shown beside that of the most frequent class.
        correction_seconds: time of learning the corrections, which the model does not contain.
        """
        if not self.rows:
            return "; ".join(filter(None, (self.note or "not tuned", str(self.unlabeled or ""))))
        text = f"tuned on {count_noun(self.rows, 'row')}" + (f", {self.note}" if self.note else "")
        if self.correction_rows:
            text += f", corrections learned from {count_noun(self.correction_rows, 'row')}"
            text += "" if correction_seconds is None else f" in {correction_seconds:.1f} s"
        if self.accuracy is None or self.log_loss is None:
            return text
        baseline = ""
        if counts is not None and counts.class_weight.any():
            shares = counts.class_weight / counts.class_weight.sum()
            share, label = float(shares.max()), counts.classes.tolist()[int(shares.argmax())]
            always = repr(label) if isinstance(label, str) else format_class(label)
            baseline = f" (always {always}: {share:.4f})"
            if self._is_uninformative(shares):
                weak = f"no better than always guessing {always} ({share:.4f})"
                return f"{text}; the columns do not predict the class: {weak}"
        text += "" if self.unlabeled is None else f"; {self.unlabeled}"
        folds = self.corrections is not None or (self.unlabeled is not None and self.unlabeled.counts is not None)
        method = "cross-validated" if folds else "leave-one-out (given the tuning)"
        copies = f"; {copies_in_words(self.copies)}" if self.copies else ""
        return f"{text}; {method} accuracy {self.accuracy:.4f}{baseline}, log-loss {self.log_loss:.4f}{copies}"

    def _is_uninformative(self, shares: Floats) -> bool:
        """Return True if left-out rows gain no more than chance over the class shares.

        The accuracy would mislead then. If the classes are equally frequent, the class of a left-out row is always the
        less frequent one among the others, so that the accuracy is near 0.
        """
        assert self.accuracy is not None
        assert self.log_loss is not None
        share, some = float(shares.max()), shares[shares > 0.0]
        gain = self.rows * (-float(some @ np.log(some)) - self.log_loss)
        by_chance = share + 2.0 * float(np.sqrt(share * (1.0 - share) / self.rows))
        return gain < MAX_GAIN_BY_CHANCE and self.accuracy <= by_chance and share < 1.0

    def _parts(self) -> list[Part]:
        stale = "; the counts have changed since, so retuning is recommended" if self.stale else ""
        weights = replace(self._weights_table, title=f"{self.describe()}{stale}")
        return [weights] if self.corrections is None else [weights, self._corrections_table(self.corrections)]

    def to_dict(self) -> dict[str, Any]:
        """Return the metrics, and the weight of each block, as plain values."""
        return {
            "rows": self.rows,
            "correction_rows": self.correction_rows,
            "stale": self.stale,
            "accuracy": self.accuracy,
            "log_loss": self.log_loss,
            "copies": self.copies,
            "unlabeled": None if self.unlabeled is None else self.unlabeled.to_dict(),
            "weights": dict(zip(self.schema.block_names, self.weights.tolist(), strict=True)),
            "note": self.note,
        }

    def _columns(self) -> dict[str, Any]:
        """Return the weight of each block."""
        return {"block": list(self.schema.block_names), "weight": self.weights}

    @property
    def corrections_table(self) -> str:
        """Readable table of the corrections and the columns they use."""
        return "no corrections" if self.corrections is None else str(self._corrections_table(self.corrections))

    def _corrections_table(self, corrections: Corrections) -> TextTable:
        order = np.argsort(-corrections.importance, kind="stable")
        total = max(float(corrections.importance.sum()), 1e-300)
        lines, shares = [], corrections.importance[order] / total
        for place in order[:MAX_CORRECTIONS_SHOWN].tolist():
            column = corrections.columns[place].column
            informative = self.partial is not None and column in self.partial.informative
            missing = MISSING_COUNTS if informative else ""
            name = self.schema.column_name(column)
            lines.append((name, f"{100.0 * corrections.importance[place] / total:.0f}%", missing))
        bars = [(0.0, float(share)) for share in shares[:MAX_CORRECTIONS_SHOWN]]
        if hidden := max(len(order) - MAX_CORRECTIONS_SHOWN, 0):
            lines.append((count_noun(hidden, "other"), f"{100.0 * shares[MAX_CORRECTIONS_SHOWN:].sum():.0f}%", ""))
            bars.append((0.0, 0.0))
        asked = (corrections.tests[:, :, 0] >= 0).sum(axis=1)
        head = f"{count_noun(len(asked), 'correction table')} with up to {count_noun(asked.max(), 'question')} each"
        return TextTable(lines, ("corrected by", "share", ""), right=[1], title=head, bars=bars)

    def correction_effects(self, classes: Any) -> list[dict[str, Any]]:
        """Return the mean correction by the bin of each column, averaged over the other columns.

        The result has a record per column, bin and class, in nats.
        """
        corrections = self.corrections
        if corrections is None:
            return []
        return [
            {"column": self.schema.column_name(column.column), "cell": cell, "class": label, "nats": nats}
            for place, column in enumerate(corrections.columns)
            for cell, by_class in zip(column.bin_names, corrections.column_effect(place).tolist(), strict=True)
            for label, nats in zip(classes, by_class, strict=True)
        ]

    @property
    def weights_table(self) -> str:
        """Readable table of the weight of each block."""
        return str(self._weights_table)

    @property
    def _weights_table(self) -> TextTable:
        weights = [(name, float(weight)) for name, weight in zip(self.schema.block_names, self.weights, strict=True)]
        lines = [(name, f"{weight:.3f}") for name, weight in weights]
        return TextTable(lines, ("block", "weight"), right=[1], bars=[(0.0, weight) for _, weight in weights])


def copies_in_words(extra: int) -> str:
    """Return a sentence on the number of rows that are copies of others.

    >>> copies_in_words(58)
    '58 rows are copies of others and were left out with them'
    """
    were = "was left out with it" if extra == 1 else "were left out with them"
    return f"{count_noun(extra, 'row')} {'is a copy of another' if extra == 1 else 'are copies of others'} and {were}"
