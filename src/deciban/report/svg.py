"""Small charts as inline SVG: lines, bars around zero, a calibration plot, a waterfall."""

from collections.abc import Callable, Sequence
from itertools import accumulate

import numpy as np

from deciban.evaluation.metrics import wilson_interval
from deciban.explain.calculation import clip_infinite, format_decibans
from deciban.util.arrays import Floats, Integers
from deciban.util.text_tables import format_three, shorten, shorten_middle
from deciban.web.html import Html, tag
from deciban.web.palette import AGAINST_COLOR, FOR_COLOR

# Dash patterns, which distinguish lines in print as colors do on screens.
DASHES = (None, "6 3", "2 2", "8 3 2 3")

# Size of a line chart in pixels.
WIDE = 400
HIGH = 152

# Side of a square chart.
SQUARE = 260

# Margins: left, right, top (with the name of the y axis), bottom.
MARGINS = (52, 14, 24, 22)

# Space below a calibration chart for the name of its x axis.
AXIS_ROOM = 36

# Bins with fewer rows are drawn hollow: their frequencies are uncertain.
FEW_ROWS = 20


# Height of a bar with its gap.
BAR_STEP = 18

# Maximum width reserved for the label of a bar.
LABEL_ROOM = 178

# Width reserved for the number of a bar.
NUMBER_ROOM = 56

# Characters of a label that fit LABEL_ROOM, and the width of each in a shorter label.
MAX_LABEL_LENGTH = 26
LETTER_WIDTH = 6.6

# Characters of the values at both ends of an axis.
MAX_END_LENGTH = 18

# Length of an infinite bar relative to the longest finite one.
INFINITE_LENGTH = 1.25

# Half the width of the triangle that marks a clipped line.
MARK = 5


