"""Metadata of a model file: a JSON object after the model, in canonical form, that does not affect its version."""

import json
import os
import platform
import time
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

import numpy as np

from deciban.errors import UsageError
from deciban.model.fitted import About
from deciban.util.version import __version__

# Maximum number of characters of a note.
MAX_NOTE = 4_000

# Maximum number of characters of a time or a version.
MAX_WORD = 64

# Format of times.
TIME_FORMAT = "%Y-%m-%dT%H:%M:%SZ"


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
        check_about(about)
    except ValueError as problem:
        raise UsageError(str(problem), remedy="shorten or correct the note") from None
    return about


def check_about(about: About) -> None:
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


def pack_about(about: About) -> bytes:
    """Return metadata as JSON; empty if nothing is known."""
    known = about.to_dict()
    return json.dumps(known, ensure_ascii=False, separators=(",", ":")).encode() if known else b""


def unpack_about(data: bytes) -> About:
    """Return the metadata in a file; raise a ValueError if they are invalid."""
    if not data:
        return About()
    stored: Any = json.loads(data.decode())
    if not isinstance(stored, dict) or not stored.keys() <= {field.name for field in fields(About)}:
        raise ValueError("the metadata have unknown names")
    about = About(**stored)
    check_about(about)
    if pack_about(about) != data:
        raise ValueError("the metadata are not in canonical form")
    return about
