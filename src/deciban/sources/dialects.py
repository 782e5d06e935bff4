"""SQL as text, in the dialects of three engines: the one place where names and values are quoted."""

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass

from deciban.errors import Argument, UsageError


@dataclass(frozen=True)
class Dialect:
    """How an engine writes names, values and types.

    quote: the sign around names. double, text, integer, timestamp: the names of its types. nul: whether texts may hold
    NUL bytes. longest_name: the most bytes of a name. first: the number of the first element of an array.
    """

    name: str
    quote: str = '"'
    double: str = "DOUBLE"
    text: str = "VARCHAR"
    integer: str = "BIGINT"
    nul: bool = True
    timestamp: str = "TIMESTAMP"
    longest_name: int = 1 << 16
    first: int = 1

    def identifier(self, name: str) -> str:
        """A name as SQL writes it, whatever it holds; a UsageError where the engine can have no such name."""
        if not name or "\0" in name or len(name.encode()) > self.longest_name:
            problem = "is empty" if not name else "holds a NUL byte" if "\0" in name else "is too long"
            raise UsageError(f"the name {name[:60]!r} {problem} for {self.name}; rename it")
        return self.quoted(name)

    def quoted(self, name: str) -> str:
        """A name in quotes, as it is."""
        return self.quote + name.replace(self.quote, 2 * self.quote) + self.quote

    def possible_name(self, name: str) -> str:
        """The name, or one like it that `identifier` accepts whatever its length."""
        return name.replace("\0", "\ufffd")

    def qualified(self, name: str) -> str:
        """The name of a table, in which dots part the schema from the table: each part is quoted."""
        return ".".join(self.identifier(part) for part in name.split("."))

    def literal(self, text: str) -> str:
        """A text as SQL writes it; a UsageError where the engine can hold no such text."""
        if "\0" in text and not self.nul:
            raise UsageError(f"the text {text[:60]!r} holds a NUL byte, which {self.name} has no way to write")
        return "'" + text.replace("'", "''") + "'"

    def number(self, value: float) -> str:
        """A double, exactly: a bare 1.5 would be a decimal number."""
        return _exact(value) if math.isfinite(value) else f"CAST('{_named(value)}' AS {self.double})"

    def value(self, value: str | float | int) -> str:
        """A text, a double or a whole number."""
        if isinstance(value, str):
            return self.literal(value)
        return self.number(value) if isinstance(value, float) else f"CAST('{value}' AS {self.integer})"

    def doubles(self, values: Iterable[float]) -> str:
        """An array of doubles, exactly; `(array)[k]` is an element of it."""
        return self._numbers(_listed(values), self.double)

    def integers(self, values: Iterable[int]) -> str:
        """An array of whole numbers."""
        return self._numbers(",".join(map(str, values)), self.integer)

    def texts(self, values: Iterable[str | None]) -> str:
        """An array of texts."""
        return f"[{', '.join(map(self._literal_or_null, values))}]"

    def _literal_or_null(self, text: str | None) -> str:
        return "NULL" if text is None else self.literal(text)

    def _numbers(self, listed: str, kind: str) -> str:
        """An array of numbers as one text, which engines read faster than many numbers."""
        return f"CAST('[{listed}]' AS {kind}[])"

    def rows_of(self, numbers: Iterable[int]) -> str:
        """A query for whole numbers, one a row."""
        return f"SELECT unnest({self.integers(numbers)})"

    def is_whole(self, number: str) -> str:
        """Return a condition: a double has no fraction."""
        return f"{number} = floor({number})"


class DuckDbDialect(Dialect):
    """DuckDB; a NUL byte ends a statement there."""

    def literal(self, text: str) -> str:
        parts = [super(DuckDbDialect, self).literal(part) for part in text.split("\0")]
        return parts[0] if len(parts) == 1 else f"({' || chr(0) || '.join(parts)})"


class PostgresDialect(Dialect):
    """PostgreSQL, whether or not backslashes in plain literals are escapes there."""

    def literal(self, text: str) -> str:
        written = super().literal(text)
        return f"E{written.replace(BACKSLASH, 2 * BACKSLASH)}" if BACKSLASH in text else written

    def number(self, value: float) -> str:
        shown = _exact(value) if math.isfinite(value) else _named(value)
        return f"'{shown}'::float8"

    def texts(self, values: Iterable[str | None]) -> str:
        return f"CAST(ARRAY[{', '.join(map(self._literal_or_null, values))}] AS text[])"

    def _numbers(self, listed: str, kind: str) -> str:
        return f"'{{{listed}}}'::{kind}[]"


class SparkDialect(Dialect):
    """Spark SQL, in which what a quote or a backslash means in a literal depends on settings and on the version.

    It replaces ${name} by the value of a setting before it parses a statement, within quotes too.
    """

    def identifier(self, name: str) -> str:
        if "${" in name:
            raise UsageError(f"the name {name[:60]!r} holds '${{', which Spark replaces by a setting; rename it")
        return super().identifier(name)

    def possible_name(self, name: str) -> str:
        return super().possible_name(name).replace("${", "$ {")

    def literal(self, text: str) -> str:
        if text.isprintable() and not set(text) & {"'", BACKSLASH, "$"}:
            return f"'{text}'"
        return f"decode(X'{text.encode().hex()}', 'UTF-8')"

    def number(self, value: float) -> str:
        return f"{_exact(value)}D" if math.isfinite(value) else f"double('{_named(value)}')"

    def texts(self, values: Iterable[str | None]) -> str:
        """As JSON: thousands of literals would take long to be read."""
        return f"from_json({self.literal(json.dumps(list(values)))}, 'array<string>')"

    def _numbers(self, listed: str, kind: str) -> str:
        return f"CAST(split('{listed}', ',') AS ARRAY<{kind}>)" if listed else f"CAST(array() AS ARRAY<{kind}>)"

    def rows_of(self, numbers: Iterable[int]) -> str:
        return f"SELECT explode({self.integers(numbers)})"

    def is_whole(self, number: str) -> str:
        """By rint, which is a double: floor is a whole number of 64 bits there, and an error beyond."""
        return f"{number} = rint({number})"


BACKSLASH = "\\"

DUCKDB = DuckDbDialect("DuckDB")
POSTGRES = PostgresDialect("PostgreSQL", double="float8", text="text", nul=False, longest_name=63)
SPARK = SparkDialect("Spark", quote="`", text="STRING", timestamp="TIMESTAMP_NTZ", first=0)

# The dialects by the names that users give.
DIALECTS: dict[str, Dialect] = {"duckdb": DUCKDB, "postgres": POSTGRES, "spark": SPARK}


def dialect_of(name: str) -> Dialect:
    """The dialect of a name; a UsageError that lists them where there is none."""
    if name not in DIALECTS:
        raise UsageError(f"choose one of {', '.join(map(repr, DIALECTS))}", parameter=Argument("dialect", name))
    return DIALECTS[name]


def _exact(value: float) -> str:
    """A finite double with an exponent, and as many digits as tell it from all others."""
    shown = repr(float(value))
    return shown if "e" in shown else f"{shown}e0"


def _listed(values: Iterable[float]) -> str:
    """Doubles within the text of an array."""
    return ",".join(repr(float(value)) if math.isfinite(value) else _named(value) for value in values)


def _named(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
