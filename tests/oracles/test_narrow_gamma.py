"""Gamma distributions of narrow columns, against sixty digits."""

from decimal import Decimal, localcontext

import numpy as np
import pytest

from deciban import Gamma
from tests import textbook

# Terms of Stirling's series of log gamma(k), and of its derivative: b / (n (n - 1) k^(n - 1)).
BERNOULLI = [
    (2, Decimal(1) / 6),
    (4, Decimal(-1) / 30),
    (6, Decimal(1) / 42),
    (8, Decimal(-1) / 30),
    (10, Decimal(5) / 66),
]
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459")


def _gap_of(k: Decimal) -> Decimal:
    """log(k) - digamma(k)."""
    return 1 / (2 * k) + sum(b / (n * k**n) for n, b in BERNOULLI)


def _exact(cells: np.ndarray, points: np.ndarray) -> list[float]:
    """The log densities at the points of the gamma distribution of greatest likelihood of the cells."""
    with localcontext() as context:
        context.prec = 60
        x = [Decimal(float(cell)) for cell in cells]
        mean = sum(x) / len(x)
        gap = mean.ln() - sum(cell.ln() for cell in x) / len(x)
        k = 1 / (2 * gap)
        for _ in range(60):
            k *= _gap_of(k) / gap
        log_gamma = (k - Decimal("0.5")) * k.ln() - k + (2 * PI).ln() / 2
        log_gamma += sum(b / (n * (n - 1) * k ** (n - 1)) for n, b in BERNOULLI)
        scale = mean / k
        at = [Decimal(float(point)) for point in points]
        return [float((k - 1) * a.ln() - a / scale - log_gamma - k * scale.ln()) for a in at]


@pytest.mark.parametrize("unit", [1.0, 3e-8, 7e12])
@pytest.mark.parametrize("width", [0.05, 1e-2, 1e-3, 1e-4, 1e-5, 1e-7])
def test_a_narrow_column_keeps_its_digits(width: float, unit: float) -> None:
    rng = np.random.default_rng(3)
    cells = unit * (1.0 + width * rng.normal(size=60))
    points = unit * (1.0 + width * np.array([-2.5, -1.0, 0.0, 0.3, 1.7, 4.0]))
    found = textbook(Gamma()).fit(cells[:, None], np.zeros(60, dtype=int)).evidence(points[:, None]).values[:, 0, 0]
    np.testing.assert_allclose(found, _exact(cells, points), rtol=1e-8, atol=5e-8)


def test_an_outlier_does_not_deceive_the_series() -> None:
    cells = np.concatenate([np.full(999, 5.0), [5.0 * 1.004]])
    points = np.array([4.9995, 5.0, 5.01])
    found = textbook(Gamma()).fit(cells[:, None], np.zeros(1000, dtype=int)).evidence(points[:, None]).values[:, 0, 0]
    np.testing.assert_allclose(found, _exact(cells, points), rtol=1e-6)
