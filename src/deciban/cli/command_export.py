"""The commands report, playground and export: a model as a page or as a program."""

import os
import sys
from pathlib import Path
from typing import Any

import click

from deciban.cli.command_predict import load_costs, locate_cost_errors
from deciban.cli.complete import complete_model_column, complete_models, complete_tables
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
from deciban.errors import UsageError


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


@command(short_help="Export a model to JavaScript, Python, ONNX or SQL", epilog="""\b
Examples:
  deciban export wine.dcb --to js --output wine.mjs
  deciban export wine.dcb --to python --output wine.py
  echo '{"alcohol": 13.2}' | python wine.py
  deciban export wine.dcb --to onnx --output wine.onnx
  deciban export wine.dcb --to sql --table wines --output scores.sql
""")  # fmt: skip
@MODEL
@click.option(
    "--to",
    required=True,
    type=click.Choice(("js", "python", "onnx", "sql")),
    help="js: module for browsers and Node. python: file that needs only the standard library. onnx: model for "
    "onnxruntime. sql: SELECT that scores a table in place.",
)
@click.option("--table", metavar="NAME", help="With --to sql: table to score, e.g. cellar.wines.")
@click.option(
    "--dialect",
    type=click.Choice(("duckdb", "postgres", "spark")),
    show_default="duckdb",
    help="With --to sql: SQL dialect.",
)
@click.option("--explain", is_flag=True, help="With --to sql: add the evidence of each column, in decibans.")
@click.option(
    "--keep",
    multiple=True,
    metavar="COLUMN",
    shell_complete=complete_model_column,
    show_default="all",
    help="With --to sql: column to keep. Repeatable.",
)
@output_option(show_default="standard output", help="File to write, e.g. wine.mjs, wine.py, wine.onnx or scores.sql.")
@common_options
def export(
    model: str,
    to: str,
    table: str | None,
    dialect: str | None,
    explain: bool,
    keep: tuple[str, ...],
    output: str | None,
    as_json: bool,
) -> None:
    """Export MODEL as a standalone program that computes the same probabilities."""
    check_output(output, (model,))
    if to == "sql" and not table:
        raise UsageError("--to sql needs the name of the table to score; use --table")
    if to != "sql" and (table is not None or dialect is not None or explain or keep):
        raise UsageError(f"--table, --dialect, --explain and --keep require --to sql, not --to {to}")
    if to == "onnx" and output is None and (as_json or sys.stdout.isatty()):
        raise UsageError(f"--to {to} writes a binary file; name it with --output")
    from deciban.sources.write import replace_file

    fitted = load_model(model)
    source: str | bytes
    if to == "js":
        from deciban.export.javascript import to_javascript

        source = to_javascript(fitted)
    elif to == "python":
        from deciban.export.python import to_python

        source = to_python(fitted)
    elif to == "onnx":
        from deciban.export.onnx.model import to_onnx

        source = to_onnx(fitted).SerializeToString()
    else:
        from deciban.export.sql.statement import to_sql

        source = to_sql(fitted, table or "", dialect or "duckdb", explain, keep or None)
    written = source if isinstance(source, bytes) else source.encode()
    if output is not None:
        with replace_file(output) as file:
            file.write(written)
        if as_json:
            return echo_json({"output": output, "to": to, "bytes": len(written)})
        return echo(f"{output}: {len(written):,} bytes")
    if as_json:
        return echo_json({"to": to, "bytes": len(written), "source": source})
    if isinstance(source, str) and sys.stdout.isatty():
        return echo(source)
    sys.stdout.buffer.write(written)
    return None
