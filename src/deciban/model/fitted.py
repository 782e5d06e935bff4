"""State of a fitted classifier: settings, counts, tuning, and the model estimated from them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from deciban.errors import Argument, DataError, UsageError
from deciban.families.base.checks import Unseen, check_amount, check_unseen
from deciban.families.base.contract import Monotone
from deciban.model.counts import Counts
from deciban.model.model import Model, estimate
from deciban.model.priors import Prior, parse_prior
from deciban.model.tuning import Tuning
from deciban.schema.schema import ColumnGroup, ColumnSpec, Schema
from deciban.tables.cells import CellHabits
from deciban.tables.labels import LabelArray, label_type
from deciban.util.arrays import Floats, Integers, PickledFields


@dataclass(frozen=True)
class Settings:
    """Parameters of `BayesClassifier`, which documents them."""

    families: ColumnSpec = None
    prior: Any = "empirical"
    classes: Any = None
    alpha: float = 1.0
    unseen: Unseen = "ignore"
    threads: int | None = None
    tune: Any = "auto"
    ordered: bool = field(default=False, metadata={"optional": True})
    monotone: Mapping[Any, int] | None = field(default=None, metadata={"optional": True})
    unlabeled: Any = field(default=None, metadata={"optional": True})  # not in files of version 1.0

    @cached_property
    def class_prior(self) -> Prior:
        """Prior given by `prior`; raises a UsageError if it is invalid."""
        return parse_prior(self.prior)

    def check(self) -> None:
        """Raise a UsageError that names the first invalid parameter."""
        check_amount("alpha", self.alpha)
        check_unseen(self.unseen)
        _ = self.class_prior
        if self.tune not in ("auto", "weights", None):
            raise UsageError("use 'auto', 'weights', or None for plain Bayes", parameter=Argument("tune", self.tune))
        if not isinstance(self.ordered, bool):
            raise UsageError("use True or False", parameter=Argument("ordered", self.ordered))
        signs = self.monotone.values() if isinstance(self.monotone, Mapping) else [] if self.monotone is None else [0]
        if not all(sign in (1, -1) for sign in signs):
            raise UsageError("use a mapping from columns to 1 or -1", parameter=Argument("monotone", self.monotone))
        if self.unlabeled not in ("em", None):
            raise UsageError("use 'em', or None to ignore them", parameter=Argument("unlabeled", self.unlabeled))
        if self.threads is not None and not (isinstance(self.threads, int) and self.threads >= 1):
            raise UsageError(
                "use an integer >= 1, or None for all cores",
                parameter=Argument("threads", self.threads),
            )

    def order_classes(self, classes: LabelArray, given: Any = None) -> Integers | None:
        """Return the indices of ordered classes in ascending order; None if they have no order.

        given: all classes in ascending order; default: those of the settings, or else the sorted classes. Raise a
        UsageError if the order of the classes is unknown, but needed.
        """
        if not self.ordered and self.monotone and classes.size > 2:
            raise UsageError(
                f"there are {classes.size} classes without an order",
                remedy=("pass ", Argument("ordered", True)),
                parameter=Argument("monotone", self.monotone),
            )
        if not self.ordered:
            return None
        given, labels = list_in_order(self.classes if given is None else given), list_in_order(classes) or ()
        if given is None:
            if len(labels) > 2 and isinstance(labels[0], str):
                raise UsageError(
                    "the classes are texts without an order",
                    remedy=("give all of them in ascending order in ", Argument("classes")),
                    parameter=Argument("ordered", True),
                )
            return np.arange(len(labels))
        place = {label: k for k, label in enumerate(given)}
        if len(place) < len(given):
            raise UsageError("a class is listed twice, so the order is unknown", parameter=Argument("classes", given))
        return np.array(sorted(range(len(labels)), key=lambda c: place.get(labels[c], len(place))), dtype=np.int64)

    def orient_columns(self, order: Integers | None) -> dict[Any, Monotone]:
        """Return the direction in which each monotone column moves the classes, for families."""
        sorted_classes = order is None or bool((np.diff(order) > 0).all())
        signs = (self.monotone or {}).items()
        return {
            name: sign if sorted_classes or order is None else tuple(order[::sign].tolist()) for name, sign in signs
        }


@dataclass(frozen=True)
class Origin:
    """Origin of the rows: the columns of their labels and weights, and the shards that were merged.

    ignored: columns that were left out, and will be left out of files that are learned later. habit: format of the
    cells in CSV files, also used for files that are read later; None is the default format. order: the classes in
    ascending order, if their type has one.
    """

    target: str | None = None
    weight: str | None = None
    shards: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    habit: CellHabits | None = None
    order: tuple[Any, ...] | None = field(default=None, metadata={"optional": True})

    def with_shards(self, shards: Iterable[str]) -> "Origin":
        return replace(self, shards=tuple(sorted(set(shards))))

    def remove_shards(self, *shards: str) -> "Origin":
        return replace(self, shards=tuple(shard for shard in self.shards if shard not in shards))


@dataclass(frozen=True)
class About:
    """Metadata of a model, which do not affect it: a note, when it was fitted, on how many rows, and by what.

    fitted: time in UTC, as 2026-01-31T12:30:00Z. deciban, numpy, python: versions. Text is empty if unknown.
    """

    note: str = ""
    fitted: str = ""
    rows: int = 0
    deciban: str = ""
    numpy: str = ""
    python: str = ""

    def to_dict(self) -> dict[str, str | int]:
        """Return what is known."""
        return {field.name: value for field in fields(self) if (value := getattr(self, field.name))}


@dataclass(frozen=True)
class Fitted(PickledFields):
    """Counts, log prior and tuning, and the model estimated from them.

    about: metadata, kept when rows are learned or forgotten.

    The value is immutable and replaced as a whole, so that no reader sees a partial update.
    """

    counts: Counts
    log_prior: Floats
    tuning: Tuning | None = None
    origin: Origin = Origin()
    settings: Settings = Settings()
    about: About = About()

    def __repr__(self) -> str:
        return f"<Fitted {self.counts!r}, {'not tuned' if self.tuning is None else self.tuning.describe()}>"

    @cached_property
    def model(self) -> Model:
        """Model used for posteriors and decisions."""
        require_weight(self.counts)
        return self.plain if self.tuning is None else self._in_order(self.tuning.model(self.counts, self.log_prior))

    @cached_property
    def plain(self) -> Model:
        """Plain Bayes model: each column once, with its inferred or declared family and weight 1."""
        require_weight(self.counts)
        return self._in_order(estimate(self.learned.select_schema(self.counts.schema.plain), self.log_prior))

    def _in_order(self, model: Model) -> Model:
        return model if self.order is None else replace(model, order=self.order)

    @property
    def order(self) -> Integers | None:
        """Indices of ordered classes in ascending order; None if they have no order."""
        return self.settings.order_classes(self.classes, self.origin.order) if self.settings.ordered else None

    @property
    def listed(self) -> tuple[Any, ...] | None:
        """All classes in the order of their declaration; None if they were not declared in an order."""
        return list_in_order(self.settings.classes if self.origin.order is None else self.origin.order)

    @property
    def order_key(self) -> tuple[Any, ...]:
        """Everything that models must have in common besides their families: constraints and the given order."""
        settings = self.settings
        listed = (self.listed or ()) if settings.ordered else ()
        usual = not any(isinstance(label, str) for label in listed) and listed == tuple(sorted(listed))
        return settings.ordered, dict(settings.monotone or {}), () if usual else listed

    @cached_property
    def learned(self) -> Counts:
        """Counts that the model is estimated from: those of labeled rows, and the expected ones of others, if used."""
        return self.counts if self.tuning is None else self.tuning.add_unlabeled(self.counts)

    @cached_property
    def generative(self) -> Model:
        """Generative model shown in plots, reports and samples.

        Each column occurs once, with the family used in the model and weight 1. Columns of a declared joint block stay
        together; a single one of them has its marginal distribution. Blocks that tuning added are left out. Texts keep
        the family of plain Bayes, because a tuned text family is a score that cannot be sampled from.
        """
        if self.tuning is None:
            return self.plain
        require_weight(self.counts)
        tuned = (group for group in self.tuning.schema.plain.groups if not group.family.is_text)
        texts = (group for group in self.counts.schema.plain.groups if group.family.is_text)
        schema = replace(self.tuning.schema, groups=(*tuned, *texts))
        return estimate(self.learned.select_schema(schema), self.log_prior)

    @cached_property
    def joint_generative(self) -> Model:
        """Generative model with the joint blocks that tuning added in place of their columns, the largest first.

        Its rows are as dependent as those of the training data, so that their evidence is as large.
        """
        together: list[ColumnGroup] = []
        taken = {column for group in self.generative.schema.groups if group.family.joint for column in group.columns}
        groups = () if self.tuning is None else self.tuning.schema.groups
        for group in sorted(groups, key=lambda group: -len(group.columns)):
            if group.family.joint and not group.family.interaction and taken.isdisjoint(group.columns):
                together.append(replace(group, auxiliary=False))
                taken.update(group.columns)
        if not together:
            return self.generative
        covered = {column for group in together for column in group.columns}
        own = self.generative.schema.groups
        places = ([k for k, column in enumerate(group.columns) if column not in covered] for group in own)
        kept = (group.subset(alone) for group, alone in zip(own, places, strict=True) if alone)
        schema = replace(self.generative.schema, groups=(*together, *kept))
        return estimate(self.learned.select_schema(schema), self.log_prior)

    @property
    def classes(self) -> LabelArray:
        """Class labels, sorted."""
        return self.counts.classes

    @cached_property
    def schema(self) -> Schema:
        """Schema of the model."""
        return self.counts.schema if self.tuning is None else self.tuning.described_schema

    @property
    def is_tuned(self) -> bool:
        """True if evidence weights were learned from rows."""
        return self.tuning is not None and self.tuning.rows > 0

    def column_types(self, target: str | None = None) -> dict[str, str]:
        """Return the Arrow type of each named column in training; with `target`, also that of the labels."""
        types = self.counts.schema.column_types
        return {**types, target: label_type(self.classes)} if target is not None else types

    def class_index(self, label: Any) -> int:
        """Return the index of a class label; raise a UsageError if the model does not have it."""
        labels = self.classes.tolist()
        if label not in labels:
            raise UsageError(f"unknown class {label!r}; the model has {labels}")
        return int(labels.index(label))

    def with_settings(self, settings: Settings) -> "Fitted":
        """Return the same state with other settings that do not affect the model."""
        return self._with(settings=settings)

    def with_about(self, about: About) -> "Fitted":
        """Return the same state with other metadata."""
        return self._with(about=about)

    def _with(self, **changes: Any) -> "Fitted":
        changed = replace(self, **changes)
        if changed.settings.ordered != self.settings.ordered or changed.settings.classes is not self.settings.classes:
            return changed
        vars(changed).update(
            {name: value for name, value in vars(self).items() if name in ("model", "plain", "generative")}
        )
        return changed

    @property
    def single_threaded(self) -> "Fitted":
        """The same state with one thread, for tasks on another machine."""
        return self.with_settings(replace(self.settings, threads=1))


def list_in_order(classes: Any) -> tuple[Any, ...] | None:
    """Return declared classes in the order of the declaration; None for none and for a set, which has no order."""
    if classes is None or isinstance(classes, set | frozenset):
        return None
    found = np.atleast_1d(np.asarray(classes))
    return tuple((found.astype("datetime64[us]") if found.dtype.kind == "M" else found).tolist())


def require_weight(counts: Counts) -> None:
    """Raise a DataError if no counted row has a label and a weight."""
    if not counts.class_weight.any():
        raise DataError(
            "nothing was learned: every row had weight 0",
            remedy="learn rows with positive weights",
        )
