"""What the engines say differently: how cells are read, how a row is carried along, what arithmetic they refuse."""

import math
from collections.abc import Sequence
from typing import ClassVar, Literal

from deciban.export.ir import Column, ReadAs
from deciban.sources.dialects import DUCKDB, POSTGRES, SPARK, Dialect
from deciban.tables.cell_numbers import DAY_MICROSECONDS, SECOND_MICROSECONDS

# What a cell is needed as: a double, a whole number, microseconds since 1970 or since midnight, or a text.
Reading = Literal["number", "integer", "micros", "text"]

# Kinds of types that a column of a table may have.
Kind = Literal["flag", "number", "date", "time", "text"]

# What a table is expected to hold in a column that is read as this.
EXPECTED: dict[ReadAs, str] = {
    "number": "numbers",
    "flag": "true and false, or 1 and 0",
    "date": "dates or timestamps",
    "time": "times of day",
    "text": "text",
}


class Engine:
    """An engine whose arithmetic goes on with infinities, as DuckDB's and Spark's does.

    fence: what stands before each SELECT of a chain so that its expressions are not copied into the next one. packs:
    whether several numbers of a row are kept as one array, because a table can have few columns. least_exponent: the
    least number whose exponential is taken; of lower ones it is 0. advice: what stands at the head of a statement.
    max_factored: the most columns of a joint Gaussian of which rows may miss some; such a row eliminates the covariance
    of its block, about columns**3 / 6 products for each class.
    """

    fence = ""
    packs = False
    least_exponent = -746.0
    advice = ""
    max_factored = 32
    types: ClassVar[dict[Kind, str]] = {
        "flag": "BOOLEAN",
        "number": "U?(TINY|SMALL|BIG|HUGE)?INT|DECIMAL|FLOAT|DOUBLE",
        "date": "DATE|TIMESTAMP",
        "time": "TIME$|TIME_|TIME |INTERVAL",
        "text": "VARCHAR",
    }

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect

    def cell(self, cell: str, column: Column, reading: Reading, flags: tuple[str, str] | None = None) -> str:
        """A cell of the table as it is needed; NULL where it is missing or NaN.

        A column of another type than was learned ends the query, with its name. flags: the texts that true and false
        stand for in a column of texts, if the table has it as true and false.
        """
        cases, wrong = [], self.wrong(cell, column)
        if reading == "text" and flags is not None:
            yes, no = map(self.dialect.literal, flags)
            words = f"CASE CAST({cell} AS {self.dialect.text}) WHEN 'true' THEN {yes} WHEN 'false' THEN {no} END"
            cases.append(f"WHEN {self.is_of(cell, 'flag')} THEN {words}")
        if wrong:
            name = column.name.replace("\0", "\ufffd")
            message = f"deciban: column {name!r}: expected {EXPECTED[column.read_as]}, found another type or cell"
            kind = {"number": self.dialect.double, "text": self.dialect.text}.get(reading, self.dialect.integer)
            cases.append(f"WHEN {cell} IS NOT NULL AND {wrong} THEN {self.fail(message, cell, kind)}")
        plain = self._cell(cell, column, reading)
        return f"CASE {' '.join(cases)} ELSE\n{plain} END" if cases else plain

    def wrong(self, cell: str, column: Column) -> str:
        """A condition under which a cell is not what is expected, though it could be cast; empty where there is none:
        other casts fail, with the name of the column."""
        if column.read_as == "text":
            return self.is_of(cell, "flag", "number", "date", "time")
        if column.read_as in ("date", "time"):
            return self.is_of(cell, "time" if column.read_as == "date" else "date")
        return ""

    def is_of(self, cell: str, *kinds: Kind) -> str:
        """A condition: the type of a column is of one of these kinds; engines know it before they read a row."""
        return f"regexp_matches(typeof({cell}), '^({'|'.join(self.types[kind] for kind in kinds)})')"

    def _cell(self, cell: str, column: Column, reading: Reading) -> str:
        if reading == "text":
            return f"CAST({cell} AS {self.dialect.text})"
        if reading == "integer":
            return f"CAST({cell} AS {self.dialect.integer})"
        if reading == "micros":
            return self.micros(cell, column)
        if column.read_as in ("date", "time"):
            unit = DAY_MICROSECONDS if column.read_as == "date" else SECOND_MICROSECONDS
            return f"CAST({self.micros(cell, column)} AS {self.dialect.double}) / {self.dialect.number(unit)}"
        number = self.flag(cell) if column.read_as == "flag" else f"CAST({cell} AS {self.dialect.double})"
        return f"NULLIF({number}, {self.dialect.number(math.nan)})"

    def flag(self, cell: str) -> str:
        """True and false, or the numbers 1 and 0, as a double."""
        return f"CAST({cell} AS {self.dialect.double})"

    def micros(self, cell: str, column: Column) -> str:
        """A date or a time as microseconds."""
        return f"epoch_us({cell})"

    def whole_row(self, table: str) -> str:
        """All cells of a row, as one value."""
        return table

    def expanded(self, row: str) -> str:
        """The columns that such a value was made of."""
        return f"{row}.*"

    def cuts_below(self, number: str, cuts: Sequence[float], first: int) -> str:
        """first + how many of the rising cuts do not lie above a number, found by halving."""
        if not cuts:
            return str(first)
        half = len(cuts) // 2
        below = self.cuts_below(number, cuts[:half], first)
        above = self.cuts_below(number, cuts[half + 1 :], first + half + 1)
        return f"CASE WHEN {number} < {self.dialect.number(cuts[half])} THEN {below} ELSE {above} END"

    def digits(self, word: str, shift: int, mask: int) -> str:
        """Some of the binary digits of a whole number of 64 bits, as one that an array takes."""
        return f"(({word} >> {shift}) & {mask})"

    def is_whole(self, number: str) -> str:
        """Whether a number has no fraction."""
        return f"{number} = floor({number})"

    def within(self, number: str, most: float) -> str:
        """A number whose products and squares can be worked with as long as its size is at most this."""
        return number

    def nudged(self, distance: str, factor: float) -> str:
        """A distance that is to be multiplied by a factor and squared."""
        return distance

    def keys(self, array: str, first: int, size: int, table: str) -> str:
        """A table with the elements of an array (level) and whole numbers from the first on (place)."""
        return f"(SELECT unnest({array}) AS level, unnest(range({first}, {first + size})) AS place) AS {table}"

    def fail(self, message: str, seen: str, kind: str) -> str:
        """An expression of a type (kind) that ends the query with a message as soon as a row needs its value.

        seen: an expression of the row, without which engines may evaluate this before there is a row.
        """
        return f"CAST(error({self.dialect.literal(message)}) AS {kind})"

    def amount(self, number: str, most: float, factor: float) -> str:
        """A number above 0, cut off at the most, that is to be multiplied by a factor of at most this size."""
        return f"LEAST({number}, {self.dialect.number(most)})" if most < math.inf else number


