"""Warnings about columns that were probably read in another way than intended, with the option that reads them so."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from deciban.errors import Argument, DecibanError, Message
from deciban.schema.schema import LooksLike, LooksLikeKind, Schema
from deciban.sources.csv import CsvSource
from deciban.sources.duckdb import DuckDbSource, column_types, keywords, list_of, literal, quote_name
from deciban.sources.open import ENDINGS
from deciban.sources.query import QueryRead
from deciban.sources.streams import FIRST_ROWS, Examples, LabeledStream
from deciban.sources.temporary import STANDARD_INPUT
from deciban.tables.cells import COMPACT_DATE, FORMAT_SEPARATOR, CellFormat, as_numbers, is_moment
from deciban.tables.table import Frame
from deciban.util.text_tables import list_names

# SQL expressions that read the numbers and dates in texts. The argument of a cast is an expression: DuckDB reads
# columns of CSV files that are cast themselves as the type of the cast, and raises an error for other cells.
AS_NUMBER = "try_cast(trim({}) as double)"
AS_DECIMAL_COMMA = "try_cast(replace({}, ',', '.') as double)"
WITHOUT_POINTS = "try_cast(replace(replace({}, '.', ''), ',', '.') as double)"

# Numbers with units: parentheses are a minus sign, thousands separators are removed.
AS_AMOUNT = (
    "try_cast(regexp_extract(regexp_replace(translate({{}}, '{}', '{}'), '[^-+.0-9]', '', 'g'), "
    "'[-+]?[0-9]*[.]?[0-9]+') as double)"
)
AS_AMOUNT_WITH_POINT = AS_AMOUNT.format("(,", "-")
AS_AMOUNT_WITH_COMMA = AS_AMOUNT.format("(,.", "-.")

# Dates in ISO 8601, and in other formats too. In a query, DuckDB reads some columns of CSV files as dates.
AS_ISO_DATE = "try_cast(trim(cast({0} as varchar)) as timestamp)"
AS_COMPACT_DATE = f"try_strptime(cast({{0}} as varchar), {literal(COMPACT_DATE)})"
AS_DATE = "coalesce(try_strptime(cast({{0}} as varchar), {}), try_cast({{0}} as timestamp))"

# Other readings of text columns, in the order of the warnings.
LOOKS_LIKE_OTHER: tuple[LooksLikeKind, ...] = ("numbers", "units", "thousands", "dates")

# What several columns of a kind look like, if their details differ.
LOOK_LIKE: dict[LooksLikeKind, str] = {
    "numbers": "look like numbers",
    "units": "look like numbers with units",
    "thousands": "look like numbers with thousands separators",
    "dates": "look like dates",
}

# Dates in order: at least this many distinct ones, and at most this share of steps back.
MIN_DATES = 20
MAX_STEPS_BACK = 0.01

# Start of the warning about rows in the order of time.
IN_ORDER = "the rows are in the order of "

# Maximum number of columns that a message lists.
MAX_COLUMNS_LISTED = 5


@dataclass(frozen=True)
class Reading:
    """Origin of cells, which decides how they can be read in another way.

    as_text: True if the options for cells of text files apply.
    options: True if the other options of `scan` apply.
    sql: the table in a FROM clause; empty if it cannot be queried by "sql: ...".
    database: True if the rows are a query of a database.
    formats: formats of the columns of a CSV file that are read as numbers or dates.
    name: the file, as Python writes it; "…" if there is not exactly one.
    """

    as_text: bool = True
    options: bool = True
    sql: str = "TABLE"
    database: bool = False
    formats: Mapping[str, CellFormat] = field(default_factory=dict)
    name: str = "…"

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
        called = repr(stream.name) if len(stream.files) == 1 else "…"
        if any(name.lower().endswith(ENDINGS["excel"]) for name in stream.inputs):
            return cls(as_text, sql="", name=called)
        formats = stream.formats if isinstance(stream, CsvSource) else {}
        sql = literal(stream.name if len(stream.files) == 1 else str(stream.files[0]))
        return cls(as_text, sql=sql, formats=formats, name=called)


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
        if not is_moment(column.type):
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
    """Yield warnings about columns that look like identifiers, or like numbers or dates that were read as text.

    There is one for each kind, with options that can be given together. If some columns need a query, options do not
    apply to it: the last message then has a query that reads all of them.
    """
    if names := list(schema.columns_like("identifier")):
        what, them = ("looks like an identifier", "it") if len(names) == 1 else ("look like identifiers", "them")
        ignore = Argument("ignore", names[0] if len(names) == 1 else names, f"deciban.scan({reading.name}, ")
        leave_out = ("use ", ignore, f" to leave {them} out") if reading.options else (f"drop {them}",)
        yield f"{_list_columns(names)} {what}; ", *leave_out
    found = {kind: schema.columns_like(kind) for kind in LOOKS_LIKE_OTHER}
    found["dates"] = _settle_orders(found["dates"])
    others = {name: meant for columns in found.values() for name, meant in columns.items()}
    by_query = (
        bool(reading.sql or reading.database)
        and reading.options
        and not all(_has_option(meant, reading, others.values()) for meant in others.values())
    )
    for kind, columns in found.items():
        able = {name: meant for name, meant in columns.items() if _has_option(meant, reading, others.values())}
        unable = {name: meant for name, meant in columns.items() if name not in able}
        for group in (columns,) if by_query else (able, unable):
            if group:
                remedy = () if by_query else _advise(kind, group) if group is able else _advise_conversion(kind, group)
                yield f"{_describe(kind, group)}, but {_was(group)} read as {_list_types(group)}", *remedy
    if by_query:
        nouns = dict.fromkeys("dates" if meant.kind == "dates" else "numbers" for meant in others.values())
        query = Argument("query") if reading.database else _write_query(others, reading, schema.names or ())
        yield (
            f"to read {list_names(list(others), MAX_COLUMNS_LISTED)} as {' and '.join(nouns)}, use ",
            *(["casts in "] if reading.database else []),
            query,
        )


def _settle_orders(dates: Mapping[str, LooksLike]) -> dict[str, LooksLike]:
    """Return columns of dates; one whose days and months are ambiguous is read like another one, if there is any."""
    sure = {form for meant in dates.values() if meant.otherwise is None for form in meant.formats}
    return {
        name: replace(meant, detail=meant.otherwise, otherwise=None)
        if meant.otherwise is not None and not sure.isdisjoint(meant.otherwise.split(FORMAT_SEPARATOR))
        else meant
        for name, meant in dates.items()
    }


def _has_option(meant: LooksLike, reading: Reading, others: Collection[LooksLike]) -> bool:
    """Return True if options read a column as intended, together with those for the other columns."""
    if not reading.options:
        return False
    if meant.kind in ("numbers", "dates") and _is_plain(meant):
        return True
    if not reading.as_text or meant.kind == "units" or (meant.kind == "numbers" and meant.decimal_comma):
        return False
    if meant.kind == "thousands":
        return len({other.detail for other in others if other.kind == "thousands"}) == 1
    known = {form for other in others for form in other.formats}
    return not any(_swap(form) in known for form in meant.formats)


def _swap(form: str) -> str | None:
    """Return the format with day and month exchanged; None if it is the same."""
    swapped = form.translate(str.maketrans("dm", "md"))
    return None if swapped == form else swapped


def _is_plain(meant: LooksLike) -> bool:
    """Return True if all cells are numbers or dates that the type of the column reads."""
    return meant.detail is None and meant.exception is None and not meant.decimal_comma


def _advise(kind: LooksLikeKind, columns: Mapping[str, LooksLike]) -> tuple[str | Argument, ...]:
    """Return advice on the options that read columns of one kind as intended."""
    noun = "dates" if kind == "dates" else "numbers"
    options = []
    if plain := [name for name, meant in columns.items() if _is_plain(meant)]:
        options.append(Argument("types", dict.fromkeys(plain, noun.removesuffix("s"))))
    if kind == "thousands":
        options.append(Argument("thousands", next(iter(columns.values())).detail))
    if formats := dict.fromkeys(form for meant in columns.values() for form in meant.formats):
        options.append(Argument("date_format", FORMAT_SEPARATOR.join(formats)))
    only_missing = not options
    unreadable = dict.fromkeys(meant.unreadable for meant in columns.values() if kind != "thousands")
    if words := [word for word in unreadable if word is not None]:
        options.append(Argument("missing", words[0] if len(words) == 1 else words))
    parts = [part for option in options for part in (" and ", option)][1:]
    them = "it" if len(columns) == 1 else "them"
    return "; use ", *parts, " to treat such cells as missing" if only_missing else f" to read {them} as {noun}"


def _advise_conversion(kind: LooksLikeKind, columns: Mapping[str, LooksLike]) -> tuple[str, ...]:
    """Return advice for columns that no option reads as intended."""
    return (f"; convert {'it' if len(columns) == 1 else 'them'} to {'dates' if kind == 'dates' else 'numbers'}",)


def _list_columns(names: Sequence[str]) -> str:
    """Return the names for the beginning of a message."""
    noun = "column" if len(names) == 1 else "columns"
    return f"{noun} {list_names(names, MAX_COLUMNS_LISTED)}"


def _describe(kind: LooksLikeKind, columns: Mapping[str, LooksLike]) -> str:
    """Return what columns of one kind look like."""
    first, *rest = map(str, columns.values())
    what = first if not rest else first.replace("looks", "look", 1) if {first} == set(rest) else LOOK_LIKE[kind]
    return f"{_list_columns(list(columns))} {what}"


def _was(columns: Mapping[str, LooksLike]) -> str:
    return "was" if len(columns) == 1 else "were"


def _list_types(columns: Mapping[str, LooksLike]) -> str:
    """Return the types that the columns were read as."""
    return " or ".join(sorted({"numbers" if meant.detail == COMPACT_DATE else "text" for meant in columns.values()}))


def _sql_expression(meant: LooksLike) -> str:
    """Return the SQL expression that reads a text column as numbers or dates."""
    if meant.kind == "numbers":
        return AS_DECIMAL_COMMA if meant.decimal_comma else AS_NUMBER
    if meant.kind == "units":
        return AS_AMOUNT_WITH_COMMA if meant.decimal_comma else AS_AMOUNT_WITH_POINT
    if meant.kind == "dates":
        forms = meant.formats
        if forms == [COMPACT_DATE]:
            return AS_COMPACT_DATE  # a number cannot be cast to a timestamp
        return AS_DATE.format(list_of(forms) if len(forms) > 1 else literal(forms[0])) if forms else AS_ISO_DATE
    if meant.detail == ".":
        return WITHOUT_POINTS
    return f"try_cast(replace({{0}}, {literal(meant.detail or '')}, '') as double)"


def _written_expression(form: CellFormat) -> str:
    """Return the SQL expression that converts the cells of a CSV file as they were read."""
    if form.kind == "TIMESTAMP":
        return _sql_expression(LooksLike("dates", form.date_format or None))
    if form.thousands:
        return _sql_expression(LooksLike("thousands", form.thousands))
    return _sql_expression(LooksLike("numbers", decimal_comma=form.decimal == ","))


def _write_query(others: Mapping[str, LooksLike], reading: Reading, names: Sequence[str]) -> Argument:
    """Return a query, as rows of a call, in which these columns are numbers or dates, as those read with options are.

    Columns without a name in a CSV file are renamed to their name here, except for those that are converted.
    """
    expressions = {name: _sql_expression(meant) for name, meant in others.items()}
    theirs = {}
    if reading.formats or any(re.fullmatch(r"column\d+", name) for name in names):
        with suppress(DecibanError):
            theirs = column_types(f"select * from {reading.sql}", reading.sql)
    digits = len(str(len(theirs) - 1))
    called = {f"column{i + 1}": f"column{i:0{digits}}" for i in range(len(theirs))}
    unnamed = {name: there for name, there in called.items() if name in names and there in theirs and name != there}
    for name, form in reading.formats.items():
        if name not in expressions and theirs.get(unnamed.get(name, name)) == "VARCHAR":
            expressions[name] = _written_expression(form)
    columns = []
    for name, expression in expressions.items():
        name = unnamed.get(name, name)
        plain = re.fullmatch(r"[A-Za-z_]\w*", name) and name.lower() not in keywords()
        column = name if plain else quote_name(name)
        columns.append(f"{expression.format(column)} as {column}")
    renamed = [f"{there} as {name}" for name, there in unnamed.items() if name not in expressions]
    rename = f" rename ({', '.join(renamed)})" if renamed else ""
    return Argument("X", f"sql: select * replace ({', '.join(columns)}){rename} from {reading.sql}")
