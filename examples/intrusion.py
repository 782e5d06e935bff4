"""Intrusion detection
===================

Known kinds of attack are classified. A new kind is an outlier, a row of low density. On the second day
attacks are far more frequent than in the training data. The class mix is estimated without labels, and
decisions by cost adapt to it.

::

    python examples/intrusion.py [CONNECTIONS] [--output FOLDER]

The data are simulated connections of a small network. CONNECTIONS can be a Parquet file of your own
with the columns ``part`` (train or test), ``attack`` (normal, or the kind of attack) and any others.

**What to learn:** ``log_density`` (rows unlike the training data), ``estimate_prior`` and
``with_prior`` (the class mix of unlabeled rows), costs with a third decision (``Loss``), and how these
work together.

Real networks are harder. On NSL-KDD (25,192 training connections, 22,544 test connections; not
included) 28% of the attacks of new kinds are outliers, and 0.8% of all other connections. The
estimated class mix lowers the mean cost per connection from 5.89 to 3.32, but raises the log loss from
1.24 to 2.91: the share of password guessing, with ten training rows, is estimated as 0, so 1,231
attacks of that kind get probability 0. More than half of that day are attacks, so blocking everything
(2.15) would have been cheaper still.
"""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from deciban import BayesClassifier, Categorical, Gaussian, LogNormal, Loss, Poisson

# %%
# Two days of connections
# -----------------------
# A quiet day for training, and a second day with many more attacks, two kinds of which are new.

SERVICES = ("web", "mail", "login", "files")
# rows of the first and of the second day; services; log bytes sent, log bytes received, log seconds; simultaneous
# connections; share of them that fail; failed logins
KINDS: dict[str, tuple[Any, ...]] = {
    "normal": (8000, 3000, (0.6, 0.2, 0.1, 0.1), 6.5, 8.5, 0.5, 4, 0.10, 0.10),
    "flood": (300, 2400, (0.8, 0.2, 0.0, 0.0), 5.5, 6.5, -0.5, 9, 0.25, 0.02),
    "scan": (400, 600, (0.3, 0.2, 0.3, 0.2), 5.0, 6.0, -1.0, 5, 0.40, 0.10),
    "password guessing": (150, 400, (0.0, 0.2, 0.8, 0.0), 6.0, 7.0, 0.5, 5, 0.15, 1.20),
    "theft of data": (0, 100, (0.2, 0.1, 0.2, 0.5), 13.0, 6.0, 5.0, 3, 0.10, 0.10),
    "worm": (0, 100, (0.1, 0.6, 0.1, 0.2), 8.0, 6.0, 0.0, 25, 0.60, 0.30),
}
COLUMNS = {"service": Categorical(), "bytes sent": LogNormal(), "bytes received": LogNormal(), "seconds": LogNormal(),
           "at the same time": Poisson(), "failing": Gaussian(), "failed logins": Poisson()}  # fmt: skip


