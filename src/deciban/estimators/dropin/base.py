"""Base class of the drop-in classifiers: scikit-learn's interface on top of counts and a model."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from deciban.errors import Argument, DataError, Labels, UsageError
from deciban.estimators.dropin.covariance import Within, make_class_normals
from deciban.families import Family
from deciban.fitting.fit import check_not_empty, check_something_learned
from deciban.model.batches import batches, count_batches
from deciban.model.counts import Counts
from deciban.model.fitted import Fitted, require_weight
from deciban.model.model import Model, estimate, log_normalize, most_probable, posteriors
from deciban.model.priors import log_prior
from deciban.schema.schema import GIVEN, ColumnGroup, Schema
from deciban.scoring.predict import score_table
from deciban.tables.convert import as_table
from deciban.tables.examples import LabeledTable
from deciban.tables.labels import check_weights, encode_labels
from deciban.tables.table import Matrix, SparseMatrix
from deciban.typing import SupportsCsr
from deciban.util.arrays import Floats


@dataclass(frozen=True)
class Learned(Fitted):
    """Fitted state of a drop-in classifier.

    dtype: type of its attributes. covariance: covariance matrix of each class or of all classes together, for
    discriminants; None if the family estimates it. tol: smallest deviation of the linear discriminant in any direction.
    declared: True if the classes were declared, so that no others may be added.
    """

    dtype: np.dtype[Any] = np.dtype(np.float64)
    covariance: Floats | None = None
    tol: float = 0.0
    declared: bool = False

    @cached_property
    def model(self) -> Model:
        require_weight(self.counts)
        if self.covariance is None:
            return estimate(self.counts, self.log_prior)
        shared = self.covariance.ndim == 2
        likelihood = (
            self.within.make_normals() if shared else make_class_normals(self.counts.statistics[0], self.covariance)
        )
        return estimate(self.counts, self.log_prior, (likelihood,))

    @cached_property
    def within(self) -> Within:
        assert self.covariance is not None
        return Within.of(self.counts.statistics[0], self.covariance, self.tol)


def compute_empirical_prior(counts: Counts) -> Floats:
    """Return the log of the share of each class."""
    return log_prior("empirical", counts.classes, counts.class_weight)


def check_priors(priors: Any, counts: Counts) -> Floats:
    """Return given priors as an array with one number per class."""
    shares = np.asarray(priors, dtype=np.float64)
    if shares.size != counts.classes.size:
        raise UsageError("Number of priors must match number of classes.")
    return shares


class DropIn(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Base class of the drop-in classifiers: one family for all columns, matched by position."""

    learned_: Learned

    def fit(self, X: npt.ArrayLike | SupportsCsr, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit the classifier.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Rows; NaN is a missing value.
        y : array-like of shape (n_rows,)
            Class of each row.
        sample_weight : array-like of shape (n_rows,), default=None
            Row weights: a weight of k counts the row k times. None: all 1.

        Returns
        -------
        self : object
            The fitted classifier.
        """
        return self._become(copy.copy(self)._learn(None, X, y, None, sample_weight, whole=True))

    def partial_fit(
        self,
        X: npt.ArrayLike | SupportsCsr,
        y: npt.ArrayLike,
        classes: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Learn more rows. The result equals one `fit` on all rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Rows; NaN is a missing value.
        y : array-like of shape (n_rows,)
            Class of each row.
        classes : array-like of shape (n_classes,), default=None
            All classes; required in the first call. Any other label raises an error.
        sample_weight : array-like of shape (n_rows,), default=None
            Row weights: a weight of k counts the row k times. None: all 1.

        Returns
        -------
        self : object
            The fitted classifier.
        """
        before = self.learned_.counts if self.__sklearn_is_fitted__() else None
        if before is None and classes is None:
            raise UsageError("classes must be passed on the first call to partial_fit.")
        if before is not None and classes is not None and not np.array_equal(before.classes, np.sort(classes)):
            known = before.classes.tolist()
            raise UsageError(
                ("`", Argument("classes", classes), f"` is not the same as on last call to partial_fit, was: {known}")
            )
        return self._become(copy.copy(self)._learn(before, X, y, classes, sample_weight))

    def __add__(self, other: object) -> Self:
        """Return a classifier that has learned the rows of both, which must have the same parameters."""
        if type(other) is not type(self):
            return NotImplemented
        assert isinstance(other, DropIn)
        mine, theirs = self._get_fitted(), other._get_fitted()
        self._check_addable(other)
        for whole, nothing in ((self, theirs), (other, mine)):
            if replace(nothing.counts, declared=nothing.declared).leaves_unchanged(whole._get_fitted().counts):
                return copy.copy(whole)
        counts = replace(mine.counts, declared=mine.declared) + replace(theirs.counts, declared=theirs.declared)
        both = copy.copy(self)
        kind = np.promote_types(mine.dtype, theirs.dtype)
        declared = mine.declared or theirs.declared
        both.learned_ = both._make_learned(counts.declare_classes(counts.classes), None, kind, declared)
        return both

    def __radd__(self, other: object) -> Self:
        """Return the classifier for 0 + classifier, so that sum() works."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def predict(self, X: npt.ArrayLike | SupportsCsr) -> npt.NDArray[Any]:
        """Return the most probable class of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Rows; NaN is a missing value.

        Returns
        -------
        ndarray of shape (n_rows,)
            Labels of `classes_`; ties go to the first.
        """
        learned = self._get_fitted()
        best = self._score(learned.model, X, most_probable)
        return np.asarray(learned.counts.classes[best])

    def predict_proba(self, X: npt.ArrayLike | SupportsCsr) -> npt.NDArray[np.floating]:
        """Return the posterior probability of each class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Rows; NaN is a missing value.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Columns in the order of `classes_`. A row that is impossible in every class gets the prior.
        """
        return self._score(self._get_fitted().model, X, posteriors)

    def predict_log_proba(self, X: npt.ArrayLike | SupportsCsr) -> npt.NDArray[np.floating]:
        """Return the log posterior of each class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Rows; NaN is a missing value.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Columns in the order of `classes_`.
        """
        return self._score(
            self._get_fitted().model, X, lambda joint, prior: log_normalize(joint, prior, logarithm=True)[0]
        )

    def predict_joint_log_proba(self, X: npt.ArrayLike | SupportsCsr) -> npt.NDArray[np.floating]:
        """Return log P(class) + log P(row | class), up to a term that is the same for every class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Rows; NaN is a missing value.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Columns in the order of `classes_`.
        """
        return self._score(self._get_fitted().model, X, lambda joint, prior: joint)

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """Class labels, sorted."""
        return self._get_fitted().counts.classes

    @property
    def class_count_(self) -> npt.NDArray[np.floating]:
        """Total weight of the rows of each class."""
        return self._get_fitted().counts.class_weight

    @property
    def _statistic(self) -> Any:
        return self._get_fitted().counts.statistics[0]

    @property
    def _likelihood(self) -> Any:
        return self._get_fitted().model.likelihoods[0]

    def __sklearn_is_fitted__(self) -> bool:
        return "learned_" in vars(self)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags

    # --- defined by each classifier

    def _family(self, columns: int) -> Family:
        raise AssertionError("each classifier has its family")

    def _log_prior(self, counts: Counts) -> Floats:
        raise AssertionError("each classifier has its prior")

    def _covariance(self, counts: Counts, rows: LabeledTable | None) -> Floats | None:
        """Return the covariance matrices, or None if the family estimates them; `rows`: all training rows, or None."""
        return None

    def _raise_sklearn_error(self, table: Matrix | SparseMatrix) -> None:
        """Raise scikit-learn's error for an invalid cell of the table, if there is one."""

    # --- implementation

    def _get_fitted(self) -> Learned:
        try:
            return self.learned_
        except AttributeError:
            name = type(self).__name__
            raise NotFittedError(f"This {name} instance is not fitted yet. Call 'fit' first.") from None

    def _become(self, learned: Self) -> Self:
        """Take over the state of a fitted copy, so that a failed fit changes nothing."""
        self.__dict__ = learned.__dict__
        return self

    def _learn(
        self, before: Counts | None, X: Any, y: Any, classes: Any, sample_weight: Any, whole: bool = False
    ) -> Self:  # fmt: skip
        """Learn rows in addition to the counts `before`; `whole`: True if these are all rows."""
        self._validate_params()
        table = self._make_table(X)
        check_not_empty(table)
        if before is not None and table.width != before.schema.width:
            raise self._make_width_error(table.width, before.schema.width)
        labels = encode_labels(y, table.rows)
        weights = check_weights(sample_weight, table.rows)
        validate_data(self, X, reset=before is None, skip_check_array=True)
        family = self._family(table.width)
        columns = tuple(range(table.width))
        schema = Schema(None, table.width, (ColumnGroup(family, columns, (GIVEN,) * table.width),))
        declared = before.classes if before is not None else labels.classes
        if before is None and classes is not None:
            declared = encode_labels(classes, len(classes)).classes
        unknown = labels.classes[~np.isin(labels.classes, declared)]
        if unknown.size:
            raise DataError(
                (
                    "The target label(s) ",
                    Labels(unknown.tolist()),
                    " in y do not exist in the initial classes ",
                    Labels(declared.tolist()),
                ),
                remedy="correct them, or declare them in the first call",
            )
        rows = LabeledTable(table, labels, weights)
        try:
            counts = count_batches(batches(rows, schema), Counts.empty(schema)).declare_classes(declared)
        except DataError:
            self._raise_sklearn_error(table)
            raise
        if before is not None:
            counts = replace(before, schema=schema) + counts
        check_something_learned(counts, partial=not whole)
        dtype = table.array.dtype if isinstance(table, Matrix) else table.cells.data.dtype
        kind = dtype if dtype == np.float32 else np.dtype(np.float64)
        self.learned_ = self._make_learned(counts, rows if whole else None, kind, not whole)
        return self

    def _make_learned(self, counts: Counts, rows: LabeledTable | None, kind: np.dtype[Any], declared: bool) -> Learned:
        """Return the fitted state for these counts; `rows`: all counted rows, or None."""
        covariance = self._covariance(counts, rows) if counts.class_weight.any() else None
        tol = float(getattr(self, "tol", 0.0))
        prior = self._log_prior(counts)
        return Learned(counts, prior, dtype=kind, covariance=covariance, tol=tol, declared=declared)

    def _check_addable(self, other: DropIn) -> None:
        """Raise an error unless the other classifier has the same parameters and columns."""
        theirs = other.get_params(deep=False)
        for name, value in self.get_params(deep=False).items():
            if not np.array_equal(value, theirs[name]):
                raise UsageError(
                    f"{name} is {value!r} on the left and {theirs[name]!r} on the right",
                    remedy="add only classifiers with the same parameters",
                )
        found, expected = other._get_fitted().counts.schema.width, self._get_fitted().counts.schema.width
        if found != expected:
            raise self._make_width_error(found, expected)
        names, others = (vars(clf).get("feature_names_in_") for clf in (self, other))
        if names is not None and others is not None and not np.array_equal(names, others):
            raise UsageError("the classifiers have different column names", remedy="fit both with the same columns")

    def _make_table(self, X: Any) -> Matrix | SparseMatrix:
        if scipy.sparse.issparse(X):
            table = as_table(X)
            assert isinstance(table, SparseMatrix)
            return table
        array = X if type(X) is np.ndarray else np.asarray(X)
        if array.dtype.kind not in "fiub":
            if array.dtype.kind == "c":
                raise DataError("Complex data not supported", remedy="give real numbers")
            array = array.astype(np.float64)
        table = as_table(array)
        assert isinstance(table, Matrix)
        return table

    def _make_width_error(self, found: int, expected: int) -> DataError:
        name = type(self).__name__
        return DataError(f"X has {found} features, but {name} is expecting {expected} features as input")

    def _score(self, model: Model, X: Any, finish: Any) -> npt.NDArray[Any]:
        if type(X) is not np.ndarray:
            validate_data(self, X, reset=False, skip_check_array=True)
        table = self._make_table(X)
        if table.width != model.schema.width:
            raise self._make_width_error(table.width, model.schema.width)
        try:
            return np.asarray(score_table(model, table, finish))
        except DataError:
            self._raise_sklearn_error(table)
            raise
