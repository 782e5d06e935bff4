"""Counts with differential privacy: noise is added once, when counts are released, and rows stay where they are.

Everything else in a released model is public: its columns, families, bounds and classes are given, never read off the
rows. Whatever is computed from released counts has the same guarantee.
"""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from random import Random, SystemRandom
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from deciban.errors import Argument, BadCell, DataError, Labels, UsageError
from deciban.families import Categorical, Gaussian
from deciban.fitting.fit import encode_classes, fit, open_examples
from deciban.model.fitted import Fitted, Origin, Settings
from deciban.model.priors import prior_of
from deciban.sources.streams import Examples
from deciban.statistics.levels import encode
from deciban.tables.examples import check_column
from deciban.tables.labels import UNKNOWN_LABEL, LabelArray
from deciban.tables.table import Table
from deciban.util.arrays import Codes, Floats
from deciban.util.arrow_values import as_values

# Cells of a range are rounded to this many steps on each side of its middle, so that sums are whole numbers: noise
# added to doubles would show the sum in its last digits.
STEPS = 1 << 16

# The most that a row changes a column's sums of cells and of squares, taken together: that of a cell at a bound.
CELL_SENSITIVITY = STEPS + STEPS // 2


# Share of epsilon for the class counts, which the means of all columns are divided by.
CLASS_SHARE = Fraction(1, 5)

# With a smaller epsilon there is only noise.
MIN_EPSILON = 1e-6

# Bounds must be smaller than this: released moments may lie beyond them by all of the noise, and their square must be a
# double.
MAX_BOUND = 1e130

# Their difference must be at least this: cells are divided by half of it, which must not be 0.
MIN_RANGE = 1e-140


class Column(Protocol):
    """Sums over one column, to which a row adds no more than the noise hides."""

    @property
    def family(self) -> Any:
        """Family of the column in the released model."""
        ...

    def add(self, table: Table, column: int, codes: Codes) -> None:
        """Add the cells of some rows; codes: their classes."""
        ...

    def release(self, class_weight: Floats, share: Fraction, random: Random) -> tuple[list[Any], Codes, Floats]:
        """Return cells, their classes and their weights, whose counts are the sums with noise."""
        ...


class ListedValues:
    """Counts of a column's values, class by value. A row changes one count by 1."""

    def __init__(self, values: list[Any], classes: int, share: Fraction) -> None:
        self.family = Categorical(max(1.0, float(1 / share)), tuple(values))  # smoothed by no less than the noise
        self._levels = as_values(pa.array(values))
        self._counts = np.zeros((classes, len(values)), dtype=np.int64)

    def add(self, table: Table, column: int, codes: Codes) -> None:
        cells = table.values([column])[0]
        found = encode(cells, self._levels, column)
        if (unknown := np.flatnonzero(found == -2)).size:
            row = int(unknown[0])
            cause = f"found {cells[row].as_py()!r}, which is not one of the values in its bounds"
            raise BadCell(column, row, cause, "correct the cell, or list the value")
        known = found >= 0
        np.add.at(self._counts, (codes[known], found[known]), 1)

    def release(self, class_weight: Floats, share: Fraction, random: Random) -> tuple[list[Any], Codes, Floats]:
        classes, values = np.indices(self._counts.shape).reshape(2, -1)
        noisy = [count + draw_laplace(1 / share, random) for count in self._counts.ravel().tolist()]
        return self._levels.take(values).to_pylist(), classes.astype(np.int32), np.maximum(noisy, 0).astype(np.float64)


