"""The colours of classes, the same in every picture and page."""

from collections.abc import Iterable
from typing import Any

# Okabe's and Ito's colours, which people who do not see red or green tell apart, without those too pale for a line.
CLASS_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#4D4D4D")

# For a class, and against it: no colour of a class, since what is for one is against another. People who do not see red
# or green see them as yellow and blue; both stand out from white and from dark paper.
FOR_COLOUR, AGAINST_COLOUR = "#4F8A10", "#8A6FB0"


def class_colours(classes: Iterable[Any]) -> list[str]:
    """The colour of each class, the same in every picture.

    >>> class_colours(["no", "yes"])
    ['#0072B2', '#D55E00']
    """
    return [CLASS_COLOURS[k % len(CLASS_COLOURS)] for k, _ in enumerate(classes)]
