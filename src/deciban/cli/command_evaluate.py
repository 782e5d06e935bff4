"""The commands evaluate, audit, drift, diagnose and inspect."""

import os
from typing import TYPE_CHECKING, Any

import click

from deciban.cli.command_predict import NO_ESCAPE
from deciban.cli.complete import complete_column, complete_sources
from deciban.cli.messages import as_option
from deciban.cli.options import (
    COSTS,
    MODEL,
    TABLE,
    TARGET,
    TUNE,
    Number,
    ReadOptions,
    command,
    common_options,
    input_options,
    load_model,
    note_missing_words,
    open_labeled,
    open_table,
    output_option,
    parse_tuning,
    refuse_class_per_row,
    warn_missing_columns,
)
from deciban.cli.output import (
    check_table_output,
    echo,
    echo_heading,
    echo_json,
    echo_wrapped,
    format_columns,
    notify,
)
from deciban.util.text_tables import (
    align_table,
    count_noun,
    escape_line,
    format_amount,
    format_class,
    integer_if_whole,
    terminal_width,
)

if TYPE_CHECKING:
    from deciban.evaluation.label_issues import LabelIssues
    from deciban.evaluation.metrics import Evaluation
    from deciban.model.fitted import Fitted
    from deciban.sources.source import Source
    from deciban.sources.streams import LabeledStream

# Classes that `inspect` lists; --json lists all.
MAX_CLASSES = 20

# Folds of a cross-validation without --folds.
DEFAULT_FOLDS = 5

# Options of commands that take a table, or a model and a table.
SOURCES = click.argument(
    "sources", nargs=-1, required=True, metavar="[MODEL] TABLE...", shell_complete=complete_sources
)
LABELS = click.option(
    "--target",
    "-t",
    metavar="COLUMN",
    show_default="as in the model",
    shell_complete=complete_column,
    help="Column to predict (the class). Required without a model.",
)
WEIGHT = click.option(
    "--weight",
    metavar="COLUMN",
    shell_complete=complete_column,
    help="Column with the weight of each row (only without a model).",
)
LEAVE_ONE_OUT = click.option(
    "--leave-one-out",
    is_flag=True,
    help="Leave out each row in turn. Use it if TABLE is a subset of the training rows; for the full training table "
    "this is automatic.",
)


@command(short_help="Measure accuracy, calibration and costs", epilog="""\b
Examples:
  deciban evaluate wine.csv --target kind
  deciban evaluate wine.csv --target kind --hold-out 0.2
  deciban evaluate sales.csv --target churn --hold-out-last 0.2
  deciban evaluate wine.dcb new.csv
  deciban evaluate cancer.dcb new.csv --costs costs.csv
""")  # fmt: skip
@SOURCES
@LABELS
@WEIGHT
@click.option(
    "--folds",
    type=click.IntRange(2),
    metavar="N",
    show_default="5 without a model",
    help="Number of cross-validation folds. With a model, cross-validate its settings on TABLE instead of evaluating "
    "the model itself.",
)
@click.option(
    "--hold-out",
    type=Number(0.0, 0.5, min_open=True),
    metavar="SHARE",
    help="Instead of cross-validation, hold out this share of the rows, rounded to 1/2, 1/3, 1/4, …",
)
@click.option(
    "--hold-out-last",
    type=Number(0.0, 1.0, min_open=True, max_open=True),
    metavar="SHARE",
    help="Instead of cross-validation, hold out this share of the rows at the end of the table. Use it if rows are in "
    "the order of time: the model is fitted on the past and tested on the future.",
)
@LEAVE_ONE_OUT
@click.option("--force", is_flag=True, help="Cross-validate even if about every row has a class of its own.")
@COSTS
@TUNE
@input_options
@common_options
def evaluate(sources: tuple[str, ...], target: str | None, as_json: bool, read: ReadOptions, **options: Any) -> None:
    """Measure how accurate the predictions are and how well the probabilities are calibrated.

    Without a model, the table is cross-validated. With a model, its predictions for the table are evaluated. If the
    table is the one that the model was fitted on, each row is left out in turn.
    """
    from deciban.cli.command_predict import load_costs, locate_cost_errors
    from deciban.evaluation.validation import cross_validate, evaluate_last, evaluate_left_out
    from deciban.model.fitted import Settings

    model, table = _separate_model("evaluate", sources, options)
    methods = [name for name in ("folds", "hold_out", "hold_out_last") if options[name] is not None]
    if len(methods) > 1:
        one, other = (f"--{name.replace('_', '-')}" for name in methods[:2])
        raise click.UsageError(f"{one} and {other} cannot be combined; choose one")
    from_scratch = model is None or bool(methods)
    if options["leave_one_out"] and from_scratch:
        raise click.UsageError("--leave-one-out needs a model and its training rows; without a model, use --folds")
    fitted = None if model is None else load_model(model)
    loss = load_costs(options["costs"], None if from_scratch else fitted)
    scan = open_table(table, read)
    if fitted is not None:
        rows = open_labeled(fitted, scan, target)
        warn_missing_columns(fitted, scan)
    else:
        from deciban.sources.streams import LabeledStream

        note_missing_words(scan, target)
        if target is None:
            raise click.UsageError("missing --target: the column to predict")
        rows = LabeledStream.of(scan, target, options["weight"])
    not_left_out = None
    if from_scratch or fitted is None:
        share = options["hold_out"]
        folds = max(2, round(1 / share)) if share is not None else options["folds"] or DEFAULT_FOLDS
        method = f"hold-out of 1/{folds}" if share is not None else f"{folds}-fold cross-validation"
        with locate_cost_errors(options["costs"]), refuse_class_per_row(scan, options["force"]):
            settings = Settings(tune=parse_tuning(options["tune"])) if fitted is None else fitted.settings
            if options["hold_out_last"] is not None:
                method = f"hold-out of the last {100 * options['hold_out_last']:.3g}% of the rows"
                found = evaluate_last(settings, rows, options["hold_out_last"], loss)
            else:
                found = cross_validate(settings, rows, folds, loss, only=1 if share is not None else None)
    elif options["leave_one_out"]:
        method, found = _describe_left_out(fitted), evaluate_left_out(fitted, rows, loss)
    else:
        with rows.locate_errors():
            method, found, not_left_out = _evaluate_model(fitted, rows, loss)
    if as_json:
        more = {} if not_left_out is None else {"not_left_out": not_left_out.to_dict()}
        return echo_json({"method": method, **found.to_dict(), **more})
    echo_heading(method)
    width = terminal_width()
    echo(found.describe(width).replace("to_dict()", "--json"))
    if not_left_out is not None:
        metrics = f"accuracy {not_left_out.accuracy:.4f}, log-loss {not_left_out.log_loss:.4f}"
        echo()
        echo_wrapped(f"These are the training rows. Without leaving them out: {metrics}.")
    return None


