"""The same data through every source gives the same model, in one piece or in shards, and the same posteriors."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deciban import BayesClassifier, merge
from deciban.testing import assert_same_statistic
from tests.agree.models import FEW, LABELED, MANY, PROBE, TABLES, assert_same, expected
from tests.support.asserts import assert_same_typed_counts
from tests.support.sources import SOURCES, TOLD, as_csv, as_json_lines, as_parquet, numeric, parts

LONG = ("pandas", "csv", "parquet", "json_lines")  # one of each kind, for what takes longer

every_source = pytest.mark.parametrize("source", SOURCES)


@pytest.fixture(autouse=True)
def _standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", sys.stdin)  # put back in the end


@pytest.mark.parametrize(
    ("rows", "tune", "source"),
    [(FEW, tune, source) for tune in (None, "auto") for source in SOURCES]
    + [(MANY, None, source) for source in SOURCES if "gzip" not in source]  # packed or not, the rows come the same way
    + [(MANY, "auto", source) for source in LONG],
)
def test_a_model_does_not_depend_on_its_source(rows: int, tune: Any, source: str, tmp_path: Path) -> None:
    """The same counts, choices, weights and posteriors, whatever the source of the rows it learns or is asked about.

    Where all rows are in one order, those drawn by lot are the same, so tuning is too. Its weights come from counts
    whose last digits depend on the batches that were added up, and a stream is cut into others than a table.
    """
    give = SOURCES[source](TABLES[rows], tmp_path)
    model = expected(rows, tune, source)
    found = BayesClassifier(TOLD.get(source), tune=tune).fit(give(), "label")
    assert_same(found, model)
    posterior = model.predict_proba(TABLES[rows])
    np.testing.assert_allclose(model.predict_proba(give()), posterior, rtol=0, atol=1e-10)
    assert found.target_ == "label"
    if tune is None:
        return
    assert found.tuning_ is not None
    assert model.tuning_ is not None
    assert found.schema_ == model.schema_
    assert found.tuning_.rows == model.tuning_.rows
    np.testing.assert_allclose(found.tuning_.weights, model.tuning_.weights, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.tuning_.bias, model.tuning_.bias, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("target", ["whole", "flag"])
@pytest.mark.parametrize(
    ("rows", "source"), [(300, source) for source in SOURCES] + [(17_000, source) for source in LONG]
)
def test_labels_keep_their_type(rows: int, target: str, source: str, tmp_path: Path) -> None:
    """Classes are of one type whatever the source, in all pieces of a file, and when more is learned.

    pandas without its nullable types has floats where whole numbers are missing; then the classes are floats too.
    """
    if (source, target) == ("pandas_floats", "whole"):
        pytest.skip("its whole numbers are floats where some are missing, and so are the classes")
    table = LABELED[rows, target]
    found = BayesClassifier(TOLD.get(source), tune=None).fit(SOURCES[source](table, tmp_path)(), "label")
    model = BayesClassifier(TOLD.get(source), tune=None).fit(table, "label")
    assert_same_typed_counts(found.counts_, model.counts_)
    twice = found.partial_fit(SOURCES[source](table, tmp_path)(), "label")
    assert twice.classes_.dtype == model.classes_.dtype
    said = twice.predict(PROBE)
    assert said.dtype == model.predict(PROBE).dtype
    assert [type(label) for label in said.tolist()] == [type(label) for label in model.predict(PROBE).tolist()]


@every_source
def test_shards_add_up_in_any_order(source: str, tmp_path: Path) -> None:
    """Models of parts of the rows, merged; batches learned one after the other; a shard that is added."""
    gives = []
    for k, part in enumerate(parts(TABLES[FEW], 3)):
        (tmp_path / str(k)).mkdir()
        gives.append(SOURCES[source](part, tmp_path / str(k)))
    plain = BayesClassifier(TOLD.get(source), tune=None)
    model = expected(FEW, None, source)
    shards = [BayesClassifier(TOLD.get(source), tune=None).fit(give(), "label") for give in gives]
    for order in ((0, 1, 2), (1, 2, 0), (2, 1, 0)):
        assert_same(merge([shards[k] for k in order]), model)
    for give in gives:
        plain.partial_fit(give(), "label")
    assert_same(plain, model)
    assert_same(shards[0] + shards[0].shard(gives[1](), "label") + shards[0].shard(gives[2](), "label"), model)


def test_shards_of_many_sources_add_up(tmp_path: Path) -> None:
    """Part of the rows from each source, saved and merged."""
    files = []
    for k, (part, (source, make)) in enumerate(zip(parts(TABLES[FEW], len(SOURCES)), SOURCES.items(), strict=True)):
        (tmp_path / source).mkdir()
        shard = BayesClassifier(TOLD["pandas_floats"], tune=None).fit(make(part, tmp_path / source)(), "label")
        shard.save(tmp_path / f"{k}.dcb")
        files.append(tmp_path / f"{k}.dcb")
    assert_same(merge(files), expected(FEW, None, "pandas_floats"))
    assert_same(merge(files[::-1]), expected(FEW, None, "pandas_floats"))


@pytest.mark.parametrize(("rows", "tune"), [(FEW, None), (FEW, "auto"), (MANY, None)])
def test_an_array_and_a_table_of_its_columns_agree(rows: int, tune: Any, tmp_path: Path) -> None:
    """NumPy has no names, so only statistics and posteriors can be compared."""
    table = numeric(rows)
    array, labels = np.column_stack([table[f"x{j}"].to_numpy() for j in range(5)]), table["label"].to_numpy()
    model = BayesClassifier(tune=tune).fit(array, labels)
    for make in (as_csv, as_parquet, as_json_lines):
        found = BayesClassifier(tune=tune).fit(make(table, tmp_path)(), "label")
        assert found.classes_.dtype == model.classes_.dtype
        for one, other in zip(found.counts_.statistics, model.counts_.statistics, strict=True):
            assert_same_statistic(one, other, exact=False)
        posterior = found.predict_proba(make(table, tmp_path)())
        np.testing.assert_allclose(posterior, model.predict_proba(array), rtol=0, atol=1e-9)
