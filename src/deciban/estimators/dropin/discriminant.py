"""scikit-learn's LinearDiscriminantAnalysis and QuadraticDiscriminantAnalysis."""

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy import linalg
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from deciban.errors import DataError, UsageError
from deciban.estimators.dropin.base import DropIn, empirical, given
from deciban.estimators.dropin.covariance import estimated, ledoit_wolf
from deciban.families import Family, JointGaussian, PerClass, Pooled
from deciban.model.counts import Counts
from deciban.statistics import Scatter
from deciban.tables.examples import LabeledTable
from deciban.util.arrays import Floats, log


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

    def _own_covariances(self, counts: Counts, rows: LabeledTable | None) -> Floats:
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
        return self._statistic.mean.astype(self._get_fitted().dtype)

    @property
    def priors_(self) -> Any:
        """The prior of each class."""
        return np.exp(self._get_fitted().log_prior).astype(self._get_fitted().dtype)


def rows_needed() -> UsageError:
    return UsageError(
        "this covariance is estimated from the rows themselves: fit all of them at once, or use a shrinkage in [0, 1]"
    )


class LinearDiscriminantAnalysis(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Discriminant):  # type: ignore[misc]
    """Linear discriminant analysis with scikit-learn's parameters and attributes, `partial_fit` and `sample_weight`.

    The covariance is that of the rows about their class means; a prior that is given does not enter it. What differs
    from scikit-learn is in `docs/differences-from-scikit-learn.md`.

    Parameters
    ----------
    solver : {"svd", "lsqr", "eigen"}, default="svd"
        Which of scikit-learn's solvers to agree with; it decides on `transform` and on which parameters are allowed.
    shrinkage : "auto" or float, default=None
        The share, from 0 to 1, by which covariances move toward their mean variance; "auto" by Ledoit and Wolf. None:
        not at all. Not with the solver "svd".
    priors : array-like of shape (n_classes,), default=None
        The prior of each class. None: the share of each class.
    n_components : int, default=None
        The dimensions of `transform`, at most min(n_classes - 1, n_features), which None stands for.
    store_covariance : bool, default=False
        Whether `covariance_` is there with the solver "svd".
    tol : float, default=1e-4
        The least deviation in any direction, in units of the columns' deviations within classes.
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
    xbar_ : ndarray of shape (n_features,)
        The mean over the classes, by their priors.
    covariance_ : ndarray of shape (n_features, n_features)
        The covariance within classes.
    coef_ : ndarray of shape (n_classes, n_features) or (1, n_features)
        The weights of the linear form; for two classes those of the log odds of the second.
    intercept_ : ndarray of shape (n_classes,) or (1,)
        Its offsets.
    scalings_ : ndarray of shape (n_features, rank)
        The directions of `transform`, in units in which the covariance within classes is the identity.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        The share of the variance between classes that each direction has.

    See Also
    --------
    QuadraticDiscriminantAnalysis : A covariance for each class.
    deciban.JointGaussian : The same as a block of a larger model.
    sklearn.discriminant_analysis.LinearDiscriminantAnalysis : The original.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from deciban.dropin import LinearDiscriminantAnalysis
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = LinearDiscriminantAnalysis().fit(X, y)
    >>> round(clf.score(X, y), 2), clf.transform(X).shape
    (0.98, (150, 2))
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **Discriminant._parameter_constraints,
        "solver": [StrOptions({"svd", "lsqr", "eigen"})],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        solver: str = "svd",
        shrinkage: Any = None,
        priors: Any = None,
        n_components: int | None = None,
        store_covariance: bool = False,
        tol: float = 1e-4,
        covariance_estimator: Any = None,
    ) -> None:
        self.solver = solver
        self.shrinkage = shrinkage
        self.priors = priors
        self.n_components = n_components
        self.store_covariance = store_covariance
        self.tol = tol
        self.covariance_estimator = covariance_estimator

    def _family(self, columns: int) -> Family:
        return JointGaussian(Pooled())

    def _log_prior(self, counts: Counts) -> Floats:
        if self.priors is None:
            return empirical(counts)
        priors = given(self.priors, counts)
        if (priors < 0).any():
            raise UsageError("priors must be non-negative")
        if abs(priors.sum() - 1.0) > 1e-5:
            warnings.warn("The priors do not sum to 1. Renormalizing", UserWarning, stacklevel=2)
        return log(priors / priors.sum())

    def _covariance(self, counts: Counts, rows: LabeledTable | None) -> Floats:
        self._check_solver("covariance estimator is not supported with svd solver. Try another solver")
        if rows is not None and max(counts.rows, counts.class_weight.sum()) <= counts.classes.size:
            raise DataError(f"The number of samples must be more than the number of classes (n_samples={counts.rows}).")
        most = min(counts.classes.size - 1, counts.schema.width)
        if self.n_components is not None and self.n_components > most:
            raise UsageError("n_components cannot be larger than min(n_features, n_classes - 1).")
        complete = counts.statistics[0].weight
        share = complete / max(complete.sum(), 1e-300)
        return np.asarray(np.einsum("c,cij->ij", share, self._own_covariances(counts, rows)))

    @property
    def _max_components(self) -> int:
        counts = self._get_fitted().counts
        return self.n_components or min(counts.classes.size - 1, counts.schema.width)

    @property
    def _n_features_out(self) -> int:
        return self._max_components

    @property
    def covariance_(self) -> Any:
        """The covariance within classes; with the solver "svd" only if `store_covariance`."""
        if self.solver == "svd" and not self.store_covariance:
            raise AttributeError("covariance_ is kept only with store_covariance=True or another solver")
        covariance = self._get_fitted().covariance
        assert covariance is not None
        return covariance

    @property
    def xbar_(self) -> Any:
        """The mean over the classes, by their priors."""
        return self.priors_ @ self.means_

    def _directions(self) -> tuple[Any, Any]:
        """The columns that send rows to the discriminant space, and the share of the between-class variance of each."""
        learned = self._get_fitted()
        within = learned.within
        values, vectors = np.linalg.eigh(within.matrix)
        white = vectors / np.sqrt(values)
        priors = np.exp(learned.log_prior)
        spread = np.sqrt(priors)[:, None] * (within.mean - priors @ within.mean) @ white
        _, sizes, turn = np.linalg.svd(spread, full_matrices=False)
        rank = int((sizes > self.tol * sizes[0]).sum()) if sizes.size else 0
        total = (sizes**2).sum()
        share = sizes**2 / total if total > 0.0 else sizes
        return white @ turn.T[:, :rank] / within.unit[:, None], share[: self._max_components]

    @property
    def scalings_(self) -> Any:
        """The directions of `transform`, in units in which the covariance within classes is the identity."""
        return self._directions()[0].astype(self._get_fitted().dtype)

    @property
    def explained_variance_ratio_(self) -> Any:
        """The share of the variance between classes that each direction has."""
        return self._directions()[1].astype(self._get_fitted().dtype)

    def _linear_form(self) -> tuple[Any, Any]:
        """Slopes and offsets of log P(class | row), up to a term that is the same for every class."""
        learned = self._get_fitted()
        likelihood = self._likelihood
        white = likelihood.whitened
        slope = np.zeros((learned.counts.classes.size, learned.counts.schema.width))
        slope[:, white.columns] = 2.0 * white.mean @ white.whiten[0]
        offset = learned.log_prior - (white.mean**2).sum(axis=1) - slope[:, white.columns] @ white.center
        return slope, offset

    @property
    def coef_(self) -> Any:
        """The weights of the linear form, about their mean over classes; for two classes those of the log odds."""
        slope, _ = self._linear_form()
        slope = slope[1:] - slope[:1] if len(slope) == 2 else slope - slope.mean(axis=0)
        return slope.astype(self._get_fitted().dtype)

    @property
    def intercept_(self) -> Any:
        """The offsets of the linear form, about their mean over classes; for two classes that of the log odds."""
        _, offset = self._linear_form()
        offset = offset[1:] - offset[:1] if len(offset) == 2 else offset - offset.mean()
        return offset.astype(self._get_fitted().dtype)

    def decision_function(self, X: Any) -> Any:
        """The log joint of each class about its mean over classes; of two classes, the log odds of the second.

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
        return joint[:, 1] - joint[:, 0] if joint.shape[1] == 2 else joint - joint.mean(axis=1, keepdims=True)

    def transform(self, X: Any) -> Any:
        """The rows in the space that separates the classes best; about their mean, but with the eigen solver.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            The rows; NaN is a missing cell.

        Returns
        -------
        ndarray of shape (n_rows, n_components)
            The first column separates the classes best.
        """
        if self.solver == "lsqr":
            raise NotImplementedError("transform not implemented for 'lsqr' solver (use 'svd' or 'eigen').")
        scalings = self._directions()[0]
        table = self._table(X)
        if table.width != len(scalings):
            raise self._other_width(table.width, len(scalings))
        numbers = np.asarray(table.numbers(range(table.width)))
        center = 0.0 if self.solver == "eigen" else self.xbar_
        moved = (numbers - center) @ scalings[:, : self._max_components]
        return moved.astype(numbers.dtype if numbers.dtype == np.float32 else np.float64)


