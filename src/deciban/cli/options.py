"""Options that several commands share, and the tables and models that they open."""

import ast
import csv
import re
import shlex
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from difflib import get_close_matches
from fractions import Fraction
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from deciban.cli.complete import (
    complete_column,
    complete_files,
    complete_models,
    complete_sheet,
    complete_tables,
    complete_type,
)
from deciban.cli.output import check_output, list_first, notify
from deciban.errors import Argument, ClassPerRowWarning, DataError, Place, UsageError
from deciban.sources.addresses import HIDDEN, mask_passwords
from deciban.util.text_tables import count_noun, format_class, list_some, suggestion

if TYPE_CHECKING:
    from deciban.model.fitted import Fitted
    from deciban.sources.source import Source
    from deciban.sources.streams import LabeledStream


Decorated = TypeVar("Decorated", bound=Callable[..., Any])


@dataclass(frozen=True)
class ReadOptions:
    """Values of the input options: how a table is read."""

    query: str | None
    database_table: str | None
    types: tuple[str, ...]
    ignore: tuple[str, ...]
    missing: tuple[str, ...]
    encoding: str | None
    delimiter: str | None
    thousands: str
    date_format: str
    no_header: bool
    sheet: str | None


# Descriptions of arguments for the help.
ARGUMENTS = {
    "model": "Model file, as written by deciban fit.",
    "models": "Model files, as written by deciban fit.",
    "table": "CSV, JSON Lines, Parquet, Arrow, ORC or Excel file (also compressed), several files, a glob, a folder, "
    '- for standard input, "sql: select ...", or the URL of a PostgreSQL database.',
    "sources": "A table, or a model file and a table. See deciban fit for the kinds of tables.",
    "new": "Model file, fitted again.",
    "path": "Model file, or a folder of model files.",
    "shell": "Shell to complete for: bash, zsh or fish.",
}


def parse_number(text: str) -> float:
    """Parse a number, a percentage or a fraction; raise a ValueError for anything else.

    >>> parse_number("0.9"), parse_number("90%"), parse_number("9/10")
    (0.9, 0.9, 0.9)
    """
    part, slash, whole = text.partition("/")
    try:
        if slash:
            return float(Fraction(part.strip()) / Fraction(whole.strip()))
        if text.rstrip().endswith("%"):  # 99.9 / 100 is not 0.999 in doubles
            return float(Fraction(text.rstrip()[:-1].strip()) / 100)
    except (ZeroDivisionError, OverflowError):
        raise ValueError(text) from None
    return float(text)


class Number(click.FloatRange):
    """Type of an option whose number may also be written as a percentage or a fraction."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number; reject one outside the range."""
        if isinstance(value, str):
            with suppress(ValueError):
                value = parse_number(value)
        return super().convert(value, param, ctx)


# Sections of the help, and the options in each. All other options are in the section "Options".
SECTIONS = {
    "Learning options": ("learn", "new_classes", "decay", "decay_every", "retune_every", "max_journal_bytes",
                         "max_model_bytes"),
    "Limits": ("max_body_bytes", "max_rows", "max_columns", "read_timeout", "response_timeout", "shutdown_timeout",
               "max_connections", "max_connections_per_address"),
    "Input options": tuple(field.name for field in fields(ReadOptions)),
    "General options": ("as_json", "debug"),
}  # fmt: skip

# The range of a number, as click shows it.
RANGE = re.compile(r"[-\d.<=]*x(?:<=None|[-\d.<>=]*)")


