"""SQL dialects of three engines, for reading, counting and scoring.

`Dialect` is DuckDB's; `PostgresDialect` and `SparkDialect` override the differences. Methods return expressions as
text. No other module quotes names or values.
"""

import json
import math
from collections.abc import Iterable, Sequence
from typing import ClassVar, Literal

import pyarrow as pa

from deciban.errors import Argument, UsageError
from deciban.families.base.parts import PREFIX_LENGTHS, Part
from deciban.tables.cells import DAY_MICROSECONDS, SECOND_MICROSECONDS, is_text, plain_type
from deciban.util.arrays import TOO_LARGE

# Kinds of column types.
TypeKind = Literal["flag", "number", "date", "time", "text"]

# Fields of timestamps in SQL.
DATE_FIELDS: dict[str, str] = {"month": "month", "weekday": "isodow", "hour": "hour"}

BACKSLASH = "\\"


class Dialect:
    """DuckDB's dialect, whose arithmetic supports infinities and NaN.

    name: name of the engine.
    quote: quotation mark for names.
    max_name: maximum length of a name in bytes.
    nul: True if texts may contain NUL bytes.
    first: index of the first element of an array.
    double, text, integer, timestamp: types.
    types: types by kind, as patterns for `is_of`.
    max_grouping_sets: grouping sets per statement, if they are cheaper than separate statements.
    fence: text before each SELECT of a chain that prevents inlining into the next one.
    packs: True to keep several numbers of a row in one array, because tables can have few columns.
    min_exponent: exponentials of lower numbers are 0.
    max_factored: columns of a joint Gaussian with missing cells. Such a row eliminates the covariance of its block,
        about columns**3 / 6 products per class.
    advice: comment at the head of a statement.
    """

    name = "DuckDB"
    quote = '"'
    max_name = 1 << 16
    nul = True
    first = 1
    double, text, integer, timestamp = "DOUBLE", "VARCHAR", "BIGINT", "TIMESTAMP"
    types: ClassVar[dict[TypeKind, str]] = {
        "flag": "BOOLEAN",
        "number": "U?(TINY|SMALL|BIG|HUGE)?INT|DECIMAL|FLOAT|DOUBLE",
        "date": "DATE|TIMESTAMP",
        "time": "TIME$|TIME_|TIME |INTERVAL",
        "text": "VARCHAR",
    }
    max_grouping_sets = 32
    fence = ""
    packs = False
    min_exponent = -746.0
    max_factored = 32
    advice = ""

    # Names and values

    def identifier(self, name: str) -> str:
        """Return a quoted name; raise a UsageError if the engine does not support it."""
        if not name or "\0" in name or len(name.encode()) > self.max_name:
            problem = "is empty" if not name else "contains a NUL byte" if "\0" in name else "is too long"
            raise UsageError(f"the name {name[:60]!r} {problem} for {self.name}", remedy="rename it")
        return self.quote_name(name)

    def quote_name(self, name: str) -> str:
        """Return a quoted name, unchecked."""
        return self.quote + name.replace(self.quote, 2 * self.quote) + self.quote

    def possible_name(self, name: str) -> str:
        """Return the name, or a similar one that `identifier` accepts if it is short enough."""
        return name.replace("\0", "\ufffd")

    def quote_table(self, name: str) -> str:
        """Return the name of a table, with dots between schema and table: each part is quoted."""
        return ".".join(self.identifier(part) for part in name.split("."))

    def literal(self, text: str) -> str:
        """Return a text literal; raise a UsageError if the engine does not support it."""
        parts = ["'" + part.replace("'", "''") + "'" for part in text.split("\0")]
        return parts[0] if len(parts) == 1 else f"({' || chr(0) || '.join(parts)})"

    def number(self, value: float) -> str:
        """Return a double literal, exactly: a bare 1.5 would be a decimal number."""
        return _exact(value) if math.isfinite(value) else f"CAST('{_spell_nonfinite(value)}' AS {self.double})"

    def value(self, value: str | float | int) -> str:
        """Return the literal of a text, a double or an integer."""
        if isinstance(value, str):
            return self.literal(value)
        return self.number(value) if isinstance(value, float) else f"CAST('{value}' AS {self.integer})"

    def doubles(self, values: Iterable[float]) -> str:
        """Return an array of doubles, exactly; `(array)[k]` is an element."""
        shown = (repr(float(value)) if math.isfinite(value) else _spell_nonfinite(value) for value in values)
        return self._numbers(",".join(shown), self.double)

    def integers(self, values: Iterable[int]) -> str:
        """Return an array of integers."""
        return self._numbers(",".join(map(str, values)), self.integer)

    def small_integers(self, values: Iterable[int]) -> str:
        """Return an array of integers of 32 bits."""
        return self._numbers(",".join(map(str, values)), "INTEGER")

    def _numbers(self, listed: str, kind: str) -> str:
        """Return an array of numbers from one text, which engines read faster than many numbers."""
        return f"CAST('[{listed}]' AS {kind}[])"

    def texts(self, values: Iterable[str | None]) -> str:
        """Return an array of texts."""
        return f"[{', '.join(map(self._literal_or_null, values))}]"

    def _literal_or_null(self, text: str | None) -> str:
        return "NULL" if text is None else self.literal(text)

    def rows_of(self, numbers: Iterable[int]) -> str:
        """Return a query for integers, one per row."""
        return f"SELECT unnest({self.integers(numbers)})"

    def keys(self, array: str, first: int, size: int, table: str) -> str:
        """Return a table of the elements of an array (level) and consecutive integers from `first` (place)."""
        return f"(SELECT unnest({array}) AS level, unnest(range({first}, {first + size})) AS place) AS {table}"

    # Cells as numbers and as values

    def as_number(self, sql: str, kind: pa.DataType) -> str | None:
        """Return cells of this Arrow type as doubles, as `as_numbers` converts them; None if SQL cannot."""
        kind = plain_type(kind)
        if pa.types.is_float64(kind):
            return sql
        if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            return self.as_double(sql)
        if pa.types.is_boolean(kind):
            return self.as_double(f"CAST({sql} AS INTEGER)")
        if pa.types.is_date32(kind):
            return self.as_double(self._days(sql))
        if pa.types.is_timestamp(kind):
            return self.days(self.microseconds(sql, kind.tz is not None))
        if kind == pa.time64("us"):
            return self.seconds(self.time_microseconds(sql))
        return None

    def as_value(self, sql: str, kind: pa.DataType) -> str | None:
        """Return cells in a form that is equal only for identical cells; None for nested types."""
        plain = plain_type(kind)
        if is_text(plain):
            return sql if pa.types.is_dictionary(kind) else self._bytewise(sql)
        numeric = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean)
        timed = (pa.types.is_date, pa.types.is_timestamp, pa.types.is_time)
        return sql if any(is_kind(plain) for is_kind in (*numeric, *timed)) else None

    def _bytewise(self, text: str) -> str:
        return f"(CAST({text} AS VARCHAR) COLLATE C)"

    def as_double(self, number: str) -> str:
        """Return a number as a double."""
        return f"CAST({number} AS {self.double})"

    def not_nan(self, number: str) -> str:
        """Return a double, NULL for NaN. NaN equals itself in all three engines."""
        return f"NULLIF({number}, {self.number(math.nan)})"

    def flag(self, cell: str) -> str:
        """Return true and false, or the numbers 1 and 0, as a double."""
        return self.as_double(cell)

    def days(self, microseconds: str) -> str:
        """Return microseconds as days."""
        return f"{self.as_double(microseconds)} / {self.number(DAY_MICROSECONDS)}"

    def seconds(self, microseconds: str) -> str:
        """Return microseconds as seconds."""
        return f"{self.as_double(microseconds)} / {self.number(SECOND_MICROSECONDS)}"

    def microseconds(self, moment: str, zoned: bool | None = None) -> str:
        """Return the microseconds of a timestamp since 1970.

        zoned: True if the timestamp has a time zone; None if only the engine knows. Then the cell may also be a date.
        """
        return f"epoch_us({moment})"

    def time_microseconds(self, time: str) -> str:
        """Return the microseconds of a time since midnight."""
        return f"epoch_us({time})"

    def _days(self, date: str) -> str:
        return f"CASE WHEN isfinite({date}) THEN {date} - DATE '1970-01-01' END"

    def part(self, cell: str, part: Part) -> str:
        """Return a part of a cell: of a text, or of a date in microseconds since 1970."""
        if part == "first word":
            return f"split_part({cell}, ' ', 1)"
        if part in PREFIX_LENGTHS:
            return f"left({cell}, {PREFIX_LENGTHS[part]})"
        return f"extract({DATE_FIELDS[part]} FROM {self._moment(cell)})"

    def _moment(self, microseconds: str) -> str:
        return f"make_timestamp({microseconds})"

    # Types known only to the engine

    def is_of(self, cell: str, *kinds: TypeKind) -> str:
        """Return a condition: the column has a type of one of these kinds. Engines evaluate it once."""
        return f"regexp_matches(typeof({cell}), '^({'|'.join(self.types[kind] for kind in kinds)})')"

    def is_not_number(self, cell: str, flag: bool) -> str:
        """Return a condition: a cell is not a number (or a flag); empty if a cast reports the column itself."""
        return ""

    def fail(self, message: str, seen: str, kind: str) -> str:
        """Return an expression of type `kind` that fails with a message when it is evaluated.

        seen: an expression of the row, without which engines may evaluate this before they read a row.
        """
        return f"CAST(error({self.literal(message)}) AS {kind})"

    # Arithmetic

    def is_whole(self, number: str) -> str:
        """Return a condition: a double has no fraction."""
        return f"{number} = floor({number})"

    def floor(self, number: str) -> str:
        """Return the largest integer not above a double, as a double."""
        return f"floor({number})"

    def scale(self, number: str, exponent: int) -> str:
        """Return a double times 2**exponent, exactly; no factor is too large."""
        steps = []
        while abs(exponent) > 1000:
            steps.append(math.copysign(600, exponent))
            exponent -= int(steps[-1])
        return number + "".join(f" * {self.number(2.0**step)}" for step in (*steps, exponent))

    def product(self, one: str, other: str) -> str:
        """Return the product of any two doubles; 0 if it underflows."""
        return f"{one} * {other}"

    def within(self, number: str, maximum: float) -> str:
        """Return a number whose products and squares do not overflow if its absolute value is at most `maximum`."""
        return number

    def nudge(self, distance: str, factor: float) -> str:
        """Return a distance whose square, after multiplication by a factor, does not underflow."""
        return distance

    def amount(self, number: str, maximum: float, factor: float) -> str:
        """Return a positive number, limited to `maximum`, that can be multiplied by a factor of this size."""
        return f"LEAST({number}, {self.number(maximum)})" if maximum < math.inf else number

    def cuts_below(self, number: str, cuts: Sequence[float], first: int) -> str:
        """Return first + the number of sorted cuts not above a number, found by bisection."""
        if not cuts:
            return str(first)
        half = len(cuts) // 2
        below = self.cuts_below(number, cuts[:half], first)
        above = self.cuts_below(number, cuts[half + 1 :], first + half + 1)
        return f"CASE WHEN {number} < {self.number(cuts[half])} THEN {below} ELSE {above} END"

    def digits(self, word: str, shift: int, mask: int) -> str:
        """Return some of the bits of a 64-bit integer, as an array index."""
        return f"(({word} >> {shift}) & {mask})"

    # Rows

    def whole_row(self, table: str) -> str:
        """Return all cells of a row as one value."""
        return table

    def expand(self, row: str) -> str:
        """Return the columns of such a value."""
        return f"{row}.*"


