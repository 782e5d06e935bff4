"""What is saved is what is loaded: for every family, parameter, label and cell."""

import copy
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse

import deciban as dc
from deciban.families import FAMILIES
from deciban.testing import take_rows
from tests.laws.cases import CASES, Case
from tests.store.models import features, mixed
from tests.support.model_files import as_lists, assert_same_classifier, content


def assert_kept(clf: dc.BayesClassifier, X: Any, folder: Path) -> dc.BayesClassifier:
    """Saved and loaded, a classifier is the same, and saved again the file is the same; what was loaded."""
    path = folder / "kept.dcb"
    clf.save(path)
    loaded = dc.load(path)
    assert as_lists(loaded.get_params(deep=False)) == as_lists({**clf.get_params(deep=False), "threads": None})
    assert_same_classifier(clf, loaded, X)
    before = path.read_bytes()
    assert content(clf) == before
    loaded.save(path)
    assert path.read_bytes() == before
    np.testing.assert_array_equal(clf.log_joint(X), loaded.log_joint(X))
    return loaded


MORE = [
    Case(
        "categorical-alpha", dc.Categorical(alpha=0.0, unseen="error"), lambda rng, n: rng.integers(0, 4, (n, 2)), True
    ),
    Case("bernoulli-threshold", dc.Bernoulli(0.5, threshold=1.5), lambda rng, n: rng.normal(1.5, 1.0, (n, 2)), True),
    Case("bernoulli-alphas", dc.Bernoulli((0.5, 2.0)), lambda rng, n: rng.integers(0, 2, (n, 2)), True),
    Case("multinomial-alphas", dc.Multinomial((0.1, 0.2, 0.3)), lambda rng, n: rng.poisson(2.0, (n, 3)), True),
    Case("complement-norm", dc.Complement(0.25, norm=True), lambda rng, n: rng.poisson(2.0, (n, 3)), True),
    Case(
        "poisson-outside", dc.Poisson(0.5, outside="ignore"), lambda rng, n: rng.normal(2.0, 2.0, (n, 2)).round(), True
    ),
    Case("gamma-outside", dc.Gamma(1e-3, outside="ignore"), lambda rng, n: rng.normal(2.0, 2.0, (n, 2)), False),
    Case(
        "log-normal-outside",
        dc.LogNormal(dc.Pooled(), 1.0, 0.0, "ignore"),
        lambda rng, n: rng.normal(2, 2, (n, 2)),
        False,
    ),
    Case(
        "gaussian-all",
        dc.Gaussian(dc.Shrunk(0.25), 1.0, 1e-3, var_smoothing=0.1),
        lambda rng, n: rng.normal(size=(n, 2)),
        False,
    ),
    Case("binned-all", dc.Binned(5, 0.5, "smooth"), lambda rng, n: rng.normal(size=(n, 2)), False),
    Case("joint-oas", dc.JointGaussian(dc.PerClass("oas"), 1.0), lambda rng, n: rng.normal(size=(n, 3)), False),
    Case("joint-shrunk", dc.JointGaussian(dc.Shrunk(0.5, 0.1)), lambda rng, n: rng.normal(size=(n, 3)), False),
    Case(
        "joint-table-cuts",
        {(0, 1): dc.JointTable(0.5, "smooth", cuts=((-1.0, 0.0, 1e-300), None)), 2: dc.Gaussian()},
        lambda rng, n: np.column_stack([rng.normal(size=n), rng.integers(0, 3, n), rng.normal(size=n)]),
        True,
    ),
]


@pytest.mark.parametrize("case", [*CASES, *MORE], ids=lambda case: case.name)
@pytest.mark.parametrize("tune", ["auto", None])
def test_every_family_is_kept(case: Case, tune: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    X, y, weights = case.draw(rng, 60), np.arange(60) % 3, rng.integers(0, 3, 60) + 0.5
    clf = dc.BayesClassifier(case.spec, prior="smoothed", tune=tune).fit(X, y, weights)
    assert_kept(clf, X, tmp_path)


def test_the_cases_have_every_family() -> None:
    specs = [case.spec for case in (*CASES, *MORE)]
    found = {type(f) for spec in specs for f in (spec.values() if isinstance(spec, dict) else [spec])}
    assert found == set(FAMILIES)


LEVELS = {
    "text": ["", " ", "a", "é", "🙂", '"', "'", "\n\r\t", "nul\0nul", "\\u0041", "NaN", "null", "{}", "\u2028"],
    "ints": [-(2**63), -1, 0, 7, 2**63 - 1],
    "floats": [-1e308, -0.1, 0.0, 5e-324, 1e22, 0.1 + 0.2],
    "bools": [False, True],
    "dates": [date(1, 1, 1), date(1970, 1, 1), date(9999, 12, 31)],
    "times": [time(0, 0), time(23, 59, 59, 999999)],
    "moments": [datetime(1900, 1, 1), datetime(2024, 2, 29, 12, 30, 1, 5)],
    "zoned": [datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 2, 29, 12, 30, 1, 5, tzinfo=UTC)],
    "spans": [timedelta(days=-3), timedelta(microseconds=1)],
}


