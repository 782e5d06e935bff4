"""A block of a model, named for people and for programs."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from deciban.explain.cells import plain_cell, written_cell
from deciban.families import Family
from deciban.model.model import Model
from deciban.util.text_tables import shortened, width_of


@dataclass(frozen=True)
class Block:
    """A block of a model: its place, its family, and its columns with their names."""

    group: int
    place: int
    name: str
    family: Family
    columns: tuple[int, ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, model: Model, block: int) -> "Block":
        group, place = model.schema.group_of_block(block)
        here = model.schema.groups[group]
        columns = here.columns if here.family.joint else here.columns[place : place + 1]
        names = tuple(model.schema.column_name(column) for column in columns)
        return cls(group, place, model.schema.block_names[block], here.family, columns, names)

    def as_dict(self, row: list[Any]) -> dict[str, Any]:
        """The block for programs, with the values of its columns in a row; of many counts, those that are not 0."""
        cells = [(name, row[column]) for name, column in zip(self.names, self.columns, strict=True)]
        if self.family.absorbs:
            cells = [cell for cell in cells if cell[1] != 0]
        return {
            "block": self.name,
            "columns": [name for name, _ in cells],
            "values": [plain_cell(value) for _, value in cells],
        }

    def label(self, row: list[Any]) -> str:
        """The block of a row as people write it: outlook = sunny."""
        if len(self.columns) > 4:
            return f"{len(self.columns)} columns as {self.family}"
        cells = zip(self.names, self.columns, strict=True)
        return ", ".join(f"{name} = {written_cell(row[column])}" for name, column in cells)


def labels_of(blocks: Sequence[Block], row: list[Any]) -> list[str]:
    """Each block of a row as people write it, no two alike: with the family where need be."""
    labels = [block.label(row) for block in blocks]
    times = Counter(labels)
    labels = [
        label if times[label] == 1 else f"{label} as {block.family}"
        for label, block in zip(labels, blocks, strict=True)
    ]
    times = Counter(labels)
    return [label if times[label] == 1 else f"{label} ({b + 1})" for b, label in enumerate(labels)]


def cut_label(label: str, most: int) -> str:
    """The label of a block in so many places; the family, by which blocks of the same columns differ, is cut last."""
    columns, sign, family = label.rpartition(" as ")
    room = most - width_of(sign + family)
    if not sign or not 8 <= room < width_of(columns):
        return shortened(label, most)
    return shortened(columns, room) + sign + family
