"""All displays of `deciban.plot` on the breast cancer, iris and weather tables: the pictures of docs/howto/plots.md.

    python examples/displays.py [--output FOLDER]

Data: the Wisconsin breast cancer and iris tables of scikit-learn, and the weather table of deciban.
"""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.model_selection import train_test_split

from deciban import BayesClassifier, JointGaussian
from deciban.datasets import weather
from deciban.plot import (
    ColumnDisplay,
    CostDisplay,
    CoverageDisplay,
    DecisionDisplay,
    DecisionMapDisplay,
    DependenceDisplay,
    EvidenceDisplay,
    ImportanceDisplay,
    LearningDisplay,
    NomogramDisplay,
    PairDisplay,
    PredictionSetDisplay,
    ReliabilityDisplay,
)

PICTURES = Path(__file__).parents[1] / "docs" / "images"
LOSS = {("benign", "malignant"): 10, ("malignant", "benign"): 1}  # a missed tumor costs ten times a needless check
FEW = ["worst area", "worst texture", "worst concave points", "mean radius", "mean texture", "worst smoothness"]


def draw_all() -> dict[str, Any]:
    """Draw each display, and return it by the name of its file."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    y = y.map({0: "malignant", 1: "benign"})
    new, truth = X[1::2], y[1::2]
    clf = BayesClassifier().fit(X[::2], y[::2])
    learned, others, labels, truths = train_test_split(X, y, test_size=0.5, random_state=0)
    plain = BayesClassifier(tune=None).fit(X[FEW][::2], y[::2])
    play = BayesClassifier(tune=None).fit(weather(), "play")
    flowers, names = load_iris(return_X_y=True, as_frame=True)
    petals = flowers[["petal length (cm)", "petal width (cm)"]]
    kinds = np.array(["setosa", "versicolor", "virginica"])[names]
    quadratic = BayesClassifier(JointGaussian(), tune=None).fit(petals, kinds)
    return {
        "evidence": EvidenceDisplay.from_estimator(clf, new, 3),
        "nomogram": NomogramDisplay.from_estimator(plain, label="malignant"),
        "column": ColumnDisplay.from_estimator(play, "outlook"),
        "pair": PairDisplay.from_estimator(play, ["outlook", "wind"]),
        "decision": DecisionDisplay.from_estimator(plain, "worst area", loss=LOSS, X=X[FEW][::2], y=y[::2]),
        "decision_map": DecisionMapDisplay.from_estimator(quadratic, X=petals, y=kinds),
        "cost": CostDisplay.from_estimator(clf, new, truth, loss=LOSS, label="malignant"),
        "coverage": CoverageDisplay.from_estimator(plain, new, truth, reject=0.1),
        "prediction_sets": PredictionSetDisplay.from_estimator(BayesClassifier().fit(learned, labels), others, truths),
        "reliability": ReliabilityDisplay.from_estimator(clf, new, truth),
        "dependence": DependenceDisplay.from_estimator(plain, kind="bars"),
        "importance": ImportanceDisplay.from_estimator(clf, max_display=12),
        "learning": LearningDisplay.from_estimator(clf, X, y),
    }


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    parser = ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=PICTURES)
    output = parser.parse_args(arguments).output
    plt.switch_backend("agg")
    displays = draw_all()
    output.mkdir(parents=True, exist_ok=True)
    for name, display in displays.items():
        display.figure_.savefig(output / f"{name}.png", dpi=100)
        plt.close(display.figure_)
    return displays


if __name__ == "__main__":
    main()
