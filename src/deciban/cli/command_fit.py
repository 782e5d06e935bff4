"""fit, learn, forget, merge: the commands that make and change model files."""

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from deciban.cli.fit_notes import RETUNE, describe_tuning, note_missing_words, warn_about_model
from deciban.cli.options import (
    MODEL,
    TABLE,
    TARGET,
    TUNE,
    ReadOptions,
    common_options,
    complete_files,
    input_options,
    load_model,
    open_labeled,
    open_table,
    parse_families,
    parse_prior,
    parse_tuning,
    table_arguments,
    warn_missing_columns,
    warn_new_classes,
    warn_new_columns,
)
from deciban.cli.output import (
    check_model_output,
    check_no_journal,
    check_no_service,
    check_output,
    echo,
    echo_heading,
    echo_json,
    format_columns,
    notify,
)
from deciban.store.lock import DEFAULT_WAIT, lock_for_change
from deciban.util.text_tables import count_noun

if TYPE_CHECKING:
    from deciban.model.fitted import Fitted

PUSHDOWN = click.option(
    "--pushdown", is_flag=True, help="Count rows by SQL inside the database; only a sample is read."
)
WAIT = click.option(
    "--wait",
    type=click.FloatRange(0.0),
    default=DEFAULT_WAIT,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for another command that changes the model.",
)
MODEL_OUTPUT = click.option(
    "--output", "-o", metavar="FILE", shell_complete=complete_files, help="The model file to write, such as wine.dcb."
)


@click.command(
    epilog="""\b
Examples:
  deciban fit wine.csv --target kind --output wine.dcb
  deciban fit 'sales/*.parquet' -t churn -o churn.dcb --ignore customer_id
  deciban fit "sql: select * from 'a.csv' join 'b.parquet' using (id)" -t bought -o bought.dcb
  deciban fit letters/ -t folder -o letters.dcb
  deciban fit postgresql://ann@db.example.com/shop --query 'select * from orders' -t returned -o returns.dcb
  zcat big.csv.gz | deciban fit - -t kind -o big.dcb --family "height,weight=JointGaussian"
"""
)
@TABLE
@click.option("--target", "-t", required=True, metavar="COLUMN", help="The column with the classes.")
@click.option(
    "--output",
    "-o",
    required=True,
    metavar="FILE",
    shell_complete=complete_files,
    help="The model file to write, such as wine.dcb.",
)
@click.option("--weight", metavar="COLUMN", help="The column with the weight (the number of repetitions) of each row.")
@click.option(
    "--family",
    multiple=True,
    metavar="COLUMN=FAMILY",
    help="What a column is, or several together: age=gaussian, 'size=Binned(bins=32)', 'a,b=JointGaussian'; a name "
    "with a comma in double quotes; may be repeated.",
)
@click.option(
    "--prior",
    default="empirical",
    metavar="PRIOR",
    show_default=True,
    help="empirical, smoothed, uniform, or probabilities: 'ill=0.01,well=0.99'.",
)
@click.option("--alpha", type=float, default=1.0, show_default=True, help="Added to every count of a category.")
@click.option(
    "--unseen",
    type=click.Choice(["ignore", "smooth", "error"]),
    default="ignore",
    show_default=True,
    help="What a category never seen is worth.",
)
@TUNE
@click.option("--threads", type=click.IntRange(1), help="How many threads count; all cores unless given.")
@PUSHDOWN
@click.option("--force", is_flag=True, help="Write the model also where there is a file that is no model.")
@input_options
@common_options
def fit(table: tuple[str, ...], target: str, output: str, as_json: bool, read: ReadOptions, **options: Any) -> None:
    """Learn TABLE and write a model file.

    TABLE is a file (CSV, JSON lines, Parquet, Arrow, ORC; also compressed), several files, a glob, a folder, - for
    standard input, or "sql: select ...". It need not fit into memory. A folder of documents is
    a table whose target is "folder", the name of the folder that a document is in. A PostgreSQL database is given by
    its URL, and its rows by --query or --table; passwords belong into PGPASSWORD or ~/.pgpass.
    """  # fmt: skip
    if options["force"]:
        check_output(output, table)
    else:
        check_model_output(output, table, "give another name, or --force to replace it")
    check_no_service(output)
    from deciban.fitting import fit
    from deciban.model.fitted import Settings
    from deciban.store.model_file import save

    parse_families(options["family"])
    settings = Settings(
        prior=parse_prior(options["prior"]),
        alpha=options["alpha"],
        unseen=options["unseen"],
        threads=options["threads"],
        tune=parse_tuning(options["tune"]),
    )
    settings.check()  # before a table is opened, which may be long or come by standard input
    again = table_arguments(table, read)
    scan = open_table(table, read, output)
    columns = [name for name in scan.names if name not in (target, options["weight"])]
    settings = replace(settings, families=parse_families(options["family"], columns))
    fitted = fit.fit(settings, scan, target, options["weight"], pushdown=options["pushdown"])
    save(output, fitted)
    note_missing_words(scan, target)
    warn_about_model(fitted, again, scan.typed, identifiers=False)
    if as_json:
        from deciban.cli.command_evaluate import describe_model

        return echo_json({"model": output, **describe_model(fitted)})
    echo_heading(f"{output}: {describe_size(fitted)}")
    echo(format_columns(fitted, most=12, more=f"deciban inspect {output}"))
    echo()
    tuning = fitted.tuning
    if tuning is not None and options["prior"] != "empirical":
        echo(replace(tuning, accuracy=None).summary)  # that is with the shares of the classes in the table
    else:
        echo(describe_tuning(fitted))
    if tuning is None or tuning.accuracy is None or options["prior"] != "empirical":
        echo(f"how good it is: {shlex.join(['deciban', 'evaluate', output, *again])}")
    return None


