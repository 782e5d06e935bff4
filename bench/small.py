"""Whether tuning does harm where rows are few: tuned against plain Bayes on small draws from real tables.

    bench/.venv/bin/python bench/small.py [--draws 500] [--write]

Each draw takes a development table, 20 to 99 of its rows to learn from and up to 2,000 others to judge by. A draw is
worse "by more than noise" if the mean difference of the log-losses of its judged rows is more than two standard errors
above 0, and more than 0.02 nats. --write puts the figures into bench/SMALL.md.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np

import tables
from deciban import BayesClassifier

JUDGED = 2_000
NOISE, LEAST = 2.0, 0.02


def losses(tune: str | None, frame, labels: np.ndarray, learned: np.ndarray, judged: np.ndarray) -> np.ndarray:
    """The log-loss of each judged row whose class was learned."""
    model = BayesClassifier(tune=tune).fit(frame.iloc[learned], labels[learned])
    place = np.searchsorted(model.classes_, labels[judged])
    chance = model.predict_proba(frame.iloc[judged])[np.arange(judged.size), place]
    return -np.log(np.clip(chance, 1e-15, 1.0))


def draw(rng: np.random.Generator, names: list[str]) -> tuple[str, int, np.ndarray] | None:
    """A table, how many of its rows were learned, and what tuning adds to the loss of each judged row."""
    name = names[rng.integers(len(names))]
    frame, labels = tables.load(name)
    order = rng.permutation(len(labels))
    size = int(rng.integers(20, 100))
    learned, others = order[:size], order[size:]
    judged = others[np.isin(labels[others], np.unique(labels[learned]))][:JUDGED]
    if np.unique(labels[learned]).size < 2 or judged.size < 50:
        return None
    tuned, plain = (losses(tune, frame, labels, learned, judged) for tune in ("auto", None))
    return name, size, tuned - plain


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--write", action="store_true", help="write bench/SMALL.md")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rng, names = np.random.default_rng(0), tables.names("development")
    found = []
    while len(found) < options.draws:
        if (one := draw(rng, names)) is not None:
            found.append(one)
    mean = np.array([added.mean() for _, _, added in found])
    error = np.array([added.std() / np.sqrt(added.size) for _, _, added in found])
    size = np.array([rows for _, rows, _ in found])
    worse = mean > np.maximum(NOISE * error, LEAST)
    better = mean < -np.maximum(NOISE * error, LEAST)
    lines = [
        "# Few rows",
        "",
        f"Written by `python bench/small.py --write`: {len(found)} draws of 20 to 99 rows from real tables, tuned",
        "against plain Bayes, judged by up to 2,000 other rows of the same table. Worse or better means by more than",
        "two standard errors and by more than 0.02 nats a row.",
        "",
        "| rows learned | draws | worse | better | mean change of log-loss | worst tenth |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for low, high in ((20, 40), (40, 70), (70, 100), (20, 100)):
        here = (size >= low) & (size < high)
        worst = np.quantile(mean[here], 0.9)
        lines.append(
            f"| {low} to {high - 1} | {here.sum()} | {worse[here].sum()} ({worse[here].mean():.1%}) | "
            f"{better[here].sum()} ({better[here].mean():.1%}) | {mean[here].mean():+.3f} | {worst:+.3f} |"
        )
    print("\n".join(lines))
    for k in np.argsort(-mean)[:12]:
        print(f"{found[k][0]:16} {size[k]} rows: {mean[k]:+.3f} ± {error[k]:.3f}")
    if options.write:
        (Path(__file__).parent / "SMALL.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
