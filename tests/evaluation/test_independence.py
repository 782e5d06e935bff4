"""How often columns that are independent within the classes look dependent, and that dependent ones are found."""

from collections.abc import Callable
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from deciban.evaluation.diagnose import LEVELS_COMPARED, compute_p_value, find_dependences, group_rare_levels
from deciban.fitting.tune.binning import reduce_to_levels
from deciban.fitting.tune.rows import Rows
from deciban.sources.open import open_table
from tests import textbook

Rng = np.random.Generator


def _rows(table: object, labels: np.ndarray) -> Rows:
    return Rows.of(open_table(table), labels.astype(np.int32), None, int(labels.max()) + 1, 10_000)


def test_five_independent_columns_raise_a_false_alarm_in_one_table_of_a_hundred() -> None:
    rng = np.random.default_rng(1)
    y = np.arange(200) % 2
    schema = textbook().fit(rng.normal(size=(200, 5)), y).schema_
    alarms = [bool(find_dependences(_rows(rng.normal(size=(200, 5)), y), schema)[0]) for _ in range(400)]
    assert np.mean(alarms) <= 0.02


def _levels(rng: Rng, rows: int, chances: np.ndarray) -> np.ndarray:
    return rng.choice(np.array(list("abcdefghijklmnop"))[: chances.size], rows, p=chances / chances.sum())


def _skewed(rng: Rng, y: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame({str(k): np.exp(rng.normal(y, 1.0 + y)) for k in range(25)})


def _rare(rng: Rng, y: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame({str(k): _levels(rng, y.size, 1.0 / np.arange(1, 13) ** 1.5) for k in range(25)})


def _mixed(rng: Rng, y: np.ndarray) -> pd.DataFrame:
    columns = [rng.normal(y, 1.0) if k % 2 else _levels(rng, y.size, 1.0 / np.arange(1, 7)) for k in range(25)]
    return pd.DataFrame({str(k): column for k, column in enumerate(columns)})


WORLDS = [
    ("skewed", np.arange(200) % 2, _skewed),
    ("rare levels", np.arange(150) % 2, _rare),
    ("mixed", np.minimum(np.arange(300) % 10, 2), _mixed),
    ("twelve classes", np.arange(300) % 12, _mixed),
]


@pytest.mark.parametrize(("name", "y", "draw"), WORLDS, ids=[world[0] for world in WORLDS])
def test_chances_of_independent_columns_are_even(
    name: str, y: np.ndarray, draw: Callable[[Rng, np.ndarray], pd.DataFrame]
) -> None:
    """Of 1,800 pairs about 1 in 1,000 has a chance below 0.001, which ten pairs need to be alarmed, and 1 in 20 below
    0.05."""
    rng = np.random.default_rng(3)
    chances = []
    for _ in range(6):
        rows = _rows(draw(rng, y), y)
        coded = []
        for column in range(25):
            found = reduce_to_levels(rows, column, LEVELS_COMPARED)
            assert found is not None
            coded.append(group_rare_levels(found[0], found[2], found[1] is not None, rows))
        for a, b in combinations(coded, 2):
            counts = np.zeros((int(y.max()) + 1, 16, 16))
            np.add.at(counts, (y, a, b), 1.0)
            chances.append(compute_p_value(counts))
    assert np.mean(np.array(chances) < 1e-3) <= 3e-3
    assert np.mean(np.array(chances) < 0.05) == pytest.approx(0.05, abs=0.015)


def test_the_chance_of_small_tables_is_that_of_all_orders_of_their_rows() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(90) % 2
    a, b = rng.integers(0, 4, 90), rng.integers(0, 3, 90)

    def counted(b: np.ndarray) -> np.ndarray:
        counts = np.zeros((2, 4, 3))
        np.add.at(counts, (y, a, b), 1.0)
        return counts

    def shuffled() -> np.ndarray:
        order = np.empty(90, dtype=int)
        for label in (0, 1):
            here = np.flatnonzero(y == label)
            order[here] = rng.permutation(here)
        return b[order]

    chances = [compute_p_value(counted(shuffled())) for _ in range(1500)]
    assert stats.kstest(chances, "uniform").pvalue > 0.001


def test_columns_that_depend_on_each_other_are_found() -> None:
    rng = np.random.default_rng(2)
    for y, r in ((np.arange(200) % 2, 0.5), (np.arange(300) % 12, 0.6), (np.arange(60) % 2, 0.9)):
        found, schema = 0, textbook().fit(rng.normal(size=(y.size, 5)), y).schema_
        for _ in range(20):
            x = rng.normal(size=(y.size, 5)) + y[:, None] % 3
            x[:, 1] = r * x[:, 0] + np.sqrt(1 - r * r) * x[:, 1]
            pairs = find_dependences(_rows(x, y), schema)[0]
            found += bool(pairs) and pairs[0].columns == (schema.column_name(0), schema.column_name(1))
        assert found >= 16, (y.size, r, found)


def test_categories_that_depend_on_each_other_are_found() -> None:
    rng = np.random.default_rng(5)
    y = np.arange(200) % 2
    a = _levels(rng, 200, 1.0 / np.arange(1, 9))
    table = pd.DataFrame({"a": a, "b": np.where(rng.random(200) < 0.6, a, rng.permutation(a)), "c": rng.permutation(a)})
    found = textbook().fit(table, y).diagnose().dependences
    assert [pair.columns for pair in found] == [("a", "b")]
    assert found[0].p < 0.01
