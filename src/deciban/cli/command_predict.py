"""The commands predict, explain, decide, top-words and sample."""

import os
import shutil
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from deciban.cli.complete import complete_class, complete_columns, complete_model_column
from deciban.cli.options import (
    COSTS,
    MODEL,
    TABLE,
    Number,
    ReadOptions,
    command,
    common_options,
    except_informative,
    input_options,
    load_model,
    open_table,
    output_option,
    parse_names,
    warn_missing_columns,
)
from deciban.cli.output import check_table_output, echo, echo_heading, echo_json, escape_controls, flush, notify
from deciban.errors import DataError, LossError, Place
from deciban.sources.addresses import is_address, mask_passwords
from deciban.util.text_tables import count_noun, format_class, format_digits, list_some

if TYPE_CHECKING:
    import pyarrow as pa

    from deciban.decisions.loss import Loss
    from deciban.model.fitted import Fitted
    from deciban.sources.write import FileKind, IfExists
    from deciban.tables.table import Table

TABLE_OUTPUT = output_option(
    show_default="standard output",
    help="File to write: .csv, .jsonl, .parquet or .xlsx. With --into, the URL of a database.",
)
KEEP = click.option(
    "--keep",
    metavar="COLUMNS",
    multiple=True,
    shell_complete=complete_columns,
    show_default="all",
    help="Input columns to copy to the output, e.g. 'id,name'; '' for none. Repeatable.",
)
INTO = click.option(
    "--into",
    metavar="NAME",
    help="Write to this database table, e.g. sales.scores, in one transaction. The database is the one TABLE "
    "is read from, unless --output gives another URL.",
)
IF_EXISTS = click.option(
    "--if-exists",
    type=click.Choice(["fail", "replace", "append"]),
    default="fail",
    help="With --into: what to do if the table already exists.",
)
COVERAGE = click.option(
    "--coverage",
    type=Number(),
    metavar="SHARE",
    help="Use prediction sets, which contain the true class of this share of rows, e.g. 90%.",
)
NO_ESCAPE = click.option(
    "--no-escape", is_flag=True, help="In CSV, do not escape text that a spreadsheet would run as a formula."
)


@command(short_help="Predict the class of each row", epilog="""\b
Examples:
  deciban predict wine.dcb new.csv --output predicted.csv
  deciban predict wine.dcb new.parquet --probabilities --keep id | head
  deciban predict churn.dcb postgresql://ann@db.example.com/shop \\
      --table customers --into sales.scores
""")  # fmt: skip
@MODEL
@TABLE
@TABLE_OUTPUT
@INTO
@IF_EXISTS
@click.option("--probabilities", "-p", is_flag=True, help="Write the probability of every class.")
@COVERAGE
@KEEP
@NO_ESCAPE
@input_options
@common_options
def predict(
    model: str, table: tuple[str, ...], output: str | None, as_json: bool, read: ReadOptions, **options: Any
) -> None:
    """Predict the class of each row of TABLE.

    The output has the columns of the table, the most probable class ("predicted") and its probability. With --coverage,
    it also has the prediction set ("set"), such as {no, yes}.
    """
    output = _choose_output(output, table, options)
    check_table_output(output, (model, *table))
    from deciban.scoring.predict import predict_batches

    fitted = load_model(model)
    scan = open_table(table, read, output)
    warn_missing_columns(fitted, scan)
    kind = _output_format(output, as_json)
    with count_unknown_cells(fitted) as observe:
        tables = predict_batches(
            fitted,
            scan,
            probabilities=options["probabilities"],
            coverage=options["coverage"],
            observe=observe,
            output_format=kind,
        )
        _write_tables(output, tables, scan.names, as_json, options)


