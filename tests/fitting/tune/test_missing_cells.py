"""Rows with missing cells in tuned models: offsets of columns, averaged corrections, the scale."""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from deciban import BayesClassifier
from deciban.fitting.tune.partial import learn_scales
from deciban.model.corrections import CorrectedColumn, Corrections
from deciban.model.partial_rows import SCALED_SHARES, PartialRows
from deciban.sources.open import open_table
from deciban.store.model_file import content, from_content
from deciban.tables.table import missing_cells
from tests.laws.cases import CASES, Case

ROWS = 150


def empty_row(X: Any) -> Any:
    """A row like those of X in which every cell is missing."""
    if isinstance(X, pa.Table):
        return pa.table([pa.nulls(1, kind) for kind in X.schema.types], names=X.column_names)
    return np.full((1, X.shape[1]), np.nan)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("tune", ["weights", "auto"])
def test_with_nothing_known_the_posterior_is_the_prior(case: Case, tune: str) -> None:
    rng = np.random.default_rng(5)
    X = case.draw(rng, ROWS)
    y = rng.choice(["a", "b", "c"], ROWS, p=[0.6, 0.3, 0.1])
    clf = BayesClassifier(case.spec, tune=tune).fit(X, y)
    prior = np.exp(clf.model_.log_prior)
    nothing = empty_row(X)
    np.testing.assert_allclose(clf.predict_proba(nothing)[0], prior, rtol=0.0, atol=1e-9)
    other = clf.with_prior({"a": 0.2, "b": 0.5, "c": 0.3})
    np.testing.assert_allclose(other.predict_proba(nothing)[0], [0.2, 0.5, 0.3], rtol=0.0, atol=1e-9)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 1000), tune=st.sampled_from(["weights", "auto"]), share=st.sampled_from([0.0, 0.1, 0.5]))
def test_the_empty_row_of_any_mixed_table_is_the_prior(seed: int, tune: str, share: float) -> None:
    """Also where missing cells are many, and depend on the class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2 + seed % 3, 130)
    shared = rng.normal(size=130)
    frame = pd.DataFrame(
        {"a": shared + y, "b": 2.0 * shared - y, "c": rng.integers(0, 4, 130), "d": rng.gamma(1.0 + y)}
    )
    frame["e"] = np.array(list("uvwxyz"))[np.clip(rng.integers(0, 4, 130) + y, 0, 5)]
    gone = rng.random(frame.shape) < share * (1 + y[:, None]) / 2
    frame = frame.astype({"c": float}).mask(gone)
    clf = BayesClassifier(tune=tune).fit(frame, y)
    found = clf.predict_proba([dict.fromkeys(frame.columns)])[0]
    np.testing.assert_allclose(found, np.exp(clf.model_.log_prior), rtol=0.0, atol=1e-9)


def redundant(rows: int = 600, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Six noisy copies of two numbers, and a category that goes with one: plain Bayes counts them too often."""
    rng = np.random.default_rng(seed)
    y = (rng.random(rows) < 0.25).astype(int)
    first, second = rng.normal(size=rows) + y, rng.normal(size=rows) - 0.7 * y
    columns = {f"a{k}": first + 0.4 * rng.normal(size=rows) for k in range(3)}
    columns |= {f"b{k}": np.exp(second + 0.4 * rng.normal(size=rows)) for k in range(3)}
    columns["c"] = np.array(["low", "middle", "high"])[np.digitize(first + second, [-0.5, 0.8])]
    return pd.DataFrame(columns), y


def masked(frame: pd.DataFrame, share: float) -> pd.DataFrame:
    return frame.mask(np.random.default_rng(9).random(frame.shape) < share)


@pytest.fixture(scope="module")
def tuned() -> BayesClassifier:
    return BayesClassifier().fit(*redundant())


def test_partial_rows_are_scored_no_worse_than_by_plain_bayes_or_the_prior(tuned: BayesClassifier) -> None:
    plain = BayesClassifier(tune=None).fit(*redundant())
    X, y = redundant(2000, seed=1)
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        rows = masked(X, share)
        losses = [-np.log(clf.predict_proba(rows)[np.arange(y.size), y]).mean() for clf in (tuned, plain)]
        prior = -np.log(plain.predict_proba(masked(X, 1.0))[np.arange(y.size), y]).mean()
        assert losses[0] <= min(losses[1], prior) + 0.01


def test_one_known_column_never_says_less_than_the_prior(tuned: BayesClassifier) -> None:
    X, y = redundant(2000, seed=2)
    prior = np.exp(tuned.model_.log_prior)
    for column in X.columns:
        found = tuned.predict_proba(X[[column]])
        assert -np.log(found[np.arange(y.size), y]).mean() <= -np.log(prior[y]).mean() + 0.005


