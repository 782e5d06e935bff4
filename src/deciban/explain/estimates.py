"""The estimates of a model as tables (means, variances, probabilities of values), and the number of its parameters."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import floor, inf, log10, prod
from typing import Any

import numpy as np

from deciban.families import Family
from deciban.model.counts import Counts
from deciban.model.model import Model
from deciban.tables.labels import LabelArray
from deciban.util.arrays import Floats
from deciban.util.frames import data_frame
from deciban.util.text_tables import align_table, format_class, format_digits, format_number

# Blocks, lines of each and classes that are printed.
MAX_BLOCKS_PRINTED = 40
MAX_LINES_PRINTED = 12
MAX_CLASSES_PRINTED = 8

# The name under which tables of estimates have the prior.
PRIOR = "(prior)"


@dataclass(frozen=True, repr=False)
class BlockEstimates:
    """The estimates of one column, or of columns that are one block: arrays by parameter, in the order of `classes`.

    values: what the second axis stands for: values of the column, tuples of them, intervals (low, high), words; None
        where there is none, or it stands for the `columns`.
    weight: the factor of its evidence; 1 in plain Bayes, 0 where tuning leaves the block out.
    """

    name: str
    columns: tuple[str, ...]
    family: Family
    weight: float
    classes: LabelArray
    parameters: dict[str, Floats]
    values: tuple[Any, ...] | None

    def __getitem__(self, parameter: str) -> Floats:
        return self.parameters[parameter]

    def lines(self) -> Iterator[tuple[str, Any, Floats]]:
        """Each parameter, the value (or column, or pair of columns) that it is of, or None, and its estimates."""
        for parameter, array in self.parameters.items():
            if array.ndim == 1:
                yield parameter, None, array
            elif array.ndim == 2:
                for k, value in enumerate(self.columns if self.values is None else self.values):
                    yield parameter, value, array[:, k]
            else:
                for i, first in enumerate(self.columns):
                    for j, second in enumerate(self.columns[: i + 1]):
                        yield parameter, (second, first), array[:, j, i]

    def to_dict(self) -> dict[str, dict[Any, Any]]:
        """{parameter: {class: estimate}}, where an estimate may be {value: number} or a list of lists."""
        labels = self.classes.tolist()
        found: dict[str, dict[Any, Any]] = {}
        for parameter, array in self.parameters.items():
            each: list[Any] = array.tolist()
            if array.ndim == 2:
                names = self.columns if self.values is None else self.values
                each = [dict(zip(names, row, strict=True)) for row in each]
            found[parameter] = dict(zip(labels, each, strict=True))
        return found

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        weighted = "" if self.weight == 1.0 else f", weight {self.weight:.3g}"
        shown = [format_class(label) for label in self.classes.tolist()[:MAX_CLASSES_PRINTED]]
        table: list[tuple[str, ...]] = [("", *shown)]
        count = 0
        for parameter, value, estimates in self.lines():
            count += 1
            if count <= MAX_LINES_PRINTED:
                table.append(
                    (
                        _label(parameter, value),
                        *(format_digits(float(number)) for number in estimates[:MAX_CLASSES_PRINTED]),
                    )
                )
        text = f"{self.name}: {self.family}{weighted}\n{align_table(table)}"
        if count > MAX_LINES_PRINTED:
            text += f"\n… ({count - MAX_LINES_PRINTED:,} more lines)"
        more = self.classes.size - len(shown)
        return text + (f"\n… ({more:,} more classes)" if more > 0 else "")


@dataclass(frozen=True, repr=False)
class Estimates(Mapping[str, BlockEstimates]):
    """What a model has estimated, block by block under their names (a block of one column has its name); print it.

    A table of all has a line for each number: block, parameter, value, class, estimate. It begins with the prior, as
    the probability of the block "(prior)".

    prior: the prior probability of each class.
    """

    blocks: dict[str, BlockEstimates]
    prior: dict[Any, float]

    @classmethod
    def from_model(cls, model: Model) -> "Estimates":
        found = {}
        estimated = [likelihood.estimates() for likelihood in model.likelihoods]
        for b, name in enumerate(model.schema.block_names):
            group, place = model.schema.group_of_block(b)
            family, columns = model.schema.groups[group].family, model.schema.groups[group].columns
            members = columns if family.joint else columns[place : place + 1]
            names = tuple(model.schema.column_name(column) for column in members)
            one = estimated[group][place]
            weight = float(model.weights[b])
            found[name] = BlockEstimates(name, names, family, weight, model.classes, one.parameters, one.values)
        return cls(found, dict(zip(model.classes.tolist(), np.exp(model.log_prior).tolist(), strict=True)))

    def __getitem__(self, name: str) -> BlockEstimates:
        return self.blocks[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.blocks)

    def __len__(self) -> int:
        return len(self.blocks)

    def to_dict(self) -> dict[str, dict[str, dict[Any, Any]]]:
        """{block: {parameter: {class: estimate}}}; the first block is "(prior)"."""
        return {PRIOR: {"probability": self.prior}, **{name: block.to_dict() for name, block in self.items()}}

    def to_frame(self) -> Any:
        """A pandas DataFrame with a line for each number."""
        return data_frame(self._long())

    def to_arrow(self) -> Any:
        """The same as an Arrow table, values and classes as text."""
        import pyarrow as pa

        found = self._long()
        for name in ("value", "class"):
            found[name] = [None if cell is None else _written(cell) for cell in found[name]]
        types = {"estimate": pa.float64()}
        return pa.table({name: pa.array(cells, types.get(name, pa.string())) for name, cells in found.items()})

    def _long(self) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {
            "block": [PRIOR] * len(self.prior),
            "parameter": ["probability"] * len(self.prior),
            "value": [None] * len(self.prior),
            "class": list(self.prior),
            "estimate": list(self.prior.values()),
        }
        for name, block in self.items():
            labels = block.classes.tolist()
            for parameter, value, estimates in block.lines():
                found["block"] += [name] * len(labels)
                found["parameter"] += [parameter] * len(labels)
                found["value"] += [value] * len(labels)
                found["class"] += labels
                found["estimate"] += estimates.tolist()
        return found

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        shown = [str(block) for block in list(self.values())[:MAX_BLOCKS_PRINTED]]
        more = len(self) - len(shown)
        return "\n\n".join([self._prior(), *shown, *([f"… ({more:,} more blocks)"] if more > 0 else [])])

    def _prior(self) -> str:
        classes = list(self.prior)[:MAX_CLASSES_PRINTED]
        table = [
            ("", *map(format_class, classes)),
            ("P(class)", *(format_digits(self.prior[label]) for label in classes)),
        ]
        more = len(self.prior) - len(classes)
        return f"prior\n{align_table(table)}" + (f"\n… ({more:,} more classes)" if more > 0 else "")


def _label(parameter: str, value: Any) -> str:
    """A line's name: mean, P(sunny), mean of age, density from 1 to 2."""
    chance = {"probability": "1", "unseen": "any other"}.get(parameter)
    if chance is not None:
        return f"P({chance if value is None else _written(value)})"
    if value is None:
        return parameter
    return f"{parameter} {_written(value)}" if parameter == "density" else f"{parameter} of {_written(value)}"


