"""Bugs that were there once, each with the test that would have caught it."""

import pickle
import threading
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse, stats
from sklearn.datasets import load_iris
from sklearn.model_selection import cross_val_score, train_test_split

from deciban import (
    BayesClassifier,
    Bernoulli,
    Binned,
    Categorical,
    Complement,
    DecibanError,
    Gamma,
    Gaussian,
    JointGaussian,
    JointTable,
    LogNormal,
    Multinomial,
    PerClass,
    Poisson,
    Pooled,
    SchemaError,
)
from deciban.files.open import open_table
from deciban.tables.labels import encode_labels
from tests import textbook

RNG = np.random.default_rng(11)
X = RNG.normal(size=(60, 2))
Y = np.arange(60) % 2


# tables


def test_the_index_of_a_pandas_frame_is_no_column() -> None:
    frame = pd.DataFrame({"x": RNG.normal(size=200)})
    y = np.repeat([0, 1], 100)
    train, _, labels, _ = train_test_split(frame, y, random_state=0)
    assert textbook().fit(train, labels).schema_.names == ("x",)
    iris, kinds = load_iris(return_X_y=True, as_frame=True)
    ours = cross_val_score(textbook(), iris, kinds)
    np.testing.assert_array_equal(ours, cross_val_score(textbook(), iris.to_numpy(), kinds.to_numpy()))


def test_pandas_columns_that_arrow_does_not_know() -> None:
    frame = pd.DataFrame({"age": pd.cut([1, 20, 40, np.nan, 22], [0, 10, 30, 50]), "z": [1.0, 2.0, 3.0, 4.0, 5.0]})
    clf = textbook().fit(frame, ["a", "b", "a", "b", "b"])
    assert clf.counts_.statistics[0].levels[0].to_pylist() == ["(0, 10]", "(10, 30]", "(30, 50]"]
    for bad in (pd.DataFrame({"p": [object(), object()]}), pd.DataFrame({"p": [2**70, 1]})):
        with pytest.raises(DecibanError, match="column 'p'"):
            textbook().fit(bad, [0, 1])
    with pytest.raises(DecibanError, match="'a' is there more than once"):
        textbook().fit(pd.DataFrame([[1.0, 2.0], [3.0, 4.0]], columns=["a", "a"]), [0, 1])


def test_frames_with_some_numbers_for_names() -> None:
    frame = pd.DataFrame(X)
    frame["target"] = Y
    clf = textbook({1: Binned()}).fit(frame, "target")
    assert clf.schema_.names == ("0", "1")
    assert [str(part.family) for part in clf.schema_.groups] == ["Binned()", "Gaussian()"]


def test_masked_cells_are_missing() -> None:
    masked = np.ma.masked_values([[1.0], [2.0], [999.0], [4.0]], 999.0)
    clf = textbook().fit(masked, [0, 1, 0, 1])
    np.testing.assert_array_equal(clf.counts_.statistics[0].weight[:, 0], [1.0, 2.0])
    labels = np.ma.masked_values([0, 1, 99, 1], 99)
    assert encode_labels(labels, 4).codes.tolist() == [0, 1, -1, 1]


def test_one_row_as_a_dict_is_not_a_table() -> None:
    clf = textbook().fit([{"o": "rain"}, {"o": "sun"}], [0, 1])
    with pytest.raises(DecibanError, match="single row as a list"):
        clf.predict({"o": "rain"})
    with pytest.raises(DecibanError, match="more than once"):
        textbook().fit({1: [1.0, 2.0], "1": [3.0, 4.0]}, [0, 1])


def test_a_table_is_named_in_errors_by_its_own_column_and_row() -> None:
    with pytest.raises(DecibanError, match="column 'k'"):
        textbook().fit(pa.table({"c": ["x", "y"], "k": [[1], [2]]}), [0, 1])
    dense = np.zeros((6, 5))
    dense[5, 4] = 7.0
    with pytest.raises(DecibanError, match=r"column 'x4', row 5: found 7\.0"):
        textbook(Bernoulli()).fit(sparse.csr_array(dense), np.arange(6) % 2)
    with pytest.raises(DecibanError, match="column 'x0', row 2: found inf"):
        textbook().fit([[1.0], [2.0], [np.inf]], [0, None, 1])


