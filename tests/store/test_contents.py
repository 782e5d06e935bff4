"""Values that were replaced, with a right checksum: refused, or a model that works."""

import itertools
import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import deciban as dc
from tests.store.crafted import MUTANTS, ignoring_overflow, predicts, refused
from tests.store.files import changed, content, node, nodes, put_together, taken_apart, written
from tests.store.models import every_family
from tests.store.mutations import arrays_of


def families_in(header: Any) -> list[str]:
    """The name of the family of each part, in their order, which is that of the statistics."""
    return [part["family"]["is"] for part in node(header, ("counts", "schema", "parts"))]


@ignoring_overflow
@pytest.mark.parametrize("tune", ["auto", None])
def test_any_node_of_the_header_may_be_anything(tune: Any, tmp_path: Path) -> None:
    """Each node is replaced by values of every type; what loads still works."""
    clf, X = every_family(tune)
    header, arrays = taken_apart(content(clf))
    chance = random.Random(5)
    found: Counter[str] = Counter()
    for at in chance.sample(nodes(header), 300):
        for value in chance.sample(MUTANTS, 2):
            try:
                became = predicts(put_together(changed(header, at, value), arrays), X.slice(0, 6), tmp_path)
            except Exception as problem:
                raise AssertionError(f"{'.'.join(map(str, at))} = {str(value)[:20]}: {problem!r}") from problem
            assert became != "nan" or value == 1e308, ".".join(map(str, at))
            found[became] += 1
    assert found["refused"] > 400
    assert found["loaded"] > 20


@ignoring_overflow
@pytest.mark.parametrize("items_at", [("counts", "statistics"), ("counts", "schema", "parts")], ids=".".join)
def test_items_that_are_swapped_or_left_out_are_refused(items_at: tuple[str, ...], tmp_path: Path) -> None:
    """Statistics and parts belong together: only those that are counted alike can stand in each other's place."""
    clf, X = every_family()
    header, arrays = taken_apart(content(clf))
    items, names = node(header, items_at), families_in(header)
    loaded = set()
    for k in range(len(items)):
        refused(tmp_path, put_together(changed(header, items_at, items[:k] + items[k + 1 :]), arrays))
        for j in range(k):
            swapped = list(items)
            swapped[j], swapped[k] = swapped[k], swapped[j]
            if predicts(put_together(changed(header, items_at, swapped), arrays), X, tmp_path) == "loaded":
                loaded.add((names[j], names[k]))
    both = {("Gaussian", "LogNormal")}
    assert loaded == (both if "schema" in items_at else both | {("Poisson", "Bernoulli")})


@ignoring_overflow
def test_a_family_at_the_place_of_another_is_refused(tmp_path: Path) -> None:
    """Unless its counts could be those of the other."""
    clf, X = every_family()
    header, arrays = taken_apart(content(clf))
    parts, names = node(header, ("counts", "schema", "parts")), families_in(header)
    loaded = set()
    for k, j in itertools.permutations(range(len(parts)), 2):
        other = changed(header, ("counts", "schema", "parts", k, "family"), parts[j]["family"])
        if predicts(put_together(other, arrays), X, tmp_path) == "loaded":
            loaded.add((names[k], names[j]))
    totals = {("Poisson", "Multinomial"), ("Bernoulli", "Poisson"), ("Bernoulli", "Multinomial")}
    assert loaded == {("Gaussian", "LogNormal"), ("LogNormal", "Gaussian"), ("Multinomial", "Poisson")} | totals


