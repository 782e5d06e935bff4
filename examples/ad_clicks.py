"""Click-through rates that drift
==============================

One impression in a hundred is clicked, ads come and go, and a sale triples the clicks. Counts that
decay follow the ads. A prior from the last few batches follows the sale.

::

    python examples/ad_clicks.py [--output FOLDER]

The data come from a simulator, because click logs are rarely published. It knows the true
probability of every click, so the possible gain is known: 0% is the overall click-through rate, 100%
the true probabilities.

**What to learn:** ``partial_fit``, ``decay`` and ``with_prior`` on a stream; unknown categories;
calibration of rare events; time per row.
"""

import time
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.ticker import FixedLocator, MultipleLocator, NullLocator

from deciban import BayesClassifier, Categorical, Poisson

# %%
# A simulator of impressions
# --------------------------
# Every third batch, the oldest ad is replaced by a new one, and a sale nearly triples the clicks for a while.

BATCHES = 150
BATCH = 3000  # impressions in each batch
FIRST = 20  # training batches before the first prediction
SALE = (80, 115)  # first and last batch of the sale
# standard deviations of the effects on the log-odds
SPREADS = {"ad": 0.7, "site": 0.6, "device": 0.3, "place": 0.5, "hour": 0.2}
Batch = tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]


def impressions(
    base: float = -5.0, ads: int = 60, replaced: int = 3, sites: int = 40, sale: float = 1.0, seed: int = 0
) -> Iterator[Batch]:
    """Yield batches of impressions, clicks and their true probabilities. The log-odds are a sum of effects."""
    rng = np.random.default_rng(seed)
    sizes = {"ad": ads + BATCHES // replaced, "site": sites, "device": 3, "place": 3, "hour": 24}
    effects = {column: rng.normal(0, spread, sizes[column]) for column, spread in SPREADS.items()}
    visited = 1 / np.arange(1, sites + 1)  # a few sites have most of the visitors
    for number in range(BATCHES):
        rows = {column: rng.integers(size, size=BATCH) for column, size in sizes.items()}
        rows["ad"] = number // replaced + rng.integers(ads, size=BATCH)
        rows["site"] = rng.choice(sites, BATCH, p=visited / visited.sum())
        log_odds = base + sum(effects[column][rows[column]] for column in SPREADS) + sale * (number in range(*SALE))
        rows["times seen"] = rng.poisson(1.5, BATCH)
        truth = 1 / (1 + np.exp(0.25 * rows["times seen"] - log_odds))
        yield rows, rng.random(BATCH) < truth, truth


parser = ArgumentParser()
parser.add_argument("--output", type=Path, help="folder for the picture")
given = parser.parse_args()

# %%
# Four models on the stream
# -------------------------
# Each model predicts a batch before it learns it.

COLUMNS = dict.fromkeys(SPREADS, Categorical()) | {"times seen": Poisson(alpha=1)}
KEPT = 0.95  # factor for all counts after each batch: about twenty batches are remembered
RECENT = 5  # batches whose click-through rate is the current prior
ONCE = "trained once"
NEVER_FORGETS = "online, no decay"
FORGETS = "online, with decay"
CURRENT_PRIOR = "online, with decay, current prior"
MODELS = {ONCE: "#7f7f7f", NEVER_FORGETS: "#D55E00", FORGETS: "#56B4E9", CURRENT_PRIOR: "#0072B2"}


def run_stream() -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray, dict[str, float]]:
    """Return P(click) by each model before it learned the batch, clicks, true probabilities, microseconds per row."""
    models = {name: BayesClassifier(COLUMNS, tune=None) for name in (ONCE, NEVER_FORGETS, FORGETS)}
    predicted: dict[str, list[np.ndarray]] = {name: [] for name in MODELS}
    clicks, truths, spent = [], [], {"predict": 0.0, "learn": 0.0}
    for number, (rows, clicked, truth) in enumerate(impressions()):
        clicks.append(clicked)
        truths.append(truth)
        if number >= FIRST:
            recent = np.mean(clicks[-1 - RECENT : -1])
            with_current_prior = models[FORGETS].with_prior({False: 1 - recent, True: recent})
            begun = time.perf_counter()
            for name, clf in (*models.items(), (CURRENT_PRIOR, with_current_prior)):
                predicted[name].append(clf.predict_proba(rows)[:, 1])
            spent["predict"] += (time.perf_counter() - begun) / len(MODELS)
        begun = time.perf_counter()
        for name, clf in models.items():
            if number < FIRST or name != ONCE:
                clf.partial_fit(rows, clicked)
        models[FORGETS].decay(KEPT)
        spent["learn"] += (time.perf_counter() - begun) / 2 if number >= FIRST else 0.0
    microseconds = {what: 1e6 * seconds / (BATCH * (BATCHES - FIRST)) for what, seconds in spent.items()}
    joined = {name: np.concatenate(parts) for name, parts in predicted.items()}
    return joined, np.concatenate(clicks[FIRST:]), np.concatenate(truths[FIRST:]), microseconds


