"""Label errors: rows whose given label is improbable for a model that has not learned them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from deciban.errors import Argument, DataError, UsageError
from deciban.evaluation.validation import NO_LABELED_ROWS, read_learned_rows, score_left_out
from deciban.explain.explanation import Explanation
from deciban.fitting.tune.rows import find_copies
from deciban.model.fitted import Fitted
from deciban.model.model import posteriors
from deciban.scoring.predict import score_table
from deciban.sources.streams import Examples
from deciban.tables.labels import LabelArray
from deciban.util.arrays import Codes, Floats, Integers
from deciban.util.results import Part, Result, TextTable
from deciban.util.text_tables import count_noun, format_amount, format_class

# An issue has at least this probability: a check pays if an overlooked error costs five checks or more.
MIN_PROBABILITY = 0.2

# No label is certainly wrong, because the rates of wrong labels are estimates.
MAX_PROBABILITY = 0.99

# Standard errors between the share of a label and its lower bound: fewer overestimate it in few rows.
STANDARD_ERRORS = 3.0

# Rows with the mean rate of wrong labels that are added to those of each class: fewer give noisy rates.
PRIOR_ROWS = 50.0

# Highest mean rate of these rows: in small tables a higher one is more probably due to classes that overlap.
MAX_PRIOR_RATE = 0.05

# Issues may be hard rows, if this share of the rows is misclassified beyond the expected number of wrong labels.
MAX_HARD_SHARE = 0.1

# They also may be, if fewer of the surest rows of a class have its label.
MIN_SURE_SHARE = 0.8

# Issues that are printed.
MAX_ISSUES_PRINTED = 20

# Terms of evidence that are printed for each issue.
MAX_TERMS_PRINTED = 3


@dataclass(frozen=True, repr=False)
class LabelIssues(Result):
    """Rows whose label is probably wrong, the most probable errors first; print it for a table.

    `BayesClassifier.label_issues` returns it. `to_frame` returns a line for each issue: ``row``, ``given``,
    ``suggested``, ``probability`` and ``evidence`` (the largest terms for the suggested class, in decibans).

    Parameters
    ----------
    rows : ndarray of int
        Row numbers: from 0 for rows in memory, from 1 for files.
    given : ndarray
        Given label of each of these rows.
    suggested : ndarray
        Its most probable class.
    probability : ndarray of float
        Probability that the given label is wrong, at most 0.99. If classes overlap, it is too high.
    explanation : Explanation
        Evidence for the suggested class against the given one, row by row, by a model without the row.
    classes : ndarray of shape (n_classes,)
        The classes, sorted.
    noise : ndarray of shape (n_classes, n_classes)
        Estimated probability of each given label (column) for each true class (row).
    expected : float
        Expected number of wrong labels, including rows that are not listed.
    checked : float
        Weight of all rows with a label.
    error_rate : float
        Share of these rows whose given label is not the most probable class. If it is high, the output contains a note:
        issues may be rows with a correct label.

    See Also
    --------
    BayesClassifier.leave_one_out : Posteriors of all training rows, each left out.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from deciban import BayesClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> labels = y.map(dict(enumerate(["setosa", "versicolor", "virginica"])))
    >>> labels[3] = "virginica"
    >>> print(BayesClassifier(tune=None).fit(X, labels).label_issues())
    1 issue in 150 labels; expected number of wrong labels: 1
    <BLANKLINE>
    row  given      suggested  P(wrong)  evidence for the suggested class, in decibans
      3  virginica  setosa         0.99  petal length (cm) = 1.5 +124.3, petal width (cm) = 0.2 +101.6,
                                           sepal length (cm) = 4.6 +21.2
    """

    rows: Integers
    given: LabelArray
    suggested: LabelArray
    probability: Floats
    explanation: Explanation
    classes: LabelArray
    noise: Floats
    expected: float
    checked: float
    error_rate: float

    @property
    def _may_be_hard_rows(self) -> bool:
        """True if the classes overlap, so that issues may be rows with a correct label."""
        hard_share = self.error_rate - self.expected / self.checked
        return bool(self.rows.size) and (hard_share >= MAX_HARD_SHARE or self.noise.diagonal().min() < MIN_SURE_SHARE)

    def describe_evidence(self, issue: int) -> str:
        """Return the largest terms of evidence for the suggested class as text; of texts, their words.

        Parameters
        ----------
        issue : int
            Position of the row in `rows`.

        Returns
        -------
        str
        """
        texts = self.explanation.words(issue)
        of_texts, terms = {text.column for text in texts}, self.explanation.terms(issue)
        found = [(repr(word), decibans) for text in texts for word, decibans in text.terms]
        found += [(term.label, term.decibans) for term in terms if term.fields["column"] not in of_texts]
        largest = sorted((one for one in found if one[1] > 0.0), key=lambda one: -one[1])[:MAX_TERMS_PRINTED]
        return ", ".join(f"{label} {decibans:+.1f}" for label, decibans in largest)

    def _columns(self) -> dict[str, Any]:
        evidence = [self.describe_evidence(k) for k in range(self.rows.size)]
        return {
            "row": self.rows,
            "given": self.given,
            "suggested": self.suggested,
            "probability": self.probability,
            "evidence": evidence,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the issues, each with its evidence, as plain values.

        Returns
        -------
        dict
            ``rows`` is the number of rows that were checked, ``expected`` the expected number of wrong labels,
            ``error_rate`` the share of misclassified rows. ``issues`` lists the rows, with the fields of
            `Explanation.to_dict`.
        """
        issues = [
            {
                "row": int(self.rows[k]),
                "given": self.given[k],
                "suggested": self.suggested[k],
                "probability": float(self.probability[k]),
                **{name: value for name, value in self.explanation.to_dict(k).items() if name in ("evidence", "words")},
            }
            for k in range(self.rows.size)
        ]
        return {
            "rows": self.checked,
            "expected": self.expected,
            "error_rate": self.error_rate,
            "classes": self.classes.tolist(),
            "noise": self.noise.tolist(),
            "issues": issues,
        }

    def _parts(self) -> list[Part]:
        issues, checked = count_noun(self.rows.size, "issue"), count_noun(self.checked, "label")
        title = f"{issues} in {checked}; expected number of wrong labels: {format_amount(round(self.expected))}"
        if self._may_be_hard_rows:
            title += f"\nnote: {self.error_rate:.0%} of these rows are misclassified, so the classes overlap; "
            title += "issues may be hard rows with a correct label"
        shown = range(min(self.rows.size, MAX_ISSUES_PRINTED))
        if not shown:
            return [title]
        lines = [
            (
                str(self.rows[k]),
                format_class(self.given[k]),
                format_class(self.suggested[k]),
                f"{self.probability[k]:.2f}",
                self.describe_evidence(k),
            )
            for k in shown
        ]
        head = ("row", "given", "suggested", "P(wrong)", "evidence for the suggested class, in decibans")
        more = self.rows.size - len(lines)
        notes = [f"… ({count_noun(more, 'more issue')}: to_frame())"] if more else []
        return [title, TextTable(lines, head, right=[0, 3], notes=notes)]


