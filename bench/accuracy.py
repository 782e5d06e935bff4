"""Quality of probabilities: BayesClassifier() against its peers on a hundred real tables.

It needs a virtual environment of its own, since one package of tables asks for pandas < 3, and the tables:

    python3 -m venv bench/.venv && bench/.venv/bin/pip install -q -e . -r bench/requirements.txt
    apt-get update && bench/.venv/bin/python bench/tables.py
    OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 taskset -c 0 bench/.venv/bin/python bench/accuracy.py \\
        [table ...] [--set-aside] [--only METHOD ...] [--again] [--write]

One thread on one core for all lets times be compared. Without --set-aside the tables of development are measured, with
it those of bench/set_aside.txt. Results are kept in bench/.accuracy, one file for each table and method, and measured
anew if the source of deciban or the version of the peer's package has changed, or by --again. --only METHOD, given once
or several times, measures nothing else; several processes may run at the same time, each with its own methods. --write
puts the results that are there, of both parts, into bench/ACCURACY.md.
"""

import argparse
import hashlib
import json
import os
import platform
import signal
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from catboost import CatBoostClassifier
from interpret.glassbox import ExplainableBoostingClassifier
from lightgbm import LGBMClassifier
from scipy.special import softmax
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit
from sklearn.naive_bayes import CategoricalNB, GaussianNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

import deciban
import tables
from deciban import BayesClassifier
from reports import write_part

SEED = 0
FEW, MANY = 1_500, 10_000  # up to FEW rows five folds, up to MANY three, above one split
HELD_OUT = 0.3
SIZES = {
    "up to 2,000 rows": (0, 2_000),
    "2,000 to 20,000 rows": (2_000, 20_000),
    "more than 20,000 rows": (20_000, 1e9),
}
LARGE, WIDEST = 20_000, 1_000  # more rows and more columns than these are too much for ONE_HOT
BINS = 15
LEAST = 1e-15
PATIENCE = 20 * 60  # seconds of one fit
LEVELS = 255  # what HistGradientBoosting can tell apart in one column
HERE = Path(__file__).parent
CACHE = HERE / ".accuracy"
Result = dict[str, Any]
Results = dict[str, dict[str, Result]]  # by method and table


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
    """The classifier after medians for missing numbers, standardized, and one column a category, "?" if missing."""
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


class Categories(TransformerMixin, BaseEstimator):
    """Strings as categories, those of the rows learned; others are missing. Columns are named by their number."""

    def __init__(self, most: int | None = None) -> None:
        self.most = most

    def fit(self, X: pd.DataFrame, y: Any = None) -> Self:
        texts = X.select_dtypes(object)
        self.types_ = {
            column: pd.CategoricalDtype(sorted(texts[column].value_counts().index[: self.most])) for column in texts
        }
        return self

    def transform(self, X: pd.DataFrame) -> pd.DataFrame:
        return X.astype(self.types_).set_axis([f"x{i}" for i in range(X.shape[1])], axis=1)


class Peer(ClassifierMixin, BaseEstimator):
    """A classifier that is given whole numbers for the labels."""

    def __init__(self, make: Callable[[pd.DataFrame], Any]) -> None:
        self.make = make

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> Self:
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.model_ = self.make(X).fit(X, codes)
        return self

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        return np.asarray(self.model_.predict_proba(X))


class CatBoost(ClassifierMixin, BaseEstimator):
    """CatBoost as it is, on one thread: strings are categories, "?" if missing, flags are 0 and 1."""

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> Self:
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.model_ = CatBoostClassifier(
            verbose=0,
            thread_count=1,
            random_seed=SEED,
            allow_writing_files=False,
            cat_features=list(X.select_dtypes(object)),
        )
        self.model_.fit(self.prepared(X), codes)
        return self

    def prepared(self, X: pd.DataFrame) -> pd.DataFrame:
        return X.astype(dict.fromkeys(X.select_dtypes(bool), int)).fillna(dict.fromkeys(X.select_dtypes(object), "?"))

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        return np.asarray(self.model_.predict_proba(self.prepared(X)))


