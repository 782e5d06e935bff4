"""Planted drift in real tables: `compare` against the default tests of Evidently, and false alarms without drift.

    pip install -r bench/requirements.txt "pandas<3" evidently==0.7.23
    python bench/drift.py [--runs N] [--fits N] [--write]

In each run a table is split at random: 500 rows are new, the others were learned (counted by the columns and families
of one fit of BayesClassifier()). Nothing is changed, or one column of the new rows, chosen at random:

- shift: a number moves by 0.25 standard deviations.
- shares: 10 % of the cells of a category are replaced by its most frequent value.
- new value: 2 % of the cells of a category get a value that was not learned.
- missing: 2 % of the cells of any column are removed.
- prior: rows of the rarer classes are twice as likely. This is found if any column is flagged, or for
  deciban, which counts the labels of these rows too, the classes.

Methods:

- deciban: the counts of both are compared, at the level of 1 % for the whole table.
- Evidently: the default test and threshold of its DataDriftPreset for each column, without missing cells.
- SciPy: ks_2samp for numbers and chi2_contingency for categories, without missing cells, Holm at 1 %.

Accuracy: fits on half of a table; 500 of its other rows at a time, drawn as they are ("same prior") or with rows of
the rarer classes twice as likely ("other prior"). "expected" is Comparison.accuracy, "posterior" the mean largest
posterior of the classifier as it is; errors are the mean absolute differences from the true accuracy of these rows. A
sample of 500 rows differs from the true probabilities by about 0.014 to 0.018 by chance alone.
"""

import argparse
import platform
import sys
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from evidently.legacy.calculations.stattests.registry import get_stattest
from scipy.stats import chi2_contingency, ks_2samp

import tables
from deciban import BayesClassifier

HERE = Path(__file__).parent
NAMES = ["churn", "credit", "attrition"]
DRIFTS = ["none", "shift", "shares", "new value", "missing", "prior"]
NEW_ROWS = 500
LEVEL = 0.01


def is_number(column: pd.Series) -> bool:
    return bool(column.dtype.kind in "fi" and column.nunique() > 5)


def draw(y: np.ndarray, rows: np.ndarray, shifted: bool, random: np.random.Generator) -> np.ndarray:
    """NEW_ROWS of these rows; if `shifted`, those of the rarer classes are twice as likely."""
    _, codes = np.unique(y[rows], return_inverse=True)
    chance = np.where(shifted & (codes != np.bincount(codes).argmax()), 2.0, 1.0)
    return random.choice(rows, NEW_ROWS, replace=False, p=chance / chance.sum())


def plant(new: pd.DataFrame, drift: str, random: np.random.Generator) -> tuple[pd.DataFrame, str | None]:
    """The rows with this drift, and the name of the column that has it."""
    if drift in ("none", "prior"):
        return new, None
    suited = [
        name
        for name in new.columns
        if drift == "missing"
        or (is_number(new[name]) if drift == "shift" else new[name].dtype.kind not in "fib" and new[name].notna().all())
    ]
    name = str(random.choice(suited))
    cells = new[name].astype(object) if drift in ("new value", "missing") else new[name].copy()
    if drift == "shift":
        cells = cells + 0.25 * cells.std() if cells.dtype.kind == "f" else cells + max(1, round(0.25 * cells.std()))
    else:
        value = {"shares": new[name].mode()[0], "new value": "never seen", "missing": None}[drift]
        cells[random.random(len(cells)) < {"shares": 0.1}.get(drift, 0.02)] = value
    return new.assign(
        **{name: cells.astype(new[name].dtype) if drift == "missing" and new[name].dtype.kind == "f" else cells}
    ), name


def by_evidently(old: pd.DataFrame, new: pd.DataFrame) -> dict[str, bool]:
    found = {}
    for name in old.columns:
        a, b = old[name].dropna(), new[name].dropna()
        kind = "num" if is_number(old[name]) else "cat"
        if kind == "cat":
            a, b = a.astype(str), b.astype(str)
        else:
            a, b = a.astype(float), b.astype(float)
        found[name] = bool(get_stattest(a, b, kind, None)(a, b, kind, None).drifted)
    return found


def by_scipy(old: pd.DataFrame, new: pd.DataFrame) -> dict[str, bool]:
    p = {}
    for name in old.columns:
        a, b = old[name].dropna(), new[name].dropna()
        if is_number(old[name]):
            p[name] = ks_2samp(a.astype(float), b.astype(float)).pvalue
        else:
            table = pd.crosstab(
                np.repeat([0, 1], [len(a), len(b)]), np.concatenate([a.astype(str), b.astype(str)])
            ).to_numpy()
            p[name] = chi2_contingency(table).pvalue if table.shape[1] > 1 else 1.0
    order = sorted(p, key=lambda name: p[name])
    corrected = np.maximum.accumulate([p[name] * (len(p) - k) for k, name in enumerate(order)])
    return {name: bool(one <= LEVEL) for name, one in zip(order, corrected, strict=True)}


