"""Prediction sets against split-conformal sets of MAPIE and crepes, with the same model and in one run.

It needs the environment of bench/accuracy.py; the tables come from packages that pip installs:

    bench/.venv/bin/python bench/sets.py [--splits 20] [--write]

Each table is split at random into rows to fit (70%) and to measure (30%), again and again. BayesClassifier learns all
rows to fit, and its sets need no others. The peers take one in five of these rows for calibration, and get a
BayesClassifier of the others. All score by the posterior of the class (called "lac" by MAPIE and "hinge" by crepes).

For tables of two classes Venn-Abers predictors are measured beside `predict_interval`, on the same left-out scores.
"""

import argparse
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from crepes import WrapClassifier
from mapie.classification import SplitConformalClassifier
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedShuffleSplit

import tables
from deciban import BayesClassifier

# Development tables that pip packages hold, of 800 to 7,000 rows.
NAMES = (
    "attrition",
    "chile",
    "churn",
    "contraceptive",
    "credit",
    "german",
    "phoneme",
    "satimage",
    "titanic",
    "vehicle",
)
MAX_ROWS = 5_000
MEASURED, CALIBRATED = 0.3, 0.2
COVERAGES = (0.8, 0.9, 0.95)
GRID = np.linspace(0.0025, 0.9975, 200)  # scores at which Venn-Abers bounds are computed
HERE = Path(__file__).parent


class Numbered(ClassifierMixin, BaseEstimator):
    """A fitted classifier that takes the numbers of rows: MAPIE tries its models on rows of zeros, not of text."""

    def __init__(self, fitted: BayesClassifier, rows: pd.DataFrame) -> None:
        self.fitted, self.rows = fitted, rows
        self.classes_, self.n_features_in_ = fitted.classes_, 1

    def fit(self, X: Any, y: Any) -> "Numbered":
        raise NotImplementedError

    def predict(self, X: Any) -> Any:
        return self.fitted.predict(self.rows.iloc[np.asarray(X, dtype=int)[:, 0]])

    def predict_proba(self, X: Any) -> Any:
        return self.fitted.predict_proba(self.rows.iloc[np.asarray(X, dtype=int)[:, 0]])


