"""How much more rows help: quality, time and memory of a fit from 1,000 rows to 300,000, on large real tables.

    OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 taskset -c 0 bench/.venv/bin/python bench/learning_curves.py \\
        [table ...] [--only METHOD ...] [--sizes ROWS ...] [--catboost ROWS] [--write]

The environment and the tables are those of bench/accuracy.py. Each fit has a process of its own, which reads nothing
but the rows to learn; the rows left out, 20,000 or 30% of a smaller table, are the same for all, and those learned are
the first of one random order. CatBoost learns at most 100,000 rows, or as many as --catboost says. Results are kept in
bench/.accuracy and measured anew if the source of deciban or the version of the peer's package has changed. --write
puts those that are there into bench/ACCURACY.md and bench/learning.png.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import accuracy
import tables
from reports import write_part

NAMES = ("covertype", "census", "flights", "fars", "protein_homology")
METHODS = ("deciban", "deciban-plain", "LightGBM", "CatBoost", "HistGradientBoosting")
SIZES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000)
LEFT_OUT, SHARE = 20_000, 0.3
MOST = SIZES[-1] + LEFT_OUT
SEED = 0
HERE = Path(__file__).resolve().parent
MEASURES = {"log-loss": "log-loss", "accuracy": "accuracy", "seconds": "seconds of a fit", "memory": "peak memory, MB"}
TABLED = ("log-loss", "seconds")
Result = dict[str, Any]


def kept_as(name: str, method: str, size: int) -> tuple[str, str]:
    """Where accuracy.keep and accuracy.known have a result."""
    return f"learning curves/{name}", f"{method} {size}"


def divided(name: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows to learn, in random order, and those left out; the labels are a column."""
    frame, labels = tables.load(name, most=MOST)
    rows = np.random.default_rng(SEED).permutation(len(frame))
    frame = frame.assign(**{tables.LABEL: labels}).iloc[rows]
    left_out = min(LEFT_OUT, int(SHARE * len(frame)))
    return frame[left_out:], frame[:left_out]


def sizes_of(rows: int, wanted: list[int]) -> list[int]:
    """The sizes that the table has, all its rows the last."""
    return sorted({min(size, rows) for size in wanted})


def opened(path: str) -> tuple[pd.DataFrame, np.ndarray]:
    frame = tables.opened(Path(path))
    return frame, frame.pop(tables.LABEL).to_numpy(str)


