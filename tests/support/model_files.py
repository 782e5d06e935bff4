"""Model files taken apart, put together again, and compared."""

import copy
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from deciban import BayesClassifier
from deciban.store import layout, model_file


def content(clf: BayesClassifier) -> bytes:
    """What `save` writes."""
    return model_file.content(clf.fitted_)


def taken_apart(data: bytes) -> tuple[Any, bytes]:
    """The header and the bytes of the arrays."""
    length = int.from_bytes(data[8:16], "little")
    return json.loads(data[16 : 16 + length]), data[16 + length : -32]


def put_together(header: Any, arrays: bytes = b"", length: int | None = None) -> bytes:
    """A file with a right checksum; a header that is bytes is taken as it is."""
    text = header if isinstance(header, bytes) else json.dumps(header, ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    body = layout.MAGIC + (len(text) if length is None else length).to_bytes(8, "little") + text + arrays
    return body + hashlib.sha256(body).digest()


def written(folder: Path, data: bytes, name: str = "crafted.dcb") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def nodes(header: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths to everything in a header, from the top."""
    inner = header.items() if isinstance(header, dict) else enumerate(header) if isinstance(header, list) else ()
    return [at, *(path for key, value in inner for path in nodes(value, (*at, key)))]


def node(header: Any, at: tuple[Any, ...]) -> Any:
    for key in at:
        header = header[key]
    return header


def changed(header: Any, at: tuple[Any, ...], value: Any) -> Any:
    """The header with another value in one place."""
    if not at:
        return value
    header = copy.deepcopy(header)
    node(header, at[:-1])[at[-1]] = value
    return header


def find(header: Any, **fields: Any) -> tuple[Any, ...]:
    """The path to the first record with these fields; `is_` is its type."""
    wanted = {("is" if key == "is_" else key): value for key, value in fields.items()}
    for at in nodes(header):
        here = node(header, at)
        if isinstance(here, dict) and wanted.items() <= {k: v for k, v in here.items() if k in wanted}.items():
            return at
    raise AssertionError(f"no {fields} in the header")


def as_lists(value: Any) -> Any:
    """Parameters in one form: what a file gives back as tuples, and what comes in arrays and sets, as lists."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, set | frozenset):
        return sorted(value)
    if hasattr(value, "to_dict"):
        value = value.to_dict()
    if isinstance(value, dict):
        return {key: as_lists(item) for key, item in value.items()}
    return [as_lists(item) for item in value] if isinstance(value, list | tuple) else value


def assert_identical(a: Any, b: Any) -> None:
    """Two values made of records, arrays and plain data are the same to the bit, types included."""
    assert type(a) is type(b), (type(a), type(b))
    if isinstance(a, np.ndarray):
        assert (a.dtype.kind, a.shape) == (b.dtype.kind, b.shape)
        assert a.tolist() == b.tolist() if a.dtype.kind == "O" else a.tobytes() == b.astype(a.dtype).tobytes()
    elif isinstance(a, pa.Array):
        assert a.type == b.type
        assert a.equals(b)
    elif isinstance(a, tuple):
        assert len(a) == len(b)
        for one, other in zip(a, b, strict=True):
            assert_identical(one, other)
    elif hasattr(a, "__dataclass_fields__"):
        for name in a.__dataclass_fields__:
            assert_identical(getattr(a, name), getattr(b, name))
    else:
        assert a == b or (a != a and b != b)


def assert_same_classifier(a: BayesClassifier, b: BayesClassifier, X: Any) -> None:
    """Two classifiers know the same and say the same, to the bit."""
    assert_identical(a.counts_, b.counts_)
    assert_identical(a.tuning_, b.tuning_)
    assert_identical(a.fitted_.log_prior, b.fitted_.log_prior)
    assert a.shards_ == b.shards_
    assert a.target_ == b.target_
    assert str(a.schema_) == str(b.schema_)
    assert str(a.tuning_) == str(b.tuning_)
    assert a.classes_.dtype == b.classes_.dtype
    np.testing.assert_array_equal(a.predict_proba(X), b.predict_proba(X))
    np.testing.assert_array_equal(a.predict(X), b.predict(X))
    assert content(a) == content(b)
