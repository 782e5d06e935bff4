"""Base class and shared parts of all displays: the import of matplotlib, styles, number formats, value axes."""

import os
import unicodedata
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from deciban.errors import Argument, Place, UsageError, missing_package
from deciban.explain.column_values import ColumnValues
from deciban.model.fitted import Fitted
from deciban.sources.write import replace_file
from deciban.util.arrays import Floats, Integers
from deciban.util.frames import Tabular
from deciban.util.text_tables import format_class, format_three, shorten
from deciban.web.palette import class_colors

Axes = Any  # matplotlib's, which need not be installed
Figure = Any


class Display(Tabular):
    """Base class of displays in the style of scikit-learn: `plot` draws, and sets `ax_` and `figure_`.

    `to_frame` returns the plotted values.
    """

    ax_: Axes
    figure_: Figure

    def _remember_axes(self, ax: Axes) -> None:
        self.ax_ = ax
        self.figure_ = ax.figure


def get_fitted(estimator: Any) -> Fitted:
    """Return the fitted state of a `BayesClassifier`, or raise a UsageError for other estimators."""
    if not hasattr(type(estimator), "model_"):
        raise UsageError(
            f"expected a BayesClassifier, found {type(estimator).__name__}", remedy="pass a fitted BayesClassifier"
        )
    _ = estimator.model_  # raises NotFittedError if it is not fitted
    fitted: Fitted = estimator.fitted_
    return fitted


# --- matplotlib: axes to draw on, and picture files

# Supported file extensions, with the metadata to omit so that two drawings of a picture give the same file.
PICTURE_METADATA: dict[str, dict[str, None]] = {
    ".png": {},
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
}

# Resolution of PNG files, in dots per inch.
PICTURE_DPI = 150

# Gap between panels inside one given pair of axes, as a fraction of its size.
GAP = 0.1


def import_pyplot() -> Any:
    """Import `matplotlib.pyplot`, or raise a UsageError with the command that installs it.

    Warnings about missing glyphs are silenced: the character is drawn as a box.
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


def make_axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Return the given axes, or the axes of a new figure with this size in inches."""
    if ax is not None:
        import_pyplot()
        return ax
    return import_pyplot().subplots(figsize=size, layout="constrained")[1]


def make_panels(
    ax: Axes | None, rows: int, columns: int, size: tuple[float, float], heights: Sequence[float] | None = None
) -> list[Axes]:
    """Return a grid of axes, row by row: in a new figure, from a given list, or inside one given pair of axes."""
    plt = import_pyplot()
    heights = [1.0] * rows if heights is None else list(heights)
    if ax is None:
        figure = plt.figure(figsize=size, layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False, gridspec_kw={"height_ratios": heights})
        return list(grid.ravel())
    if hasattr(ax, "inset_axes"):
        return _place_panels(ax, rows, columns, heights)
    given = list(getattr(ax, "ravel", lambda: ax)())
    if len(given) < rows * columns:
        raise UsageError(
            (Argument("ax"), f" has {len(given)} axes, but the picture has {rows * columns} panels"),
            remedy="pass one pair of axes, or one for each panel",
        )
    return given[: rows * columns]


def _place_panels(ax: Axes, rows: int, columns: int, heights: Sequence[float]) -> list[Axes]:
    """Hide the given axes and place panels inside them."""
    ax.set_axis_off()
    tall, wide = (1.0 - GAP * (rows - 1)) / sum(heights), (1.0 - GAP * (columns - 1)) / columns
    panels, top = [], 1.0
    for height in heights:
        panels += [ax.inset_axes((k * (wide + GAP), top - height * tall, wide, height * tall)) for k in range(columns)]
        top -= height * tall + GAP
    return panels


def use_headless_backend() -> None:
    """Draw without a screen."""
    import_pyplot().switch_backend("agg")


def check_picture_path(path: str | os.PathLike[str]) -> str:
    """Return the file extension of a picture, or raise a UsageError if it is not supported."""
    ending = Path(os.fspath(path)).suffix.lower()
    if ending not in PICTURE_METADATA:
        raise UsageError("unsupported file extension", place=Place(os.fspath(path)), remedy="use .png, .svg or .pdf")
    return ending