def find_label_issues(
    fitted: Fitted, rows: Examples, min_probability: float = MIN_PROBABILITY, already_learned: bool = True
) -> LabelIssues:
    """Find rows whose label is probably wrong; each row the model has already learned is left out."""
    if not 0.0 < min_probability <= MAX_PROBABILITY:
        cause = f"expected a number above 0, at most {MAX_PROBABILITY}"
        raise UsageError(cause, parameter=Argument("min_probability", min_probability))
    if rows.elsewhere:
        raise UsageError("the rows are in Spark", remedy="pass a sample of them in memory, or a file")
    held, model = rows.whole(), fitted.model
    table, labels, weights = read_learned_rows(fitted, held)
    known = np.flatnonzero((labels >= 0) & (weights > 0.0))
    if not known.size:
        raise DataError(NO_LABELED_ROWS)
    table, labels, weights = table.take(known), labels[known], weights[known]
    left_out, copies = None, find_copies(table, labels, weights)
    if already_learned:
        fitted = fitted.with_settings(replace(fitted.settings, prior="empirical"))  # that of these labels
        left_out = score_left_out(fitted, table, labels, weights, copies=copies)
        posterior = left_out.posterior
    else:
        posterior = score_table(model, model.schema.table_as_learned(table), posteriors)
    noise = estimate_noise(posterior, labels, weights)
    probability = compute_error_probability(posterior, labels, noise)
    best = posterior.argmax(axis=1)
    issues = np.flatnonzero((probability >= min_probability) & (best != labels))
    issues = issues[np.argsort(-probability[issues], kind="stable")]
    probability = np.minimum(probability, MAX_PROBABILITY)
    some = table.take(issues)
    if left_out is None:
        evidence = model.evidence(model.schema.table_as_learned(some))
    elif left_out.kept_evidence is not None:
        evidence = left_out.kept_evidence.take(issues)
    else:  # of all rows it is too large to keep
        some_copies = copies.take(issues)
        evidence = score_left_out(fitted, some, labels[issues], weights[issues], copies=some_copies).evidence
    return LabelIssues(
        held.first_row + known[issues],
        model.classes[labels[issues]],
        model.classes[best[issues]],
        probability[issues],
        Explanation(evidence, model, model.schema.table_as_learned(some), against=labels[issues]),
        model.classes,
        noise,
        float(weights @ probability),
        float(weights.sum()),
        float(weights @ (best != labels) / weights.sum()),
    )