def _evaluate_model(
    fitted: "Fitted", rows: "LabeledStream", loss: Any
) -> tuple[str, "Evaluation", "Evaluation | None"]:
    """Evaluate a model on rows.

    Returns the method and the evaluation. For training rows there is also the evaluation without leaving them out.
    """
    from deciban.cli.command_predict import count_unknown_cells
    from deciban.errors import DataError
    from deciban.evaluation.validation import evaluate_and_recognize, evaluate_left_out

    with count_unknown_cells(fitted) as observe:
        found, learned = evaluate_and_recognize(fitted, rows, loss, observe)
    if not learned:
        return "new rows", found, None
    try:
        left_out = evaluate_left_out(fitted, rows, loss)
    except DataError:  # the training rows have decayed since
        notify("warning", "the model was fitted on these rows, so the metrics are too optimistic; use --folds")
        return "training rows, not left out", found, None
    return f"training rows, {_describe_left_out(fitted)}", left_out, found


def _describe_left_out(fitted: "Fitted") -> str:
    return "exact leave-one-out" + (" (given the tuning)" if fitted.is_tuned else "")


@command(short_help="Find rows whose label is probably wrong", epilog="""\b
Examples:
  deciban audit wine.csv --target kind
  deciban audit wine.csv --target kind --output issues.csv
  deciban audit wine.dcb wine.csv --output issues.csv
  deciban forget wine.dcb issues.csv
""")  # fmt: skip
@SOURCES
@LABELS
@WEIGHT
@click.option(
    "--min-probability",
    type=Number(0.0, 1.0, min_open=True, max_open=True),
    default=0.2,
    metavar="P",
    help="Smallest probability of a wrong label: the cost of a check divided by the cost of an overlooked error.",
)
@LEAVE_ONE_OUT
@output_option(
    help="File to write the rows to, as they are in TABLE, with the columns suggested, probability and evidence added: "
    ".csv, .jsonl, .parquet or .xlsx."
)
@NO_ESCAPE
@click.option("--force", is_flag=True, help="Fit even if about every row has a class of its own.")
@TUNE
@input_options
@common_options
def audit(
    sources: tuple[str, ...], target: str | None, output: str | None, as_json: bool, read: ReadOptions, **options: Any
) -> None:
    """List the rows whose label is probably wrong, the most probable errors first.

    Without a model, one is fitted to TABLE, and each row is left out in turn. With a model, this is so if TABLE is the
    one that the model was fitted on; other rows are checked as new rows. Rows are numbered from 1.
    """
    from deciban.evaluation.label_issues import find_label_issues
    from deciban.evaluation.validation import is_learned
    from deciban.model.fitted import Settings

    check_table_output(output, sources)
    model, table = _separate_model("audit", sources, options)
    if model is None and target is None:
        raise click.UsageError("missing --target: the column to check")
    scan = open_table(table, read, output)
    if output is not None and not scan.in_order:
        raise click.UsageError(f"--output needs rows in a fixed order; sort {scan.name} with ORDER BY in the query")
    if model is not None:
        fitted = load_model(model)
        warn_missing_columns(fitted, scan)
    else:
        from deciban.fitting import fit

        note_missing_words(scan, target)
        with refuse_class_per_row(scan, options["force"]):
            fitted = fit.fit(Settings(tune=parse_tuning(options["tune"])), scan, target, options["weight"])
    rows = open_labeled(fitted, scan, target)
    with rows.locate_errors():
        learned = model is None or options["leave_one_out"] or is_learned(fitted, rows)
        found = find_label_issues(fitted, rows, options["min_probability"], learned)
        if output is not None:
            _write_issues(output, scan, found, not options["no_escape"])
    method = _describe_left_out(fitted) if learned else "new rows"
    if as_json:
        return echo_json({"method": method, **found.to_dict()})
    echo_heading(method)
    echo(str(found).replace("to_frame()", "--json"))
    if output is not None:
        echo(f"\n{output}: {count_noun(found.rows.size, 'row')}")
    return None


