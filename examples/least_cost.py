"""What it saves to say what mistakes cost: breast cancer, where a missed tumour is far worse than a needless check.

    python examples/least_cost.py [plot.png]

Compares, on rows held out, the cost of the most probable class, of a threshold tuned by cross-validation, and of the
decision of least risk, for several costs of a miss. With a file name it draws them (needs matplotlib).
"""

import sys
import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import StratifiedKFold, TunedThresholdClassifierCV

from deciban import BayesClassifier, Loss, cost_scorer, mean_cost

MISSES = (1, 3, 10, 30, 100)


def costs(miss: float) -> dict[str, float]:
    """The mean held-out cost of each way to decide, over repeated 5-fold cross-validation."""
    X, y = load_breast_cancer(return_X_y=True)
    labels = np.where(y == 0, "malignant", "benign")
    loss = Loss.from_costs({("benign", "malignant"): miss, ("malignant", "benign"): 1.0})
    spent: dict[str, list[float]] = {"predict": [], "tuned threshold": [], "decide": [], "decide or refer": []}
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, labels):
        clf = BayesClassifier().fit(X[train], labels[train])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about thresholds that score alike
            tuned = TunedThresholdClassifierCV(BayesClassifier(), scoring=cost_scorer(loss), cv=3, random_state=0).fit(
                X[train], labels[train]
            )
        refer = loss.with_reject(0.3)
        decisions = clf.decide(X[test], refer)
        spent["predict"].append(mean_cost(labels[test], clf.predict(X[test]), loss=loss))
        spent["tuned threshold"].append(mean_cost(labels[test], tuned.predict(X[test]), loss=loss))
        spent["decide"].append(mean_cost(labels[test], clf.decide(X[test], loss).decision, loss=loss))
        spent["decide or refer"].append(mean_cost(labels[test], decisions.decision, loss=refer))
    return {way: float(np.mean(values)) for way, values in spent.items()}


def main(picture: str | None) -> None:
    found = {miss: costs(miss) for miss in MISSES}
    ways = list(found[MISSES[0]])
    print(f"{'a miss costs':>12}  " + "  ".join(f"{way:>16}" for way in ways))
    for miss in MISSES:
        print(f"{miss:12g}  " + "  ".join(f"{found[miss][way]:16.4f}" for way in ways))
    if picture is None:
        return
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.5, 4), layout="constrained")
    axes = figure.add_subplot()
    for way, marker in zip(ways, "os^D", strict=True):
        axes.plot(MISSES, [found[miss][way] for miss in MISSES], marker=marker, label=way)
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="cost of a missed tumour (a needless check costs 1)",
        ylabel="mean cost a row",
    )
    axes.set_title("Held-out cost of three ways to decide, and of referring doubtful cases")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(picture, dpi=120)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
