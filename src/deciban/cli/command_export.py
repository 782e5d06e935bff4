"""export: a model as a program of its own, in JavaScript or Python, as an ONNX model, or as a statement of SQL."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from deciban.cli.options import MODEL, common_options, complete_files, load_model
from deciban.cli.output import check_output, echo, echo_json
from deciban.errors import UsageError

if TYPE_CHECKING:
    from deciban.model.fitted import Fitted


@dataclass(frozen=True)
class Query:
    """What a statement of SQL is asked for: the table, whose SQL it is, whether it explains, what it passes on."""

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


# What a model can be written as; these are no texts.
BYTES = ("onnx",)
TARGETS: dict[str, Callable[["Fitted", Query], str | bytes]] = {
    "js": _to_javascript,
    "python": _to_python,
    "onnx": _to_onnx,
    "sql": _to_sql,
}


def _check_query(to: str, query: Query) -> None:
    """A UsageError where a statement has no table, or what is no statement has one."""
    if to == "sql" and not query.table:
        raise UsageError("--to sql needs the table that is to be scored; name it with --table")
    if to != "sql" and query != Query(None, None, False, ()):
        raise UsageError(f"--to {to} is no statement of SQL; leave out --table, --dialect, --explain and --keep")


@click.command(epilog="""\b
Examples:
  deciban export wine.dcb --to js --output wine.mjs
  node --input-type=module -e "import { predictProba } from './wine.mjs'; console.log(predictProba({ alcohol: 13.2 }))"
  deciban export wine.dcb --to python --output wine.py
  echo '{"alcohol": 13.2}' | python wine.py
  deciban export wine.dcb --to onnx --output wine.onnx
  deciban export wine.dcb --to sql --table cellar.wines --dialect postgres --keep id --output scores.sql
""")  # fmt: skip
@MODEL
@click.option(
    "--to",
    required=True,
    type=click.Choice(tuple(TARGETS)),
    help="js: a module for browsers and Node (.mjs). python: a file that needs the standard library alone (.py). "
    "onnx: a model for onnxruntime (.onnx). sql: a SELECT that scores a table where it is (.sql).",
)
@click.option("--table", metavar="NAME", help="With --to sql: the table to score, such as cellar.wines.")
@click.option("--dialect", type=click.Choice(("duckdb", "postgres", "spark")), help="With --to sql: whose SQL; duckdb.")
@click.option("--explain", is_flag=True, help="With --to sql: also what each column says, in decibans.")
@click.option("--keep", multiple=True, metavar="COLUMN", help="With --to sql: a column to pass on; all unless given.")
@click.option(
    "--output",
    "-o",
    metavar="FILE",
    shell_complete=complete_files,
    help="The file to write, such as wine.mjs, wine.py, wine.onnx or scores.sql; standard output unless given.",
)
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
    """Write a model as a program of its own, for onnxruntime, or as SQL; it gives the same probabilities."""
    check_output(output, (model,))
    query = Query(table, dialect, explain, keep)
    _check_query(to, query)
    if to in BYTES and output is None and (as_json or sys.stdout.isatty()):
        raise UsageError(f"--to {to} writes bytes that are no text; name a file with --output")
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
