"""Decisions at least risk against the matrix product they rest on.

    python bench/decisions.py [rows]

The ratio is the time of `decided` (best decision, its risk, the runner-up and its risk) to that of `posterior @ loss.T`
in NumPy, on the same arrays in the same run; and to the product with `argmin`, which is what it replaces.
"""

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from deciban import Loss
from deciban.decisions.decide import least_risk_decisions


def seconds(action: Callable[[], Any]) -> float:
    action()
    times = []
    for _ in range(7):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main(rows: int) -> None:
    rng = np.random.default_rng(0)
    posterior = rng.dirichlet(np.ones(10), rows)
    matrix = rng.uniform(0, 10, (10, 10))
    np.fill_diagonal(matrix, 0.0)
    loss = Loss(matrix).for_classes(list(range(10)))
    found = least_risk_decisions(posterior, loss)
    np.testing.assert_array_equal(found.chosen, (posterior @ matrix.T).argmin(axis=1))
    ours = seconds(lambda: least_risk_decisions(posterior, loss))
    product = seconds(lambda: posterior @ matrix.T)
    whole = seconds(lambda: (posterior @ matrix.T).argmin(axis=1))
    read = seconds(posterior.sum)
    print(f"{rows:,} rows x 10 classes, 10 decisions: {ours * 1e3:.1f} ms")
    print(f"  {ours / product:.2f} times posterior @ loss.T, {ours / whole:.2f} times that with argmin")
    print(f"  {ours / read:.1f} passes over the posterior")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
