"""Prediction sets: the classes that each row may have, with a stated coverage."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from deciban.decisions.decide import Decisions, choose_decisions
from deciban.decisions.loss import Loss
from deciban.errors import Argument, UsageError
from deciban.model.conformity import bin_posteriors, lowest_posterior
from deciban.model.fitted import Fitted
from deciban.tables.labels import LabelArray
from deciban.util.arrays import Flags, Floats, Integers
from deciban.util.results import Part, Result, TextTable
from deciban.util.text_tables import count_noun, format_class, format_three

# Lines of sets that are printed.
MAX_LINES_PRINTED = 20


def format_set(labels: list[Any]) -> str:
    """Return a set of classes as text.

    >>> format_set(["no", "yes"]), format_set([])
    ('{no, yes}', '{}')
    """
    return f"{{{', '.join(map(format_class, labels))}}}"


@dataclass(frozen=True, repr=False)
class PredictionSets(Result):
    """Set of classes of each row, which contains the true class with the given coverage; print it for a table.

    `BayesClassifier.predict_set` returns it. `len`, indexing and iteration give the sets as lists of classes.
    `to_frame` returns a line for each row: ``set`` (as text) and ``size``.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        Class labels.
    coverage : float
        Share of new rows whose set contains their class.
    members : ndarray of shape (n_rows, n_classes)
        True where the class belongs to the set of the row.
    thresholds : ndarray of shape (n_classes,)
        Posterior probability from which each class belongs to a set, except that no set is empty without `allow_empty`.
    per_class : bool
        True if the coverage holds in each class.
    stale : bool
        True if the model has changed since its conformity scores were computed: the coverage is then approximate.
    """

    classes: LabelArray
    coverage: float
    members: Flags
    thresholds: Floats
    per_class: bool
    stale: bool

    @property
    def sizes(self) -> Integers:
        """Number of classes in each set."""
        return np.asarray(self.members.sum(axis=1))

    def __len__(self) -> int:
        return len(self.members)

    def __getitem__(self, row: int) -> list[Any]:
        labels: list[Any] = self.classes[self.members[row]].tolist()
        return labels

    def __iter__(self) -> Iterator[list[Any]]:
        return map(self.__getitem__, range(len(self)))

    def _columns(self) -> dict[str, Any]:
        return {"set": list(map(format_set, self)), "size": self.sizes}

    def to_dict(self) -> dict[str, Any]:
        """Return the sets as lists, with the coverage and the thresholds by class.

        Returns
        -------
        dict
        """
        thresholds = {
            format_class(label): t for label, t in zip(self.classes.tolist(), self.thresholds.tolist(), strict=True)
        }
        settings = {"coverage": self.coverage, "per_class": self.per_class, "stale": self.stale}
        return {**settings, "thresholds": thresholds, "sets": list(self)}

    def _parts(self) -> list[Part]:
        shown = range(min(len(self), MAX_LINES_PRINTED))
        lines = [(str(row), format_set(self[row])) for row in shown]
        title = f"prediction sets with {100 * self.coverage:g}% coverage{' in each class' * self.per_class}"
        mean = format_three(float(self.sizes.mean())) if len(self) else "0"
        title += f": mean size {mean}{'; stale, so the coverage is approximate' * self.stale}"
        more = len(self) - len(lines)
        notes = [f"… ({count_noun(more, 'more row')}: to_frame())"] if more else []
        return [TextTable(lines, ("row", "set"), title=title, notes=notes)]


def choose_sets(
    fitted: Fitted, posterior: Floats, coverage: float, per_class: bool = False, allow_empty: bool = True
) -> PredictionSets:
    """Return the prediction sets of rows with these posteriors; raise a UsageError without conformity scores."""
    scores = None if fitted.tuning is None else fitted.tuning.conformity
    if scores is None:
        raise UsageError(
            "the model has no conformity scores, which prediction sets need",
            remedy="fit with tuning, or call conformalize() with labeled rows",
        )
    first = scores.first_bins(coverage, per_class)
    members = bin_posteriors(posterior) >= first
    if not allow_empty:
        empty = np.flatnonzero(~members.any(axis=1))
        members[empty, posterior[empty].argmax(axis=1)] = True
    return PredictionSets(fitted.classes, coverage, members, lowest_posterior(first), per_class, scores.stale)


def decide_by_sets(posterior: Floats, sets: PredictionSets, loss: Loss) -> Decisions:
    """Return for each row the decision that is best for every class of its set, or else the set of those decisions.

    The risk of a set of decisions is the expected cost if the best of them is taken once the class is known.
    """
    if loss.varies_by_row:
        raise UsageError(
            "costs that vary by row do not support sets",
            remedy="give the same costs for every row",
            parameter=Argument("coverage", sets.coverage),
        )
    plain, matrix = choose_decisions(posterior, loss), loss.matrix
    best = matrix.argmin(axis=0)  # the best decision for each class
    options = np.zeros((len(posterior), len(matrix)), dtype=np.bool_)
    rows, classes = np.nonzero(sets.members)
    options[rows, best[classes]] = True
    several, place = np.unique(options, axis=0, return_inverse=True)
    labels, chosen = list(loss.decisions or ()), np.empty(len(several), dtype=np.int32)
    costs = [*matrix]
    for k, option in enumerate(several):
        kept = np.flatnonzero(option)
        chosen[k] = kept[0] if kept.size == 1 else len(costs)
        if kept.size > 1:
            costs.append(matrix[kept].min(axis=0))
            labels.append(format_set([labels[d] for d in kept]))
    index = chosen[place.reshape(-1)]
    extended = Loss._derive(np.stack(costs), tuple(labels), loss.classes)
    risk = np.einsum("nc,nc->n", posterior, np.stack(costs)[index])
    same = index == plain.decision_index
    second, second_risk = (
        np.where(same, plain.second_best_index, plain.decision_index),
        np.where(same, plain.second_best_risk, plain.risk),
    )
    return Decisions(extended, index, risk, second, second_risk)