def _written(value: Any) -> str:
    if isinstance(value, tuple):
        interval = len(value) == 2 and all(isinstance(edge, float) for edge in value)
        return (" to " if interval else ", ").join(_written(part) for part in value)
    return format_number(value) if isinstance(value, float) else format_class(value)


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
    def from_counts(cls, counts: Counts, plain: Model, model: Model) -> "ParameterCount":
        """Count the parameters of a model and of plain Bayes, both estimated from these counts."""
        classes = counts.classes.size
        tuned = int(((model.weights != 1.0) & (model.weights != 0.0)).sum()) + (classes - 1 if model.bias.any() else 0)
        found = [likelihood.free_parameters() for likelihood in plain.likelihoods]
        here = sum(
            count
            for likelihood, slot in zip(model.likelihoods, model.schema.block_slots, strict=True)
            for count, weight in zip(likelihood.free_parameters().blocks, model.weights[slot], strict=True)
            if weight != 0.0
        )
        corrected = 0 if model.corrections is None else model.corrections.cells * (classes - 1)
        apart, shared = sum(each.independent for each in found), sum(each.shared for each in found)
        sizes, numbers = sum((each.n_values for each in found), ()), sum(each.n_continuous for each in found)
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

    def to_dict(self) -> dict[str, Any]:
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
        return align_table(lines, right=[1])


def _shown(count: int | float) -> str:
    """A number of parameters, as a power of ten if it is large."""
    if count == inf:
        return "infinite"
    return f"{count:,}" if count < MAX_SHOWN else f"about 10^{floor(log10(count))}"


def _plain(count: int | float) -> int | str:
    return int(count) if count < MAX_SHOWN else _shown(count)
