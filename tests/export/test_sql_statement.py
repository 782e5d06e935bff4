"""The statement: names, types, what is kept, how wide and long tables may be, and what is refused."""

import datetime
import re
import warnings
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from deciban import BayesClassifier, Bernoulli, Categorical, Gaussian, JointGaussian, JointTable, Text, UsageError
from deciban.export.sql.statement import to_sql
from deciban.model.model import log_normalize
from deciban.sources.open import open_table
from tests.export.sql_engines import ROW, EngineUnderTest, duckdb_engine, probabilities

HOSTILE = ['x"; drop table t; --', "x`; drop table t; --", "it's", "a\\", "Größe 🏔️"]


def test_hostile_names_and_values_are_harmless(engine: EngineUnderTest) -> None:
    """As names of the table and of columns, as classes and as levels."""
    rng = np.random.default_rng(0)
    cells = {name: np.array([*HOSTILE, "", "plain"])[rng.integers(0, 7, 200)] for name in HOSTILE}
    labels = np.array(HOSTILE)[rng.integers(0, 5, 200)]
    model = BayesClassifier(tune=None).fit(cells, labels).model_
    table = pa.table(cells)
    assert engine.assert_agrees(model, table) == 0
    engine.load('t"`; drop', table.slice(0, 3))
    found = engine.ask(to_sql(model, 't"`; drop', engine.name, explain=True))
    assert found.column_names[:5] == HOSTILE
    assert found.num_rows == 3
    assert set(found["predicted"].to_pylist()) <= set(HOSTILE)
    assert f"decibans of {HOSTILE[0]}" in found.column_names


def test_five_hundred_columns_are_scored_and_explained(engine: EngineUnderTest) -> None:
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, 60)
    table = pa.table({f"c{k}": rng.normal(size=60) + 0.1 * labels for k in range(500)})
    model = BayesClassifier(tune=None).fit(table, labels).model_
    assert engine.assert_agrees(model, table) == 0
    if engine.name == "postgres":  # in which a table has few columns
        several = BayesClassifier(tune=None).fit(table, rng.integers(0, 5, 60)).model_
        found = engine.answers(several, table, explain=True)
        assert len(found.column_names) == 1 + 1 + 5 + 3 + 500


def test_a_column_of_twenty_thousand_levels_is_scored(engine: EngineUnderTest) -> None:
    rng = np.random.default_rng(2)
    levels = np.array([f"level {k} of 'é\"\\" for k in range(20_000)])
    places = rng.permutation(25_000) % 20_000
    table = pa.table({"text": levels[places], "code": places * 2**40 + 2**60, "half": places / 2.0})
    model = BayesClassifier(dict.fromkeys(table.column_names, Categorical()), tune=None)
    fitted = model.fit(table, rng.integers(0, 2, 25_000))._get_fitted()
    rows = table.slice(0, 400)
    unseen = pa.table({"text": ["no level", "", None], "code": [1, 2**60 + 1, None], "half": [0.25, -0.0, None]})
    assert engine.assert_agrees(fitted, pa.concat_tables([rows, unseen])) == 0


def test_columns_of_other_types_are_read_as_they_were_learned(engine: EngineUnderTest) -> None:
    """Numbers as whole or decimal ones, flags as numbers and numbers as flags, moments as days."""
    rng = np.random.default_rng(3)
    day = pa.array(rng.integers(0, 9, 90).astype(np.int32)).cast(pa.date32())
    flags = rng.integers(0, 2, 90)
    learned = {
        "price": rng.integers(0, 9, 90) / 2.0,
        "on": flags == 1,
        "off": flags,
        "day": day.cast(pa.timestamp("us")),
    }
    spec = {"price": Gaussian(), "on": Categorical(), "off": Bernoulli(), "day": Gaussian()}
    model = BayesClassifier(spec, tune=None).fit(pa.table(learned), rng.integers(0, 2, 90)).model_
    other = pa.table(
        {
            "price": pa.array([Decimal("0.50"), Decimal("2.00"), None]),
            "on": pa.array([1, 0, None], pa.int64()),
            "off": pa.array([True, False, None]),
            "day": day.slice(0, 3),
        }
    )
    assert engine.assert_agrees(model, other) == 0


