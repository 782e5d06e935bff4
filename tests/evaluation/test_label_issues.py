"""Label errors: planted ones are found, and each row is judged by a model that was fitted without it."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris

from deciban import BayesClassifier, DataError, LabelIssues, UsageError, load
from deciban.datasets import reviews
from deciban.evaluation import leave_one_out
from deciban.evaluation.label_issues import compute_error_probability, estimate_noise
from tests import textbook

X, Y = load_iris(return_X_y=True)
PLANTED = {3: 2, 17: 1, 60: 0, 149: 0}


def mislabeled() -> np.ndarray:
    labels = Y.copy()
    labels[list(PLANTED)] = list(PLANTED.values())
    return labels


def blobs(rates: list[list[float]], rows: int, distance: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points around the corners of a simplex, their classes, and labels drawn by the rates of each class."""
    draw = np.random.default_rng(0)
    true = draw.integers(0, len(rates), rows)
    points = distance * np.eye(len(rates))[true] + draw.normal(size=(rows, len(rates)))
    return points, true, np.array([draw.choice(len(rates), p=rates[c]) for c in true])


def test_the_evidence_is_that_of_a_model_without_the_row() -> None:
    labels = mislabeled()
    found = textbook().fit(X, labels).label_issues()
    assert set(PLANTED) <= set(found.rows.tolist())
    for k, row in enumerate(found.rows):
        others = np.arange(150) != row
        posterior = textbook().fit(X[others], labels[others]).predict_log_proba(X[row : row + 1])[0]
        assert posterior.argmax() == found.suggested[k]
        expected = 10.0 / np.log(10.0) * (posterior[found.suggested[k]] - posterior[found.given[k]])
        one = found.explanation.to_dict(k)
        assert (one["predicted"], one["against"]) == (found.suggested[k], found.given[k])
        assert one["sum"] == pytest.approx(expected, rel=1e-9)


def test_planted_errors_are_found_in_a_tuned_model() -> None:
    table, y = load_breast_cancer(return_X_y=True)
    wrong = np.random.default_rng(1).random(y.size) < 0.07
    found = BayesClassifier().fit(table, np.where(wrong, 1 - y, y)).label_issues()
    hits = wrong[found.rows].sum()
    assert hits >= 0.85 * found.rows.size
    assert hits >= 0.65 * wrong.sum()


def test_the_noise_of_each_pair_of_classes_is_estimated() -> None:
    rates = [[0.8, 0.2, 0.0], [0.0, 0.95, 0.05], [0.0, 0.0, 1.0]]
    points, true, given = blobs(rates, 3_000, 5.0)
    found = textbook().fit(points, given).label_issues()
    np.testing.assert_allclose(found.noise, rates, atol=0.03)
    assert found.noise.sum(axis=1) == pytest.approx(1.0)
    assert found.expected == pytest.approx((given != true).sum(), rel=0.1)


def test_errors_are_as_frequent_as_their_probability_among_overlapping_classes() -> None:
    points, true, given = blobs([[0.92, 0.08], [0.08, 0.92]], 6_000, 2.0)
    found = BayesClassifier().fit(points, given).label_issues(min_probability=0.05)
    assert found.expected == pytest.approx((given != true).sum(), rel=0.25)
    for low, high in ((0.05, 0.4), (0.4, 0.8), (0.8, 1.0)):
        here = (found.probability >= low) & (found.probability < high)
        wrong = given[found.rows[here]] != true[found.rows[here]]
        assert wrong.mean() == pytest.approx(found.probability[here].mean(), abs=0.15)


def test_weights_are_repetitions() -> None:
    draw = np.random.default_rng(0)
    posterior, labels = draw.dirichlet(np.ones(3), 40), draw.integers(0, 3, 40)
    times = draw.integers(1, 4, 40)
    weighted = estimate_noise(posterior, labels, times.astype(float))
    repeated = estimate_noise(np.repeat(posterior, times, axis=0), np.repeat(labels, times), np.ones(times.sum()))
    np.testing.assert_allclose(weighted, repeated, atol=0.1)  # the surest rows may end within copies of a row
    certain = np.array([[0.9, 0.1], [0.9, 0.1]])
    found = compute_error_probability(certain, np.array([0, 1]), certain)
    np.testing.assert_allclose(found, [0.1 * 0.9 / 0.9, 0.9 * 0.1 / 0.1])


def test_rows_keep_their_numbers(tmp_path) -> None:  # type: ignore[no-untyped-def]
    labels = mislabeled().astype(object)
    labels[5] = None
    weights = np.ones(150)
    weights[50] = 0.0
    frame = pd.DataFrame(X, columns=list("abcd")).assign(kind=labels)
    clf = textbook().fit(frame, "kind", weights)
    found = clf.label_issues()
    assert set(PLANTED) <= set(found.rows.tolist())
    assert found.checked == 148
    assert [frame["kind"][row] for row in found.rows] == found.given.tolist()
    frame.assign(weight=weights).to_csv(tmp_path / "flowers.csv", index=False)
    textbook().fit(tmp_path / "flowers.csv", "kind", "weight").save(tmp_path / "flowers.dcb")
    again = load(tmp_path / "flowers.dcb").label_issues(tmp_path / "flowers.csv", "kind", "weight")
    assert again.rows.tolist() == (found.rows + 1).tolist()
    with pytest.raises(UsageError, match="training rows are unavailable"):
        load(tmp_path / "flowers.dcb").label_issues()


