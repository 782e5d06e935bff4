"""What tests share."""

from typing import Any

from hypothesis import settings

from deciban import BayesClassifier

# Seconds after which a test gives up waiting for another process: many, as machines are busy.
PATIENCE = 300.0


def textbook(columns: Any = None, **given: Any) -> BayesClassifier:
    """Textbook Bayes, untuned."""
    return BayesClassifier(columns, tune=None, **given)


def example_count(usual: int) -> int:
    """The number of examples of a property test: ten times the usual one in the profile `thorough` of conftest.py."""
    return max(1, usual * settings().max_examples // 100)
