"""The commands fit, learn, forget and merge, which write model files."""

import os
import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from deciban.cli.complete import complete_column, complete_family, complete_models, complete_tables
from deciban.cli.options import (
    MODEL,
    TABLE,
    TARGET,
    TUNE,
    ReadOptions,
    command,
    common_options,
    input_options,
    load_model,
    note_missing_words,
    open_labeled,
    open_table,
    output_option,
    parse_families,
    parse_monotone,
    parse_names,
    parse_prior,
    parse_tuning,
    refuse_class_per_row,
    table_arguments,
    warn_missing_columns,
    warn_new_classes,
    warn_new_columns,
)
from deciban.cli.output import (
    check_model_output,
    check_output,
    echo,
    echo_heading,
    echo_json,
    echo_wrapped,
    format_columns,
    notify,
)
from deciban.errors import Argument, DataError
from deciban.store.lock import DEFAULT_WAIT, check_no_journal, check_no_service, lock_for_change
from deciban.util.text_tables import count_noun

if TYPE_CHECKING:
    from deciban.model.fitted import Fitted

# Columns that `fit` lists; `inspect` lists all.
MAX_COLUMNS = 12

# Advice if the rows of a model have changed since it was tuned.
RETUNE = "to update it, run deciban learn --retune with more rows, or fit again"

PUSHDOWN = click.option(
    "--pushdown", is_flag=True, help="Compute the counts with SQL inside the database; only a sample is read."
)
MAX_SECONDS = click.option(
    "--max-seconds",
    type=click.FloatRange(0.0, min_open=True),
    metavar="SECONDS",
    show_default="no limit",
    help="Time for the fit: tuning uses fewer rows. Reading and counting all rows is not shortened.",
)
WAIT = click.option(
    "--wait",
    type=click.FloatRange(0.0),
    default=DEFAULT_WAIT,
    metavar="SECONDS",
    help="How long to wait while another command is changing the model.",
)
MODEL_OUTPUT = output_option(show_default="change MODEL in place", help="Model file to write.")


@command(
    short_help="Fit a model to a table",
    epilog="""\b
Examples:
  deciban fit wine.csv --target kind --output wine.dcb
  deciban fit 'sales/*.parquet' -t churn -o churn.dcb --ignore customer_id
  deciban fit "sql: select * from 'a.csv' join 'b.parquet' using (id)" \\
      -t bought -o bought.dcb
  deciban fit postgresql://ann@db.example.com/shop --table orders \\
      -t returned -o returns.dcb
  zcat big.csv.gz | deciban fit - -t kind -o big.dcb
  deciban fit letters/ -t folder -o letters.dcb
\b
Families for --family:
  numbers       Gaussian, Binned, LogNormal, Gamma, Poisson (counts)
  categories    Categorical, Bernoulli (yes or no)
  text          Text
  joint blocks  JointGaussian (numbers), JointTable (categories),
                Multinomial and Complement (word counts)
""",
)
@TABLE
@click.option("--target", "-t", required=True, metavar="COLUMN", shell_complete=complete_column,
              help="Column to predict (the class).")  # fmt: skip