def test_integers_beyond_two_to_the_53_are_told_apart() -> None:
    for base in (2**53, 2**60):
        codes = np.array([base + 1, base + 3, base + 1, base + 4] * 10)[:, None]
        clf = textbook().fit(codes, ["u", "v", "u", "v"] * 10)
        assert clf.predict_proba(codes)[0, 0] > 0.9
        assert clf.predict_proba(pd.DataFrame({"k": [float(base), None]}).to_numpy()).shape == (2, 2)
    with pytest.raises(DecibanError, match=r"2\*\*63"):
        textbook(Categorical()).fit(np.array([[2**64 - 1], [1]], dtype=np.uint64), [0, 1])


def test_minus_zero_and_zero_are_one_level() -> None:
    clf = textbook(Categorical()).fit([[0.0], [-0.0], [0.5], [0.5]], [0, 1, 0, 1])
    assert clf.counts_.statistics[0].levels[0].to_pylist() == [0.0, 0.5]


def test_a_rare_value_does_not_defeat_the_inference() -> None:
    codes = RNG.integers(0, 2, (200_000, 1))
    codes[1] = 2
    clf = textbook().fit(codes, np.arange(200_000) % 2)
    assert clf.counts_.statistics[0].levels[0].to_pylist() == [0, 1, 2]


def test_columns_may_be_declared_before_they_come() -> None:
    spec = {"a": Gaussian(), "later": Binned()}
    clf = textbook(spec).partial_fit([{"a": 1.0}, {"a": 2.0}], [0, 1])
    clf.partial_fit([{"a": 1.0, "later": 3.0}, {"a": 2.0, "later": 4.0}], [0, 1])
    assert [str(part.family) for part in clf.schema_.groups] == ["Gaussian()", "Binned()"]
    with pytest.raises(DecibanError, match="'later'"):
        textbook(spec).fit([{"a": 1.0}, {"a": 2.0}], [0, 1])


def test_printing_a_wide_block_is_quick() -> None:
    """It took a minute for 20,000 words."""
    clf = textbook().fit(sparse.eye_array(20_000, format="csr")[:50], np.arange(50) % 2)
    assert "with 19999 others" in str(clf.schema_)


# labels, weights, priors


def test_missing_labels_of_a_categorical_column() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "y": pd.Categorical(["u", "v", None, "u"], ["u", "v", "w"])})
    for table in (frame, pl.from_pandas(frame)):
        counts = textbook().fit(table, "y").counts_
        assert counts.classes.tolist() == ["u", "v"]
        assert (counts.class_weight.tolist(), counts.unlabelled) == ([2.0, 1.0], 1)


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (np.array([-100, 100, 0], dtype=np.int8), [-100, 0, 100]),
        (np.array([-30000, 30000, 0], dtype=np.int16), [-30000, 0, 30000]),
        (np.array([2**63 + 2, 2**63 + 1, 2**63 + 9], dtype=np.uint64), [2**63 + 1, 2**63 + 2, 2**63 + 9]),
        ([1e300, 2e300, 1.0], [1.0, 1e300, 2e300]),
        (["yes", float("nan"), "no"], ["no", "yes"]),
        (np.array(["2020-01-01T00:00:00.000000001", "2020-01-01", "NaT"], dtype="M8[ns]"), None),
        (pd.Series([3, None, 1], dtype="Int64"), [1, 3]),
        (pl.Series([3, None, 1]), [1, 3]),
    ],
    ids=str,
)
def test_labels_of_every_kind(labels, classes) -> None:
    found = encode_labels(labels, 3)
    if classes is None:
        assert found.classes.size == 2
        assert found.codes.tolist() == [1, 0, -1]
    else:
        assert found.classes.tolist() == classes
        assert found.classes.dtype.kind != "f" or isinstance(classes[0], float)
    with pytest.raises(DecibanError, match="mix"):
        encode_labels([1, "a", 2], 3)


def test_a_prior_with_an_index_is_read_by_it() -> None:
    clf = textbook(prior=pd.Series({"b": 0.9, "a": 0.1})).fit(X, np.where(Y == 0, "a", "b"))
    np.testing.assert_allclose(np.exp(clf.model_.log_prior), [0.1, 0.9])


