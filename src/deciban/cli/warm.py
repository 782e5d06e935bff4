"""warm: compile everything now, so that no command waits for it later."""

import time

import click

from deciban.cli.options import common
from deciban.cli.output import say, say_json


@click.command(epilog="""\b
Examples:
  deciban warm                                       once after installation
  NUMBA_CACHE_DIR=/opt/kernels deciban warm          for an image; set it where the image runs too
""")  # fmt: skip
@common
def warm(as_json: bool) -> None:
    """Compile all kernels for this machine, on all cores, so that nothing waits for it later."""
    from deciban.cli.warmup import JOBS, warm as warmed
    from deciban.kernels.compiled import cache_folder
    from deciban.util.progress import progress

    start = time.monotonic()
    with progress("compiling", "jobs", len(JOBS)) as advance:
        for done in warmed():
            advance(done)
    seconds, folder = time.monotonic() - start, str(cache_folder())
    if as_json:
        say_json({"seconds": seconds, "folder": folder})
    else:
        say(f"compiled in {seconds:.0f} s, kept in {folder}")