def test_moments_do_not_hang_on_the_time_zone_of_a_session(spark: Any) -> None:
    """An instant is read in universal time, a day and a local time as they stand."""
    stamps = [datetime.datetime(2024, 1, day, 5) for day in range(1, 9)]
    model = BayesClassifier({"at": Gaussian()}, tune=None).fit({"at": stamps}, list("aaaabbbb"))
    spark.sql(
        "SELECT TIMESTAMP_NTZ'2024-01-04 12:00:00' AS at UNION ALL SELECT TIMESTAMP_NTZ'2024-01-05 00:00:00'"
    ).createOrReplaceTempView("local")
    spark.sql("SELECT TIMESTAMP'2024-01-04 12:00:00 UTC' AS at").createOrReplaceTempView("instants")
    spark.sql("SELECT DATE'2024-01-05' AS at").createOrReplaceTempView("days")
    expected = model.predict_proba({"at": [datetime.datetime(2024, 1, 4, 12), datetime.datetime(2024, 1, 5)]})[:, 0]
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        for view, wanted in (("local", expected), ("instants", expected[:1]), ("days", expected[1:])):
            found = spark.sql(model.to_sql(view, "spark")).toArrow()["P(a)"].to_pylist()
            assert found == pytest.approx(wanted.tolist(), abs=1e-12)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.parametrize(
    "labels",
    [
        [True, False],
        [-(2**63), 2**63 - 1],
        ["a", "b"],
        np.array(["2024-01-01", "2024-06-01"], dtype="M8[D]"),
        np.array(["2024-01-01T01:02:03.000004", "2024-06-01"], dtype="M8[us]"),
    ],
    ids=["flags", "integers", "texts", "days", "moments"],
)
def test_the_label_has_its_type(quick_engine: EngineUnderTest, labels: Any) -> None:
    model = BayesClassifier(tune=None).fit({"x": [1.0, 2.0, 8.0, 9.0]}, np.repeat(np.asarray(labels), 2)).model_
    found = quick_engine.answers(model, pa.table({"x": [1.5, 8.5]}))["predicted"].to_pylist()
    assert found == [np.asarray(label).item() for label in labels]


def test_names_of_the_statement_may_be_names_of_the_table(engine: EngineUnderTest) -> None:
    names = ["t", "_row0", "_x1", "_j9", "level", "place", "_stage0"]
    cells = {name: ["_x1", "_q15", "_m12", "_j9", "_x1", "_c13"] for name in names}
    with pytest.warns(UserWarning, match="differ only in case"):
        model = BayesClassifier(tune=None).fit(cells, ["_x1", "_X1", "_x1"] * 2).model_
    table = pa.table(cells)
    engine.load("_stage0", table)
    found = engine.ask(to_sql(model, "_stage0", engine.name))
    assert found.column_names == [*names, "predicted", "P(_X1)", "P(_x1)_"]  # as some engines do not tell cases apart
    chances = np.stack([found["P(_X1)"].to_numpy(), found["P(_x1)_"].to_numpy()], axis=1)
    expected = log_normalize(model.log_joint(open_table(table)), model.log_prior)[0]
    np.testing.assert_allclose(chances, expected, rtol=1e-12)


def test_kept_columns_and_names_that_are_taken() -> None:
    model = BayesClassifier(tune=None).fit({"predicted": [1.0, 2.0, 8.0, 9.0]}, list("aabb")).model_
    engine = duckdb_engine()
    engine.load("some", pa.table({"id": [7, 8], "predicted": [1.5, 8.5], "other": ["u", "v"]}))
    found = engine.ask(to_sql(model, "some"))
    assert found.column_names == ["id", "predicted", "other", "predicted_", "P(a)", "P(b)"]
    assert engine.ask(to_sql(model, "some", keep=["other", "id"])).column_names[:3] == ["other", "id", "predicted_"]
    assert engine.ask(to_sql(model, "main.some", keep=())).column_names == ["predicted_", "P(a)", "P(b)"]


def test_long_names_are_cut_and_stay_different(postgres: Any) -> None:
    """PostgreSQL has names of 63 bytes, and would cut them without a word."""
    labels = ["é" * 60 + end for end in "ab"]
    model = BayesClassifier(tune=None).fit({"x": [1.0, 2.0, 8.0, 9.0]}, np.repeat(labels, 2)).model_
    names = re.findall(r'AS "(P.*?)"', to_sql(model, "t", "postgres", keep=()))
    assert len(set(names)) == 2
    assert all(60 <= len(name.encode()) <= 63 for name in names)
    answers = postgres.execute(
        to_sql(model, "t", "postgres", keep=()).replace('FROM "t" AS', "FROM (SELECT 8.5 AS x) AS")
    )
    assert answers[0][0] == labels[1]


