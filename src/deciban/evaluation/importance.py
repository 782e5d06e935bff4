"""Importance of each column over many rows, and selection of the most informative columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from deciban.errors import DataError, DecibanError, UsageError
from deciban.evaluation.diagnose import find_interactions
from deciban.evaluation.leave_one_out import LeaveOneOut
from deciban.evaluation.metrics import MIN_PROBABILITY
from deciban.evaluation.validation import read_learned_rows, sample_left_out
from deciban.explain.columns import compute_column_evidence
from deciban.families import Family, JointTable
from deciban.families.base.contract import mask_columns, score_block
from deciban.fitting.tune.binning import reduce_to_levels
from deciban.fitting.tune.propose import limit_tuning_rows
from deciban.fitting.tune.rows import Rows, assign_folds, score_without_each
from deciban.fitting.tune.weights import center, learn_weights
from deciban.model.corrections import Bins, Corrections, bins_of
from deciban.model.fitted import Fitted
from deciban.model.model import Evidence, Model, log_normalize, raise_to_limit
from deciban.schema.schema import Schema
from deciban.scoring.predict import align_rows
from deciban.scoring.simulate import sample_rows
from deciban.sources.streams import Examples
from deciban.tables.row_sampling import sample_places
from deciban.tables.table import Table, missing_cells
from deciban.util.arrays import Codes, Flags, Floats, Integers
from deciban.util.progress import one_call, progress, track
from deciban.util.results import Part, Result, TextTable
from deciban.util.text_tables import DECIBANS, count_noun, note_hidden

# Numbers of evidence (row by column by class): 32 MB. Of more rows, a sample is used.
MAX_NUMBERS_OF_IMPORTANCE = 1 << 22

# Multiplications for sharing large joint blocks among their columns, which bounds the time.
MAX_SHARING_WORK = 10_000_000_000

# Rows that are used however expensive they are: the mean of fewer is too noisy.
MIN_ROWS_OF_IMPORTANCE = 30

# Rows that are used of a large table.
MAX_ROWS_OF_IMPORTANCE = 10_000

# Rows sampled from the model if no rows are given.
SAMPLED_ROWS = 1_000

# Columns that are printed: about a screen.
MAX_COLUMNS_PRINTED = 30


@dataclass(frozen=True, repr=False)
class Importance(Result):
    r"""Importance of each column over many rows; print it.

    `BayesClassifier.importance` returns it. The columns are in the order of the model; `order` sorts them. `to_frame`
    returns ``column``, ``decibans`` and ``bits``, the most important column first.

    Parameters
    ----------
    columns : tuple of str
        The names of the columns.
    decibans : ndarray of shape (n_columns,)
        Mean absolute evidence of each column for the predicted class against the second best.
    bits : ndarray of shape (n_columns,)
        Mean loss of log2 P(true class) if this column alone is missing. Columns that are informative only jointly
        (exclusive or) each lose all of it; two copies each lose little. Below 0 if the model is better without the
        column. If the true classes are unknown, the expected loss by the posteriors.
    rows : int
        Number of rows used.
    source : str
        Kind of rows: left out, new, or sampled from the model.

    See Also
    --------
    deciban.plot.ImportanceDisplay : The same as a picture.
    BayesClassifier.explain : Evidence of each column in single rows.
    BayesClassifier.select_columns : Columns that are most informative together.

    Notes
    -----
    Over n rows, with the evidence :math:`e_{ij}` of column j for the predicted class against the second best, and
    the posterior without the column:

    .. math::

        \mathrm{decibans}_j = \frac{1}{n} \sum_i | e_{ij} |

    .. math::

        \mathrm{bits}_j = \frac{1}{n} \sum_i \log_2 \frac{P(y_i \mid x_i)}{P(y_i \mid x_i \setminus x_{ij})}

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from deciban import BayesClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> print(BayesClassifier(tune=None).fit(X, y).importance())
    importance of each column in 150 rows (left out):
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
        """Positions of the columns, the most important first."""
        return np.argsort(-self.decibans, kind="stable")

    def _columns(self) -> dict[str, Any]:
        order = self.order
        names = [self.columns[k] for k in order]
        return {"column": names, "decibans": self.decibans[order], "bits": self.bits[order]}

    def to_dict(self) -> dict[str, Any]:
        """Return the importance of each column, the most important first, as plain values.

        Returns
        -------
        dict
        """
        columns = [
            {"column": self.columns[k], "decibans": float(self.decibans[k]), "bits": float(self.bits[k])}
            for k in self.order.tolist()
        ]
        return {"rows": self.rows, "source": self.source, "columns": columns}

    def _parts(self) -> list[Part]:
        order = self.order.tolist()
        lines = [
            (self.columns[k], f"{self.decibans[k]:.2f}", f"{round(float(self.bits[k]), 3) + 0.0:.3f}")
            for k in order[:MAX_COLUMNS_PRINTED]
        ]
        rows = f"{count_noun(self.rows, 'row')} ({self.source})"
        return [
            TextTable(
                lines,
                ("column", "decibans", "bits lost"),
                right=[1, 2],
                title=f"importance of each column in {rows}:",
                notes=note_hidden(len(order) - MAX_COLUMNS_PRINTED, "more column"),
                bars=[(0.0, float(self.decibans[k])) for k in order[:MAX_COLUMNS_PRINTED]],
            )
        ]


