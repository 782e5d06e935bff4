"""Naive Bayes beside decision trees: where the naive assumption fails, the remedy, and where trees fail.

    python examples/trees.py [--output FOLDER] [--speed]

Data: the wine and breast cancer tables of scikit-learn, the reviews of deciban, and simulated tables. Each case is
evaluated on rows that no classifier has seen: five folds, new rows of a simulation, or all rows beyond the training
rows. The trees are scikit-learn's: with its defaults, and with the leaf size of the best cross-validated log loss.

Shown here: dependent columns, exclusive or (`JointTable`), few rows (`Pooled`), two modes, missing values and texts.
"""

from argparse import ArgumentParser
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

from deciban import BayesClassifier, Gaussian, JointGaussian, JointTable, Pooled
from deciban.datasets import reviews

GALLERY = Path(__file__).parents[1] / "docs" / "images"
NAIVE = BayesClassifier(tune=None)
TUNED = BayesClassifier()
LEAVES = {"min_samples_leaf": (1, 3, 10, 30)}
DRAWS = 20  # training sets of two rows per class


@dataclass
class Case:
    """A table, the training and test rows of each round, and a classifier that does better than naive Bayes."""

    name: str
    X: Any
    y: np.ndarray
    rounds: list[tuple[np.ndarray, np.ndarray]]
    helped: Any


