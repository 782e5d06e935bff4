"""BayesClassifier as its users meet it."""

import pickle

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse

import deciban as dc
from deciban.datasets import weather
from tests import textbook
from tests.support.tables import MIXED, N, Y

RNG = np.random.default_rng(1)


def test_a_mixed_table_with_a_block() -> None:
    spec = {("height", "weight"): dc.JointGaussian(dc.Pooled()), "visits": dc.Categorical(alpha=0.5)}
    clf = textbook(spec).fit(MIXED, "label")
    assert clf.classes_.tolist() == ["ill", "well"]
    assert clf.feature_names_in_.tolist() == ["age", "color", "smoker", "visits", "height", "weight"]
    assert clf.model_.schema.block_names == ("age", "color", "smoker", "visits", "height+weight")
    posterior = clf.predict_proba(MIXED)
    np.testing.assert_allclose(posterior.sum(axis=1), 1.0)
    evidence = clf.evidence(MIXED)
    assert evidence.values.shape == (N, 5, 2)
    np.testing.assert_allclose(np.exp(evidence.log_posterior), posterior, rtol=1e-12)
    assert clf.score(MIXED, "label") > 0.6
    assert clf.score(MIXED, MIXED["label"].to_numpy()) == clf.score(MIXED, "label")


def test_the_evidence_of_blocks_is_that_of_their_own_models() -> None:
    """A model of all columns is the sum of the models of each."""
    clf = textbook().fit(MIXED, "label")
    values = clf.evidence(MIXED).values
    for b, name in enumerate(clf.model_.schema.block_names):
        alone = textbook().fit(MIXED.select([name, "label"]), "label")
        np.testing.assert_allclose(alone.evidence(MIXED).values[:, 0], values[:, b], rtol=1e-13)


def test_the_schema_explains_itself() -> None:
    lines = str(textbook().fit(MIXED, "label").schema_).splitlines()
    assert lines[0].split() == ["column", "family", "why"]
    found = {line.split()[0]: line for line in lines[1:]}
    assert "Gaussian()" in found["age"]
    assert "floating point" in found["age"]
    assert "Categorical()" in found["color"]
    assert "text, 3 distinct" in found["color"]
    assert "Bernoulli()" in found["smoker"]
    assert "integers, " in found["visits"]


def test_missing_cells_are_no_evidence() -> None:
    clf = textbook().fit(MIXED, "label")
    nothing = clf.predict_proba([dict.fromkeys(clf.schema_.names)])
    np.testing.assert_allclose(nothing[0], np.exp(clf.model_.log_prior))
    full = [{"age": 50.0, "color": "red"}]
    part = [{"age": 50.0, "color": None}]
    difference = clf.log_joint(full) - clf.log_joint(part)
    np.testing.assert_allclose(difference[0], clf.evidence(full).values[0, 1], rtol=1e-12)


def test_missing_cells_are_skipped_when_learning() -> None:
    holed = textbook().fit([[1.0], [np.nan], [3.0], [9.0]], [0, 0, 0, 1])
    np.testing.assert_array_equal(holed.counts_.statistics[0].weight[:, 0], [2.0, 1.0])
    np.testing.assert_array_equal(holed.counts_.class_weight, [3.0, 1.0])


def test_rows_without_a_label_are_skipped_and_counted() -> None:
    y = np.array(["a", None, "b", "a", None], dtype=object)
    X = np.arange(5.0)[:, None]
    clf = textbook().fit(X, y)
    same = textbook().fit(X[[0, 2, 3]], y[[0, 2, 3]].astype(str))
    assert (clf.counts_.rows, clf.counts_.unlabeled) == (3, 2)
    np.testing.assert_array_equal(clf.predict_proba(X), same.predict_proba(X))
    floats = textbook().fit(X, [0.0, np.nan, 1.0, 0.0, np.nan])
    np.testing.assert_array_equal(floats.predict_proba(X), same.predict_proba(X))
    assert floats.classes_.dtype == np.float64


@pytest.mark.parametrize(
    "labels",
    [["x", "y"], [7, -3], [True, False], np.array([1.0, 2.0]), np.array(["é", "日本"], dtype=object), [10**12, 5]],
    ids=str,
)
def test_labels_keep_their_type(labels) -> None:
    labels = np.asarray(labels)
    clf = textbook().fit([[0.0], [10.0], [0.1], [10.1]], np.tile(labels, 2))
    assert clf.classes_.tolist() == sorted(labels.tolist())
    assert clf.classes_.dtype.kind == labels.dtype.kind
    assert clf.predict([[0.0], [10.0]]).tolist() == labels.tolist()


