"""Which columns say most."""

import numpy as np

from deciban.arrays import Floats
from deciban.data.schema import Schema
from deciban.leave_one_out import LeaveOneOut
from deciban.model import normalized
from deciban.tune import Rows, centred, learn_weights


def most_telling(left_out: LeaveOneOut, schema: Schema, rows: Rows, most: int | None) -> list[int]:
    """Columns in the order in which each adds most to what those before it say, their weights learned anew each time.

    Without `most`, as long as a column promises more log-likelihood than one parameter gains by chance.
    """
    evidence = centred(left_out.evidence.values)
    block_of = {
        column: int(schema.slots[p][0 if part.family.joint else k])
        for p, part in enumerate(schema.parts)
        if not part.beside
        for k, column in enumerate(part.columns)
    }
    chosen: list[int] = []
    score = np.tile(rows.log_prior, (rows.labels.size, 1))
    while len(chosen) < (len(block_of) if most is None else min(most, len(block_of))):
        posterior, _ = normalized(score, rows.log_prior)
        heard = {block_of[column] for column in chosen}
        gains = {
            column: -1.0 if block in heard else _gain(evidence[:, block], posterior, rows)
            for column, block in block_of.items()
            if column not in chosen
        }
        best = max(gains, key=lambda column: (gains[column], -column))
        if most is None and gains[best] < 2.0:
            break
        chosen.append(best)
        blocks = sorted({block_of[column] for column in chosen})
        weights, bias = learn_weights(evidence[:, blocks], rows, np.zeros(len(blocks), dtype=np.int64), polish=False)
        score = np.einsum("nbk,b->nk", evidence[:, blocks], weights) + rows.log_prior + bias
    return chosen


def _gain(evidence: Floats, posterior: Floats, rows: Rows) -> float:
    """The log-likelihood that this evidence would add with its best weight, to second order."""
    mean = (posterior * evidence).sum(axis=1)
    slope = float(rows.weights @ (evidence[np.arange(len(mean)), rows.labels] - mean))
    curvature = float(rows.weights @ ((posterior * evidence**2).sum(axis=1) - mean**2))
    return slope * slope / (2.0 * curvature + 1e-9) if slope > 0.0 else 0.0
