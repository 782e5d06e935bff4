"""Metrics of posteriors and decisions on labeled rows, as sums that add up over batches and folds."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from deciban.decisions.decide import choose_decisions, compute_incurred_costs
from deciban.decisions.loss import Loss
from deciban.model.model import choose_class
from deciban.model.tuning import MAX_GAIN_BY_CHANCE, copies_in_words
from deciban.tables.labels import LabelArray
from deciban.util.arrays import Codes, Floats, Integers
from deciban.util.results import Metrics, Part, Result, TextTable
from deciban.util.text_tables import (
    count_noun,
    format_amount,
    format_class,
    integer_if_whole,
    line_width,
    note_hidden,
    shorten,
    text_width,
)

# Probabilities kept one by one for the ROC AUC: 32 MB. Beyond that, log-odds are counted in bins.
MAX_KEPT = 1 << 22

# Classes for which log-odds are binned: the bins of 256 classes take 32 MB too.
MAX_BINNED_CLASSES = 256

# Bins of log-odds per nat: rows within a hundredth of a nat count as ties.
BINS_PER_NAT = 100

# Log-odds are binned between minus and plus this many nats; beyond, the smaller probability is below 5e-18.
MAX_NATS = 40

# Total number of bins of log-odds.
BINS = 2 * MAX_NATS * BINS_PER_NAT


# Quantile of the normal distribution for 95% intervals.
Z_95 = 1.959964


def wilson_interval(share: Floats, rows: Floats) -> tuple[Floats, Floats]:
    """Return the 95% Wilson interval of a share of rows.

    >>> [round(float(bound), 3) for bound in wilson_interval(np.array(1.0), np.array(20.0))]
    [0.839, 1.0]
    """
    scale = 1.0 + Z_95**2 / rows
    middle = (share + Z_95**2 / (2.0 * rows)) / scale
    half = Z_95 * np.sqrt(share * (1.0 - share) / rows + Z_95**2 / (4.0 * rows**2)) / scale
    return np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)


@dataclass(frozen=True)
class Ranking:
    """Posteriors of labeled rows, from which areas under ROC curves are computed.

    Rankings of two sets of rows add up with ``+``.

    posterior: row by class. labels, weights: the class and the weight of each row.
    histograms: class by (other classes, own class) by bin of log-odds: the weight of rows that are not kept one by one.
    too_large: True if there were too many rows of too many classes; no area is known then.
    """

    posterior: Floats
    labels: Codes
    weights: Floats
    histograms: Floats | None = None
    too_large: bool = False

    def __add__(self, other: Ranking) -> Ranking:
        """Return the ranking of both sets of rows."""
        both = Ranking(
            np.concatenate([self.posterior, other.posterior]),
            np.concatenate([self.labels, other.labels]),
            np.concatenate([self.weights, other.weights]),
        )
        whole = self.histograms is None and other.histograms is None and not (self.too_large or other.too_large)
        if whole and both.posterior.size <= MAX_KEPT:
            return both
        if self.too_large or other.too_large or both.posterior.shape[1] > MAX_BINNED_CLASSES:
            return both._without_rows(None)
        return both._without_rows(self._count_log_odds() + other._count_log_odds())

    @property
    def compact(self) -> Ranking:
        """The same ranking with histograms instead of rows, if these are smaller."""
        if self.labels.size <= 2 * BINS:
            return self
        return self._without_rows(self._count_log_odds() if self.posterior.shape[1] <= MAX_BINNED_CLASSES else None)

    def _without_rows(self, histograms: Floats | None) -> Ranking:
        """Return a ranking of histograms only; without them, one that is too large."""
        none: Any = slice(0, 0)
        rows = self.posterior[none], self.labels[none], self.weights[none]
        return Ranking(*rows, histograms, too_large=histograms is None)

    def among(self, places: Integers, classes: int) -> Ranking:
        """Return the ranking among more classes, the present ones at `places`; the others have posterior 0."""
        posterior = np.zeros((self.labels.size, classes))
        posterior[:, places] = self.posterior
        moved = replace(self, posterior=posterior, labels=places[self.labels].astype(self.labels.dtype))
        if self.histograms is None:
            return moved
        histograms = np.zeros((classes, *self.histograms.shape[1:]))
        histograms[:, 0, 0] = self.histograms[0].sum()
        histograms[places] = self.histograms
        return replace(moved, histograms=histograms)

    def area(self, label: int) -> float | None:
        """Return the area under the ROC curve of one class against all others; ties count half.

        This is P(a row of the class has a higher posterior of it than a row of another class). None if one side has no
        rows, or if the ranking is too large.
        """
        if self.too_large:
            return None
        if self.histograms is not None:
            others, own = self._count_log_odds()[label]
        else:
            place = np.unique(self.posterior[:, label], return_inverse=True)[1]
            is_own = self.labels == label
            others, own = (np.bincount(place, self.weights * side) for side in (~is_own, is_own))
        pairs = own.sum() * others.sum()
        below = np.cumsum(others) - others
        return float(own @ (below + 0.5 * others) / pairs) if pairs > 0.0 else None

    @property
    def areas(self) -> list[float | None]:
        """Area of each class against all others."""
        return [self.area(label) for label in range(self.posterior.shape[1])]

    def _count_log_odds(self) -> Floats:
        """Return the histograms, with the rows that are kept one by one."""
        classes = self.posterior.shape[1]
        with np.errstate(divide="ignore"):
            log_odds = np.log(self.posterior) - np.log1p(-np.minimum(self.posterior, 1.0))
        place = np.clip((log_odds + MAX_NATS) * BINS_PER_NAT, 0, BINS - 1).astype(np.int64)
        found = np.zeros((classes, 2, BINS)) if self.histograms is None else self.histograms.copy()
        for label in range(classes):
            side = (self.labels == label).astype(np.int64)
            found[label] += np.bincount(side * BINS + place[:, label], self.weights, 2 * BINS).reshape(2, BINS)
        return found


# Smaller probabilities count as this one, as in scikit-learn's log_loss: one impossible row must not dominate the rest.
MIN_PROBABILITY = float(np.finfo(np.float64).eps)

# Log-loss of a row whose true class had probability 0.
MAX_LOSS = -float(np.log(MIN_PROBABILITY))

# Squared distance between the posterior and the true class if another class was certain.
MAX_SQUARED_ERROR = 2.0

# Bins of the calibration table: the usual number for the expected calibration error.
CALIBRATION_BINS = 15

# Names of metrics in printed text, where they differ from those in Python.
PRINTED_NAMES = {
    "log_loss": "log-loss",
    "roc_auc": "ROC AUC",
    "brier_score": "Brier score",
    "f1": "F1",
    "expected_calibration_error": "calibration error",
    "mean_cost": "mean cost",
    "ranked_probability_score": "ranked probability score",
    "mean_absolute_distance": "mean absolute distance",
}

# Metrics of ordered classes.
ORDERED_METRICS = ("ranked_probability_score", "mean_absolute_distance")

# Classes of a confusion matrix that fits a terminal.
MAX_MATRIX_CLASSES = 12

# The smallest width of a class name in a confusion matrix that is too wide for the terminal.
MIN_NAME_WIDTH = 8

# Lines of the list of confusions that replaces a larger matrix.
MAX_CONFUSIONS = 12

# Lines of the table of classes: about a screen.
MAX_CLASSES_LISTED = 40

PESSIMISTIC_LEAVE_ONE_OUT = (
    "each row is left out of the class shares too, which makes its own class slightly less probable: "
    "if the columns are not predictive, accuracy and ROC AUC fall toward 0"
)


@dataclass(frozen=True, repr=False)
class Calibration(Result):
    """Predicted probabilities of the most probable class, and how often it was the true one, in bins.

    Calibrations of several sets of rows add up with ``+``. Empty bins are not shown.

    Parameters
    ----------
    sums : ndarray of shape (3, bins)
        For each bin, the weight of its rows, and the weighted sums of the predicted probabilities and of the correct
        predictions.
    """

    sums: Floats

    @classmethod
    def from_posterior(
        cls, posterior: Floats, labels: Codes, weights: Floats, bins: int = CALIBRATION_BINS
    ) -> Calibration:
        """Return the calibration of rows with these posteriors, true classes and weights."""
        best = posterior.argmax(axis=1)
        top = posterior[np.arange(len(best)), best]
        place = np.minimum((top * bins).astype(np.int64), bins - 1)
        parts = (weights, weights * top, weights * (best == labels))
        return cls(np.stack([np.bincount(place, part, bins).astype(np.float64) for part in parts]))

    def __add__(self, other: Calibration) -> Calibration:
        """Return the calibration of both sets of rows."""
        return Calibration(self.sums + other.sums)

    @property
    def rows(self) -> Floats:
        """Weight of the rows in each bin."""
        return np.asarray(self.sums[0][self.sums[0] > 0.0])

    @property
    def predicted(self) -> Floats:
        """Mean predicted probability in each bin."""
        return np.asarray(self.sums[1][self.sums[0] > 0.0] / self.rows)

    @property
    def observed(self) -> Floats:
        """Share of correct predictions in each bin."""
        return np.asarray(self.sums[2][self.sums[0] > 0.0] / self.rows)

    @property
    def expected_calibration_error(self) -> float:
        """Mean absolute difference between `predicted` and `observed`, weighted by rows; NaN without rows."""
        if not self.rows.size:
            return float("nan")
        return float(np.average(np.abs(self.predicted - self.observed), weights=self.rows))

    def to_records(self) -> list[dict[str, float]]:
        """Return one dict per bin, with the keys ``predicted``, ``observed`` and ``rows``."""
        columns = self.predicted.tolist(), self.observed.tolist(), self.rows.tolist()
        return [
            {"predicted": predicted, "observed": observed, "rows": integer_if_whole(rows)}
            for predicted, observed, rows in zip(*columns, strict=True)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the error and the bins as plain values."""
        return {"expected_calibration_error": self.expected_calibration_error, "bins": self.to_records()}

    def _columns(self) -> dict[str, Any]:
        """Return ``predicted``, ``observed`` and ``rows`` of each bin."""
        return {"predicted": self.predicted, "observed": self.observed, "rows": self.rows}

    def _parts(self) -> list[Part]:
        if not self.rows.size:
            return ["no rows to measure calibration on"]
        lines = []
        for predicted, observed, rows in zip(self.predicted, self.observed, self.rows, strict=True):
            lines.append((f"{predicted:.3f}", f"{observed:.3f}", format_amount(rows)))
        error = f"expected calibration error {self.expected_calibration_error:.4f}"
        return [TextTable(lines, tuple(self._columns()), range(3), notes=[error])]