def write_picture(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure to a PNG, SVG or PDF file. The old file is replaced only if drawing succeeds."""
    ending = check_picture_path(path)
    with replace_file(path) as file, warnings.catch_warnings():
        ignore_missing_glyphs()
        figure.savefig(file, format=ending[1:], dpi=PICTURE_DPI, metadata=PICTURE_METADATA[ending])


# --- style: class colors, names, numbers, plain axes, legends

# Lines, hatches and markers distinguish classes without color: 7 colors and 4 lines make 28 classes look different.
CLASS_LINES = ("-", "--", ":", "-.")
CLASS_HATCHES = ("///", "\\\\\\", "...", "xxx")
CLASS_MARKERS = ("o", "s", "^", "D")

# Gray of secondary text and reference lines.
QUIET_COLOR = "#6B6B6B"
# Light gray of grids and zero lines.
LINE_COLOR = "#D9D9D9"
# Color map from evidence against to evidence for.
DIVERGING = "RdBu"

# Font sizes in points.
TITLE_SIZE = 11
TEXT_SIZE = 9
SMALL_SIZE = 8
# Names on axes are truncated to this length.
MAX_NAME_SHOWN = 28
# A longer legend is placed beside the axes.
MAX_IN_LEGEND = 8
# Lines of a legend before it gets a second column.
LEGEND_LINES = 24

# An evidence axis may cut off this fraction of all rows at either end.
RARELY = 0.005
# An evidence axis reaches at least this far, in decibans.
MIN_REACH = 3.0
# An evidence axis reaches at most this far, in decibans: odds of 100,000 to 1.
MAX_REACH = 50.0


class ClassStyle(NamedTuple):
    """Color, line, hatch and marker of a class."""

    color: str
    line: str
    hatch: str
    marker: str


def get_class_styles(classes: Iterable[Any]) -> list[ClassStyle]:
    """Return the style of each class by its position. Neighbors differ in color and in line."""
    return [
        ClassStyle(color, CLASS_LINES[k % 4], CLASS_HATCHES[k % 4], CLASS_MARKERS[k % 4])
        for k, color in enumerate(class_colors(classes))
    ]


def get_curve_styles(size: int) -> list[ClassStyle]:
    """Return styles for curves of several models. The last model, the most important, gets the first style."""
    return get_class_styles(range(size))[::-1]


def escape_text(text: object, max_width: int | None = None) -> str:
    r"""Escape a text so that matplotlib prints it literally, truncated to `max_width` characters.

    >>> escape_text("$x_1$"), escape_text("a\nb"), escape_text("a long name", 7)
    ('\\$x_1\\$', 'a\\nb', 'a long…')
    """
    visible = "".join(map(_make_visible, format_class(text)))
    return (visible if max_width is None else shorten(visible, max_width)).replace("$", r"\$")


def format_name(name: object) -> str:
    """Format the name of a column, a class or a value for an axis."""
    return escape_text(name, MAX_NAME_SHOWN)


def _make_visible(sign: str) -> str:
    """Escape a character that cannot be drawn as Python escapes it."""
    kind = unicodedata.category(sign)
    if kind in ("Cc", "Cs", "Cn", "Zl", "Zp"):
        return sign.encode("unicode_escape").decode()
    return "" if kind == "Cf" and sign != "\u200d" else sign


def style_axes(ax: Axes, title: str = "", x: str = "", y: str = "", *, pad: float | None = None) -> None:
    """Remove the upper and right border, and set the title (`pad` points above the axes) and the axis labels."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.tick_params(labelsize=SMALL_SIZE)
    if title:
        ax.set_title(title, loc="left", fontsize=TITLE_SIZE, pad=pad)
    ax.set_xlabel(x, fontsize=TEXT_SIZE)
    ax.set_ylabel(y, fontsize=TEXT_SIZE)


def add_legend(
    ax: Axes, handles: Sequence[Any] | None = None, *, outside: bool = False, own: bool = False, loc: str = "best"
) -> None:
    """Add a legend of the labeled artists, or of these handles.

    outside: place it beside the axes, as is done with long legends. own: the figure holds nothing else, so the legend
    may be placed beside all of it.
    """
    entries = ax.get_legend_handles_labels()[0] if handles is None else list(handles)
    if not entries:
        return
    options: dict[str, Any] = {"fontsize": SMALL_SIZE, "edgecolor": "none", "ncols": -(-len(entries) // LEGEND_LINES)}
    if not outside and len(entries) <= MAX_IN_LEGEND:
        ax.legend(handles=entries, loc=loc, **options)
    elif own:
        ax.figure.legend(handles=entries, loc="outside right upper", **options)
    else:
        ax.legend(handles=entries, loc="upper left", bbox_to_anchor=(1.01, 1.0), **options)


def draw_zero_line(ax: Axes, vertical: bool = False) -> None:
    """Draw a thin line at zero evidence."""
    (ax.axvline if vertical else ax.axhline)(0.0, color=LINE_COLOR, linewidth=1.0, zorder=0)


def mark_peaks(ax: Axes, x: Floats, density: Floats, top: float, classes: Iterable[Any]) -> None:
    """Mark the peak of each class above `top`, where its curve is clipped, with a triangle and its height."""
    for c, style in enumerate(get_class_styles(classes)):
        place = int(density[:, c].argmax())
        if (peak := float(density[place, c])) > top:
            ax.plot(x[place], top, color=style.color, marker="^", markersize=5, clip_on=False, zorder=4)
            ax.annotate(format_three(peak), (x[place], top), (6.0, -4.0 - 12.0 * c), textcoords="offset points",
                        color=style.color, va="top", fontsize=SMALL_SIZE, zorder=5,
                        bbox={"facecolor": "white", "alpha": 0.8, "linewidth": 0.0, "pad": 1.0})  # fmt: skip


def find_evidence_limits(evidence: Floats, chances: Floats) -> tuple[float, float]:
    """Return the limits of an evidence axis, chosen so that rare values do not flatten the rest.

    evidence, chances: arrays of values by classes. Chances can have any unit.
    """
    mass = np.broadcast_to(chances.sum(axis=1, keepdims=True), evidence.shape)
    finite = np.isfinite(evidence) & np.isfinite(mass)
    order = np.argsort(evidence[finite])
    values, along = evidence[finite][order], np.cumsum(mass[finite][order])
    if not values.size or not along[-1] > 0.0:
        return -MIN_REACH, MIN_REACH
    low, high = (float(values[np.searchsorted(along, share * along[-1])]) for share in (RARELY, 1.0 - RARELY))
    room = 0.08 * (high - low)
    return (
        float(np.clip(low - room, -MAX_REACH, -MIN_REACH)),
        float(np.clip(high + room, MIN_REACH, MAX_REACH)),
    )


# --- values of a column along an axis: numbers, dates, or categories

# Categories shown on one axis.
MAX_CATEGORIES_DRAWN = 20
# Characters shown of a category.
MAX_CATEGORY_WIDTH = 16
# Category names of more characters in total are turned.
MAX_LEVEL_WIDTH = 50


def select_values(values: ColumnValues, strength: Floats, max_values: int = MAX_CATEGORIES_DRAWN) -> Integers:
    """Return the positions of the values to draw, in order: of many categories, those with the strongest evidence."""
    size = len(values.cells)
    if values.kind != "categories" or size <= max_values:
        return np.arange(size)
    return np.sort(np.argsort(-strength, kind="stable")[:max_values])


def label_values(ax: Axes, values: ColumnValues, places: Integers, vertical: bool = False) -> None:
    """Label the horizontal axis, or the vertical one, with the values."""
    axis: Any = ax.yaxis if vertical else ax.xaxis
    if values.kind != "categories":
        if values.dates:
            from matplotlib import dates

            tools: Any = dates  # untyped
            axis.axis_date()
            locator = tools.AutoDateLocator(maxticks=7)
            axis.set_major_locator(locator)
            axis.set_major_formatter(tools.ConciseDateFormatter(locator))
        return
    names = [escape_text(values.names[place], MAX_CATEGORY_WIDTH) for place in places]
    turned = not vertical and sum(map(len, names)) > MAX_LEVEL_WIDTH
    axis.set_ticks(np.arange(len(names)))
    turn: dict[str, Any] = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if turned else {}
    axis.set_ticklabels(names, fontsize=SMALL_SIZE, **turn)
    axis.set_tick_params(length=0)


def get_positions(values: ColumnValues, places: Integers) -> Floats:
    """Return the coordinates of the drawn values."""
    return np.arange(float(places.size)) if values.kind == "categories" else values.positions[places]