@command(short_help="Choose the decision with the lowest expected cost", epilog="""\b
Examples:
  deciban decide cancer.dcb new.csv --costs costs.csv
  deciban decide cancer.dcb new.csv --costs costs.csv --reject 0.4
\b
costs.csv has a column for each true class and a row for each decision:
  ,benign,malignant
  benign,0,100
  malignant,1,0
""")  # fmt: skip
@MODEL
@TABLE
@COSTS
@click.option("--reject", type=Number(), metavar="COST", help="Allow leaving a row undecided, at this cost.")
@COVERAGE
@TABLE_OUTPUT
@INTO
@IF_EXISTS
@KEEP
@NO_ESCAPE
@input_options
@common_options
def decide(
    model: str, table: tuple[str, ...], output: str | None, as_json: bool, read: ReadOptions, **options: Any
) -> None:
    """Choose the decision with the lowest expected cost for each row of TABLE.

    The output has the columns of the table, the decision, its expected cost ("risk") and the second-best decision.
    Without --costs, every error costs 1. With --coverage, a row is decided only if one decision is best for every class
    of its prediction set; otherwise the decision is a set, such as {no, yes}.
    """
    output = _choose_output(output, table, options)
    check_table_output(output, (model, *table, *filter(None, [options["costs"]])))
    from deciban.scoring.predict import decide_batches

    fitted = load_model(model)
    loss = load_costs(options["costs"], fitted, of_columns=True)
    scan = open_table(table, read, output)
    warn_missing_columns(fitted, scan)
    if loss is not None:
        _check_costs(options["costs"], loss, "is neither a number nor the name of a column", scan.names)
    kind = _output_format(output, as_json)
    with count_unknown_cells(fitted) as observe:
        tables = decide_batches(
            fitted,
            scan,
            loss,
            reject=options["reject"],
            coverage=options["coverage"],
            observe=observe,
            output_format=kind,
        )
        _write_tables(output, tables, scan.names, as_json, options)


@contextmanager
def count_unknown_cells(fitted: "Fitted") -> Iterator[Callable[["Table"], None]]:
    """Count missing and unseen cells, and print a note about them at the end."""
    from deciban.scoring.outliers import UnknownCells

    found = UnknownCells(fitted.model)
    yield found.add
    if str(found):
        flush()
        effects = []
        if found.missing:
            effects.append(f"missing cells are ignored{except_informative(fitted, found.missing)}")
        if found.unseen:
            effects.append("unseen values are scored as unknown")
        notify("note", "; ".join([str(found), *effects]))


def load_costs(path: str | None, fitted: "Fitted | None" = None, *, of_columns: bool = False) -> Any:
    """Read costs from a file and check them against the classes of the model, if there is one.

    of_columns: costs may be names of columns.
    """
    from deciban.decisions.loss import Loss

    if path is None:
        return None
    if not os.path.exists(path):
        raise FileNotFoundError(f"{path}: no such file; check the name")
    with locate_cost_errors(path):
        loss = Loss.from_csv(path)
        if not of_columns:
            _check_costs(path, loss, "is not a number")
        return loss if fitted is None else loss.for_classes(list(fitted.classes))


def _check_costs(path: str, loss: "Loss", cause: str, columns: Sequence[str] = ()) -> None:
    """Raise a DataError if a cost is a text that is not the name of one of these columns."""
    for row, cells in enumerate(loss.costs):
        for column, cell in enumerate(cells):
            if isinstance(cell, str) and cell not in columns:
                decision = row + 1 if loss.decisions is None else repr(loss.decisions[row])
                label = str(column + 1 if loss.classes is None else loss.classes[column])
                raise DataError(f"{cell!r} {cause}", place=Place(f"{path}, row {decision}", label))


@contextmanager
def locate_cost_errors(path: str | None) -> Iterator[None]:
    """Turn errors about costs into errors of the file that contains them."""
    try:
        yield
    except LossError as problem:
        named = path is None or (problem.place.source or "").startswith(path)  # perhaps with its line
        place = problem.place if named else replace(problem.place, source=path)
        raise DataError(problem.cause, place=place, remedy=problem.remedy, parameter=problem.parameter) from problem


def _choose_output(output: str | None, table: Sequence[str], options: dict[str, Any]) -> str | None:
    """Return the output: a file, the address of a database, or None for standard output."""
    if options["into"] is None:
        if options["if_exists"] != "fail":
            raise click.UsageError("--if-exists applies to a table of a database; name it with --into")
        if is_address(output):
            raise click.UsageError("--output is a database; name the table to write with --into")
        return output
    database = table[0] if output is None else output
    if not is_address(database):
        raise click.UsageError("--into is a table of a database; give its URL with --output postgresql://...")
    return database


def _output_format(output: str | None, as_json: bool) -> "FileKind | None":
    """Return the format of the output."""
    from deciban.sources.write import kind_of_output

    if output is not None:
        return kind_of_output(output)
    return "json" if as_json else "csv"