@dataclass(frozen=True, repr=False)
class Evaluation(Result):
    r"""Metrics of posteriors and decisions on labeled rows; print it for a summary.

    The metrics are the same for held-out rows, for cross-validation and for leave-one-out. Evaluations of two sets of
    rows add up with ``+``. `BayesClassifier.evaluate`, `BayesClassifier.cross_validate` and `LeaveOneOut.evaluate`
    return them. `to_frame` returns a line for each class: ``class``, ``rows``, ``precision``, ``recall``, ``f1`` and
    ``roc_auc``, NaN where undefined.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        The classes, sorted.
    confusion : ndarray of shape (n_classes, n_classes)
        Weight of the rows by true class and predicted class.
    log_loss_sum : float
        Weighted sum of -log P(true class).
    squared_error_sum : float
        Weighted sum of the squared distance between the posterior and the true class.
    calibration : Calibration
        Predicted and observed probabilities of the predicted class.
    ranking : Ranking
        Posteriors from which the area under the ROC curve is computed.
    total_cost : float or None, default=None
        Total cost of the least-risk decisions; None without a loss.
    constant_costs : ndarray of shape (n_decisions,) or None, default=None
        Total cost of each decision if it were made for every row; None without a loss.
    unknown_class_rows : float, default=0.0
        Weight of rows whose class the model does not know. They count as wrong, with probability 0.
    leave_one_out : bool, default=False
        True if these are training rows, each scored without itself.
    decisions : tuple of labels or None, default=None
        The decisions of the loss, in its order; None without a loss.
    decision_counts : ndarray of shape (n_classes, n_decisions) or None, default=None
        Weight of the rows by true class and least-risk decision; None without a loss.
    copies : int, default=0
        Number of rows that are copies of others. Leave-one-out leaves copies out together.
    ranked_sum, distance_sum : float or None, default=None
        Weighted sums of the ranked probability score, and of the steps between the predicted and the true class; None
        if the classes have no order.
    order : tuple of labels or None, default=None
        Ordered classes, ascending, as tables show them; None if they have no order.

    See Also
    --------
    LeaveOneOut : Posteriors of training rows, each scored without itself.

    Notes
    -----
    For n rows with true classes :math:`y_i`, where :math:`[y_i = c]` is 1 if true, else 0 (for two classes, the Brier
    score is half of this sum). The calibration error has :math:`n_k` rows in bin k, a share :math:`o_k` of which is
    predicted correctly, with the mean probability :math:`p_k`:

    .. math::

        \mathrm{log\ loss} = - \frac{1}{n} \sum_i \log P(y_i \mid x_i)

    .. math::

        \mathrm{Brier\ score} = \frac{1}{n} \sum_i \sum_c \left( P(c \mid x_i) - [y_i = c] \right)^2

    .. math::

        \mathrm{calibration\ error} = \sum_k \frac{n_k}{n} \, | o_k - p_k |

    For ordered classes, numbered from 1 to K:

    .. math::

        \mathrm{ranked\ probability\ score} = \frac{1}{n} \sum_i \sum_{k < K}
        \left( P(c \le k \mid x_i) - [y_i \le k] \right)^2

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from deciban import BayesClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> found = BayesClassifier(tune=None).cross_validate(X, y, folds=3)
    >>> round(found.accuracy, 2), found.baseline["accuracy"] < 0.4
    (0.96, True)
    """

    _made_with = ("calibration",)

    classes: LabelArray
    confusion: Floats
    log_loss_sum: float
    squared_error_sum: float
    calibration: Calibration
    ranking: Ranking
    total_cost: float | None = None
    constant_costs: Floats | None = None
    unknown_class_rows: float = 0.0
    leave_one_out: bool = False
    decisions: tuple[Any, ...] | None = None
    decision_counts: Floats | None = None
    copies: int = 0
    ranked_sum: float | None = None
    distance_sum: float | None = None
    order: tuple[Any, ...] | None = None

    @classmethod
    def from_posterior(
        cls,
        posterior: Floats,
        labels: Codes,
        weights: Floats,
        classes: LabelArray,
        unknown: float,
        loss: Loss | None,
        order: Integers | None = None,
    ) -> Evaluation:
        """Compute the metrics of rows with these posteriors.

        Parameters
        ----------
        posterior : ndarray of shape (rows, n_classes)
            The posterior of each row.
        labels : ndarray of shape (rows,)
            Index of the true class of each row.
        weights : ndarray of shape (rows,)
            Weight of each row.
        classes : ndarray of shape (n_classes,)
            The classes.
        unknown : float
            Weight of further rows, whose class is not one of `classes`.
        loss : Loss or None
            Costs of decisions.
        order : ndarray of shape (n_classes,), default=None
            Indices of ordered classes, ascending.

        Returns
        -------
        Evaluation
        """
        size, best = classes.size, choose_class(posterior, order)
        confusion = np.bincount(labels * size + best, weights, size * size).astype(np.float64).reshape(size, size)
        of_truth = posterior[np.arange(best.size), labels]
        log_losses = -np.log(np.maximum(of_truth, MIN_PROBABILITY))
        errors = posterior - (np.arange(size) == labels[:, None])
        found = cls(
            classes,
            confusion,
            float(weights @ log_losses) + unknown * MAX_LOSS,
            float(weights @ (errors**2).sum(axis=1)) + unknown * MAX_SQUARED_ERROR,
            Calibration.from_posterior(posterior, labels, weights),
            Ranking(posterior, labels, weights),
            unknown_class_rows=unknown,
        )
        if order is not None:
            place, most = np.argsort(order), unknown * (size - 1)
            below = np.cumsum(posterior[:, order], axis=1) - (place[labels, None] <= np.arange(size))
            ranked, distance = (below[:, :-1] ** 2).sum(axis=1), np.abs(place[best] - place[labels])
            found = replace(
                found,
                ranked_sum=float(weights @ ranked) + most,
                distance_sum=float(weights @ distance) + most,
                order=tuple(classes[order].tolist()),
            )
        if loss is None:
            return found
        constant = loss.matrix @ confusion.sum(axis=1)  # raises if costs differ from row to row
        best_decisions = choose_decisions(posterior, loss)
        cost = float(weights @ compute_incurred_costs(best_decisions, labels))
        names = tuple(name.item() if isinstance(name, np.generic) else name for name in loss.decisions or ())
        counts = np.bincount(labels * len(names) + best_decisions.decision_index, weights, size * len(names))
        return replace(
            found,
            total_cost=cost,
            constant_costs=constant,
            decisions=names,
            decision_counts=counts.astype(np.float64).reshape(size, len(names)),
        )

    def __add__(self, other: Evaluation) -> Evaluation:
        """Return the metrics of both sets of rows; their classes may differ."""
        classes = np.union1d(self.classes, other.classes)
        confusion = np.zeros((classes.size, classes.size))
        decisions = tuple(dict.fromkeys((*(self.decisions or ()), *(other.decisions or ()))))
        decision_counts, constant = np.zeros((classes.size, len(decisions))), np.zeros(len(decisions))
        rankings = []
        for part in (self, other):
            at = np.searchsorted(classes, part.classes)
            confusion[np.ix_(at, at)] += part.confusion
            rankings.append(part.ranking if at.size == classes.size else part.ranking.among(at, classes.size))
            if part.decision_counts is not None and part.constant_costs is not None:
                among = np.array([decisions.index(decision) for decision in part.decisions or ()], dtype=np.int64)
                decision_counts[np.ix_(at, among)] += part.decision_counts
                constant[among] += part.constant_costs
        costed = self.total_cost is not None and other.total_cost is not None
        return Evaluation(
            classes,
            confusion,
            self.log_loss_sum + other.log_loss_sum,
            self.squared_error_sum + other.squared_error_sum,
            self.calibration + other.calibration,
            rankings[0] + rankings[1],
            (self.total_cost or 0.0) + (other.total_cost or 0.0) if costed else None,
            constant if costed else None,
            self.unknown_class_rows + other.unknown_class_rows,
            self.leave_one_out and other.leave_one_out,
            decisions if costed else None,
            decision_counts if costed else None,
            self.copies + other.copies,
            _add_known(self.ranked_sum, other.ranked_sum),
            _add_known(self.distance_sum, other.distance_sum),
            max(self.order or (), other.order or (), key=len) or None,
        )

    @property
    def compact(self) -> Evaluation:
        """The same metrics in little memory: the ROC AUC is then exact to a hundredth of a nat of log-odds."""
        return replace(self, ranking=self.ranking.compact)

    @property
    def weight(self) -> float:
        """Total weight of the rows."""
        return float(self.confusion.sum()) + self.unknown_class_rows

    @property
    def accuracy(self) -> float:
        """Share of correct predictions."""
        return float(np.trace(self.confusion)) / self.weight

    @property
    def log_loss(self) -> float:
        """Mean of -log P(true class), in nats."""
        return self.log_loss_sum / self.weight

    @property
    def brier_score(self) -> float:
        """Brier score, by the convention of scikit-learn's ``brier_score_loss``.

        For two classes, the mean of (P(class) - truth)² of either class, between 0 and 1. For more classes, the mean of
        the sum of these squares over all classes, between 0 and 2.
        """
        mean = self.squared_error_sum / self.weight
        return mean / 2.0 if self.classes.size <= 2 else mean

    @property
    def expected_calibration_error(self) -> float:
        """Mean absolute difference between predicted and observed probabilities of the predicted class."""
        return self.calibration.expected_calibration_error

    @property
    def ranked_probability_score(self) -> float | None:
        """Mean squared error of the cumulative probabilities, summed over the classes; None without an order."""
        return None if self.ranked_sum is None else self.ranked_sum / self.weight

    @property
    def mean_absolute_distance(self) -> float | None:
        """Mean number of steps between the predicted and the true class; None without an order."""
        return None if self.distance_sum is None else self.distance_sum / self.weight

    @property
    def mean_cost(self) -> float | None:
        """Mean cost per row of the least-risk decisions; None without a loss."""
        return None if self.total_cost is None else self.total_cost / self.weight

    @property
    def roc_auc(self) -> float | None:
        """Area under the ROC curve; for more than two classes, the mean over classes of one-vs-rest areas."""
        if self.classes.size == 2:
            return self.ranking.area(1)
        known = [area for area in self.ranking.areas if area is not None]
        return float(np.mean(known)) if known else None

    @property
    def baseline(self) -> dict[str, Any]:
        """Metrics of a model that ignores the columns.

        ``class`` is the most frequent class, ``accuracy`` that of always predicting it, and ``log_loss`` that of the
        class shares. With a loss, ``decision`` is the cheapest constant decision and ``mean_cost`` its mean cost.
        """
        rows = self.confusion.sum(axis=1)
        most_frequent = int(rows.argmax())
        share = rows[rows > 0.0] / max(float(rows.sum()), 1e-300)
        log_loss_sum = -float(rows[rows > 0.0] @ np.log(share)) + self.unknown_class_rows * MAX_LOSS
        found = {
            "class": self.classes.tolist()[most_frequent],
            "accuracy": float(rows[most_frequent]) / self.weight,
            "log_loss": log_loss_sum / self.weight,
        }
        if self.constant_costs is not None and self.decisions:
            cheapest = int(self.constant_costs.argmin())
            found["decision"] = self.decisions[cheapest]
            found["mean_cost"] = float(self.constant_costs[cheapest]) / self.weight
        return found

    @property
    def beats_baseline(self) -> bool:
        """True if the log-loss is lower than that of the baseline by more than chance explains."""
        return self.weight * (float(self.baseline["log_loss"]) - self.log_loss) >= MAX_GAIN_BY_CHANCE

    @property
    def per_class(self) -> list[dict[str, Any]]:
        """Rows, precision, recall, F1 and one-vs-rest ROC AUC of each class; None where a metric is undefined."""
        correct, true, predicted = np.diagonal(self.confusion), self.confusion.sum(axis=1), self.confusion.sum(axis=0)
        return [
            {
                "class": label,
                "rows": integer_if_whole(true[c]),
                "precision": _ratio(correct[c], predicted[c]),
                "recall": _ratio(correct[c], true[c]),
                "f1": _ratio(2.0 * correct[c], predicted[c] + true[c]),
                "roc_auc": area,
            }
            for c, (label, area) in enumerate(zip(self.classes.tolist(), self.ranking.areas, strict=True))
        ]

    @property
    def confusions(self) -> list[tuple[Any, Any, float]]:
        """(true class, predicted class, weight of rows) of all mistakes, the most frequent first."""
        labels, wrong = self.classes.tolist(), self.confusion * (1.0 - np.eye(self.classes.size))
        places = np.argsort(-wrong, axis=None, kind="stable")[: np.count_nonzero(wrong)]
        pairs = zip(*np.unravel_index(places, wrong.shape), strict=True)
        return [(labels[truth], labels[predicted], float(wrong[truth, predicted])) for truth, predicted in pairs]

    def _columns(self) -> dict[str, Any]:
        lines = self.per_class
        metrics = ("rows", "precision", "recall", "f1", "roc_auc")
        numbers = {name: np.array([line[name] for line in lines], dtype=np.float64) for name in metrics}
        return {"class": self.classes.tolist(), **numbers}

    def to_dict(self) -> dict[str, Any]:
        """Return all metrics as plain values.

        Returns
        -------
        dict
            Numbers, lists and dicts that can be written as JSON.
        """
        metrics = {
            "rows": integer_if_whole(self.weight),
            "accuracy": self.accuracy,
            "log_loss": self.log_loss,
            "roc_auc": self.roc_auc,
            "brier_score": self.brier_score,
            "expected_calibration_error": self.expected_calibration_error,
            "baseline": self.baseline,
            "classes": self.classes.tolist(),
            "confusion": [[integer_if_whole(weight) for weight in row] for row in self.confusion.tolist()],
            "per_class": self.per_class,
            "calibration": self.calibration.to_records(),
            "unknown_class_rows": integer_if_whole(self.unknown_class_rows),
        }
        metrics |= {"copies": self.copies} if self.leave_one_out else {}
        metrics |= {} if self.ranked_sum is None else {name: getattr(self, name) for name in ORDERED_METRICS}
        if self.mean_cost is None or self.decision_counts is None:
            return metrics
        counts = [[integer_if_whole(weight) for weight in row] for row in self.decision_counts.tolist()]
        return {
            **metrics,
            "mean_cost": self.mean_cost,
            "decisions": list(self.decisions or ()),
            "decision_counts": counts,
        }

    def __str__(self) -> str:
        return self.describe(line_width())

    def describe(self, width: int | None = None) -> str:
        """Return the metrics as text.

        Parameters
        ----------
        width : int or None, default=None
            Width of the terminal; None for no limit. Class names in the confusion matrix are shortened to fit into it,
            or the most frequent confusions are listed instead.

        Returns
        -------
        str
        """
        parts = self._parts(width)
        return "\n\n".join(
            part.format(width or sys.maxsize) if isinstance(part, TextTable) else str(part) for part in parts
        )

    def _parts(self, width: int | None = None) -> list[Part]:
        usual = ("accuracy", "log_loss", "roc_auc", "brier_score", "expected_calibration_error", "mean_cost")
        names = (*usual, *ORDERED_METRICS)
        baseline = self.baseline
        no_row_left_out = " (no row left out)" if self.leave_one_out else ""
        metrics = Metrics(
            count_noun(self.weight, "row"), _format_metrics({name: getattr(self, name) for name in names})
        )
        lines = [
            f"baseline{no_row_left_out}: accuracy {baseline['accuracy']:.4f} "
            f"(always {format_class(baseline['class'])}), log-loss {baseline['log_loss']:.4f} (class frequencies)",
        ]
        if "decision" in baseline:
            lines.append(
                f"baseline, always deciding {format_class(baseline['decision'])}: mean cost {baseline['mean_cost']:.4f}"
            )
        if not self.beats_baseline:
            lines.append("the log-loss is no better than that of the baseline, which ignores the columns")
            if self.leave_one_out and self.accuracy < baseline["accuracy"]:
                lines.append(PESSIMISTIC_LEAVE_ONE_OUT)
        if self.unknown_class_rows:
            lines.append(f"class unknown to the model: {count_noun(self.unknown_class_rows, 'row')}")
        if self.copies:
            lines.append(copies_in_words(self.copies))
        tables = [*self._decision_table(width), *self._confusion_table(width), self._class_table()]
        return [replace(metrics, notes=lines), *tables, *self.calibration._parts()]

    def _decision_table(self, width: int | None) -> list[TextTable]:
        """Return the least-risk decisions by true class, unless the table is too wide."""
        if self.decision_counts is None:
            return []
        decisions = list(map(format_class, self.decisions or ()))
        places = self._places
        names = [self._names[k] for k in places]
        return _format_matrix("truth / decision", names, decisions, self.decision_counts[places], width)

    def _confusion_table(self, width: int | None) -> list[TextTable]:
        """Return the confusion matrix, or a list of the most frequent confusions if the matrix is too wide."""
        places = self._places
        names = [self._names[k] for k in places]
        if matrix := _format_matrix("truth / predicted", names, names, self.confusion[np.ix_(places, places)], width):
            return matrix
        confusions = self.confusions
        if not confusions:
            return []
        lines = [
            (format_class(truth), format_class(predicted), format_amount(weight))
            for truth, predicted, weight in confusions[:MAX_CONFUSIONS]
        ]
        more = note_hidden(len(confusions) - MAX_CONFUSIONS, "rarer confusion", ": to_dict()")
        head = ("truth", "predicted", "rows")
        return [TextTable(lines, head, right=[2], title="most frequent confusions", notes=more)]

    @property
    def _names(self) -> list[str]:
        return [format_class(label) for label in self.classes]

    @property
    def _places(self) -> list[int]:
        """Indices of the classes as tables show them: in their order, if they have one."""
        labels = self.classes.tolist()
        ordered = [labels.index(label) for label in self.order or () if label in labels]
        return ordered + [k for k in range(len(labels)) if k not in ordered]

    def _class_table(self) -> TextTable:
        """Return precision, recall and F1 of each class; of many classes, those with the most rows."""
        columns = ["precision", "recall", "f1", *(["roc_auc"] if self.classes.size > 2 else [])]
        metrics = self.per_class
        largest = sorted(range(len(metrics)), key=lambda c: -metrics[c]["rows"])[:MAX_CLASSES_LISTED]
        head, lines = ["class", "rows", *(PRINTED_NAMES.get(name, name) for name in columns)], []
        for line in (metrics[c] for c in self._places if c in largest):
            numbers = ["" if line[name] is None else f"{line[name]:.4f}" for name in columns]
            lines.append([format_class(line["class"]), format_amount(line["rows"]), *numbers])
        more = note_hidden(len(metrics) - len(largest), "class", " with fewer rows: to_dict()")
        return TextTable(lines, head, range(1, len(columns) + 2), notes=more)


