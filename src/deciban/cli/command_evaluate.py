"""evaluate, diagnose, inspect: how good a model is, where it fails, and what is in its file."""

import os
from typing import TYPE_CHECKING, Any

import click

from deciban.cli.fit_notes import RETUNE, describe_tuning, note_missing_words
from deciban.cli.messages import as_option
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
    parse_tuning,
    warn_missing_columns,
)
from deciban.cli.output import echo, echo_heading, echo_json, format_columns, notify
from deciban.util.text_tables import align_table, format_amount, format_class, integer_if_whole

if TYPE_CHECKING:
    from deciban.evaluation.metrics import Evaluation
    from deciban.model.fitted import Fitted
    from deciban.sources.streams import LabeledStream


@click.command(epilog="""\b
Examples:
  deciban evaluate wine.csv --target kind --folds 5        from the table alone, each row judged by the others
  deciban evaluate wine.csv --target kind --hold-out 0.2   a fifth of the rows judged by the rest
  deciban evaluate wine.dcb new.csv                        a model on new rows
  deciban evaluate wine.dcb wine.csv                       on rows that it has learned: each left out in turn, exactly
  deciban evaluate cancer.dcb new.csv --costs costs.csv    what its decisions cost
""")  # fmt: skip
@click.argument("sources", nargs=-1, required=True, metavar="[MODEL] TABLE...", shell_complete=complete_files)
@click.option("--target", "-t", metavar="COLUMN", help="The column with the classes.")
@click.option("--weight", metavar="COLUMN", help="The column with the weight of each row, of a table without a model.")
@click.option(
    "--folds",
    type=click.IntRange(2),
    help="Judge each of so many parts of the table by the others; 5 for a table without a model.",
)
@click.option(
    "--hold-out",
    type=click.FloatRange(0.0, 0.5, min_open=True),
    help="Judge this share of the rows by the rest, rounded to one part of so many: 1/2, 1/3, 1/4, …",
)
@click.option(
    "--leave-one-out",
    is_flag=True,
    help="The rows are some of those that the model has "
    "learned: leave each out in turn. All that were learned at once are known as such without it.",
)
@click.option(
    "--costs",
    metavar="FILE",
    shell_complete=complete_files,
    help="What each decision costs when each class is true; see deciban decide.",
)
@TUNE
@input_options
@common_options
def evaluate(sources: tuple[str, ...], target: str | None, as_json: bool, read: ReadOptions, **options: Any) -> None:
    """Say how often the predictions are right and how far the probabilities can be believed."""  # fmt: skip
    from deciban.cli.command_predict import load_costs, locate_cost_errors
    from deciban.evaluation.validation import cross_validate, evaluate_left_out
    from deciban.model.fitted import Settings

    first_is_model = _is_model(sources[0])
    from_scratch = not first_is_model or options["folds"] is not None or options["hold_out"] is not None
    if first_is_model and len(sources) == 1:
        raise click.UsageError("give the table too: deciban evaluate MODEL TABLE")
    if options["leave_one_out"] and from_scratch:
        raise click.UsageError("--leave-one-out is for a model and the rows that it has learned; see --folds")
    if first_is_model and (options["tune"] is not None or options["weight"] is not None):
        raise click.UsageError("--tune and --weight are for a table without a model, which knows its own")
    fitted = load_model(sources[0]) if first_is_model else None
    loss = load_costs(options["costs"], None if from_scratch else fitted)
    scan = open_table(sources[1:] if first_is_model else sources, read)
    if fitted is not None:
        rows = open_labeled(fitted, scan, target)
        warn_missing_columns(fitted, scan)
    else:
        from deciban.sources.streams import LabeledStream

        note_missing_words(scan, target)
        if target is None:
            raise click.UsageError("give --target, the column with the classes")
        rows = LabeledStream.of(scan, target, options["weight"])
    as_new = None
    if from_scratch or fitted is None:
        share = options["hold_out"]
        folds = max(2, round(1 / share)) if share is not None else options["folds"] or 5
        how = f"a hold-out of 1/{folds}" if share is not None else f"{folds} folds"
        with locate_cost_errors(options["costs"]):
            settings = Settings(tune=parse_tuning(options["tune"])) if fitted is None else fitted.settings
            found = cross_validate(settings, rows, folds, loss, only=1 if share is not None else None)
    elif options["leave_one_out"]:
        how, found = _describe_left_out(fitted), evaluate_left_out(fitted, rows, loss)
    else:
        with rows.locate_errors():
            how, found, as_new = _evaluate_model(fitted, rows, loss)
    if as_json:
        learned = {} if as_new is None else {"as_if_new": as_new.to_dict()}
        return echo_json({"how": how, **found.to_dict(), **learned})
    echo_heading(how)
    echo(str(found).replace("to_dict()", "--json"))
    if as_new is not None:
        figures = f"accuracy {as_new.accuracy:.4f}, log-loss {as_new.log_loss:.4f}"
        echo()
        echo(f"The model has learned these rows: taken as new ones they would have {figures}.")
    return None


