"""Rows of weight 0 are no rows: a classifier that has learned them alone is the identity of +."""

import pickle

import numpy as np
import pyarrow as pa
import pytest
from sklearn.base import clone

from deciban import BayesClassifier, load, merge
from deciban.datasets import weather
from deciban.errors import DataError
from deciban.store import model_file

DAYS = weather()
OTHERS = pa.table({"outlook": [1.0, 2.0], "pressure": ["high", "low"], "play": ["maybe", "never"]})
UNSUITABLE = DAYS.set_column(DAYS.column_names.index("play"), "play", pa.array(["maybe"] * 14))
ZEROS = np.zeros(14)


@pytest.fixture(scope="module")
def whole() -> BayesClassifier:
    return BayesClassifier().fit(DAYS, "play")


def same(a: BayesClassifier, b: BayesClassifier) -> None:
    """The same file, to the byte."""
    assert model_file.content(a.fitted_) == model_file.content(b.fitted_)
    np.testing.assert_array_equal(a.predict_proba(DAYS), b.predict_proba(DAYS))


def none(clf: BayesClassifier) -> BayesClassifier:
    return clf.partial_fit(DAYS, "play", sample_weight=ZEROS)


NOTHING = {
    "partial_fit": lambda whole: none(BayesClassifier()),
    "other columns": lambda whole: BayesClassifier().partial_fit(OTHERS, "play", sample_weight=np.zeros(2)),
    "textbook": lambda whole: none(BayesClassifier(tune=None)),
    "declared": lambda whole: none(BayesClassifier(classes=["no", "yes"])),
    "with a prior": lambda whole: none(BayesClassifier(prior={"no": 0.5, "yes": 0.5})),
    "shard": lambda whole: whole.shard(DAYS, "play", ZEROS),
    "shard of no rows": lambda whole: whole.shard(DAYS.slice(0, 0), "play"),
}


@pytest.mark.parametrize("how", NOTHING)
def test_nothing_is_the_identity_of_adding(how: str, whole, tmp_path) -> None:
    nothing = NOTHING[how](whole)
    same(whole + nothing, whole)
    same(nothing + whole, whole)
    same(sum([nothing, whole, nothing, nothing]), whole)
    same(whole - nothing, whole)
    assert not (whole + nothing).tuning_.stale
    assert nothing.shards_ == ()
    path = tmp_path / "nothing.dcb"
    nothing.save(path)
    same(merge([path, whole, str(path), load(path)]), whole)
    same(pickle.loads(pickle.dumps(nothing)) + whole, whole)
    same(load(path).partial_fit(DAYS, "play"), clone(nothing).fit(DAYS, "play"))


def test_learning_rows_of_no_weight_changes_nothing(whole) -> None:
    learned = BayesClassifier().fit(DAYS, "play").partial_fit(OTHERS, "play", sample_weight=[0.0, 0.0])
    same(learned, whole)
    assert not learned.tuning_.stale


def test_a_declared_class_joins_though_it_has_no_rows(whole) -> None:
    nothing = none(BayesClassifier(classes=["maybe", "no", "yes"]))
    assert (nothing + whole).classes_.tolist() == ["maybe", "no", "yes"]
    with pytest.raises(DataError, match="not among the declared classes"):
        none(BayesClassifier(classes=["no", "never", "yes"])) + BayesClassifier().fit(UNSUITABLE, "play")


@pytest.mark.parametrize(
    "ask",
    [
        lambda clf: clf.predict(DAYS),
        lambda clf: clf.predict_proba(DAYS),
        lambda clf: clf.log_density(DAYS),
        lambda clf: clf.decide(DAYS),
        lambda clf: clf.risk(DAYS),
        lambda clf: clf.explain(DAYS),
        lambda clf: clf.evidence(DAYS),
        lambda clf: clf.sample(3),
        lambda clf: clf.score(DAYS, "play"),
        lambda clf: clf.leave_one_out(DAYS, "play"),
        lambda clf: clf.diagnose(DAYS, "play"),
        lambda clf: clf.predict_interval(DAYS),
        lambda clf: clf.bayes_error(),
        lambda clf: clf.estimate_prior(DAYS),
        lambda clf: clf.linear_form(),
        lambda clf: clf.parameter_count(),
        lambda clf: list(clf.predict_batches(DAYS)),
        lambda clf: list(clf.decide_batches(DAYS)),
    ],
)
def test_who_has_learned_nothing_says_so(ask) -> None:
    clf = none(BayesClassifier())
    assert clf.classes_.tolist() == []
    with pytest.raises(DataError, match=r"^nothing was learned: every row had weight 0; learn rows with"):
        ask(clf)


def test_fit_still_wants_a_label_and_a_weight() -> None:
    """As scikit-learn's checks demand."""
    with pytest.raises(DataError, match="every label is missing"):
        BayesClassifier().partial_fit([[1.0], [2.0]], [None, None])
    with pytest.raises(DataError, match="every weight is zero"):
        BayesClassifier().fit(DAYS, "play", ZEROS)
    with pytest.raises(DataError, match="no rows would be left"):
        BayesClassifier().fit(DAYS, "play").decay(0.0)
