"""Prior probabilities of the classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from deciban.errors import Argument, Labels, UsageError
from deciban.families.base.checks import check_amount
from deciban.model.counts import Counts
from deciban.tables.labels import LabelArray
from deciban.util.arrays import Floats, log
from deciban.util.text_tables import same_label


@dataclass(frozen=True)
class Empirical:
    """The share of each class among the rows: (rows of the class + alpha) / (rows + alpha * classes).

    Parameters
    ----------
    alpha : float, default=0.0
        Pseudo-count added to each class. 0 is `prior="empirical"`, 1 is `prior="smoothed"`.

    See Also
    --------
    Uniform : The same prior for every class.

    Examples
    --------
    >>> from deciban import BayesClassifier, Empirical
    >>> from deciban.datasets import weather
    >>> clf = BayesClassifier(prior=Empirical(alpha=2), tune=None).fit(weather(), "play")
    >>> clf.predict_proba([{"outlook": None}]).round(3).tolist()          # (5 + 2)/(14 + 4), (9 + 2)/(14 + 4)
    [[0.389, 0.611]]
    """

    alpha: float = 0.0

    def __post_init__(self) -> None:
        check_amount("alpha", self.alpha)

    def shares(self, classes: LabelArray, weight: Floats) -> Floats:
        """Return the prior of each class.

        Parameters
        ----------
        classes : ndarray of shape (n_classes,)
            The classes.
        weight : ndarray of shape (n_classes,)
            Total row weight of each class.

        Returns
        -------
        ndarray of shape (n_classes,)
            Probabilities; equal if no class has a weight.
        """
        top = weight + self.alpha
        total = top.sum()
        return top / total if total > 0.0 else np.full(weight.size, 1.0 / max(weight.size, 1))


@dataclass(frozen=True)
class Uniform:
    """The same prior for every class: 1 / classes.

    See Also
    --------
    Empirical : The share of each class among the rows.

    Examples
    --------
    >>> from deciban import BayesClassifier, Uniform
    >>> from deciban.datasets import weather
    >>> clf = BayesClassifier(prior=Uniform(), tune=None).fit(weather(), "play")
    >>> clf.predict_proba([{"outlook": None}]).tolist()
    [[0.5, 0.5]]
    """

    def shares(self, classes: LabelArray, weight: Floats) -> Floats:
        """Return the prior of each class.

        Parameters
        ----------
        classes : ndarray of shape (n_classes,)
            The classes.
        weight : ndarray of shape (n_classes,)
            Total row weight of each class; ignored.

        Returns
        -------
        ndarray of shape (n_classes,)
            Equal probabilities.
        """
        return np.full(weight.size, 1.0 / max(weight.size, 1))


@dataclass(frozen=True)
class Given:
    """Probabilities given by the user, by class or in the order of the classes.

    probabilities: they sum to 1. names: class of each probability; None if they are in the order of the classes.
    """

    probabilities: Floats
    names: tuple[Any, ...] | None

    def shares(self, classes: LabelArray, weight: Floats) -> Floats:
        """Return the prior of each class; raise a UsageError if the classes do not match those of the model."""
        shares, known = self.probabilities, classes.tolist()
        if self.names is not None:
            places = self._places_among(known)
            if unknown := [label for label in places if label not in set(known)]:
                raise UsageError(
                    f"unknown class {unknown[0]!r} in the prior",
                    remedy=("pass a probability for each class: ", Labels(known)),
                )
            self.check_names(classes)
            shares = shares[[places[label] for label in known]]
        elif shares.size != classes.size:
            raise UsageError(
                f"the prior has {shares.size} probabilities for {classes.size} classes", remedy="pass one per class"
            )
        return np.asarray(shares / shares.sum())

    def check_names(self, classes: LabelArray) -> None:
        """Raise a UsageError if one of these classes has no probability.

        classes: some or all of the model's classes.
        """
        known = classes.tolist()
        if self.names is None:
            return
        places = self._places_among(known)
        if absent := [label for label in known if label not in places]:
            raise UsageError(
                f"the prior has no probability for the class {absent[0]!r}",
                remedy=("pass a probability for each class: ", Labels(known)),
            )

    def _places_among(self, classes: list[Any]) -> dict[Any, int]:
        """Return the index of each probability by label.

        Text from a command line also matches a number that is spelled the same.
        """
        known = set(classes)

        def label_of(name: Any) -> Any:
            return name if name in known else next((label for label in classes if same_label(label, name)), name)

        return {label_of(name): place for place, name in enumerate(self.names or ())}


Prior = Empirical | Uniform | Given


def parse_prior(prior: Any) -> Prior:
    """Return the prior that a setting specifies; raise a UsageError if it is invalid for any classes.

    prior: "empirical", "smoothed" (one extra row per class), "uniform", Empirical(alpha), Uniform(), a mapping from
    class to probability, or a sequence of probabilities in the order of the classes.
    """
    if isinstance(prior, Empirical | Uniform | Given):
        return prior
    if isinstance(prior, str):
        named: dict[str, Prior] = {"empirical": Empirical(), "smoothed": Empirical(1.0), "uniform": Uniform()}
        if prior not in named:
            raise UsageError(f"use {', '.join(map(repr, named))}, or probabilities", parameter=Argument("prior", prior))
        return named[prior]
    if hasattr(prior, "to_dict"):  # the index of a pandas Series names the classes
        prior = prior.to_dict()
    if isinstance(prior, Mapping):
        return Given(_probabilities(list(prior.values())), tuple(prior))
    return Given(_probabilities(prior), None)


def log_prior(prior: Any, classes: LabelArray, weight: Floats) -> Floats:
    """Return the log prior of each class; prior: see `parse_prior`."""
    return log(parse_prior(prior).shares(classes, weight))


def prior_of(prior: Any, counts: Counts) -> Floats:
    """Return the log prior of each class; a given prior is ignored until some row has a weight."""
    return log_prior(prior if counts.class_weight.any() else "empirical", counts.classes, counts.class_weight)


def prior_variance(prior: Any, weight: Floats) -> Floats:
    """Return the sampling variance of each log prior.

    Between two classes, log(n1/n2) has the variance 1/n1 + 1/n2. A given or uniform prior has none.
    """
    prior = parse_prior(prior)
    if isinstance(prior, Empirical):
        return 1.0 / np.maximum(weight + prior.alpha, 0.5)
    return np.zeros_like(weight)


def _probabilities(prior: Any) -> Floats:
    """Return probabilities that sum to 1, or raise a UsageError."""
    shown = Argument("prior", prior)
    try:
        shares = np.asarray(prior, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise UsageError((shown, f" is not a list of probabilities ({error})")) from error
    if shares.ndim != 1:
        raise UsageError((shown, " is not a list of probabilities"), remedy="pass one per class")
    if not (np.isfinite(shares).all() and (shares >= 0.0).all()):
        raise UsageError(
            f"the prior contains {next(p for p in shares.tolist() if not 0.0 <= p < np.inf)}",
            remedy="pass probabilities from 0 to 1",
        )
    if abs(shares.sum() - 1.0) > 1e-9:
        raise UsageError(f"the prior probabilities sum to {shares.sum():.12g}", remedy="they must sum to 1")
    return np.asarray(shares)
