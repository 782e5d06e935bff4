"""How good the probabilities are: BayesClassifier() against classifiers of scikit-learn on forty real tables.

It needs a virtual environment of its own, since one package of tables asks for pandas < 3:

    python3 -m venv bench/.venv && bench/.venv/bin/pip install -q -e . -r bench/requirements.txt
    apt-get install --no-install-recommends r-cran-mlbench r-cran-kernlab     (five more tables; see bench/tables.py)
    OMP_NUM_THREADS=1 taskset -c 0 bench/.venv/bin/python bench/accuracy.py [table ...] [--only METHOD] [--write]

Each row is predicted once, in 5-fold stratified cross-validation. Results are kept in bench/accuracy.json and measured
anew if the source of deciban or the version of scikit-learn has changed, or by --only METHOD, which measures nothing
else. --write puts them into bench/ACCURACY.md. One core for all lets times be compared.
"""

import argparse
import hashlib
import json
import os
import platform
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
import sklearn
from scipy.special import softmax
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import CategoricalNB, GaussianNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import deciban
import tables
from deciban import BayesClassifier

SEED = 0
FOLDS = 5
BINS = 15
LEAST = 1e-15
HERE = Path(__file__).parent
CACHE = HERE / "accuracy.json"
Result = dict[str, Any]


class MixedNB(ClassifierMixin, BaseEstimator):
    """Naive Bayes of numbers and categories by hand: GaussianNB times CategoricalNB, the prior once."""

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> Self:
        self.numbers_ = X.select_dtypes("number").columns
        self.others_ = X.columns.difference(self.numbers_)
        self.classes_, counts = np.unique(y, return_counts=True)
        self.log_prior_ = np.log(counts / counts.sum())
        if self.numbers_.size:
            self.scaler_ = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
            self.gaussian_ = GaussianNB().fit(self.scaler_.fit_transform(X[self.numbers_]), y)
        if self.others_.size:
            self.encoder_ = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1).fit(self.texts(X))
            sizes = [1 + levels.size for levels in self.encoder_.categories_]
            self.categorical_ = CategoricalNB(min_categories=sizes).fit(self.codes(X), y)
        return self

    def texts(self, X: pd.DataFrame) -> pd.DataFrame:
        return X[self.others_].astype(object).where(X[self.others_].notna(), "?").astype(str)

    def codes(self, X: pd.DataFrame) -> np.ndarray:
        """Whole numbers for the categories; 0 is a value never seen."""
        return np.asarray(self.encoder_.transform(self.texts(X)) + 1)

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        joint = np.tile(self.log_prior_, (len(X), 1))
        if self.numbers_.size:
            joint += self.gaussian_.predict_joint_log_proba(self.scaler_.transform(X[self.numbers_])) - self.log_prior_
        if self.others_.size:
            joint += self.categorical_.predict_joint_log_proba(self.codes(X)) - self.log_prior_
        return np.asarray(softmax(joint, axis=1))


def one_hot(classifier: Any) -> Pipeline:
    """The classifier after medians for missing numbers, standardised, and one column a category, "?" if missing."""
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    categories = make_pipeline(
        SimpleImputer(strategy="constant", fill_value="?"), OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    )
    columns = make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")),
        (categories, make_column_selector(dtype_include=object)),
        ("passthrough", make_column_selector(dtype_include=bool)),
    )
    return make_pipeline(columns, classifier)


def boosting() -> Pipeline:
    """Boosted trees, which know missing cells and categories by themselves."""
    typed = FunctionTransformer(lambda X: X.astype(dict.fromkeys(X.select_dtypes(object), "category")))
    return make_pipeline(typed, HistGradientBoostingClassifier(random_state=SEED))


