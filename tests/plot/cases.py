"""Classifiers that the tests of pictures share, and what they ask of a picture."""

from functools import cache
from typing import Any

import matplotlib as mpl
import numpy as np
import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.text import Text

from deciban import BayesClassifier

mpl.use("agg")

ARABIC = "\u0645\u0631\u062d\u0628\u0627"
HOSTILE = ("$x$", "a_b^{", "long " * 40, f"{ARABIC} \U0001f600", 'quo"te <b>&amp;', "line\nbreak\x00\ud800")


def drawn_rows(classes: int, columns: int, rows: int = 400) -> tuple[pa.Table, Any]:
    """Rows of numbers, counts and categories that tell something of as many classes."""
    rng = np.random.default_rng(classes * 1000 + columns)
    y = rng.integers(0, classes, rows)
    towns = np.array([f"town {k}" for k in range(30)])
    kinds = (
        lambda j: rng.normal(y * (j % 5), 2.0),
        lambda j: rng.poisson(1 + (y + j) % 4),
        lambda j: towns[(y + rng.integers(0, 4 + j % 3, rows)) % 30],
    )
    table = pa.table({f"column {j}": kinds[j % 3](j) for j in range(columns)})
    return table, np.array([f"class {k}" for k in range(classes)])[y]


@cache
def fitted(classes: int, columns: int) -> BayesClassifier:
    """A plain classifier of such rows, which it remembers."""
    return BayesClassifier(tune=None).fit(*drawn_rows(classes, columns))


def seen_texts(figure: Any) -> list[tuple[str, Any]]:
    """The texts that are drawn in a figure, with the boxes that they fill; those that stand askew are left out."""
    figure.canvas.draw()
    axes = [one for one in figure.findobj(Axes) if one.get_visible()]
    ticks = [tick for one in axes for axis in (one.xaxis, one.yaxis) for tick in axis.get_major_ticks()]
    labels = {id(label) for tick in ticks for label in (tick.label1, tick.label2)}
    texts = [one for one in figure.findobj(Text) if id(one) not in labels]
    for one in axes:
        for axis in (one.xaxis, one.yaxis) if one.axison else ():
            drawn = axis._update_ticks()
            texts += [label for tick in drawn for label in (tick.label1, tick.label2) if axis.get_visible()]
    return [
        (one.get_text(), one.get_window_extent())
        for one in texts
        if one.get_visible() and one.get_text().strip() and one.get_rotation() in (0, 90)
    ]


def overlapping(figure: Any) -> list[tuple[str, str]]:
    """The pairs of texts in a figure that run into each other."""
    boxes = seen_texts(figure)
    return [
        (text, other)
        for k, (text, box) in enumerate(boxes)
        for other, second in boxes[k + 1 :]
        if min(box.x1, second.x1) - max(box.x0, second.x0) > 1.0
        and min(box.y1, second.y1) - max(box.y0, second.y0) > 1.5
    ]


def outside(figure: Any) -> list[str]:
    """The texts that are cut off by the edge of a figure."""
    width, height = figure.canvas.get_width_height()
    return [
        text
        for text, box in seen_texts(figure)
        if box.x0 < -1.0 or box.y0 < -1.0 or box.x1 > width + 1.0 or box.y1 > height + 1.0
    ]


def area(collection: Any) -> float:
    """The area of a drawn polygon, by the shoelace formula."""
    total = 0.0
    for path in collection.get_paths():
        x, y = path.vertices[:, 0], path.vertices[:, 1]
        total += 0.5 * abs(float(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1))))
    return total
