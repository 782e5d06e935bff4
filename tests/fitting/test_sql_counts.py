"""What an engine counts by SQL is what reading the rows gives: discrete counts to the bit, moments to 1e-12."""

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse

from deciban import (
    BayesClassifier,
    Bernoulli,
    Binned,
    Categorical,
    Gamma,
    Gaussian,
    JointGaussian,
    JointTable,
    LogNormal,
    Multinomial,
    Poisson,
    Text,
)
from deciban.errors import DataError, SchemaError
from deciban.families.base.contract import ColumnFamily
from deciban.fitting.fit import count_examples
from deciban.fitting.sql_counts.pushdown import MAX_HINTS, bundle_columns, count_in_engine
from deciban.model.counts import Counts
from deciban.schema.infer import Defaults, infer_schema
from deciban.schema.schema import Schema
from deciban.sources.open import open_table
from deciban.sources.streams import LabeledStream
from deciban.tables.cells import as_numbers
from deciban.tables.examples import LabeledTable
from deciban.tables.table import Frame
from tests.fitting.sql_tables import Database, DuckDb, PostgreSql, SparkSql, counted_here, counted_in_engine
from tests.laws.cases import CASES
from tests.support.asserts import assert_same_typed_counts
from tests.support.sources import mixed

HOSTILE = 'x"; drop table t; --'


@pytest.fixture(scope="module", params=["duckdb", "postgres", "spark"])
def database(request: pytest.FixtureRequest) -> Database:
    if request.param == "duckdb":
        return DuckDb()
    if request.param == "postgres":
        return PostgreSql(request.getfixturevalue("postgres").url)
    return SparkSql(request.getfixturevalue("spark"))


def rows_of(cells: pa.Table, weight: str | None = None) -> LabeledTable:
    return LabeledTable.of(Frame(cells), "label", weight)


def schema_of(cells: pa.Table, spec: Any = None, weight: str | None = None) -> Schema:
    return infer_schema(rows_of(cells, weight).table, spec, Defaults())


def check(
    database: Database, cells: pa.Table, spec: Any = None, weight: str | None = None, name: str | None = None
) -> Counts:
    """The counts of a table in an engine, which are those of reading it."""
    schema = schema_of(cells, spec, weight)
    found = counted_in_engine(schema, database.table(cells, name), "label", weight)
    assert_same_typed_counts(found, counted_here(schema, rows_of(cells, weight)))
    return found


def labeled(columns: dict[str, Any], classes: str = "ab") -> pa.Table:
    """A table of columns, with labels in turn."""
    table = pa.table(columns)
    return table.append_column("label", pa.array([classes[k % len(classes)] for k in range(table.num_rows)]))


def every_family(rows: int, once: bool) -> tuple[pa.Table, dict[Any, Any]]:
    """The columns of all cases of families that SQL counts, side by side; and their families.

    once: one case for all families that count the same.
    """
    rng = np.random.default_rng(0)
    columns, spec, counted = {}, {}, set()
    for case in CASES:
        if (
            type(case.family).count_in_sql is ColumnFamily.count_in_sql
            or getattr(case.family, "part", None)
            or (once and case.family.statistic_key in counted)
        ):
            continue
        counted.add(case.family.statistic_key)
        drawn = case.draw(rng, rows)
        if not isinstance(drawn, pa.Table):
            array = drawn.toarray() if sparse.issparse(drawn) else drawn
            drawn = pa.table({f"{k}": pa.array(array[:, k], from_pandas=True) for k in range(array.shape[1])})
        names = [f"{case.name} {name}" for name in drawn.column_names]
        columns |= dict(zip(names, drawn.columns, strict=True))
        spec |= {tuple(names): case.family} if case.family.joint else dict.fromkeys(names, case.family)
    label = pa.array(rng.choice(["no", "yes", "perhaps", None], rows, p=[0.5, 0.3, 0.15, 0.05]))
    weight = pa.array(rng.integers(0, 4, rows).astype(np.float64))
    return pa.table({**columns, "label": label, "weight": weight}), spec