@click.command(epilog="""\b
Examples:
  deciban learn wine.dcb more.csv
  deciban learn wine.dcb more.csv --output newer.dcb --retune
""")  # fmt: skip
@MODEL
@TABLE
@TARGET
@MODEL_OUTPUT
@PUSHDOWN
@click.option("--retune", is_flag=True, help="Learn weights and corrections anew from these rows.")
@click.option("--force", is_flag=True, help="Also rows that the model has learned already.")
@WAIT
@input_options
@common_options
def learn(
    model: str, table: tuple[str, ...], output: str | None, as_json: bool, read: ReadOptions, **options: Any
) -> None:
    """Add the rows of TABLE to MODEL (or write the result to --output)."""
    with _lock_model(model, output, table, options["wait"]):
        from deciban.fitting import update
        from deciban.store.model_file import save

        fitted = load_model(model)
        scan = open_table(table, read, output or model)
        rows = open_labeled(fitted, scan, options["target"])
        warn_missing_columns(fitted, scan)
        note_missing_words(scan, rows.target)
        warn_new_columns(fitted, rows, scan.name, "learned too; --ignore leaves a column out")
        with rows.locate_errors():
            shard = update.shard(fitted, scan, rows.target, rows.weight, options["pushdown"])
            learned = update.merge([fitted, shard], [model, scan.name], options["force"])
            if options["retune"]:
                learned = update.retune(learned, rows.stream, rows.target, rows.weight)
        save(output or model, learned)
    warn_new_classes(fitted, shard, scan.name, "; `deciban forget` takes the rows back")
    _echo_change(output or model, learned, f"{count_noun(shard.counts.rows, 'row')} learned", as_json)


@click.command(epilog="""\b
Example:
  deciban forget wine.dcb withdrawn.csv
""")  # fmt: skip
@MODEL
@TABLE
@TARGET
@MODEL_OUTPUT
@PUSHDOWN
@WAIT
@input_options
@common_options
def forget(
    model: str, table: tuple[str, ...], output: str | None, as_json: bool, read: ReadOptions, **options: Any
) -> None:
    """Subtract the rows of TABLE from MODEL, as if they had never been learned."""
    with _lock_model(model, output, table, options["wait"]):
        from deciban.fitting import update
        from deciban.store.model_file import save

        fitted = load_model(model)
        before = fitted.counts.rows
        scan = open_table(table, read, output or model)
        rows = open_labeled(fitted, scan, options["target"])
        warn_new_columns(fitted, rows, scan.name, "left out")
        fitted = update.forget(fitted, rows.stream, rows.target, rows.weight, options["pushdown"])
        save(output or model, fitted)
    _echo_change(output or model, fitted, f"{count_noun(before - fitted.counts.rows, 'row')} forgotten", as_json)


@click.command(epilog="""\b
Example:
  deciban merge monday.dcb tuesday.dcb --output week.dcb
""")  # fmt: skip
@click.argument("models", nargs=-1, required=True, type=click.Path(dir_okay=False))
@click.option(
    "--output", "-o", required=True, metavar="FILE", shell_complete=complete_files, help="The model file to write."
)
@click.option(
    "--force",
    is_flag=True,
    help="Merge even if the models share rows, predict different columns or have no column in common.",
)
@common_options
def merge(models: tuple[str, ...], output: str, force: bool, as_json: bool) -> None:
    """Add up MODELS that were trained apart into the one that was trained on all their rows."""
    check_model_output(output, models)
    check_no_service(output)
    from deciban.fitting import update
    from deciban.store.model_file import save

    parts = [load_model(model) for model in models]
    fitted = update.merge(parts, models, force)
    save(output, fitted)
    for name, part in zip(models[1:], parts[1:], strict=True):
        warn_new_classes(parts[0], part, name)
    _echo_change(output, fitted, f"{count_noun(len(models), 'model')} merged", as_json)


@contextmanager
def _lock_model(model: str, output: str | None, table: tuple[str, ...], wait: float) -> Iterator[None]:
    """While it lasts, nobody else changes the model, if it is to be replaced; what can be checked first, is."""
    if output is None:
        check_output(model, table)
    else:
        check_model_output(output, table)
    in_place = output is None or (os.path.exists(output) and os.path.exists(model) and os.path.samefile(output, model))
    if not in_place and output is not None:
        check_no_service(output)
    with lock_for_change(model, partial(notify, "note"), wait) if in_place else nullcontext():
        if in_place:
            check_no_journal(model)
        yield


def describe_size(fitted: "Fitted") -> str:
    counts = fitted.counts
    parts = [
        count_noun(counts.rows, "row"),
        count_noun(counts.classes.size, "class"),
        count_noun(counts.schema.width, "column"),
    ]
    if counts.unlabeled:
        parts.append(f"{count_noun(counts.unlabeled, 'row')} without a label left out")
    return ", ".join(parts)


def _echo_change(path: str, fitted: "Fitted", what: str, as_json: bool) -> None:
    warn_about_model(fitted)
    if as_json:
        from deciban.cli.command_evaluate import describe_model

        return echo_json({"model": path, **describe_model(fitted)})
    echo_heading(f"{path}: {what}; now {describe_size(fitted)}")
    if fitted.tuning is not None and fitted.tuning.stale and fitted.tuning.rows:
        echo(f"the weights of the evidence are those of before; {RETUNE}")
    return None