@one_call()
def compute_training_importance(fitted: Fitted, examples: Examples) -> Importance:
    """Compute importance on training rows, each scored without itself."""
    return compute_left_out_importance(fitted, *sample_left_out(fitted, examples, _limit_rows(fitted)))


def compute_left_out_importance(fitted: Fitted, table: Table, found: LeaveOneOut) -> Importance:
    """Compute importance on rows that were already left out; of many rows, on a sample."""
    model = fitted.model
    kept = sample_places(table.rows, _limit_rows(fitted))
    amounts = None
    if (corrections := model.corrections) is not None:
        hashed = corrections.columns[: corrections.hashed]
        bins, folds = bins_of(hashed, table), corrections.folds
        amounts = assign_folds(hashed, bins, table, found.labels, model.classes, found.weights, folds)[kept]
    some = table.take(kept)
    return _compute_importance(model, some, found.evidence.take(kept), found.labels[kept], found.weights[kept], amounts)


def compute_new_row_importance(fitted: Fitted, X: Any) -> Importance:
    """Compute importance on new rows, whose classes are unknown."""
    return _compute_unlabeled(fitted, align_rows(fitted, X), "new, classes as predicted")


def compute_simulated_importance(fitted: Fitted) -> Importance:
    """Compute importance on rows sampled from the generative model, with the joint blocks of tuning."""
    try:
        rows, _ = sample_rows(fitted, SAMPLED_ROWS, 0, model=fitted.joint_generative)
    except DecibanError as error:
        raise UsageError(
            f"importance needs rows: no training rows are in memory, and none can be sampled ({error})",
            remedy="pass X",
        ) from None
    return _compute_unlabeled(fitted, align_rows(fitted, rows), "sampled from the model")


def _limit_rows(fitted: Fitted) -> int:
    """Return how many rows to use: sharing a row of a large joint block costs the cube of its columns."""
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
        raise DataError("the table has no rows", remedy="pass at least one row, or leave X out")
    some = table.take(sample_places(table.rows, _limit_rows(fitted)))
    found = _compute_importance(fitted.model, some, fitted.model.evidence(some), None, np.ones(some.rows), None)
    return replace(found, source=source)


