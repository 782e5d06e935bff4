"""Why a column has its family: who chose it, and how that is said."""

from dataclasses import dataclass, replace
from enum import Enum


class ChosenBy(Enum):
    """Who chose the family of a column: the user gave it, its cells suggest it, or tuning preferred it."""

    GIVEN = "given"
    INFERRED = "inferred"
    TUNED = "tuned"


@dataclass(frozen=True)
class Reason:
    """Who chose a family and why; `note` says what else is to be known of the column, such as cells read as missing.

    >>> str(Reason(ChosenBy.INFERRED, "floating point", "2 cells read as missing"))
    'floating point, 2 cells read as missing'
    """

    source: ChosenBy
    text: str
    note: str = ""

    def __str__(self) -> str:
        return f"{self.text}, {self.note}" if self.note else self.text

    def with_note(self, note: str) -> "Reason":
        """The same reason with another note; an empty one changes nothing."""
        return replace(self, note=note) if note else self


# The user said so.
GIVEN = Reason(ChosenBy.GIVEN, "given")
