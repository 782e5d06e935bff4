"""Model files whose content is rewritten at random, with a right checksum: refused, or models that work."""

import random
import resource
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from deciban import BayesClassifier, DecibanError, ModelFileError, load
from tests.support.model_files import changed, node, nodes, put_together, taken_apart, written

NUMBERS: list[Any] = [
    *(0, 1, -1, 2, 7, 63, 2**31, 2**53, 2**62, -(2**62), 10**18, 10**30, 10**400),
    *(0.0, 0.5, -0.5, 1e-300, 5e-324, 1e15, 1e100, 1e290, 1e308, -1e308, True, False),
]
OTHERS: list[Any] = [None, "", "x", "\0", [], [0], {}, {"number": "inf"}, {"number": "-inf"}, {"number": "nan"}]
LONG: list[Any] = [
    [1] * 1000,
    [2**63 - 1] * 8,
    [0] * 9,
    [10**19],
    [0, 2**62],
    [[[[[0]]]]],
    [2**31] * 3,
    [3],
    [1, 2**40],
]
FACTORS = [-1.0, 0.0, 0.5, 0.999, 1.001, 10.0, -10.0, 1e10, 1e100, 1e-100]
DOUBLES = [0.0, -0.0, 1.0, -1.0, 0.5, 1e-300, 5e-324, 1e15, 1e100, 1e200, 1e290, 1e308, np.inf, -np.inf, np.nan]
INTEGERS = [0, 1, -1, 2, 255, 2**31 - 1, 2**31, 2**53, 2**62, -(2**63)]
SIZES = {"float64": 8, "int64": 8, "float32": 4, "int32": 4, "int16": 2, "uint16": 2, "uint8": 1}


class Slow(BaseException):
    """It took too long."""


@contextmanager
def bounded(seconds: float, megabytes: int) -> Iterator[None]:
    """While it lasts, no more CPU time and memory are there."""

    def stop(*_: Any) -> None:
        raise Slow

    before, limits = signal.signal(signal.SIGPROF, stop), resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (megabytes << 20), limits[1]))
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)
        resource.setrlimit(resource.RLIMIT_AS, limits)


def arrays_of(header: Any) -> list[tuple[str, int, int]]:
    """The type in the file, the place and the number of elements of each array behind a header."""
    found, at = [], 0
    for place in nodes(header):
        if place[-1:] == ("array",) and isinstance(node(header, place), list):
            kind, shape, *narrowed = node(header, place)
            kind = narrowed[0] if narrowed else kind
            size = int(np.prod(shape, dtype=np.int64))
            found.append((kind, at, size))
            at += -(-size * SIZES[kind] // 8) * 8
    return found


def mutants(data: bytes, count: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """So many files, each with one or two values that are others, and what was changed.

    A value is a number or anything else in the header, a shape of an array, or an element of an array, which is another
    one or a multiple of what it was. One file in ten has a wrong checksum: bounds come before it.
    """
    header, arrays = taken_apart(data)
    chance, places, held = random.Random(seed), nodes(header), [one for one in arrays_of(header) if one[2]]
    numbers = [at for at in places if type(node(header, at)) in (int, float)]
    shapes = [(*at, 1) for at in places if at[-1:] == ("array",)]
    for _ in range(count):
        new, body, said = header, bytearray(arrays), []
        for _ in range(chance.choice([1, 1, 2])):
            way = chance.random()
            if way < 0.5:
                at = chance.choice(numbers)
                value = chance.choice(NUMBERS)
            elif way < 0.6:
                at, value = chance.choice(places), chance.choice([*NUMBERS, *OTHERS, *LONG])
            elif way < 0.65:
                at, value = chance.choice(shapes), chance.choice(LONG)
            else:
                kind, start, size = chance.choice(held)
                place = chance.randrange(size)
                if kind == "float64" and way > 0.85:
                    factor, here = chance.choice(FACTORS), slice(start + place * 8, start + (place + 1) * 8)
                    body[here] = (np.frombuffer(body[here]) * factor).tobytes()
                    said.append(f"{kind} array at {start}, [{place}] times {factor}")
                    continue
                amount = np.array([chance.choice(DOUBLES if kind == "float64" else INTEGERS)], dtype=object)
                one = amount.astype(float if kind == "float64" else object)
                raw = one.tobytes() if kind == "float64" else (int(one[0]) % 256 ** SIZES[kind]).to_bytes(
                    SIZES[kind], "little"
                )  # fmt: skip
                body[start + place * SIZES[kind] : start + (place + 1) * SIZES[kind]] = raw
                said.append(f"{kind} array at {start}, [{place}] = {amount[0]}")
                continue
            try:
                new = changed(new, at, value)
            except (KeyError, IndexError, TypeError):
                continue  # it is no longer there
            said.append(f"{'.'.join(map(str, at))} = {str(value)[:20]}")
        made = put_together(new, bytes(body))
        yield "; ".join(said), made if chance.random() < 0.9 else made[:-1] + bytes([made[-1] ^ 1])


def became(data: bytes, rows: pa.Table, folder: Path, seconds: float = 5.0, megabytes: int = 600) -> str:
    """What became of a file: "refused", "works" or "complains"; a fault is raised."""
    path = written(folder, data)
    with bounded(seconds, megabytes):
        try:
            clf = load(path)
        except ModelFileError:
            return "refused"
        answers = [_works(clf, rows), _draws(clf), _explains(clf, rows)]
    return "works" if all(answers) else "complains"


def _works(clf: BayesClassifier, rows: pa.Table) -> bool:
    try:
        found = clf.predict_proba(rows)
    except DecibanError:
        return False
    assert found.shape == (rows.num_rows, clf.classes_.size)
    return True


def _draws(clf: BayesClassifier) -> bool:
    try:
        clf.sample(5, random_state=0)
    except DecibanError:
        return False
    return True


def _explains(clf: BayesClassifier, rows: pa.Table) -> bool:
    try:
        str(clf.explain(rows.slice(0, 1)).summary(0))
        str(clf.schema_), str(clf.tuning_)
    except DecibanError:
        return False
    return True


def swept(data: bytes, rows: pa.Table, count: int, seed: int, folder: Path) -> tuple[Counter[str], list[str]]:
    """How many files became what, and the faults."""
    found: Counter[str] = Counter()
    faults = []
    became(data, rows, folder, 300.0)  # compile what is needed
    for said, mutant in mutants(data, count, seed):
        start = time.perf_counter()
        try:
            with np.errstate(all="ignore"):
                found[became(mutant, rows, folder)] += 1
        except (Exception, Slow) as problem:
            faults.append(f"{said}: {problem!r:.150} after {time.perf_counter() - start:.1f} s")
    return found, faults