def detect(name: str, runs: int) -> dict[tuple[str, str], list[bool]]:
    X, y = tables.load(name)
    random = np.random.default_rng(1)
    clf = BayesClassifier().fit(X[::2], y[::2])
    found: dict[tuple[str, str], list[bool]] = {}
    for run in range(runs):
        for drift in DRIFTS if run < runs // 4 else DRIFTS[:1]:
            rows = draw(y, np.arange(len(y)), drift == "prior", random)
            rest = np.setdiff1d(np.arange(len(y)), rows)
            old, (new, column) = X.iloc[rest], plant(X.iloc[rows], drift, random)
            result = clf.shard(old, y[rest]).compare(clf.shard(new, y[rows]).counts_)
            methods: dict[str, Any] = {"deciban": dict(zip(result.columns, result.drifted.tolist(), strict=True))}
            methods["deciban"]["(classes)"] = result.shares_p_value <= LEVEL
            if drift != "none" or run < runs // 4:
                methods |= {"Evidently": by_evidently(old, new), "SciPy": by_scipy(old, new)}
            for method, flags in methods.items():
                found.setdefault((method, drift), []).append(flags[column] if column else any(flags.values()))
    return found


def measure(name: str, fits: int) -> dict[bool, list[tuple[float, ...]]]:
    """Accuracy true, expected, by posteriors, with new prior true and expected; False for the same prior."""
    X, y = tables.load(name)
    found: dict[bool, list[tuple[float, ...]]] = {False: [], True: []}
    for seed in range(fits):
        random = np.random.default_rng(seed)
        order = random.permutation(len(y))
        half = len(y) // 2
        clf = BayesClassifier().fit(X.iloc[order[:half]], y[order[:half]])
        for shifted in (False, True) * 4:
            rows = draw(y, order[half:], shifted, random)
            new = X.iloc[rows]
            result = clf.compare(new)
            adjusted = clf.with_prior(dict(zip(result.classes.tolist(), result.shares.tolist(), strict=True)))
            true = clf.score(new, y[rows]), adjusted.score(new, y[rows])
            mean = clf.predict_proba(new).max(axis=1).mean()
            alarm = result.shares_p_value <= LEVEL
            found[shifted].append((true[0], result.accuracy, mean, true[1], result.adjusted_accuracy, alarm))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=300, help="without drift; a quarter of them for each drift")
    parser.add_argument("--fits", type=int, default=5)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    versions = f"Evidently {version('evidently')}, SciPy {version('scipy')}, Python {platform.python_version()}"
    lines = ["# Drift", "", f"`python bench/drift.py --write`; {versions}.", ""]
    lines += [*(__doc__ or "").split("\n\n", 2)[2].strip().split("\n"), "", "## Share of runs with a finding", ""]
    lines += ["| table | method | " + " | ".join(["no drift", *DRIFTS[1:]]) + " |", "|---" * (len(DRIFTS) + 2) + "|"]
    for name in NAMES:
        found = detect(name, arguments.runs)
        for method in ("deciban", "Evidently", "SciPy"):
            cells = [f"{np.mean(found[method, drift]):.3f} ({len(found[method, drift])})" for drift in DRIFTS]
            lines.append(f"| {name} | {method} | " + " | ".join(cells) + " |")
            print(lines[-1], file=sys.stderr, flush=True)
    lines += ["", "The number of runs is in parentheses.", "", "## Accuracy without labels", ""]
    head = "table | rows | true | expected | error | posterior | error | true, new prior | expected | error"
    lines += [f"| {head} | classes flagged |"]
    lines += ["|---" * 11 + "|"]
    for name in NAMES:
        for shifted, values in measure(name, arguments.fits).items():
            t, e, m, u, a, alarm = np.array(values, dtype=float).T
            columns = [t.mean(), e.mean(), abs(e - t).mean(), m.mean(), abs(m - t).mean()]
            columns += [u.mean(), a.mean(), abs(a - u).mean(), alarm.mean()]
            cells = " | ".join(f"{one:.3f}" for one in columns)
            lines.append(f"| {name} | {'other' if shifted else 'same'} prior | {cells} |")
            print(lines[-1], file=sys.stderr, flush=True)
    text = "\n".join(lines) + "\n"
    print(text)
    if arguments.write:
        (HERE / "DRIFT.md").write_text(text)


if __name__ == "__main__":
    main()
