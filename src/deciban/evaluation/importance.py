"""The importance of each column over many rows, and the selection of the columns with most evidence."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from deciban.errors import DataError, DecibanError, UsageError
from deciban.evaluation.diagnose import find_interactions
from deciban.evaluation.leave_one_out import LeaveOneOut
from deciban.evaluation.metrics import MIN_PROBABILITY
from deciban.evaluation.validation import sample_left_out
from deciban.explain.columns import column_evidence
from deciban.families import Family, JointTable
from deciban.families.base.contract import mask_column, score_block
from deciban.fitting.tune.boosting import reduce_to_levels
from deciban.fitting.tune.rows import Rows, assign_folds, score_without_each
from deciban.fitting.tune.weights import center, learn_weights
from deciban.model.corrections import Bins, Corrections
from deciban.model.fitted import Fitted
from deciban.model.model import Evidence, Model, log_normalize
from deciban.schema.schema import Schema
from deciban.scoring.predict import aligned_table
from deciban.scoring.simulate import sample_rows
from deciban.sources.streams import Examples
from deciban.tables.row_sampling import sample_places
from deciban.tables.table import Table, missing_cells
from deciban.util.arrays import Codes, Flags, Floats, Integers
from deciban.util.frames import data_frame
from deciban.util.text_tables import DECIBANS, align_table, count_noun

# Numbers of evidence (row by column by class) that are looked at; of more rows a sample is taken.
MAX_NUMBERS_OF_IMPORTANCE = 1 << 22

# Multiplications by which large joint blocks may be shared out.
MAX_SHARING_WORK = 10_000_000_000

# Rows at least and at most, and rows that are drawn from the model where none are given.
MIN_ROWS_OF_IMPORTANCE = 30
MAX_ROWS_OF_IMPORTANCE = 10_000
ROWS_DRAWN = 1_000

# Columns that are printed.
MAX_COLUMNS_PRINTED = 30


@dataclass(frozen=True, repr=False)
class Importance:
    """What each column says over many rows; print it.

    `BayesClassifier.importance` makes it. The columns are in the order of the model; `order` sorts them.

    Parameters
    ----------
    columns : tuple of str
        The names of the columns.
    decibans : ndarray of shape (n_columns,)
        The mean size of what each column says for the predicted class against the next best.
    bits : ndarray of shape (n_columns,)
        What the model loses on average of log2 P(true class) where this column alone is missing. Columns that say
        something only together (exclusive or) each lose all of it; of two copies each loses little. Below 0 where the
        model does better without the column. Where the true classes are not known, as the posteriors expect it.
    rows : int
        How many rows were looked at.
    source : str
        Which rows these are: left out, new, or drawn from the model.

    See Also
    --------
    BayesClassifier.explain : The same of single rows.
    BayesClassifier.select_columns : Columns that together tell most.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from deciban import BayesClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> print(BayesClassifier(tune=None).fit(X, y).importance())
    what each column says in 150 rows left out:
    column             decibans  bits lost
    petal width (cm)      37.26      0.133
    petal length (cm)     36.81      0.056
    sepal length (cm)      6.11     -0.041
    sepal width (cm)       5.27     -0.042
    """

    columns: tuple[str, ...]
    decibans: Floats
    bits: Floats
    rows: int
    source: str

    @property
    def order(self) -> Integers:
        """The places of the columns, the most telling first."""
        return np.argsort(-self.decibans, kind="stable")

    def to_frame(self) -> Any:
        """A line for each column, the most telling first.

        Returns
        -------
        pandas.DataFrame
            With the columns ``column``, ``decibans`` and ``bits``.
        """
        order = self.order
        names = [self.columns[k] for k in order]
        return data_frame({"column": names, "decibans": self.decibans[order], "bits": self.bits[order]})

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        order = self.order.tolist()
        lines = [("column", "decibans", "bits lost")]
        lines += [
            (self.columns[k], f"{self.decibans[k]:.2f}", f"{round(float(self.bits[k]), 3) + 0.0:.3f}")
            for k in order[:MAX_COLUMNS_PRINTED]
        ]
        rows = f"{count_noun(self.rows, 'row')} {self.source}"
        text = f"what each column says in {rows}:\n{align_table(lines, right=[1, 2])}"
        more = len(order) - MAX_COLUMNS_PRINTED
        return text + (f"\n… ({more:,} more columns)" if more > 0 else "")


def compute_training_importance(fitted: Fitted, examples: Examples) -> Importance:
    """Of rows that were learned, each scored without itself."""
    return compute_left_out_importance(fitted, *sample_left_out(fitted, examples, _limit_rows(fitted)))


def compute_left_out_importance(fitted: Fitted, table: Table, found: LeaveOneOut) -> Importance:
    """The same, of rows that were left out already; of many, some of them."""
    model = fitted.model
    kept = sample_places(table.rows, _limit_rows(fitted))
    amounts = None
    if (corrections := model.corrections) is not None:
        hashed = corrections.columns[: corrections.hashed]
        amounts = assign_folds(hashed, table, found.labels, model.classes, found.weights, corrections.folds)[kept]
    some = table.take(kept)
    return _compute_importance(model, some, found.evidence.take(kept), found.labels[kept], found.weights[kept], amounts)


def compute_new_row_importance(fitted: Fitted, X: Any) -> Importance:
    """Of rows that were not learned, whose classes are not known."""
    return _compute_unlabeled(fitted, aligned_table(fitted, X), "as they are predicted")


def compute_simulated_importance(fitted: Fitted) -> Importance:
    """Of rows that are drawn from the generative model."""
    try:
        rows, _ = sample_rows(fitted, ROWS_DRAWN, 0)
    except DecibanError as error:
        raise UsageError(f"importance: no rows are known, and none can be drawn ({error})", remedy="give X") from None
    return _compute_unlabeled(fitted, aligned_table(fitted, rows), "drawn from the model")


def _limit_rows(fitted: Fitted) -> int:
    """How many rows are looked at: to share out a row of a large joint block takes the cube of its columns."""
    schema, classes = fitted.model.schema, max(fitted.classes.size, 1)
    numbers = MAX_NUMBERS_OF_IMPORTANCE // max(schema.width * classes, 1)
    cubes = sum(
        len(group.columns) ** 3
        for group in schema.groups
        if group.family.joint and not group.family.accepts_new_columns
    )
    return max(
        MIN_ROWS_OF_IMPORTANCE, min(MAX_ROWS_OF_IMPORTANCE, numbers, MAX_SHARING_WORK // max(cubes * classes, 1))
    )


def _compute_unlabeled(fitted: Fitted, table: Table, source: str) -> Importance:
    if not table.rows:
        raise DataError("there are no rows", remedy="give at least one, or none at all")
    some = table.take(sample_places(table.rows, _limit_rows(fitted)))
    found = _compute_importance(fitted.model, some, fitted.model.evidence(some), None, np.ones(some.rows), None)
    return replace(found, source=source)


def _compute_importance(
    model: Model, table: Table, evidence: Evidence, labels: Codes | None, weights: Floats, amounts: Floats | None
) -> Importance:
    """The mean over rows; `labels` are the true classes, if they are known, and `amounts` how much of each row is in
    each fold of the corrections, if the rows are left out."""
    by_column = column_evidence(model, table, evidence)
    values, log_posterior = by_column.values, by_column.log_posterior
    rows, share = np.arange(len(values)), weights / weights.sum()
    order = np.argsort(-log_posterior, axis=1, kind="stable")
    best, other = order[:, 0], order[:, min(1, order.shape[1] - 1)]
    with np.errstate(invalid="ignore"):
        size = np.abs(values[rows, :, best] - values[rows, :, other])
    decibans = DECIBANS * (share @ np.where(np.isnan(size), 0.0, size))
    least = np.log(MIN_PROBABILITY)
    log_posterior = np.maximum(log_posterior, least)
    bits = np.zeros(model.schema.width)
    for column, joint in enumerate(_drop_each_column(model, table, evidence, amounts)):
        without = np.maximum(log_normalize(joint, evidence.log_prior, logarithm=True)[0], least)
        gain = log_posterior - without
        told = (np.exp(log_posterior) * gain).sum(axis=1) if labels is None else gain[rows, labels]
        bits[column] = share @ told / np.log(2.0)
    return Importance(by_column.columns, np.asarray(decibans), bits, len(values), "left out")


def _drop_each_column(model: Model, table: Table, evidence: Evidence, amounts: Floats | None) -> Iterator[Floats]:
    """The log joint of each row, row by class, where one column is missing; for each column.

    A block of this column alone says nothing then, a joint block what its other columns say, and a table of corrections
    its mean over the answers that are not known. The joint blocks of rows that are left out lose what they would lose
    if the rows were new.
    """
    schema, known, missing = model.schema, model.adjust_for_missing(table), missing_cells(table)
    scale = np.ones(table.rows) if known is None else known.scale
    weighted = evidence.weighted / np.maximum(scale, 1e-300)[:, None, None]
    impossible = weighted == -np.inf
    finite = np.where(impossible, 0.0, weighted)
    sums, endless = finite.sum(axis=1), impossible.sum(axis=1)
    cells = {p: group.family.read(table, group.columns) for p, group in enumerate(schema.groups) if group.family.joint}
    shared = {p: _share_block(model, p, cells[p]) for p in cells if schema.groups[p].family.accepts_new_columns}
    corrected = {} if model.corrections is None else {one.column: k for k, one in enumerate(model.corrections.columns)}
    bins, unknown = (
        None if model.corrections is None else model.corrections.read(table),
        model.unknown_corrected_cells(known),
    )
    for column in range(schema.width):
        joint, barred = sums.copy(), endless.copy()
        for p, (group, slots) in enumerate(zip(schema.groups, schema.block_slots, strict=True)):
            if column not in group.columns:
                continue
            place = group.columns.index(column)
            block = int(slots[0 if group.family.joint else place])
            joint -= finite[:, block]
            barred -= impossible[:, block]
            if group.family.joint and len(group.columns) > 1 and evidence.weights[block] != 0.0:
                if p in shared:
                    rest = weighted[:, block] - evidence.weights[block] * shared[p][:, place]
                else:
                    rest = _score_rest_of_block(model, p, cells[p], place, weighted[:, block])
                joint += np.where(rest == -np.inf, 0.0, rest)
                barred += rest == -np.inf
        if bins is not None and model.corrections is not None and column in corrected:
            joint += _measure_correction_change(model.corrections, corrected[column], bins, unknown, amounts)
        if model.partial is not None:
            holes = np.zeros((table.rows, schema.width), dtype=np.bool_) if missing is None else missing.copy()
            holes[:, column] = True
            rest_known = model.partial.adjust_for_missing(holes)
            counted_still = ~rest_known.unknown[:, [column]]  # a missing cell that was evidence in training
            joint += rest_known.bias - np.where(counted_still, model.partial.offsets[column], 0.0)
            joint *= rest_known.scale[:, None]
        yield np.where(barred > 0, -np.inf, joint + evidence.log_prior)


def _measure_correction_change(
    corrections: Corrections, place: int, bins: Bins, unknown: Flags | None, amounts: Floats | None
) -> Floats:
    """What the corrections of each row change, row by class, where one column more is unknown."""
    asking = corrections.select_column(place)
    before = np.zeros(bins.shape, dtype=np.bool_) if unknown is None else unknown
    after = before.copy()
    after[place] = True
    found = []
    for cells in (before, after):
        out = np.zeros((bins.shape[1], corrections.values.shape[2]))
        if amounts is None:
            asking.add_to(bins, out, cells)
        else:
            asking.add_left_out(bins, amounts, out, cells)
        found.append(out)
    return found[1] - found[0]


def _share_block(model: Model, p: int, cells: Any) -> Floats:
    """What each column has of the evidence of a joint block of many counts: these add up."""
    shares = model.likelihoods[p].shapley_values(cells)
    assert shares is not None, "a joint block is shared out"
    return shares.values


def _score_rest_of_block(model: Model, p: int, cells: Any, place: int, weighted: Floats) -> Floats:
    """The weighted evidence of a joint block where one of its columns is missing, row by class."""
    likelihood, slot = model.likelihoods[p], int(model.schema.block_slots[p][0])

    def new(cells: Any) -> Floats:
        out = np.zeros((len(weighted), len(model.schema.block_names), model.classes.size))
        out[:, slot] = model.weights[slot] * score_block(likelihood, cells, model.classes.size)
        return model.cap_weighted_evidence(out, model.cap)[:, slot]

    whole, rest = new(cells), new(mask_column(cells, place))
    with np.errstate(invalid="ignore"):
        moved = weighted + (rest - whole)
    return np.where(np.isnan(moved), rest, moved)


# More log-likelihood than this is not chance.
MIN_COLUMN_GAIN = 2.0

# The pairs, and the sets of three columns, that corrections ask together most are tried: as many of each.
MAX_SETS_TRIED = 12

# Levels that each column of such a set is cut into, by the size of the set, and the smoothing of its table.
LEVELS_BY_SIZE = {2: 8, 3: 4}
SET_ALPHA = 0.5


@dataclass(frozen=True)
class Candidate:
    """A column, or columns modeled together, with the evidence of each row, scored without itself."""

    columns: tuple[int, ...]
    evidence: Floats


def select_columns(rows: Rows, schema: Schema, most: int | None, corrections: Corrections | None = None) -> list[int]:
    """Columns in the order in which each adds most to the evidence of those before it, their weights learned each time.

    Each column is scored alone, by the family the model has for it, and in sets of two and three: the joint blocks of
    the model, the sets that its corrections ask most, or, in a model without corrections, those that interact by the
    test of `diagnose`. Without `most`, as long as a column adds more than chance would.
    """
    candidates = _list_candidates(rows, schema, corrections)
    chosen: list[int] = []
    used: list[Candidate] = []
    score = np.tile(rows.log_prior, (rows.labels.size, 1))
    columns = {column for candidate in candidates for column in candidate.columns}
    limit = len(columns) if most is None else min(most, len(columns))
    while len(chosen) < limit:
        posterior, _ = log_normalize(score, rows.log_prior)
        left = [
            candidate
            for candidate in candidates
            if 0 < len(set(candidate.columns) - set(chosen)) <= limit - len(chosen)
        ]
        gains = [
            _estimate_gain(candidate.evidence, posterior, rows) / len(set(candidate.columns) - set(chosen))
            for candidate in left
        ]
        best = int(np.argmax(gains))
        if most is None and gains[best] < MIN_COLUMN_GAIN:
            break
        chosen += [column for column in left[best].columns if column not in chosen]
        used = [candidate for candidate in candidates if set(candidate.columns) <= set(chosen)]
        evidence = np.stack([candidate.evidence for candidate in used], axis=1)
        weights, bias = learn_weights(evidence, rows, np.zeros(len(used), dtype=np.int64), polish=False)
        score = np.einsum("nbk,b->nk", evidence, weights) + rows.log_prior + bias
    return chosen


def _find_corrected_sets(rows: Rows, corrections: Corrections) -> list[tuple[Family, tuple[int, ...]]]:
    """Tables of the pairs, and of the sets of three columns, that corrections ask most."""
    found: list[tuple[Family, tuple[int, ...]]] = []
    for size, levels in LEVELS_BY_SIZE.items():
        for columns in corrections.top_column_sets(size, MAX_SETS_TRIED):
            members = [reduce_to_levels(rows, column, levels) for column in columns]
            if all(member is not None for member in members):
                cuts = tuple(member[1] for member in members if member is not None)
                found.append((JointTable(SET_ALPHA, cuts=None if not any(cuts) else cuts), columns))
    return found


def _list_candidates(rows: Rows, schema: Schema, corrections: Corrections | None) -> list[Candidate]:
    """Every column alone, and the sets beside them."""
    alone: dict[int, Family] = {}
    sets: list[tuple[Family, tuple[int, ...]]] = []
    if corrections is not None:
        sets += _find_corrected_sets(rows, corrections)
    else:
        sets += [(found.block, found.places) for found in find_interactions(rows, schema)]
    for group in schema.groups:
        if group.auxiliary and group.family.interaction:
            sets.append((group.family, group.columns))
        elif not group.auxiliary:
            alone.update(dict.fromkeys(group.columns, group.family.marginal_family()))
    grouped: dict[Family, list[int]] = {}
    for column in sorted(alone):
        grouped.setdefault(alone[column], []).append(column)
    counted: dict[Any, Any] = {}
    found = []
    for family, columns in grouped.items():
        evidence = center(score_without_each(rows, family, columns, counted))
        found += [Candidate((column,), evidence[:, k]) for k, column in enumerate(columns)]
    for family, members in sets:
        found.append(Candidate(members, center(score_without_each(rows, family, members, counted))[:, 0]))
    return sorted(found, key=lambda candidate: candidate.columns)


def _estimate_gain(evidence: Floats, posterior: Floats, rows: Rows) -> float:
    """The log-likelihood that this evidence would add with its best weight, to second order."""
    mean = (posterior * evidence).sum(axis=1)
    slope = float(rows.weights @ (evidence[np.arange(len(mean)), rows.labels] - mean))
    curvature = float(rows.weights @ ((posterior * evidence**2).sum(axis=1) - mean**2))
    return slope * slope / (2.0 * curvature + 1e-9) if slope > 0.0 else 0.0
