"""Linear and quadratic forms score as their models do."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

import deciban as dc
from deciban.datasets import weather
from tests import textbook

RNG = np.random.default_rng(0)
X, Y = load_iris(return_X_y=True)
POSITIVE = RNG.gamma(2.0, 1.0, (60, 3)) + 0.1 * np.arange(60)[:, None] % 1
LABELS = np.arange(60) % 3
LINEAR = [
    ("bernoulli", dc.Bernoulli(), (POSITIVE > 1.5).astype(int)),
    ("multinomial", dc.Multinomial(), RNG.poisson(2.0, (60, 4))),
    ("categorical", dc.Categorical(), RNG.integers(0, 4, (60, 3))),
    ("binned", dc.Binned(), POSITIVE),
    ("pooled", dc.Gaussian(variance=dc.Pooled()), POSITIVE),
    ("log-normal", dc.LogNormal(variance=dc.Pooled()), POSITIVE),
    ("gamma", dc.Gamma(), POSITIVE),
    ("poisson", dc.Poisson(), RNG.poisson(3.0, (60, 3)).astype(float)),
    ("joint", dc.JointGaussian(dc.Pooled()), POSITIVE),
]
QUADRATIC = [
    ("gaussian", dc.Gaussian(), POSITIVE),
    ("log-normal", dc.LogNormal(), POSITIVE),
    ("joint", dc.JointGaussian(), POSITIVE),
    ("mixed", {0: dc.Gaussian(), (1, 2): dc.JointGaussian(dc.Pooled())}, POSITIVE + 1e6),
]


def same_posteriors(form, clf, X) -> None:
    scores = form.scores(X)
    log_posterior = scores - logsumexp(scores, axis=1, keepdims=True)
    np.testing.assert_allclose(log_posterior, clf.predict_log_proba(X), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize(("name", "family", "X"), LINEAR, ids=[case[0] for case in LINEAR])
def test_scores_of_the_linear_form_are_the_models(name: str, family, X) -> None:
    clf = textbook(family).fit(X, LABELS)
    form = clf.linear_form()
    assert form.quadratic is None
    same_posteriors(form, clf, X)
    features = form.features(X)
    full = ~np.isnan(features).any(axis=1)
    scores = features[full] @ form.weights + form.intercept
    np.testing.assert_allclose(scores, form.scores(X)[full], rtol=1e-9, atol=1e-9)
    w, b = form.hyperplane(0, 2)
    np.testing.assert_allclose(features[full] @ w + b, scores[:, 0] - scores[:, 2], rtol=1e-7, atol=1e-8)
    assert form.names[0] in str(form)


@pytest.mark.parametrize(("name", "family", "X"), QUADRATIC, ids=[case[0] for case in QUADRATIC])
def test_scores_of_the_quadratic_form_are_the_models(name: str, family, X) -> None:
    clf = textbook(family).fit(X, LABELS)
    with pytest.raises(ValueError, match="quadratic_form"):
        clf.linear_form()
    form = clf.quadratic_form()
    same_posteriors(form, clf, X) if name != "mixed" else None
    if name == "mixed":  # large offsets cost digits in x·Qx
        shifted = textbook(family).fit(X - 1e6, LABELS)
        same_posteriors(shifted.quadratic_form(), shifted, X - 1e6)
    with pytest.raises(ValueError, match="no hyperplane"):
        form.hyperplane(0, 1)


def test_forms_with_missing_cells_and_weights() -> None:
    table = pd.DataFrame({"x": POSITIVE[:, 0], "flag": POSITIVE[:, 1] > 1.0, "word": np.array(list("abc"))[LABELS - 1]})
    table.loc[::7, "x"] = np.nan
    table.loc[::5, "word"] = None
    spec = {"x": dc.Gaussian(variance=dc.Pooled()), "flag": dc.Bernoulli(), "word": dc.Categorical()}
    clf = textbook(spec).fit(table, LABELS)
    same_posteriors(clf.linear_form(), clf, table)
    tuned = dc.BayesClassifier(spec, tune="weights").fit(table, LABELS)
    assert (tuned.model_.weights != 1.0).any()
    same_posteriors(tuned.linear_form(), tuned, table)
    joint = textbook(dc.JointGaussian(dc.Pooled())).fit(POSITIVE, LABELS)
    with pytest.raises(ValueError, match="modeled together, and some of their cells are missing"):
        joint.linear_form().scores([[1.0, np.nan, 2.0]])


def test_the_signed_form_is_the_logistic_one() -> None:
    y = np.where(LABELS == 0, -1, 1)
    clf = textbook(dc.Gaussian(variance=dc.Pooled())).fit(POSITIVE, y)
    w, b = clf.linear_form().hyperplane()
    np.testing.assert_allclose(1 / (1 + np.exp(-(POSITIVE @ w + b))), clf.predict_proba(POSITIVE)[:, 1], rtol=1e-9)
    np.testing.assert_array_equal(np.sign(POSITIVE @ w + b), clf.predict(POSITIVE))
    with pytest.raises(ValueError, match="3 classes; name two"):
        textbook(dc.Gaussian(variance=dc.Pooled())).fit(POSITIVE, LABELS).linear_form().hyperplane()


def test_forms_are_refused_with_a_reason() -> None:
    with pytest.raises(ValueError, match="no finite weight; use alpha > 0"):
        textbook(dc.Bernoulli(alpha=0)).fit([[0, 1], [0, 0], [1, 1]], [0, 0, 1]).linear_form()
    with pytest.raises(ValueError, match="JointTable"):
        textbook({("outlook", "wind"): dc.JointTable()}).fit(weather(), "play").linear_form()


def test_pooled_gaussians_and_logistic_regression_agree_as_data_grow() -> None:
    distances = []
    for rows in (300, 30_000):
        y = np.arange(rows) % 2
        x = RNG.normal(size=(rows, 3)) + y[:, None] * [1.0, -0.5, 0.3]
        w, b = textbook(dc.Gaussian(variance=dc.Pooled())).fit(x, y).linear_form().hyperplane()
        logistic = LogisticRegression(C=np.inf).fit(x, y)
        distances.append(np.abs(np.append(w, b) - np.append(logistic.coef_[0], logistic.intercept_)).max())
    assert distances[1] < 0.05
    assert distances[1] < distances[0]


def test_forms_keep_their_digits_where_values_are_large() -> None:
    y = np.arange(300) % 2
    X = RNG.normal(size=(300, 3)) * 0.01 + 1e6 + 0.01 * y[:, None]
    for family in (dc.Gaussian(), dc.JointGaussian(), dc.Gaussian(variance=dc.Pooled())):
        clf = textbook(family).fit(X, y)
        same_posteriors(clf.quadratic_form(), clf, X)


def test_a_printed_quadratic_form_has_every_term() -> None:
    form = textbook(dc.JointGaussian()).fit(X[:, :2], Y).quadratic_form()
    lines = {line[:9].strip(): [float(word) for word in line[9:].split()] for line in str(form).splitlines()}
    assert list(lines) == ["", "x0", "x1", "x0²", "x0 · x1", "x1²", "intercept"]
    rows = X[::10, :2]
    for c in range(3):
        one, two, square, product, other, intercept = (lines[name][c] for name in list(lines)[1:])
        a, b = rows.T
        said = one * a + two * b + square * a * a + product * a * b + other * b * b + intercept
        np.testing.assert_allclose(said, form.scores(rows)[:, c], atol=0.15)  # four digits are printed
    wide = textbook(dc.JointGaussian()).fit(RNG.normal(size=(200, 12)), np.arange(200) % 2).quadratic_form()
    assert len(str(wide).splitlines()) == 33
    assert "…" in str(wide)


def test_ddof_is_subtracted_once_for_each_class() -> None:
    """So that 1 divides a pooled scatter by n - g, as MASS's lda does."""
    within = sum((X[c == Y] - X[c == Y].mean(axis=0)).T @ (X[c == Y] - X[c == Y].mean(axis=0)) for c in range(3))
    joint = textbook(dc.JointGaussian(dc.Pooled(), ddof=1)).fit(X, Y).estimates()
    np.testing.assert_allclose(joint["x0+x1+x2+x3"]["covariance"][0], within / (len(X) - 3), rtol=1e-9)
    for ddof, divisor in ((0, len(X)), (1, len(X) - 3), (2, len(X) - 6)):
        alone = textbook(dc.Gaussian(variance=dc.Pooled(), ddof=ddof)).fit(X, Y).estimates()
        assert alone["x2"]["variance"] == pytest.approx(within[2, 2] / divisor, rel=1e-9)