@pytest.mark.parametrize("weight", [None, "weight"])
def test_every_family_is_counted_as_from_rows(database: Database, weight: str | None) -> None:
    cells, spec = every_family(400, once=isinstance(database, SparkSql))
    check(database, cells if weight else cells.drop_columns(["weight"]), spec, weight)


@pytest.mark.parametrize("target", ["text", "whole", "flag"])
def test_a_mixed_table_is_counted_as_from_rows(database: Database, target: str) -> None:
    """Numbers, codes, text, flags, dates and times, all with missing cells; labels keep their type."""
    check(database, mixed(2_000, 1, target))


def test_a_table_without_weights_takes_a_statement_for_numbers_and_few_for_values(database: Database) -> None:
    cells = mixed(500)
    table = database.table(cells)
    counted_in_engine(schema_of(cells), table, "label")
    first, *rest = [query for query in table.asked if "GROUP BY" in query]
    assert "var_pop(" in first
    assert not any("var_pop(" in query for query in rest)
    assert len(rest) == (2 if isinstance(database, PostgreSql) else 1)
    assert ("GROUPING SETS" in rest[0]) is not isinstance(database, PostgreSql)


HOSTILE_TEXTS = ["", " ", "a", "A", "a ", "é", "e\u0301", "ß", "ss", "it's", 'say "x"', "\\", "${x}", "$1", "%s",
                 "NULL", "null", "\u2028", "🏔️", "line\nbreak", "tab\t", HOSTILE, "`;", None]  # fmt: skip
HOSTILE_NUMBERS = [0.0, -0.0, 1e308, -1e308, 5e-324, 0.1, 0.1 + 2**-56, 3.0, 2.0**53, 2.0**53 + 2, 2.0**63, math.nan,
                   math.inf, -math.inf, None]  # fmt: skip
BIG = [2**53, 2**53 + 1, 2**63 - 1, -(2**63), 0, None]


def test_hostile_values_are_levels_of_their_own(database: Database) -> None:
    """Texts that a collation might take for equal, -0.0, NaN, infinity, numbers beyond 2**53; and names of columns."""
    rng = np.random.default_rng(3)
    columns = {HOSTILE: HOSTILE_TEXTS, "a`b": HOSTILE_NUMBERS, "größe": BIG, "whole": [1.0, 2.0, math.nan, None]}
    kinds = [pa.string(), pa.float64(), pa.int64(), pa.float64()]
    drawn = {
        name: pa.array([values[k] for k in rng.integers(0, len(values), 300)], kind)
        for (name, values), kind in zip(columns.items(), kinds, strict=True)
    }
    classes = pa.array([HOSTILE_TEXTS[k] for k in rng.integers(0, len(HOSTILE_TEXTS), 300)])
    cells = pa.table({**drawn, "label": classes})
    spec = {**dict.fromkeys(drawn, Categorical()), ("größe", "whole"): JointTable()}
    del spec["größe"], spec["whole"]
    found = check(database, cells, spec, name=HOSTILE)
    assert HOSTILE in found.classes.tolist()


def test_hostile_names_of_labels_and_weights_do_no_harm(database: Database) -> None:
    names = {"label": 'y"; drop table t; --', "weight": "w`; drop table t; --"}
    cells = labeled({"x": [1.0, 2.5, 3.0, 4.5], "weight": [1.0, 2.0, 3.0, 4.0]})
    renamed = cells.rename_columns([names.get(name, name) for name in cells.column_names])
    rows = LabeledTable.of(Frame(renamed), names["label"], names["weight"])
    schema = infer_schema(rows.table, None, Defaults())
    found = counted_in_engine(schema, database.table(renamed), names["label"], names["weight"])
    assert_same_typed_counts(found, counted_here(schema, rows))


