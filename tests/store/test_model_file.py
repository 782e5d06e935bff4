"""What is saved is what is loaded: for every family, parameter, label and cell; and shards, whose names tell rows."""

import copy
import itertools
import json
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import csv, parquet
from scipy import sparse

import deciban
from deciban import (
    BayesClassifier,
    Bernoulli,
    Binned,
    Categorical,
    Complement,
    DataError,
    Empirical,
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
    Shrunk,
    Uniform,
    UsageError,
    load,
    merge,
)
from deciban.datasets import weather
from deciban.families import FAMILIES
from tests.laws.cases import CASES, Case, assert_same_counts, rows_of
from tests.store.files import as_lists, assert_same_classifier, content, taken_apart
from tests.store.make_golden import EXPECTED, GOLDEN

HERE = Path(__file__).parent


def mixed(n: int = 60, seed: int = 0) -> pa.Table:
    """Columns of every kind, all of which tell something of the class, with cells missing."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, n)

    def holes(values: list[Any]) -> list[Any]:
        return [None if rng.random() < 0.1 else value for value in values]

    return pa.table(
        {
            "height": pa.array(holes((170.0 + 5.0 * kind + rng.normal(0.0, 4.0, n)).tolist())),
            "income": pa.array(holes(rng.lognormal(3.0 + 0.3 * kind, 0.5).tolist())),
            "visits": pa.array(holes(rng.poisson(2.0 + 3.0 * kind).tolist()), pa.int64()),
            "member": pa.array(holes((rng.random(n) < 0.2 + 0.3 * kind).tolist()), pa.bool_()),
            "town": pa.array(holes([["Köln", "Ulm", "Hof", "🏙 „x\"\n'y\0z"][k] for k in rng.integers(0, 4, n)])),
            "since": pa.array(holes([date(2020, 1, 1) + timedelta(days=int(d)) for d in rng.integers(0, 900, n)])),
            "seen": pa.array(holes([datetime(2024, 1, 1, int(h)) for h in rng.integers(0, 24, n)])),
            "nothing": pa.nulls(n),
            "void": pa.nulls(n, pa.float64()),
            "kind": pa.array([["a", "b", "c"][k] for k in kind]),
        }
    )


def features(table: pa.Table) -> pa.Table:
    return table.drop_columns(["kind"])


def assert_kept(clf: BayesClassifier, X: Any, folder: Path) -> BayesClassifier:
    """Saved and loaded, a classifier is the same, and saved again the file is the same; what was loaded."""
    path = folder / "kept.dcb"
    clf.save(path)
    loaded = load(path)
    assert as_lists(loaded.get_params(deep=False)) == as_lists({**clf.get_params(deep=False), "threads": None})
    assert_same_classifier(clf, loaded, X)
    before = path.read_bytes()
    assert content(clf) == before
    loaded.save(path)
    assert path.read_bytes() == before
    np.testing.assert_array_equal(clf.log_joint(X), loaded.log_joint(X))
    return loaded


# every family

MORE = [
    Case("categorical-alpha", Categorical(alpha=0.0, unseen="error"), lambda rng, n: rng.integers(0, 4, (n, 2)), True),
    Case("bernoulli-threshold", Bernoulli(0.5, threshold=1.5), lambda rng, n: rng.normal(1.5, 1.0, (n, 2)), True),
    Case("bernoulli-alphas", Bernoulli((0.5, 2.0)), lambda rng, n: rng.integers(0, 2, (n, 2)), True),
    Case("multinomial-alphas", Multinomial((0.1, 0.2, 0.3)), lambda rng, n: rng.poisson(2.0, (n, 3)), True),
    Case("complement-norm", Complement(0.25, norm=True), lambda rng, n: rng.poisson(2.0, (n, 3)), True),
    Case("poisson-outside", Poisson(0.5, outside="ignore"), lambda rng, n: rng.normal(2.0, 2.0, (n, 2)).round(), True),
    Case("gamma-outside", Gamma(1e-3, outside="ignore"), lambda rng, n: rng.normal(2.0, 2.0, (n, 2)), False),
    Case("log-normal-outside", LogNormal(Pooled(), 1.0, 0.0, "ignore"), lambda rng, n: rng.normal(2, 2, (n, 2)), False),
    Case("gaussian-all", Gaussian(Shrunk(0.25), 1.0, 1e-3, added=0.1), lambda rng, n: rng.normal(size=(n, 2)), False),
    Case("binned-all", Binned(5, 0.5, "smooth"), lambda rng, n: rng.normal(size=(n, 2)), False),
    Case("joint-oas", JointGaussian(PerClass("oas"), 1.0), lambda rng, n: rng.normal(size=(n, 3)), False),
    Case("joint-shrunk", JointGaussian(Shrunk(0.5, 0.1)), lambda rng, n: rng.normal(size=(n, 3)), False),
    Case(
        "joint-table-cuts",
        {(0, 1): JointTable(0.5, "smooth", cuts=((-1.0, 0.0, 1e-300), None)), 2: Gaussian()},
        lambda rng, n: np.column_stack([rng.normal(size=n), rng.integers(0, 3, n), rng.normal(size=n)]),
        True,
    ),
]


@pytest.mark.parametrize("case", [*CASES, *MORE], ids=lambda case: case.name)
@pytest.mark.parametrize("tune", ["auto", None])
def test_every_family_is_kept(case: Case, tune: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    X, y, weights = case.draw(rng, 60), np.arange(60) % 3, rng.integers(0, 3, 60) + 0.5
    clf = BayesClassifier(case.spec, prior="smoothed", tune=tune).fit(X, y, weights)
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
    loaded = assert_kept(BayesClassifier({"x": Categorical()}, tune=None).fit(X, y), X, tmp_path)
    assert set(loaded.counts_.statistics[0].levels[0].to_pylist()) == set(LEVELS[kind])


@pytest.mark.parametrize("kind", LEVELS)
def test_declared_levels_of_every_type_are_kept(kind: str, tmp_path: Path) -> None:
    if kind == "spans":
        pytest.skip("durations cannot be written as levels= of a file")
    family = Categorical(0.5, levels=tuple(LEVELS[kind]), unseen="smooth")
    X = pa.table({"x": pa.array([*LEVELS[kind][:2], None])})
    loaded = assert_kept(BayesClassifier({"x": family}).fit(X, ["a", "b", "b"]), X, tmp_path)
    assert loaded.columns == {"x": family}


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
    assert_kept(BayesClassifier({"x": Categorical()}, tune=None).fit(X, [0, 1] * 6), X, tmp_path)


# labels, classes, priors, names

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
    clf = BayesClassifier(tune=tune).fit(X, LABELS[kind])
    if kind in REFUSED:
        with pytest.raises(UsageError, match="cannot hold labels"):
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
        *((Empirical(), None), (Empirical(0.5), ("a", "b", "c", "d")), (Uniform(), {"a", "b", "c"})),
        *(({"a": 0.2, "b": 0.3, "c": 0.5}, None), ([0.25, 0.25, 0.5], None), ((0.1, 0.2, 0.7), frozenset("abc"))),
        (np.array([0.5, 0.25, 0.25]), np.array(["c", "b", "a"])),
        (pd.Series([0.5, 0.25, 0.25], index=["c", "a", "b"]), np.array(["c", "b", "a"], dtype=object)),
        ({"a": 0, "b": 1, "c": 0.0}, pd.Series(["a", "b", "c"])),
        ([0.0, 0.25, 0.25, 0.5], pa.array(["a", "b", "c", "e"])),
    ],
    ids=str,
)
def test_priors_and_declared_classes_are_kept(prior: Any, classes: Any, tmp_path: Path) -> None:
    X = np.random.default_rng(2).normal(size=(30, 3))
    y = np.array(["a", "b", "c"] * 10)
    assert_kept(BayesClassifier(prior=prior, classes=classes).fit(X, y), X, tmp_path)


@pytest.mark.parametrize("tune", ["auto", None])
@pytest.mark.parametrize("unseen", ["ignore", "smooth"])
def test_a_table_of_everything_is_kept(tune: Any, unseen: Any, tmp_path: Path) -> None:
    table = mixed()
    clf = BayesClassifier(alpha=0.5, unseen=unseen, threads=1, tune=tune).fit(table, "kind", np.arange(60) % 4 + 0.0)
    loaded = assert_kept(clf, table, tmp_path)
    assert loaded.target_ == "kind"
    np.testing.assert_array_equal(loaded.feature_names_in_, clf.feature_names_in_)
    for a, b in zip(clf.predict_interval(table), loaded.predict_interval(table), strict=True):
        np.testing.assert_array_equal(a, b)
    drawn = [model.sample(5, random_state=1) for model in (clf, loaded)]
    assert drawn[0][0].equals(drawn[1][0])
    assert str(clf.explain(table.slice(0, 1))) == str(loaded.explain(table.slice(0, 1)))


@pytest.mark.parametrize("names", [None, ["x y", "", "🙂\n"], ["is", "map", "array"]])
def test_columns_with_and_without_names(names: list[str] | None, tmp_path: Path) -> None:
    X = np.random.default_rng(2).normal(size=(30, 3))
    given = X if names is None else pa.table(list(X.T), names=names)
    assert_kept(BayesClassifier().fit(given, np.arange(30) % 2), given, tmp_path)


@pytest.mark.parametrize("spec", [None, Multinomial(), Bernoulli(threshold=0.5), Complement()], ids=str)
def test_sparse_rows(spec: Any, tmp_path: Path) -> None:
    X = sparse.csr_array(np.random.default_rng(4).poisson(0.4, (40, 6)))
    assert_kept(BayesClassifier(spec).fit(X, np.arange(40) % 2), X, tmp_path)


def test_columns_and_classes_without_any_cell(tmp_path: Path) -> None:
    nothing = pa.table({"x": pa.nulls(4), "y": pa.nulls(4, pa.string()), "z": pa.nulls(4, pa.float64())})
    clf = BayesClassifier(classes=["a", "b", "c"]).fit(nothing, ["a", "b", "b", None])
    assert_kept(clf, nothing, tmp_path)
    holes = np.full((4, 2), np.nan)
    assert_kept(BayesClassifier().fit(holes, [0, 1, 1, 0]), holes, tmp_path)


@pytest.mark.parametrize("tune", ["auto", None])
def test_a_loaded_model_learns_on_as_the_one_that_was_saved(tune: Any, tmp_path: Path) -> None:
    table, more = mixed(), mixed(30, seed=5)
    clf = BayesClassifier(tune=tune, prior="smoothed").fit(table, "kind")
    wider = more.append_column("new", pa.array(["p", "q"] * 15))
    other = BayesClassifier({"visits": Gaussian()}, tune=None, prior="smoothed").fit(more, "kind")
    early = table.slice(0, 5).append_column("new", pa.nulls(5))  # learned without that column
    changes = {
        "partial_fit": lambda c: c.partial_fit(wider, "kind"),
        "forget": lambda c: c.forget(table.slice(3, 10), "kind"),
        "decay": lambda c: c.decay(0.5),
        "retune": lambda c: c.retune(table, "kind"),
        "retune on others": lambda c: c.retune(more, "kind", learned=False),
        "add": lambda c: c + other,
        "add to": lambda c: other + c,
        "with_prior": lambda c: c.with_prior("uniform"),
        "shard": lambda c: c.shard(wider, "kind"),
        "new class": lambda c: c.partial_fit(features(more), ["d"] * 30),
        "several": lambda c: c.partial_fit(wider, "kind").decay(0.9).forget(early, "kind", [0.9] * 5),
    }
    clf.save(tmp_path / "a.dcb")
    for name, change in changes.items():
        mine, loaded = change(copy.copy(clf)), change(load(tmp_path / "a.dcb"))
        try:
            assert_same_classifier(mine, loaded, features(table))
            assert_kept(loaded, features(table), tmp_path)
        except AssertionError as problem:
            raise AssertionError(f"{name}: {problem}") from problem


@pytest.mark.parametrize("case", [*CASES, *MORE[1:]], ids=lambda case: case.name)
def test_whatever_was_learned_forgotten_and_scaled_can_be_loaded(case: Case, tmp_path: Path) -> None:
    rng = np.random.default_rng(12)
    X, y, weights = case.draw(rng, 60), np.arange(60) % 3, rng.integers(1, 5, 60) / 2.0
    clf = BayesClassifier(case.spec, tune=None, prior="uniform").fit(X, y, weights)
    order = rng.permutation(60)
    for k in (0, 20, 40):
        some = order[k : k + 19]
        clf.forget(rows_of(X, some), y[some], weights[some])
        assert_kept(clf, X, tmp_path)
        for factor in (1e-9, 1e-200, 1e250):
            assert_kept(copy.copy(clf).decay(factor), X, tmp_path)
    clf.partial_fit(X, y, sample_weight=weights)
    assert_kept(clf, X, tmp_path)


# the golden file


def test_the_golden_file_means_what_it_meant() -> None:
    golden = json.loads(EXPECTED.read_text())
    clf = load(GOLDEN)
    assert clf.classes_.tolist() == golden["classes"]
    found = clf.predict_proba(golden["rows"])
    np.testing.assert_allclose(found, golden["posteriors"], rtol=0.0, atol=1e-12)
    assert clf.shards_ == tuple(golden["shards"])
    data = GOLDEN.read_bytes()
    if taken_apart(data)[0]["deciban"] == deciban.__version__:
        assert content(clf) == data
    clf.partial_fit(golden["rows"], [golden["classes"][0]] * len(golden["rows"]))


# shards


def parts_of(table: pa.Table, cuts: list[int]) -> list[pa.Table]:
    edges = [0, *cuts, table.num_rows]
    return [table.slice(a, b - a) for a, b in itertools.pairwise(edges)]


PLAIN = {
    "height": Gaussian(),
    "income": Gamma(outside="ignore"),
    "visits": Poisson(1.0),
    "member": Bernoulli(),
    "town": Categorical(),
    "since": Categorical(),
    "seen": Binned(),
    "nothing": Categorical(),
    "void": LogNormal(),
}


def plain(**parameters: Any) -> BayesClassifier:
    return BayesClassifier(PLAIN, **{"tune": None, **parameters})


def test_the_same_rows_have_the_same_name(tmp_path: Path) -> None:
    table = mixed(200)
    clf = plain().fit(table, "kind")
    names = {"memory": clf.shards_}
    parquet.write_table(table, tmp_path / "rows.parquet")
    names["parquet"] = plain().fit(tmp_path / "rows.parquet", "kind").shards_
    names["tuned"] = plain(tune="auto").fit(table, "kind").shards_
    names["another alpha"] = plain(alpha=0.1, prior="uniform", threads=1).fit(table, "kind").shards_
    names["pandas"] = plain().fit(table.to_pandas(), "kind").shards_
    names["records"] = plain().fit(features(table).to_pylist(), table["kind"].to_pylist()).shards_
    names["declared"] = plain(classes=["a", "b", "c", "d"]).fit(table, "kind").shards_
    names["weighed by one"] = plain().fit(table, "kind", np.ones(200)).shards_
    names["shard"] = clf.shard(table, "kind").shards_
    names["another order of rows"] = plain().fit(table.take(list(range(199, -1, -1))), "kind").shards_
    clf.save(tmp_path / "a.dcb")
    names["file"] = load(tmp_path / "a.dcb").shards_
    different = {how: name for how, name in names.items() if name != clf.shards_}
    assert not different


def test_a_csv_file_has_the_name_of_the_table_it_was_written_from(tmp_path: Path) -> None:
    table = mixed(200).select(["height", "income", "visits", "member", "since", "kind"])
    csv.write_csv(table, tmp_path / "rows.csv")
    parquet.write_table(table, tmp_path / "rows.parquet")
    names = {BayesClassifier(tune=None).fit(rows, "kind").shards_ for rows in (table, *tmp_path.iterdir())}
    assert len(names) == 1


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_name_does_not_depend_on_batches(case: Case) -> None:
    """Not even where sums differ in their last digits."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, y = case.draw(rng, 64), np.arange(64) % 2
        whole = BayesClassifier(case.spec, tune=None).fit(X, y)
        shuffled = rng.permutation(64)
        total: Any = 0
        for some in np.split(shuffled, sorted(rng.integers(1, 64, 3))):
            if some.size:
                total = total + whole.shard(rows_of(X, some), y[some]).counts_
        again = copy.copy(whole)
        again.fitted_ = replace(whole.fitted_, counts=total)
        assert again.shards_ == whole.shards_


