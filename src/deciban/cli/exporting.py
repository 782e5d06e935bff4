"""export: a model as a program of its own, in JavaScript or Python, or as an ONNX model."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from deciban.cli.common import MODEL, common, files, loaded, say, say_json
from deciban.cli.outputs import check_output
from deciban.errors import UsageError

if TYPE_CHECKING:
    from deciban.fitted import Fitted


def _javascript(fitted: "Fitted") -> str:
    from deciban.export.javascript import to_javascript

    return to_javascript(fitted)


def _python(fitted: "Fitted") -> str:
    from deciban.export.python import to_python

    return to_python(fitted)


def _onnx(fitted: "Fitted") -> bytes:
    from deciban.export.onnx.model import to_onnx

    written: bytes = to_onnx(fitted).SerializeToString()
    return written


# What a model can be written as; these are no texts.
BYTES = ("onnx",)
TARGETS: dict[str, Callable[["Fitted"], str | bytes]] = {"js": _javascript, "python": _python, "onnx": _onnx}


@click.command(epilog="""\b
Examples:
  deciban export wine.dcb --to js --output wine.mjs
  node --input-type=module -e "import { proba } from './wine.mjs'; console.log(proba({ alcohol: 13.2 }))"
  deciban export wine.dcb --to python --output wine.py
  echo '{"alcohol": 13.2}' | python wine.py
  deciban export wine.dcb --to onnx --output wine.onnx
""")  # fmt: skip
@MODEL
@click.option(
    "--to",
    required=True,
    type=click.Choice(tuple(TARGETS)),
    help="js: a module for browsers and Node (.mjs). python: a file that needs the standard library alone (.py). "
    "onnx: a model for onnxruntime (.onnx).",
)
@click.option(
    "--output",
    "-o",
    metavar="FILE",
    shell_complete=files,
    help="The file to write, such as wine.mjs, wine.py or wine.onnx; standard output unless given.",
)
@common
def export(model: str, to: str, output: str | None, as_json: bool) -> None:
    """Write a model as a program that needs nothing else, or for onnxruntime; it gives the same probabilities."""
    check_output(output, (model,))
    if to in BYTES and output is None and (as_json or sys.stdout.isatty()):
        raise UsageError(f"--to {to} writes bytes that are no text; name a file with --output")
    from deciban.files.write import replacing

    source = TARGETS[to](loaded(model))
    written = source if isinstance(source, bytes) else source.encode()
    if output is not None:
        with replacing(output) as file:
            file.write(written)
        if as_json:
            return say_json({"output": output, "to": to, "bytes": len(written)})
        return say(f"{output}: {len(written):,} bytes")
    if as_json:
        return say_json({"to": to, "bytes": len(written), "source": source})
    if isinstance(source, str) and sys.stdout.isatty():
        return say(source)
    sys.stdout.buffer.write(written)
    return None
