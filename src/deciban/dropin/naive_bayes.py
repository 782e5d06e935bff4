"""GaussianNB, MultinomialNB, ComplementNB, BernoulliNB and CategoricalNB."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval

from deciban import kernels
from deciban.arrays import LARGEST, Floats, Numbers, log, scatter_to
from deciban.counts import Counts
from deciban.dropin.base import DropIn, empirical, given
from deciban.errors import DataError, UsageError
from deciban.families import Bernoulli, Categorical, Complement, Family, Gaussian, Multinomial
from deciban.families.categorical import CategoricalLikelihood
from deciban.families.checks import refuse_unless
from deciban.statistics import Levels, Moments
from deciban.tables.readable import Readable
from deciban.tables.table import Matrix, SparseMatrix

# Below this, scikit-learn replaces a smoothing unless it is forced to keep it.
LEAST_ALPHA = 1e-10


class GaussianNB(DropIn):
    """Gaussian naive Bayes with scikit-learn's parameters and attributes.

    `var_smoothing` is added to each variance as a share of the *column's own* variance (`epsilon_`, one a column).
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
        return self._fitted().counts.class_weight.astype(self._fitted().dtype)

    @property
    def class_prior_(self) -> Any:
        return np.exp(self._fitted().log_prior).astype(self._fitted().dtype)

    @property
    def theta_(self) -> Any:
        return self._statistic.mean.astype(self._fitted().dtype)

    @property
    def epsilon_(self) -> Any:
        return self.var_smoothing * self._statistic.over_classes().variance()[0]

    @property
    def var_(self) -> Any:
        return self._likelihood.variance.T.astype(self._fitted().dtype)

    @staticmethod
    def _update_mean_variance(n_past: float, mu: Any, var: Any, X: Any, sample_weight: Any = None) -> Any:  # noqa: N803
        """Mean and variance of n_past rows and those of X together."""
        rows = np.asarray(X, dtype=np.float64)
        past = Moments.empty(1, rows.shape[1])
        past.weight[:], past.mean[:], past.scatter[:] = n_past, mu, np.multiply(n_past, var)
        weights = np.ones(len(rows)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        both = past.merge(Moments.count(rows, np.zeros(len(rows), dtype=np.int32), weights, 1))
        if np.ndim(mu) == 0 and (both.mean == both.mean[0, 0]).all():
            return both.mean[0, 0], both.variance()[0, 0]
        return both.mean[0], both.variance()[0]


class DiscreteNB(DropIn):
    """What the naive Bayes classifiers of counts share."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "alpha": [Interval(Real, 0, None, closed="left"), "array-like"],
        "fit_prior": ["boolean"],
        "class_prior": ["array-like", None],
        "force_alpha": ["boolean"],
    }

    alpha: Any
    force_alpha: bool
    fit_prior: bool
    class_prior: Any
    n_features_in_: int

    def _check_alpha(self) -> Any:
        """The smoothing to use: a number, or one for each column."""
        alpha: Any = self.alpha if isinstance(self.alpha, Real) else np.asarray(self.alpha, dtype=np.float64)
        if isinstance(alpha, np.ndarray):
            if alpha.shape[0] != self.n_features_in_:
                raise UsageError(
                    "When alpha is an array, it should contains `n_features`. "
                    f"Got {alpha.shape[0]} elements instead of {self.n_features_in_}."
                )
            if alpha.min() < 0:
                raise UsageError("All values in alpha must be greater than 0.")
        if np.min(alpha) < LEAST_ALPHA and not self.force_alpha:
            warnings.warn(
                f"alpha too small will result in numeric errors, setting alpha = {LEAST_ALPHA:.1e}. "
                f"Use `force_alpha=True` to keep alpha unchanged.",
                stacklevel=2,
            )
            return np.maximum(alpha, LEAST_ALPHA)
        return alpha

    def _smoothing(self) -> float | tuple[float, ...]:
        alpha = self._check_alpha()
        return tuple(alpha.tolist()) if isinstance(alpha, np.ndarray) and alpha.ndim else float(alpha)

    def _log_prior(self, counts: Counts) -> Floats:
        if self.class_prior is not None:
            return log(given(self.class_prior, counts))
        if self.fit_prior:
            return empirical(counts)
        return np.full(counts.classes.size, -np.log(counts.classes.size))

    def _explain_refusal(self, table: Matrix | SparseMatrix) -> None:
        stored = table.array if isinstance(table, Matrix) else table.cells.stored
        if self._only_positive and stored.size and stored.min() < 0:
            raise DataError(f"Negative values in data passed to {type(self).__name__} (input X)")

    _only_positive: ClassVar[bool] = True

    @property
    def class_log_prior_(self) -> Any:
        return self._fitted().log_prior

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = self._only_positive
        tags.classifier_tags.poor_score = True
        return tags


class MultinomialNB(DiscreteNB):
    """Multinomial naive Bayes with scikit-learn's parameters and attributes."""

    def __init__(
        self, *, alpha: Any = 1.0, force_alpha: bool = True, fit_prior: bool = True, class_prior: Any = None
    ) -> None:
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.fit_prior = fit_prior
        self.class_prior = class_prior

    def _family(self, columns: int) -> Family:
        return Multinomial(alpha=self._smoothing())

    @property
    def feature_count_(self) -> Any:
        return self._statistic.total

    @property
    def feature_log_prob_(self) -> Any:
        return self._likelihood.log_share.T


class ComplementNB(DiscreteNB):
    """Complement naive Bayes with scikit-learn's parameters and attributes: a score, which leaves the prior out."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {**DiscreteNB._parameter_constraints, "norm": ["boolean"]}

    def __init__(
        self,
        *,
        alpha: Any = 1.0,
        force_alpha: bool = True,
        fit_prior: bool = True,
        class_prior: Any = None,
        norm: bool = False,
    ) -> None:
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.fit_prior = fit_prior
        self.class_prior = class_prior
        self.norm = norm

    def _family(self, columns: int) -> Family:
        return Complement(alpha=self._smoothing(), norm=self.norm)

    def _log_prior(self, counts: Counts) -> Floats:
        super()._log_prior(counts)  # for its checks
        return np.zeros(counts.classes.size)

    @property
    def class_log_prior_(self) -> Any:
        return super()._log_prior(self._fitted().counts)

    @property
    def feature_count_(self) -> Any:
        return self._statistic.total

    @property
    def feature_all_(self) -> Any:
        return self.feature_count_.sum(axis=0)

    @property
    def feature_log_prob_(self) -> Any:
        return self._likelihood.weight.T


class BernoulliNB(DiscreteNB):
    """Bernoulli naive Bayes with scikit-learn's parameters and attributes."""

    _only_positive = False

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **DiscreteNB._parameter_constraints,
        "binarize": [None, Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        alpha: Any = 1.0,
        force_alpha: bool = True,
        binarize: float | None = 0.0,
        fit_prior: bool = True,
        class_prior: Any = None,
    ) -> None:
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.binarize = binarize
        self.fit_prior = fit_prior
        self.class_prior = class_prior

    def _family(self, columns: int) -> Family:
        return Bernoulli(alpha=self._smoothing(), threshold=self.binarize)

    @property
    def feature_count_(self) -> Any:
        return self._statistic.total

    @property
    def feature_log_prob_(self) -> Any:
        return self._likelihood.one.T


@dataclass(frozen=True, repr=False)
class CodesFromZero(Categorical):
    """Categories 0, 1, ..., at least `least` of them in each column, all of which count whether they occur or not."""

    least: tuple[int, ...] = ()

    def read(self, batch: Readable, columns: Sequence[int]) -> Numbers | list[pa.Array]:
        cells = super().read(batch, columns)
        if isinstance(cells, np.ndarray) and not kernels.all_within(cells.ravel(), 0.0, LARGEST):
            refuse_unless((cells >= 0) & (cells <= LARGEST), cells, "a category 0, 1, ...", "number the categories")
        return cells

    def estimate(self, statistic: Levels) -> CategoricalLikelihood:
        levels, counts = [], []
        for column, table, least in zip(statistic.levels, statistic.tables, self.least, strict=True):
            codes = column.to_numpy().astype(np.int64) if len(column) else np.zeros(0, dtype=np.int64)
            size = max(least, int(codes.max(initial=-1)) + 1)
            levels.append(pa.array(np.arange(size)))
            counts.append(scatter_to(table, codes, size, axis=1))
        return CategoricalLikelihood.of(levels, counts, self.alpha, self.unseen)


class CategoricalNB(DiscreteNB):
    """Categorical naive Bayes with scikit-learn's parameters and attributes; a category never seen is no evidence."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **DiscreteNB._parameter_constraints,
        "alpha": [Interval(Real, 0, None, closed="left")],
        "min_categories": [None, "array-like", Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        *,
        alpha: float = 1.0,
        force_alpha: bool = True,
        fit_prior: bool = True,
        class_prior: Any = None,
        min_categories: Any = None,
    ) -> None:
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.fit_prior = fit_prior
        self.class_prior = class_prior
        self.min_categories = min_categories

    def _family(self, columns: int) -> Family:
        least = np.zeros(columns) if self.min_categories is None else np.asarray(self.min_categories)
        if least.dtype.kind not in "iuf" or least.ndim > 1 or (least.ndim == 1 and least.size != columns):
            raise UsageError(
                f"'min_categories' should have shape ({columns},) when an array-like is provided. "
                f"Got {least.shape} instead."
            )
        alpha = self._smoothing()
        assert isinstance(alpha, float)
        return CodesFromZero(alpha, least=tuple(int(size) for size in np.broadcast_to(least, columns)))

    def _table(self, X: Any) -> Matrix | SparseMatrix:  # noqa: N803
        table = super()._table(X)
        array = table.array if isinstance(table, Matrix) else table.numbers(range(table.width))
        if array.dtype.kind == "f" and not np.isnan(array).any():
            array = np.trunc(array)  # as scikit-learn reads 1.7 as category 1
        return Matrix(array)

    def _explain_refusal(self, table: Matrix | SparseMatrix) -> None:
        super()._explain_refusal(table)
        if np.isinf(table.numbers(range(table.width))).any():
            raise DataError("Input X contains infinity: a category is a whole number")

    @property
    def category_count_(self) -> Any:
        return list(self._likelihood.counts)

    @property
    def feature_log_prob_(self) -> Any:
        start = self._likelihood.start
        return [self._likelihood.table[a : b - 1].T for a, b in pairwise(start)]

    @property
    def n_categories_(self) -> Any:
        return np.array([table.shape[1] for table in self._likelihood.counts])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        return tags
