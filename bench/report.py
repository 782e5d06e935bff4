"""How long a report takes and how large it is: 10, 100 and 500 columns, from counts and with rows held out.

    bench/.venv/bin/python bench/report.py > bench/REPORT.md

The time is that of `clf.report(path)` of a model that was loaded from its file, kernels compiled before; beside it, as
a measure of the machine, that of scikit-learn's GaussianNB fitting and predicting the same rows.
"""

import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.naive_bayes import GaussianNB

from deciban import BayesClassifier, load

ROWS, HELD_OUT = 20_000, 2_000
MILLION = 1_000_000


def table(rows: int, columns: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of which a fifth tell something of the class, two of them alike."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, rows)
    X = rng.normal(size=(rows, columns))
    X[:, : columns // 5] += 0.4 * y[:, None]
    X[:, 1] = X[:, 0] + 0.5 * X[:, 1]
    return X, y


def timed(call) -> tuple[float, object]:
    best, found = np.inf, None
    for _ in range(3):
        start = time.perf_counter()
        found = call()
        best = min(best, time.perf_counter() - start)
    return best, found


def line(rows: int, columns: int, tune: str | None, folder: Path) -> str:
    X, y = table(rows, columns, 0)
    new, labels = table(HELD_OUT, columns, 1)
    path = folder / "model.dcb"
    BayesClassifier(tune=tune).fit(X, y).save(path)
    clf = load(path)
    clf.report(folder / "warm.html", data=new[:50], y=labels[:50])
    alone, report = timed(lambda: clf.report(folder / "report.html"))
    with_rows, _ = timed(lambda: clf.report(folder / "rows.html", data=new, y=labels))
    peer, _ = timed(lambda: GaussianNB().fit(X, y).predict_proba(X))
    size = (folder / "report.html").stat().st_size
    form = "yes" if "what-if-data" in report.html else "no"
    kind = "tuned" if tune else "plain"
    return (
        f"| {rows:,} | {columns} | {kind} | {alone:.2f} | {with_rows:.2f} | {size / 1000:,.0f} | {form} | {peer:.2f} |"
    )


def main() -> None:
    print("# Reports\n")
    print("`bench/report.py`, best of three, seconds. Held out: 2,000 rows.\n")
    print("| rows learned | columns | model | from counts | with rows held out | kB | form | GaussianNB, same rows |")
    print("|--:|--:|---|--:|--:|--:|---|--:|")
    with tempfile.TemporaryDirectory() as name:
        for columns in (10, 100, 500):
            for tune in (None, "auto"):
                print(line(ROWS, columns, tune, Path(name)), flush=True)
        print(line(MILLION, 10, "auto", Path(name)), flush=True)


if __name__ == "__main__":
    main()
