"""Decisions of least risk."""

import numpy as np

from deciban.kernels.compiled import Array, compiled


@compiled
def least_risk(posterior: Array, loss: Array, best: Array, risk: Array, second: Array, second_risk: Array) -> None:
    """The decision of least expected loss of each row and the next one; ties go to the first. `loss` is decision by
    truth, or row by decision by truth with one row for all."""
    one = loss.shape[0] == 1
    for i in range(posterior.shape[0]):
        costs = loss[0 if one else i]
        first, next_best = -1, -1
        least, next_least = np.inf, np.inf
        for d in range(costs.shape[0]):
            total = 0.0
            same = True
            for c in range(costs.shape[1]):
                total += costs[d, c] * posterior[i, c]
                same &= costs[d, c] == costs[d, 0]
            if same:  # whatever is true, to the bit
                total = costs[d, 0]
            if first < 0 or total < least:
                next_best, next_least = first, least
                first, least = d, total
            elif next_best < 0 or total < next_least:
                next_best, next_least = d, total
        best[i], risk[i], second[i], second_risk[i] = first, least, next_best, next_least