def _format_matrix(
    title: str, rows: Sequence[str], columns: Sequence[str], matrix: Floats, width: int | None
) -> list[TextTable]:
    """Return a matrix of weights as a table; nothing if it is too wide, even with shortened names."""
    if max(matrix.shape) > MAX_MATRIX_CLASSES:
        return []
    weights = [[format_amount(weight) for weight in row] for row in matrix]

    def align(rows: Sequence[str], columns: Sequence[str]) -> TextTable:
        lines = [(name, *row) for name, row in zip(rows, weights, strict=True)]
        return TextTable(lines, (title, *columns), range(len(columns) + 1))

    def fits(table: TextTable) -> bool:
        return width is None or text_width(table.format(sys.maxsize).partition("\n")[0]) <= width

    table = align(rows, columns)
    if width is None or fits(table):
        return [table]
    first = max(text_width(title), width // 4)
    room = (width - first) // len(columns) - 2
    short = [shorten(name, room) for name in columns]
    table = align([shorten(name, first) for name in rows], short)
    return [table] if room >= MIN_NAME_WIDTH and len(set(short)) == len(short) and fits(table) else []


def _add_known(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


def _ratio(part: float, whole: float) -> float | None:
    return float(part / whole) if whole > 0.0 else None


def _format_metrics(metrics: Mapping[str, float | None]) -> list[tuple[str, str]]:
    known = {name: value for name, value in metrics.items() if value is not None and not np.isnan(value)}
    return [(PRINTED_NAMES.get(name, name), f"{value:.4f}") for name, value in known.items()]
