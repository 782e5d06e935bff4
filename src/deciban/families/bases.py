"""What families, and likelihoods, have in common whatever they model: a new one writes only what is special to it."""

from collections.abc import Hashable, Sequence
from dataclasses import fields
from typing import Any, ClassVar, Self

import numpy as np

from deciban.families.column_numbers import ColumnNumbers
from deciban.families.shares import Shares
from deciban.families.sql_questions import Later, SqlQuestions
from deciban.families.support import VALUES, Support
from deciban.families.terms import Terms
from deciban.util.arrays import Floats


class ShortRepr:
    """Written as it would be typed: parameters that have their default are left out."""

    def __repr__(self) -> str:
        given = [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in fields(self)  # type: ignore[arg-type]  # every family is a dataclass
            if getattr(self, field.name) != field.default
        ]
        return f"{type(self).__name__}({', '.join(given)})"


class CountedFamily(ShortRepr):
    """A family that counts the same whatever its parameters are: they matter when it is estimated."""

    absorbs: ClassVar[bool] = False
    interaction: ClassVar[bool] = False
    in_bins: ClassVar[bool] = False
    holds_texts: ClassVar[bool] = False

    @property
    def ordered(self) -> bool:
        return False

    @property
    def counts(self) -> Hashable:
        return type(self).__name__

    @property
    def support(self) -> Support:
        return VALUES

    def alternatives(self, numbers: ColumnNumbers | None, others: Sequence[Any]) -> list[Any]:
        return [self]

    @classmethod
    def suited_to(cls, numbers: ColumnNumbers) -> list[Self]:
        return []

    def count_in_sql(self, questions: SqlQuestions, columns: Sequence[int]) -> Later[Any] | None:
        return None


class ColumnFamily(CountedFamily):
    """A family that models each column by itself."""

    joint: ClassVar[bool] = False

    def alone(self) -> Self:
        return self


class BlockFamily(CountedFamily):
    """A family that models its columns together."""

    joint: ClassVar[bool] = True


class BaseLikelihood:
    """What a likelihood answers where a question does not apply to it."""

    takes_length: ClassVar[bool] = False

    @property
    def texts(self) -> tuple[Any, ...]:
        return ()

    def base(self, cells: Any) -> Floats | None:
        return None

    def shares(self, cells: Any) -> Shares | None:
        return None

    def score_terms(self, names: Sequence[str]) -> Sequence[Terms] | None:
        return None

    def cumulative(self, x: Floats, column: int, label: int) -> Floats | None:
        return None

    def landmarks(self, column: int) -> Floats:
        return np.zeros(0)

    def known_values(self) -> Sequence[Any] | None:
        return None
