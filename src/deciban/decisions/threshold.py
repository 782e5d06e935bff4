"""Decision thresholds for two classes: `Threshold`."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from deciban.decisions.loss import Loss
from deciban.errors import Argument, UsageError
from deciban.model.priors import log_prior
from deciban.typing import Costs
from deciban.util.results import Aligned, Part, Result
from deciban.util.text_tables import format_class, list_names

THRESHOLD_ARGUMENTS = "the arguments are Threshold.from_loss(loss, prior, classes)"


@dataclass(frozen=True, repr=False)
class Threshold(Result):
    r"""Thresholds above which to decide for the first of two classes: on likelihood ratio, odds and posterior.

    If deciding for the first class never pays, the thresholds are infinite (1 for the posterior). If it always pays,
    they are 0. `BayesClassifier.threshold` returns the threshold of a fitted model.

    Parameters
    ----------
    classes : (label, label)
        The class to decide for above the threshold, and the other class.
    prior : float
        Prior probability of the first class.
    loss : Loss
        Loss whose decisions are the two classes, with labels. `Threshold.from_loss` accepts any form of costs.

    Attributes
    ----------
    likelihood_ratio : float
        Threshold on p(x | first) / p(x | second).
    odds : float
        Threshold on P(first | x) / P(second | x).
    posterior : float
        Threshold on P(first | x).

    See Also
    --------
    Loss : Costs of decisions.
    decide : Decisions with the least expected loss, for any number of classes.

    Notes
    -----
    With the loss L(decision, truth), decide for class 1 and not for class 2 if

    .. math:: \frac{p(x \mid 1)}{p(x \mid 2)} > \frac{L(1, 2) - L(2, 2)}{L(2, 1) - L(1, 1)} \cdot \frac{P(2)}{P(1)}

    Examples
    --------
    >>> from deciban import Threshold
    >>> alarm = Threshold.from_loss({"fire": 10_000, "no fire": 1}, prior=0.001, classes=("fire", "no fire"))
    >>> print(alarm)
    decide fire if
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
        cls,
        loss: Loss | Costs | None,
        prior: float | Mapping[Any, float] | Sequence[float],
        classes: tuple[Any, Any],
        order: tuple[Any, Any] | None = None,
    ) -> Threshold:
        """Create a threshold from costs and a prior, in any form.

        Parameters
        ----------
        loss : Loss or any form that `Loss.from_costs` accepts
            Cost of each decision under each true class, decision first. None is zero-one loss.
        prior : float, mapping or sequence
            Prior probability of the first class, or of both classes in the order of `order`.
        classes : (label, label)
            The class to decide for above the threshold, and the other class.
        order : (label, label), default=None
            Order of the classes in a matrix without labels. None: the order of `classes`.

        Returns
        -------
        Threshold
        """
        if isinstance(loss, int | float | np.number):
            raise UsageError("expected costs", remedy=THRESHOLD_ARGUMENTS, parameter=Argument("loss", loss))
        classes = _check_two_labels("classes", classes)
        order = classes if order is None else _check_two_labels("order", order)
        if set(order) != set(classes):
            raise UsageError(
                f"give the two classes {classes!r} in the order of the matrix", parameter=Argument("order", order)
            )
        if not isinstance(prior, int | float | np.number):
            dimensions = 1 if isinstance(prior, Mapping) else np.ndim(prior)
            if dimensions > 1 or _has_texts(prior):
                raise UsageError(
                    f"prior={_on_one_line(prior)}: expected the probability of {classes[0]!r}, or of both classes",
                    remedy=THRESHOLD_ARGUMENTS,
                )
            shares = np.exp(log_prior(prior, np.array(order), np.ones(2)))
            prior = float(shares[order.index(classes[0])])
        if not 0.0 <= prior <= 1.0:
            raise UsageError(f"the prior of {classes[0]!r} is {prior!r}", remedy="give a probability between 0 and 1")
        loss_for_classes = (Loss.zero_one(order) if loss is None else Loss.from_costs(loss)).for_classes(order)
        if loss_for_classes.varies_by_row:
            raise UsageError("a threshold needs the same costs for every row", remedy="use decide() for other costs")
        decisions = loss_for_classes.decisions or ()
        if set(decisions) != set(classes):
            raise UsageError(
                f"a threshold needs two decisions with the names of the classes, {classes[0]!r} and {classes[1]!r}; "
                f"the costs have {list_names(map(str, decisions))}",
                remedy="rename the decisions to the classes" if len(decisions) == 2 else "leave the others out",
            )
        threshold = cls(classes, float(prior), loss_for_classes)
        _ = threshold.odds  # raises if the costs allow no threshold
        return threshold

    @property
    def odds(self) -> float:
        """Threshold on the posterior odds P(first | x) / P(second | x)."""
        row = {label: k for k, label in enumerate(self.loss.decisions or ())}
        column = {label: k for k, label in enumerate(self.loss.classes or ())}
        matrix = self.loss.matrix[[row[label] for label in self.classes]][:, [column[c] for c in self.classes]]
        gain = matrix[1, 0] - matrix[0, 0]  # saved by deciding for the first class if it is true
        price = matrix[0, 1] - matrix[1, 1]  # lost by deciding for the first class if the second is true
        if gain > 0.0 and price >= 0.0:
            return float(price / gain)
        if gain <= 0.0 and price >= 0.0:
            return float("inf")
        if gain >= 0.0:
            return 0.0
        raise UsageError(
            "the costs allow no threshold: both correct decisions cost more than the wrong ones",
            remedy="check the order of the costs (decision first), or compare risks with clf.risk(X, loss)",
        )

    @property
    def posterior(self) -> float:
        """Threshold on the posterior P(first | x)."""
        return 1.0 if np.isinf(self.odds) else self.odds / (1.0 + self.odds)

    @property
    def likelihood_ratio(self) -> float:
        """Threshold on the likelihood ratio p(x | first) / p(x | second)."""
        if self.prior == 0.0 or np.isinf(self.odds):
            return float("inf")
        return self.odds * (1.0 - self.prior) / self.prior

    def with_prior(self, prior: float | Mapping[Any, float] | Sequence[float]) -> Threshold:
        """Return the threshold under another prior. Only the likelihood ratio changes.

        Parameters
        ----------
        prior : float, mapping or sequence
            Prior probability of the first class, or of both classes.

        Returns
        -------
        Threshold
        """
        return Threshold.from_loss(self.loss, prior, self.classes, self._order)

    def with_loss(self, loss: Loss | Costs) -> Threshold:
        """Return the threshold at other costs.

        Parameters
        ----------
        loss : Loss or any form that `Loss.from_costs` accepts
            Cost of each decision under each true class.

        Returns
        -------
        Threshold
        """
        return Threshold.from_loss(loss, self.prior, self.classes, self._order)

    def to_dict(self) -> dict[str, Any]:
        """Return the threshold as plain data.

        Returns
        -------
        dict
            ``class`` (the class to decide for), ``against`` (the other class), ``prior``, ``likelihood_ratio``,
            ``odds`` and ``posterior``.
        """
        return {
            "class": self.classes[0],
            "against": self.classes[1],
            "prior": self.prior,
            "likelihood_ratio": self.likelihood_ratio,
            "odds": self.odds,
            "posterior": self.posterior,
        }

    def _columns(self) -> dict[str, Any]:
        return {"quantity": list(self._quantities), "threshold": list(self._quantities.values())}

    @property
    def _quantities(self) -> dict[str, float]:
        first, second = map(format_class, self.classes)
        return {
            f"p(x | {first}) / p(x | {second})": self.likelihood_ratio,
            f"P({first} | x) / P({second} | x)": self.odds,
            f"P({first} | x)": self.posterior,
        }

    @property
    def _order(self) -> tuple[Any, Any]:
        first, second = self.loss.classes or self.classes
        return first, second

    def _parts(self) -> list[Part]:
        lines = [f"  {name}  >  {value:.6g}" for name, value in self._quantities.items()]
        return [Aligned("\n".join([f"decide {format_class(self.classes[0])} if", *lines]))]


def _check_two_labels(name: str, labels: Any) -> tuple[Any, Any]:
    """Return the labels of two classes as a pair; raise a UsageError for anything else."""
    pair: Any = labels.tolist() if isinstance(labels, np.ndarray) and labels.ndim == 1 else labels
    if isinstance(pair, list | tuple) and len(pair) == 2 and all(isinstance(label, Hashable) for label in pair):
        first, second = pair
        if first != second:
            return first, second
    raise UsageError(
        f"{name}={_on_one_line(labels)}: expected the labels of two classes, such as ('fire', 'no fire')",
        remedy=THRESHOLD_ARGUMENTS,
    )


def _on_one_line(value: Any) -> str:
    return " ".join(repr(value).split())


def _has_texts(prior: Any) -> bool:
    return isinstance(prior, list | tuple) and any(isinstance(value, str) for value in prior)
