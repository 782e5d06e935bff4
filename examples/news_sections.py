"""Which desk does this story belong to? The sections of a newspaper, the words that tell them, and the confusions.

    python examples/news_sections.py [STORIES] [--section COLUMN] [--output FOLDER]

Data: simulated stories (`stories`, below), as newspapers are not free to copy. Each is made of a few phrases, some of
which are of another desk, mostly of the neighbor's, so that the best that any reader could do is known. STORIES may
be a Parquet file of your own with the columns `text`, `section` (or another: --section) and `part` (train or test): 20
Newsgroups, for example.

The reader learns: texts of many classes, `evaluate` with its confusions, `top_words`, the explanation of a story
between two desks, and how near a thousand stories bring us to what can be known.
"""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from deciban import BayesClassifier, Evaluation

GALLERY = Path(__file__).parents[1] / "docs" / "gallery"
PHRASES = {  # each desk has its neighbor next to it, the last one the first
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
LEARNED = 1000  # stories


def stories(
    number: int = 3000, stray: float = 0.45, neighbor: float = 0.7, seed: int = 0
) -> tuple[pd.DataFrame, np.ndarray]:
    """Stories of three to five phrases, and the exact probability of each section, given the phrases.

    A phrase is a stray one with probability `stray`; that is the neighbor's with probability `neighbor`.
    """
    rng = np.random.default_rng(seed)
    desks = list(PHRASES)
    phrases = np.array([text.split("|") for text in PHRASES.values()])
    away = np.full((len(desks), len(desks)), stray * (1 - neighbor) / (len(desks) - 2))
    for desk in range(len(desks)):
        away[desk, desk], away[desk, (desk + 1) % len(desks)] = 1 - stray, stray * neighbor
    rows, posterior = [], []
    for row in range(number):
        desk = rng.integers(len(desks))
        sources = rng.choice(len(desks), rng.integers(3, 6), p=away[desk])
        text = ", ".join(phrases[source, rng.integers(phrases.shape[1])] for source in sources)
        rows.append({"text": text, "section": desks[desk], "part": "train" if row < LEARNED else "test"})
        likelihood = away[:, sources].prod(axis=1)
        posterior.append(likelihood / likelihood.sum())
    return pd.DataFrame(rows), np.array(posterior)


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    parser = ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stories", nargs="?")
    parser.add_argument("--section", default="section")
    parser.add_argument("--output", type=Path, default=GALLERY)
    given = parser.parse_args(arguments)
    table, exact = stories() if not given.stories else (pd.read_parquet(given.stories), None)
    sections = table[given.section].to_numpy()
    learned, later = table["part"] == "train", table["part"] == "test"
    clf = BayesClassifier().fit(table.loc[learned, ["text"]], sections[learned])
    figures = clf.evaluate(table.loc[later, ["text"]], sections[later])
    print(f"{learned.sum()} stories learned, {later.sum()} others sorted into {len(clf.classes_)} sections: "
          f"{figures.accuracy:.1%} right, log-loss {figures.log_loss:.3f}")  # fmt: skip
    print(f"always {figures.baseline['class']}: {figures.baseline['accuracy']:.1%}, {figures.baseline['log_loss']:.3f}")
    best = None
    if exact is not None:
        truth = np.array([list(PHRASES).index(section) for section in sections[later]])
        best = (exact[later].argmax(axis=1) == truth).mean()
        least = -np.log(exact[later][np.arange(len(truth)), truth]).mean()
        print(f"the best that any reader could do: {best:.1%}, {least:.3f}")
    long_words = {label: [w.word for w in clf.top_words(label, 30) if len(w.word) > 3] for label in clf.classes_}
    words = [", ".join(typical[:5]) for typical in long_words.values()]
    print("\n".join(f"{label:>12}: {typical}" for label, typical in zip(clf.classes_, words, strict=True)))
    posterior = clf.predict_proba(table.loc[later, ["text"]])
    doubtful = table[later].iloc[[posterior.max(axis=1).argmin()]]
    print(f"\nThe most doubtful story, of {doubtful[given.section].item()}:")
    print(clf.explain(doubtful[["text"]]).summary(0))
    draw(figures, words, given.output / "news_sections.png")
    return {"figures": figures, "best": best}


def draw(figures: Evaluation, words: list[str], picture: Path) -> None:
    share = figures.confusion / figures.confusion.sum(axis=1, keepdims=True)
    count = len(share)
    figure = Figure(figsize=(5.5 + 0.35 * max(count, 8), 2 + 0.35 * max(count, 6)), layout="constrained")
    axes = figure.subplots()
    axes.imshow(share, cmap="Blues", vmin=0, vmax=1)
    for row, column in np.ndindex(share.shape):
        if share[row, column] > 0.005:
            color = "white" if share[row, column] > 0.5 else "black"
            text = f"{share[row, column]:.0%}"
            axes.text(column, row, text, ha="center", va="center", color=color, fontsize=9 if count <= 8 else 6)
    axes.set_xticks(
        range(count), figures.classes, rotation=45 if count <= 8 else 90, ha="right" if count <= 8 else "center"
    )
    axes.set_yticks(range(count), figures.classes)
    for row, typical in enumerate(words):
        axes.text(count - 0.3, row, typical, va="center", color="0.4", fontsize=9 if count <= 8 else 7)
    axes.text(count - 0.3, -0.7, "typical words", va="center", fontsize=10)
    axes.set(xlabel="taken for", ylabel="stories of")
    axes.set_title("Which desk is taken for which", loc="left")
    axes.spines[:].set_visible(False)
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=120)


if __name__ == "__main__":
    main()
