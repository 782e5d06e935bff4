"""Conversion of a classifier to JSON and arrays: only the types listed here, never code.

A record is {"is": its type, and its fields by name}. Other values are {"map": [[key, value], ...]}; {"array": [type,
shape]} or {"array": [type, shape, smaller type in the file]} for the next array after the header; {"levels": type,
"values": [...]} for the values of a column; {"labels": type, "values": [...]} for labels of a type that arrays do not
have. Lists are tuples. All else is plain JSON.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from datetime import date, datetime, time
from enum import Enum
from functools import cache, lru_cache
from reprlib import repr as shortened
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from deciban.errors import UsageError
from deciban.families import FAMILIES, SPREADS, Family, list_families
from deciban.model.conformity import Conformity
from deciban.model.corrections import CorrectedColumn, Corrections
from deciban.model.counts import Counts
from deciban.model.fitted import Origin
from deciban.model.partial_rows import PartialRows
from deciban.model.priors import Empirical, Uniform
from deciban.model.tuning import Choice, Tuning, Unlabeled
from deciban.schema.schema import ColumnGroup, LooksLike, Reason, Schema
from deciban.statistics import STATISTICS, Statistic, Vocabulary
from deciban.statistics.bins import ColumnBins
from deciban.statistics.exact import ExactSums
from deciban.store.layout import ARRAY_TYPES, ArrayReader, Content, narrow
from deciban.tables.cells import CellHabits
from deciban.util.arrays import Floats, Integers
from deciban.util.sparse import SparseRows

# Maximum number of values of all correction tables, with unused cells; models have at most 4,000 tables of 64 cells.
MAX_CORRECTION_VALUES = 1 << 26

# Maximum number of questions per correction table; models have six.
MAX_QUESTIONS = 8


@dataclass(frozen=True)
class CompactCorrections:
    """Corrections as a model file holds them: only used cells, with values in units.

    tests: (column, last bin below the cut) of all questions, table after table. questions: their number per table.
    units: the values divided by `unit`, cell by class; of two classes only the second if the first is its negative.
    rows: by cell. The other fields are those of `Corrections`.
    """

    columns: tuple[CorrectedColumn, ...]
    tests: Integers
    questions: Integers
    unit: float
    units: Floats
    rows: Floats
    classes: int
    fold: Integers
    folds: int
    hashed: int

    @classmethod
    def of(cls, full: Corrections) -> "CompactCorrections":
        used, asked = full.used_cells, full.tests[:, :, 0] >= 0
        units, classes = full.values[used] / full.unit, full.values.shape[2]
        if classes == 2 and np.array_equal(units[:, 0], -units[:, 1]):
            units = units[:, 1:]
        return cls(
            *(full.columns, full.tests[asked], full.questions, full.unit, units, full.rows[used], classes),
            *(full.fold, full.folds, full.hashed),
        )

    def expand(self) -> Corrections:
        """Return the corrections; raise a ValueError if the shapes of the arrays do not agree."""
        questions, size = self.questions, self.questions.size
        if questions.ndim != 1 or not size or questions.min() < 0 or not 1 <= questions.max() <= MAX_QUESTIONS:
            raise ValueError("the numbers of questions of the correction tables are wrong")
        depth, stored = int(questions.max()), 1 if self.classes == 2 and self.units.shape[1:] == (1,) else self.classes
        cells = int((1 << questions).sum())
        if not 0 < self.classes <= MAX_CORRECTION_VALUES // (size << depth):
            raise ValueError("the correction tables are too large")
        if self.tests.shape != (questions.sum(), 2) or self.rows.shape != (cells,):
            raise ValueError("the correction tables have the wrong shape")
        if self.units.shape != (cells, stored):
            raise ValueError("the corrections have the wrong shape")
        tests = np.full((size, depth, 2), -1, dtype=np.int64)
        tests[np.arange(depth) < questions[:, None]] = self.tests
        values, rows = np.zeros((size, 1 << depth, self.classes)), np.zeros((size, 1 << depth))
        used = np.arange(1 << depth) < (1 << questions)[:, None]
        held = self.unit * self.units
        values[used] = np.concatenate([0.0 - held, held], axis=1) if stored < self.classes else held
        rows[used] = self.rows
        return Corrections(self.columns, tests, values, rows, self.fold, self.folds, self.hashed)


# All types that a model file may contain besides numbers, text, lists and arrays.
RECORDS: dict[str, type[Any]] = {
    record.__name__: record
    for record in (
        *FAMILIES,
        *SPREADS,
        *(ColumnBins, ExactSums, SparseRows, Vocabulary, *STATISTICS),
        *(ColumnGroup, LooksLike, Reason, Schema, Counts, Choice, Tuning, Origin, CellHabits, Empirical, Uniform),
        *(CorrectedColumn, CompactCorrections, PartialRows, Conformity, Unlabeled),
    )
}

# Keys of single dates and times.
MOMENTS: dict[str, Any] = {"datetime": datetime, "date": date, "time": time}

# Arrow types of levels that are written unchanged; dates and times are written as integers.
PLAIN_LEVELS = {
    "string": pa.string(),
    "int64": pa.int64(),
    "double": pa.float64(),
    "bool": pa.bool_(),
    "null": pa.null(),
}
INTEGER_LEVELS = {
    "date32[day]": pa.date32(),
    "date64[ms]": pa.date64(),
    "time32[s]": pa.time32("s"),
    "time32[ms]": pa.time32("ms"),
    **{f"time64[{unit}]": pa.time64(unit) for unit in ("us", "ns")},
    **{f"duration[{unit}]": pa.duration(unit) for unit in ("s", "ms", "us", "ns")},
}
TIMESTAMP = re.compile(r"timestamp\[(s|ms|us|ns)(?:, tz=([\w/+:-]{1,64}))?\]")

# Types of labels, by how they are written.
LABEL_OBJECTS = (str, bool, int, float, *MOMENTS.values())
LABEL_TYPES = re.compile(
    r"bool|u?int(8|16|32|64)|float(16|32)|text|object|(datetime64|timedelta64)\[([YMWDhms]|[munpfa]s)\]"
)


def _record_type(name: Any) -> type[Any] | None:
    """Return the type of a record by its name; None if a model file must not hold it."""
    if not isinstance(name, str):
        return None
    if name in RECORDS:
        return RECORDS[name]
    return next((family for family in list_families() if family.__name__ == name), None)


def pack(value: Any, arrays: list[npt.NDArray[Any]]) -> Any:
    """Return `value` as JSON; append its arrays to `arrays`."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else {"number": repr(float(value))}
    if isinstance(value, np.generic):
        return pack(value.item(), arrays)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, list | tuple):
        return [pack(item, arrays) for item in value]
    if isinstance(value, np.ndarray):
        return _pack_array(value, arrays)
    if isinstance(value, pa.Array):
        return _pack_levels(value)
    if isinstance(value, Corrections):
        value = CompactCorrections.of(value)
    if _record_type(type(value).__name__) is type(value):
        return _pack_record(value, arrays)
    if hasattr(value, "to_dict"):  # the index of a pandas Series holds the keys
        value = value.to_dict()
    if isinstance(value, Mapping):
        return {"map": [[pack(key, arrays), pack(item, arrays)] for key, item in value.items()]}
    for name, kind in MOMENTS.items():
        if isinstance(value, kind):
            return {name: value.isoformat()}
    if isinstance(value, set | frozenset):
        return pack(sorted(value), arrays)
    if callable(value):
        raise UsageError(
            f"a model file cannot hold {value!r}, because it is code", remedy="omit it, or pickle the model"
        )
    raise UsageError(
        f"a model file cannot hold {value!r} ({type(value).__name__})",
        remedy="use plain data and deciban's families, or register your family with deciban.families.register",
    )