def _compute_importance(
    model: Model, table: Table, evidence: Evidence, labels: Codes | None, weights: Floats, amounts: Floats | None
) -> Importance:
    """Average over rows.

    labels: the true classes, if known. amounts: how much of each row is in each fold of the corrections, if the rows
    are left out.
    """
    by_column = compute_column_evidence(model, table, evidence)
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
    dropped = _drop_each_column(model, table, evidence, amounts)
    for column, joint in enumerate(track(dropped, "measuring importance", "columns", model.schema.width)):
        without = np.maximum(log_normalize(joint, evidence.log_prior, logarithm=True)[0], least)
        gain = log_posterior - without
        expected = (np.exp(log_posterior) * gain).sum(axis=1) if labels is None else gain[rows, labels]
        bits[column] = share @ expected / np.log(2.0)
    return Importance(by_column.columns, np.asarray(decibans), bits, len(values), "left out")


def _drop_each_column(model: Model, table: Table, evidence: Evidence, amounts: Floats | None) -> Iterator[Floats]:
    """Yield the log joint of each row, row by class, with each column missing in turn.

    A block of this column alone then has no evidence, a joint block that of its other columns, and a correction table
    its mean over the unknown answers. Joint blocks of left-out rows lose as much as those of new rows would.
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
        _read_bins(model.corrections, table, amounts),
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
        yield raise_to_limit(np.where(barred > 0, -np.inf, joint), model.limit) + evidence.log_prior


def _read_bins(corrections: Corrections | None, table: Table, amounts: Floats | None) -> Bins | None:
    """Return the bins of the corrected columns; with amounts of folds, those for left-out rows."""
    if corrections is None:
        return None
    return corrections.read(table) if amounts is None else corrections.read_left_out(table)


def _measure_correction_change(
    corrections: Corrections, place: int, bins: Bins, unknown: Flags | None, amounts: Floats | None
) -> Floats:
    """Return the change in the corrections, row by class, if one more column is unknown."""
    asking = corrections.select_column(place)
    before = np.zeros(bins.shape[-2:], dtype=np.bool_) if unknown is None else unknown
    after = before.copy()
    after[place] = True
    found = []
    for cells in (before, after):
        out = np.zeros((bins.shape[-1], corrections.values.shape[2]))
        if amounts is None:
            asking.add_to(bins, out, cells)
        else:
            asking.add_left_out(bins, amounts, out, cells)
        found.append(out)
    return found[1] - found[0]


def _share_block(model: Model, p: int, cells: Any) -> Floats:
    """Return each column's share of the evidence of a joint block of counts; the shares add up."""
    shares = model.likelihoods[p].shapley_values(cells)
    assert shares is not None, "a joint block is shared out"
    return shares.values


def _score_rest_of_block(model: Model, p: int, cells: Any, place: int, weighted: Floats) -> Floats:
    """Return the weighted evidence of a joint block with one column missing, row by class."""
    likelihood, slot = model.likelihoods[p], int(model.schema.block_slots[p][0])

    def new(cells: Any) -> Floats:
        out = np.zeros((len(weighted), len(model.schema.block_names), model.classes.size))
        out[:, slot] = model.weights[slot] * score_block(likelihood, cells, model.classes.size)
        return model.cap_weighted_evidence(out, model.cap)[:, slot]

    hidden = np.arange(len(model.schema.groups[p].columns)) == place
    whole, rest = new(cells), new(mask_columns(cells, hidden))
    with np.errstate(invalid="ignore"):
        moved = weighted + (rest - whole)
    return np.where(np.isnan(moved), rest, moved)


# Log-likelihood, in nats, that a column must add: less may be chance.
MIN_COLUMN_GAIN = 2.0

# Pairs, and sets of three, of columns that are tried: those that corrections use most.
MAX_SETS_TRIED = 12

# Levels that each column of such a set is cut into, by the size of the set: 64 cells each.
LEVELS_BY_SIZE = {2: 8, 3: 4}

# Smoothing of the table of such a set (Jeffreys' prior).
SET_ALPHA = 0.5


@dataclass(frozen=True)
class Candidate:
    """A column, or columns modeled jointly, with the evidence of each row, scored without itself."""

    columns: tuple[int, ...]
    evidence: Floats


