"""What each column of a block has of its evidence: Shapley values, and what stands for them where columns are many."""

from __future__ import annotations

import math
from typing import Callable, NamedTuple

from deciban.export.py.arrays import largest, log, zeros

# Columns, all sets of which are looked at.
_MOST_ENUMERATED = 10

# Decompositions of matrices that are kept, of different sets of columns that are there.
_MOST_KEPT = 64


class Eigen(NamedTuple):
    """The eigenvalues and eigenvectors of a symmetric matrix: axes[row][k] is of value k."""

    values: list[float]
    axes: list[list[float]]


def shapley_shares(value_of: Callable[[int], list[float]], players: int, classes: int) -> list[list[float]]:
    """The Shapley value of each player; value_of(set of players, as bits) has a value for each class."""
    values = [value_of(some) for some in range(1 << players)]
    weights = shapley_weights(players)
    shares = [zeros(classes) for _ in range(players)]
    for p, share in enumerate(shares):
        for some, before in enumerate(values):
            if some & 1 << p:
                continue
            after, weight = values[some | 1 << p], weights[bin(some).count("1")]
            for c in range(classes):
                share[c] += weight * gain(before[c], after[c])
    return shares


def shapley_weights(players: int) -> list[float]:
    """The weight in a Shapley value of a set of so many others, among so many players."""
    found, choose = [], 1.0
    for size in range(players):
        found.append(1.0 / (players * choose))
        choose = choose * (players - 1 - size) / (size + 1)
    return found


def gain(before: float, after: float) -> float:
    """What a value gains; nothing where it was -inf already."""
    return after - before if before > -math.inf else 0.0


def shares_by_orders(
    value_of: Callable[[list[bool]], list[float]], orders: list[int], players: int, classes: int
) -> list[list[float]]:
    """The mean of what each player adds to those before it, in some orders."""
    shares = [zeros(classes) for _ in range(players)]
    count = len(orders) // players
    for o in range(count):
        known = [False] * players
        before = value_of(known)
        for player in orders[o * players : (o + 1) * players]:
            known[player] = True
            after = value_of(known)
            for c in range(classes):
                shares[player][c] += gain(before[c], after[c]) / count
            before = after
    return shares


def eigenvectors(matrix: list[list[float]]) -> Eigen:
    """The eigenvalues and eigenvectors of a symmetric matrix, by Jacobi's rotations."""
    size = len(matrix)
    a = [list(row) for row in matrix]
    axes = [[1.0 if i == j else 0.0 for j in range(size)] for i in range(size)]
    for _ in range(60):
        turned = False
        for p in range(size - 1):
            for q in range(p + 1, size):
                if abs(a[p][q]) > 1e-17 * math.sqrt(abs(a[p][p] * a[q][q])):
                    turned = True
                    turn(a, axes, p, q)
        if not turned:
            break
    return Eigen([a[i][i] for i in range(size)], axes)


def turn(a: list[list[float]], axes: list[list[float]], p: int, q: int) -> None:
    """One rotation, by which a[p][q] becomes 0."""
    theta = (a[q][q] - a[p][p]) / (2.0 * a[p][q])
    t = (1.0 if theta >= 0 else -1.0) / (abs(theta) + math.hypot(theta, 1.0))
    cosine = 1.0 / math.hypot(t, 1.0)
    sine, shift = t * cosine, t * a[p][q]
    first, second = a[p][p] - shift, a[q][q] + shift
    for k, (row, axis) in enumerate(zip(a, axes)):
        x, y = row[p], row[q]
        row[p] = a[p][k] = cosine * x - sine * y
        row[q] = a[q][k] = sine * x + cosine * y
        x, y = axis[p], axis[q]
        axis[p] = cosine * x - sine * y
        axis[q] = sine * x + cosine * y
    a[p][p], a[q][q] = first, second
    a[p][q] = a[q][p] = 0.0


def inverse_logarithmic_mean(a: float, b: float) -> float:
    """(log a - log b) / (a - b), 1 / a where they are equal."""
    ratio = a / b - 1.0
    return (1.0 - ratio / 2.0 if abs(ratio) < 1e-8 else math.log1p(ratio) / ratio) / b


def gradual_normal_shares(z: list[float], eigen: Eigen) -> list[float]:
    """What each column has of the log density at z of a normal distribution of mean 0, without -log(2 pi)/2 of each."""
    values, axes = eigen
    size = range(len(z))
    along = [sum(each * axes[i][k] for i, each in enumerate(z)) for k in size]
    means = [[inverse_logarithmic_mean(a, b) for b in values] for a in values]
    logs = [log(value) for value in values]
    found = []
    for axis in axes:
        turned = [axis[k] * along[k] for k in size]
        quadratic = sum(turned[k] * sum(turned[m] * means[m][k] for m in size) for k in size)
        volume = sum(axis[k] * axis[k] * logs[k] for k in size)
        found.append(-0.5 * (quadratic + volume))
    return found


def settled(shares: list[list[float]], evidence: list[float], limited: bool) -> list[list[float]]:
    """Shares (column by class) as shares of the evidence that a block has in the end.

    Where a cap limited it, they are relative to the best class too; what is left over by rounding goes to the columns
    by the size of their shares.
    """
    best = evidence.index(largest(evidence))
    present = [any(value != 0 for value in share) for share in shares]
    found = [zeros(len(share)) for share in shares]
    for c, whole in enumerate(evidence):
        own = [share[c] - share[best] for share in shares] if limited else [share[c] for share in shares]
        for k, value in enumerate(settled_class(own, whole, limited, present)):
            found[k][c] = value
    return found


def settled_class(own: list[float], whole: float, limited: bool, present: list[bool]) -> list[float]:
    """The shares of one class."""
    if limited:
        total = sum(own)
        scale = 0.0 if whole == 0 else whole / total if total < 0 else math.nan
        own = [value * scale for value in own]
    finite = math.isfinite(whole)
    if any(math.isnan(value) or (finite and math.isinf(value)) for value in own):
        own = [whole / max(sum(present), 1) if there else 0.0 for there in present]
    size, rest = sum(abs(value) for value in own), whole - sum(own)
    return [value + abs(value) / size * rest for value in own] if finite and size > 0 else own
