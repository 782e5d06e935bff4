"""Figures of rows whose class is known."""

from inspect import signature
from typing import Any

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.metrics import (
    accuracy_score,
    brier_score_loss,
    confusion_matrix,
    log_loss,
    precision_recall_fscore_support,
    roc_auc_score,
)

from deciban import BayesClassifier
from deciban.decisions.loss import Loss
from deciban.evaluation import metrics as ranking
from deciban.evaluation.metrics import Evaluation


def test_millions_of_rows_are_shown_to_the_last_one() -> None:
    posterior, labels = np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([0, 0], dtype=np.int32)
    weights = np.array([1_234_567.0, 2.5])
    one = Evaluation.from_posterior(
        posterior, labels, weights, np.array(["a", "b"]), 2_000_001.0, Loss.zero_one(["a", "b"])
    )
    text = str(one)
    assert "class unknown to the model: 2,000,001 rows" in text
    assert "a  1,234,567  2.5" in text
    assert "0.900     1.000  1,234,567" in text
    assert one.to_dict()["unknown_class_rows"] == 2_000_001.0


def said(classes: int, size: int = 300, seed: int = 5) -> tuple[Any, Any, Any]:
    """Posteriors with ties, the true classes, and weights."""
    draw = np.random.default_rng(seed)
    labels = draw.integers(0, classes, size).astype(np.int32)
    raw = draw.gamma(1.0, size=(size, classes))
    raw[np.arange(size), labels] *= 3.0
    posterior = np.round(raw / raw.sum(axis=1, keepdims=True), 2) + 1e-3
    return posterior / posterior.sum(axis=1, keepdims=True), labels, draw.integers(1, 4, size) * 0.5


def judged_in_two(classes: int, loss: Loss | None = None) -> tuple[Evaluation, Any, Any, Any]:
    posterior, labels, weights = said(classes)
    names = np.array([f"c{k}" for k in range(classes)])
    parts = [
        Evaluation.from_posterior(posterior[part], labels[part], weights[part], names, 0.0, loss)
        for part in (slice(0, 100), slice(100, None))
    ]
    return parts[0] + parts[1], posterior, labels, weights


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_figures_are_those_of_scikit_learn(classes: int) -> None:
    found, posterior, labels, weights = judged_in_two(classes)
    best = posterior.argmax(axis=1)
    assert found.accuracy == pytest.approx(accuracy_score(labels, best, sample_weight=weights), rel=1e-12)
    assert found.log_loss == pytest.approx(log_loss(labels, posterior, sample_weight=weights), rel=1e-12)
    scores = posterior[:, 1] if classes == 2 else posterior
    area = roc_auc_score(labels, scores, sample_weight=weights, multi_class="ovr", average="macro")
    assert found.roc_auc == pytest.approx(area, rel=1e-12)
    expected = precision_recall_fscore_support(labels, best, sample_weight=weights)
    for name, values in zip(("precision", "recall", "f1", "rows"), expected, strict=True):
        assert [one[name] for one in found.per_class] == pytest.approx(values.tolist(), rel=1e-12)
    each = [roc_auc_score(labels == c, posterior[:, c], sample_weight=weights) for c in range(classes)]
    assert [one["roc_auc"] for one in found.per_class] == pytest.approx(each, rel=1e-12)


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_the_brier_score_is_that_of_scikit_learn(classes: int) -> None:
    """Between 0 and 1 for two classes, between 0 and 2 for more."""
    found, posterior, labels, weights = judged_in_two(classes)
    distance = ((posterior - np.eye(classes)[labels]) ** 2).sum(axis=1)
    expected = np.average(distance, weights=weights) / (2.0 if classes == 2 else 1.0)
    assert found.brier_score == pytest.approx(expected, rel=1e-12)
    if classes == 2 or "scale_by_half" in signature(brier_score_loss).parameters:  # several classes: since 1.7
        scores = posterior[:, 1] if classes == 2 else posterior
        assert found.brier_score == pytest.approx(brier_score_loss(labels, scores, sample_weight=weights), rel=1e-12)
    assert found.to_dict()["brier_score"] == found.brier_score


def test_rows_of_an_unknown_class_have_the_largest_brier_score() -> None:
    for names, largest in ((["a", "b"], 1.0), (["a", "b", "c"], 2.0)):
        posterior = np.eye(len(names))
        right = Evaluation.from_posterior(
            posterior, np.arange(len(names)), np.ones(len(names)), np.array(names), 0.0, None
        )
        assert right.brier_score == 0.0
        none = Evaluation.from_posterior(
            np.zeros((0, len(names))), np.zeros(0, np.int32), np.zeros(0), np.array(names), 2.0, None
        )
        assert none.brier_score == largest


