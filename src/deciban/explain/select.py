"""Which columns say most."""

import numpy as np

from deciban.arrays import Floats
from deciban.data.schema import Schema
from deciban.leave_one_out import LeaveOneOut


def most_telling(left_out: LeaveOneOut, schema: Schema, most: int | None) -> list[int]:
    """Columns in the order in which each lowers the log-loss most; a block speaks once all its columns are there."""
    evidence = left_out.evidence
    terms = evidence.weighted
    members = [set(schema.block_members(block)) for block in range(len(schema.block_names))]
    score = np.asarray(evidence.log_prior + evidence.bias)
    chosen: list[int] = []
    heard: set[int] = set()
    loss = _loss(score, left_out)
    while len(chosen) < (schema.width if most is None else most):
        tried = []
        for column in sorted(set(range(schema.width)) - set(chosen)):
            have = {column, *chosen}
            new = [b for b, columns in enumerate(members) if b not in heard and columns <= have]
            tried.append((_loss(score + terms[:, new].sum(axis=1), left_out), column, new))
        best, column, new = min(tried)
        if most is None and best >= loss - 1e-12:
            break
        loss, score = best, score + terms[:, new].sum(axis=1)
        chosen.append(column)
        heard.update(new)
    return chosen


def _loss(score: Floats, left_out: LeaveOneOut) -> float:
    finite = np.maximum(score, -1e300)
    highest = finite.max(axis=1)
    heap = np.log(np.exp(finite - highest[:, None]).sum(axis=1)) + highest
    return float(np.average(heap - finite[np.arange(len(score)), left_out.labels], weights=left_out.weights))
