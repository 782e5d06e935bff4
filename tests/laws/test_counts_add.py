"""The algebra of counts, for every family."""

import re
import threading
from collections.abc import Iterable
from itertools import accumulate
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from deciban import Binned, Counts, Gamma, Gaussian, JointGaussian, LogNormal, testing
from deciban.model.batches import Batch, _Tree, count
from deciban.schema.schema import Schema
from deciban.sources.open import open_table
from deciban.testing import (
    assert_same_counts,
    count_rows,
    draw_table as table,
    estimate_model as model,
    infer_trial_schema,
    take_rows,
)
from tests import example_count
from tests.laws.cases import CASES, Case

every_family = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=example_count(15))


@every_family
@few
@given(seed=seeds)
def test_empty_is_an_identity(case: Case, seed: int) -> None:
    testing.check_empty_is_an_identity(case.trial, seed)


@every_family
@few
@given(seed=seeds)
def test_merge_is_associative_and_commutative(case: Case, seed: int) -> None:
    testing.check_counts_add(case.trial, seed)


@every_family
@few
@given(seed=seeds, cuts=st.lists(st.integers(0, 60), max_size=6))
def test_any_batching_and_any_order_give_the_same_counts(case: Case, seed: int, cuts: list[int]) -> None:
    testing.check_batches_and_order_do_not_matter(case.trial, seed, cuts)


@every_family
def test_one_row_at_a_time(case: Case) -> None:
    testing.check_one_row_at_a_time(case.trial, 7)


@every_family
def test_hostile_batches(case: Case) -> None:
    """Empty, one class only, sorted by class."""
    X, y, _ = table(case, 8)
    schema = infer_trial_schema(case, X)
    whole = count_rows(schema, X, y)
    empty = count_rows(schema, take_rows(X, slice(0, 0)), y[:0])
    assert_same_counts(whole + empty, whole, exact=True)
    order = np.argsort(y, kind="stable")
    assert_same_counts(count_rows(schema, take_rows(X, order), y[order]), whole, case.exact)
    total = empty
    for label in (2, 0, 1):
        total = total + count_rows(schema, take_rows(X, y == label), y[y == label])
    assert_same_counts(total, whole, case.exact)


MEASURED = [case for case in CASES if isinstance(case.family, Gaussian | LogNormal | Gamma | Binned | JointGaussian)]


@pytest.mark.parametrize("case", MEASURED, ids=lambda case: case.name)
def test_batches_far_from_zero(case: Case) -> None:
    """All numbers shifted by 1e9, on a grid that doubles hold there: one row at a time, sorted, merged as a tree."""
    X, y, rng = table(case, 10)
    X = np.round(X.astype(np.float64) * 1024) / 1024 + 1e9
    schema = infer_trial_schema(case, X)
    whole = count_rows(schema, X, y)
    rows = [count_rows(schema, X[i : i + 1], y[i : i + 1]) for i in rng.permutation(60)]
    one_by_one = sum(rows, Counts.empty(schema))
    while len(rows) > 1:
        rows = [sum(rows[k : k + 2], Counts.empty(schema)) for k in range(0, len(rows), 2)]
    order = np.argsort(y, kind="stable")
    for other in (one_by_one, rows[0], count_rows(schema, X[order], y[order])):
        assert_same_counts(other, whole, case.exact)


@every_family
def test_threads_change_no_bit(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, _ = table(case, 9, rows=500)
    schema = infer_trial_schema(case, X)
    monkeypatch.setattr("deciban.model.batches.BATCH_ROWS", 32)
    one = count_rows(schema, X, y, threads=1)
    for threads in (2, 3, 8):
        assert_same_counts(count_rows(schema, X, y, threads=threads), one, exact=True)


@every_family
@few
@given(seed=seeds)
def test_weights_are_repetitions(case: Case, seed: int) -> None:
    testing.check_weights_are_repetitions(case.trial, seed)


@every_family
@few
@given(seed=seeds)
def test_a_row_alone_scores_as_in_a_batch_to_the_bit(case: Case, seed: int) -> None:
    testing.check_a_row_scores_as_in_a_batch(case.trial, seed)


@every_family
@few
@given(seed=seeds)
def test_evidence_adds_up(case: Case, seed: int) -> None:
    testing.check_evidence_adds_up(case.trial, seed)


@every_family
@few
@given(seed=seeds)
def test_permuting_columns_permutes_evidence(case: Case, seed: int) -> None:
    X, y, rng = table(case, seed)
    schema = infer_trial_schema(case, X)
    order = rng.permutation(schema.width)
    evidence = model(count_rows(schema, X, y)).evidence(schema.table_as_learned(open_table(X)))
    if schema.names is None:
        permuted = X[:, order]
        other = infer_trial_schema(case, permuted)
    else:
        permuted = X.select([schema.names[k] for k in order])
        other = infer_trial_schema(case, permuted)
    moved = model(count_rows(other, permuted, y)).evidence(other.table_as_learned(open_table(permuted)))
    expected = evidence.values if evidence.values.shape[1] == 1 else evidence.values[:, order]
    np.testing.assert_allclose(moved.values, expected, rtol=1e-9, atol=1e-9)


class Span:
    """What stands for the counts of some batches, and remembers how they were added."""

    def __init__(self, *parts: Any) -> None:
        self.parts = parts

    def __add__(self, other: "Span") -> "Span":
        return Span(self.parts, other.parts)


@given(st.integers(1, 20).flatmap(lambda size: st.permutations(range(size))))
def test_batches_are_added_in_one_way_in_whatever_order_they_come(order: list[int]) -> None:
    def total(places: Iterable[int]) -> str:
        tree: Any = _Tree()
        for place in places:
            tree.add(place, Span(place))
        return str(tree.total(Span("start")).parts)

    found = total(order)
    assert found == total(range(len(order)))
    assert [int(number) for number in re.findall(r"\d+", found)] == sorted(order)
    depth = max(accumulate((sign == "(") - (sign == ")") for sign in found))
    assert depth <= 2 + 2 * len(order).bit_length()


def test_nobody_waits_for_another_to_add_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """While the second batch takes its time, whoever has counted the first goes on with the third."""
    third_is_counted = threading.Event()

    def slowly(batch: Batch, schema: Schema) -> Counts:
        assert batch.first_row != 15 or third_is_counted.wait(20.0)
        counts = count(batch, schema)
        if batch.first_row == 30:
            third_is_counted.set()
        return counts

    monkeypatch.setattr("deciban.model.batches.BATCH_ROWS", 15)
    monkeypatch.setattr("deciban.model.batches.count", slowly)
    case = next(case for case in CASES if case.name == "gaussian")
    X, y, _ = table(case, 0)
    assert count_rows(infer_trial_schema(case, X), X, y, threads=2).rows == 60
