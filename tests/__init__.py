"""What tests share."""

from typing import Any

from deciban import BayesClassifier


def textbook(columns: Any = None, **given: Any) -> BayesClassifier:
    """Textbook Bayes, untuned."""
    return BayesClassifier(columns, tune=None, **given)
