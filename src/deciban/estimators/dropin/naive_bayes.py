"""Drop-in naive Bayes classifiers: GaussianNB, MultinomialNB, ComplementNB, BernoulliNB and CategoricalNB."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval

from deciban import kernels
from deciban.errors import DataError, UsageError
from deciban.estimators.dropin.base import DropIn, check_priors, compute_empirical_prior
from deciban.families import Bernoulli, Categorical, Complement, Family, Gaussian, Multinomial
from deciban.families.base.checks import raise_unless
from deciban.families.categorical import CategoricalLikelihood
from deciban.model.counts import Counts
from deciban.statistics import Levels, Moments
from deciban.tables.table import Matrix, Readable, SparseMatrix
from deciban.util.arrays import MAX_AMOUNT, Floats, Numbers, log, scatter_to

# scikit-learn raises a smaller smoothing to this unless force_alpha is set.
MIN_ALPHA = 1e-10


class GaussianNB(DropIn):
    """Gaussian naive Bayes with scikit-learn's parameters and attributes.

    See `docs/howto/scikit-learn.md` for differences from scikit-learn.

    Parameters
    ----------
    priors : array-like of shape (n_classes,), default=None
        Prior of each class. None: the class shares.
    var_smoothing : float, default=1e-9
        Share of the variance of the *column itself* that is added to each of its variances.

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
    class_prior_ : ndarray of shape (n_classes,)
        Prior of each class.
    theta_ : ndarray of shape (n_classes, n_features)
        Mean of each column in each class.
    var_ : ndarray of shape (n_classes, n_features)
        Variance of each column in each class.
    epsilon_ : ndarray of shape (n_features,)
        Amount added to the variances of each column.

    See Also
    --------
    BayesClassifier : Columns of all types, tuned posteriors, explanations, decisions.
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

    def __init__(self, *, priors: npt.ArrayLike | None = None, var_smoothing: float = 1e-9) -> None:
        self.priors = priors
        self.var_smoothing = var_smoothing

    def _family(self, columns: int) -> Family:
        return Gaussian(floor=0.0, var_smoothing=float(self.var_smoothing))

    def _log_prior(self, counts: Counts) -> Floats:
        if self.priors is None:
            return compute_empirical_prior(counts)
        priors = check_priors(self.priors, counts)
        if not np.isclose(priors.sum(), 1.0):
            raise UsageError("The sum of the priors should be 1.")
        if (priors < 0).any():
            raise UsageError("Priors must be non-negative.")
        return log(priors)

    @property
    def class_count_(self) -> npt.NDArray[np.floating]:
        """Total weight of the rows of each class."""
        return self._get_fitted().counts.class_weight.astype(self._get_fitted().dtype)

    @property
    def class_prior_(self) -> npt.NDArray[np.floating]:
        """Prior of each class."""
        return np.exp(self._get_fitted().log_prior).astype(self._get_fitted().dtype)

    @property
    def theta_(self) -> npt.NDArray[np.floating]:
        """Mean of each column in each class."""
        return np.asarray(self._statistic.mean.astype(self._get_fitted().dtype))

    @property
    def epsilon_(self) -> npt.NDArray[np.floating]:
        """Amount added to the variances of each column."""
        return np.asarray(self.var_smoothing * self._statistic.merge_classes().variance()[0])

    @property
    def var_(self) -> npt.NDArray[np.floating]:
        """Variance of each column in each class."""
        return np.asarray(self._likelihood.variance.T.astype(self._get_fitted().dtype))

    @staticmethod
    def _update_mean_variance(n_past: float, mu: Any, var: Any, X: Any, sample_weight: Any = None) -> Any:
        """Return mean and variance of n_past rows and those of X together."""
        rows = np.asarray(X, dtype=np.float64)
        weight, mean, variance = (np.full((1, rows.shape[1]), each, dtype=np.float64) for each in (n_past, mu, var))
        none = np.zeros_like(mean)
        past = Moments.from_values(weight, (mean, none), weight * variance, none)
        weights = np.ones(len(rows)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        both = past.merge(Moments.count(rows, np.zeros(len(rows), dtype=np.int32), weights, 1))
        if np.ndim(mu) == 0 and (both.mean == both.mean[0, 0]).all():
            return both.mean[0, 0], both.variance()[0, 0]
        return both.mean[0], both.variance()[0]


class DiscreteNB(DropIn):
    """Base class of the discrete naive Bayes classifiers."""

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
        """Return the smoothing: a number, or one per column."""
        alpha: Any = self.alpha if isinstance(self.alpha, Real) else np.asarray(self.alpha, dtype=np.float64)
        if isinstance(alpha, np.ndarray):
            if alpha.shape[0] != self.n_features_in_:
                raise UsageError(
                    "When alpha is an array, it should contains `n_features`. "
                    f"Got {alpha.shape[0]} elements instead of {self.n_features_in_}."
                )
            if alpha.min() < 0:
                raise UsageError("All values in alpha must be greater than 0.")
        if np.min(alpha) < MIN_ALPHA and not self.force_alpha:
            warnings.warn(
                f"alpha too small will result in numeric errors, setting alpha = {MIN_ALPHA:.1e}. "
                f"Use `force_alpha=True` to keep alpha unchanged.",
                stacklevel=2,
            )
            return np.maximum(alpha, MIN_ALPHA)
        return alpha

    def _get_smoothing(self) -> float | tuple[float, ...]:
        alpha = self._check_alpha()
        return tuple(alpha.tolist()) if isinstance(alpha, np.ndarray) and alpha.ndim else float(alpha)

    def _log_prior(self, counts: Counts) -> Floats:
        if self.class_prior is not None:
            return log(check_priors(self.class_prior, counts))
        if self.fit_prior:
            return compute_empirical_prior(counts)
        return np.full(counts.classes.size, -np.log(counts.classes.size))

    def _raise_sklearn_error(self, table: Matrix | SparseMatrix) -> None:
        stored = table.array if isinstance(table, Matrix) else table.cells.stored
        if self._only_positive and stored.size and stored.min() < 0:
            raise DataError(f"Negative values in data passed to {type(self).__name__} (input X)")

    _only_positive: ClassVar[bool] = True

    @property
    def class_log_prior_(self) -> npt.NDArray[np.floating]:
        """Log prior of each class."""
        return self._get_fitted().log_prior

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = self._only_positive
        tags.classifier_tags.poor_score = True
        return tags


class MultinomialNB(DiscreteNB):
    """Multinomial naive Bayes with scikit-learn's parameters and attributes, for counts such as those of words.

    See `docs/howto/scikit-learn.md` for differences from scikit-learn.

    Parameters
    ----------
    alpha : float or array-like of shape (n_features,), default=1.0
        Smoothing, for all columns or per column. 0: no smoothing.
    force_alpha : bool, default=True
        If False, an alpha below 1e-10 is raised to that, with a warning.
    fit_prior : bool, default=True
        If True, use the class shares as the prior; otherwise a uniform prior.
    class_prior : array-like of shape (n_classes,), default=None
        Prior of each class. None: determined by `fit_prior`.

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
    class_log_prior_ : ndarray of shape (n_classes,)
        Log prior of each class.
    feature_count_ : ndarray of shape (n_classes, n_features)
        Sum of each column in each class.
    feature_log_prob_ : ndarray of shape (n_classes, n_features)
        log P(column | class).

    See Also
    --------
    ComplementNB : Scores from the counts of the other classes.
    sklearn.naive_bayes.MultinomialNB : The original.

    Examples
    --------
    >>> from deciban.dropin import MultinomialNB
    >>> X, y = [[3, 0], [2, 1], [0, 2], [0, 1]], ["spam", "spam", "ham", "ham"]
    >>> clf = MultinomialNB().fit(X, y)
    >>> clf.predict([[1, 0], [0, 3]]).tolist()
    ['spam', 'ham']
    >>> clf.feature_count_.tolist()
    [[0.0, 3.0], [5.0, 1.0]]
    """

    def __init__(
        self,
        *,
        alpha: npt.ArrayLike = 1.0,
        force_alpha: bool = True,
        fit_prior: bool = True,
        class_prior: npt.ArrayLike | None = None,
    ) -> None:
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.fit_prior = fit_prior
        self.class_prior = class_prior

    def _family(self, columns: int) -> Family:
        return Multinomial(alpha=self._get_smoothing())

    @property
    def feature_count_(self) -> npt.NDArray[np.floating]:
        """Sum of each column in each class."""
        return np.asarray(self._statistic.total)

    @property
    def feature_log_prob_(self) -> npt.NDArray[np.floating]:
        """Log P(column | class)."""
        return np.asarray(self._likelihood.log_share.T)


class ComplementNB(DiscreteNB):
    """Complement naive Bayes with scikit-learn's parameters and attributes. Its score ignores the prior.

    See `docs/howto/scikit-learn.md` for differences from scikit-learn.

    Parameters
    ----------
    alpha : float or array-like of shape (n_features,), default=1.0
        Smoothing, for all columns or per column. 0: no smoothing.
    force_alpha : bool, default=True
        If False, an alpha below 1e-10 is raised to that, with a warning.
    fit_prior : bool, default=True
        If True, `class_log_prior_` holds the class shares. The score does not use them.
    class_prior : array-like of shape (n_classes,), default=None
        Prior of each class. None: determined by `fit_prior`.
    norm : bool, default=False
        If True, divide the weights of each class by the sum of their absolute values.

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
    class_log_prior_ : ndarray of shape (n_classes,)
        Log prior of each class.
    feature_count_ : ndarray of shape (n_classes, n_features)
        Sum of each column in each class.
    feature_all_ : ndarray of shape (n_features,)
        Sum of each column over all classes.
    feature_log_prob_ : ndarray of shape (n_classes, n_features)
        Amount that each occurrence adds to the score of a class.

    See Also
    --------
    MultinomialNB : A likelihood for the same counts.
    sklearn.naive_bayes.ComplementNB : The original.

    Examples
    --------
    >>> from deciban.dropin import ComplementNB
    >>> X, y = [[3, 0], [2, 1], [0, 2], [0, 1]], ["spam", "spam", "ham", "ham"]
    >>> clf = ComplementNB().fit(X, y)
    >>> clf.predict([[1, 0], [0, 3]]).tolist()
    ['spam', 'ham']
    >>> clf.feature_all_.tolist()
    [5.0, 4.0]
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {**DiscreteNB._parameter_constraints, "norm": ["boolean"]}

    def __init__(
        self,
        *,
        alpha: npt.ArrayLike = 1.0,
        force_alpha: bool = True,
        fit_prior: bool = True,
        class_prior: npt.ArrayLike | None = None,
        norm: bool = False,
    ) -> None:
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.fit_prior = fit_prior
        self.class_prior = class_prior
        self.norm = norm

    def _family(self, columns: int) -> Family:
        return Complement(alpha=self._get_smoothing(), norm=self.norm)

    def _log_prior(self, counts: Counts) -> Floats:
        super()._log_prior(counts)  # checks the parameters
        return np.zeros(counts.classes.size)

    @property
    def class_log_prior_(self) -> npt.NDArray[np.floating]:
        """Log prior of each class, which the score does not use."""
        return super()._log_prior(self._get_fitted().counts)

    @property
    def feature_count_(self) -> npt.NDArray[np.floating]:
        """Sum of each column in each class."""
        return np.asarray(self._statistic.total)

    @property
    def feature_all_(self) -> npt.NDArray[np.floating]:
        """Sum of each column over all classes."""
        return np.asarray(self.feature_count_.sum(axis=0))

    @property
    def feature_log_prob_(self) -> npt.NDArray[np.floating]:
        """Amount that each occurrence adds to the score of a class."""
        return np.asarray(self._likelihood.weight.T)


class BernoulliNB(DiscreteNB):
    """Bernoulli naive Bayes with scikit-learn's parameters and attributes, for binary columns.

    See `docs/howto/scikit-learn.md` for differences from scikit-learn.

    Parameters
    ----------
    alpha : float or array-like of shape (n_features,), default=1.0
        Smoothing, for all columns or per column. 0: no smoothing.
    force_alpha : bool, default=True
        If False, an alpha below 1e-10 is raised to that, with a warning.
    binarize : float, default=0.0
        Threshold: cells above it count as 1, others as 0. None: cells are already 0 and 1.
    fit_prior : bool, default=True
        If True, use the class shares as the prior; otherwise a uniform prior.
    class_prior : array-like of shape (n_classes,), default=None
        Prior of each class. None: determined by `fit_prior`.

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
    class_log_prior_ : ndarray of shape (n_classes,)
        Log prior of each class.
    feature_count_ : ndarray of shape (n_classes, n_features)
        Number of cells equal to 1, for each column and class.
    feature_log_prob_ : ndarray of shape (n_classes, n_features)
        log P(1 | class).

    See Also
    --------
    CategoricalNB : More than two values.
    sklearn.naive_bayes.BernoulliNB : The original.

    Examples
    --------
    >>> import numpy as np
    >>> from deciban.dropin import BernoulliNB
    >>> clf = BernoulliNB().fit([[1, 0], [1, 1], [0, 1], [0, 1]], ["a", "a", "b", "b"])
    >>> clf.predict([[1, 0], [0, 1]]).tolist()
    ['a', 'b']
    >>> np.exp(clf.feature_log_prob_).tolist()                              # (2 + 1)/(2 + 2) and so on
    [[0.75, 0.5], [0.25, 0.75]]
    """

    _only_positive = False

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **DiscreteNB._parameter_constraints,
        "binarize": [None, Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        alpha: npt.ArrayLike = 1.0,
        force_alpha: bool = True,
        binarize: float | None = 0.0,
        fit_prior: bool = True,
        class_prior: npt.ArrayLike | None = None,
    ) -> None:
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.binarize = binarize
        self.fit_prior = fit_prior
        self.class_prior = class_prior

    def _family(self, columns: int) -> Family:
        return Bernoulli(alpha=self._get_smoothing(), threshold=self.binarize)

    @property
    def feature_count_(self) -> npt.NDArray[np.floating]:
        """Number of cells equal to 1, for each column and class."""
        return np.asarray(self._statistic.total)

    @property
    def feature_log_prob_(self) -> npt.NDArray[np.floating]:
        """Log P(1 | class) of each column."""
        return np.asarray(self._likelihood.one.T)


@dataclass(frozen=True, repr=False)
class CodesFromZero(Categorical):
    """Categories 0, 1, ..., with at least `min_sizes` categories per column, whether they occur or not."""

    min_sizes: tuple[int, ...] = ()

    def read(self, batch: Readable, columns: Sequence[int]) -> Numbers | list[pa.Array]:
        cells = super().read(batch, columns)
        if isinstance(cells, np.ndarray) and not kernels.cell_counts.all_within(cells.ravel(), 0.0, MAX_AMOUNT):
            raise_unless((cells >= 0) & (cells <= MAX_AMOUNT), cells, "a category 0, 1, ...", "number the categories")
        return cells

    def estimate(self, statistic: Levels) -> CategoricalLikelihood:
        levels, counts = [], []
        for column, table, min_size in zip(statistic.levels, statistic.tables, self.min_sizes, strict=True):
            codes = column.to_numpy().astype(np.int64) if len(column) else np.zeros(0, dtype=np.int64)
            size = max(min_size, int(codes.max(initial=-1)) + 1)
            levels.append(pa.array(np.arange(size)))
            counts.append(scatter_to(table, codes, size, axis=1))
        return CategoricalLikelihood.of(levels, counts, self.alpha, self.unseen)


class CategoricalNB(DiscreteNB):
    """Categorical naive Bayes with scikit-learn's parameters and attributes, for categories 0, 1, 2 and so on.

    A category not seen in training is ignored; scikit-learn raises an IndexError. See
    `docs/howto/scikit-learn.md` for other differences.

    Parameters
    ----------
    alpha : float, default=1.0
        Smoothing. 0: no smoothing.
    force_alpha : bool, default=True
        If False, an alpha below 1e-10 is raised to that, with a warning.
    fit_prior : bool, default=True
        If True, use the class shares as the prior; otherwise a uniform prior.
    class_prior : array-like of shape (n_classes,), default=None
        Prior of each class. None: determined by `fit_prior`.
    min_categories : int or array-like of shape (n_features,), default=None
        Minimum number of categories per column. None: the categories that occur.

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
    class_log_prior_ : ndarray of shape (n_classes,)
        Log prior of each class.
    category_count_ : list of ndarray of shape (n_classes, n_categories)
        Count of each category in each class, for each column.
    feature_log_prob_ : list of ndarray of shape (n_classes, n_categories)
        log P(category | class), for each column.
    n_categories_ : ndarray of shape (n_features,)
        Number of categories of each column.

    See Also
    --------
    BayesClassifier : Text categories, without encoding.
    sklearn.naive_bayes.CategoricalNB : The original.

    Examples
    --------
    >>> from deciban.dropin import CategoricalNB
    >>> clf = CategoricalNB().fit([[0], [0], [1], [2]], ["a", "a", "b", "b"])
    >>> clf.predict([[0], [2]]).tolist(), clf.n_categories_.tolist()
    (['a', 'b'], [3])
    >>> clf.predict_proba([[9]]).tolist()                                   # unknown category: the prior
    [[0.5, 0.5]]
    """

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
        class_prior: npt.ArrayLike | None = None,
        min_categories: npt.ArrayLike | None = None,
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
        alpha = self._get_smoothing()
        assert isinstance(alpha, float)
        return CodesFromZero(alpha, min_sizes=tuple(int(size) for size in np.broadcast_to(least, columns)))

    def _make_table(self, X: Any) -> Matrix | SparseMatrix:
        table = super()._make_table(X)
        array = table.array if isinstance(table, Matrix) else table.numbers(range(table.width))
        if array.dtype.kind == "f" and not np.isnan(array).any():
            array = np.trunc(array)  # scikit-learn reads 1.7 as category 1
        return Matrix(array)

    def _raise_sklearn_error(self, table: Matrix | SparseMatrix) -> None:
        super()._raise_sklearn_error(table)
        if np.isinf(table.numbers(range(table.width))).any():
            raise DataError("Input X contains infinity", remedy="number the categories 0, 1, ...")

    @property
    def category_count_(self) -> list[npt.NDArray[np.floating]]:
        """Count of each category in each class, for each column."""
        return list(self._likelihood.counts)

    @property
    def feature_log_prob_(self) -> list[npt.NDArray[np.floating]]:
        """Log P(category | class), for each column."""
        start = self._likelihood.start
        return [self._likelihood.table[a : b - 1].T for a, b in pairwise(start)]

    @property
    def n_categories_(self) -> npt.NDArray[np.integer]:
        """Number of categories of each column."""
        return np.array([table.shape[1] for table in self._likelihood.counts])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        return tags
