"""What the engines say differently: how cells are read, how a row is carried along, what arithmetic they refuse."""

import math
from collections.abc import Sequence
from typing import Literal

from deciban.export.terms import Column
from deciban.sql import DUCKDB, POSTGRES, SPARK, Dialect
from deciban.tables.cell_numbers import DAY_MICROSECONDS, SECOND_MICROSECONDS

# What a cell is needed as: a double, a whole number, microseconds since 1970 or since midnight, or a text.
Reading = Literal["number", "integer", "micros", "text"]


class Engine:
    """An engine whose arithmetic goes on with infinities, as DuckDB's and Spark's does.

    fence: what stands before each SELECT of a chain so that its expressions are not copied into the next one. packs:
    whether several numbers of a row are kept as one array, because a table can have few columns. least_exponent: the
    least number whose exponential is taken; of lower ones it is 0. advice: what stands at the head of a statement.
    """

    fence = ""
    packs = False
    least_exponent = -746.0
    advice = ""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect

    def cell(self, cell: str, column: Column, reading: Reading) -> str:
        """A cell of the table as it is needed; NULL where it is missing or NaN."""
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

    advice = "; SET spark.sql.subexpressionElimination.enabled = false before: it takes long to look for any"

    def micros(self, cell: str, column: Column) -> str:
        if column.read_as == "time":
            return _micros_of_local(f"CAST(concat('1970-01-01 ', CAST({cell} AS STRING)) AS TIMESTAMP_NTZ)")
        local = _micros_of_local(f"CAST({cell} AS TIMESTAMP_NTZ)")
        instant = f"unix_micros(CAST({cell} AS TIMESTAMP))"
        return f"CASE WHEN typeof({cell}) = 'timestamp' THEN {instant} ELSE {local} END"

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
