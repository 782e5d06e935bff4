"""Calls that mypy accepts, and calls whose errors it must find: a comment without an error is an error too."""

import sqlite3
from pathlib import Path

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl
import pyarrow as pa
from scipy.sparse import csr_array, csr_matrix

import deciban
from deciban import BayesClassifier, Empirical, Gaussian, Loss, MinimumRisk, decide, mean_cost, merge, scan
from deciban.dropin import GaussianNB
from deciban.plot import ReliabilityDisplay
from deciban.results import Decisions
from deciban.typing import Costs, Labels, Prior, Table, Weights

FRAME = pl.DataFrame({"a": [1], "b": ["x"]})
CONNECTION = duckdb.connect()

TABLES: list[Table] = [
    *(FRAME, FRAME.lazy(), FRAME.to_arrow(), pa.table({}), pd.DataFrame(), CONNECTION.table("a")),
    *(np.ones((2, 2)), csr_array([[1]]), csr_matrix([[1]]), [[1, None, "a"]], ["a text", "another", None]),
    *({"a": [1, None], "b": ("x", "y")}, [{"a": 1, "b": None}]),
    *("a.csv", ["a.csv", "b.csv"], Path("a.csv"), [Path("a.csv")], scan("a.csv")),
    *(CONNECTION, sqlite3.connect("a.db")),
]
LABELS: list[Labels] = ["a", ["a", None], [True], np.ones(2), FRAME["a"], pd.Series(), pa.array([]), (1, 0.5)]
WEIGHTS: list[Weights] = ["a", [1, 0.5], np.ones(2), FRAME["a"], pd.Series(), pa.array([])]
COSTS: list[Costs] = [[[0, 1], [1, 0]], np.ones((2, 2)), {"no": 1}, {("no", "yes"): 1.0}, FRAME, Path("costs.csv")]
PRIORS: list[Prior] = ["uniform", [0.1, 0.9], np.ones(2), {"no": 0.1, "yes": 0.9}]


def train(X: Table, y: Labels, sample_weight: Weights) -> BayesClassifier:
    families = {"a": Gaussian(), ("b", "c"): Gaussian()}
    return BayesClassifier(families, prior=Empirical(2.0), classes=["no", "yes"]).fit(X, y, sample_weight)


def use_costs(clf: BayesClassifier, costs: Costs) -> Decisions:
    clf.threshold(costs)
    MinimumRisk(GaussianNB(priors=[0.5, 0.5]), costs).fit([[1]], ["no"])
    return clf.decide("rows.csv", {"no": 1, "yes": 100} if clf.target_ is None else Loss.from_costs(costs))


def use_results(clf: BayesClassifier, X: Table, y: Labels) -> npt.NDArray[np.float64]:
    print(clf.explain(X).summary(0), clf.evaluate(X, y, np.ones(1)).accuracy, clf.evidence(X, "column").columns)
    ReliabilityDisplay.from_estimator(clf, X, y)
    decide(clf.predict_proba(X), classes=clf.classes_).risk.sum()
    mean_cost(["no"], clf.predict(X), loss={"no": 1})
    return merge([clf, "other.dcb", Path("third.dcb")]).with_prior({"no": 0.1, "yes": 0.9}).predict_proba(X)


def make_wrong_calls(clf: BayesClassifier) -> None:
    clf.fit(FRAME, object())  # type: ignore[arg-type]
    clf.fit(object(), "b")  # type: ignore[arg-type]
    clf.fit([1, 2], ["no", "yes"])  # type: ignore[list-item]
    clf.predict(None)  # type: ignore[arg-type]
    clf.explain([[1]], by="row")  # type: ignore[arg-type]
    clf.decide([[1]], loss=5)  # type: ignore[arg-type]
    BayesClassifier(prior="flat")  # type: ignore[arg-type]
    ReliabilityDisplay.from_estimator("model.dcb")  # type: ignore[arg-type]
    print(clf.evaluate([[1]], ["no"]).acuracy)  # type: ignore[attr-defined]
    deciban.merged([clf])  # type: ignore[attr-defined]
