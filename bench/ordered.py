"""Ordered classes against mord and scikit-lego, monotone columns against EBM and LightGBM.

    pip install -r bench/requirements.txt mord==0.7 scikit-lego==0.9.10
    OMP_NUM_THREADS=1 python bench/ordered.py [--write]

Of each table 4,000 rows are drawn (3,000 for monotone columns), in three stratified folds. All methods get the same.

Ordered: log-loss, ranked probability score (RPS) and mean absolute distance between the predicted and the true class
(MAE). Each method predicts the posterior median, except "deciban, most probable" and mord's own `predict`. For mord and
scikit-lego numbers are standardized and categories one-hot encoded.

Monotone: log-loss, ROC AUC and violations. For 200 held-out rows of the first fold each constrained column runs over 60
values from its smallest to its largest, all else being equal. A violation is a step to the next value by which the
probability of the second class moves in the wrong direction by more than 1e-9. EBM is monotonized after its fit
(`monotonize`, each term alone: pairs of features keep the constrained columns) and also fitted with
`monotone_constraints` (without such pairs); it has two outer bags instead of 14, to save time. `--write` writes
bench/ORDERED.md. Results are kept in bench/.ordered.
"""

import argparse
import copy
import json
import platform
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightgbm
import mord
import numpy as np
import pandas as pd
from interpret.glassbox import ExplainableBoostingClassifier
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklego.meta import OrdinalClassifier

import tables
from deciban import BayesClassifier

HERE = Path(__file__).parent
MAX_ROWS, MAX_MONOTONE_ROWS, FOLDS, GRID, PROBES = 4_000, 3_000, 3, 60, 200
CUTS = ["Fair", "Good", "Very Good", "Premium", "Ideal"]
ORDERED = ["wine_quality", "chemistry", "diamonds"]
MONOTONE = {
    "credit": {"Income": 1, "Seniority": 1, "Assets": 1, "Amount": -1, "Debt": -1},
    "churn": {"tenure": -1, "monthly_charges": 1},
}
Fit = Callable[[pd.DataFrame, np.ndarray], Any]


def load(name: str, rows: int = MAX_ROWS) -> tuple[pd.DataFrame, np.ndarray]:
    """The rows, and the place of the class of each in the order of the classes."""
    X, y = tables.load(name)
    order = CUTS if name == "diamonds" else sorted(set(y), key=lambda label: int(label) if label.isdigit() else label)
    places = np.array([order.index(label) for label in y])
    some = np.random.default_rng(0).permutation(len(y))[:rows]
    X, places = X.iloc[some].reset_index(drop=True), places[some]
    kept = np.isin(places, np.flatnonzero(np.bincount(places) >= FOLDS))
    return X[kept].reset_index(drop=True), np.unique(places[kept], return_inverse=True)[1]


def encoded(model: Any, X: pd.DataFrame) -> Any:
    """A pipeline with standardized numbers and one-hot encoded categories."""
    numbers = [name for name in X if X[name].dtype.kind in "fi"]
    rest = [name for name in X if name not in numbers]
    hot = OneHotEncoder(handle_unknown="ignore", min_frequency=20, sparse_output=False)
    text = make_pipeline(SimpleImputer(strategy="most_frequent"), hot)
    columns = (make_pipeline(SimpleImputer(), StandardScaler()), numbers), (text, rest)
    return make_pipeline(make_column_transformer(*columns), model)


def categories(X: pd.DataFrame, known: pd.DataFrame) -> pd.DataFrame:
    """The rows with texts as pandas categories, those of `known`."""
    of = {
        name: pd.CategoricalDtype(sorted(known[name].dropna().unique()))
        for name in known
        if known[name].dtype == object
    }
    return X.astype(of)