@pytest.mark.parametrize("family", [Gaussian(), JointGaussian(), Gamma(), LogNormal()], ids=str)
def test_the_name_of_whole_numbers_does_not_depend_on_batches(family: Any) -> None:
    """Their sums often lie just between two rounded numbers."""
    rng = np.random.default_rng(0)
    for _ in range(40):
        X = rng.integers(1, rng.integers(3, 10_000), (64, 3)).astype(np.float64)
        whole = BayesClassifier(family, tune=None).fit(X, np.zeros(64))
        some, rest = np.split(rng.permutation(64), [rng.integers(1, 64)])
        again = copy.copy(whole)
        counts = whole.shard(X[some], np.zeros(some.size)).counts_ + whole.shard(X[rest], np.zeros(rest.size)).counts_
        again.fitted_ = replace(whole.fitted_, counts=counts)
        assert again.shards_ == whole.shards_


def test_one_cell_more_or_less_is_another_name() -> None:
    table = mixed(100)
    names = [plain().fit(table, "kind").shards_, plain().fit(table.slice(1), "kind").shards_]
    names.append(plain().fit(table, "kind", [2.0] + [1.0] * 99).shards_)
    names.append(plain().fit(features(table), table["kind"].to_pylist()[::-1]).shards_)
    for column in ("height", "income", "visits", "member", "town", "since", "seen"):
        cells = table[column].to_pylist()
        place = next(k for k, cell in enumerate(cells) if cell is not None and cell is not False)
        gone = [None if k == place else cell for k, cell in enumerate(cells)]
        names.append(plain().fit(_with(table, column, gone), "kind").shards_)
        if column in ("height", "income", "visits"):
            more = [cell + 1 if k == place else cell for k, cell in enumerate(cells)]
            names.append(plain().fit(_with(table, column, more), "kind").shards_)
    assert len(set(names)) == len(names)


