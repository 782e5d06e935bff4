"""Pictures of docs/lectures: posteriors, smoothing, words, costs, parameter growth, and the logistic function.

python examples/lectures.py [--output FOLDER]
"""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression

from deciban import BayesClassifier, Bernoulli, Categorical, Gaussian, Multinomial, Pooled, bayes_error
from deciban.plot import DecisionDisplay

GALLERY = Path(__file__).parents[1] / "docs" / "images"
BLUE, RED, GREEN, GRAY = "#0072B2", "#D55E00", "#009E73", "0.45"


def make_figure(title: str, x: str, y: str) -> tuple[Figure, Any]:
    figure = Figure(figsize=(6.4, 3.2), layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(title, loc="left", fontsize="medium")
    axes.set(xlabel=x, ylabel=y)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def draw_letters() -> Figure:
    """Draw joint densities and posteriors of the letters a and b, with the decision boundary."""
    figure = Figure(figsize=(7.5, 5.6), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True)
    result = bayes_error([norm(15, 4), norm(25, 4)], [0.75, 0.25], classes=["a", "b"])
    DecisionDisplay.from_bayes_error(result, name="black pixels x", ax=upper)
    DecisionDisplay.from_bayes_error(result, name="black pixels x", y_axis="posterior", ax=lower)
    upper.set_xlabel("")
    lower.set_title("Posteriors: they cross at the decision boundary", loc="left")
    return figure


def draw_smoothing() -> Figure:
    """Draw the estimates of 0 of 100 and 30 of 80 against alpha."""
    figure, axes = make_figure("Smoothing of P(jackpot | class)", "alpha", "estimate")
    alpha = np.linspace(0, 20, 201)
    for name, count, rows, color in (("30 of 80 spam emails", 30, 80, RED), ("0 of 100 safe emails", 0, 100, BLUE)):
        axes.plot(alpha, (count + alpha) / (rows + 2 * alpha), color=color)
        axes.annotate(name, (20, (count + 20) / (rows + 40)), (0, 6), textcoords="offset points", ha="right")
    axes.axvline(1, color=GRAY, linewidth=1)
    axes.text(1.3, 0.45, "Laplace smoothing", color=GRAY)
    axes.set(xlim=(0, 20), ylim=(0, 0.5))
    return figure


def draw_words() -> Figure:
    """Draw the evidence of a word by the number of its occurrences, in three models."""
    figure, axes = make_figure("Evidence of a word for spam", "occurrences of the word", "decibans")
    word = np.array([1, 2, 1, 3, 0, 0, 0, 0, 1, 0, 0, 0])
    kinds = ["spam"] * 6 + ["ham"] * 6
    times = np.arange(6)

    def measure(family: Any, counts: np.ndarray, new: np.ndarray) -> np.ndarray:
        clf = BayesClassifier(family, prior="uniform", tune=None).fit(counts, kinds)
        ham, spam = clf.evidence(new).log_likelihood.T
        return (spam - ham) * 10 / np.log(10)

    alone = times[:, None]
    for name, values, color, marker in (
        ("multinomial", measure(Multinomial(), np.stack([word, 10 - word], 1), times[:, None] * [1, 0]), RED, "o"),
        ("Bernoulli", measure(Bernoulli(), word[:, None] > 0, alone > 0), BLUE, "s"),
        ("categorical", measure(Categorical(), word[:, None], alone), GREEN, "^"),
    ):
        axes.plot(times, values, color=color, marker=marker, label=name)
    axes.axhline(0, color=GRAY, linewidth=0.8)
    axes.legend(frameon=False)
    return figure


def draw_risks() -> Figure:
    """Draw the expected cost of each decision against P(ill | x)."""
    figure, axes = make_figure("Expected cost of each decision", "P(ill | x)", "expected cost")
    ill = np.array([0.0, 1.0])
    for name, cost, color in (("treat", 1 - ill, BLUE), ("wait", 4 * ill, RED), ("reject", np.full(2, 0.5), GREEN)):
        axes.plot(ill, cost, color=color, label=name)
    for edge in (0.125, 0.5):
        axes.axvline(edge, color=GRAY, linewidth=1, linestyle=":")
    for x, name in ((0.06, "wait"), (0.31, "reject"), (0.75, "treat")):
        axes.text(x, 0.05, name, ha="center", color=GRAY)
    axes.set(xlim=(0, 1), ylim=(0, 1.55))
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    return figure


def draw_growth() -> Figure:
    """Draw the number of parameters per class against the number of columns."""
    figure, axes = make_figure("Parameters per class, d binary columns", "columns d", "parameters")
    d = np.arange(1, 31)
    axes.plot(d, 2.0**d - 1, color=RED)
    axes.plot(d, d, color=BLUE)
    axes.annotate("joint: $2^d - 1$", (22, 2.0**22), (-8, 0), textcoords="offset points", ha="right", color=RED)
    axes.annotate("naive: $d$", (22, 22), (0, 7), textcoords="offset points", color=BLUE)
    axes.axhline(1e6, color=GRAY, linewidth=1, linestyle=":")
    axes.annotate("a million rows", (1, 1e6), (6, 4), textcoords="offset points", color=GRAY)
    axes.set(yscale="log", xlim=(1, 30))
    return figure


def draw_logistic() -> Figure:
    """Draw the posterior of naive Bayes with pooled variances, beside logistic regression."""
    figure, axes = make_figure("One model, two ways to learn it", "w · x + b of naive Bayes", "P(+1 | x)")
    rng = np.random.default_rng(3)
    y = np.arange(400) % 2 * 2 - 1
    x = rng.normal(size=(400, 2)) + 0.5 * y[:, None] * [2.0, -1.0]
    clf = BayesClassifier(Gaussian(variance=Pooled()), tune=None).fit(x, y)
    w, b = clf.linear_form().hyperplane()
    score = x @ w + b
    other = LogisticRegression(C=np.inf).fit(x, y).predict_proba(x)[:, 1]
    axes.scatter(score, other, s=6, color=RED, label="logistic regression, 400 rows")
    line = np.linspace(score.min(), score.max(), 200)
    axes.plot(line, 1 / (1 + np.exp(-line)), color=BLUE, label="naive Bayes: 1 / (1 + exp(−(w · x + b)))")
    axes.legend(frameon=False, fontsize="small")
    return figure


PICTURES = {
    "posteriors": draw_letters,
    "smoothing": draw_smoothing,
    "words": draw_words,
    "risks": draw_risks,
    "parameters": draw_growth,
    "logistic": draw_logistic,
}


def main(arguments: list[str] | None = None) -> list[str]:
    parser = ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=GALLERY)
    output = parser.parse_args(arguments).output
    output.mkdir(parents=True, exist_ok=True)
    for name, draw in PICTURES.items():
        draw().savefig(output / f"{name}.png", dpi=90)
    return list(PICTURES)


if __name__ == "__main__":
    found = main()
