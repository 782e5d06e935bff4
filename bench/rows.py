"""Scoring time of the default model: one row, and 100,000 rows against LightGBM in the same run.

    OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 bench/.venv/bin/python bench/rows.py [--write]

One thread, minimum of many runs, results checked to agree before anything is timed. --write puts the results into
bench/SPEED.md. See bench/accuracy.py for the environment.
"""

import platform
import sys
import time
from typing import Any

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier

import compare
from deciban import BayesClassifier
from reports import write_part

SEED = 0
LEARNED, SCORED, COLUMNS = 20_000, 100_000, 30
SECONDS = 1.0  # time spent on each measurement


def minimum(clf: Any, table: Any) -> float:
    """Return the processor time of a prediction: the fastest of many runs, of 100 predictions each for one row."""
    repeat = 100 if len(table) == 1 else 1
    clf.predict_proba(table)
    least, end = np.inf, time.perf_counter() + SECONDS
    while time.perf_counter() < end or least == np.inf:
        start = time.process_time()
        for _ in range(repeat):
            clf.predict_proba(table)
        least = min(least, (time.process_time() - start) / repeat)
    return float(least)


def draw(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of numbers, a fifth of them positive or whole, and labels that depend on products of columns."""
    rng = np.random.default_rng(SEED)
    X = rng.normal(size=(rows, COLUMNS))
    odds = X[:, 0] + X[:, 1] * X[:, 2] - X[:, 3] ** 2 + 0.5 * X[:, 4:12].sum(axis=1) + 1.0
    X[:, ::10], X[:, 5::10] = np.exp(X[:, ::10]), np.round(3.0 * np.abs(X[:, 5::10]))
    return X, (rng.random(rows) < 1.0 / (1.0 + np.exp(-odds))).astype(np.int64)


def main(write: bool) -> None:
    X, labels = draw(LEARNED + SCORED)
    ours = BayesClassifier(threads=1).fit(X[:LEARNED], labels[:LEARNED])
    named = pd.DataFrame(X, columns=[f"c{j}" for j in range(COLUMNS)])
    by_name = BayesClassifier(threads=1).fit(named[:LEARNED], labels[:LEARNED])
    peer = LGBMClassifier(n_jobs=1, verbose=-1).fit(X[:LEARNED], labels[:LEARNED])
    corrections = ours.tuning_.corrections
    tables = 0 if corrections is None else len(corrections.tests)
    X, named = X[LEARNED:], named[LEARNED:]
    cases = {
        "one row, array": (ours, X[:1].copy()),
        "one row, list with one dict": (by_name, named[:1].to_dict("records")),
        "one row, DataFrame": (by_name, named[:1]),
        f"{SCORED:,} rows, array": (ours, X),
        f"{SCORED:,} rows, DataFrame": (by_name, named),
    }
    expected = ours.predict_proba(X[:1000])[:1]
    for clf, table in cases.values():
        np.testing.assert_array_equal(clf.predict_proba(table)[:1], expected)
    quality = [float((clf.predict(X) == labels[LEARNED:]).mean()) for clf in (ours, peer)]
    lines = [
        "# Scoring by the default model",
        "",
        "Written by `python bench/rows.py --write`: processor time of `predict_proba` on one thread, minimum.",
        f"{COLUMNS} columns of numbers, 2 classes, {LEARNED:,} training rows, {tables} correction tables; accuracy "
        f"{quality[0]:.3f}, LightGBM {quality[1]:.3f}.",
        "",
        f"- machine: {platform.processor() or platform.machine()}, Python {platform.python_version()}",
        "",
        "| what | deciban | LightGBM | ratio |",
        "|---|---|---|---|",
    ]
    for what, (clf, table) in cases.items():
        mine, theirs = minimum(clf, table), minimum(peer, table) if clf is ours else None
        unit, factor = ("µs", 1e6) if len(table) == 1 else ("ms", 1e3)
        shown = ("", "") if theirs is None else (f"{theirs * factor:.1f} {unit}", f"{theirs / mine:.1f}")
        lines.append(f"| {what} | {mine * factor:.1f} {unit} | {shown[0]} | {shown[1]} |")
    mine, _ = compare.one_mixed_row()
    lines.append(f"| one row, array, plain Bayes of 5 Gaussian and 5 categorical columns | {mine * 1e6:.1f} µs |  |  |")
    print("\n".join(lines))
    if write:
        write_part("SPEED.md", "rows.py", lines)


if __name__ == "__main__":
    main("--write" in sys.argv)
