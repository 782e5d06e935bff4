"""How good posteriors and decisions are on rows whose class is known: sums that add up over batches and folds."""

import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from deciban.arrays import Codes, Floats, Integers
from deciban.classifier import Classifier
from deciban.data.drawing import lots
from deciban.data.examples import Labelled, LabelledStream
from deciban.data.labels import LabelArray, encode_labels
from deciban.data.stream import Stream
from deciban.data.tables import Table
from deciban.decisions.loss import Loss
from deciban.errors import DataError, DecibanError
from deciban.fit import batches, count, in_order
from deciban.leave_one_out import BY_CHANCE, LEAST_PROBABILITY, Calibration
from deciban.model import Counts
from deciban.progress import Advance, progress, stages
from deciban.ranking import Ranking
from deciban.store.model_file import identity
from deciban.text_tables import aligned, amount, class_name, counted, whole

# What is lost by the claim that what is true is impossible.
LARGEST_LOSS = -float(np.log(LEAST_PROBABILITY))

# What people call the figures, and how many classes and confusions they are shown.
NAMES = {"log_loss": "log-loss", "auc": "AUC", "f1": "F1", "calibration_error": "calibration error",
         "mean_cost": "mean cost"}  # fmt: skip
LEFT_OUT_OF_SHARES = ("each row is left out of the shares of the classes too, by which another class than its own is a "
                      "little more probable: where columns tell nothing, accuracy and AUC fall towards 0")  # fmt: skip
MOST_ACROSS = 12
MOST_CONFUSIONS = 12
MOST_CLASSES = 40


