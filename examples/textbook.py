"""Naive Bayes from scratch, for categories and numbers, then the same by deciban: equal to the digit.

    python examples/textbook.py

The table of fourteen days is the textbook's, first with categories, then with temperature and humidity as numbers.
"""

import math
from collections import Counter
from typing import Any

from deciban import BayesClassifier
from deciban.datasets import weather

FAHRENHEIT = [85.0, 80.0, 83.0, 70.0, 68.0, 65.0, 64.0, 72.0, 69.0, 75.0, 75.0, 72.0, 81.0, 71.0]
HUMIDITY = [85.0, 90.0, 86.0, 96.0, 80.0, 70.0, 65.0, 95.0, 70.0, 80.0, 70.0, 90.0, 75.0, 91.0]
Row = dict[str, Any]


class NaiveBayes:
    """Counted priors, smoothed shares of categories, and normal densities of numbers, within each class."""

    def __init__(self, alpha: float = 0.0) -> None:
        self.alpha = alpha

    def fit(self, rows: list[Row], labels: list[str]) -> "NaiveBayes":
        self.classes = sorted(set(labels))
        self.values = {name: {row[name] for row in rows} for name in rows[0]}
        self.rows = {c: [row for row, label in zip(rows, labels, strict=True) if label == c] for c in self.classes}
        self.log_prior = {c: math.log(len(self.rows[c]) / len(rows)) for c in self.classes}
        self.counts = {(c, name): Counter(row[name] for row in self.rows[c]) for c in self.classes for name in rows[0]}
        return self

    def log_likelihood(self, value: Any, name: str, c: str) -> float:
        """Return log P(value | class), or the log density of a number."""
        n = len(self.rows[c])
        if isinstance(value, float):
            cells = [row[name] for row in self.rows[c]]
            mean = math.fsum(cells) / n
            variance = math.fsum((x - mean) ** 2 for x in cells) / n  # maximum likelihood: divided by n
            return -0.5 * (math.log(2 * math.pi * variance) + (value - mean) ** 2 / variance)
        share = (self.counts[c, name][value] + self.alpha) / (n + self.alpha * len(self.values[name]))
        return math.log(share) if share > 0 else -math.inf

    def log_joint(self, row: Row) -> list[float]:
        """Return log prior + sum of log likelihoods for each class: in log space, products cannot underflow."""
        return [self.log_prior[c] + math.fsum(self.log_likelihood(row[x], x, c) for x in row) for c in self.classes]

    def posterior(self, row: Row) -> list[float]:
        joint = self.log_joint(row)
        scaled = [math.exp(one - max(joint)) for one in joint]  # the largest term is 1
        return [one / math.fsum(scaled) for one in scaled]

    def predict(self, row: Row) -> str:
        """Return the maximum a posteriori class."""
        return max(zip(self.posterior(row), self.classes, strict=True))[1]


def compare(rows: list[Row], labels: list[str], row: Row, alpha: float) -> list[tuple[str, float, float]]:
    """Return the log joint and the posterior of each class, by both programs."""
    own = NaiveBayes(alpha).fit(rows, labels)
    clf = BayesClassifier(alpha=alpha, tune=None).fit(rows, labels)
    assert own.predict(row) == clf.predict([row])[0]
    found = [("log joint", own.log_joint(row), clf.log_joint([row])[0])]
    found.append(("posterior", own.posterior(row), clf.predict_proba([row])[0]))
    return [
        (f"{what} of {label}", mine, float(theirs))
        for what, mine_all, theirs_all in found
        for label, mine, theirs in zip(own.classes, mine_all, theirs_all, strict=True)
    ]


def main() -> dict[str, list[tuple[str, float, float]]]:
    rows = weather().to_pylist()
    labels = [row.pop("play") for row in rows]
    day = {"outlook": "sunny", "temperature": "cool", "humidity": "high", "wind": "strong"}
    numbers = [{**row, "temperature": t, "humidity": h} for row, t, h in zip(rows, FAHRENHEIT, HUMIDITY, strict=True)]
    found = {
        "categories": compare(rows, labels, day, alpha=0),
        "categories, Laplace smoothing": compare(rows, labels, day, alpha=1),
        "categories and numbers": compare(numbers, labels, {**day, "temperature": 66.0, "humidity": 90.0}, alpha=0),
    }
    for name, lines in found.items():
        print(f"{name:30} {'from scratch':>16} {'deciban':>16}")
        for what, mine, theirs in lines:
            print(f"  {what:28} {mine:16.12f} {theirs:16.12f}")
    return found


if __name__ == "__main__":
    found = main()
