"""Feature selection by evidence, as a scikit-learn transformer."""

from __future__ import annotations

from typing import Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from deciban.estimators.classifier import BayesClassifier
from deciban.typing import Labels, Table, Weights
from deciban.util.arrays import Flags


class EvidenceSelector(SelectorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Feature selector that keeps the k columns that together predict the class best.

    Forward selection: each step adds the column that lowers the leave-one-out log-loss most.

    Parameters
    ----------
    k : int, default=None
        Number of columns to keep. None: all that lower the leave-one-out log-loss by more than chance would.
    estimator : BayesClassifier, default=None
        Classifier whose evidence is used; a clone of it is fitted. None: `BayesClassifier()`.

    Attributes
    ----------
    order_ : list of int
        Positions of the selected columns, in order of selection.
    n_features_in_ : int
        Number of columns in `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Column names, if they have any.

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

    def __init__(self, k: int | None = None, *, estimator: BayesClassifier | None = None) -> None:
        self.k = k
        self.estimator = estimator

    def fit(self, X: Table, y: Labels, sample_weight: Weights | None = None) -> Self:
        """Select the columns.

        Parameters
        ----------
        X : array-like or table
            The rows.
        y : array-like of shape (n_rows,)
            Class of each row.
        sample_weight : array-like of shape (n_rows,), default=None
            Row weights. None: all 1.

        Returns
        -------
        EvidenceSelector
            The fitted selector itself.
        """
        classifier = BayesClassifier() if self.estimator is None else clone(self.estimator)
        classifier.fit(X, y, sample_weight)
        k = None if self.k is None else min(int(self.k), classifier.n_features_in_)
        self.order_ = classifier._select_positions(k, X, y, sample_weight)
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