def test_weights_beyond_counting_are_refused() -> None:
    with pytest.raises(DecibanError, match=r"at most 1e\+15"):
        textbook().fit(X, Y, np.full(60, 1e308))


@pytest.mark.parametrize(
    "family", [JointGaussian(), LogNormal(), Gamma(), Poisson(), Multinomial(), Gaussian()], ids=str
)
def test_a_row_of_weight_0_is_not_there_whatever_it_holds(family) -> None:
    table = np.ceil(np.abs(X)) + 1
    weights = np.ones(60)
    weights[7] = 0.0
    bad = table.copy()
    bad[7] = np.inf
    ours = textbook(family).fit(bad, Y, weights)
    without = textbook(family).fit(np.delete(table, 7, axis=0), np.delete(Y, 7))
    assert ours.counts_.rows == 59
    np.testing.assert_allclose(ours.predict_proba(table), without.predict_proba(table), rtol=1e-10)


def test_declaring_classes_late() -> None:
    clf = textbook().fit(X, Y)
    with pytest.raises(DecibanError, match="2 is not among the declared"):
        clf.partial_fit(X[:1], [2], classes=[0, 1])
    with pytest.raises(DecibanError, match="the model knows"):
        clf.partial_fit(X[:1], [0], classes=[0, 5])
    assert clf.partial_fit(X[:1], [0], classes={0, 1, 2}).classes_.tolist() == [0, 1, 2]
    with pytest.raises(DecibanError, match="missing value is no class"):
        textbook(classes=["a", None]).fit(X, np.where(Y == 0, "a", "b"))


def test_score_takes_what_fit_takes() -> None:
    table = pa.table({"x": [1.0, 2.0, 9.0, 8.0], "y": ["a", None, "b", "b"], "w": [1.0, 1.0, 2.0, 1.0]})
    clf = textbook().fit(table.drop_columns(["w"]), "y")
    assert clf.score(table, "y") == 1.0
    assert clf.score(table, "y", sample_weight="w") == 1.0
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
    assert clf.score(reader, "y") == 1.0


# the algebra


@pytest.mark.parametrize("family", [Gaussian(), LogNormal(), Gamma(), JointGaussian(), Binned()], ids=str)
@pytest.mark.parametrize("outlier", [1e3, 1e5, 1e8, 3e8 + 0.7])
def test_an_outlier_learned_apart_can_be_forgotten(family, outlier: float) -> None:
    positive = np.exp(X)
    clf = textbook(family).fit(positive, Y)
    before = clf.predict_proba(positive)
    clf.partial_fit([[outlier, 1.5 * outlier]], [0]).forget([[outlier, 1.5 * outlier]], [0])
    atol = 0.25 if isinstance(family, Binned) else 1e-9  # bins come back no finer than they were beside the outlier
    np.testing.assert_allclose(clf.predict_proba(positive), before, rtol=1e-9, atol=atol)


@pytest.mark.parametrize("family", [Gaussian(), JointGaussian()], ids=str)
def test_what_an_outlier_in_the_same_batch_has_drowned_is_not_made_up(family) -> None:
    table = np.concatenate([X, [[1e9, 1e9]]])
    clf = textbook(family).fit(table, np.append(Y, 0))
    before = pickle.dumps(clf)
    with pytest.raises(DecibanError, match="fit anew without them"):
        clf.forget(table[-1:], [0])
    assert pickle.dumps(clf) == before


@pytest.mark.parametrize("family", [Gaussian(), JointGaussian(), LogNormal(), Gamma(), Binned()], ids=str)
def test_what_remains_constant_says_nothing(family) -> None:
    constant, varied = np.full((40, 2), 0.1), np.exp(RNG.normal(size=(40, 2)))
    y = np.arange(40) % 2
    clf = textbook(family).fit(constant, y).partial_fit(varied, y).forget(varied, y)
    np.testing.assert_allclose(clf.predict_proba([[0.1, 0.1], [0.2, 0.3]]), 0.5, rtol=1e-12)