def test_new_rows_are_not_left_out() -> None:
    clf = textbook().fit(X[::2], Y[::2])
    labels = mislabeled()
    found = clf.label_issues(X[1::2], labels[1::2], already_learned=False)
    assert {row // 2 for row in PLANTED if row % 2} <= set(found.rows.tolist())
    row = found.rows[0]
    posterior = clf.predict_proba(X[1::2][row : row + 1])[0]
    expected = 10.0 * np.log10(posterior[found.suggested[0]] / posterior[found.given[0]])
    assert found.explanation.to_dict(0)["sum"] == pytest.approx(expected)
    with pytest.raises(DataError, match="the label 7 is not one of the model's classes"):
        clf.label_issues(X[:2], [0, 7], already_learned=False)


def test_evidence_that_is_too_large_is_computed_for_the_issues_only(monkeypatch: pytest.MonkeyPatch) -> None:
    clf = BayesClassifier().fit(X, mislabeled())
    whole = clf.label_issues()
    monkeypatch.setattr(leave_one_out, "MAX_EVIDENCE", 500)
    with pytest.raises(UsageError, match="too large to keep"):
        _ = clf.leave_one_out().evidence
    assert str(clf.label_issues()) == str(whole)


def test_the_prior_is_that_of_the_labels() -> None:
    clf = textbook().fit(X, mislabeled())
    assert str(clf.with_prior("uniform").label_issues(X, mislabeled())) == str(clf.label_issues())


def test_what_is_shown() -> None:
    labels = mislabeled()
    found = textbook().fit(pd.DataFrame(X, columns=["a", "b", "c", "d"]), labels).label_issues()
    assert isinstance(found, LabelIssues)
    frame = found.to_frame()
    assert frame.columns.tolist() == ["row", "given", "suggested", "probability", "evidence"]
    assert frame["evidence"][0].startswith(("c = ", "d = "))
    assert (np.diff(found.probability) <= 0.0).all()
    assert found.probability.max() == 0.99
    plain = found.to_dict()
    assert [one["row"] for one in plain["issues"]] == found.rows.tolist()
    assert plain["issues"][0]["evidence"][0]["term"] == "prior"
    assert "<table" in found._repr_html_()
    assert str(found).splitlines()[0] == f"{found.rows.size} issues in 150 labels; expected number of wrong labels: 5"
    few = textbook().fit(X, labels).label_issues(min_probability=0.98)
    assert 0 < few.rows.size <= found.rows.size
    with pytest.raises(UsageError, match="min_probability=0: expected a number above 0"):
        textbook().fit(X, labels).label_issues(min_probability=0)


def test_the_evidence_of_texts_is_that_of_words() -> None:
    table = reviews()
    verdict = table["verdict"].to_pylist()
    verdict[0] = {"good": "bad", "bad": "good"}[verdict[0]]
    found = textbook().fit(table.select(["text"]), verdict).label_issues(min_probability=0.01)
    words = found.explanation.words(0)[0]
    best = max(words.terms, key=lambda term: term[1])
    assert found.describe_evidence(0).startswith(f"{best[0]!r} {best[1]:+.1f}, ")


@pytest.mark.parametrize("distance", [0.0, 1.0, 1.5])
def test_classes_that_overlap_are_reported(distance: float) -> None:
    points, true, given = blobs([[1.0, 0.0], [0.0, 1.0]], 500, distance)
    found = BayesClassifier().fit(points, given).label_issues()
    assert found.rows.size
    assert (given == true).all()
    assert found.error_rate == pytest.approx(1.0 - BayesClassifier().fit(points, given).leave_one_out().accuracy)
    note = f"note: {found.error_rate:.0%} of these rows are misclassified, so the classes overlap; issues may be hard"
    assert str(found).splitlines()[1].startswith(note)


def test_wrong_labels_of_separate_classes_have_no_note() -> None:
    points, true, given = blobs([[0.9, 0.1], [0.1, 0.9]], 500, 6.0)
    found = BayesClassifier().fit(points, given).label_issues()
    assert (given != true)[found.rows].all()
    assert found.error_rate > 0.09
    assert "note" not in str(found)


def test_nothing_is_found_without_errors_or_with_one_class() -> None:
    points, _, given = blobs([[1.0, 0.0], [0.0, 1.0]], 500, 8.0)
    assert str(textbook().fit(points, given).label_issues()) == (
        "0 issues in 500 labels; expected number of wrong labels: 0"
    )
    assert textbook().fit(points, np.zeros(500)).label_issues().rows.size == 0
