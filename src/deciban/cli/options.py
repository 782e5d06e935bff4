"""Options that commands share and the values behind them; the tables and models that they open."""

import ast
import csv
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click
from click.shell_completion import CompletionItem

from deciban.cli.output import check_output, list_first, notify
from deciban.errors import Argument, UsageError
from deciban.sources.addresses import HIDDEN, mask_passwords
from deciban.util.text_tables import count_noun, format_class

if TYPE_CHECKING:
    from deciban.model.fitted import Fitted
    from deciban.sources.source import Source
    from deciban.sources.streams import LabeledStream


Command = TypeVar("Command", bound=Callable[..., Any])


def complete_files(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The shell completes the name of a file or a folder here."""
    return [CompletionItem(incomplete, type="file")]


TABLE = click.argument("table", nargs=-1, required=True, shell_complete=complete_files)
TARGET = click.option("--target", "-t", metavar="COLUMN", help="The column with the classes, if it has another name "
                      "here.")  # fmt: skip
TUNE = click.option(
    "--tune",
    type=click.Choice(["auto", "weights", "none"]),
    help="auto: tune families, blocks, weights and corrections on left-out rows. weights: tune only the weights. "
    "none: plain Bayes.  [default: auto]",
)
MODEL = click.argument("model", type=click.Path(dir_okay=False))


def common_options(command: Command) -> Command:
    """The options that every command has."""
    command = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")(command)
    return click.option("--debug", is_flag=True, expose_value=False, help="Show where an error comes from.")(command)


@dataclass(frozen=True)
class ReadOptions:
    """How a table is read, as the options of `reading` say."""

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


def input_options(command: Command) -> Command:
    """Add the options of commands that read a table; the command gets them as one value, `read`."""

    @wraps(command)
    def with_options(*arguments: Any, **options: Any) -> Any:
        given = {one.name: options.pop(one.name) for one in fields(ReadOptions)}
        return command(*arguments, read=ReadOptions(**given), **options)

    for option in reversed(
        (
            click.option("--query", metavar="SQL", help="Of a database (TABLE is its URL): the rows of this query."),
            click.option("--table", "database_table", metavar="NAME", help="Of a database: the rows of this table, "
                         "such as sales.customers."),
            click.option("--type", "types", multiple=True, metavar="COLUMN=TYPE", help="Read a column as text, number, "
                         "bool, date or time."),
            click.option("--ignore", multiple=True, metavar="COLUMN", help="Leave a column out."),
            click.option("--missing", multiple=True, metavar="TEXT", help="A cell of a CSV file that means a missing "
                         "one, such as '?'."),
            click.option("--encoding", metavar="NAME", help="Of a CSV file or documents, such as "
                         "latin-1; UTF-8 unless given."),
            click.option("--delimiter", metavar="SIGN", help="Of a CSV file; found by itself unless given."),
            click.option("--thousands", metavar="SIGN", default="", help="What stands between the thousands of numbers "
                         "in a CSV file, such as ','."),
            click.option("--date-format", metavar="FORMAT", default="", help="How dates are written in a CSV file, "
                         "such as %d.%m.%Y; ISO's way unless given."),
            click.option("--no-header", is_flag=True, help="The first line of a CSV file is a row, not the names."),
        )
    ):  # fmt: skip
        with_options = option(with_options)
    return cast(Command, with_options)


def open_table(table: Sequence[str], read: ReadOptions, output: str | None = None) -> "Source":
    """The table that is meant; a file of it is no `output`."""
    from deciban.sources.csv import MISSING_WORDS
    from deciban.sources.open import scan

    delimiter = {"\\t": "\t", "tab": "\t"}.get(read.delimiter or "", read.delimiter)
    if delimiter is not None and len(delimiter) != 1:
        raise UsageError("give one sign, or tab", parameter=Argument("delimiter", delimiter))
    found = scan(
        table[0] if len(table) == 1 else list(table),
        query=read.query,
        table=read.database_table,
        types=dict(split_pair(text, "--type", "COLUMN=TYPE") for text in read.types),
        ignore=read.ignore,
        missing=(*MISSING_WORDS, *read.missing),
        encoding=read.encoding,
        delimiter=delimiter,
        header=not read.no_header,
        thousands=read.thousands,
        date_format=read.date_format,
    )
    check_output(output, found.inputs)  # those of a folder, a glob or a query too
    return found


def table_arguments(table: Sequence[str], read: ReadOptions) -> list[str]:
    """What to give another command to read the same rows, without a password."""
    database = {"--query": read.query, "--table": read.database_table}
    given = [part for option, value in database.items() if value is not None for part in (option, value)]
    return [*(mask_passwords(one).replace(f":{HIDDEN}@", "@") for one in table), *given]


def split_pair(text: str, option: str, form: str) -> tuple[str, str]:
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
    """The rows of a table with their labels, which are where the model had its own unless `target` says otherwise."""
    from deciban.fitting.fit import open_examples
    from deciban.sources.streams import LabeledStream

    name = target if target is not None else fitted.origin.target
    if name is None:
        raise UsageError("the model does not know the name of the column with the labels; give --target")
    rows = open_examples(fitted, scan, name, fitted.origin.weight)
    assert isinstance(rows, LabeledStream), "a scan is a stream"
    return rows


def warn_missing_columns(fitted: "Fitted", scan: "Source") -> None:
    """Say which columns of the model a table does not have."""
    there = set(scan.names)
    if absent := [name for name in fitted.schema.names or () if name not in there]:
        notify(
            "warning", f"{scan.name} has no {list_first(absent)}: taken as missing, {describe_missing(fitted, absent)}"
        )


def describe_missing(fitted: "Fitted", missing: Iterable[str]) -> str:
    """What missing cells of some columns mean to a model, as the end of a sentence."""
    partial = fitted.model.partial
    informative = [] if partial is None else partial.informative.tolist()
    told = {fitted.schema.column_name(column) for column in informative}.intersection(missing)
    return "which is no evidence" + (f", but for {list_first(sorted(told))}: see inspect" if told else "")


def warn_new_columns(fitted: "Fitted", rows: "LabeledStream", name: str, what: str) -> None:
    """Say which columns of a table are new to the model, and what becomes of them."""
    known = set(fitted.schema.names or ())
    if fresh := [column for column in rows.names if column not in known]:
        notify("warning", f"{name} has {list_first(fresh)}, new to the model: {what}")


def warn_new_classes(fitted: "Fitted", shard: "Fitted", name: str, remedy: str = "") -> None:
    """Say which classes of rows to be learned the model has not had before, and whether that may be a slip."""
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
        shown = ", ".join(fresh[:5]) + (f", … ({len(fresh)} in all)" if len(fresh) > 5 else "")
        what = "a class that is" if len(fresh) == 1 else "classes that are"
        notify("warning", f"{name} has {what} new to the model: {shown}{remedy}")


# What stands before the first sign of equality that is not within quotes, and what behind.
NAMES_AND_VALUE = re.compile(r"""((?:"[^"]*"|[^"=])*)=(.*)""", re.DOTALL)

PRIORS = ("empirical", "smoothed", "uniform")


def split_names(text: str, known: Sequence[str] = ()) -> list[str]:
    """The names of a list such as `id,name`; a name with a comma stands in quotes, or alone if it is a `known` one.

    >>> names_in('id, name'), names_in('"last, first",id'), names_in("last, first", ["id", "last, first"])
    (['id', 'name'], ['last, first', 'id'], ['last, first'])
    """
    if text in known:
        return [text]
    cells = next(csv.reader([text], skipinitialspace=True), [])
    return [name.strip() for name in cells if name.strip()]


def parse_prior(text: str) -> Any:
    """The name of a prior, or the probability of each class."""
    if text in PRIORS:
        return text
    if "=" not in text:
        known = ", ".join(PRIORS)
        raise click.UsageError(f"--prior {text}: choose {known}, or give probabilities: 'ill=0.01,well=0.99'")
    shares = dict(split_pair(part, "--prior", "CLASS=PROBABILITY,…") for part in split_names(text))
    try:
        return {name: float(share) for name, share in shares.items()}
    except ValueError:
        raise click.UsageError(f"--prior {text}: give a number for each class") from None


def parse_families(texts: Sequence[str], columns: Sequence[str] | None = None) -> dict[Any, Any] | None:
    """{"a": Gaussian(), ("b", "c"): JointGaussian()} of "a=Gaussian" and "b,c=JointGaussian".

    columns: those that can be learned; as long as they are not known, any may be named.
    """
    found: dict[Any, Any] = {}
    for text in texts:
        parts = NAMES_AND_VALUE.fullmatch(text)
        named = split_names(parts[1], columns or ()) if parts is not None else []
        if parts is None or not named:
            raise click.UsageError(f"--family {text}: write it as COLUMN=FAMILY")
        for name in named:
            if columns is not None and name not in columns:
                raise click.UsageError(f"--family {text}: there is no column {name!r}{_suggest(name, columns)}")
        found[tuple(named) if len(named) > 1 else named[0]] = _parse_family(parts[2], text)
    return found or None


def _parse_family(text: str, option: str) -> Any:
    """A family from its name, or from a call with plain values: data, never code. Capitals do not matter."""
    from deciban.families import SPREADS, list_families

    known = {kind.__name__.lower(): kind for kind in (*list_families(), *SPREADS)}
    names = sorted(kind.__name__ for kind in list_families())

    def kind_of(name: str) -> Any:
        return known.get(name.lower().replace("_", ""))

    def made(node: ast.AST) -> Any:
        if isinstance(node, ast.Name):
            return kind_of(node.id)() if kind_of(node.id) is not None else node.id  # a word without quotes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if (kind := kind_of(node.func.id)) is None:
                raise _unknown_family(node.func.id, option, names)
            return kind(*map(made, node.args), **{item.arg or "": made(item.value) for item in node.keywords})
        return ast.literal_eval(node)

    try:
        found = made(ast.parse(text.strip(), mode="eval").body)
    except (ValueError, SyntaxError) as problem:
        if isinstance(problem, UsageError):
            raise click.UsageError(f"--family {option}: {problem}") from None
        raise _unknown_family(text.strip(), option, names) from None
    except TypeError as problem:
        said = str(problem).replace("__init__()", "").replace("got an unexpected keyword argument", "has no parameter")
        raise click.UsageError(f"--family {option}: {said.replace('.', '')}") from None
    if not isinstance(found, list_families()):
        raise _unknown_family(text.strip(), option, names)
    return found


def _unknown_family(name: str, option: str, names: Sequence[str]) -> click.UsageError:
    hint = _suggest(name, names) or f"; choose one of {', '.join(names)}, such as 'Binned(bins=32)'"
    return click.UsageError(f"--family {option}: there is no family {name!r}{hint}")


def _suggest(name: str, known: Sequence[str]) -> str:
    lower = {one.lower(): one for one in known}
    found = get_close_matches(name.lower(), lower, 1)
    return f"; did you mean {lower[found[0]]!r}?" if found else ""
