"""The drop-in classifiers against scikit-learn's, side by side in one process on the same arrays.

    python bench/compare.py [scale] [--write]

Medians of several runs, both sides warm, results checked to agree before anything is timed. `scale` shrinks the number
of rows (0.1: a tenth); --write puts the table into bench/RESULTS.md.
"""

import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
import sklearn
from scipy import sparse
from sklearn import naive_bayes

from deciban import dropin

SEED = 0
Row = tuple[str, str, float, float, float]


def seconds(action: Callable[[], Any], runs: int) -> float:
    """The median time of `runs` runs after one that does not count."""
    action()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def tables(scale: float) -> Iterator[tuple[str, str, Any, Any, int]]:
    """(classifier, description, table, labels, runs of the peer) of each comparison."""
    rng = np.random.default_rng(SEED)
    rows = int(1_000_000 * scale)
    labels = rng.integers(0, 10, rows)
    numbers = rng.normal(size=(rows, 50)) + rng.normal(size=(10, 50))[labels]
    yield "GaussianNB", f"{rows:,} x 50, 10 classes", numbers, labels, 3
    del numbers
    codes = (rng.integers(0, 8, (rows, 20)) + labels[:, None]) % 8
    yield "CategoricalNB", f"{rows:,} x 20, 8 levels, 10 classes", codes, labels, 3
    del codes
    rows = int(200_000 * scale)
    labels = rng.integers(0, 10, rows)
    flags = (rng.random((rows, 200)) < rng.random((10, 200))[labels]).astype(np.float64)
    yield "BernoulliNB", f"{rows:,} x 200 dense, 10 classes", flags, labels, 3
    del flags
    indices = np.sort((rng.zipf(1.3, (rows, 100)) + 37 * labels[:, None]) % 50_000, axis=1).astype(np.int32).ravel()
    words = sparse.csr_array((np.ones(rows * 100), indices, np.arange(0, rows * 100 + 1, 100)), shape=(rows, 50_000))
    words.sum_duplicates()
    for name in ("MultinomialNB", "ComplementNB", "BernoulliNB"):
        yield name, f"{rows:,} x 50,000 CSR, 100 a row, 10 classes", words, labels, 3


def compare(name: str, table: Any, labels: Any, runs: int) -> Iterator[tuple[str, float, float]]:
    """(what, our seconds, their seconds), after a check that both give the same."""
    ours, theirs = getattr(dropin, name)().fit(table, labels), getattr(naive_bayes, name)().fit(table, labels)
    sample = table[:2000]
    np.testing.assert_allclose(ours.predict_proba(sample), theirs.predict_proba(sample), rtol=1e-4, atol=1e-7)
    for what in ("fit", "predict", "predict_proba"):
        arguments = (table, labels) if what == "fit" else (table,)
        mine = seconds(lambda what=what, arguments=arguments: getattr(ours, what)(*arguments), 7)
        yield what, mine, seconds(lambda what=what, arguments=arguments: getattr(theirs, what)(*arguments), runs)
    if not sparse.issparse(table):
        one = table[:1]
        each = [
            seconds(lambda clf=clf: [clf.predict_proba(one) for _ in range(200)], 9) / 200 for clf in (ours, theirs)
        ]
        yield "predict_proba of one row", each[0], each[1]


def read_pass(table: Any) -> float:
    """The time to read the same bytes once."""
    return seconds((table.data if sparse.issparse(table) else table).sum, 7)


def main(scale: float, write: bool) -> None:
    machine = f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores"
    versions = f"numpy {np.__version__}, numba {numba.__version__}, scikit-learn {sklearn.__version__}"
    lines = [
        "# Benchmark results",
        "",
        "Written by `python bench/compare.py --write`: medians, both sides warm, results checked to agree first.",
        "A pass is one `sum()` over the same bytes.",
        "",
        f"- machine: {machine}, Python {platform.python_version()}",
        f"- versions: {versions}; seed {SEED}",
        "",
        "| classifier | table | what | deciban | scikit-learn | ratio | passes |",
        "|---|---|---|---|---|---|---|",
    ]
    print("\n".join(lines))
    for name, description, table, labels, runs in tables(scale):
        read = read_pass(table)
        for what, ours, theirs in compare(name, table, labels, runs):
            unit, factor = ("µs", 1e6) if "one row" in what else ("ms", 1e3)
            passes = "" if "one row" in what else f"{ours / read:.1f}"
            line = (
                f"| {name} | {description} | {what} | {ours * factor:.1f} {unit} | {theirs * factor:.1f} {unit} | "
                f"{theirs / ours:.1f} | {passes} |"
            )
            lines.append(line)
            print(line, flush=True)
    if write:
        (Path(__file__).parent / "RESULTS.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    numbers = [float(word) for word in sys.argv[1:] if not word.startswith("-")]
    main(numbers[0] if numbers else 1.0, "--write" in sys.argv)
