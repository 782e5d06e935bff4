"""Merging and removing mean vectors and scatter matrices: the algebra of moments, with products of two columns."""

from deciban.kernels.compiled import Array, compiled
from deciban.kernels.exact import Pair, minus, plus, quotient, times


@compiled
def _pair(high: Array, low: Array, c: int, i: int) -> Pair:
    return high[c, i], low[c, i]


@compiled
def merge_scatter(
    weight: Array, mean: Array, low: Array, scatter: Array, rest: Array,
    weight2: Array, mean2: Array, low2: Array, scatter2: Array, rest2: Array,
) -> None:  # fmt: skip
    """Merge the second scatter into the first, class by class, in place."""
    size = mean.shape[1]
    for c in range(weight.size):
        n1, n2 = weight[c], weight2[c]
        weight[c] = n1 + n2
        if n2 == 0.0:
            continue
        if n1 == 0.0:
            mean[c], low[c], scatter[c], rest[c] = mean2[c], low2[c], scatter2[c], rest2[c]
            continue
        share = quotient(n2, n1 + n2)
        factor = times((n1, 0.0), share)
        for i in range(size):
            delta = minus(_pair(mean2, low2, c, i), _pair(mean, low, c, i))
            for j in range(i + 1):
                other = minus(_pair(mean2, low2, c, j), _pair(mean, low, c, j)) if j < i else delta
                total = plus((scatter[c, i, j], rest[c, i, j]), (scatter2[c, i, j], rest2[c, i, j]))
                total = plus(total, times(times(delta, other), factor))
                scatter[c, i, j], rest[c, i, j] = total
                scatter[c, j, i], rest[c, j, i] = total
        for i in range(size):
            delta = minus(_pair(mean2, low2, c, i), _pair(mean, low, c, i))
            mean[c, i], low[c, i] = plus(_pair(mean, low, c, i), times(delta, share))


@compiled
def remove_scatter(
    weight: Array, mean: Array, low: Array, scatter: Array, rest: Array,
    weight2: Array, mean2: Array, low2: Array, scatter2: Array, rest2: Array, left: Array,
) -> None:  # fmt: skip
    """Take the second scatter out of the first, class by class, in place; `left` is the weight that stays."""
    size = mean.shape[1]
    for c in range(weight.size):
        n1, n2 = weight[c], weight2[c]
        weight[c] = left[c]
        if left[c] == 0.0:
            mean[c], low[c], scatter[c], rest[c] = 0.0, 0.0, 0.0, 0.0
            continue
        if n2 == 0.0:
            continue
        share = quotient(n2, left[c])
        factor = times((n1, 0.0), share)
        for i in range(size):
            delta = minus(_pair(mean2, low2, c, i), _pair(mean, low, c, i))
            for j in range(i + 1):
                other = minus(_pair(mean2, low2, c, j), _pair(mean, low, c, j)) if j < i else delta
                total = minus((scatter[c, i, j], rest[c, i, j]), (scatter2[c, i, j], rest2[c, i, j]))
                total = minus(total, times(times(delta, other), factor))
                scatter[c, i, j], rest[c, i, j] = total
                scatter[c, j, i], rest[c, j, i] = total
        for i in range(size):
            delta = minus(_pair(mean2, low2, c, i), _pair(mean, low, c, i))
            mean[c, i], low[c, i] = minus(_pair(mean, low, c, i), times(delta, share))
