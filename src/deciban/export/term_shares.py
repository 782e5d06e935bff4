"""What each column of a joint block has of its evidence, as tables and polynomials: for targets that explain.

They are found by asking the likelihood itself, so that the rule is written once.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from deciban.errors import UsageError
from deciban.export.ir import Block, ExpandedTerm
from deciban.export.lower import all_codes, capped, tuple_evidence
from deciban.families.base.lowering import SUMMED_OVER, JointNormalTerm, LookupTerm
from deciban.families.base.shapley import settled, shapley
from deciban.families.joint_gaussian import JointNormal
from deciban.model.model import VAST_EVIDENCE, Model
from deciban.util.arrays import Flags, Floats

# Numbers of the polynomials of a block at most.
MOST_FACTORS = 100_000

# Columns of a joint normal block, every set of which has polynomials of its own: rows may miss any of them.
MOST_ENUMERATED_SETS = 6


def table_shares(model: Model, block: Block, term: LookupTerm) -> Floats:
    """What each column has of every row of a joint table, place by column by class, after weight and cap."""
    assert isinstance(term, ExpandedTerm), "tables of several columns are made from tuples"
    tuples, codes = term.tuples, all_codes(term.tuples)

    def evidence_of(known: Flags) -> Floats:
        return tuple_evidence(tuples, np.where(known, codes, SUMMED_OVER))

    evidence = tuple_evidence(tuples, codes)
    weighted = block.weight * evidence
    top = weighted.max(axis=1)
    limited = np.asarray(~(weighted.min(axis=1) >= top - model.cap) | (top < -VAST_EVIDENCE)) & (model.cap < np.inf)
    evidence = np.where(limited[:, None], capped(weighted, model.cap) / block.weight, evidence)
    return block.weight * settled(shapley(evidence_of, len(tuples.members)).values, evidence, limited)


@dataclass(frozen=True)
class Polynomials:
    """What some columns of a joint normal block have of its weighted evidence, relative to the first class.

    It is constant + linear · s + s · quadratic · s of each column and class, in deviations s of the columns from their
    centre. kept: the places of the columns that are there. constant: column by class. linear: by column of s.
    quadratic: the same by two of them, of which only those in order are not 0.
    """

    kept: tuple[int, ...]
    constant: Floats
    linear: Floats
    quadratic: Floats


def normal_shares(model: Model, block: Block, term: JointNormalTerm) -> list[Polynomials]:
    """The polynomials of whole rows and, of few columns, of all their sets, the whole one first; a UsageError where
    they are too long."""
    size, classes = len(term.columns), model.classes.size
    apart = np.unique(term.form.group).size > 1
    if (factors := size * (size**2 // 2 if apart else size) * (classes - 1)) > MOST_FACTORS:
        raise UsageError(
            f"block {block.name!r}: what each of its {size} columns says would be {factors:,} numbers",
            remedy="leave out the explanation, or use deciban itself",
        )
    least = 1 if size <= MOST_ENUMERATED_SETS else size
    sets = (kept for count in range(size, least - 1, -1) for kept in combinations(range(size), count))
    return [_polynomials(term, kept) for kept in sets]


def _polynomials(term: JointNormalTerm, kept: tuple[int, ...]) -> Polynomials:
    """By the shares at the centre, a deviation to each side of it, and a deviation along any two columns."""
    width, size = len(term.columns), len(kept)
    normals = JointNormal.of(np.zeros(width), np.ones(width), term.mean, term.covariance, term.form.group)
    pairs = list(combinations(range(size), 2))
    steps = np.concatenate([np.zeros((1, size)), np.eye(size), -np.eye(size), np.zeros((len(pairs), size))])
    for row, pair in enumerate(pairs, 1 + 2 * size):
        steps[row, list(pair)] = 1.0
    cells = np.full((len(steps), width), np.nan)
    cells[:, kept] = steps
    found = term.weight * normals.shares(cells).values[:, list(kept)]
    found = found - found[:, :, :1]
    middle, up, down = found[0], found[1 : 1 + size], found[1 + size : 1 + 2 * size]
    linear = np.moveaxis((up - down) / 2.0, 0, 1)
    quadratic = np.zeros((size, size, size, found.shape[2]))
    for k in range(size):
        quadratic[:, k, k] = (up[k] + down[k]) / 2.0 - middle
    for row, (a, b) in enumerate(pairs, 1 + 2 * size):
        quadratic[:, a, b] = found[row] - up[a] - up[b] + middle
    same = term.form.group == term.form.group[0]
    quadratic[..., same] = 0.0  # one matrix: what is left is rounding
    return Polynomials(kept, middle, linear, quadratic)
