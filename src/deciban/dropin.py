"""scikit-learn's naive Bayes classifiers and discriminants by name, parameter and attribute, counted by deciban.

Change the import and keep the rest of the script: `from deciban.dropin import GaussianNB`. They take missing cells and
sparse matrices, learn in batches (`partial_fit` agrees with `fit`), take weights, and add up (`a + b`).
"""

from deciban.estimators.dropin.categorical_nb import CategoricalNB
from deciban.estimators.dropin.discrete_nb import BernoulliNB, ComplementNB, MultinomialNB
from deciban.estimators.dropin.gaussian_nb import GaussianNB
from deciban.estimators.dropin.linear_discriminant import LinearDiscriminantAnalysis
from deciban.estimators.dropin.onnx import register_converters
from deciban.estimators.dropin.quadratic_discriminant import QuadraticDiscriminantAnalysis

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