def test_levels_that_a_database_cannot_hold_are_left_out(postgres: Any) -> None:
    model = BayesClassifier(tune=None).fit({"x": ["a", "a\0", "b", "b"]}, list("aabb")).model_
    found = postgres.execute(
        to_sql(model, "t", "postgres", keep=()).replace('FROM "t" AS', "FROM (SELECT unnest(ARRAY['a', 'b']) AS x) AS")
    )
    np.testing.assert_allclose([row[1] for row in found], model_probability(model, ["a", "b"]), rtol=1e-12)


def model_probability(model: Any, cells: list[str]) -> np.ndarray:
    return probabilities(model, duckdb_engine().answers(model, pa.table({"x": cells})))[:, 0]


def test_a_row_that_deciban_refuses_has_no_answer(engine: EngineUnderTest) -> None:
    spec = {"n": Gaussian(), "c": Categorical(unseen="error")}
    model = BayesClassifier(spec, tune=None).fit({"n": [1.0, 2.0, 8.0, 9.0], "c": list("uvuv")}, list("aabb")).model_
    table = pa.table({"n": [np.inf, 1.0, 1.0, None], "c": ["u", "w", "u", None]})
    found = engine.answers(model, table, explain=True).drop_columns(ROW).to_pylist()
    assert all(cell is None for row in found[:2] for cell in row.values())
    assert all(cell is not None for row in found[2:] for cell in row.values())


def test_what_sql_cannot_say_is_refused_by_name() -> None:
    rng = np.random.default_rng(4)
    labels = rng.integers(0, 2, 300)
    texts = BayesClassifier({"note": Text()}, tune=None).fit({"note": ["a b", "c d"] * 150}, labels)
    waits = {"wait": pa.array(rng.integers(0, 9, 300), pa.duration("s"))}
    many = {name: rng.integers(0, 20, 300) for name in "abcde"}
    wide = np.where(rng.random((300, 40)) < 0.001, np.nan, rng.normal(size=(300, 40)))
    for clf, words in (
        (texts, "column 'note': Text"),
        (BayesClassifier({"wait": Gaussian()}, tune=None).fit(pa.table(waits), labels), "column 'wait': durations"),
        (BayesClassifier({tuple("abcde"): JointTable()}, tune=None).fit(many, labels), "combinations of values"),
        (BayesClassifier({tuple(range(40)): JointGaussian()}, tune=None).fit(wide, labels), "more than the 32"),
    ):
        with pytest.raises(UsageError, match=words) as error:
            clf.to_sql("t")
        assert "export to Python" in str(error.value)
    plain = BayesClassifier(tune=None).fit(many, labels)
    with pytest.raises(UsageError, match="choose one of 'duckdb', 'postgres', 'spark'"):
        plain.to_sql("t", dialect="oracle")
    with pytest.raises(UsageError, match="pass the column names as a list"):
        plain.to_sql("t", keep="id")
    with pytest.raises(UsageError, match="is empty for DuckDB"):
        plain.to_sql("")


def test_one_class_alone_is_certain(engine: EngineUnderTest) -> None:
    model = BayesClassifier(tune=None).fit({"x": [1.0, 2.0]}, ["a", "a"]).model_
    found = engine.answers(model, pa.table({"x": [3.0]}), explain=True).drop_columns(ROW).to_pylist()
    assert found == [
        {
            "predicted": "a",
            "P(a)": 1.0,
            "against": None,
            "decibans": None,
            "decibans of prior": None,
            "decibans of x": None,
        }
    ]


