"""The few constructs of SQL that engines write in different ways."""

import math

import pyarrow as pa

from deciban.sources.dialects import DUCKDB, POSTGRES, SPARK, Dialect
from deciban.sources.source import SqlColumn
from deciban.tables.cell_numbers import DAY_MICROSECONDS, SECOND_MICROSECONDS, is_text, plain_type
from deciban.util.arrays import TOO_LARGE


class Engine:
    """How an engine writes what is asked of it. This is DuckDB's way; the others say where theirs differ.

    dialect: how it writes names and values. sets: the most grouping sets of one statement, each of which costs less
    there than a statement of its own.
    """

    dialect: Dialect = DUCKDB
    sets = 32

    def number(self, column: SqlColumn) -> str | None:
        """The cells as doubles, as `as_numbers` has them of what is read; None where SQL cannot tell."""
        kind, sql = plain_type(column.type), column.sql
        if pa.types.is_float64(kind):
            return sql
        if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            return self.double(sql)
        if pa.types.is_boolean(kind):
            return self.double(f"CAST({sql} AS INTEGER)")
        if pa.types.is_date32(kind):
            return self.double(self._days(sql))
        if pa.types.is_timestamp(kind):
            return self._quotient(self._microseconds(sql, kind.tz is not None), DAY_MICROSECONDS)
        if kind == pa.time64("us") and (ticks := self._time_microseconds(sql)) is not None:
            return self._quotient(ticks, SECOND_MICROSECONDS)
        return None

    def value(self, column: SqlColumn) -> str | None:
        """The cells as they are, alike only where they are the same; None where they are no single values."""
        kind = plain_type(column.type)
        if is_text(kind):
            return column.sql if pa.types.is_dictionary(column.type) else self._bytewise(column.sql)
        plain = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean)
        timed = (pa.types.is_date, pa.types.is_timestamp, pa.types.is_time)
        return column.sql if any(is_kind(kind) for is_kind in (*plain, *timed)) else None

    def double(self, sql: str) -> str:
        """A number as a double."""
        return f"CAST({sql} AS {self.dialect.double})"

    def known(self, number: str) -> str:
        """A double, NULL where it is NaN, which equals itself in every engine."""
        return f"nullif({number}, {self.dialect.number(math.nan)})"

    def floor(self, number: str) -> str:
        """The largest whole number below a double, as a double."""
        return f"floor({number})"

    def scaled(self, number: str, exponent: int) -> str:
        """A double times 2**exponent, exactly; no factor of which is too large."""
        steps = []
        while abs(exponent) > 1000:
            steps.append(math.copysign(600, exponent))
            exponent -= int(steps[-1])
        factors = (f" * {self.dialect.number(2.0**step)}" for step in (*steps, exponent))
        return number + "".join(factors)

    def product(self, one: str, other: str) -> str:
        """The product of two doubles, whatever they are; 0 where it is too small for a double."""
        return f"{one} * {other}"

    def _quotient(self, number: str, divisor: float) -> str:
        return f"{self.double(number)} / {self.dialect.number(divisor)}"

    def _bytewise(self, text: str) -> str:
        return f"(CAST({text} AS VARCHAR) COLLATE C)"

    def _days(self, date: str) -> str:
        return f"CASE WHEN isfinite({date}) THEN {date} - DATE '1970-01-01' END"

    def _microseconds(self, timestamp: str, zoned: bool) -> str:
        return f"epoch_us({timestamp})"

    def _time_microseconds(self, time: str) -> str | None:
        return f"epoch_us({time})"


class PostgresEngine(Engine):
    """PostgreSQL, which has no parallel plan for grouping sets, and seconds as doubles, exact to a microsecond.

    Products that are too large, or too small, for a double are errors there.
    """

    dialect = POSTGRES
    sets = 1

    def scaled(self, number: str, exponent: int) -> str:
        made = super().scaled(number, exponent)
        if exponent >= 0:
            return made
        least = self.dialect.number(2.0 ** (-1075 - exponent))  # what is no larger becomes 0
        return f"CASE WHEN abs({number}) > {least} THEN {made} ELSE {number} * 0 END"

    def product(self, one: str, other: str) -> str:
        """Without numbers so small that their product is, which is an error there."""
        least = self.dialect.number(1.0 / float(TOO_LARGE))
        large = (f"(CASE WHEN abs({number}) < {least} THEN 0 ELSE {number} END)" for number in (one, other))
        return " * ".join(large)

    def _bytewise(self, text: str) -> str:
        return f'(CAST({text} AS text) COLLATE "C")'

    def _microseconds(self, timestamp: str, zoned: bool) -> str:
        return f"round(date_part('epoch', {timestamp}) * {self.dialect.number(SECOND_MICROSECONDS)})"

    def _time_microseconds(self, time: str) -> str:
        return self._microseconds(time, zoned=False)


class SparkEngine(Engine):
    """Spark SQL, whose floor is a whole number of 64 bits."""

    dialect = SPARK

    def floor(self, number: str) -> str:
        return self.double(f"floor({number})")

    def _bytewise(self, text: str) -> str:
        return text

    def _days(self, date: str) -> str:
        return f"unix_date({date})"

    def _time_microseconds(self, time: str) -> None:
        return None

    def _microseconds(self, timestamp: str, zoned: bool) -> str:
        if zoned:
            return f"unix_micros({timestamp})"
        seconds = f"hour({timestamp}) * 3600 + minute({timestamp}) * 60 + extract(SECOND FROM {timestamp})"
        return f"unix_date(to_date({timestamp})) * 86400000000 + ({seconds}) * 1000000"


COUNTING_ENGINES: dict[str, Engine] = {one.dialect.name: one for one in (Engine(), PostgresEngine(), SparkEngine())}
