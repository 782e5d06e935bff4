"""What tuning knows of a column of numbers when it asks families whether they may suit it."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from deciban.util.arrays import Floats

# Dates and times are positions, whose zero is a convention, and durations amounts, whose unit is one: no counts.
Measure = Literal["number", "amount", "position"]


@dataclass(frozen=True)
class ColumnNumbers:
    """The distinct values of a column, in order, and what the families choose by.

    rows: the weight of all rows. varies_in_classes: whether the cells of every class vary. varies_within: whether those
    of the classes together do, about the mean of their class.
    """

    values: Floats
    rows: float
    measure: Measure
    varies_in_classes: bool
    varies_within: bool

    @property
    def positive(self) -> bool:
        """Whether all are amounts above 0."""
        return self.measure != "position" and bool(self.values[0] > 0.0)

    @property
    def counts(self) -> bool:
        """Whether all are counts, and none of them huge."""
        whole = self.values[0] >= 0.0 and self.values[-1] < 1e6 and (self.values == np.floor(self.values)).all()
        return self.measure == "number" and bool(whole)