class PostgresDialect(Dialect):
    """PostgreSQL's dialect. Overflow and underflow of doubles are errors.

    It has no parallel plan for grouping sets. A subquery with its own WITH is not inlined and, unlike one with OFFSET,
    may run in parallel.
    """

    name = "PostgreSQL"
    max_name = 63
    nul = False
    double, text = "float8", "text"
    types: ClassVar[dict[TypeKind, str]] = {
        "flag": "bool",
        "number": "int2,int4,int8,numeric,float4,float8",
        "date": "date,timestamp,timestamptz",
        "time": "time,timetz,interval",
        "text": "text,varchar,bpchar",
    }
    max_grouping_sets = 1
    fence = "WITH fence AS (SELECT 1) "
    packs = True
    min_exponent = -700.0
    advice = "; run SET jit = off first: compiling the query takes longer than running it"

    def literal(self, text: str) -> str:
        """Return a text literal that is safe with and without standard_conforming_strings."""
        if "\0" in text:
            raise UsageError(f"the text {text[:60]!r} contains a NUL byte, which {self.name} does not support")
        written = super().literal(text)
        return f"E{written.replace(BACKSLASH, 2 * BACKSLASH)}" if BACKSLASH in text else written

    def number(self, value: float) -> str:
        shown = _exact(value) if math.isfinite(value) else _spell_nonfinite(value)
        return f"'{shown}'::float8"

    def _numbers(self, listed: str, kind: str) -> str:
        return f"'{{{listed}}}'::{kind}[]"

    def texts(self, values: Iterable[str | None]) -> str:
        return f"CAST(ARRAY[{', '.join(map(self._literal_or_null, values))}] AS text[])"

    def keys(self, array: str, first: int, size: int, table: str) -> str:
        numbered = f"unnest({array}) WITH ORDINALITY AS u (level, number)"
        return f"(SELECT level, CAST(number + {first - 1} AS integer) AS place FROM {numbered}) AS {table}"

    def _bytewise(self, text: str) -> str:
        return f'(CAST({text} AS text) COLLATE "C")'

    def flag(self, cell: str) -> str:
        """Return a flag or number as a double, by its text: booleans cannot be cast to double."""
        text = f"CAST({cell} AS text)"
        return f"CASE {text} WHEN 'true' THEN 1 WHEN 'false' THEN 0 ELSE CAST({text} AS float8) END"

    def microseconds(self, moment: str, zoned: bool | None = None) -> str:
        """Return microseconds from seconds as doubles, which are exact from 1684 to 2255 and fast.

        Cells of unknown type are exact; infinite ones are missing.
        """
        if zoned is None:
            exact = f"CAST(extract(epoch FROM {moment}) * 1000000 AS bigint)"
            return f"CASE WHEN isfinite({moment}) THEN {exact} END"
        return f"round(date_part('epoch', {moment}) * {self.number(SECOND_MICROSECONDS)})"

    def time_microseconds(self, time: str) -> str:
        return f"CAST({self.microseconds(time, zoned=False)} AS bigint)"

    def _moment(self, microseconds: str) -> str:
        return f"(TIMESTAMP '1970-01-01' + {microseconds} * INTERVAL '1 microsecond')"

    def is_of(self, cell: str, *kinds: TypeKind) -> str:
        return f"pg_typeof({cell}) = ANY('{{{','.join(self.types[kind] for kind in kinds)}}}'::regtype[])"

    def is_not_number(self, cell: str, flag: bool) -> str:
        """Return the condition: the error of a cast from text does not name the column."""
        words = "|true|false" if flag else ""
        readable = rf"^\s*([-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?|[-+]?inf|[-+]?infinity|nan{words})\s*$"
        return f"{self.is_of(cell, 'text')} AND CAST({cell} AS text) !~* {self.literal(readable)}"

    def fail(self, message: str, seen: str, kind: str) -> str:
        """Return an invalid cast, whose error message contains the text."""
        text = f"concat({self.literal(message)}, left(CAST({seen} AS text), 0))"
        return f"CAST(CAST(CAST({text} AS integer) AS text) AS {kind})"

    def scale(self, number: str, exponent: int) -> str:
        made = super().scale(number, exponent)
        if exponent >= 0:
            return made
        smallest = self.number(2.0 ** (-1075 - exponent))  # smaller numbers become 0
        return f"CASE WHEN abs({number}) > {smallest} THEN {made} ELSE {number} * 0 END"

    def product(self, one: str, other: str) -> str:
        """Return the product, with factors so small that it would underflow replaced by 0."""
        smallest = self.number(1.0 / float(TOO_LARGE))
        large = (f"(CASE WHEN abs({number}) < {smallest} THEN 0 ELSE {number} END)" for number in (one, other))
        return " * ".join(large)

    def within(self, number: str, maximum: float) -> str:
        """Return infinity for larger numbers: arithmetic with infinities does not overflow."""
        largest = self.number(min(maximum, 1e308))
        return f"CASE WHEN abs({number}) > {largest} THEN {self.number(math.inf)} ELSE {number} END"

    def nudge(self, distance: str, factor: float) -> str:
        """Add a constant so small that it changes only distances whose square would underflow."""
        return f"({distance} + {self.number(min(1e-150 / abs(factor), 1.0))})" if factor else distance

    def amount(self, number: str, maximum: float, factor: float) -> str:
        minimum, maximum = 1e-200, min(maximum, 1e300 / max(abs(factor), 1e-8))
        return f"LEAST(GREATEST({number}, {self.number(minimum)}), {self.number(maximum)})"

    def cuts_below(self, number: str, cuts: Sequence[float], first: int) -> str:
        return f"{first} + width_bucket({number}, {self.doubles(cuts)})" if cuts else str(first)

    def digits(self, word: str, shift: int, mask: int) -> str:
        return f"CAST(({word} >> {shift}) & {mask} AS integer)"

    def expand(self, row: str) -> str:
        return f"({row}).*"