def additive(X: pd.DataFrame) -> ExplainableBoostingClassifier:
    """An explainable boosting machine as it is, on one thread; strings are categories, even those of digits."""
    types = ["nominal" if pd.api.types.is_object_dtype(dtype) else None for dtype in X.dtypes]
    return ExplainableBoostingClassifier(feature_types=types, random_state=SEED, n_jobs=1)


def boosting() -> Pipeline:
    """Boosted trees, which know missing cells and categories by themselves."""
    return make_pipeline(Categories(LEVELS), HistGradientBoostingClassifier(random_state=SEED))


def lightgbm(X: pd.DataFrame) -> Pipeline:
    return make_pipeline(Categories(), LGBMClassifier(random_state=SEED, n_jobs=1, verbose=-1))


def xgboost(X: pd.DataFrame) -> Pipeline:
    model = XGBClassifier(random_state=SEED, n_jobs=1, tree_method="hist", enable_categorical=True)
    return make_pipeline(Categories(), model)


METHODS: dict[str, Callable[[], Any]] = {
    "deciban": BayesClassifier,
    "deciban-plain": lambda: BayesClassifier(tune=None),
    "MixedNB": MixedNB,
    "LDA": lambda: one_hot(LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")),
    "LogisticRegression": lambda: one_hot(LogisticRegression(max_iter=1000)),
    "DecisionTree": lambda: one_hot(DecisionTreeClassifier(min_samples_leaf=5, random_state=SEED)),
    "HistGradientBoosting": boosting,
    "LightGBM": lambda: Peer(lightgbm),
    "XGBoost": lambda: Peer(xgboost),
    "CatBoost": CatBoost,
    "EBM": lambda: Peer(additive),
}
ONE_HOT = {"LDA", "LogisticRegression", "DecisionTree"}
PACKAGES = {"LightGBM": "lightgbm", "XGBoost": "xgboost", "CatBoost": "catboost", "EBM": "interpret-core"}


def calibration_error(hit: np.ndarray, top: np.ndarray) -> float:
    """How far the top probability is from the share of hits, on average over equal bins of it."""
    bins = np.minimum((top * BINS).astype(int), BINS - 1)
    return float(np.abs(np.bincount(bins, hit - top, BINS)).sum() / hit.size)


def splits(codes: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The rows to learn and those left out, the same for all methods."""
    if codes.size > MANY:
        return StratifiedShuffleSplit(1, test_size=HELD_OUT, random_state=SEED).split(codes, codes)
    return StratifiedKFold(5 if codes.size <= FEW else 3, shuffle=True, random_state=SEED).split(codes, codes)


def fitted(method: str, frame: pd.DataFrame, labels: np.ndarray) -> tuple[Any, float]:
    """The model and the seconds of its fit; a TimeoutError after PATIENCE."""
    expired = []

    def give_up(*_: Any) -> None:
        expired.append(True)
        raise TimeoutError

    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(PATIENCE)
    start = time.perf_counter()
    try:
        model = METHODS[method]().fit(frame, labels)
    except KeyboardInterrupt as error:  # what CatBoost makes of any signal
        raise TimeoutError if expired else error from None
    finally:
        signal.alarm(0)
    return model, time.perf_counter() - start


def measure(method: str, frame: pd.DataFrame, labels: np.ndarray) -> Result:
    """The quality of predictions for rows not learned, the median time of a fit, and what was warned of."""
    classes, codes = np.unique(labels, return_inverse=True)
    posteriors, truths, times = [], [], []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for learned, left in splits(codes):
            model, seconds = fitted(method, frame.iloc[learned], labels[learned])
            times.append(seconds)
            posterior = np.zeros((left.size, classes.size))
            posterior[:, np.searchsorted(classes, model.classes_)] = model.predict_proba(frame.iloc[left])
            posteriors.append(posterior)
            truths.append(codes[left])
    posterior, truth = np.concatenate(posteriors), np.concatenate(truths)
    hit = posterior.argmax(axis=1) == truth
    return {
        "log-loss": float(0 - np.log(np.clip(posterior[np.arange(truth.size), truth], LEAST, 1)).mean()),
        "accuracy": float(hit.mean()),
        "calibration": calibration_error(hit, posterior.max(axis=1)),
        "seconds": statistics.median(times),
        "rows": len(frame),
        "size": f"{frame.shape[0]:,} x {frame.shape[1]}, {classes.size}",
        "warnings": sorted({f"{one.category.__name__}: {one.message}" for one in caught}),
    }


def too_wide(method: str, frame: pd.DataFrame) -> bool:
    """Whether the columns of single categories would be too many for the rows."""
    texts = frame.select_dtypes(object)
    return method in ONE_HOT and len(frame) > LARGE and texts.nunique().sum() > WIDEST


def warm(method: str) -> None:
    """A fit of each kind of table before any time is taken: imports and compiled kernels are there."""
    for name in ("iris", "titanic"):
        frame, labels = tables.load(name)
        METHODS[method]().fit(frame, labels).predict_proba(frame)


@cache
def stamps() -> dict[str, str]:
    """What the results of each method hang on: the source of deciban when this began, or the version of the package."""
    source = hashlib.sha256()
    for path in sorted(Path(deciban.__file__).parent.rglob("*.py")):
        source.update(path.read_bytes())
    ours = source.hexdigest()[:12]
    return {
        method: ours if method.startswith("deciban") else version(PACKAGES.get(method, "scikit-learn"))
        for method in METHODS
    }


def cached(name: str, method: str) -> Path:
    return CACHE / name / f"{method}.json"


def known(name: str, method: str, stamp: str) -> Result | None:
    """The result that was kept, if nothing has changed since."""
    path = cached(name, method)
    result = json.loads(path.read_text()) if path.is_file() else {}
    return result if result.get("stamp") == stamp else None


def keep(name: str, method: str, result: Result) -> None:
    """Write a file under another name first, so that no one reads half of it."""
    path = cached(name, method)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(f".{os.getpid()}")
    draft.write_text(json.dumps(result, indent=0))
    draft.replace(path)


def tried(method: str, frame: pd.DataFrame, labels: np.ndarray) -> Result:
    """What was measured, or why it was not."""
    if too_wide(method, frame):
        return {"skipped": "too wide"}
    try:
        return measure(method, frame, labels)
    except TimeoutError:
        return {"skipped": f"more than {PATIENCE // 60} minutes"}


def measure_missing(names: list[str], methods: list[str], again: bool) -> None:
    """Measure what is not known yet, or all of it, and keep it."""
    stamp, warmed = stamps(), set()
    for name in names:
        wanted = [method for method in methods if again or known(name, method, stamp[method]) is None]
        if not wanted:
            continue
        frame, labels = tables.load(name)
        for method in wanted:
            if method not in warmed:
                warm(method)
                warmed.add(method)
            result = tried(method, frame, labels)
            keep(name, method, result | {"stamp": stamp[method]})
            print(f"{name:18} {method:20} {shown(result)}", flush=True)
            if method.startswith("deciban") and result.get("warnings"):
                print("\n".join(result["warnings"]), flush=True)


def shown(result: Result) -> str:
    """A result in one line."""
    if "skipped" in result:
        return f"skipped: {result['skipped']}"
    return " ".join(f"{what} {result[what]:.4f}" for what in ("log-loss", "accuracy", "seconds"))


def found(names: list[str]) -> Results:
    """The results that are known, for the methods that were tried on each of the tables."""
    results = {}
    for method, stamp in stamps().items():
        kept = {name: known(name, method, stamp) for name in names}
        if names and None not in kept.values():
            results[method] = {name: result for name, result in kept.items() if result and "skipped" not in result}
    return results


def skipped(names: list[str]) -> list[str]:
    """A line for each table that a method has skipped, with the reason."""
    kept = {(method, name): known(name, method, stamp) for method, stamp in stamps().items() for name in names}
    return [
        f"- {method} skipped {name}: {result['skipped']}."
        for (method, name), result in kept.items()
        if result and "skipped" in result
    ]


def ruled(head: list[str], rows: list[list[str]]) -> list[str]:
    """A table in Markdown, its numbers to the right."""
    rule = ["---"] + ["--:"] * (len(head) - 1)
    return [f"| {' | '.join(cells)} |" for cells in [head, rule, *rows]]


def complete(results: Results, names: list[str]) -> Results:
    """The results of the methods that have one for each of the tables."""
    return {
        method: {name: kept[name] for name in names}
        for method, kept in results.items()
        if all(name in kept for name in names)
    }


def summary(results: Results, names: list[str]) -> list[str]:
    """Means over the tables, a method a row, the best rank in log-loss first; who skipped a table is only named."""
    all_of_them = complete(results, names)

    def values(what: str) -> np.ndarray:
        return np.array([[result[what] for result in kept.values()] for kept in all_of_them.values()])

    if not all_of_them or not names:
        return ["No tables."]
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
    rows = [[method, *cells] for method, *cells in zip(all_of_them, *means.values(), strict=True)]
    lines = ruled(["method", *means], sorted(rows, key=lambda row: float(row[1])))
    left = [method for method in results if method not in all_of_them]
    return [*lines, "", f"Not shown, because they skipped tables: {', '.join(left)}."] if left else lines


def by_size(results: Results) -> dict[str, list[str]]:
    """The tables of each class of size, by its title."""
    rows = {name: result["rows"] for kept in results.values() for name, result in kept.items()}
    return {
        title: [name for name, count in rows.items() if least < count <= most] for title, (least, most) in SIZES.items()
    }


def duels(results: Results) -> list[str]:
    """deciban against each other method, on the tables that both were measured on."""
    ours, rows = results["deciban"], []
    for method, theirs in results.items():
        both = [name for name in ours if name in theirs]
        if method == "deciban" or not both:
            continue
        loss, accuracy, seconds = (
            np.array([[kept[name][what] for name in both] for kept in (ours, theirs)])
            for what in ("log-loss", "accuracy", "seconds")
        )
        rows.append(
            [
                method,
                str(len(both)),
                f"{(loss[0].round(6) < loss[1].round(6)).sum()}",
                f"{(loss[1] - loss[0]).mean():+.4f}",
                f"{np.median(loss[1] - loss[0]):+.4f}",
                f"{(accuracy[0] > accuracy[1]).sum()}",
                f"{(accuracy[0] == accuracy[1]).sum()}",
                f"{100 * (accuracy[0] - accuracy[1]).mean():+.2f}",
                f"{seconds[1].sum() / seconds[0].sum():.2f}",
                f"{np.median(seconds[1] / seconds[0]):.2f}",
            ]
        )
    head = (
        "deciban against,tables,less log-loss on,mean saving,median saving,more accurate on,as accurate on,"
        "mean gain in points,their time / ours in all,median of the ratios"
    )
    return ruled(head.split(","), rows)


def each(results: Results, what: str, best: Callable[..., float]) -> list[str]:
    """One number for each table and method, the best of each table in bold, a dash where it was skipped."""
    rows = []
    for name, size in {name: result["size"] for kept in results.values() for name, result in kept.items()}.items():
        cells = [f"{kept[name][what]:.3f}" if name in kept else "–" for kept in results.values()]
        top = best((cell for cell in cells if cell != "–"), key=float)
        rows.append([name, size, *(f"**{cell}**" if cell == top else cell for cell in cells)])
    return ruled(["table", "rows x columns, classes", *results], rows)


def part(title: str, names: list[str]) -> list[str]:
    """The section of the tables of development, or of those set aside."""
    results = found(names)
    if "deciban" not in results:
        return [f"## {title}", "", "Not measured with the source and the packages as they are."]
    sizes = by_size(results)
    lines = [
        f"## {title}: means over {len(results['deciban'])} tables",
        "",
        *summary(results, list(results["deciban"])),
    ]
    for size, some in sizes.items():
        lines += ["", f"### {title}, {size}: means over {len(some)} tables", "", *summary(results, some)]
    lines += ["", f"### {title}: deciban against each other method", "", *duels(results)]
    lines += ["", *skipped(names), "", f"### {title}: log-loss by table", "", *each(results, "log-loss", min)]
    return [*lines, "", f"### {title}: accuracy by table", "", *each(results, "accuracy", max)]


def report() -> list[str]:
    """The page of results."""
    packages = ["numpy", "scikit-learn", *PACKAGES.values()]
    return [
        "# Real tables",
        "",
        f"Written by `python bench/accuracy.py --write`: real tables, of at most {tables.MAX_ROWS:,} rows, each row",
        f"predicted by a model that has not seen it, with the same folds for all methods: up to {FEW:,} rows in five",
        f"stratified folds, up to {MANY:,} rows in three, and above in one split that holds {HELD_OUT:.0%} out.",
        "",
        "- About two thirds of the tables are for development: constants of tuning were compared on some. The",
        "  others, in `bench/set_aside.txt`, were set aside by rule before they were measured, and no constant was",
        "  chosen on them. They were evaluated four times. After the second, the rule for duplicate",
        "  rows was fixed (wine_quality), which had just been changed.",
        "- deciban is `BayesClassifier()`, deciban-plain is `BayesClassifier(tune=None)`; both get the raw table.",
        "- MixedNB is GaussianNB for numbers times CategoricalNB for the rest, combined by hand.",
        "- LDA uses automatic shrinkage (lsqr, auto), trees at least five rows per leaf. All others use the defaults",
        "  of their packages, without a parameter search.",
        "- LDA, LogisticRegression and DecisionTree get numbers standardized, their missing cells filled with the",
        '  median, and a column for each category, "?" for a missing one. They skip tables of more than',
        f"  {LARGE:,} rows where these columns are more than {WIDEST:,}: too wide. A fit of any method is stopped",
        f"  after {PATIENCE // 60} minutes.",
        "- Boosting gets flags, missing cells and categories; HistGradientBoosting the most frequent",
        f'  {LEVELS} of a column, CatBoost "?" for a missing one.',
        f"- Log-loss clips probabilities at {LEAST:g}. The expected calibration error uses {BINS} equal",
        "  bins of the top probability. A fit includes the preparation of the table; its time is the median of the",
        "  folds. Rank 1 is the best; ties share a rank. A saving is the peer's log-loss minus that of deciban.",
        f"- machine: {platform.processor() or platform.machine()}, one thread on one of {os.cpu_count()} cores, "
        f"Python {platform.python_version()}",
        f"- versions: {', '.join(f'{package} {version(package)}' for package in packages)}; seed {SEED}",
        "",
        *part("Development", tables.names("development")),
        "",
        *part("Set aside", tables.names("set aside")),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", help="the tables; all of the part if none is named")
    parser.add_argument("--set-aside", action="store_true", help="the tables set aside, not those of development")
    methods = ", ".join(METHODS)
    parser.add_argument("--only", action="append", choices=METHODS, metavar="METHOD", help=f"some of {methods}")
    parser.add_argument("--again", action="store_true", help="measure also what is known")
    parser.add_argument("--write", action="store_true", help="write bench/ACCURACY.md")
    options = parser.parse_args()
    names = tables.names("set aside" if options.set_aside else "development")
    unknown = set(options.tables) - set(names)
    if unknown:
        parser.error(f"no table {', '.join(sorted(unknown))} in this part; there are {', '.join(names)}")
    chosen = [name for name in names if name in options.tables or not options.tables]
    measure_missing(chosen, options.only or list(METHODS), options.again)
    results = found(chosen)
    print("\n".join(summary(results, chosen)))
    if "deciban" in results:
        print("\n".join(["", *duels(results)]))
    left = [method for method in METHODS if method not in results]
    if left:
        print(f"not measured on all of these tables, and left out: {', '.join(left)}")
    if options.write:
        write_part("ACCURACY.md", "accuracy.py", report())


if __name__ == "__main__":
    main()
