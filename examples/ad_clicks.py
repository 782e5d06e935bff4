"""How probable is a click, now? One in a hundred, and it drifts: a model that learns as it goes and slowly forgets.

    python examples/ad_clicks.py [--output FOLDER]

Data: a simulator (`impressions`, below). Real logs of clicks are rarely given away; and here the true probability of
every click is known, so that a model is measured by what it loses against the truth. Every third batch the oldest ad
goes and a new one comes, and a sale nearly trebles the clicks for a while.

The reader learns: `partial_fit`, `decay` and `with_prior` on a stream, values never seen, how to check probabilities of
rare events (in groups, claimed against happened), and what a row costs in time.
"""

import time
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator

from deciban import BayesClassifier, Categorical, Poisson

GALLERY = Path(__file__).parents[1] / "docs" / "gallery"
BATCHES, BATCH, FIRST = 150, 3000, 20  # batches, impressions in each, batches before predictions begin
KEPT = 0.95  # what is left of all counts when another batch has come: about twenty batches are remembered
SALE = (80, 115)  # from this batch to that
SPREADS = {"ad": 0.7, "site": 0.6, "device": 0.3, "place": 0.5, "hour": 0.2}  # deviations of effects on the log-odds
COLUMNS = dict.fromkeys(SPREADS, Categorical()) | {"times seen": Poisson(alpha=1)}
RECENT = 5  # batches, whose share of clicks is taken for the prior of today
ONCE, NEVER_FORGETS, FORGETS = "learned once", "learns, never forgets", "learns and forgets slowly"
PRIOR_OF_TODAY = "the same, prior of today"
WAYS = {ONCE: "#7f7f7f", NEVER_FORGETS: "#D55E00", FORGETS: "#56B4E9", PRIOR_OF_TODAY: "#0072B2"}
Batch = tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]


def impressions(
    base: float = -5.0, ads: int = 60, replaced: int = 3, sites: int = 40, sale: float = 1.0, seed: int = 0
) -> Iterator[Batch]:
    """Batches of impressions, with clicks and their true probabilities, whose log-odds are a sum of effects."""
    rng = np.random.default_rng(seed)
    sizes = {"ad": ads + BATCHES // replaced, "site": sites, "device": 3, "place": 3, "hour": 24}
    effects = {column: rng.normal(0, spread, sizes[column]) for column, spread in SPREADS.items()}
    visited = 1 / np.arange(1, sites + 1)  # few sites have most visitors
    for number in range(BATCHES):
        rows = {column: rng.integers(size, size=BATCH) for column, size in sizes.items()}
        rows["ad"] = number // replaced + rng.integers(ads, size=BATCH)
        rows["site"] = rng.choice(sites, BATCH, p=visited / visited.sum())
        log_odds = base + sum(effects[column][rows[column]] for column in SPREADS) + sale * (number in range(*SALE))
        rows["times seen"] = rng.poisson(1.5, BATCH)
        truth = 1 / (1 + np.exp(0.25 * rows["times seen"] - log_odds))
        yield rows, rng.random(BATCH) < truth, truth


def stream() -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray, dict[str, float]]:
    """P(click) by each way before the batch was learned, clicks, true probabilities, and microseconds a row."""
    models = {way: BayesClassifier(COLUMNS, tune=None) for way in (ONCE, NEVER_FORGETS, FORGETS)}
    said: dict[str, list[np.ndarray]] = {way: [] for way in WAYS}
    clicks, truths, spent = [], [], {"predict": 0.0, "learn": 0.0}
    for number, (rows, clicked, truth) in enumerate(impressions()):
        clicks.append(clicked)
        truths.append(truth)
        if number >= FIRST:
            recent = np.mean(clicks[-1 - RECENT : -1])
            of_today = models[FORGETS].with_prior({False: 1 - recent, True: recent})
            begun = time.perf_counter()
            for way, clf in (*models.items(), (PRIOR_OF_TODAY, of_today)):
                said[way].append(clf.predict_proba(rows)[:, 1])
            spent["predict"] += (time.perf_counter() - begun) / len(WAYS)
        begun = time.perf_counter()
        for way, clf in models.items():
            if number < FIRST or way != ONCE:
                clf.partial_fit(rows, clicked)
        models[FORGETS].decay(KEPT)
        spent["learn"] += (time.perf_counter() - begun) / 2 if number >= FIRST else 0.0
    microseconds = {what: 1e6 * seconds / (BATCH * (BATCHES - FIRST)) for what, seconds in spent.items()}
    joined = {way: np.concatenate(parts) for way, parts in said.items()}
    return joined, np.concatenate(clicks[FIRST:]), np.concatenate(truths[FIRST:]), microseconds


