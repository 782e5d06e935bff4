"""Joint normal densities of each training row, from the scatter of all other rows.

Where matrices are moved towards their diagonals there is no update of rank one: each row factors its own.
"""

from typing import NamedTuple

import numpy as np

from deciban.kernels.compiled import Array, compiled_to_reorder, inner_to_reorder


class JointClasses(NamedTuple):
    """The scatter of all rows, and how covariances are estimated from it.

    The matrix of class c is (1 - mix) of its own covariance and `mix` of the pooled one, each moved towards its
    diagonal: the former by shrinkage[c], the latter by shrinkage[-1].
    """

    weight: Array
    mean: Array  # class by column
    scatter: Array  # of each class
    pooled: Array  # the sum of the scatters
    mix: float
    shrinkage: Array
    degrees: float  # of freedom, of the pooled covariance
    ddof: float


@inner_to_reorder
def _factor(joint: JointClasses, c: int, y: int, removed: float, scratch: Array) -> float:
    """Fill `scratch` with Cholesky's factor of the matrix of class c, and return the sum of the logs of its diagonal.

    The matrix is that without a row of class y, whose deviation from the mean of y stands behind the matrix.
    """
    size, ddof = scratch.shape[1], joint.ddof
    before, rest = joint.weight[y], joint.weight[y] - removed
    down = removed * before / rest
    left = joint.degrees - (before - ddof if before > ddof else 0.0) + (rest - ddof if rest > ddof else 0.0)
    divisor = (rest if c == y else joint.weight[c]) - ddof
    divisor = divisor if divisor > 0.0 else 1e-300
    log_root = 0.0
    for a in range(size):
        for b in range(a + 1):
            drop = down * scratch[size, a] * scratch[size, b]
            own = (joint.scatter[c, a, b] - (drop if c == y else 0.0)) / divisor
            pooled = (joint.pooled[a, b] - drop) / left
            if a != b:
                own *= 1.0 - joint.shrinkage[c]
                pooled *= 1.0 - joint.shrinkage[joint.weight.size]
            total = (1.0 - joint.mix) * own + joint.mix * pooled
            for k in range(b):
                total -= scratch[a, k] * scratch[b, k]
            scratch[a, b] = np.sqrt(total) if a == b else total / scratch[b, b]
        log_root += np.log(scratch[a, a])
    return log_root


@compiled_to_reorder
def left_out_cholesky(
    x: Array,
    labels: Array,
    removed: Array,
    joint: JointClasses,
    constant: float,
    with_all_rows: Array,
    scratch: Array,
    out: Array,
) -> None:
    """Add the log density of each row and class; `constant` is what does not depend on the matrix.

    with_all_rows: the densities with every row counted, which are those of the classes a row is not in if mix is 0.
    scratch: room for a matrix and two rows.
    """
    size, classes = x.shape[1], joint.weight.size
    for i in range(x.shape[0]):
        y = labels[i]
        for k in range(size):
            scratch[size, k] = x[i, k] - joint.mean[y, k]
        factored = False
        log_root = 0.0
        for c in range(classes):
            if joint.mix == 0.0 and c != y:
                out[i, c] += with_all_rows[i, c]
                continue
            if joint.mix < 1.0 or not factored:
                log_root = _factor(joint, c, y, removed[i], scratch)
                factored = True
            distance = 0.0
            stretch = joint.weight[y] / (joint.weight[y] - removed[i]) if c == y else 1.0
            for a in range(size):
                total = stretch * (x[i, a] - joint.mean[c, a])
                for b in range(a):
                    total -= scratch[a, b] * scratch[size + 1, b]
                white = total / scratch[a, a]
                scratch[size + 1, a] = white
                distance += white * white
            out[i, c] += constant - log_root - 0.5 * distance
