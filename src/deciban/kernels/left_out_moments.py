"""Normal densities of each training row, from the moments of all other rows."""

from typing import NamedTuple

import numpy as np

from deciban.kernels.compiled import Array, compiled, inner
from deciban.kernels.left_out import less
from deciban.util.arrays import ROUNDING_VARIANCE


class NormalColumns(NamedTuple):
    """Over all classes, for each column; means are deviations from `centre`."""

    centre: Array
    weight: Array
    mean: Array
    scatter: Array
    degrees: Array  # of freedom, of the pooled variance
    pooled: Array  # the sum of the scatters of the classes
    least: Array  # the variance up to which a column is constant, and no evidence


class NormalClasses(NamedTuple):
    """Column by class: moments of all rows, and the density that they give to a row of another class.

    variance: 0 where that density depends on the row that is left out. half_precision: 1 / (2 variance). log_root: half
    of log(2 pi variance).
    """

    weight: Array
    mean: Array
    scatter: Array
    variance: Array
    half_precision: Array
    log_root: Array


class VarianceRule(NamedTuple):
    """How variances are estimated: (1 - shared) of the class's own and `shared` of the pooled one.

    floor, added: shares of the column's variance that a variance has at least, and that are added to it.
    """

    shared: float
    ddof: float
    floor: float
    added: float


@inner
def _moments_without(weight: float, mean: float, scatter: float, value: float, removed: float) -> tuple[float, ...]:
    """Weight, mean and scatter without one value of weight `removed`; the mean stays if nothing else was counted."""
    rest = less(weight, removed)
    if rest == 0.0:
        return rest, mean, 0.0
    away = value - mean
    return rest, mean - removed * away / rest, less(scatter, removed * weight / rest * away * away)


@inner
def _variance(weight: float, mean: float, scatter: float, pooled: float, spread: float, rule: VarianceRule) -> float:
    """The variance of a class with a positive weight; `spread` is that of its column, `mean` is not centred."""
    variance = rule.shared * pooled
    if weight > rule.ddof:
        variance += (1.0 - rule.shared) * scatter / (weight - rule.ddof)
    if variance < rule.floor * spread:
        variance = rule.floor * spread
    if variance <= ROUNDING_VARIANCE * (mean * mean + spread):  # cells that do not vary
        variance = variance if variance > spread / (1.0 + weight) else spread / (1.0 + weight)
    return variance + rule.added * spread


@compiled
def left_out_normal(
    x: Array,
    labels: Array,
    removed: Array,
    column: NormalColumns,
    by_class: NormalClasses,
    rule: VarianceRule,
    slot: Array,
    out: Array,
) -> None:
    """Add the log density of each cell; one that is missing, or of a constant column, adds nothing."""
    half_log = 0.5 * np.log(2.0 * np.pi)
    for i in range(x.shape[0]):
        y, w = labels[i], removed[i]
        for j in range(x.shape[1]):
            value = np.float64(x[i, j]) - column.centre[j]
            if value != value:
                continue
            rest, all_mean, spread = _moments_without(column.weight[j], column.mean[j], column.scatter[j], value, w)
            spread = spread / rest if rest > 0.0 else 0.0
            if not spread > column.least[j]:
                continue
            own = by_class.weight[j, y]
            own_rest, own_mean, own_scatter = _moments_without(
                own, by_class.mean[j, y], by_class.scatter[j, y], value, w
            )
            degrees = column.degrees[j] - (own - rule.ddof if own > rule.ddof else 0.0)
            degrees += own_rest - rule.ddof if own_rest > rule.ddof else 0.0
            pooled = column.pooled[j] - by_class.scatter[j, y] + own_scatter
            pooled = pooled / degrees if degrees > 0.0 and pooled > 0.0 else 0.0
            for c in range(out.shape[2]):
                if c != y and by_class.variance[j, c] > rule.floor * spread:
                    away = value - by_class.mean[j, c]
                    out[i, slot[j], c] -= by_class.log_root[j, c] + away * away * by_class.half_precision[j, c]
                    continue
                n, m, s = by_class.weight[j, c], by_class.mean[j, c], by_class.scatter[j, c]
                if c == y:
                    n, m, s = own_rest, own_mean, own_scatter
                if n == 0.0:
                    m, variance = all_mean, spread + rule.added * spread
                else:
                    variance = _variance(n, column.centre[j] + m, s, pooled, spread, rule)
                out[i, slot[j], c] -= half_log + 0.5 * (np.log(variance) + (value - m) * (value - m) / variance)
