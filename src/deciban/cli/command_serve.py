"""Command `serve`: serve a model, or a folder of models, over HTTP."""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from deciban.cli.command_predict import load_costs
from deciban.cli.complete import complete_files, complete_models
from deciban.cli.options import (
    MODEL,
    Decorated,
    Number,
    ReadOptions,
    command,
    common_options,
    input_options,
    load_model,
    open_table,
)
from deciban.cli.output import check_output, echo, echo_json, flush, notify
from deciban.errors import Argument, Place, UsageError, missing_package
from deciban.serve.settings import ConnectionSettings, LearnSettings, RequestSettings, ServeSettings
from deciban.util.text_tables import count_noun, escape_line

if TYPE_CHECKING:
    from deciban.model.fitted import Fitted

# An id that a table holds as a float, which JSON holds as an integer.
WHOLE_NUMBER = re.compile(r"^(-?\d+)\.0$")

# Packages of the extra "serve".
SERVE_PACKAGES = ("starlette", "msgspec", "uvicorn", "httptools", "prometheus_client", "anyio")


def _setting_option(
    settings: Any, name: str, metavar: str, text: str, low: int = 1
) -> Callable[[Decorated], Decorated]:
    """Return the option of a setting that is a number: an integer from `low` on, or positive seconds."""
    default = getattr(settings, name)
    kind = click.IntRange(low) if isinstance(default, int) else click.FloatRange(0.0, min_open=True)
    return click.option(f"--{name.replace('_', '-')}", type=kind, default=default, metavar=metavar, help=text)


@command(short_help="Serve a model over HTTP", epilog="""\b
Examples:
  deciban serve wine.dcb              http://127.0.0.1:8000, with a web page
  deciban serve wine.dcb --learn      with online learning
  deciban serve models/ --port 9000   all models in a folder, at /models/NAME/
  deciban serve wine.dcb --host 0.0.0.0 --token-file tokens
\b
  curl -H 'Content-Type: application/json' -d '[{"alcohol": 13.2}]' \\
      http://127.0.0.1:8000/predict
""")  # fmt: skip
@click.argument("path", metavar="MODEL|FOLDER", type=click.Path(), shell_complete=complete_models)
@click.option(
    "--host",
    default=ServeSettings.host,
    metavar="ADDRESS",
    help="Address to listen on; any address except loopback requires --token-file.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=ServeSettings.port,
    metavar="N",
    help="Port to listen on; 0 picks a free one.",
)
@click.option(
    "--token-file",
    metavar="FILE",
    shell_complete=complete_files,
    help="Access tokens, one per line: 'read TOKEN' or 'learn TOKEN'.",
)
@click.option(
    "--allow-host",
    "allow_hosts",
    multiple=True,
    metavar="NAME",
    help="Also accept this name in the Host header, e.g. the public name behind a reverse proxy. Repeatable.",
)
@click.option("--learn", is_flag=True, help="Enable online learning: /learn and /forget.")
@click.option("--new-classes", is_flag=True, help="With --learn: accept labels that are not yet classes of the model.")
@click.option(
    "--decay",
    type=Number(0.0, 1.0, min_open=True, max_open=True),
    metavar="FACTOR",
    help="With --learn: after every 1,000 added rows (see --decay-every), multiply all earlier counts by this factor, "
    "e.g. 0.99.",
)
@_setting_option(LearnSettings, "decay_every", "ROWS", "With --decay: number of added rows between decay steps.")
@click.option(
    "--retune-every",
    type=click.IntRange(1),
    metavar="ROWS",
    help="With --learn: retune the model in the background after every ROWS added rows.",
)
@_setting_option(
    LearnSettings,
    "max_journal_bytes",
    "BYTES",
    "With --learn: maximum size of the log of added rows (journal), kept next to the model file.",
    low=1 << 18,
)
@_setting_option(
    LearnSettings,
    "max_model_bytes",
    "BYTES",
    "With --learn: maximum size of the model file; a larger model learns no more rows.",
)
@click.option(
    "--costs",
    metavar="FILE",
    shell_complete=complete_files,
    help="Default costs for /decide, in the format of deciban decide --costs.",
)
@click.option(
    "--reject", type=Number(0.0), metavar="COST", help="Default cost of leaving a row undecided, for /decide."
)
@click.option(
    "--workers",
    type=click.IntRange(1, 256),
    default=ServeSettings.workers,
    metavar="N",
    help="Number of worker processes; must be 1 with --learn.",
)
@_setting_option(RequestSettings, "max_body_bytes", "BYTES", "Maximum size of a request body.")
@_setting_option(RequestSettings, "max_rows", "N", "Maximum number of rows per request.")
@_setting_option(RequestSettings, "max_columns", "N", "Maximum number of columns per request.")
@_setting_option(RequestSettings, "read_timeout", "SECONDS", "Time allowed to receive a request body.")
@_setting_option(RequestSettings, "response_timeout", "SECONDS", "Time allowed to process a request and respond.")
@_setting_option(ConnectionSettings, "shutdown_timeout", "SECONDS", "Time allowed for in-flight requests on shutdown.")
@_setting_option(ConnectionSettings, "max_connections", "N", "Maximum number of open connections per worker.")
@_setting_option(
    ConnectionSettings,
    "max_connections_per_address",
    "N",
    "Maximum number of open connections per client address and worker.",
)
@click.option("--access-log", is_flag=True, help="Log each request to standard error.")
@partial(
    common_options, json_help="Print the address and the names of the models as JSON, and write the log as JSON lines."
)
def serve(as_json: bool, **options: Any) -> None:
    """Serve a model over HTTP.

    Clients can request predictions, explanations and decisions and, with --learn, send labeled rows to learn from. The
    service includes a web page for trying out the model.
    """
    from deciban.serve.worker_metrics import create_shared_folder

    settings = ServeSettings.of(**{**options, "allow_hosts": tuple(options["allow_hosts"]), "json_log": as_json})
    _check_options(settings, options)
    # prometheus_client must find the shared folder in the environment when it is imported
    with create_shared_folder() if settings.workers > 1 else nullcontext():
        _run_service(settings, as_json)


