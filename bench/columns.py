"""How the time of learning and predicting grows with the number of columns, from files and from memory.

    python bench/columns.py [--write]

Processor seconds of one run each, warm; commands run in this process, from a CSV file to a model file, and from both
to a CSV file of predictions. --write puts the table into bench/COLUMNS.md.
"""

import io
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from deciban import BayesClassifier
from deciban.cli import run

COLUMNS = (100, 1_000, 10_000, 20_000)
LABEL = "label"


def seconds(action: Callable[[], Any]) -> float:
    start = time.process_time()
    action()
    return time.process_time() - start


def table(rows: int, columns: int) -> pd.DataFrame:
    """Numbers; of more than two rows, half of the columns are categories."""
    rng = np.random.default_rng(0)
    texts = columns // 2 if rows > 2 else 0
    numbers = pd.DataFrame(rng.normal(size=(rows, columns - texts)).round(4)).add_prefix("number ")
    words = pd.DataFrame(np.array(["red", "green", "blue"])[rng.integers(0, 3, (rows, texts))]).add_prefix("word ")
    label = pd.Series(np.array(["no", "yes"])[np.arange(rows) % 2], name=LABEL)
    return pd.concat([numbers, words, label], axis=1)


def command(*arguments: str) -> None:
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        code = run(arguments)
    assert code == 0, arguments


def measured(rows: int, columns: int) -> list[float]:
    """Of the commands fit and predict, of fit and predict_proba of a pandas frame, and of a NumPy array."""
    frame = table(rows, columns)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        source, model, predicted = (f"{folder}/{name}" for name in ("table.csv", "model.dcb", "predicted.csv"))
        frame.to_csv(source, index=False)
        found.append(seconds(lambda: command("fit", source, "-t", LABEL, "-o", model)))
        found.append(seconds(lambda: command("predict", model, source, "-o", predicted)))
    labels = frame.pop(LABEL).to_numpy()
    for rows_of in (frame, frame.select_dtypes("number").to_numpy()):
        clf = BayesClassifier()
        found.append(seconds(lambda clf=clf, rows_of=rows_of: clf.fit(rows_of, labels)))
        found.append(seconds(lambda clf=clf, rows_of=rows_of: clf.predict_proba(rows_of)))
    return found


def main(write: bool) -> None:
    machine = f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores"
    lines = [
        "# Columns",
        "",
        "Written by `python bench/columns.py --write`: processor seconds of one run each, warm. The commands read a",
        "CSV file and write a model file or a CSV file of predictions. Of 40 rows half of the columns are categories",
        "(the NumPy array has the other half), and more than 500 columns are tuned with one weight for all.",
        "",
        f"- machine: {machine}, Python {platform.python_version()}",
        "",
        "| rows | columns | `deciban fit` | `deciban predict` | pandas: fit | predict_proba | NumPy: fit | "
        "predict_proba |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for rows in (2, 40):
        measured(rows, COLUMNS[0])  # warm
        for columns in COLUMNS:
            cells = " | ".join(f"{value:.2f}" for value in measured(rows, columns))
            lines.append(f"| {rows} | {columns:,} | {cells} |")
            print(lines[-1], flush=True)
    if write:
        (Path(__file__).parent / "COLUMNS.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main("--write" in sys.argv)
