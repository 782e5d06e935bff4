"""Saving and loading of classifiers, their metadata, and identifiers of their training rows.

An identifier depends on the counts of the rows, so that models of the same rows can be recognized.
"""

import hashlib
import json
import os
import platform
import time
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime
from io import BytesIO
from reprlib import repr as shortened
from typing import Any, NamedTuple, get_type_hints

import numpy as np
import pyarrow as pa

from deciban.errors import DecibanError, ModelFileError, Place, UsageError
from deciban.model.counts import Counts
from deciban.model.fitted import About, Fitted, Origin, Settings
from deciban.model.priors import prior_of
from deciban.model.tuning import Tuning
from deciban.sources.write import replace_file
from deciban.statistics import Statistic, Vocabulary
from deciban.store import layout
from deciban.store.checks import check
from deciban.store.values import UnknownRecordError, conforms, pack, unpack
from deciban.util.sparse import SparseRows
from deciban.util.version import __version__

FORMAT = 2

# Exceptions raised for a well-formed header with invalid content. Anything else, such as a TypeError, is an internal
# error.
INVALID_CONTENT = (ValueError, OverflowError, RecursionError, MemoryError, pa.ArrowException, DecibanError)

KEYS = ("format", "deciban", "parameters", "counts", "tuning", "origin")

# Maximum number of characters of a note.
MAX_NOTE = 4_000

# Maximum number of characters of a time or a version.
MAX_WORD = 64

# Format of times.
TIME_FORMAT = "%Y-%m-%dT%H:%M:%SZ"


def save(path: str | os.PathLike[str], fitted: Fitted) -> None:
    """Write a classifier to a file; an existing file is left intact if anything fails."""
    try:
        data = content(fitted)
    except UnicodeDecodeError:
        raise UsageError(
            "a model file cannot hold text that is not UTF-8", remedy="correct the column and fit again"
        ) from None
    with replace_file(path) as file:
        file.write(data)


def content(fitted: Fitted) -> bytes:
    """Return the bytes of the file; equal classifiers with equal metadata give equal bytes."""
    arrays: list[Any] = []
    header: dict[str, Any] = {"format": FORMAT, "deciban": __version__}
    origin = fitted.origin.with_shards(shards_of(fitted))
    named = sorted(fields(Settings), key=lambda field: field.name)
    given = {field.name: getattr(fitted.settings, field.name) for field in named}
    parameters = {
        field.name: given[field.name]
        for field in named
        if "optional" not in field.metadata or given[field.name] != field.default
    }
    parts = (
        {**parameters, "threads": None},
        fitted.counts,
        fitted.tuning,
        origin,
    )  # cores differ by machine
    for key, value in zip(KEYS[2:], parts, strict=True):
        header[key] = pack(value, arrays)
    return layout.pack_file(header, arrays, _pack_about(fitted.about))


class Loaded(NamedTuple):
    """A loaded model file: the fitted state, the SHA-256 of the file, its size in bytes, and the version of the model.

    version: SHA-256 of the file without metadata.
    """

    fitted: Fitted
    sha256: str
    size: int
    version: str


def load(path: str | os.PathLike[str]) -> Fitted:
    """Return the fitted state; raise a ModelFileError if the file is damaged or not a model."""
    return read(path).fitted


def read(path: str | os.PathLike[str], name: Any = None) -> Loaded:
    """Return the fitted state with the hash and size of the file; `name` is its name in messages."""
    content = layout.read(path, name)
    fitted = _unpack_content(path if name is None else name, content)
    return Loaded(fitted, content.sha256, content.size, content.version)


def from_content(data: bytes, name: str) -> Fitted:
    """Return the fitted state from the bytes of a model file; `name` is its name in messages."""
    return _unpack_content(name, layout.read_from(BytesIO(data), len(data), name))


def _unpack_content(path: Any, content: layout.Content) -> Fitted:
    header = content.header
    try:
        if not isinstance(header, dict) or tuple(header)[:1] != KEYS[:1]:
            raise ValueError("the format is missing")
        if type(header["format"]) is not int or header["format"] != FORMAT:
            version = header.get("deciban", "another version")
            raise ModelFileError(
                f"the file has format {shortened(header['format'])} of deciban {shortened(version)}, "
                f"but this version of deciban reads format {FORMAT}",
                place=Place(str(path)),
                remedy="install the version that wrote it, or fit the model again",
            )
        if tuple(header) != KEYS:
            raise ValueError(f"it has {shortened(list(header))} where {', '.join(KEYS)} were expected")
        arrays = layout.ArrayReader(content)
        parameters, counts, tuning, origin = (unpack(header[key], arrays) for key in KEYS[2:])
        arrays.finish()
        if not isinstance(counts, Counts):
            raise ValueError("the counts are missing")
        if not isinstance(tuning, Tuning | None) or not isinstance(origin, Origin):
            raise ValueError("the tuning or the origin has the wrong type")
        settings = _settings(parameters)
        fitted = Fitted(
            counts, prior_of(settings.class_prior, counts), tuning, origin, settings, _unpack_about(content.about)
        )
        check(fitted)
    except ModelFileError:
        raise
    except INVALID_CONTENT as problem:
        reason = str(problem) or type(problem).__name__
        raise ModelFileError(
            f"invalid model file: {reason}",
            place=Place(str(path)),
            remedy=problem.remedy if isinstance(problem, UnknownRecordError) else "restore it from a backup",
        ) from problem
    return fitted


