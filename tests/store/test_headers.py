"""Headers that were rewritten, with a right checksum: formats, shapes, records and schemas that cannot be."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import deciban as dc
from deciban.datasets import weather
from tests.store.crafted import predicts, refused
from tests.store.models import every_family, small
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


def test_headers_that_are_no_headers(tmp_path: Path) -> None:
    header, arrays = taken_apart(content(small()))
    text = json.dumps(header).encode()
    for length in (2**64 - 8, 2**63, 2**40, len(text) + 4096, 8, 1, 7, len(text) // 8 * 8 - 1):
        refused(tmp_path, put_together(header, arrays, length))
    for other in ([], [header], None, 1, "format", {}, {"deciban": "1.0.0"}, {"format": 1}):
        refused(tmp_path, put_together(other, arrays))
    deep = [b"[" * 100_000 + b"]" * 100_000, b'{"format":1,"a":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001]
    for garbage in (b"", b"{", b"\xff" * 8, text + b"x", b"\0" * 64, *deep, b"[" * 100_000):
        refused(tmp_path, put_together(garbage, arrays))
    twice = text.replace(b'{"format": 2,', b'{"format": 2, "format": 2,')
    assert twice != text
    refused(tmp_path, put_together(twice, arrays), "twice")
    for number in (b"NaN", b"Infinity", b"-Infinity", b"9" * 10_000, b"1e999", b"-" + b"9" * 4000):
        for name in (b'"alpha"', b'"rows"'):
            before, after = text.split(name, 1)
            old = b"1.0" if name == b'"alpha"' else b"14"
            refused(tmp_path, put_together(before + name + after.replace(old, number, 1), arrays))
    surrogate = text.replace(b'"outlook"', b'"out\\ud800look"')
    refused(tmp_path, put_together(surrogate, arrays))


def test_other_formats_and_versions(tmp_path: Path) -> None:
    header, arrays = taken_apart(content(small()))
    for other in (0, 1, 3):
        text = (
            f"has format {other} of deciban .*reads format 2; install the version that wrote it, or fit the model again"
        )
        refused(tmp_path, put_together({**header, "format": other}, arrays), text)
    refused(tmp_path, put_together({**header, "format": 3, "new": {"is": "Thing"}}, arrays), "format 3")
    for strange in (0, -1, "1", True, 1.0, None, [1], 1.5, 10**50, {"a": "b" * 1000}):
        with pytest.raises(dc.ModelFileError) as caught:
            dc.load(written(tmp_path, put_together({**header, "format": strange}, arrays)))
        assert len(str(caught.value)) < 500
    assert dc.load(written(tmp_path, put_together({**header, "deciban": "99.0"}, arrays))).counts_.rows == 14
    for key in header:
        refused(tmp_path, put_together({k: v for k, v in header.items() if k != key}, arrays))
    refused(tmp_path, put_together({**header, "more": 1}, arrays))


SHAPES: list[Any] = [
    *([2**62, 8], [2**62], [2**63], [2**64, 0], [10**4000], [-1], [-1, -3], [2.0, 3.0], [True, 6], ["2", 3]),
    *([None], [[2, 3]], {}, None, 6, "6", [], [1] * 40, [2], [2, 2], [3, 2], [6], [2, 3, 1], [0, 2**62]),
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: str(shape)[:20])
def test_shapes_that_cannot_be(shape: Any, tmp_path: Path) -> None:
    header, arrays = taken_apart(content(small()))
    for at in nodes(header):
        if at[-1:] == ("array",) and node(header, at)[1] != shape:
            refused(tmp_path, put_together(changed(header, (*at, 1), shape), arrays))
    for kind in ("int64", "float32", "object", "complex128", "|O8", None, 3, []):
        refused(
            tmp_path,
            put_together(changed(header, (*find(header, array=["float64", [2, 3]]), "array", 0), kind), arrays),
        )


def test_array_bytes_that_are_missing_or_left_over(tmp_path: Path) -> None:
    header, arrays = taken_apart(content(small()))
    for some in (b"", arrays[:-8], arrays[:-1], arrays + b"\0", arrays + b"\0" * 8, arrays * 2):
        refused(tmp_path, put_together(header, some))


def test_records_and_fields_that_are_not_known(tmp_path: Path) -> None:
    header, arrays = taken_apart(content(small()))
    records = [at for at in nodes(header) if isinstance(node(header, at), dict) and "is" in node(header, at)]
    assert len(records) > 5
    defaults = set()
    for at in records:
        record = node(header, at)
        for name in ("os.system", "Pickle", "", "__class__", None, 3, [], {}, "Model", "Fitted", "categorical"):
            refused(tmp_path, put_together(changed(header, at, {**record, "is": name}), arrays))
        refused(tmp_path, put_together(changed(header, at, {**record, "__class__": "x"}), arrays))
        refused(tmp_path, put_together(changed(header, at, {**record, "self": 1}), arrays))
        for key in record:
            less = {k: v for k, v in record.items() if k != key}
            try:
                loaded = dc.load(written(tmp_path, put_together(changed(header, at, less), arrays)))
            except dc.ModelFileError:
                continue
            assert_identical(loaded.predict_proba(weather()), small().predict_proba(weather()))
            defaults.add(f"{record['is']}.{key}")
    assert {"Categorical.alpha", "ColumnGroup.auxiliary", "Origin.target"} <= defaults


def test_levels_and_classes_out_of_order(tmp_path: Path) -> None:
    header, arrays = taken_apart(content(small()))
    at = (*find(header, levels="string"), "values")
    levels = node(header, at)
    wrong: list[Any] = [levels[::-1], [levels[0]] * len(levels), levels[:-1], [*levels, "zzz"], [None, *levels[1:]]]
    wrong += [[1, 2, 3], [["a"], ["b"], ["c"]], "abc", None, {}, [1.5, None, "x"]]
    for some in wrong:
        refused(tmp_path, put_together(changed(header, at, some), arrays))
    for kind in (
        "int64",
        "double",
        "bool",
        "null",
        "date32[day]",
        "timestamp[us, tz=no/where]",
        "list<int>",
        None,
        3,
        [],
    ):
        refused(tmp_path, put_together(changed(header, (*at[:-1], "levels"), kind), arrays))
    at = ("counts", "classes")
    assert node(header, at) == {"labels": "object", "values": ["no", "yes"]}
    for values in (["yes", "no"], ["no", "no"], ["no"], [], ["a", "b", "c"], [None, "yes"], ["no", 1], [{}, {}], "ab"):
        refused(tmp_path, put_together(changed(header, (*at, "values"), values), arrays))
    for kind in ("bool", "int64", "float64", "datetime64[D]", "datetime64[xx]", "S8", "O", "", None, [], {}):
        refused(tmp_path, put_together(changed(header, (*at, "labels"), kind), arrays))


def test_levels_in_order_are_checked_for_numbers_and_dates(tmp_path: Path) -> None:
    for column in ([3, 1, 2], [0.5, 1.5, 2.5], np.array([1, 2, 3], "datetime64[D]"), [True, False, True]):
        clf = dc.BayesClassifier({"x": dc.Categorical()}, tune=None).fit(pa.table({"x": pa.array(column)}), [0, 1, 1])
        header, arrays = taken_apart(content(clf))
        at = next(at for at in nodes(header) if at[-1:] == ("values",))
        refused(tmp_path, put_together(changed(header, at, node(header, at)[::-1]), arrays), "sorted")


def test_schemas_that_cannot_be(tmp_path: Path) -> None:
    clf, X = every_family()
    header, arrays = taken_apart(content(clf))
    at = ("counts", "schema")
    for width in (-1, 0, 13, 15, 10**9, 10**18):
        refused(tmp_path, put_together(changed(header, (*at, "width"), width), arrays))
        nameless = changed(changed(header, (*at, "width"), width), (*at, "names"), None)
        became = predicts(put_together(changed(nameless, (*at, "types"), None), arrays), X, tmp_path)
        assert became == ("loaded" if width == 15 else "refused")  # one column more, which no part has
    flags = next(k for k, part in enumerate(node(header, (*at, "groups"))) if part["family"]["is"] == "Bernoulli")
    refused(tmp_path, put_together(changed(header, (*at, "groups", flags, "family", "alpha"), [1.0, 2.0, 3.0]), arrays))
    for columns in ([-1], [14], [0, 0], [], [10**18], [1.0], [0, 1]):
        refused(tmp_path, put_together(changed(header, (*at, "groups", 0, "columns"), columns), arrays))


def test_a_block_that_would_not_fit_in_memory(tmp_path: Path) -> None:
    """A short header cannot make a large array."""
    clf, _ = every_family()
    header, arrays = taken_apart(content(clf))
    many = 200_000
    at = ("counts", "schema")
    header = changed(header, (*at, "names"), None)
    header = changed(header, (*at, "types"), None)
    header = changed(header, (*at, "width"), many)
    place = next(k for k, part in enumerate(node(header, (*at, "groups"))) if part["family"]["is"] == "JointGaussian")
    reason = {"is": "Reason", "source": "inferred", "text": ""}
    only = {
        "is": "ColumnGroup",
        "family": {"is": "JointGaussian"},
        "columns": list(range(many)),
        "reasons": [reason] * many,
    }
    header = changed(header, (*at, "groups"), [{**only, "open": False, "auxiliary": False}])
    header = changed(header, ("counts", "statistics"), [node(header, ("counts", "statistics"))[place]])
    refused(tmp_path, put_together(header, arrays))


def test_levels_that_a_family_does_not_have(tmp_path: Path) -> None:
    spec: Any = {"x": dc.Categorical(levels=(1, 2, 3))}
    clf = dc.BayesClassifier(spec, tune=None).fit({"x": [1, 2, 2, 1]}, [0, 1, 1, 0])
    header, arrays = taken_apart(content(clf))
    at = ("counts", "schema", "groups", 0, "family", "levels")
    assert predicts(put_together(changed(header, at, [1, 2, 3, 4]), arrays), {"x": [1]}, tmp_path) == "loaded"
    for levels in ([1], [0], [], [2, 3], ["a"]):
        refused(tmp_path, put_together(changed(header, at, levels), arrays))