def test_a_complete_row_has_the_whole_bias_and_no_scale(tuned: BayesClassifier) -> None:
    """Whatever is learned for partial rows: the sum is that of the weights, the bias and the tables."""
    X, _ = redundant(50, seed=3)
    model = tuned.model_
    table = model.schema.table_as_learned(open_table(X))
    evidence = model.evidence(table)
    expected = model.log_prior + model.bias + evidence.weighted.sum(axis=1)
    np.testing.assert_allclose(model.log_joint(table), expected, rtol=0.0, atol=1e-11)
    assert model.partial is not None
    for other in (
        replace(model.partial, scales=np.full(len(SCALED_SHARES), 7.0)),
        PartialRows.even(model.bias, range(7), 7),
    ):
        found = replace(model, partial=other).log_joint(table)
        np.testing.assert_allclose(found, model.log_joint(table), rtol=0.0, atol=1e-12)


def test_a_row_has_the_same_bits_alone_and_among_partial_ones(tuned: BayesClassifier) -> None:
    rows = masked(redundant(40, seed=4)[0], 0.3)
    rows.iloc[::2] = redundant(40, seed=4)[0].iloc[::2]
    together = tuned.predict_proba(rows)
    for k in range(len(rows)):
        np.testing.assert_array_equal(tuned.predict_proba(rows.iloc[k : k + 1])[0], together[k])


def test_columns_and_blocks_of_partial_rows_add_up(tuned: BayesClassifier) -> None:
    rows = masked(redundant(60, seed=5)[0], 0.5)
    joint = tuned.log_joint(rows)
    columns, blocks = tuned.evidence(rows, by="column"), tuned.evidence(rows)
    np.testing.assert_allclose(columns.log_joint, joint, rtol=0.0, atol=1e-11)
    np.testing.assert_allclose(blocks.log_joint, joint, rtol=0.0, atol=1e-11)
    missing = missing_cells(open_table(rows))
    assert (columns.values[missing] == 0.0).all()
    assert "bias" not in str(tuned.explain(rows.iloc[:1]))


def with_informative_cells(rows: int = 800) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, rows)
    told = pd.Series(rng.normal(size=rows)).mask(rng.random(rows) < np.where(y == 1, 0.7, 0.1))
    lost = pd.Series(rng.normal(size=rows) + y).mask(rng.random(rows) < 0.2)
    return pd.DataFrame({"told": told, "lost": lost, "more": rng.normal(size=rows) + 0.5 * y}), y


def test_missing_cells_that_were_evidence_stay_evidence_and_are_shown() -> None:
    X, y = with_informative_cells()
    clf = BayesClassifier().fit(X, y)
    described = {name: why for name, _, why in clf.schema_.descriptions()}
    assert "missing cells are evidence" in described["told"]
    assert "missing cells are evidence" not in described["lost"] + described["more"]
    assert "missing cells are evidence" in " ".join(str(clf.schema_).split())
    assert "missing cells are evidence" in " ".join(str(clf.tuning_).split())
    row = {"told": None, "lost": 0.5, "more": 0.2}
    assert clf.predict_proba([row])[0, 1] > clf.predict_proba([{**row, "told": 0.0}])[0, 1] + 0.1
    said = clf.evidence([row], by="column").values[0]
    assert said[0, 1] - said[0, 0] > 0.5
    assert (clf.evidence([{**row, "lost": None, "told": 0.1}], by="column").values[0, 1] == 0.0).all()
    np.testing.assert_allclose(clf.predict_proba([dict.fromkeys(row)])[0], np.exp(clf.model_.log_prior), atol=1e-9)


def test_what_is_learned_is_kept_in_files_and_when_more_is_learned(tuned: BayesClassifier) -> None:
    rows = masked(redundant(30, seed=6)[0], 0.5)
    fitted = from_content(content(tuned._get_fitted()), "model")
    assert fitted.tuning is not None
    assert fitted.tuning.partial is not None
    again = BayesClassifier().fit(*redundant())
    np.testing.assert_array_equal(again.predict_proba(rows), tuned.predict_proba(rows))
    X, y = redundant(100, seed=7)
    again.partial_fit(X.assign(new=1.0), np.where(y == 0, 0, 2))
    assert again.tuning_.stale
    np.testing.assert_allclose(
        again.predict_proba([{"a0": None, "new": None}])[0], np.exp(again.model_.log_prior), rtol=0.0, atol=1e-9
    )


