"""Two classes: where the decision turns."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from deciban.decisions.loss import Loss
from deciban.errors import Argument, UsageError
from deciban.model.priors import log_prior

THRESHOLD_ARGUMENTS = "the arguments are Threshold.from_loss(loss, prior, classes)"


@dataclass(frozen=True)
class Threshold:
    """When to decide for the first of two classes: above a threshold on the likelihood ratio, the odds, the posterior.

    The thresholds are infinite (1 on the posterior) where it never pays to decide for the first class, and 0 where it
    always does. `BayesClassifier.threshold` gives the one of a fitted model.

    Parameters
    ----------
    classes : (label, label)
        The class that is decided for above the threshold, and the other one.
    prior : float
        The prior of the first class.
    loss : Loss
        A loss whose decisions are the two classes, with labels; `Threshold.from_loss` takes any form of it.

    Attributes
    ----------
    likelihood_ratio : float
        The threshold on p(x | first) / p(x | second).
    odds : float
        The threshold on P(first | x) / P(second | x).
    posterior : float
        The threshold on P(first | x).

    See Also
    --------
    Loss : What mistakes cost.
    decide : Decisions of least risk for any number of classes.

    Examples
    --------
    >>> from deciban import Threshold
    >>> alarm = Threshold.from_loss({"fire": 10_000, "no fire": 1}, prior=0.001, classes=("fire", "no fire"))
    >>> print(alarm)
    decide fire when
      p(x | fire) / p(x | no fire)  >  0.0999
      P(fire | x) / P(no fire | x)  >  0.0001
      P(fire | x)  >  9.999e-05
    >>> round(alarm.with_prior(0.01).likelihood_ratio, 6)
    0.0099
    """

    classes: tuple[Any, Any]
    prior: float
    loss: Loss

    @classmethod
    def from_loss(
        cls, loss: Any, prior: Any, classes: tuple[Any, Any], order: tuple[Any, Any] | None = None
    ) -> "Threshold":
        """The threshold of a loss in any form, and of the prior of the first class or of both.

        Parameters
        ----------
        loss : Loss or anything `Loss.from_costs` takes
            What each decision costs under each truth, decision first. None is zero-one loss.
        prior : float, or anything that gives the priors of both classes
            The prior of the first class, or of both in the order of `order`.
        classes : (label, label)
            The class that is decided for above the threshold, and the other one.
        order : (label, label), default=None
            The order of the classes in a matrix without labels. None: that of `classes`.

        Returns
        -------
        Threshold
        """
        if isinstance(loss, int | float | np.number):
            raise UsageError("expected costs", remedy=THRESHOLD_ARGUMENTS, parameter=Argument("loss", loss))
        classes = _two_labels("classes", classes)
        order = classes if order is None else _two_labels("order", order)
        if set(order) != set(classes):
            raise UsageError(
                f"give the two classes {classes!r} in the order of the matrix", parameter=Argument("order", order)
            )
        if not isinstance(prior, int | float | np.number):
            if np.ndim(prior) > 1 or _is_pair_of_texts(prior):
                raise UsageError(
                    f"prior={_on_one_line(prior)}: expected the probability of {classes[0]!r}, or those of both "
                    "classes",
                    remedy=THRESHOLD_ARGUMENTS,
                )
            shares = np.exp(log_prior(prior, np.array(order), np.ones(2)))
            prior = float(shares[order.index(classes[0])])
        if not 0.0 <= prior <= 1.0:
            raise UsageError(f"the prior of {classes[0]!r} is {prior!r}; a probability is between 0 and 1")
        loss_for_classes = (Loss.zero_one(order) if loss is None else Loss.from_costs(loss)).for_classes(order)
        if loss_for_classes.varies_by_row or set(loss_for_classes.decisions or ()) != set(classes):
            raise UsageError(
                "a threshold needs a loss of two decisions, the two classes, that is the same for every row"
            )
        found = cls(classes, float(prior), loss_for_classes)
        _ = found.odds  # which may be refused
        return found

    @property
    def odds(self) -> float:
        """Decide for the first class when P(first | x) / P(second | x) is above this."""
        place = {label: k for k, label in enumerate(self.loss.decisions or ())}
        column = {label: k for k, label in enumerate(self.loss.classes or ())}
        matrix = self.loss.matrix[[place[label] for label in self.classes]][:, [column[c] for c in self.classes]]
        gain = matrix[1, 0] - matrix[0, 0]  # of being right about the first
        price = matrix[0, 1] - matrix[1, 1]  # of being wrong about the second
        if gain > 0.0 and price >= 0.0:
            return float(price / gain)
        if gain <= 0.0 and price >= 0.0:
            return float("inf")
        if gain >= 0.0:
            return 0.0
        raise UsageError("both right decisions cost more than the wrong ones: compare the risks instead (clf.risk)")

    @property
    def posterior(self) -> float:
        """Decide for the first class when P(first | x) is above this."""
        return 1.0 if np.isinf(self.odds) else self.odds / (1.0 + self.odds)

    @property
    def likelihood_ratio(self) -> float:
        """Decide for the first class when p(x | first) / p(x | second) is above this."""
        if self.prior == 0.0 or np.isinf(self.odds):
            return float("inf")
        return self.odds * (1.0 - self.prior) / self.prior

    def with_prior(self, prior: Any) -> "Threshold":
        """The thresholds under another prior: only that on the likelihood ratio moves.

        Parameters
        ----------
        prior : float, or anything that gives the priors of both classes
            The prior of the first class, or of both.

        Returns
        -------
        Threshold
        """
        return Threshold.from_loss(self.loss, prior, self.classes, self._order)

    def with_loss(self, loss: Any) -> "Threshold":
        """The thresholds at other costs: all of them move.

        Parameters
        ----------
        loss : Loss or anything `Loss.from_costs` takes
            What each decision costs under each truth.

        Returns
        -------
        Threshold
        """
        return Threshold.from_loss(loss, self.prior, self.classes, self._order)

    @property
    def _order(self) -> tuple[Any, Any]:
        first, second = self.loss.classes or self.classes
        return first, second

    def __str__(self) -> str:
        first, second = self.classes
        return "\n".join(
            [
                f"decide {first} when",
                f"  p(x | {first}) / p(x | {second})  >  {self.likelihood_ratio:.6g}",
                f"  P({first} | x) / P({second} | x)  >  {self.odds:.6g}",
                f"  P({first} | x)  >  {self.posterior:.6g}",
            ]
        )


def _two_labels(name: str, labels: Any) -> tuple[Any, Any]:
    """The labels of two classes as a pair; a UsageError where they are something else."""
    found: Any = labels.tolist() if isinstance(labels, np.ndarray) and labels.ndim == 1 else labels
    if isinstance(found, list | tuple) and len(found) == 2 and all(isinstance(one, Hashable) for one in found):
        first, second = found
        if first != second:
            return first, second
    raise UsageError(
        f"{name}={_on_one_line(labels)}: expected the labels of two classes, such as ('fire', 'no fire')",
        remedy=THRESHOLD_ARGUMENTS,
    )


def _on_one_line(value: Any) -> str:
    return " ".join(repr(value).split())


def _is_pair_of_texts(prior: Any) -> bool:
    return isinstance(prior, list | tuple) and any(isinstance(one, str) for one in prior)
