"""Prior probabilities of the classes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from deciban.errors import UsageError
from deciban.families.base.checks import check_amount
from deciban.model.counts import Counts
from deciban.tables.labels import LabelArray
from deciban.util.arrays import Floats, log
from deciban.util.text_tables import spelled_alike


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


def log_prior(prior: Any, classes: LabelArray, weight: Floats) -> Floats:
    """The log prior of each class.

    prior: "empirical", "smoothed" (one row more in every class), "uniform", Empirical(alpha), Uniform(), a mapping
    from class to probability, or a sequence of probabilities in the order of the classes.
    """
    prior = _by_name(prior)
    if isinstance(prior, Empirical | Uniform):
        return log(prior.shares(classes, weight))
    return log(_given(prior, classes))


def prior_of(prior: Any, counts: Counts) -> Floats:
    """The log prior of each class; a given prior is not used as long as no row has a weight."""
    return log_prior(prior if counts.class_weight.any() else "empirical", counts.classes, counts.class_weight)


def check_prior(prior: Any, classes: LabelArray | None = None) -> None:
    """A UsageError where it can be no prior, whatever the classes are; `classes` are some of them."""
    prior = _by_name(prior)
    if not isinstance(prior, Empirical | Uniform):
        named = _by_class(prior)
        _checked(prior if named is None else list(named.values()))
        if classes is not None and named is not None:
            _refuse_nameless(_spelled_alike(named, classes), classes)


def prior_variance(prior: Any, weight: Floats) -> Floats:
    """The variance of the log prior of each class that comes from counting a sample, as far as it matters to odds.

    Between two classes the log of n1/n2 has the variance 1/n1 + 1/n2. A prior that is given or uniform has none.
    """
    prior = _by_name(prior)
    if isinstance(prior, Empirical):
        return 1.0 / np.maximum(weight + prior.alpha, 0.5)
    return np.zeros_like(weight)


def _by_name(prior: Any) -> Any:
    """The prior that a name stands for; any other is what it is."""
    if not isinstance(prior, str):
        return prior
    named = {"empirical": Empirical(), "smoothed": Empirical(1.0), "uniform": Uniform()}
    if prior not in named:
        raise UsageError(f"prior={prior!r}: choose {', '.join(map(repr, named))}, or give probabilities")
    return named[prior]


def _by_class(prior: Any) -> Mapping[Any, Any] | None:
    if hasattr(prior, "to_dict"):  # the index of a pandas Series names the classes
        prior = prior.to_dict()
    return prior if isinstance(prior, Mapping) else None


def _spelled_alike(prior: Mapping[Any, Any], classes: LabelArray) -> Mapping[Any, Any]:
    """The prior by the model's labels: text, as a command line has it, stands for a number that is spelled the same."""
    labels = classes.tolist()
    known = set(labels)

    def named(key: Any) -> Any:
        return key if key in known else next((label for label in labels if spelled_alike(label, key)), key)

    return {named(key): share for key, share in prior.items()}


def _refuse_nameless(prior: Mapping[Any, Any], classes: LabelArray) -> None:
    if absent := [label for label in classes.tolist() if label not in prior]:
        raise UsageError(
            f"the prior does not name the classes of the model: {absent[0]!r} has none; "
            f"give one probability for each of {classes.tolist()}"
        )


def _given(prior: Any, classes: LabelArray) -> Floats:
    named = _by_class(prior)
    if named is not None:
        known, named = classes.tolist(), _spelled_alike(named, classes)
        if unknown := [label for label in named if label not in set(known)]:
            raise UsageError(
                f"the prior does not name the classes of the model: {unknown[0]!r} is none of them; "
                f"give one probability for each of {known}"
            )
        _refuse_nameless(named, classes)
        prior = [named[label] for label in known]
    elif np.size(prior) != classes.size:
        raise UsageError(f"the prior has {np.size(prior)} probabilities for {classes.size} classes; give one for each")
    shares = _checked(prior)
    return np.asarray(shares / shares.sum())


def _checked(prior: Any) -> Floats:
    """Probabilities that sum to 1."""
    try:
        shares = np.asarray(prior, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise UsageError(f"prior={prior!r} is not a list of probabilities ({error})") from error
    if shares.ndim != 1:
        raise UsageError(f"prior={prior!r} is not a list of probabilities; give one for each class")
    if not (np.isfinite(shares).all() and (shares >= 0.0).all()):
        raise UsageError(f"the prior {shares.tolist()} has a negative or infinite entry; probabilities are at least 0")
    if abs(shares.sum() - 1.0) > 1e-9:
        raise UsageError(f"the prior sums to {shares.sum():.12g}; the probabilities of all classes sum to 1")
    return np.asarray(shares)
