"""The classifier as an estimator of scikit-learn: signatures and documentation; the work is done in the rooms below."""

from deciban.estimators.classifier.estimator import BayesClassifier
from deciban.estimators.classifier.models import count_batches, load, merge

__all__ = ["BayesClassifier", "count_batches", "load", "merge"]