def _run_service(settings: ServeSettings, as_json: bool) -> None:
    with _explain_missing_package("deciban serve"):
        from deciban.serve.run import serve as run

    def announce(address: str, names: list[str], failed: list[str]) -> None:
        if as_json:
            echo_json({"address": address, "models": names, "failed": failed})
        elif os.path.isdir(settings.path):
            note = f" ({len(failed)} cannot be loaded: {escape_line(', '.join(failed))})" if failed else ""
            echo(f"serving {count_noun(len(names), 'model')}{note} at {address}")
        else:
            echo(f"serving {escape_line(os.path.basename(settings.path))} at {address}")
        flush()

    run(settings, announce)


@contextmanager
def _explain_missing_package(purpose: str) -> Iterator[None]:
    """Name the extra to install if a package of the service is missing."""
    try:
        yield
    except ImportError as missing:
        name = (missing.name or "").partition(".")[0]
        if name not in SERVE_PACKAGES:
            raise
        raise missing_package(purpose, name, "serve") from None


def _check_options(settings: ServeSettings, options: dict[str, Any]) -> None:
    """Raise a UsageError for options that contradict each other, before anything is loaded."""
    if not os.path.exists(settings.path):
        raise FileNotFoundError(f"{settings.path}: no such file or folder; check the name")
    if not settings.on_loopback and settings.token_file is None:
        raise UsageError(
            f"--host {settings.host}: anyone who can reach this address could query the model and, with --learn, "
            "change it",
            remedy="pass --token-file, or listen on 127.0.0.1",
        )
    if settings.learning is None:
        learning_options = {"--new-classes": "new_classes", "--decay": "decay", "--retune-every": "retune_every"}
        if option := next((option for option, name in learning_options.items() if options[name]), None):
            raise UsageError(f"{option} has no effect without --learn", remedy="add --learn, or omit it")
    if settings.learning is not None and settings.workers > 1:
        remedy = "omit --workers, or omit --learn"
        raise UsageError("--workers: online learning uses a single process", remedy=remedy)
    if settings.costs is not None:
        load_costs(settings.costs, of_columns=True)
    if settings.token_file is not None and settings.on_loopback and settings.allow_hosts:
        notify("note", "--allow-host has no effect with --token-file: the Host header is not checked then")


