"""Intrusion detection: known attacks are classified, new ones are outliers, and the class mix is estimated.

    python examples/intrusion.py [CONNECTIONS] [--output FOLDER]

Data: simulated connections of a small network (see `KINDS` below): a quiet day for training, and a second day with many
more attacks, two kinds of which are new. CONNECTIONS can be a Parquet file of your own with the columns `part` (train
or test), `attack` (normal, or the kind of attack) and any others, such as the NSL-KDD collection.

Shown here: `log_density` (rows unlike the training data), `estimate_prior` and `with_prior` (the class mix of unlabeled
rows), costs with a third decision (`Loss`), and how these work together.
"""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from deciban import BayesClassifier, Categorical, Gaussian, LogNormal, Loss, Poisson

GALLERY = Path(__file__).parents[1] / "docs" / "images"
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
RARE = 0.01  # a row is an outlier if its density is below this quantile of the training rows
COSTS = {"pass": (0.0, 50.0), "block": (5.0, 0.0), "ask": (1.0, 1.0)}  # of normal connections, of attacks


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


def mean_cost(decisions: np.ndarray, attack: np.ndarray) -> float:
    """Return the mean cost per connection."""
    return float(np.mean([COSTS[decision][int(truth)] for decision, truth in zip(decisions, attack, strict=True)]))


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    parser = ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("connections", nargs="?")
    parser.add_argument("--output", type=Path, default=GALLERY)
    given = parser.parse_args(arguments)
    table = pd.read_parquet(given.connections) if given.connections else connections()
    rows, kind = table.drop(columns=["part", "attack"]), table["attack"].to_numpy()
    quiet, bad = table["part"] == "train", table["part"] == "test"
    clf = BayesClassifier(None if given.connections else COLUMNS).fit(rows[quiet], kind[quiet])
    truth, attack = kind[bad], kind[bad] != "normal"
    new = ~np.isin(truth, clf.classes_)

    density, limit = clf.log_density(rows[bad]), np.quantile(clf.log_density(rows[quiet]), RARE)
    outlier = density < limit
    print(f"{quiet.sum():,} training connections (quiet day), {bad.sum():,} test connections (day of attacks).")
    print(f"Outliers: {outlier[new].mean():.0%} of the {new.sum():,} attacks of new kinds, "
          f"{outlier[~new].mean():.1%} of all other connections.")  # fmt: skip

    shifted = clf.with_prior(clf.estimate_prior(rows[bad][~outlier]))
    for name, model in (("of the quiet day", clf), ("estimated", shifted)):
        metrics = model.evaluate(rows[bad][~new], truth[~new])
        print(f"Class mix {name}: accuracy {metrics.accuracy:.1%}, log loss {metrics.log_loss:.3f} (known kinds)")

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
    shares = pd.DataFrame({"training": np.exp(clf.model_.log_prior), "estimated": np.exp(shifted.model_.log_prior),
                           "true": [(truth == label).mean() for label in clf.classes_]}, clf.classes_)  # fmt: skip
    draw(density, new, limit, shares.nlargest(4, "true"), given.output / "intrusion.png")
    return {"found": outlier[new].mean(), "alarms": outlier[~new].mean(), "costs": costs, "shares": shares}


def draw(density: np.ndarray, new: np.ndarray, limit: float, shares: pd.DataFrame, picture: Path) -> None:
    """Draw the densities of known and new kinds, and the class mix."""
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    outliers, mix = figure.subplots(1, 2)
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
    place = np.arange(len(shares))
    for offset, (name, color) in enumerate({"training": "0.8", "estimated": "#0072B2", "true": "black"}.items()):
        mix.bar(place + 0.27 * (offset - 1), shares[name], 0.25, color=color, label=name)
    mix.set_xticks(place, [kind.replace(" ", "\n") for kind in shares.index])
    mix.yaxis.set_major_formatter("{x:.0%}")
    mix.set_ylabel("share of connections")
    mix.set_title("Class mix, estimated without labels", loc="left")
    mix.legend(frameon=False, fontsize="small")
    for axes in (outliers, mix):
        axes.spines[["top", "right"]].set_visible(False)
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=110)


if __name__ == "__main__":
    main()