def test_whole_numbers_in_one_batch_are_forgotten_exactly() -> None:
    flags = np.zeros((50, 2))
    flags[13] = 1.0
    y = np.arange(50) % 2
    for family in (Gaussian(), Gaussian(variance=Pooled())):
        clf = textbook(family).fit(flags, y).forget(flags[13:14], y[13:14])
        np.testing.assert_array_equal(clf.counts_.statistics[0].variance(), 0.0)


def test_rows_never_learned_make_a_spread_negative() -> None:
    clf = textbook().fit([[1.0], [1.1], [0.9], [1.0]], [0, 0, 0, 0])
    with pytest.raises(DecibanError, match="negative"):
        clf.forget([[50.0]], [0])
    joint = textbook(JointGaussian()).fit(X, Y)
    with pytest.raises(DecibanError, match="negative"):
        joint.forget([[50.0, 0.0]], [0])


@pytest.mark.parametrize("family", [JointGaussian(), JointTable()], ids=str)
def test_shards_whose_columns_come_in_another_order_add(family) -> None:
    table = pa.table({"a": np.ceil(X[:, 0]), "b": np.round(X[:, 1], 1)})
    spec = {("a", "b"): family}
    one = textbook(spec).fit(table.slice(0, 30), Y[:30])
    other = textbook(spec).fit(table.slice(30).select(["b", "a"]), Y[30:])
    whole = textbook(spec).fit(table, Y)
    for both in (one + other, other + one):
        np.testing.assert_allclose(both.predict_proba(table), whole.predict_proba(table), rtol=1e-10)


def test_blocks_of_counts_that_disagree_are_refused() -> None:
    table = pa.table({name: RNG.poisson(2.0, 60).astype(float) for name in "abcd"})

    def fitted(*blocks: str) -> BayesClassifier:
        return textbook({tuple(block): Multinomial() for block in blocks}).fit(table.select(list("".join(blocks))), Y)

    for one, other in ((("ab",), ("a", "b")), (("a", "b"), ("ab",)), (("ab", "cd"), ("ac", "bd"))):
        with pytest.raises(SchemaError, match="one block in one"):
            fitted(*one) + fitted(*other)
    apart = textbook({("a", "b"): Multinomial()}).fit(table.select(["a", "b"]), Y)
    apart.set_params(columns={("a", "b"): Multinomial(), ("c", "d"): Multinomial()}).partial_fit(table, Y)
    assert apart.model_.schema.block_names == ("a+b", "c+d")


def test_models_that_count_alike_add_whatever_their_smoothing() -> None:
    words = [["x"], ["y"], ["x"], ["z"]]
    one, other = (textbook(Categorical(alpha=alpha)).fit(words, [0, 1, 1, 0]) for alpha in (1.0, 0.5))
    assert (one + other).counts_.rows == 8
    assert str((other + one).schema_.groups[0].family) == "Categorical(alpha=0.5)"
    mixed = textbook({"a": Categorical(alpha=0.1), "b": Categorical()}).fit({"a": ["x", "y"], "b": ["p", "q"]}, [0, 1])
    plain = textbook().fit({"a": ["x", "x"], "b": ["p", "r"]}, [0, 1])
    assert [len(levels) for s in (plain + mixed).counts_.statistics for levels in s.levels] == [2, 3]
    with pytest.raises(SchemaError, match="Bernoulli"):
        textbook(Bernoulli(threshold=1)).fit(X, Y) + textbook(Bernoulli(threshold=2)).fit(X, Y)


def test_sums_of_classifiers() -> None:
    parts = [textbook().fit(X[k::3], Y[k::3]) for k in range(3)]
    np.testing.assert_allclose(sum(parts).predict_proba(X), textbook().fit(X, Y).predict_proba(X), rtol=1e-10)
    assert sum(part.counts_ for part in parts).rows == 60
    np.testing.assert_array_equal((0.5 * parts[0].counts_).class_weight, parts[0].counts_.class_weight / 2)
    with pytest.raises(TypeError):
        parts[0] + 1