class Trees:
    """LightGBM with categories as it wants them, and optional constraints."""

    def __init__(self, constraints: dict[str, int] | None = None) -> None:
        self.constraints = constraints

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> "Trees":
        self.known = X
        signs = {} if self.constraints is None else {
            "monotone_constraints": [self.constraints.get(name, 0) for name in X],
            "monotone_constraints_method": "advanced",
        }  # fmt: skip
        self.model = lightgbm.LGBMClassifier(n_estimators=60, verbose=-1, n_jobs=1, **signs)
        self.model.fit(categories(X, X), y)
        return self

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        return np.asarray(self.model.predict_proba(categories(X, self.known)))


def fit_ebm(X: pd.DataFrame, y: np.ndarray, signs: dict[str, int], constrained: bool) -> Any:
    """An explainable boosting machine, free or with constraints."""
    given = {"monotone_constraints": [signs.get(name, 0) for name in X]} if constrained else {}
    return ExplainableBoostingClassifier(random_state=0, n_jobs=1, outer_bags=2, **given).fit(X, y)


def monotonize(ebm: Any, signs: dict[str, int]) -> Any:
    """A copy of a free EBM with monotone terms."""
    ebm = copy.deepcopy(ebm)
    for name, sign in signs.items():
        ebm.monotonize(name, increasing=sign > 0)
    return ebm


def median(P: np.ndarray) -> np.ndarray:
    return np.asarray((P.cumsum(axis=1) >= 0.5 - 1e-9).argmax(axis=1))


def scores(P: np.ndarray, predicted: np.ndarray, y: np.ndarray) -> list[float]:
    """Log-loss, RPS and MAE."""
    below = P.cumsum(axis=1) - (y[:, None] <= np.arange(P.shape[1]))
    log_loss = -np.log(np.maximum(P[np.arange(y.size), y], 1e-15)).mean()
    return [log_loss, (below[:, :-1] ** 2).sum(axis=1).mean(), np.abs(predicted - y).mean()]


def list_ordered_methods(X: pd.DataFrame) -> dict[str, Fit]:
    logistic = LogisticRegression(max_iter=1000)
    return {
        "deciban, ordered": lambda X, y: BayesClassifier(ordered=True).fit(X, y),
        "deciban, most probable": lambda X, y: BayesClassifier().fit(X, y),
        "mord LogisticAT": lambda X, y: encoded(mord.LogisticAT(alpha=1.0), X).fit(X, y),
        "mord LogisticIT": lambda X, y: encoded(mord.LogisticIT(alpha=1.0), X).fit(X, y),
        "scikit-lego OrdinalClassifier": lambda X, y: encoded(OrdinalClassifier(logistic), X).fit(X, y),
        "LightGBM": lambda X, y: Trees().fit(X, y),
    }


def run_ordered(name: str) -> dict[str, list[float]]:
    """Means over the folds, and CPU seconds per fit, by method."""
    X, y = load(name)
    found: dict[str, list[float]] = {}
    for method, fit in list_ordered_methods(X).items():
        lines = []
        for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y):
            start = time.process_time()
            model = fit(X.iloc[train], y[train])
            seconds = time.process_time() - start
            P = model.predict_proba(X.iloc[test])
            own = method.startswith(("deciban", "mord"))
            lines.append([*scores(P, model.predict(X.iloc[test]) if own else median(P), y[test]), seconds])
        found[method] = np.mean(lines, axis=0).tolist()
        print(name, method, np.round(found[method], 4).tolist(), flush=True)
    return found


def count_violations(model: Any, X: pd.DataFrame, signs: dict[str, int]) -> tuple[float, float]:
    """Share of the steps in the wrong direction, and the largest of them."""
    wrong, worst, steps = 0, 0.0, 0
    for name, sign in signs.items():
        values = np.linspace(X[name].min(), X[name].max(), GRID).astype(X[name].dtype)
        rows = pd.concat([X.iloc[:PROBES].assign(**{name: value}).astype({name: X[name].dtype}) for value in values])
        P = np.asarray(model.predict_proba(rows))[:, 1].reshape(GRID, -1)
        away = -sign * np.diff(P, axis=0)
        wrong, worst, steps = wrong + int((away > 1e-9).sum()), max(worst, float(away.max())), steps + away.size
    return wrong / steps, worst


