"""What all drop-in classifiers share: scikit-learn's ways outside, counts and a model inside."""

import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from deciban.errors import Argument, DataError, Labels, UsageError
from deciban.estimators.dropin.covariance import Within, own_normals
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
from deciban.tables.labels import LabelArray, check_weights, encode_labels
from deciban.tables.table import Matrix, SparseMatrix
from deciban.util.arrays import Floats


@dataclass(frozen=True)
class Learned(Fitted):
    """What a fitted drop-in has learned: also the type its attributes have, and the covariances of the discriminants.

    covariance: a matrix for each class, or one for all; None where the family estimates it.
    tol: the least deviation of the linear discriminant in any direction.
    declared: whether the classes were declared, so that no others may be added.
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
        likelihood = self.within.normals() if shared else own_normals(self.counts.statistics[0], self.covariance)
        return estimate(self.counts, self.log_prior, (likelihood,))

    @cached_property
    def within(self) -> Within:
        assert self.covariance is not None
        return Within.of(self.counts.statistics[0], self.covariance, self.tol)


def empirical(counts: Counts) -> Floats:
    """The log of each class's share of the rows."""
    return log_prior("empirical", counts.classes, counts.class_weight)


def given(priors: Any, counts: Counts) -> Floats:
    """Probabilities given by hand, one for each class."""
    shares = np.asarray(priors, dtype=np.float64)
    if shares.size != counts.classes.size:
        raise UsageError("Number of priors must match number of classes.")
    return shares


