"""Drop-in LinearDiscriminantAnalysis and QuadraticDiscriminantAnalysis."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from scipy import linalg
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from deciban.errors import DataError, UsageError
from deciban.estimators.dropin.base import DropIn, check_priors, compute_empirical_prior
from deciban.estimators.dropin.covariance import compute_ledoit_wolf, estimate_covariance
from deciban.families import Family, JointGaussian, PerClass, Pooled
from deciban.model.counts import Counts
from deciban.statistics import Scatter
from deciban.tables.examples import LabeledTable
from deciban.typing import SupportsCsr
from deciban.util.arrays import Floats, log


class Discriminant(DropIn):
    """Base class of the discriminants: one joint Gaussian block of all columns."""

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

    def _compute_class_covariances(self, counts: Counts, rows: LabeledTable | None) -> Floats:
        """Return the covariance matrix of each class, shrunk or estimated according to the parameters."""
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
            raise make_rows_error()
        numbers = rows.table.numbers(range(rows.table.width)).astype(np.float64)
        weights = rows.row_weights
        there = (weights > 0.0) & ~np.isnan(numbers).any(axis=1)
        for c in np.flatnonzero(statistic.weight > 0.0):
            of_class = there & (rows.labels.codes == c)
            own[c] = self._from_rows(numbers[of_class], weights[of_class])
        return own

    @property
    def _needs_rows(self) -> bool:
        """True if the covariance must be estimated from rows instead of counts."""
        return self.shrinkage == "auto" or self.covariance_estimator is not None

    def _check_addable(self, other: DropIn) -> None:
        if self._needs_rows:
            raise make_rows_error()
        super()._check_addable(other)

    def _from_rows(self, rows: Floats, weights: Floats) -> Floats:
        if self.covariance_estimator is None:
            return compute_ledoit_wolf(rows, weights)
        return estimate_covariance(self.covariance_estimator, rows, weights)

    @property
    def means_(self) -> npt.NDArray[np.floating]:
        """Mean of each column in each class."""
        return np.asarray(self._statistic.mean.astype(self._get_fitted().dtype))

    @property
    def priors_(self) -> npt.NDArray[np.floating]:
        """Prior of each class."""
        return np.exp(self._get_fitted().log_prior).astype(self._get_fitted().dtype)


def make_rows_error() -> UsageError:
    return UsageError(
        "this covariance must be estimated from all rows", remedy="fit all rows at once, or use a shrinkage in [0, 1]"
    )


class LinearDiscriminantAnalysis(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Discriminant):  # type: ignore[misc]
    """Linear discriminant analysis with scikit-learn's parameters and attributes, `partial_fit` and `sample_weight`.

    The covariance is that of the rows about their class means; a prior that is given does not enter it. What differs
    from scikit-learn is in `docs/howto/scikit-learn.md`.

    Parameters
    ----------
    solver : {"svd", "lsqr", "eigen"}, default="svd"
        Which of scikit-learn's solvers to agree with; it decides on `transform` and on which parameters are allowed.
    shrinkage : "auto" or float, default=None
        The share, from 0 to 1, by which covariances move toward their mean variance; "auto" by Ledoit and Wolf. None:
        not at all. Not with the solver "svd".
    priors : array-like of shape (n_classes,), default=None
        Prior of each class. None: the class shares.
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
        Class labels, sorted.
    class_count_ : ndarray of shape (n_classes,)
        Total weight of the rows of each class.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Column names, if they are all strings.
    priors_ : ndarray of shape (n_classes,)
        Prior of each class.
    means_ : ndarray of shape (n_classes, n_features)
        Mean of each column in each class.
    xbar_ : ndarray of shape (n_features,)
        Mean over the classes, weighted by the priors.
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
        shrinkage: Literal["auto"] | float | None = None,
        priors: npt.ArrayLike | None = None,
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
            return compute_empirical_prior(counts)
        priors = check_priors(self.priors, counts)
        if (priors < 0).any():
            raise UsageError("priors must be non-negative")
        if abs(priors.sum() - 1.0) > 1e-5:
            warnings.warn("The priors do not sum to 1. Renormalizing", UserWarning, stacklevel=2)
        return log(priors / priors.sum())

    def _covariance(self, counts: Counts, rows: LabeledTable | None) -> Floats:
        self._check_solver("covariance estimator is not supported with svd solver. Try another solver")
        if rows is not None and max(counts.rows, counts.class_weight.sum()) <= counts.classes.size:
            raise DataError(f"The number of samples must be more than the number of classes (n_samples={counts.rows}).")
        max_components = min(counts.classes.size - 1, counts.schema.width)
        if self.n_components is not None and self.n_components > max_components:
            raise UsageError("n_components cannot be larger than min(n_features, n_classes - 1).")
        complete = counts.statistics[0].weight
        share = complete / max(complete.sum(), 1e-300)
        return np.asarray(np.einsum("c,cij->ij", share, self._compute_class_covariances(counts, rows)))

    @property
    def _max_components(self) -> int:
        counts = self._get_fitted().counts
        return self.n_components or min(counts.classes.size - 1, counts.schema.width)

    @property
    def _n_features_out(self) -> int:
        return self._max_components

    @property
    def covariance_(self) -> npt.NDArray[np.floating]:
        """Within-class covariance; with the solver "svd" only if `store_covariance`."""
        if self.solver == "svd" and not self.store_covariance:
            raise AttributeError("covariance_ is available only with store_covariance=True or another solver")
        covariance = self._get_fitted().covariance
        assert covariance is not None
        return covariance

    @property
    def xbar_(self) -> npt.NDArray[np.floating]:
        """Mean over the classes, weighted by the priors."""
        return self.priors_ @ self.means_

    def _compute_directions(self) -> tuple[Floats, Floats]:
        """Return the projection to the discriminant space, and the share of variance of each direction."""
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
    def scalings_(self) -> npt.NDArray[np.floating]:
        """Directions of `transform`, scaled so that the within-class covariance is the identity."""
        return self._compute_directions()[0].astype(self._get_fitted().dtype)

    @property
    def explained_variance_ratio_(self) -> npt.NDArray[np.floating]:
        """Share of the between-class variance in each direction."""
        return self._compute_directions()[1].astype(self._get_fitted().dtype)

    def _compute_linear_form(self) -> tuple[Floats, Floats]:
        """Return slopes and offsets of log P(class | row), up to a term that is the same for every class."""
        learned = self._get_fitted()
        likelihood = self._likelihood
        white = likelihood.whitened
        slope = np.zeros((learned.counts.classes.size, learned.counts.schema.width))
        slope[:, white.columns] = 2.0 * white.mean @ white.whiten[0]
        offset = learned.log_prior - (white.mean**2).sum(axis=1) - slope[:, white.columns] @ white.center
        return slope, offset

    @property
    def coef_(self) -> npt.NDArray[np.floating]:
        """Weights of the linear form, centered over classes; for two classes, the weights of the log odds."""
        slope, _ = self._compute_linear_form()
        slope = slope[1:] - slope[:1] if len(slope) == 2 else slope - slope.mean(axis=0)
        return slope.astype(self._get_fitted().dtype)

    @property
    def intercept_(self) -> npt.NDArray[np.floating]:
        """Offsets of the linear form, centered over classes; for two classes, the offset of the log odds."""
        _, offset = self._compute_linear_form()
        offset = offset[1:] - offset[:1] if len(offset) == 2 else offset - offset.mean()
        return offset.astype(self._get_fitted().dtype)

    def decision_function(self, X: npt.ArrayLike | SupportsCsr) -> npt.NDArray[np.floating]:
        """Return the log joint centered over classes; for two classes, the log odds of the second class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Rows; NaN is a missing value.

        Returns
        -------
        ndarray of shape (n_rows, n_classes) or (n_rows,)
            The most probable class has the highest value; for two classes, positive values mean the second class.
        """
        joint = self.predict_joint_log_proba(X)
        return joint[:, 1] - joint[:, 0] if joint.shape[1] == 2 else joint - joint.mean(axis=1, keepdims=True)

    def transform(self, X: npt.ArrayLike | SupportsCsr) -> npt.NDArray[np.floating]:
        """Project rows to the space that separates the classes best; centered, except with the solver "eigen".

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Rows; NaN is a missing value.

        Returns
        -------
        ndarray of shape (n_rows, n_components)
            Components, the one that separates the classes best first.
        """
        if self.solver == "lsqr":
            raise NotImplementedError("transform not implemented for 'lsqr' solver (use 'svd' or 'eigen').")
        scalings = self._compute_directions()[0]
        table = self._make_table(X)
        if table.width != len(scalings):
            raise self._make_width_error(table.width, len(scalings))
        numbers = np.asarray(table.numbers(range(table.width)))
        center = 0.0 if self.solver == "eigen" else self.xbar_
        moved = (numbers - center) @ scalings[:, : self._max_components]
        return moved.astype(numbers.dtype if numbers.dtype == np.float32 else np.float64)


