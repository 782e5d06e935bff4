"""Decisions of least risk."""

import numpy as np

from deciban.kernels.compiled import Array, compiled

TILE_ROWS = 64


@compiled
def least_risk(posterior: Array, loss: Array, best: Array, risk: Array, second: Array, second_risk: Array) -> None:
    """The decision of least expected loss of each row and the next one; ties go to the first.

    `loss` is row by decision by truth, with one row where it is the same for all. By tiles of rows, so that every
    innermost loop runs over the rows of a tile.
    """
    decisions, classes = loss.shape[1], loss.shape[2]
    one = loss.shape[0] == 1
    constant = np.zeros(decisions, np.bool_)
    if one:
        for d in range(decisions):
            constant[d] = (loss[0, d] == loss[0, d, 0]).all()
    tile = np.empty((classes, TILE_ROWS))
    total = np.empty(TILE_ROWS)
    least, next_least = np.empty(TILE_ROWS), np.empty(TILE_ROWS)
    first, next_best = np.empty(TILE_ROWS, np.int32), np.empty(TILE_ROWS, np.int32)
    for start in range(0, posterior.shape[0], TILE_ROWS):
        rows = min(TILE_ROWS, posterior.shape[0] - start)
        for i in range(rows):
            for c in range(classes):
                tile[c, i] = posterior[start + i, c]
        least[:] = np.inf
        next_least[:] = np.inf
        first[:] = -1
        next_best[:] = -1
        for d in range(decisions):
            if constant[d]:  # whatever is true, to the bit
                total[:] = loss[0, d, 0]
            else:
                total[:] = 0.0
                for c in range(classes):
                    if one:
                        cost = loss[0, d, c]
                        for i in range(rows):
                            total[i] += cost * tile[c, i]
                    else:
                        for i in range(rows):
                            total[i] += loss[start + i, d, c] * tile[c, i]
            for i in range(rows):
                better = total[i] < least[i]
                next_better = total[i] < next_least[i]
                next_best[i] = first[i] if better else (d if next_better else next_best[i])
                next_least[i] = least[i] if better else (total[i] if next_better else next_least[i])
                first[i] = d if better else first[i]
                least[i] = total[i] if better else least[i]
        for i in range(rows):
            best[start + i], risk[start + i] = first[i], least[i]
            second[start + i], second_risk[start + i] = next_best[i], next_least[i]