@pytest.mark.parametrize("kind", LEVELS)
def test_levels_of_every_type_are_kept(kind: str, tmp_path: Path) -> None:
    cells = [*LEVELS[kind], None] * 3
    X = pa.table({"x": pa.array(cells)})
    y = [k % 2 for k in range(len(cells))]
    loaded = assert_kept(dc.BayesClassifier({"x": dc.Categorical()}, tune=None).fit(X, y), X, tmp_path)
    assert set(loaded.counts_.statistics[0].levels[0].to_pylist()) == set(LEVELS[kind])


@pytest.mark.parametrize("kind", LEVELS)
def test_declared_levels_of_every_type_are_kept(kind: str, tmp_path: Path) -> None:
    if kind == "spans":
        pytest.skip("durations cannot be written as levels= of a file")
    family = dc.Categorical(0.5, levels=tuple(LEVELS[kind]), unseen="smooth")
    X = pa.table({"x": pa.array([*LEVELS[kind][:2], None])})
    loaded = assert_kept(dc.BayesClassifier({"x": family}).fit(X, ["a", "b", "b"]), X, tmp_path)
    assert loaded.families == {"x": family}


@pytest.mark.parametrize(
    "kind",
    [
        *(pa.date32(), pa.date64(), pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")),
        *(pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")),
        *(pa.timestamp("us", zone) for zone in ("UTC", "Europe/Berlin", "+05:30", "America/Port-au-Prince")),
        *(pa.duration(unit) for unit in ("s", "ms", "us", "ns")),
        *(pa.int8(), pa.uint64(), pa.float32(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())),
        *(pa.decimal128(25, 2), pa.string_view()),
    ],
    ids=str,
)
def test_columns_of_every_arrow_type_are_kept_or_refused(kind: pa.DataType, tmp_path: Path) -> None:
    """What can be learned can be saved."""
    texts = pa.types.is_large_string(kind) or pa.types.is_dictionary(kind) or kind == pa.string_view()
    whole = pa.array(["0", "86400000", "172800000"] * 4 if texts else [0, 86_400, 43_200] * 4)
    if pa.types.is_date64(kind):
        column = pa.array([0, 86_400_000, 172_800_000] * 4).cast(kind)
    elif pa.types.is_time32(kind) or pa.types.is_date32(kind):
        column = pa.array([0, 86_399, 43_200] * 4, pa.int32()).cast(kind)
    elif kind == pa.int8():
        column = pa.array([0, -128, 127] * 4, kind)
    else:
        column = whole.dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else whole.cast(kind)
    X = pa.table({"x": column})
    assert_kept(dc.BayesClassifier({"x": dc.Categorical()}, tune=None).fit(X, [0, 1] * 6), X, tmp_path)


LABELS = {
    "list of text": ["no", "yes", "än\n\"'🙂"] * 4,
    "array of text": np.array(["no", "yes", "maybe"] * 4),
    "objects": np.array(["no", "yes", None] * 4, dtype=object),
    "ints": [3, -1, 2**62] * 4,
    "int8": np.array([3, -1, 2] * 4, dtype=np.int8),
    "uint64": np.array([3, 2**64 - 1, 2] * 4, dtype=np.uint64),
    "bools": [True, False, True] * 4,
    "one bool": [True] * 12,
    "floats": np.array([1.0, 2.0, np.nan] * 4),
    "float32": np.array([1.0, 2.0, np.nan] * 4, dtype=np.float32),
    "float16": np.array([1.0, 2.0, np.nan] * 4, dtype=np.float16),
    "days": np.array(["2024-01-01", "2024-02-29", "NaT"] * 4, dtype="datetime64[D]"),
    "nanoseconds": np.array(["2024-01-01", "2024-02-29", "NaT"] * 4, dtype="datetime64[ns]"),
    "spans": np.array([1, 2, -3] * 4, dtype="timedelta64[s]"),
    "arrow": pa.chunked_array([["a", "b", None] * 4]),
    "pandas": pd.Series(["a", "b", "c"] * 4, dtype="category"),
    # labels of types that NumPy keeps as objects
    "ints with gaps": np.array([1, 2, None] * 4, dtype=object),
    "bools with gaps": np.array([True, False, None] * 4, dtype=object),
    "floats with gaps": np.array([1.0, 2.0, None] * 4, dtype=object),
    "dates": [date(2024, 1, 1), date(2024, 2, 29), date(1900, 1, 1)] * 4,
    "arrow bools with gaps": pa.chunked_array([[True, False, None] * 4]),
    "long doubles": np.array([1.0, 2.0, 3.0] * 4, dtype=np.longdouble),
    "bytes": np.array([b"a", b"b", b"c"] * 4),
}
# What a file cannot hold; that is said in one line, and nothing is written.
REFUSED = ("bytes", "long doubles")


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("tune", ["auto", None])
def test_labels_of_every_type_are_kept(kind: str, tune: Any, tmp_path: Path) -> None:
    X = np.random.default_rng(1).normal(size=(12, 2))
    clf = dc.BayesClassifier(tune=tune).fit(X, LABELS[kind])
    if kind in REFUSED:
        with pytest.raises(dc.UsageError, match="cannot hold labels"):
            clf.save(tmp_path / "x.dcb")
        assert list(tmp_path.iterdir()) == []
        return
    loaded = assert_kept(clf, X, tmp_path)
    loaded.partial_fit(X, LABELS[kind])
    assert_same_classifier(copy.copy(clf).partial_fit(X, LABELS[kind]), loaded, X)


@pytest.mark.parametrize(
    ("prior", "classes"),
    [
        *(("empirical", None), ("smoothed", None), ("uniform", ["a", "b", "c", "d"])),
        *((dc.Empirical(), None), (dc.Empirical(0.5), ("a", "b", "c", "d")), (dc.Uniform(), {"a", "b", "c"})),
        *(({"a": 0.2, "b": 0.3, "c": 0.5}, None), ([0.25, 0.25, 0.5], None), ((0.1, 0.2, 0.7), frozenset("abc"))),
        (np.array([0.5, 0.25, 0.25]), np.array(["c", "b", "a"])),
        (pd.Series([0.5, 0.25, 0.25], index=["c", "a", "b"]), np.array(["c", "b", "a"], dtype=object)),
        ({"a": 0, "b": 1, "c": 0.0}, pd.Series(["a", "b", "c"])),
        ([0.0, 0.25, 0.25, 0.5], pa.array(["a", "b", "c", "e"])),
    ],
    ids=lambda value: str(sorted(value) if isinstance(value, set | frozenset) else value),
)
def test_priors_and_declared_classes_are_kept(prior: Any, classes: Any, tmp_path: Path) -> None:
    X = np.random.default_rng(2).normal(size=(30, 3))
    y = np.array(["a", "b", "c"] * 10)
    assert_kept(dc.BayesClassifier(prior=prior, classes=classes).fit(X, y), X, tmp_path)


@pytest.mark.parametrize("tune", ["auto", None])
@pytest.mark.parametrize("unseen", ["ignore", "smooth"])
def test_a_table_of_everything_is_kept(tune: Any, unseen: Any, tmp_path: Path) -> None:
    table = mixed()
    clf = dc.BayesClassifier(alpha=0.5, unseen=unseen, threads=1, tune=tune).fit(table, "kind", np.arange(60) % 4 + 0.0)
    loaded = assert_kept(clf, table, tmp_path)
    assert loaded.target_ == "kind"
    np.testing.assert_array_equal(loaded.feature_names_in_, clf.feature_names_in_)
    for a, b in zip(clf.predict_interval(table), loaded.predict_interval(table), strict=True):
        np.testing.assert_array_equal(a, b)
    drawn = [model.sample(5, random_state=1) for model in (clf, loaded)]
    assert drawn[0].to_frame("pyarrow").equals(drawn[1].to_frame("pyarrow"))
    assert str(clf.explain(table.slice(0, 1))) == str(loaded.explain(table.slice(0, 1)))


@pytest.mark.parametrize("names", [None, ["x y", "", "🙂\n"], ["is", "map", "array"]])
def test_columns_with_and_without_names(names: list[str] | None, tmp_path: Path) -> None:
    X = np.random.default_rng(2).normal(size=(30, 3))
    given = X if names is None else pa.table(list(X.T), names=names)
    assert_kept(dc.BayesClassifier().fit(given, np.arange(30) % 2), given, tmp_path)


@pytest.mark.parametrize("spec", [None, dc.Multinomial(), dc.Bernoulli(threshold=0.5), dc.Complement()], ids=str)
def test_sparse_rows(spec: Any, tmp_path: Path) -> None:
    X = sparse.csr_array(np.random.default_rng(4).poisson(0.4, (40, 6)))
    assert_kept(dc.BayesClassifier(spec).fit(X, np.arange(40) % 2), X, tmp_path)


def test_columns_and_classes_without_any_cell(tmp_path: Path) -> None:
    nothing = pa.table({"x": pa.nulls(4), "y": pa.nulls(4, pa.string()), "z": pa.nulls(4, pa.float64())})
    clf = dc.BayesClassifier(classes=["a", "b", "c"]).fit(nothing, ["a", "b", "b", None])
    assert_kept(clf, nothing, tmp_path)
    holes = np.full((4, 2), np.nan)
    assert_kept(dc.BayesClassifier().fit(holes, [0, 1, 1, 0]), holes, tmp_path)


@pytest.mark.parametrize("tune", ["auto", None])
def test_a_loaded_model_learns_on_as_the_one_that_was_saved(tune: Any, tmp_path: Path) -> None:
    table, more = mixed(), mixed(30, seed=5)
    clf = dc.BayesClassifier(tune=tune, prior="smoothed").fit(table, "kind")
    wider = more.append_column("new", pa.array(["p", "q"] * 15))
    other = dc.BayesClassifier({"visits": dc.Gaussian()}, tune=None, prior="smoothed").fit(more, "kind")
    early = table.slice(0, 5).append_column("new", pa.nulls(5))  # learned without that column
    changes = {
        "partial_fit": lambda c: c.partial_fit(wider, "kind"),
        "forget": lambda c: c.forget(table.slice(3, 10), "kind"),
        "decay": lambda c: c.decay(0.5),
        "retune": lambda c: c.retune(table, "kind"),
        "retune on others": lambda c: c.retune(more, "kind", already_learned=False),
        "add": lambda c: c + other,
        "add to": lambda c: other + c,
        "with_prior": lambda c: c.with_prior("uniform"),
        "shard": lambda c: c.shard(wider, "kind"),
        "new class": lambda c: c.partial_fit(features(more), ["d"] * 30),
        "several": lambda c: c.partial_fit(wider, "kind").decay(0.9).forget(early, "kind", [0.9] * 5),
    }
    clf.save(tmp_path / "a.dcb")
    for name, change in changes.items():
        mine, loaded = change(copy.copy(clf)), change(dc.load(tmp_path / "a.dcb"))
        try:
            assert_same_classifier(mine, loaded, features(table))
            assert_kept(loaded, features(table), tmp_path)
        except AssertionError as problem:
            raise AssertionError(f"{name}: {problem}") from problem


@pytest.mark.parametrize("case", [*CASES, *MORE[1:]], ids=lambda case: case.name)
def test_whatever_was_learned_forgotten_and_scaled_can_be_loaded(case: Case, tmp_path: Path) -> None:
    rng = np.random.default_rng(12)
    X, y, weights = case.draw(rng, 60), np.arange(60) % 3, rng.integers(1, 5, 60) / 2.0
    clf = dc.BayesClassifier(case.spec, tune=None, prior="uniform").fit(X, y, weights)
    order = rng.permutation(60)
    for k in (0, 20, 40):
        some = order[k : k + 19]
        clf.forget(take_rows(X, some), y[some], weights[some])
        assert_kept(clf, X, tmp_path)
        for factor in (1e-9, 1e-200, 1e250):
            assert_kept(copy.copy(clf).decay(factor), X, tmp_path)
    clf.partial_fit(X, y, sample_weight=weights)
    assert_kept(clf, X, tmp_path)
