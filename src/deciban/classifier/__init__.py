"""The classifier as an estimator of scikit-learn: signatures and documentation; the work is done in the rooms below."""

from deciban.classifier.estimator import BayesClassifier
from deciban.classifier.models import load, merge

__all__ = ["BayesClassifier", "load", "merge"]
