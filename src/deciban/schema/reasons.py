"""Why a column has its family: who chose it, and how that is said."""

from collections.abc import Sequence
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


def written_reasons(reasons: Sequence[Reason]) -> tuple[str, ...]:
    """The texts of reasons, as model files have them."""
    return tuple(map(str, reasons))


def read_reasons(texts: Sequence[str]) -> tuple[Reason, ...]:
    """The reasons that these texts were written for: given ones, with or without a note, and others.

    The others count as inferred: what tuning chose is known from the rest of a model.
    """
    made = {text: _read(text) for text in set(texts)}
    return tuple(made[text] for text in texts)


def _read(text: str) -> Reason:
    word, comma, note = text.partition(", ")
    if word == GIVEN.text:
        return GIVEN.with_note(note) if comma else GIVEN
    return Reason(ChosenBy.INFERRED, text)
