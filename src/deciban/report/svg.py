"""Small pictures as inline SVG: lines, bars on both sides of zero, a reliability diagram, a waterfall."""

from collections.abc import Callable, Sequence
from itertools import accumulate

import numpy as np

from deciban.explain.calculation import cut_endless, signed
from deciban.util.arrays import Floats, Integers
from deciban.util.text_tables import shorten
from deciban.web.html import Html, tag
from deciban.web.palette import AGAINST_COLOR, FOR_COLOR

# What tells lines apart in print as well as colors do.
DASHES = (None, "6 3", "2 2", "8 3 2 3")

# The size of a picture of lines, and its margins: left, right, top, below; the side of a square one.
WIDE, HIGH, SQUARE = 400, 140, 260
MARGINS = (52, 14, 12, 22)

# The height of a bar with its gap, the room of its label and of its number, and the signs of a label.
BAR_STEP = 18
LABEL_ROOM, NUMBER_ROOM = 178, 56
MAX_LABEL_LENGTH, MAX_END = 26, 18

# How much longer than the longest other bar an infinite one is drawn, and the half width of the mark of what is beyond
# a picture.
ENDLESS = 1.25
MARK = 5


def line_chart(
    x: Floats, lines: Floats, colors: Sequence[str], limits: tuple[float, float], ends: tuple[str, str], title: str
) -> Html:
    """Lines (value by line) over x, within these limits; `ends` are written below both ends of x.

    Where a line leaves the limits a triangle points out of the picture, with what the line reaches there.
    """
    left, right, top, below = MARGINS
    across, up = _scale(float(x[0]), float(x[-1]), left, WIDE - right), _scale(*limits, HIGH - below, top)
    parts = [_zero(left, WIDE - right, up(0.0), up(0.0))] if limits[0] < 0.0 < limits[1] else []
    for k, color in enumerate(colors):
        y = np.clip(np.nan_to_num(lines[:, k], nan=0.0, posinf=limits[1], neginf=limits[0]), *limits)
        points = " ".join(f"{across(a)},{up(b)}" for a, b in zip(x.tolist(), y.tolist(), strict=True))
        parts.append(tag("polyline", points=points, stroke=color, stroke_dasharray=DASHES[k % len(DASHES)]))
        for places, above in _beyond(lines[:, k], limits):
            middle, edge = across(float(x[places[places.size // 2]])), top if above else HIGH - below
            parts.append(_triangle(middle, edge, 0, -1 if above else 1, color))
            said = float(lines[places, k].max() if above else lines[places, k].min())
            if said in (np.nanmax(lines[:, k]), np.nanmin(lines[:, k])):
                text = signed(said) if np.isinf(said) else f"{said:.3g}"
                flip = middle > WIDE / 2
                parts.append(
                    _text(middle + (-MARK - 2 if flip else MARK + 2), edge + (10 if above else -3), text, flip)
                )
    parts += [_text(left - 4, up(value) + 4, f"{value:.3g}", end=True) for value in limits]
    parts.append(_text(left, HIGH - 6, shorten(ends[0], MAX_END)))
    parts.append(_text(WIDE - right, HIGH - 6, shorten(ends[1], MAX_END), end=True))
    return _picture(WIDE, HIGH, title, parts)


def bar_chart(labels: Sequence[str], values: Floats, colors: Sequence[str], title: str) -> Html:
    """Bars on both sides of zero (label by series): one series as bars, several as points of their colors."""
    high = BAR_STEP * len(labels) + 6
    size = max(float(np.abs(np.nan_to_num(values, posinf=0.0, neginf=0.0)).max(initial=0.0)), 1e-9)
    size *= ENDLESS if np.isinf(values).any() else 1.0
    along = _scale(-size, size, LABEL_ROOM, WIDE - NUMBER_ROOM)
    parts = [_zero(along(0.0), along(0.0), 0, high)]
    if len(colors) > 1:
        parts.append(_text(WIDE - 4, 15, f"±{size:.1f}", end=True))  # the scale
    for row, label in enumerate(labels):
        middle = BAR_STEP * row + 11
        parts.append(_label(middle, label))
        each = np.clip(np.nan_to_num(values[row], posinf=size, neginf=-size), -size, size).tolist()
        if len(each) == 1:
            said = float(values[row, 0])
            parts += [_bar(along(0.0), along(each[0]), middle, said), _number(middle, said)]
        else:
            for one, said, color in zip(each, values[row].tolist(), colors, strict=True):
                endless = _triangle(along(one), middle, 1 if said > 0.0 else -1, 0, color)
                point = tag("circle", cx=along(one), cy=middle, r=4, fill=color)
                parts.append(endless if np.isinf(said) else point)
    return _picture(WIDE, high, title, parts)


def waterfall(labels: Sequence[str], values: Sequence[float], title: str) -> Html:
    """Terms of a sum, each from where the one before ended; last the sum."""
    ends = list(accumulate(cut_endless(values), initial=0.0))
    along = _scale(min(ends), max(ends), LABEL_ROOM, WIDE - NUMBER_ROOM)
    high = BAR_STEP * (len(labels) + 1) + 6
    parts = [_zero(along(0.0), along(0.0), 0, high)]
    starts, said = [*ends[:-1], 0.0], [*values, sum(values)]
    for row, label in enumerate([*labels, "sum"]):
        middle, end = BAR_STEP * row + 11, ends[min(row + 1, len(labels))]
        bar = _bar(along(starts[row]), along(end), middle, said[row])
        parts += [_label(middle, label), bar, _number(middle, said[row])]
    return _picture(WIDE, high, title, parts)


def reliability(claimed: Floats, right: Floats, weight: Floats, title: str) -> Html:
    """How often claims came true: a point for each bin, the larger the more rows, and the line where they should be."""
    left, margin, top, below = MARGINS
    low = min(0.5, float(np.min([claimed, right], initial=0.5)))
    across, up = _scale(low, 1.0, left, SQUARE - margin), _scale(low, 1.0, SQUARE - below, top)
    parts = [_zero(across(low), across(1.0), up(low), up(1.0))]
    for said, true, rows in zip(claimed.tolist(), right.tolist(), weight.tolist(), strict=True):
        radius = round(2.0 + 8.0 * (rows / float(weight.max())) ** 0.5, 1)
        parts.append(tag("circle", cx=across(said), cy=up(true), r=radius, fill=FOR_COLOR, opacity=0.7))
    for value, name in ((low, ""), (1.0, "right")):
        parts.append(_text(left - 4, up(value) + 4, f"{name} {value:.2g}", end=True))
    parts.append(_text(across(low), SQUARE - 6, f"{low:.2g}"))
    parts.append(_text(across(1.0) + 8, SQUARE - 6, "claimed 1", end=True))
    return _picture(SQUARE, SQUARE, title, parts)


def dot(color: str) -> Html:
    """A dot of the color, for the key of a picture."""
    return tag("svg", tag("circle", cx=5, cy=5, r=5, fill=color), viewBox="0 0 10 10", class_="dot", aria_hidden="true")


def _scale(low: float, high: float, first: float, last: float) -> Callable[[float], float]:
    """From a number to a place on the screen, to a tenth."""
    slope = (last - first) / (high - low) if high > low else 0.0
    return lambda value: round(first + (value - low) * slope, 1)


def _zero(x1: float, x2: float, y1: float, y2: float) -> Html:
    return tag("line", class_="zero", x1=x1, x2=x2, y1=y1, y2=y2)


def _text(x: float, y: float, text: str, end: bool = False) -> Html:
    return tag("text", text, class_="end" if end else None, x=x, y=y)


def _label(middle: float, text: str) -> Html:
    return _text(LABEL_ROOM - 6, middle + 4, shorten(text, MAX_LABEL_LENGTH), end=True)


def _number(middle: float, value: float) -> Html:
    return _text(WIDE - 4, middle + 4, signed(value), end=True)


def _bar(start: float, end: float, middle: float, said: float) -> Html:
    """A bar; an arrow if what it says is infinite."""
    width = round(max(abs(end - start), 0.6), 1)
    color = FOR_COLOR if end >= start else AGAINST_COLOR
    if np.isinf(said):
        neck = round(end - np.sign(end - start) * min(9.0, width), 1)
        outline = f"M{start},{middle - 4}H{neck}V{middle - 8}L{end},{middle}L{neck},{middle + 8}V{middle + 4}H{start}Z"
        return tag("path", d=outline, fill=color)
    return tag("rect", x=min(start, end), y=middle - 6, width=width, height=12, fill=color)


def _triangle(x: float, y: float, right: int, down: int, color: str) -> Html:
    """A triangle whose tip at (x, y) points in this direction."""
    base = [(x - MARK * (2 * right + side * down), y - MARK * (2 * down + side * right)) for side in (-1, 1)]
    outline = "".join(f"L{round(a, 1)},{round(b, 1)}" for a, b in base)
    return tag("path", d=f"M{x},{y}{outline}Z", fill=color)


def _beyond(line: Floats, limits: tuple[float, float]) -> list[tuple[Integers, bool]]:
    """The stretches of places in which a line is beyond its limits, and whether above them."""
    found = []
    slack = 0.01 * (limits[1] - limits[0])
    for above, out in ((True, line > limits[1] + slack), (False, line < limits[0] - slack)):
        places = np.flatnonzero(out)
        stretches = np.split(places, np.flatnonzero(np.diff(places) > 1) + 1) if places.size else []
        found += [(stretch, above) for stretch in stretches]
    return found


def _picture(width: int, height: int, title: str, parts: Sequence[Html]) -> Html:
    return tag(
        "svg", parts, viewBox=f"0 0 {width} {height}", width=width, height=height, role="img", aria_label=title
    )  # fmt: skip
