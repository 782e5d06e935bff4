"""Whatever happens to a model file, it is the old one, the new one or an error, never something between."""

import gzip
import json
import os
import pickle
import random
import resource
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from deciban import (
    BayesClassifier,
    Bernoulli,
    Binned,
    Categorical,
    DecibanError,
    Gamma,
    Gaussian,
    JointGaussian,
    JointTable,
    LogNormal,
    ModelFileError,
    Multinomial,
    Poisson,
    load,
)
from deciban.datasets import weather
from tests.store.files import assert_identical, changed, content, find, node, nodes, put_together, taken_apart, written

# Numbers that may be and make no sense overflow with a warning, as they do in a model that is given them by its user.
ignoring_overflow = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def small() -> BayesClassifier:
    return BayesClassifier(tune=None).fit(weather().select(["outlook", "wind", "play"]), "play")


def every_family(tune: Any = None, n: int = 40) -> tuple[BayesClassifier, pa.Table]:
    """A model with every kind of statistic, and its rows."""
    rng = np.random.default_rng(0)
    kind = np.arange(n) % 2
    spec = {
        "gauss": Gaussian(),
        "gamma": Gamma(),
        "log": LogNormal(),
        "bins": Binned(),
        "count": Poisson(1.0),
        "flag": Bernoulli(),
        "text": Categorical(),
        "day": Categorical(),
        ("u", "v"): JointGaussian(),
        ("p", "q"): JointTable(cuts=(None, (0.0, 1.0))),
        ("m", "n"): Multinomial(),
    }
    rows = {
        "p": np.array(["s", "t"])[rng.integers(0, 2, n)],
        **{name: rng.normal(kind, 1.0) for name in ("gauss", "bins", "u", "v", "q")},
        **{name: rng.gamma(2.0, 1.0 + kind) for name in ("gamma", "log")},
        **{name: rng.poisson(2.0 + kind) for name in ("count", "m", "n")},
        "flag": rng.random(n) < 0.3 + 0.4 * kind,
        "text": np.array(["x", "y", "z"])[rng.integers(0, 3, n)],
        "day": np.array(["2024-01-01", "2024-01-02"], dtype="datetime64[D]")[rng.integers(0, 2, n)],
    }
    X = pa.table(rows)
    return BayesClassifier(spec, tune=tune, prior={"no": 0.5, "yes": 0.5}).fit(X, np.array(["no", "yes"])[kind]), X


# whole or not at all