def test_moments_far_from_zero_and_of_classes_far_apart_keep_their_digits(database: Database) -> None:
    """At 1e9, and with classes a million deviations apart, where a guess of the mean is far off for both."""
    rng = np.random.default_rng(4)
    rows = 4_000
    label = np.array(["a", "b"])[rng.integers(0, 2, rows)]
    far = np.where(label == "a", 1e6, -1e6)
    columns = {
        "offset": 1e9 + rng.integers(0, 7, rows),
        "apart": rng.normal(far, 1.0),
        "other": rng.normal(far[::-1], 3.0),
        "amount": np.exp(rng.normal(np.where(label == "a", 30.0, -30.0), 0.01)),
        "constant": np.where(label == "a", 0.1, 1e9 / 3.0),
        "once": np.where(np.arange(rows) == 7, 0.7, np.nan),
        "weight": rng.uniform(0.0, 3.0, rows),
    }
    cells = pa.table({**{name: pa.array(x, from_pandas=True) for name, x in columns.items()}, "label": label})
    cells = cells.append_column("third", pa.array(columns["offset"]))
    spec: dict[Any, Any] = {("apart", "other"): JointGaussian(), "amount": LogNormal(), "third": Gamma()}
    spec |= dict.fromkeys(["offset", "constant", "once"], Gaussian())
    check(database, cells.drop_columns(["weight"]), spec)
    schema = schema_of(cells, spec, "weight")
    found = counted_in_engine(schema, database.table(cells), "label", "weight")
    assert_nearly_same(found, counted_here(schema, rows_of(cells, "weight")))


def assert_nearly_same(found: Counts, expected: Counts) -> None:
    """The same to 1e-12: sums of weights that are fractions depend on their order too."""
    np.testing.assert_allclose(found.class_weight, expected.class_weight, rtol=1e-12)
    for one, other in zip(found.statistics, expected.statistics, strict=True):
        for statistic, its in zip(getattr(one, "parts", (one,)), getattr(other, "parts", (other,)), strict=True):
            np.testing.assert_allclose(statistic.weight, its.weight, rtol=1e-12)
            deviation = np.sqrt(
                np.abs(np.diagonal(its.scatter, axis1=1, axis2=2)) if its.scatter.ndim == 3 else its.scatter
            )
            away = np.abs((statistic.mean - its.mean) + (statistic.mean_low - its.mean_low))
            assert (away <= 1e-12 * np.maximum(deviation, 1e-3 * np.abs(its.mean))).all()
            scale = deviation[:, :, None] * deviation[:, None, :] if its.scatter.ndim == 3 else its.scatter
            assert (np.abs(statistic.scatter - its.scatter) <= 1e-12 * scale + 1e-300).all()


def test_numbers_of_cells_are_those_of_reading(database: Database) -> None:
    """Times before 1970, microseconds, whole numbers beyond 2**53, floats of four bytes: to the last bit."""
    times = [dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(2024, 2, 29, 12, 0, 0, 1), None,
             dt.datetime(1900, 1, 1), dt.datetime(2099, 12, 31, 23, 59, 59, 123456)]  # fmt: skip
    cells = {
        "whole": pa.array([2**53 + 1, -(2**63), 0, None, 7]),
        "short": pa.array([-7, 0, None, 127, 32767], pa.int16()),
        "float": pa.array([0.1, -0.0, None, 1e30, 2.5], pa.float32()),
        "double": pa.array([0.1, 1e-310, None, 1e308, 2.5]),
        "flag": pa.array([True, False, None, True, False]),
        "day": pa.array([None if time is None else time.date() for time in times]),
        "time": pa.array(times, pa.timestamp("us")),
        "moment": pa.array(times, pa.timestamp("us", "UTC")),
    }
    if not isinstance(database, SparkSql):
        cells["clock"] = pa.array([None if time is None else time.time() for time in times], pa.time64("us"))
    if not isinstance(database, PostgreSql):  # which reads them as doubles
        numbers = [None if k % 5 == 2 else Decimal(k * 1_234_567).scaleb(-4) for k in range(5)]
        cells["decimal"] = pa.array(numbers, pa.decimal128(18, 4))
    table = database.table(pa.table({"place": pa.array(range(5)), **cells}))
    with table.sql() as rows:
        numbers = [rows.dialect.as_number(rows.columns[name].sql, rows.columns[name].type) for name in cells]
        shown = ", ".join(f"{sql} AS v{k}" for k, sql in enumerate(numbers))
        order = rows.columns["place"].sql
        answer = rows.ask(f"SELECT {shown} FROM {table.source} ORDER BY {order}")
    for found, (name, given) in zip(answer.columns, cells.items(), strict=True):
        assert found.type == pa.float64(), name
        np.testing.assert_array_equal(found.to_numpy(), as_numbers(given), err_msg=name)


