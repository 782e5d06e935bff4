"""How the log-likelihood changes with the weight of one more piece of evidence."""

from deciban.kernels.compiled import Array, compiled


@compiled
def weight_slope(
    cells: Array, labels: Array, weights: Array, evidence: Array, own: Array, posterior: Array, sums: Array
) -> None:
    """Add to `sums` the slope and the curvature of the log-likelihood in the weight of one more piece of evidence.

    Row i has the combination of levels v = cells[i] (none if that is negative). Its evidence is evidence[v, class], but
    for the row's own class own[v, class], which is the evidence without the row.
    """
    slope, curvature = 0.0, 0.0
    for i in range(cells.size):
        v = cells[i]
        if v < 0:
            continue
        y = labels[i]
        mean, square = 0.0, 0.0
        for c in range(posterior.shape[1]):
            term = own[v, c] if c == y else evidence[v, c]
            mean += posterior[i, c] * term
            square += posterior[i, c] * term * term
        slope += weights[i] * (own[v, y] - mean)
        curvature += weights[i] * (square - mean * mean)
    sums[0] += slope
    sums[1] += curvature
