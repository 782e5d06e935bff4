"""Corrections as one ensemble of trees of an ONNX graph: all questions of one level of a tree are the same."""

from itertools import product
from typing import Any

import numpy as np

from deciban.arrays import Floats, Integers
from deciban.export.onnx.cells import Cells
from deciban.export.onnx.places import CellPlace, Places
from deciban.export.onnx.tensors import Tensor, as_constant
from deciban.export.terms import CorrectionTables, CutPlace

# ONNX's numbers for a question (is the cell at least the split?), for adding up, and for leaving the sum as it is.
AT_LEAST, ADD_UP, AS_IT_IS = 2, 1, 0


def always(tables: CorrectionTables) -> Floats:
    """What tables that ask nothing add to the log joint of each class."""
    return np.asarray(tables.values[tables.tests[:, 0, 0] < 0, 0].sum(axis=0))


def corrections(cells: Cells, places: Places, tables: CorrectionTables) -> Tensor:
    """What the tables that ask something add to the log joint, row by class, but for what they add to the first."""
    asked = sorted({int(place) for place in tables.tests[:, :, 0].ravel() if place >= 0})
    between = [k for k in asked if isinstance(tables.places[k], CutPlace)]
    among = [k for k in asked if not isinstance(tables.places[k], CutPlace)]
    features = [cells.numbers([tables.places[k].column for k in between])] if between else []
    if among:
        features.append(places.of([tables.places[k] for k in among]).cast(np.float64))
    classes = tables.values.shape[2]
    attributes = _ensemble(tables, {k: column for column, k in enumerate((*between, *among))})
    found = cells.graph.node("TreeEnsemble", cells.graph.side_by_side(features), **attributes)
    return found @ np.eye(classes)[1:]


def _ensemble(tables: CorrectionTables, column_of: dict[int, int]) -> dict[str, Any]:
    """The attributes of the node: a tree of each table for each class but the first, with the difference from it."""
    depth = (tables.tests[:, :, 0] >= 0).sum(axis=1)
    classes, nodes, leaves = tables.values.shape[2], 0, 0
    parts: list[dict[str, Integers | Floats]] = []
    for c, questions in product(range(1, classes), sorted({*depth.tolist()} - {0})):
        some = depth == questions
        tests, values = tables.tests[some, :questions], tables.values[some, : 1 << questions]
        feature = np.vectorize(column_of.__getitem__)(tests[:, :, 0])
        split = np.array([[_split(tables.places[place], last) for place, last in table] for table in tests.tolist()])
        parts.append(_trees(feature, split, values[:, :, c] - values[:, :, 0], nodes, leaves))
        parts[-1]["leaf_targetids"] = np.full(values.shape[0] * values.shape[1], c - 1)
        nodes, leaves = nodes + parts[-1]["nodes_splits"].size, leaves + parts[-1]["leaf_weights"].size
    merged = {name: np.concatenate([part[name].ravel() for part in parts]) for name in parts[0]}
    merged["nodes_modes"] = np.full(nodes, AT_LEAST, dtype=np.uint8)
    tensors = {name: as_constant(merged.pop(name)) for name in ("nodes_splits", "nodes_modes", "leaf_weights")}
    lists = {name: array.tolist() for name, array in merged.items()}
    return {"n_targets": classes - 1, "aggregate_function": ADD_UP, "post_transform": AS_IT_IS, **tensors, **lists}


def _split(place: CellPlace, last: int) -> float:
    """The least number whose place is beyond the last one; of levels, the least such place."""
    if not isinstance(place, CutPlace):
        return float(last + 1)
    edges = (-np.inf, *place.cuts)
    return edges[last] if last < len(edges) else np.nan  # which no number is


def _trees(feature: Integers, split: Floats, values: Floats, first_node: int, first_leaf: int) -> dict[str, Any]:
    """Nodes and leaves of whole trees, one for each table (table by question, table by cell); a node's children follow
    level by level, first the one of "no"."""
    tables, depth = feature.shape
    level = np.repeat(np.arange(depth), 1 << np.arange(depth))
    size, last = level.size, np.broadcast_to(level == depth - 1, (tables, level.size)).astype(np.int64)
    root = first_node + size * np.arange(tables)[:, None]
    leaf = first_leaf + values.shape[1] * np.arange(tables)[:, None] - size
    no, yes = (
        np.where(last, leaf + child, root + child) for child in (2 * np.arange(size) + 1, 2 * np.arange(size) + 2)
    )
    return {
        "tree_roots": root,
        "nodes_featureids": feature[:, level],
        "nodes_splits": split[:, level],
        "nodes_falsenodeids": no,
        "nodes_truenodeids": yes,
        "nodes_falseleafs": last,
        "nodes_trueleafs": last,
        "leaf_weights": values,
    }
