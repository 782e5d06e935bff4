"""Fit time of the default model as a multiple of LightGBM's, with log-loss, number of tables and size of the file.

    OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 bench/.venv/bin/python bench/fits.py \\
        [table ...] [--seed N] [--repeat N] [--save FILE] [--against FILE] [--write]

One split of each of 25 development tables with 1,000 to 60,000 rows, 30% held out. Both methods run in turn in one
process on one thread; times are processor time, the minimum of the repetitions. --save keeps the results, --against
compares them with results that were kept, --write puts them into bench/SPEED.md. See bench/accuracy.py for the
environment. To measure another version, put its src on PYTHONPATH.
"""

import argparse
import json
import os
import platform
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedShuffleSplit

import accuracy
import tables
from reports import write_part

TABLES = [
    *("german", "titanic", "attrition", "contraceptive", "segment", "chess", "hpc", "credit", "spambase", "phoneme"),
    *("satimage", "churn", "penbased", "shoppers", "magic", "wife_insurance", "crashes", "krkopt", "adult", "bank"),
    *("electricity", "diamonds", "movies", "flights", "covertype"),
]
MIN_SECONDS = 1e-9
Result = dict[str, Any]


def measure(method: str, frame: pd.DataFrame, labels: np.ndarray, seed: int, repeat: int) -> Result:
    """Return held-out quality, and the processor time of a fit and of a prediction."""
    split = StratifiedShuffleSplit(1, test_size=accuracy.HELD_OUT, random_state=seed)
    learned, left = next(split.split(labels, labels))
    classes, codes = np.unique(labels, return_inverse=True)
    fits, predictions = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(repeat):
            start = time.process_time()
            model = accuracy.METHODS[method]().fit(frame.iloc[learned], labels[learned])
            fits.append(time.process_time() - start)
        start = time.process_time()
        found = model.predict_proba(frame.iloc[left])
        predictions.append(time.process_time() - start)
    posterior = np.zeros((left.size, classes.size))
    posterior[:, np.searchsorted(classes, model.classes_)] = found
    hit = posterior.argmax(axis=1) == codes[left]
    own = posterior[np.arange(left.size), codes[left]]
    result = {
        "log-loss": float(0 - np.log(np.clip(own, accuracy.LEAST, 1)).mean()),
        "accuracy": float(hit.mean()),
        "calibration": accuracy.calibration_error(hit, posterior.max(axis=1)),
        "fit": min(fits),
        "predict": min(predictions),
    }
    if method == "deciban":
        corrections = model.tuning_.corrections
        with tempfile.TemporaryDirectory() as folder:
            model.save(file := Path(folder) / "model.dcb")
            size = file.stat().st_size
        result |= {
            "claim": model.tuning_.log_loss,
            "tables": 0 if corrections is None else len(corrections.tests),
            "megabytes": size / 1e6,
        }
    return result


def compare(names: list[str], seed: int, repeat: int) -> dict[str, dict[str, Result]]:
    found: dict[str, dict[str, Result]] = {}
    for method in ("deciban", "LightGBM"):
        accuracy.warm(method)
    for name in names:
        frame, labels = tables.load(name)
        found[name] = {method: measure(method, frame, labels, seed, repeat) for method in ("deciban", "LightGBM")}
        found[name]["size"] = f"{len(frame):,} x {frame.shape[1]}, {np.unique(labels).size}"
        ours, theirs = found[name]["deciban"], found[name]["LightGBM"]
        print(
            f"{name:15} {found[name]['size']:>18}  log-loss {ours['log-loss']:.4f} (claim {ours['claim']:.4f}, "
            f"LightGBM {theirs['log-loss']:.4f})  fit {ours['fit']:6.2f} s, {ours['fit'] / theirs['fit']:5.2f} x "
            f"LightGBM  {ours['tables']:4} tables {ours['megabytes']:.2f} MB",
            flush=True,
        )
    return found


