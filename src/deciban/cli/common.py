"""What all commands share: their options, what they print, and how they open tables and models."""

import json
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from deciban.cli.outputs import check_output
from deciban.errors import UsageError
from deciban.sources.addresses import HIDDEN, without_passwords
from deciban.util.text_tables import aligned, class_name, counted, plain_json, shortened, width_of

if TYPE_CHECKING:
    from deciban.model.fitted import Fitted
    from deciban.sources.examples import LabelledStream
    from deciban.sources.source import Source

Command = TypeVar("Command", bound=Callable[..., Any])

# Characters that a terminal would obey: all controls but the end of a line and the tabulator, and changes of direction;
# and halves of characters, which stand for bytes in the name of a file that are no text.
TERMINAL_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


# What a family says of itself that a narrow terminal has no room for, and the least room of a reason.
PARAMETERS_TO_SKIP = re.compile(r"(, )?outside='ignore'|\(outside='ignore'\)|\(\)")
LEAST_WHY = 20


def files(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The shell completes the name of a file or a folder here."""
    return [CompletionItem(incomplete, type="file")]


TABLE = click.argument("table", nargs=-1, required=True, shell_complete=files)
TARGET = click.option("--target", "-t", metavar="COLUMN", help="The column with the classes, if it has another name "
                      "here.")  # fmt: skip
MODEL = click.argument("model", type=click.Path(dir_okay=False))


def clean(text: str) -> str:
    """Text that a terminal shows and does not obey; JSON stays JSON of the same."""
    return TERMINAL_CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def say(text: Any = "") -> None:
    """Print for people."""
    click.echo(clean(str(text)))


def heading(text: str) -> None:
    click.secho(clean(text), bold=True)


def complain(kind: str, text: str) -> None:
    """One line on standard error."""
    colour = {"error": "red", "warning": "yellow"}.get(kind)
    said = clean(without_passwords(" ".join(text.splitlines())))
    click.echo(f"deciban: {click.style(kind, fg=colour, bold=True)}: {said}", err=True)


def flush() -> None:
    sys.stdout.flush()


def say_json(result: Any) -> None:
    """Print for programs: one line of JSON, in which numbers that JSON does not have are null."""
    click.echo(clean(json.dumps(plain_json(result), ensure_ascii=False, allow_nan=False)))


def common(command: Command) -> Command:
    """The options that every command has."""
    command = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")(command)
    return click.option("--debug", is_flag=True, expose_value=False, help="Show where an error comes from.")(command)


def reading(command: Command) -> Command:
    """The options of commands that read a table."""
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
        command = option(command)
    return command


READING = (
    "query",
    "database_table",
    "types",
    "ignore",
    "missing",
    "encoding",
    "delimiter",
    "thousands",
    "date_format",
    "no_header",
)


def opened(table: Sequence[str], options: dict[str, Any], output: str | None = None) -> "Source":
    """The table that is meant, from the options of `reading`, which are taken out; a file of it is no `output`."""
    from deciban.sources.csv import MISSING_WORDS
    from deciban.sources.open import scan

    given = {name: options.pop(name) for name in READING}
    types = dict(pair(text, "--type", "COLUMN=TYPE") for text in given["types"])
    delimiter = {"\\t": "\t", "tab": "\t"}.get(given["delimiter"], given["delimiter"])
    if delimiter is not None and len(delimiter) != 1:
        raise UsageError(f"--delimiter {delimiter!r}: give one sign, or tab")
    found = scan(
        table[0] if len(table) == 1 else list(table),
        query=given["query"],
        table=given["database_table"],
        types=types,
        ignore=given["ignore"],
        missing=(*MISSING_WORDS, *given["missing"]),
        encoding=given["encoding"],
        delimiter=delimiter,
        header=not given["no_header"],
        thousands=given["thousands"],
        date_format=given["date_format"],
    )
    check_output(output, found.inputs)  # those of a folder, a glob or a query too
    return found


def again_from(table: Sequence[str], options: dict[str, Any]) -> list[str]:
    """What to give another command to read the same rows, without a password."""
    database = {"--query": options["query"], "--table": options["database_table"]}
    given = [part for option, value in database.items() if value is not None for part in (option, value)]
    return [*(without_passwords(one).replace(f":{HIDDEN}@", "@") for one in table), *given]


def pair(text: str, option: str, form: str) -> tuple[str, str]:
    name, sign, value = text.rpartition("=")
    if not sign or not name:
        raise UsageError(f"{option} {text}: write it as {form}")
    return name, value


def loaded(path: str) -> "Fitted":
    from deciban.store.model_file import load

    return load(path)


def labelled(fitted: "Fitted", scan: "Source", target: str | None) -> "LabelledStream":
    """The rows of a table with their labels, which are where the model had its own unless `target` says otherwise."""
    from deciban.fitting.fit import open_examples
    from deciban.sources.examples import LabelledStream

    name = target if target is not None else fitted.origin.target
    if name is None:
        raise UsageError("the model does not know the name of the column with the labels; give --target")
    rows = open_examples(fitted, scan, name, fitted.origin.weight)
    assert isinstance(rows, LabelledStream), "a scan is a stream"
    return rows


def columns_of(fitted: "Fitted", most: int | None = None, more: str = "") -> str:
    """What each column is: its type in the table, its family, and why; at most so many lines."""
    schema = fitted.schema
    types = schema.column_types
    lines = [("column", "type", "family", "why")]
    for name, family, why in schema.descriptions():
        lines.append((shortened(name, 32), types.get(name, ""), family, why))
    shown = lines if most is None or len(lines) <= most + 1 else lines[: most + 1]
    rest = "" if len(shown) == len(lines) else f"\n… ({len(lines) - len(shown)} more: {more})"
    width = shutil.get_terminal_size((100, 24)).columns if sys.stdout.isatty() else None
    return columns_table(shown, width) + rest


def columns_table(lines: Sequence[tuple[str, str, str, str]], width: int | None) -> str:
    """Lines of column, type, family and why as a table; within `width`, if given, as far as there is room for all."""
    table = aligned(lines)
    if width is None or max(map(width_of, table.splitlines())) <= width:
        return table
    short = [(name, kind, PARAMETERS_TO_SKIP.sub("", family), why) for name, kind, family, why in lines]
    sizes = [2 + max(width_of(line[k]) for line in short) for k in range(3)]
    kept = [0, 1, 2] if sum(sizes) + LEAST_WHY <= width else [0, 2]
    family = max(width - sizes[0] - LEAST_WHY - 2, LEAST_WHY)  # what is left for it
    room = max(width - sum(min(sizes[k], family + 2) if k == 2 else sizes[k] for k in kept), LEAST_WHY)
    cells = [(*line[:2], shortened(line[2], family), at_a_word(line[3], room)) for line in short]
    return aligned([tuple(line[k] for k in (*kept, 3)) for line in cells])


def at_a_word(text: str, most: int) -> str:
    """A text of at most so many places, cut off behind a word.

    >>> at_a_word("best of 13 tried: log-loss", 20), at_a_word("kept", 20)
    ('best of 13 tried:…', 'kept')
    """
    if width_of(text) <= most:
        return text
    words = shortened(text, most).rpartition(" ")[0]
    return f"{words}…" if words else shortened(text, most)


def missing_columns(fitted: "Fitted", scan: "Source") -> None:
    """Say which columns of the model a table does not have."""
    there = set(scan.names)
    if absent := [name for name in fitted.schema.names or () if name not in there]:
        complain("warning", f"{scan.name} has no {few(absent)}: taken as missing, {no_evidence(fitted, absent)}")


def no_evidence(fitted: "Fitted", missing: Iterable[str]) -> str:
    """What missing cells of some columns mean to a model, as the end of a sentence."""
    partial = fitted.model.partial
    informative = [] if partial is None else partial.informative.tolist()
    told = {fitted.schema.column_name(column) for column in informative}.intersection(missing)
    return "which is no evidence" + (f", but for {few(sorted(told))}: see inspect" if told else "")


def new_columns(fitted: "Fitted", rows: "LabelledStream", name: str, what: str) -> None:
    """Say which columns of a table are new to the model, and what becomes of them."""
    known = set(fitted.schema.names or ())
    if fresh := [column for column in rows.names if column not in known]:
        complain("warning", f"{name} has {few(fresh)}, new to the model: {what}")


def new_classes(fitted: "Fitted", shard: "Fitted", name: str, remedy: str = "") -> None:
    """Say which classes of rows to be learned the model has not had before, and whether that may be a slip."""
    from difflib import get_close_matches

    old = set(fitted.classes.tolist())
    known = {str(label).strip().casefold(): label for label in old}
    fresh = []
    for label, weight in zip(shard.classes.tolist(), shard.counts.class_weight.tolist(), strict=True):
        if label not in old:
            near = get_close_matches(str(label).strip().casefold(), known, 1)
            hint = f", perhaps {known[near[0]]!r}" if near and isinstance(label, str) else ""
            named = repr(label) if isinstance(label, str) else class_name(label)
            fresh.append(f"{named} ({counted(weight, 'row')}{hint})")
    if fresh:
        shown = ", ".join(fresh[:5]) + (f", … ({len(fresh)} in all)" if len(fresh) > 5 else "")
        what = "a class that is" if len(fresh) == 1 else "classes that are"
        complain("warning", f"{name} has {what} new to the model: {shown}{remedy}")


def few(names: Sequence[str]) -> str:
    """The first of some names."""
    return ", ".join(repr(name) for name in names[:5]) + (", …" if len(names) > 5 else "")