def test_readers_see_one_model_while_classes_come_in_front() -> None:
    """New classes sort first, so a label read with another generation's places would be wrong."""
    clf = textbook().fit([[1000.0], [1001.0]], [1000, 1000])
    stop, wrong = threading.Event(), []

    def read() -> None:
        while not stop.is_set():
            try:
                if clf.predict([[1000.5]])[0] != 1000:
                    wrong.append("label")
                evidence = clf.evidence([[1000.5]])
                if evidence.values.shape[2] != evidence.classes.size:
                    wrong.append("sizes")
            except Exception as error:
                wrong.append(repr(error))

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for label in range(999, 900, -1):
        clf.partial_fit([[float(label) - 500.0], [float(label) - 501.0]], [label, label])
    stop.set()
    for reader in readers:
        reader.join()
    assert not wrong


# scoring


def test_the_weights_of_blocks_reach_the_kernels() -> None:
    """log joint and evidence agree for any weights, also where a weight of 0 meets a probability of 0."""
    table = pa.table(
        {"c": ["x", "y", "x", "y"], "g": [1.0, 2.0, 4.0, 3.0], "n": [1.0, 0.0, 2.0, 3.0], "m": [1.0, 1.0, 5.0, 2.0]}
    )
    spec = {"c": Categorical(alpha=0), "g": Gaussian(), ("n", "m"): Multinomial()}
    fitted = textbook(spec).fit(table, [0, 1, 0, 1]).model_
    rows = fitted.schema.table_as_learned(open_table(table))
    for weights in ([0.0, 1.0, 0.5], [0.3, 0.0, 2.0], [1.0, 0.7, 0.0]):
        model = replace(fitted, bias=np.array([0.1, -0.2]), weights=np.array(weights))
        np.testing.assert_allclose(model.log_joint(rows), model.evidence(rows).log_joint, rtol=1e-12)
        assert not np.isnan(model.log_joint(rows)).any()


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("family", [Multinomial(), Multinomial(alpha=0), Complement(), Complement(norm=True)], ids=str)
def test_huge_counts_give_no_nan(family, form) -> None:
    clf = textbook(family).fit(form(np.array([[1.0, 2.0], [2.0, 10.0]])), [0, 1])
    queries = form(np.array([[1.7e308, 1.7e308], [0.0, 1e300], [np.nan, 3.0], [1e200, 0.0]]))
    for found in (clf.predict_proba(queries), clf.log_joint(queries), clf.evidence(queries).values):
        assert not np.isnan(found).any()


def test_infinity_is_refused_whoever_else_is_in_the_batch() -> None:
    for family in (Poisson(), Gamma(), LogNormal(), Binned(), Gaussian(), JointGaussian()):
        clf = textbook(family).fit([[1.0], [2.0], [5.0], [7.0]], [0, 0, 1, 1])
        for rows in ([[np.inf]], [[np.inf], [1.0]]):
            with pytest.raises(DecibanError, match="row 0: found inf"):
                clf.predict_proba(rows)


def test_a_sparse_rows_bits_do_not_depend_on_the_others() -> None:
    table = (RNG.random((20, 30)) < 0.2).astype(float)
    clf = textbook(Bernoulli()).fit(sparse.csr_array(table), np.arange(20) % 2)
    holed = table.copy()
    holed[1, 1] = np.nan
    alone = clf.log_joint(sparse.csr_array(table[:1]))
    np.testing.assert_array_equal(clf.log_joint(sparse.csr_array(holed))[:1], alone)


def test_an_empty_declared_class_does_not_move_the_others() -> None:
    """The shrinkage of a pooled matrix is found from all rows, whichever classes are declared."""
    for spread in (Pooled(shrinkage="oas"), PerClass(shrinkage="oas")):
        plain = textbook(JointGaussian(spread)).fit(X, Y).predict_proba(X)
        declared = textbook(JointGaussian(spread), classes=[0, 1, 9]).fit(X, Y).predict_proba(X)
        np.testing.assert_allclose(declared[:, :2], plain, rtol=1e-10)


def test_the_floor_and_ddof_of_a_joint_block() -> None:
    flat = np.column_stack([X[:, 0], X[:, 0], X[:, 1]])  # two copies: one direction has no variance
    for floor in (1e-3, 1e-1):
        clf = textbook(JointGaussian(Pooled(), floor=floor), prior="uniform").fit(flat, Y)
        lowest = np.linalg.eigvalsh(clf.model_.likelihoods[0].covariance[0])[0]
        assert lowest == pytest.approx(floor, rel=1e-6)
    clf = textbook(JointGaussian(PerClass(), ddof=1), prior="uniform").fit(X, Y)
    expected = stats.multivariate_normal.logpdf(X[:3], X[Y == 0].mean(axis=0), np.cov(X[Y == 0].T))
    np.testing.assert_allclose(clf.evidence(X[:3]).values[:, 0, 0], expected, rtol=1e-9)