class Command(click.Command):
    """A command whose help describes the arguments and shows the options in sections."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse arguments, after a check for long options with one dash."""
        awaits_value = refuse_single_dashes(self, ctx, args)
        # to complete the value of the last option, parse what is before it
        return super().parse_args(ctx, args[:-1] if ctx.resilient_parsing and awaits_value else args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the arguments and options into the formatter."""
        titles = {name: title for title, names in SECTIONS.items() for name in names}
        sections: dict[str, list[tuple[str, str]]] = {
            "Arguments": [],
            "Options": [],
            **{title: [] for title in SECTIONS},
        }
        for parameter in self.get_params(ctx):
            name = str(parameter.name)
            if isinstance(parameter, click.Argument):
                if name in ARGUMENTS:
                    sections["Arguments"].append((parameter.metavar or name.upper(), ARGUMENTS[name]))
            elif (record := parameter.get_help_record(ctx)) is not None:
                title = "General options" if "--help" in parameter.opts else titles.get(name, "Options")
                sections[title].append((record[0], _tidy(record[1])))
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records, col_max=28)


def refuse_single_dashes(command: click.Command, context: click.Context, arguments: Sequence[str]) -> bool:
    """Raise a usage error for a long option with one dash: `-target` would mean `-t arget`.

    Returns True if the last argument is an option without its value.
    """
    options = [option for option in command.get_params(context) if isinstance(option, click.Option)]
    spellings = {name: option for option in options for name in option.opts}
    value_follows = False
    for argument in arguments:
        if argument == "--":
            return False
        given = argument.partition("=")[0]
        if not value_follows and not argument.startswith("--") and f"-{given}" in spellings and len(given) > 2:
            if not context.resilient_parsing:
                raise click.UsageError(f"unknown option {given}; did you mean -{given}?", context)
            return False
        option = None if value_follows else spellings.get(argument)
        value_follows = option is not None and not option.is_flag and not option.count
    return value_follows


def _tidy(text: str) -> str:
    """Return the description of an option without the range of its values.

    >>> _tidy("Port.  [default: 8000; 0<=x<=65535]"), _tidy("Folds.  [x>=2]"), _tidy("Threads.  [default: (all cores)]")
    ('Port. [default: 8000]', 'Folds.', 'Threads. [default: all cores]')
    >>> _tidy("Model file.  [required]")
    'Model file. [required]'
    """
    description, bracket, extra = text.rpartition("  [")
    if not bracket:
        return text
    parts = [part for part in extra.removesuffix("]").split("; ") if not RANGE.fullmatch(part)]
    kept = re.sub(r"default: \((.*)\)", r"default: \1", "; ".join(parts))
    return description + (f" [{kept}]" if kept else "")


command = partial(click.command, cls=Command)

TABLE = click.argument("table", nargs=-1, required=True, shell_complete=complete_tables)
TARGET = click.option(
    "--target",
    "-t",
    metavar="COLUMN",
    show_default="as in the model",
    shell_complete=complete_column,
    help="Column to predict (the class).",
)
TUNE = click.option(
    "--tune",
    type=click.Choice(["auto", "weights", "none"]),
    show_default="auto",
    help="auto: use left-out rows to choose distributions and joint blocks, and to fit weights and corrections. "
    "weights: the same without corrections. none: plain naive Bayes.",
)
COSTS = click.option(
    "--costs",
    metavar="FILE",
    shell_complete=complete_files,
    help="File with the cost of each decision (row) for each true class (column).",
)
output_option = partial(click.option, "--output", "-o", metavar="FILE", shell_complete=complete_files)
MODEL = click.argument("model", type=click.Path(dir_okay=False), shell_complete=complete_models)


# `deciban.cli.run` looks for it among the arguments, so that it can be before or after the name of the command.
DEBUG = click.option("--debug", is_flag=True, expose_value=False, help="Show a traceback on errors.")


def common_options(command: Decorated, json_help: str = "Print JSON.") -> Decorated:
    """Add the options that every command has."""
    command = DEBUG(command)
    return click.option("--json", "as_json", is_flag=True, help=json_help)(command)


def input_options(command: Decorated) -> Decorated:
    """Add the options of commands that read a table. The command gets them as one value, `read`."""

    @wraps(command)
    def with_options(*arguments: Any, **options: Any) -> Any:
        given = {field.name: options.pop(field.name) for field in fields(ReadOptions)}
        return command(*arguments, read=ReadOptions(**given), **options)

    for option in reversed(
        (
            click.option("--query", metavar="SQL", help="For a database: read the rows of this query."),
            click.option("--table", "database_table", metavar="NAME", help="For a database: read this table, e.g. "
                         "sales.customers."),
            click.option("--type", "types", multiple=True, metavar="COLUMN=TYPE", shell_complete=complete_type,
                         help="Read a column as text, number, bool, date or time. Repeatable."),
            click.option("--ignore", multiple=True, metavar="COLUMN", shell_complete=complete_column,
                         help="Leave out a column. Repeatable."),
            click.option("--missing", multiple=True, metavar="TEXT", help="Value to treat as missing in CSV "
                         "and Excel files, e.g. '?'. Repeatable."),
            click.option("--encoding", metavar="NAME", show_default="UTF-8", help="Encoding of CSV files and "
                         "documents, e.g. latin-1."),
            click.option("--delimiter", metavar="CHAR", show_default="detected", help="Delimiter of CSV files."),
            click.option("--thousands", metavar="CHAR", default="", show_default=False, help="Thousands separator in "
                         "CSV and Excel files, e.g. ','."),
            click.option("--date-format", metavar="FORMAT", default="", show_default="ISO 8601", help="Date format in "
                         "CSV and Excel files, e.g. %d.%m.%Y."),
            click.option("--no-header", is_flag=True, help="The CSV or Excel file has no header line."),
            click.option("--sheet", metavar="NAME", shell_complete=complete_sheet, show_default="first with data",
                         help="Sheet of an Excel file."),
        )
    ):  # fmt: skip
        with_options = option(with_options)
    return cast(Decorated, with_options)


def open_table(table: Sequence[str], read: ReadOptions, output: str | None = None) -> "Source":
    """Open the table of a command. None of its files may be the `output`."""
    from deciban.sources.csv import MISSING_WORDS
    from deciban.sources.open import scan

    delimiter = {"\\t": "\t", "tab": "\t"}.get(read.delimiter or "", read.delimiter)
    if delimiter is not None and len(delimiter) != 1:
        raise UsageError("expected one character, or tab", parameter=Argument("delimiter", delimiter))
    found = scan(
        table[0] if len(table) == 1 else list(table),
        query=read.query,
        table=read.database_table,
        types=dict(parse_pair(text, "--type", "COLUMN=TYPE") for text in read.types),
        ignore=read.ignore,
        missing=(*MISSING_WORDS, *read.missing),
        encoding=read.encoding,
        delimiter=delimiter,
        header=not read.no_header,
        thousands=read.thousands,
        date_format=read.date_format,
        sheet=read.sheet,
    )
    check_output(output, found.inputs)  # those of a folder, a glob or a query too
    return found


def table_arguments(table: Sequence[str], read: ReadOptions) -> list[str]:
    """Return the arguments by which another command reads the same rows, without passwords."""
    database = {"--query": read.query, "--table": read.database_table}
    given = [part for option, value in database.items() if value is not None for part in (option, value)]
    return [*(mask_passwords(source).replace(f":{HIDDEN}@", "@") for source in table), *given]


def parse_pair(text: str, option: str, form: str) -> tuple[str, str]:
    name, sign, value = text.rpartition("=")
    if not sign or not name:
        raise UsageError(f"{option} {text}: write it as {form}")
    return name, value


def parse_tuning(name: str | None) -> str | None:
    """Return the value of `tune=` for the option --tune."""
    return None if name == "none" else name or "auto"


def load_model(path: str) -> "Fitted":
    from deciban.store.model_file import load

    return load(path)


def open_labeled(fitted: "Fitted", scan: "Source", target: str | None) -> "LabeledStream":
    """Return the labeled rows of a table. The default target is that of the model."""
    from deciban.fitting.fit import open_examples
    from deciban.sources.streams import LabeledStream
    from deciban.tables.examples import check_column

    name = target if target is not None else fitted.origin.target
    if name is None:
        raise UsageError("the model file does not name its target column; give --target")
    if target is None:
        cause = f"no column {name!r}, the target of the model"
        with scan.locate_errors():
            check_column(scan.names, name, cause)
    rows = open_examples(fitted, scan, name, fitted.origin.weight)
    assert isinstance(rows, LabeledStream), "a scan is a stream"
    return rows


@contextmanager
def refuse_class_per_row(scan: "Source", force: bool) -> Iterator[None]:
    """Turn the warning about a target with a class per row into an error, unless `force`."""
    with warnings.catch_warnings():
        if not force:
            warnings.simplefilter("error", ClassPerRowWarning)
        try:
            yield
        except ClassPerRowWarning as warning:
            cause = (str(warning), ", or pass ", Argument("force", True))
            raise DataError(cause, place=Place(scan.name)) from None


def note_missing_words(scan: "Source", target: str | None) -> None:
    """Print a note for each column with words that are read as missing cells."""
    for name, note in scan.notes.items():
        if name != target:
            keep = f"use --type {shlex.quote(f'{name}=text')} to keep them as text"
            notify("note", f"column {name!r}: {note}; {keep}")


def warn_missing_columns(fitted: "Fitted", scan: "Source") -> None:
    """Warn about columns of the model that a table does not have."""
    names = set(scan.names)
    if absent := [name for name in fitted.schema.names or () if name not in names]:
        effect = f"treated as missing and ignored{except_informative(fitted, absent)}"
        columns = "column" if len(absent) == 1 else "columns"
        notify("warning", f"{scan.name} has no {columns} {list_first(absent)}: {effect}")


def except_informative(fitted: "Fitted", missing: Iterable[str]) -> str:
    """Name the columns among `missing` whose missing cells are evidence, as an exception. Empty without any."""
    partial = fitted.model.partial
    informative = [] if partial is None else partial.informative.tolist()
    names = {fitted.schema.column_name(column) for column in informative}.intersection(missing)
    return f", except missing {list_first(sorted(names))} (see deciban inspect)" if names else ""


def warn_new_columns(fitted: "Fitted", rows: "LabeledStream", name: str, effect: str) -> None:
    """Warn about columns of a table that are new to the model."""
    known = set(fitted.schema.names or ())
    if fresh := [column for column in rows.names if column not in known]:
        columns = "a new column" if len(fresh) == 1 else "new columns"
        notify("warning", f"{name} has {columns}, {list_first(fresh)}: {effect}")


def warn_new_classes(fitted: "Fitted", shard: "Fitted", name: str, remedy: str = "") -> None:
    """Warn about classes of new rows that the model has not seen, and suggest the class that may be meant."""
    old = set(fitted.classes.tolist())
    known = {str(label).strip().casefold(): label for label in old}
    fresh = []
    for label, weight in zip(shard.classes.tolist(), shard.counts.class_weight.tolist(), strict=True):
        if label not in old:
            near = get_close_matches(str(label).strip().casefold(), known, 1)
            hint = f", perhaps {known[near[0]]!r}" if near and isinstance(label, str) else ""
            named = repr(label) if isinstance(label, str) else format_class(label)
            fresh.append(f"{named} ({count_noun(weight, 'row')}{hint})")
    if fresh:
        shown = list_some(fresh, 5)
        classes = "a class" if len(fresh) == 1 else "classes"
        notify("warning", f"{name} has {classes} new to the model: {shown}{remedy}")


# The text before the first equals sign outside quotes, and the text after it.
NAMES_AND_VALUE = re.compile(r"""((?:"[^"]*"|[^"=])*)=(.*)""", re.DOTALL)

PRIORS = ("empirical", "smoothed", "uniform")


def parse_names(text: str, known: Sequence[str] = ()) -> list[str]:
    """Split a list of names such as `id,name`.

    A name with a comma needs double quotes, except if it is the whole list and a `known` name.

    >>> parse_names('id, name'), parse_names('"last, first",id'), parse_names("last, first", ["id", "last, first"])
    (['id', 'name'], ['last, first', 'id'], ['last, first'])
    """
    if text in known:
        return [text]
    cells = next(csv.reader([text], skipinitialspace=True), [])
    return [name.strip() for name in cells if name.strip()]


def parse_prior(text: str) -> Any:
    """Return the name of a prior, or a mapping from each class to its probability."""
    if text in PRIORS:
        return text
    if "=" not in text:
        known = ", ".join(PRIORS)
        raise click.UsageError(f"--prior {text}: choose {known}, or give probabilities such as 'ill=0.01,well=0.99'")
    shares = dict(parse_pair(part, "--prior", "CLASS=PROBABILITY,…") for part in parse_names(text))
    try:
        return {name: parse_number(share) for name, share in shares.items()}
    except ValueError:
        raise click.UsageError(f"--prior {text}: give a number for each class, such as 0.01, 1% or 1/100") from None


def parse_monotone(texts: Sequence[str]) -> dict[str, int] | None:
    """Parse values of --monotone: "income=+1" gives {"income": 1}."""
    found = {}
    for text in texts:
        name, sign = parse_pair(text, "--monotone", "COLUMN=+1 or COLUMN=-1")
        if sign not in ("+1", "1", "-1"):
            raise click.UsageError(f"--monotone {text}: write it as {name}=+1 or {name}=-1")
        found[name] = int(sign)
    return found or None


def parse_families(texts: Sequence[str], columns: Sequence[str] | None = None) -> dict[Any, Any] | None:
    """Parse values of --family: "a=Gaussian" and "b,c=JointGaussian" give {"a": …, ("b", "c"): …}.

    columns: the columns of the table. None if they are not known yet; then no name is rejected.
    """
    found: dict[Any, Any] = {}
    for text in texts:
        parts = NAMES_AND_VALUE.fullmatch(text)
        named = parse_names(parts[1], columns or ()) if parts is not None else []
        if parts is None or not named:
            raise click.UsageError(f"--family {text}: write it as COLUMN=FAMILY")
        for name in named:
            if columns is not None and name not in columns:
                raise click.UsageError(f"--family {text}: no column {name!r} in the table{suggestion(name, columns)}")
        found[tuple(named) if len(named) > 1 else named[0]] = _parse_family(parts[2], text)
    return found or None


def _parse_family(text: str, option: str) -> Any:
    """Parse a family: its name in any case, or a call with literal arguments. No code is run."""
    from deciban.families import SPREADS, list_families

    known = {kind.__name__.lower(): kind for kind in (*list_families(), *SPREADS)}
    names = sorted(kind.__name__ for kind in list_families())

    def kind_of(name: str) -> Any:
        return known.get(name.lower().replace("_", ""))

    def build(node: ast.AST) -> Any:
        if isinstance(node, ast.Name):
            return kind_of(node.id)() if kind_of(node.id) is not None else node.id  # a word without quotes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if (kind := kind_of(node.func.id)) is None:
                raise _unknown_family(node.func.id, option, names)
            return kind(*map(build, node.args), **{item.arg or "": build(item.value) for item in node.keywords})
        return ast.literal_eval(node)

    try:
        found = build(ast.parse(text.strip(), mode="eval").body)
    except (ValueError, SyntaxError) as problem:
        if isinstance(problem, UsageError):
            raise click.UsageError(f"--family {option}: {problem}") from None
        raise _unknown_family(text.strip(), option, names) from None
    except TypeError as problem:
        cause = str(problem).replace("__init__()", "").replace("got an unexpected keyword argument", "has no parameter")
        raise click.UsageError(f"--family {option}: {cause.replace('.', '')}") from None
    if not isinstance(found, list_families()):
        raise _unknown_family(text.strip(), option, names)
    return found


def _unknown_family(name: str, option: str, names: Sequence[str]) -> click.UsageError:
    hint = suggestion(name, names) or f"; choose one of {', '.join(names)}, such as 'Binned(bins=32)'"
    return click.UsageError(f"--family {option}: unknown family {name!r}{hint}")