def connections(seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    parts = []
    for kind, (quiet, bad, services, sent, received, seconds, at_once, failing, logins) in KINDS.items():
        for part, rows in (("train", quiet), ("test", bad)):
            columns = {
                "service": rng.choice(SERVICES, rows, p=services),
                "bytes sent": np.exp(rng.normal(sent, 1.2, rows)),
                "bytes received": np.exp(rng.normal(received, 1.5, rows)),
                "seconds": np.exp(rng.normal(seconds, 1.0, rows)),
                "at the same time": rng.poisson(at_once, rows),
                "failing": rng.beta(10 * failing, 10 - 10 * failing, rows),
                "failed logins": rng.poisson(logins, rows),
            }
            parts.append(pd.DataFrame(columns).assign(part=part, attack=kind))
    return pd.concat(parts, ignore_index=True)


parser = ArgumentParser()
parser.add_argument("connections", nargs="?", help="Parquet file with the columns part, attack and others")
parser.add_argument("--output", type=Path, help="folder for the picture")
given = parser.parse_args()
table = pd.read_parquet(given.connections) if given.connections else connections()
rows, kind = table.drop(columns=["part", "attack"]), table["attack"].to_numpy()
quiet, bad = table["part"] == "train", table["part"] == "test"
clf = BayesClassifier(None if given.connections else COLUMNS).fit(rows[quiet], kind[quiet])

# %%
# New kinds of attack are outliers
# --------------------------------

RARE = 0.01  # a row is an outlier if its density is below this quantile of the training rows

truth, attack = kind[bad], kind[bad] != "normal"
new = ~np.isin(truth, clf.classes_)
density, limit = clf.log_density(rows[bad]), np.quantile(clf.log_density(rows[quiet]), RARE)
outlier = density < limit
print(f"{quiet.sum():,} training connections (quiet day), {bad.sum():,} test connections (day of attacks).")
print(f"Outliers: {outlier[new].mean():.0%} of the {new.sum():,} attacks of new kinds, "
      f"{outlier[~new].mean():.1%} of all other connections.")  # fmt: skip

# %%
# Estimate the class mix without labels
# -------------------------------------

shifted = clf.with_prior(clf.estimate_prior(rows[bad][~outlier]))
for name, model in (("of the quiet day", clf), ("estimated", shifted)):
    metrics = model.evaluate(rows[bad][~new], truth[~new])
    print(f"Class mix {name}: accuracy {metrics.accuracy:.1%}, log loss {metrics.log_loss:.3f} (known kinds)")

# %%
# Pass, block or ask
# ------------------
# Each step lowers the mean cost: decisions by cost, the class mix of the day, and a question about outliers.

COSTS = {"pass": (0.0, 50.0), "block": (5.0, 0.0), "ask": (1.0, 1.0)}  # of normal connections, of attacks


def mean_cost(decisions: np.ndarray, attack: np.ndarray) -> float:
    """Return the mean cost per connection."""
    return float(np.mean([COSTS[decision][int(truth)] for decision, truth in zip(decisions, attack, strict=True)]))


loss = Loss.from_costs({(what, label): COSTS[what][label != "normal"] for what in COSTS for label in clf.classes_})
decided = shifted.decide(rows[bad], loss).decision
ways = {
    "pass all": np.full(len(truth), "pass"),
    "block all": np.full(len(truth), "block"),
    "block probable attacks": np.where(clf.predict(rows[bad]) == "normal", "pass", "block"),
    "minimum expected cost": clf.decide(rows[bad], loss).decision,
    "same, estimated class mix": decided,
    "same, and ask about outliers": np.where(outlier & (decided == "pass"), "ask", decided),
}
costs = {way: mean_cost(decision, attack) for way, decision in ways.items()}
print("Mean cost per connection:", *(f"  {way:30} {cost:5.2f}" for way, cost in costs.items()), sep="\n")

# %%
# Densities and class mix
# -----------------------

figure, (outliers, mix) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
bins = np.linspace(max(density.min(), limit - 40), density.max(), 60)
shown = np.maximum(density, bins[0])
outliers.hist(shown[~new], bins, color="0.8", label="known kinds")
outliers.hist(shown[new], bins, color="#D55E00", alpha=0.8, label="new kinds of attack")
outliers.axvline(limit, color="black", linestyle=":")
lower = " (first bar: all lower values)" if density.min() < bins[0] else ""
outliers.set(xlabel=f"log density of the connection{lower}", ylabel="connections (log scale)", yscale="symlog")
outliers.set_ylim(0, 3 * outliers.get_ylim()[1])
outliers.text(limit - 0.5, outliers.get_ylim()[1] * 0.7, "outliers", ha="right", va="top", fontsize="small")
outliers.yaxis.set_major_formatter(lambda count, _: f"{count:,.0f}")
outliers.set_title("New kinds of attack are outliers", loc="left")
outliers.legend(frameon=False, loc="upper left", fontsize="small")

shares = pd.DataFrame({"training": np.exp(clf.model_.log_prior), "estimated": np.exp(shifted.model_.log_prior),
                       "true": [(truth == label).mean() for label in clf.classes_]}, clf.classes_)  # fmt: skip
largest = shares.nlargest(4, "true")
place = np.arange(len(largest))
for offset, (name, color) in enumerate({"training": "0.8", "estimated": "#0072B2", "true": "black"}.items()):
    mix.bar(place + 0.27 * (offset - 1), largest[name], 0.25, color=color, label=name)
mix.set_xticks(place, [kind.replace(" ", "\n") for kind in largest.index])
mix.yaxis.set_major_formatter("{x:.0%}")
mix.set_ylabel("share of connections")
mix.set_title("Class mix, estimated without labels", loc="left")
mix.legend(frameon=False, fontsize="small")
for axes in (outliers, mix):
    axes.spines[["top", "right"]].set_visible(False)
if given.output:
    figure.savefig(given.output / "intrusion.png", dpi=110)
plt.show()
