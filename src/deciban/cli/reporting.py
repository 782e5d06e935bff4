"""report: a model as one HTML page."""

from pathlib import Path
from typing import Any

import click

from deciban.cli.common import (
    MODEL,
    TARGET,
    common,
    files,
    labelled,
    loaded,
    missing_columns,
    opened,
    reading,
    say,
    say_json,
)
from deciban.cli.outputs import check_output
from deciban.cli.scoring import about_costs, costs


@click.command(epilog="""\b
Examples:
  deciban report wine.dcb --output wine.html                    from counts alone: no row is in it
  deciban report wine.dcb holdout.csv --output wine.html        with figures of rows that were held out
  deciban report cancer.dcb new.csv --costs costs.csv --output cancer.html
  deciban report wine.dcb --json                                the figures as data
""")  # fmt: skip
@MODEL
@click.argument("table", nargs=-1, shell_complete=files)
@TARGET
@click.option("--costs", metavar="FILE", shell_complete=files, help="What each decision costs; see deciban decide.")
@click.option("--title", metavar="TEXT", help="The title of the page.")
@click.option(
    "--examples", type=click.IntRange(0), default=3, show_default=True, help="How many rows of TABLE are shown."
)
@click.option("--output", "-o", metavar="FILE", shell_complete=files, help="The page to write; needed unless --json.")
@reading
@common
def report(
    model: str, table: tuple[str, ...], target: str | None, output: str | None, as_json: bool, **options: Any
) -> None:
    """Write what a model is, how good it is and what each column says as one HTML page, with a form to try values."""
    if output is None and not as_json:
        raise click.UsageError("give --output, the page to write, or --json for the figures")
    check_output(output, [model, *([options["costs"]] if options["costs"] else [])])
    from deciban.report.figures import report_figures
    from deciban.report.report import Report

    fitted = loaded(model)
    loss = costs(options["costs"], fitted)
    rows = None
    if table:
        scan = opened(table, options, output)
        rows = labelled(fitted, scan, target)
        missing_columns(fitted, scan)
    title = options["title"] or f"{Path(model).stem}: report"
    with about_costs(options["costs"]):
        found = Report(report_figures(fitted, title, rows, None, loss, options["examples"]))
    if output is not None:
        found.save(output)
    if as_json:
        return say_json(found.figures if output is None else {"output": output, **found.figures})
    return say(f"{output}: {Path(str(output)).stat().st_size:,} bytes")