def test_true_and_false_are_the_texts_that_mean_them(engine: EngineUnderTest) -> None:
    """As DuckDB reads yes and no of a CSV file."""
    owner, labels = ["Yes", "no", "no", "Yes", "no", None], list("aabbab")
    model = BayesClassifier(tune=None).fit({"owner": owner, "n": [1.0, 2.0, 1.0, 2.0, 3.0, 1.0]}, labels).model_
    flags = pa.table({"owner": pa.array([True, False, None]), "n": [1.0, 2.0, 3.0]})
    found = engine.answers(model, flags)
    words = pa.table({"owner": ["Yes", "no", None], "n": [1.0, 2.0, 3.0]})
    expected = log_normalize(model.log_joint(open_table(words)), model.log_prior)[0]
    np.testing.assert_allclose(probabilities(model, found), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("learned", "given"),
    [
        (pa.array(["red", "blue"] * 3), pa.array([True, False])),
        (pa.array(["yes", "YES", "no"] * 2), pa.array([True, False])),
        (pa.array(["1", "2"] * 3), pa.array([1, 2])),
        (pa.array(["1", "2"] * 3), pa.array([1.0, 2.0])),
        (pa.array(["2024-01-01", "x"] * 3), pa.array([datetime.date(2024, 1, 1)] * 2)),
        (pa.array([1.0, 2.5, 3.0] * 2), pa.array(["1.5", "many"])),
        (pa.array([1.0, 2.5, 3.0] * 2), pa.array([datetime.datetime(2024, 1, 1)] * 2)),
        (pa.array([datetime.datetime(2024, 1, d) for d in range(1, 7)]), pa.array([datetime.time(3)] * 2)),
    ],
    ids=["colors", "several words", "whole", "codes", "days", "words", "moments", "times"],
)
def test_a_column_of_another_type_ends_the_query_by_name(
    engine: EngineUnderTest, learned: pa.Array, given: pa.Array
) -> None:
    labels = list("aabbab")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = BayesClassifier(tune=None).fit(pa.table({"the column": learned}), labels).model_
    with pytest.raises(Exception, match=r"the column"):
        engine.answers(model, pa.table({"the column": given}))
    nothing = pa.nulls(2, given.type)
    if not (pa.types.is_temporal(given.type) and not pa.types.is_string(learned.type)):  # no cast of the engine
        assert engine.answers(model, pa.table({"the column": nothing}))["predicted"].null_count == 0


def test_numbers_as_text_are_read(engine: EngineUnderTest) -> None:
    model = BayesClassifier(tune=None).fit({"x": [1.0, 2.0, 8.0, 9.5]}, list("aabb")).model_
    found = engine.answers(model, pa.table({"x": ["1.5", " 9e0", None]}))
    expected = log_normalize(model.log_joint(open_table(pa.table({"x": [1.5, 9.0, None]}))), model.log_prior)[0]
    np.testing.assert_allclose(probabilities(model, found), expected, rtol=1e-12)


def test_the_head_lists_columns_with_their_types() -> None:
    """In comments of one line each, whatever the columns are called."""
    table = {"age": [1.0, 2.0, 8.0, 9.0], "owner\n; drop table t; --": ["a", "b", "a", "b"], "on": [True, False] * 2}
    statement = BayesClassifier(tune=None).fit(table, list("aabb")).to_sql("t")
    head = statement[: statement.index("WITH ")].splitlines()
    assert all(line.startswith("-- ") for line in head)
    assert '--   "age": numbers' in head
    assert '--   "owner\\n; drop table t; --": text' in head
    assert '--   "on": true and false, or 1 and 0' in head


def test_names_that_spark_would_replace_are_refused(spark: Any) -> None:
    """Those of columns and tables; in names of answers they are written otherwise."""
    labels = ["${spark.app.name}", "b"] * 2
    clf = BayesClassifier(tune=None).fit({"x": [1.0, 2.0, 8.0, 9.0]}, labels)
    spark.sql("SELECT 1.5D AS x").createOrReplaceTempView("replaced")
    found = spark.sql(clf.to_sql("replaced", "spark", keep=[])).toArrow()
    assert found.column_names == ["predicted", "P($ {spark.app.name})", "P(b)"]
    assert found["predicted"].to_pylist() == clf.predict({"x": [1.5]}).tolist()
    with pytest.raises(UsageError, match=r"'\$\{t\}' contains '\$\{'"):
        clf.to_sql("${t}", "spark")
    named = BayesClassifier(tune=None).fit({"${v}": [1.0, 2.0, 8.0, 9.0]}, list("aabb"))
    with pytest.raises(UsageError, match=r"'\$\{v\}' contains '\$\{', which Spark replaces"):
        named.to_sql("t", "spark")
    assert "${v}" in named.to_sql("t", "duckdb")


def test_the_remedy_for_a_text_names_only_exports_that_can_hold_it() -> None:
    table = pa.table({"text": ["a b", "c d"] * 10})
    plain, own = (
        BayesClassifier({"text": Text(**more)}, tune=None).fit(table, ["x", "y"] * 10)
        for more in ({}, {"tokenizer": str.split})
    )
    with pytest.raises(UsageError, match="export to Python or JavaScript, use deciban itself, or fit again"):
        plain.to_sql("t")
    assert plain.to_python()
    with pytest.raises(UsageError, match="use deciban itself, or fit again with families="):
        own.to_sql("t")
    for export in (own.to_python, own.to_javascript):
        with pytest.raises(UsageError, match="because it is a Python function"):
            export()
