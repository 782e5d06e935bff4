"""BayesClassifier() against Explainable Boosting, which takes minutes for a fit, on a part of each table set aside.

    OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 taskset -c 0 bench/.venv/bin/python bench/additive.py [--most ROWS] [--write]

Of each table the first split of bench/accuracy.py is taken, and at most so many rows to learn from (2,000 without
--most), drawn from each class in proportion. Both learn the same rows, one after the other, on one thread. Tables are
taken from the smallest to the largest. What is measured is kept in bench/.additive.json; --write puts it into
bench/ADDITIVE.md.
"""

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

import accuracy
import tables

KEPT = Path(__file__).parent / ".additive.json"
METHODS = ("deciban", "EBM")


def measure(name: str, most: int) -> dict[str, Any]:
    """The figures of both on one table."""
    frame, labels = tables.load(name)
    classes, codes = np.unique(labels, return_inverse=True)
    learned, left = next(iter(accuracy.splits(codes)))
    if learned.size > most:
        learned, _ = train_test_split(learned, train_size=most, stratify=codes[learned], random_state=accuracy.SEED)
    left = left[np.isin(codes[left], codes[learned])]
    found: dict[str, Any] = {"rows": int(learned.size), "columns": frame.shape[1], "classes": int(classes.size)}
    for method in METHODS:
        model, seconds = accuracy.fitted(method, frame.iloc[learned], labels[learned])
        posterior = np.zeros((left.size, classes.size))
        posterior[:, np.searchsorted(classes, model.classes_)] = model.predict_proba(frame.iloc[left])
        hit = posterior.argmax(axis=1) == codes[left]
        chance = np.clip(posterior[np.arange(left.size), codes[left]], accuracy.LEAST, 1)
        found[method] = {
            "log-loss": float(-np.log(chance).mean()),
            "accuracy": float(hit.mean()),
            "calibration": accuracy.calibration_error(hit, posterior.max(axis=1)),
            "seconds": seconds,
        }
    return found


def report(results: dict[str, Any], most: int) -> list[str]:
    """The page of results."""

    def values(method: str, what: str) -> np.ndarray:
        return np.array([result[method][what] for result in results.values()])

    lines = [
        "# Against Explainable Boosting",
        "",
        f"Written by `python bench/additive.py --write`: {len(results)} of the tables set aside, from the smallest on,",
        f"the first split of each, at most {most:,} rows to learn from, both on the same rows, one thread each.",
        "",
        "| method | log-loss | least on | accuracy | calibration error | seconds in all |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    losses = {method: values(method, "log-loss") for method in METHODS}
    for method, other in (METHODS, METHODS[::-1]):
        means = (values(method, what).mean() for what in ("accuracy", "calibration"))
        least = int((losses[method] < losses[other]).sum())
        lines.append(
            "| {} | {:.4f} | {} | {:.4f} | {:.4f} | {:.0f} |".format(
                method, losses[method].mean(), least, *means, values(method, "seconds").sum()
            )
        )
    ratio = np.median(values("EBM", "seconds") / values("deciban", "seconds"))
    lines += ["", f"A fit of EBM takes {ratio:.0f} times as long, in the median.", ""]
    lines.append("| table | rows x columns, classes | deciban | EBM | seconds | seconds of EBM |")
    lines.append("|---|--:|--:|--:|--:|--:|")
    for name, result in results.items():
        ours, theirs = (result[method] for method in METHODS)
        size = f"{result['rows']:,} x {result['columns']}, {result['classes']}"
        lines.append(
            f"| {name} | {size} | {ours['log-loss']:.4f} | {theirs['log-loss']:.4f} | {ours['seconds']:.2f} | "
            f"{theirs['seconds']:.1f} |"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=2_000, metavar="ROWS", help="the most rows to learn from")
    parser.add_argument("--write", action="store_true", help="write bench/ADDITIVE.md")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    results = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    if not options.write:
        accuracy.warm("deciban")
        for name in sorted(tables.names("set aside"), key=lambda name: len(tables.load(name)[1])):
            if name not in results:
                results[name] = measure(name, options.most)
                KEPT.write_text(json.dumps(results, indent=0))
                print(name, results[name], flush=True)
    lines = report(results, options.most)
    print("\n".join(lines))
    if options.write:
        (Path(__file__).parent / "ADDITIVE.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
