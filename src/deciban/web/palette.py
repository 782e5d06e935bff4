"""Colors of classes, the same in every chart and page."""

from collections.abc import Iterable
from typing import Any

# Okabe and Ito's colors, which remain distinguishable with color blindness, without those too pale for a line.
CLASS_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#4D4D4D")

# Evidence for a class. Not a class color, as evidence for one class is evidence against another.
FOR_COLOR = "#4F8A10"

# Evidence against a class. With color blindness they look yellow and blue; both contrast with white and dark pages.
AGAINST_COLOR = "#8A6FB0"


def class_colors(classes: Iterable[Any]) -> list[str]:
    """Return the color of each class, the same in every chart.

    >>> class_colors(["no", "yes"])
    ['#0072B2', '#D55E00']
    """
    return [CLASS_COLORS[k % len(CLASS_COLORS)] for k, _ in enumerate(classes)]
