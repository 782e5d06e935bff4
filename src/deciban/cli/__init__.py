"""The command `deciban`. Heavy packages are imported only when a command needs them, so that --help is fast."""

import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from typing import Any

import click

from deciban.cli import output
from deciban.cli.command_demo import bayes, completion, demo
from deciban.cli.command_evaluate import audit, diagnose, drift, evaluate, inspect
from deciban.cli.command_export import export, playground, report
from deciban.cli.command_fit import fit, forget, learn, merge
from deciban.cli.command_plot import plot
from deciban.cli.command_predict import decide, explain, predict, sample, top_words
from deciban.cli.command_serve import serve, upgrade
from deciban.cli.command_warmup import warmup
from deciban.cli.messages import describe_error, describe_warning
from deciban.cli.options import DEBUG, refuse_single_dashes
from deciban.cli.output import flush, notify
from deciban.errors import DataError, DecibanError, ModelFileError, UsageError
from deciban.sources.addresses import find_passwords
from deciban.util import shutdown
from deciban.util.text_tables import suggestion
from deciban.util.version import __version__

# Exit codes of errors. Others are 0 success, 1 internal error, 129 hung up, 130 interrupted, 143 terminated.
CODES = {UsageError: 2, DataError: 3, ModelFileError: 4, DecibanError: 3, OSError: 5, MemoryError: 3}

# Dependencies that only some commands need, by module: a light installation may lack them; see docs/howto/deploy.md.
LEFT_OUT = {"scipy": "scipy", "sklearn": "scikit-learn", "duckdb": "duckdb"}

PASSWORD_SEEN = (
    "a password in an argument is visible in the process list and in the shell history; put it in PGPASSWORD or "
    "~/.pgpass"
)

EPILOG = """\b
Examples:
  deciban demo
  deciban evaluate wine.csv --target kind
  deciban fit wine.csv --target kind --output wine.dcb
  deciban predict wine.dcb new.csv --output predicted.csv
  deciban explain wine.dcb new.csv
\b
Exit codes: 0 success, 1 internal error, 2 usage, 3 data, 4 model file,
5 input or output, 130 interrupted, 143 terminated.
"""


class App(click.Group):
    """Group of commands, listed in the order of use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse arguments; `help COMMAND` and `version` mean `COMMAND --help` and `--version`."""
        refuse_single_dashes(self, ctx, args[:1])
        if args[:1] == ["help"]:
            args = [*args[1:2], "--help"]
        elif args == ["version"]:
            args = ["--version"]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command with this name, or suggest one."""
        if not ctx.resilient_parsing and args[0] not in self.commands:
            hint = suggestion(args[0], list(self.commands))
            raise click.UsageError(f"no command {args[0]!r}{hint}", ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            result = super().invoke(ctx)
            flush()
        except BrokenPipeError:  # the reader of the output closed it
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(0)
        return result


@click.group(
    cls=App,
    epilog=EPILOG,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True},
)
@click.version_option(__version__, message="deciban %(version)s")
@DEBUG
@click.pass_context
def app(context: click.Context) -> None:
    """Fit, evaluate, explain and serve Bayes classifiers for tables and text."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


for command in (
    *(fit, predict, explain, decide, evaluate, audit, drift, diagnose, learn, forget, merge, inspect, top_words),
    *(sample, plot, report, export, serve, upgrade, playground, bayes, demo, completion, warmup),
):
    app.add_command(command)


def main() -> None:
    """Run the command line and exit with its code. `deciban.__main__` catches signals before it imports this."""
    output.prepare_streams()
    shutdown.leave(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code. Every error is printed as one line."""
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = lambda message, *rest, **more: notify("warning", describe_warning(message))
        if find_passwords(arguments):
            notify("warning", PASSWORD_SEEN)
        try:
            result = app.main(list(arguments), prog_name="deciban", standalone_mode=False)
            if output.ClosedOutput.lost and not shutdown.written:
                raise OSError("standard output is closed and the output is lost; use --output")
            return result if isinstance(result, int) else 0
        except click.exceptions.Exit as done:
            return done.exit_code
        except (click.Abort, KeyboardInterrupt):
            notify("interrupted", "nothing was changed")
            return 130
        except click.ClickException as problem:
            context = getattr(problem, "ctx", None)
            hint = f" (see {context.command_path} --help)" if context is not None else ""
            notify("error", _in_plain_words(problem.format_message()) + hint)
            return 2
        except Exception as problem:
            if "--debug" in arguments:
                traceback.print_exc()
            if (
                isinstance(problem, ModuleNotFoundError)
                and (missing := (problem.name or "").partition(".")[0]) in LEFT_OUT
            ):
                cause, remedy = f"{LEFT_OUT[missing]} is not installed", f"run pip install {LEFT_OUT[missing]}"
                problem = UsageError(cause, remedy=remedy)
            code = next((code for kind, code in CODES.items() if isinstance(problem, kind)), 1)
            notify("error", describe(problem) if code != 1 else describe_internal_error(problem))
            return code


def _in_plain_words(message: str) -> str:
    """Return a message of click in one line. It calls numbers "float range", after the names of its types."""
    line = " ".join(message.split())
    return line.replace("is not a valid float range", "is not a number").replace("a valid integer range", "an integer")


def describe_internal_error(problem: Exception) -> str:
    """Return the message for an error that deciban did not raise on purpose, in one line."""
    text = " ".join(str(problem).split())
    return (
        f"internal error ({type(problem).__name__}{': ' if text else ''}{text}); please report it with the output of "
        "--debug"
    )


def describe(problem: BaseException) -> str:
    """Return the message of an error in one line."""
    if isinstance(problem, OSError) and problem.strerror:
        return f"{problem.filename}: {problem.strerror}" if problem.filename else problem.strerror
    if isinstance(problem, MemoryError):
        return "not enough memory"
    if isinstance(problem, DecibanError):
        return describe_error(problem)
    return " ".join(str(problem).split()) or type(problem).__name__