class SparkDialect(Dialect):
    """Dialect of Spark SQL.

    The meaning of quotes and backslashes in literals depends on settings and version. Spark replaces ${name} by a
    setting before parsing, also within quotes. Instants are read in UTC, dates and local times unchanged. Floor returns
    a 64-bit integer, and fails beyond.
    """

    name = "Spark"
    quote = "`"
    first = 0
    text, timestamp = "STRING", "TIMESTAMP_NTZ"
    types: ClassVar[dict[TypeKind, str]] = {
        "flag": "boolean",
        "number": "tinyint|smallint|int|bigint|decimal|float|double",
        "date": "date|timestamp",
        "time": "time($|[^s])|interval",
        "text": "string|char|varchar",
    }
    max_factored = 16  # thirty columns need more than a driver's default memory of 1 GB
    advice = "; run SET spark.sql.subexpressionElimination.enabled = false first: it slows the query down"

    def identifier(self, name: str) -> str:
        if "${" in name:
            cause = f"the name {name[:60]!r} contains '${{', which Spark replaces by a setting"
            raise UsageError(cause, remedy="rename it")
        return super().identifier(name)

    def possible_name(self, name: str) -> str:
        return super().possible_name(name).replace("${", "$ {")

    def literal(self, text: str) -> str:
        if text.isprintable() and not set(text) & {"'", BACKSLASH, "$"}:
            return f"'{text}'"
        return f"decode(X'{text.encode().hex()}', 'UTF-8')"

    def number(self, value: float) -> str:
        return f"{_exact(value)}D" if math.isfinite(value) else f"double('{_spell_nonfinite(value)}')"

    def _numbers(self, listed: str, kind: str) -> str:
        return f"CAST(split('{listed}', ',') AS ARRAY<{kind}>)" if listed else f"CAST(array() AS ARRAY<{kind}>)"

    def texts(self, values: Iterable[str | None]) -> str:
        """Return an array of texts as JSON: thousands of literals would take long to parse."""
        return f"from_json({self.literal(json.dumps(list(values)))}, 'array<string>')"

    def rows_of(self, numbers: Iterable[int]) -> str:
        return f"SELECT explode({self.integers(numbers)})"

    def keys(self, array: str, first: int, size: int, table: str) -> str:
        spread = f"SELECT posexplode({array}) AS (number, level)"
        return f"(SELECT level, number + {first} AS place FROM ({spread})) AS {table}"

    def _bytewise(self, text: str) -> str:
        return text

    def microseconds(self, moment: str, zoned: bool | None = None) -> str:
        if zoned is not None:
            return f"unix_micros({moment})" if zoned else _local_microseconds(moment)
        local = _local_microseconds(f"CAST({moment} AS TIMESTAMP_NTZ)")
        instant = f"unix_micros(CAST({moment} AS TIMESTAMP))"
        return f"CASE WHEN typeof({moment}) = 'timestamp' THEN {instant} ELSE {local} END"

    def time_microseconds(self, time: str) -> str:
        return _local_microseconds(f"CAST(concat('1970-01-01 ', CAST({time} AS STRING)) AS TIMESTAMP_NTZ)")

    def _days(self, date: str) -> str:
        return f"unix_date({date})"

    def is_of(self, cell: str, *kinds: TypeKind) -> str:
        return f"typeof({cell}) RLIKE '^({'|'.join(self.types[kind] for kind in kinds)})'"

    def is_not_number(self, cell: str, flag: bool) -> str:
        """Return the condition: timestamps cast to seconds, and casts may turn invalid texts into NULL."""
        unreadable = f"{self.is_of(cell, 'text')} AND try_cast(CAST({cell} AS STRING) AS DOUBLE) IS NULL"
        return f"({self.is_of(cell, 'date', 'time')} OR {unreadable})"

    def fail(self, message: str, seen: str, kind: str) -> str:
        return f"CAST(raise_error({self.literal(message)}) AS {kind})"

    def is_whole(self, number: str) -> str:
        """Return the condition with rint, which returns a double."""
        return f"{number} = rint({number})"

    def floor(self, number: str) -> str:
        return self.as_double(f"floor({number})")

    def digits(self, word: str, shift: int, mask: int) -> str:
        return f"CAST(shiftright({word}, {shift}) & {mask} AS INT)"

    def whole_row(self, table: str) -> str:
        return f"struct({table}.*)"


def _local_microseconds(stamp: str) -> str:
    """Return the microseconds of a Spark timestamp without a time zone."""
    day = f"unix_date(CAST({stamp} AS DATE)) * 86400000000"
    seconds = f"hour({stamp}) * 3600 + minute({stamp}) * 60 + extract(SECOND FROM {stamp})"
    return f"({day} + CAST(({seconds}) * 1000000 AS BIGINT))"


def _exact(value: float) -> str:
    """Return a finite double with an exponent and all digits."""
    shown = repr(float(value))
    return shown if "e" in shown else f"{shown}e0"


def _spell_nonfinite(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


DUCKDB, POSTGRES, SPARK = Dialect(), PostgresDialect(), SparkDialect()

# Dialects by their public names.
DIALECTS: dict[str, Dialect] = {"duckdb": DUCKDB, "postgres": POSTGRES, "spark": SPARK}


def dialect_of(name: str) -> Dialect:
    """Return the dialect with this name; raise a UsageError that lists all names if it is unknown."""
    if name not in DIALECTS:
        raise UsageError(f"choose one of {', '.join(map(repr, DIALECTS))}", parameter=Argument("dialect", name))
    return DIALECTS[name]
