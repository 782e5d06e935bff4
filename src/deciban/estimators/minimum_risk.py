"""Least-cost decisions with any scikit-learn classifier: `MinimumRisk`, `mean_cost` and `cost_scorer`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.metrics import make_scorer
from sklearn.utils import Tags, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted

from deciban.decisions.decide import Decisions, choose_decisions, collect_costs, compute_incurred_costs
from deciban.decisions.loss import Loss
from deciban.errors import Argument, DataError, Labels as ShownLabels, UsageError
from deciban.sources.open import open_table
from deciban.tables.labels import encode_labels
from deciban.typing import Costs, Labels, Table
from deciban.util.arrays import Codes, Floats


class MinimumRisk(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Meta-estimator that turns the probabilities of any classifier into decisions with the least expected cost.

    `predict` returns decisions. `score` returns the *negative* mean cost, so that GridSearchCV minimizes costs.

    The loss may refer to costs that vary by row, by name. They are columns of X, or are passed to `predict`, `decide`
    and `score` as `costs`: a table or a mapping with these names, or an array if there is only one name. With
    scikit-learn's metadata routing, `set_score_request(costs=True)` lets cross-validation split them like X (if they
    are a table or an array), and `set_predict_request(costs=True)` passes them on in pipelines.

    Parameters
    ----------
    estimator : classifier with `predict_proba`
        The classifier; `fit` fits a clone of it.
    loss : Loss or any form that `Loss.from_costs` accepts, default=None
        Cost of each decision under each true class, decision first. None is zero-one loss.
    reject : float, default=None
        Cost of leaving a row undecided. None: every row is decided.

    Attributes
    ----------
    estimator_ : classifier
        The fitted estimator.
    classes_ : ndarray of shape (n_classes,)
        The classes of the estimator.
    loss_ : Loss
        The loss in the order of `classes_`, with the decision "reject" if `reject` is given.
    n_features_in_, feature_names_in_ : int, ndarray of shape (`n_features_in_`,)
        Those of the estimator, if it has them.

    See Also
    --------
    decide : Decisions from given posteriors.
    cost_scorer : Negative mean cost as a scikit-learn scorer.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from deciban import MinimumRisk
    >>> X, y = load_breast_cancer(return_X_y=True)              # 0 is malignant
    >>> clf = MinimumRisk(LogisticRegression(max_iter=10_000), {0: 100, 1: 1}).fit(X, y)
    >>> int((clf.predict(X) == 0).sum()), int((y == 0).sum())   # rather too many than too few
    (331, 212)
    """

    def __init__(self, estimator: Any, loss: Loss | Costs | None = None, *, reject: float | None = None) -> None:
        self.estimator = estimator
        self.loss = loss
        self.reject = reject

    def fit(self, X: Table, y: Labels, **fit_params: Any) -> Self:
        """Fit the estimator.

        Parameters
        ----------
        X : array-like or table
            The rows.
        y : array-like of shape (n_rows,)
            Class of each row.
        **fit_params : dict
            Passed on to the `fit` of the estimator: all of them or, with metadata routing, those that it requests.

        Returns
        -------
        MinimumRisk
            The fitted classifier itself.
        """
        if not hasattr(self.estimator, "predict_proba"):
            raise UsageError(f"{self.estimator!r} has no predict_proba", remedy="wrap it in CalibratedClassifierCV")
        if get_config()["enable_metadata_routing"]:
            fit_params = process_routing(self, "fit", **fit_params)["estimator"]["fit"]
        self.estimator_ = clone(self.estimator).fit(X, y, **fit_params)
        self.classes_ = np.asarray(self.estimator_.classes_)
        self.loss_ = self._make_loss()
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags, tags.target_tags, tags.classifier_tags = (
            inner.input_tags,
            inner.target_tags,
            inner.classifier_tags,
        )
        return tags

    def _make_loss(self) -> Loss:
        loss = Loss.zero_one(list(self.classes_)) if self.loss is None else Loss.from_costs(self.loss)
        loss = loss.for_classes(list(self.classes_))
        return loss if self.reject is None else loss.with_reject(self.reject)

    def decide(self, X: Table, costs: Table | None = None) -> Decisions:
        """Return the decisions with the least expected cost, and their risks.

        Parameters
        ----------
        X : array-like or table
            The rows.
        costs : mapping, table or array-like, default=None
            Costs that vary by row. None: columns of X.

        Returns
        -------
        Decisions
            ``decision``, ``risk``, ``second_best`` and ``second_best_risk`` of each row.
        """
        check_is_fitted(self)
        return choose_decisions(self.predict_proba(X), self.loss_, _make_cost_finder(self.loss_, costs, X))

    def predict(self, X: Table, costs: Table | None = None) -> npt.NDArray[Any]:
        """Return the decision with the least expected cost for each row.

        Parameters
        ----------
        X : array-like or table
            The rows.
        costs : mapping, table or array-like, default=None
            Costs that vary by row. None: columns of X.

        Returns
        -------
        ndarray of shape (n_rows,)
            Labels of `loss_.decisions`.
        """
        return self.decide(X, costs).decision

    def predict_proba(self, X: Table) -> npt.NDArray[np.float64]:
        """Return the class probabilities of the estimator.

        Parameters
        ----------
        X : array-like or table
            The rows.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Columns in the order of `classes_`.
        """
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict_proba(X), dtype=np.float64)

    def score(
        self, X: Table, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None, costs: Table | None = None
    ) -> float:
        """Return the negative mean cost of the decisions.

        Parameters
        ----------
        X : array-like or table
            The rows.
        y : array-like of shape (n_rows,)
            True classes.
        sample_weight : array-like of shape (n_rows,), default=None
            Row weights. None: equal weights.
        costs : mapping, table or array-like, default=None
            Costs that vary by row. None: columns of X.

        Returns
        -------
        float
            Higher is better; at most 0 if no cost is negative.
        """
        decisions = self.decide(X, costs)
        truths = _encode_known(y, self.classes_, len(decisions))
        spent = compute_incurred_costs(decisions, truths, _make_cost_finder(self.loss_, costs, X))
        return -_average(spent, sample_weight)

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the metadata requests of this classifier and of the `fit` of the estimator.

        Returns
        -------
        MetadataRouter
            For scikit-learn's metadata routing.
        """
        router = MetadataRouter(owner=self).add_self_request(self)
        mapping = MethodMapping().add(caller="fit", callee="fit")
        return router.add(estimator=self.estimator, method_mapping=mapping)


def mean_cost(
    y_true: Labels,
    y_pred: Labels,
    *,
    loss: Loss | Costs,
    sample_weight: npt.ArrayLike | None = None,
    costs: Table | None = None,
) -> float:
    """Return the mean cost of decisions, given the true classes.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        True classes.
    y_pred : array-like of shape (n_rows,)
        Decisions.
    loss : Loss or any form that `Loss.from_costs` accepts
        Cost of each decision under each true class, decision first. Without labels, its columns are the sorted classes
        of `y_true`.
    sample_weight : array-like of shape (n_rows,), default=None
        Row weights. None: equal weights.
    costs : mapping, table or array-like, default=None
        Costs that vary by row, by the names used in the loss; an array if there is only one name.

    Returns
    -------
    float
        Mean cost per row.

    Raises
    ------
    UsageError
        If the loss does not contain a decision or a class, or the lengths differ.

    See Also
    --------
    cost_scorer : Negative mean cost as a scikit-learn scorer.

    Examples
    --------
    >>> from deciban import mean_cost
    >>> mean_cost(["sick", "well", "well"], ["well", "sick", "well"], loss={"sick": 10, "well": 1})
    3.6666666666666665
    """
    given = Loss.from_costs(loss)
    truths, decided = list(np.asarray(y_true)), list(np.asarray(y_pred, dtype=object))
    if len(truths) != len(decided):
        raise UsageError(f"{len(truths)} truths and {len(decided)} decisions", remedy="give one of each per row")
    if given.classes is None:
        occurring = np.unique(np.asarray(y_true))
        if occurring.size != given.costs.shape[1]:
            raise UsageError(
                f"y_true has {occurring.size} classes, but the loss has {given.costs.shape[1]} columns",
                remedy="give the loss class labels",
            )
        given = given.for_classes(list(occurring))
    given = given.for_classes(given.classes or ())
    table = collect_costs(given, len(truths), _make_cost_finder(given, costs))
    places = [given.decision_index(label) for label in decided], [given.class_index(label) for label in truths]
    spent = table[np.arange(len(truths)) if len(table) > 1 else 0, *places]
    return _average(spent, sample_weight)


def cost_scorer(loss: Loss | Costs) -> Any:
    """Create a scikit-learn scorer: the negative mean cost of the predictions.

    With metadata routing, `cost_scorer(loss).set_score_request(costs=True)` accepts costs that vary by row.

    Parameters
    ----------
    loss : Loss or any form that `Loss.from_costs` accepts
        Cost of each decision under each true class, decision first.

    Returns
    -------
    callable
        `scorer(estimator, X, y)` for the parameter `scoring` of GridSearchCV and cross_val_score. Higher is better.

    See Also
    --------
    mean_cost : The mean cost.
    MinimumRisk : A classifier with least-cost decisions.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import cross_val_score
    >>> from deciban import cost_scorer
    >>> from deciban.dropin import GaussianNB
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> cross_val_score(GaussianNB(), X, y, scoring=cost_scorer({0: 100, 1: 1})).round(1).tolist()
    [-3.6, -7.0, -2.6, -3.5, -2.7]
    """
    return make_scorer(mean_cost, greater_is_better=False, loss=Loss.from_costs(loss))


def _average(costs: Floats, sample_weight: npt.ArrayLike | None) -> float:
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    return float(np.average(costs, weights=weights))


def _encode_known(y: Any, classes: Any, rows: int) -> Codes:
    """Return the index of each label among the classes; raise a DataError for missing and unknown labels."""
    labels = encode_labels(y, rows)
    places = labels.places_among(classes)
    if (places < 0).any():
        unknown = labels.label(int(places.argmin()))  # an unknown label rather than a missing one
        raise DataError((f"the label {unknown!r} is not one of the classes ", ShownLabels(classes.tolist())))
    return places


def _make_cost_finder(loss: Loss, costs: Any, rows: Any = None) -> Callable[[str], Any]:
    """Return a function that finds costs by name, in `costs` or in the columns of the rows."""
    named = {cell for cell in loss.costs.flat if isinstance(cell, str)}

    def column(name: str) -> Any:
        if isinstance(costs, Mapping) and name in costs:
            return costs[name]
        if costs is not None and len(named) == 1 and np.ndim(costs) == 1 and not isinstance(costs, Mapping):
            return costs
        holder = rows if costs is None else costs
        table = open_table(holder) if holder is not None and not isinstance(holder, Mapping) else None
        if table is None or table.names is None or name not in table.names:
            raise DataError(
                f"the costs {name!r} of the loss are missing",
                remedy=("pass them in ", Argument("costs"), ", or as a column of X"),
            )
        return table.numbers([table.names.index(name)])[:, 0]

    return column
