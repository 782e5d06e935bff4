"""Shapley values: the share of each column in the evidence of a joint block.

The Shapley value of a column is the mean gain in evidence when the column becomes known, over all orders of the
columns. The evidence of a subset of columns is that of the block with the others missing. Shapley values add up to the
evidence of the block.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from math import comb

import numpy as np

from deciban.util.arrays import Flags, Floats

# Up to this number of columns, all subsets are enumerated.
MAX_ENUMERATED = 10

# Number of orders of the columns that are sampled if there are too many subsets and no formula.
ORDERS_TRIED = 64

# Function from flags of the known columns to the evidence, row by class, with the other columns missing.
EvidenceOf = Callable[[Flags], Floats]


class Rule(StrEnum):
    """Method by which Shapley values were computed."""

    EXACT = "Shapley values"
    GRADUAL = "Aumann-Shapley values"  # all columns become known at the same pace
    SAMPLED = f"Shapley values estimated from {ORDERS_TRIED} orders of the columns"


@dataclass(frozen=True)
class ShapleyValues:
    """Shapley values, row by column by class in nats, and the method by which they were computed."""

    values: Floats
    rule: Rule


def shapley(evidence_of: EvidenceOf, columns: int) -> ShapleyValues:
    """Return the Shapley value of each column: exact up to MAX_ENUMERATED columns, else from sampled orders."""
    if columns > MAX_ENUMERATED:
        return ShapleyValues(_over_orders(evidence_of, columns), Rule.SAMPLED)
    return ShapleyValues(_over_sets(evidence_of, columns), Rule.EXACT)


def _over_sets(evidence_of: EvidenceOf, columns: int) -> Floats:
    """Return Shapley values from all subsets of the columns, each weighted by the number of orders it stands for."""
    known = (np.arange(1 << columns)[:, None] >> np.arange(columns)) & 1 > 0
    evidence = [evidence_of(each) for each in known]
    shares = np.zeros((len(evidence[0]), columns, evidence[0].shape[1]))
    for before, each in enumerate(known):
        for column in np.flatnonzero(~each):
            gain = _gain(evidence[before], evidence[before | 1 << int(column)])
            shares[:, column] += gain / (columns * comb(columns - 1, int(each.sum())))
    return shares


def _over_orders(evidence_of: EvidenceOf, columns: int) -> Floats:
    """Return Shapley values from sampled orders and their reverses; the sample is fixed."""
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
    """Yield ORDERS_TRIED random orders of the columns, each followed by its reverse."""
    rng = np.random.default_rng(0)
    for _ in range(ORDERS_TRIED // 2):
        order = rng.permutation(columns).tolist()
        yield order
        yield order[::-1]


def _gain(before: Floats, after: Floats) -> Floats:
    """Return after - before; 0 if the evidence was -inf already."""
    return np.subtract(after, before, out=np.zeros_like(after), where=before > -np.inf)


def gradual_normal_shares(z: Floats, covariance: Floats) -> Floats:
    """Return the Aumann-Shapley values of the columns of z, row by column, for a normal distribution of mean 0.

    Noise of the same size is added to every column and gradually reduced to 0. The value of a column is the gain in
    log density as its own noise decreases. Along the eigenvectors of the covariance there is a closed formula. The
    constant -log(2 pi)/2 of each column is left out. As with Shapley values, exchangeable columns have equal values,
    and the value of an independent column is its own log density.
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
    """Return (log a - log b) / (a - b) for each pair of variances; 1/a if they are equal."""
    ratio = variance[:, None] / variance[None, :] - 1.0
    near = np.abs(ratio) < 1e-8
    safe = np.where(near, 1.0, ratio)
    return np.where(near, 1.0 - ratio / 2.0, np.log1p(safe) / safe) / variance[None, :]


def settle(shares: Floats, evidence: Floats, limited: Flags) -> Floats:
    """Adjust shares (row by column by class) so that they add up to the final evidence (row by class).

    In `limited` rows the evidence was capped and made relative to the best class: the shares are scaled likewise. A
    remaining difference, from rounding or because a row was left out, is distributed over the columns in proportion to
    how much their shares differ between classes. The result does not depend on units of measurement.
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
    """Return a flag for each column with a share, row by column; all columns of a row without any share."""
    present = np.asarray((shares != 0.0).any(axis=2))
    return present | ~present.any(axis=1, keepdims=True)


def _relative(shares: Floats, evidence: Floats) -> Floats:
    """Return the shares relative to the best class, scaled to the evidence; NaN if they cannot be scaled."""
    rows, best = np.arange(len(evidence)), evidence.argmax(axis=1)
    with np.errstate(invalid="ignore"):
        relative = shares - shares[rows, :, best][:, :, None]
        whole = relative.sum(axis=1)
        scale = np.divide(evidence, whole, out=np.full_like(whole, np.nan), where=whole < 0.0)
        return np.asarray(relative * np.where(evidence == 0.0, 0.0, scale)[:, None])


def _even_where_unknown(result: Floats, shares: Floats, evidence: Floats) -> Floats:
    """Replace unusable shares by even shares of the present columns.

    Shares are unusable if they or the evidence are infinite, or if all are 0 and the evidence is not.
    """
    finite, whole = np.isfinite(evidence), np.isfinite(result).all(axis=1)
    lost = (result == 0.0).all(axis=1) & (evidence != 0.0)
    unknown = np.isnan(result).any(axis=1) | (finite != whole) | lost
    if not unknown.any():
        return result
    present = _present(shares)
    even = 1.0 / np.maximum(present.sum(axis=1), 1)
    spread = np.where(present[:, :, None], (even[:, None] * evidence)[:, None], 0.0)
    return np.where(unknown[:, None], spread, result)
