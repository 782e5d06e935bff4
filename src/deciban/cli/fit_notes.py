"""Notes after a fit: suspicious columns and classes, and the accuracy of the model."""

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from deciban.cli.output import list_first, notify
from deciban.sources.addresses import is_address

if TYPE_CHECKING:
    from deciban.model.fitted import Fitted
    from deciban.schema.schema import LooksLike, LooksLikeKind
    from deciban.sources.source import Source


# SQL expressions that read the numbers and dates in texts.
AS_NUMBER = "try_cast({} as double)"
AS_FIRST_NUMBER = "try_cast(regexp_extract(replace({}, ',', ''), '[-+]?[0-9]*[.]?[0-9]+') as double)"
AS_FIRST_NUMBER_WITH_COMMA = "try_cast(regexp_extract(replace({}, ',', '.'), '[-+]?[0-9]*[.]?[0-9]+') as double)"
AS_DECIMAL_COMMA = "try_cast(replace({}, ',', '.') as double)"
WITHOUT_POINTS = "try_cast(replace(replace({}, '.', ''), ',', '.') as double)"

# Other readings of text columns, in the order of the warnings.
LOOKS_LIKE_OTHER: tuple["LooksLikeKind", ...] = ("numbers", "units", "thousands", "dates")


def warn_about_model(
    fitted: "Fitted", table: Sequence[str] = (), typed: bool = False, identifiers: bool = True
) -> None:
    """Warn about classes and columns that were probably read in another way than intended.

    typed: True if the table is not a CSV file, so that the options for CSV cells do not apply. identifiers: False if
    the library has already warned about these.
    """
    if fitted.classes.size == 1:
        notify("warning", f"only one class, {fitted.classes.tolist()[0]!r}: it will always be predicted")
    schema = fitted.counts.schema.plain
    for name in schema.columns_like("identifier") if identifiers else ():
        notify(
            "warning", f"column {name!r} looks like an identifier; use {quote_option('--ignore', name)} to leave it out"
        )
    if not any(schema.looks_like or ()):
        return
    expressions = {}
    for kind in LOOKS_LIKE_OTHER:
        for name, meant in schema.columns_like(kind).items():
            remedy = _advise_option(name, meant, typed)
            if not remedy and (expression := _sql_expression(meant)):
                expressions[name] = expression
            notify("warning", f"column {name!r} {meant}, but was read as text{remedy}")
    if expressions:
        query = "casts in --query" if table and is_address(table[0]) else _write_query(expressions, table)
        notify("warning", f"to read {list_first(list(expressions))} as numbers or dates, use {query}")


def note_missing_words(source: "Source", target: str | None) -> None:
    """Print a note for each column with words that are read as missing cells."""
    for name, note in source.notes.items():
        if name != target:
            notify(
                "note", f"column {name!r}: {note}; use {quote_option('--type', f'{name}=text')} to keep them as text"
            )


def quote_option(flag: str, value: str) -> str:
    """Return an option and its value, quoted for the shell."""
    return f"{flag} {shlex.quote(value)}"


def _advise_option(name: str, meant: "LooksLike", typed: bool) -> str:
    """Return advice on the option that reads a column as intended; empty if there is no such option."""
    if meant.kind == "numbers" and meant.detail is None and not meant.decimal_comma:
        return f"; use {quote_option('--type', f'{name}=number')} to read it as numbers"
    if typed or meant.detail is None or meant.kind == "units":
        return ""
    if meant.kind == "numbers":
        return f"; use {quote_option('--missing', meant.detail)} to treat such cells as missing"
    if meant.kind == "dates":
        return f"; use {quote_option('--date-format', meant.detail)} to read it as dates"
    return f"; use {quote_option('--thousands', meant.detail)} to read it as numbers"


def _sql_expression(meant: "LooksLike") -> str:
    """Return the SQL expression that reads a text column as numbers or dates; empty if the format is unknown."""
    if meant.kind == "numbers":
        return AS_DECIMAL_COMMA if meant.decimal_comma else AS_NUMBER
    if meant.kind == "units":
        return AS_FIRST_NUMBER_WITH_COMMA if meant.decimal_comma else AS_FIRST_NUMBER
    if meant.detail is None:
        return ""
    if meant.kind == "dates":
        return f"try_strptime({{}}, '{meant.detail}')"
    sign = meant.detail.replace("'", "''")
    return WITHOUT_POINTS if sign == "." else f"try_cast(replace({{}}, '{sign}', '') as double)"


def _quote_column(name: str) -> str:
    """Return the name of a column in SQL, quoted if necessary."""
    from deciban.sources.duckdb import keywords, quote_name

    plain = re.fullmatch(r"[A-Za-z_]\w*", name) and name.lower() not in keywords()
    return name if plain else quote_name(name)


def _write_query(expressions: Mapping[str, str], table: Sequence[str]) -> str:
    """Return a query, as a TABLE argument, in which these columns are numbers or dates."""
    from deciban.sources.query import SQL

    columns = []
    for name, expression in expressions.items():
        column = _quote_column(name)
        columns.append(f"{expression.format(column)} as {column}")
    source = table[0] if table else "TABLE"
    if source.startswith(SQL):
        source = f"({source.removeprefix(SQL).strip().rstrip(';')})"
    else:
        source = "'" + source.replace("'", "''") + "'"
    return '"' + re.sub(r'([\\"$`])', r"\\\1", f"sql: select * replace ({', '.join(columns)}) from {source}") + '"'


# Advice if the rows of a model have changed since it was tuned.
RETUNE = "to update it, run deciban learn --retune with more rows, or fit again"


def describe_tuning(fitted: "Fitted", correction_seconds: float | None = None) -> str:
    """Describe the tuning in one line: rows, accuracy and log-loss, and the accuracy of the most frequent class."""
    return "plain Bayes" if fitted.tuning is None else fitted.tuning.describe(fitted.counts, correction_seconds)