def test_bins_are_as_fine_as_all_rows_allow(database: Database) -> None:
    """Few values and many, nothing but 0, far from zero and tiny; dates too; the first rows are unlike the others."""
    rng = np.random.default_rng(5)
    rows = 20_000 if not isinstance(database, SparkSql) else 17_000
    x = np.sort(rng.normal(size=rows))
    columns = {
        "sorted": x,
        "few": rng.integers(0, 5, rows) / 4,
        "zero": np.zeros(rows) * np.where(rng.random(rows) < 0.5, -1.0, 1.0),
        "offset": 1e9 + x,
        "tiny": x * 1e-300,
        "huge": x * 1e130,
        "gaps": np.where(rng.random(rows) < 0.1, np.nan, x),
        "late": rng.integers(0, 3, rows) * np.where(np.arange(rows) < MAX_HINTS, 1.0, 1e6),
    }
    cells = labeled({name: pa.array(values) for name, values in columns.items()})
    days = pa.array([dt.date(1950, 1, 1) + dt.timedelta(int(day)) for day in rng.integers(0, 30_000, rows)])
    cells = cells.append_column("day", days)
    check(database, cells, Binned())


def test_numbers_so_small_that_their_products_are_nothing_are_counted(database: Database) -> None:
    """Which PostgreSQL takes for an error; beside huge numbers too, where their bin is that of 0."""
    x = np.random.default_rng(11).normal(size=60)
    wide = np.where(np.arange(60) % 3 == 0, x * 1e130, np.where(np.arange(60) % 3 == 1, x * 1e-300, 0.0))
    cells = labeled({"a": x * 1e-200, "b": x[::-1] * 1e-170, "wide": wide, "alone": x * 1e-190, "weight": 1.0 + x**2})
    spec = {("a", "b"): JointGaussian(), "wide": Binned()}
    check(database, cells.drop_columns(["weight", "alone"]), spec)
    schema = schema_of(cells, {**spec, "wide": Gaussian(), "alone": Gaussian()}, "weight")
    found = counted_in_engine(schema, database.table(cells), "label", "weight")
    assert_nearly_same(found, counted_here(schema, rows_of(cells, "weight")))


def test_intervals_of_a_joint_table_are_counted(database: Database) -> None:
    rng = np.random.default_rng(6)
    x = rng.choice([-1.0, 0.0, 0.5, 0.75, 1.0, 2.0, np.nan, np.inf], 300)
    cells = labeled({"x": pa.array(x), "z": pa.array(rng.choice(["u", "v", None], 300)), "n": rng.integers(0, 9, 300)})
    spec = {("x", "z", "n"): JointTable(cuts=((0.0, 0.75, 1.0), None, (3.0,)))}
    check(database, cells, spec)


UNUSABLE = [
    (Gaussian(), [1.0, math.inf, 2.0, 0.0], r"found inf, expected a finite number"),
    (Gaussian(), [1.0, 1e200, 2.0, 0.0], r"found 1e.200, expected a number up to 1e"),
    (JointGaussian(), [1.0, -math.inf, 2.0, 0.0], r"found -inf, expected a finite number"),
    (LogNormal(), [1.0, 0.0, 2.0, 3.0], "found 0.0, expected a number above 0"),
    (Gamma(), [1.0, -2.0, 2.0, 3.0], "found -2.0, expected a number above 0"),
    (Poisson(), [1.0, 2.5, 2.0, 3.0], "found 2.5, expected a count"),
    (Poisson(), [1.0, -1.0, 2.0, 3.0], "found -1.0, expected a count"),
    (Bernoulli(), [1.0, 0.5, 0.0, 1.0], "found 0.5, expected 0 or 1"),
    (Bernoulli(), [1.0, 2.0, 0.0, 1.0], "found 2.0, expected 0 or 1"),
    (Multinomial(), [1.0, -2.0, 0.0, 1.0], "found -2.0, expected a number that is not negative"),
    (Categorical(levels=(1, 2, 3)), [1.0, 2.0, 4.0, 3.0], "found 4, expected one of its levels"),
]