def make_folds(y: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    return list(StratifiedKFold(5, shuffle=True, random_state=0).split(y, y))


def draw_rows(y: np.ndarray, per_class: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Draw a few training rows of each class, several times; all other rows are test rows."""
    rng = np.random.default_rng(0)
    drawn = [
        np.concatenate([rng.choice(np.flatnonzero(y == label), per_class, replace=False) for label in np.unique(y)])
        for _ in range(DRAWS)
    ]
    return [(train, np.setdiff1d(np.arange(len(y)), train)) for train in drawn]


def make_cases() -> Iterator[Case]:
    """Yield the tables of the comparison."""
    wine, kinds = load_wine(return_X_y=True, as_frame=True)
    kinds = kinds.to_numpy()
    yield Case("wine", wine, kinds, make_folds(kinds), TUNED)
    tumors, y = load_breast_cancer(return_X_y=True, as_frame=True)
    yield Case("correlated columns", tumors, y.to_numpy(), make_folds(y.to_numpy()), TUNED)
    rng = np.random.default_rng(0)
    halves = [(np.arange(500), np.arange(500, 2500))]
    bits = pd.DataFrame(rng.integers(0, 2, (2500, 3)), columns=["a", "b", "c"])
    xor = (bits["a"] ^ bits["b"]).to_numpy()
    pair = BayesClassifier({("a", "b"): JointTable()}, tune=None)
    yield Case("exclusive or", bits[["a", "b"]], xor, halves, pair)
    yield Case("parity of three", bits, bits.sum(axis=1).to_numpy() % 2, halves, TUNED)
    few = BayesClassifier(Gaussian(variance=Pooled()), tune=None)
    yield Case("wine, 2 rows per class", wine, kinds, draw_rows(kinds, 2), few)
    later = rng.integers(0, 2, 2500)
    modes = pd.DataFrame({"x": rng.normal(3 * later + 6 * rng.integers(0, 2, 2500), 1.0)})
    yield Case("two modes per class", modes, later, halves, TUNED)
    holes = wine.mask(rng.random(wine.shape) < 0.3)
    yield Case("wine, 30% of cells missing", holes, kinds, make_folds(kinds), TUNED)
    texts = reviews()
    verdict = np.array(texts["verdict"].to_pylist())
    yield Case("texts", np.array(texts["text"].to_pylist(), dtype=object), verdict, make_folds(verdict), TUNED)


def make_methods(case: Case, rows: np.ndarray) -> dict[str, Any]:
    """Return the classifiers to compare."""
    folds = min(3, int(np.unique(case.y[rows], return_counts=True)[1].min()))
    tree = DecisionTreeClassifier(random_state=0)
    trees = {"tree": tree, "pruned tree": GridSearchCV(tree, LEAVES, scoring="neg_log_loss", cv=folds)}
    if isinstance(case.X, np.ndarray):
        trees = {name: make_pipeline(CountVectorizer(), one) for name, one in trees.items()}
    return {"naive Bayes": NAIVE, "with remedy": case.helped, **trees}


def evaluate(case: Case) -> dict[str, tuple[float, float]]:
    """Return the mean accuracy and log loss of each method on the test rows."""
    found: dict[str, list[tuple[float, float]]] = {}
    for train, test in case.rounds:
        take = case.X.iloc if hasattr(case.X, "iloc") else case.X
        for name, method in make_methods(case, train).items():
            clf = clone(method).fit(take[train], case.y[train])
            posterior, truth = clf.predict_proba(take[test]), case.y[test]
            right = accuracy_score(truth, clf.classes_[posterior.argmax(axis=1)])
            found.setdefault(name, []).append((right, log_loss(truth, posterior, labels=clf.classes_)))
    return {name: tuple(np.mean(values, axis=0).tolist()) for name, values in found.items()}


def compare_speed(rows: int = 100_000, columns: int = 20) -> float:
    """Return the time to fit a tree divided by that of naive Bayes."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, rows)
    X = rng.normal(y[:, None] * 0.3, 1.0, (rows, columns))
    times = []
    for method in (NAIVE, DecisionTreeClassifier(min_samples_leaf=30)):
        start = perf_counter()
        clone(method).fit(X, y)
        times.append(perf_counter() - start)
    return times[1] / times[0]


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    parser = ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=GALLERY)
    parser.add_argument("--speed", action="store_true", help="compare the times of a fit, too")
    given = parser.parse_args(arguments)
    found: dict[str, Any] = {}
    for case in make_cases():
        found[case.name] = evaluate(case)
        if len(found) == 1:
            print(f"{'accuracy, log loss':26}", *(f"{name:>13}" for name in found[case.name]), sep="  ")
        numbers = (f"{right:6.1%} {loss:6.2f}" for right, loss in found[case.name].values())
        print(f"{case.name:26}", *numbers, sep="  ")
    draw(given.output / "trees.png")
    if given.speed:
        print(f"fitting a tree to 100,000 rows of 20 numbers takes {compare_speed():.0f} times as long as naive Bayes")
    return found


def draw(picture: Path) -> None:
    """Draw exclusive or in the plane, with the decision regions of three classifiers."""
    rng = np.random.default_rng(1)
    points = rng.uniform(-1, 1, (240, 2))
    kind = (points[:, 0] > 0) ^ (points[:, 1] > 0)
    side = np.linspace(-1.1, 1.1, 221)
    plane = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    methods = {
        "naive Bayes": BayesClassifier(Gaussian(), tune=None),
        "joint Gaussians": BayesClassifier(JointGaussian(), tune=None),
        "decision tree": DecisionTreeClassifier(random_state=0),
    }
    figure = Figure(figsize=(8.4, 3.4), layout="constrained")
    for axes, (name, method) in zip(figure.subplots(1, 3, sharey=True), methods.items(), strict=True):
        regions = method.fit(points, kind).predict(plane).reshape(221, 221)
        axes.pcolormesh(side, side, regions, cmap=ListedColormap(["#bfe0f5", "#f9dcb0"]), vmin=0, vmax=1)
        for value, color, marker in ((False, "#0072B2", "o"), (True, "#D55E00", "^")):
            axes.scatter(*points[kind == value].T, s=9, color=color, marker=marker)
        right = (method.predict(points) == kind).mean()
        axes.set_title(f"{name}: {right:.0%} correct", loc="left", fontsize="medium")
        axes.set(aspect="equal", xlabel="a", xticks=(-1, 0, 1), yticks=(-1, 0, 1))
    figure.axes[0].set_ylabel("b", rotation=0)
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=100)


if __name__ == "__main__":
    found = main()
