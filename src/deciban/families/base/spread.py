"""Variances of classes: one per class, one for all, or in between; and tests for constant columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from deciban.errors import Argument, UsageError
from deciban.families.base.contract import ShortRepr
from deciban.util.arrays import ROUNDING_VARIANCE, Flags, Floats


@dataclass(frozen=True, repr=False)
class PerClass(ShortRepr):
    """One variance (or covariance matrix) per class.

    Parameters
    ----------
    shrinkage : float or "oas", default=0.0
        Share, from 0 to 1, by which a covariance matrix is shrunk toward its diagonal; "oas" uses the share of the
        oracle approximating shrinkage. For blocks only: a single column has no correlations.

    See Also
    --------
    Pooled : One variance for all classes.
    Shrunk : A weighted mean of both.

    Examples
    --------
    >>> from deciban import BayesClassifier, Gaussian, PerClass
    >>> clf = BayesClassifier(Gaussian(PerClass()), tune=None).fit({"size": [1.0, 3.0, 10.0, 18.0]}, list("aabb"))
    >>> clf.estimates()["size"]["variance"].tolist()
    [1.0, 16.0]
    """

    shrinkage: float | Literal["oas"] = 0.0

    def __post_init__(self) -> None:
        check_shrinkage(self.shrinkage)

    shared: ClassVar[bool] = False
    share_pooled: ClassVar[float] = 0.0

    def combine(self, own: Floats, pooled: Floats) -> Floats:
        """Return the variances to use.

        Parameters
        ----------
        own : ndarray of shape (n_classes, ...)
            The variance of each class.
        pooled : ndarray
            The variance of all classes, about their class means.

        Returns
        -------
        ndarray of shape (n_classes, ...)
        """
        return own


@dataclass(frozen=True, repr=False)
class Pooled(ShortRepr):
    """One variance (or covariance matrix) for all classes: that of the rows about their class means.

    With `JointGaussian` this is linear discriminant analysis.

    Parameters
    ----------
    shrinkage : float or "oas", default=0.0
        Share, from 0 to 1, by which a covariance matrix is shrunk toward its diagonal; "oas" uses the share of the
        oracle approximating shrinkage. For blocks only: a single column has no correlations.

    See Also
    --------
    PerClass : One variance per class.
    Shrunk : A weighted mean of both.

    Examples
    --------
    >>> from deciban import BayesClassifier, Gaussian, Pooled
    >>> clf = BayesClassifier(Gaussian(Pooled()), tune=None).fit({"size": [1.0, 3.0, 10.0, 18.0]}, list("aabb"))
    >>> clf.estimates()["size"]["variance"].tolist()
    [8.5, 8.5]
    """

    shrinkage: float | Literal["oas"] = 0.0

    def __post_init__(self) -> None:
        check_shrinkage(self.shrinkage)

    shared: ClassVar[bool] = True
    share_pooled: ClassVar[float] = 1.0

    def combine(self, own: Floats, pooled: Floats) -> Floats:
        """Return the variances to use.

        Parameters
        ----------
        own : ndarray of shape (n_classes, ...)
            The variance of each class.
        pooled : ndarray
            The variance of all classes, about their class means.

        Returns
        -------
        ndarray of shape (n_classes, ...)
        """
        return np.broadcast_to(pooled, own.shape)


@dataclass(frozen=True, repr=False)
class Shrunk(ShortRepr):
    """Weighted mean of `PerClass` and `Pooled`: (1 - amount) of the class's variance plus `amount` of the pooled one.

    Parameters
    ----------
    amount : float, default=0.5
        Share of the pooled variance (or covariance matrix), from 0 to 1.
    shrinkage : float or "oas", default=0.0
        Share, from 0 to 1, by which a covariance matrix is shrunk toward its diagonal; "oas" uses the share of the
        oracle approximating shrinkage. For blocks only: a single column has no correlations.

    See Also
    --------
    PerClass, Pooled : The two extremes.

    Examples
    --------
    >>> from deciban import BayesClassifier, Gaussian, Shrunk
    >>> clf = BayesClassifier(Gaussian(Shrunk(0.2)), tune=None).fit({"size": [1.0, 3.0, 10.0, 18.0]}, list("aabb"))
    >>> clf.estimates()["size"]["variance"].tolist()
    [2.5, 14.5]
    """

    amount: float = 0.5
    shrinkage: float | Literal["oas"] = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.amount, int | float) or not 0.0 <= self.amount <= 1.0:
            raise UsageError(f"Shrunk(amount={self.amount!r}): expected a share between 0 and 1")
        check_shrinkage(self.shrinkage)

    shared: ClassVar[bool] = False

    @property
    def share_pooled(self) -> float:
        """Share of the pooled variance."""
        return float(self.amount)

    def combine(self, own: Floats, pooled: Floats) -> Floats:
        """Return the variances to use.

        Parameters
        ----------
        own : ndarray of shape (n_classes, ...)
            The variance of each class.
        pooled : ndarray
            The variance of all classes, about their class means.

        Returns
        -------
        ndarray of shape (n_classes, ...)
        """
        return (1.0 - self.amount) * own + self.amount * pooled


Spread = PerClass | Pooled | Shrunk


def estimate_spread_errors(spread: Spread, rows: Floats, variance: Floats) -> Floats:
    """Return half the covariance, class by class, of the relative estimation errors of variances.

    The estimate of a variance from n rows has the variance 2 variance²/n. A pooled variance has the same error in all
    classes.
    """
    share, total = spread.share_pooled, rows.sum()
    own = np.diag((1.0 - share) ** 2 / (2.0 * rows))
    if not share:
        return own
    ratio, inverse = variance / variance[:, None], variance.max() / variance
    common = share**2 * ((rows / total) @ inverse**-2.0) * inverse * inverse[:, None]
    return np.asarray(own + (share * (1.0 - share) * (ratio + ratio.T) + common) / (2.0 * total))


def find_varying(variance: Floats, mean: Floats) -> Flags:
    """Return a flag for each column that varies, given its overall variance and mean.

    A constant column has no evidence.
    """
    return np.asarray(variance > min_variance(mean))


def min_variance(mean: Floats) -> Floats:
    """Return the smallest variance that is not a rounding error, for a column with this mean.

    Doubles that differ at all differ by more than 1e-24 of their size. Below 1e-290 the inverse of a variance
    overflows.
    """
    return np.maximum(1e-290, (1e-24 * mean) ** 2)


def estimate_rounding_variance(mean: Floats, overall: Floats) -> Floats:
    """Return the variance that rounding leaves among equal cells of this mean, in a column of this variance."""
    return np.asarray(ROUNDING_VARIANCE * (mean**2 + overall))


def check_shrinkage(shrinkage: float | str) -> None:
    if shrinkage != "oas" and not (isinstance(shrinkage, int | float) and 0.0 <= shrinkage <= 1.0):
        raise UsageError("expected a share between 0 and 1, or 'oas'", parameter=Argument("shrinkage", shrinkage))


def check_spread(spread: Spread) -> None:
    """Raise UsageError unless `spread` is PerClass, Pooled or Shrunk."""
    if not isinstance(spread, PerClass | Pooled | Shrunk):
        raise UsageError(
            f"expected PerClass(), Pooled() or Shrunk(), found {spread!r}",
            remedy=("use ", Argument("family", "PerClass"), ", ", Argument("family", "Pooled"), " or Shrunk(amount)"),
        )


def check_no_shrinkage(variance: Spread) -> None:
    """Raise UsageError for a shrinkage: a single column has no correlations to shrink."""
    check_spread(variance)
    if variance.shrinkage != 0.0:
        raise UsageError(
            f"{variance!r}: shrinkage= needs a block of columns",
            remedy="use Shrunk(amount) without shrinkage=, or JointGaussian for a block",
        )