class QuadraticDiscriminantAnalysis(Discriminant):
    """Quadratic discriminant analysis with scikit-learn's parameters and attributes, `partial_fit` and `sample_weight`.

    A singular covariance matrix is regularized in units of the standard deviations instead of raising an error.
    See `docs/howto/scikit-learn.md` for differences from scikit-learn.

    Parameters
    ----------
    solver : {"svd", "eigen"}, default="svd"
        Solver of scikit-learn to agree with; it determines the allowed parameters.
    shrinkage : "auto" or float, default=None
        The share, from 0 to 1, by which covariances move toward their mean variance; "auto" by Ledoit and Wolf. None:
        not at all. Not with the solver "svd".
    priors : array-like of shape (n_classes,), default=None
        Prior of each class. None: the class shares.
    reg_param : float, default=0.0
        The share, from 0 to 1, of the identity in each covariance matrix.
    store_covariance : bool, default=False
        If True, `covariance_` is available.
    tol : float, default=1e-4
        Accepted for compatibility; it has no effect.
    covariance_estimator : estimator with `fit` and `covariance_`, default=None
        Estimates the covariance instead. Not with the solver "svd".

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, sorted.
    class_count_ : ndarray of shape (n_classes,)
        Total weight of the rows of each class.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Column names, if they are all strings.
    priors_ : ndarray of shape (n_classes,)
        Prior of each class.
    means_ : ndarray of shape (n_classes, n_features)
        Mean of each column in each class.
    covariance_ : list of ndarray of shape (n_features, n_features)
        Covariance matrix of each class.
    scalings_ : list of ndarray of shape (n_features,)
        Variances of each class along its principal axes, largest first.
    rotations_ : list of ndarray of shape (n_features, n_features)
        Principal axes, as columns.

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
        shrinkage: Literal["auto"] | float | None = None,
        priors: npt.ArrayLike | None = None,
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
        return compute_empirical_prior(counts) if self.priors is None else log(check_priors(self.priors, counts))

    def _covariance(self, counts: Counts, rows: LabeledTable | None) -> Floats:
        self._check_solver("covariance_estimator is not supported with solver='svd'. Try solver='eigen' instead.")
        if counts.classes.size < 2:
            raise DataError(f"The number of classes has to be greater than one. Got {counts.classes.size} class.")
        if rows is not None:
            _check_class_sizes(rows)
        own = self._compute_class_covariances(counts, rows)
        return (1.0 - self.reg_param) * own + self.reg_param * np.eye(own.shape[1])

    @property
    def covariance_(self) -> list[npt.NDArray[np.floating]]:
        """Covariance matrix of each class; only if `store_covariance`."""
        if not self.store_covariance:
            raise AttributeError("covariance_ is available only with store_covariance=True")
        return list(self._matrices())

    def _matrices(self) -> Floats:
        covariance = self._get_fitted().covariance
        assert covariance is not None
        return covariance

    @property
    def scalings_(self) -> list[npt.NDArray[np.floating]]:
        """Variances of each class along its principal axes, largest first."""
        return [linalg.eigvalsh(matrix)[::-1] for matrix in self._matrices()]

    @property
    def rotations_(self) -> list[npt.NDArray[np.floating]]:
        """Principal axes of each class, as columns."""
        return [linalg.eigh(matrix)[1][:, ::-1] for matrix in self._matrices()]

    def decision_function(self, X: npt.ArrayLike | SupportsCsr) -> npt.NDArray[np.floating]:
        """Return the log joint of each class, up to a common term; for two classes, the log odds of the second class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Rows; NaN is a missing value.

        Returns
        -------
        ndarray of shape (n_rows, n_classes) or (n_rows,)
            The most probable class has the highest value; for two classes, positive values mean the second class.
        """
        joint = self.predict_joint_log_proba(X)
        return joint[:, 1] - joint[:, 0] if joint.shape[1] == 2 else joint


def _check_class_sizes(rows: LabeledTable) -> None:
    """Raise a DataError if a class has a single row of weight 1 or less."""
    weights = rows.row_weights
    there = (rows.labels.codes >= 0) & (weights > 0.0)
    codes, classes = rows.labels.codes[there], rows.labels.classes
    number, weight = (np.bincount(codes, each, classes.size) for each in (None, weights[there]))
    alone = (number == 1) & (weight <= 1.0)
    if alone.any():
        raise DataError(f"y has only 1 sample in class {classes[alone][0]}, covariance is ill defined.")
