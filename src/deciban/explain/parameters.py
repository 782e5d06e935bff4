"""What a model has to learn, and the risk it believes in."""

from dataclasses import dataclass
from math import floor, log10, prod

from deciban.counts import Counts
from deciban.decisions.loss import Loss
from deciban.model import Model


@dataclass(frozen=True, repr=False)
class PlugIn:
    """The risk of the best rule if plain Bayes were true, with its interval, and the leave-one-out risk beside it.

    `left_out` is None where the training rows are not known.
    """

    risk: float
    interval: tuple[float, float]
    left_out: float | None
    loss: Loss

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        low, high = self.interval
        found = f"by the model's own lights {self.risk:.4f} (between {max(low, 0.0):.4f} and {high:.4f})"
        return found + ("" if self.left_out is None else f"; leave-one-out {self.left_out:.4f}")


@dataclass(frozen=True)
class ParameterCount:
    """Free parameters: of every column by itself, of the model as it is, and of the full joint distribution."""

    naive: int
    model: int
    full: int

    @classmethod
    def of(cls, counts: Counts, plain: Model, model: Model) -> "ParameterCount":
        classes = counts.classes.size
        tuned = int(((model.weights != 1.0) & (model.weights != 0.0)).sum()) + (classes - 1 if model.bias.any() else 0)
        naive = sum(likelihood.parameters().apart for likelihood in plain.likelihoods)
        here = sum(
            count
            for likelihood, slot in zip(model.likelihoods, model.schema.slots, strict=True)
            for count, weight in zip(likelihood.parameters().blocks, model.weights[slot], strict=True)
            if weight != 0.0
        )
        return cls(classes - 1 + naive, classes - 1 + tuned + here, classes - 1 + _full(plain, classes))

    def __str__(self) -> str:
        full = f"{self.full:,}" if self.full < 10**15 else f"about 10^{floor(log10(self.full))}"
        return f"naive {self.naive:,}, as it is {self.model:,}, full joint {full}"


def _full(plain: Model, classes: int) -> int:
    """Of a table of all discrete columns, with a joint Gaussian of all others in each of its cells, for every class."""
    found = [likelihood.parameters() for likelihood in plain.likelihoods]
    cells, numbers = prod(each.values for each in found), sum(each.numbers for each in found)
    return classes * (cells * (1 + numbers + numbers * (numbers + 1) // 2) - 1)
