"""Linear and quadratic form of a model: scores as weights times features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from deciban.errors import Argument, UsageError
from deciban.families.base.contract import DiscriminantTerms
from deciban.model.counts import Guard
from deciban.model.model import Model
from deciban.model.partial_rows import PartialRows
from deciban.schema.schema import Schema
from deciban.sources.open import open_table
from deciban.tables.labels import LabelArray
from deciban.tables.table import Table, missing_cells
from deciban.typing import Table as Rows
from deciban.util.arrays import Floats
from deciban.util.results import Part, Result, TextTable

# Forms with more terms than this are abbreviated when printed.
MAX_TERMS_PRINTED = 40

# Number of leading terms shown in an abbreviated form.
FIRST_TERMS = 25

# Number of trailing terms shown in an abbreviated form.
LAST_TERMS = 5


@dataclass(frozen=True, repr=False)
class Form(Result):
    """Score of each class as a linear or quadratic function of features.

    score[class] = weights · features + intercept (+ features' quadratic features). This is the model's log joint up to
    a term that is the same for every class.

    If all cells of a block are missing, its features and its part of the intercept are omitted; if only some are
    missing, `scores` raises a DataError. For a tuned model, `scores` scales the rest as the model does.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        Class labels.
    names : tuple of str
        Name of each feature.
    weights : ndarray of shape (n_features, n_classes)
        Weight of each feature for each class.
    intercept : ndarray of shape (n_classes,)
        Intercept of each class, for rows without missing cells.
    quadratic : ndarray of shape (n_classes, n_features, n_features) or None
        Weight of each product of features; None for a linear form.
    """

    classes: LabelArray
    names: tuple[str, ...]
    weights: Floats
    intercept: Floats
    quadratic: Floats | None
    log_prior: Floats
    bias: Floats
    partial: PartialRows | None
    terms: dict[int, list[DiscriminantTerms]]  # for each column group that has terms
    schema: Schema

    def features(self, X: Rows) -> Floats:
        """Return the features of a table, NaN for missing cells.

        Parameters
        ----------
        X : table
            Rows, as for `BayesClassifier.predict`.

        Returns
        -------
        ndarray of shape (n_rows, n_features)
            Columns in the order of `names`.
        """
        cells = self._cells(open_table(X))
        features = [terms.features(cells[group]) for group, some in self.terms.items() for terms in some]
        return np.concatenate(features, axis=1)

    def scores(self, X: Rows) -> Floats:
        """Return the score of each class.

        Parameters
        ----------
        X : table
            Rows, as for `BayesClassifier.predict`.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Columns in the order of `classes`.
        """
        table = open_table(X)
        cells = self._cells(table)
        missing = None if self.partial is None else missing_cells(self.schema.table_as_learned(table))
        known = None if self.partial is None or missing is None else self.partial.adjust_for_missing(missing)
        out = np.tile(self.bias, (table.rows, 1)) if known is None else known.bias.copy()
        for group, some in self.terms.items():
            for terms in some:
                out += terms.evaluate(cells[group])
        return self.log_prior + (out if known is None else known.scale[:, None] * out)

    def _cells(self, table: Table) -> dict[int, Any]:
        """Return the cells of each group that has terms, as its family reads them."""
        table, groups, guard = self.schema.table_as_learned(table), self.schema.groups, Guard(self.schema)
        return {p: guard(p, groups[p].family.read, table, groups[p].columns) for p in self.terms}

    def hyperplane(self, positive: Any = None, negative: Any = None) -> tuple[Floats, float]:
        """Return w and b of the boundary w·x + b = 0 between two classes.

        w·x + b is the log-odds: positive on the side of the class `positive`, whose probability against `negative` is
        1 / (1 + exp(-(w·x + b))).

        Parameters
        ----------
        positive : label, default=None
            The class with positive log-odds. None: the last class.
        negative : label, default=None
            The class to compare with. None: the other one of two classes.

        Returns
        -------
        w : ndarray of shape (n_features,)
            Weight of each feature.
        b : float
            Intercept.

        Raises
        ------
        UsageError
            If the form is quadratic, a class is unknown, or `negative` is missing for more than two classes.
        """
        if self.quadratic is not None:
            raise UsageError(
                "a quadratic form has no hyperplane", remedy="use its attributes quadratic, weights and intercept"
            )
        labels = self.classes.tolist()
        if negative is None and len(labels) != 2:
            raise UsageError(f"the model has {len(labels)} classes", remedy="name two: hyperplane(positive, negative)")
        a = len(labels) - 1 if positive is None else self._class_index(positive)
        b = 1 - a if negative is None else self._class_index(negative)
        return self.weights[:, a] - self.weights[:, b], float(self.intercept[a] - self.intercept[b])

    def _class_index(self, label: Any) -> int:
        labels = self.classes.tolist()
        if label not in labels:
            raise UsageError(f"{label!r} is not one of the classes {labels}")
        return int(labels.index(label))

    def _parts(self) -> list[Part]:
        terms = [*zip(self.names, self.weights.tolist(), strict=True), *self._products()]
        lines = [(name, *(f"{weight:.4g}" for weight in weights)) for name, weights in terms]
        if len(lines) > MAX_TERMS_PRINTED:
            lines = [*lines[:FIRST_TERMS], ("…", *[""] * self.classes.size), *lines[-LAST_TERMS:]]
        head, last = map(str, self.classes.tolist()), (f"{number:.4g}" for number in self.intercept)
        return [TextTable([*lines, ("intercept", *last)], ("", *head), range(1, self.classes.size + 1))]

    def _columns(self) -> dict[str, Any]:
        """Return the weight of each term for each class; the last line is the intercept."""
        terms = [*zip(self.names, self.weights.tolist(), strict=True), *self._products()]
        lines = [*(weights for _, weights in terms), self.intercept.tolist()]
        names = [*(name for name, _ in terms), "intercept"]
        by_class = {str(label): [line[c] for line in lines] for c, label in enumerate(self.classes.tolist())}
        return {"term": names, **by_class}

    def _products(self) -> list[tuple[str, list[float]]]:
        """Return the quadratic terms: each product of two features, with its weight for each class."""
        if self.quadratic is None:
            return []
        found = []
        for i, j in zip(*np.nonzero(np.triu(np.abs(self.quadratic).sum(axis=0))), strict=True):
            name = f"{self.names[i]}²" if i == j else f"{self.names[i]} · {self.names[j]}"
            weights = self.quadratic[:, i, j] + (self.quadratic[:, j, i] if i != j else 0.0)
            found.append((name, weights.tolist()))
        return found


def form_of(model: Model, quadratic: bool) -> Form:
    """Return the linear (or quadratic) form of a model; raise a UsageError if it has none."""
    terms = {p: found for p in range(len(model.schema.groups)) if (found := _group_terms(model, p, quadratic))}
    if model.corrections is not None or min(model.cap, model.limit) < np.inf:
        raise UsageError(
            "a model with corrections or limited evidence has no linear or quadratic form",
            remedy=("fit with ", Argument("tune", "weights"), ", or ", Argument("tune", None), " for plain Bayes"),
        )
    every = [term.expand() for some in terms.values() for term in some]
    names = tuple(name for term in every for name in term.names)
    classes = model.classes.size
    prior = model.log_prior + model.bias
    weights = np.concatenate([np.zeros((0, classes)), *(term.weights for term in every)])
    intercept = prior + sum((term.offset for term in every), np.zeros(classes))
    quadratic_terms = _block_diagonal(every, classes)
    start = model.log_prior, model.bias, model.partial
    return Form(model.classes, names, weights, intercept, quadratic_terms, *start, terms, model.schema)


def _group_terms(model: Model, group: int, quadratic: bool) -> list[DiscriminantTerms]:
    """Return the terms of the blocks of a group that have a weight."""
    columns, family = model.schema.groups[group].columns, model.schema.groups[group].family
    weights = model.weights[model.schema.block_slots[group]]
    used = np.flatnonzero(weights).tolist()
    if not used:
        return []
    names = [model.schema.column_name(column) for column in columns]
    found = model.likelihoods[group].discriminant_terms(names)
    if found is None:
        raise UsageError(f"{names[used[0]]}: {family} has no linear or quadratic form")
    terms = [found[b].scale(float(weights[b])) for b in used if found[b].names]
    for term in terms:
        if term.quadratic is not None and not quadratic:
            raise UsageError(
                f"{', '.join(term.names[:4])}: {family} has different variances per class, so the score is quadratic",
                remedy=("use quadratic_form() or ", Argument("family", "Pooled"), " variances"),
            )
        if not term.is_finite:
            raise UsageError(
                f"{', '.join(term.names[:4])}: a probability of 0 has no finite weight", remedy="use alpha > 0"
            )
    return terms


def _block_diagonal(terms: Sequence[DiscriminantTerms], classes: int) -> Floats | None:
    """Return the quadratic terms of all blocks as one matrix per class; None without quadratic terms."""
    if all(term.quadratic is None for term in terms):
        return None
    stops = np.cumsum([len(term.names) for term in terms])
    matrices = np.zeros((classes, stops[-1], stops[-1]))
    for term, stop in zip(terms, stops, strict=True):
        if term.quadratic is not None:
            here = slice(stop - len(term.names), stop)
            matrices[:, here, here] = term.quadratic
    return matrices