class PostgresEngine(Engine):
    """PostgreSQL, in which results beyond the doubles, or too small for them, are errors.

    A subquery with a WITH of its own is not merged into the one around it, and unlike one with OFFSET it may run in
    parallel.
    """

    fence = "WITH fence AS (SELECT 1) "
    packs = True
    least_exponent = -700.0
    advice = "; SET jit = off before, as compiling it would take longer than running it"
    types: ClassVar[dict[Kind, str]] = {
        "flag": "bool",
        "number": "int2,int4,int8,numeric,float4,float8",
        "date": "date,timestamp,timestamptz",
        "time": "time,timetz,interval",
        "text": "text,varchar,bpchar",
    }

    def wrong(self, cell: str, column: Column) -> str:
        """The error of a cast from text does not name the column."""
        if column.read_as not in ("number", "flag"):
            return super().wrong(cell, column)
        words = "|true|false" if column.read_as == "flag" else ""
        readable = rf"^\s*([-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?|[-+]?inf|[-+]?infinity|nan{words})\s*$"
        return f"{self.is_of(cell, 'text')} AND CAST({cell} AS text) !~* {self.dialect.literal(readable)}"

    def is_of(self, cell: str, *kinds: Kind) -> str:
        return f"pg_typeof({cell}) = ANY('{{{','.join(self.types[kind] for kind in kinds)}}}'::regtype[])"

    def fail(self, message: str, seen: str, kind: str) -> str:
        """By a cast that cannot succeed: its message has the text."""
        text = f"concat({self.dialect.literal(message)}, left(CAST({seen} AS text), 0))"
        return f"CAST(CAST(CAST({text} AS integer) AS text) AS {kind})"

    def flag(self, cell: str) -> str:
        """By the text, which both kinds of columns have: no cast leads from true and false to a double."""
        text = f"CAST({cell} AS text)"
        return f"CASE {text} WHEN 'true' THEN 1 WHEN 'false' THEN 0 ELSE CAST({text} AS float8) END"

    def micros(self, cell: str, column: Column) -> str:
        """Of dates that are infinite, none."""
        micros = f"CAST(extract(epoch FROM {cell}) * 1000000 AS bigint)"
        return f"CASE WHEN isfinite({cell}) THEN {micros} END" if column.read_as == "date" else micros

    def expanded(self, row: str) -> str:
        return f"({row}).*"

    def cuts_below(self, number: str, cuts: Sequence[float], first: int) -> str:
        return f"{first} + width_bucket({number}, {self.dialect.doubles(cuts)})" if cuts else str(first)

    def keys(self, array: str, first: int, size: int, table: str) -> str:
        numbered = f"unnest({array}) WITH ORDINALITY AS u (level, number)"
        return f"(SELECT level, CAST(number + {first - 1} AS integer) AS place FROM {numbered}) AS {table}"

    def digits(self, word: str, shift: int, mask: int) -> str:
        return f"CAST(({word} >> {shift}) & {mask} AS integer)"

    def within(self, number: str, most: float) -> str:
        """Infinite beyond that: with infinities all can be worked with."""
        largest = self.dialect.number(min(most, 1e308))
        return f"CASE WHEN abs({number}) > {largest} THEN {self.dialect.number(math.inf)} ELSE {number} END"

    def nudged(self, distance: str, factor: float) -> str:
        """By so little that only a distance is changed whose square would be too small."""
        return f"({distance} + {self.dialect.number(min(1e-150 / abs(factor), 1.0))})" if factor else distance

    def amount(self, number: str, most: float, factor: float) -> str:
        least, most = 1e-200, min(most, 1e300 / max(abs(factor), 1e-8))
        return f"LEAST(GREATEST({number}, {self.dialect.number(least)}), {self.dialect.number(most)})"