def _settings(parameters: Any) -> Settings:
    known = get_type_hints(Settings)
    if not isinstance(parameters, dict) or not parameters.keys() <= known.keys():
        raise ValueError("the parameters are not those of a model")
    for name, value in parameters.items():
        if not conforms(value, known[name]):
            raise ValueError(f"it has {str(value)[:40]!r} as {name!r}")
    settings = Settings(**parameters)
    settings.check()
    return settings


def shards_of(fitted: Fitted) -> tuple[str, ...]:
    """Return the identifiers of the merged sets of rows; empty if no row has a weight."""
    return fitted.origin.shards or ((identity(fitted.counts),) if fitted.counts.class_weight.any() else ())


# Added before a number is rounded down to 24 binary digits. With 0.5, sums of round numbers could lie exactly between
# two results, and their last digit, which depends on the batches, would decide.
ROUNDING_OFFSET = (3.0 - 5.0**0.5) / 2.0


def identity(counts: Counts) -> str:
    """Return an identifier of the counted rows, independent of batches and file formats.

    Sums of the same rows in other batches differ in their last digits, so numbers are rounded to seven.
    """
    plain = replace(counts.select_schema(counts.schema.plain), declared=False).drop_empty_classes()
    found = []
    for group, statistic in zip(plain.schema.groups, plain.statistics, strict=True):
        names = [plain.schema.column_name(column) for column in group.columns]
        blocks = [(names, statistic)] if group.family.joint else _apart(names, statistic)
        width = len(names) if group.family.joint else 1
        nothing = _name_of(group.family.empty(plain.classes.size, width))
        for block, one in blocks:
            digest = _name_of(one)
            if digest != nothing:  # a column without cells is ignored
                found.append((tuple(block), digest))
    return _name_of((plain.classes, plain.class_weight, plain.rows, tuple(sorted(found))))


def _apart(names: list[str], statistic: Statistic) -> Iterator[tuple[list[str], Statistic]]:
    """Return the statistic of each column."""
    if len(names) == 1:
        yield names, statistic
        return
    half = len(names) // 2  # bisect, because selecting one of many columns takes time proportional to their number
    for first, size in ((0, half), (half, len(names) - half)) if half else ():
        place = np.arange(len(names)) - first
        some = statistic.reindex_columns(np.where(place < size, np.maximum(place, -1), -1), size)
        yield from _apart(names[first : first + size], some)


def _name_of(value: Any) -> str:
    digest = hashlib.sha256()
    _feed(digest, value)
    return digest.hexdigest()


def _feed(digest: Any, value: Any) -> None:
    """Add to the digest the parts of a value that are the same for equal rows."""
    if isinstance(value, tuple):
        digest.update(b"(%d" % len(value))
        for item in value:
            _feed(digest, item)
    elif hasattr(value, "comparison_key"):
        _feed(digest, value.comparison_key())
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


# Metadata: a JSON object in canonical form, which does not affect the version of the model


def describe_fit(rows: int, note: str = "") -> About:
    """Return the metadata of a model that was fitted now; raise a UsageError for an invalid note.

    SOURCE_DATE_EPOCH (seconds since 1970) replaces the current time, so that builds are reproducible.
    """
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    try:
        fitted = datetime.fromtimestamp(int(epoch) if epoch else time.time(), UTC).strftime(TIME_FORMAT)
    except (ValueError, OverflowError, OSError):
        raise UsageError(f"SOURCE_DATE_EPOCH is {epoch[:40]!r}, not a time in seconds since 1970") from None
    about = About(note, fitted, rows, __version__, np.__version__, platform.python_version())
    try:
        _check_about(about)
    except ValueError as problem:
        raise UsageError(str(problem), remedy="shorten or correct the note") from None
    return about


def _check_about(about: About) -> None:
    """Raise a ValueError for metadata that no fit gives."""
    for field in fields(About):
        value = getattr(about, field.name)
        if field.name == "rows":
            if type(value) is not int or not 0 <= value < 1 << 63:
                raise ValueError("the number of rows is invalid")
            continue
        max_size = MAX_NOTE if field.name == "note" else MAX_WORD
        if not isinstance(value, str) or len(value) > max_size:
            raise ValueError(f"the {field.name} is not text of at most {max_size:,} characters")
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError(f"the {field.name} is not valid Unicode") from None
    if about.fitted and datetime.strptime(about.fitted, TIME_FORMAT).strftime(TIME_FORMAT) != about.fitted:
        raise ValueError("the time is invalid")


def _pack_about(about: About) -> bytes:
    """Return metadata as JSON; empty if nothing is known."""
    known = about.to_dict()
    return json.dumps(known, ensure_ascii=False, separators=(",", ":")).encode() if known else b""


def _unpack_about(data: bytes) -> About:
    """Return the metadata in a file; raise a ValueError if they are invalid."""
    if not data:
        return About()
    stored: Any = json.loads(data.decode())
    if not isinstance(stored, dict) or not stored.keys() <= {field.name for field in fields(About)}:
        raise ValueError("the metadata have unknown names")
    about = About(**stored)
    _check_about(about)
    if _pack_about(about) != data:
        raise ValueError("the metadata are not in canonical form")
    return about
