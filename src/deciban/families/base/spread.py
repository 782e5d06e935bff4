"""Variances of classes: one each, one for all, or between; and what of a column varies at all."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from deciban.errors import Argument, UsageError
from deciban.families.base.contract import ShortRepr
from deciban.util.arrays import ROUNDING_VARIANCE, Flags, Floats


@dataclass(frozen=True, repr=False)
class PerClass(ShortRepr):
    """Every class has a variance (or covariance matrix) of its own.

    Parameters
    ----------
    shrinkage : float or "oas", default=0.0
        The share, from 0 to 1, by which a covariance matrix moves toward its diagonal; "oas" is the share that the
        oracle approximating shrinkage finds. For blocks only: a single column has no correlations.

    See Also
    --------
    Pooled : One variance for all classes.
    Shrunk : Between the two.

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
        """The variances to use.

        Parameters
        ----------
        own : ndarray of shape (n_classes, ...)
            Those of each class.
        pooled : ndarray
            The one of all classes, about their own means.

        Returns
        -------
        ndarray of shape (n_classes, ...)
        """
        return own


@dataclass(frozen=True, repr=False)
class Pooled(ShortRepr):
    """All classes have one variance (or covariance matrix): that of the rows about their class means.

    With `JointGaussian` this is linear discriminant analysis.

    Parameters
    ----------
    shrinkage : float or "oas", default=0.0
        The share, from 0 to 1, by which a covariance matrix moves toward its diagonal; "oas" is the share that the
        oracle approximating shrinkage finds. For blocks only: a single column has no correlations.

    See Also
    --------
    PerClass : A variance for each class.
    Shrunk : Between the two.

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
        """The variances to use.

        Parameters
        ----------
        own : ndarray of shape (n_classes, ...)
            Those of each class.
        pooled : ndarray
            The one of all classes, about their own means.

        Returns
        -------
        ndarray of shape (n_classes, ...)
        """
        return np.broadcast_to(pooled, own.shape)


@dataclass(frozen=True, repr=False)
class Shrunk(ShortRepr):
    """Between `PerClass` and `Pooled`: (1 - amount) of the class's own variance and `amount` of the pooled one.

    Parameters
    ----------
    amount : float, default=0.5
        The share of the pooled variance (or covariance matrix), from 0 to 1.
    shrinkage : float or "oas", default=0.0
        The share, from 0 to 1, by which a covariance matrix moves toward its diagonal; "oas" is the share that the
        oracle approximating shrinkage finds. For blocks only: a single column has no correlations.

    See Also
    --------
    PerClass, Pooled : The two ends.

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
            raise UsageError(f"Shrunk(amount={self.amount!r}): the share of the pooled variance is between 0 and 1")
        check_shrinkage(self.shrinkage)

    shared: ClassVar[bool] = False

    @property
    def share_pooled(self) -> float:
        """The share of the pooled variance."""
        return float(self.amount)

    def combine(self, own: Floats, pooled: Floats) -> Floats:
        """The variances to use.

        Parameters
        ----------
        own : ndarray of shape (n_classes, ...)
            Those of each class.
        pooled : ndarray
            The one of all classes, about their own means.

        Returns
        -------
        ndarray of shape (n_classes, ...)
        """
        return (1.0 - self.amount) * own + self.amount * pooled


Spread = PerClass | Pooled | Shrunk


def spread_errors(spread: Spread, rows: Floats, variance: Floats) -> Floats:
    """Half the covariance, class by class, of the errors that variances have in proportion to themselves.

    The variance of class c is the sum of shares[c, k] of the one that class k has by itself, which is known to
    2 variance²/rows; a pooled one is one error in all classes.
    """
    share, total = spread.share_pooled, rows.sum()
    own = np.diag((1.0 - share) ** 2 / (2.0 * rows))
    if not share:
        return own
    ratio, inverse = variance / variance[:, None], variance.max() / variance
    common = share**2 * ((rows / total) @ inverse**-2.0) * inverse * inverse[:, None]
    return np.asarray(own + (share * (1.0 - share) * (ratio + ratio.T) + common) / (2.0 * total))


def find_varying(variance: Floats, mean: Floats) -> Flags:
    """Whether columns of this overall variance and mean vary; a constant column is no evidence.

    What is left of rounding is no variance: doubles that differ at all do so by more than 1e-24 of their size. Below
    1e-290 the inverse of a variance would overflow.
    """
    return np.asarray(variance > min_variance(mean))


def min_variance(mean: Floats) -> Floats:
    """What the variance of a column with this mean must exceed."""
    return np.maximum(1e-290, (1e-24 * mean) ** 2)


def rounding_variance(mean: Floats, overall: Floats) -> Floats:
    """The variance that rounding alone leaves among equal cells of this mean, in a column of this overall variance."""
    return np.asarray(ROUNDING_VARIANCE * (mean**2 + overall))


def check_shrinkage(shrinkage: float | str) -> None:
    if shrinkage != "oas" and not (isinstance(shrinkage, int | float) and 0.0 <= shrinkage <= 1.0):
        raise UsageError("give a share between 0 and 1, or 'oas'", parameter=Argument("shrinkage", shrinkage))


def check_spread(spread: Spread) -> None:
    """Refuse anything but one of the three kinds."""
    if not isinstance(spread, PerClass | Pooled | Shrunk):
        raise UsageError(
            f"{spread!r} is no kind of spread",
            remedy=("give ", Argument("family", "PerClass"), ", ", Argument("family", "Pooled"), " or Shrunk(amount)"),
        )


def check_no_shrinkage(variance: Spread) -> None:
    """Refuse a shrinkage where there is no matrix to shrink."""
    check_spread(variance)
    if variance.shrinkage != 0.0:
        raise UsageError(
            f"{variance!r}: a single column has no correlations to shrink", remedy="use Shrunk(amount) or a block"
        )
