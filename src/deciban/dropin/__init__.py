"""scikit-learn's classifiers by name and attribute, over this engine."""

from deciban.dropin.discriminant import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from deciban.dropin.naive_bayes import BernoulliNB, CategoricalNB, ComplementNB, GaussianNB, MultinomialNB

__all__ = [
    "BernoulliNB",
    "CategoricalNB",
    "ComplementNB",
    "GaussianNB",
    "LinearDiscriminantAnalysis",
    "MultinomialNB",
    "QuadraticDiscriminantAnalysis",
]