def peak() -> float:
    """The most memory this process has had so far, in MB; ru_maxrss would count that of the process that started it."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def fit_one(method: str, learned: str, left: str) -> Result:
    """One fit, in this process, and the quality of its predictions."""
    warnings.simplefilter("ignore")
    accuracy.warm(method)
    frame, labels = opened(learned)
    before = peak()
    try:
        model, seconds = accuracy.fitted(method, frame, labels)
    except TimeoutError:
        return {"skipped": f"more than {accuracy.PATIENCE // 60} minutes"}
    memory = peak()
    frame, labels = opened(left)
    posterior = model.predict_proba(frame)
    columns = np.searchsorted(model.classes_, labels).clip(max=len(model.classes_) - 1)
    known = np.asarray(model.classes_)[columns] == labels
    truth = np.where(known, posterior[np.arange(labels.size), columns], 0)
    hit = np.asarray(model.classes_)[posterior.argmax(axis=1)] == labels
    return {
        "log-loss": float(0 - np.log(truth.clip(accuracy.LEAST, 1)).mean()),
        "accuracy": float(hit.mean()),
        "seconds": seconds,
        "memory": memory,
        "memory before": before,
    }


def measure(name: str, methods: list[str], wanted: list[int], limits: dict[str, int]) -> None:
    """Measure what is not known yet of one table, each fit in a fresh process, and keep it."""
    stamp = accuracy.stamps()
    learned, left = divided(name)
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder) / part) for part in ("learned", "left")]
        left.to_parquet(paths[1], index=False)
        for size in sizes_of(len(learned), wanted):
            learned[:size].to_parquet(paths[0], index=False)
            for method in methods:
                key = kept_as(name, method, size)
                if size > limits.get(method, MOST) or accuracy.known(*key, stamp[method]):
                    continue
                command = [sys.executable, __file__, "--one", method, *paths]
                printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
                result = json.loads(printed.splitlines()[-1])
                accuracy.keep(*key, result | {"rows": size, "stamp": stamp[method]})
                print(f"{name:18} {method:20} {size:7,} {accuracy.shown(result)}", flush=True)


def found(name: str) -> dict[str, dict[int, Result]]:
    """The results of one table that are there, by method and size."""
    curves: dict[str, dict[int, Result]] = {}
    for method, stamp in accuracy.stamps().items():
        files = (accuracy.CACHE / "learning curves" / name).glob(f"{method} *.json")
        results = [accuracy.known(*kept_as(name, method, int(file.stem.split()[-1])), stamp) for file in files]
        curve = {result["rows"]: result for result in results if result and "skipped" not in result}
        if curve:
            curves[method] = dict(sorted(curve.items()))
    return curves


def table_of(curves: dict[str, dict[int, Result]], what: str) -> list[str]:
    """One measure of one table, a method a row, a size a column."""
    sizes = sorted({size for curve in curves.values() for size in curve})
    layout = "{:.4f}" if what in ("log-loss", "accuracy") else "{:.2f}" if what == "seconds" else "{:.0f}"
    rows = [
        [method, *(layout.format(curve[size][what]) if size in curve else "–" for size in sizes)]
        for method, curve in curves.items()
    ]
    return accuracy.ruled([MEASURES[what], *(f"{size:,}" for size in sizes)], rows)


def report(curves: dict[str, dict[str, dict[int, Result]]]) -> list[str]:
    """The page of results."""
    lines = [
        "# Learning curves",
        "",
        "Written by `python bench/learning_curves.py --write`: held-out log-loss by number of training rows",
        f"left out (at most {LEFT_OUT:,}, test rows, the same for all), and fit time on one thread; the figure",
        "also shows accuracy and peak memory of the process until the fit was done, including packages and",
        "rows. Methods and settings are those above; each is warm. A dash is a fit that was not run,",
        f"or stopped after {accuracy.PATIENCE // 60} minutes.",
        "",
        f"- machine: {platform.processor() or platform.machine()}, one thread on one of {os.cpu_count()} cores, "
        f"Python {platform.python_version()}; seed {SEED}",
        "",
        "![Learning curves](learning.png)",
    ]
    for name, by_method in curves.items():
        lines += ["", f"## {name}"]
        for what in TABLED:
            lines += ["", *table_of(by_method, what)]
    return lines


def draw(curves: dict[str, dict[str, dict[int, Result]]]) -> None:
    """A column for each table, a row for each measure."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    shape = (len(MEASURES), len(curves))
    figure, axes = pyplot.subplots(
        *shape, figsize=(3.6 * shape[1], 2.7 * shape[0]), layout="constrained", squeeze=False
    )
    for column, (name, by_method) in enumerate(curves.items()):
        axes[0, column].set_title(name)
        axes[-1, column].set_xlabel("rows learned")
        for axis, what in zip(axes[:, column], MEASURES, strict=True):
            for place, method in enumerate(METHODS):
                curve = by_method.get(method, {})
                axis.plot(
                    list(curve), [result[what] for result in curve.values()], "o-", color=f"C{place}", label=method
                )
            axis.set_xscale("log")
            axis.set_yscale("linear" if what == "accuracy" else "log")
            axis.grid(alpha=0.3)
    for axis, label in zip(axes[:, 0], MEASURES.values(), strict=True):
        axis.set_ylabel(label)
    axes[0, 0].legend(fontsize="small")
    figure.savefig(HERE / "learning.png", dpi=80)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", help=f"tables of development; without, {', '.join(NAMES)}")
    parser.add_argument("--only", action="append", choices=METHODS, metavar="METHOD", help=f"of {', '.join(METHODS)}")
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES), metavar="ROWS", help="rows to learn")
    parser.add_argument("--catboost", type=int, default=100_000, metavar="ROWS", help="the most that CatBoost learns")
    parser.add_argument("--write", action="store_true", help="write into bench/ACCURACY.md, and learning.png")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(fit_one(*options.one)))
        return
    names = options.tables or list(NAMES)
    unknown = set(names) - set(tables.names("development"))
    if unknown:
        parser.error(f"no table of development: {', '.join(sorted(unknown))}")
    for name in names:
        measure(name, options.only or list(METHODS), options.sizes, {"CatBoost": options.catboost})
    curves = {name: found(name) for name in names if found(name)}
    if options.write and curves:
        write_part("ACCURACY.md", "learning_curves.py", report(curves))
        draw(curves)


if __name__ == "__main__":
    main()
