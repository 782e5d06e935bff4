"""Saving and loading classifiers."""

import os
from dataclasses import fields
from io import BytesIO
from reprlib import repr as shortened
from typing import Any, NamedTuple, get_type_hints

import pyarrow as pa

from deciban.errors import DecibanError, ModelFileError, UsageError
from deciban.model.counts import Counts
from deciban.model.fitted import Fitted, Origin, Settings
from deciban.model.priors import prior_of
from deciban.model.tuning import Tuning
from deciban.sources.write import replacing
from deciban.store import layout
from deciban.store.checks import check
from deciban.store.identity import identity
from deciban.store.reasons import with_tuned_reasons
from deciban.store.values import conforms, pack, unpack
from deciban.util.version import __version__

FORMAT = 2

# Raised for a well-formed header with impossible content. Anything else, such as a TypeError, is an internal error.
INVALID_CONTENT = (ValueError, OverflowError, RecursionError, MemoryError, pa.ArrowException, DecibanError)

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
    parameters = {name: getattr(fitted.settings, name) for name in sorted(field.name for field in fields(Settings))}
    parts = {**parameters, "threads": None}, fitted.counts, fitted.tuning, origin  # the next machine has other cores
    for key, value in zip(KEYS[2:], parts, strict=True):
        header[key] = pack(value, arrays)
    return layout.packed(header, arrays)


class Loaded(NamedTuple):
    """A model file: what the classifier knows, the SHA-256 of the file, and its size in bytes."""

    fitted: Fitted
    sha256: str
    size: int


def load(path: str | os.PathLike[str]) -> Fitted:
    """What a classifier knows; a ModelFileError where the file is no model or is damaged."""
    return read(path).fitted


def read(path: str | os.PathLike[str], name: Any = None) -> Loaded:
    """The same with the hash and the size of the file; `name` is what messages call it, its path unless given."""
    content = layout.read(path, name)
    return Loaded(_unpacked(path if name is None else name, content), content.sha256, content.size)


def from_content(data: bytes, name: str) -> Fitted:
    """What a classifier knows, from the bytes of a model file; `name` is what messages call them."""
    return _unpacked(name, layout.read_from(BytesIO(data), len(data), name))


def _unpacked(path: Any, content: layout.Content) -> Fitted:
    header = content.header
    try:
        if not isinstance(header, dict) or tuple(header)[:1] != KEYS[:1]:
            raise ValueError("it has no format")
        if type(header["format"]) is not int or header["format"] != FORMAT:
            version = header.get("deciban", "another version")
            older = type(header["format"]) is int and header["format"] < FORMAT
            remedy = "fit the model again" if older else "install a newer version"
            raise ModelFileError(
                f"{path}: the file has format {shortened(header['format'])} of deciban {shortened(version)}, "
                f"this deciban reads format {FORMAT}; {remedy}"
            )
        if tuple(header) != KEYS:
            raise ValueError(f"it has {shortened(list(header))} where {', '.join(KEYS)} were expected")
        arrays = layout.ArrayReader(content)
        parameters, counts, tuning, origin = (unpack(header[key], arrays) for key in KEYS[2:])
        arrays.finish()
        if not isinstance(counts, Counts):
            raise ValueError("it has no counts")
        if not isinstance(tuning, Tuning | None) or not isinstance(origin, Origin):
            raise ValueError("it has another record as its tuning or its origin")
        settings = _settings(parameters)
        fitted = Fitted(counts, prior_of(settings.class_prior, counts), tuning, origin, settings)
        check(fitted)
    except ModelFileError:
        raise
    except INVALID_CONTENT as problem:
        reason = str(problem) or type(problem).__name__
        raise ModelFileError(
            f"{path}: the file cannot be a model of deciban: {reason}; restore it from a copy"
        ) from problem
    return with_tuned_reasons(fitted)


def _settings(parameters: Any) -> Settings:
    known = get_type_hints(Settings)
    if not isinstance(parameters, dict) or not parameters.keys() <= known.keys():
        raise ValueError("it has other parameters than a model")
    for name, value in parameters.items():
        if not conforms(value, known[name]):
            raise ValueError(f"it has {str(value)[:40]!r} as {name!r}")
    settings = Settings(**parameters)
    settings.check()
    return settings


def shards_of(fitted: Fitted) -> tuple[str, ...]:
    """The names of the sets of rows that were added up; none where no row has a weight."""
    return fitted.origin.shards or ((identity(fitted.counts),) if fitted.counts.class_weight.any() else ())
