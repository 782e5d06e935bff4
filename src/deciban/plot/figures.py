"""The one home of matplotlib: axes to draw on, and pictures written to files."""

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from deciban.errors import UsageError, missing_package
from deciban.sources.write import replacing

Axes = Any  # matplotlib's, which need not be installed
Figure = Any

# What a file of a picture may end with, and what would differ from one drawing of it to the next.
PICTURES: dict[str, dict[str, None]] = {
    ".png": {},
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
}

# Dots an inch of a picture that is made of dots.
PICTURE_DPI = 150

# The gap between panels that are drawn within one given pair of axes, as a share of its sides.
GAP = 0.1


def pyplot() -> Any:
    """matplotlib.pyplot; a UsageError that says how to install it where it is not there.

    That a font has no glyph for a sign of a name is no news to anybody: the sign is drawn as a box.
    """
    try:
        from matplotlib import pyplot as plt
    except ImportError:
        raise missing_package("drawing pictures", "matplotlib", "plot") from None
    ignore_missing_glyphs()
    return plt


def ignore_missing_glyphs() -> None:
    warnings.filterwarnings("ignore", r"Glyph \d+ .*missing from", UserWarning)
    warnings.filterwarnings("ignore", r"Matplotlib currently does not support", UserWarning)


def axes_for(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """The axes that are given, or those of a new figure of this size in inches."""
    if ax is not None:
        pyplot()
        return ax
    return pyplot().subplots(figsize=size, layout="constrained")[1]


def panels_for(
    ax: Axes | None, rows: int, columns: int, size: tuple[float, float], heights: Sequence[float] | None = None
) -> list[Axes]:
    """Axes in rows and columns, row by row: of a new figure, of a list that is given, or within one pair of axes."""
    plt = pyplot()
    heights = [1.0] * rows if heights is None else list(heights)
    if ax is None:
        figure = plt.figure(figsize=size, layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False, gridspec_kw={"height_ratios": heights})
        return list(grid.ravel())
    if hasattr(ax, "inset_axes"):
        return _within(ax, rows, columns, heights)
    given = list(getattr(ax, "ravel", lambda: ax)())
    if len(given) < rows * columns:
        raise UsageError(f"ax= has {len(given)} axes for {rows * columns} panels; give as many, or one to draw all in")
    return given[: rows * columns]


def _within(ax: Axes, rows: int, columns: int, heights: Sequence[float]) -> list[Axes]:
    """Panels within one pair of axes, whose own lines are hidden."""
    ax.set_axis_off()
    tall, wide = (1.0 - GAP * (rows - 1)) / sum(heights), (1.0 - GAP * (columns - 1)) / columns
    found, top = [], 1.0
    for height in heights:
        found += [ax.inset_axes((k * (wide + GAP), top - height * tall, wide, height * tall)) for k in range(columns)]
        top -= height * tall + GAP
    return found


def without_screen() -> None:
    """Let figures be drawn where there is no screen."""
    pyplot().switch_backend("agg")


def kind_of_picture(path: str | os.PathLike[str]) -> str:
    """The ending of a picture's name; a UsageError where it does not say what to write."""
    ending = Path(os.fspath(path)).suffix.lower()
    if ending not in PICTURES:
        raise UsageError(f"{path}: the name does not say what to draw; end it with .png, .svg or .pdf")
    return ending


def write_picture(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure to a file, which is whole or as it was before; its name says what is written."""
    ending = kind_of_picture(path)
    with replacing(path) as file, warnings.catch_warnings():
        ignore_missing_glyphs()
        figure.savefig(file, format=ending[1:], dpi=PICTURE_DPI, metadata=PICTURES[ending])