def estimate_noise(posterior: Floats, labels: Codes, weights: Floats) -> Floats:
    """Return the probability of each given label (column) for each true class (row).

    It is the share of each label among the rows with the highest posterior of a class: as many rows as give the highest
    lower bound for the share of the class itself. Hardly any of them belong to another class, so their other labels are
    errors. The rates of each class are shrunk to the mean rate (at most 5%), the same for all pairs of classes.
    """
    size = posterior.shape[1]
    counts = np.empty((size, size))
    for c in range(size):
        order = np.argsort(-posterior[:, c], kind="stable")
        total = np.cumsum(weights[order])
        bound = _lower_bound(np.cumsum(weights[order] * (labels[order] == c)), total)
        first = order[: bound.argmax() + 1]
        counts[c] = np.bincount(labels[first], weights[first], size)
    rate = min(1.0 - (np.trace(counts) + 0.5) / (counts.sum() + 1.0), MAX_PRIOR_RATE)
    mean = np.full((size, size), rate / max(size - 1, 1))
    np.fill_diagonal(mean, 1.0 - rate)
    counts += PRIOR_ROWS * mean
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def _lower_bound(hits: Floats, total: Floats) -> Floats:
    """Return Wilson's lower bound of a share."""
    share, square = hits / total, STANDARD_ERRORS**2 / total
    margin = np.sqrt(square * (share * (1.0 - share) + square / 4.0))
    return np.asarray((share + square / 2.0 - margin) / (1.0 + square))


def compute_error_probability(posterior: Floats, labels: Codes, noise: Floats) -> Floats:
    """Return the probability that each given label is wrong; above 1 if it is rarer than wrong labels should be.

    The posterior is that of given labels. So the posterior of the given label counts right and wrong labels together,
    and the wrong ones are those of the other classes times their noise.
    """
    wrong = noise * (1.0 - np.eye(len(noise)))
    every = np.arange(labels.size)
    return np.asarray((posterior @ wrong)[every, labels] / np.maximum(posterior[every, labels], 1e-300))
