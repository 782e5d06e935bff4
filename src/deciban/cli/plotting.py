"""plot: pictures of a model, and of what it says of rows."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from deciban.cli.options import (
    MODEL,
    TARGET,
    ReadOptions,
    common,
    files,
    loaded,
    missing_columns,
    opened,
    prior_of,
    reading,
)
from deciban.cli.output import check_output, complain, say, say_json
from deciban.cli.scoring import class_of, costs, unknown_cells

if TYPE_CHECKING:
    from deciban.model.fitted import Fitted
    from deciban.sources.source import Source

# What each kind of picture is drawn from: a model alone, one row of a table, or rows whose class is known.
OF_MODELS = ("nomogram", "column", "pair", "decision")
OF_ROWS = ("evidence",)
OF_LABELED_ROWS = ("reliability", "coverage", "cost", "dependence", "learning")
PICTURE_KINDS = (*OF_ROWS, *OF_MODELS, *OF_LABELED_ROWS)

# The options of a picture, and the kinds that have them.
OPTIONS_OF_KINDS = {
    "row": ("evidence",),
    "column": ("nomogram", "column", "pair", "decision"),
    "label": ("evidence", "nomogram", "cost"),
    "against": ("evidence", "nomogram"),
    "target": OF_LABELED_ROWS,
    "costs": ("decision", "coverage", "cost"),
    "reject": ("coverage",),
    "prior": ("decision",),
    "boundary": ("decision",),
    "by_prior": ("cost",),
    "bars": ("dependence",),
}
SPELLINGS = {"label": "--class", "by_prior": "--by-prior"}


@click.command(epilog="""\b
Examples:
  deciban plot cancer.dcb patients.csv --kind evidence --row 3 --output why.png
  deciban plot cancer.dcb --kind nomogram --output nomogram.pdf
  deciban plot cancer.dcb --kind column --column worst_area --output area.svg
  deciban plot cancer.dcb --kind decision --column worst_area --costs costs.csv --output decision.png
  deciban plot cancer.dcb new.csv --kind reliability --output reliability.png