def _write_issues(path: str, scan: "Source", found: "LabelIssues", safe: bool) -> None:
    """Write the rows of the issues to a file, as they are in the table, with the findings in additional columns."""
    import numpy as np

    from deciban.sources.write import kind_of_output, open_writer
    from deciban.tables.table import Frame, with_columns

    source = scan.with_ignored()
    source = source.as_text(source.names) if kind_of_output(path) in ("csv", "tsv") else source
    places = (found.rows - 1).tolist()
    shown = Frame(source.at(places) if places else source.head(0))
    evidence = np.array([found.describe_evidence(k) for k in range(len(places))], dtype=object)
    added = {"suggested": found.suggested, "probability": found.probability, "evidence": evidence}
    with open_writer(path, safe=safe) as write:
        write(with_columns(shown, added))


def _separate_model(name: str, sources: tuple[str, ...], options: dict[str, Any]) -> tuple[str | None, tuple[str, ...]]:
    """Return the model, None without one, and the tables of the command of this name."""
    if not _is_model(sources[0]):
        return None, sources
    if len(sources) == 1:
        raise click.UsageError(f"missing table: deciban {name} MODEL TABLE")
    if options["tune"] is not None or options["weight"] is not None:
        raise click.UsageError("--tune and --weight cannot be used with a model; the model file contains them")
    return sources[0], sources[1:]


def _is_model(path: str) -> bool:
    from deciban.store.layout import is_model

    if os.path.exists(path) and not os.path.isfile(path):
        return False  # a pipe can be read only once
    try:
        return is_model(path)
    except OSError:
        return path.endswith(".dcb")


@command(short_help="Compare new rows with those a model learned", epilog="""\b
Examples:
  deciban drift wine.dcb new.csv
  deciban drift cancer.dcb new.csv --costs costs.csv
  deciban drift january.dcb june.dcb
""")  # fmt: skip
@MODEL
@TABLE
@click.option(
    "--level",
    type=Number(0.0, 1.0, min_open=True, max_open=True),
    default=0.01,
    metavar="P",
    help="Probability of any false alarm if nothing has changed.",
)
@COSTS
@input_options
@common_options
def drift(
    model: str, table: tuple[str, ...], level: float, costs: str | None, as_json: bool, read: ReadOptions, **_: Any
) -> None:
    """Find columns of TABLE whose distribution has changed since MODEL learned them.

    TABLE needs no labels: class shares, accuracy and costs are estimated. It may be another model.
    """
    from deciban.cli.command_predict import load_costs
    from deciban.evaluation.comparison import compare

    fitted = load_model(model)
    loss = load_costs(costs, fitted)
    if len(table) == 1 and _is_model(table[0]):
        found = compare(fitted, load_model(table[0]), loss, level)
    else:
        scan = open_table(table, read)
        warn_missing_columns(fitted, scan)
        with scan.locate_errors():
            found = compare(fitted, scan, loss, level)
    if as_json:
        return echo_json(found.to_dict())
    echo(str(found).replace("to_frame()", "--json"))
    return None


@command(short_help="Check the assumptions of a model", epilog="""\b
Examples:
  deciban diagnose wine.dcb wine.csv
  deciban diagnose wine.dcb wine.csv --select
""")  # fmt: skip
@MODEL
@TABLE
@TARGET
@click.option("--select", is_flag=True, help="Show the columns that predict best together too, most informative "
              "first: all that add more than chance would.")  # fmt: skip
