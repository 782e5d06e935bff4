"""What all pictures share: the colours of classes, names as they are printed, quiet axes, legends."""

import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from deciban.plot.figures import Axes
from deciban.util.arrays import Floats
from deciban.util.text_tables import class_name, shortened
from deciban.web.palette import class_colours

# What tells classes apart in print as well: with seven colours and four lines, 28 classes look different.
CLASS_LINES = ("-", "--", ":", "-.")
CLASS_HATCHES = ("///", "\\\\\\", "...", "xxx")
CLASS_MARKERS = ("o", "s", "^", "D")

# What needs no attention, and a scale from against to for.
QUIET_COLOUR, LINE_COLOUR = "#8C8C8C", "#D9D9D9"
DIVERGING = "RdBu"

# Sizes of text, in points; places that a name takes at most; classes that a legend within the axes may have.
TITLE_SIZE, TEXT_SIZE, SMALL_SIZE = 11, 9, 8
MOST_NAME_SHOWN = 28
MOST_IN_LEGEND = 8
LEGEND_LINES = 24

# The share of all rows beyond either end of an axis of evidence, and the least and most decibans that it reaches to:
# 50 decibans are odds of 100,000 to 1.
RARELY = 0.005
LEAST_REACH, MOST_REACH = 3.0, 50.0


class ClassStyle(NamedTuple):
    """How a class is drawn, in every picture."""

    colour: str
    line: str
    hatch: str
    marker: str


def class_styles(classes: Iterable[Any]) -> list[ClassStyle]:
    """How each class is drawn, by its place among the classes: colour and line both change from one to the next."""
    return [
        ClassStyle(colour, CLASS_LINES[k % 4], CLASS_HATCHES[k % 4], CLASS_MARKERS[k % 4])
        for k, colour in enumerate(class_colours(classes))
    ]


def curve_styles(size: int) -> list[ClassStyle]:
    """How curves of several models are drawn, the last of which matters most."""
    return class_styles(range(size))[::-1]


def printed(text: object, most: int | None = None) -> str:
    """A text as matplotlib prints it literally, in at most so many places: no sign of it is a formula or a command.

    >>> printed("$x_1$"), printed("a\\nb"), printed("a long name", 7)
    ('\\\\$x_1\\\\$', 'a\\\\nb', 'a long…')
    """
    visible = "".join(map(_visible, class_name(text)))
    return (visible if most is None else shortened(visible, most)).replace("$", r"\$")


def shown_name(name: object) -> str:
    """The name of a column, a class or a value, short enough for an axis."""
    return printed(name, MOST_NAME_SHOWN)


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
    if not outside and len(entries) <= MOST_IN_LEGEND:
        ax.legend(handles=entries, **options)
    elif own:
        ax.figure.legend(handles=entries, loc="outside right upper", **options)
    else:
        ax.legend(handles=entries, loc="upper left", bbox_to_anchor=(1.01, 1.0), **options)


def zero_line(ax: Axes, vertical: bool = False) -> None:
    """A thin line where evidence is none."""
    (ax.axvline if vertical else ax.axhline)(0.0, color=LINE_COLOUR, linewidth=1.0, zorder=0)


def evidence_limits(evidence: Floats, chances: Floats) -> tuple[float, float]:
    """From where to where an axis of evidence reaches, so that what hardly ever happens does not flatten the rest.

    evidence, chances: value by class, the latter in any unit.
    """
    mass = np.broadcast_to(chances.sum(axis=1, keepdims=True), evidence.shape)
    finite = np.isfinite(evidence) & np.isfinite(mass)
    order = np.argsort(evidence[finite])
    values, along = evidence[finite][order], np.cumsum(mass[finite][order])
    if not values.size or not along[-1] > 0.0:
        return -LEAST_REACH, LEAST_REACH
    low, high = (float(values[np.searchsorted(along, share * along[-1])]) for share in (RARELY, 1.0 - RARELY))
    room = 0.08 * (high - low)
    return (
        float(np.clip(low - room, -MOST_REACH, -LEAST_REACH)),
        float(np.clip(high + room, LEAST_REACH, MOST_REACH)),
    )
