"""What is asked of columns of numbers: ranges, totals and moments of each class.

Sums of squares are never of the cells themselves but of how far they are from a number near their mean: a guess from
some rows or, where that was far off in some class, the mean of that class, which the statement finds first.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from deciban.arrays import Flags, Floats
from deciban.engines.asking import Asked, Classes, in_parts, mean_of, minus
from deciban.statistics import Moments, Totals
from deciban.statistics.exact import plus

# Deviations of a class between a guess and its mean beyond which the mean is found first: squares of numbers that are
# all far from zero lose digits, fewer where the engine follows their mean (var_pop) than where it adds them up.
FAR_FOLLOWED, FAR_ADDED = 16.0, 2.0

# The share of a sum that may be lost grows as the root of the number of rows: this is that of one row.
LOST = 2.0**-52

Aggregates = Callable[[str], Iterable[str]]
Source = Callable[[Sequence[str]], str]


@dataclass(frozen=True)
class Guess:
    """What is known of numbers before their moments are asked for.

    near: a number near the mean of each column. constant: the number that all cells of a class and column are, NaN
    where they differ.
    """

    near: Floats
    constant: Floats

    @property
    def differ(self) -> Flags:
        """Where the cells of a class and column differ."""
        return np.isnan(self.constant)


def ask_ranges(asked: Asked, values: Sequence[str], classes: Classes) -> Floats:
    """The least and the greatest number of each class and column; NaN without any, or where the greatest is NaN."""
    return _of_each(asked, values, classes, 2, lambda v: (f"min({v})", f"max({v})"), asked.cells)


def ask_fractions(asked: Asked, values: Sequence[str], classes: Classes) -> Floats:
    """A number of each class and column that is not whole; NaN without any."""

    def broken(v: str) -> str:
        return f"min(CASE WHEN {asked.engine.whole(v)} THEN NULL ELSE {v} END)"

    return np.asarray(_of_each(asked, values, classes, 1, lambda v: (broken(v),), asked.cells)[0])


def ask_totals(asked: Asked, values: Sequence[str], classes: Classes) -> Totals:
    """The weight of the rows where each value is there, and its sum."""
    found = _of_each(asked, values, classes, 2, lambda v: (asked.present(v), asked.total(v)), asked.cells)
    return Totals(*np.nan_to_num(found))


def ask_moments(asked: Asked, values: Sequence[str], guess: Guess, classes: Classes) -> Moments:
    """The moments of each value."""
    about = [minus(asked, value, near) for value, near in zip(values, guess.near, strict=True)]
    sums = _of_each(asked, about, classes, 3, _sums(asked), asked.cells)
    found, far = _moments(asked, sums, guess.near, classes)
    if (again := np.flatnonzero((far & guess.differ).any(axis=0))).size:
        some = [values[place] for place in again]
        sums = _of_each(asked, some, classes, 4, lambda v: (*_sums(asked)(v), f"max({mean_of(v)})"), asked.about_means)
        found[:, :, again] = _moments(asked, sums[:3], sums[3], classes)[0]
    constant = ~guess.differ & (found[0] > 0.0)
    found[1:, constant] = 0.0
    found[1, constant] = guess.constant[constant]
    return Moments(found)


def _of_each(
    asked: Asked, values: Sequence[str], classes: Classes, number: int, aggregates: Aggregates, source: Source
) -> Floats:
    """So many aggregates of each value: an array [aggregate, class, value]."""
    found = np.full((number, classes.labels.size, len(values)), np.nan)
    for places, some in in_parts(values, number):
        listed = [one for k in range(len(some)) for one in aggregates(f"v{k}")]
        answer = asked.of_each_class(source(some), listed, classes)
        found[:, :, places] = answer.reshape(len(some), number, -1).transpose(1, 2, 0)
    return found


def _sums(asked: Asked) -> Aggregates:
    """Weight, mean and variance; where rows have weights, weight and sums of numbers and of squares."""
    if asked.weight is None:
        return lambda v: (asked.present(v), f"avg({v})", f"var_pop({v})")
    return lambda v: (asked.present(v), asked.total(v), asked.total(f"{v} * {v}"))


def _moments(asked: Asked, sums: Floats, near: Floats, classes: Classes) -> tuple[Floats, Flags]:
    """The array of moments, given sums about some number, and where these numbers were too far off."""
    n, first, second = np.nan_to_num(sums)
    there = n > 0.0
    if asked.weight is None:
        step, scatter = first, n * second
    else:
        step = np.divide(first, n, out=np.zeros_like(n), where=there)
        scatter = np.maximum(second - first * step, 0.0)
    mean = plus((np.broadcast_to(np.nan_to_num(near), n.shape), 0.0), (step, 0.0))
    error = lost(n, classes) * (scatter + n * step**2)
    found = np.where(there, np.stack([n, *mean, scatter, np.zeros_like(n), error]), 0.0)
    most = FAR_FOLLOWED if asked.weight is None else FAR_ADDED
    return found, n * step**2 > most**2 * scatter


def lost(n: Floats, classes: Classes) -> Floats:
    """The share by which a sum over rows of so much weight may be wrong."""
    return np.asarray(LOST * np.sqrt(np.clip(n, 1.0, max(classes.rows, 1))))