@pytest.mark.parametrize(("family", "cells", "problem"), UNUSABLE)
def test_cells_that_cannot_be_used_are_refused_as_when_they_are_read(
    database: Database, family: Any, cells: list[float], problem: str
) -> None:
    """The column is named; nobody can tell the row. A row without a label may hold anything."""
    if isinstance(database, SparkSql) and not isinstance(family, Gaussian | Poisson):
        pytest.skip("the same statements as elsewhere; Spark takes its time")
    table = labeled({"fine": [1.0, 0.0, 1.0, 1.0], "x": cells})
    spec = {("fine", "x"): family} if family.joint else {"fine": Gaussian(), "x": family}
    schema = schema_of(table, spec)
    with pytest.raises(DataError, match=f"^column 'x'(, row 1)?: {problem}") as read:
        counted_here(schema, rows_of(table))
    with pytest.raises(DataError, match=f"^column 'x': {problem}") as counted:
        counted_in_engine(schema, database.table(table), "label")
    assert str(counted.value) == str(read.value).replace(", row 1", "")
    unlabeled = table.set_column(2, "label", pa.array(["a", None, None, "b"]))
    assert_same_typed_counts(
        counted_in_engine(schema, database.table(unlabeled), "label"), counted_here(schema, rows_of(unlabeled))
    )


def test_cells_outside_the_support_are_missing_where_that_was_chosen(database: Database) -> None:
    x = pa.array([1.0, 0.0, -1.5, 2.5, math.nan, None, 3.0, 4.0])
    spec = {
        "a": LogNormal(outside="ignore"),
        "b": Gamma(outside="ignore"),
        "c": Poisson(outside="ignore"),
        "d": Bernoulli(threshold=1.5),
        "e": Bernoulli(threshold=-3.0),
    }
    check(database, labeled(dict.fromkeys(spec, x)), spec)


def test_amounts_that_are_huge_are_cut_off_alike(database: Database) -> None:
    cells = labeled({"a": [1e200, 2.0, 1e140, 0.5], "b": [0.0, 1.0, None, 3.0]})
    check(database, cells, {("a", "b"): Multinomial()})


def test_weights_are_repetitions(database: Database) -> None:
    """A weight of 0 is no row, even with a label or a cell of its own; weights are of any type of number."""
    cells = labeled({"x": [1.0, 2.0, math.inf, 4.0], "z": ["u", "v", "w", None], "weight": [2, 1, 0, 3]}, "abcb")
    found = check(database, cells, weight="weight")
    assert found.classes.tolist() == ["a", "b"]
    assert found.rows == 3


@pytest.mark.parametrize("weight", [-1.0, math.nan, None, math.inf, 1e16])
def test_a_weight_that_is_none_is_refused(database: Database, weight: float | None) -> None:
    if isinstance(database, SparkSql) and weight is not None and not math.isnan(weight):
        pytest.skip("the same statement as elsewhere; Spark takes its time")
    cells = labeled({"x": [1.0, 2.0, 3.0], "weight": pa.array([1.0, weight, 2.0])}).append_column(
        "y", [["a", None, "b"]]
    )
    schema = schema_of(cells.drop_columns(["weight"]))
    with pytest.raises(DataError, match=r"column 'weight': a weight is (nan|-1.0|inf|1e\+16); weights must be"):
        counted_in_engine(schema, database.table(cells), "label", "weight")


def test_labels_that_are_missing_are_counted_apart(database: Database) -> None:
    """None and NaN; whole numbers that are stored as floats keep that type."""
    cells = pa.table({"x": [1.0, 2.0, 3.0, 4.0, 5.0], "label": pa.array([0.0, math.nan, 1.0, None, 1.0])})
    found = check(database, cells)
    assert found.unlabeled == 2
    assert found.classes.dtype == np.float64
    days = pa.table({"x": [1.0, 2.0, 3.0], "label": pa.array([dt.date(2024, 1, 2), None, dt.date(1960, 1, 1)])})
    check(database, days)