@output_option(required=True, help="Model file to write, e.g. wine.dcb.")
@click.option(
    "--weight",
    metavar="COLUMN",
    shell_complete=complete_column,
    help="Column with the weight of each row; weight 2 counts the row twice.",
)
@click.option(
    "--family",
    multiple=True,
    metavar="COLUMN=FAMILY",
    shell_complete=complete_family,
    show_default="inferred",
    help="Distribution of a column, or of several jointly: age=Gaussian, 'size=Binned(bins=32)', "
    "'a,b=JointGaussian'. Repeatable.",
)
@click.option(
    "--prior",
    default="empirical",
    metavar="PRIOR",
    help="empirical, smoothed, uniform, or probabilities: 'ill=0.01,well=0.99'.",
)
@click.option("--classes", metavar="A,B,…", help="All classes, ascending if --ordered; any other label is an error.")
@click.option("--ordered", is_flag=True, help="The classes are ordered: by --classes, or else by value.")
@click.option(
    "--monotone",
    multiple=True,
    metavar="COLUMN=+1|-1",
    shell_complete=complete_column,
    help="Higher numbers in this column must favor the higher class (+1), or the lower (-1). Repeatable.",
)
@click.option("--alpha", type=float, default=1.0, metavar="NUMBER", help="Smoothing: added to every category count.")
@click.option(
    "--unseen",
    type=click.Choice(["ignore", "smooth", "error"]),
    default="ignore",
    help="How to treat a category not seen in training.",
)
@TUNE
@click.option(
    "--unlabeled",
    type=click.Choice(["em"]),
    show_default="they are ignored",
    help="Learn from rows without a label too, by expectation-maximization, if labeled rows gain by it.",
)
@click.option("--threads", type=click.IntRange(1), metavar="N", show_default="all cores", help="Number of threads.")
@MAX_SECONDS
@PUSHDOWN
@click.option(
    "--note", default="", metavar="TEXT", help="Note in the model file, e.g. 'churn v7'; see deciban inspect."
)
@click.option(
    "--force",
    is_flag=True,
    help="Fit even if about every row has a class of its own, and overwrite FILE even if it is not a model.",
)
@input_options
@common_options
def fit(table: tuple[str, ...], target: str, output: str, as_json: bool, read: ReadOptions, **options: Any) -> None:
    """Fit a model to TABLE and write it to a file.

    The table need not fit into memory. If TABLE is a folder of documents, each document becomes a row; the name of its
    subfolder becomes the column "folder". For a PostgreSQL database, choose the rows with --query or --table, and put
    the password in PGPASSWORD or ~/.pgpass.
    """
    if options["force"]:
        check_output(output, table)
    else:
        check_model_output(output, table, "choose a different name, or use --force to overwrite it")
    check_no_service(output)
    from deciban.fitting import fit
    from deciban.model.fitted import Settings
    from deciban.store.model_file import describe_fit, save

    describe_fit(0, options["note"])  # reject an invalid note before any work
    parse_families(options["family"])
    settings = Settings(
        prior=parse_prior(options["prior"]),
        alpha=options["alpha"],
        unseen=options["unseen"],
        threads=options["threads"],
        tune=parse_tuning(options["tune"]),
        classes=parse_names(options["classes"]) if options["classes"] else None,
        ordered=options["ordered"],
        monotone=parse_monotone(options["monotone"]),
        unlabeled=options["unlabeled"],
    )
    settings.check()  # before the table is opened, which may be slow
    again = table_arguments(table, read)
    scan = open_table(table, read, output)
    columns = [name for name in scan.names if name not in (target, options["weight"])]
    settings = replace(settings, families=parse_families(options["family"], columns))
    limits = {"pushdown": options["pushdown"], "max_seconds": options["max_seconds"]}
    with _time_stages() as seconds, refuse_class_per_row(scan, options["force"]):
        fitted = fit.fit(settings, scan, target, options["weight"], **limits)
    fitted = fitted.with_about(describe_fit(fitted.counts.rows, options["note"]))
    save(output, fitted)
    note_missing_words(scan, target)
    _warn_about_single_class(fitted)
    if as_json:
        from deciban.cli.command_evaluate import describe_model

        return echo_json({"model": output, **describe_model(fitted)})
    shown = seconds if sys.stdout.isatty() else {}  # other output is the same for the same table
    echo_heading(f"{output}: {describe_size(fitted)}" + (f"; {shown['fit']:.1f} s" if shown else ""))
    echo(format_columns(fitted.schema, max_columns=MAX_COLUMNS, more=f"deciban inspect {output}"))
    echo()
    tuning = fitted.tuning
    if tuning is None:
        echo("plain Bayes")
    elif options["prior"] == "empirical":
        echo_wrapped(tuning.describe(fitted.counts, shown.get("learning corrections")))
    else:
        echo_wrapped(replace(tuning, accuracy=None).describe())  # the metrics are for the empirical prior
    if tuning is None or tuning.accuracy is None or options["prior"] != "empirical":
        echo(f"to evaluate it: {shlex.join(['deciban', 'evaluate', output, *again])}")
    return None


@contextmanager
def _time_stages() -> Iterator[dict[str, float]]:
    """Yield a mapping that gets the seconds of each stage, and the total as "fit"."""
    from deciban.util.progress import on_progress

    seconds: dict[str, float] = {}
    start = time.monotonic()
    with on_progress(lambda progress: seconds.__setitem__(progress.stage, progress.seconds)):
        yield seconds
    seconds["fit"] = time.monotonic() - start


@command(short_help="Add rows to a model", epilog="""\b
Examples:
  deciban learn wine.dcb more.csv
  deciban learn wine.dcb more.csv --output newer.dcb --retune
""")  # fmt: skip
@MODEL
@TABLE
@TARGET
@MODEL_OUTPUT
@PUSHDOWN
@click.option("--retune", is_flag=True, help="Also tune the model again, on these rows.")
@click.option(
    "--force", is_flag=True, help="Add the rows even if the model was already trained on exactly this set of rows."
)
@WAIT
@input_options
@common_options
def learn(
    model: str, table: tuple[str, ...], output: str | None, as_json: bool, read: ReadOptions, **options: Any
) -> None:
    """Add the rows of TABLE to MODEL.

    The counts are exactly those of a fit to all rows. Use --retune to also update the tuning.
    """
    with _lock_model(model, output, table, options["wait"]):
        from deciban.fitting import update
        from deciban.store.model_file import save

        fitted = load_model(model)
        scan = open_table(table, read, output or model)
        rows = open_labeled(fitted, scan, options["target"])
        warn_missing_columns(fitted, scan)
        note_missing_words(scan, rows.target)
        warn_new_columns(fitted, rows, scan.name, "added too; use --ignore to leave a column out")
        with rows.locate_errors():
            shard = update.shard(fitted, scan, rows.target, rows.weight, options["pushdown"])
            if not options["force"] and update.share_rows(fitted, shard):
                raise DataError(
                    f"{model} was already trained on these rows",
                    remedy=("pass ", Argument("force", True), " to add them again"),
                )
            learned = update.merge([fitted, shard], [model, scan.name], options["force"])
            if options["retune"]:
                learned = update.retune(learned, rows.stream, rows.target, rows.weight)
        save(output or model, learned)
    warn_new_classes(fitted, shard, scan.name, "; to undo, use deciban forget")
    change = f"{count_noun(shard.counts.rows, 'row')} added"
    _echo_change(output or model, learned, change, as_json, retuned=options["retune"])


