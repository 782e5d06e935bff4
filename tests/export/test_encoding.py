"""Numbers survive being written as JSON: to the bit, or within the bound that is promised."""

import base64
import json

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

from deciban.export.model_json import amounts, floats, integers, number, runs

KINDS = {"f8": "<f8", "i4": "<i4", "i2": "<i2", "u2": "<u2", "u1": "<u1"}


def decoded(encoded: list[object] | dict[str, str]) -> np.ndarray:
    """What NumPy reads of it."""
    if isinstance(encoded, list):
        return np.array([float(value) for value in encoded])  # type: ignore[arg-type]
    ((kind, text),) = encoded.items()
    return np.frombuffer(base64.b64decode(text), KINDS[kind]).astype(np.float64)


@given(arrays(np.float64, st.integers(0, 40)))
def test_doubles_survive_to_the_bit(values: np.ndarray) -> None:
    back = decoded(json.loads(json.dumps(floats(values), allow_nan=False)))
    np.testing.assert_array_equal(back, values)
    assert (np.signbit(back) == np.signbit(values))[~np.isnan(values)].all()


@given(arrays(np.int64, st.integers(0, 40), elements=st.integers(-(2**31), 2**31 - 1)))
def test_whole_numbers_survive(values: np.ndarray) -> None:
    np.testing.assert_array_equal(decoded(json.loads(json.dumps(integers(values)))), values)


@pytest.mark.parametrize(("most", "kind"), [(255, "u1"), (256, "u2"), (65_535, "u2"), (65_536, "i4")])
def test_whole_numbers_take_few_bytes(most: int, kind: str) -> None:
    assert list(integers(np.full(20, most))) == [kind]


@pytest.mark.parametrize(("least", "kind"), [(-1, "i2"), (-32_768, "i2"), (-32_769, "i4")])
def test_negative_whole_numbers_take_few_bytes(least: int, kind: str) -> None:
    assert list(integers(np.resize([least, 7], 20))) == [kind]


def test_counts_are_whole_numbers_where_they_can_be() -> None:
    assert list(amounts(np.full(20, 3.0))) == ["u1"]
    assert list(amounts(np.full(20, 2.5))) == ["f8"]


@given(st.sets(st.integers(0, 200)))
def test_runs_hold_the_same_points(points: set[int]) -> None:
    found, at = set(), 0
    written = runs(sorted(points))
    for gap, size in zip(written[::2], written[1::2], strict=True):
        at += gap
        found |= set(range(at, at + size))
        at += size
    assert found == points


def test_numbers_that_json_does_not_have_are_texts() -> None:
    assert [number(value) for value in (np.inf, -np.inf, np.nan, -0.0)] == ["inf", "-inf", "nan", 0.0]
