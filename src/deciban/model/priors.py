"""Prior probabilities of the classes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from deciban.errors import Argument, UsageError
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
        How many rows are added to each class. 0 is `prior="empirical"`, 1 is `prior="smoothed"`.

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
        """The prior of each class.

        Parameters
        ----------
        classes : ndarray of shape (n_classes,)
            The classes.
        weight : ndarray of shape (n_classes,)
            The weight of the rows of each.

        Returns
        -------
        ndarray of shape (n_classes,)
            Probabilities; equal ones where nothing has a weight.
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
        """The prior of each class.

        Parameters
        ----------
        classes : ndarray of shape (n_classes,)
            The classes.
        weight : ndarray of shape (n_classes,)
            The weight of the rows of each, which does not matter here.

        Returns
        -------
        ndarray of shape (n_classes,)
            Equal probabilities.
        """
        return np.full(weight.size, 1.0 / max(weight.size, 1))


@dataclass(frozen=True)
class Given:
    """Probabilities that the user gives: by class, or in the order of the classes.

    probabilities: they sum to 1. names: the class of each; None if they are in the order of the classes.
    """

    probabilities: Floats
    names: tuple[Any, ...] | None

    def shares(self, classes: LabelArray, weight: Floats) -> Floats:
        """Return the prior of each class; raise a UsageError if it does not name the classes of the model."""
        shares, known = self.probabilities, classes.tolist()
        if self.names is not None:
            places = self._places_among(known)
            if unknown := [label for label in places if label not in set(known)]:
                raise UsageError(
                    f"the prior does not name the classes of the model: {unknown[0]!r} is none of them",
                    remedy=f"give one probability for each of {known}",
                )
            self.check_names(classes)
            shares = shares[[places[label] for label in known]]
        elif shares.size != classes.size:
            raise UsageError(
                f"the prior has {shares.size} probabilities for {classes.size} classes", remedy="give one for each"
            )
        return np.asarray(shares / shares.sum())

    def check_names(self, classes: LabelArray) -> None:
        """Raise a UsageError if one of these classes has no probability; they may be some of the classes."""
        known = classes.tolist()
        if self.names is None:
            return
        places = self._places_among(known)
        if absent := [label for label in known if label not in places]:
            raise UsageError(
                f"the prior does not name the classes of the model: {absent[0]!r} has none",
                remedy=f"give one probability for each of {known}",
            )

    def _places_among(self, classes: list[Any]) -> dict[Any, int]:
        """Return the place of each probability by label.

        Text, as a command line has it, stands for a number that is spelled the same.
        """
        known = set(classes)

        def label_of(name: Any) -> Any:
            return name if name in known else next((label for label in classes if same_label(label, name)), name)

        return {label_of(name): place for place, name in enumerate(self.names or ())}


Prior = Empirical | Uniform | Given


def parse_prior(prior: Any) -> Prior:
    """Return the prior that a setting stands for; raise a UsageError if it cannot be one, whatever the classes are.

    prior: "empirical", "smoothed" (one row more in every class), "uniform", Empirical(alpha), Uniform(), a mapping
    from class to probability, or a sequence of probabilities in the order of the classes.
    """
    if isinstance(prior, Empirical | Uniform | Given):
        return prior
    if isinstance(prior, str):
        named: dict[str, Prior] = {"empirical": Empirical(), "smoothed": Empirical(1.0), "uniform": Uniform()}
        if prior not in named:
            raise UsageError(
                f"choose {', '.join(map(repr, named))}, or give probabilities", parameter=Argument("prior", prior)
            )
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
    """Return the log prior of each class; a given prior is not used as long as no row has a weight."""
    return log_prior(prior if counts.class_weight.any() else "empirical", counts.classes, counts.class_weight)


def prior_variance(prior: Any, weight: Floats) -> Floats:
    """Return the variance of the log prior of each class that comes from counting a sample, as far as odds need it.

    Between two classes the log of n1/n2 has the variance 1/n1 + 1/n2. A prior that is given or uniform has none.
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
        raise UsageError((shown, " is not a list of probabilities"), remedy="give one for each class")
    if not (np.isfinite(shares).all() and (shares >= 0.0).all()):
        raise UsageError(
            f"the prior {shares.tolist()} has a negative or infinite entry", remedy="probabilities are at least 0"
        )
    if abs(shares.sum() - 1.0) > 1e-9:
        raise UsageError(f"the prior sums to {shares.sum():.12g}", remedy="the probabilities of all classes sum to 1")
    return np.asarray(shares)
