"""What a fitted classifier knows, and what it must have to know anything."""

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

from deciban.arrays import Floats
from deciban.counts import Counts
from deciban.errors import DataError
from deciban.model import Model, estimate
from deciban.schema.schema import ADDED_LATER
from deciban.tables.cell_formats import CellHabits
from deciban.tables.table import Table
from deciban.tune.tuning import Tuning


@dataclass(frozen=True)
class Origin:
    """Where the rows came from: the columns of their labels and weights, and the shards they were added up from.

    ignored: columns of their files that were left out, and are left out of files that are learned later.
    habit: how the cells of their files were written, and so are read later; None is the usual way.
    """

    target: str | None = None
    weight: str | None = None
    shards: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    habit: CellHabits | None = field(default=None, metadata=ADDED_LATER)

    def with_shards(self, shards: Iterable[str]) -> "Origin":
        return replace(self, shards=tuple(sorted(set(shards))))

    def without(self, *shards: str) -> "Origin":
        return replace(self, shards=tuple(known for known in self.shards if known not in shards))


@dataclass(frozen=True)
class Fitted:
    """Counts, log prior, tuning, and the model they support. Replaced as a whole: no reader sees half of a change."""

    counts: Counts
    log_prior: Floats
    tuning: Tuning | None = None
    origin: Origin = Origin()

    @cached_property
    def model(self) -> Model:
        """What posteriors and decisions come from."""
        refuse_no_weight(self.counts)
        return self.plain if self.tuning is None else self.tuning.model(self.counts, self.log_prior)

    @cached_property
    def plain(self) -> Model:
        """Plain Bayes, each column once with weight 1: what densities and samples come from."""
        refuse_no_weight(self.counts)
        return estimate(self.counts.for_schema(self.counts.schema.plain), self.log_prior)

    def __getstate__(self) -> dict[str, Any]:
        """Without the model, which is made of the rest when it is needed."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def refuse_empty(table: Table) -> None:
    """A table to learn from has rows and columns."""
    for count, what in ((table.rows, "sample(s)"), (table.width, "feature(s)")):
        if count == 0:
            raise DataError(
                f"Found array with 0 {what} (shape=({table.rows}, {table.width})) while a minimum of 1 is required: "
                f"there is nothing to learn from"
            )


def refuse_nothing_learned(counts: Counts, partly: bool = False) -> None:
    """Rows to learn from have labels and weights; rows of no weight at all may be a part, which adds nothing."""
    if counts.class_weight.any() or (partly and not counts.unlabelled):
        return
    raise DataError(
        "no row is left to learn from: every label is missing or every weight is zero; "
        "give at least one row with a label and a weight"
    )


def refuse_no_weight(counts: Counts) -> None:
    """Counts to make a model of have at least one row with a label and a weight."""
    if not counts.class_weight.any():
        raise DataError(
            "nothing was learned: every row had weight 0, so there is nothing to predict by; "
            "learn rows that have a weight, or add a model that has"
        )
