"""Scoring and learning by what a classifier is set to now, whatever it was fitted with."""

import pickle
import warnings
from typing import Any

import numpy as np
import pytest

from deciban import BayesClassifier, Loss, load, merge
from deciban.errors import LossError

RNG = np.random.default_rng(3)
Y = np.arange(120) % 2
TABLE = {"x": RNG.normal(size=120) + Y, "amt": RNG.uniform(1.0, 5.0, 120)}
VARYING = Loss([[0, "amt"], [1, 0]], decisions=[0, 1], classes=[0, 1])


@pytest.mark.parametrize(
    "ask",
    [
        lambda clf: clf.evaluate(TABLE, Y, loss=VARYING),
        lambda clf: clf.cross_validate(TABLE, Y, loss=VARYING),
        lambda clf: clf.leave_one_out().mean_cost(VARYING),
        lambda clf: clf.bayes_error(VARYING),
        lambda clf: clf.bayes_error(Loss([[0, np.ones(200)], [1, 0]], decisions=[0, 1], classes=[0, 1]), n_samples=200),
    ],
)
def test_figures_of_all_rows_refuse_costs_that_differ_from_row_to_row(ask: Any) -> None:
    with pytest.raises(LossError, match=r"^the costs vary by row"):
        ask(BayesClassifier(tune=None).fit(TABLE, Y))


def test_threads_that_are_set_after_a_fit_are_used_and_the_model_is_kept(tmp_path: Any) -> None:
    BayesClassifier(tune=None).fit(TABLE, Y).save(tmp_path / "m.dcb")
    clf = load(tmp_path / "m.dcb")
    before, model = clf.predict_proba(TABLE), clf.model_
    clf.set_params(threads=1)
    np.testing.assert_array_equal(clf.predict_proba(TABLE), before)
    assert clf.fitted_.settings.threads == 1
    assert clf.model_ is model


def test_a_prior_that_is_set_after_a_fit_holds_for_what_is_learned_and_left_out() -> None:
    clf = BayesClassifier(tune=None).fit(TABLE, Y)
    predicted, even = clf.predict_proba(TABLE), clf.leave_one_out().posterior[:, 1].mean()
    clf.set_params(prior={0: 0.9, 1: 0.1})
    np.testing.assert_array_equal(clf.predict_proba(TABLE), predicted)
    assert clf.leave_one_out().posterior[:, 1].mean() < even - 0.2
    clf.partial_fit(TABLE, Y)
    np.testing.assert_allclose(np.exp(clf.fitted_.log_prior), [0.9, 0.1])


def test_who_has_learned_nothing_adds_nothing_also_to_one_that_was_pickled() -> None:
    nothing = BayesClassifier(tune=None, alpha=5.0).partial_fit(TABLE, Y, sample_weight=np.zeros(120))
    whole = pickle.loads(pickle.dumps(BayesClassifier(tune=None, alpha=1.0).fit(TABLE, Y)))
    for both in (nothing + whole, whole + nothing, whole - nothing):
        assert both.alpha == 1.0
        assert both.counts_.rows == 120


def test_a_merged_model_is_of_the_kind_of_the_first() -> None:
    class Own(BayesClassifier):
        pass

    first, second = Own(tune=None).fit(TABLE, Y), BayesClassifier(tune=None).fit({"x": [1.0, 2.0]}, [0, 1])
    assert type(merge([first, second])) is Own


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_a_warning_of_labels_names_the_line_of_the_caller(method: str) -> None:
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        getattr(BayesClassifier(tune=None), method)(TABLE, np.where(Y == 1, "Yes", "yes"))
    (warning,) = [one for one in given if "differ only in case" in str(one.message)]
    assert warning.filename == __file__
