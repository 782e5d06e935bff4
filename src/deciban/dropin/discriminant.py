"""LinearDiscriminantAnalysis and QuadraticDiscriminantAnalysis."""

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy import linalg
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from deciban.arrays import Floats, log
from deciban.counts import Counts
from deciban.dropin.base import DropIn, empirical, given
from deciban.dropin.covariance import estimated, ledoit_wolf
from deciban.errors import DataError, UsageError
from deciban.families import Family, JointGaussian, PerClass, Pooled
from deciban.statistics import Scatter
from deciban.tables.labelled import LabelledTable


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
        """The covariance matrix of each class, shrunk or estimated as the parameters say."""
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
            raise _rows_needed()
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
            raise _rows_needed()
        super()._refuse_unlike(other)

    def _from_rows(self, rows: Floats, weights: Floats) -> Floats:
        if self.covariance_estimator is None:
            return ledoit_wolf(rows, weights)
        return estimated(self.covariance_estimator, rows, weights)

    @property
    def means_(self) -> Any:
        return self._statistic.mean.astype(self._fitted().dtype)

    @property
    def priors_(self) -> Any:
        return np.exp(self._fitted().log_prior).astype(self._fitted().dtype)


class LinearDiscriminantAnalysis(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Discriminant):  # type: ignore[misc]
    """The linear discriminant with scikit-learn's parameters and attributes, `partial_fit` and `sample_weight`.

    The covariance is that of the rows about their class means; a prior given by hand does not enter it.
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

    def _covariance(self, counts: Counts, rows: LabelledTable | None) -> Floats:
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
        counts = self._fitted().counts
        return self.n_components or min(counts.classes.size - 1, counts.schema.width)

    @property
    def _n_features_out(self) -> int:
        return self._max_components

    @property
    def covariance_(self) -> Any:
        if self.solver == "svd" and not self.store_covariance:
            raise AttributeError("covariance_ is kept only with store_covariance=True or another solver")
        covariance = self._fitted().covariance
        assert covariance is not None
        return covariance

    @property
    def xbar_(self) -> Any:
        return self.priors_ @ self.means_

    def _directions(self) -> tuple[Any, Any]:
        """The columns that send rows to the discriminant space, and the share of the between-class variance of each."""
        learned = self._fitted()
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
        return self._directions()[0].astype(self._fitted().dtype)

    @property
    def explained_variance_ratio_(self) -> Any:
        return self._directions()[1].astype(self._fitted().dtype)

    def _linear_form(self) -> tuple[Any, Any]:
        """Slopes and offsets of log P(class | row), up to a term that is the same for every class."""
        learned = self._fitted()
        likelihood = self._likelihood
        white = likelihood.whitened
        slope = np.zeros((learned.counts.classes.size, learned.counts.schema.width))
        slope[:, white.columns] = 2.0 * white.mean @ white.whiten[0]
        offset = learned.log_prior - (white.mean**2).sum(axis=1) - slope[:, white.columns] @ white.centre
        return slope, offset

    @property
    def coef_(self) -> Any:
        slope, _ = self._linear_form()
        slope = slope[1:] - slope[:1] if len(slope) == 2 else slope - slope.mean(axis=0)
        return slope.astype(self._fitted().dtype)

    @property
    def intercept_(self) -> Any:
        _, offset = self._linear_form()
        offset = offset[1:] - offset[:1] if len(offset) == 2 else offset - offset.mean()
        return offset.astype(self._fitted().dtype)

    def decision_function(self, X: Any) -> Any:  # noqa: N803
        """The log joint of each class about its mean over classes; of two classes, the log odds of the second."""
        joint = self.predict_joint_log_proba(X)
        return joint[:, 1] - joint[:, 0] if joint.shape[1] == 2 else joint - joint.mean(axis=1, keepdims=True)

    def transform(self, X: Any) -> Any:  # noqa: N803
        """The rows in the space that tells the classes apart best; about their mean, but with the eigen solver."""
        if self.solver == "lsqr":
            raise NotImplementedError("transform not implemented for 'lsqr' solver (use 'svd' or 'eigen').")
        scalings = self._directions()[0]
        table = self._table(X)
        if table.width != len(scalings):
            raise self._other_width(table.width, len(scalings))
        numbers = np.asarray(table.numbers(range(table.width)))
        centre = 0.0 if self.solver == "eigen" else self.xbar_
        moved = (numbers - centre) @ scalings[:, : self._max_components]
        return moved.astype(numbers.dtype if numbers.dtype == np.float32 else np.float64)


class QuadraticDiscriminantAnalysis(Discriminant):
    """The quadratic discriminant with scikit-learn's parameters and attributes, `partial_fit` and `sample_weight`.

    A matrix that has no inverse is raised in units of the columns' own deviations instead of being refused.
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
        if not self.store_covariance:
            raise AttributeError("covariance_ is kept only with store_covariance=True")
        return list(self._matrices())

    def _matrices(self) -> Floats:
        covariance = self._fitted().covariance
        assert covariance is not None
        return covariance

    @property
    def scalings_(self) -> Any:
        return [linalg.eigvalsh(matrix)[::-1] for matrix in self._matrices()]

    @property
    def rotations_(self) -> Any:
        return [linalg.eigh(matrix)[1][:, ::-1] for matrix in self._matrices()]

    def decision_function(self, X: Any) -> Any:  # noqa: N803
        """The log joint of each class, up to a common term; of two classes, the log odds of the second."""
        joint = self.predict_joint_log_proba(X)
        return joint[:, 1] - joint[:, 0] if joint.shape[1] == 2 else joint


def _rows_needed() -> UsageError:
    return UsageError(
        "this covariance is estimated from the rows themselves: fit all of them at once, or use a shrinkage in [0, 1]"
    )


def _refuse_alone(rows: LabelledTable) -> None:
    """A class has more than one row, or one that counts as several."""
    weights = np.ones(rows.table.rows) if rows.weights is None else rows.weights
    there = (rows.labels.codes >= 0) & (weights > 0.0)
    codes, classes = rows.labels.codes[there], rows.labels.classes
    number, weight = (np.bincount(codes, each, classes.size) for each in (None, weights[there]))
    alone = (number == 1) & (weight <= 1.0)
    if alone.any():
        raise DataError(f"y has only 1 sample in class {classes[alone][0]}, covariance is ill defined.")