def log_loss(probability: np.ndarray, truth: np.ndarray) -> float:
    """The expected log-loss of claims, clicks being as probable as they truly are."""
    return float(-(truth * np.log(probability) + (1 - truth) * np.log1p(-probability)).mean())


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    parser = ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=GALLERY)
    output = parser.parse_args(arguments).output
    said, clicks, truth, microseconds = stream()
    least, share = log_loss(truth, truth), log_loss(np.full(len(truth), clicks.mean()), truth)
    print(f"{len(clicks):,} impressions predicted, then learned; {clicks.sum():,} clicks ({clicks.mean():.2%}).")
    print(f"{'':34}  clicks foreseen  of what can be known")
    known = {way: (share - log_loss(p, truth)) / (share - least) for way, p in said.items()}
    for way, p in said.items():
        print(f"{way:34}  {p.sum():15,.0f}  {known[way]:20.0%}")
    print("in batches, a row takes " + ", ".join(f"{took:.2f} µs to {what}" for what, took in microseconds.items()))
    best = said[PRIOR_OF_TODAY]
    groups = [(best[rows].mean(), clicks[rows].mean()) for rows in np.array_split(np.argsort(best), 10)]
    print("tenths of the impressions, claimed and clicked: " + ", ".join(f"{p:.2%} {k:.2%}" for p, k in groups))
    draw(said, clicks, np.array(groups), output / "ad_clicks.png")
    return {"known": known, "clicks": clicks.sum(), "said": {way: p.sum() for way, p in said.items()}, "groups": groups}


def draw(said: dict[str, np.ndarray], clicks: np.ndarray, groups: np.ndarray, picture: Path) -> None:
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    over_time, reliability = figure.subplots(1, 2, width_ratios=(2, 1))
    batch = np.arange(FIRST, BATCHES)
    over_time.scatter(batch, clicks.reshape(-1, BATCH).mean(axis=1), s=8, color="0.75", label="clicked")
    for way, color in WAYS.items():
        over_time.plot(batch, said[way].reshape(-1, BATCH).mean(axis=1), color=color, label=way)
    over_time.axvspan(*SALE, color="0.95", zorder=0)
    over_time.text(SALE[0] + 1, 0.001, "sale", color="0.4")
    over_time.set(xlabel=f"batch of {BATCH:,} impressions", ylabel="share of clicks", ylim=(0, None))
    over_time.yaxis.set_major_locator(MultipleLocator(0.005))
    over_time.set_title("The share of clicks, foreseen and found", loc="left")
    over_time.legend(frameon=False, fontsize="small", loc="upper left")
    ends = [0.8 * groups.min(), 1.25 * groups.max()]
    reliability.plot(ends, ends, color="0.8")
    reliability.plot(groups[:, 0], groups[:, 1], "o", color="#0072B2")
    reliability.set(xscale="log", yscale="log", xlabel="claimed (tenths of the rows)", ylabel="clicked")
    reliability.set_title("Claimed and found", loc="left")
    for axes in (over_time, reliability):
        axes.yaxis.set_major_formatter(lambda share, _: f"{share:.1%}")
        axes.spines[["top", "right"]].set_visible(False)
    reliability.xaxis.set_major_formatter(lambda share, _: f"{share:.1%}")
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=110)


if __name__ == "__main__":
    main()
