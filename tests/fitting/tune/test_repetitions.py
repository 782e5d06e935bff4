"""A row of weight k is the row k times, in what is inferred and what is tuned too."""

import numpy as np
import pyarrow as pa
import pytest

from deciban import BayesClassifier, Categorical, Gaussian, Text

WORDS = np.array(["sun", "rain", "cloud", "wind", "storm", "snow", "hail", "fog", "calm", "dry"])


def mixed_rows(seed: int, rows: int) -> tuple[pa.Table, np.ndarray, np.ndarray]:
    """Columns of every kind with missing cells, labels, and weights 0 to 3."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2 + seed % 2, rows)
    shared = rng.normal(size=rows)
    columns = {
        "alone": rng.normal(size=rows) + y,
        "left": shared + 0.5 * y,
        "right": shared + 0.3 * rng.normal(size=rows),
        "amount": np.exp(rng.normal(size=rows) + 0.4 * y),
        "number": rng.poisson(2.0 + y),
        "code": rng.integers(0, 7, rows) + (y > 0),
        "wait": rng.gamma(2.0, 1.0 + y),
        "town": np.array(list("pqrstu"))[np.clip(rng.integers(0, 5, rows) + y, 0, 5)],
        "flag": rng.random(rows) < 0.3 + 0.2 * y,
        "note": [" ".join(WORDS[np.clip(rng.integers(0, 8, rng.integers(0, 9)) + c, 0, 9)]) for c in y],
    }
    holed = {
        name: pa.array(list(cells), mask=rng.random(rows) < rng.choice([0.0, 0.1])) for name, cells in columns.items()
    }
    return pa.table(holed), y, rng.integers(0, 4, rows)


@pytest.mark.parametrize(("seed", "rows"), [(0, 12), (1, 30), (2, 40), (3, 80), (4, 80), (5, 60)])
def test_tuning_with_weights_is_tuning_on_repeated_rows(seed: int, rows: int) -> None:
    table, y, weights = mixed_rows(seed, rows)
    repeated = np.repeat(np.arange(rows), weights)
    heavy, long = (BayesClassifier({"note": Text()}) for _ in range(2))
    heavy.fit(table, y, weights)
    long.fit(table.take(pa.array(repeated)), y[repeated])
    parts, expected = ([(p.family, p.columns) for p in clf.tuning_.schema.groups] for clf in (heavy, long))
    assert parts == expected
    np.testing.assert_allclose(heavy.tuning_.weights, long.tuning_.weights, rtol=1e-7, atol=1e-9)
    complete = ~np.any([column.is_null().to_numpy() for column in table.columns], axis=0)
    found, wanted = heavy.predict_proba(table), long.predict_proba(table)
    # the last digits of a value decide to which multiple of the unit it is rounded; of two questions that part the
    # rows alike they choose one, and means over unknown answers differ
    np.testing.assert_allclose(found[complete], wanted[complete], rtol=0, atol=1e-6)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5)


@pytest.mark.parametrize("weight", [1.0, 2.0, 0.25])
def test_whole_numbers_that_stand_there_twice_are_codes(weight: float) -> None:
    """Five of them in nine rows: in eighteen each would be there twice. Weights below 1 do not make rows fewer."""
    cells = np.array([0, 1, 2, 3, 4, 0, 1, 2, 3])
    table = {"x": cells, "again": np.tile(cells[:4], 3)[:9]}
    clf = BayesClassifier(tune=None).fit(table, np.arange(9) % 2, np.full(9, weight))
    families = {clf.schema_.column_name(c): part.family for part in clf.schema_.groups for c in part.columns}
    assert families == {"x": Categorical() if weight == 2.0 else Gaussian(), "again": Categorical()}


def test_rows_of_weight_zero_do_not_say_what_a_column_is() -> None:
    cells = np.append(np.arange(20) % 4, np.arange(100, 140))
    weights = (cells < 100).astype(float)
    clf = BayesClassifier(tune=None).fit({"x": cells}, np.arange(60) % 2, weights)
    assert clf.schema_.groups[0].family == Categorical()
