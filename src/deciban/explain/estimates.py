"""Estimated parameters of a model as tables, and the number of its free parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import floor, inf, log10, prod
from typing import Any

import numpy as np

from deciban.errors import UsageError
from deciban.families import Family
from deciban.families.base.parts import name_part
from deciban.model.counts import Counts
from deciban.model.model import Model
from deciban.tables.labels import LabelArray
from deciban.util.arrays import Floats
from deciban.util.frames import Library, make_frame, remember_library
from deciban.util.results import Part, Result, TextTable
from deciban.util.text_tables import (
    format_class,
    format_digits,
    format_number,
    list_names,
    note_hidden,
    suggestion,
)

# Blocks that are printed; more would fill several screens.
MAX_BLOCKS_PRINTED = 40

# Lines per block that are printed; a categorical column may have thousands.
MAX_LINES_PRINTED = 12

# Classes that are printed; more do not fit side by side.
MAX_CLASSES_PRINTED = 8

# Name of the prior in tables of estimates.
PRIOR = "(prior)"


class UnknownNameError(UsageError, KeyError):
    """Raised for the name of an unknown block or parameter; a KeyError, as a mapping requires."""


@dataclass(frozen=True, repr=False)
class BlockEstimates(Result):
    """Estimates of a column or a joint block: arrays by parameter, in the order of `classes`.

    values: meaning of the second axis: values of the column, tuples of values, intervals (low, high) or words. None
        without a second axis, or if it stands for `columns`.
    weight: factor of its evidence: 1 in plain Bayes, 0 if tuning omits the block.
    """

    name: str
    columns: tuple[str, ...]
    family: Family
    weight: float
    classes: LabelArray
    parameters: dict[str, Floats]
    values: tuple[Any, ...] | None

    def __getitem__(self, parameter: str) -> Floats:
        if parameter not in self.parameters:
            raise UnknownNameError(
                f"{self.name!r} has no parameter {parameter!r}",
                remedy=f"use {list_names(tuple(self.parameters))}; to_dict() and to_frame() name each value",
            )
        return self.parameters[parameter]

    def lines(self) -> Iterator[tuple[str, Any, Floats]]:
        """Yield each parameter, its value (or column, or pair of columns, or None), and its estimates by class."""
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
        """Return {parameter: {class: estimate}}; an estimate may be {value: number} or a list of lists."""
        labels = self.classes.tolist()
        found: dict[str, dict[Any, Any]] = {}
        for parameter, array in self.parameters.items():
            each: list[Any] = array.tolist()
            if array.ndim == 2:
                names = self.columns if self.values is None else self.values
                each = [dict(zip(names, row, strict=True)) for row in each]
            found[parameter] = dict(zip(labels, each, strict=True))
        return found

    def _columns(self) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {name: [] for name in ("parameter", "value", "class", "estimate")}
        labels = self.classes.tolist()
        for parameter, value, estimates in self.lines():
            found["parameter"] += [parameter] * len(labels)
            found["value"] += [value] * len(labels)
            found["class"] += labels
            found["estimate"] += estimates.tolist()
        return found

    def _parts(self) -> list[Part]:
        weighted = "" if self.weight == 1.0 else f", weight {self.weight:.3g}"
        shown = [format_class(label) for label in self.classes.tolist()[:MAX_CLASSES_PRINTED]]
        table: list[tuple[str, ...]] = []
        count = 0
        for parameter, value, estimates in self.lines():
            count += 1
            if count <= MAX_LINES_PRINTED:
                table.append(
                    (
                        _format_label(parameter, name_part(self.family.part, value)),
                        *(format_digits(float(number)) for number in estimates[:MAX_CLASSES_PRINTED]),
                    )
                )
        notes = note_hidden(count - MAX_LINES_PRINTED, "more line")
        notes += note_hidden(self.classes.size - MAX_CLASSES_PRINTED, "more class")
        return [TextTable(table, ("", *shown), title=f"{self.name}: {self.family}{weighted}", notes=notes)]


@dataclass(frozen=True, repr=False)
class Estimates(Result, Mapping[str, BlockEstimates]):
    """Estimated parameters of a model: a mapping from the name of each block to its estimates.

    A block of one column has the name of the column. `to_frame` returns a line for each number: ``block``,
    ``parameter``, ``value``, ``class`` and ``estimate``, first those of the prior, as the block "(prior)". Except in
    pandas, values and classes are text.

    prior: prior probability of each class.

    Examples
    --------
    >>> from deciban import BayesClassifier
    >>> from deciban.datasets import weather
    >>> estimates = BayesClassifier(tune=None).fit(weather(), "play").estimates()
    >>> list(estimates), round(estimates.prior["yes"], 3)
    (['outlook', 'temperature', 'humidity', 'wind'], 0.643)
    """

    blocks: dict[str, BlockEstimates]
    prior: dict[Any, float]

    @classmethod
    def from_model(cls, model: Model) -> Estimates:
        """Collect the estimates of a model."""
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
        if name not in self.blocks:
            hint = suggestion(name, self.blocks).removeprefix("; ") if isinstance(name, str) else ""
            raise UnknownNameError(
                f"found no estimates of {name!r}", remedy=hint or f"use {list_names(tuple(self.blocks))}"
            )
        return remember_library(self.blocks[name], self)

    def __iter__(self) -> Iterator[str]:
        return iter(self.blocks)

    def __len__(self) -> int:
        return len(self.blocks)

    def to_dict(self) -> dict[str, dict[str, dict[Any, Any]]]:
        """Return {block: {parameter: {class: estimate}}}; the first block is "(prior)"."""
        return {PRIOR: {"probability": self.prior}, **{name: block.to_dict() for name, block in self.items()}}

    def _frame(self, library: Library) -> Any:
        found = self._columns()
        for name in ("value", "class") if library != "pandas" else ():
            found[name] = [None if cell is None else _format_value(cell) for cell in found[name]]
        return make_frame(found, library)

    def _columns(self) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {
            "block": [PRIOR] * len(self.prior),
            "parameter": ["probability"] * len(self.prior),
            "value": [None] * len(self.prior),
            "class": list(self.prior),
            "estimate": list(self.prior.values()),
        }
        for name, block in self.items():
            columns = block._columns()
            found["block"] += [name] * len(columns["estimate"])
            for column, cells in columns.items():
                found[column] += cells
        return found

    def _parts(self) -> list[Part]:
        blocks = list(self.values())[:MAX_BLOCKS_PRINTED]
        hidden = note_hidden(len(self) - len(blocks), "more block")
        return [self._prior_table(), *(part for block in blocks for part in block._parts()), *hidden]

    def _prior_table(self) -> TextTable:
        classes = list(self.prior)[:MAX_CLASSES_PRINTED]
        line = ("P(class)", *(format_digits(self.prior[label]) for label in classes))
        notes = note_hidden(len(self.prior) - MAX_CLASSES_PRINTED, "more class")
        return TextTable([line], ("", *map(format_class, classes)), title="prior", notes=notes)


def _format_label(parameter: str, value: Any) -> str:
    """Return the name of a line, such as mean, P(sunny), mean of age, or density 1 to 2."""
    chance = {"probability": "1", "unseen": "any other"}.get(parameter)
    if chance is not None:
        return f"P({chance if value is None else _format_value(value)})"
    if value is None:
        return parameter
    return f"{parameter} {_format_value(value)}" if parameter == "density" else f"{parameter} of {_format_value(value)}"


def _format_value(value: Any) -> str:
    if isinstance(value, tuple):
        interval = len(value) == 2 and all(isinstance(edge, float) for edge in value)
        return (" to " if interval else ", ").join(_format_value(part) for part in value)
    return format_number(value) if isinstance(value, float) else format_class(value)


# Larger counts are printed as a power of ten.
MAX_SHOWN = 10**15

# More factors than this make the printed product unreadable.
MAX_SIZES_SHOWN = 10


@dataclass(frozen=True, repr=False)
class ParameterCount(Result):
    """Number of free parameters of the naive model, of the fitted model and of the full joint distribution.

    Each number includes the prior, which has one parameter less than there are classes. The full joint distribution is
    a table of all combinations of the discrete columns, with a joint normal distribution of all continuous columns in
    each cell: V (1 + n + n (n + 1) / 2) - 1 parameters per class. It is infinite for texts and unbounded counts; a text
    whose words are only present or absent has 2^words combinations.

    Parameters
    ----------
    naive, model : int
        Parameters of the naive model, and of the fitted model.
    full : int or float
        Parameters of the full joint distribution; may be ``inf``.
    classes : int
        Number of classes.
    naive_per_class : int
        Parameters of each class in the naive model.
    naive_shared : int
        Parameters shared by all classes in the naive model, such as a pooled variance.
    full_per_class : int or float
        Parameters per class of the full joint distribution.
    sizes : tuple of int
        Number of values of each discrete column.
    numbers : int
        Number of continuous columns.
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
    def from_counts(cls, counts: Counts, plain: Model, model: Model) -> ParameterCount:
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
        """V: number of combinations of values of the discrete columns; 1 without discrete columns."""
        return prod(self.sizes)

    @property
    def full_name(self) -> str:
        """Name of the full joint distribution: without discrete columns, it is quadratic discriminant analysis."""
        return (
            "full covariance (QDA)"
            if self.numbers and not self.sizes and self.full < inf
            else "full joint distribution"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as plain data; counts above a quadrillion, and infinite ones, are text."""
        return {
            "naive": self.naive,
            "naive_per_class": self.naive_per_class,
            "naive_shared": self.naive_shared,
            "model": self.model,
            "full": _plain_count(self.full),
            "full_name": self.full_name,
            "full_per_class": _plain_count(self.full_per_class),
            "combinations": _plain_count(self.combinations),
            "numbers": self.numbers,
        }

    def _columns(self) -> dict[str, list[Any]]:
        return {"model": ["naive", "model", "full"], "parameters": [self.naive, self.model, float(self.full)]}

    def _parts(self) -> list[Part]:
        prior = f"{self.classes - 1} + {self.classes} classes × "
        shared = f" + {self.naive_shared:,} shared" if self.naive_shared else ""
        lines = [
            ("naive Bayes", _format_count(self.naive), f"= {prior}{self.naive_per_class:,}{shared}"),
            ("fitted model", _format_count(self.model), ""),
            (self.full_name, _format_count(self.full), "texts and counts have no bound"),
        ]
        if self.full < inf:
            lines[-1] = (*lines[-1][:2], f"= {prior}{_format_count(self.full_per_class)}")
        if self.sizes:
            product = " × ".join(_format_count(size) for size in self.sizes)
            shown = len(self.sizes) > 1 and len(self.sizes) <= MAX_SIZES_SHOWN
            lines.append(("combinations", _format_count(self.combinations), f"= {product}" if shown else ""))
        return [TextTable(lines, right=[1])]


def _format_count(count: int | float) -> str:
    """Return a number of parameters as text, as a power of ten if large."""
    if count == inf:
        return "infinite"
    return f"{count:,}" if count < MAX_SHOWN else f"about 10^{floor(log10(count))}"


def _plain_count(count: int | float) -> int | str:
    return int(count) if count < MAX_SHOWN else _format_count(count)