@command(short_help="Remove rows from a model", epilog="""\b
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
    """Remove the rows of TABLE from MODEL, as if it had never been trained on them.

    The table must have all columns of the model.
    """
    with _lock_model(model, output, table, options["wait"]):
        from deciban.fitting import update
        from deciban.store.model_file import save

        fitted = load_model(model)
        before = fitted.counts.rows
        scan = open_table(table, read, output or model)
        rows = open_labeled(fitted, scan, options["target"])
        warn_new_columns(fitted, rows, scan.name, "ignored")
        fitted = update.forget(fitted, rows.stream, rows.target, rows.weight, options["pushdown"])
        save(output or model, fitted)
    _echo_change(output or model, fitted, f"{count_noun(before - fitted.counts.rows, 'row')} removed", as_json)


@command(short_help="Combine models fitted on different rows", epilog="""\b
Examples:
  deciban merge monday.dcb tuesday.dcb --output week.dcb
  deciban merge monday.dcb tuesday.dcb -o week.dcb --retune week.csv
""")  # fmt: skip
@click.argument("models", nargs=-1, required=True, type=click.Path(dir_okay=False), shell_complete=complete_models)
@output_option(required=True, help="Model file to write.")
@click.option(
    "--force",
    is_flag=True,
    help="Merge even if models share training rows, predict different columns or have no column in common.",
)
@click.option(
    "--retune",
    multiple=True,
    metavar="TABLE",
    shell_complete=complete_tables,
    help="Tune the combined model again, on these rows, which the models were fitted on. Repeat it for several files.",
)
@input_options
@common_options
def merge(
    models: tuple[str, ...],
    output: str,
    force: bool,
    retune: tuple[str, ...],
    as_json: bool,
    read: ReadOptions,
) -> None:
    """Combine MODELS that were fitted on different rows.

    The counts are exactly those of one fit to all rows. The tuning is that of the first model; use --retune to learn
    its weights and corrections again, on rows of all models.
    """
    check_model_output(output, (*models, *retune))
    check_no_service(output)
    from deciban.fitting import update
    from deciban.store.model_file import save

    parts = [load_model(model) for model in models]
    fitted = update.merge(parts, models, force)
    if retune:
        scan = open_table(retune, read, output)
        rows = open_labeled(fitted, scan, None)
        warn_missing_columns(fitted, scan)
        with rows.locate_errors():
            fitted = update.retune(fitted, rows.stream, rows.target, rows.weight)
    save(output, fitted)
    for name, part in zip(models[1:], parts[1:], strict=True):
        warn_new_classes(parts[0], part, name)
    again = shlex.join(["deciban", "merge", *models, "-o", output, "--retune", "TABLE"])
    remedy = f"to tune the merged model, run {again} with the rows of the models, or fit them at once"
    _echo_change(output, fitted, f"{count_noun(len(models), 'model')} merged", as_json, remedy, bool(retune))


@contextmanager
def _lock_model(model: str, output: str | None, table: tuple[str, ...], wait: float) -> Iterator[None]:
    """Check the output and, if the model is changed in place, lock it meanwhile."""
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
    """Describe the number of rows, classes and columns of a model."""
    counts = fitted.counts
    parts = [
        count_noun(counts.rows, "row"),
        count_noun(counts.classes.size, "class"),
        count_noun(counts.schema.width, "column"),
    ]
    if counts.unlabeled:
        parts.append(f"{count_noun(counts.unlabeled, 'row')} without a label ignored")
    return ", ".join(parts)


def _warn_about_single_class(fitted: "Fitted") -> None:
    if fitted.classes.size == 1:
        notify("warning", f"only one class, {fitted.classes.tolist()[0]!r}: it will always be predicted")


def _echo_change(
    path: str, fitted: "Fitted", change: str, as_json: bool, remedy: str = RETUNE, retuned: bool = False
) -> None:
    _warn_about_single_class(fitted)
    if as_json:
        from deciban.cli.command_evaluate import describe_model

        return echo_json({"model": path, **describe_model(fitted)})
    echo_heading(f"{path}: {change}; now {describe_size(fitted)}")
    if fitted.tuning is not None and fitted.tuning.stale and fitted.tuning.rows:
        echo(f"the tuning is unchanged; {remedy}")
    elif retuned and fitted.tuning is not None:
        echo_wrapped(fitted.tuning.describe(fitted.counts))
    return None
