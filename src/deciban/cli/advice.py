"""What is probably not meant as it stands, each with the remedy."""

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from deciban.cli.common import complain, few

if TYPE_CHECKING:
    from deciban.files.stream import Source
    from deciban.fitted import Fitted
    from deciban.schema.schema import LooksLike

# A table that is a query begins so.
SQL = "sql:"

WORD_AMONG_NUMBERS = r"but for cells like ('.*'|\".*\")$"

# How SQL reads the numbers and dates in texts.
NUMBER = "try_cast({} as double)"
FIRST_NUMBER = "try_cast(regexp_extract(replace({}, ',', ''), '[-+]?[0-9]*[.]?[0-9]+') as double)"
FIRST_NUMBER_WITH_COMMA = "try_cast(regexp_extract(replace({}, ',', '.'), '[-+]?[0-9]*[.]?[0-9]+') as double)"
DECIMAL_COMMA = "try_cast(replace({}, ',', '.') as double)"
POINTS_BETWEEN = "try_cast(replace(replace({}, '.', ''), ',', '.') as double)"

# Columns of text that are probably meant as numbers.
NUMBERS: tuple["LooksLike", ...] = ("numbers", "units", "thousands")


def warn_of_model(fitted: "Fitted", table: Sequence[str] = (), typed: bool = False) -> None:
    """Say what is strange about classes and columns of a model that has learned this table.

    typed: it is no CSV file, for which alone there are options that say how its cells are written.
    """
    if fitted.classes.size == 1:
        complain("warning", f"there is only one class, {fitted.classes.tolist()[0]!r}: it will always be predicted")
    schema = fitted.counts.schema.plain
    for name in schema.columns_like("identifier"):
        complain("warning", f"column {name!r} looks like an identifier; {option('--ignore', name)} leaves it out")
    if not any(schema.looks_like or ()):
        return
    reasons = {name: why for name, _, why in schema.rows()}
    expressions = {}
    for looks in (*NUMBERS, "dates"):
        for name in schema.columns_like(looks):
            remedy = _remedy(name, reasons[name], typed)
            if not remedy:
                expressions[name] = _expression(reasons[name])
            complain("warning", f"column {name!r} is {reasons[name]}, and taken for categories{remedy}")
    if expressions:
        complain("warning", f"read {few(list(expressions))} as meant by {_query(expressions, table)}")


def tell_markers(source: "Source", target: str | None) -> None:
    """Say which words of a file are read as missing cells."""
    for name, note in source.notes.items():
        if name != target:
            complain("note", f"column {name!r}: {note}; {option('--type', f'{name}=text')} takes them as they are")


def option(flag: str, value: str) -> str:
    """An option as a shell takes it."""
    return f"{flag} {shlex.quote(value)}"


def _remedy(name: str, why: str, typed: bool) -> str:
    """The option that reads a column as it is meant; nothing where there is none."""
    written = re.search(r", (numbers with thousands|dates) written (.*)$", why)
    word = re.search(WORD_AMONG_NUMBERS, why)
    if why.endswith(", numbers written as text"):
        return f"; {option('--type', f'{name}=number')} reads them as numbers"
    if typed or not (written or word):
        return ""
    if word:
        return f"; {option('--missing', word[1][1:-1])} takes such cells as missing"
    assert written, "one of both is there"
    if written[1] == "dates":
        return f"; {option('--date-format', written[2])} reads them"
    return f"; {option('--thousands', written[2][1:-1])} reads them"


def _expression(why: str) -> str:
    """How SQL reads a column that is such text."""
    if why.endswith(", numbers with decimal commas"):
        return DECIMAL_COMMA
    if re.search(WORD_AMONG_NUMBERS, why):
        return NUMBER
    if form := re.search(r", dates written (.*)$", why):
        return f"try_strptime({{}}, '{form[1]}')"
    if sign := re.search(r", numbers with thousands written (.*)$", why):
        apart = sign[1][1:-1].replace("'", "''")
        return POINTS_BETWEEN if apart == "." else f"try_cast(replace({{}}, '{apart}', '') as double)"
    return FIRST_NUMBER_WITH_COMMA if re.search(r"\d,\d{1,2}(?!\d)", why) else FIRST_NUMBER


def _column(name: str) -> str:
    """A column as SQL writes it, in quotes where it needs them."""
    import duckdb

    words = {word for (word,) in duckdb.execute("SELECT keyword_name FROM duckdb_keywords()").fetchall()}
    plain = re.fullmatch(r"[A-Za-z_]\w*", name) and name.lower() not in words
    return name if plain else '"' + name.replace('"', '""') + '"'


def _query(expressions: Mapping[str, str], table: Sequence[str]) -> str:
    """A table to give instead, in which these columns are numbers or dates."""
    made = []
    for name, expression in expressions.items():
        column = _column(name)
        made.append(f"{expression.format(column)} as {column}")
    source = table[0] if table else "TABLE"
    if source.startswith(SQL):
        source = f"({source.removeprefix(SQL).strip().rstrip(';')})"
    else:
        source = "'" + source.replace("'", "''") + "'"
    return '"' + re.sub(r'([\\"$`])', r"\\\1", f"sql: select * replace ({', '.join(made)}) from {source}") + '"'
