"""Warnings about columns that were probably read in another way than intended, with the option that reads them so."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from deciban.errors import Argument, Message
from deciban.schema.schema import LooksLike, LooksLikeKind, Schema
from deciban.sources.duckdb import DuckDbSource, keywords, list_of, literal, quote_name
from deciban.sources.open import ENDINGS
from deciban.sources.query import QueryRead
from deciban.sources.streams import FIRST_ROWS, Examples, LabeledStream
from deciban.sources.temporary import STANDARD_INPUT
from deciban.tables.cells import as_numbers
from deciban.tables.table import Frame
from deciban.util.text_tables import list_names

# SQL expressions that read the numbers and dates in texts.
AS_NUMBER = "try_cast({} as double)"
AS_DECIMAL_COMMA = "try_cast(replace({}, ',', '.') as double)"
WITHOUT_POINTS = "try_cast(replace(replace({}, '.', ''), ',', '.') as double)"

# Numbers with units: parentheses are a minus sign, thousands separators are removed.
AS_AMOUNT = (
    "try_cast(regexp_extract(regexp_replace(translate({{}}, '{}', '{}'), '[^-+.0-9]', '', 'g'), "
    "'[-+]?[0-9]*[.]?[0-9]+') as double)"
)
AS_AMOUNT_WITH_POINT = AS_AMOUNT.format("(,", "-")
AS_AMOUNT_WITH_COMMA = AS_AMOUNT.format("(,.", "-.")

# Other readings of text columns, in the order of the warnings.
LOOKS_LIKE_OTHER: tuple[LooksLikeKind, ...] = ("numbers", "units", "thousands", "dates")

# Dates in order: at least this many distinct ones, and at most this share of steps back.
MIN_DATES = 20
MAX_STEPS_BACK = 0.01

# Start of the warning about rows in the order of time.
IN_ORDER = "the rows are in the order of "

# Columns that a message lists.
MAX_COLUMNS_LISTED = 5


@dataclass(frozen=True)
class Reading:
    """Origin of cells, which decides how they can be read in another way.

    as_text: True if the options for cells of text files apply.
    options: True if the other options of `scan` apply.
    sql: the table in a FROM clause; empty if it cannot be queried by "sql: ...".
    database: True if the rows are a query of a database.
    """

    as_text: bool = True
    options: bool = True
    sql: str = "TABLE"
    database: bool = False

    @classmethod
    def of(cls, examples: Examples) -> "Reading":
        """Return where labeled rows were read from."""
        if not isinstance(examples, LabeledStream):
            return cls(False, False, "")
        stream = examples.stream
        as_text = not stream.typed
        if isinstance(stream, DuckDbSource) and isinstance(read := stream.reads[0], QueryRead):
            return cls(as_text, sql=f"({read.query})")
        if not stream.files:
            return cls(as_text, sql="", database=True)
        if STANDARD_INPUT in stream.inputs:
            return cls(as_text)
        if any(name.lower().endswith(ENDINGS["excel"]) for name in stream.inputs):
            return cls(as_text, sql="")
        return cls(as_text, sql=literal(stream.name if len(stream.files) == 1 else str(stream.files[0])))


def find_date_orders(examples: Examples) -> dict[str, int]:
    """Return for each column of dates 1 if the rows are in its order, -1 if the latest come first, 0 otherwise.

    Of a file, the first rows are examined. Rows without an order of their own have no such columns.
    """
    if isinstance(examples, LabeledStream):
        stream = examples.stream
        dates = any(stream.looks_like(name) == "TIMESTAMP" for name in examples.names)
        table = stream.head(FIRST_ROWS) if dates and stream.in_order else pa.table({})
    else:
        table = examples.table.table if isinstance(examples.table, Frame) else pa.table({})
    orders = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if not pa.types.is_temporal(column.type) or pa.types.is_time(column.type) or pa.types.is_duration(column.type):
            continue
        steps = np.diff(as_numbers(column.drop_null().combine_chunks()))
        forward, back = (int(np.count_nonzero(sign * steps > 0.0)) for sign in (1, -1))
        few = MAX_STEPS_BACK * steps.size
        enough = forward + back >= MIN_DATES
        orders[name] = (1 if back <= few else -1 if forward <= few else 0) if enough else 0
    return orders


def list_order_remarks(examples: Examples) -> Iterator[Message]:
    """Yield a warning if the rows are in the order of a column of dates: random splits then flatter the metrics."""
    if name := next((name for name, order in find_date_orders(examples).items() if order), None):
        flattered = ", so metrics of a random split are too optimistic; to test on later rows, evaluate with "
        yield f"{IN_ORDER}{name!r}{flattered}", Argument("hold_out_last", 0.2)


def list_last_rows_remarks(examples: Examples) -> Iterator[Message]:
    """Yield a warning if there are dates, but the last rows are not the latest ones."""
    orders = find_date_orders(examples)
    if 1 in orders.values():
        return
    for name, order in orders.items():
        cause = "from late to early, so the last rows are the earliest" if order else "not sorted"
        yield f"by {name!r}, the rows are {cause}; sort them by {name!r} first"
        return


def list_remarks(schema: Schema, reading: Reading) -> Iterator[Message]:
    """Yield a warning for each column that looks like an identifier, or like numbers or dates that were read as text.

    If SQL can read some of them, the last message has the query.
    """
    for name in schema.columns_like("identifier"):
        yield f"column {name!r} looks like an identifier; use ", Argument("ignore", name), " to leave it out"
    expressions: dict[str, str] = {}
    for kind in LOOKS_LIKE_OTHER:
        for name, meant in schema.columns_like(kind).items():
            remedy = _advise_option(name, meant, reading)
            if not remedy and reading.options and (reading.sql or reading.database):
                expressions[name] = _sql_expression(meant)
            elif not remedy:
                remedy = (f"; convert it to {'dates' if kind == 'dates' else 'numbers'}",)
            yield f"column {name!r} {meant}, but was read as text", *remedy
    if expressions:
        query = ("casts in ", Argument("query")) if reading.database else (_write_query(expressions, reading.sql),)
        yield f"to read {list_names(list(expressions), MAX_COLUMNS_LISTED)} as numbers or dates, use ", *query


def _advise_option(name: str, meant: LooksLike, reading: Reading) -> tuple[str | Argument, ...]:
    """Return advice on the option that reads a column as intended; empty if there is no such option."""
    noun = "dates" if meant.kind == "dates" else "numbers"
    read = f" to read it as {noun}"
    if not reading.options:
        return ()
    plain = meant.detail is None and meant.exception is None and not meant.decimal_comma
    if meant.kind in ("numbers", "dates") and plain:
        return "; use ", Argument("types", {name: noun.removesuffix("s")}), read
    if not reading.as_text or meant.kind == "units" or (meant.kind == "numbers" and meant.decimal_comma):
        return ()
    if meant.kind == "thousands":
        return "; use ", Argument("thousands", meant.detail), read
    missing = () if meant.unreadable is None else (Argument("missing", meant.unreadable),)
    if meant.kind == "numbers" or meant.detail is None:
        return "; use ", *missing, " to treat such cells as missing"
    return "; use ", Argument("date_format", meant.detail), *(part for one in missing for part in (" and ", one)), read


def _sql_expression(meant: LooksLike) -> str:
    """Return the SQL expression that reads a text column as numbers or dates."""
    if meant.kind == "numbers":
        return AS_DECIMAL_COMMA if meant.decimal_comma else AS_NUMBER
    if meant.kind == "units":
        return AS_AMOUNT_WITH_COMMA if meant.decimal_comma else AS_AMOUNT_WITH_POINT
    if meant.kind == "dates":
        formats = [*meant.formats, "%Y-%m-%d"]
        return f"try_strptime({{}}, {list_of(formats) if len(formats) > 2 else literal(formats[0])})"
    if meant.detail == ".":
        return WITHOUT_POINTS
    return f"try_cast(replace({{}}, {literal(meant.detail or '')}, '') as double)"


def _write_query(expressions: Mapping[str, str], table: str) -> Argument:
    """Return a query, as rows of a call, in which these columns are numbers or dates."""
    columns = []
    for name, expression in expressions.items():
        plain = re.fullmatch(r"[A-Za-z_]\w*", name) and name.lower() not in keywords()
        column = name if plain else quote_name(name)
        columns.append(f"{expression.format(column)} as {column}")
    return Argument("X", f"sql: select * replace ({', '.join(columns)}) from {table}")