@dataclass(frozen=True)
class Judgement:
    """What was said of some rows against what is true. `confusion` is truth by prediction, in the order of `classes`.

    `strange` is the weight of rows whose class the model does not know: wrong, with probability 0.
    `left_out`: the rows were learned, and each was left out in its turn.
    `constant_costs` is what each decision would cost in total, were it made of every row.
    """

    classes: LabelArray
    confusion: Floats
    losses: float
    calibration: Calibration
    ranking: Ranking
    cost: float | None
    constant_costs: Floats | None = None
    strange: float = 0.0
    left_out: bool = False

    @classmethod
    def of(
        cls, posterior: Floats, labels: Codes, weights: Floats, classes: LabelArray, strange: float, loss: Loss | None
    ) -> "Judgement":
        """labels: the place of the true class of each row among `classes`."""
        size, best = classes.size, posterior.argmax(axis=1)
        confusion = np.bincount(labels * size + best, weights, size * size).astype(np.float64).reshape(size, size)
        chance = np.maximum(posterior[np.arange(best.size), labels], LEAST_PROBABILITY)
        losses = float(weights @ -np.log(chance)) + strange * LARGEST_LOSS
        cost = constant = None
        if loss is not None:
            costs = loss.matrix
            cost = float(weights @ costs[(posterior @ costs.T).argmin(axis=1), labels])
            constant = costs @ confusion.sum(axis=1)
        calibration, ranking = Calibration.of(posterior, labels, weights), Ranking(posterior, labels, weights)
        return cls(classes, confusion, losses, calibration, ranking, cost, constant, strange)

    def __add__(self, other: "Judgement") -> "Judgement":
        """Both together; their classes may differ."""
        classes = np.union1d(self.classes, other.classes)
        confusion = np.zeros((classes.size, classes.size))
        rankings = []
        for one in (self, other):
            at = np.searchsorted(classes, one.classes)
            confusion[np.ix_(at, at)] += one.confusion
            rankings.append(one.ranking if at.size == classes.size else one.ranking.among(at, classes.size))
        costs = None if self.cost is None or other.cost is None else self.cost + other.cost
        constant = None
        if self.constant_costs is not None and other.constant_costs is not None:
            constant = self.constant_costs + other.constant_costs
        return Judgement(
            classes,
            confusion,
            self.losses + other.losses,
            self.calibration + other.calibration,
            rankings[0] + rankings[1],
            costs,
            constant,
            self.strange + other.strange,
            self.left_out and other.left_out,
        )

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

    @property
    def auc(self) -> float | None:
        """The area under the ROC curve; of several classes, the mean of each against the rest."""
        if self.classes.size == 2:
            return self.ranking.area(1)
        known = [area for area in self.ranking.areas if area is not None]
        return float(np.mean(known)) if known else None

    @property
    def baseline(self) -> dict[str, Any]:
        """What knowing nothing but the shares of the classes is worth: always the commonest class, each class as
        probable as it is common, always the decision that is cheapest then."""
        rows = self.confusion.sum(axis=1)
        commonest = int(rows.argmax())
        share = rows[rows > 0.0] / max(float(rows.sum()), 1e-300)
        losses = -float(rows[rows > 0.0] @ np.log(share)) + self.strange * LARGEST_LOSS
        found = {
            "class": self.classes.tolist()[commonest],
            "accuracy": float(rows[commonest]) / self.weight,
            "log_loss": losses / self.weight,
        }
        if self.constant_costs is not None:
            found["mean_cost"] = float(self.constant_costs.min()) / self.weight
        return found

    @property
    def per_class(self) -> list[dict[str, Any]]:
        """The figures of each class: how many of those said to be of it are, how many of it are found, and their
        harmonic mean; None where that is 0/0."""
        right, true, said = np.diagonal(self.confusion), self.confusion.sum(axis=1), self.confusion.sum(axis=0)
        return [
            {
                "class": label,
                "rows": whole(true[c]),
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

    def as_dict(self) -> dict[str, Any]:
        """The figures, for programs."""
        figures = {
            "rows": whole(self.weight),
            "accuracy": self.accuracy,
            "log_loss": self.log_loss,
            "auc": self.auc,
            "calibration_error": self.calibration.error,
            "baseline": self.baseline,
            "classes": self.classes.tolist(),
            "confusion": [[whole(weight) for weight in row] for row in self.confusion.tolist()],
            "per_class": self.per_class,
            "calibration": self.calibration.as_dicts(),
            "rows_of_unknown_classes": whole(self.strange),
        }
        return figures if self.mean_cost is None else {**figures, "mean_cost": self.mean_cost}

    def __str__(self) -> str:
        own = {"accuracy": self.accuracy, "log_loss": self.log_loss, "auc": self.auc}
        own |= {"calibration_error": self.calibration.error, "mean_cost": self.mean_cost}
        baseline = self.baseline
        of_all = " (no row left out)" if self.left_out else ""
        lines = [
            f"{counted(self.weight, 'row')}: {_figures(own)}",
            f"baseline, always {class_name(baseline.pop('class'))}{of_all}: {_figures(baseline)}",
        ]
        if self.weight * (baseline["log_loss"] - self.log_loss) < BY_CHANCE:
            lines.append("in log-loss no better than the baseline, which knows nothing of the columns")
            if self.left_out and self.accuracy < baseline["accuracy"]:
                lines.append(LEFT_OUT_OF_SHARES)
        if self.strange:
            lines.append(f"of a class that was not learned: {counted(self.strange, 'row')}")
        return "\n\n".join(["\n".join(lines), *self._mistakes(), self._classes_table(), str(self.calibration)])

    def _mistakes(self) -> list[str]:
        """The matrix of confusions, or the most frequent ones where that is too wide."""
        names = [class_name(label) for label in self.classes]
        if len(names) <= MOST_ACROSS:
            cells = [["truth / predicted", *names]]
            cells += [[name, *map(amount, row)] for name, row in zip(names, self.confusion, strict=True)]
            return [aligned(cells, right=range(len(names) + 1))]
        found = self.confusions
        if not found:
            return []
        lines = [("truth", "predicted", "rows")]
        lines += [
            (class_name(truth), class_name(said), amount(weight)) for truth, said, weight in found[:MOST_CONFUSIONS]
        ]
        rest = len(found) - MOST_CONFUSIONS
        more = f"\n… ({counted(rest, 'rarer confusion')}: --json)" if rest > 0 else ""
        return [f"the most frequent confusions\n{aligned(lines, right=[2])}{more}"]

    def _classes_table(self) -> str:
        """Precision, recall and F1 of each class; of many, those with the most rows."""
        columns = ["precision", "recall", "f1", *(["auc"] if self.classes.size > 2 else [])]
        found = self.per_class
        most = sorted(range(len(found)), key=lambda c: -found[c]["rows"])[:MOST_CLASSES]
        lines = [["class", "rows", *(NAMES.get(name, name) for name in columns)]]
        for one in (found[c] for c in sorted(most)):
            figures = ["" if one[name] is None else f"{one[name]:.4f}" for name in columns]
            lines.append([class_name(one["class"]), amount(one["rows"]), *figures])
        rest = len(found) - len(most)
        more = f"\n… ({counted(rest, 'class')} with fewer rows: --json)" if rest else ""
        return aligned(lines, right=range(1, len(columns) + 2)) + more


def _ratio(part: float, whole: float) -> float | None:
    return float(part / whole) if whole > 0.0 else None


def _figures(figures: Mapping[str, float | None]) -> str:
    known = {name: value for name, value in figures.items() if value is not None and not np.isnan(value)}
    return ", ".join(f"{NAMES.get(name, name)} {value:.4f}" for name, value in known.items())


def judge(clf: Classifier, rows: Labelled | LabelledStream, loss: Any = None) -> Judgement:
    """What a classifier says of rows that it has not learned."""
    with progress("judging", "rows", rows.expected) as advance:
        return _summed(clf, rows, loss, lambda piece: clf.predict_proba(piece.table), advance)


def judge_and_recognise(
    clf: Classifier, rows: Labelled | LabelledStream, loss: Any, observe: Callable[[Table], None]
) -> tuple[Judgement, bool]:
    """What a classifier says of rows, and whether they are just what it has learned: all of it, or a set of rows that
    was learned at once. In one pass, in which each piece is shown to `observe`."""
    recount = _Recount(clf)

    def posterior(piece: Labelled) -> Floats:
        observe(piece.table)
        recount.add(piece)
        return clf.predict_proba(piece.table)

    with progress("judging", "rows", rows.expected) as advance:
        found = _summed(clf, rows, loss, posterior, advance)
    return found, not found.strange and recount.is_known


class _Recount:
    """Counts rows as a model has counted its own, as long as they may be those."""

    def __init__(self, clf: Classifier) -> None:
        self._clf, self._known = clf, clf.counts_
        self._counts: Counts | None = Counts.empty(self._known.schema.plain)

    def add(self, piece: Labelled) -> None:
        if self._counts is None:
            return
        schema = self._counts.schema
        try:
            for more in in_order(lambda batch: count(batch, schema), batches(piece, schema), self._clf.threads):
                self._counts = self._counts + more
        except DecibanError:  # a row that cannot be learned was not
            self._counts = None
            return
        if self._counts.rows > self._known.rows:
            self._counts = None

    @property
    def is_known(self) -> bool:
        if self._counts is None or not self._counts.rows:
            return False
        return identity(self._counts) in (*self._clf.shards_, identity(self._known))


def judge_left_out(clf: Classifier, rows: Labelled | LabelledStream, loss: Any = None) -> Judgement:
    """What it says of rows that it has learned, each left out in its turn."""

    def posterior(piece: Labelled) -> Floats:
        y = piece.labels.classes[piece.labels.codes]
        return clf.leave_one_out(piece.table, y, piece.weights).posterior

    return replace(_summed(clf, rows, loss, posterior), left_out=True)


def _summed(
    clf: Classifier,
    rows: Labelled | LabelledStream,
    loss: Any,
    posterior: Callable[[Labelled], Floats],
    advance: Advance = lambda done: None,
) -> Judgement:
    classes, schema = clf.model_.classes, clf.model_.schema
    fitting = None if loss is None else Loss.of(loss).fitting(list(classes))
    total: Judgement | None = None
    with rows.naming():
        for piece in rows.pieces():
            labels, weights = piece.labels, np.ones(piece.table.rows) if piece.weights is None else piece.weights
            known = np.append(np.isin(labels.classes, classes), False)[labels.codes]
            kept = np.flatnonzero(known & (weights > 0.0))
            strange = float(weights[(labels.codes >= 0) & ~known].sum())
            place = np.append(np.searchsorted(classes, labels.classes), -1)[labels.codes[kept]].astype(np.int32)
            table = schema.of_learned_types(piece.table, piece.first_row)
            part = Labelled(table.take(kept), replace(labels, codes=labels.codes[kept]), weights[kept])
            found = posterior(part) if kept.size else np.zeros((0, classes.size))
            one = Judgement.of(found, place, weights[kept], classes, strange, fitting)
            total = one if total is None else total + one
            advance(piece.table.rows)
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


@contextmanager
def _warning_once(heard: set[str]) -> Iterator[None]:
    """Warnings that differ from those `heard` before by nothing but numbers are not given again."""
    with warnings.catch_warnings(record=True) as given:
        yield
    for one in given:
        text = re.sub(r"\b\d[\d,]*\b", "0", str(one.message))
        if text not in heard:
            heard.add(text)
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)


def judge_folds(
    clf: Classifier, rows: LabelledStream, folds: int, loss: Any = None, only: int | None = None
) -> Judgement:
    """Rows judged by what the others of the table teach: the table is cut into folds, each is judged by the rest.

    The classifier gives the parameters. With `only`, so many of the folds: one of five is a hold-out of a fifth.
    """
    _refuse_few(rows, folds if only is None else 2)
    total: Judgement | None = None
    judged = folds if only is None else only
    heard: set[str] = set()
    with stages("fold", judged) as begin:
        for fold in range(judged):
            begin(fold)
            inside, outside = (Fold(rows.stream, rows.target, folds, fold, side) for side in (True, False))
            with _warning_once(heard):
                learned = type(clf)(**clf.parameters()).fit(outside, rows.target, rows.weight)
            one = judge(learned, replace(rows, stream=inside), loss)
            total = one if total is None else total + one
    assert total is not None, "there is at least one fold"
    return total


def _refuse_few(rows: LabelledStream, folds: int) -> None:
    """Refuse a table in which no class has a row for each fold: then a fold is empty, or all rows are in one."""
    table_rows, times, most = 0, Counter[Any](), 0
    with rows.naming():
        for piece in rows.pieces():
            table_rows += piece.table.rows
            codes = piece.labels.codes if piece.weights is None else piece.labels.codes[piece.weights > 0.0]
            times.update(piece.labels.classes[codes[codes >= 0]].tolist())
            most = max(times.values(), default=0)
            if most >= folds:
                return
        if not table_rows:
            raise DataError("the table has no rows; there is nothing to learn from")
        if not times:
            weight = "" if rows.weight is None else " and a weight"
            raise DataError(f"no row has a label{weight}; fill in {rows.target!r}, or name another column")
        if times.total() == 1:
            raise DataError("only one row has a label, and one row cannot be cut into folds; give more rows")
        if most == 1:
            raise DataError("no class has two rows, one to learn and one to judge; give more rows")
        raise DataError(
            f"no class has more than {most} rows, too few for {folds} folds; give more rows, or folds={most}"
        )
