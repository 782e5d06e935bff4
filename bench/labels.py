"""Label errors that are planted in real tables: `label_issues` against cleanlab, which are found and in what time.

    pip install -r bench/requirements.txt cleanlab==2.9.0
    python bench/labels.py [table ...] [--seeds N] [--write]

Each label is changed with a probability of 5 or 10 %: "uniform" into any other class; "pairs" only labels of every
second class, always into the next one. Methods:

- deciban: BayesClassifier().fit(X, y).label_issues(), in the order of its probabilities.
- cleanlab: CleanLearning with its defaults (logistic regression, 5 folds, issues by prune_by_noise_rate, ranked by
  self-confidence). Numbers are standardized and categories one-hot encoded for it.
- cleanlab, same classifier: the same with BayesClassifier() instead of logistic regression.
- cleanlab, same posteriors: cleanlab's find_label_issues, given the left-out posteriors of deciban.

Precision, recall and F1 are those of the rows that a method lists. "same number" is the share of errors among the first
rows in the order of each method, as many as errors were planted: there precision and recall are equal. Times are CPU
seconds of this process. Run it with OMP_NUM_THREADS=1; --write writes bench/LABELS.md. Of each table at most 4,000 rows
are used. Results are kept in bench/.labels.
"""

import argparse
import json
import platform
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cleanlab
import numpy as np
import pandas as pd
from cleanlab.classification import CleanLearning
from cleanlab.filter import find_label_issues
from cleanlab.rank import get_label_quality_scores
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import tables
from deciban import BayesClassifier

HERE = Path(__file__).parent
CACHE = HERE / ".labels"
MAX_ROWS = 4_000
NAMES = ["letter", "satimage", "segment", "spambase", "phoneme", "churn"]
WEAK = ["contraceptive", "tae"]  # tables in which most issues are hard rows
METHODS = ("deciban", "cleanlab", "cleanlab, same classifier", "cleanlab, same posteriors")
NOISE = [(kind, rate) for kind in ("uniform", "pairs") for rate in (0.05, 0.1)]


def plant(y: np.ndarray, kind: str, rate: float, seed: int) -> np.ndarray:
    """The codes of the labels with errors."""
    random = np.random.default_rng(seed)
    classes, codes = np.unique(y, return_inverse=True)
    if kind == "uniform":
        chance, step = np.full(codes.size, rate), random.integers(1, classes.size, codes.size)
    else:
        chosen = codes % 2 == 0
        chance, step = np.where(chosen, min(rate / chosen.mean(), 0.5), 0.0), np.ones(codes.size, dtype=np.int64)
    return np.where(random.random(codes.size) < chance, (codes + step) % classes.size, codes)


def encode(X: pd.DataFrame) -> np.ndarray:
    """The matrix that logistic regression needs."""
    numbers = [name for name in X.columns if X[name].dtype.kind in "fi"]
    texts = [name for name in X.columns if name not in numbers]
    filled = X.assign(**{name: X[name].astype(object).where(X[name].notna(), "?").astype(str) for name in texts})
    hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    scaled = make_pipeline(SimpleImputer(), StandardScaler())
    return np.asarray(make_column_transformer((scaled, numbers), (hot, texts)).fit_transform(filled), dtype=np.float64)


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    found = work()
    return found, time.process_time() - start


def run(X: pd.DataFrame, y: np.ndarray) -> dict[str, tuple[np.ndarray, np.ndarray, float]]:
    """For each method the rows it lists, all rows in its order, and CPU seconds; "audit" is deciban without its fit."""
    clf, fitting = timed(lambda: BayesClassifier().fit(X, y))
    found, auditing = timed(clf.label_issues)
    every = clf.label_issues(min_probability=1e-9).rows
    results = {"deciban": (found.rows, every, fitting + auditing), "audit": (found.rows, every, auditing)}
    kwargs = {"n_jobs": 1}
    for method, classifier, matrix in ((METHODS[1], None, encode(X)), (METHODS[2], BayesClassifier(), X)):
        learning = CleanLearning(classifier, seed=0, find_label_issues_kwargs=kwargs)
        issues, seconds = timed(lambda learning=learning, matrix=matrix: learning.find_label_issues(matrix, y))
        order = np.argsort(issues["label_quality"].to_numpy(), kind="stable")
        results[method] = np.flatnonzero(issues["is_label_issue"]), order, seconds
    posterior = clf.leave_one_out().posterior
    listed, seconds = timed(lambda: np.flatnonzero(find_label_issues(y, posterior, n_jobs=1)))
    order = np.argsort(get_label_quality_scores(y, posterior), kind="stable")
    results[METHODS[3]] = listed, order, fitting + seconds
    return results


