"""The base of all displays, and what they share: the only import of matplotlib, styles, axes of values."""

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
from deciban.util.text_tables import format_class, shorten
from deciban.web.palette import class_colors

Axes = Any  # matplotlib's, which need not be installed
Figure = Any


class Display:
    """A picture of scikit-learn's kind: arrays as attributes, `plot` draws them, `ax_` and `figure_` are set then."""

    ax_: Axes
    figure_: Figure

    def _count_held(self, ax: Axes) -> None:
        """Remember where it was drawn."""
        self.ax_ = ax
        self.figure_ = ax.figure


def fitted_of(estimator: Any) -> Fitted:
    """What a classifier of this project has learned; a UsageError for any other."""
    if not hasattr(type(estimator), "model_"):
        raise UsageError(
            f"this picture is drawn of a BayesClassifier, not of {type(estimator).__name__}", remedy="give one"
        )
    _ = estimator.model_  # says that it is not fitted, if so
    fitted: Fitted = estimator.fitted_
    return fitted


# --- matplotlib: axes to draw on, and pictures written to files

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
        raise UsageError(
            (Argument("ax"), f" has {len(given)} axes for {rows * columns} panels"),
            remedy="give as many, or one to draw all in",
        )
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
        raise UsageError(
            "the name does not say what to draw", place=Place(os.fspath(path)), remedy="end it with .png, .svg or .pdf"
        )
    return ending