\b
From a model alone: nomogram, column, pair, decision. From a model and rows: evidence. From a model and
rows whose class is known: reliability, coverage, cost, dependence, learning.
""")  # fmt: skip
@MODEL
@click.argument("table", nargs=-1, shell_complete=files)
@click.option("--kind", type=click.Choice(PICTURE_KINDS), required=True, help="What to draw.")
@click.option("--output", "-o", metavar="FILE", required=True, shell_complete=files, help="A .png, .svg or .pdf file.")
@click.option("--row", type=click.IntRange(1), help="Which row of the table, counted from 1; the first unless given.")
@click.option("--column", multiple=True, metavar="COLUMN", help="The column to draw; two for a pair, one or two for "
              "decisions.")  # fmt: skip
@click.option("--class", "label", metavar="CLASS", help="The class that is spoken for.")
@click.option("--against", metavar="CLASS", help="The class that is spoken against; all others, or the next probable.")
@TARGET
@click.option(
    "--costs",
    metavar="FILE",
    shell_complete=files,
    help="What each decision costs when each class is true; see deciban decide.",
)
@click.option("--reject", type=float, metavar="COST", help="Mark what it saves to leave rows undecided at this cost.")
@click.option("--prior", metavar="PRIOR", help="Other priors: 'ill=0.01,well=0.99', uniform, …")
@click.option("--boundary", type=float, multiple=True, help="A boundary of decisions to judge instead of the best one; "
              "may be repeated.")  # fmt: skip
@click.option("--by-prior", is_flag=True, help="Costs against the prior of a class, not against the threshold.")
@click.option("--bars", is_flag=True, help="Dependence as bars of pairs, not as a matrix.")
@reading
@common
def plot(
    model: str, table: tuple[str, ...], kind: str, output: str, as_json: bool, read: ReadOptions, **options: Any
) -> None:
    """Draw a picture of MODEL, or of what it says of the rows of TABLE."""
    from deciban.plot.display import kind_of_picture, without_screen, write_picture

    kind_of_picture(output)
    _check_options(kind, table, options)
    check_output(output, (model, *table, *filter(None, [options["costs"]])))
    without_screen()
    fitted = loaded(model)
    scan = opened(table, read, output) if table else None
    if scan is not None:
        missing_columns(fitted, scan)
    shown = DRAWN[kind](fitted, scan, options)
    write_picture(shown.figure_, output)
    if as_json:
        return say_json({"output": output, "kind": kind})
    say(f"{output}: {kind}")
    return None


def _check_options(kind: str, table: tuple[str, ...], options: dict[str, Any]) -> None:
    """Refuse options that this kind of picture does not have, and a table that it lacks or has no use for."""
    for name, kinds in OPTIONS_OF_KINDS.items():
        if options[name] not in (None, (), False) and kind not in kinds:
            option = SPELLINGS.get(name, f"--{name}")
            raise click.UsageError(f"{option} is for --kind {', '.join(kinds)}, not for {kind}; leave it out")
    if table and kind in OF_MODELS:
        raise click.UsageError(f"--kind {kind} is drawn of the model alone; leave the table out")
    if not table and kind not in OF_MODELS:
        raise click.UsageError(f"--kind {kind} is drawn of rows; give the table too: deciban plot MODEL TABLE")
    wanted = {"column": (1,), "pair": (2,), "decision": (0, 1, 2)}.get(kind)
    if wanted is not None and len(options["column"]) not in wanted:
        many = {"column": "--column once", "pair": "--column twice"}.get(kind, "--column once or twice")
        raise click.UsageError(f"--kind {kind}: give {many}")


def _classifier(fitted: "Fitted") -> Any:
    from deciban.estimators.classifier import BayesClassifier

    return BayesClassifier.from_fitted(fitted)


def _evidence(fitted: "Fitted", scan: "Source | None", options: dict[str, Any]) -> Any:
    from deciban.plot import EvidenceDisplay
    from deciban.scoring.predict import opened_rows
    from deciban.sources.source import Source

    assert scan is not None, "checked before"
    source, row = opened_rows(fitted, scan), (options["row"] or 1) - 1
    assert isinstance(source, Source), "a scan is one"
    with scan.locate_errors():
        one = source.at([row])
        if not one.num_rows:
            raise click.UsageError(f"--row {row + 1}: the table has fewer rows")
        return EvidenceDisplay.from_estimator(_classifier(fitted), one, **_classes(fitted, options))


def _nomogram(fitted: "Fitted", scan: "Source | None", options: dict[str, Any]) -> Any:
    from deciban.plot import NomogramDisplay

    columns = list(options["column"]) or None
    return NomogramDisplay.from_estimator(_classifier(fitted), columns=columns, **_classes(fitted, options))


def _column(fitted: "Fitted", scan: "Source | None", options: dict[str, Any]) -> Any:
    from deciban.plot import ColumnDisplay

    return ColumnDisplay.from_estimator(_classifier(fitted), options["column"][0])


def _pair(fitted: "Fitted", scan: "Source | None", options: dict[str, Any]) -> Any:
    from deciban.plot import PairDisplay

    return PairDisplay.from_estimator(_classifier(fitted), options["column"])


def _decision(fitted: "Fitted", scan: "Source | None", options: dict[str, Any]) -> Any:
    from deciban.plot import DecisionDisplay

    if not options["column"] and fitted.counts.schema.width > 2:
        raise click.UsageError("--kind decision: the model has more than two columns; give --column once or twice")
    return DecisionDisplay.from_estimator(
        _classifier(fitted),
        list(options["column"]) or None,
        priors=None if options["prior"] is None else prior_of(options["prior"]),
        loss=costs(options["costs"], fitted),
        boundaries=list(options["boundary"]) or None,
    )


def _reliability(fitted: "Fitted", scan: "Source | None", options: dict[str, Any]) -> Any:
    from deciban.plot import ReliabilityDisplay

    return _judged(ReliabilityDisplay, fitted, scan, options)


def _coverage(fitted: "Fitted", scan: "Source | None", options: dict[str, Any]) -> Any:
    from deciban.plot import CoverageDisplay

    loss = costs(options["costs"], fitted)
    return _judged(CoverageDisplay, fitted, scan, options, loss=loss, reject=options["reject"])


def _cost(fitted: "Fitted", scan: "Source | None", options: dict[str, Any]) -> Any:
    from deciban.plot import CostDisplay

    if fitted.classes.size != 2 and not options["by_prior"]:
        raise click.UsageError(
            f"--kind cost: a threshold is for two classes, not {fitted.classes.size}; give --by-prior"
        )
    loss, label = costs(options["costs"], fitted), class_of(fitted, options["label"])
    against = "prior" if options["by_prior"] else "threshold"
    return _judged(CostDisplay, fitted, scan, options, loss=loss, label=label, against=against)


def _dependence(fitted: "Fitted", scan: "Source | None", options: dict[str, Any]) -> Any:
    from deciban.evaluation.evaluate import diagnose_rows
    from deciban.fitting.fit import open_examples
    from deciban.plot import DependenceDisplay

    rows = open_examples(fitted, scan, _target(fitted, options), fitted.origin.weight)
    with rows.locate_errors():
        return DependenceDisplay.from_diagnosis(
            diagnose_rows(fitted, rows), kind="bars" if options["bars"] else "matrix"
        )


def _learning(fitted: "Fitted", scan: "Source | None", options: dict[str, Any]) -> Any:
    from deciban.plot import LearningDisplay

    target, weight = _target(fitted, options), fitted.origin.weight
    return LearningDisplay.from_estimator(_classifier(fitted), scan, target, weight)


def _judged(display: Any, fitted: "Fitted", scan: "Source | None", options: dict[str, Any], **more: Any) -> Any:
    """A picture of rows whose class is known; rows that the model has learned are left out in their turn."""
    from deciban.evaluation.evaluate import evaluate_and_recognize
    from deciban.fitting.fit import open_examples

    target, weight = _target(fitted, options), fitted.origin.weight
    with unknown_cells(fitted) as observe:
        _, learned = evaluate_and_recognize(fitted, open_examples(fitted, scan, target, weight), None, observe)
    if learned:
        complain("note", "the model has learned these rows: each is left out in its turn")
    return display.from_estimator(_classifier(fitted), scan, target, weight, learned=learned, **more)


def _target(fitted: "Fitted", options: dict[str, Any]) -> str:
    """The name of the column with the labels."""
    name = options["target"] if options["target"] is not None else fitted.origin.target
    if name is None:
        raise click.UsageError("the model does not know the name of the column with the labels; give --target")
    return str(name)


def _classes(fitted: "Fitted", options: dict[str, Any]) -> dict[str, Any]:
    """The class that is spoken for, and the one against."""
    return {"label": class_of(fitted, options["label"]), "against": class_of(fitted, options["against"], "--against")}


DRAWN: dict[str, Callable[["Fitted", "Source | None", dict[str, Any]], Any]] = {
    "evidence": _evidence,
    "nomogram": _nomogram,
    "column": _column,
    "pair": _pair,
    "decision": _decision,
    "reliability": _reliability,
    "coverage": _coverage,
    "cost": _cost,
    "dependence": _dependence,
    "learning": _learning,
}
