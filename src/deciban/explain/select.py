"""Which columns say most."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from deciban.arrays import Floats
from deciban.families import Categorical, Family, Gaussian, JointGaussian, JointTable, Poisson
from deciban.posterior import log_normalize
from deciban.schema.schema import Schema
from deciban.tune.rows import Rows, left_out_evidence
from deciban.tune.weights import centred, learn_weights

# More log-likelihood than this is not chance.
LEAST_GAIN = 2.0


@dataclass(frozen=True)
class Candidate:
    """Columns that speak together, with what they say of each row without it."""

    columns: tuple[int, ...]
    evidence: Floats


def select_columns(rows: Rows, schema: Schema, most: int | None) -> list[int]:
    """Columns in the order in which each adds most to what those before it say, their weights learned anew each time.

    Columns speak alone, by the family the model hears them by, and in the pairs it hears. Without `most`, as long as a
    column adds more than chance would.
    """
    voices = _voices(rows, schema)
    chosen: list[int] = []
    used: list[Candidate] = []
    score = np.tile(rows.log_prior, (rows.labels.size, 1))
    columns = {column for voice in voices for column in voice.columns}
    limit = len(columns) if most is None else min(most, len(columns))
    while len(chosen) < limit:
        posterior, _ = log_normalize(score, rows.log_prior)
        left = [voice for voice in voices if 0 < len(set(voice.columns) - set(chosen)) <= limit - len(chosen)]
        gains = [_gain(voice.evidence, posterior, rows) / len(set(voice.columns) - set(chosen)) for voice in left]
        best = int(np.argmax(gains))
        if most is None and gains[best] < LEAST_GAIN:
            break
        chosen += [column for column in left[best].columns if column not in chosen]
        used = [voice for voice in voices if set(voice.columns) <= set(chosen)]
        evidence = np.stack([voice.evidence for voice in used], axis=1)
        weights, bias = learn_weights(evidence, rows, np.zeros(len(used), dtype=np.int64), polish=False)
        score = np.einsum("nbk,b->nk", evidence, weights) + rows.log_prior + bias
    return chosen


def _voices(rows: Rows, schema: Schema) -> list[Candidate]:
    """Every column alone, and the pairs that the model hears beside them."""
    alone: dict[int, Family] = {}
    pairs: list[tuple[Family, tuple[int, ...]]] = []
    for group in schema.groups:
        if group.auxiliary and isinstance(group.family, JointTable):
            pairs.append((group.family, group.columns))
        elif not group.auxiliary:
            alone.update(dict.fromkeys(group.columns, _by_itself(group.family)))
    grouped: dict[Family, list[int]] = {}
    for column in sorted(alone):
        grouped.setdefault(alone[column], []).append(column)
    counted: dict[Any, Any] = {}
    found = []
    for family, columns in grouped.items():
        evidence = centred(left_out_evidence(rows, family, columns, counted))
        found += [Candidate((column,), evidence[:, k]) for k, column in enumerate(columns)]
    for family, members in pairs:
        found.append(Candidate(members, centred(left_out_evidence(rows, family, members, counted))[:, 0]))
    return sorted(found, key=lambda voice: voice.columns)


def _by_itself(family: Family) -> Family:
    """The family of one column of a block."""
    if not family.joint:
        return family
    if isinstance(family, JointGaussian):
        return Gaussian()
    return Categorical() if isinstance(family, JointTable) else Poisson(alpha=1.0, outside="ignore")


def _gain(evidence: Floats, posterior: Floats, rows: Rows) -> float:
    """The log-likelihood that this evidence would add with its best weight, to second order."""
    mean = (posterior * evidence).sum(axis=1)
    slope = float(rows.weights @ (evidence[np.arange(len(mean)), rows.labels] - mean))
    curvature = float(rows.weights @ ((posterior * evidence**2).sum(axis=1) - mean**2))
    return slope * slope / (2.0 * curvature + 1e-9) if slope > 0.0 else 0.0