def test_gamma_of_narrow_columns() -> None:
    for spread in (1e-2, 1e-4, 1e-5):
        narrow = 5.0 * (1.0 + spread * RNG.normal(size=(4000, 1)))
        clf = textbook(Gamma()).fit(narrow, np.zeros(4000, dtype=int))
        shape = clf.model_.likelihoods[0].shape[0, 0]
        assert shape**-0.5 == pytest.approx(narrow.std() / narrow.mean(), rel=2e-3)


def test_poisson_smoothing_and_gamma_floor() -> None:
    counts = np.array([[0.0], [0.0], [4.0], [6.0]])
    rate = textbook(Poisson(alpha=2.0)).fit(counts, [0, 0, 1, 1]).model_.likelihoods[0].rate
    np.testing.assert_allclose(rate, [[(0 + 2 * 2.5) / 4, (10 + 2 * 2.5) / 4]])
    constant = np.array([[2.0], [2.0], [4.0], [9.0]])
    shapes = [
        textbook(Gamma(floor=f)).fit(constant, [0, 0, 1, 1]).model_.likelihoods[0].shape[0, 0] for f in (0.1, 0.01)
    ]
    assert shapes[1] > 5 * shapes[0]


def test_many_missing_patterns() -> None:
    table = RNG.normal(size=(300, 6))
    table[RNG.random(table.shape) < 0.3] = np.nan
    table[0] = np.nan
    clf = textbook(JointGaussian(PerClass(shrinkage=0.2)), prior="uniform").fit(RNG.normal(size=(60, 6)), Y)
    normal = clf.model_.likelihoods[0]
    found = clf.evidence(table).values[:, 0]
    for i in range(300):
        kept = np.flatnonzero(~np.isnan(table[i]))
        for c in range(2):
            mean = (normal.centre + normal.mean[c] * normal.unit)[kept]
            matrix = (normal.covariance[c] * np.outer(normal.unit, normal.unit))[np.ix_(kept, kept)]
            expected = stats.multivariate_normal.logpdf(table[i, kept], mean, matrix) if kept.size else 0.0
            assert found[i, c] == pytest.approx(expected, rel=1e-9, abs=1e-12)


# explaining


def test_explain_does_not_mistake_a_value_for_a_missing_cell() -> None:
    clf = textbook().fit([["missing"], ["there"], ["missing"], ["there"]], [0, 1, 0, 1])
    assert "no evidence" not in str(clf.explain([["missing"]]))
    assert "no evidence" in str(clf.explain([[None]]))
    joint = textbook(JointGaussian()).fit(X, Y)
    text = str(joint.explain([[1.0, np.nan]]))
    assert "no evidence" not in text
    assert "N((1, missing)" in text
    assert "outside the support" in str(textbook(LogNormal()).fit(np.exp(X), Y).explain([[-1.0, 1.0]]))


@pytest.mark.parametrize(
    "bad",
    [
        lambda: Gaussian(Pooled),
        lambda: Gaussian("pooled"),
        lambda: JointGaussian(PerClass),
        lambda: Gaussian(PerClass(shrinkage=0.5)),
        lambda: Categorical(levels=("x", 1)),
        lambda: Categorical(levels=5),
        lambda: Bernoulli(threshold="a"),
        lambda: Bernoulli(threshold=float("nan")),
        lambda: Binned(bins="a"),
        lambda: textbook(threads=-1).fit(X, Y),
        lambda: textbook(threads="2").fit(X, Y),
        lambda: textbook().fit(X, Y).decay("a"),
        lambda: textbook().fit(X, Y).sample(-1),
        lambda: textbook().fit(sparse.coo_array([1.0, 2.0]), [0, 1]),
    ],
)
def test_parameters_are_checked_where_they_are_given(bad) -> None:
    with pytest.raises(DecibanError):
        bad()


