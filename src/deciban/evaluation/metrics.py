"""Metrics of posteriors and decisions on labeled rows, AUC included: sums that add up over batches and folds."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from deciban.decisions.decide import incurred, least_risk_decisions
from deciban.decisions.loss import Loss
from deciban.model.tuning import copies_in_words
from deciban.tables.labels import LabelArray
from deciban.util.arrays import Codes, Floats, Integers
from deciban.util.text_tables import align_table, count_noun, format_amount, format_class, integer_if_whole

# So many probabilities are kept one by one. Of more, the log-odds are counted in bins of a hundredth of a nat between
# -40 and 40 nats, unless there are more classes than MAX_TALLIED.
MAX_KEPT = 1 << 22
MAX_TALLIED = 256
BINS_PER_NAT = 100
MAX_NATS = 40
TALLY_BINS = 2 * MAX_NATS * BINS_PER_NAT


@dataclass(frozen=True)
class Ranking:
    """The posteriors of rows whose class is known; those of two sets of rows add.

    posterior: row by class. labels, weights: the class and the weight of each row.
    tallies: class by (others, own) by bin of log-odds: the weight of rows that are not kept one by one.
    given_up: there were too many rows of too many classes; no area is known.
    """

    posterior: Floats
    labels: Codes
    weights: Floats
    tallies: Floats | None = None
    given_up: bool = False

    def __add__(self, other: "Ranking") -> "Ranking":
        both = Ranking(
            np.concatenate([self.posterior, other.posterior]),
            np.concatenate([self.labels, other.labels]),
            np.concatenate([self.weights, other.weights]),
        )
        whole = self.tallies is None and other.tallies is None and not (self.given_up or other.given_up)
        if whole and both.posterior.size <= MAX_KEPT:
            return both
        if self.given_up or other.given_up or both.posterior.shape[1] > MAX_TALLIED:
            return both._without_rows(None)
        return both._without_rows(self._tallied() + other._tallied())

    @property
    def compact(self) -> "Ranking":
        """The same with tallies, where these are smaller than the rows; without both of too many classes."""
        if self.labels.size <= 2 * TALLY_BINS:
            return self
        return self._without_rows(self._tallied() if self.posterior.shape[1] <= MAX_TALLIED else None)

    def _without_rows(self, tallies: Floats | None) -> "Ranking":
        """What is left when no row is kept by itself: tallies, or nothing."""
        none: Any = slice(0, 0)
        rows = self.posterior[none], self.labels[none], self.weights[none]
        return Ranking(*rows, tallies, given_up=tallies is None)

    def among(self, places: Integers, classes: int) -> "Ranking":
        """The same among more classes, with the present ones at `places`; the others have the posterior 0."""
        posterior = np.zeros((self.labels.size, classes))
        posterior[:, places] = self.posterior
        moved = replace(self, posterior=posterior, labels=places[self.labels].astype(self.labels.dtype))
        if self.tallies is None:
            return moved
        tallies = np.zeros((classes, *self.tallies.shape[1:]))
        tallies[:, 0, 0] = self.tallies[0].sum()
        tallies[places] = self.tallies
        return replace(moved, tallies=tallies)

    def area(self, label: int) -> float | None:
        """P(a row of the class has a higher posterior of it than a row of another class); ties count half.

        None where there are no rows of the class, or of others, or where it is not known.
        """
        if self.given_up:
            return None
        if self.tallies is not None:
            others, own = self._tallied()[label]
        else:
            place = np.unique(self.posterior[:, label], return_inverse=True)[1]
            is_own = self.labels == label
            others, own = (np.bincount(place, self.weights * side) for side in (~is_own, is_own))
        pairs = own.sum() * others.sum()
        below = np.cumsum(others) - others
        return float(own @ (below + 0.5 * others) / pairs) if pairs > 0.0 else None

    @property
    def areas(self) -> list[float | None]:
        """The area of each class against all others."""
        return [self.area(label) for label in range(self.posterior.shape[1])]

    def _tallied(self) -> Floats:
        """The tallies with the rows that are kept one by one."""
        classes = self.posterior.shape[1]
        bins = TALLY_BINS
        with np.errstate(divide="ignore"):
            log_odds = np.log(self.posterior) - np.log1p(-np.minimum(self.posterior, 1.0))
        place = np.clip((log_odds + MAX_NATS) * BINS_PER_NAT, 0, bins - 1).astype(np.int64)
        found = np.zeros((classes, 2, bins)) if self.tallies is None else self.tallies.copy()
        for label in range(classes):
            side = (self.labels == label).astype(np.int64)
            found[label] += np.bincount(side * bins + place[:, label], self.weights, 2 * bins).reshape(2, bins)
        return found


# Log-losses are cut off where scikit-learn's are, so that one impossible row does not drown all others: what is lost by
# the claim that what is true is impossible.
MIN_PROBABILITY = float(np.finfo(np.float64).eps)
MAX_LOSS = -float(np.log(MIN_PROBABILITY))

# By this much the log likelihood of rows gets higher by chance in one of twenty cases, where one number is fitted that
# is no evidence: half of 3.84, the quantile of chi² with one degree of freedom.
BY_CHANCE = 1.92

# How figures are printed: what they are called, and how many classes and confusions are shown.
NAMES = {"log_loss": "log-loss", "auc": "AUC", "f1": "F1", "calibration_error": "calibration error",
         "mean_cost": "mean cost"}  # fmt: skip
MAX_ACROSS = 12
MAX_CONFUSIONS = 12
MAX_CLASSES_LISTED = 40

LEFT_OUT_OF_SHARES = ("each row is left out of the shares of the classes too, by which another class than its own is a "
                      "little more probable: where columns tell nothing, accuracy and AUC fall toward 0")  # fmt: skip


@dataclass(frozen=True)
class Calibration:
    """How often the most probable class was right, by how probable it was said to be.

    `sums` has for each bin the number of its rows, and the sums of what was claimed of them and of what was right, so
    that the calibrations of several sets of rows add. Bins without rows are left out of what is shown.
    """

    sums: Floats

    @classmethod
    def of(cls, posterior: Floats, labels: Codes, weights: Floats, bins: int = 15) -> "Calibration":
        best = posterior.argmax(axis=1)
        top = posterior[np.arange(len(best)), best]
        place = np.minimum((top * bins).astype(np.int64), bins - 1)
        parts = (weights, weights * top, weights * (best == labels))
        return cls(np.stack([np.bincount(place, part, bins).astype(np.float64) for part in parts]))

    def __add__(self, other: "Calibration") -> "Calibration":
        """That of both sets of rows."""
        return Calibration(self.sums + other.sums)

    @property
    def weight(self) -> Floats:
        return np.asarray(self.sums[0][self.sums[0] > 0.0])

    @property
    def claimed(self) -> Floats:
        """The mean of what was claimed in each bin."""
        return np.asarray(self.sums[1][self.sums[0] > 0.0] / self.weight)

    @property
    def right(self) -> Floats:
        """The share of the rows of each bin that was right."""
        return np.asarray(self.sums[2][self.sums[0] > 0.0] / self.weight)

    @property
    def error(self) -> float:
        """The expected calibration error: by how much claims and facts differ on average; NaN of no rows."""
        if not self.weight.size:
            return float("nan")
        return float(np.average(np.abs(self.claimed - self.right), weights=self.weight))

    def to_dicts(self) -> list[dict[str, float]]:
        """A line for each bin, for programs."""
        columns = self.claimed.tolist(), self.right.tolist(), self.weight.tolist()
        return [
            {"claimed": said, "right": right, "rows": int(rows) if rows == int(rows) else rows}
            for said, right, rows in zip(*columns, strict=True)
        ]

    def __str__(self) -> str:
        if not self.weight.size:
            return "no row to calibrate by"
        lines = [("claimed", "right", "rows")]
        for claimed, right, weight in zip(self.claimed, self.right, self.weight, strict=True):
            lines.append((f"{claimed:.3f}", f"{right:.3f}", format_amount(weight)))
        return f"{align_table(lines, right=range(3))}\nexpected calibration error {self.error:.4f}"


@dataclass(frozen=True)
class Evaluation:
    """How good posteriors and decisions are on rows whose class is known; print it.

    The same figures for rows held out, for folds and for rows that were learned and are left out one by one. Those of
    two sets of rows add up with ``+``. `BayesClassifier.evaluate`, `BayesClassifier.cross_validate` and
    `LeaveOneOut.evaluation` make them.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        The classes, sorted.
    confusion : ndarray of shape (n_classes, n_classes)
        The weight of rows by true class and predicted class.
    losses : float
        The sum of -log P(true class), each times the weight of its row.
    calibration : Calibration
        How often the predicted class was right, by how probable it was said to be.
    ranking : Ranking
        What the area under the ROC curve is computed from.
    cost : float or None
        What the least-risk decisions cost in total; None without a loss.
    constant_costs : ndarray or None, default=None
        What each decision would cost in total, were it made of every row.
    unknown : float, default=0.0
        The weight of rows whose class the model does not know: wrong, with probability 0.
    left_out : bool, default=False
        Whether the rows were learned, and each was left out in its turn.
    decisions : tuple of labels or None, default=None
        The decisions that the loss knows, in its order; None without a loss.
    decided : ndarray of shape (n_classes, n_decisions) or None, default=None
        The weight of rows by true class and least-risk decision; None without a loss.
    copies : int, default=0
        About how many of these rows are copies of others, and were left out with them.

    See Also
    --------
    LeaveOneOut : Posteriors of rows that were learned, each without itself.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from deciban import BayesClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> found = BayesClassifier(tune=None).cross_validate(X, y, folds=3)
    >>> round(found.accuracy, 2), found.baseline["accuracy"] < 0.4
    (0.96, True)
    """

    classes: LabelArray
    confusion: Floats
    losses: float
    calibration: Calibration
    ranking: Ranking
    cost: float | None
    constant_costs: Floats | None = None
    unknown: float = 0.0
    left_out: bool = False
    decisions: tuple[Any, ...] | None = None
    decided: Floats | None = None
    copies: int = 0

    @classmethod
    def of(
        cls, posterior: Floats, labels: Codes, weights: Floats, classes: LabelArray, unknown: float, loss: Loss | None
    ) -> "Evaluation":
        """The figures of rows with these posteriors.

        Parameters
        ----------
        posterior : ndarray of shape (rows, n_classes)
            What was said of each row.
        labels : ndarray of shape (rows,)
            The place of the true class of each row among the classes.
        weights : ndarray of shape (rows,)
            How often each row counts.
        classes : ndarray of shape (n_classes,)
            The classes.
        unknown : float
            The weight of further rows whose class is none of these.
        loss : Loss or None
            What decisions cost.

        Returns
        -------
        Evaluation
        """
        size, best = classes.size, posterior.argmax(axis=1)
        confusion = np.bincount(labels * size + best, weights, size * size).astype(np.float64).reshape(size, size)
        chance = np.maximum(posterior[np.arange(best.size), labels], MIN_PROBABILITY)
        losses = float(weights @ -np.log(chance)) + unknown * MAX_LOSS
        calibration, ranking = Calibration.of(posterior, labels, weights), Ranking(posterior, labels, weights)
        found = cls(classes, confusion, losses, calibration, ranking, None, None, unknown)
        if loss is None:
            return found
        constant = loss.matrix @ confusion.sum(axis=1)  # refuses costs that differ from row to row
        least = least_risk_decisions(posterior, loss)
        cost = float(weights @ incurred(least, labels))
        named = tuple(one.item() if isinstance(one, np.generic) else one for one in loss.decisions or ())
        cells = np.bincount(labels * len(named) + least.decision_index, weights, size * len(named)).astype(np.float64)
        decided = cells.reshape(size, len(named))
        return replace(found, cost=cost, constant_costs=constant, decisions=named, decided=decided)

    def __add__(self, other: "Evaluation") -> "Evaluation":
        """Both together; their classes may differ."""
        classes = np.union1d(self.classes, other.classes)
        confusion = np.zeros((classes.size, classes.size))
        decisions = tuple(dict.fromkeys((*(self.decisions or ()), *(other.decisions or ()))))
        decided, constant = np.zeros((classes.size, len(decisions))), np.zeros(len(decisions))
        rankings = []
        for one in (self, other):
            at = np.searchsorted(classes, one.classes)
            confusion[np.ix_(at, at)] += one.confusion
            rankings.append(one.ranking if at.size == classes.size else one.ranking.among(at, classes.size))
            if one.decided is not None and one.constant_costs is not None:
                among = np.array([decisions.index(decision) for decision in one.decisions or ()], dtype=np.int64)
                decided[np.ix_(at, among)] += one.decided
                constant[among] += one.constant_costs
        both = self.cost is not None and other.cost is not None
        return Evaluation(
            classes,
            confusion,
            self.losses + other.losses,
            self.calibration + other.calibration,
            rankings[0] + rankings[1],
            (self.cost or 0.0) + (other.cost or 0.0) if both else None,
            constant if both else None,
            self.unknown + other.unknown,
            self.left_out and other.left_out,
            decisions if both else None,
            decided if both else None,
            self.copies + other.copies,
        )

    @property
    def compact(self) -> "Evaluation":
        """The same in as little room as many rows need: the AUC is then known to a hundredth of a nat of log-odds."""
        return replace(self, ranking=self.ranking.compact)

    @property
    def weight(self) -> float:
        """The weight of all rows."""
        return float(self.confusion.sum()) + self.unknown

    @property
    def accuracy(self) -> float:
        """The share of rows whose class was predicted."""
        return float(np.trace(self.confusion)) / self.weight

    @property
    def log_loss(self) -> float:
        """The mean of -log P(true class), in nats."""
        return self.losses / self.weight

    @property
    def mean_cost(self) -> float | None:
        """What the decisions of least risk cost a row on average."""
        return None if self.cost is None else self.cost / self.weight

    @property
    def auc(self) -> float | None:
        """The area under the ROC curve; of several classes, the mean of each against the rest."""
        if self.classes.size == 2:
            return self.ranking.area(1)
        known = [area for area in self.ranking.areas if area is not None]
        return float(np.mean(known)) if known else None

    @property
    def baseline(self) -> dict[str, Any]:
        """What knowing nothing but the shares of the classes is worth: "class" is the commonest, with the "accuracy" of
        always predicting it and the "log_loss" of the shares; with a loss, "decision" is the cheapest single decision,
        and "mean_cost" the cost of always deciding so."""
        rows = self.confusion.sum(axis=1)
        commonest = int(rows.argmax())
        share = rows[rows > 0.0] / max(float(rows.sum()), 1e-300)
        losses = -float(rows[rows > 0.0] @ np.log(share)) + self.unknown * MAX_LOSS
        found = {
            "class": self.classes.tolist()[commonest],
            "accuracy": float(rows[commonest]) / self.weight,
            "log_loss": losses / self.weight,
        }
        if self.constant_costs is not None and self.decisions:
            cheapest = int(self.constant_costs.argmin())
            found["decision"] = self.decisions[cheapest]
            found["mean_cost"] = float(self.constant_costs[cheapest]) / self.weight
        return found

    @property
    def beats_baseline(self) -> bool:
        """Whether the log-loss is below that of the baseline by more than chance explains."""
        return self.weight * (float(self.baseline["log_loss"]) - self.log_loss) >= BY_CHANCE

    @property
    def per_class(self) -> list[dict[str, Any]]:
        """The figures of each class: how many of those said to be of it are, how many of it are found, and their
        harmonic mean; None where that is 0/0."""
        right, true, said = np.diagonal(self.confusion), self.confusion.sum(axis=1), self.confusion.sum(axis=0)
        return [
            {
                "class": label,
                "rows": integer_if_whole(true[c]),
                "precision": _ratio(right[c], said[c]),
                "recall": _ratio(right[c], true[c]),
                "f1": _ratio(2.0 * right[c], said[c] + true[c]),
                "auc": area,
            }
            for c, (label, area) in enumerate(zip(self.classes.tolist(), self.ranking.areas, strict=True))
        ]

    @property
    def confusions(self) -> list[tuple[Any, Any, float]]:
        """(truth, prediction, weight of rows) of all mistakes, the most frequent first."""
        labels, wrong = self.classes.tolist(), self.confusion * (1.0 - np.eye(self.classes.size))
        places = np.argsort(-wrong, axis=None, kind="stable")[: np.count_nonzero(wrong)]
        pairs = zip(*np.unravel_index(places, wrong.shape), strict=True)
        return [(labels[truth], labels[said], float(wrong[truth, said])) for truth, said in pairs]

    def to_dict(self) -> dict[str, Any]:
        """The figures, for programs.

        Returns
        -------
        dict
            Of numbers, lists and dicts, as JSON has them.
        """
        figures = {
            "rows": integer_if_whole(self.weight),
            "accuracy": self.accuracy,
            "log_loss": self.log_loss,
            "auc": self.auc,
            "calibration_error": self.calibration.error,
            "baseline": self.baseline,
            "classes": self.classes.tolist(),
            "confusion": [[integer_if_whole(weight) for weight in row] for row in self.confusion.tolist()],
            "per_class": self.per_class,
            "calibration": self.calibration.to_dicts(),
            "rows_of_unknown_classes": integer_if_whole(self.unknown),
        }
        figures |= {"copies": self.copies} if self.left_out else {}
        if self.mean_cost is None or self.decided is None:
            return figures
        decided = [[integer_if_whole(weight) for weight in row] for row in self.decided.tolist()]
        return {**figures, "mean_cost": self.mean_cost, "decisions": list(self.decisions or ()), "decided": decided}

    def __str__(self) -> str:
        own = {"accuracy": self.accuracy, "log_loss": self.log_loss, "auc": self.auc}
        own |= {"calibration_error": self.calibration.error, "mean_cost": self.mean_cost}
        baseline = self.baseline
        of_all = " (no row left out)" if self.left_out else ""
        lines = [
            f"{count_noun(self.weight, 'row')}: {_figures(own)}",
            f"baseline, always {format_class(baseline['class'])}{of_all}: "
            f"{_figures({name: baseline[name] for name in ('accuracy', 'log_loss')})}",
        ]
        if "decision" in baseline:
            lines.append(
                f"baseline, always deciding {format_class(baseline['decision'])}: mean cost {baseline['mean_cost']:.4f}"
            )
        if not self.beats_baseline:
            lines.append("in log-loss no better than the baseline, which knows nothing of the columns")
            if self.left_out and self.accuracy < baseline["accuracy"]:
                lines.append(LEFT_OUT_OF_SHARES)
        if self.unknown:
            lines.append(f"of a class that was not learned: {count_noun(self.unknown, 'row')}")
        if self.copies:
            lines.append(copies_in_words(self.copies))
        tables = [*self._decisions_table(), *self._mistakes(), self._classes_table(), str(self.calibration)]
        return "\n\n".join(["\n".join(lines), *tables])

    def _decisions_table(self) -> list[str]:
        """The least-risk decisions by true class, where the loss has few enough."""
        if self.decided is None or max(self.decided.shape) > MAX_ACROSS:
            return []
        cells = [["truth / decision", *map(format_class, self.decisions or ())]]
        pairs = zip(self.classes, self.decided, strict=True)
        cells += [[format_class(label), *map(format_amount, row)] for label, row in pairs]
        return [align_table(cells, right=range(self.decided.shape[1] + 1))]

    def _mistakes(self) -> list[str]:
        """The matrix of confusions, or the most frequent ones where that is too wide."""
        names = [format_class(label) for label in self.classes]
        if len(names) <= MAX_ACROSS:
            cells = [["truth / predicted", *names]]
            cells += [[name, *map(format_amount, row)] for name, row in zip(names, self.confusion, strict=True)]
            return [align_table(cells, right=range(len(names) + 1))]
        found = self.confusions
        if not found:
            return []
        lines = [("truth", "predicted", "rows")]
        lines += [
            (format_class(truth), format_class(said), format_amount(weight))
            for truth, said, weight in found[:MAX_CONFUSIONS]
        ]
        rest = len(found) - MAX_CONFUSIONS
        more = f"\n… ({count_noun(rest, 'rarer confusion')}: to_dict())" if rest > 0 else ""
        return [f"the most frequent confusions\n{align_table(lines, right=[2])}{more}"]

    def _classes_table(self) -> str:
        """Precision, recall and F1 of each class; of many, those with the most rows."""
        columns = ["precision", "recall", "f1", *(["auc"] if self.classes.size > 2 else [])]
        found = self.per_class
        most = sorted(range(len(found)), key=lambda c: -found[c]["rows"])[:MAX_CLASSES_LISTED]
        lines = [["class", "rows", *(NAMES.get(name, name) for name in columns)]]
        for one in (found[c] for c in sorted(most)):
            figures = ["" if one[name] is None else f"{one[name]:.4f}" for name in columns]
            lines.append([format_class(one["class"]), format_amount(one["rows"]), *figures])
        rest = len(found) - len(most)
        more = f"\n… ({count_noun(rest, 'class')} with fewer rows: to_dict())" if rest else ""
        return align_table(lines, right=range(1, len(columns) + 2)) + more


def _ratio(part: float, whole: float) -> float | None:
    return float(part / whole) if whole > 0.0 else None


def _figures(figures: Mapping[str, float | None]) -> str:
    known = {name: value for name, value in figures.items() if value is not None and not np.isnan(value)}
    return ", ".join(f"{NAMES.get(name, name)} {value:.4f}" for name, value in known.items())
