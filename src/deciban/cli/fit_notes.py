"""Advice after a fit: columns and classes that are probably not meant as they stand, and how good the model is."""

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from deciban.cli.output import list_first, notify
from deciban.sources.addresses import is_address
from deciban.util.text_tables import format_class

if TYPE_CHECKING:
    from deciban.model.fitted import Fitted
    from deciban.schema.schema import LooksLike, MeantAs
    from deciban.sources.source import Source


# How SQL reads the numbers and dates in texts.
AS_NUMBER = "try_cast({} as double)"
AS_FIRST_NUMBER = "try_cast(regexp_extract(replace({}, ',', ''), '[-+]?[0-9]*[.]?[0-9]+') as double)"
AS_FIRST_NUMBER_WITH_COMMA = "try_cast(regexp_extract(replace({}, ',', '.'), '[-+]?[0-9]*[.]?[0-9]+') as double)"
AS_DECIMAL_COMMA = "try_cast(replace({}, ',', '.') as double)"
WITHOUT_POINTS = "try_cast(replace(replace({}, '.', ''), ',', '.') as double)"

# What columns of text may be meant as, in the order in which it is said.
TEXTS_MEANT_AS: tuple["LooksLike", ...] = ("numbers", "units", "thousands", "dates")


def warn_about_model(
    fitted: "Fitted", table: Sequence[str] = (), typed: bool = False, identifiers: bool = True
) -> None:
    """Warn of classes and columns of a model that are probably not meant as it has learned them from this table.

    typed: it is not a CSV file, for which alone there are options that say how its cells are written. identifiers:
    whether to warn of these, which the library has done if it has fitted the model now.
    """
    if fitted.classes.size == 1:
        notify("warning", f"there is only one class, {fitted.classes.tolist()[0]!r}: it will always be predicted")
    schema = fitted.counts.schema.plain
    for name in schema.columns_like("identifier") if identifiers else ():
        notify(
            "warning", f"column {name!r} looks like an identifier; use {quote_option('--ignore', name)} to leave it out"
        )
    if not any(schema.looks_like or ()):
        return
    expressions = {}
    for kind in TEXTS_MEANT_AS:
        for name, meant in schema.columns_like(kind).items():
            remedy = _reading_option(name, meant, typed)
            if not remedy and (expression := _sql_expression(meant)):
                expressions[name] = expression
            notify("warning", f"column {name!r} {meant}, but was read as text{remedy}")
    if expressions:
        way = "casts in --query" if table and is_address(table[0]) else _replacing_query(expressions, table)
        notify("warning", f"to read {list_first(list(expressions))} as numbers or dates, use {way}")


def note_missing_words(source: "Source", target: str | None) -> None:
    """Say which words of a file are read as missing cells."""
    for name, note in source.notes.items():
        if name != target:
            notify(
                "note", f"column {name!r}: {note}; use {quote_option('--type', f'{name}=text')} to keep them as text"
            )


def quote_option(flag: str, value: str) -> str:
    """An option as a shell takes it."""
    return f"{flag} {shlex.quote(value)}"


def _reading_option(name: str, meant: "MeantAs", typed: bool) -> str:
    """The option that reads a column as it is meant; nothing where there is none."""
    if meant.kind == "numbers" and meant.detail is None and not meant.decimal_comma:
        return f"; use {quote_option('--type', f'{name}=number')} to read it as numbers"
    if typed or meant.detail is None or meant.kind == "units":
        return ""
    if meant.kind == "numbers":
        return f"; use {quote_option('--missing', meant.detail)} to treat such cells as missing"
    if meant.kind == "dates":
        return f"; use {quote_option('--date-format', meant.detail)} to read it as dates"
    return f"; use {quote_option('--thousands', meant.detail)} to read it as numbers"


def _sql_expression(meant: "MeantAs") -> str:
    """How SQL reads a column of text that is meant as numbers or dates; nothing where their form is not known."""
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
    """A column as SQL writes it, in quotes where it needs them."""
    from deciban.sources.duckdb import keywords, quote_name

    plain = re.fullmatch(r"[A-Za-z_]\w*", name) and name.lower() not in keywords()
    return name if plain else quote_name(name)


def _replacing_query(expressions: Mapping[str, str], table: Sequence[str]) -> str:
    """A table to give instead, in which these columns are numbers or dates."""
    from deciban.sources.query import SQL

    made = []
    for name, expression in expressions.items():
        column = _quote_column(name)
        made.append(f"{expression.format(column)} as {column}")
    source = table[0] if table else "TABLE"
    if source.startswith(SQL):
        source = f"({source.removeprefix(SQL).strip().rstrip(';')})"
    else:
        source = "'" + source.replace("'", "''") + "'"
    return '"' + re.sub(r'([\\"$`])', r"\\\1", f"sql: select * replace ({', '.join(made)}) from {source}") + '"'


RETUNE = "`deciban learn --retune`, with more rows, or a new fit learns the weights anew"


def describe_tuning(fitted: "Fitted") -> str:
    """On how many rows it was tuned, how good it is on rows left out, and how good the commonest class alone is."""
    tuning, counts = fitted.tuning, fitted.counts
    if tuning is None:
        return "plain Bayes"
    if tuning.accuracy is None or tuning.log_loss is None or not counts.class_weight.any():
        return tuning.summary
    from deciban.evaluation.metrics import MAX_GAIN_BY_CHANCE

    shares = (counts.class_weight / counts.class_weight.sum()).tolist()
    share = max(shares)
    label = counts.classes.tolist()[shares.index(share)]
    entropy = -sum(one * math.log(one) for one in shares if one > 0.0)
    always = repr(label) if isinstance(label, str) else format_class(label)
    by_chance = share + 2.0 * math.sqrt(share * (1.0 - share) / tuning.rows)
    if tuning.rows * (entropy - tuning.log_loss) < MAX_GAIN_BY_CHANCE and tuning.accuracy <= by_chance and share < 1.0:
        # An accuracy is no help here: a row is left out of the shares of the classes too, so that where the classes are
        # as frequent as each other and the columns say nothing, another class than its own is always more probable.
        nothing = "the columns tell nothing of the class: no better than always saying"
        return f"{replace(tuning, accuracy=None).summary}: {nothing} {always} ({share:.4f})"
    return f"{tuning.summary}; always {always}: {share:.4f}"