def _with(table: pa.Table, column: str, cells: list[Any]) -> pa.Table:
    place = table.column_names.index(column)
    return table.set_column(place, column, pa.array(cells, table.schema.field(column).type))


def test_the_same_rows_are_not_merged_twice(tmp_path: Path) -> None:
    a, b, c = (plain().fit(part, "kind") for part in parts_of(mixed(90), [30, 60]))
    for name, model in (("a", a), ("b", b), ("c", c)):
        model.save(tmp_path / f"{name}.dcb")
    with pytest.raises(DataError, match="model 1 and model 3 have learned the same rows"):
        merge([a, b, a])
    with pytest.raises(DataError, match="model 1 and model 2 have learned"):
        merge([merge([a, b]), b])
    both = merge([a, b])
    both.save(tmp_path / "both.dcb")
    with pytest.raises(DataError, match=r"both\.dcb and .*a\.dcb have learned the same rows"):
        merge([tmp_path / "both.dcb", tmp_path / "c.dcb", tmp_path / "a.dcb"])
    with pytest.raises(DataError, match="north and south have learned the same rows"):
        merge([c, both, b], names=["east", "north", "south"])
    assert merge([a, a], force=True).counts_.rows == 60
    assert merge([a, a], force=True).shards_ == a.shards_
    assert merge([tmp_path / "both.dcb", c]).shards_ == tuple(sorted((*a.shards_, *b.shards_, *c.shards_)))
    assert merge([both]).shards_ == both.shards_
    for nothing in ([], "a.dcb"):
        with pytest.raises(UsageError):
            merge(nothing)


