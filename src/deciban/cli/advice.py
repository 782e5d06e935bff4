"""What is probably not meant as it stands, each with the remedy."""

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from deciban.cli.common import complain

if TYPE_CHECKING:
    from deciban.classifier import Classifier
    from deciban.data.stream import Source

# The first number in a text.
FIRST_NUMBER = "regexp_extract(replace({}, ',', ''), '[-+]?[0-9]*[.]?[0-9]+')"
DECIMAL_COMMA = "replace({}, ',', '.')"


def warn_of_model(clf: "Classifier", table: Sequence[str] = ()) -> None:
    """Say what is strange about classes and columns of a model that has learned this table."""
    if clf.classes_.size == 1:
        complain("warning", f"there is only one class, {clf.classes_.tolist()[0]!r}: it will always be predicted")
    schema = clf.counts_.schema.plain
    for name in schema.looking_like("identifier"):
        complain("warning", f"column {name!r} looks like an identifier; {option('--ignore', name)} leaves it out")
    reasons = {name: why for name, _, why in schema.rows()} if any(schema.looks_like or ()) else {}
    for name in schema.looking_like("numbers"):
        if "decimal commas" not in reasons[name]:
            complain(
                "warning", f"column {name!r} is {reasons[name]}, and taken for categories; {_remedy(name, reasons)}"
            )
    if some := {name: DECIMAL_COMMA if "commas" in why else FIRST_NUMBER for name, why in reasons.items()
                if why.endswith("decimal commas") or name in schema.looking_like("units")}:  # fmt: skip
        shown = "; ".join(f"column {name!r} is {reasons[name]}" for name in some)
        complain("warning", f"{shown}: taken for categories; read the numbers by {_query(some, table)}")
    for name in (*schema.looking_like("thousands"), *schema.looking_like("dates")):
        form = reasons[name].rpartition(" written ")[2]
        remedy = option("--date-format", form) if "%" in form else option("--thousands", form[1:-1])
        complain("warning", f"column {name!r} is {reasons[name]}, and taken for categories; {remedy} reads them")


def tell_markers(source: "Source", target: str | None) -> None:
    """Say which words of a file are read as missing cells."""
    for name, note in source.notes.items():
        if name != target:
            complain("note", f"column {name!r}: {note}; {option('--type', f'{name}=text')} takes them as they are")


def option(flag: str, value: str) -> str:
    """An option as a shell takes it."""
    return f"{flag} {shlex.quote(value)}"


def _remedy(name: str, reasons: Mapping[str, str]) -> str:
    if word := re.search(r"but for cells like ('.*'|\".*\")$", reasons[name]):
        return f"{option('--missing', word[1][1:-1])} takes such cells as missing"
    return f"{option('--type', f'{name}=number')} reads them as numbers"


def _query(expressions: Mapping[str, str], table: Sequence[str]) -> str:
    """A table to give instead, in which these columns are numbers."""
    made = []
    for name, expression in expressions.items():
        column = name if re.fullmatch(r"[A-Za-z_]\w*", name) else '"' + name.replace('"', '""') + '"'
        made.append(f"try_cast({expression.format(column)} as double) as {column}")
    file = (table[0] if table else "TABLE").replace("'", "''")
    return '"' + re.sub(r'([\\"$`])', r"\\\1", f"sql: select * replace ({', '.join(made)}) from '{file}'") + '"'
