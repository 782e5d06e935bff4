"""Rows drawn by lot: by their numbers, and by what they hold."""

import tracemalloc
from collections import Counter
from collections.abc import Sequence
from datetime import date, datetime, time
from decimal import Decimal
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st
from scipy import sparse

from deciban.sources.open import open_table
from deciban.tables.examples import LabeledTable
from deciban.tables.row_sampling import (
    RowHashes,
    RowSampler,
    content_hashes,
    matrix_hashes,
    places_by_content,
    row_hashes,
    sample_places,
)


def test_the_lowest_lots_are_drawn_in_memory_that_does_not_grow() -> None:
    size, most = 6_000_000, 1_000
    lowest = np.sort(np.argsort(row_hashes(0, size))[:most])
    tracemalloc.start()
    found = sample_places(size, most)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.array_equal(found, lowest)
    assert peak < 8 * size  # that of one number a row


def drawn(contents: npt.NDArray[np.int64], most: int, piece: int) -> list[int]:
    """The contents of a sample of rows that come in pieces of a size."""
    sampler = RowSampler(most)
    for start in range(0, contents.size, piece):
        some = contents[start : start + piece]
        sampler.add(pa.table({"content": some}), lambda some=some: hashes_of(some))  # type: ignore[misc]
    assert sampler.rows == contents.size
    found: list[int] = sampler.table()["content"].to_pylist()
    return found


def hashes_of(contents: Sequence[int] | npt.NDArray[np.int64]) -> RowHashes:
    return content_hashes([pa.array(contents)], len(contents))


def lowest(contents: npt.NDArray[np.int64], most: int) -> list[int]:
    """The same by brute force, in exact fractions: copy k of c has the priority (k + u) / c."""
    priorities = []
    for content, copies in Counter(contents.tolist()).items():
        lot = Fraction(2 * (int(hashes_of([content])[0]) >> 11) + 1, 2**54)
        priorities += [((k + lot) / copies, content) for k in range(copies)]
    return [content for _, content in sorted(priorities)[:most]]


@given(
    st.lists(st.integers(0, 40) | st.integers(0, 10**6), min_size=1, max_size=300),
    st.integers(1, 40),
    st.integers(1, 90),
    st.randoms(use_true_random=False),
)
def test_a_sample_is_that_of_its_rows_in_any_order_and_pieces(
    contents: list[int], most: int, piece: int, rng: object
) -> None:
    rows = np.array(contents)
    if rows.size <= most:
        assert drawn(rows, most, piece) == contents
        return
    expected = lowest(rows, most)
    assert drawn(rows, most, piece) == expected
    rng.shuffle(contents)  # type: ignore[attr-defined]
    assert drawn(np.array(contents), most, piece) == expected
    assert rows[places_by_content(pa.array(rows), most)].tolist() == expected


def test_a_content_has_its_share_of_a_sample() -> None:
    """A half of the rows are one, and a tenth of them another, wherever they are."""
    rows = np.concatenate([np.zeros(50_000), np.ones(10_000), np.arange(2, 40_002)]).astype(np.int64)
    for order in (rows, rows[::-1], np.random.default_rng(0).permutation(rows)):
        found = Counter(drawn(order, 1_000, 7_000))
        assert abs(found[0] - 500) <= 12
        assert abs(found[1] - 100) <= 4
        assert max(count for content, count in found.items() if content > 1) == 1