class NumbersInRange:
    """Sums of a column's cells and of their squares, in steps from the middle of its range, and its missing cells.

    A row adds z and z² / STEPS - STEPS / 2, together at most CELL_SENSITIVITY, or is missing and adds that once.
    """

    def __init__(self, low: float, high: float, classes: int) -> None:
        self.family: Any = Gaussian()
        self._middle, self._half = low + (high - low) / 2.0, (high - low) / 2.0
        self._sums = np.zeros((3, classes), dtype=np.int64)  # missing cells, cells, squares

    def add(self, table: Table, column: int, codes: Codes) -> None:
        cells = table.numbers([column])[:, 0].astype(np.float64)
        missing = np.isnan(cells)
        known = np.clip(cells[~missing], self._middle - self._half, self._middle + self._half)
        steps = np.rint(np.clip((known - self._middle) / self._half, -1.0, 1.0) * STEPS).astype(np.int64)
        np.add.at(self._sums[0], codes[missing], 1)
        np.add.at(self._sums[1], codes[~missing], steps)
        np.add.at(self._sums[2], codes[~missing], steps * steps // STEPS - STEPS // 2)

    def release(self, class_weight: Floats, share: Fraction, random: Random) -> tuple[list[Any], Codes, Floats]:
        scales = (1 / share, CELL_SENSITIVITY / share, CELL_SENSITIVITY / share)
        noisy = [
            [x + draw_laplace(scale, random) for x in sums]
            for scale, sums in zip(scales, self._sums.tolist(), strict=True)
        ]
        missing, cells, squares = np.array(noisy, dtype=np.float64)
        weight = np.clip(class_weight - missing, 0.0, class_weight)
        used = np.flatnonzero(weight)
        mean, square = cells[used] / weight[used] / STEPS, squares[used] / weight[used] / STEPS + 0.5
        mean = np.clip(mean, -1.0, 1.0)
        # no narrower than the noise of the variance, and wider by that of the mean: sure of no more than is known
        noise = float(CELL_SENSITIVITY / share) / STEPS / weight[used]
        spread = np.sqrt(np.clip(square - mean**2, np.minimum(noise, 1.0), 1.0) + 2.0 * noise**2)
        pairs = self._middle + self._half * np.stack([mean - spread, mean + spread])
        return pairs.ravel().tolist(), np.tile(used, 2).astype(np.int32), np.tile(weight[used] / 2.0, 2)


def release(
    settings: Settings, X: Any, y: Any, epsilon: float, bounds: Mapping[str, Any], random_state: int | None = None
) -> Fitted:
    """Count rows, and return the plain model of these counts with noise; see `BayesClassifier.release`."""
    settings.check()
    if not isinstance(epsilon, int | float | np.number) or not MIN_EPSILON <= float(epsilon) < np.inf:
        raise UsageError(f"give a finite number from {MIN_EPSILON:g}", parameter=Argument("epsilon", epsilon))
    epsilon = float(epsilon)
    if settings.classes is None:
        raise UsageError(
            "the classes must be declared: a class taken from the rows would reveal that it occurs",
            remedy=("pass ", Argument("classes"), " to the classifier"),
        )
    if not isinstance(bounds, Mapping) or not bounds:
        raise UsageError(f"the bounds are {bounds!r}", remedy="give a mapping with those of at least one column")
    classes = encode_classes(settings.classes)
    own = Fraction(epsilon) * CLASS_SHARE  # what the class counts and each of the columns may reveal adds up to epsilon
    share = (Fraction(epsilon) - own) / len(bounds)
    columns = {name: _read_bounds(name, given, classes.size, share) for name, given in bounds.items()}
    rows = _count_rows(open_examples(None, X, y), classes, columns)

    random = SystemRandom() if random_state is None else Random(int(random_state))
    noisy = [count + draw_laplace(1 / own, random) for count in rows]
    weight = np.maximum(noisy, np.ceil(float(1 / own)))  # no class is ruled out by noise
    cells, codes, weights = _list_cells(columns, weight, share, random)
    settings = replace(settings, families={name: column.family for name, column in columns.items()}, tune=None)
    counted = fit(replace(settings, prior="uniform"), pa.table(cells), classes[codes], weights, partial=True).counts
    counts = replace(counted, class_weight=weight, rows=int(weight.sum()), epsilon=epsilon)
    origin = Origin(target=y if isinstance(y, str) else None)
    return Fitted(counts, prior_of(settings.class_prior, counts), None, origin, settings)


def _read_bounds(name: str, given: Any, classes: int, share: Fraction) -> Column:
    """Return what to count of a column: numbers in a range (low, high), or a list of values."""
    if isinstance(given, list) and given and all(value is not None and value == value for value in given):
        return ListedValues(given, classes, share)
    if (
        isinstance(given, tuple)
        and len(given) == 2
        and all(isinstance(bound, int | float | np.number) for bound in given)
    ):
        low, high = given
        if -MAX_BOUND <= low < high <= MAX_BOUND and float(high) - float(low) >= MIN_RANGE:
            return NumbersInRange(float(low), float(high), classes)
    raise UsageError(
        f"the bounds of column {name!r} are {given!r}",
        remedy="give a tuple (low, high), or a list of all values, without missing ones",
    )


def _count_rows(examples: Examples, classes: LabelArray, columns: Mapping[str, Column]) -> list[int]:
    """Add the cells of all rows to the columns, and return the number of rows per class."""
    rows = np.zeros(classes.size, dtype=np.int64)
    with examples.locate_errors():
        if examples.names is None:
            raise DataError("the columns have no names", remedy="pass a data frame, a dict of columns, or a file")
        for name in columns:
            check_column(examples.names, name, f"no column {name!r}, which has bounds")
        _, everything = examples.sample()
        for piece in everything.pieces():
            codes = piece.labels.places_among(classes)
            if (unknown := np.flatnonzero(codes == UNKNOWN_LABEL)).size:
                label = piece.labels.label(int(unknown[0]))
                raise DataError((f"the label {label!r} is not among the declared classes ", Labels(classes.tolist())))
            kept = np.flatnonzero(codes >= 0)
            table, codes = piece.table.take(kept), codes[kept]
            rows += np.bincount(codes, minlength=classes.size)
            for name, column in columns.items():
                try:
                    column.add(table, examples.names.index(name), codes)
                except BadCell as bad:
                    bad.row = None if bad.row is None else int(kept[bad.row])
                    raise bad.as_error(name, piece.first_row) from None
    return [int(count) for count in rows]


def _list_cells(
    columns: Mapping[str, Column], weight: Floats, share: Fraction, random: Random
) -> tuple[dict[str, list[Any]], Codes, Floats]:
    """Return rows with one cell each, their classes and their weights: their counts are those with noise."""
    released = [column.release(weight, share, random) for column in columns.values()]
    before = np.cumsum([0, *(len(cells) for cells, _, _ in released)]).tolist()
    cells = {
        name: [None] * before[k] + released[k][0] + [None] * (before[-1] - before[k + 1])
        for k, name in enumerate(columns)
    }
    return cells, np.concatenate([part[1] for part in released]), np.concatenate([part[2] for part in released])


def draw_laplace(scale: Fraction, random: Random) -> int:
    """Return discrete Laplace noise: k with a probability in proportion to exp(-abs(k) / scale).

    It is drawn exactly, with integers alone (Canonne, Kamath and Steinke 2020, algorithm 2).
    """
    t, s = scale.numerator, scale.denominator
    while True:
        u = random.randrange(t)
        if not _draw_exp(Fraction(u, t), random):
            continue
        v = 0
        while _draw_exp(Fraction(1), random):
            v += 1
        size, negative = (u + t * v) // s, random.getrandbits(1)
        if size or not negative:  # 0 has one sign
            return -size if negative else size


def _draw_exp(x: Fraction, random: Random) -> bool:
    """Return True with probability exp(-x), for x between 0 and 1."""
    k = 1
    while random.randrange(x.denominator * k) < x.numerator:
        k += 1
    return k % 2 == 1