def _write_tables(
    output: str | None, tables: Iterable["pa.Table"], names: Sequence[str], as_json: bool, options: dict[str, Any]
) -> None:
    from deciban.sources.write import open_writer, to_stream

    kept = dict.fromkeys(name for given in options["keep"] for name in parse_names(given, names))
    if unknown := [name for name in kept if name not in names]:
        known = list_some([f'"{name}"' if "," in name else name for name in names])
        quoted = " (put names with a comma in double quotes)" if any("," in name for name in names) else ""
        raise click.UsageError(f"--keep {unknown[0]}: no such column; the columns are {known}{quoted}")
    dropped = set(names).difference(kept) if options["keep"] else set()
    rows = 0
    if output is None:
        to_terminal = sys.stdout.isatty() and not as_json
        with to_stream(_Terminal() if sys.stdout.isatty() else sys.stdout.buffer, "json" if as_json else "csv",
                       safe=not options["no_escape"]) as write:  # fmt: skip
            for table in tables:
                shown = _drop_columns(table, dropped)
                write(_round_for_terminal(shown, options.get("as_read", names)) if to_terminal else shown)
        return
    into = options.get("into")
    if_exists: IfExists = options.get("if_exists", "fail")
    with open_writer(output, safe=not options["no_escape"], table=into, if_exists=if_exists) as write:
        for table in tables:
            write(_drop_columns(table, dropped))
            rows += table.num_rows
    if as_json:
        echo_json({"output": mask_passwords(output), "rows": rows, **({} if into is None else {"into": into})})
    else:
        echo(f"{mask_passwords(output) if into is None else into}: {count_noun(rows, 'row')}")


def _round_for_terminal(table: "pa.Table", as_read: Collection[str]) -> "pa.Table":
    """Round computed numbers to six digits. as_read: columns of the input, which stay as they are."""
    import pyarrow as pa

    columns = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_floating(column.type) and name not in as_read:
            rounded = [None if cell is None else float(format_digits(cell)) for cell in column.to_pylist()]
            column = pa.chunked_array([pa.array(rounded, column.type)])
        columns.append(column)
    return pa.table(columns, names=table.column_names)


def _drop_columns(table: "pa.Table", names: set[str]) -> "pa.Table":
    return table.select([name for name in table.column_names if name not in names]) if names else table


class _Terminal:
    """Standard output on a terminal, with control characters in the data escaped."""

    closed = False

    def write(self, text: bytes) -> int:
        sys.stdout.write(escape_controls(bytes(text).decode(errors="replace")))
        return len(text)

    def flush(self) -> None:
        sys.stdout.flush()


@command(short_help="Show why rows are classified as they are", epilog="""\b
Examples:
  deciban explain wine.dcb new.csv
  deciban explain wine.dcb new.csv --row 3 --steps
""")  # fmt: skip
@MODEL
@TABLE
@click.option(
    "--row",
    type=click.IntRange(1),
    metavar="N",
    multiple=True,
    help="Explain only this row, counted from 1. Repeatable.",
)
@click.option(
    "--rows", type=click.IntRange(1), default=5, metavar="N", help="Without --row: number of rows to explain."
)
@click.option(
    "--by",
    type=click.Choice(["column", "block"]),
    default="column",
    help="Show evidence by column, or by block of columns modeled together.",
)
@click.option("--steps", is_flag=True, help="Show the calculation step by step.")
@input_options
@common_options
def explain(
    model: str,
    table: tuple[str, ...],
    row: tuple[int, ...],
    rows: int,
    as_json: bool,
    read: ReadOptions,
    **options: Any,
) -> None:
    """Show the evidence of each column for the predicted class, in decibans.

    10 decibans make the odds ten times as high, 3 decibans twice as high.
    """
    from deciban.explain.explanation import Explanation
    from deciban.scoring.predict import align_rows, open_for_model
    from deciban.sources.source import Source

    fitted = load_model(model)
    scan = open_table(table, read)
    warn_missing_columns(fitted, scan)
    source = open_for_model(fitted, scan)
    assert isinstance(source, Source), "a scan is one"
    shown = source.at([number - 1 for number in row]) if row else source.head(rows + 1)
    if shown.num_rows < len(row):
        raise click.UsageError(f"--row {max(row)}: the table has fewer rows")
    wanted = [number - 1 for number in row] or list(range(min(rows, shown.num_rows)))
    with scan.locate_errors():
        found = Explanation.from_model(fitted.model, align_rows(fitted, shown.slice(0, len(wanted))), options["by"])
    if as_json:
        return echo_json(
            [
                {"row": number + 1, **found.to_dict(k), **({"steps": found.steps(k)} if options["steps"] else {})}
                for k, number in enumerate(wanted)
            ]
        )
    width = max(shutil.get_terminal_size((100, 24)).columns, 40) if sys.stdout.isatty() else 100
    for k, number in enumerate(wanted):
        if k:
            echo()
        echo_heading(f"row {number + 1}")
        echo(found.calculation(k, width) if options["steps"] else found.summary(k, width))
    if not row and shown.num_rows > rows:
        first = "row" if rows == 1 else count_noun(rows, "row")
        notify("note", f"only the first {first} shown; use --rows or --row for others")
    return None


