"""Corrections as one ensemble of trees of an ONNX graph: a tree asks of one column after another."""

from typing import Any

import numpy as np

from deciban.export.ir import CorrectionTables
from deciban.export.onnx.cells import Cells
from deciban.export.onnx.partial_rows import KnownCells
from deciban.export.onnx.places import CellPlace, Places
from deciban.export.onnx.tensors import Tensor, as_constant
from deciban.families.base.lowering import MISSING_PLACE, CutPlace
from deciban.model.corrections import AveragedTable
from deciban.util.arrays import Floats

# ONNX's numbers for a question (is the cell at least the split?), for adding up, and for leaving the sum as it is.
AT_LEAST, ADD_UP, AS_IT_IS = 2, 1, 0

# The least number; below it is a missing cell that is evidence.
LEAST_DOUBLE = float(-np.finfo(np.float64).max)

# The place of a missing cell that is evidence: above that of an unknown one, below all others.
EVIDENT_PLACE = 0.5


def always(tables: CorrectionTables) -> Floats:
    """What tables that ask nothing add to the log joint of each class."""
    asking_nothing = [table.values for table in tables.tables if not table.columns]
    return np.sum(asking_nothing, axis=0) if asking_nothing else np.zeros(tables.tables[0].values.shape[-1])


def corrections(cells: Cells, places: Places, tables: CorrectionTables, known: KnownCells | None) -> Tensor:
    """What the tables that ask something add to the log joint, row by class, but for what they add to the first."""
    asked = sorted({place for table in tables.tables for place in table.columns})
    between = [k for k in asked if isinstance(tables.places[k], CutPlace)]
    among = [k for k in asked if not isinstance(tables.places[k], CutPlace)]
    features = []
    if between:
        columns = [tables.places[k].column for k in between]
        numbers = cells.numbers(columns)
        missing = numbers.is_nan()
        evident = missing if known is None else missing & ~known.unknown(columns)
        least = cells.graph.where(numbers.equals(np.array(-np.inf)), np.array(LEAST_DOUBLE), numbers)
        features.append(cells.graph.where(evident, np.array(-np.inf), least))
    if among:
        columns = [tables.places[k].column for k in among]
        found = places.of([tables.places[k] for k in among])
        missing = found.equals(np.array(MISSING_PLACE))
        evident = missing if known is None else missing & ~known.unknown(columns)
        features.append(cells.graph.where(evident, np.array(EVIDENT_PLACE), found.cast(np.float64)))
    classes = tables.tables[0].values.shape[-1]
    attributes = _ensemble(tables, {k: column for column, k in enumerate((*between, *among))}, classes)
    return cells.graph.node("TreeEnsemble", cells.graph.side_by_side(features), **attributes) @ np.eye(classes)[1:]


def _ensemble(tables: CorrectionTables, column_of: dict[int, int], classes: int) -> dict[str, Any]:
    """The attributes of the node: a tree of each table for each class but the first, with the difference from it."""
    parts: list[dict[str, Any]] = []
    nodes = leaves = 0
    trees = [(table, _tree(table, tables, column_of)) for table in tables.tables if table.columns]
    for c in range(1, classes):
        for table, tree in trees:
            no, yes = (
                tree[name] + np.where(tree[f"{name[:-7]}leafs"], leaves, nodes)
                for name in ("nodes_falsenodeids", "nodes_truenodeids")
            )
            weights = (table.values[..., c] - table.values[..., 0]).ravel()
            own = {
                "tree_roots": np.array([nodes]),
                "leaf_weights": weights,
                "leaf_targetids": np.full(weights.size, c - 1),
            }
            parts.append({**tree, "nodes_falsenodeids": no, "nodes_truenodeids": yes, **own})
            nodes, leaves = nodes + no.size, leaves + weights.size
    merged = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    merged["nodes_modes"] = np.full(nodes, AT_LEAST, dtype=np.uint8)
    tensors = {name: as_constant(merged.pop(name)) for name in ("nodes_splits", "nodes_modes", "leaf_weights")}
    lists = {name: array.tolist() for name, array in merged.items()}
    return {"n_targets": classes - 1, "aggregate_function": ADD_UP, "post_transform": AS_IT_IS, **tensors, **lists}


def _tree(table: AveragedTable, tables: CorrectionTables, column_of: dict[int, int]) -> dict[str, Any]:
    """Nodes of a tree that asks of each column in turn whether it is beyond its cuts, the last one first, then whether
    it is known; numbers of nodes and leaves from 0 on, leaves in the order of the table's values."""
    parts, before, first = [], 1, 0
    for k, (column, cuts) in enumerate(zip(table.columns, table.cuts, strict=True)):
        questions, last = len(cuts) + 1, k == len(table.columns) - 1
        place = tables.places[column]
        splits = np.array([*(_split(place, cut) for cut in reversed(cuts)), _known_from(place)])
        prefix, question = (grid.ravel() for grid in np.indices((before, questions)))
        size = before * questions
        follow = first + size  # the first node of the next column
        answer = questions - question  # of "yes"
        step = 1 if last else len(table.cuts[k + 1]) + 1
        start = 0 if last else follow
        ended = question == questions - 1  # "no" to the last question: unknown
        yes = start + step * (prefix * (questions + 1) + answer)
        no = np.where(ended, start + step * prefix * (questions + 1), first + prefix * questions + question + 1)
        parts.append(
            {
                "nodes_featureids": np.full(size, column_of[column]),
                "nodes_splits": splits[question],
                "nodes_falsenodeids": no,
                "nodes_truenodeids": yes,
                "nodes_falseleafs": (ended & last).astype(np.int64),
                "nodes_trueleafs": np.full(size, int(last)),
            }
        )
        before, first = before * (questions + 1), follow
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _split(place: CellPlace, last: int) -> float:
    """The least number whose place is beyond the last one; of levels, the least such place."""
    if not isinstance(place, CutPlace):
        return float(last + 1)
    edges = (-np.inf, *place.cuts)
    if last >= len(edges):
        return np.nan  # which no number is
    return max(edges[last], LEAST_DOUBLE)


def _known_from(place: CellPlace) -> float:
    """The least number of a known cell, also of a missing one that is evidence."""
    return -np.inf if isinstance(place, CutPlace) else EVIDENT_PLACE