def doubles_in(header: Any) -> np.ndarray:
    """The places of all doubles, counted in doubles from the first array on."""
    found = [np.arange(start // 8, start // 8 + size) for kind, start, size in arrays_of(header) if kind == "float64"]
    return np.concatenate(found)


@ignoring_overflow
@pytest.mark.parametrize("digit", [0, 1, -1, 2**31 - 1, -(2**31)])
def test_digits_that_cannot_be(digit: int, tmp_path: Path) -> None:
    """Each digit of each sum is replaced: sums that no rows have are refused, and no NaN comes out of others."""
    clf, X = every_family()
    header, arrays = taken_apart(content(clf))
    found: Counter[str] = Counter()
    for kind, start, size in arrays_of(header):
        for place in range(size if kind == "int32" else 0):
            other = bytearray(arrays)
            other[start + 4 * place : start + 4 * place + 4] = digit.to_bytes(4, "little", signed=True)
            found[predicts(put_together(header, bytes(other)), X.slice(0, 6), tmp_path)] += 1
    assert found["refused"] > 10
    assert found["nan"] == 0


@pytest.mark.parametrize("family", [dc.Gaussian(), dc.JointGaussian()], ids=str)
def test_sums_that_no_rows_have_are_refused(family: Any, tmp_path: Path) -> None:
    """Squares below the square of the sum, a negative weight, sums of 0 that have digits, digits without end."""
    clf = dc.BayesClassifier(family, tune=None).fit([[1.0, 2.0], [2.0, 4.0], [4.0, 3.0], [8.0, 1.0]], [0, 0, 1, 1])
    header, arrays = taken_apart(content(clf))
    at = ("counts", "statistics", 0)
    for name, low in (("second", -9), ("first", 9), *((name, 10**6) for name in ("present", "first", "second"))):
        refused(tmp_path, put_together(changed(header, (*at, name, "low"), low), arrays), "cannot be a model")
    digits = [(start, size) for kind, start, size in arrays_of(header) if kind == "int32"]
    for k, (start, size) in enumerate(digits):
        end = start + 4 * size
        some = np.frombuffer(arrays[start:end], np.int32)
        for other in [0 * some, *([-some] if k != 1 else [])]:
            data = put_together(header, arrays[:start] + other.astype(np.int32).tobytes() + arrays[end:])
            refused(tmp_path, data, "cannot be a model")


@ignoring_overflow
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -1.0, -1e-300, 1e308, 1e150, 0.0, 1e-320, 0.5])
def test_numbers_that_cannot_be(value: float, tmp_path: Path) -> None:
    """Each number of each array is replaced: no NaN comes out, and what is neither finite nor possible is refused."""
    clf, X = every_family()
    header, arrays = taken_apart(content(clf))
    numbers = np.frombuffer(arrays, np.float64)
    found: Counter[str] = Counter()
    for place in doubles_in(header):
        other = numbers.copy()
        other[place] = value
        try:
            became = predicts(put_together(header, other.tobytes()), X.slice(0, 6), tmp_path)
        except Exception as problem:
            raise AssertionError(f"number {place} of {numbers.size}, {numbers[place]}: {problem!r}") from problem
        found[became] += 1
        assert became != "nan" or abs(value) > 1e100, f"number {place} of {numbers.size}, {numbers[place]}"
    assert found["refused"] > 10
    assert (found["loaded"] > 5) == (np.isfinite(value) and value >= 0.0)  # all are weights, counts or edges
    assert found["nan"] <= 2
    refused(tmp_path, put_together(header, np.full(numbers.size, value).tobytes()))


def test_negative_variances_and_counts_are_refused(tmp_path: Path) -> None:
    clf = dc.BayesClassifier({"x": dc.Gaussian(), "c": dc.Categorical()}, tune=None).fit(
        pa.table({"x": [1.0, 2.0, 4.0, 8.0], "c": ["a", "b", "a", "b"]}), [0, 0, 1, 1]
    )
    header, arrays = taken_apart(content(clf))
    numbers = np.frombuffer(arrays, np.float64)
    seen = 0
    places = doubles_in(header)
    for place in places[numbers[places] > 0.0]:
        other = numbers.copy()
        other[place] *= -1.0
        try:
            dc.load(written(tmp_path, put_together(header, other.tobytes())))
        except dc.ModelFileError:
            seen += 1
    assert seen >= 2 + 4  # weights of classes, counts
