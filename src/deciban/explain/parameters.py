"""How many numbers a model has to learn."""

from dataclasses import dataclass
from math import floor, inf, log10, prod
from typing import Any

from deciban.model.counts import Counts
from deciban.model.model import Model
from deciban.util.text_tables import aligned

# Larger numbers are shown as a power of ten.
MAX_SHOWN = 10**15

# Columns whose numbers of values are shown as a product.
MAX_SIZES_SHOWN = 10


@dataclass(frozen=True)
class ParameterCount:
    """Free parameters: of every column by itself, of the model as it is, and of the full joint distribution.

    Every count contains the prior, which has one parameter less than there are classes. The full joint distribution
    is a table of all combinations of the discrete columns with a joint normal distribution of all numbers in each of
    its cells: V (1 + n + n (n + 1) / 2) - 1 parameters per class. It is infinite if texts, counts of words or other
    counts have no bound; a text of which only the presence of words counts has 2^words combinations.

    Parameters
    ----------
    naive, model : int
        Parameters of every column by itself, and of the model as it is.
    full : int or float
        Parameters of the full joint distribution; ``inf`` if it is infinite.
    classes : int
        The number of classes.
    naive_per_class : int
        Parameters that each class has of its own when every column is by itself.
    naive_shared : int
        Parameters that classes share then, such as a pooled variance.
    full_per_class : int or float
        Parameters per class of the full joint distribution.
    sizes : tuple of int
        The number of values of each discrete column.
    numbers : int
        The number of columns that are continuous numbers.
    """

    naive: int
    model: int
    full: int | float
    classes: int
    naive_per_class: int
    naive_shared: int
    full_per_class: int | float
    sizes: tuple[int, ...]
    numbers: int

    @classmethod
    def of(cls, counts: Counts, plain: Model, model: Model) -> "ParameterCount":
        """Count the parameters of a model and of plain Bayes, both estimated from these counts."""
        classes = counts.classes.size
        tuned = int(((model.weights != 1.0) & (model.weights != 0.0)).sum()) + (classes - 1 if model.bias.any() else 0)
        found = [likelihood.parameters() for likelihood in plain.likelihoods]
        here = sum(
            count
            for likelihood, slot in zip(model.likelihoods, model.schema.block_slots, strict=True)
            for count, weight in zip(likelihood.parameters().blocks, model.weights[slot], strict=True)
            if weight != 0.0
        )
        corrected = 0 if model.corrections is None else model.corrections.cells * (classes - 1)
        apart, shared = sum(each.apart for each in found), sum(each.shared for each in found)
        sizes, numbers = sum((each.sizes for each in found), ()), sum(each.numbers for each in found)
        each_class: int | float = inf
        if not any(each.unbounded for each in found):
            each_class = prod(sizes) * (1 + numbers + numbers * (numbers + 1) // 2) - 1
        prior = classes - 1
        return cls(
            naive=prior + apart,
            model=prior + tuned + here + corrected,
            full=prior + classes * each_class,
            classes=classes,
            naive_per_class=(apart - shared) // max(classes, 1),
            naive_shared=shared,
            full_per_class=each_class,
            sizes=sizes,
            numbers=numbers,
        )

    @property
    def combinations(self) -> int:
        """V: the product of the numbers of values of the discrete columns; 1 if there are none."""
        return prod(self.sizes)

    def as_dict(self) -> dict[str, Any]:
        """The counts for programs; those above a quadrillion, and infinite ones, as text."""
        return {
            "naive": self.naive,
            "naive_per_class": self.naive_per_class,
            "naive_shared": self.naive_shared,
            "model": self.model,
            "full": _plain(self.full),
            "full_per_class": _plain(self.full_per_class),
            "combinations": _plain(self.combinations),
            "numbers": self.numbers,
        }

    def __str__(self) -> str:
        prior = f"{self.classes - 1} + {self.classes} classes × "
        shared = f" + {self.naive_shared:,} shared" if self.naive_shared else ""
        lines = [
            ("naive", _shown(self.naive), f"= {prior}{self.naive_per_class:,}{shared}"),
            ("as it is", _shown(self.model), ""),
            ("full joint", _shown(self.full), "texts and counts have no bound"),
        ]
        if self.full < inf:
            lines[-1] = (*lines[-1][:2], f"= {prior}{_shown(self.full_per_class)}")
        if self.sizes:
            product = " × ".join(_shown(size) for size in self.sizes)
            shown = len(self.sizes) > 1 and len(self.sizes) <= MAX_SIZES_SHOWN
            lines.append(("combinations", _shown(self.combinations), f"= {product}" if shown else ""))
        return aligned(lines, right=[1])


def _shown(count: int | float) -> str:
    """A number of parameters, as a power of ten if it is large."""
    if count == inf:
        return "infinite"
    return f"{count:,}" if count < MAX_SHOWN else f"about 10^{floor(log10(count))}"


def _plain(count: int | float) -> int | str:
    return int(count) if count < MAX_SHOWN else _shown(count)