def run_monotone(name: str) -> dict[str, list[float]]:
    """Log-loss, ROC AUC, share of violations, the largest one, and CPU seconds per fit, by method."""
    X, y = load(name, MAX_MONOTONE_ROWS)
    signs = MONOTONE[name]
    free: list[Any] = []  # EBM of the fold, which is monotonized next
    methods: dict[str, Fit] = {
        "deciban": lambda X, y: BayesClassifier().fit(X, y),
        "deciban, monotone": lambda X, y: BayesClassifier(monotone=signs).fit(X, y),
        "deciban, monotone, without corrections": lambda X, y: BayesClassifier(monotone=signs, tune="weights").fit(
            X, y
        ),
        "EBM": lambda X, y: free.append(fit_ebm(X, y, signs, False)) or free[-1],
        "EBM, monotonize": lambda X, y: monotonize(free[-1], signs),
        "EBM, monotone_constraints": lambda X, y: fit_ebm(X, y, signs, True),
        "LightGBM": lambda X, y: Trees().fit(X, y),
        "LightGBM, monotone_constraints": lambda X, y: Trees(signs).fit(X, y),
    }
    lines: dict[str, list[list[float]]] = {method: [] for method in methods}
    violations: dict[str, tuple[float, float]] = {}
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y):
        for method, fit in methods.items():
            start = time.process_time()
            model = fit(X.iloc[train], y[train])
            seconds = time.process_time() - start
            P = np.asarray(model.predict_proba(X.iloc[test]))
            lines[method].append([scores(P, y[test], y[test])[0], roc_auc_score(y[test], P[:, 1]), seconds])
            if method not in violations:
                violations[method] = count_violations(model, X.iloc[test], signs)
            print(name, method, np.round(lines[method][-1], 4).tolist(), violations[method], flush=True)
    means = {method: np.mean(some, axis=0).tolist() for method, some in lines.items()}
    return {method: [*means[method][:2], *violations[method], means[method][2]] for method in methods}


def measure(name: str, run: Callable[[str], dict[str, list[float]]]) -> dict[str, list[float]]:
    """The results of a table, kept in a file."""
    kept = HERE / ".ordered" / f"{name}.json"
    if not kept.is_file():
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(json.dumps(run(name)))
    return dict(json.loads(kept.read_text()))


def table(head: str, found: dict[str, dict[str, list[float]]], form: str) -> list[str]:
    lines = [head, "|---|---|" + "--:|" * (head.count("|") - 3)]
    for name, methods in found.items():
        lines += [f"| {name} | {method} | " + form.format(*values) + " |" for method, values in methods.items()]
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    BayesClassifier(ordered=True).fit(*load("wine_quality"))  # compile
    monotone = {name: measure(name, run_monotone) for name in MONOTONE}
    ordered = {name: measure(name, run_ordered) for name in ORDERED}
    text = [
        "# Ordered classes and monotone columns",
        "",
        f"`python bench/ordered.py --write`; Python {platform.python_version()}, one thread.",
        "",
        *(__doc__ or "").split("\n\n", 2)[2].strip().splitlines(),
        "",
        "## Ordered classes",
        "",
        *table("| table | method | log-loss | RPS | MAE | CPU seconds per fit |", ordered,
               "{:.4f} | {:.4f} | {:.4f} | {:.2f}"),
        "",
        "## Monotone columns",
        "",
        *table("| table | method | log-loss | ROC AUC | violations | largest | CPU seconds per fit |", monotone,
               "{:.4f} | {:.4f} | {:.1%} | {:.4f} | {:.2f}"),
        "",
    ]  # fmt: skip
    if options.write:
        (HERE / "ORDERED.md").write_text("\n".join(text))


if __name__ == "__main__":
    main()
