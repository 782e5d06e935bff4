"""MultinomialNB, ComplementNB and BernoulliNB, and what they share with CategoricalNB."""

import warnings
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval

from deciban.errors import DataError, UsageError
from deciban.estimators.dropin.base import DropIn, empirical, given
from deciban.families import Bernoulli, Complement, Family, Multinomial
from deciban.model.counts import Counts
from deciban.tables.table import Matrix, SparseMatrix
from deciban.util.arrays import Floats, log

# Below this, scikit-learn replaces a smoothing unless it is forced to keep it.
LEAST_ALPHA = 1e-10


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
        """The log prior of each class."""
        return self._fitted().log_prior

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = self._only_positive
        tags.classifier_tags.poor_score = True
        return tags


class MultinomialNB(DiscreteNB):
    """Multinomial naive Bayes with scikit-learn's parameters and attributes, for counts such as those of words.

    What differs from scikit-learn is in `docs/differences-from-scikit-learn.md`.

    Parameters
    ----------
    alpha : float or array-like of shape (n_features,), default=1.0
        The smoothing; one for all columns or one for each. 0 is none.
    force_alpha : bool, default=True
        Whether an alpha below 1e-10 is taken as it is; otherwise it is raised to that, with a warning.
    fit_prior : bool, default=True
        Whether the prior is the share of each class; otherwise all classes have the same.
    class_prior : array-like of shape (n_classes,), default=None
        The prior of each class. None: by `fit_prior`.

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
    class_log_prior_ : ndarray of shape (n_classes,)
        The log prior of each class.
    feature_count_ : ndarray of shape (n_classes, n_features)
        The total of each column in each class.
    feature_log_prob_ : ndarray of shape (n_classes, n_features)
        log P(column | class).

    See Also
    --------
    ComplementNB : Scores by what the other classes lack.
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
        """The total of each column in each class."""
        return self._statistic.total

    @property
    def feature_log_prob_(self) -> Any:
        """log P(column | class)."""
        return self._likelihood.log_share.T


class ComplementNB(DiscreteNB):
    """Complement naive Bayes with scikit-learn's parameters and attributes: a score, which leaves the prior out.

    What differs from scikit-learn is in `docs/differences-from-scikit-learn.md`.

    Parameters
    ----------
    alpha : float or array-like of shape (n_features,), default=1.0
        The smoothing; one for all columns or one for each. 0 is none.
    force_alpha : bool, default=True
        Whether an alpha below 1e-10 is taken as it is; otherwise it is raised to that, with a warning.
    fit_prior : bool, default=True
        Whether `class_log_prior_` is the share of each class; it does not enter the score.
    class_prior : array-like of shape (n_classes,), default=None
        The prior of each class. None: by `fit_prior`.
    norm : bool, default=False
        Whether the weights of each class are divided by the sum of their sizes.

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
    class_log_prior_ : ndarray of shape (n_classes,)
        The log prior of each class.
    feature_count_ : ndarray of shape (n_classes, n_features)
        The total of each column in each class.
    feature_all_ : ndarray of shape (n_features,)
        The total of each column over all classes.
    feature_log_prob_ : ndarray of shape (n_classes, n_features)
        What each occurrence adds to the score of a class.

    See Also
    --------
    MultinomialNB : The likelihood of the same counts.
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
        """The log prior of each class, which does not enter the score."""
        return super()._log_prior(self._fitted().counts)

    @property
    def feature_count_(self) -> Any:
        """The total of each column in each class."""
        return self._statistic.total

    @property
    def feature_all_(self) -> Any:
        """The total of each column over all classes."""
        return self.feature_count_.sum(axis=0)

    @property
    def feature_log_prob_(self) -> Any:
        """What each occurrence adds to the score of a class."""
        return self._likelihood.weight.T


class BernoulliNB(DiscreteNB):
    """Bernoulli naive Bayes with scikit-learn's parameters and attributes, for columns of yes and no.

    What differs from scikit-learn is in `docs/differences-from-scikit-learn.md`.

    Parameters
    ----------
    alpha : float or array-like of shape (n_features,), default=1.0
        The smoothing; one for all columns or one for each. 0 is none.
    force_alpha : bool, default=True
        Whether an alpha below 1e-10 is taken as it is; otherwise it is raised to that, with a warning.
    binarize : float, default=0.0
        Cells above it count as 1, others as 0. None: the cells are 0 and 1.
    fit_prior : bool, default=True
        Whether the prior is the share of each class; otherwise all classes have the same.
    class_prior : array-like of shape (n_classes,), default=None
        The prior of each class. None: by `fit_prior`.

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
    class_log_prior_ : ndarray of shape (n_classes,)
        The log prior of each class.
    feature_count_ : ndarray of shape (n_classes, n_features)
        How many cells of each column are 1 in each class.
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
        """How many cells of each column are 1 in each class."""
        return self._statistic.total

    @property
    def feature_log_prob_(self) -> Any:
        """log P(1 | class) of each column."""
        return self._likelihood.one.T
