"""The commands report and playground, which write HTML pages."""

import os
from pathlib import Path
from typing import Any

import click

from deciban.cli.command_predict import load_costs, locate_cost_errors
from deciban.cli.complete import complete_models, complete_tables
from deciban.cli.options import (
    COSTS,
    MODEL,
    TARGET,
    ReadOptions,
    command,
    common_options,
    input_options,
    load_model,
    open_labeled,
    open_table,
    output_option,
    warn_missing_columns,
)
from deciban.cli.output import check_output, echo, echo_json, notify


@command(short_help="Write an HTML report about a model", epilog="""\b
Examples:
  deciban report wine.dcb --output wine.html
  deciban report wine.dcb holdout.csv --output wine.html
  deciban report cancer.dcb new.csv --costs costs.csv -o cancer.html
  deciban report wine.dcb --json
""")  # fmt: skip
@MODEL
@click.argument("table", nargs=-1, shell_complete=complete_tables)
@TARGET
@COSTS
@click.option("--title", metavar="TEXT", help="Title of the page.")
@click.option("--examples", type=click.IntRange(0), default=3, metavar="N", help="Number of rows of TABLE to show.")
@output_option(help="HTML file to write (required without --json).")
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
    """Write an HTML report about MODEL: metrics, calibration, columns, and a form to try values.

    With a TABLE, the metrics are for its rows, and a few rows are shown. Without one, the report is made from the
    model file alone and contains no rows.
    """
    if output is None and not as_json:
        raise click.UsageError("missing --output: the HTML file to write (or use --json)")
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


@command(short_help="Write an interactive HTML page for a model", epilog="""\b
Examples:
  deciban playground --output page.html
  deciban playground wine.dcb --output wine.html
""")  # fmt: skip
@click.argument("model", required=False, type=click.Path(dir_okay=False), shell_complete=complete_models)
@click.option("--title", metavar="TEXT", help="Title of the page.")
@output_option(required=True, help="HTML file to write.")
@common_options
def playground(model: str | None, title: str | None, output: str, as_json: bool) -> None:
    """Write a self-contained HTML page for trying out MODEL and editing its costs.

    Without a model, the page has a small example model. Its tab Playground shows Bayes decision theory in
    interactive scenes.
    """
    check_output(output, [] if model is None else [model])
    from deciban.page.build import render_page
    from deciban.sources.write import replace_file

    fitted = None if model is None else load_model(model)
    page_title = title or (Path(model).stem if model is not None else "deciban: a playground")
    page, _ = render_page(fitted, service=False, title=page_title)
    if 'id="model-json"' not in page:
        notify(
            "note",
            f"{model}: the page cannot contain this model and explains why; to try it, use deciban serve {model}",
        )
    with replace_file(os.fspath(output)) as file:
        file.write(page.encode())
    size = Path(output).stat().st_size
    return echo_json({"output": output, "bytes": size}) if as_json else echo(f"{output}: {size:,} bytes")
