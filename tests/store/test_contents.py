"""Values that were replaced, with a right checksum: refused, or a model that works."""

import itertools
import random
from collections import Counter
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from typing_extensions import TypeAliasType

import deciban as dc
from deciban.model.fitted import Settings
from deciban.statistics import Scatter
from deciban.store import layout, model_file
from deciban.store.values import RECORDS, conforms
from tests.store.crafted import MUTANTS, ignoring_overflow, predicts, refused
from tests.store.models import every_family
from tests.store.mutations import arrays_of
from tests.support.model_files import (
    assert_identical,
    changed,
    content,
    find,
    node,
    nodes,
    put_together,
    taken_apart,
    written,
)


def test_every_field_that_is_stored_has_a_type_that_can_be_checked() -> None:
    """An unsupported type hint would raise a TypeError for each file, whatever it contains."""
    for record in (*RECORDS.values(), Settings):
        hints = get_type_hints(record)
        for field in fields(record):
            for value in (object(), None, 1, 1.5, "x", (), (1, "x"), {}, {"a": 1}, np.zeros(2), dc.Gaussian()):
                assert conforms(value, hints[field.name]) in (True, False), (record, field.name)


def test_arrays_conform_to_aliases_of_types() -> None:
    """As `NDArray` is one from NumPy 2.5 on."""
    scalar = TypeVar("scalar", bound=np.generic)
    array_type: Any = np.ndarray[tuple[Any, ...], np.dtype[scalar]]  # type: ignore[valid-type]
    alias = TypeAliasType("alias", array_type, type_params=(scalar,))
    for hint in (alias[np.float64], npt.NDArray[np.float64]):  # type: ignore[misc]
        assert conforms(np.zeros(2), hint)
        assert not conforms(np.zeros(2, dtype=np.int64), hint)
        assert not conforms(1.0, hint)
    number = TypeAliasType("number", int | None)
    assert conforms(3, number)
    assert not conforms("x", number)


@pytest.mark.parametrize("at", [("counts", "classes"), ("tuning",), ("origin",), ("parameters",)], ids=".".join)
@pytest.mark.parametrize(
    "value",
    [
        *({"array": 7}, {"array": [[], [2]]}, {"map": 3}, {"map": [1]}, {"map": [[{"map": []}, 1]]}, {"date": 3}),
        *({"labels": "datetime64[xx]", "values": [1]}, {"is": []}, {"is": "Uniform"}, {"map": [["a", 1]]}, 7),
    ],
    ids=str,
)
def test_content_of_another_shape_is_damage_and_not_an_internal_error(
    at: tuple[str, ...], value: Any, tmp_path: Path
) -> None:
    header, arrays = taken_apart(content(every_family()[0]))
    refused(tmp_path, put_together(changed(header, at, value), arrays))


def families_in(header: Any) -> list[str]:
    """The name of the family of each part, in their order, which is that of the statistics."""
    return [part["family"]["is"] for part in node(header, ("counts", "schema", "groups"))]


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
    assert found["loaded"] > 15


@ignoring_overflow
@pytest.mark.parametrize("items_at", [("counts", "statistics"), ("counts", "schema", "groups")], ids=".".join)
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
    parts, names = node(header, ("counts", "schema", "groups")), families_in(header)
    loaded = set()
    for k, j in itertools.permutations(range(len(parts)), 2):
        other = changed(header, ("counts", "schema", "groups", k, "family"), parts[j]["family"])
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
        refused(tmp_path, put_together(changed(header, (*at, name, "low"), low), arrays), "invalid model file")
    digits = [(start, size) for kind, start, size in arrays_of(header) if kind == "int32"]
    for k, (start, size) in enumerate(digits):
        end = start + 4 * size
        some = np.frombuffer(arrays[start:end], np.int32)
        for other in [0 * some, *([-some] if k != 1 else [])]:
            data = put_together(header, arrays[:start] + other.astype(np.int32).tobytes() + arrays[end:])
            refused(tmp_path, data, "invalid model file")


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


