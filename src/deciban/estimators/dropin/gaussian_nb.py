"""GaussianNB."""

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from deciban.errors import UsageError
from deciban.estimators.dropin.base import DropIn, empirical, given
from deciban.families import Family, Gaussian
from deciban.model.counts import Counts
from deciban.statistics import Moments
from deciban.util.arrays import Floats, log


class GaussianNB(DropIn):
    """Gaussian naive Bayes with scikit-learn's parameters and attributes.

    What differs from scikit-learn is in `docs/differences-from-scikit-learn.md`.

    Parameters
    ----------
    priors : array-like of shape (n_classes,), default=None
        The prior of each class. None: the share of each class.
    var_smoothing : float, default=1e-9
        The share of the *column's own* variance that is added to each variance.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels of the classes, sorted.
    class_count_ : ndarray of shape (n_classes,)
        The weight of the rows of each class.
    n_features_in_ : int
        The number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where they are all text.
    class_prior_ : ndarray of shape (n_classes,)
        The prior of each class.
    theta_ : ndarray of shape (n_classes, n_features)
        The mean of each column in each class.
    var_ : ndarray of shape (n_classes, n_features)
        The variance of each column in each class.
    epsilon_ : ndarray of shape (n_features,)
        What was added to the variances of each column.

    See Also
    --------
    BayesClassifier : All kinds of columns, tuned posteriors, explanations, decisions.
    sklearn.naive_bayes.GaussianNB : The original.

    Examples
    --------
    >>> import numpy as np
    >>> from deciban.dropin import GaussianNB
    >>> X = np.array([[-1, -1], [-2, -1], [-3, -2], [1, 1], [2, 1], [3, 2]])
    >>> clf = GaussianNB().fit(X, [1, 1, 1, 2, 2, 2])
    >>> clf.predict([[-0.8, -1]])
    array([1])
    >>> clf.theta_.round(3).tolist()
    [[-2.0, -1.333], [2.0, 1.333]]
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "priors": ["array-like", None],
        "var_smoothing": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(self, *, priors: Any = None, var_smoothing: float = 1e-9) -> None:
        self.priors = priors
        self.var_smoothing = var_smoothing

    def _family(self, columns: int) -> Family:
        return Gaussian(floor=0.0, added=float(self.var_smoothing))

    def _log_prior(self, counts: Counts) -> Floats:
        if self.priors is None:
            return empirical(counts)
        priors = given(self.priors, counts)
        if not np.isclose(priors.sum(), 1.0):
            raise UsageError("The sum of the priors should be 1.")
        if (priors < 0).any():
            raise UsageError("Priors must be non-negative.")
        return log(priors)

    @property
    def class_count_(self) -> Any:
        """The weight of the rows of each class."""
        return self._fitted().counts.class_weight.astype(self._fitted().dtype)

    @property
    def class_prior_(self) -> Any:
        """The prior of each class."""
        return np.exp(self._fitted().log_prior).astype(self._fitted().dtype)

    @property
    def theta_(self) -> Any:
        """The mean of each column in each class."""
        return self._statistic.mean.astype(self._fitted().dtype)

    @property
    def epsilon_(self) -> Any:
        """What was added to the variances of each column."""
        return self.var_smoothing * self._statistic.over_classes().variance()[0]

    @property
    def var_(self) -> Any:
        """The variance of each column in each class."""
        return self._likelihood.variance.T.astype(self._fitted().dtype)

    @staticmethod
    def _update_mean_variance(n_past: float, mu: Any, var: Any, X: Any, sample_weight: Any = None) -> Any:
        """Mean and variance of n_past rows and those of X together."""
        rows = np.asarray(X, dtype=np.float64)
        weight, mean, variance = (np.full((1, rows.shape[1]), each, dtype=np.float64) for each in (n_past, mu, var))
        none = np.zeros_like(mean)
        past = Moments.of_values(weight, (mean, none), weight * variance, none)
        weights = np.ones(len(rows)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        both = past.merge(Moments.count(rows, np.zeros(len(rows), dtype=np.int32), weights, 1))
        if np.ndim(mu) == 0 and (both.mean == both.mean[0, 0]).all():
            return both.mean[0, 0], both.variance()[0, 0]
        return both.mean[0], both.variance()[0]
