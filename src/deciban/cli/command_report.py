"""report, playground: a model as one HTML page."""

import os
from pathlib import Path
from typing import Any

import click

from deciban.cli.command_predict import load_costs, locate_cost_errors
from deciban.cli.options import (
    MODEL,
    TARGET,
    ReadOptions,
    common_options,
    complete_files,
    input_options,
    load_model,
    open_labeled,
    open_table,
    warn_missing_columns,
)
from deciban.cli.output import check_output, echo, echo_json, notify


@click.command(epilog="""\b
Examples:
  deciban report wine.dcb --output wine.html                    from counts alone: no row is in it
  deciban report wine.dcb holdout.csv --output wine.html        with figures of rows that were held out
  deciban report cancer.dcb new.csv --costs costs.csv --output cancer.html
  deciban report wine.dcb --json                                the figures as data
""")  # fmt: skip
@MODEL
@click.argument("table", nargs=-1, shell_complete=complete_files)
@TARGET
@click.option(
    "--costs", metavar="FILE", shell_complete=complete_files, help="What each decision costs; see deciban decide."
)
@click.option("--title", metavar="TEXT", help="The title of the page.")
@click.option(
    "--examples", type=click.IntRange(0), default=3, show_default=True, help="How many rows of TABLE are shown."
)
@click.option(
    "--output", "-o", metavar="FILE", shell_complete=complete_files, help="The page to write; needed unless --json."
)
@input_options
@common_options
def report(
    model: str,
    table: tuple[str, ...],
    target: str | None,
    output: str | None,
    as_json: bool,
    read: ReadOptions,
    **options: Any,
) -> None:
    """Write what a model is, how good it is and what each column says as one HTML page, with a form to try values."""
    if output is None and not as_json:
        raise click.UsageError("give --output, the page to write, or --json for the figures")
    check_output(output, [model, *([options["costs"]] if options["costs"] else [])])
    from deciban.report.data import collect_report_data
    from deciban.report.report import Report

    fitted = load_model(model)
    loss = load_costs(options["costs"], fitted)
    rows = None
    if table:
        scan = open_table(table, read, output)
        rows = open_labeled(fitted, scan, target)
        warn_missing_columns(fitted, scan)
    title = options["title"] or f"{Path(model).stem}: report"
    with locate_cost_errors(options["costs"]):
        found = Report(collect_report_data(fitted, title, rows, None, loss, options["examples"]))
    if output is not None:
        found.save(output)
    if as_json:
        return echo_json(found.data if output is None else {"output": output, **found.data})
    return echo(f"{output}: {Path(str(output)).stat().st_size:,} bytes")


@click.command(epilog="""\b
Examples:
  deciban playground --output page.html             with a small model of the weather
  deciban playground wine.dcb --output wine.html    with a model of yours
""")  # fmt: skip
@click.argument("model", required=False, type=click.Path(dir_okay=False))
@click.option("--title", metavar="TEXT", help="The title of the page.")
@click.option("--output", "-o", metavar="FILE", required=True, shell_complete=complete_files, help="The page to write.")
@common_options
def playground(model: str | None, title: str | None, output: str, as_json: bool) -> None:
    """Write a page in which a model is tried and its losses are edited, as one file that needs no network.

    Its tab Playground shows Bayes' rule in five scenes: a boundary between classes, classes in a plane, counting days,
    a test among a thousand people, and evidence on a pair of scales.
    """
    check_output(output, [] if model is None else [model])
    from deciban.page.build import render_page
    from deciban.sources.write import replace_file

    fitted = None if model is None else load_model(model)
    told = title or (Path(model).stem if model is not None else "deciban: a playground")
    page, _ = render_page(fitted, service=False, title=told)
    if 'id="model-json"' not in page:
        notify(
            "note",
            f"{model}: this model cannot be in a page, which says why; deciban serve {model} has a page to try it",
        )
    with replace_file(os.fspath(output)) as file:
        file.write(page.encode())
    size = Path(output).stat().st_size
    return echo_json({"output": output, "bytes": size}) if as_json else echo(f"{output}: {size:,} bytes")
