"""The columns with most evidence."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from deciban.evaluation.diagnose import interactions_of
from deciban.families import Family, JointTable
from deciban.fitting.tune.binning import few_levels
from deciban.fitting.tune.rows import Rows, left_out_evidence
from deciban.fitting.tune.weights import centred, learn_weights
from deciban.model.corrections import Corrections
from deciban.model.posterior import log_normalize
from deciban.schema.schema import Schema
from deciban.util.arrays import Floats

# More log-likelihood than this is not chance.
LEAST_COLUMN_GAIN = 2.0

# The pairs, and the sets of three columns, that corrections ask together most are tried: as many of each.
MAX_SETS_TRIED = 12

# Levels that each column of such a set is cut into, by the size of the set, and the smoothing of its table.
LEVELS_BY_SIZE = {2: 8, 3: 4}
SET_ALPHA = 0.5


@dataclass(frozen=True)
class Candidate:
    """A column, or columns modelled together, with the evidence of each row, scored without itself."""

    columns: tuple[int, ...]
    evidence: Floats


def select_columns(rows: Rows, schema: Schema, most: int | None, corrections: Corrections | None = None) -> list[int]:
    """Columns in the order in which each adds most to the evidence of those before it, their weights learned each time.

    Each column is scored alone, by the family the model has for it, and in sets of two and three: the joint blocks of
    the model, the sets that its corrections ask most, or, in a model without corrections, those that interact by the
    test of `diagnose`. Without `most`, as long as a column adds more than chance would.
    """
    candidates = _candidates(rows, schema, corrections)
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
            _gain(candidate.evidence, posterior, rows) / len(set(candidate.columns) - set(chosen)) for candidate in left
        ]
        best = int(np.argmax(gains))
        if most is None and gains[best] < LEAST_COLUMN_GAIN:
            break
        chosen += [column for column in left[best].columns if column not in chosen]
        used = [candidate for candidate in candidates if set(candidate.columns) <= set(chosen)]
        evidence = np.stack([candidate.evidence for candidate in used], axis=1)
        weights, bias = learn_weights(evidence, rows, np.zeros(len(used), dtype=np.int64), polish=False)
        score = np.einsum("nbk,b->nk", evidence, weights) + rows.log_prior + bias
    return chosen


def _corrected_sets(rows: Rows, corrections: Corrections) -> list[tuple[Family, tuple[int, ...]]]:
    """Tables of the pairs, and of the sets of three columns, that corrections ask most."""
    found: list[tuple[Family, tuple[int, ...]]] = []
    for size, levels in LEVELS_BY_SIZE.items():
        for columns in corrections.sets(size, MAX_SETS_TRIED):
            members = [few_levels(rows, column, levels) for column in columns]
            if all(member is not None for member in members):
                cuts = tuple(member[1] for member in members if member is not None)
                found.append((JointTable(SET_ALPHA, cuts=None if not any(cuts) else cuts), columns))
    return found


def _candidates(rows: Rows, schema: Schema, corrections: Corrections | None) -> list[Candidate]:
    """Every column alone, and the sets beside them."""
    alone: dict[int, Family] = {}
    sets: list[tuple[Family, tuple[int, ...]]] = []
    if corrections is not None:
        sets += _corrected_sets(rows, corrections)
    else:
        sets += [(found.block, found.places) for found in interactions_of(rows, schema)]
    for group in schema.groups:
        if group.auxiliary and group.family.interaction:
            sets.append((group.family, group.columns))
        elif not group.auxiliary:
            alone.update(dict.fromkeys(group.columns, group.family.alone()))
    grouped: dict[Family, list[int]] = {}
    for column in sorted(alone):
        grouped.setdefault(alone[column], []).append(column)
    counted: dict[Any, Any] = {}
    found = []
    for family, columns in grouped.items():
        evidence = centred(left_out_evidence(rows, family, columns, counted))
        found += [Candidate((column,), evidence[:, k]) for k, column in enumerate(columns)]
    for family, members in sets:
        found.append(Candidate(members, centred(left_out_evidence(rows, family, members, counted))[:, 0]))
    return sorted(found, key=lambda candidate: candidate.columns)


def _gain(evidence: Floats, posterior: Floats, rows: Rows) -> float:
    """The log-likelihood that this evidence would add with its best weight, to second order."""
    mean = (posterior * evidence).sum(axis=1)
    slope = float(rows.weights @ (evidence[np.arange(len(mean)), rows.labels] - mean))
    curvature = float(rows.weights @ ((posterior * evidence**2).sum(axis=1) - mean**2))
    return slope * slope / (2.0 * curvature + 1e-9) if slope > 0.0 else 0.0
