"""scikit-learn's naive Bayes classifiers and discriminants by name, parameter and attribute, over this engine.

Change the import and keep the rest of the script: `from deciban.dropin import GaussianNB`. They take missing cells and
sparse matrices, learn in batches (`partial_fit` agrees with `fit`), take weights, and add up (`a + b`).
"""

from deciban.dropin.categorical_nb import CategoricalNB
from deciban.dropin.discrete_nb import BernoulliNB, ComplementNB, MultinomialNB
from deciban.dropin.gaussian_nb import GaussianNB
from deciban.dropin.linear_discriminant import LinearDiscriminantAnalysis
from deciban.dropin.quadratic_discriminant import QuadraticDiscriminantAnalysis

__all__ = [
    "BernoulliNB",
    "CategoricalNB",
    "ComplementNB",
    "GaussianNB",
    "LinearDiscriminantAnalysis",
    "MultinomialNB",
    "QuadraticDiscriminantAnalysis",
]
