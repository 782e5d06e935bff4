"""What each column of a joint block has of its evidence: shares that add up to it.

The share of a column is its Shapley value: the mean, over all orders in which the columns may become known, of what
the evidence gains when this one does. The evidence of some columns is that of the block with the others missing.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from math import comb

import numpy as np

from deciban.util.arrays import Flags, Floats

# Columns of a block, all sets of which are looked at: with more there are too many.
MAX_ENUMERATED = 10

# Orders of the columns that stand for all of them where the sets are too many and there is no formula.
ORDERS_TRIED = 64

# From the columns that are known (a flag for each) to the evidence of each row and class, the others missing.
EvidenceOf = Callable[[Flags], Floats]


class Rule(StrEnum):
    """How the evidence of a block is shared out."""

    EXACT = "Shapley values"
    GRADUAL = "Aumann-Shapley values: all columns become known at the same pace"
    SAMPLED = f"Shapley values estimated from {ORDERS_TRIED} orders of the columns"


@dataclass(frozen=True)
class ShapleyValues:
    """What each column of a block has of its evidence, row by column by class in nats, and how that was found."""

    values: Floats
    rule: Rule


def shapley(evidence_of: EvidenceOf, columns: int) -> ShapleyValues:
    """The Shapley value of each column, exactly where there are few of them."""
    if columns > MAX_ENUMERATED:
        return ShapleyValues(_over_orders(evidence_of, columns), Rule.SAMPLED)
    return ShapleyValues(_over_sets(evidence_of, columns), Rule.EXACT)


def _over_sets(evidence_of: EvidenceOf, columns: int) -> Floats:
    """What a column adds to each set of the others, weighted by the orders in which just these come before it."""
    known = (np.arange(1 << columns)[:, None] >> np.arange(columns)) & 1 > 0
    evidence = [evidence_of(each) for each in known]
    shares = np.zeros((len(evidence[0]), columns, evidence[0].shape[1]))
    for before, each in enumerate(known):
        for column in np.flatnonzero(~each):
            gain = _gain(evidence[before], evidence[before | 1 << int(column)])
            shares[:, column] += gain / (columns * comb(columns - 1, int(each.sum())))
    return shares


def _over_orders(evidence_of: EvidenceOf, columns: int) -> Floats:
    """What a column adds to those before it, in some orders and their reverse: always the same ones."""
    shares: Floats | None = None
    for order in sample_orders(columns):
        known = np.zeros(columns, dtype=np.bool_)
        before = evidence_of(known)
        shares = np.zeros((len(before), columns, before.shape[1])) if shares is None else shares
        for column in order:
            known[column] = True
            after = evidence_of(known)
            shares[:, column] += _gain(before, after) / ORDERS_TRIED
            before = after
    assert shares is not None, "there is an order"
    return shares


def sample_orders(columns: int) -> Iterator[list[int]]:
    """The orders of so many columns that stand for all: each with its reverse."""
    rng = np.random.default_rng(0)
    for _ in range(ORDERS_TRIED // 2):
        order = rng.permutation(columns).tolist()
        yield order
        yield order[::-1]


def _gain(before: Floats, after: Floats) -> Floats:
    """after - before; 0 where the evidence was -inf already."""
    return np.subtract(after, before, out=np.zeros_like(after), where=before > -np.inf)


def gradual_normal_shares(z: Floats, covariance: Floats) -> Floats:
    """What each column has of the log density of z, row by column, under a normal distribution of mean 0.

    Noise of the same size is added to every column, and is taken away slowly; a column has what the log density gains
    as its own noise falls. Along the eigenvectors of the covariance that is a formula. (The constant -log(2 pi)/2 of
    each column is left out.) As with Shapley values, columns that play the same part have the same share, and a column
    that is independent of the others has just its own log density.
    """
    variance, axes = np.linalg.eigh(covariance)
    along = z @ axes  # row by axis
    means = _inverse_logarithmic_means(variance)
    quadratic = np.empty_like(z)
    for row, each in enumerate(along):
        turned = axes * each
        quadratic[row] = ((turned @ means) * turned).sum(axis=1)
    return np.asarray(-0.5 * (quadratic + (axes**2) @ np.log(variance)))


def _inverse_logarithmic_means(variance: Floats) -> Floats:
    """(log a - log b) / (a - b) of each two variances, 1/a where they are equal."""
    ratio = variance[:, None] / variance[None, :] - 1.0
    near = np.abs(ratio) < 1e-8
    safe = np.where(near, 1.0, ratio)
    return np.where(near, 1.0 - ratio / 2.0, np.log1p(safe) / safe) / variance[None, :]


def settle(shares: Floats, evidence: Floats, limited: Flags) -> Floats:
    """The shares (row by column by class) as shares of the evidence (row by class) that a block has in the end.

    In `limited` rows a cap made the evidence smaller, and relative to the best class: so are the shares. What is left
    over, by rounding or because a row was left out, goes to the columns by how much their shares differ between
    classes, which does not depend on units of measurement.
    """
    result = shares.copy()
    if limited.any():
        result[limited] = _relative(shares[limited], evidence[limited])
    result = _even_where_unknown(result, shares, evidence)
    finite = np.where(np.isfinite(evidence)[:, None], result, 0.0)
    size = np.abs(finite - finite.mean(axis=2, keepdims=True)).sum(axis=2)
    size = np.where(size.any(axis=1, keepdims=True), size, _present(shares))
    part = size / np.maximum(size.sum(axis=1, keepdims=True), 1e-300)
    with np.errstate(invalid="ignore"):
        rest = np.where(np.isfinite(evidence), evidence - result.sum(axis=1), 0.0)
    return np.asarray(result + part[:, :, None] * rest[:, None])


def _present(shares: Floats) -> Flags:
    """Which columns have a share, row by column; all of them where none has."""
    present = np.asarray((shares != 0.0).any(axis=2))
    return present | ~present.any(axis=1, keepdims=True)


def _relative(shares: Floats, evidence: Floats) -> Floats:
    """The shares relative to those of the best class, scaled to the evidence; NaN where they cannot be scaled."""
    rows, best = np.arange(len(evidence)), evidence.argmax(axis=1)
    with np.errstate(invalid="ignore"):
        relative = shares - shares[rows, :, best][:, :, None]
        whole = relative.sum(axis=1)
        scale = np.divide(evidence, whole, out=np.full_like(whole, np.nan), where=whole < 0.0)
        return np.asarray(relative * np.where(evidence == 0.0, 0.0, scale)[:, None])


def _even_where_unknown(result: Floats, shares: Floats, evidence: Floats) -> Floats:
    """The result; where it cannot be made the evidence, because one of them is beyond all numbers or all shares are 0,
    the columns that are present share evenly."""
    finite, whole = np.isfinite(evidence), np.isfinite(result).all(axis=1)
    lost = (result == 0.0).all(axis=1) & (evidence != 0.0)
    unknown = np.isnan(result).any(axis=1) | (finite != whole) | lost
    if not unknown.any():
        return result
    present = _present(shares)
    even = 1.0 / np.maximum(present.sum(axis=1), 1)
    spread = np.where(present[:, :, None], (even[:, None] * evidence)[:, None], 0.0)
    return np.where(unknown[:, None], spread, result)