def _evaluate_model(
    fitted: "Fitted", rows: "LabeledStream", loss: Any
) -> tuple[str, "Evaluation", "Evaluation | None"]:
    """How rows were evaluated, and the figures; if the model has learned them, also those as if they were new rows."""
    from deciban.cli.command_predict import count_unknown_cells
    from deciban.errors import DataError
    from deciban.evaluation.validation import evaluate_and_recognize, evaluate_left_out

    with count_unknown_cells(fitted) as observe:
        found, learned = evaluate_and_recognize(fitted, rows, loss, observe)
    if not learned:
        return "rows that are taken as new", found, None
    try:
        left_out = evaluate_left_out(fitted, rows, loss)
    except DataError:  # some of what was learned has faded since
        notify("warning", "the model has learned these rows: the figures flatter it; --folds judges by other rows")
        return "rows that the model has learned, taken as new", found, None
    return f"rows that the model has learned, each left out in turn: {_describe_left_out(fitted)}", left_out, found


def _describe_left_out(fitted: "Fitted") -> str:
    return "leave-one-out, exact" + (" (given the tuning)" if fitted.is_tuned else "")


def _is_model(path: str) -> bool:
    from deciban.store.layout import is_model

    if os.path.exists(path) and not os.path.isfile(path):
        return False  # of a pipe nothing can be read twice
    try:
        return is_model(path)
    except OSError:
        return path.endswith(".dcb")


@click.command(epilog="""\b
Example:
  deciban diagnose wine.dcb wine.csv
""")  # fmt: skip
@MODEL
@TABLE
@TARGET
@input_options
@common_options
def diagnose(
    model: str, table: tuple[str, ...], target: str | None, as_json: bool, read: ReadOptions, **options: Any
) -> None:
    """Say where the assumptions of MODEL fail on the rows it has learned, what that costs, and the remedy."""
    from deciban.evaluation.validation import diagnose_rows

    fitted = load_model(model)
    rows = open_labeled(fitted, open_table(table, read), target)
    with rows.locate_errors():
        found = diagnose_rows(fitted, rows)
    if as_json:
        return echo_json(found.to_dict(as_option))
    echo(found.summary(as_option))
    return None


@click.command(epilog="""\b
Examples:
  deciban inspect wine.dcb
  deciban inspect wine.dcb --estimates
""")  # fmt: skip
@MODEL
@click.option("--estimates", is_flag=True, help="Show what was estimated too: means, variances, P(value | class), …")
@common_options
def inspect(model: str, estimates: bool, as_json: bool) -> None:
    """Say what is in a model file: what it has learned, from how many rows, and how it was tuned."""
    from deciban.cli.command_fit import describe_size
    from deciban.explain.estimates import Estimates, ParameterCount
    from deciban.store.model_file import shards_of

    fitted = load_model(model)
    if as_json:
        found = {"estimates": Estimates.from_model(fitted.model).to_arrow().to_pylist()} if estimates else {}
        return echo_json({"model": model, "bytes": os.path.getsize(model), **describe_model(fitted), **found})
    echo_heading(f"{model}: {describe_size(fitted)}")
    shards = shards_of(fitted)
    shown = ", ".join(shard[:12] for shard in shards[:4]) + (", …" if len(shards) > 4 else "")
    echo(f"{os.path.getsize(model):,} bytes; sets of rows: {len(shards)} ({shown})")
    echo(f"labels: {fitted.origin.target or 'given apart'}")
    echo()
    counts = fitted.counts
    rows = list(zip(counts.classes.tolist(), counts.class_weight.tolist(), strict=True))
    echo(
        align_table([("class", "rows"), *((format_class(label), format_amount(weight)) for label, weight in rows[:20])])
    )
    if len(rows) > 20:
        echo(f"… ({len(rows) - 20} more)")
    echo()
    echo(format_columns(fitted))
    if fitted.tuning is not None:
        echo()
        echo(describe_tuning(fitted) + (f"; the counts have changed since: {RETUNE}" if fitted.tuning.stale else ""))
        echo(fitted.tuning.weights_table)
        if fitted.tuning.corrections is not None:
            echo()
            echo(fitted.tuning.corrections_table)
    echo()
    echo("free parameters, prior included")
    echo(ParameterCount.from_counts(fitted.counts, fitted.plain, fitted.model))
    if estimates:
        echo()
        echo(Estimates.from_model(fitted.model))
    return None


def describe_model(fitted: "Fitted") -> dict[str, Any]:
    """What a classifier has learned, for programs."""
    from deciban.explain.estimates import ParameterCount
    from deciban.store.model_file import shards_of
    from deciban.util.version import __version__

    counts, tuning = fitted.counts, fitted.tuning
    names = counts.schema.column_names
    types = dict(zip(names, counts.schema.types or (), strict=False))
    weights = None if tuning is None else dict(zip(tuning.schema.block_names, tuning.weights.tolist(), strict=True))
    return {
        "deciban": __version__,
        "rows": counts.rows,
        "unlabeled": counts.unlabeled,
        "target": fitted.origin.target,
        "classes": dict(
            zip(
                map(format_class, counts.classes.tolist()),
                map(integer_if_whole, counts.class_weight.tolist()),
                strict=True,
            )
        ),
        "columns": [
            {"column": name, "type": types.get(name), "family": family, "why": why}
            for name, family, why in fitted.schema.descriptions()
        ],
        "tuned_rows": None if tuning is None else tuning.rows,
        "stale": None if tuning is None else tuning.stale,
        "left_out_accuracy": None if tuning is None else tuning.accuracy,
        "left_out_log_loss": None if tuning is None else tuning.log_loss,
        "weights": weights,
        "correction_tables": None if tuning is None or tuning.corrections is None else len(tuning.corrections.tests),
        "parameters": ParameterCount.from_counts(counts, fitted.plain, fitted.model).to_dict(),
        "shards": list(shards_of(fitted)),
    }