@pytest.mark.parametrize("labels", [[0.5, 1.0, 2.0], [math.inf, 1.0, 2.0]])
def test_labels_that_are_no_classes_are_refused_as_when_they_are_read(database: Database, labels: list[float]) -> None:
    cells = pa.table({"x": [1.0, 2.0, 3.0], "label": labels})
    schema = schema_of(cells.set_column(1, "label", pa.array(["a", "b", "a"])))
    with pytest.raises(DataError) as read:
        rows_of(cells)
    with pytest.raises(DataError) as counted:
        counted_in_engine(schema, database.table(cells), "label")
    assert str(counted.value) == str(read.value)


def test_nothing_is_counted_of_no_rows_and_of_empty_columns(database: Database) -> None:
    cells = labeled({"x": [1.5, 2.0], "z": ["u", "v"], "n": pa.array([1, 2])})
    schema = schema_of(cells, {"x": Binned(), ("n",): JointGaussian()})
    assert_same_typed_counts(
        counted_in_engine(schema, database.table(cells.slice(0, 0)), "label"),
        counted_here(schema, rows_of(cells.slice(0, 0))),
    )
    empty = pa.table({name: pa.nulls(3, cells.schema.field(name).type) for name in "xzn"} | {"label": ["a", "b", "a"]})
    assert_same_typed_counts(
        counted_in_engine(schema, database.table(empty), "label"), counted_here(schema, rows_of(empty))
    )


def test_columns_that_the_rows_do_not_have_are_missing(database: Database) -> None:
    cells = labeled({"x": [1.5, 2.0, 7.0], "z": ["u", "v", "u"], "n": pa.array([1, 2, 2]), "q": ["s", "t", "s"]})
    schema = schema_of(cells, {"x": Binned(), ("z", "q"): JointTable()})
    less = cells.select(["q", "x", "label"])
    expected = counted_here(schema, rows_of(less))
    assert_same_typed_counts(counted_in_engine(schema, database.table(less), "label"), expected)
    with pytest.raises(SchemaError, match="the table has none of the model's columns"):
        counted_in_engine(schema, database.table(labeled({"other": [1.0]})), "label")


def test_a_table_that_changes_between_statements_is_refused(database: Database) -> None:
    """Unless the engine shows one moment of it, as PostgreSQL does."""
    cells = labeled({"x": [1.5, 2.0, 7.0], "z": ["u", "v", "u"]})
    table = database.table(cells, "growing")

    def grow() -> None:
        if isinstance(database, SparkSql):
            database.fill("growing", pa.concat_tables([cells, cells]))
        else:
            database.run("INSERT INTO growing VALUES (9.0, 'new', 'a')")

    class Growing(list[str]):
        """Statements so far: before that of the discrete columns rows come."""

        def append(self, query: str) -> None:
            if "count(*)" in query and "var_pop" not in query:
                grow()
            super().append(query)

    object.__setattr__(table, "asked", Growing())
    if isinstance(database, PostgreSql):
        assert counted_in_engine(schema_of(cells), table, "label").rows == 3
    else:
        with pytest.raises(DataError, match="the table changed while it was counted; count it again"):
            counted_in_engine(schema_of(cells), table, "label")


def test_many_columns_take_more_statements(database: Database) -> None:
    rng = np.random.default_rng(7)
    columns = 50 if isinstance(database, SparkSql) else 400
    cells = labeled({f"c{k}": rng.integers(0, 4, 30) / (1 + k % 2 * 4) for k in range(columns)}, "abc")
    spec = {f"c{k}": Categorical() if k % 2 else Gaussian() for k in range(columns)}
    check(database, cells, spec)


def test_a_block_of_many_columns_takes_several_statements() -> None:
    rng = np.random.default_rng(8)
    cells = labeled({f"c{k}": rng.normal(size=90) for k in range(40)}, "ab")
    check(DuckDb(), cells, JointGaussian())


