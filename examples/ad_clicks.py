"""How probable is a click, now? One in a hundred, and it drifts: a model that learns as it goes and slowly forgets.

    python examples/ad_clicks.py [--output FOLDER]

Data: a simulator (`Market`, below), because no log of real clicks may be redistributed. It is the better judge, too: the
true probability of every click is known, so a model can be measured by what it loses against the truth. Impressions
come in batches; every few batches an ad is replaced by one never seen, and a sale nearly trebles the clicks for a while.

The reader learns: `partial_fit` and `decay` on a stream, values never seen, how to check probabilities of rare events
(in groups, claimed against happened), and what a row costs in time.
"""

import time
from argparse import ArgumentParser
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from deciban import BayesClassifier, Categorical, Poisson

BATCHES, BATCH, FIRST = 150, 3000, 20  # batches, impressions in each, batches before predictions begin
KEPT = 0.95  # what is left of all counts when another batch has come: about twenty batches are remembered
SALE = (80, 115)
COLUMNS = {"ad": Categorical(), "site": Categorical(), "device": Categorical(), "place": Categorical(),
           "hour": Categorical(), "times seen": Poisson(alpha=1)}  # fmt: skip
WAYS = {"learned once": "#7f7f7f", "learns, never forgets": "#D55E00", "learns and forgets slowly": "#0072B2"}


