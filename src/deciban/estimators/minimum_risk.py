"""Least risk for any classifier of scikit-learn's kind."""

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.metrics import make_scorer
from sklearn.utils import Tags, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted

from deciban.decisions.decide import Decisions, choose_decisions, collect_costs, compute_incurred_costs
from deciban.decisions.loss import Loss
from deciban.errors import Argument, DataError, Labels, UsageError
from deciban.sources.open import open_table
from deciban.tables.labels import encode_labels
from deciban.util.arrays import Codes, Floats


class MinimumRisk(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Decides at least expected cost by the probabilities of any classifier that has `predict_proba`.

    `predict` gives decisions, and `score` the *negative* mean cost, so that GridSearchCV lowers costs.

    Costs that differ from row to row are named in the loss. They are columns of X, or are given to `predict`, `decide`
    and `score` as `costs`: a table or a mapping with such names, or an array where the loss has one name. With
    scikit-learn's metadata routing, `set_score_request(costs=True)` has cross-validation cut them like X, if they are
    a table or an array; `set_predict_request(costs=True)` hands them on in pipelines.

    Parameters
    ----------
    estimator : classifier with `predict_proba`
        It is cloned and fitted by `fit`.
    loss : Loss or anything `Loss.from_costs` takes, default=None
        What each decision costs under each truth, decision first. None is zero-one loss.
    reject : float, default=None
        What it costs to leave a row undecided. None: every row is decided.

    Attributes
    ----------
    estimator_ : classifier
        The fitted estimator.
    classes_ : ndarray of shape (n_classes,)
        The classes of the estimator.
    loss_ : Loss
        The loss in the order of `classes_`, with the decision "reject" where that is allowed.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features_in_,)
        Those of the estimator, where it has them.

    See Also
    --------
    decide : The decisions from posteriors alone.
    cost_scorer : Minus the mean cost as a scorer for searches.

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

    def __init__(self, estimator: Any, loss: Any = None, *, reject: float | None = None) -> None:
        self.estimator = estimator
        self.loss = loss
        self.reject = reject

    def fit(self, X: Any, y: Any, **fit_params: Any) -> Self:
        """Fit the estimator.

        Parameters
        ----------
        X : array-like or table
            The rows.
        y : array-like of shape (n_rows,)
            Their classes.
        **fit_params : dict
            Handed on to the estimator's `fit`: with metadata routing those that it asks for, without it all.

        Returns
        -------
        MinimumRisk
            The fitted classifier itself.
        """
        if not hasattr(self.estimator, "predict_proba"):
            raise UsageError(f"{self.estimator!r} has no predict_proba; wrap it in CalibratedClassifierCV first")
        if get_config()["enable_metadata_routing"]:
            fit_params = process_routing(self, "fit", **fit_params)["estimator"]["fit"]
        self.estimator_ = clone(self.estimator).fit(X, y, **fit_params)
        self.classes_ = np.asarray(self.estimator_.classes_)
        self.loss_ = self._fitting_loss()
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

    def _fitting_loss(self) -> Loss:
        loss = Loss.zero_one(list(self.classes_)) if self.loss is None else Loss.from_costs(self.loss)
        loss = loss.for_classes(list(self.classes_))
        return loss if self.reject is None else loss.with_reject(self.reject)

    def decide(self, X: Any, costs: Any = None) -> Decisions:
        """The decisions of least expected cost, with their risks.

        Parameters
        ----------
        X : array-like or table
            The rows.
        costs : mapping, table or array-like, default=None
            The costs that the loss names; None: they are columns of X.

        Returns
        -------
        Decisions
            With `decision`, `risk`, `second_best` and `second_best_risk` of each row.
        """
        check_is_fitted(self)
        return choose_decisions(self.predict_proba(X), self.loss_, _finder(self.loss_, costs, X))

    def predict(self, X: Any, costs: Any = None) -> Any:
        """The decision of least expected cost for each row.

        Parameters
        ----------
        X : array-like or table
            The rows.
        costs : mapping, table or array-like, default=None
            The costs that the loss names; None: they are columns of X.

        Returns
        -------
        ndarray of shape (n_rows,)
            Labels of `loss_.decisions`.
        """
        return self.decide(X, costs).decision

    def predict_proba(self, X: Any) -> Floats:
        """The probabilities that the estimator gives the classes.

        Parameters
        ----------
        X : array-like or table
            The rows.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            In the order of `classes_`.
        """
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict_proba(X), dtype=np.float64)

    def score(self, X: Any, y: Any, sample_weight: Any = None, costs: Any = None) -> float:
        """Minus the mean cost of the decisions.

        Parameters
        ----------
        X : array-like or table
            The rows.
        y : array-like of shape (n_rows,)
            Their true classes.
        sample_weight : array-like of shape (n_rows,), default=None
            The weight of each row in the mean. None: all weigh the same.
        costs : mapping, table or array-like, default=None
            The costs that the loss names; None: they are columns of X.

        Returns
        -------
        float
            At most 0 where no cost is negative; higher is better.
        """
        decisions = self.decide(X, costs)
        truths = _places(y, self.classes_, len(decisions))
        spent = compute_incurred_costs(decisions, truths, _finder(self.loss_, costs, X))
        return -float(np.average(spent, weights=sample_weight))

    def get_metadata_routing(self) -> MetadataRouter:
        """What this classifier asks for itself, and what goes to the estimator's `fit`.

        Returns
        -------
        MetadataRouter
            For scikit-learn's metadata routing.
        """
        router = MetadataRouter(owner=self).add_self_request(self)
        mapping = MethodMapping().add(caller="fit", callee="fit")
        return router.add(estimator=self.estimator, method_mapping=mapping)