@pytest.mark.parametrize("frequent", [0, 1, 2, 3])
def test_more_different_rows_than_are_counted(monkeypatch: pytest.MonkeyPatch, frequent: int) -> None:
    """Those that are drawn are the same in any order, and a frequent one has its share although it comes late."""
    monkeypatch.setattr("deciban.tables.row_sampling.FIRST_CONTENTS", 64)
    monkeypatch.setattr("deciban.tables.row_sampling.MAX_CONTENTS", 1 << 9)
    single = np.arange(10, 12_010)
    rows = np.concatenate([single, np.full(4_000, frequent)])
    shuffled = np.random.default_rng(1).permutation(rows)
    expected = lowest(rows, 50)
    for order in (rows, rows[::-1], shuffled):
        found = drawn(order, 50, 700)
        assert abs(found.count(frequent) - expected.count(frequent)) <= 1
        rare, wanted = ([one for one in some if one != frequent] for some in (found, expected))
        same = min(len(rare), len(wanted))
        assert rare[:same] == wanted[:same]


def test_cells_are_alike_whatever_their_types() -> None:
    same = [
        pa.array([1, 0, None], pa.int8()),
        pa.array([1, 0, None], pa.uint64()),
        pa.array([1.0, -0.0, np.nan], pa.float32()),
        pa.array([True, False, None]),
        pa.array([Decimal("1.00"), Decimal("0.00"), None]),
        pa.array([1, 0, None]).dictionary_encode(),
        pa.chunked_array([[1], [0, None]]),
    ]
    texts = [
        pa.array(["a", "Zürich, a longer text", None]),
        pa.array(["a", "Zürich, a longer text", None], pa.large_string()),
        pa.array(["a", "Zürich, a longer text", None], pa.string_view()),
        pa.array(["a", "Zürich, a longer text", None]).dictionary_encode(),
        pa.array(["x", "a", "Zürich, a longer text", None]).slice(1),
    ]
    moments = [
        pa.array([date(2020, 1, 2), date(1960, 1, 2), None]),
        pa.array([datetime(2020, 1, 2), datetime(1960, 1, 2), None], pa.timestamp("s")),
        pa.array([datetime(2020, 1, 2), datetime(1960, 1, 2), None], pa.timestamp("ns", "UTC")),
    ]
    for kinds in (same, texts, moments):
        hashes = [content_hashes([cells], 3).tolist() for cells in kinds]
        assert all(one == hashes[0] for one in hashes), hashes
        assert len(set(hashes[0])) == 3
    assert content_hashes([pa.array([time(1), time(2)])], 2).size == 2
    assert content_hashes([pa.array([[1], [2]])], 2).tolist() == [0, 0]  # no family reads it


def test_tables_in_memory_are_sampled_alike() -> None:
    """A matrix, columns, and both with labels beside them or among them."""
    rng = np.random.default_rng(2)
    matrix = rng.integers(0, 30, (3_000, 2)).astype(np.float64)
    labels = np.array(["a", "b"])[rng.integers(0, 2, 3_000)]
    columns = {"x0": matrix[:, 0], "x1": matrix[:, 1], "y": labels}
    whole = open_table(columns)
    apart = open_table({name: columns[name] for name in ("x0", "x1")})
    inside = LabeledTable.of(whole, "y").sample(500)[0]
    for table in (apart, open_table(matrix)):
        found = LabeledTable.of(table, labels).sample(500)[0]
        np.testing.assert_array_equal(found.table.numbers([0, 1]), inside.table.numbers([0, 1]))
        assert [found.labels.label(row) for row in range(500)] == [inside.labels.label(row) for row in range(500)]
    np.testing.assert_array_equal(apart.hashes(), matrix_hashes(matrix))


def test_sparse_rows_are_sampled_in_any_order() -> None:
    rng = np.random.default_rng(3)
    matrix = sparse.random_array((2_000, 50), density=0.1, rng=rng, format="csr")
    labels, order = rng.integers(0, 2, 2_000), rng.permutation(2_000)
    one = LabeledTable.of(open_table(matrix), labels).sample(300)[0]
    other = LabeledTable.of(open_table(matrix[order]), labels[order]).sample(300)[0]
    np.testing.assert_array_equal(one.table.numbers(range(50)), other.table.numbers(range(50)))
    assert len(set(open_table(matrix).hashes().tolist())) > 1_900
