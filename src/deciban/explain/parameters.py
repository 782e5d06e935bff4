"""How many numbers a model has to learn."""

from dataclasses import dataclass
from math import floor, log10, prod

from deciban.counts import Counts
from deciban.model import Model


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
            for likelihood, slot in zip(model.likelihoods, model.schema.block_slots, strict=True)
            for count, weight in zip(likelihood.parameters().blocks, model.weights[slot], strict=True)
            if weight != 0.0
        )
        corrected = 0 if model.corrections is None else model.corrections.cells * (classes - 1)
        return cls(classes - 1 + naive, classes - 1 + tuned + here + corrected, classes - 1 + _full(plain, classes))

    def __str__(self) -> str:
        full = f"{self.full:,}" if self.full < 10**15 else f"about 10^{floor(log10(self.full))}"
        return f"naive {self.naive:,}, as it is {self.model:,}, full joint {full}"


def _full(plain: Model, classes: int) -> int:
    """The parameters of a table of all discrete columns with a joint Gaussian of all others in each of its cells."""
    found = [likelihood.parameters() for likelihood in plain.likelihoods]
    cells, numbers = prod(each.values for each in found), sum(each.numbers for each in found)
    return classes * (cells * (1 + numbers + numbers * (numbers + 1) // 2) - 1)
