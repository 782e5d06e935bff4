"""CategoricalNB."""

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
from deciban.errors import DataError, UsageError
from deciban.estimators.dropin.discrete_nb import DiscreteNB
from deciban.families import Categorical, Family
from deciban.families.base.checks import refuse_unless
from deciban.families.categorical import CategoricalLikelihood
from deciban.statistics import Levels
from deciban.tables.readable import Readable
from deciban.tables.table import Matrix, SparseMatrix
from deciban.util.arrays import LARGEST, Numbers, scatter_to


@dataclass(frozen=True, repr=False)
class CodesFromZero(Categorical):
    """Categories 0, 1, ..., at least `least` of them in each column, all of which count whether they occur or not."""

    least: tuple[int, ...] = ()

    def read(self, batch: Readable, columns: Sequence[int]) -> Numbers | list[pa.Array]:
        cells = super().read(batch, columns)
        if isinstance(cells, np.ndarray) and not kernels.counting.all_within(cells.ravel(), 0.0, LARGEST):
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
    """Categorical naive Bayes with scikit-learn's parameters and attributes, for categories 0, 1, 2 and so on.

    A category that was never seen is no evidence; scikit-learn's raises an IndexError. What differs from scikit-learn
    is in `docs/differences-from-scikit-learn.md`.

    Parameters
    ----------
    alpha : float, default=1.0
        The smoothing. 0 is none.
    force_alpha : bool, default=True
        Whether an alpha below 1e-10 is taken as it is; otherwise it is raised to that, with a warning.
    fit_prior : bool, default=True
        Whether the prior is the share of each class; otherwise all classes have the same.
    class_prior : array-like of shape (n_classes,), default=None
        The prior of each class. None: by `fit_prior`.
    min_categories : int or array-like of shape (n_features,), default=None
        The least number of categories of each column. None: those that occur.

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
    category_count_ : list of ndarray of shape (n_classes, n_categories)
        How often each category occurs in each class, for each column.
    feature_log_prob_ : list of ndarray of shape (n_classes, n_categories)
        log P(category | class), for each column.
    n_categories_ : ndarray of shape (n_features,)
        The number of categories of each column.

    See Also
    --------
    BayesClassifier : Categories that are text, without numbering them.
    sklearn.naive_bayes.CategoricalNB : The original.

    Examples
    --------
    >>> from deciban.dropin import CategoricalNB
    >>> clf = CategoricalNB().fit([[0], [0], [1], [2]], ["a", "a", "b", "b"])
    >>> clf.predict([[0], [2]]).tolist(), clf.n_categories_.tolist()
    (['a', 'b'], [3])
    >>> clf.predict_proba([[9]]).tolist()                                   # never seen: the prior
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

    def _table(self, X: Any) -> Matrix | SparseMatrix:
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
        """How often each category occurs in each class, for each column."""
        return list(self._likelihood.counts)

    @property
    def feature_log_prob_(self) -> Any:
        """log P(category | class), for each column."""
        start = self._likelihood.start
        return [self._likelihood.table[a : b - 1].T for a, b in pairwise(start)]

    @property
    def n_categories_(self) -> Any:
        """The number of categories of each column."""
        return np.array([table.shape[1] for table in self._likelihood.counts])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        return tags
