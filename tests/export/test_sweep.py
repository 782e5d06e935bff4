"""Random tables of columns of all kinds: what deciban says of a row, each exported program says too."""

from typing import Any

import numpy as np
import pyarrow as pa

from deciban import (
    BayesClassifier,
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
from deciban.model.model import Model
from tests.export.agreement import assert_agree
from tests.export.models import HARD_CELLS, as_tuned
from tests.export.targets import Row

Rng = np.random.Generator


def _holes(rng: Rng, cells: Any) -> pa.Array:
    return pa.array(cells, mask=rng.random(len(cells)) < 0.1)


def _spec(rng: Rng) -> dict[Any, Any]:
    """Families with random parameters, for the columns of `_table`."""
    spreads = [PerClass(), Pooled(), Shrunk(0.4)]
    joint_spreads = [PerClass(shrinkage=0.1), Pooled(shrinkage="oas"), Shrunk(0.7), Pooled()]
    unseen = rng.choice(["ignore", "smooth", "error"], 3)
    outside = rng.choice(["refuse", "ignore"], 3)
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


def _table(rng: Rng, rows: int) -> pa.Table:
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
    return pa.table({name: _holes(rng, cells) for name, cells in columns.items()})


def _rows(rng: Rng) -> list[Row]:
    rows = _table(rng, 12).to_pylist()
    names = list(rows[0])
    for row in rows[4:]:
        row[names[rng.integers(0, len(names))]] = HARD_CELLS[rng.integers(0, len(HARD_CELLS))]
    return rows


def test_random_tables_of_all_families_agree() -> None:
    models: list[Model] = []
    rng = np.random.default_rng(3)
    for k in range(12):
        labels = rng.integers(0, 2 + k % 3, 150)
        model = BayesClassifier(_spec(rng), tune=None).fit(_table(rng, 150), labels).model_
        models += [model, as_tuned(model, rng, cap=float(rng.uniform(0.5, 8.0)))]
    assert_agree(models, [_rows(rng) for _ in models])
