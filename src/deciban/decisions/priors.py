"""Prior probabilities of the classes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from deciban.arrays import Floats, log
from deciban.data.labels import LabelArray
from deciban.errors import UsageError
from deciban.families.base import check_amount
from deciban.model import Counts


@dataclass(frozen=True)
class Empirical:
    """The share of each class among the rows, (rows of the class + alpha) / (rows + alpha * classes)."""

    alpha: float = 0.0

    def __post_init__(self) -> None:
        check_amount("alpha", self.alpha)

    def shares(self, classes: LabelArray, weight: Floats) -> Floats:
        top = weight + self.alpha
        total = top.sum()
        return top / total if total > 0.0 else np.full(weight.size, 1.0 / max(weight.size, 1))


@dataclass(frozen=True)
class Uniform:
    """The same prior for every class."""

    def shares(self, classes: LabelArray, weight: Floats) -> Floats:
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
    """The log prior of each class; a given one is not looked at as long as no row has a weight."""
    return log_prior(prior if counts.class_weight.any() else "empirical", counts.classes, counts.class_weight)


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


def _given(prior: Any, classes: LabelArray) -> Floats:
    if hasattr(prior, "to_dict"):  # a pandas Series speaks by its index
        prior = prior.to_dict()
    if isinstance(prior, Mapping):
        known = {label: k for k, label in enumerate(classes.tolist())}
        unknown = [label for label in prior if label not in known]
        absent = [label for label in known if label not in prior]
        if unknown or absent:
            raise UsageError(
                "the prior does not name the classes of the model: "
                + (f"{unknown[0]!r} is none of them; " if unknown else f"{absent[0]!r} has none; ")
                + f"give one probability for each of {list(known)}"
            )
        prior = [prior[label] for label in known]
    try:
        shares = np.asarray(prior, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise UsageError(f"prior={prior!r} is not a list of probabilities ({error})") from error
    if shares.shape != classes.shape:
        raise UsageError(f"the prior has {shares.size} probabilities for {classes.size} classes; give one for each")
    if not (np.isfinite(shares).all() and (shares >= 0.0).all()):
        raise UsageError(f"the prior {shares.tolist()} has a negative or infinite entry; probabilities are at least 0")
    if abs(shares.sum() - 1.0) > 1e-9:
        raise UsageError(f"the prior sums to {shares.sum():.12g}; the probabilities of all classes sum to 1")
    return np.asarray(shares / shares.sum())