@pytest.mark.parametrize("change", ["partial_fit", "decay", "loaded"])
def test_rows_are_known_after_more_was_learned(change: str, tmp_path: Path) -> None:
    a, b, c = parts_of(mixed(90), [30, 60])
    first = plain().fit(a, "kind")
    grown = copy.copy(first)
    if change == "loaded":
        first.save(tmp_path / "a.dcb")
        grown = load(tmp_path / "a.dcb").partial_fit(b, "kind")
    elif change == "decay":
        grown.decay(0.5)
    else:
        grown.partial_fit(b, "kind")
    with pytest.raises(DataError, match="the same rows"):
        merge([grown, first])
    assert merge([grown, plain().fit(c, "kind")]).counts_.rows == grown.counts_.rows + 30


def test_models_that_do_not_fit_together_are_named() -> None:
    table = mixed(60)
    a, b = (plain().fit(part, "kind") for part in parts_of(table, [30]))
    before = content(a), content(b)
    other = BayesClassifier({**PLAIN, "height": Categorical()}, tune=None).fit(mixed(20, seed=9), "kind")
    with pytest.raises(SchemaError, match=r"^model 1 and model 3 do not fit together: column 'height' is Gaussian"):
        merge([a, b, other])
    numbers = plain().fit(features(mixed(20, seed=9)), [0, 1] * 10)
    with pytest.raises(DataError, match=r"^x and z do not fit together: the labels 'a' and 0 are of different types"):
        merge([a, b, numbers], names=["x", "y", "z"])
    with pytest.raises(SchemaError, match=r"^model 1 and model 2 do not fit together: .*columns"):
        merge([a, BayesClassifier(tune=None).fit([[1.0], [2.0]], ["a", "b"])])
    declared = plain(classes=["a", "b"]).fit(features(table.slice(0, 4)), ["a", "b", "a", "b"])
    with pytest.raises(DataError, match=r"^model 1 and model 2 do not fit together: the label 'c'"):
        merge([declared, b])
    with_prior = plain(prior={"a": 0.5, "b": 0.5}).fit(features(table.slice(0, 4)), ["a", "b", "a", "b"])
    with pytest.raises(UsageError, match=r"^model 1 and model 2 do not fit together: the prior"):
        merge([with_prior, b])
    assert (content(a), content(b)) == before
    with pytest.raises(UsageError, match="names"):
        merge([a, b], names=["one"])


