"""Time of tuning and leave-one-out compared with a plain fit, in one run on the same tables.

    python bench/tuning.py [--write]

Medians of several runs, warm. --write puts the tables into bench/SPEED.md.
"""

import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from deciban import BayesClassifier, Binned, Categorical, Gamma, Gaussian, JointGaussian, Multinomial, Pooled
from reports import write_part

ROWS = 100_000


def seconds(action: Callable[[], Any], runs: int = 5) -> float:
    action()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def tables() -> list[tuple[str, Any, np.ndarray]]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, ROWS)
    numbers = rng.normal(size=(ROWS, 30)) @ rng.normal(size=(30, 30)) + y[:, None] * rng.normal(size=30) * 0.5
    words = {f"w{j}": pd.cut(numbers[:, j], 5, labels=list("abcde")).astype(str) for j in range(15)}
    mixed = pd.DataFrame({**{f"x{j}": numbers[:, 15 + j] for j in range(15)}, **words})
    small = rng.choice(ROWS, 1000, replace=False)
    return [
        ("100,000 x 30 numbers", numbers, y),
        ("100,000 x 15 numbers + 15 text", mixed, y),
        ("1,000 x 30 numbers", numbers[small], y[small]),
    ]


def fits() -> list[str]:
    lines = ["| table | plain fit | tuned fit | ratio |", "|---|---|---|---|"]
    for name, X, y in tables():
        plain = seconds(lambda X=X, y=y: BayesClassifier(tune=None).fit(X, y))
        tuned = seconds(lambda X=X, y=y: BayesClassifier().fit(X, y))
        lines.append(f"| {name} | {plain * 1e3:.1f} ms | {tuned * 1e3:.0f} ms | {tuned / plain:.0f} |")
        print(lines[-1], flush=True)
    name, X, y = tables()[0]
    peer = seconds(lambda: LogisticRegression(max_iter=500).fit(X, y), 3)
    lines.append(f"\nscikit-learn's logistic regression takes {peer * 1e3:.0f} ms for the {name}.")
    return lines


def left_out() -> list[str]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, ROWS)
    numbers = rng.normal(size=(ROWS, 20)) + 0.3 * y[:, None]
    codes = rng.integers(0, 6, (ROWS, 20))
    lines = ["| family | predict_proba | leave_one_out | ratio |", "|---|---|---|---|"]
    for family, X in (
        (Gaussian(), numbers),
        (Categorical(), codes),
        (Binned(), numbers),
        (Multinomial(), codes),
        (JointGaussian(Pooled()), numbers),
        (JointGaussian(), numbers),
        (JointGaussian(Pooled(shrinkage=0.1)), numbers),
        (Gamma(), np.exp(numbers)),
    ):
        clf = BayesClassifier(family, tune=None).fit(X, y)
        predict = seconds(lambda clf=clf, X=X: clf.predict_proba(X))
        judged = seconds(lambda clf=clf: clf.leave_one_out(), 3)
        lines.append(f"| {family} | {predict * 1e3:.0f} ms | {judged * 1e3:.0f} ms | {judged / predict:.1f} |")
        print(lines[-1], flush=True)
    return lines


def copies() -> str:
    rng = np.random.default_rng(0)
    y = np.arange(4000) % 2
    x, test = (rng.normal(size=4000) + y for _ in range(2))
    losses = [
        log_loss(y, BayesClassifier().fit(np.repeat(x[:, None], k, 1), y).predict_proba(np.repeat(test[:, None], k, 1)))
        for k in (1, 20)
    ]
    return f"Held-out log-loss of one column {losses[0]:.5f}, of twenty copies of it {losses[1]:.5f}."


def main(write: bool) -> None:
    machine = (
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    )
    text = ["# Tuning", "", "Written by `python bench/tuning.py --write`: medians, warm.", ""]
    text += [f"- machine: {machine}; numpy {np.__version__}; seed 0", "", "## Fit", "", *fits(), ""]
    text += ["## Leave-one-out of 100,000 rows, 20 columns, 3 classes", "", *left_out(), "", copies(), ""]
    text += [
        "The target of 15 times a plain fit is met if a plain fit has work to do, and missed for a table of numbers,",
        "which a plain fit reads in two passes: tuning looks at up to 6,000 rows and some 30 candidates.",
    ]
    print("\n".join(text))
    if write:
        write_part("SPEED.md", "tuning.py", text)


if __name__ == "__main__":
    main("--write" in sys.argv)
