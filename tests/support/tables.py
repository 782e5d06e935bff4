"""A table with a column of each kind and missing cells."""

import numpy as np
import pyarrow as pa

_RNG = np.random.default_rng(1)
N = 120
Y = _RNG.integers(0, 2, N)
MIXED = pa.table(
    {
        "age": pa.array(_RNG.normal(40, 10, N) + 5 * Y, mask=_RNG.random(N) < 0.1),
        "color": pa.array(np.array(["red", "green", "blue"])[_RNG.integers(0, 3, N)], mask=_RNG.random(N) < 0.1),
        "smoker": pa.array(_RNG.random(N) < 0.3 + 0.3 * Y),
        "visits": pa.array(_RNG.poisson(3, N)),
        "height": pa.array(_RNG.normal(170, 9, N) + 3 * Y),
        "weight": pa.array(_RNG.normal(70, 9, N) + 4 * Y),
        "label": pa.array(np.where(Y == 1, "ill", "well")),
    }
)
