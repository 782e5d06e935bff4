"""The command `plot`: pictures of a model and of its predictions."""

from typing import TYPE_CHECKING, Any

import click

from deciban.cli.command_predict import count_unknown_cells, find_class, load_costs
from deciban.cli.complete import complete_class, complete_model_column, complete_tables
from deciban.cli.options import (
    COSTS,
    MODEL,
    TARGET,
    Number,
    ReadOptions,
    command,
    common_options,
    input_options,
    load_model,
    open_table,
    output_option,
    parse_prior,
    warn_missing_columns,
)
from deciban.cli.output import check_output, echo, echo_json, notify

if TYPE_CHECKING:
    from deciban.model.fitted import Fitted
    from deciban.sources.source import Source

# Kinds of pictures by what they need: a model alone, one row of a table, or labeled rows.
OF_MODELS = ("nomogram", "column", "pair", "decision", "importance")
ROWS_OPTIONAL = ("decision", "importance")
OF_ROWS = ("evidence",)
OF_LABELED_ROWS = ("reliability", "coverage", "cost", "dependence", "learning")
PICTURE_KINDS = (*OF_ROWS, *OF_MODELS, *OF_LABELED_ROWS)

# Options that only some kinds of pictures have.
OPTIONS_OF_KINDS = {
    "row": ("evidence",),
    "column": ("nomogram", "column", "pair", "decision"),
    "label": ("evidence", "nomogram", "cost"),
    "against": ("evidence", "nomogram"),
    "target": (*OF_LABELED_ROWS, *ROWS_OPTIONAL),
    "costs": ("decision", "coverage", "cost"),
    "reject": ("coverage",),
    "prior": ("decision",),
    "boundary": ("decision",),
    "y_axis": ("decision",),
    "x_axis": ("cost",),
    "bars": ("dependence",),
}
SPELLINGS = {"label": "--class", "x_axis": "--x-axis", "y_axis": "--y-axis"}


@command(short_help="Plot a model or its predictions", epilog="""\b
Examples:
  deciban plot cancer.dcb patients.csv --kind evidence --row 3 -o why.png
  deciban plot cancer.dcb --kind nomogram -o nomogram.pdf
  deciban plot cancer.dcb --kind column --column worst_area -o area.svg
  deciban plot cancer.dcb --kind decision --column worst_area -o area.png
  deciban plot cancer.dcb new.csv --kind reliability -o reliability.png
\b
These kinds need only MODEL: nomogram, column, pair, decision,
importance.
evidence needs rows. These kinds need rows with the target column:
reliability, coverage, cost, dependence, learning.
If TABLE is given, decision draws its rows as points, and importance
is that of its rows instead of rows sampled from the model.
""")  # fmt: skip
@MODEL
@click.argument("table", nargs=-1, shell_complete=complete_tables)
@click.option("--kind", type=click.Choice(PICTURE_KINDS), required=True, metavar="KIND", help="Kind of plot: "
              f"{', '.join(PICTURE_KINDS)}.")  # fmt: skip
@output_option(required=True, help="A .png, .svg or .pdf file.")
@click.option("--row", type=click.IntRange(1), metavar="N", show_default="1", help="Row to plot, counted from 1.")
@click.option("--column", multiple=True, metavar="COLUMN", shell_complete=complete_model_column,
              help="Column to plot. Repeat it for a second column "
              "(pair, decision) or for several (nomogram).")  # fmt: skip
@click.option("--class", "label", metavar="CLASS", shell_complete=complete_class, help="Class to explain.")
@click.option("--against", metavar="CLASS", shell_complete=complete_class,
              show_default="the most probable other class; in a nomogram all others",
              help="Class to compare with.")  # fmt: skip
@TARGET
@COSTS
@click.option(
    "--reject",
    type=Number(),
    metavar="COST",
    help="Mark the effect of leaving rows undecided at this cost (coverage).",
)
@click.option(
    "--prior", metavar="PRIOR", help="Use these priors instead of the model's: uniform, or 'ill=0.01,well=0.99'."
)
@click.option("--boundary", type=float, multiple=True, metavar="NUMBER", help="Decision boundary to draw instead of "
              "the best one. Repeatable.")  # fmt: skip
@click.option("--x-axis", type=click.Choice(["threshold", "prior"]), show_default="threshold",
              help="Horizontal axis of a cost plot.")  # fmt: skip
@click.option("--y-axis", type=click.Choice(["joint", "posterior"]), show_default="joint",
              help="Curves of decisions along one column: prior times density, or P(class | x).")  # fmt: skip
@click.option("--bars", is_flag=True, help="Show dependence as bars instead of a matrix.")
@input_options
@common_options
def plot(
    model: str, table: tuple[str, ...], kind: str, output: str, as_json: bool, read: ReadOptions, **options: Any
) -> None:
    """Plot MODEL, or its predictions for TABLE."""
    from deciban.plot.display import check_picture_path, use_headless_backend, write_picture

    check_picture_path(output)
    _check_options(kind, table, options)
    check_output(output, (model, *table, *filter(None, [options["costs"]])))
    use_headless_backend()
    fitted = load_model(model)
    scan = open_table(table, read, output) if table else None
    if scan is not None:
        warn_missing_columns(fitted, scan)
    shown = _draw(kind, fitted, scan, options)
    write_picture(shown.figure_, output)
    if as_json:
        return echo_json({"output": output, "kind": kind})
    echo(f"{output}: {kind}")
    return None


