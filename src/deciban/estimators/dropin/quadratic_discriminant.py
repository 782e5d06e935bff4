"""QuadraticDiscriminantAnalysis."""

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy import linalg
from sklearn.utils._param_validation import Interval, StrOptions

from deciban.errors import DataError
from deciban.estimators.dropin.base import empirical, given
from deciban.estimators.dropin.discriminant import Discriminant
from deciban.families import Family, JointGaussian, PerClass
from deciban.model.counts import Counts
from deciban.tables.labelled import LabelledTable
from deciban.util.arrays import Floats, log


class QuadraticDiscriminantAnalysis(Discriminant):
    """Quadratic discriminant analysis with scikit-learn's parameters and attributes, `partial_fit` and `sample_weight`.

    A covariance matrix that has no inverse is raised in units of the columns' own deviations instead of being refused.
    What differs from scikit-learn is in `docs/differences-from-scikit-learn.md`.

    Parameters
    ----------
    solver : {"svd", "eigen"}, default="svd"
        Which of scikit-learn's solvers to agree with; it decides on which parameters are allowed.
    shrinkage : "auto" or float, default=None
        The share, from 0 to 1, by which covariances move towards their mean variance; "auto" by Ledoit and Wolf. None:
        not at all. Not with the solver "svd".
    priors : array-like of shape (n_classes,), default=None
        The prior of each class. None: the share of each class.
    reg_param : float, default=0.0
        The share, from 0 to 1, of the identity in each covariance matrix.
    store_covariance : bool, default=False
        Whether `covariance_` is there.
    tol : float, default=1e-4
        Taken for compatibility; it has no effect.
    covariance_estimator : estimator with `fit` and `covariance_`, default=None
        Estimates the covariance instead. Not with the solver "svd".

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
    priors_ : ndarray of shape (n_classes,)
        The prior of each class.
    means_ : ndarray of shape (n_classes, n_features)
        The mean of each column in each class.
    covariance_ : list of ndarray of shape (n_features, n_features)
        The covariance matrix of each class.
    scalings_ : list of ndarray of shape (n_features,)
        The variances of each class along its principal axes, the largest first.
    rotations_ : list of ndarray of shape (n_features, n_features)
        These axes, as columns.

    See Also
    --------
    LinearDiscriminantAnalysis : One covariance for all classes.
    deciban.JointGaussian : The same as a block of a larger model.
    sklearn.discriminant_analysis.QuadraticDiscriminantAnalysis : The original.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from deciban.dropin import QuadraticDiscriminantAnalysis
    >>> X, y = load_iris(return_X_y=True)
    >>> round(QuadraticDiscriminantAnalysis().fit(X, y).score(X, y), 2)
    0.98
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **Discriminant._parameter_constraints,
        "solver": [StrOptions({"svd", "eigen"})],
        "reg_param": [Interval(Real, 0, 1, closed="both")],
    }

    def __init__(
        self,
        *,
        solver: str = "svd",
        shrinkage: Any = None,
        priors: Any = None,
        reg_param: float = 0.0,
        store_covariance: bool = False,
        tol: float = 1e-4,
        covariance_estimator: Any = None,
    ) -> None:
        self.solver = solver
        self.shrinkage = shrinkage
        self.priors = priors
        self.reg_param = reg_param
        self.store_covariance = store_covariance
        self.tol = tol
        self.covariance_estimator = covariance_estimator

    def _family(self, columns: int) -> Family:
        return JointGaussian(PerClass())

    def _log_prior(self, counts: Counts) -> Floats:
        return empirical(counts) if self.priors is None else log(given(self.priors, counts))

    def _covariance(self, counts: Counts, rows: LabelledTable | None) -> Floats:
        self._check_solver("covariance_estimator is not supported with solver='svd'. Try solver='eigen' instead.")
        if counts.classes.size < 2:
            raise DataError(f"The number of classes has to be greater than one. Got {counts.classes.size} class.")
        if rows is not None:
            _refuse_alone(rows)
        own = self._own_covariances(counts, rows)
        return (1.0 - self.reg_param) * own + self.reg_param * np.eye(own.shape[1])

    @property
    def covariance_(self) -> Any:
        """The covariance matrix of each class; only if `store_covariance`."""
        if not self.store_covariance:
            raise AttributeError("covariance_ is kept only with store_covariance=True")
        return list(self._matrices())

    def _matrices(self) -> Floats:
        covariance = self._fitted().covariance
        assert covariance is not None
        return covariance

    @property
    def scalings_(self) -> Any:
        """The variances of each class along its principal axes, the largest first."""
        return [linalg.eigvalsh(matrix)[::-1] for matrix in self._matrices()]

    @property
    def rotations_(self) -> Any:
        """The principal axes of each class, as columns."""
        return [linalg.eigh(matrix)[1][:, ::-1] for matrix in self._matrices()]

    def decision_function(self, X: Any) -> Any:
        """The log joint of each class, up to a common term; of two classes, the log odds of the second.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            The rows; NaN is a missing cell.

        Returns
        -------
        ndarray of shape (n_rows, n_classes) or (n_rows,)
            The most probable class has the highest value; of two classes it is the second where the value is above 0.
        """
        joint = self.predict_joint_log_proba(X)
        return joint[:, 1] - joint[:, 0] if joint.shape[1] == 2 else joint


def _refuse_alone(rows: LabelledTable) -> None:
    """A class has more than one row, or one that counts as several."""
    weights = np.ones(rows.table.rows) if rows.weights is None else rows.weights
    there = (rows.labels.codes >= 0) & (weights > 0.0)
    codes, classes = rows.labels.codes[there], rows.labels.classes
    number, weight = (np.bincount(codes, each, classes.size) for each in (None, weights[there]))
    alone = (number == 1) & (weight <= 1.0)
    if alone.any():
        raise DataError(f"y has only 1 sample in class {classes[alone][0]}, covariance is ill defined.")
