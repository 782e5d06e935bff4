"""Candidates that compete on left-out rows: families of columns, scores of texts, joint Gaussians of all numbers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deciban.families import Family, JointGaussian, Text, list_families
from deciban.families.base.contract import NumericSummary
from deciban.families.base.spread import Pooled, Shrunk
from deciban.fitting.tune.binning import encode_levels
from deciban.fitting.tune.hyperparameters import CANDIDATES, SAMPLING, WEIGHTS
from deciban.fitting.tune.rows import Rows, find_measure, is_number, score_without_each
from deciban.fitting.tune.weights import center, maximize
from deciban.model.model import log_normalize
from deciban.model.tuning import Choice
from deciban.schema.schema import ChosenBy, ColumnGroup, Reason, Schema
from deciban.statistics import Moments
from deciban.tables.cells import is_moment, is_text, plain_type
from deciban.util.arrays import Flags, Floats, sum_at
from deciban.util.arrow_values import as_values


@dataclass(frozen=True)
class ScoredGroup:
    """A column group with the evidence of its blocks.

    min_share: share of the log-loss that an addition must gain to be kept.
    """

    group: ColumnGroup
    evidence: Floats
    min_share: float = 0.0


def choose_families(rows: Rows, base: Schema) -> tuple[list[ScoredGroup], tuple[Choice, ...]]:
    """Return the groups of the base except texts, each inferred column with its family of lowest log-loss."""
    options: dict[Family, list[int]] = {}
    inferred_as: dict[int, Family] = {}
    kept = []
    summaries = summarize_numbers(rows, _list_numeric_columns(rows, base))
    for group in base.groups:
        if group.family.is_text:
            continue  # choose_texts handles these
        inferred = [] if group.family.joint else group.inferred_columns
        inferred_as.update(dict.fromkeys(inferred, group.family))
        for column in inferred:
            numbers = summaries.get(column)
            distinct = len(encode_levels(rows.table, column)[1]) if numbers is None else numbers.values.size
            for family in list_candidates(group.family, numbers, distinct):
                options.setdefault(family, []).append(column)
        if rest := tuple(k for k, column in enumerate(group.columns) if column not in inferred):
            kept.append(group.subset(rest))
    ledger: dict[int, list[tuple[float, float, Family]]] = {}  # loss with the charge for a change, loss, family
    best: dict[int, Floats] = {}
    counted: dict[Any, Any] = {}
    for family, columns in options.items():
        evidence = score_without_each(rows, family, columns, counted)
        for k, loss in enumerate(rows.losses(evidence)):
            tried = ledger.setdefault(columns[k], [])
            charged = float(loss) + (0.0 if family == inferred_as[columns[k]] else CANDIDATES.min_gain / rows.total)
            if not tried or charged < min(tried, key=lambda entry: entry[0])[0]:
                best[columns[k]] = evidence[:, k].copy()
            tried.append((charged, float(loss), family))
    scored = [ScoredGroup(group, score_without_each(rows, group.family, group.columns, {})) for group in kept]
    chosen: dict[Family, list[int]] = {}
    choices = []
    for column in sorted(ledger):
        (_, loss, family), *others = sorted(ledger[column], key=lambda entry: entry[0])
        chosen.setdefault(family, []).append(column)
        choices.append(Choice(base.column_name(column), family, loss, tuple((f, other) for _, other, f in others)))
    by_column = dict(zip(sorted(ledger), choices, strict=True))
    for family, columns in chosen.items():
        reasons = tuple(_add_note(by_column[column].reason, base, column) for column in columns)
        evidence = np.stack([best[column] for column in columns], axis=1)
        scored.append(ScoredGroup(ColumnGroup(family, tuple(columns), reasons), evidence))
    return scored, tuple(choices)


def _add_note(reason: Reason, base: Schema, column: int) -> Reason:
    """Return the reason with the note of the schema on what the column looks like."""
    meant = None if base.looks_like is None else base.looks_like[column]
    return reason if meant is None else replace(reason, text=f"{reason.text}, {meant}")


def list_candidates(family: Family, numbers: NumericSummary | None, distinct: int) -> list[Family]:
    """Return the families that may suit a column, the inferred one first.

    numbers: the summary of a numeric column. distinct: number of distinct values.
    """
    if numbers is not None and numbers.values.size < 2:
        return [family]
    others = (
        [other for kind in list_families() for other in kind.candidates_for(numbers)] if numbers is not None else []
    )
    return list(dict.fromkeys(family.alternatives(numbers, others, distinct)))


def _list_numeric_columns(rows: Rows, base: Schema) -> list[int]:
    """Return the numeric columns whose family was inferred."""
    groups = (group for group in base.groups if not group.family.joint and not group.family.is_text)
    return [column for group in groups for column in group.inferred_columns if is_number(rows.table, column)]


def summarize_numbers(rows: Rows, columns: Sequence[int]) -> dict[int, NumericSummary]:
    """Return the summaries of numeric columns that families choose candidates by."""
    if not columns:
        return {}
    cells, found = np.asarray(rows.reader.numbers(columns), dtype=np.float64), {}
    for column, own, spread in zip(columns, cells.T, zip(*check_spread(rows, cells), strict=True), strict=True):
        values = np.unique(own)
        values = values[: np.searchsorted(values, np.nan)]  # a missing cell is the last value
        found[column] = NumericSummary(values, rows.total, find_measure(rows.table, column), *map(bool, spread))
    return found


def check_spread(rows: Rows, cells: Floats, few: float = np.inf) -> tuple[Flags, Flags]:
    """Return for each column whether every class (with less than `few` rows) varies, and whether they do pooled."""
    moments = Moments.count(np.ascontiguousarray(cells), rows.labels, rows.weights, rows.classes)
    least = CANDIDATES.min_spread * moments.merge_classes().variance()[0]
    several = (moments.weight > 0.0) & (moments.weight < few)
    pooled = moments.scatter.sum(axis=0) / np.maximum(moments.weight.sum(axis=0), 1e-300)
    return np.asarray(((moments.variance() > least) | ~several).all(axis=0)), np.asarray(pooled > least)


def choose_additions(rows: Rows, scored: Sequence[ScoredGroup]) -> list[ScoredGroup]:
    """Return further blocks of inferred columns of dates and texts, such as their months or their words.

    scored: the columns with their families. Parts come first, because more exports support them; words are added to the
    parts in use. Each must gain clearly on left-out rows.
    """
    found: dict[tuple[Family, float], list[tuple[int, Reason, Floats]]] = {}
    for group in scored:
        for column in group.group.inferred_columns if not group.group.family.joint else ():
            if group.group.family.monotone is not None or (values := _find_values(rows, column)) is None:
                continue
            held = [group.evidence[:, group.group.columns.index(column)]]
            losses = _losses_together(rows, held)
            min_share = CANDIDATES.min_text_share if is_text(values.type) else 0.0
            families = [family for kind in list_families() for family in kind.additions_for(values)]
            parts = [(one, score_without_each(rows, one, [column], {})) for one in families if one.part is not None]
            words = [_choose_lift(rows, cast(Text, one), column) for one in families if one.is_text]
            for tried in (parts, words):
                while tried:
                    together = [_losses_together(rows, [*held, evidence[:, 0]]) for _, evidence in tried]
                    best = int(np.argmin([round(_mean(rows, one), 12) for one in together]))  # equals by order
                    if not _is_clear_gain(rows, losses, together[best], min_share):
                        break
                    losses, (family, evidence) = together[best], tried.pop(best)
                    held.append(evidence[:, 0])
                    text = f"{family.part or 'words'} added: {_mean(rows, losses):.4f}"
                    member = column, Reason(ChosenBy.TUNED, text), evidence[:, 0]
                    found.setdefault((family, min_share), []).append(member)
    groups = []
    for (family, min_share), members in found.items():
        columns, reasons, parts_of_evidence = zip(*members, strict=True)
        added = ColumnGroup(family, columns, reasons, auxiliary=True)
        groups.append(ScoredGroup(added, np.stack(parts_of_evidence, axis=1), min_share))
    return groups


def _find_values(rows: Rows, column: int) -> pa.Array | None:
    """Return the distinct values of a column of dates or texts; None if no further block can help it."""
    cells = rows.table.values([column])
    if not isinstance(cells, list) or not (is_moment(kind := plain_type(cells[0].type)) or is_text(kind)):
        return None
    values = pc.unique(as_values(cells[0])).drop_null()
    enough = max(CANDIDATES.min_values, rows.total / CANDIDATES.max_rows_per_value) if is_text(kind) else 2
    return values if len(values) >= enough else None


def _losses_together(rows: Rows, blocks: Sequence[Floats]) -> Floats:
    """Return the log-loss of each row by some blocks with their best weights and bias."""
    evidence, size = center(np.stack(blocks, axis=1)), len(blocks)
    weights, bias = maximize(evidence, rows, np.full(size, size**-0.5), WEIGHTS.group_rows)
    joint = np.einsum("nkc,k->nc", evidence, weights) + bias + rows.log_prior
    return -log_normalize(joint, rows.log_prior, logarithm=True)[0][np.arange(rows.labels.size), rows.labels]


def _mean(rows: Rows, losses: Floats) -> float:
    return float(np.average(losses, weights=rows.weights))


def _is_clear_gain(rows: Rows, before: Floats, after: Floats, min_share: float) -> bool:
    """Return True if the losses of all rows fall much, compared with their sum and with the error of the fall.

    Copies are one observation: a row of weight 2 and two copies have the same error.
    """
    gain = rows.weights * (before - after)
    total, units = float(gain.sum()), rows.copies.units
    error = float(np.sqrt((sum_at(units, gain - rows.weights * total / rows.total, rows.labels.size) ** 2).sum()))
    least = max(CANDIDATES.min_addition_gain, CANDIDATES.min_addition_errors * error)
    return total > max(least, min_share * float(rows.weights @ before))


def choose_texts(rows: Rows, base: Schema) -> tuple[list[ScoredGroup], tuple[Choice, ...]]:
    """Return each text column with the family of lowest log-loss, each with its best weight."""
    scored, choices = [], []
    for family, column in _find_texts(base):
        options = [(family, score_without_each(rows, family, [column], {}))]
        if family.has_default_evidence:
            options.append(_choose_lift(rows, family, column))
        elif not family.tempering:
            for power in CANDIDATES.tempering:
                other = replace(family, tempering=power)
                options.append((other, score_without_each(rows, other, [column], {})))
        losses = [_loss_with_weight(rows, evidence) for _, evidence in options]
        best = int(np.argmin(losses))
        others = tuple((options[o][0], losses[o]) for o in np.argsort(losses) if o != best)
        choice = Choice(base.column_name(column), options[best][0], losses[best], others)
        scored.append(ScoredGroup(ColumnGroup(options[best][0], (column,), (choice.reason,)), options[best][1]))
        choices.append(choice)
    return scored, tuple(choices)


def _find_texts(base: Schema) -> Iterator[tuple[Text, int]]:
    """Yield the text columns, each with its family."""
    for group in base.groups:
        if group.family.is_text:
            for column in group.columns:
                yield cast(Text, group.family), column


def _choose_lift(rows: Rows, family: Text, column: int) -> tuple[Text, Floats]:
    """Return the lift family with the best share of linear lifts for these rows, and its evidence."""
    counted: dict[object, object] = {}
    log_lift, linear = (replace(family, **CANDIDATES.lift, linear=share) for share in (0.0, 1.0))
    both = np.concatenate([score_without_each(rows, one, [column], counted) for one in (log_lift, linear)], axis=1)
    weights, _ = maximize(center(both), rows, np.array(CANDIDATES.lift_weights), WEIGHTS.group_rows)
    share = round(float(weights[1] / weights.sum()), 2) if weights.sum() > 0.0 else 0.0
    return replace(log_lift, linear=share), (1.0 - share) * both[:, :1] + share * both[:, 1:]


def _loss_with_weight(rows: Rows, evidence: Floats) -> float:
    """Return the log-loss of one block with its best weight and bias."""
    evidence = center(evidence)
    weights, bias = maximize(evidence, rows, np.ones(1), WEIGHTS.group_rows)
    return float(rows.losses(weights[0] * evidence + bias)[0])


# Linear discriminants: one covariance for all classes.
POOLED = tuple(JointGaussian(Pooled(shrinkage=share)) for share in CANDIDATES.pooled_shrinkages)

# Quadratic discriminants: a covariance for each class.
PER_CLASS = tuple(JointGaussian(Shrunk(amount, share)) for amount, share in CANDIDATES.class_shrinkages)


def choose_joint_gaussians(rows: Rows, base: Schema) -> list[ScoredGroup]:
    """Return the linear and quadratic discriminants of all numeric columns, with the best shrinkages."""
    fixed = {column for group in base.groups if group.family.monotone is not None for column in group.columns}
    columns = [column for column in _list_numeric_columns(rows, base) if column not in fixed]
    if len(columns) < 2:
        return []
    cells = np.asarray(rows.reader.numbers(columns), dtype=np.float64)
    missing = rows.weights @ np.isnan(cells) / rows.total
    full = (missing <= CANDIDATES.max_missing) & (np.fmax.reduce(cells) > np.fmin.reduce(cells))
    complete = cells[~np.isnan(cells[:, full]).any(axis=1)]  # a joint Gaussian counts only complete rows
    if len(complete) < 2:
        return []
    full &= np.fmax.reduce(complete) > np.fmin.reduce(complete)
    full &= np.logical_and(*check_spread(rows, cells, few=CANDIDATES.few_rows))
    columns = sorted(column for column, usable in zip(columns, full, strict=True) if usable)
    if not 2 <= len(columns) <= min(CANDIDATES.max_joint_columns, rows.total / 2):
        return []
    affordable = int(CANDIDATES.max_shrinkage_work / (rows.classes * len(columns) ** 3 / 6))
    some = rows.some(min(max(SAMPLING.min_rows, affordable), CANDIDATES.max_shrinkage_rows))
    any_of_them = POOLED[0]  # all count the same statistic
    statistic = any_of_them.count(any_of_them.read(rows.reader, columns), rows.labels, rows.weights, rows.classes)
    counted: dict[Any, Any] = {(any_of_them.statistic_key, tuple(columns)): statistic}
    scored = []
    for families in (POOLED, PER_CLASS):
        losses = [float(some.losses(score_without_each(some, family, columns, counted))[0]) for family in families]
        family = families[int(np.argmin(losses))]
        evidence = score_without_each(rows, family, columns, counted)
        reason = Reason(ChosenBy.TUNED, f"all numeric columns jointly: log-loss {rows.losses(evidence)[0]:.4f}")
        group = ColumnGroup(family, tuple(columns), (reason,) * len(columns), auxiliary=True)
        scored.append(ScoredGroup(group, evidence))
    return scored
