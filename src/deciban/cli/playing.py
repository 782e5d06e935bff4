"""playground: a page to try a model in and to play with Bayes' rule, as one file."""

import os
from pathlib import Path

import click

from deciban.cli.common import common, complain, files, loaded, say, say_json
from deciban.cli.outputs import check_output


@click.command(epilog="""\b
Examples:
  deciban playground --output page.html             with a small model of the weather
  deciban playground wine.dcb --output wine.html    with a model of yours
""")  # fmt: skip
@click.argument("model", required=False, type=click.Path(dir_okay=False))
@click.option("--title", metavar="TEXT", help="The title of the page.")
@click.option("--output", "-o", metavar="FILE", required=True, shell_complete=files, help="The page to write.")
@common
def playground(model: str | None, title: str | None, output: str, as_json: bool) -> None:
    """Write a page in which a model is tried and its losses are edited, as one file that needs no network.

    Its tab Playground shows Bayes' rule in five scenes: a boundary between classes, classes in a plane, counting days,
    a test among a thousand people, and evidence on a pair of scales.
    """
    check_output(output, [] if model is None else [model])
    from deciban.page.build import page_html
    from deciban.sources.write import replacing

    fitted = None if model is None else loaded(model)
    told = title or (Path(model).stem if model is not None else "deciban: a playground")
    page, _ = page_html(fitted, service=False, title=told)
    if 'id="model-json"' not in page:
        complain(
            "note",
            f"{model}: this model cannot be in a page, which says why; deciban serve {model} has a page to try it",
        )
    with replacing(os.fspath(output)) as file:
        file.write(page.encode())
    size = Path(output).stat().st_size
    return say_json({"output": output, "bytes": size}) if as_json else say(f"{output}: {size:,} bytes")
