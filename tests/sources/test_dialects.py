"""Names and values in SQL mean themselves, whatever they hold, in every dialect."""

from collections.abc import Callable
from typing import Any

import pytest

from deciban.errors import UsageError
from deciban.sources.dialects import DUCKDB, POSTGRES, SPARK, Dialect, dialect_of

TEXTS = [
    "",
    "a",
    "it's",
    "\\",
    "\\' or 1=1 --",
    "a\nb\tc",
    "é🏔️\u2028",
    "${x}",
    "$1",
    "%s ?",
    'x"; drop table t; --',
    "`",
]
NUMBERS = [0.0, -0.0, 1.5, 0.1, 1e308, -1e308, 5e-324, 1e22, 2.0**53, float("inf"), float("-inf"), float("nan")]
INTEGERS = [0, -1, 2**63 - 1, -(2**63)]
NAMES = ["a", "Größe", 'x"; drop table t; --', "x`; drop table t; --", "two words", "select", "$1", "a.b", "it's", "%s"]

Ask = Callable[[str], tuple[Any, ...]]


def check_array(dialect: Dialect, ask: Ask, array: str, values: list[Any]) -> None:
    places = range(dialect.first, dialect.first + len(values))
    found = ask("SELECT " + ", ".join(f"({array})[{k}] AS c{k}" for k in places))
    assert list(map(repr, found)) == list(map(repr, values))


def check(dialect: Dialect, ask: Ask) -> None:
    found = ask("SELECT " + ", ".join(f"{dialect.literal(text)} AS c{k}" for k, text in enumerate(TEXTS)))
    assert list(found) == TEXTS
    numbers = ask("SELECT " + ", ".join(f"{dialect.number(x)} AS c{k}" for k, x in enumerate(NUMBERS)))
    assert [repr(float(x)) for x in numbers] == [repr(x) for x in NUMBERS]
    assert all(isinstance(x, float) for x in numbers)
    check_array(dialect, ask, dialect.doubles(NUMBERS), NUMBERS)
    check_array(dialect, ask, dialect.integers(INTEGERS), INTEGERS)
    check_array(dialect, ask, dialect.texts([*TEXTS, None]), [*TEXTS, None])
    values = [*TEXTS, *NUMBERS, *INTEGERS]
    found = ask("SELECT " + ", ".join(f"{dialect.value(value)} AS c{k}" for k, value in enumerate(values)))
    assert list(map(repr, found)) == list(map(repr, values))
    table = ", ".join(f"{k} AS {dialect.identifier(name)}" for k, name in enumerate(NAMES))
    names = ", ".join(map(dialect.identifier, NAMES))
    assert ask(f"SELECT {names} FROM (SELECT {table}) AS t") == tuple(range(len(NAMES)))


def check_rows(dialect: Dialect, ask: Ask) -> None:
    whole = dialect.rows_of([0, -1, 2**62])
    assert ask(f"SELECT count(*), sum(x) FROM (SELECT * FROM ({whole}) AS t(x)) AS t") == (3, 2**62 - 1)
    assert ask(f"SELECT count(*) FROM ({dialect.rows_of([])}) AS t") == (0,)


def test_duckdb() -> None:
    duckdb = pytest.importorskip("duckdb")
    for right in (check, check_rows):
        right(DUCKDB, lambda query: duckdb.sql(query).fetchall()[0])
    assert duckdb.sql(f"SELECT {DUCKDB.literal(chr(0))}, {DUCKDB.literal('a' + chr(0) + 'b')}").fetchall() == [
        ("\0", "a\0b")
    ]


def test_postgres(postgres: Any) -> None:
    for right in (check, check_rows):
        right(POSTGRES, lambda query: postgres.execute(query)[0])
    quiet = "SET backslash_quote = off; SET escape_string_warning = off; SET standard_conforming_strings = off; "
    with postgres.connect() as connection:
        connection.execute(quiet)
        check(POSTGRES, lambda query: connection.execute(query).fetchone())


def test_spark(spark: Any) -> None:
    check(SPARK, lambda query: tuple(spark.sql(query).collect()[0]))
    spark.conf.set("spark.sql.parser.escapedStringLiterals", "true")
    try:
        check(SPARK, lambda query: tuple(spark.sql(query).collect()[0]))
    finally:
        spark.conf.unset("spark.sql.parser.escapedStringLiterals")
    assert spark.sql(f"SELECT {SPARK.literal(chr(0))}").collect()[0][0] == "\0"


def test_what_an_engine_cannot_write_is_refused() -> None:
    with pytest.raises(UsageError, match="contains a NUL byte, which PostgreSQL does not support"):
        POSTGRES.literal("a\0")
    for name, problem in (("", "is empty"), ("a\0b", "contains a NUL byte"), ("x" * 64, "is too long for PostgreSQL")):
        with pytest.raises(UsageError, match=problem):
            POSTGRES.identifier(name)
    with pytest.raises(UsageError, match="choose one of 'duckdb', 'postgres', 'spark'"):
        dialect_of("oracle")
    assert POSTGRES.quote_table('s."t') == '"s"."""t"'