class QuadraticDiscriminantAnalysis(Discriminant):
    """Quadratic discriminant analysis with scikit-learn's parameters and attributes, `partial_fit` and `sample_weight`.

    A covariance matrix that has no inverse is raised in units of the columns' own deviations instead of being refused.
    What differs from scikit-learn is in `docs/differences-from-scikit-learn.md`.

    Parameters
    ----------
    solver : {"svd", "eigen"}, default="svd"
        Which of scikit-learn's solvers to agree with; it decides on which parameters are allowed.
    shrinkage : "auto" or float, default=None
        The share, from 0 to 1, by which covariances move toward their mean variance; "auto" by Ledoit and Wolf. None:
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

    def _covariance(self, counts: Counts, rows: LabeledTable | None) -> Floats:
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
        covariance = self._get_fitted().covariance
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


def _refuse_alone(rows: LabeledTable) -> None:
    """A class has more than one row, or one that counts as several."""
    weights = np.ones(rows.table.rows) if rows.weights is None else rows.weights
    there = (rows.labels.codes >= 0) & (weights > 0.0)
    codes, classes = rows.labels.codes[there], rows.labels.classes
    number, weight = (np.bincount(codes, each, classes.size) for each in (None, weights[there]))
    alone = (number == 1) & (weight <= 1.0)
    if alone.any():
        raise DataError(f"y has only 1 sample in class {classes[alone][0]}, covariance is ill defined.")
