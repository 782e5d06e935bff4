"""What a fitted classifier knows: its settings, its counts, and the model that these support."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from deciban.errors import Argument, DataError, UsageError
from deciban.families.base.checks import Unseen, check_amount, check_unseen
from deciban.model.counts import Counts
from deciban.model.model import Model, estimate
from deciban.model.priors import Prior, parse_prior
from deciban.model.tuning import Tuning
from deciban.schema.schema import ColumnSpec, Schema
from deciban.tables.cells import CellHabits
from deciban.tables.labels import LabelArray, label_type
from deciban.util.arrays import Floats, PickledFields


@dataclass(frozen=True)
class Settings:
    """How to learn: the parameters of `BayesClassifier`, which documents them."""

    families: ColumnSpec = None
    prior: Any = "empirical"
    classes: Any = None
    alpha: float = 1.0
    unseen: Unseen = "ignore"
    threads: int | None = None
    tune: Any = "auto"

    @cached_property
    def class_prior(self) -> Prior:
        """The prior that `prior` stands for; a UsageError if it cannot be one."""
        return parse_prior(self.prior)

    def check(self) -> None:
        """Raise a UsageError that names the first invalid parameter."""
        check_amount("alpha", self.alpha)
        check_unseen(self.unseen)
        _ = self.class_prior
        if self.tune not in ("auto", "weights", None):
            raise UsageError("choose 'auto', 'weights', or None for plain Bayes", parameter=Argument("tune", self.tune))
        if self.threads is not None and not (isinstance(self.threads, int) and self.threads >= 1):
            raise UsageError(
                "give a whole number that is at least 1, or None for all cores",
                parameter=Argument("threads", self.threads),
            )


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
    habit: CellHabits | None = None

    def with_shards(self, shards: Iterable[str]) -> "Origin":
        return replace(self, shards=tuple(sorted(set(shards))))

    def remove_shards(self, *shards: str) -> "Origin":
        return replace(self, shards=tuple(known for known in self.shards if known not in shards))


@dataclass(frozen=True)
class Fitted(PickledFields):
    """Counts, log prior, tuning, and the model they support. Replaced as a whole: no reader sees half of a change."""

    counts: Counts
    log_prior: Floats
    tuning: Tuning | None = None
    origin: Origin = Origin()
    settings: Settings = Settings()

    @cached_property
    def model(self) -> Model:
        """What posteriors and decisions come from."""
        require_weight(self.counts)
        return self.plain if self.tuning is None else self.tuning.model(self.counts, self.log_prior)

    @cached_property
    def plain(self) -> Model:
        """Plain Bayes: each column once, by the family it was inferred or declared to have, with weight 1."""
        require_weight(self.counts)
        return estimate(self.counts.select_schema(self.counts.schema.plain), self.log_prior)

    @cached_property
    def generative(self) -> Model:
        """The generative model that pictures, reports and samples show: each column once, by the family that the model
        uses for it, with weight 1.

        Columns of a declared joint block stay together; one of them alone has its marginal. Blocks that tuning added
        beside the columns are left out. Texts keep the family of plain Bayes: a tuned one is a score, from which no
        text can be drawn.
        """
        if self.tuning is None:
            return self.plain
        require_weight(self.counts)
        tuned = (group for group in self.tuning.schema.plain.groups if not group.family.is_text)
        texts = (group for group in self.counts.schema.plain.groups if group.family.is_text)
        schema = replace(self.tuning.schema, groups=(*tuned, *texts))
        return estimate(self.counts.select_schema(schema), self.log_prior)

    @property
    def classes(self) -> LabelArray:
        """The classes, sorted."""
        return self.counts.classes

    @cached_property
    def schema(self) -> Schema:
        """What each column is in the model."""
        return self.counts.schema if self.tuning is None else self.tuning.described_schema

    @property
    def is_tuned(self) -> bool:
        """Whether weights were learned from rows."""
        return self.tuning is not None and self.tuning.rows > 0

    def column_types(self, target: str | None = None) -> dict[str, str]:
        """The Arrow type that each named column was learned with; with `target`, that of the labels too."""
        types = self.counts.schema.column_types
        return {**types, target: label_type(self.classes)} if target is not None else types

    def class_index(self, label: Any) -> int:
        """The place of a class among the classes; a UsageError where it is none of them."""
        labels = self.classes.tolist()
        if label not in labels:
            raise UsageError(f"the class {label!r} is none of {labels}")
        return int(labels.index(label))

    def with_settings(self, settings: Settings) -> "Fitted":
        """The same with other settings, on which the model does not depend."""
        changed = replace(self, settings=settings)
        vars(changed).update(
            {name: made for name, made in vars(self).items() if name in ("model", "plain", "generative")}
        )
        return changed

    @property
    def single_threaded(self) -> "Fitted":
        """The same for a task on another machine, which has one core."""
        return self.with_settings(replace(self.settings, threads=1))


def require_weight(counts: Counts) -> None:
    """Counts to make a model of have at least one row with a label and a weight."""
    if not counts.class_weight.any():
        raise DataError(
            "nothing was learned: every row had weight 0, so there is nothing to predict by",
            remedy="learn rows that have a weight, or add a model that has",
        )
