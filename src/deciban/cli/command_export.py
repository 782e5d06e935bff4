"""The command export: a model as JavaScript, Python, ONNX or SQL."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from deciban.cli.complete import complete_model_column
from deciban.cli.options import MODEL, command, common_options, load_model, output_option
from deciban.cli.output import check_output, echo, echo_json
from deciban.errors import UsageError

if TYPE_CHECKING:
    from deciban.model.fitted import Fitted


@dataclass(frozen=True)
class Query:
    """Options of an export to SQL."""

    table: str | None
    dialect: str | None
    explain: bool
    keep: tuple[str, ...]


def _to_javascript(fitted: "Fitted", query: Query) -> str:
    from deciban.export.javascript import to_javascript

    return to_javascript(fitted)


def _to_python(fitted: "Fitted", query: Query) -> str:
    from deciban.export.python import to_python

    return to_python(fitted)


def _to_onnx(fitted: "Fitted", query: Query) -> bytes:
    from deciban.export.onnx.model import to_onnx

    written: bytes = to_onnx(fitted).SerializeToString()
    return written


def _to_sql(fitted: "Fitted", query: Query) -> str:
    from deciban.export.sql.statement import to_sql

    return to_sql(fitted, query.table or "", query.dialect or "duckdb", query.explain, query.keep or None)


# Formats that are binary.
BYTES = ("onnx",)
TARGETS: dict[str, Callable[["Fitted", Query], str | bytes]] = {
    "js": _to_javascript,
    "python": _to_python,
    "onnx": _to_onnx,
    "sql": _to_sql,
}


def _check_query(to: str, query: Query) -> None:
    """Raise a UsageError if an export to SQL has no table, or another export has options of SQL."""
    if to == "sql" and not query.table:
        raise UsageError("--to sql needs the name of the table to score; use --table")
    if to != "sql" and query != Query(None, None, False, ()):
        raise UsageError(f"--table, --dialect, --explain and --keep require --to sql, not --to {to}")


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
    type=click.Choice(tuple(TARGETS)),
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
    query = Query(table, dialect, explain, keep)
    _check_query(to, query)
    if to in BYTES and output is None and (as_json or sys.stdout.isatty()):
        raise UsageError(f"--to {to} writes a binary file; name it with --output")
    from deciban.sources.write import replace_file

    source = TARGETS[to](load_model(model), query)
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