@input_options
@common_options
def diagnose(
    model: str,
    table: tuple[str, ...],
    target: str | None,
    select: bool,
    as_json: bool,
    read: ReadOptions,
    **options: Any,
) -> None:
    """Check which assumptions of MODEL fail on its training rows.

    Shows dependent columns, poorly fitting distributions, their effect on the log-loss, and remedies.
    """
    from deciban.evaluation.importance import select_learned_columns
    from deciban.evaluation.validation import diagnose_rows

    fitted = load_model(model)
    rows = open_labeled(fitted, open_table(table, read), target)
    with rows.locate_errors():
        found = diagnose_rows(fitted, rows)
        chosen = select_learned_columns(fitted, rows, None) if select else []
    selected = [fitted.model.schema.column_name(column) for column in chosen]
    if as_json:
        return echo_json({**found.to_dict(as_option), **({"selected": selected} if select else {})})
    echo(found.summary(as_option))
    if select:
        names = ", ".join(map(escape_line, selected)) or "none: no column adds more than chance would"
        echo(f"\ncolumns that predict best together: {names}")
    return None


@command(short_help="Show the contents of a model file", epilog="""\b
Examples:
  deciban inspect wine.dcb
  deciban inspect wine.dcb --estimates
  deciban inspect wine.dcb --form
""")  # fmt: skip
@MODEL
@click.option("--estimates", is_flag=True, help="Show estimates too: means, variances, P(value | class), …")
@click.option("--form", is_flag=True, help="Show the linear or quadratic form too: the weights w and the intercept b "
              "of each class.")  # fmt: skip
@common_options
def inspect(model: str, estimates: bool, form: bool, as_json: bool) -> None:
    """Show the rows, classes, columns, families and tuning of a model file."""
    from deciban.cli.command_fit import RETUNE, describe_size
    from deciban.explain.estimates import Estimates, ParameterCount
    from deciban.model.linear_forms import form_of
    from deciban.store.model_file import shards_of

    fitted = load_model(model)
    weights = form_of(fitted.model, quadratic=True) if form else None
    if as_json:
        found = {"estimates": Estimates.from_model(fitted.model).to_frame("pyarrow").to_pylist()} if estimates else {}
        found |= {} if weights is None else {"form": weights.to_frame("pyarrow").to_pylist()}
        return echo_json({"model": model, "bytes": os.path.getsize(model), **describe_model(fitted), **found})
    echo_heading(f"{model}: {describe_size(fitted)}")
    shards = shards_of(fitted)
    shown = ", ".join(shard[:12] for shard in shards[:4]) + (", …" if len(shards) > 4 else "")
    echo(f"{os.path.getsize(model):,} bytes; {count_noun(len(shards), 'shard')} ({shown})")
    echo(f"target: {fitted.origin.target or 'not named'}")
    if (about := fitted.about).fitted:
        versions = f"deciban {about.deciban}, NumPy {about.numpy}, Python {about.python}"
        echo(f"fitted: {about.fitted} on {count_noun(about.rows, 'row')} ({versions})")
    if about.note:
        echo(f"note: {escape_line(about.note)}")
    counts = fitted.counts
    if counts.epsilon is not None:
        echo(f"privacy: {counts.describe_noise()}")
    echo()
    rows = list(zip(counts.classes.tolist(), counts.class_weight.tolist(), strict=True))
    echo(
        align_table(
            [("class", "rows"), *((format_class(label), format_amount(weight)) for label, weight in rows[:MAX_CLASSES])]
        )
    )
    if len(rows) > MAX_CLASSES:
        echo(f"… ({len(rows) - MAX_CLASSES} more)")
    echo()
    echo(format_columns(fitted.schema))
    if fitted.tuning is not None:
        echo()
        stale = f"; the rows have changed since; {RETUNE}" if fitted.tuning.stale else ""
        echo_wrapped(fitted.tuning.describe(counts) + stale)
        echo(fitted.tuning.weights_table)
        if fitted.tuning.corrections is not None:
            echo()
            echo(fitted.tuning.corrections_table)
    echo()
    echo("free parameters, including the prior")
    echo(ParameterCount.from_counts(fitted.counts, fitted.plain, fitted.model))
    if estimates:
        echo()
        echo(Estimates.from_model(fitted.model))
    if weights is not None:
        echo()
        echo(weights)
    return None


def describe_model(fitted: "Fitted") -> dict[str, Any]:
    """Describe a model as a dictionary."""
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
        "epsilon": counts.epsilon,
        "target": fitted.origin.target,
        "about": fitted.about.to_dict(),
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
        "expected_counts": None if tuning is None or tuning.unlabeled is None else tuning.unlabeled.to_dict(),
        "weights": weights,
        "correction_tables": None if tuning is None or tuning.corrections is None else len(tuning.corrections.tests),
        "parameters": ParameterCount.from_counts(counts, fitted.plain, fitted.model).to_dict(),
        "shards": list(shards_of(fitted)),
    }