# what is read after all


def test_columns_that_sql_cannot_count_are_read_and_this_is_said() -> None:
    """Texts, and cells of another type than was learned, which are converted or refused as ever."""
    database = DuckDb()
    texts = [None if k % 7 == 0 else f"words of row {k % 11}" for k in range(200)]
    cells = labeled({"note": pa.array(texts), "x": np.arange(200.0), "n": pa.array(range(200))})
    spec = {"note": Text(), "n": Gaussian()}
    schema = schema_of(cells, spec)
    examples = LabeledStream.of(database.table(cells), "label", None, True)
    with pytest.warns(UserWarning, match="pushdown=True: SQL cannot count 'note'; this column is read instead$"):
        found = count_examples(schema, examples)
    assert_same_typed_counts(found, counted_here(schema, rows_of(cells)))
    written = cells.set_column(2, "n", pa.array([str(k) for k in range(200)]))
    examples = LabeledStream.of(database.table(written), "label", None, True)
    with pytest.warns(
        UserWarning, match="pushdown=True: SQL cannot count 'n', 'note', 'x'; these columns are read instead$"
    ):
        assert_same_typed_counts(count_examples(schema, examples), found)


def test_columns_that_were_learned_without_names_are_known_by_their_places() -> None:
    rng = np.random.default_rng(10)
    cells = labeled({"first": rng.normal(size=60), "second": rng.integers(0, 3, 60)})
    array = np.column_stack([cells["first"].to_numpy(), cells["second"].to_numpy()])
    rows = LabeledTable.of(open_table(array), cells["label"])
    schema = infer_schema(rows.table, {0: Gaussian(), 1: Categorical()}, Defaults())
    assert schema.names is None
    assert_same_typed_counts(counted_in_engine(schema, DuckDb().table(cells), "label"), counted_here(schema, rows))


def test_types_of_duckdb_that_reading_makes_texts_or_decimals_of() -> None:
    """Enums, UUIDs, JSON, huge and unsigned integers, decimals."""
    database = DuckDb()
    columns = [
        "['u', 'v'][1 + k % 2]::ENUM('v', 'u') AS label",
        "['r', 's'][1 + k // 2 % 2]::ENUM('s', 'r') AS enum",
        "('00000000-0000-0000-0000-00000000000' || k % 3)::UUID AS id",
        "('{\"a\": ' || k % 2 || '}')::JSON AS json",
        "(k % 5)::HUGEINT AS huge",
        "k::UBIGINT AS u",
        "(k % 4 / 10)::DECIMAL(9, 4) AS decimal",
        "(k / 7)::DECIMAL(18, 6) AS price",
        "(k / 3)::FLOAT AS short",
    ]
    database.run(f"CREATE TABLE kinds AS SELECT {', '.join(columns)} FROM range(40) AS t(k)")
    cells = database.connection.sql("SELECT * FROM kinds").to_arrow_table()
    spec = dict.fromkeys(["enum", "id", "json", "huge", "decimal"], Categorical()) | {"price": Binned(), "u": Poisson()}
    schema = schema_of(cells, spec)
    found = counted_in_engine(schema, database.known("kinds", cells.column_names), "label")
    assert_same_typed_counts(found, counted_here(schema, rows_of(cells)))


def test_tables_of_the_user_are_not_taken_for_the_relation() -> None:
    """Whatever statements call the relation, no table of the database has that name."""
    connection = DuckDb().connection
    connection.execute("CREATE TABLE deciban_rows AS SELECT 1.0 AS x, 7 AS label FROM range(50)")
    rows = connection.sql("SELECT k + 0.5 AS x, k % 2 AS label FROM range(20) AS t(k)")
    clf = BayesClassifier(tune=None).fit(rows, "label", pushdown=True)
    assert (clf.counts_.rows, clf.classes_.tolist()) == (20, [0, 1])


