"""The labels of rows as JSON has them, and the classes that they name."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from deciban.serve.json_values import JSON_KINDS
from deciban.serve.problems import Problem
from deciban.tables.labels import LabelArray
from deciban.util.text_tables import listed

# What labels are called, by the kinds of NumPy's types.
KINDS_OF_CLASSES = {
    "b": "true or false",
    "i": "a whole number",
    "u": "a whole number",
    "f": "a number",
    "U": "text",
    "O": "text",
}

# Whole numbers that classes can be.
LARGEST_LABEL = (1 << 63) - 1


@dataclass(frozen=True)
class ClassLabels:
    """What labels may be: `known` are those that the model has, or had before all rows of them were forgotten.

    kind: of NumPy's type of the classes; "?" for dates and other things that JSON writes as text. new: whether others
    may come. most: how many there may be in all.
    """

    kind: str
    dtype: Any
    known: dict[Any, Any]
    declared: bool
    new: bool
    most: int

    @classmethod
    def of(cls, classes: LabelArray, before: Iterable[Any], declared: bool, new: bool, most: int) -> "ClassLabels":
        """The labels of these classes, and those, as JSON has them, that were there before."""
        kind: str = classes.dtype.kind
        if kind not in KINDS_OF_CLASSES or (kind == "O" and not all(isinstance(label, str) for label in classes)):
            kind = "?"
        found = dict.fromkeys(before)
        values = list(classes) if kind == "?" else classes.tolist()
        found.update({(str(value) if kind == "?" else value): value for value in values})
        dtype = {"U": np.str_, "O": object}.get(kind, classes.dtype)
        known = {label: label if value is None else value for label, value in found.items()}
        return cls(kind, dtype, known, declared, new, most)

    def read(self, label: Any, place: str) -> Any:
        """The label, if it may be learned, as it is written to the journal; a Problem where it may not."""
        if label is None:
            raise Problem(422, "the label is missing", "give each row a label", place)
        right = self._as_kind(label)
        if right is None:
            found = JSON_KINDS.get(type(label), type(label).__name__)
            expected = KINDS_OF_CLASSES.get(self.kind, "text")
            raise Problem(422, f"found {found} as a label, expected {expected}", "send labels like the classes", place)
        if right not in self.known and (not self.new or self.declared or self.kind == "?"):
            cause = f"the label {str(right)[:80]!r} is none of the classes {listed(list(self.known), 6)}"
            remedy = "correct it" if self.declared else "correct it, or let the service learn new classes"
            raise Problem(422, cause, remedy, place)
        if right not in self.known and len(self.known) >= self.most:
            cause = f"the label {str(right)[:80]!r} is new, and there are {len(self.known):,} classes already"
            raise Problem(422, cause, f"send one of these: there may be {self.most:,}", place)
        if isinstance(right, str) and not _is_unicode(right):
            raise Problem(422, "the label is not valid Unicode", "send text without lone surrogates", place)
        return right

    def _as_kind(self, label: Any) -> Any:
        """The label as the type that classes have; None where it is something else."""
        if self.kind in "UO?":
            return label if isinstance(label, str) else None
        if self.kind == "b":
            return label if isinstance(label, bool) else None
        if (
            isinstance(label, bool)
            or not isinstance(label, int | float)
            or not -LARGEST_LABEL <= label <= LARGEST_LABEL
        ):
            return None
        whole = int(label)
        if whole != label or (self.kind == "u" and whole < 0):
            return None
        return float(label) if self.kind == "f" else whole

    def with_label(self, label: Any) -> "ClassLabels":
        """The same with a label that was learned."""
        if label in self.known:
            return self
        return replace(self, known={**self.known, label: label})

    def array(self, labels: list[Any]) -> LabelArray:
        """Labels that were read, as the engine takes them."""
        found = [self.known.get(label, label) for label in labels]
        try:
            return np.array(found, dtype=self.dtype)
        except OverflowError:  # a new class that the narrow type of the others does not hold
            return np.array(found, dtype=np.int64)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