@dataclass
class Market:
    """Impressions of ads: log-odds of a click are a base, effects that add up, and what the time of the year adds."""

    base: float = -5.0
    ads: int = 60
    sites: int = 40
    replaced: int = 3  # batches after which the next ad is replaced
    sale: float = 1.0  # what a sale adds to the log-odds
    seed: int = 0
    effects: dict[str, dict[str, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        self.running = [f"ad {number}" for number in range(self.ads)]

    def effect(self, column: str, spread: float, values: np.ndarray) -> np.ndarray:
        """The effect of each value, drawn when it comes for the first time."""
        known = self.effects.setdefault(column, {})
        for value in np.unique(values):
            known.setdefault(str(value), self.rng.normal(0, spread))
        return np.array([known[str(value)] for value in values])

    def batch(self, number: int) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
        """Impressions, clicks, and the true probability of each click."""
        if number % self.replaced == 0:
            self.running[number // self.replaced % self.ads] = f"ad {self.ads + number}"
        popular = 1 / np.arange(1, self.sites + 1)
        rows = {
            "ad": self.rng.choice(self.running, BATCH),
            "site": self.rng.choice([f"site {n}" for n in range(self.sites)], BATCH, p=popular / popular.sum()),
            "device": self.rng.choice(["phone", "desktop", "tablet"], BATCH, p=[0.6, 0.3, 0.1]),
            "place": self.rng.choice(["top", "side", "bottom"], BATCH),
            "hour": self.rng.choice([f"{hour}:00" for hour in range(24)], BATCH),
            "times seen": self.rng.poisson(1.5, BATCH),
        }
        spreads = {"ad": 0.7, "site": 0.6, "device": 0.3, "place": 0.5, "hour": 0.2}
        odds = self.base + sum(self.effect(column, spread, rows[column]) for column, spread in spreads.items())
        odds = odds - 0.25 * rows["times seen"] + self.sale * (SALE[0] <= number < SALE[1])
        truth = 1 / (1 + np.exp(-odds))
        return rows, self.rng.random(BATCH) < truth, truth


def stream() -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray, dict[str, float]]:
    """P(click) by each way before the batch was learned, clicks, true probabilities, and microseconds a row."""
    market = Market()
    start = [market.batch(number) for number in range(FIRST)]
    rows = {name: np.concatenate([batch[0][name] for batch in start]) for name in COLUMNS}
    models = {way: BayesClassifier(COLUMNS, tune=None).fit(rows, np.concatenate([b[1] for b in start])) for way in WAYS}
    said: dict[str, list[np.ndarray]] = {way: [] for way in WAYS}
    clicks, truths, spent = [], [], {"predict": 0.0, "learn": 0.0}
    for number in range(FIRST, BATCHES):
        rows, clicked, truth = market.batch(number)
        begun = time.perf_counter()
        for way, clf in models.items():
            said[way].append(clf.predict_proba(rows)[:, 1])
        predicted = time.perf_counter()
        models["learns, never forgets"].partial_fit(rows, clicked)
        models["learns and forgets slowly"].decay(KEPT).partial_fit(rows, clicked)
        spent["predict"] += (predicted - begun) / 3
        spent["learn"] += (time.perf_counter() - predicted) / 2
        clicks.append(clicked)
        truths.append(truth)
    microseconds = {what: 1e6 * seconds / (BATCH * len(clicks)) for what, seconds in spent.items()}
    return (
        {way: np.concatenate(p) for way, p in said.items()},
        np.concatenate(clicks),
        np.concatenate(truths),
        microseconds,
    )


def log_loss(probability: np.ndarray, truth: np.ndarray) -> float:
    """The expected log-loss of claims, clicks being as probable as they truly are."""
    return float(-(truth * np.log(probability) + (1 - truth) * np.log1p(-probability)).mean())


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    parser = ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", default="docs/gallery")
    given = parser.parse_args(arguments)
    said, clicks, truth, microseconds = stream()
    least, share = log_loss(truth, truth), log_loss(np.full(len(truth), clicks.mean()), truth)
    print(f"{len(clicks):,} impressions predicted, then learned; {clicks.sum():,} clicks ({clicks.mean():.2%}).")
    print(f"{'':26}  clicks foreseen  of what can be known")
    known = {way: (share - log_loss(p, truth)) / (share - least) for way, p in said.items()}
    for way, p in said.items():
        print(f"{way:26}  {p.sum():15,.0f}  {known[way]:20.0%}")
    print(
        f"a row takes {microseconds['predict']:.2f} µs to predict and {microseconds['learn']:.2f} µs to learn, in batches"
    )
    best = said["learns and forgets slowly"]
    groups = [(best[rows].mean(), clicks[rows].mean()) for rows in np.array_split(np.argsort(best), 10)]
    print("tenths of the impressions, claimed and clicked: " + ", ".join(f"{p:.2%} {k:.2%}" for p, k in groups))
    draw(said, clicks, np.array(groups), Path(given.output) / "ad_clicks.png")
    return {"known": known, "clicks": clicks.sum(), "said": {way: p.sum() for way, p in said.items()}, "groups": groups}


def draw(said: dict[str, np.ndarray], clicks: np.ndarray, groups: np.ndarray, picture: Path) -> None:
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    over_time, reliability = figure.subplots(1, 2, width_ratios=(2, 1))
    batch = np.arange(FIRST, BATCHES)
    over_time.scatter(batch, clicks.reshape(-1, BATCH).mean(axis=1), s=8, color="0.75", label="clicked")
    for way, colour in WAYS.items():
        over_time.plot(batch, said[way].reshape(-1, BATCH).mean(axis=1), color=colour, label=way)
    over_time.axvspan(*SALE, color="0.95", zorder=0)
    over_time.text(SALE[0] + 1, 0.001, "sale", color="0.4")
    over_time.set(xlabel=f"batch of {BATCH:,} impressions", ylabel="share of clicks", ylim=(0, None))
    over_time.set_title("The share of clicks, foreseen and found", loc="left")
    over_time.legend(frameon=False, fontsize="small", loc="upper left")
    ends = [0.8 * groups.min(), 1.25 * groups.max()]
    reliability.plot(ends, ends, color="0.8")
    reliability.plot(groups[:, 0], groups[:, 1], "o", color="#0072B2")
    reliability.set(xscale="log", yscale="log", xlabel="claimed (tenths of the rows)", ylabel="clicked")
    reliability.set_title("Rare, and believable", loc="left")
    for axes in (over_time, reliability):
        axes.yaxis.set_major_formatter(lambda share, _: f"{share:.1%}")
        axes.spines[["top", "right"]].set_visible(False)
    reliability.xaxis.set_major_formatter(lambda share, _: f"{share:.1%}")
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=120)


if __name__ == "__main__":
    main()
