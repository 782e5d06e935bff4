"""A test whether two columns are independent within the classes, which holds in small tables too."""

import numpy as np
import scipy

from deciban.fitting.tune.rows import Rows
from deciban.util.arrays import Codes, Flags, Floats, Integers

# Levels with fewer rows in a class are put together: with rarer ones the distribution of chi-square is too far off.
FEWEST_IN_LEVEL = 10.0


def grouped(codes: Codes, size: int, ordered: bool, rows: Rows) -> Codes:
    """The codes of a column, levels that are rare in a class put together there: neighbours, or the rarest first.

    That looks at one column alone, so it cannot make two of them look dependent.
    """
    result = codes.copy()
    for label in range(rows.classes):
        here = (rows.labels == label) & (codes >= 0)
        held = np.bincount(codes[here], rows.weights[here], size).astype(np.float64)
        result[here] = _groups(held, np.arange(size) if ordered else np.argsort(held, kind="stable"))[codes[here]]
    return result


def _groups(held: Floats, order: Integers) -> Codes:
    """A group for each level, of neighbours in this order, each with FEWEST_IN_LEVEL or more."""
    group, last, total = np.zeros(held.size, dtype=np.int32), 0, 0.0
    for level in order:
        if total >= FEWEST_IN_LEVEL:
            last, total = last + 1, 0.0
        group[level] = last
        total += held[level]
    return np.minimum(group, last - 1 if last and total < FEWEST_IN_LEVEL else last)


def chance_of(counts: Floats) -> float:
    """The chance of counts (class by level by level) that depend as much, were the columns independent in each class.

    Pearson's chi-square, added up over classes. Its mean and variance are the exact ones of all tables with the same
    sums (Haldane 1940, Dawson 1954), which in small tables are not those of the degrees of freedom; the chance is that
    of the gamma distribution with this mean and variance.
    """
    total = counts.sum(axis=(1, 2))
    by_a, by_b = counts.sum(axis=2), counts.sum(axis=1)
    levels_a, levels_b = (by_a > 0.0).sum(axis=1), (by_b > 0.0).sum(axis=1)
    testable = (levels_a > 1) & (levels_b > 1) & (total > 3.0)
    if not testable.any():
        return 1.0
    n, by_a, by_b = total[testable], by_a[testable], by_b[testable]
    expected = by_a[:, :, None] * by_b[:, None, :] / n[:, None, None]
    square = np.divide((counts[testable] - expected) ** 2, expected, out=np.zeros_like(expected), where=expected > 0.0)
    (free_a, uneven_a), (free_b, uneven_b) = _freedom(by_a, n), _freedom(by_b, n)
    mean = n / (n - 1.0) * (levels_a[testable] - 1) * (levels_b[testable] - 1)
    variance = 2.0 * n / (n - 3.0) * (free_a - uneven_a) * (free_b - uneven_b) + n**2 / (n - 1.0) * uneven_a * uneven_b
    scale = variance.sum() / mean.sum()
    return float(scipy.special.gammaincc(mean.sum() / scale, square.sum() / scale)) if scale > 0.0 else 1.0


def _freedom(held: Floats, n: Floats) -> tuple[Floats, Floats]:
    """Dawson's v and w of the sums of levels, class by level: how free they are and how uneven."""
    there: Flags = held > 0.0
    levels = there.sum(axis=1)
    inverse = np.divide(1.0, held, out=np.zeros_like(held), where=there).sum(axis=1)
    return (n - levels) * (levels - 1) / (n - 1.0), (n * inverse - levels**2) / (n - 2.0)
