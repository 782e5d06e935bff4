"""How good posteriors and decisions are on rows whose class is known: sums that add up over batches and folds."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.base import clone

from deciban.arrays import Codes, Floats, Integers
from deciban.classifier import BayesClassifier
from deciban.data.drawing import lots
from deciban.data.examples import Labelled, LabelledStream
from deciban.data.labels import LabelArray, encode_labels
from deciban.data.stream import Stream
from deciban.decisions.loss import Loss
from deciban.errors import DataError
from deciban.leave_one_out import LEAST_PROBABILITY, Calibration
from deciban.text_tables import aligned, amount, counted


@dataclass(frozen=True)
class Judgement:
    """What was said of some rows against what is true. `confusion` is truth by prediction, in the order of `classes`.

    `strange` is the weight of rows whose class the model does not know: wrong, with probability 0.
    """

    classes: LabelArray
    confusion: Floats
    losses: float
    calibration: Calibration
    cost: float | None
    strange: float = 0.0

    @classmethod
    def of(
        cls, posterior: Floats, labels: Codes, weights: Floats, classes: LabelArray, strange: float, loss: Loss | None
    ) -> "Judgement":
        """labels: the place of the true class of each row among `classes`."""
        size, best = classes.size, posterior.argmax(axis=1)
        confusion = np.bincount(labels * size + best, weights, size * size).astype(np.float64).reshape(size, size)
        chance = np.maximum(posterior[np.arange(best.size), labels], LEAST_PROBABILITY)
        losses = float(weights @ -np.log(chance)) - strange * np.log(LEAST_PROBABILITY)
        cost = None
        if loss is not None:
            costs = loss.matrix
            cost = float(weights @ costs[(posterior @ costs.T).argmin(axis=1), labels])
        return cls(classes, confusion, losses, Calibration.of(posterior, labels, weights), cost, strange)

    def __add__(self, other: "Judgement") -> "Judgement":
        """Both together; their classes may differ."""
        classes = np.union1d(self.classes, other.classes)
        confusion = np.zeros((classes.size, classes.size))
        for one in (self, other):
            at = np.searchsorted(classes, one.classes)
            confusion[np.ix_(at, at)] += one.confusion
        cost = None if self.cost is None or other.cost is None else self.cost + other.cost
        losses, calibration = self.losses + other.losses, self.calibration + other.calibration
        return Judgement(classes, confusion, losses, calibration, cost, self.strange + other.strange)

    @property
    def weight(self) -> float:
        return float(self.confusion.sum()) + self.strange

    @property
    def accuracy(self) -> float:
        return float(np.trace(self.confusion)) / self.weight

    @property
    def log_loss(self) -> float:
        return self.losses / self.weight

    @property
    def mean_cost(self) -> float | None:
        """What the decisions of least risk cost a row on average."""
        return None if self.cost is None else self.cost / self.weight

    def as_dict(self) -> dict[str, Any]:
        """The figures, for programs."""
        figures = {
            "rows": self.weight,
            "accuracy": self.accuracy,
            "log_loss": self.log_loss,
            "calibration_error": self.calibration.error,
            "classes": self.classes.tolist(),
            "confusion": self.confusion.tolist(),
            "rows_of_unknown_classes": self.strange,
        }
        return figures if self.mean_cost is None else {**figures, "mean_cost": self.mean_cost}

    def __str__(self) -> str:
        cost = "" if self.mean_cost is None else f", mean cost {self.mean_cost:.4f}"
        lines = [
            f"{counted(self.weight, 'row')}: accuracy {self.accuracy:.4f}, log-loss {self.log_loss:.4f}, "
            f"calibration error {self.calibration.error:.4f}{cost}"
        ]
        if self.strange:
            lines.append(f"of a class that was not learned: {counted(self.strange, 'row')}")
        names = [str(label) for label in self.classes]
        if len(names) <= 12:
            cells = [["truth / predicted", *names]]
            cells += [[name, *map(amount, row)] for name, row in zip(names, self.confusion, strict=True)]
            lines.append(aligned(cells, right=range(len(names) + 1)))
        return "\n".join([*lines, "", str(self.calibration)])


def judge(clf: BayesClassifier, rows: Labelled | LabelledStream, loss: Any = None) -> Judgement:
    """What a classifier says of rows that it has not learned."""
    return _summed(clf, rows, loss, lambda piece: clf.predict_proba(piece.table))


def judge_left_out(clf: BayesClassifier, rows: Labelled | LabelledStream, loss: Any = None) -> Judgement:
    """What it says of rows that it has learned, each left out in its turn."""

    def posterior(piece: Labelled) -> Floats:
        y = piece.labels.classes[piece.labels.codes]
        return clf.leave_one_out(piece.table, y, piece.weights).posterior

    return _summed(clf, rows, loss, posterior)


def _summed(
    clf: BayesClassifier, rows: Labelled | LabelledStream, loss: Any, posterior: Callable[[Labelled], Floats]
) -> Judgement:
    classes = clf.classes_
    fitting = None if loss is None else Loss.of(loss).fitting(list(classes))
    total: Judgement | None = None
    with rows.naming():
        for piece in rows.pieces():
            labels, weights = piece.labels, np.ones(piece.table.rows) if piece.weights is None else piece.weights
            known = np.append(np.isin(labels.classes, classes), False)[labels.codes]
            kept = np.flatnonzero(known & (weights > 0.0))
            strange = float(weights[(labels.codes >= 0) & ~known].sum())
            place = np.append(np.searchsorted(classes, labels.classes), -1)[labels.codes[kept]].astype(np.int32)
            part = Labelled(piece.table.take(kept), replace(labels, codes=labels.codes[kept]), weights[kept])
            found = posterior(part) if kept.size else np.zeros((0, classes.size))
            one = Judgement.of(found, place, weights[kept], classes, strange, fitting)
            total = one if total is None else total + one
    if total is None or not total.weight > 0.0:
        raise DataError("no row has a label and a weight; give at least one to compare with")
    return total


@dataclass(frozen=True)
class Fold(Stream):
    """The rows of a stream that are in one of some folds, or all the others; each class is spread over all folds.

    The rows of a class are dealt out in rounds, one to each fold, in an order drawn by lot.
    """

    stream: Stream
    target: str
    folds: int
    fold: int
    inside: bool

    @property
    def names(self) -> tuple[str, ...]:
        return self.stream.names

    @property
    def expected(self) -> int | None:
        whole = self.stream.expected
        share = 1 / self.folds if self.inside else 1 - 1 / self.folds
        return None if whole is None else int(whole * share)

    @property
    def typed(self) -> bool:
        return self.stream.typed

    def tables(self) -> Iterator[pa.Table]:
        dealt: dict[Any, int] = {}
        for table in self.stream.tables():
            yield table.filter(pa.array((self._folds(table, dealt) == self.fold) == self.inside))

    def _folds(self, table: pa.Table, dealt: dict[Any, int]) -> Integers:
        labels = encode_labels(table[self.target], table.num_rows)
        folds = np.zeros(table.num_rows, dtype=np.int64)
        for c, label in enumerate(labels.classes.tolist()):
            rows = np.flatnonzero(labels.codes == c)
            numbers = dealt.get(label, 0) + np.arange(rows.size)
            dealt[label] = dealt.get(label, 0) + rows.size
            rounds = numbers // self.folds
            turns = (lots(int(rounds[0]), int(rounds[-1] - rounds[0]) + 1) % np.uint64(self.folds)).astype(np.int64)
            folds[rows] = (numbers + turns[rounds - rounds[0]]) % self.folds
        return folds

    def reading_as(self, types: Mapping[str, str]) -> "Fold":
        return replace(self, stream=self.stream.reading_as(types))

    def settled(self, sample: pa.Table) -> tuple[Stream, pa.Table]:
        stream, table = self.stream.settled(sample)
        return replace(self, stream=stream), table

    def naming(self) -> AbstractContextManager[None]:
        return self.stream.naming()


def judge_folds(
    clf: BayesClassifier, rows: LabelledStream, folds: int, loss: Any = None, only: int | None = None
) -> Judgement:
    """Rows judged by what the others of the table teach: the table is cut into folds, each is judged by the rest.

    The classifier gives the parameters. With `only`, so many of the folds: one of five is a hold-out of a fifth.
    """
    total: Judgement | None = None
    for fold in range(folds if only is None else only):
        inside, outside = (Fold(rows.stream, rows.target, folds, fold, side) for side in (True, False))
        learned = clone(clf).fit(outside, rows.target, rows.weight)
        one = judge(learned, replace(rows, stream=inside), loss)
        total = one if total is None else total + one
    assert total is not None, "there is at least one fold"
    return total