class DropIn(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """What all drop-in classifiers share: one family for all columns, columns by position."""

    learned_: Learned

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from the rows of X alone.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            The rows; NaN is a missing cell.
        y : array-like of shape (n_rows,)
            Their classes.
        sample_weight : array-like of shape (n_rows,), default=None
            The weight of each row: k is the row k times. None: 1.

        Returns
        -------
        self : object
            The fitted classifier.
        """
        return self._become(copy.copy(self)._learn(None, X, y, None, sample_weight, whole=True))

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from the rows of X too: just what `fit` would have learned from all rows together.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            The rows; NaN is a missing cell.
        y : array-like of shape (n_rows,)
            Their classes.
        classes : array-like of shape (n_classes,), default=None
            All classes that there will be; needed at the first call, and any other label is then an error.
        sample_weight : array-like of shape (n_rows,), default=None
            The weight of each row: k is the row k times. None: 1.

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
        """A classifier that has learned the rows of both, which have the same parameters; neither is changed."""
        if type(other) is not type(self):
            return NotImplemented
        assert isinstance(other, DropIn)
        mine, theirs = self._get_fitted(), other._get_fitted()
        self._refuse_unlike(other)
        for whole, nothing in ((self, theirs), (other, mine)):
            if replace(nothing.counts, declared=nothing.declared).leaves_unchanged(whole._get_fitted().counts):
                return copy.copy(whole)
        counts = replace(mine.counts, declared=mine.declared) + replace(theirs.counts, declared=theirs.declared)
        both = copy.copy(self)
        kind = np.promote_types(mine.dtype, theirs.dtype)
        declared = mine.declared or theirs.declared
        both.learned_ = both._knowing(counts.declare_classes(counts.classes), None, kind, declared)
        return both

    def __radd__(self, other: object) -> Self:
        """0 + classifier, so that sum() adds classifiers up."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def predict(self, X: Any) -> LabelArray:
        """The most probable class of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            The rows; NaN is a missing cell.

        Returns
        -------
        ndarray of shape (n_rows,)
            Labels of `classes_`; ties go to the first.
        """
        learned = self._get_fitted()
        best = self._scored(learned.model, X, most_probable)
        return np.asarray(learned.counts.classes[best])

    def predict_proba(self, X: Any) -> Any:
        """The posterior probability of each class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            The rows; NaN is a missing cell.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            In the order of `classes_`. Where every class has probability 0, the prior.
        """
        return self._scored(self._get_fitted().model, X, posteriors)

    def predict_log_proba(self, X: Any) -> Any:
        """The logarithm of the posterior of each class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            The rows; NaN is a missing cell.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            In the order of `classes_`.
        """
        return self._scored(
            self._get_fitted().model, X, lambda joint, prior: log_normalize(joint, prior, logarithm=True)[0]
        )

    def predict_joint_log_proba(self, X: Any) -> Any:
        """log P(class) + log P(row | class), up to a term that is the same for every class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            The rows; NaN is a missing cell.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            In the order of `classes_`.
        """
        return self._scored(self._get_fitted().model, X, lambda joint, prior: joint)

    @property
    def classes_(self) -> LabelArray:
        """The labels of the classes, sorted."""
        return self._get_fitted().counts.classes

    @property
    def class_count_(self) -> Floats:
        """The weight of the rows of each class."""
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

    # what each classifier defines

    def _family(self, columns: int) -> Family:
        raise AssertionError("each classifier has its family")

    def _log_prior(self, counts: Counts) -> Floats:
        raise AssertionError("each classifier has its prior")

    def _covariance(self, counts: Counts, rows: LabeledTable | None) -> Floats | None:
        """The covariance matrices, where the family does not estimate them; `rows` if they are all that was learned."""
        return None

    def _explain_refusal(self, table: Matrix | SparseMatrix) -> None:
        """Raise scikit-learn's error for a table with a cell that was refused, if it has one."""

    # how

    def _get_fitted(self) -> Learned:
        try:
            return self.learned_
        except AttributeError:
            name = type(self).__name__
            raise NotFittedError(f"This {name} instance is not fitted yet. Call 'fit' first.") from None

    def _become(self, learned: Self) -> Self:
        """Take over what a copy has learned, all at once: had it failed, nothing would have changed."""
        self.__dict__ = learned.__dict__
        return self

    def _learn(
        self, before: Counts | None, X: Any, y: Any, classes: Any, sample_weight: Any, whole: bool = False
    ) -> Self:  # fmt: skip
        """Learn rows, on top of the counts `before`; `whole` is whether they are all rows that there are."""
        self._validate_params()
        table = self._table(X)
        check_not_empty(table)
        if before is not None and table.width != before.schema.width:
            raise self._other_width(table.width, before.schema.width)
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
                remedy="correct them or declare them at the first call",
            )
        rows = LabeledTable(table, labels, weights)
        try:
            counts = count_batches(batches(rows, schema), Counts.empty(schema)).declare_classes(declared)
        except DataError:
            self._explain_refusal(table)
            raise
        if before is not None:
            counts = replace(before, schema=schema) + counts
        check_something_learned(counts, partial=not whole)
        dtype = table.array.dtype if isinstance(table, Matrix) else table.cells.data.dtype
        kind = dtype if dtype == np.float32 else np.dtype(np.float64)
        self.learned_ = self._knowing(counts, rows if whole else None, kind, not whole)
        return self

    def _knowing(self, counts: Counts, rows: LabeledTable | None, kind: np.dtype[Any], declared: bool) -> Learned:
        """What is known with these counts; `rows` if they are all that was counted."""
        covariance = self._covariance(counts, rows) if counts.class_weight.any() else None
        tol = float(getattr(self, "tol", 0.0))
        prior = self._log_prior(counts)
        return Learned(counts, prior, dtype=kind, covariance=covariance, tol=tol, declared=declared)

    def _refuse_unlike(self, other: "DropIn") -> None:
        """What is added has the same parameters and columns."""
        theirs = other.get_params(deep=False)
        for name, value in self.get_params(deep=False).items():
            if not np.array_equal(value, theirs[name]):
                raise UsageError(
                    f"{name} is {value!r} on the left and {theirs[name]!r} on the right; only classifiers with the "
                    f"same parameters can be added"
                )
        found, expected = other._get_fitted().counts.schema.width, self._get_fitted().counts.schema.width
        if found != expected:
            raise self._other_width(found, expected)
        names, others = (vars(clf).get("feature_names_in_") for clf in (self, other))
        if names is not None and others is not None and not np.array_equal(names, others):
            raise UsageError(
                "the columns have other names on the left than on the right", remedy="give both the same columns"
            )

    def _table(self, X: Any) -> Matrix | SparseMatrix:
        if scipy.sparse.issparse(X):
            table = as_table(X)
            assert isinstance(table, SparseMatrix)
            return table
        array = X if type(X) is np.ndarray else np.asarray(X)
        if array.dtype.kind not in "fiub":
            if array.dtype.kind == "c":
                raise DataError("Complex data not supported: give real numbers")
            array = array.astype(np.float64)
        table = as_table(array)
        assert isinstance(table, Matrix)
        return table

    def _other_width(self, found: int, expected: int) -> DataError:
        name = type(self).__name__
        return DataError(f"X has {found} features, but {name} is expecting {expected} features as input")

    def _scored(self, model: Model, X: Any, finish: Any) -> Any:
        if type(X) is not np.ndarray:
            validate_data(self, X, reset=False, skip_check_array=True)
        table = self._table(X)
        if table.width != model.schema.width:
            raise self._other_width(table.width, model.schema.width)
        try:
            return score_table(model, table, finish)
        except DataError:
            self._explain_refusal(table)
            raise