def test_unseen_values_by_policy() -> None:
    X, y = [["red"], ["blue"], ["red"], ["blue"], ["red"]], ["a", "b", "a", "a", "b"]
    ignored = textbook(dc.Categorical()).fit(X, y)
    np.testing.assert_allclose(ignored.predict_proba([["mauve"]])[0], [3 / 5, 2 / 5])
    smooth = textbook(dc.Categorical(unseen="smooth")).fit(X, y)
    np.testing.assert_allclose(np.exp(smooth.evidence([["mauve"]]).values[0, 0]), [1 / 5, 1 / 4])
    strict = textbook(unseen="error").fit(X, y)
    with pytest.raises(ValueError, match=r"column 'x0', row 1: found 'mauve', never seen"):
        strict.predict([["red"], ["mauve"]])
    joint = textbook({(0, 1): dc.JointTable()}).fit(np.array([[1, 2], [3, 4], [1, 4]]), y[:3])
    np.testing.assert_array_equal(
        joint.evidence(np.array([[1, 99]])).values, joint.evidence(np.array([[1.0, np.nan]])).values
    )


def test_learning_in_batches_is_learning_at_once() -> None:
    whole = textbook().fit(MIXED, "label")
    parts = textbook()
    for start in range(0, N, 30):
        parts.partial_fit(MIXED.slice(start, 30), "label")
    np.testing.assert_allclose(parts.predict_proba(MIXED), whole.predict_proba(MIXED), rtol=1e-11)
    assert parts.counts_.rows == N


def test_fit_forgets_what_was_before() -> None:
    clf = textbook().fit(MIXED, "label").fit(weather(), "play")
    assert clf.schema_.names == ("outlook", "temperature", "humidity", "wind")


def test_new_classes_levels_and_columns_are_welcome() -> None:
    clf = textbook().fit([{"a": "x"}, {"a": "y"}], ["p", "q"])
    clf.partial_fit([{"a": "z", "b": 3.0}, {"a": "x", "b": 4.0}], ["r", "p"])
    assert clf.classes_.tolist() == ["p", "q", "r"]
    assert clf.schema_.names == ("a", "b")
    at_once = textbook().fit([{"a": "x"}, {"a": "y"}, {"a": "z", "b": 3.0}, {"a": "x", "b": 4.0}], ["p", "q", "r", "p"])
    row = [{"a": "z", "b": 3.5}]
    np.testing.assert_allclose(clf.predict_proba(row), at_once.predict_proba(row), rtol=1e-12)


def test_new_words_join_a_multinomial() -> None:
    clf = textbook(dc.Multinomial()).fit([{"buy": 3, "hi": 0}, {"buy": 0, "hi": 2}], ["spam", "ham"])
    clf.partial_fit([{"cheap": 4, "buy": 1}], ["spam"])
    at_once = textbook(dc.Multinomial()).fit(
        [{"buy": 3, "hi": 0, "cheap": 0}, {"buy": 0, "hi": 2, "cheap": 0}, {"buy": 1, "hi": 0, "cheap": 4}],
        ["spam", "ham", "spam"],
    )
    row = [{"buy": 1, "hi": 1, "cheap": 1}]
    np.testing.assert_allclose(clf.predict_proba(row), at_once.predict_proba(row), rtol=1e-12)


def test_columns_are_found_by_name() -> None:
    clf = textbook().fit(MIXED, "label")
    shuffled = MIXED.select(list(reversed(MIXED.column_names)))
    np.testing.assert_array_equal(clf.predict_proba(shuffled), clf.predict_proba(MIXED))
    extra = MIXED.append_column("id", pa.array(range(N)))
    np.testing.assert_array_equal(clf.predict_proba(extra), clf.predict_proba(MIXED))


def test_decay_lets_new_rows_count_for_more() -> None:
    clf = textbook().fit([[0.0], [0.2], [1.0], [1.4]], [0, 0, 1, 1])
    before = clf.predict_proba([[0.5]])
    np.testing.assert_allclose(clf.decay(0.5).predict_proba([[0.5]]), before)
    clf.partial_fit([[1.0]], [1])
    np.testing.assert_allclose(np.exp(clf.model_.log_prior), [1 / 3, 2 / 3])


@pytest.mark.parametrize(
    ("prior", "shares"),
    [
        ("empirical", [0.75, 0.25]),
        ("smoothed", [4 / 6, 2 / 6]),
        ("uniform", [0.5, 0.5]),
        (dc.Empirical(alpha=0.5), [3.5 / 5, 1.5 / 5]),
        (dc.Uniform(), [0.5, 0.5]),
        ({"q": 0.9, "p": 0.1}, [0.1, 0.9]),
        ([0.2, 0.8], [0.2, 0.8]),
        (np.array([1.0, 0.0]), [1.0, 0.0]),
    ],
    ids=str,
)
def test_priors(prior, shares) -> None:
    X, y = [[1.0], [2.0], [3.0], [2.0]], ["p", "p", "p", "q"]
    clf = textbook(prior=prior).fit(X, y)
    np.testing.assert_allclose(np.exp(clf.model_.log_prior), shares, rtol=1e-12)
    changed = textbook().fit(X, y).with_prior(prior)
    np.testing.assert_allclose(changed.predict_proba(X), clf.predict_proba(X))
    assert changed.prior is prior


