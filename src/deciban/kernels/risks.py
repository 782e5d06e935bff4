"""Decisions of least risk."""

import numpy as np

from deciban.kernels.compiled import Array, compiled


@compiled
def least_risk(
    posterior: Array, loss: Array, constant: Array, best: Array, risk: Array, second: Array, second_risk: Array
) -> None:
    """Fill the decision of least expected loss of each row and the second best; ties go to the first.

    `loss` is row by decision by truth, with one row where it is the same for all; `constant` says which decisions then
    cost the same whatever is true, to the bit.
    """
    for i in range(posterior.shape[0]):
        row = i if loss.shape[0] > 1 else 0
        least, next_least = np.inf, np.inf
        chosen, runner_up = -1, -1
        for d in range(loss.shape[1]):
            total = loss[row, d, 0]
            if not constant[d]:
                total = 0.0
                for c in range(loss.shape[2]):
                    total += loss[row, d, c] * posterior[i, c]
            if total < least:
                runner_up, next_least = chosen, least
                chosen, least = d, total
            elif total < next_least:
                runner_up, next_least = d, total
        best[i], risk[i], second[i], second_risk[i] = chosen, least, runner_up, next_least