def in_child(work: Callable[[], None]) -> int:
    """The id of a process that does this and ends."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    return child


def exit_code(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_process_that_is_killed_leaves_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "model.dcb"
    models = [BayesClassifier(tune=None).fit(np.eye(4) + k, [0, 1, 0, k]) for k in (1, 2)]
    whole = [content(model) for model in models]
    assert whole[0] != whole[1]
    models[0].save(path)
    chance, found = random.Random(1), set()

    def save_for_ever() -> None:
        while True:
            for model in reversed(models):
                model.save(path)

    for _ in range(100):
        child = in_child(save_for_ever)
        time.sleep(chance.uniform(0.002, 0.02))
        os.kill(child, signal.SIGKILL)
        assert exit_code(child) == -signal.SIGKILL
        data = path.read_bytes()
        assert data in whole
        found.add(whole.index(data))
        assert content(load(path)) == data
    assert found == {0, 1}
    others = [left.name for left in tmp_path.iterdir() if left != path]
    assert all(name.startswith(".") and name.endswith(".part") for name in others)


def test_threads_that_save_to_one_file_do_not_meet(tmp_path: Path) -> None:
    path = tmp_path / "model.dcb"
    models = [BayesClassifier(tune=None).fit(np.eye(4) + k, [0, 1, 0, k]) for k in (1, 2)]
    whole = [content(model) for model in models]
    problems: list[BaseException] = []

    def save(model: BayesClassifier) -> None:
        try:
            for _ in range(60):
                model.save(path)
                assert path.read_bytes() in whole
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=save, args=(model,)) for model in models * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems, problems[0]
    assert [left.name for left in tmp_path.iterdir()] == ["model.dcb"]


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "model.dcb"
    small().save(path)
    before = path.read_bytes()
    larger = every_family()[0]

    def save() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before), len(before)))
        try:
            larger.save(path)
        except OSError:
            os._exit(7)
        os._exit(8)

    assert exit_code(in_child(save)) == 7
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(OSError, match="No space left"):
        larger.save("/dev/full")


def test_where_a_file_cannot_be_written(tmp_path: Path) -> None:
    clf = small()
    with pytest.raises(FileNotFoundError):
        clf.save(tmp_path / "nowhere" / "model.dcb")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        clf.save(tmp_path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none.dcb")
    with pytest.raises(IsADirectoryError):
        load(tmp_path)
    clf.save("/dev/null")


def test_names_as_long_as_a_folder_takes_them(tmp_path: Path) -> None:
    path = tmp_path / ("ä" * 125 + ".dcb")
    small().save(path)
    assert content(load(path)) == path.read_bytes()


def test_links_and_permissions_stay(tmp_path: Path) -> None:
    clf = small()
    path, link = tmp_path / "model.dcb", tmp_path / "link.dcb"
    link.symlink_to("model.dcb")
    clf.save(link)  # to a file that is not there yet
    assert link.is_symlink()
    for mode in (0o600, 0o444, 0o640):
        path.chmod(mode)
        clf.save(link)
        assert link.is_symlink()
        assert stat.S_IMODE(path.stat().st_mode) == mode
        assert path.read_bytes() == content(clf)
    before = os.umask(0o027)
    try:
        clf.save(tmp_path / "new.dcb")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new.dcb").stat().st_mode) == 0o640
    assert sorted(left.name for left in tmp_path.iterdir()) == ["link.dcb", "model.dcb", "new.dcb"]


def test_what_cannot_be_saved_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "model.dcb"
    clf = small()
    clf.save(path)
    before = path.read_bytes()
    clf.prior = object()
    with pytest.raises(DecibanError, match="cannot hold"):
        clf.save(path)
    assert path.read_bytes() == before


# damaged files


def test_every_truncation_is_an_error(tmp_path: Path) -> None:
    data = content(small())
    assert len(data) < 3000
    path = tmp_path / "model.dcb"
    for length in range(len(data)):
        path.write_bytes(data[:length])
        with pytest.raises(ModelFileError):
            load(path)
    path.write_bytes(data + b"\0")
    with pytest.raises(ModelFileError):
        load(path)


def test_every_flipped_bit_is_an_error(tmp_path: Path) -> None:
    data = bytearray(content(small()))
    path = tmp_path / "model.dcb"
    with open(path, "wb", buffering=0) as file:
        file.write(data)
        for place in range(len(data)):
            for bit in range(8):
                os.pwrite(file.fileno(), bytes([data[place] ^ 1 << bit]), place)
                with pytest.raises(ModelFileError):
                    load(path)
            os.pwrite(file.fileno(), bytes([data[place]]), place)
    assert content(load(path)) == bytes(data)


def test_what_is_no_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    """A pipe that nobody writes to would never answer."""
    os.mkfifo(tmp_path / "pipe.dcb")
    for path in (tmp_path / "pipe.dcb", "/dev/zero"):
        with pytest.raises(ModelFileError, match="pipe or a device"):
            load(path)


def test_no_more_is_read_than_a_model_of_this_header_has(tmp_path: Path) -> None:
    """Files of many gigabytes that hold nothing are refused before they are read or kept in memory."""
    data, path = content(small()), tmp_path / "model.dcb"
    header, arrays = taken_apart(data)
    longer = put_together(header, arrays, 1 << 29)
    claimed = changed(header, (*find(header, array=["float64", [2, 3]]), "array", 1), [1 << 40, 3])
    for crafted in (data, longer, put_together(claimed, arrays)):
        path.write_bytes(crafted)
        os.truncate(path, 1 << 33)
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with pytest.raises(ModelFileError, match="damaged"):
            load(path)
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - used < 100 << 10  # kilobytes


# crafted files, with a right checksum


def refused(folder: Path, data: bytes, match: str | None = None) -> None:
    with pytest.raises(ModelFileError, match=match):
        load(written(folder, data))


def test_files_that_are_no_models(tmp_path: Path) -> None:
    data = content(small())
    for other in (
        b"",
        b"deciban",
        b"\0" * 100,
        pickle.dumps({"a": 1}),
        gzip.compress(data),
        data[1:],
        b"PK\3\4" + data,
    ):
        refused(tmp_path, other, "not a model file")


def test_headers_that_are_no_headers(tmp_path: Path) -> None:
    header, arrays = taken_apart(content(small()))
    text = json.dumps(header).encode()
    for length in (2**64 - 8, 2**63, 2**40, len(text) + 4096, 8, 1, 7, len(text) // 8 * 8 - 1):
        refused(tmp_path, put_together(header, arrays, length))
    for other in ([], [header], None, 1, "format", {}, {"deciban": "0.1.0"}, {"format": 1}):
        refused(tmp_path, put_together(other, arrays))
    deep = [b"[" * 100_000 + b"]" * 100_000, b'{"format":1,"a":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001]
    for garbage in (b"", b"{", b"\xff" * 8, text + b"x", b"\0" * 64, *deep, b"[" * 100_000):
        refused(tmp_path, put_together(garbage, arrays))
    twice = text.replace(b'{"format": 1,', b'{"format": 1, "format": 1,')
    assert twice != text
    refused(tmp_path, put_together(twice, arrays), "twice")
    for number in (b"NaN", b"Infinity", b"-Infinity", b"9" * 10_000, b"1e999", b"-" + b"9" * 4000):
        for name in (b'"alpha"', b'"rows"'):
            before, after = text.split(name, 1)
            value = after.index(b"1.0" if name == b'"alpha"' else b"14")
            refused(tmp_path, put_together(before + name + after[:value] + number + after[value + 2 :], arrays))
    surrogate = text.replace(b'"outlook"', b'"out\\ud800look"')
    refused(tmp_path, put_together(surrogate, arrays))


def test_other_formats_and_versions(tmp_path: Path) -> None:
    header, arrays = taken_apart(content(small()))
    refused(tmp_path, put_together({**header, "format": 2}, arrays), "format 2 .*install a newer version")
    refused(tmp_path, put_together({**header, "format": 2, "new": {"is": "Thing"}}, arrays), "format 2")
    for strange in (0, -1, "1", True, 1.0, None, [1], 1.5, 10**50, {"a": "b" * 1000}):
        with pytest.raises(ModelFileError) as caught:
            load(written(tmp_path, put_together({**header, "format": strange}, arrays)))
        assert len(str(caught.value)) < 500
    assert load(written(tmp_path, put_together({**header, "deciban": "99.0"}, arrays))).counts_.rows == 14
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
    for at in records:
        record = node(header, at)
        for name in ("os.system", "Pickle", "", "__class__", None, 3, [], {}, "Model", "Fitted", "categorical"):
            refused(tmp_path, put_together(changed(header, at, {**record, "is": name}), arrays))
        refused(tmp_path, put_together(changed(header, at, {**record, "__class__": "x"}), arrays))
        refused(tmp_path, put_together(changed(header, at, {**record, "self": 1}), arrays))
        for key in record:
            less = {k: v for k, v in record.items() if k != key}
            try:
                loaded = load(written(tmp_path, put_together(changed(header, at, less), arrays)))
            except ModelFileError:
                continue
            assert_identical(loaded.predict_proba(weather()), small().predict_proba(weather()))  # a default


def predicts(data: bytes, X: Any, folder: Path) -> str:
    """What becomes of a crafted file: "refused", or "loaded" if a model that works came out, or "nan" if it babbles."""
    try:
        loaded = load(written(folder, data))
    except ModelFileError:
        return "refused"
    try:
        found = loaded.predict_proba(X)
        str(loaded.schema_), str(loaded.tuning_), loaded.shards_
        content(loaded)
    except DecibanError:
        return "loaded"
    return "loaded" if np.isfinite(found).all() and abs(found.sum(axis=1) - 1.0).max() < 1e-9 else "nan"


MUTANTS: list[Any] = [None, -1, 3, 2.5, 10**30, 10**400, 1e308, "x", "", True, [], [1], {}, {"a": 1}, {"number": "nan"}]


@ignoring_overflow
@pytest.mark.parametrize("tune", ["auto", None])
def test_any_node_of_the_header_may_be_anything(tune: Any, tmp_path: Path) -> None:
    """Each node is replaced by values of every type; what loads still works."""
    clf, X = every_family(tune)
    header, arrays = taken_apart(content(clf))
    chance = random.Random(5)
    found: dict[str, int] = {}
    places = nodes(header)
    for at in chance.sample(places, 250):
        for value in chance.sample(MUTANTS, 2):
            try:
                became = predicts(put_together(changed(header, at, value), arrays), X.slice(0, 6), tmp_path)
            except Exception as problem:
                raise AssertionError(f"{'.'.join(map(str, at))} = {str(value)[:20]}: {problem!r}") from problem
            found[became] = found.get(became, 0) + 1
    assert found["refused"] > 300


@ignoring_overflow
def test_nodes_that_are_swapped_or_left_out(tmp_path: Path) -> None:
    """Statistics at the place of others, families at the place of others, items of lists left out."""
    clf, X = every_family()
    header, arrays = taken_apart(content(clf))
    statistics = node(header, ("counts", "statistics"))
    parts = node(header, ("counts", "schema", "parts"))
    for at, items in ((("counts", "statistics"), statistics), (("counts", "schema", "parts"), parts)):
        for k in range(len(items)):
            predicts(put_together(changed(header, at, items[:k] + items[k + 1 :]), arrays), X, tmp_path)
            for j in range(k):
                swapped = list(items)
                swapped[j], swapped[k] = swapped[k], swapped[j]
                predicts(put_together(changed(header, at, swapped), arrays), X, tmp_path)
    for k, j in ((k, j) for k in range(len(parts)) for j in range(len(parts)) if k != j):
        other = changed(header, ("counts", "schema", "parts", k, "family"), parts[j]["family"])
        predicts(put_together(other, arrays), X, tmp_path)


@ignoring_overflow
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -1.0, -1e-300, 1e308, 1e150, 0.0, 1e-320, 0.5])
def test_numbers_that_cannot_be(value: float, tmp_path: Path) -> None:
    """Each number of each array is replaced: no NaN comes out, and what is neither finite nor possible is refused."""
    clf, X = every_family()
    header, arrays = taken_apart(content(clf))
    numbers = np.frombuffer(arrays, np.float64)
    step = 1 if not np.isfinite(value) else 5
    for place in range(0, numbers.size, step):
        other = numbers.copy()
        other[place] = value
        try:
            became = predicts(put_together(header, other.tobytes()), X.slice(0, 6), tmp_path)
        except Exception as problem:
            raise AssertionError(f"number {place} of {numbers.size}, {numbers[place]}: {problem!r}") from problem
        assert np.isfinite(value) or became == "refused"
        assert became != "nan" or abs(value) > 1e100, f"number {place} of {numbers.size}, {numbers[place]}"
    predicts(put_together(header, np.full(numbers.size, value).tobytes()), X.slice(0, 6), tmp_path)


def test_negative_variances_and_counts_are_refused(tmp_path: Path) -> None:
    clf = BayesClassifier({"x": Gaussian(), "c": Categorical()}, tune=None).fit(
        pa.table({"x": [1.0, 2.0, 4.0, 8.0], "c": ["a", "b", "a", "b"]}), [0, 0, 1, 1]
    )
    header, arrays = taken_apart(content(clf))
    numbers = np.frombuffer(arrays, np.float64)
    seen = 0
    for place in np.flatnonzero(numbers > 0.0):
        other = numbers.copy()
        other[place] *= -1.0
        try:
            load(written(tmp_path, put_together(header, other.tobytes())))
        except ModelFileError:
            seen += 1
    assert seen >= 2 + 4 + 4  # weights of classes, weights and scatters, counts


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
        clf = BayesClassifier({"x": Categorical()}, tune=None).fit(pa.table({"x": pa.array(column)}), [0, 1, 1])
        header, arrays = taken_apart(content(clf))
        at = next(at for at in nodes(header) if at[-1:] == ("values",))
        refused(tmp_path, put_together(changed(header, at, node(header, at)[::-1]), arrays), "order")


def test_schemas_that_cannot_be(tmp_path: Path) -> None:
    clf, X = every_family()
    header, arrays = taken_apart(content(clf))
    at = ("counts", "schema")
    for width in (-1, 0, 13, 15, 10**9, 10**18):
        refused(tmp_path, put_together(changed(header, (*at, "width"), width), arrays))
        nameless = changed(changed(header, (*at, "width"), width), (*at, "names"), None)
        predicts(put_together(changed(nameless, (*at, "types"), None), arrays), X, tmp_path)
    flags = next(k for k, part in enumerate(node(header, (*at, "parts"))) if part["family"]["is"] == "Bernoulli")
    refused(tmp_path, put_together(changed(header, (*at, "parts", flags, "family", "alpha"), [1.0, 2.0, 3.0]), arrays))
    for columns in ([-1], [14], [0, 0], [], [10**18], [1.0], [0, 1]):
        refused(tmp_path, put_together(changed(header, (*at, "parts", 0, "columns"), columns), arrays))


def test_a_block_that_would_not_fit_in_memory(tmp_path: Path) -> None:
    """A short header cannot make a large array."""
    clf, _ = every_family()
    header, arrays = taken_apart(content(clf))
    many = 200_000
    at = ("counts", "schema")
    header = changed(header, (*at, "names"), None)
    header = changed(header, (*at, "types"), None)
    header = changed(header, (*at, "width"), many)
    place = next(k for k, part in enumerate(node(header, (*at, "parts"))) if part["family"]["is"] == "JointGaussian")
    only = {"is": "Part", "family": {"is": "JointGaussian"}, "columns": list(range(many)), "why": [""] * many}
    header = changed(header, (*at, "parts"), [{**only, "open": False, "beside": False}])
    header = changed(header, ("counts", "statistics"), [node(header, ("counts", "statistics"))[place]])
    refused(tmp_path, put_together(header, arrays))


LOADER = """
import resource, sys, time
from deciban import ModelFileError, load
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for path in sys.argv[1:]:
    start = time.perf_counter()
    try:
        load(path)
    except ModelFileError as problem:
        print(time.perf_counter() - start, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


def test_two_gigabytes_of_zeros_are_refused_at_once(tmp_path: Path) -> None:
    """Whatever length they say their header has."""
    size = 2 << 30
    paths = []
    for length in (0, size - 48, size - 56, 1 << 20):
        path = tmp_path / f"zeros-{length}.dcb"
        with open(path, "wb") as file:
            file.write(b"deciban\n" + length.to_bytes(8, "little"))
            file.truncate(size)
        paths.append(str(path))
    assert_refused_at_once(paths)


def test_a_header_of_millions_of_lists_is_refused_at_once(tmp_path: Path) -> None:
    """Its checksum is right, so all of it is read, but nothing is made of it."""
    text = b'{"format":1,"deciban":"0.1.0","parameters":[' + b"[]," * 10_000_000 + b"[]]}"
    path = written(tmp_path, put_together(text), "lists.dcb")
    with pytest.raises(ModelFileError, match="more lists"):
        load(path)
    assert_refused_at_once([str(path)])


def assert_refused_at_once(paths: list[str]) -> None:
    """Within a second and 200 MB, in a process of its own."""
    done = subprocess.run([sys.executable, "-c", LOADER, *paths], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert len(lines) == len(paths)
    for line in lines:
        seconds, megabytes = map(float, line.split())
        assert seconds < 1.0
        assert megabytes < 200.0


def test_a_loaded_model_owns_its_numbers(tmp_path: Path) -> None:
    """Nothing in it is a view of the file, and writing over the file changes nothing."""
    path = tmp_path / "model.dcb"
    clf, X = every_family()
    clf.save(path)
    loaded = load(path)
    before = loaded.predict_proba(X)
    path.write_bytes(b"\0" * path.stat().st_size)
    assert_identical(load_free(loaded).predict_proba(X), before)


def load_free(clf: BayesClassifier) -> BayesClassifier:
    """The same without what it has remembered."""
    clf.fitted_ = pickle.loads(pickle.dumps(clf.fitted_))
    return clf


def test_messages_are_one_line_that_names_the_file(tmp_path: Path) -> None:
    data = content(small())
    header, arrays = taken_apart(data)
    bad = [b"", data[:-1], data[:100], put_together([], arrays), put_together({**header, "format": 2}, arrays)]
    bad += [put_together({**header, "counts": "x\n" * 1000}, arrays), put_together({**header, "y" * 10_000: 1}, arrays)]
    bad.append(put_together(changed(header, ("counts", "classes"), {"is": "z\n" * 5000}), arrays))
    for a, b in pairwise(bad):
        for one in (a, b):
            with pytest.raises(ModelFileError) as caught:
                load(written(tmp_path, one))
            text = str(caught.value)
            assert text.startswith(str(tmp_path / "crafted.dcb"))
            assert "\n" not in text
            assert len(text) < 400 + len(str(tmp_path))
