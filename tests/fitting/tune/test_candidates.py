"""The families that are tried for a column."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from deciban import Binned, Categorical, Gamma, Gaussian, LogNormal, Poisson
from deciban.fitting.tune.candidates import list_candidates, summarize_numbers
from deciban.fitting.tune.rows import Rows
from deciban.sources.open import open_table

SECONDS = 3600 + 60 * np.random.default_rng(0).integers(0, 600, 200)


def _tried(cells: pa.Array) -> set[type]:
    labels = (np.arange(200) % 2).astype(np.int32)
    rows = Rows.of(open_table(pa.table({"x": cells})), labels, None, 2, 1000)
    return {type(family) for family in list_candidates(Gaussian(), summarize_numbers(rows, [0])[0], 0)}


@pytest.mark.parametrize(
    "kind", [pa.time32("s"), pa.time64("us"), pa.date32(), pa.timestamp("s"), pa.timestamp("s", tz="UTC")], ids=str
)
def test_dates_and_times_are_neither_counts_nor_amounts(kind: Any) -> None:
    whole = pa.array(SECONDS * (86_400 if pa.types.is_timestamp(kind) else 1))
    seconds = whole.cast(pa.int32()).cast(pa.time32("s")) if pa.types.is_time(kind) else whole
    cells = seconds.cast(pa.int32()).cast(kind) if pa.types.is_date(kind) else seconds.cast(kind)
    assert _tried(cells) == {Gaussian, Binned}


def test_durations_are_amounts_and_no_counts() -> None:
    assert _tried(pa.array(SECONDS).cast(pa.duration("s"))) == {Gaussian, Binned, LogNormal, Gamma}


def test_whole_numbers_may_be_counts() -> None:
    assert _tried(pa.array(SECONDS)) == {Gaussian, Binned, LogNormal, Gamma, Poisson}


@pytest.mark.parametrize(("values", "tried"), [(12, set()), (13, {2.0, 8.0, 32.0, 128.0})])
def test_proportional_smoothing_is_tried_for_many_values(values: int, tried: set[float]) -> None:
    found = list_candidates(Categorical(unseen="smooth"), None, values)
    assert found[0] == Categorical(unseen="smooth")
    assert {family.alpha for family in found if family.proportional} == tried
    assert all(family.unseen == "smooth" for family in found)


@pytest.mark.parametrize(
    ("values", "tried"),
    [
        (12, {(0.5, False), (1.0, False)}),
        (13, {(0.5, False), (1.0, False), (8.0, True), (32.0, True)}),
        (30, {(0.5, False), (1.0, False), (8.0, True), (32.0, True)}),
        (31, set()),
    ],
)
def test_numeric_codes_are_tried_as_categories(values: int, tried: set[tuple[float, bool]]) -> None:
    cells, labels = pa.array(np.arange(200) % values * 10 + 7), (np.arange(200) % 2).astype(np.int32)
    rows = Rows.of(open_table(pa.table({"x": cells})), labels, None, 2, 1000)
    numbers = summarize_numbers(rows, [0])[0]
    found = [family for family in list_candidates(Gaussian(), numbers, values) if isinstance(family, Categorical)]
    assert {(family.alpha, family.proportional) for family in found} == tried