def test_matrices_that_are_no_covariances_are_refused(tmp_path: Path) -> None:
    """Whatever is written in their place, what loads can predict; a matrix with a negative eigenvalue does not load."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 2
    clf = dc.BayesClassifier({(0, 1, 2): dc.JointGaussian()}, tune=None).fit(X, y)
    statistic = clf.counts_.statistics[0]
    scatter, fitted = statistic.scatter, clf.fitted_

    def with_scatter(new: Any) -> bytes:
        mean, error = (statistic.mean, statistic.mean_low), np.zeros_like(statistic.mean)
        changed = Scatter.from_values(statistic.weight, mean, new, error)
        counts = replace(fitted.counts, statistics=(changed,))
        return model_file.content(replace(fitted, counts=counts))

    assert predicts(with_scatter(scatter), X, tmp_path) == "loaded"
    for cross, became in ((10.0, "refused"), (1.01, "refused"), (-1.01, "refused"), (0.999, "loaded")):
        new = scatter.copy()
        new[0, 0, 1] = new[0, 1, 0] = cross * np.sqrt(new[0, 0, 0] * new[0, 1, 1])
        new[0, 2, :2] = new[0, :2, 2] = 0.0
        assert predicts(with_scatter(new), X, tmp_path) == became, cross
    new = scatter.copy()  # each pair is possible, the three together are not
    own = np.sqrt(np.diagonal(new[1]))
    new[1] = np.where(np.eye(3) > 0, 1.0, -0.9) * np.outer(own, own)
    refused(tmp_path, with_scatter(new), "not positive")
    for value in (1e150, 1e290, 1e308, 5e-324):
        for place in ((0, 0, 0), (0, 0, 1), (1, 2, 2)):
            new = scatter.copy()
            new[place] = new[place[0], place[2], place[1]] = value
            assert predicts(with_scatter(new), X, tmp_path) in ("refused", "loaded"), (value, place)


@pytest.mark.parametrize("unit", [1e-200, 1e-160, 1e-30, 1.0, 1e30, 1e100])
def test_every_covariance_that_was_counted_is_read(unit: float, tmp_path: Path) -> None:
    """Columns that are equal, constant, nearly so, of any unit; in batches, forgotten and weighted."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(80, 1))
    X = np.hstack([x * unit, -2.0 * x * unit, np.full_like(x, 0.1), 1e9 + 1e-6 * x, x + rng.normal(size=x.shape), x**3])
    y, weights = np.arange(80) % 3, rng.random(80)
    spec: Any = {tuple(range(6)): dc.JointGaussian(dc.Pooled())}
    clf = dc.BayesClassifier(spec, tune=None).fit(X[:50], y[:50], sample_weight=weights[:50])
    for part in (slice(50, 60), slice(60, 80)):
        clf.partial_fit(X[part], y[part], sample_weight=weights[part])
        dc.load(written(tmp_path, content(clf)))
    clf.forget(X[60:], y[60:], sample_weight=weights[60:])
    loaded = dc.load(written(tmp_path, content(clf)))
    np.testing.assert_array_equal(loaded.predict_proba(X), clf.predict_proba(X))


def corrected() -> dc.BayesClassifier:
    """A model with correction tables, some of them shorter than others."""
    rng = np.random.default_rng(5)
    X = rng.integers(0, 3, (400, 4)).astype(float)
    return dc.BayesClassifier().fit(X, (X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=400) > 2.0).astype(int))


def test_corrections_are_held_in_units_of_few_bytes(tmp_path: Path) -> None:
    clf = corrected()
    known = clf.fitted_.tuning.corrections
    assert known is not None
    header, _ = taken_apart(content(clf))
    held = node(header, find(header, is_="CompactCorrections"))
    assert held["units"]["array"] == ["float64", [known.cells, 1], "int16"]
    assert held["tests"]["array"][2] == "uint8"
    clf.save(tmp_path / "model.dcb")
    found = dc.load(tmp_path / "model.dcb").fitted_.tuning.corrections
    assert found is not None
    assert_identical(found, known)


def test_three_classes_and_corrections_that_are_not_rounded_are_kept(tmp_path: Path) -> None:
    clf = corrected()
    fitted, rng = clf.fitted_, np.random.default_rng(6)
    known = fitted.tuning.corrections
    assert known is not None
    values = np.where(known.used_cells[:, :, None], rng.normal(size=known.values.shape), 0.0)
    data = model_file.content(replace(fitted, tuning=replace(fitted.tuning, corrections=replace(known, values=values))))
    found = model_file.from_content(data, "model").tuning.corrections
    np.testing.assert_array_equal(found.values, values)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("questions", {"array": ["int64", [0]]}),
        ("classes", 0),
        ("classes", 3),
        ("classes", 10**9),
        ("unit", 1e300),
        ("unit", {"number": "nan"}),
        ("folds", 1),
        ("hashed", 0),
    ],
)
def test_corrections_that_do_not_fit_together_are_refused(field: str, value: Any, tmp_path: Path) -> None:
    header, arrays = taken_apart(content(corrected()))
    at = find(header, is_="CompactCorrections")
    refused(tmp_path, put_together(changed(header, (*at, field), value), arrays))


def test_a_file_never_holds_more_questions_than_a_cell_number_has_digits(tmp_path: Path) -> None:
    header, arrays = taken_apart(content(corrected()))
    place = next(at for at in nodes(header) if at[-2:] == ("questions", "array"))
    start = next(
        start for at, (_, start, _) in zip(_array_places(header), arrays_of(header), strict=True) if at == place
    )
    for wrong in (9, 0):
        other = bytearray(arrays)
        other[start] = wrong
        refused(tmp_path, put_together(header, bytes(other)))


def _array_places(header: Any) -> list[tuple[Any, ...]]:
    return [at for at in nodes(header) if at[-1:] == ("array",) and isinstance(node(header, at), list)]


def test_arrays_are_narrowed_only_if_nothing_is_lost() -> None:
    def narrowed(numbers: Any) -> str:
        array = np.resize(np.asarray(numbers), 20)
        found = layout.narrow(array)
        np.testing.assert_array_equal(found.astype(array.dtype).view(np.int64), array.view(np.int64))
        return found.dtype.name

    kinds = {narrowed([0.0, top]): top for top in (255.0, -5.0, 65535.0, -40000.0, 0.5)}
    assert list(kinds) == ["uint8", "int16", "uint16", "int32", "float32"]
    assert [narrowed([0.1]), narrowed([0.0, -0.0]), narrowed([np.nan]), narrowed([2**40])] == [
        *("float64", "float32", "float32", "int64")
    ]
