"""The test is positive: is she ill? And who should be sent home, operated on, or tested again?

    python examples/diagnosis.py [--output FOLDER]

Data: the Wisconsin breast cancer table of scikit-learn (UCI, CC BY 4.0; W. Wolberg, N. Street, O. Mangasarian, 1995):
569 tumours, 37 % of them malignant. The question is asked where few are ill: in a screening, where 1 in 100 is. The
first look is at size and texture of the cells, the second test measures ten things at their worst. All figures are of
rows held out (five folds), in which the ill are weighted as 1 in 100.

The reader learns: natural frequencies (`bayes`), that a second test is worth less than its own figures say if it errs
where the first did, another prior (`with_prior`), costs (`Loss`, `decide`), and the price of leaving a case open.
"""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import StratifiedKFold

from deciban import BayesClassifier, Loss, bayes, decide, mean_cost

GALLERY = Path(__file__).parents[1] / "docs" / "gallery"
ILL = 0.01  # the share of the ill among those who are screened
MISS, NEEDLESS, SECOND_TEST = 200.0, 10.0, 1.0  # what each costs
FIRST_LOOK = ["mean radius", "mean texture"]


def held_out(columns: pd.DataFrame, truth: np.ndarray) -> np.ndarray:
    """P(ill) and P(well) in the screening, of every row when its fold was held out."""
    posterior = np.empty((len(truth), 2))
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(columns, truth):
        clf = BayesClassifier(tune="weights").fit(columns.iloc[train], truth[train])
        posterior[test] = clf.with_prior({"ill": ILL, "well": 1 - ILL}).predict_proba(columns.iloc[test])
    return posterior


def positive(posterior: np.ndarray) -> np.ndarray:
    """Whether the evidence is for illness: P(ill) is above what it was before."""
    return posterior[:, 0] > ILL


def rates(found: np.ndarray, ill: np.ndarray) -> tuple[float, float]:
    """The share of the ill and of the well who are found positive: sensitivity and false alarms."""
    return float(found[ill].mean()), float(found[~ill].mean())


def costs(first: np.ndarray, second: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """The mean cost per patient screened, by each way to decide."""
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
        "first look, the more probable": cost(np.where(first[:, 0] > 0.5, "ill", "well")),
        "first look, least expected cost": cost(decide(first, loss, classes=["ill", "well"]).decision),
        "second test for all": SECOND_TEST + cost(after_second),
        "second test if in doubt": open_cases * SECOND_TEST + cost(np.where(sure == "reject", after_second, sure)),
    }


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    parser = ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=GALLERY)
    given = parser.parse_args(arguments)
    cells, y = load_breast_cancer(return_X_y=True, as_frame=True)
    truth = np.where(y == 0, "ill", "well")
    ill = truth == "ill"
    worst = [name for name in cells if name.startswith("worst")]
    first, second = held_out(cells[FIRST_LOOK], truth), held_out(cells[worst], truth)

    belief = bayes(ILL, rates(positive(first), ill), names=("ill", "well"))
    print(f"The first look is positive.\n{belief.frequencies()}")
    both = positive(first)
    hoped = belief.update(rates(positive(second), ill))["ill"]
    found = belief.update(rates(positive(second)[both], ill[both]))["ill"]
    print(f"The second test is positive, too: {hoped:.0%} if it erred independently of the first; in fact {found:.0%}.")
    together = held_out(cells[FIRST_LOOK + worst], truth)
    spent = costs(first, together, truth)
    print(f"\nA miss costs {MISS:g}, a needless operation {NEEDLESS:g}, a second test {SECOND_TEST:g}.")
    print("Mean cost per patient screened:")
    for way, cost in spent.items():
        print(f"  {way:32} {cost:6.2f}")
    draw(belief, spent, given.output / "diagnosis.png")
    return {"costs": spent, "after one": belief["ill"], "hoped": hoped, "found": found}


def draw(belief: Any, spent: dict[str, float], picture: Path) -> None:
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    people, bars = figure.subplots(1, 2, width_ratios=(1, 1))
    joint = {name: round(1000 * belief.joint[name]) for name in ("ill", "well")}
    groups = (
        ("ill, found", joint["ill"], "#D55E00"),
        ("ill, missed", round(1000 * ILL) - joint["ill"], "#000000"),
        ("well, alarmed", joint["well"], "#56B4E9"),
        ("well, sent home", 1000 - round(1000 * ILL) - joint["well"], "0.88"),
    )
    place = np.cumsum([0, *(count for _, count, _ in groups)])
    for (name, count, color), start in zip(groups, place, strict=False):
        column, row = np.divmod(np.arange(start, start + count), 25)
        people.scatter(column, -row, s=11, color=color, label=f"{count} {name}")
    people.set_aspect("equal", anchor="N")
    people.set_axis_off()
    people.set_title("A first look at 1,000 patients", loc="left")
    people.legend(frameon=False, ncols=2, loc="upper center", bbox_to_anchor=(0.5, 0), fontsize="small")
    bars.barh(list(spent), list(spent.values()), color=["0.75"] * (len(spent) - 1) + ["#0072B2"])
    for row, cost in enumerate(spent.values()):
        bars.text(cost, row, f" {cost:.2f}", va="center")
    bars.invert_yaxis()
    bars.set_xlim(0, 1.15 * max(spent.values()))
    bars.set_title("Mean cost per patient screened", loc="left")
    bars.spines[["top", "right", "bottom"]].set_visible(False)
    bars.set_xticks([])
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=120)


if __name__ == "__main__":
    main()