@pytest.mark.parametrize("classes", [None, ["a", "b", "c", "d"]])
def test_rows_that_were_forgotten_lose_their_name(classes: Any) -> None:
    parts = parts_of(mixed(90), [30, 60])
    a, b, c = (plain(classes=classes).fit(part, "kind") for part in parts)
    total = merge([a, b, c])
    total.forget(parts[1], "kind")
    assert total.shards_ == tuple(sorted((*a.shards_, *c.shards_)))
    assert merge([total, b]).counts_.rows == 90
    assert (merge([a, b, c]) - b).shards_ == total.shards_
    assert merge([merge([a, b, c]) - b, b]).counts_.rows == 90


def test_rows_that_were_forgotten_lose_their_name_among_more_columns() -> None:
    parts = parts_of(mixed(90), [30, 60])
    a, b = (plain().fit(part, "kind") for part in parts[:2])
    d = plain().fit(parts[2].append_column("new", pa.array(["p", "q"] * 15)), "kind")
    assert merge([a, b, d]).forget(parts[1], "kind").shards_ == tuple(sorted((*a.shards_, *d.shards_)))


def test_a_merged_model_of_one_is_no_other_name_for_it() -> None:
    a = plain().fit(mixed(30), "kind")
    merge([a]).decay(0.5)
    assert a.counts_.class_weight.sum() == 30.0


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_models_merged_in_any_order_are_the_model_of_all_rows(case: Case) -> None:
    rng = np.random.default_rng(8)
    X, y = case.draw(rng, 60), np.arange(60) % 3
    whole = BayesClassifier(case.spec, tune=None).fit(X, y)
    some = [slice(0, 11), slice(11, 40), slice(40, 60)]
    models = [BayesClassifier(case.spec, tune=None).fit(rows_of(X, part), y[part]) for part in some]
    for order in itertools.permutations(models):
        merged = merge(order)
        assert_same_counts(merged.counts_, whole.counts_, case.exact)
        assert merged.shards_ == tuple(sorted(name for model in models for name in model.shards_))
        np.testing.assert_allclose(merged.predict_proba(X), whole.predict_proba(X), rtol=0.0, atol=1e-9)
    first = BayesClassifier(case.spec, tune=None).fit(rows_of(X, some[0]), y[some[0]])
    added = first + first.shard(rows_of(X, some[1]), y[some[1]])
    assert_same_counts(added.counts_, first.partial_fit(rows_of(X, some[1]), y[some[1]]).counts_, exact=True)