def _pack_record(value: Any, arrays: list[npt.NDArray[Any]]) -> dict[str, Any]:
    given = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
    later = [field.name for field in fields(value) if "optional" in field.metadata and given[field.name] is None]
    return {
        "is": type(value).__name__,
        **{name: pack(item, arrays) for name, item in given.items() if name not in later},
    }


def _pack_array(array: npt.NDArray[Any], arrays: list[npt.NDArray[Any]]) -> Any:
    if array.dtype.name in ARRAY_TYPES and array.ndim:
        held = narrow(array)
        arrays.append(held)
        narrowed = [] if held.dtype == array.dtype else [held.dtype.name]
        return {"array": [array.dtype.name, list(array.shape), *narrowed]}
    kind, size = array.dtype.kind, array.dtype.itemsize
    unknown = kind in "SVc" or (kind == "f" and size > 8) or (kind == "O" and not _is_plain(array.tolist()))
    if array.ndim != 1 or unknown:
        raise UsageError(f"a model file cannot hold labels of type {array.dtype}", remedy="use text or integers")
    if kind in "Mm":
        return {"labels": array.dtype.name, "values": array.view(np.int64).tolist()}
    if kind == "O":
        return {"labels": "object", "values": [pack(label, arrays) for label in array]}
    return {"labels": "text" if kind == "U" else array.dtype.name, "values": array.tolist()}


