"""serve: a model, or a folder of them, over HTTP."""

import os
from contextlib import nullcontext
from typing import Any

import click

from deciban.cli.command_predict import costs
from deciban.cli.options import common, files
from deciban.cli.output import complain, flush, say, say_json
from deciban.errors import UsageError, missing_package
from deciban.serve.settings import ConnectionSettings, LearnSettings, RequestSettings, ServeSettings
from deciban.util.text_tables import count_noun, escape_line


@click.command(epilog="""\b
Examples:
  deciban serve wine.dcb                                     http://127.0.0.1:8000 and a page to play with
  deciban serve wine.dcb --learn                             rows can be learned and forgotten
  deciban serve models/ --port 9000                          every model of a folder, at /models/NAME/
  deciban serve wine.dcb --host 0.0.0.0 --token-file tokens  for other machines
\b
  curl -H 'Content-Type: application/json' -d '[{"alcohol": 13.2}]' http://127.0.0.1:8000/predict
""")  # fmt: skip
@click.argument("path", metavar="MODEL|FOLDER", type=click.Path(), shell_complete=files)
@click.option(
    "--host",
    default=ServeSettings.host,
    show_default=True,
    metavar="ADDRESS",
    help="Where to listen; another address than one of this machine alone needs --token-file.",
)
@click.option(
    "--port", type=click.IntRange(0, 65_535), default=ServeSettings.port, show_default=True, help="0 takes a free one."
)
@click.option(
    "--token-file",
    metavar="FILE",
    shell_complete=files,
    help="Who may ask: lines such as 'read TOKEN' and 'learn TOKEN'.",
)
@click.option(
    "--allow-host",
    "allow_hosts",
    multiple=True,
    metavar="NAME",
    help="Also answer requests for this name in the Host header, such as that of a proxy; may be repeated.",
)
@click.option("--learn", is_flag=True, help="Rows can be learned and forgotten; each is on disk before it is answered.")
@click.option("--new-classes", is_flag=True, help="With --learn: rows may have classes that are new to the model.")
@click.option(
    "--decay",
    type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
    metavar="SHARE",
    help="With --learn: after each 1,000 rows (--decay-every) all that was learned before weighs so many times as "
    "much, such as 0.99.",
)
@click.option(
    "--decay-every",
    type=click.IntRange(1),
    default=LearnSettings.decay_every,
    show_default=True,
    metavar="ROWS",
    help="With --decay.",
)
@click.option(
    "--retune-every",
    type=click.IntRange(1),
    metavar="ROWS",
    help="With --learn: learn the weights anew after so many rows.",
)
@click.option(
    "--most-journal-bytes",
    "max_journal_bytes",
    type=click.IntRange(1 << 18),
    default=LearnSettings.max_journal_bytes,
    show_default=True,
    metavar="BYTES",
    help="With --learn: of what is kept beside the model file.",
)
@click.option(
    "--most-model-bytes",
    "max_model_bytes",
    type=click.IntRange(1),
    default=LearnSettings.max_model_bytes,
    show_default=True,
    metavar="BYTES",
    help="With --learn: of the model file, beyond which nothing is learned.",
)
@click.option("--costs", metavar="FILE", shell_complete=files, help="What decisions cost; see deciban decide.")
@click.option("--reject", type=click.FloatRange(0.0), metavar="COST", help="What it costs to leave a row undecided.")
@click.option(
    "--workers",
    type=click.IntRange(1, 256),
    default=ServeSettings.workers,
    show_default=True,
    help="Processes that answer; one with --learn.",
)
@click.option(
    "--most-body-bytes",
    "max_body_bytes",
    type=click.IntRange(1),
    default=RequestSettings.max_body_bytes,
    show_default=True,
    help="Of a request.",
)
@click.option(
    "--most-rows",
    "max_rows",
    type=click.IntRange(1),
    default=RequestSettings.max_rows,
    show_default=True,
    help="Of a request.",
)
@click.option(
    "--most-columns",
    "max_columns",
    type=click.IntRange(1),
    default=RequestSettings.max_columns,
    show_default=True,
    help="Of a request.",
)
@click.option(
    "--time-limit",
    type=click.FloatRange(0.0, min_open=True),
    default=RequestSettings.time_limit,
    show_default=True,
    metavar="SECONDS",
    help="Within which a request must have come in.",
)
@click.option(
    "--answer-limit",
    type=click.FloatRange(0.0, min_open=True),
    default=RequestSettings.answer_limit,
    show_default=True,
    metavar="SECONDS",
    help="Within which it is answered.",
)
@click.option(
    "--drain-limit",
    type=click.FloatRange(0.0, min_open=True),
    default=ConnectionSettings.drain_limit,
    show_default=True,
    metavar="SECONDS",
    help="What requests under way have when the service ends.",
)
@click.option(
    "--most-connections",
    "max_connections",
    type=click.IntRange(1),
    default=ConnectionSettings.max_connections,
    show_default=True,
    help="At a time.",
)
@click.option(
    "--max-connections-per-address",
    type=click.IntRange(1),
    default=ConnectionSettings.max_connections_per_address,
    show_default=True,
    help="Connections of one client address at a time.",
)
@click.option("--access-log", is_flag=True, help="Log each request to standard error.")
@common
def serve(as_json: bool, **options: Any) -> None:
    """Answer over HTTP what a model says of rows: predict, explain, decide, and learn; with a page to play with."""
    from deciban.serve.worker_metrics import shared_folder

    settings = ServeSettings.of(**{**options, "allow_hosts": tuple(options["allow_hosts"])})
    _refuse(settings, options)
    # where there are several processes they share their metrics, which are told so before they are imported
    with shared_folder() if settings.workers > 1 else nullcontext():
        _run(settings, as_json)


