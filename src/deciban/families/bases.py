"""What families have in common whatever they model."""

from collections.abc import Hashable
from dataclasses import fields


class ShortRepr:
    """Written as it would be typed: parameters that have their default are left out."""

    def __repr__(self) -> str:
        spoken = [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in fields(self)  # type: ignore[arg-type]  # every family is a dataclass
            if getattr(self, field.name) != field.default
        ]
        return f"{type(self).__name__}({', '.join(spoken)})"


class CountedFamily(ShortRepr):
    """A family that counts the same whatever its parameters are: they matter when it is estimated."""

    absorbs = False

    @property
    def ordered(self) -> bool:
        return False

    @property
    def counts(self) -> Hashable:
        return type(self).__name__


class ColumnFamily(CountedFamily):
    """A family that models each column by itself."""

    joint = False


class BlockFamily(CountedFamily):
    """A family that models its columns together."""

    joint = True
