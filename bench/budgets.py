"""Kept time budgets: seconds asked by `max_seconds`, and seconds used.

Run `python bench/budgets.py [SECONDS...]`; --write replaces bench/BUDGETS.md. Kernels are compiled first. A fit may use
less than it is given: the "no limit" column is the time of a fit without a limit.
"""

import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from deciban import BayesClassifier
from deciban.datasets import weather

HERE = Path(__file__).parent
SECONDS = (1.0, 2.0, 5.0, 10.0, 30.0)
SHAPES = ((1_000, 10, 20), (54_000, 9, 5), (100_000, 30, 2), (300_000, 50, 20))


def make_table(rows: int, width: int, classes: int) -> tuple[pd.DataFrame, pd.Series]:
    """Return dependent numbers, and a category in every fifth column."""
    random = np.random.default_rng(0)
    y = random.integers(0, classes, rows)
    X = random.normal(size=(rows, width)) + 0.5 * random.normal(size=(classes, width))[y]
    X[:, ::3] *= 1.0 + 0.5 * X[:, 1:2]
    table = pd.DataFrame(X, columns=[f"x{k}" for k in range(width)])
    for k in range(0, width, 5):
        table[f"x{k}"] = np.array(list("abcdefghij"))[np.clip(2.0 * X[:, k] + 5.0, 0.0, 9.0).astype(int)]
    return table, pd.Series(y).map("class {}".format)


def make_texts(rows: int = 20_000, words: int = 120) -> tuple[pd.DataFrame, pd.Series]:
    """Return texts of words whose frequencies depend on the class."""
    random = np.random.default_rng(0)
    y = random.integers(0, 5, rows)
    drawn = np.minimum(random.zipf(1.3, (rows, words)), 30_000) + np.where(
        random.random((rows, words)) < 0.1, y[:, None], 0
    )
    texts = [" ".join(map("w{}".format, row)) for row in drawn.tolist()]
    return pd.DataFrame({"text": texts, "length": random.normal(size=rows) + y}), pd.Series(y).map("class {}".format)


def measure(X: pd.DataFrame, y: pd.Series, seconds: float | None) -> tuple[float, str]:
    """Return the seconds of a fit, and what was learned from how many rows."""
    start = time.monotonic()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        tuning = BayesClassifier().fit(X, y, max_seconds=seconds).tuning_
    used = time.monotonic() - start
    assert tuning is not None
    what = f"{tuning.rows:,} / {tuning.correction_rows:,}" if tuning.rows else "plain"
    return used, what + ("; warned" if warned else "")


def main(arguments: list[str]) -> None:
    asked = tuple(map(float, (one for one in arguments if not one.startswith("-")))) or SECONDS
    for shape in ((400, 5, 2), (400, 5, 3), (7_000, 5, 3)):  # compile
        measure(*make_table(*shape), None)
    measure(*make_texts(200), None)
    BayesClassifier().fit(weather(), "play")
    tables = {f"{n:,} × {w}, {k} classes": lambda n=n, w=w, k=k: make_table(n, w, k) for n, w, k in SHAPES}
    tables["20,000 texts, 5 classes"] = make_texts
    lines = [
        "| table | " + " | ".join(f"{seconds:g} s" for seconds in asked) + " | no limit |",
        "|---|" + "---|" * (len(asked) + 1),
    ]
    for name, make in tables.items():
        X, y = make()
        cells = [measure(X, y, seconds) for seconds in (*asked, None)]
        lines.append(f"| {name} | " + " | ".join(f"{used:.2f} s ({what})" for used, what in cells) + " |")
        print(lines[-1], flush=True)
    if "--write" in arguments:
        head = (HERE / "BUDGETS.md").read_text().split("\n| ")[0] + "\n" if (HERE / "BUDGETS.md").exists() else ""
        (HERE / "BUDGETS.md").write_text(head + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