def test_repeated_levels_count_once() -> None:
    assert Categorical(levels=("x", "x", "z")).levels == ("x", "z")


def test_batches_are_pulled_one_by_one() -> None:
    """A source larger than memory is never held as a whole."""
    from deciban.parallel import map_in_threads

    pulled = []

    def source():
        for k in range(100):
            pulled.append(k)
            yield k

    results = map_in_threads(lambda k: k, source(), threads=2)
    assert next(results) == 0
    assert len(pulled) <= 6
    assert list(results) == list(range(1, 100))


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_what_went_wrong_first_is_told(threads: int) -> None:
    from deciban.parallel import map_in_threads

    def source():
        yield from range(4)
        raise ValueError("the source")

    def action(k: int) -> int:
        if k == 2:
            raise ValueError("the action")
        return k

    with pytest.raises(ValueError, match="the action"):
        list(map_in_threads(action, source(), threads))


# the second round


@pytest.mark.parametrize("family", [Gaussian(), JointGaussian(), Poisson(), Multinomial(), Binned(), Gamma()], ids=str)
def test_infinite_float32_cells_are_refused(family) -> None:
    table = np.array([[1], [np.inf], [2], [3], [5], [4]], dtype=np.float32)
    with pytest.raises(DecibanError, match="column 'x0', row 1"):
        textbook(family).fit(table, [0, 0, 0, 1, 1, 1])


@pytest.mark.parametrize("family", [Gaussian(), LogNormal(), Gamma(), JointGaussian(), Binned()], ids=str)
def test_a_class_may_be_forgotten_down_to_one_row(family) -> None:
    positive = np.exp(X)
    clf = textbook(family).fit(positive, Y)
    rows = np.flatnonzero(Y == 0)[1:]
    clf.forget(positive[rows], Y[rows])
    assert clf.counts_.class_weight.tolist() == [1.0, 30.0]
    left = np.delete(np.arange(60), rows)
    expected = textbook(family).fit(positive[left], Y[left])
    np.testing.assert_allclose(clf.predict_proba(positive), expected.predict_proba(positive), rtol=1e-6, atol=1e-9)


def test_a_column_may_become_constant_in_a_class() -> None:
    x = np.full((100, 1), 0.1)
    x[3], x[60:] = 0.7, RNG.normal(size=(40, 1))
    y = np.repeat([0, 1], 50)
    clf = textbook().fit(x, y).forget(x[3:4], y[3:4])
    assert clf.counts_.statistics[0].variance()[0, 0] == 0.0


def test_open_vocabularies_add_whatever_their_smoothing_and_forget_again() -> None:
    one, other = (
        pa.table({"a": [1.0, 2.0, 3.0], "b": [4.0, 1.0, 0.0]}),
        pa.table({"b": [1.0, 0.0, 5.0], "c": [2.0, 2.0, 1.0]}),
    )
    y = [0, 1, 0]
    a, b = textbook(Multinomial()).fit(one, y), textbook(Multinomial(alpha=0.5)).fit(other, y)
    both = a + b
    assert both.schema_.block_names == ("a+b+c",)
    at_once = textbook(Multinomial()).fit(one, y).partial_fit(other, y)
    query = {"a": [1.0], "b": [1.0], "c": [3.0]}
    np.testing.assert_allclose(both.predict_proba(query), at_once.predict_proba(query), rtol=1e-12)
    np.testing.assert_allclose((both - b).predict_proba(query), a.predict_proba(query), rtol=1e-12)


def test_given_levels_belong_to_what_is_counted() -> None:
    given = textbook({"c": Categorical(levels=("x", "y"))}).fit({"c": ["x", "y"]}, [0, 1])
    with pytest.raises(SchemaError, match="column 'c'"):
        given + textbook({"c": Categorical()}).fit({"c": ["z", "y"]}, [0, 1])


def test_a_dictionary_may_hold_a_value_twice() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 0, 1, 2], pa.int32()), pa.array(["a", "a", "b"]))
    clf = textbook().fit(pa.table({"c": column}), [0, 1] * 3)
    assert sum(table.sum() for table in clf.counts_.statistics[0].tables) == 6.0
    assert clf.counts_.statistics[0].levels[0].to_pylist() == ["a", "b"]