def _is_plain(labels: Sequence[Any]) -> bool:
    """Return True if all labels have one type that a file can hold."""
    return len({type(label) for label in labels}) <= 1 and type(next(iter(labels), "")) in LABEL_OBJECTS


def _pack_levels(levels: pa.Array) -> Any:
    name = str(levels.type)
    if name in PLAIN_LEVELS:
        return {"levels": name, "values": levels.to_pylist()}
    if name in INTEGER_LEVELS or TIMESTAMP.fullmatch(name):
        width = pa.int32() if levels.type.bit_width == 32 else pa.int64()
        return {"levels": name, "values": levels.cast(width).to_pylist()}
    raise UsageError(f"a model file cannot hold values of type {name}", remedy="convert the column to text")


class UnknownRecordError(ValueError):
    """Raised for a record of a type that is not known, such as a family that is not registered."""

    remedy = (
        "if it is a family of your own, load the file in Python and first import the module that registers it "
        "(deciban.families.register); otherwise install the version that wrote the file"
    )


def unpack(stored: Any, arrays: ArrayReader) -> Any:
    """Return the value written by `pack`; raise a ValueError if `pack` cannot have written it."""
    if isinstance(stored, int) and abs(stored) >= 1 << 64:
        raise ValueError("a number is too large")
    if isinstance(stored, str):
        stored.encode()  # raises UnicodeError for half a surrogate pair
    if stored is None or isinstance(stored, bool | int | float | str):
        return stored
    if isinstance(stored, list):
        return tuple(unpack(item, arrays) for item in stored)
    kind = next(iter(stored), None)
    if kind == "is":
        if all(isinstance(item, str) for item in stored.values()):
            return _record_of_texts(tuple(stored.items()))
        return _record(stored, arrays)
    if kind == "levels" and set(stored) == {"levels", "values"}:
        return _levels(stored["levels"], stored["values"])
    if kind == "labels" and set(stored) == {"labels", "values"}:
        return _labels(stored["labels"], stored["values"], arrays)
    if len(stored) == 1:
        content = stored[kind]
        if kind == "array" and (_is_list_of(content, 2) or _is_list_of(content, 3)):
            return arrays.take(*content)
        if kind == "map" and isinstance(content, list) and all(_is_list_of(pair, 2) for pair in content):
            return _map([(unpack(key, arrays), unpack(item, arrays)) for key, item in content])
        if kind == "number" and content in ("inf", "-inf", "nan"):
            return float(content)
        if kind in MOMENTS and isinstance(content, str):
            return MOMENTS[kind].fromisoformat(content)
    raise ValueError(f"it holds {shortened(stored)}, which is not a value")


def _is_list_of(content: Any, length: int) -> bool:
    return isinstance(content, list) and len(content) == length


def _map(items: list[tuple[Any, Any]]) -> dict[Any, Any]:
    try:
        return dict(items)
    except TypeError:  # the key is a map or an array
        raise ValueError("a map has an invalid key") from None


@lru_cache(1 << 10)  # thousands of columns have the same reason
def _record_of_texts(stored: tuple[tuple[str, str], ...]) -> Any:
    return _record(dict(stored), ArrayReader(Content(None, memoryview(b""), "", 0)))


