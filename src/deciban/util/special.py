"""Special functions and solutions that scoring needs, without SciPy."""

from collections.abc import Sequence

import numpy as np

from deciban.util.arrays import Floats

# Terms of the recurrence that leads to the series, which has 16 digits from 10 on.
STEPS = 10

# Coefficients of 1/x², 1/x⁴, ... in the asymptotic series of log x - 1/(2x) - digamma(x): B(2k) / 2k.
COEFFICIENTS = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)


# Whole numbers up to this one, and larger arrays of them, are looked up: counts seldom are larger.
MAX_LOOKED_UP = 256


def log_gamma(x: Floats) -> Floats:
    """Return log Gamma(x) for positive x.

    Examples
    --------
    >>> import numpy as np
    >>> log_gamma(np.array([1.0, 2.0, 5.0])).round(4)
    array([0.    , 0.    , 3.1781])
    """
    if x.size > MAX_LOOKED_UP and x.min() >= 1.0 and x.max() <= MAX_LOOKED_UP:
        whole = x.astype(np.int64)
        if (whole == x).all():
            return np.asarray(_compute_log_gamma(np.arange(1.0, MAX_LOOKED_UP + 1.0))[whole - 1])
    return _compute_log_gamma(x)


def _compute_log_gamma(x: Floats) -> Floats:
    """Return log Gamma(x) by the recurrence and Stirling's series."""
    near = np.minimum(x, STEPS)
    y = np.where(x < STEPS, near + STEPS, x)
    product = near.copy()
    for k in range(1, STEPS):
        product *= near + k
    with np.errstate(over="ignore"):
        found = (y - 0.5) * (np.log(y) - 1.0) + 0.5 * (np.log(2.0 * np.pi) - 1.0)
    found += _polynomial([c / (2 * k - 1) for k, c in enumerate(COEFFICIENTS, 1)], y) / y
    found -= np.where(x < STEPS, np.log(product), 0.0)
    return np.where((x == 1.0) | (x == 2.0), 0.0, found)


def digamma_gap(x: Floats) -> Floats:
    """Return log x - digamma(x) for positive x. It has full precision for large x too, where both terms cancel.

    Examples
    --------
    >>> import numpy as np
    >>> digamma_gap(np.array([1.0, 1e12]))  # Euler's constant, and nearly 1/(2x)
    array([5.77215665e-01, 5.00000000e-13])
    """
    y = x + STEPS
    found = 0.5 / y - np.log1p(STEPS / x)
    for k in range(STEPS):
        found += 1.0 / (x + k)
    return np.asarray(found + _polynomial(COEFFICIENTS, y) / y / y)


def trigamma_gap(x: Floats) -> Floats:
    """Return trigamma(x) - 1/x for positive x. It has full precision for large x too, where both terms cancel.

    Examples
    --------
    >>> import numpy as np
    >>> trigamma_gap(np.array([1.0, 1e12]))  # π²/6 - 1, and nearly 1/(2x²)
    array([6.44934067e-01, 5.00000000e-25])
    """
    y = x + STEPS
    found = 0.5 / y / y - STEPS / y / x
    for k in range(STEPS):
        found += (1.0 / (x + k)) ** 2
    return np.asarray(found + _polynomial([2 * k * c for k, c in enumerate(COEFFICIENTS, 1)], y) / y / y / y)


def _polynomial(coefficients: Sequence[float], x: Floats) -> Floats:
    """Return the value of a polynomial in 1/x²."""
    square, found = (1.0 / x) ** 2, np.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        found *= square
        found += coefficient
    return found


def normal_quantile(probability: float) -> float:
    """Return the quantile of the standard normal distribution.

    Examples
    --------
    >>> round(normal_quantile(0.975), 4)
    1.96
    """
    from statistics import NormalDist  # takes 10 ms

    return NormalDist().inv_cdf(probability) if probability < 1.0 else np.inf


def solve_lower(lower: Floats, right: Floats) -> Floats:
    """Return the solution x of lower @ x = right for a lower triangular matrix, by substitution.

    Examples
    --------
    >>> import numpy as np
    >>> solve_lower(np.array([[2.0, 0.0], [1.0, 4.0]]), np.array([[2.0], [9.0]]))
    array([[1.],
           [2.]])
    """
    found = np.empty(right.shape)
    for i, row in enumerate(lower):
        found[i] = (right[i] - row[:i] @ found[:i]) / row[i]
    return found
