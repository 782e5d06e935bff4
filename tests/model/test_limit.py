"""The limit of a tuned model: no class is less probable than the rows can support, and explanations still add up."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import deciban
from deciban import BayesClassifier, Categorical, Gaussian, Pooled
from deciban.errors import UsageError
from deciban.model.linear_forms import form_of
from deciban.sources.open import open_table
from deciban.store.checks import check

CLASSES = np.array(["a", "b", "c"])
Trained = tuple[BayesClassifier, pd.DataFrame, np.ndarray]


def easy_table(rows: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Many columns that each tell the class, some of whose cells are missing, and a text."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, rows)
    table = pd.DataFrame({f"x{j}": 6.0 * y + rng.normal(size=rows) for j in range(8)})
    table["kind"] = CLASSES[(y + 1) % 3]
    table["text"] = [f"{' '.join(['hi', 'lo', 'mid'][c] for _ in range(9))} word{k % 50}" for k, c in enumerate(y)]
    table = table.mask((rng.random(table.shape) < 0.2) & (rng.random((rows, 1)) < 0.3))
    return table, CLASSES[y]


@pytest.fixture(scope="module")
def trained() -> Trained:
    table, y = easy_table(400, 0)
    return BayesClassifier(prior=[0.5, 0.4999, 0.0001]).fit(table, y), *easy_table(150, 1)


def test_the_limit_is_that_of_the_rows_learned(trained: Trained) -> None:
    clf, _, _ = trained
    assert clf.tuning_.limit == clf.model_.limit == pytest.approx(np.log(100.0 * 401.0))
    table, y = easy_table(400, 0)
    for tune in ("weights", None):
        assert BayesClassifier(tune=tune).fit(table, y).model_.limit == np.inf
    heavy = BayesClassifier().fit(table, y, np.full(400, 2.0))
    assert heavy.model_.limit == pytest.approx(np.log(100.0 * 801.0))
    assert heavy.retune(table, y).model_.limit == heavy.model_.limit


def test_no_class_is_less_probable_than_the_limit_allows(trained: Trained) -> None:
    clf, table, _ = trained
    model, posterior = clf.model_, clf.predict_proba(table)
    least = np.exp(model.log_prior - model.limit)
    assert (posterior >= least * (1.0 - 1e-12)).all()
    assert (posterior < 1e3 * least).any()
    evidence = clf.evidence(table)
    free = evidence.bias + evidence.weighted.sum(axis=1)
    raised = np.maximum(free, free.max(axis=1, keepdims=True) - model.limit)
    assert (raised > free).any(axis=1).mean() > 0.5
    expected = np.exp(raised + model.log_prior)
    np.testing.assert_allclose(posterior, expected / expected.sum(axis=1, keepdims=True), rtol=1e-9)
    np.testing.assert_allclose(evidence.raised, raised - free, atol=1e-12)


def test_explanations_add_up(trained: Trained) -> None:
    clf, table, _ = trained
    joint = clf.log_joint(table)
    np.testing.assert_allclose(clf.evidence(table).log_joint, joint, atol=1e-12, rtol=1e-12)
    columns = clf.evidence(table, by="column")
    np.testing.assert_allclose(columns.log_joint, joint, atol=1e-12, rtol=1e-12)
    total = columns.values.sum(axis=1) + columns.raised + columns.log_prior
    np.testing.assert_allclose(total, joint, atol=1e-12, rtol=1e-12)
    for by, name in (("column", "term"), ("block", "block")):
        shown = clf.explain(table[:40], by=by)
        for row in range(40):
            found = shown.to_dict(row)
            first, second = (np.flatnonzero(clf.classes_ == found[key])[0] for key in ("predicted", "against"))
            nats = sum(term["nats"] for term in found["evidence"])
            assert nats == pytest.approx(joint[row, first] - joint[row, second], abs=1e-11)
        assert any(term[name] == "limit" for term in found["evidence"])
        assert "\nlimit " in str(shown)
    steps = shown.steps(0)
    assert sum(steps["log_limit"].values()) == pytest.approx(columns.raised[0].sum(), abs=1e-11)


def test_a_row_alone_and_an_empty_row(trained: Trained) -> None:
    clf, table, _ = trained
    together = clf.log_joint(table)
    for row in range(len(table)):
        np.testing.assert_array_equal(clf.log_joint(table[row : row + 1])[0], together[row])
    nothing = pd.DataFrame([dict.fromkeys(table.columns)])
    np.testing.assert_array_equal(clf.log_joint(nothing)[0], clf.model_.log_prior)
    assert not clf.evidence(nothing).raised.any()


def test_left_out_rows_have_the_same_limit() -> None:
    table, y = easy_table(400, 0)
    clf = BayesClassifier().fit(table, y)
    found = clf.leave_one_out(table, y)
    assert (found.posterior >= np.exp(found.evidence.log_prior - clf.model_.limit) * (1.0 - 1e-12)).all()
    assert found.evidence.raised.any()
    np.testing.assert_array_equal(found.evidence.log_joint, found.log_joint)
    np.testing.assert_array_equal(found.evidence.take(np.arange(7)).raised, found.evidence.raised[:7])


def test_a_limit_is_saved_and_checked(trained: Trained, tmp_path: Any) -> None:
    clf, table, _ = trained
    clf.save(tmp_path / "model.dcb")
    loaded = deciban.load(tmp_path / "model.dcb")
    assert loaded.tuning_.limit == clf.tuning_.limit
    np.testing.assert_array_equal(loaded.predict_proba(table), clf.predict_proba(table))
    known = clf.fitted_
    with pytest.raises(ValueError, match="the limit is not positive"):
        check(replace(known, tuning=replace(known.tuning, limit=-1.0)))


def test_a_limited_model_has_no_linear_form() -> None:
    X, y = np.arange(40.0)[:, None], np.arange(40) % 2
    model = BayesClassifier(Gaussian(Pooled()), tune=None).fit(X, y).model_
    assert form_of(model, quadratic=False).names == ("x0",)
    with pytest.raises(UsageError, match="limited evidence has no linear"):
        form_of(replace(model, limit=9.0), quadratic=False)


def test_an_impossible_class_stays_impossible() -> None:
    table = pd.DataFrame({"x": list("uuvvww"), "z": list("pppqqq")})
    clf = BayesClassifier({"x": Categorical(alpha=0)}, tune=None).fit(table, list("aabbab"))
    model = replace(clf.model_, limit=1e-3)
    rows = pd.DataFrame({"x": ["u", "v", "w"], "z": ["p", "q", "p"]})
    opened = model.schema.table_as_learned(open_table(rows))
    joint, free = model.log_joint(opened), clf.model_.log_joint(opened)
    np.testing.assert_array_equal(joint == -np.inf, free == -np.inf)
    assert (joint == -np.inf).any()
    evidence = model.evidence(opened)
    np.testing.assert_allclose(evidence.log_joint, joint)
    assert np.isfinite(evidence.raised).all()


def test_a_certain_mistake_costs_less() -> None:
    """Copies of a telling column make the model sure; then one of the rows is labeled wrongly."""
    rng = np.random.default_rng(5)
    y = rng.integers(0, 2, 500)
    X = np.repeat(4.0 * y[:, None], 20, axis=1) + rng.normal(size=(500, 20))
    model = (clf := BayesClassifier().fit(X, y)).model_
    free, own = replace(model, limit=np.inf), np.array([[4.0] * 20])
    log_joint = free.log_joint(model.schema.table_as_learned(open_table(own)))[0]
    before, after = log_joint[0] - np.logaddexp(*log_joint), clf.predict_log_proba(own)[0, 0]
    assert before < after - 5.0
    assert after == pytest.approx(-model.limit, abs=0.5)
