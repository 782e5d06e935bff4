"""Rows that are counted elsewhere, by a plan, are the rows that are counted here: by processes, joblib and Dask."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from deciban import BayesClassifier, DataError, Gaussian, ModelFileError, Poisson, UsageError, count_batches, merge

ROWS = 3_000


def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, ROWS)
    found = pd.DataFrame(
        {
            "age": rng.normal(40 + 5 * y, 10),
            "height": rng.normal(170 + y, 8),
            "town": np.array(["Ulm", "Bern", "Graz", None], dtype=object)[(y + rng.integers(0, 2, ROWS)) % 4],
            "visits": rng.poisson(1 + y),
            "note": np.where(rng.random(ROWS) < 0.5, "a good offer", "far too dear"),
            "weight": rng.integers(1, 4, ROWS).astype(float),
            "kind": np.array(["one", "two", "three"])[y],
        }
    )
    found["note"] += [f" word{k}" for k in rng.integers(0, 40, ROWS)]
    found.loc[::13, "age"] = np.nan
    return found


TABLE = table()
PARTS = [TABLE.iloc[k::7] for k in range(7)]


def check_equal(one: BayesClassifier, other: BayesClassifier) -> None:
    """The same counts, but for the last digits of sums, and the same predictions."""
    assert one.counts_.rows == other.counts_.rows
    np.testing.assert_array_equal(one.counts_.class_weight, other.counts_.class_weight)
    assert one.schema_.block_names == other.schema_.block_names
    np.testing.assert_allclose(one.predict_proba(TABLE), other.predict_proba(TABLE), atol=1e-9)


@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize("tune", [None, "weights", "auto"])
def test_shards_make_the_model_of_all_rows(tune: Any, weight: str | None) -> None:
    whole = BayesClassifier(tune=tune).fit(TABLE, "kind", weight)
    clf = BayesClassifier(tune=tune)
    plan = clf.plan(TABLE, "kind", weight)
    sent = pickle.loads(pickle.dumps(plan))
    assert (plan.draft is None) == (tune is None)
    assert sent.draft is None
    check_equal(clf.fit_shards([count_batches([part], sent) for part in PARTS], plan), whole)
    assert clf.target_ == "kind"


def test_a_partition_is_counted_batch_by_batch() -> None:
    clf = BayesClassifier(tune=None)
    plan = clf.plan(TABLE, "kind")
    batches = pa.Table.from_pandas(TABLE, preserve_index=False).to_batches(max_chunksize=100)
    shard = count_batches(iter(batches), plan)
    assert isinstance(shard, bytes)
    check_equal(clf.fit_shards([shard], plan), BayesClassifier(tune=None).fit(TABLE, "kind"))
    check_equal(merge([count_batches([part], plan) for part in PARTS]), BayesClassifier(tune=None).fit(TABLE, "kind"))


def test_joblib_counts_in_other_processes() -> None:
    joblib = pytest.importorskip("joblib")
    clf = BayesClassifier()
    plan = clf.plan(TABLE, "kind")
    shards = joblib.Parallel(n_jobs=2)(joblib.delayed(count_batches)([part], plan) for part in PARTS)
    check_equal(clf.fit_shards(shards, plan), BayesClassifier().fit(TABLE, "kind"))


def test_dask_counts_partitions() -> None:
    dask = pytest.importorskip("dask")
    clf = BayesClassifier()
    plan = clf.plan(TABLE, "kind")
    shards = dask.compute(*[dask.delayed(count_batches)([part], plan) for part in PARTS], scheduler="processes")
    check_equal(clf.fit_shards(shards, plan), BayesClassifier().fit(TABLE, "kind"))


def test_what_cannot_be_counted_or_added_is_refused() -> None:
    clf = BayesClassifier(tune=None)
    plan = clf.plan(TABLE, "kind")
    shard = count_batches([PARTS[0]], plan)
    with pytest.raises(DataError, match="shard 1 and shard 2 were trained on the same rows"):
        clf.fit_shards([shard, shard], plan)
    assert clf.fit_shards([shard, shard], plan, force=True).counts_.rows == 2 * len(PARTS[0])
    with pytest.raises(ModelFileError, match="shard 2: the file is damaged"):
        clf.fit_shards([shard, shard[:-1] + b"?"], plan)
    with pytest.raises(DataError, match="y='kind': no such column"):
        count_batches([PARTS[0].drop(columns="kind")], plan)
    with pytest.raises(UsageError, match="list of shards is empty"):
        clf.fit_shards([], plan)
    with pytest.raises(DataError, match="no rows to learn from"):
        clf.fit_shards([count_batches([], plan)], plan)
    apart = BayesClassifier(Gaussian(), tune=None).plan(TABLE[["age", "height"]], TABLE["kind"])
    with pytest.raises(UsageError, match="separate array of labels"):
        count_batches([TABLE], apart)
    before = clf.predict(TABLE[:5]).tolist()
    with pytest.raises(ModelFileError):
        clf.fit_shards([b"nothing"], plan)
    assert clf.predict(TABLE[:5]).tolist() == before


def test_a_part_may_lack_classes_that_a_given_prior_names() -> None:
    prior = {"one": 0.2, "two": 0.3, "three": 0.5}
    clf = BayesClassifier(prior=prior, tune=None)
    plan = clf.plan(TABLE, "kind")
    shards = [count_batches([part], plan) for _, part in TABLE.groupby("kind")]
    whole = BayesClassifier(prior=prior, tune=None).fit(TABLE, "kind")
    check_equal(clf.fit_shards(shards, plan), whole)
    assert clf.get_params()["prior"] == prior
    assert np.exp(clf.model_.log_prior).tolist() == pytest.approx([0.2, 0.5, 0.3])


def test_warnings_are_meant_for_whoever_fits_or_plans() -> None:
    y = np.arange(40.0)
    table = pd.DataFrame({"a": y, "y": y})
    for call in (BayesClassifier(tune=None).fit, BayesClassifier(tune=None).plan):
        with pytest.warns(UserWarning, match="looks like an identifier") as caught:
            call(table, "y")
        assert caught[0].filename == __file__


def test_rows_of_a_part_are_numbered_on() -> None:
    """An error names the row among all that were given, not in its piece."""
    plan = BayesClassifier({"visits": Poisson()}, tune=None).plan(TABLE[["visits", "kind"]], "kind")
    pieces = [TABLE[["visits", "kind"]].iloc[:20], pd.DataFrame({"visits": [1, -3], "kind": ["one", "two"]})]
    with pytest.raises(DataError, match="column 'visits', row 21"):
        count_batches(pieces, plan)
