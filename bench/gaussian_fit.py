"""Gaussian fit against scikit-learn and against one read pass over the data, in one run.

    python bench/gaussian_fit.py [rows]

Both sides are warm, their results are checked to agree, and the median of several runs is compared.
"""

import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import sklearn
from sklearn.naive_bayes import GaussianNB

from deciban import BayesClassifier

SEED = 0


def seconds(action: Callable[[], Any], runs: int) -> float:
    """The median time of `runs` runs after one that does not count."""
    action()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main(rows: int) -> None:
    rng = np.random.default_rng(SEED)
    labels = rng.integers(0, 10, rows)
    table = rng.normal(size=(rows, 50)) + rng.normal(size=(10, 50))[labels]
    ours, theirs = BayesClassifier(), GaussianNB(var_smoothing=0)
    np.testing.assert_allclose(
        ours.fit(table, labels).predict_proba(table[:1000]),
        theirs.fit(table, labels).predict_proba(table[:1000]),
        rtol=1e-6,
        atol=1e-9,
    )
    fit = seconds(lambda: ours.fit(table, labels), 9)
    one = seconds(lambda: BayesClassifier(threads=1).fit(table, labels), 5)
    peer = seconds(lambda: theirs.fit(table, labels), 5)
    read = seconds(table.sum, 9)
    machine = f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores"
    print(f"machine   {machine}, Python {platform.python_version()}")
    print(
        f"versions  numpy {np.__version__}, numba {numba.__version__}, scikit-learn {sklearn.__version__}; seed {SEED}"
    )
    print(f"data      {rows:,} x 50 float64, 10 classes\n")
    print("| what | seconds | ratio |")
    print("|---|---|---|")
    print(f"| deciban fit, {os.cpu_count()} threads | {fit:.4f} | 1 |")
    print(f"| deciban fit, 1 thread | {one:.4f} | {one / fit:.1f} |")
    print(f"| scikit-learn GaussianNB fit | {peer:.4f} | {peer / fit:.1f} |")
    print(f"| one read pass, X.sum() | {read:.4f} | {read / fit:.2f} (fit is {fit / read:.2f} passes) |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
