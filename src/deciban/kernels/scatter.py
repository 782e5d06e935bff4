"""Adding and taking away mean vectors and scatter matrices: the algebra of moments, with products of two columns."""

from deciban.kernels.compiled import Array, compiled
from deciban.kernels.exact import minus, plus, quotient, times


@compiled
def combine_scatter(
    weight: Array, mean: Array, low: Array, scatter: Array, rest: Array,
    weight2: Array, mean2: Array, low2: Array, scatter2: Array, rest2: Array, result: Array, sign: float,
) -> None:  # fmt: skip
    """Add (sign 1) or take away (sign -1) the second scatter, class by class, in place; `result` is the new weight."""
    size = mean.shape[1]
    for c in range(weight.size):
        n1, n2 = weight[c], weight2[c]
        weight[c] = result[c]
        if n2 == 0.0:
            continue
        if n1 == 0.0:
            mean[c], low[c], scatter[c], rest[c] = mean2[c], low2[c], scatter2[c], rest2[c]
            continue
        if result[c] == 0.0:
            mean[c], low[c], scatter[c], rest[c] = 0.0, 0.0, 0.0, 0.0
            continue
        share = quotient(sign * n2, result[c])
        factor = times((n1, 0.0), share)
        for i in range(size):
            delta = minus((mean2[c, i], low2[c, i]), (mean[c, i], low[c, i]))
            for j in range(i, size):
                other = minus((mean2[c, j], low2[c, j]), (mean[c, j], low[c, j]))
                total = plus((scatter[c, i, j], rest[c, i, j]), (sign * scatter2[c, i, j], sign * rest2[c, i, j]))
                total = plus(total, times(times(delta, other), factor))
                scatter[c, i, j], rest[c, i, j] = total
                scatter[c, j, i], rest[c, j, i] = total
            mean[c, i], low[c, i] = plus((mean[c, i], low[c, i]), times(delta, share))