@command("top-words", short_help="Show the most characteristic words of each class", epilog="""\b
Examples:
  deciban top-words mail.dcb
  deciban top-words mail.dcb --class spam --count 50
""")  # fmt: skip
@MODEL
@click.option(
    "--class",
    "label",
    metavar="CLASS",
    shell_complete=complete_class,
    show_default="all classes",
    help="Show only this class.",
)
@click.option(
    "--column", metavar="COLUMN", shell_complete=complete_model_column, help="Text column, if there are several."
)
@click.option("--count", "-n", type=click.IntRange(1), default=10, metavar="N", help="Number of words per class.")
@common_options
def top_words(model: str, label: str | None, column: str | None, count: int, as_json: bool) -> None:
    """Show the most characteristic words of each class."""
    from dataclasses import asdict

    from deciban.explain.words import list_top_words

    fitted = load_model(model)
    chosen = fitted.classes.tolist() if label is None else [find_class(fitted, label)]
    found = {format_class(one): list_top_words(fitted.plain, fitted.class_index(one), count, column) for one in chosen}
    if as_json:
        return echo_json({one: [asdict(word) for word in some] for one, some in found.items()})
    for k, (one, some) in enumerate(found.items()):
        if k:
            echo()
        echo_heading(one)
        echo(str(some))
    return None


def find_class(fitted: "Fitted", label: str | None, option: str = "--class") -> Any:
    """Return the class with this name, or None if no name is given."""
    labels = fitted.classes.tolist()
    if label is None:
        return None
    names = [format_class(one) for one in labels]
    if isinstance(labels[0], bool):
        label = label.lower()
    if label not in names:
        raise click.UsageError(f"{option} {label}: no such class; the classes are {list_some(names)}")
    return labels[names.index(label)]


@command(short_help="Generate random rows from a model", epilog="""\b
Examples:
  deciban sample wine.dcb --rows 1000 --seed 1 --output made-up.csv
  deciban sample mail.dcb --class spam --length 30
""")  # fmt: skip
@MODEL
@click.option("--rows", type=click.IntRange(0), default=10, metavar="N", help="Number of rows to generate.")
@click.option("--seed", type=click.IntRange(0), metavar="N", help="Seed, for reproducible rows.")
@click.option(
    "--class", "label", metavar="CLASS", shell_complete=complete_class, help="Generate rows of this class only."
)
@click.option("--length", type=click.IntRange(0), metavar="N", help="Number of words in each text cell.")
@output_option(show_default="standard output", help="File to write: .csv, .jsonl, .parquet or .xlsx.")
@NO_ESCAPE
@common_options
def sample(
    model: str, rows: int, seed: int | None, label: str | None, length: int | None, output: str | None, as_json: bool,
    no_escape: bool,
) -> None:  # fmt: skip
    """Generate random rows from MODEL.

    Each column is sampled from its distribution in the model; see deciban inspect. A Gaussian column has no bounds, so
    it may get negative values. To avoid them, fit with e.g. --family fare=Binned (or LogNormal, Gamma, or Poisson for
    counts).
    """
    check_table_output(output, (model,))
    from deciban.scoring.simulate import Sample, sample_rows

    fitted = load_model(model)
    drawn = sample_rows(fitted, rows, seed, find_class(fitted, label), length)
    table = Sample(*drawn, fitted.origin.target).to_frame("pyarrow")
    _write_tables(output, [table], table.column_names, as_json, {"keep": (), "no_escape": no_escape, "as_read": ()})
