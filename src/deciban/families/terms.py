"""Evidence as weights times features: what the linear and quadratic forms of a model are made of."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from deciban.errors import DataError
from deciban.util.arrays import Floats


@dataclass(frozen=True)
class Terms:
    """The evidence of one block as weights times features, up to a term that is the same for every class.

    names: one for each feature.
    features: from the cells of the family to numbers, row by feature; NaN where a row has no evidence.
    weights: feature by class. offset: one for each class, which falls away where the cells are missing.
    quadratic: class by feature by feature, or None where the evidence is linear.
    centre: is subtracted from the features first, so that values that are large against their spread lose no digits.
    """

    names: tuple[str, ...]
    features: Callable[[Any], Floats]
    weights: Floats
    offset: Floats
    quadratic: Floats | None = None
    centre: Floats | float = 0.0

    @classmethod
    def none(cls, classes: int) -> Self:
        """The terms of a block without evidence, such as a constant column."""
        return cls((), lambda cells: np.zeros((len(cells), 0)), np.zeros((0, classes)), np.zeros(classes))

    @property
    def finite(self) -> bool:
        return bool(np.isfinite(self.weights).all() and np.isfinite(self.offset).all())

    def weighted(self, weight: float) -> "Terms":
        """The terms of `weight` times the evidence."""
        curve = None if self.quadratic is None else weight * self.quadratic
        return replace(self, weights=weight * self.weights, offset=weight * self.offset, quadratic=curve)

    def expanded(self) -> "Terms":
        """The same terms with a centre of 0."""
        centre = np.broadcast_to(self.centre, (len(self.names),))
        weights, offset = self.weights, self.offset - centre @ self.weights
        if self.quadratic is not None:
            weights = weights - 2.0 * np.einsum("cij,j->ic", self.quadratic, centre)
            offset = offset + np.einsum("i,cij,j->c", centre, self.quadratic, centre)
        return replace(self, weights=weights, offset=offset, centre=0.0)

    def scores(self, cells: Any) -> Floats:
        """The evidence of each row, row by class; 0 where the cells are missing."""
        features = self.features(cells)
        missing = np.isnan(features)
        holed = np.asarray(missing.any(axis=1))
        if (holed & ~missing.all(axis=1)).any():
            raise DataError(f"{' and '.join(self.names[:3])} belong together; a form cannot leave one of them out")
        x = np.where(missing, 0.0, features - self.centre)
        scores = x @ self.weights + self.offset
        if self.quadratic is not None:
            scores = scores + np.einsum("ni,cij,nj->nc", x, self.quadratic, x)
        return np.where(holed[:, None], 0.0, scores)
