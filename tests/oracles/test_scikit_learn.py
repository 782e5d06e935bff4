"""scikit-learn on the same data, where it is right."""

import numpy as np
import pytest
from scipy import sparse
from sklearn import datasets, naive_bayes
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from deciban import Bernoulli, Categorical, Gaussian, JointGaussian, Multinomial, PerClass, Pooled
from tests import textbook

X, Y = datasets.load_iris(return_X_y=True)
WEIGHTS = np.random.default_rng(0).random(150)
COUNTS = np.floor(X * 3)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize(
    ("ours", "theirs", "table"),
    [
        (Gaussian(), naive_bayes.GaussianNB(var_smoothing=0), X),
        (Multinomial(alpha=0.5), naive_bayes.MultinomialNB(alpha=0.5), COUNTS),
        (Multinomial(alpha=0.5), naive_bayes.MultinomialNB(alpha=0.5), sparse.csr_array(COUNTS)),
        (Bernoulli(alpha=0.5, threshold=10), naive_bayes.BernoulliNB(alpha=0.5, binarize=10), COUNTS),
    ],
    ids=["gaussian", "multinomial", "multinomial-sparse", "bernoulli"],
)
def test_naive_bayes(ours, theirs, table, weights) -> None:
    found = textbook(ours).fit(table, Y, weights).predict_proba(table)
    np.testing.assert_allclose(found, theirs.fit(table, Y, weights).predict_proba(table), rtol=1e-9, atol=1e-12)


def test_categorical() -> None:
    """scikit-learn counts every code from 0; with all of them given as levels, so do we."""
    codes = np.minimum(COUNTS, 9).astype(int)
    theirs = naive_bayes.CategoricalNB(alpha=0.5, min_categories=10).fit(codes, Y).predict_proba(codes)
    ours = textbook(Categorical(alpha=0.5, levels=tuple(range(10)))).fit(codes, Y).predict_proba(codes)
    np.testing.assert_allclose(ours, theirs, rtol=1e-9)


def test_linear_discriminant() -> None:
    ours = textbook(JointGaussian(Pooled())).fit(X, Y).predict_proba(X)
    np.testing.assert_allclose(ours, LinearDiscriminantAnalysis().fit(X, Y).predict_proba(X), rtol=1e-7, atol=1e-12)


def test_discriminants_are_the_closed_formulas() -> None:
    priors = np.bincount(Y) / 150
    means = np.array([X[c == Y].mean(axis=0) for c in range(3)])
    own = np.array([np.cov(X[c == Y].T, bias=True) for c in range(3)])
    pooled = (own * (priors * 150)[:, None, None]).sum(axis=0) / 150
    inverse = np.linalg.inv(pooled)
    linear = X @ inverse @ means.T - 0.5 * np.einsum("ci,ij,cj->c", means, inverse, means) + np.log(priors)
    quadratic = np.stack(
        [
            -0.5 * np.linalg.slogdet(own[c])[1]
            - 0.5 * np.einsum("ni,ij,nj->n", X - means[c], np.linalg.inv(own[c]), X - means[c])
            + np.log(priors[c])
            for c in range(3)
        ],
        axis=1,
    )
    for spread, score in ((Pooled(), linear), (PerClass(), quadratic)):
        expected = np.exp(score - np.logaddexp.reduce(score, axis=1)[:, None])
        found = textbook(JointGaussian(spread)).fit(X, Y).predict_proba(X)
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-12)