def select_learned_columns(fitted: Fitted, examples: Examples, max_columns: int | None) -> list[int]:
    """Select columns of a fitted model on its training rows; of many rows, on a sample."""
    table, labels, weights = read_learned_rows(fitted, examples, sample=True)
    schema, classes = fitted.model.schema, fitted.classes.size
    rows = Rows.of(table, labels, weights, classes, limit_tuning_rows(schema, classes)).of_classes_present()
    return select_columns(rows, schema, max_columns, None if fitted.tuning is None else fitted.tuning.corrections)


def select_columns(
    rows: Rows, schema: Schema, max_columns: int | None, corrections: Corrections | None = None
) -> list[int]:
    """Return columns in the order in which each adds most to the evidence of those before it.

    The weights are relearned after each column. Columns are scored alone, by each family of the model, and in sets of
    two and three: the joint blocks of the model, and the sets that its corrections use most or, without corrections,
    those that interact by the test of `diagnose`. Without `max_columns`, selection stops when a column adds no more
    than chance would.
    """
    with progress("scoring", "families and sets of columns") as advance:
        candidates = _list_candidates(replace(rows, advance=advance), schema, corrections)
    chosen: list[int] = []
    used: list[Candidate] = []
    score = np.tile(rows.log_prior, (rows.labels.size, 1))
    columns = {column for candidate in candidates for column in candidate.columns}
    limit = len(columns) if max_columns is None else min(max_columns, len(columns))
    with progress("selecting", "columns", limit) as advance:
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
            if max_columns is None and gains[best] < MIN_COLUMN_GAIN:
                break
            added = [column for column in left[best].columns if column not in chosen]
            chosen += added
            used = [candidate for candidate in candidates if set(candidate.columns) <= set(chosen)]
            evidence = np.stack([candidate.evidence for candidate in used], axis=1)
            weights, bias = learn_weights(evidence, rows, np.zeros(len(used), dtype=np.int64))
            score = np.einsum("nbk,b->nk", evidence, weights) + rows.log_prior + bias
            advance(len(added))
    return chosen


def _find_corrected_sets(rows: Rows, corrections: Corrections) -> list[tuple[Family, tuple[int, ...]]]:
    """Return joint tables of the pairs and sets of three columns that corrections use most."""
    found: list[tuple[Family, tuple[int, ...]]] = []
    for size, levels in LEVELS_BY_SIZE.items():
        for columns in corrections.top_column_sets(size, MAX_SETS_TRIED):
            members = [reduce_to_levels(rows, column, levels) for column in columns]
            if all(member is not None for member in members):
                cuts = tuple(member[1] for member in members if member is not None)
                found.append((JointTable(SET_ALPHA, cuts=None if not any(cuts) else cuts), columns))
    return found


def _list_candidates(rows: Rows, schema: Schema, corrections: Corrections | None) -> list[Candidate]:
    """Return every column alone, and the sets."""
    alone: dict[int, Family] = {}
    sets: list[tuple[Family, tuple[int, ...]]] = []
    if corrections is not None:
        sets += _find_corrected_sets(rows, corrections)
    else:
        sets += [(found.block, found.places) for found in find_interactions(rows, schema)]
    for group in schema.groups:
        if group.auxiliary and group.family.interaction:
            sets.append((group.family, group.columns))
        elif group.auxiliary and not group.family.joint:  # parts of dates and texts
            sets += [(group.family, (column,)) for column in group.columns]
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
    """Return the log-likelihood that this evidence would add with its best weight, to second order."""
    mean = (posterior * evidence).sum(axis=1)
    slope = float(rows.weights @ (evidence[np.arange(len(mean)), rows.labels] - mean))
    curvature = float(rows.weights @ ((posterior * evidence**2).sum(axis=1) - mean**2))
    return slope * slope / (2.0 * curvature + 1e-9) if slope > 0.0 else 0.0