def _record(stored: dict[str, Any], arrays: ArrayReader) -> Any:
    name = stored["is"]
    record = _record_type(name)
    if record is None:
        raise UnknownRecordError(f"it holds a record {shortened(name)}, which this version does not know")
    given = {key: unpack(item, arrays) for key, item in stored.items() if key != "is"}
    hints, required = _fields_of(record)  # type: ignore[arg-type]  # types are hashable
    if unknown := [key for key in given if key not in hints]:
        raise ValueError(f"{name} has no {shortened(unknown[0])}")
    if missing := [key for key in required if key not in given]:
        raise ValueError(f"{name} lacks {missing[0]!r}")
    for key, item in given.items():
        hint = hints[key]
        if isinstance(hint, type) and issubclass(hint, Enum):
            given[key] = hint(item)
        elif not conforms(item, hint):
            raise ValueError(f"{name} has {shortened(item)} as {key!r}")
    made = record(**given)
    return made.expand() if isinstance(made, CompactCorrections) else made


@cache
def _fields_of(record: type[Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the type of each stored field of a record, and the fields without a default."""
    hints, stored = get_type_hints(record), [field for field in fields(record) if field.init]
    return {field.name: hints[field.name] for field in stored}, [one.name for one in stored if one.default is MISSING]


def conforms(value: Any, hint: Any) -> bool:
    """Return True if a value has the declared type of a field."""
    origin, inner = get_origin(hint), get_args(hint)
    if hasattr(origin, "__value__"):  # a type alias, as NDArray is from NumPy 2.5 on
        return conforms(value, origin.__value__[inner])
    if hasattr(hint, "__value__"):
        return conforms(value, hint.__value__)
    if hint is Any:
        return True
    if isinstance(hint, TypeVar):
        return conforms(value, hint.__bound__)
    if origin in (Union, UnionType):
        return any(conforms(value, one) for one in inner)
    if origin is Literal:
        return any(type(value) is type(one) and value == one for one in inner)
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        if len(inner) == 2 and inner[1] is ...:
            return all(conforms(item, inner[0]) for item in value)
        return len(value) == len(inner) and all(conforms(*pair) for pair in zip(value, inner, strict=True))
    if origin is Mapping:
        key, item = inner
        return isinstance(value, Mapping) and all(conforms(k, key) and conforms(v, item) for k, v in value.items())
    if origin is np.ndarray:
        kind = get_args(inner[1])[0]  # any labels, or numbers of one type
        return isinstance(value, np.ndarray) and (kind is Any or value.dtype == kind)
    if origin is Callable:
        return False  # a file never holds code
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if hint is Family:
        return isinstance(value, list_families())
    if hint is Statistic:
        return isinstance(value, STATISTICS)
    return isinstance(value, type(None) if hint is None else hint)


def _levels(kind: Any, values: Any) -> pa.Array:
    if not isinstance(kind, str) or not isinstance(values, list):
        raise ValueError(f"there are levels of the unknown type {shortened(kind)}")
    if kind in PLAIN_LEVELS:
        return pa.array(values, PLAIN_LEVELS[kind])
    if kind in INTEGER_LEVELS:
        typed = INTEGER_LEVELS[kind]
    else:
        found = TIMESTAMP.fullmatch(kind)
        if found is None:
            raise ValueError(f"there are levels of the unknown type {shortened(kind)}")
        typed = pa.timestamp(found[1], found[2])
    return pa.array(values, pa.int32() if typed.bit_width == 32 else pa.int64()).cast(typed)


def _labels(kind: Any, values: Any, arrays: ArrayReader) -> npt.NDArray[Any]:
    if not isinstance(kind, str) or not LABEL_TYPES.fullmatch(kind) or not isinstance(values, list):
        raise ValueError(f"there are labels of the unknown type {shortened(kind)}")
    if kind == "object":
        labels = [unpack(value, arrays) for value in values]
        if not _is_plain(labels):
            raise ValueError("the labels are not plain data of one type")
        return np.array(labels, dtype=object)
    if kind == "text":
        if not all(isinstance(value, str) for value in values):
            raise ValueError("a label is not text")
        return np.array(values, dtype=str)
    if not all(isinstance(value, bool | int | float) for value in values):
        raise ValueError("a label is not a number")
    if "64[" in kind:
        return np.array(values, dtype=np.int64).view(kind)
    return np.array(values, dtype=kind)
