"""Learning curves from shards that are added up, and dependence of columns within the classes."""

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.datasets import load_iris
from sklearn.metrics import accuracy_score, log_loss

from deciban import BayesClassifier, UsageError
from deciban.datasets import weather
from deciban.fitting import fit
from deciban.plot import DependenceDisplay, LearningDisplay, learning


def blobs(rows: int = 900) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    y = rng.integers(0, 3, rows)
    return rng.normal(y[:, None] * [1.0, 0.5, 0.0], 1.0), y


def test_each_point_is_what_a_fit_of_so_many_rows_says(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = blobs()
    train, test = slice(0, 600), slice(600, None)
    clf = BayesClassifier(tune=None).fit(X[train], y[train])
    monkeypatch.setattr(fit, "fit", lambda *a, **k: pytest.fail("something was fitted again"))
    shown = LearningDisplay.from_estimator(clf, X[train], y[train], X_test=X[test], y_test=y[test], shards=5)
    monkeypatch.undo()
    assert shown.rows.tolist() == [37, 75, 150, 300, 600]
    order = np.random.default_rng(0).permutation(600)
    for k, rows in enumerate(shown.rows):
        again = BayesClassifier(tune=None).fit(X[train][order[:rows]], y[train][order[:rows]])
        claims = again.predict_proba(X[test])
        assert shown.metrics["plain Bayes"].accuracy[k] == pytest.approx(accuracy_score(y[test], claims.argmax(axis=1)))
        assert shown.metrics["plain Bayes"].log_loss[k] == pytest.approx(log_loss(y[test], claims), abs=1e-6)
    drawn = shown.axes_[0].lines[0]
    np.testing.assert_allclose(drawn.get_xdata(), shown.rows)
    np.testing.assert_allclose(drawn.get_ydata(), shown.metrics["plain Bayes"].log_loss)
    loss = -np.log(claims[np.arange(300), y[test]])
    (low, high), accuracy = shown.metrics["plain Bayes"].bounds()
    half = 1.96 * loss.std() / np.sqrt(300)
    assert (low[-1], high[-1]) == pytest.approx((loss.mean() - half, loss.mean() + half), abs=1e-4)
    correct = int((claims.argmax(axis=1) == y[test]).sum())
    expected = binomtest(correct, 300).proportion_ci(method="wilson")
    assert (accuracy[0][-1], accuracy[1][-1]) == pytest.approx((expected.low, expected.high), abs=1e-6)


def test_shards_are_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = blobs()
    clf = BayesClassifier(tune="weights").fit(X, y)
    counted: list[int] = []
    count = learning.count_examples
    monkeypatch.setattr(
        learning, "count_examples", lambda schema, rows, *a: counted.append(rows.table.rows) or count(schema, rows, *a)
    )
    shown = LearningDisplay.from_estimator(clf, X, y, shards=4)
    assert list(shown.metrics) == ["plain Bayes", "tuned"]
    assert sum(counted) == shown.rows[-1]
    assert shown.rows[-1] + shown.held_out == 900
    last = clf.evaluate(X, y).log_loss
    assert shown.metrics["tuned"].log_loss[-1] == pytest.approx(last, abs=0.05)


def test_too_few_rows_or_shards_are_refused() -> None:
    X, y = blobs(30)
    clf = BayesClassifier(tune=None).fit(X, y)
    with pytest.raises(UsageError, match="shards=1"):
        LearningDisplay.from_estimator(clf, X, y, shards=1)
    with pytest.raises(UsageError, match="too few"):
        LearningDisplay.from_estimator(clf, X[:12], y[:12])


def test_the_matrix_has_the_bits_of_the_diagnosis() -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    clf = BayesClassifier(tune=None).fit(X, y)
    shown = DependenceDisplay.from_estimator(clf)
    found = clf.diagnose().dependences
    assert len(found) > 1
    matrix = shown.ax_.images[0].get_array()
    place = {name: k for k, name in enumerate(shown.columns)}
    for one in found:
        a, b = (place[name] for name in one.columns)
        assert matrix[a, b] == matrix[b, a] == one.bits
    assert np.ma.count(np.ma.masked_invalid(matrix)) == 2 * len(found)
    bars = DependenceDisplay.from_estimator(clf, kind="bars")
    assert [bar.get_width() for bar in bars.ax_.patches] == [one.bits for one in found]
    assert [text.get_text() for text in bars.ax_.get_yticklabels()] == [" and ".join(one.columns) for one in found]
    assert shown.to_frame().bits.tolist() == [one.bits for one in found]
    with pytest.raises(UsageError, match="choose 'matrix' or 'bars'"):
        shown.plot(kind="pie")  # type: ignore[arg-type]


def test_two_equal_columns_share_all_their_bits() -> None:
    rng = np.random.default_rng(0)
    coin = rng.integers(0, 2, 4000)
    X = np.stack([coin, coin, rng.integers(0, 2, 4000)], axis=1)
    clf = BayesClassifier(tune=None).fit(X, rng.integers(0, 2, 4000))
    (one,) = DependenceDisplay.from_estimator(clf).dependences
    assert one.columns == ("x0", "x1")
    assert one.bits == pytest.approx(1.0, abs=0.01)


def test_no_dependence_is_said() -> None:
    shown = DependenceDisplay.from_estimator(BayesClassifier(tune=None).fit(weather(), "play"))
    assert shown.ax_.texts[0].get_text() == "No dependence between columns within the classes (6 pairs tested)"
    assert len(shown.to_frame()) == 0
