"""Sections of a newspaper
=======================

Five sections, the typical words of each, and the confusion matrix. The stories are simulated, with
phrases from other sections, so the best possible accuracy is known.

::

    python examples/news_sections.py [STORIES] [--section COLUMN] [--output FOLDER]

The stories are simulated because newspapers cannot be copied freely. STORIES can be a Parquet file of
your own with the columns ``text``, ``section`` (or another: ``--section``) and ``part`` (train or
test).

**What to learn:** texts of several classes, ``evaluate`` with its confusion matrix, ``top_words``, and
the explanation of a story between two sections.

On 20 Newsgroups by date (11,314 training posts, 7,532 test posts; not included) the accuracy is 85.8%
and the log loss 0.521: ``python examples/news_sections.py 20news.parquet --section group``.
"""

from argparse import ArgumentParser
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from deciban import BayesClassifier

# %%
# Simulated stories
# -----------------
# Each story consists of a few phrases, some of them from another section, mostly from a similar one.

PHRASES = {  # each section is similar to the next, the last one to the first
    "business": "shares of the bank fall|the company reports a record profit|unions ask for more|oil prices rise"
    "|the car maker cuts jobs|investors sell bonds|interest rates stay high|sales grow abroad|a merger of two airlines",
    "politics": "parliament votes on the budget|the minister resigns|parties begin talks|the opposition is angry"
    "|taxes will rise|voters go to the polls|the court stops the law|the president signs a treaty|a mayor is elected",
    "science": "researchers find a gene|a telescope sees a distant planet|the study lasted ten years|a vaccine for mice"
    "|the climate of the past|money for research|whales sing in dialects|a robot maps the sea|bones of a giant bird",
    "culture": "her film opens in spring|a novel about the sea|old masters at the museum|the orchestra plays abroad"
    "|a prize for an actress|theatre tickets are sold out|her first album|a festival begins|a painting is found",
    "sport": "the team wins the cup|the striker scores twice|a record over ten miles|the coach resigns"
    "|the captain is injured|fans fill the stadium|the final is sold out|the club sells its keeper|gold at the games",
}
LEARNED = 1000  # training stories


def stories(
    number: int = 3000, stray: float = 0.45, neighbor: float = 0.7, seed: int = 0
) -> tuple[pd.DataFrame, np.ndarray]:
    """Return stories of three to five phrases, and the exact probability of each section given the phrases.

    A phrase is from another section with probability `stray`, and then from the next one with probability `neighbor`.
    """
    rng = np.random.default_rng(seed)
    names = list(PHRASES)
    phrases = np.array([text.split("|") for text in PHRASES.values()])
    away = np.full((len(names), len(names)), stray * (1 - neighbor) / (len(names) - 2))
    for k in range(len(names)):
        away[k, k], away[k, (k + 1) % len(names)] = 1 - stray, stray * neighbor
    rows, posterior = [], []
    for row in range(number):
        k = rng.integers(len(names))
        sources = rng.choice(len(names), rng.integers(3, 6), p=away[k])
        text = ", ".join(phrases[source, rng.integers(phrases.shape[1])] for source in sources)
        rows.append({"text": text, "section": names[k], "part": "train" if row < LEARNED else "test"})
        likelihood = away[:, sources].prod(axis=1)
        posterior.append(likelihood / likelihood.sum())
    return pd.DataFrame(rows), np.array(posterior)


parser = ArgumentParser()
parser.add_argument("stories", nargs="?", help="Parquet file with the columns text, section and part")
parser.add_argument("--section", default="section", help="name of the column section")
parser.add_argument("--output", type=Path, help="folder for the picture")
given = parser.parse_args()
table, exact = stories() if not given.stories else (pd.read_parquet(given.stories), None)
sections = table[given.section].to_numpy()

# %%
# Train and evaluate
# ------------------
# The best possible prediction uses the probabilities by which the stories were drawn.

learned, later = table["part"] == "train", table["part"] == "test"
clf = BayesClassifier().fit(table.loc[learned, ["text"]], sections[learned])
metrics = clf.evaluate(table.loc[later, ["text"]], sections[later])
print(f"{learned.sum():,} training stories, {later.sum():,} test stories, {len(clf.classes_)} sections")
print(f"BayesClassifier: accuracy {metrics.accuracy:.1%}, log loss {metrics.log_loss:.3f}")
print(f"always {metrics.baseline['class']}: accuracy {metrics.baseline['accuracy']:.1%}, "
      f"log loss {metrics.baseline['log_loss']:.3f}")  # fmt: skip
if exact is not None:
    truth = np.array([list(PHRASES).index(section) for section in sections[later]])
    best = (exact[later].argmax(axis=1) == truth).mean()
    least = -np.log(exact[later][np.arange(len(truth)), truth]).mean()
    print(f"best possible: accuracy {best:.1%}, log loss {least:.3f}")

# %%
# Typical words of each section
# -----------------------------

long_words = {label: [w.word for w in clf.top_words(label, 30) if len(w.word) > 3] for label in clf.classes_}
words = [", ".join(typical[:5]) for typical in long_words.values()]
print("\n".join(f"{label:>12}: {typical}" for label, typical in zip(clf.classes_, words, strict=True)))

# %%
# Explain the least certain story
# -------------------------------

posterior = clf.predict_proba(table.loc[later, ["text"]])
doubtful = table[later].iloc[[posterior.max(axis=1).argmin()]]
print(f"The least certain story, from {doubtful[given.section].item()}:")
print(clf.explain(doubtful[["text"]]).summary(0))

# %%
# Confusion matrix
# ----------------
# Most errors are between similar sections.

share = metrics.confusion / metrics.confusion.sum(axis=1, keepdims=True)
count = len(share)
small = count > 8
size = (4.4 + 0.35 * max(count, 8), 2 + 0.35 * max(count, 6))
figure, axes = plt.subplots(figsize=size, layout="constrained")
axes.imshow(share, cmap="Blues", vmin=0, vmax=1)
for row, column in np.ndindex(share.shape):
    color = "white" if share[row, column] > 0.5 else "0.6" if share[row, column] < 0.005 else "black"
    axes.text(column, row, f"{100 * share[row, column]:.0f}", ha="center", va="center", color=color,
              fontsize=6 if small else 9)  # fmt: skip
axes.set_xticks(range(count), metrics.classes, rotation=90 if small else 30, ha="center" if small else "right")
axes.set_yticks(range(count), metrics.classes)
axes.tick_params(length=0)
for row, typical in enumerate(words):
    axes.text(count - 0.3, row, typical, va="center", color="0.4", fontsize=7 if small else 9)
axes.text(count - 0.3, -0.7, "typical words", va="center", fontsize=10)
axes.set(xlabel="predicted section", ylabel="true section")
axes.set_title("Confusion matrix (row %)", loc="left")
axes.spines[:].set_visible(False)
if given.output:
    figure.savefig(given.output / "news_sections.png", dpi=110)
plt.show()
