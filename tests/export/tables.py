"""Tables with hard cells, and that what a target answers of their rows is what deciban says."""

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import sparse

from deciban import (
    Bernoulli,
    Binned,
    Categorical,
    Gamma,
    Gaussian,
    JointGaussian,
    JointTable,
    LogNormal,
    Multinomial,
    PerClass,
    Poisson,
    Pooled,
    Shrunk,
    Text,
)
from deciban.families.joint_gaussian import JointNormal
from deciban.model.model import VAST_EVIDENCE, Model, log_normalize, most_probable
from deciban.sources.open import open_table
from tests.export.agreement import expected_of
from tests.laws.cases import CASES

# Probabilities below the exponential of this are near the least double, or 0.
MIN_LOG = -700.0

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
    free = replace(model, cap=np.inf if together else model.cap, limit=np.inf)
    lost = lost_digits(free.log_joint(opened, full=False))
    with np.errstate(divide="ignore"):
        found = np.log(probabilities)
    apart = np.abs(np.maximum(found, MIN_LOG) - np.maximum(expected, MIN_LOG))
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


# Both sides of the ends of hours, days, months, leap days and 1970.
HARD_MOMENTS = [
    None,
    *map(
        datetime.fromisoformat,
        (
            *("1969-12-31T23:59:59.999999", "1970-01-01T00:00:00", "1900-02-28T23:59:59.999999", "1900-03-01T00:00:00"),
            *("2000-02-29T23:59:59.999999", "2000-03-01T00:00:00", "2100-02-28T11:59:59.999999", "2100-12-31T12:00:00"),
            *("1800-01-31T00:59:59.999999", "1800-02-01T01:00:00", "2140-01-01T06:00:00", "2024-06-30T17:59:59.999999"),
        ),
    ),
]


def hardened(
    table: pa.Table, rng: np.random.Generator, share: float = 0.2, texts: Sequence[str | None] = HARD_TEXTS
) -> pa.Table:
    """The table with cells that are missing, unseen, extreme and hostile."""
    columns = {}
    for name, cells in zip(table.column_names, table.columns, strict=True):
        kind = cells.type if pa.types.is_string(cells.type) or pa.types.is_timestamp(cells.type) else pa.float64()
        known = texts if pa.types.is_string(kind) else HARD_MOMENTS if pa.types.is_timestamp(kind) else HARD_NUMBERS
        hard = np.array(known, dtype=object)[rng.integers(0, len(known), len(cells))]
        mixed = np.where(rng.random(len(cells)) < share, hard, np.array(cells.to_pylist(), dtype=object))
        columns[name] = pa.array(mixed.tolist(), kind, from_pandas=True)
    return pa.table(columns)


Rng = np.random.Generator


def holes_in(rng: Rng, cells: Any) -> pa.Array:
    return pa.array(cells, mask=rng.random(len(cells)) < 0.1)


def random_spec(rng: Rng) -> dict[Any, Any]:
    """Families with random parameters, for the columns of `random_table`."""
    spreads = [PerClass(), Pooled(), Shrunk(0.4)]
    joint_spreads = [PerClass(shrinkage=0.1), Pooled(shrinkage="oas"), Shrunk(0.7), Pooled()]
    unseen = rng.choice(["ignore", "smooth", "error"], 3)
    outside = rng.choice(["error", "ignore"], 3)
    alpha = rng.choice([0.0, 0.3, 1.0], 4)
    pick = lambda options: options[rng.integers(0, len(options))]  # noqa: E731 - a name for three words
    return {
        "real": pick([Gaussian(variance=pick(spreads)), Binned(bins=8, unseen=unseen[0], alpha=alpha[0])]),
        "positive": pick([Gamma(outside=outside[0]), LogNormal(variance=pick(spreads), outside=outside[0])]),
        "narrow": Gamma(),
        "count": Poisson(alpha=alpha[1], outside=outside[1]),
        "flag": Bernoulli(alpha=alpha[2]),
        "word": Categorical(alpha=alpha[3], unseen=unseen[1]),
        ("n1", "n2", "n3"): JointGaussian(pick(joint_spreads)),
        ("d1", "d2", "d3"): JointTable(alpha=alpha[0], unseen=unseen[2], cuts=pick([None, (None, (0.5, 1.5), None)])),
        ("c1", "c2"): Multinomial(alpha=alpha[1]),
        "text": Text(
            pick(["multinomial", "bernoulli", "complement", "lift"]), alpha=alpha[2], tempering=pick([0.0, 0.5])
        ),
    }


def random_table(rng: Rng, rows: int) -> pa.Table:
    words = np.array(["red", "green", "blue", "grün", "d'or"])
    numbers = rng.normal(size=(rows, 3)) @ rng.normal(size=(3, 3))
    columns = {
        "real": rng.normal(1e3, 2.0, rows),
        "positive": rng.gamma(2.0, 3.0, rows),
        "narrow": rng.normal(1e4, 1.0, rows),  # of a shape beyond what sums up without loss
        "count": rng.poisson(3.0, rows),
        "flag": rng.integers(0, 2, rows).astype(bool),
        "word": words[rng.integers(0, 5, rows)],
        **{f"n{k + 1}": numbers[:, k] for k in range(3)},
        **{f"d{k + 1}": rng.integers(0, 3, rows) for k in range(3)},
        **{f"c{k + 1}": rng.poisson(1.0 + k, rows) for k in range(2)},
        "text": [" ".join(rng.choice(words, rng.integers(0, 5))) for _ in range(rows)],
    }
    return pa.table({name: holes_in(rng, cells) for name, cells in columns.items()})


SAID = [case for case in CASES if not case.family.is_text]


def mixed_table(rng: Any, rows: int) -> tuple[pa.Table, Any]:
    """Three classes, of which two columns tell together; numbers, counts, flags, dates, times and categories."""
    size, town = rng.normal(size=rows), rng.integers(0, 4, rows)
    labels = np.array(["no", "so", "it's"])[((size > 0.0) + town + (rng.random(rows) < 0.2)) % 3]
    day = rng.integers(0, 900, rows)
    table = pa.table(
        {
            "size": pa.array(size, mask=rng.random(rows) < 0.1),
            "weight": pa.array(size * (labels == "so") + 0.5 * rng.normal(size=rows), mask=rng.random(rows) < 0.05),
            "town": pa.array(np.array(["Ulm", "Bern", "Graz", 'O"K'])[town], mask=rng.random(rows) < 0.1),
            "wait": rng.gamma(2.0, size=rows),
            "calls": pa.array(rng.poisson(2.0, rows), mask=rng.random(rows) < 0.1),
            "member": rng.random(rows) < 0.3,
            "day": pa.array(day, pa.int32()).cast(pa.date32()),
            "at": pa.array(day * 3_600_000_000 + 250_000, pa.int64()).cast(pa.timestamp("us")),
            "clock": pa.array(rng.integers(0, 86_400_000_000, rows)).cast(pa.time64("us")),
        }
    )
    return table, labels
