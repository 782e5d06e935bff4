"""JSON files as a source."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from deciban.errors import DataError, Place
from deciban.sources.duckdb import (
    JSON_FILE_MEMORY,
    DuckDbSource,
    borrow_connection,
    column_types,
    files_of,
    literal,
    record_of,
    select_typed,
    translate_errors,
)
from deciban.sources.sniff import FileFormat
from deciban.sources.source import ColumnType, Types
from deciban.tables.table import NO_COLUMN

# Types for columns of JSON. DuckDB infers HUGEINT (decimals in Arrow) for mixed positive and negative integers.
JSON_TYPES = {"JSON": "VARCHAR", '"NULL"': "VARCHAR", "HUGEINT": "BIGINT"}


@dataclass(frozen=True)
class JsonRead:
    """JSON files with one compression, as DuckDB reads them. columns: names and types."""

    paths: tuple[Path, ...]
    compression: str | None = None
    columns: tuple[tuple[str, str], ...] = ()

    def select(self, names: Sequence[str], types: Types) -> str:
        records = ", records=true" if self.columns == ((NO_COLUMN, "VARCHAR"),) else ""  # else {} would be a value
        return select_typed(self._call(f"columns={record_of(self.columns)}{records}"), names, types)

    def describe(self) -> str:
        """Return the query for all keys of all lines."""
        return f"SELECT * FROM {self._call('sample_size=-1, union_by_name=true')}"

    def select_keys(self) -> str:
        """Return the query for all keys as written in the files."""
        files = f"{files_of(self.paths)}, compression={literal(self.compression or 'none')}"
        return f"SELECT DISTINCT unnest(json_keys(json)) FROM read_json_objects({files})"

    def _call(self, columns: str) -> str:
        compression = literal(self.compression or "none")
        return (
            f"read_json({files_of(self.paths)}, {columns}, compression={compression}, "
            f"map_inference_threshold=-1, hive_partitioning=true)"
        )


def open_json(name: str, paths: Sequence[Path], forms: Sequence[FileFormat], called: Mapping[str, str]) -> DuckDbSource:
    """Open JSON files. All lines are scanned for keys and types first."""
    alike: dict[str | None, list[Path]] = {}
    for path, form in zip(paths, forms, strict=True):
        alike.setdefault(form.compression, []).append(path)
    reads = [JsonRead(tuple(files), compression) for compression, files in alike.items()]
    looks = " UNION ALL BY NAME ".join(read.describe() for read in reads)
    found = column_types(looks, name, called, JSON_FILE_MEMORY * len(paths))
    if found == {"json": "JSON"} and all(_has_no_keys(path, form) for path, form in zip(paths, forms, strict=True)):
        found = {NO_COLUMN: "VARCHAR"}
    _refuse_keys_by_case(name, found, reads, called)
    columns = tuple((column, JSON_TYPES.get(kind, kind)) for column, kind in found.items())
    return DuckDbSource(
        name, tuple(found),
        tuple(replace(read, columns=columns) for read in reads),
        row_size=forms[0].row_bytes or 0.0,
        types={column: ColumnType(kind) for column, kind in columns},
        more_memory=2 * JSON_FILE_MEMORY, files=tuple(paths), called=called,
    )  # fmt: skip


def _has_no_keys(path: Path, form: FileFormat) -> bool:
    """Return True if all objects of a file are empty. DuckDB reports these as one column, json."""
    with pa.input_stream(str(path), compression=form.compression) as stream:
        while block := stream.read(1 << 20):
            if block.translate(None, b"{}[], \t\r\n\xef\xbb\xbf"):
                return False
    return True


def _refuse_keys_by_case(
    name: str, columns: Collection[str], reads: Sequence[JsonRead], called: Mapping[str, str]
) -> None:
    """Raise a DataError for keys that differ only in case.

    DuckDB appends a number to such keys and then finds no values. A name such as `a_1` may also be a key of its own, so
    the keys are queried if both are possible.
    """
    known = {column.lower() for column in columns}
    numbered = (column.rpartition("_") for column in columns)
    if not any(number.isdigit() and base not in columns and base.lower() in known for base, _, number in numbered):
        return
    keys = " UNION ".join(read.select_keys() for read in reads)
    memory = JSON_FILE_MEMORY * sum(len(read.paths) for read in reads)
    with borrow_connection(more_memory=memory) as connection, translate_errors(name, called=called):
        written = sorted((key for (key,) in connection.execute(keys).fetchall()), reverse=True)
    first: dict[str, str] = {}
    for key in written:
        if first.setdefault(key.lower(), key) != key:
            message = f"the key {key!r} occurs in different cases"
            raise DataError(message, place=Place(name), remedy="use one spelling per key")