METHODS: dict[str, Callable[[], Any]] = {
    "deciban": BayesClassifier,
    "deciban-plain": lambda: BayesClassifier(tune=None),
    "GaussianNB": lambda: one_hot(GaussianNB()),
    "MixedNB": MixedNB,
    "LDA": lambda: one_hot(LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")),
    "LogisticRegression": lambda: one_hot(LogisticRegression(max_iter=1000)),
    "DecisionTree": lambda: one_hot(DecisionTreeClassifier(min_samples_leaf=5, random_state=SEED)),
    "LinearSVC": lambda: one_hot(CalibratedClassifierCV(LinearSVC(random_state=SEED), cv=3)),
    "HistGradientBoosting": boosting,
}


def calibration_error(hit: np.ndarray, top: np.ndarray) -> float:
    """How far the top probability is from the share of hits, on average over equal bins of it."""
    bins = np.minimum((top * BINS).astype(int), BINS - 1)
    return float(np.abs(np.bincount(bins, hit - top, BINS)).sum() / hit.size)


def measure(method: str, frame: pd.DataFrame, labels: np.ndarray) -> Result:
    """The quality of predictions for rows not learned, the median time of a fit, and what was warned of."""
    classes, codes = np.unique(labels, return_inverse=True)
    folds = max(2, min(FOLDS, np.bincount(codes).min()))
    posterior = np.zeros((len(frame), classes.size))
    times = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for learned, left in StratifiedKFold(folds, shuffle=True, random_state=SEED).split(frame, codes):
            start = time.perf_counter()
            model = METHODS[method]().fit(frame.iloc[learned], labels[learned])
            times.append(time.perf_counter() - start)
            columns = np.searchsorted(classes, model.classes_)
            posterior[np.ix_(left, columns)] = model.predict_proba(frame.iloc[left])
    hit = posterior.argmax(axis=1) == codes
    return {
        "log-loss": float(0 - np.log(np.clip(posterior[np.arange(codes.size), codes], LEAST, 1)).mean()),
        "accuracy": float(hit.mean()),
        "calibration": calibration_error(hit, posterior.max(axis=1)),
        "seconds": statistics.median(times),
        "size": f"{frame.shape[0]:,} x {frame.shape[1]}, {classes.size}",
        "warnings": sorted({f"{one.category.__name__}: {one.message}" for one in caught}),
    }


def stamps() -> dict[str, str]:
    """What the results of each method hang on: the source of deciban, or the version of scikit-learn."""
    source = hashlib.sha256()
    for path in sorted(Path(deciban.__file__).parent.rglob("*.py")):
        source.update(path.read_bytes())
    ours, theirs = source.hexdigest()[:12], sklearn.__version__
    return {method: ours if method.startswith("deciban") else theirs for method in METHODS}


def measured(names: list[str], only: str | None) -> dict[str, dict[str, Result]]:
    """The results by method and table, from the cache as far as they are there and nothing has changed."""
    cache = json.loads(CACHE.read_text()) if CACHE.exists() else {}
    stamp = stamps()
    for name in names:
        frame, labels = tables.load(name)
        for method in METHODS:
            key = f"{name}/{method}"
            old = cache.get(key, {}).get("stamp") != stamp[method]
            if method == only or (old and only is None):
                result = cache[key] = measure(method, frame, labels) | {"stamp": stamp[method]}
                CACHE.write_text(json.dumps(cache, indent=0))
                numbers = " ".join(f"{what} {result[what]:.4f}" for what in ("log-loss", "accuracy", "seconds"))
                print(f"{name:14} {method:20} {numbers}", flush=True)
                if method.startswith("deciban") and result["warnings"]:
                    print("\n".join(result["warnings"]), flush=True)
    results = {method: {name: cache.get(f"{name}/{method}", {}) for name in names} for method in METHODS}
    return {
        method: found
        for method, found in results.items()
        if all(result.get("stamp") == stamp[method] for result in found.values())
    }


def ruled(head: list[str], rows: list[list[str]]) -> list[str]:
    """A table in Markdown, its numbers to the right."""
    rule = ["---"] + ["--:"] * (len(head) - 1)
    return [f"| {' | '.join(cells)} |" for cells in [head, rule, *rows]]


def summary(results: dict[str, dict[str, Result]]) -> list[str]:
    """Means over the tables, a method a row, the best rank in log-loss first."""

    def values(what: str) -> np.ndarray:
        return np.array([[result[what] for result in found.values()] for found in results.values()])

    loss, accuracy = values("log-loss"), values("accuracy")
    columns = {
        "rank in log-loss": (rankdata(loss.round(6), axis=0), "{:.2f}"),
        "log-loss": (loss, "{:.3f}"),
        "accuracy": (accuracy, "{:.4f}"),
        "rank in accuracy": (rankdata(-accuracy, axis=0), "{:.2f}"),
        "calibration error": (values("calibration"), "{:.3f}"),
        "fit, ms": (values("seconds") * 1e3, "{:.0f}"),
    }
    means = {head: [layout.format(mean) for mean in cells.mean(axis=1)] for head, (cells, layout) in columns.items()}
    rows = [[method, *cells] for method, *cells in zip(results, *means.values(), strict=True)]
    return ruled(["method", *means], sorted(rows, key=lambda row: float(row[1])))


def each(results: dict[str, dict[str, Result]], what: str, best: Callable[..., float]) -> list[str]:
    """One number for each table and method, the best of each table in bold."""
    rows = []
    for name, first in next(iter(results.values())).items():
        cells = [f"{found[name][what]:.3f}" for found in results.values()]
        top = best(cells, key=float)
        rows.append([name, first["size"], *(f"**{cell}**" if cell == top else cell for cell in cells)])
    return ruled(["table", "rows x columns, classes", *results], rows)


def report(results: dict[str, dict[str, Result]]) -> list[str]:
    """The page of results."""
    count = len(next(iter(results.values())))
    return [
        "# Accuracy",
        "",
        f"Written by `python bench/accuracy.py --write`: {count} real tables of at most {tables.MAX_ROWS:,} rows, each",
        f"row predicted once in {FOLDS}-fold stratified cross-validation, with the same folds for all (fewer where a",
        "class has fewer rows).",
        "",
        "- deciban is `BayesClassifier()`, deciban-plain is `BayesClassifier(tune=None)`; both get the table as it is.",
        "- MixedNB is GaussianNB for numbers times CategoricalNB for the rest, put together by hand.",
        "- LDA shrinks its covariance by itself (lsqr, auto), trees have five rows a leaf at least, LinearSVC is",
        "  calibrated on three folds. The rest is as scikit-learn has it.",
        "- All of scikit-learn but MixedNB and boosting get numbers standardised, their missing cells filled with the",
        '  median, and a column for each category, "?" for a missing one. Boosting gets categories and missing cells.',
        f"- Log-loss takes no probability below {LEAST:g}. The calibration error is the expected one over {BINS} equal",
        "  bins of the top probability. A fit includes the preparation of the table; its time is the median of the",
        "  folds. Ranks are 1 for the best; ties share theirs.",
        "- A few constants of tuning (shrinkages, the number of pairs and of their bins) were compared on some of",
        "  these tables while it was built: on tables never seen expect a little less.",
        f"- machine: {platform.processor() or platform.machine()}, one of {os.cpu_count()} cores, "
        f"Python {platform.python_version()}",
        f"- versions: numpy {np.__version__}, scikit-learn {sklearn.__version__}; seed {SEED}",
        "",
        "## Means over the tables",
        "",
        *summary(results),
        "",
        "## Log-loss",
        "",
        *each(results, "log-loss", min),
        "",
        "## Accuracy",
        "",
        *each(results, "accuracy", max),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", help="the tables; all if none is named")
    parser.add_argument("--only", choices=METHODS, metavar="METHOD", help=f"one of {', '.join(METHODS)}")
    parser.add_argument("--write", action="store_true", help="write bench/ACCURACY.md")
    options = parser.parse_args()
    names = tables.names()
    unknown = set(options.tables) - set(names)
    if unknown:
        parser.error(f"no table {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    results = measured([name for name in names if name in options.tables or not options.tables], options.only)
    print("\n".join(summary(results)))
    left = [method for method in METHODS if method not in results]
    if left:
        print(f"not measured on all of these tables, and left out: {', '.join(left)}")
    if options.write:
        (HERE / "ACCURACY.md").write_text("\n".join(report(results)) + "\n")


if __name__ == "__main__":
    main()