def log_loss(probability: np.ndarray, truth: np.ndarray) -> float:
    """Return the expected log loss of predictions, given the true probabilities."""
    return float(-(truth * np.log(probability) + (1 - truth) * np.log1p(-probability)).mean())


predicted, clicks, truth, microseconds = run_stream()
least, share = log_loss(truth, truth), log_loss(np.full(len(truth), clicks.mean()), truth)
gains = {name: (share - log_loss(p, truth)) / (share - least) for name, p in predicted.items()}
print(f"{len(clicks):,} impressions, each predicted before it was learned;", end=" ")
print(f"{clicks.sum():,} clicks ({clicks.mean():.2%}).")
print(f"{'':34}  predicted clicks  share of possible gain")
for name, p in predicted.items():
    print(f"{name:34}  {p.sum():16,.0f}  {gains[name]:22.0%}")
print("time per row, in batches: " + ", ".join(f"{took:.2f} µs to {what}" for what, took in microseconds.items()))

# %%
# Calibration of the best model
# -----------------------------
# The lowest tenth is clicked more often than predicted, the highest tenth less often: with decay, the estimates rest
# on few clicks and are too extreme.

best = predicted[CURRENT_PRIOR]
tenths = np.array_split(np.argsort(best), 10)
groups = np.array([(best[rows].mean(), clicks[rows].mean()) for rows in tenths])
print("predicted and observed click-through rate, by tenths of the impressions:")
print("  predicted " + " ".join(f"{p:6.2%}" for p, _ in groups))
print("  observed  " + " ".join(f"{k:6.2%}" for _, k in groups))

# %%
# Click-through rate over time
# ----------------------------

figure, (over_time, calibration) = plt.subplots(1, 2, width_ratios=(2, 1), figsize=(9, 3.8), layout="constrained")
batch = np.arange(FIRST, BATCHES)
over_time.scatter(batch, clicks.reshape(-1, BATCH).mean(axis=1), s=8, color="0.75", label="observed")
for name, color in MODELS.items():
    over_time.plot(batch, predicted[name].reshape(-1, BATCH).mean(axis=1), color=color, label=name)
over_time.axvspan(*SALE, color="0.95", zorder=0)
over_time.text(SALE[0] + 1, 0.0003, "sale", color="0.4", fontsize="small")
over_time.set(xlabel=f"batch of {BATCH:,} impressions (the first {FIRST} are training data)", xlim=(FIRST, BATCHES),
              ylabel="click-through rate", ylim=(0, None))  # fmt: skip
over_time.yaxis.set_major_locator(MultipleLocator(0.005))
over_time.yaxis.set_major_formatter(lambda share, _: f"{share:.1%}")
over_time.set_title("Click-through rate: predicted and observed", loc="left")
over_time.legend(frameon=False, fontsize="small", loc="upper left")

ends = [0.8 * groups.min(), 1.25 * groups.max()]
calibration.plot(ends, ends, color="0.6", linestyle="--", linewidth=0.8)
look = {"transform": calibration.transAxes, "ha": "right", "color": "0.4", "fontsize": "small"}
calibration.text(0.97, 0.03, "dashed: perfect calibration", **look)
error = 1.96 * np.sqrt(groups[:, 1] * (1 - groups[:, 1]) / (len(clicks) / len(groups)))
calibration.errorbar(groups[:, 0], groups[:, 1], error, fmt="o", color="#0072B2", markersize=4, elinewidth=1)
calibration.set(xscale="log", yscale="log", xlabel="predicted (log scale)", ylabel="observed, 95% interval")
calibration.set_title("Calibration by tenths", loc="left")
for axis in (calibration.xaxis, calibration.yaxis):
    axis.set_major_locator(FixedLocator([0.001, 0.003, 0.01, 0.03]))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(lambda share, _: f"{100 * share:g}%")
for axes in (over_time, calibration):
    axes.spines[["top", "right"]].set_visible(False)
if given.output:
    figure.savefig(given.output / "ad_clicks.png", dpi=100)
plt.show()