@command(short_help="Put a refitted model under a journal", epilog="""\b
Examples:
  deciban fit history.csv --target churn --output new.dcb
  deciban upgrade churn.dcb new.dcb --history history.csv --id order
""")  # fmt: skip
@MODEL
@click.argument("new", metavar="NEW", type=click.Path(dir_okay=False), shell_complete=complete_files)
@click.option(
    "--history",
    metavar="TABLE",
    shell_complete=complete_files,
    help="Table that NEW was fitted to; rows of the journal with an id in it are not added again.",
)
@click.option("--id", "id_column", metavar="COLUMN", help="With --history: column with the ids.")
@click.option("--force", is_flag=True, help="Continue even if rows learned without ids would be lost.")
@input_options
@common_options
def upgrade(
    model: str,
    new: str,
    history: str | None,
    id_column: str | None,
    force: bool,
    as_json: bool,
    read: ReadOptions,
) -> None:
    """Replace MODEL, which a stopped learning service has left with its journal, by NEW, a model fitted again.

    The rows that the service has learned with ids are added to NEW, and their ids stay known. NEW is not changed.
    """
    if (history is None) != (id_column is None):
        raise UsageError("--history and --id belong together", remedy="give both, or none")
    check_output(model, [new, *([] if history is None else [history])])
    from deciban.store.lock import journal_of

    journal = journal_of(model)
    if not os.path.exists(journal) or not os.path.getsize(journal):
        raise UsageError(
            "the model has no journal", place=Place(model), remedy="to replace it, copy the new file to its place"
        )
    with _explain_missing_package("deciban upgrade"):
        from deciban.serve.online.durable_model import DurableModel
    fitted = load_model(new)
    included = {} if history is None or id_column is None else _read_history(history, id_column, fitted, read)
    durable = DurableModel.open(model, LearnSettings())
    try:
        if (lost := durable.counters.unretained) and not force:
            raise UsageError(
                f"{count_noun(lost, 'row')} learned without an id, or dropped from the journal, cannot be added to "
                "the new model",
                place=Place(model),
                remedy=("fit the new model to these rows too and pass ", Argument("force", True)),
            )
        kept = durable.counters.kept
        durable.check_included(included)
        added = durable.upgrade(fitted, included)
        if included and kept == added:
            notify("warning", f"no id in column {id_column!r} is one of the journal's, so all its rows were added")
        rows = durable.state.fitted.counts.rows
    finally:
        durable.close()
    if as_json:
        return echo_json({"model": model, "added": added, "included": kept - added, "rows": rows})
    echo(
        f"{model}: replaced by {new}; {count_noun(added, 'row')} of the journal added, {kept - added:,} already in it; "
        f"now {count_noun(rows, 'row')}"
    )
    return None


def _read_history(
    history: str, column: str, new: "Fitted", read: ReadOptions
) -> dict[str, tuple[str | None, float | None]]:
    """Return the label as text, and the weight, of each row that a model was fitted to, by id as text.

    A label is None if the model does not name its column, a weight if it is not a number.
    """
    from deciban.tables.examples import check_column

    target, weight = new.origin.target, new.origin.weight
    scan = open_table((history,), read)
    with scan.locate_errors():
        check_column(scan.names, column, f"no column {column!r}", Argument("id", column))
        used = [name for name in scan.names if name in (column, target, weight)]
        rest = [name for name in scan.names if name not in used]
        cells = scan.without(rest).with_types(dict.fromkeys(used, "VARCHAR"))
        found: dict[str, tuple[str | None, float | None]] = {}
        for piece in cells.tables():
            ids, rows = piece[column].to_pylist(), piece.num_rows
            labels = piece[target].to_pylist() if target in used else [None] * rows
            weights = map(_as_number, piece[weight].to_pylist()) if weight in used else [1.0] * rows
            for row_id, label, amount in zip(ids, labels, weights, strict=True):
                if row_id is not None:
                    found[WHOLE_NUMBER.sub(r"\1", row_id)] = label, amount
        return found


def _as_number(cell: str | None) -> float | None:
    try:
        return float(cell or "")
    except ValueError:
        return None