def test_infinite_dates_of_duckdb_are_missing() -> None:
    """In whatever unit: as numbers they would be farther away than all others."""
    kinds = ("date", "timestamp", "timestamptz", "timestamp_s", "timestamp_ms", "timestamp_ns")
    cells = "CASE k WHEN 7 THEN 'infinity' WHEN 8 THEN '-infinity' ELSE '2024-01-0' || (k % 9 + 1) END"
    columns = ", ".join(f"({cells})::{kind} AS {kind}_" for kind in kinds)
    rows = DuckDb().connection.sql(f"SELECT {columns}, k % 2 AS label FROM range(20) AS t(k)")
    read, counted = (
        BayesClassifier(tune=None, families=Gaussian()).fit(rows, "label", pushdown=pushdown)
        for pushdown in (False, True)
    )
    assert_same_typed_counts(counted.counts_, read.counts_)
    table = rows.to_arrow_table()
    for kind in kinds:
        numbers = as_numbers(table[f"{kind}_"].combine_chunks())
        assert np.flatnonzero(np.isnan(numbers)).tolist() == [7, 8]
        assert numbers[0] == (dt.date(2024, 1, 1) - dt.date(1970, 1, 1)).days


# collations


def test_texts_that_a_collation_takes_for_equal_are_different_in_postgres(postgres: Any) -> None:
    database = PostgreSql(postgres.url)
    database.run(
        "CREATE COLLATION IF NOT EXISTS alike (provider = icu, locale = 'und-u-ks-level1', deterministic = false)"
    )
    database.run("CREATE TABLE collated (z text COLLATE alike, label text COLLATE alike)")
    database.run("INSERT INTO collated VALUES ('a', 'u'), ('A', 'U'), ('á', 'u'), ('a', 'u')")
    check_texts(database)


def test_texts_that_a_collation_takes_for_equal_are_different_in_duckdb() -> None:
    database = DuckDb()
    database.run("CREATE TABLE collated (z VARCHAR COLLATE NOCASE.NOACCENT, label VARCHAR COLLATE NOCASE)")
    database.run("INSERT INTO collated VALUES ('a', 'u'), ('A', 'U'), ('á', 'u'), ('a', 'u')")
    check_texts(database)


def check_texts(database: Database) -> None:
    cells = pa.table({"z": ["a", "A", "á", "a"], "label": ["u", "U", "u", "u"]})
    schema = schema_of(cells, Categorical())
    found = counted_in_engine(schema, database.known("collated", cells.column_names), "label")
    assert_same_typed_counts(found, counted_here(schema, rows_of(cells)))


# which columns are asked for together


def test_columns_of_few_combinations_are_asked_for_together() -> None:
    rng = np.random.default_rng(9)
    few, some = rng.integers(0, 4, (2, 2_000))
    many, all_different = rng.integers(0, 900, 2_000), np.arange(2_000)
    assert bundle_columns([pa.array(x) for x in (all_different, few, many, some)]) == [[1, 3], [2], [0]]


# families that SQL cannot count


class Silent(Gaussian):
    """A family that asks nothing of SQL, as the base class has it."""

    count_in_sql = ColumnFamily.count_in_sql  # type: ignore[assignment]


class Sizes(Gaussian):
    """A family that counts other than its parent, which SQL can count."""

    def count(self, cells: Any, labels: Any, weights: Any, classes: int) -> Any:
        return super().count(np.abs(cells), labels, weights, classes)


@pytest.mark.parametrize("family", [Silent(), Sizes()], ids=["silent", "sizes"])
def test_columns_of_a_family_that_asks_nothing_are_read(family: Gaussian) -> None:
    cells = labeled({"x": [1.0, -2.5, 3.0, 4.5], "y": [1.0, 2.0, 5.0, 3.0]})
    schema = schema_of(cells, {"x": family, "y": Gaussian()})
    examples = LabeledStream.of(DuckDb().table(cells), "label", None, True)
    with pytest.warns(UserWarning, match=r"^pushdown=True: SQL cannot count 'x'; this column is read instead$"):
        found = count_in_engine(schema, examples, lambda own, rows: counted_here(own, rows_of(cells)))
    assert_same_typed_counts(found, counted_here(schema, rows_of(cells)))
