"""Bins of categories with many levels, against counts of the rows of other folds."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from deciban import BayesClassifier
from deciban.fitting.tune.binning import bin_columns, bins_out_of_fold, place_out_of_fold
from deciban.fitting.tune.hyperparameters import BINNING
from deciban.fitting.tune.rows import Rows
from deciban.model.corrections import CorrectedColumn, bins_of
from deciban.sources.open import open_table

RNG = np.random.default_rng(11)
N = 3_000
LEVEL = np.minimum(RNG.geometric(0.01, N), 400)  # some are frequent, some have one row
Y = (RNG.random(N) < 0.2 + 0.5 * (LEVEL % 7 == 0)).astype(np.int32)
TOWN = np.array([f"t{level:03}" for level in LEVEL], dtype=object)
FOLD = RNG.integers(0, 5, N)


def rows_of(towns: np.ndarray, labels: np.ndarray, weights: np.ndarray | None = None) -> Rows:
    return Rows.of(open_table(pa.table({"town": towns})), labels, weights, 2, len(labels))


def log_odds(level: str, inside: np.ndarray, rows: Rows) -> float:
    """Evidence of a level for class 1 by some rows, with rows of the overall shares added."""
    own = Y[inside & (level == TOWN)]
    prior = np.exp(rows.log_prior)
    one, zero = own.sum() + BINNING.prior_rows * prior[1], (1 - own).sum() + BINNING.prior_rows * prior[0]
    return float(np.log(one / zero) - np.log(prior[1] / prior[0]))


@pytest.fixture(scope="module")
def placed() -> tuple[Rows, CorrectedColumn]:
    rows = rows_of(TOWN, Y)
    (column,) = place_out_of_fold(bin_columns(rows, [0])[0], rows, FOLD, 5)
    return rows, column


def test_similar_levels_share_a_bin_of_about_equal_weight(placed: tuple[Rows, CorrectedColumn]) -> None:
    rows, column = placed
    assert column.levels is not None
    assert column.places is not None
    levels, every = column.levels.to_pylist(), np.ones(N, dtype=np.bool_)
    assert set(levels) == {town for town in set(TOWN) if (town == TOWN).sum() >= 2}
    found = np.array([log_odds(level, every, rows) for level in levels])
    up = 1.0 if found[0] <= found[-1] else -1.0
    assert (np.diff(up * found) >= -1e-8).all()
    assert (np.diff(column.places[0].astype(int)) >= 0).all()
    for place in np.unique(column.places[0]).tolist():
        inside, below = found[column.places[0] == place], found[column.places[0] < place]
        assert not below.size or (up * inside).min() > (up * below).max()
    weight = np.bincount(column.read(rows.table))[2:]
    heaviest = max((level == TOWN).sum() for level in levels)
    assert 30 <= np.count_nonzero(weight) <= BINNING.max_shared_bins
    assert weight.max() <= N / BINNING.max_shared_bins + heaviest + 60  # equal levels are not parted


def test_rows_of_a_fold_are_placed_by_the_others(placed: tuple[Rows, CorrectedColumn]) -> None:
    rows, column = placed
    assert column.levels is not None
    assert column.places is not None
    every = np.ones(N, dtype=np.bool_)
    levels = column.levels.to_pylist()
    whole = np.array([log_odds(level, every, rows) for level in levels])
    up = 1.0 if whole[0] <= whole[-1] else -1.0
    places = column.places[0].astype(int)
    changes = np.flatnonzero(np.diff(places))
    cuts = up * (whole[changes] + whole[changes + 1]) / 2.0
    bins = bins_out_of_fold([column], rows.table, FOLD, bins_of([column], rows.table))[0]
    for i in range(0, N, 7):
        others = FOLD[i] != FOLD
        left = (others & (TOWN[i] == TOWN)).sum()
        total = (TOWN[i] == TOWN).sum()
        if total >= BINNING.frequent_rows:
            expected = places[levels.index(TOWN[i])]
        elif total < 2 or left < 2:
            expected = 1
        else:
            expected = 2 + int(np.searchsorted(cuts, up * log_odds(TOWN[i], others, rows)))
        assert bins[i] == expected, TOWN[i]
    left_out = np.stack(column.read_left_out(rows.table, 5))
    assert np.array_equal(bins, left_out[FOLD, np.arange(N)])


def test_few_levels_have_a_bin_each() -> None:
    few = np.array([f"t{k}" for k in LEVEL % 16], dtype=object)
    (column,) = bin_columns(rows_of(few, Y), [0])[0]
    assert column.places is None
    assert column.bins == 2 + 16


def test_weights_are_repetitions() -> None:
    weights = RNG.integers(0, 4, N)
    again = np.repeat(np.arange(N), weights)
    heavy, long = rows_of(TOWN, Y, weights.astype(float)), rows_of(TOWN[again], Y[again])
    kept = np.flatnonzero(weights)
    (one,) = place_out_of_fold(bin_columns(heavy, [0])[0], heavy, FOLD[kept], 5)
    (other,) = place_out_of_fold(bin_columns(long, [0])[0], long, FOLD[again], 5)
    assert one.levels is not None
    assert one.levels.equals(other.levels)
    assert np.array_equal(np.asarray(one.places), np.asarray(other.places))


def test_levels_without_effect_do_not_look_useful() -> None:
    """Bins made from the labels of the rows that they are judged by would promise much."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({f"x{j}": [f"v{k}" for k in rng.integers(0, 100, 2_000)] for j in range(6)})
    labels = np.where(rng.random(2_000) < 0.2, "yes", "no")
    clf = BayesClassifier().fit(frame, labels)
    share = (labels == "yes").mean()
    nothing = -share * np.log(share) - (1.0 - share) * np.log(1.0 - share)
    assert clf.tuning_.log_loss > 0.99 * nothing
    fresh = pd.DataFrame({f"x{j}": [f"v{k}" for k in rng.integers(0, 100, 2_000)] for j in range(6)})
    posterior = clf.predict_proba(fresh)[:, 1]
    assert -np.mean(share * np.log(posterior) + (1.0 - share) * np.log(1.0 - posterior)) < 1.02 * nothing


def test_leave_one_out_of_many_levels_is_as_tuning_promised() -> None:
    rng = np.random.default_rng(8)
    town, street = rng.integers(0, 60, 2_500), rng.integers(0, 300, 2_500)
    effect, pair = rng.normal(size=60)[town] + rng.normal(size=300)[street], (town % 2) * (street % 2)
    labels = np.where(rng.random(2_500) < 1.0 / (1.0 + np.exp(-effect - 3.0 * pair + 1.0)), "yes", "no")
    frame = pd.DataFrame({"town": [f"t{k}" for k in town], "street": [f"s{k}" for k in street]})
    clf = BayesClassifier().fit(frame, labels)
    assert any(column.places is not None for column in clf.tuning_.corrections.columns)
    assert clf.leave_one_out(frame, labels).log_loss == pytest.approx(clf.tuning_.log_loss, rel=0.01)