def draw(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    X, y = tables.load(name)
    kept = np.random.default_rng(0).permutation(len(X))[:MAX_ROWS]
    return X.iloc[kept].reset_index(drop=True), np.asarray(y)[kept]


def measure(members: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    """Coverage and mean size of sets."""
    return float(members[np.arange(truth.size), truth].mean()), float(members.sum(axis=1).mean())


def each_split(X: pd.DataFrame, y: np.ndarray, splits: int) -> list[dict[str, Any]]:
    found = []
    for fitted, measured in StratifiedShuffleSplit(splits, test_size=MEASURED, random_state=0).split(X, y):
        new, ours = X.iloc[measured], BayesClassifier().fit(X.iloc[fitted], y[fitted])
        truth = np.searchsorted(ours.classes_, y[measured])
        proper, calibration = next(
            StratifiedShuffleSplit(1, test_size=CALIBRATED, random_state=0).split(fitted, y[fitted])
        )
        proper, calibration = fitted[proper], fitted[calibration]
        theirs = Numbered(BayesClassifier().fit(X.iloc[proper], y[proper]), X)
        mapie = SplitConformalClassifier(theirs, confidence_level=list(COVERAGES), conformity_score="lac", prefit=True)
        mapie.conformalize(calibration[:, None], y[calibration])
        crepes = WrapClassifier(theirs)
        crepes.calibrate(calibration[:, None], y[calibration])
        line: dict[str, Any] = {}
        of_mapie = mapie.predict_set(measured[:, None])[1]
        for k, coverage in enumerate(COVERAGES):
            sets = ours.predict_set(new, coverage)
            of_crepes = crepes.predict_set(measured[:, None], labels=False, confidence=coverage, smoothing=False) == 1
            for who, members in (("deciban", sets.members), ("MAPIE", of_mapie[:, :, k]), ("crepes", of_crepes)):
                line[who, coverage] = measure(members, truth)
        strict = ours.predict_set(new, 0.9, per_class=True).members
        hits = strict[np.arange(truth.size), truth]
        line["per class"] = [hits[truth == c].mean() for c in range(ours.classes_.size)], strict.sum(axis=1).mean()
        if ours.classes_.size == 2:
            line["Venn-Abers"] = compare_intervals(ours, new, truth)
        found.append(line)
    return found


def compare_intervals(clf: BayesClassifier, new: pd.DataFrame, truth: np.ndarray) -> list[float]:
    """Log-loss of the posterior and of Venn-Abers; mean width of `predict_interval` and of Venn-Abers bounds."""
    left_out = clf.leave_one_out()
    scores, labels = left_out.posterior[:, 1], left_out.labels
    bounds = np.empty((2, GRID.size))
    for k, score in enumerate(GRID):
        for label in (0, 1):
            with_new = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
            with_new.fit(np.append(scores, score), np.append(labels, label))
            bounds[label, k] = with_new.predict([score])[0]
    posterior = clf.predict_proba(new)[:, 1]
    low, high = (np.interp(posterior, GRID, bound) for bound in bounds)
    merged = np.clip(high / (1.0 - low + high), 1e-6, 1.0 - 1e-6)
    interval = clf.predict_interval(new)
    width = float((interval.high - interval.low)[:, 1].mean())
    losses = [log_loss(truth, chances) for chances in (np.clip(posterior, 1e-6, 1.0 - 1e-6), merged)]
    return [*losses, width, float((high - low).mean())]


def report(results: dict[str, tuple[int, int, list[dict[str, Any]]]], splits: int) -> str:
    people = ("deciban", "MAPIE", "crepes")
    lines = [
        "# Prediction sets",
        "",
        f"`bench/sets.py --splits {splits} --write`: `predict_set` of `BayesClassifier()` against split-conformal sets",
        f"of MAPIE {version('mapie')} and crepes {version('crepes')} with the same model, on ten real tables, means",
        f"over {splits} random splits. deciban learns all rows to fit; the peers keep 20% of them for calibration.",
    ]
    for coverage in COVERAGES:
        lines += [
            "",
            f"## Coverage {coverage:.0%}",
            "",
            "Coverage in % (standard deviation over splits), and mean size of the sets.",
            "",
            "| table | rows | classes |" + "".join(f" {who} | size |" for who in people),
            "|---|--:|--:|" + "--:|" * 6,
        ]
        sums = []
        for name, (rows, classes, found) in results.items():
            each = np.array([[line[who, coverage] for who in people] for line in found])
            mean, spread = each.mean(axis=0), each.std(axis=0)
            sums.append(mean)
            cells = "".join(
                f" {100 * m[0]:.1f} ({100 * s[0]:.1f}) | {m[1]:.3f} |" for m, s in zip(mean, spread, strict=True)
            )
            lines.append(f"| {name} | {rows:,} | {classes} |{cells}")
        total = np.mean(sums, axis=0)
        lines.append("| **mean** | | |" + "".join(f" {100 * m[0]:.1f} | {m[1]:.3f} |" for m in total))
    lines += [
        "",
        "## Coverage 90% in each class",
        "",
        "`predict_set(X, 0.9, per_class=True)`: coverage of the classes in %, lowest and highest, and mean size.",
        "",
        "| table | lowest | highest | size |",
        "|---|--:|--:|--:|",
    ]
    for name, (_, _, found) in results.items():
        by_class = np.mean([line["per class"][0] for line in found], axis=0)
        size = np.mean([line["per class"][1] for line in found])
        lines.append(f"| {name} | {100 * by_class.min():.1f} | {100 * by_class.max():.1f} | {size:.3f} |")
    lines += [
        "",
        "## Venn-Abers bounds",
        "",
        "Tables of two classes: log-loss of the posterior and of the Venn-Abers probability (from the same left-out",
        "scores), and mean widths of the 95% `predict_interval` and of the Venn-Abers bounds.",
        "",
        "| table | log-loss | Venn-Abers | interval | Venn-Abers |",
        "|---|--:|--:|--:|--:|",
    ]
    for name, (_, classes, found) in results.items():
        if classes == 2:
            cells = np.mean([line["Venn-Abers"] for line in found], axis=0)
            lines.append(f"| {name} |" + "".join(f" {cell:.4f} |" for cell in cells))
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--write", action="store_true", help="write bench/SETS.md")
    parser.add_argument("tables", nargs="*", default=NAMES)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    results = {}
    for name in options.tables:
        X, y = draw(name)
        results[name] = len(X), np.unique(y).size, each_split(X, y, options.splits)
        print(name, flush=True)
    text = report(results, options.splits)
    print(text)
    if options.write:
        (HERE / "SETS.md").write_text(text)


if __name__ == "__main__":
    main()