def test_results_as_frames_and_text() -> None:
    found, posterior, labels, weights = judged_in_two(3)
    assert repr(found) == str(found)
    frame = found.to_frame()
    assert list(frame) == ["class", "rows", "precision", "recall", "f1", "roc_auc"]
    assert frame.to_dict("records") == [pytest.approx(line) for line in found.per_class]
    calibration = found.calibration
    assert repr(calibration) == str(calibration)
    assert calibration.to_frame().to_dict("records") == calibration.to_dict()["bins"]
    assert calibration.to_dict()["expected_calibration_error"] == found.expected_calibration_error
    absent = Evaluation.from_posterior(
        posterior[:, :2], np.minimum(labels, 0), weights, np.array(["a", "b"]), 0.0, None
    )
    assert np.isnan(absent.to_frame()["recall"][1])


def test_the_baseline_is_the_dummy_classifier_of_scikit_learn() -> None:
    costs = Loss([[0, 5, 1], [2, 0, 3], [4, 4, 0], [1.5, 1.5, 1.5]], ["c0", "c1", "c2", "wait"], ["c0", "c1", "c2"])
    found, posterior, labels, weights = judged_in_two(3, costs)
    dummy = DummyClassifier(strategy="prior").fit(posterior, labels, weights)
    baseline = found.to_dict()["baseline"]
    assert baseline["class"] == f"c{dummy.predict(posterior[:1])[0]}"
    assert baseline["accuracy"] == pytest.approx(dummy.score(posterior, labels, weights), rel=1e-12)
    said_always = dummy.predict_proba(posterior)
    assert baseline["log_loss"] == pytest.approx(log_loss(labels, said_always, sample_weight=weights), rel=1e-12)
    always = [np.average(costs.matrix[d, labels], weights=weights) for d in range(4)]
    assert baseline["mean_cost"] == pytest.approx(min(always), rel=1e-12)
    assert baseline["decision"] == (costs.decisions or ())[int(np.argmin(always))]


def test_decisions_are_counted_where_costs_are_given() -> None:
    costs = Loss([[0, 100], [1, 0]], ["c0", "c1"], ["c0", "c1"])
    found, posterior, labels, weights = judged_in_two(2, costs)
    chosen = np.argmin(posterior @ costs.matrix.T, axis=1)
    expected = confusion_matrix(labels, chosen, sample_weight=weights)
    np.testing.assert_allclose(found.decision_counts, expected, rtol=1e-12)
    assert found.mean_cost == pytest.approx((expected * costs.matrix.T).sum() / weights.sum(), rel=1e-12)
    assert not np.array_equal(found.decision_counts, found.confusion)
    assert found.to_dict()["decisions"] == ["c0", "c1"]
    np.testing.assert_allclose(found.to_dict()["decision_counts"], expected, rtol=1e-12)
    text = str(found)
    baseline = found.baseline
    assert f"baseline: accuracy {baseline['accuracy']:.4f} (always {baseline['class']}), log-loss" in text
    assert f"baseline, always deciding c1: mean cost {baseline['mean_cost']:.4f}\n" in text
    assert "truth / decision" in text
    assert "truth / predicted" in text
    without = judged_in_two(2)[0]
    assert without.decision_counts is None
    assert "decision" not in str(without)
    assert (found + without).decision_counts is None


def test_decisions_of_parts_that_know_other_classes_add_up() -> None:
    posterior, labels, weights = said(3)
    first = np.flatnonzero(labels[:100] < 2)
    narrow = posterior[first, :2] / posterior[first, :2].sum(axis=1, keepdims=True)
    one, other = Loss.zero_one(["a", "b"]), Loss.zero_one(["a", "b", "c"])
    part = Evaluation.from_posterior(narrow, labels[first], weights[first], np.array(["a", "b"]), 0.0, one)
    rest = Evaluation.from_posterior(
        posterior[100:], labels[100:], weights[100:], np.array(["a", "b", "c"]), 0.0, other
    )
    for both in (part + rest, rest + part):
        assert both.decisions == ("a", "b", "c")
        np.testing.assert_allclose(both.decision_counts, both.confusion)


@pytest.mark.parametrize("classes", [2, 5])
def test_the_area_of_more_rows_than_are_kept_is_the_same_to_three_digits(
    classes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = judged_in_two(classes)[0].roc_auc
    monkeypatch.setattr(ranking, "MAX_KEPT", 150 * classes)
    found = judged_in_two(classes)[0]
    assert found.ranking.labels.size == 0
    assert found.roc_auc == pytest.approx(exact, abs=5e-4)
    again = found + judged_in_two(classes)[0]
    assert again.roc_auc == pytest.approx(exact, abs=5e-4)


def test_of_more_rows_and_classes_than_can_be_tallied_no_area_is_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "MAX_KEPT", 150 * 5)
    monkeypatch.setattr(ranking, "MAX_BINNED_CLASSES", 4)
    found = judged_in_two(5)[0]
    again = found + judged_in_two(5)[0]
    for one in (found, again):
        assert one.roc_auc is None
        assert [line["roc_auc"] for line in one.per_class] == [None] * 5
        assert one.ranking.posterior.size == 0
        assert "ROC AUC 0" not in str(one)


