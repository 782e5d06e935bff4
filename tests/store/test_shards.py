"""Each table that was learned has a name: the same rows have the same one, however they were learned."""

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import csv, parquet

import deciban as dc
from deciban.testing import assert_same_counts, take_rows
from tests.laws.cases import CASES, Case
from tests.store.models import features, mixed, parts_of, plain
from tests.support.model_files import assert_same_classifier


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
    names["file"] = dc.load(tmp_path / "a.dcb").shards_
    different = {how: name for how, name in names.items() if name != clf.shards_}
    assert not different


def test_a_csv_file_has_the_name_of_the_table_it_was_written_from(tmp_path: Path) -> None:
    table = mixed(200).select(["height", "income", "visits", "member", "since", "kind"])
    csv.write_csv(table, tmp_path / "rows.csv")
    parquet.write_table(table, tmp_path / "rows.parquet")
    names = {dc.BayesClassifier(tune=None).fit(rows, "kind").shards_ for rows in (table, *tmp_path.iterdir())}
    assert len(names) == 1


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_name_does_not_depend_on_batches(case: Case) -> None:
    """Not even where sums differ in their last digits."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, y = case.draw(rng, 64), np.arange(64) % 2
        whole = dc.BayesClassifier(case.spec, tune=None).fit(X, y)
        shuffled = rng.permutation(64)
        total: Any = 0
        for some in np.split(shuffled, sorted(rng.integers(1, 64, 3))):
            if some.size:
                total = total + whole.shard(take_rows(X, some), y[some]).counts_
        again = copy.copy(whole)
        again.fitted_ = replace(whole.fitted_, counts=total)
        assert again.shards_ == whole.shards_


@pytest.mark.parametrize("family", [dc.Gaussian(), dc.JointGaussian(), dc.Gamma(), dc.LogNormal()], ids=str)
def test_the_name_of_whole_numbers_does_not_depend_on_batches(family: Any) -> None:
    """Their sums often lie just between two rounded numbers."""
    rng = np.random.default_rng(0)
    for _ in range(40):
        X = rng.integers(1, rng.integers(3, 10_000), (64, 3)).astype(np.float64)
        whole = dc.BayesClassifier(family, tune=None).fit(X, np.zeros(64))
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


@pytest.mark.parametrize("change", ["partial_fit", "decay", "loaded"])
def test_rows_are_known_after_more_was_learned(change: str, tmp_path: Path) -> None:
    a, b, c = parts_of(mixed(90), [30, 60])
    first = plain().fit(a, "kind")
    grown = copy.copy(first)
    if change == "loaded":
        first.save(tmp_path / "a.dcb")
        grown = dc.load(tmp_path / "a.dcb").partial_fit(b, "kind")
    elif change == "decay":
        grown.decay(0.5)
    else:
        grown.partial_fit(b, "kind")
    with pytest.raises(dc.DataError, match="the same rows"):
        dc.merge([grown, first])
    assert dc.merge([grown, plain().fit(c, "kind")]).counts_.rows == grown.counts_.rows + 30


@pytest.mark.parametrize("classes", [None, ["a", "b", "c", "d"]])
def test_rows_that_were_forgotten_lose_their_name(classes: Any) -> None:
    parts = parts_of(mixed(90), [30, 60])
    a, b, c = (plain(classes=classes).fit(part, "kind") for part in parts)
    total = dc.merge([a, b, c])
    total.forget(parts[1], "kind")
    assert total.shards_ == tuple(sorted((*a.shards_, *c.shards_)))
    assert dc.merge([total, b]).counts_.rows == 90
    assert (dc.merge([a, b, c]) - b).shards_ == total.shards_
    assert dc.merge([dc.merge([a, b, c]) - b, b]).counts_.rows == 90


def test_rows_that_were_forgotten_lose_their_name_among_more_columns() -> None:
    parts = parts_of(mixed(90), [30, 60])
    a, b = (plain().fit(part, "kind") for part in parts[:2])
    d = plain().fit(parts[2].append_column("new", pa.array(["p", "q"] * 15)), "kind")
    assert dc.merge([a, b, d]).forget(parts[1], "kind").shards_ == tuple(sorted((*a.shards_, *d.shards_)))


def test_a_shard_added_is_what_partial_fit_learns() -> None:
    a, b = parts_of(mixed(60), [40])
    wider = b.append_column("new", pa.array(["p", "q"] * 10))
    for tune in ("auto", None):
        clf = dc.BayesClassifier(tune=tune).fit(a, "kind")
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
    both = clf + dc.load(tmp_path / "shard.dcb")
    assert both.counts_.rows == 40 + only.num_rows
    assert_same_classifier(both, clf + clf.shard(only, "kind"), features(a))
