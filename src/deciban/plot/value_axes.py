"""The values of a column along an axis: numbers, dates, or names one beside the other."""

from typing import Any

import numpy as np

from deciban.explain.column_values import ColumnValues
from deciban.plot.figures import Axes
from deciban.plot.style import SMALL_SIZE, printed
from deciban.util.arrays import Floats, Integers

# Categories that an axis has room for, the places of their names, and how many short ones stand level.
MOST_CATEGORIES_DRAWN = 20
CATEGORY_PLACES = 16
LEVEL_PLACES = 50


def most_telling(values: ColumnValues, telling: Floats, most: int = MOST_CATEGORIES_DRAWN) -> Integers:
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
