"""scikit-learn's naive Bayes classifiers and discriminants by name, parameter and attribute, counted by deciban.

Change the import and keep the rest of the script: `from deciban.dropin import GaussianNB`. They take missing cells and
sparse matrices, learn in batches (`partial_fit` agrees with `fit`), take weights, and add up (`a + b`).
"""

from deciban.estimators.dropin.discriminant import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from deciban.estimators.dropin.naive_bayes import BernoulliNB, CategoricalNB, ComplementNB, GaussianNB, MultinomialNB
from deciban.estimators.dropin.onnx import register_converters

__all__ = [
    "BernoulliNB",
    "CategoricalNB",
    "ComplementNB",
    "GaussianNB",
    "LinearDiscriminantAnalysis",
    "MultinomialNB",
    "QuadraticDiscriminantAnalysis",
    "register_converters",
]
