"""What the linear and the quadratic discriminant share."""

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from deciban.errors import UsageError
from deciban.estimators.dropin.base import DropIn
from deciban.estimators.dropin.covariance import estimated, ledoit_wolf
from deciban.model.counts import Counts
from deciban.statistics import Scatter
from deciban.tables.labelled import LabelledTable
from deciban.util.arrays import Floats


class Discriminant(DropIn):
    """What the two share: one joint Gaussian block over all columns."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "shrinkage": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="both"), None],
        "priors": ["array-like", None],
        "store_covariance": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "covariance_estimator": [HasMethods("fit"), None],
    }

    solver: str
    shrinkage: Any
    priors: Any
    store_covariance: bool
    tol: float
    covariance_estimator: Any

    def _check_solver(self, message: str) -> None:
        if self.solver == "svd":
            if self.shrinkage is not None:
                raise NotImplementedError("shrinkage not supported with 'svd' solver.")
            if self.covariance_estimator is not None:
                raise UsageError(message)
        if self.covariance_estimator is not None and self.shrinkage not in (None, 0):
            raise UsageError(
                "covariance_estimator and shrinkage parameters are not None. Only one of the two can be set."
            )

    def _own_covariances(self, counts: Counts, rows: LabelledTable | None) -> Floats:
        """The covariance matrix of each class, shrunk or estimated according to the parameters."""
        statistic: Scatter = counts.statistics[0]
        weight = np.maximum(statistic.weight, 1e-300)[:, None, None]
        own = (statistic.scatter + statistic.scatter_low) / weight
        if isinstance(self.shrinkage, Real):
            size = own.shape[1]
            target = (np.trace(own, axis1=1, axis2=2) / size)[:, None, None] * np.eye(size)
            return np.asarray((1.0 - float(self.shrinkage)) * own + float(self.shrinkage) * target)
        if not self._needs_rows:
            return own
        if rows is None:
            raise rows_needed()
        numbers = rows.table.numbers(range(rows.table.width)).astype(np.float64)
        weights = np.ones(len(numbers)) if rows.weights is None else rows.weights
        there = (weights > 0.0) & ~np.isnan(numbers).any(axis=1)
        for c in np.flatnonzero(statistic.weight > 0.0):
            of_class = there & (rows.labels.codes == c)
            own[c] = self._from_rows(numbers[of_class], weights[of_class])
        return own

    @property
    def _needs_rows(self) -> bool:
        """Whether counts are not enough to estimate the covariance."""
        return self.shrinkage == "auto" or self.covariance_estimator is not None

    def _refuse_unlike(self, other: DropIn) -> None:
        if self._needs_rows:
            raise rows_needed()
        super()._refuse_unlike(other)

    def _from_rows(self, rows: Floats, weights: Floats) -> Floats:
        if self.covariance_estimator is None:
            return ledoit_wolf(rows, weights)
        return estimated(self.covariance_estimator, rows, weights)

    @property
    def means_(self) -> Any:
        """The mean of each column in each class."""
        return self._statistic.mean.astype(self._fitted().dtype)

    @property
    def priors_(self) -> Any:
        """The prior of each class."""
        return np.exp(self._fitted().log_prior).astype(self._fitted().dtype)


def rows_needed() -> UsageError:
    return UsageError(
        "this covariance is estimated from the rows themselves: fit all of them at once, or use a shrinkage in [0, 1]"
    )