def _run(settings: ServeSettings, as_json: bool) -> None:
    try:
        from deciban.serve.run import serve as run
    except ImportError as missing:
        name = (missing.name or "").partition(".")[0]
        if name not in ("starlette", "msgspec", "uvicorn", "httptools", "prometheus_client", "anyio"):
            raise
        raise missing_package("deciban serve", name, "serve") from None

    def started(address: str, names: list[str], wrong: list[str]) -> None:
        if as_json:
            say_json({"address": address, "models": names, "not_read": wrong})
        elif os.path.isdir(settings.path):
            without = f" ({len(wrong)} cannot be read: {escape_line(', '.join(wrong))})" if wrong else ""
            say(f"serving {count_noun(len(names), 'model')}{without} at {address}")
        else:
            say(f"serving {escape_line(os.path.basename(settings.path))} at {address}")
        flush()

    run(settings, started)


def _refuse(settings: ServeSettings, options: dict[str, Any]) -> None:
    """Refuse options that do not go together, before anything is loaded."""
    if not os.path.exists(settings.path):
        raise FileNotFoundError(f"{settings.path}: there is no such file; check the name")
    if not settings.on_loopback and settings.token_file is None:
        raise UsageError(
            f"--host {settings.host}: anyone who can reach this address could ask, and with --learn change, the model",
            remedy="give --token-file, or listen on 127.0.0.1",
        )
    if settings.learning is None:
        given = {"--new-classes": "new_classes", "--decay": "decay", "--retune-every": "retune_every"}
        if option := next((option for option, name in given.items() if options[name]), None):
            raise UsageError(f"{option} says how rows are learned", remedy="give --learn, or leave it out")
    if settings.learning is not None and settings.workers > 1:
        remedy = "leave it out, or leave --learn out"
        raise UsageError("--workers: one process owns a model that learns", remedy=remedy)
    if settings.costs is not None:
        costs(settings.costs, of_columns=True)
    if settings.token_file is not None and settings.on_loopback and settings.allow_hosts:
        complain("note", "--allow-host does nothing where there are tokens: these say who may ask")