def rates(listed: np.ndarray, order: np.ndarray, wrong: np.ndarray) -> tuple[float, ...]:
    """Number of rows, precision, recall and F1; share of errors among the first rows."""
    hits, planted = float(wrong[listed].sum()), max(int(wrong.sum()), 1)
    f1 = 2 * hits / (listed.size + planted)
    return listed.size, hits / max(listed.size, 1), hits / planted, f1, float(wrong[order[:planted]].sum()) / planted


def measure(name: str, seeds: int) -> dict[str, list[Any]]:
    """For each kind of errors and method, the rates and the CPU seconds of each seed."""
    cache = CACHE / f"{name}.json"
    if cache.is_file():
        return dict(json.loads(cache.read_text()))
    X, y = tables.load(name, MAX_ROWS)
    true = np.unique(y, return_inverse=True)[1]
    found: dict[str, list[Any]] = defaultdict(list)
    for kind, rate in (("clean", 0.0), *NOISE):
        for seed in range(seeds if rate else 1):
            given = plant(y, kind, rate, seed)
            results, wrong = run(X, given), given != true
            for method, (listed, order, seconds) in results.items():
                found[f"{kind} {rate} {method}"].append((*rates(listed, order, wrong), seconds))
            print(name, kind, rate, seed, flush=True)
    CACHE.mkdir(exist_ok=True)
    cache.write_text(json.dumps(found))
    return found


def report(results: dict[str, dict[str, list[Any]]]) -> list[str]:
    def mean(names: list[str], noise: list[tuple[str, float]], method: str) -> np.ndarray:
        found = [results[name][f"{kind} {rate} {method}"] for name in names for kind, rate in noise]
        return np.mean([np.mean(one, 0) for one in found], 0)

    names, weak = [[name for name in some if name in results] for some in (NAMES, WEAK)]
    lines = [
        "# Label errors",
        "",
        f"`python bench/labels.py --write`; cleanlab {cleanlab.__version__}, Python {platform.python_version()}, "
        f"one thread, {max(len(one) for one in results[names[0]].values())} seeds.",
        "",
        *(__doc__ or "").split("\n\n", 2)[2].strip().splitlines(),
        "",
        f"## Mean over {', '.join(names)}",
        "",
        "| errors | method | listed | precision | recall | F1 | same number |",
        "|---|---|---|---|---|---|---|",
    ]
    for kind, rate in NOISE:
        for method in METHODS:
            n, *shares, _ = mean(names, [(kind, rate)], method)
            numbers = " | ".join(f"{value:.3f}" for value in shares)
            lines.append(f"| {kind}, {rate:.0%} | {method} | {n:.0f} | {numbers} |")
    lines += ["", "## Each table, mean over the four kinds of errors", ""]
    lines += ["| table | method | listed | precision | recall | F1 | same number | listed without planted errors |"]
    lines += ["|---|---|---|---|---|---|---|---|"]
    for name in (*names, *weak):
        for method in METHODS:
            n, *shares, _ = mean([name], NOISE, method)
            clean = mean([name], [("clean", 0.0)], method)[0]
            numbers = " | ".join(f"{value:.3f}" for value in shares)
            lines.append(f"| {name} | {method} | {n:.0f} | {numbers} | {clean:.0f} |")
    lines += ["", "## CPU seconds", ""]
    lines += [f"| table | {' | '.join(METHODS)} | deciban, of a fitted model |", "|---" * (len(METHODS) + 2) + "|"]
    for name in (*names, *weak):
        seconds = [mean([name], NOISE, method)[-1] for method in (*METHODS, "audit")]
        lines.append(f"| {name} | {' | '.join(f'{value:.2f}' for value in seconds)} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", default=[*NAMES, *WEAK])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    run(*(part[:200] for part in tables.load("segment")[:1]), np.arange(200) % 2)  # compiles
    lines = report({name: measure(name, options.seeds) for name in options.tables})
    print("\n".join(lines))
    if options.write:
        (HERE / "LABELS.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
