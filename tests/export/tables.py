"""Tables with hard cells, and that what a target answers of their rows is what deciban says."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import sparse

from deciban.families.joint_gaussian import JointNormal
from deciban.model.model import VAST_EVIDENCE, Model, log_normalize, most_probable
from deciban.sources.open import open_table
from tests.export.agreement import expected_of

# Probabilities below the exponential of this are near the least double, or 0.
LEAST_LOG = -700.0

# Rows of a table that are asked one by one whether deciban refuses them.
REFUSED_ASKED = 30

# Cells that tables rarely hold.
HARD_NUMBERS = [
    *(1e308, -1e308, -0.0, 0.0, 1e-308, -1e-308, 5e-324, 1e150, -1e17, 1e6, 2.5, -1.0, 3.0, 2.0**53),
    *(math.nan, math.inf, -math.inf),
]  # fmt: skip
HARD_TEXTS = [
    *(" ", "abc", "nan", "RED", "red ", "İ", "e\u0301", "\u00e9", "'; drop table t; --", '"', "\\", "\0", "re\0d"),
    *("\u2028", "\U0001f600", "x" * 10_000, None),
]  # fmt: skip


def as_columns(X: Any) -> pa.Table:
    """The cells of a case as columns with names."""
    if isinstance(X, pa.Table):
        return X
    dense = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
    return pa.table({f"x{j}": column for j, column in enumerate(dense.T)})


def assert_answers_agree(model: Model, table: pa.Table, label: Any, probabilities: Any) -> int:
    """A target gives the log probabilities of deciban to 1e-9, but for digits that both have lost, and its labels; it
    has none (NaN) for rows that deciban refuses, and for no others. How many rows are refused is returned."""
    refused = np.isnan(probabilities).any(axis=1)
    for row in table.filter(refused).slice(0, REFUSED_ASKED).to_pylist():
        assert expected_of(model, row).error is not None, row
    table, label, probabilities = table.filter(~refused), label[~refused], probabilities[~refused]
    rows = table if model.schema.names is not None else np.column_stack([column.to_numpy() for column in table])
    opened = model.schema.table_as_learned(open_table(rows))
    joint = model.log_joint(opened, full=False)
    expected = log_normalize(joint, model.log_prior, logarithm=True)[0]
    together = any(isinstance(likelihood, JointNormal) for likelihood in model.likelihoods)
    lost = lost_digits(replace(model, cap=np.inf).log_joint(opened, full=False) if together else joint)
    with np.errstate(divide="ignore"):
        found = np.log(probabilities)
    apart = np.abs(np.maximum(found, LEAST_LOG) - np.maximum(expected, LEAST_LOG))
    assert (apart <= 1e-9 + lost).all(), worst_row(table, apart - lost, found, expected)
    first, second = np.sort(expected, axis=1)[:, [-1, -2]].T
    clear = (first - second > 1e-9 + lost[:, 0]) | (first == second)
    assert (label == model.classes[most_probable(joint, model.log_prior)])[clear].all()
    return int(refused.sum())


def lost_digits(joint: Any) -> Any:
    """The size of the digits that sums have lost where evidence is vast; of joint distributions within a cap too."""
    largest = np.abs(np.where(np.isfinite(joint), joint, 0.0)).max(axis=1, keepdims=True)
    return np.where(largest > VAST_EVIDENCE, 4.0 * np.spacing(largest), 0.0)


def worst_row(table: pa.Table, apart: Any, found: Any, expected: Any) -> Any:
    row = int(np.argmax(np.nan_to_num(apart, nan=np.inf).max(axis=1)))
    return table.slice(row, 1).to_pylist(), found[row], expected[row]


def hardened(
    table: pa.Table, rng: np.random.Generator, share: float = 0.2, texts: Sequence[str | None] = HARD_TEXTS
) -> pa.Table:
    """The table with cells that are missing, unseen, extreme and hostile."""
    columns = {}
    for name, cells in zip(table.column_names, table.columns, strict=True):
        text = pa.types.is_string(cells.type)
        known = texts if text else HARD_NUMBERS
        hard = np.array(known, dtype=object)[rng.integers(0, len(known), len(cells))]
        mixed = np.where(rng.random(len(cells)) < share, hard, np.array(cells.to_pylist(), dtype=object))
        columns[name] = pa.array(mixed.tolist(), pa.string() if text else pa.float64(), from_pandas=True)
    return pa.table(columns)