def test_log_joint_density_and_posterior_belong_together() -> None:
    clf = textbook().fit(MIXED, "label")
    joint, density = clf.log_joint(MIXED), clf.log_density(MIXED)
    np.testing.assert_allclose(joint - density[:, None], clf.predict_log_proba(MIXED), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(np.exp(clf.predict_log_proba(MIXED)), clf.predict_proba(MIXED), rtol=1e-12)


def test_samples_come_from_the_model() -> None:
    spec = {"visits": dc.Categorical(), ("height", "weight"): dc.JointGaussian()}
    clf = textbook(spec).fit(MIXED, "label")
    X, y = clf.sample(20_000, random_state=0)
    again = textbook(spec).fit(X, y)
    np.testing.assert_allclose(again.predict_proba(MIXED), clf.predict_proba(MIXED), atol=0.06)
    assert X.column_names == list(clf.schema_.names)
    assert clf.sample(5, random_state=3)[0].equals(clf.sample(5, random_state=3)[0])
    numbers, _ = textbook().fit([[1.0, 2.0], [3.0, 5.0]], [0, 1]).sample(4, random_state=0)
    assert isinstance(numbers, np.ndarray)
    with pytest.raises(ValueError, match="score, not a distribution"):
        textbook(dc.Complement()).fit([[1.0, 2.0], [2.0, 1.0]], [0, 1]).sample()


def test_explain_adds_up_in_decibans() -> None:
    clf = textbook().fit(MIXED, "label")
    text = str(clf.explain(MIXED.slice(0, 1)))
    lines = text.split("in decibans:\n")[1].splitlines()
    numbers = [float(line.split()[-1]) for line in lines]
    assert sum(numbers[:-1]) == pytest.approx(numbers[-1], abs=0.05)
    ill, well = clf.predict_log_proba(MIXED.slice(0, 1))[0]
    assert abs(numbers[-1]) == pytest.approx(abs(ill - well) * 10 / np.log(10), abs=0.01)


def test_a_failed_call_changes_nothing() -> None:
    clf = textbook(classes=["ill", "well"]).fit(MIXED, "label")
    before = pickle.dumps(clf)
    bad = MIXED.set_column(0, "age", pa.array(["old"] * N))
    with pytest.raises(ValueError, match="column 'age', row 0: found 'old'"):
        clf.partial_fit(bad, "label")
    with pytest.raises(ValueError, match="'dead' is not among the declared classes"):
        clf.partial_fit(MIXED.slice(0, 1), ["dead"])
    with pytest.raises(ValueError, match="cannot forget these rows"):
        clf.forget(pa.concat_tables([MIXED, MIXED]), "label")
    with pytest.raises(ValueError, match="weight"):
        clf.partial_fit(MIXED, "label", sample_weight=np.full(N, -1.0))
    with pytest.raises(ValueError, match="no rows would be left"):
        clf.decay(0.0)
    assert pickle.dumps(clf) == before


def test_pickles_and_copies_are_equal() -> None:
    clf = textbook().fit(MIXED, "label")
    again = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(again.predict_proba(MIXED), clf.predict_proba(MIXED))


def test_sparse_and_dense_agree() -> None:
    dense = RNG.poisson(0.3, (N, 20)).astype(float)
    for family in (dc.Multinomial(), dc.Bernoulli(threshold=0), dc.Complement(), dc.Gaussian()):
        ours = textbook(family).fit(dense, Y).predict_proba(dense)
        thin = textbook(family).fit(sparse.csc_array(dense), Y).predict_proba(sparse.coo_array(dense))
        np.testing.assert_allclose(thin, ours, rtol=1e-9, err_msg=str(family))


def test_weights_by_name_and_by_array() -> None:
    weights = RNG.integers(0, 3, N).astype(float)
    named = textbook().fit(MIXED.append_column("w", pa.array(weights)), "label", sample_weight="w")
    given = textbook().fit(MIXED, "label", sample_weight=weights)
    np.testing.assert_array_equal(named.predict_proba(MIXED), given.predict_proba(MIXED))
    assert "w" not in named.schema_.names


@pytest.mark.parametrize("family", [None, dc.Gaussian(), dc.Poisson(), dc.Categorical()], ids=str)
def test_columns_of_true_and_false_are_drawn_as_such(family) -> None:
    flags = np.arange(40) % 4 == 0
    columns = None if family is None else {"flag": family}
    clf = textbook(columns).fit({"flag": flags, "x": np.arange(40.0)}, np.arange(40) % 2)
    table = clf.sample(400, 0).to_frame("pyarrow")
    assert table["flag"].type == pa.bool_()
    assert 0.1 < np.mean(table["flag"].to_numpy()) < 0.5


def test_an_array_of_true_and_false_is_drawn_as_such() -> None:
    flags = np.stack([np.arange(40) % 4 == 0, np.arange(40) % 3 == 0], axis=1)
    drawn, _ = textbook().fit(flags, np.arange(40) % 2).sample(400, 0)
    assert drawn.dtype == np.bool_
    assert 0.1 < drawn[:, 0].mean() < 0.45
    assert textbook(dc.Bernoulli()).fit(flags.astype(int), np.arange(40) % 2).sample(4, 0)[0].dtype.kind == "i"
