"""export: a model as a program of its own, in JavaScript or Python."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from deciban.cli.common import MODEL, common, files, loaded, say, say_json
from deciban.cli.outputs import check_output

if TYPE_CHECKING:
    from deciban.fitted import Fitted


def _javascript(fitted: "Fitted") -> str:
    from deciban.export.javascript import to_javascript

    return to_javascript(fitted)


def _python(fitted: "Fitted") -> str:
    from deciban.export.python import to_python

    return to_python(fitted)


# What a model can be written as.
TARGETS: dict[str, Callable[["Fitted"], str]] = {"js": _javascript, "python": _python}


@click.command(epilog="""\b
Examples:
  deciban export wine.dcb --to js --output wine.mjs
  node --input-type=module -e "import { proba } from './wine.mjs'; console.log(proba({ alcohol: 13.2 }))"
  deciban export wine.dcb --to python --output wine.py
  echo '{"alcohol": 13.2}' | python wine.py
""")  # fmt: skip
@MODEL
@click.option(
    "--to",
    required=True,
    type=click.Choice(tuple(TARGETS)),
    help="js: a module for browsers and Node (.mjs). python: a file that needs the standard library alone (.py).",
)
@click.option(
    "--output",
    "-o",
    metavar="FILE",
    shell_complete=files,
    help="The file to write, such as wine.mjs or wine.py; standard output unless given.",
)
@common
def export(model: str, to: str, output: str | None, as_json: bool) -> None:
    """Write a model as a program that needs nothing else, and gives the same probabilities."""
    check_output(output, (model,))
    from deciban.files.write import replacing

    source = TARGETS[to](loaded(model))
    written = source.encode()
    if output is not None:
        with replacing(output) as file:
            file.write(written)
        if as_json:
            return say_json({"output": output, "to": to, "bytes": len(written)})
        return say(f"{output}: {len(written):,} bytes")
    if as_json:
        return say_json({"to": to, "bytes": len(written), "source": source})
    if sys.stdout.isatty():
        return say(source)
    sys.stdout.buffer.write(written)
    return None