def line_chart(
    x: Floats,
    lines: Floats,
    colors: Sequence[str],
    limits: tuple[float, float],
    ends: tuple[str, str],
    label: str,
    title: str,
) -> Html:
    """Draw lines (value by line) over x within these limits; `label` names the y axis, `ends` are the ends of x.

    A triangle with the extreme value marks each place where a line is clipped.
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
            extreme = float(lines[places, k].max() if above else lines[places, k].min())
            if extreme in (np.nanmax(lines[:, k]), np.nanmin(lines[:, k])):
                text = format_decibans(extreme) if np.isinf(extreme) else format_three(extreme)
                flip = middle > WIDE / 2
                parts.append(
                    _text(middle + (-MARK - 2 if flip else MARK + 2), edge + (10 if above else -3), text, flip)
                )
    parts += [_text(left - 4, up(value) + 4, format_three(value), end=True) for value in limits]
    parts.append(_text(left, 11, label))
    parts.append(_text(left, HIGH - 6, shorten(ends[0], MAX_END_LENGTH)))
    parts.append(_text(WIDE - right, HIGH - 6, shorten(ends[1], MAX_END_LENGTH), end=True))
    return _picture(WIDE, HIGH, title, parts)


def bar_chart(labels: Sequence[str], values: Floats, colors: Sequence[str], title: str) -> Html:
    """Draw values around zero (label by series): one series as bars, several as colored points."""
    high = BAR_STEP * len(labels) + 6
    size = max(float(np.abs(np.nan_to_num(values, posinf=0.0, neginf=0.0)).max(initial=0.0)), 1e-9)
    size *= INFINITE_LENGTH if np.isinf(values).any() else 1.0
    room = _label_room(labels)
    along = _scale(-size, size, room, WIDE - NUMBER_ROOM)
    parts = [_zero(along(0.0), along(0.0), 0, high)]
    if len(colors) > 1:
        parts.append(_text(WIDE - 4, 15, f"±{size:.1f}", end=True))  # the scale
    for row, label in enumerate(labels):
        middle = BAR_STEP * row + 11
        parts.append(_label(room, middle, label))
        each = np.clip(np.nan_to_num(values[row], posinf=size, neginf=-size), -size, size).tolist()
        if len(each) == 1:
            value = float(values[row, 0])
            parts += [_bar(along(0.0), along(each[0]), middle, value), _number(middle, value)]
        else:
            for clipped, value, color in zip(each, values[row].tolist(), colors, strict=True):
                arrow = _triangle(along(clipped), middle, 1 if value > 0.0 else -1, 0, color)
                point = tag("circle", cx=along(clipped), cy=middle, r=4, fill=color)
                parts.append(arrow if np.isinf(value) else point)
    return _picture(WIDE, high, title, parts)


def ranking_chart(labels: Sequence[str], values: Sequence[float], title: str) -> Html:
    """Draw sizes as bars that start at 0, in the given order."""
    high = BAR_STEP * len(labels) + 6
    longest = max([value for value in values if np.isfinite(value)], default=0.0)
    longest = max(longest, 1e-9) * (INFINITE_LENGTH if np.isinf(values).any() else 1.0)
    room = _label_room(labels)
    along = _scale(0.0, longest, room, WIDE - NUMBER_ROOM)
    parts = [_zero(along(0.0), along(0.0), 0, high)]
    for row, (label, value) in enumerate(zip(labels, values, strict=True)):
        middle = BAR_STEP * row + 11
        bar = _bar(along(0.0), along(min(value, longest)), middle, value, "var(--accent)")
        text = "∞" if np.isinf(value) else f"{value:.1f}"
        parts += [_label(room, middle, label), bar, _text(WIDE - 4, middle + 4, text, end=True)]
    return _picture(WIDE, high, title, parts)


def waterfall(labels: Sequence[str], values: Sequence[float], title: str) -> Html:
    """Draw the terms of a sum, each starting where the previous one ends, then the sum."""
    ends = list(accumulate(clip_infinite(values), initial=0.0))
    room = _label_room([*labels, "sum"])
    along = _scale(min(ends), max(ends), room, WIDE - NUMBER_ROOM)
    high = BAR_STEP * (len(labels) + 1) + 6
    parts = [_zero(along(0.0), along(0.0), 0, high)]
    starts, totals = [*ends[:-1], 0.0], [*values, sum(values)]
    for row, label in enumerate([*labels, "sum"]):
        middle, end = BAR_STEP * row + 11, ends[min(row + 1, len(labels))]
        bar = _bar(along(starts[row]), along(end), middle, totals[row])
        parts += [_label(room, middle, label), bar, _number(middle, totals[row])]
    return _picture(WIDE, high, title, parts)


def calibration_chart(predicted: Floats, observed: Floats, weight: Floats, title: str) -> Html:
    """Draw observed frequency over predicted probability, with 95% intervals: a point per bin, its area the rows.

    Bins of few rows are hollow.
    """
    left, margin, top, _ = MARGINS
    wide, high = SQUARE, SQUARE + AXIS_ROOM - 22
    low = min(0.5, float(np.min([predicted, observed], initial=0.5)))
    across, up = _scale(low, 1.0, left, wide - margin), _scale(low, 1.0, high - AXIS_ROOM, top)
    parts = [_zero(across(low), across(1.0), up(low), up(1.0)), _zero(left, wide - margin, up(low), up(low))]
    intervals = zip(*(end.tolist() for end in wilson_interval(observed, weight)), strict=True)
    points = zip(predicted.tolist(), observed.tolist(), weight.tolist(), intervals, strict=True)
    for x, y, rows, (first, last) in points:
        radius = round(2.5 + 7.5 * (rows / float(weight.max())) ** 0.5, 1)
        parts.append(tag("line", x1=across(x), x2=across(x), y1=up(max(first, low)), y2=up(last), stroke=FOR_COLOR))
        hollow = rows < FEW_ROWS
        fill = "var(--panel)" if hollow else FOR_COLOR
        parts.append(tag("circle", cx=across(x), cy=up(y), r=radius, fill=fill, stroke=FOR_COLOR))
    parts.append(_text(4, 11, "observed frequency"))
    for value in (low, 1.0):
        parts.append(_text(left - 6, up(value) + 4, f"{value:.2g}", end=True))
        parts.append(_text(across(value) + (6 if value == 1.0 else -4), high - 20, f"{value:.2g}", value == 1.0))
    parts.append(_text(wide - margin, high - 5, "predicted probability", end=True))
    return _picture(wide, high, title, parts)


def dot(color: str) -> Html:
    """Draw a colored dot for a legend."""
    return tag("svg", tag("circle", cx=5, cy=5, r=5, fill=color), viewBox="0 0 10 10", class_="dot", aria_hidden="true")


def _scale(low: float, high: float, first: float, last: float) -> Callable[[float], float]:
    """Return the function from a number to a position in pixels, rounded to a tenth."""
    slope = (last - first) / (high - low) if high > low else 0.0
    return lambda value: round(first + (value - low) * slope, 1)


def _zero(x1: float, x2: float, y1: float, y2: float) -> Html:
    return tag("line", class_="zero", x1=x1, x2=x2, y1=y1, y2=y2)


def _text(x: float, y: float, text: str, end: bool = False) -> Html:
    return tag("text", text, class_="end" if end else None, x=x, y=y)


def _label_room(labels: Sequence[str]) -> int:
    """Return the width for these labels: short ones leave more room for the bars."""
    return min(LABEL_ROOM, 12 + int(LETTER_WIDTH * max(map(len, labels), default=0)))


def _label(room: int, middle: float, text: str) -> Html:
    return _text(room - 6, middle + 4, shorten_middle(text, MAX_LABEL_LENGTH), end=True)


def _number(middle: float, value: float) -> Html:
    return _text(WIDE - 4, middle + 4, format_decibans(value), end=True)


def _bar(start: float, end: float, middle: float, value: float, color: str | None = None) -> Html:
    """Draw a bar, or an arrow if the value is infinite; by default in the color of evidence for or against."""
    width = round(max(abs(end - start), 0.6), 1)
    color = color or (FOR_COLOR if end >= start else AGAINST_COLOR)
    if np.isinf(value):
        neck = round(end - np.sign(end - start) * min(9.0, width), 1)
        outline = f"M{start},{middle - 4}H{neck}V{middle - 8}L{end},{middle}L{neck},{middle + 8}V{middle + 4}H{start}Z"
        return tag("path", d=outline, fill=color)
    return tag("rect", x=min(start, end), y=middle - 6, width=width, height=12, fill=color)


def _triangle(x: float, y: float, right: int, down: int, color: str) -> Html:
    """Draw a triangle whose tip at (x, y) points in this direction."""
    base = [(x - MARK * (2 * right + side * down), y - MARK * (2 * down + side * right)) for side in (-1, 1)]
    outline = "".join(f"L{round(a, 1)},{round(b, 1)}" for a, b in base)
    return tag("path", d=f"M{x},{y}{outline}Z", fill=color)


def _beyond(line: Floats, limits: tuple[float, float]) -> list[tuple[Integers, bool]]:
    """Return the runs of positions where a line exceeds the limits, and whether it is above them."""
    found = []
    tolerance = 0.01 * (limits[1] - limits[0])
    for above, out in ((True, line > limits[1] + tolerance), (False, line < limits[0] - tolerance)):
        places = np.flatnonzero(out)
        stretches = np.split(places, np.flatnonzero(np.diff(places) > 1) + 1) if places.size else []
        found += [(stretch, above) for stretch in stretches]
    return found


def _picture(width: int, height: int, title: str, parts: Sequence[Html]) -> Html:
    return tag(
        "svg", parts, viewBox=f"0 0 {width} {height}", width=width, height=height, role="img", aria_label=title
    )  # fmt: skip