def _check_options(kind: str, table: tuple[str, ...], options: dict[str, Any]) -> None:
    """Reject options that do not apply to this kind of picture, and a missing or unused table."""
    for name, kinds in OPTIONS_OF_KINDS.items():
        if options[name] not in (None, (), False) and kind not in kinds:
            option = SPELLINGS.get(name, f"--{name}")
            raise click.UsageError(f"{option} is for --kind {', '.join(kinds)}, not for {kind}; leave it out")
    if table and kind in OF_MODELS and kind not in ROWS_OPTIONAL:
        raise click.UsageError(f"--kind {kind} needs only the model; leave the table out")
    if not table and kind not in OF_MODELS:
        raise click.UsageError(f"--kind {kind} needs a table: deciban plot MODEL TABLE")
    wanted = {"column": (1,), "pair": (2,), "decision": (0, 1, 2)}.get(kind)
    if wanted is not None and len(options["column"]) not in wanted:
        many = {"column": "--column once", "pair": "--column twice"}.get(kind, "--column once or twice")
        raise click.UsageError(f"--kind {kind}: give {many}")


def _draw(kind: str, fitted: "Fitted", scan: "Source | None", options: dict[str, Any]) -> Any:
    """Draw a picture. Labeled rows that the model was trained on are each scored by the model without them."""
    from deciban import plot
    from deciban.estimators.classifier import BayesClassifier
    from deciban.evaluation.validation import diagnose_rows
    from deciban.fitting.fit import open_examples

    clf, weight, columns = BayesClassifier.from_fitted(fitted), fitted.origin.weight, list(options["column"])
    label, against = find_class(fitted, options["label"]), find_class(fitted, options["against"], "--against")
    loss = load_costs(options["costs"], fitted)
    if kind == "evidence":
        assert scan is not None, "checked before"
        with scan.locate_errors():
            row = _read_row(fitted, scan, options["row"] or 1)
            return plot.EvidenceDisplay.from_estimator(clf, row, label=label, against=against)
    if kind == "nomogram":
        return plot.NomogramDisplay.from_estimator(clf, columns=columns or None, label=label, against=against)
    if kind == "column":
        return plot.ColumnDisplay.from_estimator(clf, columns[0])
    if kind == "pair":
        return plot.PairDisplay.from_estimator(clf, (columns[0], columns[1]))
    if kind == "importance":
        name = options["target"] or fitted.origin.target
        if scan is None or name not in scan.names or not _recognize(fitted, scan, name):
            return plot.ImportanceDisplay.from_estimator(clf, scan)
        return plot.ImportanceDisplay.from_estimator(clf, scan, name, weight)
    if kind == "decision":
        if not columns and fitted.counts.schema.width > 2:
            raise click.UsageError("--kind decision: the model has more than two columns; give --column once or twice")
        return plot.DecisionDisplay.from_estimator(
            clf,
            columns or None,
            prior=None if options["prior"] is None else parse_prior(options["prior"]),
            loss=loss,
            boundaries=list(options["boundary"]) or None,
            y_axis=options["y_axis"] or "joint",
            X=scan,
            y=None if scan is None else _target(fitted, options),
        )
    assert scan is not None, "checked before"
    target = _target(fitted, options)
    if kind == "learning":
        return plot.LearningDisplay.from_estimator(clf, scan, target, weight)
    if kind == "dependence":
        rows = open_examples(fitted, scan, target, weight)
        with rows.locate_errors():
            diagnosis = diagnose_rows(fitted, rows)
        return plot.DependenceDisplay.from_diagnosis(diagnosis, kind="bars" if options["bars"] else "matrix")
    if kind == "cost" and fitted.classes.size != 2 and options["x_axis"] != "prior":
        raise click.UsageError(
            f"--kind cost: a threshold needs two classes, and the model has {fitted.classes.size}; use --x-axis prior"
        )
    labeled, learned = (clf, scan, target, weight), _recognize(fitted, scan, target)
    if kind == "reliability":
        return plot.ReliabilityDisplay.from_estimator(*labeled, leave_one_out=learned)
    if kind == "coverage":
        more = {"loss": loss, "reject": options["reject"]}
        return plot.CoverageDisplay.from_estimator(*labeled, leave_one_out=learned, **more)
    x_axis: Any = options["x_axis"] or "threshold"
    return plot.CostDisplay.from_estimator(*labeled, leave_one_out=learned, loss=loss, label=label, x_axis=x_axis)


def _read_row(fitted: "Fitted", scan: "Source", number: int) -> Any:
    """Return the row with this number, from 1, as a table."""
    from deciban.scoring.predict import open_for_model
    from deciban.sources.source import Source

    source = open_for_model(fitted, scan)
    assert isinstance(source, Source), "a scan is one"
    row = source.at([number - 1])
    if not row.num_rows:
        raise click.UsageError(f"--row {number}: the table has fewer rows")
    return row


def _recognize(fitted: "Fitted", scan: "Source", target: str) -> bool:
    """Return True if the model was trained on these rows, after a note on that."""
    from deciban.evaluation.validation import evaluate_and_recognize
    from deciban.fitting.fit import open_examples

    with count_unknown_cells(fitted) as observe:
        rows = open_examples(fitted, scan, target, fitted.origin.weight)
        _, learned = evaluate_and_recognize(fitted, rows, None, observe)
    if learned:
        notify("note", "the model was trained on these rows; each is scored by the model without it")
    return learned


def _target(fitted: "Fitted", options: dict[str, Any]) -> str:
    """Return the name of the target column."""
    name = options["target"] if options["target"] is not None else fitted.origin.target
    if name is None:
        raise click.UsageError("the model file does not name the target column; give --target")
    return str(name)
