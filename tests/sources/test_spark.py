"""Rows of Spark tables: the same models, predictions and figures as of the same rows here."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from deciban import BayesClassifier, DataError, ForgetError, Gamma, UsageError
from deciban.sources.open import kind_of_rows
from deciban.sources.spark import SparkRows
from tests.support.asserts import assert_same_typed_counts
from tests.support.sources import mixed

ROWS = 20_000  # more than are looked at

HOSTILE = 'x"; drop table t; --'


@pytest.fixture(scope="module")
def table() -> pa.Table:
    weights = np.random.default_rng(2).integers(0, 3, ROWS).astype(float)
    return mixed(ROWS).append_column("weight", pa.array(weights))


@pytest.fixture(scope="module")
def frame(spark: Any, table: pa.Table) -> Any:
    """The table in parts."""
    return spark.createDataFrame(table).repartition(4).cache()


@pytest.fixture(scope="module")
def fitted(frame: Any) -> BayesClassifier:
    return BayesClassifier(tune=None).fit(frame.drop("weight"), "label")


@pytest.fixture(scope="module")
def tuned(table: pa.Table) -> BayesClassifier:
    return BayesClassifier().fit(table.drop_columns(["weight"]).slice(0, 3_000), "label")


def test_a_model_is_that_of_the_same_rows_here(fitted: BayesClassifier, frame: Any, table: pa.Table) -> None:
    here = BayesClassifier(tune=None).fit(table.drop_columns(["weight"]), "label")
    assert_same_typed_counts(fitted.counts_, here.counts_)
    assert fitted.target_ == "label"
    weighted = BayesClassifier(tune=None).fit(frame, "label", "weight")
    assert_same_typed_counts(weighted.counts_, BayesClassifier(tune=None).fit(table, "label", "weight").counts_)


def test_few_rows_are_tuned_on_as_here(frame: Any, table: pa.Table) -> None:
    few = table.drop_columns(["weight"]).slice(0, 2_000)
    there = BayesClassifier().fit(frame.sparkSession.createDataFrame(few), "label")
    here = BayesClassifier().fit(few, "label")
    np.testing.assert_allclose(there.predict_proba(few), here.predict_proba(few), rtol=0, atol=1e-9)


def test_more_is_learned_and_forgotten(fitted: BayesClassifier, frame: Any, table: pa.Table) -> None:
    rows, there = table.drop_columns(["weight"]), frame.drop("weight")
    clf = BayesClassifier(tune=None).fit(rows, "label")
    before = clf.counts_
    clf.partial_fit(there, "label")
    assert clf.counts_.rows == 2 * before.rows
    assert_same_typed_counts(clf.forget(there, "label").counts_, before)
    assert_same_typed_counts((clf + clf.shard(there, "label") - fitted).counts_, before)
    with pytest.raises(ForgetError):
        clf.partial_fit(rows.slice(0, 10), "label").forget(there.limit(2).unionAll(there), "label")


def test_figures_are_those_of_the_same_rows_here(fitted: BayesClassifier, frame: Any, table: pa.Table) -> None:
    rows, there = table.drop_columns(["weight"]), frame.drop("weight")
    assert fitted.score(there, "label") == fitted.score(rows, "label")
    assert fitted.score(frame, "label", "weight") == pytest.approx(fitted.score(table, "label", "weight"), abs=1e-12)
    found, known = (
        fitted.evaluate(there, "label", loss=[[0, 1, 4], [1, 0, 2], [9, 1, 0]]),
        fitted.evaluate(rows, "label", loss=[[0, 1, 4], [1, 0, 2], [9, 1, 0]]),
    )
    np.testing.assert_array_equal(found.confusion, known.confusion)
    assert found.log_loss == pytest.approx(known.log_loss, abs=1e-12)
    assert found.mean_cost == pytest.approx(known.mean_cost, abs=1e-12)
    assert found.roc_auc == pytest.approx(known.roc_auc, abs=1e-4)
    left_out, here = fitted.leave_one_out(there, "label"), fitted.leave_one_out(rows, "label")
    assert left_out.leave_one_out
    assert left_out.log_loss == pytest.approx(here.log_loss, abs=1e-12)
    assert left_out.accuracy == here.accuracy


def test_predictions_are_columns_beside_the_rows(tuned: BayesClassifier, frame: Any, table: pa.Table) -> None:
    rows = frame.limit(500).toArrow()
    given = frame.sparkSession.createDataFrame(rows)
    found = tuned.predict_proba(given).toArrow()
    assert found.column_names == [*rows.column_names, "predicted", "probability", "P(no)", "P(perhaps)", "P(yes)"]
    assert found.select(rows.column_names).to_pylist() == rows.to_pylist()
    posterior = np.column_stack([found[f"P({label})"] for label in tuned.classes_])
    np.testing.assert_allclose(posterior, tuned.predict_proba(rows), rtol=0, atol=1e-12)
    assert tuned.predict(given).toArrow()["predicted"].to_pylist() == tuned.predict(rows).tolist()
    loss = [[0, 1, 4], [1, 0, 2], [9, 1, 0]]
    decided, known = tuned.decide(given, loss, reject=0.2).toArrow(), tuned.decide(rows, loss, reject=0.2)
    assert decided["decision"].to_pylist() == known.decision.tolist()
    np.testing.assert_allclose(decided["risk"], known.risk, rtol=0, atol=1e-12)
    assert decided["second_best"].to_pylist() == known.second_best.tolist()


def test_explanations_are_columns_that_add_up_to_the_log_odds(tuned: BayesClassifier, frame: Any) -> None:
    rows = frame.limit(60).toArrow()
    told = tuned.explain(frame.sparkSession.createDataFrame(rows)).toArrow()
    known = tuned.explain(rows)
    for row, said in enumerate(told.to_pylist()):
        reasons = known.to_dict(row)
        assert (said["predicted"], said["against"]) == (reasons["predicted"], reasons["against"])
        by_column = {one["column"]: one["decibans"] for one in reasons["evidence"] if one["column"] is not None}
        for column, decibans in by_column.items():
            assert said[f"decibans of {column}"] == pytest.approx(decibans, abs=1e-9)
        total = said["decibans of prior"] + sum(said[f"decibans of {column}"] for column in by_column)
        assert total == pytest.approx(reasons["sum"], abs=1e-9)
        assert said["decibans"] == pytest.approx(reasons["sum"], abs=1e-9)


def test_a_sample_depends_on_what_rows_hold_and_not_on_where_they_are(frame: Any) -> None:
    one, _ = SparkRows.of(frame).sample(3_000, lambda done: None)
    other, rows = SparkRows.of(frame.orderBy("height").repartition(7)).sample(3_000, lambda done: None)
    assert rows == ROWS
    assert one.num_rows == 3_000
    assert one.to_pylist() == other.to_pylist()


def test_a_sample_of_rows_that_are_alike_has_their_shares(spark: Any) -> None:
    """One row is half of the table, three others make up the rest but for a few."""
    rows = spark.range(40_000).selectExpr(
        "CASE WHEN id % 2 = 0 THEN 'often' WHEN id < 39000 THEN 'some' || id % 3 ELSE 'once' || id END AS a",
        "CASE WHEN id % 2 = 0 THEN 1.5D END AS b",
    )
    sample, count = SparkRows.of(rows).sample(4_000, lambda done: None)
    assert count == 40_000
    assert abs(sample.num_rows - 4_000) < 100
    values = sample["a"].to_pylist()
    assert values.count("often") in (2_000, 2_001)
    assert values.count("some1") in (650, 651)
    assert 20 <= sum(value.startswith("once") for value in values) <= 90
    assert set(zip(values, sample["b"].to_pylist(), strict=True)) & {("often", 1.5), ("some1", None)} == {
        ("often", 1.5),
        ("some1", None),
    }


def test_a_sample_tells_missing_cells_of_one_column_from_those_of_another(spark: Any) -> None:
    """A hash of cells alone passes over those that are missing. The names are those of columns of our own."""
    rows = spark.range(40_000).selectExpr(
        "CASE WHEN id % 2 = 0 THEN 1 END AS times", "CASE WHEN id % 2 = 1 THEN 1 END AS hash", "id % 3 AS row"
    )
    sample, _ = SparkRows.of(rows).sample(3_000, lambda done: None)
    there = [(row["times"], row["hash"]) for row in sample.to_pylist()]
    assert there.count((1, None)) == pytest.approx(1_500, abs=10)
    assert there.count((None, 1)) == pytest.approx(1_500, abs=10)


def test_classes_of_every_type_and_a_column_called_prior(spark: Any) -> None:
    label = np.arange(60) % 2
    table = pa.table({"prior": pa.array(label + np.arange(60) / 60), "y": pa.array(label)})
    day = np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]")[label]
    for y in (label.astype(np.int32), label.astype(np.int16), label.astype(bool), day, label * 2.0):
        clf = BayesClassifier(tune=None).fit(table.select(["prior"]), y)
        frame = spark.createDataFrame(table)
        found = clf.predict_proba(frame).toArrow()
        assert [str(one) for one in found["predicted"].to_pylist()] == [str(one) for one in clf.predict(table).tolist()]
        told = clf.explain(frame).toArrow()
        odds = 10 * np.log10(clf.predict_proba(table).max(axis=1) / clf.predict_proba(table).min(axis=1))
        both = told["decibans of prior"].to_numpy() + told["decibans of prior_"].to_numpy()
        np.testing.assert_allclose(both, odds, atol=1e-9)


def test_names_that_look_like_commands_are_names(spark: Any) -> None:
    rng = np.random.default_rng(0)
    label = rng.integers(0, 2, ROWS)
    table = pa.table(
        {
            HOSTILE: rng.normal(label),
            "it's `quoted`": np.array(["a'b", HOSTILE, "`"])[rng.integers(0, 3, ROWS)],
            "hash": rng.integers(0, 3, ROWS),
            "kind.of": np.array([HOSTILE, "plain"])[label],
        }
    )
    frame = spark.createDataFrame(table).repartition(3)
    found = BayesClassifier(tune=None).fit(frame, "kind.of")
    assert_same_typed_counts(found.counts_, BayesClassifier(tune=None).fit(table, "kind.of").counts_)
    answer = found.predict_proba(frame.limit(5)).toArrow()
    assert f"P({HOSTILE})" in answer.column_names


def test_bad_input_gets_one_clear_error_and_changes_nothing(spark: Any, frame: Any, fitted: BayesClassifier) -> None:
    before = fitted.counts_
    with pytest.raises(UsageError, match="give the column's name"):
        BayesClassifier().fit(frame, ["a", "b"])
    with pytest.raises(DataError, match="no target column 'lable'; did you mean 'label'"):
        BayesClassifier().fit(frame, "lable")
    with pytest.raises(DataError, match="no row"):
        BayesClassifier().fit(frame.limit(0), "label")
    with pytest.raises(DataError, match="no row has a label"):
        fitted.score(frame.limit(0), "label")
    nested = frame.selectExpr("height", "array(1, 2) AS list", "label")
    with pytest.raises(DataError, match="column 'list': unsupported type array"):
        BayesClassifier().fit(nested, "label")
    with pytest.raises(DataError, match="duplicate column 'a'"):
        BayesClassifier().fit(frame.selectExpr("height AS a", "height AS a", "label"), "label")
    wrong = frame.selectExpr("-height AS height", "label")
    clf = BayesClassifier({"height": Gamma()}, tune=None)
    with pytest.raises(DataError, match=r"the Spark table, .*column 'height', row \d+: found -"):
        clf.fit(wrong, "label")
    assert not hasattr(clf, "fitted_")
    text = frame.selectExpr("CAST(height AS string) || ' cm' AS height", "label")
    with pytest.raises(DataError, match=r"the Spark table, part \d, column 'height', row \d+"):
        fitted.partial_fit(text, "label")
    assert fitted.counts_ is before


def test_a_table_of_spark_is_recognized(frame: Any, table: pa.Table) -> None:
    assert kind_of_rows(frame) == "spark"
    assert kind_of_rows(table) == "memory"
    assert kind_of_rows(None) == "memory"


@pytest.mark.parametrize("pushdown", [False, True])
def test_names_that_spark_would_replace_are_names(spark: Any, pushdown: bool) -> None:
    """Spark replaces ${name} in statements by the value of a setting, within quotes too."""
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 2, ROWS)
    cells = {"${spark.app.name}": rng.normal(size=ROWS) + labels, "${v}": np.array(["u", "w"])[labels], "y": labels}
    table = pa.table(cells)
    there = BayesClassifier(tune=None).fit(spark.createDataFrame(table), "y", pushdown=pushdown)
    assert_same_typed_counts(there.counts_, BayesClassifier(tune=None).fit(table, "y").counts_)
