"""Messages of the library in terms of the command line: options instead of Python arguments."""

import re
import shlex
from collections.abc import Mapping
from typing import Any

from deciban.errors import NOT_GIVEN, Argument, DecibanError, DecibanWarning, Labels, Part, render_message
from deciban.util.text_tables import format_class, list_some

# Python arguments whose option has the same name.
SAME_NAME = (
    *("alpha", "by", "column", "date_format", "delimiter", "encoding", "folds", "force", "if_exists", "ignore", "keep"),
    *("length", "max_seconds", "missing", "prior", "pushdown", "query", "reject", "row", "rows", "sheet", "table"),
    *("classes", "coverage", "monotone", "ordered", "target", "thousands", "threads", "title", "unseen", "weight"),
)

# All options, by Python argument.
OPTIONS = {
    **{name: f"--{name.replace('_', '-')}" for name in SAME_NAME},
    "families": "--family",
    "hold_out_last": "--hold-out-last",
    "header": "--no-header",
    "label": "--class",
    "loss": "--costs",
    "n_samples": "--rows",
    "random_state": "--seed",
    "sample_weight": "--weight",
    "types": "--type",
}

# Commands that do what methods of Python do.
COMMANDS = {"retune": "deciban learn --retune with more rows", "conformalize": "deciban fit"}

# Spreads are parameters of families. They are not families of a column.
SPREADS = ("PerClass", "Pooled", "Shrunk")


def as_option(part: Part) -> str:
    """Return an argument, a family or labels as the command line shows them.

    >>> as_option(Argument("missing", "n/a")), as_option(Argument("families")), as_option(Argument("family", "Gamma"))
    ('--missing n/a', '--family', 'Gamma')
    >>> as_option(Argument("types", {"a b": "text"})), as_option(Argument("force", True))
    ("--type 'a b=text'", '--force')
    >>> as_option(Argument("ignore", ["id", "a b"]))
    "--ignore id --ignore 'a b'"
    >>> as_option(Argument("method", "conformalize"))
    'deciban fit'
    """
    if isinstance(part, Labels):
        return list_some(list(map(_label, part.values)))
    name, value = part.name, part.value
    if name == "family":
        return str(value)
    if name == "method":
        return COMMANDS[value]
    if name == "X":  # the table, as it is written in a shell
        return '"' + re.sub(r'([\\"$`])', r"\\\1", str(value)) + '"'
    if name == "tune":
        return f"--tune {'none' if value is None else value}"
    option = OPTIONS.get(name, name.replace("_", " "))
    if value is NOT_GIVEN or value is True:
        return option
    if isinstance(value, list):
        return " ".join(f"{option} {shlex.quote(str(one))}" for one in value)
    if isinstance(value, Mapping):
        given = [f"{_names(key)}={str(one).removesuffix('()')}" for key, one in value.items()]
        return " ".join(f"{option} {shlex.quote(one)}" for one in given)
    return f"{option} {shlex.quote(str(value))}"


def describe_error(error: DecibanError) -> str:
    """Return the message of an error. A family in its remedy is shown as an option --family."""
    column = error.place.column

    def in_remedy(part: Part) -> str:
        if isinstance(part, Argument) and part.name == "family" and part.value not in SPREADS:
            return f"--family {'COLUMN' if column is None else shlex.quote(_names(column))}={part.value}"
        return as_option(part)

    return " ".join(error.render(argument=as_option, remedy=in_remedy).split())


def describe_warning(warning: Warning | str) -> str:
    """Return the message of a warning."""
    if isinstance(warning, DecibanWarning):
        return render_message(warning.message, as_option)
    return str(warning)


def _label(label: Any) -> str:
    """Return a label of a list, in quotes if it contains a comma."""
    name = format_class(label)
    return repr(name) if isinstance(label, str) and "," in name else name


def _names(columns: Any) -> str:
    """Return columns as --family takes them: names with a comma, quote or equals sign are in double quotes."""
    names = columns if isinstance(columns, tuple) else (columns,)
    return ",".join(f'"{name}"' if set(str(name)) & set(',"=') else str(name) for name in names)
