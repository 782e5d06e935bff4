"""Feature selection by evidence, with scikit-learn's conventions."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from deciban.estimators.classifier import BayesClassifier
from deciban.util.arrays import Flags


class EvidenceSelector(SelectorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Keeps the k columns whose evidence together predicts the class best: feature selection for pipelines.

    Columns are added one by one: each time the one that lowers the leave-one-out log-loss most, given those that were
    chosen before. `BayesClassifier.select_columns` names the columns of a fitted model.

    Parameters
    ----------
    k : int, default=None
        How many columns to keep. None keeps all that lower the leave-one-out log-loss by more than chance would.
    estimator : BayesClassifier, default=None
        The classifier whose evidence is used; it is cloned. None is `BayesClassifier()`.

    Attributes
    ----------
    order_ : list of int
        The positions of the columns that are kept, in the order in which they were chosen.
    n_features_in_ : int
        The number of columns in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where they have any.

    See Also
    --------
    BayesClassifier.select_columns : The same for a fitted classifier.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from deciban import EvidenceSelector
    >>> X, y = load_iris(return_X_y=True)
    >>> selector = EvidenceSelector(k=2).fit(X, y)
    >>> selector.transform(X).shape, selector.get_support().tolist()
    ((150, 2), [False, False, True, True])
    """

    def __init__(self, k: int | None = None, *, estimator: Any = None) -> None:
        self.k = k
        self.estimator = estimator

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose the columns.

        Parameters
        ----------
        X : array-like or table
            The rows.
        y : array-like of shape (n_rows,)
            Their classes.
        sample_weight : array-like of shape (n_rows,), default=None
            The weight of each row. None: 1.

        Returns
        -------
        EvidenceSelector
            The fitted selector itself.
        """
        classifier = BayesClassifier() if self.estimator is None else clone(self.estimator)
        classifier.fit(X, y, sample_weight)
        most = None if self.k is None else min(int(self.k), classifier.n_features_in_)
        self.order_ = classifier._select_positions(most, X, y, sample_weight)
        self.n_features_in_ = classifier.n_features_in_
        if classifier.schema_.names is not None:
            self.feature_names_in_ = classifier.feature_names_in_
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        for kind in ("allow_nan", "sparse", "string", "categorical"):
            setattr(tags.input_tags, kind, True)
        return tags

    def _get_support_mask(self) -> Flags:
        check_is_fitted(self)
        mask = np.zeros(self.n_features_in_, dtype=np.bool_)
        mask[self.order_] = True
        return mask