class SparkEngine(Engine):
    """Spark SQL; an instant is read in universal time, a date or a local time as it stands."""

    max_factored = 16  # thirty columns take more than the gigabyte that a driver has by default
    advice = "; SET spark.sql.subexpressionElimination.enabled = false before: it takes long to look for any"

    types: ClassVar[dict[Kind, str]] = {
        "flag": "boolean",
        "number": "tinyint|smallint|int|bigint|decimal|float|double",
        "date": "date|timestamp",
        "time": "time($|[^s])|interval",
        "text": "string|char|varchar",
    }

    def wrong(self, cell: str, column: Column) -> str:
        """A number of a timestamp is its seconds, and casts may make unreadable texts missing."""
        if column.read_as not in ("number", "flag"):
            return super().wrong(cell, column)
        return f"({self.is_of(cell, 'date', 'time')} OR {self._unreadable(cell)})"

    def _unreadable(self, cell: str) -> str:
        return f"{self.is_of(cell, 'text')} AND try_cast(CAST({cell} AS STRING) AS DOUBLE) IS NULL"

    def is_of(self, cell: str, *kinds: Kind) -> str:
        return f"typeof({cell}) RLIKE '^({'|'.join(self.types[kind] for kind in kinds)})'"

    def micros(self, cell: str, column: Column) -> str:
        if column.read_as == "time":
            return _micros_of_local(f"CAST(concat('1970-01-01 ', CAST({cell} AS STRING)) AS TIMESTAMP_NTZ)")
        local = _micros_of_local(f"CAST({cell} AS TIMESTAMP_NTZ)")
        instant = f"unix_micros(CAST({cell} AS TIMESTAMP))"
        return f"CASE WHEN typeof({cell}) = 'timestamp' THEN {instant} ELSE {local} END"

    def fail(self, message: str, seen: str, kind: str) -> str:
        return f"CAST(raise_error({self.dialect.literal(message)}) AS {kind})"

    def whole_row(self, table: str) -> str:
        return f"struct({table}.*)"

    def keys(self, array: str, first: int, size: int, table: str) -> str:
        spread = f"SELECT posexplode({array}) AS (number, level)"
        return f"(SELECT level, number + {first} AS place FROM ({spread})) AS {table}"

    def digits(self, word: str, shift: int, mask: int) -> str:
        return f"CAST(shiftright({word}, {shift}) & {mask} AS INT)"

    def is_whole(self, number: str) -> str:
        """By rint, which is a double: floor is a whole number of 64 bits there, and an error beyond."""
        return f"{number} = rint({number})"


def _micros_of_local(stamp: str) -> str:
    day = f"unix_date(CAST({stamp} AS DATE)) * 86400000000"
    seconds = f"hour({stamp}) * 3600 + minute({stamp}) * 60 + extract(SECOND FROM {stamp})"
    return f"({day} + CAST(({seconds}) * 1000000 AS BIGINT))"


SCORING_ENGINES: dict[str, Engine] = {
    "duckdb": Engine(DUCKDB),
    "postgres": PostgresEngine(POSTGRES),
    "spark": SparkEngine(SPARK),
}