def test_a_shard_added_is_what_partial_fit_learns() -> None:
    a, b = parts_of(mixed(60), [40])
    wider = b.append_column("new", pa.array(["p", "q"] * 10))
    for tune in ("auto", None):
        clf = BayesClassifier(tune=tune).fit(a, "kind")
        both = clf + clf.shard(wider, "kind")
        learned = copy.copy(clf).partial_fit(wider, "kind")
        assert_same_counts(both.counts_, learned.counts_, exact=True)
        np.testing.assert_array_equal(both.predict_proba(features(a)), learned.predict_proba(features(a)))


def test_a_shard_can_be_sent_whatever_the_prior_says(tmp_path: Path) -> None:
    """Also where the prior speaks of classes that are not in its rows."""
    a, b = parts_of(mixed(60), [40])
    clf = plain(prior={"a": 0.5, "b": 0.25, "c": 0.25}).fit(a, "kind")
    only = b.filter(pc.equal(b["kind"], "a"))
    clf.shard(only, "kind").save(tmp_path / "shard.dcb")
    both = clf + load(tmp_path / "shard.dcb")
    assert both.counts_.rows == 40 + only.num_rows
    assert_same_classifier(both, clf + clf.shard(only, "kind"), features(a))


def test_weather_in_two_halves() -> None:
    halves = [BayesClassifier(tune=None).fit(part, "play") for part in parts_of(weather(), [7])]
    assert_same_counts(merge(halves).counts_, BayesClassifier(tune=None).fit(weather(), "play").counts_, exact=True)