def test_a_model_without_offsets_of_columns_splits_its_bias_evenly(tuned: BayesClassifier) -> None:
    """As files of before have it: complete rows mean what they meant, and the empty row is the prior."""
    fitted = tuned._get_fitted()
    old = replace(fitted, tuning=replace(fitted.tuning, partial=None))
    X = redundant(20, seed=8)[0]
    table = old.model.schema.table_as_learned(open_table(X))
    np.testing.assert_allclose(old.model.log_joint(table), fitted.model.log_joint(table), rtol=0.0, atol=1e-11)
    empty = old.model.schema.table_as_learned(open_table(X.mask(np.ones(X.shape, dtype=bool))))
    np.testing.assert_allclose(old.model.log_joint(empty)[0], old.log_prior, rtol=0.0, atol=1e-12)


def some_corrections(rng: np.random.Generator, tables: int = 12) -> Corrections:
    columns = tuple(CorrectedColumn(k, cuts=np.arange(4.0)) for k in range(4))
    tests = np.full((tables, 6, 2), -1, dtype=np.int64)
    for t in range(tables):
        for level in range(rng.integers(0, 7)):
            tests[t, level] = rng.integers(0, 4), rng.integers(0, 5)
    values, rows = rng.normal(size=(tables, 64, 3)), rng.integers(0, 9, (tables, 64)).astype(np.float64)
    return Corrections(columns, tests, values, rows, np.zeros(tables, dtype=np.int64), 1, 1)


@pytest.mark.parametrize("seed", range(3))
def test_a_table_is_averaged_over_its_unknown_columns(seed: int) -> None:
    """By brute force: the mean of all cells that agree, by the rows behind them; with nothing known nothing."""
    rng = np.random.default_rng(seed)
    corrections = some_corrections(rng)
    bins = rng.integers(0, 6, (4, 16)).astype(np.uint8)
    unknown = np.array(list(product([False, True], repeat=4))).T
    out = np.zeros((16, 3))
    corrections.add_to(bins, out, unknown)
    expected = np.zeros((16, 3))
    for i in range(16):
        for tests, values, rows in zip(corrections.tests, corrections.values, corrections.rows, strict=True):
            asked = [(j, cut) for j, cut in tests.tolist() if j >= 0]
            if asked and all(unknown[j, i] for j, _ in asked):
                continue
            choices = [(0, 1) if unknown[j, i] else (int(bins[j, i] > cut),) for j, cut in asked]
            cells = [int("".join(map(str, bits)) or "0", 2) for bits in product(*choices)]
            expected[i] += np.average(values[cells], axis=0, weights=rows[cells] + 1e-6)
    np.testing.assert_allclose(out, expected, rtol=0.0, atol=1e-12)
    shares = corrections.shares(bins, unknown)
    always = corrections.values[corrections.tests[:, 0, 0] < 0, 0].sum(axis=0)
    np.testing.assert_allclose(shares.sum(axis=1) + always, out, rtol=0.0, atol=1e-12)
    assert (shares[unknown.T] == 0.0).all()
    known = np.zeros_like(unknown)
    np.testing.assert_allclose(corrections.shares(bins, known), corrections.shares(bins), rtol=0.0, atol=1e-12)


def test_averaged_tables_have_the_same_values_and_shares() -> None:
    rng = np.random.default_rng(4)
    corrections = some_corrections(rng)
    bins = rng.integers(0, 6, (4, 60)).astype(np.uint8)
    unknown = rng.random((4, 60)) < 0.4
    out, shares = np.zeros((60, 3)), np.zeros((60, 4, 3))
    for table in corrections.average_tables():
        answers = tuple(
            np.where(unknown[column], 0, 1 + np.searchsorted(cuts, bins[column], side="left"))
            for column, cuts in zip(table.columns, table.cuts, strict=True)
        )
        out += table.values[answers]
        for column, share in table.shares().items():
            shares[:, column] += share[answers]
    expected = np.zeros((60, 3))
    corrections.add_to(bins, expected, unknown)
    np.testing.assert_allclose(out, expected, rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(shares, corrections.shares(bins, unknown), rtol=0.0, atol=1e-12)


def test_scales_undo_what_is_too_large_or_too_small() -> None:
    rng = np.random.default_rng(0)
    known = rng.random(20_000)
    right = np.interp(known, (*SCALED_SHARES, 1.0), (0.5, 2.0, 1.5, 0.8, 1.0))
    score = rng.normal(size=20_000)
    labels = (rng.random(20_000) < 1.0 / (1.0 + np.exp(-right * score))).astype(np.int64)
    sums = np.stack([np.zeros(20_000), score], axis=1)
    found = learn_scales(sums, known, labels, np.ones(20_000), np.log([0.5, 0.5]))
    np.testing.assert_allclose(found, [0.5, 2.0, 1.5, 0.8], atol=0.15)