def mean_cost(y_true: Any, y_pred: Any, *, loss: Any, sample_weight: Any = None, costs: Any = None) -> float:
    """What decisions cost on average, given the truth.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        The true classes.
    y_pred : array-like of shape (n_rows,)
        The decisions.
    loss : Loss or anything `Loss.from_costs` takes
        What each decision costs under each truth, decision first. Without labels, its columns are the classes that
        occur in `y_true`, sorted.
    sample_weight : array-like of shape (n_rows,), default=None
        The weight of each row in the mean. None: all weigh the same.
    costs : mapping, table or array-like, default=None
        Where the loss names costs that differ from row to row, these; an array where it has one name.

    Returns
    -------
    float
        The mean cost of a row.

    Raises
    ------
    UsageError
        If a decision or a class is none of the loss, or the lengths differ.

    See Also
    --------
    cost_scorer : Its negative as a scorer for scikit-learn's searches.

    Examples
    --------
    >>> from deciban import mean_cost
    >>> mean_cost(["sick", "well", "well"], ["well", "sick", "well"], loss={"sick": 10, "well": 1})
    3.6666666666666665
    """
    given = Loss.from_costs(loss)
    truths, decided = list(np.asarray(y_true)), list(np.asarray(y_pred, dtype=object))
    if len(truths) != len(decided):
        raise UsageError(f"{len(truths)} truths and {len(decided)} decisions", remedy="give one of each for every row")
    if given.classes is None:
        occurring = np.unique(np.asarray(y_true))
        if occurring.size != given.costs.shape[1]:
            raise UsageError(
                f"{occurring.size} classes occur, the loss has {given.costs.shape[1]} columns",
                remedy="name its classes",
            )
        given = given.for_classes(list(occurring))
    given = given.for_classes(given.classes or ())
    table = collect_costs(given, len(truths), _finder(given, costs))
    places = [given.decision_index(label) for label in decided], [given.class_index(label) for label in truths]
    spent = table[np.arange(len(truths)) if len(table) > 1 else 0, *places]
    return float(np.average(spent, weights=sample_weight))


def cost_scorer(loss: Any) -> Any:
    """A scorer for scikit-learn's searches: minus the mean cost of what an estimator predicts.

    `cost_scorer(loss).set_score_request(costs=True)` takes the costs of each row, by scikit-learn's metadata routing.

    Parameters
    ----------
    loss : Loss or anything `Loss.from_costs` takes
        What each decision costs under each truth, decision first.

    Returns
    -------
    callable
        `scorer(estimator, X, y)`, higher is better; for `scoring=` of GridSearchCV and cross_val_score.

    See Also
    --------
    mean_cost : The cost itself.
    MinimumRisk : A classifier that decides at least expected cost.

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


def _places(y: Any, classes: Any, rows: int) -> Codes:
    """The places of the labels among the classes; a label that is missing or unknown is refused."""
    labels = encode_labels(y, rows)
    places = labels.places_among(classes)
    if (places < 0).any():
        refused = labels.label(int(places.argmin()))  # an unknown label rather than a missing one
        raise DataError((f"the label {refused!r} is not one of the classes ", Labels(classes.tolist())))
    return places


def _finder(loss: Loss, costs: Any, rows: Any = None) -> Callable[[str], Any]:
    """A way to the costs that a loss names: in `costs`, or else in the columns of the rows themselves."""
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
                f"the loss names the costs {name!r}",
                remedy=("give them in ", Argument("costs"), ", or in a column of X of this name"),
            )
        return table.numbers([table.names.index(name)])[:, 0]

    return column
