"""State of a fitted classifier: settings, counts, tuning, and the model estimated from them."""

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
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
    """Parameters of `BayesClassifier`, which documents them."""

    families: ColumnSpec = None
    prior: Any = "empirical"
    classes: Any = None
    alpha: float = 1.0
    unseen: Unseen = "ignore"
    threads: int | None = None
    tune: Any = "auto"
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
        if self.unlabeled not in ("em", None):
            raise UsageError("use 'em', or None to ignore them", parameter=Argument("unlabeled", self.unlabeled))
        if self.threads is not None and not (isinstance(self.threads, int) and self.threads >= 1):
            raise UsageError(
                "use an integer >= 1, or None for all cores",
                parameter=Argument("threads", self.threads),
            )


@dataclass(frozen=True)
class Origin:
    """Origin of the rows: the columns of their labels and weights, and the shards that were merged.

    ignored: columns that were left out, and will be left out of files that are learned later. habit: format of the
    cells in CSV files, also used for files that are read later; None is the default format.
    """

    target: str | None = None
    weight: str | None = None
    shards: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    habit: CellHabits | None = None

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
        return self.plain if self.tuning is None else self.tuning.model(self.counts, self.log_prior)

    @cached_property
    def plain(self) -> Model:
        """Plain Bayes model: each column once, with its inferred or declared family and weight 1."""
        require_weight(self.counts)
        return estimate(self.learned.select_schema(self.counts.schema.plain), self.log_prior)

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
        vars(changed).update(
            {name: value for name, value in vars(self).items() if name in ("model", "plain", "generative")}
        )
        return changed

    @property
    def single_threaded(self) -> "Fitted":
        """The same state with one thread, for tasks on another machine."""
        return self.with_settings(replace(self.settings, threads=1))


def require_weight(counts: Counts) -> None:
    """Raise a DataError if no counted row has a label and a weight."""
    if not counts.class_weight.any():
        raise DataError(
            "nothing was learned: every row had weight 0",
            remedy="learn rows with positive weights",
        )
