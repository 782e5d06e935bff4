"""Random tables of columns of all kinds: what deciban says of a row, each exported program says too."""

import numpy as np

from deciban import (
    BayesClassifier,
)
from deciban.model.model import Model
from tests.export.agreement import assert_agree
from tests.export.models import HARD_CELLS, as_tuned
from tests.export.tables import Rng, random_spec, random_table
from tests.export.targets import Row


def _rows(rng: Rng) -> list[Row]:
    rows = random_table(rng, 12).to_pylist()
    names = list(rows[0])
    for row in rows[4:]:
        row[names[rng.integers(0, len(names))]] = HARD_CELLS[rng.integers(0, len(HARD_CELLS))]
    return rows


def test_random_tables_of_all_families_agree() -> None:
    models: list[Model] = []
    rng = np.random.default_rng(3)
    for k in range(12):
        labels = rng.integers(0, 2 + k % 3, 150)
        model = BayesClassifier(random_spec(rng), tune=None).fit(random_table(rng, 150), labels).model_
        models += [model, as_tuned(model, rng, cap=float(rng.uniform(0.5, 8.0)))]
    assert_agree(models, [_rows(rng) for _ in models])
