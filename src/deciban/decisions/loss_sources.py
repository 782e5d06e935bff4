"""Losses as people give them: mappings, tables, CSV files. Each becomes (costs, decisions, classes)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from deciban.decisions.loss_cells import Cell, parse_cell
from deciban.errors import LossError

LossParts = tuple[Any, tuple[Any, ...] | None, tuple[Any, ...] | None]


def parts_of(given: Any) -> LossParts:
    """The costs and labels of whatever `Loss.of` takes but a Loss."""
    if isinstance(given, str | Path):
        return parts_of_csv(given)
    if isinstance(given, Mapping):
        return parts_of_mapping(given)
    if hasattr(given, "columns") and hasattr(given, "index"):
        index, columns = list(given.index), list(given.columns)
        unnamed = index == list(range(len(index))) and columns != index
        return given.to_numpy(dtype=object), None if unnamed else tuple(index), tuple(columns)
    if hasattr(given, "__arrow_c_stream__"):
        return parts_of_arrow(given)
    return given.toarray() if hasattr(given, "toarray") else given, None, None


def parts_of_mapping(given: Mapping[Any, Any]) -> LossParts:
    """{(decision, truth): cost}, {decision: {truth: cost}}, or {class: cost of missing it}."""
    if all(isinstance(cell, Mapping) for cell in given.values()):
        return parts_of_pairs(
            {(decision, truth): cost for decision, row in given.items() for truth, cost in row.items()}
        )
    kinds = {isinstance(key, tuple) and len(key) == 2 for key in given}
    if len(kinds) != 1:
        raise LossError("a loss is a mapping from pairs (decision, truth) or from classes, not from both or none")
    return parts_of_pairs(given) if kinds == {True} else parts_of_misses(given)


def parts_of_misses(costs: Mapping[Any, Cell]) -> LossParts:
    """{class: cost of missing it}, whatever a row of the class is taken for."""
    classes = tuple(costs)
    matrix = np.tile(np.array([costs[label] for label in classes], dtype=object), (len(classes), 1))
    matrix[np.diag_indices(len(classes))] = 0.0
    return matrix, classes, classes


def parts_of_pairs(costs: Mapping[tuple[Any, Any], Cell]) -> LossParts:
    """{(decision, truth): cost}; a right decision that is not named costs nothing."""
    decisions = tuple(dict.fromkeys(decision for decision, _ in costs))
    classes = tuple(dict.fromkeys(truth for _, truth in costs))
    matrix = np.empty((len(decisions), len(classes)), dtype=object)
    for k, decision in enumerate(decisions):
        for c, truth in enumerate(classes):
            if (decision, truth) not in costs and decision != truth:
                raise LossError(f"the loss does not say what it costs to decide {decision!r} when {truth!r} is true")
            matrix[k, c] = costs.get((decision, truth), 0.0)
    return matrix, decisions, classes


def parts_of_arrow(given: Any) -> LossParts:
    """A table whose columns are the truths; a column of text, if it comes first, names the decisions."""
    import pyarrow as pa

    table = pa.table(given)
    columns = [column.to_pylist() for column in table.columns]
    named = bool(columns) and all(isinstance(cell, str) for cell in columns[0])
    decisions = tuple(columns.pop(0)) if named else None
    return list(zip(*columns, strict=True)), decisions, tuple(table.column_names[1 if named else 0 :])


def parts_of_csv(path: str | Path) -> LossParts:
    """A file whose first line names the true classes and whose first column names the decisions."""
    import csv

    name = str(path)
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            first = file.readline()
            file.seek(0)
            sign = max(",;\t", key=first.count)
            lines = [[cell.strip() for cell in line] for line in csv.reader(file, delimiter=sign) if any(line)]
    except OSError as error:
        raise LossError(f"{name}: the costs cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error):
        raise LossError(f"{name}: the costs are no text in UTF-8 with commas; save the file so") from None
    if len(lines) < 2 or len(lines[0]) < 2 or any(len(line) != len(lines[0]) for line in lines):
        raise LossError(f"{name}: this is no table of decisions by classes, named on both sides, with commas between")
    for line in lines[1:]:
        if "" in line[1:]:
            raise LossError(f"{name}: there is an empty cell in the line of {line[0]!r}; give every cost")
    cells = [[parse_cell(cell) for cell in line[1:]] for line in lines[1:]]
    return cells, tuple(line[0] for line in lines[1:]), tuple(lines[0][1:])
