"""A program of a user, for type checkers: mypy reads it together with `src`. It is not run.

Lines marked `type: ignore` must be errors, because mypy reports unused marks.
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.sparse
from duckdb import connect

import deciban
from deciban import BayesClassifier, Decisions, Empirical, Gaussian, Loss, MinimumRisk, decide, mean_cost, merge, scan
from deciban.dropin import GaussianNB
from deciban.plot import ReliabilityDisplay
from deciban.typing import Costs, Labels, Table


def train(X: Table, y: Labels) -> BayesClassifier:
    return BayesClassifier({"a": Gaussian(), ("b", "c"): Gaussian()}, prior=Empirical(2.0), classes=["a", "b"]).fit(
        X, y
    )


def pass_rows_of_every_kind(frame: pd.DataFrame, matrix: npt.NDArray[np.float32], path: Path) -> None:
    train(frame, frame["label"])
    train(pl.DataFrame({"a": [1.0]}), pl.Series(["no"]))
    train(pl.LazyFrame({"a": [1.0]}), "a")
    train(pa.table({"a": [1.0]}), pa.array(["no"]))
    train(matrix, np.array([0, 1]))
    train(scipy.sparse.csr_array(matrix), [0, 1])
    train({"a": [1, 2], "b": matrix[0]}, ("no", None))
    train([{"a": 1, "b": "x"}], [True])
    train([[1, 2.5, None]], ["no"])
    train(["some text", None], ["no", "yes"])
    train("rows.csv", "label")
    train(path, "label")
    train([path], "label")
    train(scan(path, missing=["?"]), "label")
    train(connect(), "label")


def pass_costs(clf: BayesClassifier, costs: Costs) -> Decisions:
    clf.threshold([[0, 1], [1, 0]])
    clf.risk("rows.csv", {("no", "yes"): 1.0})
    return clf.decide([[1]], {"no": 1, "yes": 100} if clf.target_ is None else Loss.from_costs(costs))


def use_results(clf: BayesClassifier, X: Table, y: Labels) -> npt.NDArray[np.float64]:
    print(clf.explain(X).summary(0), clf.evaluate(X, y, np.ones(1)).accuracy, clf.evidence(X, "column").columns)
    ReliabilityDisplay.from_estimator(clf, X, y)
    decide(clf.predict_proba(X), classes=clf.classes_).risk.sum()
    MinimumRisk(GaussianNB(priors=[0.5, 0.5]), {"no": 1, "yes": 2}).fit(X, y)
    mean_cost(["no"], clf.predict(X), loss={"no": 1})
    return merge([clf, "other.dcb", Path("third.dcb")]).with_prior({"no": 0.1, "yes": 0.9}).predict_proba(X)


def make_mistakes(clf: BayesClassifier) -> None:
    clf.predict(3)  # type: ignore[arg-type]
    clf.fit([1, 2], ["no", "yes"])  # type: ignore[list-item]
    clf.fit([[1], [2]], 3)  # type: ignore[arg-type]
    clf.explain([[1]], by="row")  # type: ignore[arg-type]
    clf.decide([[1]], loss=5)  # type: ignore[arg-type]
    BayesClassifier(prior="flat")  # type: ignore[arg-type]
    ReliabilityDisplay.from_estimator("model.dcb")  # type: ignore[arg-type]
    print(clf.evaluate([[1]], ["no"]).acuracy)  # type: ignore[attr-defined]
    deciban.merged([clf])  # type: ignore[attr-defined]