def summarize(found: dict[str, dict[str, Result]], before: dict[str, dict[str, Result]] | None) -> list[str]:
    """Return the lines of the summary."""
    ours, theirs = ([one[method] for one in found.values()] for method in ("deciban", "LightGBM"))
    ratios = np.array([a["fit"] / b["fit"] for a, b in zip(ours, theirs, strict=True)])
    mean = {key: np.mean([one[key] for one in ours]) for key in ("log-loss", "accuracy", "calibration")}
    claims = np.array([one["claim"] / max(one["log-loss"], MIN_SECONDS) - 1.0 for one in ours])
    lines = [
        f"{len(found)} tables: mean log-loss {mean['log-loss']:.4f}, accuracy {mean['accuracy']:.4f}, calibration "
        f"error {mean['calibration']:.4f} (LightGBM {np.mean([one['log-loss'] for one in theirs]):.4f}, "
        f"{np.mean([one['accuracy'] for one in theirs]):.4f}, {np.mean([one['calibration'] for one in theirs]):.4f}).",
        f"Fit time as a multiple of LightGBM's: median {np.median(ratios):.2f}, mean {ratios.mean():.2f}, maximum "
        f"{ratios.max():.2f} ({list(found)[int(ratios.argmax())]}); all together "
        f"{sum(one['fit'] for one in ours) / sum(one['fit'] for one in theirs):.2f}.",
        f"Correction tables: median {np.median([one['tables'] for one in ours]):.0f}, maximum "
        f"{max(one['tables'] for one in ours)}; model file: median "
        f"{np.median([one['megabytes'] for one in ours]):.2f} MB, maximum "
        f"{max(one['megabytes'] for one in ours):.2f} MB.",
        f"Cross-validated log-loss of the tuning against held-out rows: mean {100 * claims.mean():+.2f}%, median "
        f"{100 * np.median(claims):+.2f}%.",
    ]
    if before is not None:
        names = [name for name in found if name in before]
        old = [before[name]["deciban"] for name in names]
        change = np.array(
            [found[name]["deciban"]["log-loss"] / before[name]["deciban"]["log-loss"] - 1 for name in names]
        )
        worst = np.argsort(-change)
        moved = ", ".join(f"{names[k]} {100 * change[k]:+.1f}%" for k in [*worst[:4], *worst[-4:]])
        now = np.mean([found[name]["deciban"]["log-loss"] for name in names])
        times = np.array([before[name]["deciban"]["fit"] / before[name]["LightGBM"]["fit"] for name in names])
        lines.append(
            f"Before: mean log-loss {np.mean([one['log-loss'] for one in old]):.4f} (now {now:.4f}), relative change: "
            f"mean {100 * change.mean():+.2f}%, median {100 * np.median(change):+.2f}%, better on {(change < 0).sum()} "
            f"of {len(names)} ({moved}); fit time {np.median(times):.2f} x LightGBM (median), {times.max():.2f} "
            f"(maximum); tables {np.median([one['tables'] for one in old]):.0f} (median)."
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("tables", nargs="*")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--save", type=Path)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    found = compare(given.tables or TABLES, given.seed, given.repeat)
    before = json.loads(given.against.read_text()) if given.against else None
    lines = summarize(found, before)
    print("\n".join(lines))
    if given.save:
        given.save.write_text(json.dumps(found, indent=1))
    if given.write:
        head = "| table | rows x columns, classes | log-loss | LightGBM | fit, s | fit / LightGBM | tables | file, MB |"
        rows = [
            f"| {name} | {one['size']} | {one['deciban']['log-loss']:.4f} | {one['LightGBM']['log-loss']:.4f} | "
            f"{one['deciban']['fit']:.2f} | {one['deciban']['fit'] / one['LightGBM']['fit']:.2f} | "
            f"{one['deciban']['tables']} | {one['deciban']['megabytes']:.2f} |"
            for name, one in found.items()
        ]
        machine = (
            f"- machine: {platform.machine()}, one thread of {os.cpu_count()} cores, Python {platform.python_version()}"
        )
        text = ["# Fit of the default model", "", "Written by `python bench/fits.py --write`: one split of each table,"]
        text += ["30% held out, processor time of one thread, both methods in one run.", "", machine, "", *lines, ""]
        text += [head, "|---|---|--:|--:|--:|--:|--:|--:|", *rows]
        write_part("SPEED.md", "fits.py", text)


if __name__ == "__main__":
    main()