def test_the_area_counts_classes_that_one_part_does_not_know() -> None:
    posterior, labels, weights = said(3)
    narrow = posterior[:, :2] / posterior[:, :2].sum(axis=1, keepdims=True)
    first = np.flatnonzero(labels[:100] < 2)
    part = Evaluation.from_posterior(narrow[first], labels[first], weights[first], np.array(["a", "b"]), 0.0, None)
    rest = Evaluation.from_posterior(posterior[100:], labels[100:], weights[100:], np.array(["a", "b", "c"]), 0.0, None)
    wide = np.concatenate([np.column_stack([narrow[first], np.zeros(first.size)]), posterior[100:]])
    every, weight = np.append(labels[first], labels[100:]), np.append(weights[first], weights[100:])
    expected = [roc_auc_score(every == c, wide[:, c], sample_weight=weight) for c in range(3)]
    for both in (part + rest, rest + part):
        assert both.roc_auc == pytest.approx(np.mean(expected), rel=1e-12)


def test_a_class_without_rows_has_no_recall_and_no_area() -> None:
    posterior, labels = np.array([[0.9, 0.1, 0.0], [0.2, 0.8, 0.0]]), np.array([0, 1], dtype=np.int32)
    found = Evaluation.from_posterior(posterior, labels, np.ones(2), np.array(["a", "b", "c"]), 0.0, None)
    assert found.per_class[2] == {
        "class": "c", "rows": 0.0, "precision": None, "recall": None, "f1": None, "roc_auc": None,
    }  # fmt: skip
    assert found.roc_auc == 1.0
    assert [line.split() for line in str(found).splitlines() if line.startswith("c ")] == [["c", "0"]]


def test_a_confusion_matrix_fits_into_the_terminal() -> None:
    draw = np.random.default_rng(0)
    names = np.array([f"{word} of a name" for word in ("apples", "berries", "cherries", "dates", "figs")])
    labels = draw.integers(0, 5, 400)
    clf = BayesClassifier(tune=None).fit(labels[:, None] + draw.normal(0.0, 1.5, (400, 1)), names[labels])
    found = clf.evaluate(
        labels[:, None] + draw.normal(0.0, 1.5, (400, 1)), names[labels], loss=Loss.zero_one(sorted(names))
    )
    assert found.describe() == found.describe(1_000)
    assert str(found) == found.describe(100)
    for width, matrices in ((100, 2), (80, 2), (60, 0)):
        lines = found.describe(width).splitlines()[4:]
        assert max(map(len, lines)) <= width
        assert sum(line.lstrip().startswith("truth / ") for line in lines) == matrices
        assert ("most frequent confusions" in lines) == (matrices == 0)
    row = next(line for line in found.describe(80).splitlines() if line.lstrip().startswith("apples"))
    assert row.split()[-5:] == [f"{count:g}" for count in found.decision_counts[0]]


def test_a_confusion_matrix_wider_than_the_terminal_is_not_split_into_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deciban.util.results.line_width", lambda: 80)
    draw = np.random.default_rng(0)
    names = np.array([f"{letter} is the first letter of the class" for letter in "abcdefghij"])
    labels = draw.integers(0, 10, 400)
    clf = BayesClassifier(tune=None).fit(labels[:, None] + draw.normal(0.0, 0.7, (400, 1)), names[labels])
    found = clf.evaluate(labels[:, None] + draw.normal(0.0, 0.7, (400, 1)), names[labels])
    lines = found.describe(80).splitlines()
    assert max(map(len, lines[2:])) <= 80
    assert "most frequent confusions" in lines
    assert not [line for line in lines if line.lstrip().startswith("truth / ")]


def test_of_forty_classes_the_most_frequent_confusions_are_listed() -> None:
    names = np.array([f"c{k:02d}" for k in range(40)])
    labels = np.repeat(np.arange(40), 5).astype(np.int32)
    posterior = np.full((200, 40), 0.01)
    said_of = labels.copy()
    said_of[:4], said_of[5:7] = 17, 30  # of c00 and of c01
    posterior[np.arange(200), said_of] = 0.61
    found = Evaluation.from_posterior(posterior, labels, np.ones(200), names, 0.0, None)
    assert found.confusions == [("c00", "c17", 4.0), ("c01", "c30", 2.0)]
    lines = str(found).splitlines()
    at = lines.index("most frequent confusions")
    assert lines[at + 2].split() == ["c00", "c17", "4"]
    assert lines[at + 3].split() == ["c01", "c30", "2"]


def test_json_has_the_table_of_calibration() -> None:
    found, posterior, _, weights = judged_in_two(3)
    table = found.to_dict()["calibration"]
    assert sum(line["rows"] for line in table) == pytest.approx(weights.sum())
    assert sum(line["rows"] * line["observed"] for line in table) / weights.sum() == pytest.approx(found.accuracy)
    claimed = np.average(posterior.max(axis=1), weights=weights)
    assert sum(line["rows"] * line["predicted"] for line in table) / weights.sum() == pytest.approx(claimed)
