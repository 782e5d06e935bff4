"""The colors of classes, the same in every picture and page."""

from collections.abc import Iterable
from typing import Any

# Okabe's and Ito's colors, which people who do not see red or green tell apart, without those too pale for a line.
CLASS_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#4D4D4D")

# For a class, and against it: no color of a class, since what is for one is against another. People who do not see red
# or green see them as yellow and blue; both stand out from white and from dark paper.
FOR_COLOR, AGAINST_COLOR = "#4F8A10", "#8A6FB0"


def class_colors(classes: Iterable[Any]) -> list[str]:
    """The color of each class, the same in every picture.

    >>> class_colors(["no", "yes"])
    ['#0072B2', '#D55E00']
    """
    return [CLASS_COLORS[k % len(CLASS_COLORS)] for k, _ in enumerate(classes)]
