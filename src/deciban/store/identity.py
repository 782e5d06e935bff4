"""Names for sets of rows, by what was counted of them: whether two models have learned the same rows."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from deciban.model.counts import Counts
from deciban.statistics import Statistic, Vocabulary
from deciban.util.sparse import SparseRows

# What is added before a number is rounded down to 24 binary digits. With a half, sums of round numbers could lie just
# between two results, and their last digit, which depends on the batches, would decide.
ROUNDING_OFFSET = (3.0 - 5.0**0.5) / 2.0


def identity(counts: Counts) -> str:
    """A name for the rows that were counted: the same for the same rows, in whatever batches and from whatever file.

    Sums of the same rows in other batches differ in their last digits, so numbers are rounded to seven.
    """
    plain = replace(counts.for_schema(counts.schema.plain), declared=False).without_empty_classes()
    found = []
    for group, statistic in zip(plain.schema.groups, plain.statistics, strict=True):
        names = [plain.schema.column_name(column) for column in group.columns]
        blocks = [(names, statistic)] if group.family.joint else _apart(names, statistic)
        width = len(names) if group.family.joint else 1
        nothing = _digest(group.family.empty(plain.classes.size, width))
        for block, one in blocks:
            digest = _digest(one)
            if digest != nothing:  # a column without cells is none
                found.append((tuple(block), digest))
    return _digest((plain.classes, plain.class_weight, plain.rows, tuple(sorted(found))))


def _apart(names: list[str], statistic: Statistic) -> Iterator[tuple[list[str], Statistic]]:
    """The statistic of each column alone."""
    if len(names) == 1:
        yield names, statistic
        return
    half = len(names) // 2  # halves of halves: taking one column out of many takes as long as there are columns
    for first, size in ((0, half), (half, len(names) - half)) if half else ():
        place = np.arange(len(names)) - first
        some = statistic.place_columns(np.where(place < size, np.maximum(place, -1), -1), size)
        yield from _apart(names[first : first + size], some)


def _digest(value: Any) -> str:
    digest = hashlib.sha256()
    _feed(digest, value)
    return digest.hexdigest()


def _feed(digest: Any, value: Any) -> None:
    """Add to the digest what values that were counted from the same rows have in common."""
    if isinstance(value, tuple):
        digest.update(b"(%d" % len(value))
        for item in value:
            _feed(digest, item)
    elif hasattr(value, "comparable"):
        _feed(digest, value.comparable())
    elif isinstance(value, Vocabulary):
        digest.update(b"%d" % len(value) + value.starts.astype("<i8").tobytes() + value.text.tobytes())
    elif isinstance(value, SparseRows):
        digest.update(value.indptr.astype("<i8").tobytes() + value.indices.astype("<i4").tobytes())
        _feed(digest, value.data)
    elif isinstance(value, np.ndarray) and value.dtype.kind == "f":
        _feed(digest, value.shape)
        mantissa, exponent = np.frexp(value.astype(np.float64))
        digest.update(np.ldexp(np.floor(mantissa * 2.0**24 + ROUNDING_OFFSET), exponent - 24).tobytes())
    elif isinstance(value, np.ndarray):
        _feed(digest, tuple(value.tolist()))
    elif isinstance(value, pa.Array):
        _feed(digest, tuple(value.to_pylist()))
    elif is_dataclass(value):
        for field in fields(value):
            _feed(digest, getattr(value, field.name))
    else:
        digest.update(json.dumps(value, default=str).encode())