def write_picture(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure to a file, which is whole or as it was before; its name says what is written."""
    ending = kind_of_picture(path)
    with replace_file(path) as file, warnings.catch_warnings():
        ignore_missing_glyphs()
        figure.savefig(file, format=ending[1:], dpi=PICTURE_DPI, metadata=PICTURES[ending])


# --- style: the colors of classes, names as they are printed, quiet axes, legends

# What tells classes apart in print as well: with seven colors and four lines, 28 classes look different.
CLASS_LINES = ("-", "--", ":", "-.")
CLASS_HATCHES = ("///", "\\\\\\", "...", "xxx")
CLASS_MARKERS = ("o", "s", "^", "D")

# What needs no attention, and a scale from against to for.
QUIET_COLOR, LINE_COLOR = "#8C8C8C", "#D9D9D9"
DIVERGING = "RdBu"

# Sizes of text, in points; places that a name takes at most; classes that a legend within the axes may have.
TITLE_SIZE, TEXT_SIZE, SMALL_SIZE = 11, 9, 8
MAX_NAME_SHOWN = 28
MAX_IN_LEGEND = 8
LEGEND_LINES = 24

# The share of all rows beyond either end of an axis of evidence, and the least and most decibans that it reaches to:
# 50 decibans are odds of 100,000 to 1.
RARELY = 0.005
MIN_REACH, MAX_REACH = 3.0, 50.0


class ClassStyle(NamedTuple):
    """How a class is drawn, in every picture."""

    color: str
    line: str
    hatch: str
    marker: str


def class_styles(classes: Iterable[Any]) -> list[ClassStyle]:
    """How each class is drawn, by its place among the classes: color and line both change from one to the next."""
    return [
        ClassStyle(color, CLASS_LINES[k % 4], CLASS_HATCHES[k % 4], CLASS_MARKERS[k % 4])
        for k, color in enumerate(class_colors(classes))
    ]


def curve_styles(size: int) -> list[ClassStyle]:
    """How curves of several models are drawn, the last of which matters most."""
    return class_styles(range(size))[::-1]


def printed(text: object, most: int | None = None) -> str:
    """A text as matplotlib prints it literally, in at most so many places: no sign of it is a formula or a command.

    >>> printed("$x_1$"), printed("a\\nb"), printed("a long name", 7)
    ('\\\\$x_1\\\\$', 'a\\\\nb', 'a long…')
    """
    visible = "".join(map(_visible, format_class(text)))
    return (visible if most is None else shorten(visible, most)).replace("$", r"\$")


def shown_name(name: object) -> str:
    """The name of a column, a class or a value, short enough for an axis."""
    return printed(name, MAX_NAME_SHOWN)


def _visible(sign: str) -> str:
    """A sign that can be drawn and written to any file, or how Python writes it."""
    kind = unicodedata.category(sign)
    if kind in ("Cc", "Cs", "Cn", "Zl", "Zp"):
        return sign.encode("unicode_escape").decode()
    return "" if kind == "Cf" and sign != "\u200d" else sign


def quiet(ax: Axes, title: str = "", x: str = "", y: str = "") -> None:
    """Axes without what nobody reads, with a title and labels."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.tick_params(labelsize=SMALL_SIZE)
    if title:
        ax.set_title(title, loc="left", fontsize=TITLE_SIZE)
    ax.set_xlabel(x, fontsize=TEXT_SIZE)
    ax.set_ylabel(y, fontsize=TEXT_SIZE)


def legend(ax: Axes, handles: Sequence[Any] | None = None, *, outside: bool = False, own: bool = False) -> None:
    """A legend of what has a label, or of these handles: beside the axes where it is long or should be `outside`.

    own: the figure has nothing else in it, so that the legend may stand beside all of it.
    """
    entries = ax.get_legend_handles_labels()[0] if handles is None else list(handles)
    if not entries:
        return
    options: dict[str, Any] = {"fontsize": SMALL_SIZE, "frameon": False, "ncols": -(-len(entries) // LEGEND_LINES)}
    if not outside and len(entries) <= MAX_IN_LEGEND:
        ax.legend(handles=entries, **options)
    elif own:
        ax.figure.legend(handles=entries, loc="outside right upper", **options)
    else:
        ax.legend(handles=entries, loc="upper left", bbox_to_anchor=(1.01, 1.0), **options)


def zero_line(ax: Axes, vertical: bool = False) -> None:
    """A thin line where evidence is none."""
    (ax.axvline if vertical else ax.axhline)(0.0, color=LINE_COLOR, linewidth=1.0, zorder=0)


def evidence_limits(evidence: Floats, chances: Floats) -> tuple[float, float]:
    """From where to where an axis of evidence reaches, so that what hardly ever happens does not flatten the rest.

    evidence, chances: value by class, the latter in any unit.
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


# --- the values of a column along an axis: numbers, dates, or names side by side

# Categories that an axis has room for, the places of their names, and how many short ones stand level.
MAX_CATEGORIES_DRAWN = 20
CATEGORY_PLACES = 16
LEVEL_PLACES = 50


def most_telling(values: ColumnValues, telling: Floats, most: int = MAX_CATEGORIES_DRAWN) -> Integers:
    """The places of the values that there is room for, in their order: of many categories, those that tell most."""
    size = len(values.cells)
    if values.kind != "categories" or size <= most:
        return np.arange(size)
    return np.sort(np.argsort(-telling, kind="stable")[:most])


def mark_values(ax: Axes, values: ColumnValues, places: Integers, vertical: bool = False) -> None:
    """Write the values along the horizontal axis, or along the vertical one."""
    axis: Any = ax.yaxis if vertical else ax.xaxis
    if values.kind != "categories":
        if values.dates:
            from matplotlib import dates

            tools: Any = dates  # which have no types
            axis.axis_date()
            locator = tools.AutoDateLocator(maxticks=7)
            axis.set_major_locator(locator)
            axis.set_major_formatter(tools.ConciseDateFormatter(locator))
        return
    names = [printed(values.names[place], CATEGORY_PLACES) for place in places]
    turned = not vertical and sum(map(len, names)) > LEVEL_PLACES
    axis.set_ticks(np.arange(len(names)))
    turn: dict[str, Any] = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if turned else {}
    axis.set_ticklabels(names, fontsize=SMALL_SIZE, **turn)
    axis.set_tick_params(length=0)


def drawn_positions(values: ColumnValues, places: Integers) -> Floats:
    """Where the values that are drawn stand."""
    return np.arange(float(places.size)) if values.kind == "categories" else values.positions[places]
