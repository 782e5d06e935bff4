"""Rows that are known to have been counted are taken away whatever rounding has made of them."""

import numpy as np
import pytest

from deciban.errors import ForgetError
from deciban.families import Bernoulli, Binned, Categorical, Family, Gaussian, JointGaussian, JointTable, Poisson, Text
from deciban.fitting import fit, update
from deciban.model.counts import Counts
from deciban.model.fitted import Fitted, Settings

N = 60


def rows_of(family: Family) -> dict[str, object]:
    rng = np.random.default_rng(1)
    numbers = rng.poisson(3, N).astype(float)
    if isinstance(family, Text):
        return {"a": [f"word{k % 7} word{k % 4} only{k}" for k in range(N)]}
    if isinstance(family, Categorical | JointTable):
        return {"a": [f"level {k % 9}" for k in range(N)], "b": [f"level {k % 4}" for k in range(N)]}
    if isinstance(family, Bernoulli):
        return {"a": numbers > 3, "b": numbers > 2}
    return {"a": numbers, "b": numbers + rng.poisson(2, N)}


def fitted(family: Family) -> Fitted:
    return fit.fit(Settings(families=family, tune=None, threads=1), rows_of(family), np.arange(N) % 3)


FAMILIES = [
    *(Bernoulli(), Binned(), Categorical(), Gaussian(), JointGaussian(), JointTable(), Poisson(), Text()),
    Text(max_features=16),
]


@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_rows_of_odd_weights_are_forgotten_one_by_one(family: Family) -> None:
    """After many roundings, all but the rows of other weights are gone, and no level or class is left behind."""
    start = fitted(family)
    rows = rows_of(family)
    weights = 0.83 ** np.arange(N)
    parts = [
        update.shard(start, {name: cells[k : k + 1] for name, cells in rows.items()}, [k % 3 + 3], [weights[k]]).counts  # type: ignore[index]
        for k in range(N)
    ]
    total = sum(parts, start.counts)
    for k in np.random.default_rng(2).permutation(N):
        total = total.subtract(parts[k], 1e-12 * N)
    assert total.classes.tolist() == [0, 1, 2]
    assert total.class_weight == pytest.approx(start.counts.class_weight, rel=1e-12)
    known = update.replace_counts(start, total).model.log_joint(start.counts.schema.table_as_learned(_table(rows)))
    expected = start.model.log_joint(start.counts.schema.table_as_learned(_table(rows)))
    np.testing.assert_allclose(known, expected, rtol=1e-6, atol=1e-6)


def test_more_than_was_counted_is_nothing_with_a_slack_and_refused_without() -> None:
    start = fitted(Gaussian())
    more = start.counts * 1.5
    with pytest.raises(ForgetError):
        start.counts - more
    left: Counts = start.counts.subtract(more, 0.0)
    assert left.classes.size == 0
    assert not left.statistics[0].weight.any()


def _table(rows: dict[str, object]):  # type: ignore[no-untyped-def]
    from deciban.tables.convert import as_table

    return as_table(rows)
