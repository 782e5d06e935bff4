"""Drop-in replacements for scikit-learn's naive Bayes and discriminant analysis classifiers.

Change only the import: `from deciban.dropin import GaussianNB`. Names, parameters and attributes are those of
scikit-learn. These classifiers also accept missing values, sparse matrices and sample weights, learn in batches
(`partial_fit` agrees with `fit`), and can be added (`a + b`).
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
