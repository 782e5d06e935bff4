"""Probabilities from counts: smoothing, sampling, formulas."""

import numpy as np

from deciban.util.arrays import Floats, Integers, Numbers
from deciban.util.text_tables import format_digits

# Doubles do not represent every whole number beyond this; a Poisson distribution is then normal to the last digit.
MAX_RATE = 2.0**53


def smooth_shares(counts: Floats, alpha: float | Floats, levels: float | None = None) -> Floats:
    """Return (count + alpha) / (sum + alpha * levels) for counts [..., class, level].

    levels: the number of levels (default: the length of the last axis). If alpha is an array, it is broadcast to the
    levels, and its sum replaces alpha * levels.

    A class with 0 / 0 (no smoothing, no counts) gets the shares of all classes together.
    """
    counts = np.ascontiguousarray(counts)  # the last digit of a sum depends on the layout
    size = counts.shape[-1] if levels is None else levels
    added = np.broadcast_to(alpha, counts.shape).sum(axis=-1, keepdims=True) if np.ndim(alpha) else alpha * size
    bottom = counts.sum(axis=-1, keepdims=True) + added
    shares = np.divide(counts + alpha, bottom, out=np.zeros_like(counts), where=bottom > 0.0)
    if not (bottom > 0.0).all():
        overall = counts.sum(axis=-2, keepdims=True)
        total = overall.sum(axis=-1, keepdims=True)
        even = np.full_like(overall, 1.0 / max(size, 1.0))
        shares = np.where(bottom > 0.0, shares, np.divide(overall, total, out=even, where=total > 0.0))
    return np.asarray(shares)


def smooth_in_proportion(counts: Floats, alpha: float, levels: int) -> Floats:
    """Return (count + alpha * share) / (sum + alpha * share * levels) for counts [class, level].

    share: of the class in the rows. A class without rows gets the shares of all classes together, smoothed likewise.
    """
    counts = np.ascontiguousarray(counts)
    rows, overall = counts.sum(axis=1, keepdims=True), counts.sum(axis=0)
    total = float(overall.sum())
    if alpha == 0.0 or total == 0.0:
        return smooth_shares(counts, alpha, levels)
    added = alpha * (rows / total)
    own = (counts + added) / np.maximum(rows + added * levels, np.finfo(np.float64).tiny)
    return np.asarray(np.where(rows > 0.0, own, (overall + alpha) / (total + alpha * levels)))


def draw(shares: Floats, labels: Integers, rng: np.random.Generator) -> Integers:
    """Draw a level for each label, with the probabilities `shares` (level by class)."""
    throws = rng.random(len(labels))
    shown = np.empty(len(labels), dtype=np.int64)
    for label in np.unique(labels):
        cumulative = np.cumsum(shares[:, label])
        rows = labels == label
        shown[rows] = np.minimum(
            np.searchsorted(cumulative, throws[rows] * cumulative[-1], side="right"), len(shares) - 1
        )
    return shown


def draw_counts(rates: Floats, rng: np.random.Generator) -> list[Numbers]:
    """Draw Poisson counts for each row of rates: integers, or whole doubles if a rate exceeds MAX_RATE."""
    return [
        rng.poisson(line)
        if line.max(initial=0.0) < MAX_RATE
        else np.maximum(np.rint(line + np.sqrt(line) * rng.standard_normal(line.size)), 0.0)  # practically normal
        for line in rates
    ]


def format_fraction(count: float, total: float, alpha: float, levels: int) -> str:
    """Return (count + alpha) / (total + alpha * levels) as text."""
    if alpha == 0.0:
        return f"{format_digits(count)}/{format_digits(total)}"
    return f"({format_digits(count)} + {alpha:g})/({format_digits(total)} + {alpha:g}·{levels})"