def test_more_possible_tuples_than_numbers() -> None:
    base = np.random.default_rng(1).integers(0, 2, (1, 65))
    x = np.repeat(base, 4, 0)
    x[2:, 0] = 1 - base[0, 0]
    x = np.vstack([x, 1 - base, 1 - base])
    table = {f"c{j}": x[:, j] for j in range(65)}
    values = textbook({tuple(table): JointTable()}).fit(table, [0, 0, 1, 1, 0, 1]).evidence(table).values[:, 0]
    assert values[0, 0] > values[0, 1]
    assert values[2, 0] < values[2, 1]
    assert values[4, 0] == values[4, 1]


def test_a_block_comes_whole_or_not_at_all() -> None:
    clf = textbook({("a", "b"): JointGaussian()})
    with pytest.raises(DecibanError, match="give it whole"):
        clf.partial_fit(pd.DataFrame({"a": X[:6, 0]}), [0, 1] * 3)


def test_a_column_without_cells_has_no_opinion() -> None:
    empty = textbook().fit({"a": [None, None], "b": [1.0, 2.0]}, [0, 1])
    filled = textbook().fit({"a": [1.5, 2.5], "b": [1.0, 2.0]}, [0, 1])
    for both in (empty + filled, filled + empty):
        assert [str(part.family) for part in both.schema_.groups] == ["Gaussian()"]
        assert both.counts_.statistics[0].weight.sum() == 6.0
    assert "undecided" in str(empty.schema_)
    assert empty.sample(3, random_state=0)[0].column_names == ["a", "b"]
    typed = pd.DataFrame({"n": pd.array([None, None], dtype="Int64"), "z": [1.0, 2.0]})
    assert "undecided" in str(textbook().fit(typed, [0, 1]).schema_)


def test_labels_and_columns_of_odd_types() -> None:
    for labels in (
        pd.Series(pd.cut([1, 2, 3, 1], [0, 1, 2, 3])),
        pd.Series(pd.interval_range(0, 4)),
        np.zeros(4, complex),
    ):
        with pytest.raises(DecibanError, match="label type"):
            textbook().fit(np.zeros((4, 1)), labels)
    dummies = pd.get_dummies(pd.Series(list("abab")), sparse=True)
    assert textbook().fit(dummies, [0, 1] * 2).predict(dummies).tolist() == [0, 1, 0, 1]
    with pytest.raises(DecibanError, match="column 'c', row 0: found 'a'"):
        textbook({"c": Gaussian()}).fit(pl.DataFrame({"c": pl.Series(["a", "b"], dtype=pl.Categorical)}), [0, 1])
    table = pa.table({"a": [1.0, 2.0], "y": pa.array(["u", "v"]).dictionary_encode()})
    assert textbook().fit(table, "y").partial_fit(table.schema.empty_table(), "y").counts_.rows == 2


def test_unsigned_and_signed_labels_stay_integers() -> None:
    one = textbook().fit([[1.0], [2.0]], np.array([1, 2], dtype=np.uint64))
    both = one + textbook().fit([[1.0], [2.0]], np.array([1, 3]))
    assert both.classes_.tolist() == [1, 2, 3]
    assert both.classes_.dtype == np.int64
    big = textbook().fit([[1.0], [2.0]], np.array([2**63 + 1, 2**63 + 3], dtype=np.uint64))
    with pytest.raises(DecibanError, match=r"2\*\*63"):
        big + both


def test_small_edges() -> None:
    with pytest.raises(DecibanError, match="weight"):
        textbook().fit([[1.0], [2.0]], [0, 1]).score([[1.0], [2.0]], [0, 1], [0, 0])
    flat = np.c_[X[:, 0], np.ones(60)]
    with pytest.raises(DecibanError, match="found inf"):
        textbook(JointGaussian()).fit(flat, Y).predict_proba([[1.0, np.inf]])
    light = textbook(JointGaussian(Pooled(), ddof=1)).fit(X, Y, np.full(60, 0.001))
    assert np.abs(light.log_joint(X)).max() < 1e12
    assert "constant = 1" in str(textbook(Gamma()).fit(np.full((4, 1), 2.0), [0, 1] * 2).explain([[2.0]]))
