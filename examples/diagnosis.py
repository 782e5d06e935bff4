"""Screening for breast cancer
===========================

A positive test: how probable is the disease, and which strategy is cheapest? The program shows
natural frequencies first. A second test is worth less than its error rates suggest if it errs on the
same patients as the first. Then it compares the costs of several strategies. A case can be left open
at the cost of a second test.

::

    python examples/diagnosis.py [--output FOLDER]

The data are the Wisconsin breast cancer table of scikit-learn (UCI, CC BY 4.0; W. Wolberg, N. Street,
O. Mangasarian, 1995): 569 tumors, 37% of them malignant. In the screening, only 1 in 100 patients is
ill. All results are out-of-fold (five folds), with the ill weighted as 1 in 100.

**What to learn:** natural frequencies (``bayes``), dependent tests, another prior (``with_prior``),
costs (``Loss``, ``decide``), and the cost of a reject option.
"""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import StratifiedKFold

from deciban import BayesClassifier, Loss, bayes, decide, mean_cost

# %%
# Two tests
# ---------
# The first test uses size and texture of the cells, the second test ten measurements at their worst. A test is positive
# if P(ill) is above the prior.

ILL = 0.01  # share of screened patients who are ill
FIRST_TEST = ["mean radius", "mean texture"]


def predict_out_of_fold(columns: pd.DataFrame, truth: np.ndarray) -> np.ndarray:
    """Return P(ill) and P(well) of every row in the screening, from a fit without its fold."""
    posterior = np.empty((len(truth), 2))
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(columns, truth):
        clf = BayesClassifier(tune="weights").fit(columns.iloc[train], truth[train])
        posterior[test] = clf.with_prior({"ill": ILL, "well": 1 - ILL}).predict_proba(columns.iloc[test])
    return posterior


def find_positive(posterior: np.ndarray) -> np.ndarray:
    """Return True for a positive test: P(ill) is above the prior."""
    return posterior[:, 0] > ILL


def measure_rates(found: np.ndarray, ill: np.ndarray) -> tuple[float, float]:
    """Return the sensitivity and the false positive rate."""
    return float(found[ill].mean()), float(found[~ill].mean())


parser = ArgumentParser()
parser.add_argument("--output", type=Path, help="folder for the picture")
given = parser.parse_args()
cells, y = load_breast_cancer(return_X_y=True, as_frame=True)
truth = np.where(y == 0, "ill", "well")
ill = truth == "ill"
worst = [name for name in cells if name.startswith("worst")]
first, second = predict_out_of_fold(cells[FIRST_TEST], truth), predict_out_of_fold(cells[worst], truth)

# %%
# Natural frequencies
# -------------------

belief = bayes(ILL, measure_rates(find_positive(first), ill), names=("ill", "well"))
print(f"The first test is positive.\n{belief.frequencies()}")

# %%
# The error rates of the second test hold for all patients. For patients with a positive first test they are worse.

both = find_positive(first)
hoped = belief.update(measure_rates(find_positive(second), ill))["ill"]
found = belief.update(measure_rates(find_positive(second)[both], ill[both]))["ill"]
print(f"The second test is also positive: {hoped:.0%} if the errors were independent, but in fact {found:.0%}.")

# %%
# Costs of six strategies
# -----------------------
# The cheapest one gives the second test only to patients whose decision would otherwise cost more than the test.

MISS = 200.0  # cost of a missed tumor
NEEDLESS = 10.0  # cost of a needless operation
SECOND_TEST = 1.0  # cost of a second test


def compare_costs(first: np.ndarray, second: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """Return the mean cost per patient screened for each strategy."""
    loss = Loss.from_costs({("well", "ill"): MISS, ("ill", "well"): NEEDLESS})
    one_in_hundred = np.where(truth == "ill", ILL / (truth == "ill").mean(), (1 - ILL) / (truth == "well").mean())

    def cost(decisions: Any) -> float:
        return float(mean_cost(truth, decisions, loss=loss, sample_weight=one_in_hundred))

    sure = decide(first, loss, classes=["ill", "well"], reject=SECOND_TEST).decision
    after_second = decide(second, loss, classes=["ill", "well"]).decision
    open_cases = float(np.average(sure == "reject", weights=one_in_hundred))
    return {
        "operate on all": cost(np.full(len(truth), "ill")),
        "send all home": cost(np.full(len(truth), "well")),
        "first test, more probable class": cost(np.where(first[:, 0] > 0.5, "ill", "well")),
        "first test, minimum expected cost": cost(decide(first, loss, classes=["ill", "well"]).decision),
        "second test for all": SECOND_TEST + cost(after_second),
        "second test if uncertain": open_cases * SECOND_TEST + cost(np.where(sure == "reject", after_second, sure)),
    }


together = predict_out_of_fold(cells[FIRST_TEST + worst], truth)
costs = compare_costs(first, together, truth)
print(f"Costs: missed tumor {MISS:g}, needless operation {NEEDLESS:g}, second test {SECOND_TEST:g}.")
print("Mean cost per patient screened:")
for strategy, cost in costs.items():
    print(f"  {strategy:33} {cost:6.2f}")

# %%
# 1,000 patients, and the cost of each strategy
# ---------------------------------------------

figure, (people, bars) = plt.subplots(1, 2, width_ratios=(1, 1.1), figsize=(9, 3.8), layout="constrained")
joint = {name: round(1000 * belief.joint[name]) for name in ("ill", "well")}
groups = (
    ("ill, test positive", joint["ill"], "#D55E00"),
    ("ill, test negative", round(1000 * ILL) - joint["ill"], "#000000"),
    ("well, test positive", joint["well"], "#56B4E9"),
    ("well, test negative", 1000 - round(1000 * ILL) - joint["well"], "0.88"),
)
place = np.cumsum([0, *(count for _, count, _ in groups)])
for (name, count, color), start in zip(groups, place, strict=False):
    column, row = np.divmod(np.arange(start, start + count), 25)
    people.scatter(column, -row, s=11, color=color, label=f"{count} {name}")
people.set_aspect("equal", anchor="N")
people.set_axis_off()
people.set_title("1,000 patients after the first test", loc="left")
people.legend(frameon=False, ncols=2, loc="upper center", bbox_to_anchor=(0.5, 0), fontsize="small")

bars.barh(list(costs), list(costs.values()), color=["0.75"] * (len(costs) - 1) + ["#0072B2"])
for row, cost in enumerate(costs.values()):
    bars.text(cost, row, f" {cost:.2f}", va="center", fontsize="small")
bars.invert_yaxis()
bars.set_xlim(0, 1.15 * max(costs.values()))
prices = f"missed tumor {MISS:g}, operation {NEEDLESS:g}, second test {SECOND_TEST:g}"
bars.set_xlabel(f"mean cost\n({prices})", fontsize="small")
bars.set_title("Mean cost per patient screened", loc="left")
bars.spines[["top", "right"]].set_visible(False)
bars.tick_params(axis="y", length=0)
if given.output:
    figure.savefig(given.output / "diagnosis.png", dpi=110)
plt.show()
