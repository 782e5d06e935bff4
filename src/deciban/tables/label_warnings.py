"""Warnings of labels that are probably not meant as they stand: numbers, identifiers, spellings, half of a word."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from deciban.tables.labels import LabelArray, Labels
from deciban.util.arrays import Floats
from deciban.util.text_tables import counted

# So many classes or more, with so few rows each on average, are probably no classes.
MANY_CLASSES = 20
ROWS_OF_A_CLASS = 3

# Spellings that are shown.
SHOWN = 3


def too_many(labels: Labels) -> str:
    """A warning of labels of which hardly one is there twice; an empty text where they are classes."""
    if labels.classes.size < MANY_CLASSES:
        return ""
    rows_of = np.bincount(labels.codes[labels.codes >= 0])
    rows, classes = int(rows_of.sum()), int(np.count_nonzero(rows_of))
    if classes < MANY_CLASSES or rows >= ROWS_OF_A_CLASS * classes:
        return ""
    shown = f"the target has {counted(classes, 'class')} in {counted(rows, 'row')}"
    if labels.classes.dtype.kind in "iuf" and classes < rows:
        return (
            f"{shown}: it looks like a number to be predicted; turn it into a few classes first, such as low and high"
        )
    return f"{shown}: it looks like an identifier; name the column that holds the classes"


def spellings(classes: Iterable[Any]) -> str:
    """A warning of classes that differ only in case or in spaces; an empty text where none do."""
    alike: dict[str, list[str]] = {}
    for label in classes:
        if isinstance(label, str):
            alike.setdefault(" ".join(label.split()).casefold(), []).append(label)
    several = [group for group in alike.values() if len(group) > 1]
    if not several:
        return ""
    shown = "; ".join(", ".join(map(repr, group)) for group in several[:SHOWN]) + (
        "; …" if len(several) > SHOWN else ""
    )
    return f"classes differ only in case or spaces ({shown}) and are learned apart; write each in one way"


def cut_off(unfinished: Sequence[str], classes: LabelArray, class_weight: Floats, known: LabelArray | None) -> str:
    """A warning of the label of a last line that has no end, if no other row has it; else an empty text.

    unfinished: the labels of such lines. known: the classes of the model before these rows.
    """
    before = set() if known is None else {str(label) for label in known.tolist()}
    weight = {str(label): float(some) for label, some in zip(classes.tolist(), class_weight, strict=True)}
    alone = [label for label in unfinished if weight.get(label, 2.0) <= 1.0 and label not in before]
    if not alone:
        return ""
    return (
        f"the last line has no end, and no other row has its label {alone[0]!r}: is the file cut off? "
        f"Complete it; if it is whole, end its last line"
    )
