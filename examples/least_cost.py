"""Savings from decisions by cost: breast cancer, where a missed tumor costs far more than a needless check.

    python examples/least_cost.py [plot.png]

Compares the out-of-fold cost of the most probable class, of a threshold tuned by cross-validation, and of the decision
of minimum expected cost, for several costs of a missed tumor. With a file name it draws them (needs matplotlib).
"""

import sys
import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import StratifiedKFold, TunedThresholdClassifierCV

from deciban import BayesClassifier, Loss, cost_scorer, mean_cost

MISSES = (1, 3, 10, 30, 100)


def compare_costs(miss: float) -> dict[str, float]:
    """Return the mean out-of-fold cost per row of each strategy, in 5-fold cross-validation."""
    X, y = load_breast_cancer(return_X_y=True)
    labels = np.where(y == 0, "malignant", "benign")
    loss = Loss.from_costs({("benign", "malignant"): miss, ("malignant", "benign"): 1.0})
    costs: dict[str, list[float]] = {"predict": [], "tuned threshold": [], "decide": [], "decide or reject": []}
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, labels):
        clf = BayesClassifier().fit(X[train], labels[train])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about thresholds of equal score
            tuned = TunedThresholdClassifierCV(BayesClassifier(), scoring=cost_scorer(loss), cv=3, random_state=0).fit(
                X[train], labels[train]
            )
        with_reject = loss.with_reject(0.3)
        decisions = clf.decide(X[test], with_reject)
        costs["predict"].append(mean_cost(labels[test], clf.predict(X[test]), loss=loss))
        costs["tuned threshold"].append(mean_cost(labels[test], tuned.predict(X[test]), loss=loss))
        costs["decide"].append(mean_cost(labels[test], clf.decide(X[test], loss).decision, loss=loss))
        costs["decide or reject"].append(mean_cost(labels[test], decisions.decision, loss=with_reject))
    return {strategy: float(np.mean(values)) for strategy, values in costs.items()}


def main(picture: str | None) -> None:
    found = {miss: compare_costs(miss) for miss in MISSES}
    strategies = list(found[MISSES[0]])
    print(f"{'cost of miss':>12}  " + "  ".join(f"{strategy:>16}" for strategy in strategies))
    for miss in MISSES:
        print(f"{miss:12g}  " + "  ".join(f"{found[miss][strategy]:16.4f}" for strategy in strategies))
    if picture is None:
        return
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    colors = ("#7f7f7f", "#E69F00", "#0072B2", "#009E73")
    for strategy, marker, color in zip(strategies, "os^D", colors, strict=True):
        costs = [found[miss][strategy] for miss in MISSES]
        axes.plot(MISSES, costs, marker=marker, color=color, markersize=5)
        axes.annotate(strategy, (MISSES[-1], costs[-1]), (8, 0), textcoords="offset points", color=color, va="center")
    axes.set(xscale="log", yscale="log", xlabel="cost of a missed tumor (a needless check costs 1)")
    axes.set_ylabel("mean cost per row (log scale)")
    axes.set_xticks(MISSES, [f"{miss:g}" for miss in MISSES])
    axes.set_yticks([0.03, 0.1, 0.3, 1], ["0.03", "0.1", "0.3", "1"])
    axes.minorticks_off()
    axes.set_title("Out-of-fold cost of four strategies", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(picture, dpi=110)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
