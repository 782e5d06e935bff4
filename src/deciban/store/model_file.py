"""Saving and loading classifiers, and telling whether two of them learned the same rows."""

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from deciban.arrays import Floats, SparseRows
from deciban.counts import Counts
from deciban.decisions.priors import prior_of
from deciban.errors import DecibanError, ModelFileError, UsageError
from deciban.files.write import replacing
from deciban.fitted import Fitted, Settings
from deciban.statistics import Moments, Scatter, Statistic, Vocabulary, Words
from deciban.store import layout
from deciban.store.checks import check
from deciban.store.reasons import with_tuned_reasons
from deciban.store.values import pack, unpack
from deciban.version import __version__

FORMAT = 1

# What reading a header raises that is well-formed and makes no sense.
IMPOSSIBLE = (
    *(ValueError, TypeError, KeyError, AttributeError, IndexError, OverflowError, RecursionError, MemoryError),
    *(pa.ArrowException, DecibanError),
)
# Numbers are rounded up and down where no sum of round numbers lies, whose last digits would then decide.
ODD_HALF = (3.0 - 5.0**0.5) / 2.0

KEYS = ("format", "deciban", "parameters", "counts", "tuning", "origin")


def save(path: str | os.PathLike[str], fitted: Fitted) -> None:
    """Write a classifier to a file; whatever goes wrong, the file that was there before is left whole."""
    try:
        data = content(fitted)
    except UnicodeDecodeError:
        raise UsageError("a model file cannot hold text that is not UTF-8; correct the column and fit anew") from None
    with replacing(path) as file:
        file.write(data)


def content(fitted: Fitted) -> bytes:
    """The bytes of the file: the same for the same classifier."""
    arrays: list[Any] = []
    header: dict[str, Any] = {"format": FORMAT, "deciban": __version__}
    origin = fitted.origin.with_shards(shards_of(fitted))
    parameters = {name: getattr(fitted.settings, name) for name in sorted(vars(fitted.settings))}
    parts = {**parameters, "threads": None}, fitted.counts, fitted.tuning, origin  # the next machine has other cores
    for key, value in zip(KEYS[2:], parts, strict=True):
        header[key] = pack(value, arrays)
    return layout.packed(header, arrays)


def load(path: str | os.PathLike[str]) -> Fitted:
    """What a classifier knows; a ModelFileError where the file is no model or is damaged."""
    header, rest = layout.read(path)
    try:
        if not isinstance(header, dict) or tuple(header)[:1] != KEYS[:1]:
            raise ValueError("it has no format")
        if type(header["format"]) is not int or header["format"] != FORMAT:
            version = header.get("deciban", "another version")
            raise ModelFileError(
                f"{path}: the file has format {header['format']!s:.20} of deciban {version!s:.20}, this deciban reads "
                f"format {FORMAT}; install a newer version"
            )
        if tuple(header) != KEYS:
            raise ValueError(f"it has {', '.join(header)[:80]} where {', '.join(KEYS)} were expected")
        arrays = layout.ArrayReader(rest)
        parameters, counts, tuning, origin = (unpack(header[key], arrays) for key in KEYS[2:])
        arrays.finish()
        if not isinstance(parameters, dict) or not isinstance(counts, Counts):
            raise ValueError("it has no counts")
        settings = Settings(**parameters)
        settings.check()
        fitted = Fitted(counts, prior_of(settings.prior, counts), tuning, origin, settings)
        check(fitted)
    except ModelFileError:
        raise
    except IMPOSSIBLE as problem:
        reason = str(problem) or type(problem).__name__
        raise ModelFileError(
            f"{path}: the file cannot be a model of deciban: {reason}; restore it from a copy"
        ) from problem
    return with_tuned_reasons(fitted)


def shards_of(fitted: Fitted) -> tuple[str, ...]:
    """The names of the sets of rows that were added up; none where no row has a weight."""
    return fitted.origin.shards or ((identity(fitted.counts),) if fitted.counts.class_weight.any() else ())


def identity(counts: Counts) -> str:
    """A name for the rows that were counted: the same for the same rows, however they came.

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
    """The statistic of each column by itself."""
    if len(names) == 1:
        yield names, statistic
        return
    half = len(names) // 2  # halves of halves: to take one column out of many takes as long as there are columns
    for first, size in ((0, half), (half, len(names) - half)) if half else ():
        place = np.arange(len(names)) - first
        some = statistic.place_columns(np.where(place < size, np.maximum(place, -1), -1), size)
        yield from _apart(names[first : first + size], some)


def _digest(value: Any) -> str:
    digest = hashlib.sha256()
    _feed(digest, value)
    return digest.hexdigest()


def _feed(digest: Any, value: Any) -> None:
    """What counts of equal rows have in common."""
    if isinstance(value, tuple):
        digest.update(b"(%d" % len(value))
        for item in value:
            _feed(digest, item)
    elif isinstance(value, Moments):
        _feed_moments(digest, value.weight, value.mean, value.scatter)
    elif isinstance(value, Scatter):
        _feed_moments(digest, value.weight[:, None], value.mean, np.diagonal(value.scatter, axis1=1, axis2=2))
    elif isinstance(value, Words):
        value = value.in_sorted_order
        _feed(digest, (value.vocabularies, value.counts, value.texts, value.most))
    elif isinstance(value, Vocabulary):
        digest.update(b"%d" % len(value) + value.starts.astype("<i8").tobytes() + value.text.tobytes())
    elif isinstance(value, SparseRows):
        digest.update(value.indptr.astype("<i8").tobytes() + value.indices.astype("<i4").tobytes())
        _feed(digest, value.data)
    elif isinstance(value, np.ndarray) and value.dtype.kind == "f":
        _feed(digest, value.shape)
        mantissa, exponent = np.frexp(value.astype(np.float64))
        digest.update(np.ldexp(np.floor(mantissa * 2.0**24 + ODD_HALF), exponent - 24).tobytes())
    elif isinstance(value, np.ndarray):
        _feed(digest, tuple(value.tolist()))
    elif isinstance(value, pa.Array):
        _feed(digest, tuple(value.to_pylist()))
    elif is_dataclass(value):
        for field in fields(value):
            _feed(digest, getattr(value, field.name))
    else:
        digest.update(json.dumps(value, default=str).encode())


def _feed_moments(digest: Any, weight: Floats, mean: Floats, scatter: Floats) -> None:
    """A mean that is nothing beside the spread is nothing but rounding."""
    spread = np.sqrt(np.maximum(scatter, 0.0) / np.maximum(weight, 1e-300))
    _feed(digest, (weight, np.where(np.abs(mean) > 1e-6 * spread, mean, 0.0) + 0.0, scatter + 0.0))
