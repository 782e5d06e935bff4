"""Parquet files, opened as a scan."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from deciban.errors import DataError, naming_source
from deciban.sources.duckdb import column_types, files_of, select_from
from deciban.sources.scan import Scan, select_typed
from deciban.sources.typed_source import ColumnType, Types
from deciban.tables.cell_numbers import plain_type
from deciban.tables.text_types import kind_of

# Arrow's types that DuckDB gives back as they are, and what it calls them.
PLAIN_TYPES = {
    "string": "VARCHAR",
    "double": "DOUBLE",
    "float": "FLOAT",
    "bool": "BOOLEAN",
    "int64": "BIGINT",
    "int32": "INTEGER",
    "int16": "SMALLINT",
    "int8": "TINYINT",
}


@dataclass(frozen=True)
class ParquetRead:
    """Parquet files as DuckDB reads them; `columns` are those that they have, if others have more."""

    paths: tuple[Path, ...]
    columns: frozenset[str] | None = None

    @property
    def table(self) -> str:
        """What DuckDB selects from."""
        several = str(len(self.paths) > 1).lower()
        return f"read_parquet({files_of(self.paths)}, union_by_name={several}, hive_partitioning=true)"

    def select(self, names: Sequence[str], types: Types) -> str:
        there = [name for name in names if self.columns is None or name in self.columns]
        if len(there) == len(names):
            return select_typed(self.table, names, types)
        inner = dict(zip(there, (f"c{k}" for k in range(len(there))), strict=True))
        cells = [inner.get(name, "NULL") for name in names]
        return select_from(f"({select_typed(self.table, there, types)})", cells)


class Footer(NamedTuple):
    """What Parquet files say: the bytes of a row, how many rows, types if DuckDB has the same ones, all schemas."""

    row_size: float = 0.0
    rows: int | None = None
    types: dict[str, str] | None = None
    schemas: tuple[pa.Schema, ...] = ()


def open_parquet(name: str, paths: Sequence[Path], called: Mapping[str, str], told: Collection[str]) -> Scan:
    """The scan of files whose columns are united by name; `told` are columns whose type the user gives."""
    found = footer(paths)
    refuse_other_types([called.get(str(path), str(path)) for path in paths], found.schemas, told)
    reads = _reads(paths, found.schemas, told)
    types = dict(found.types or {})
    for k, read in enumerate(reads if found.types is None else ()):
        own = column_types(f"SELECT * FROM {read.table}", name, called)
        types |= own
        reads[k] = replace(read, columns=frozenset(own))
    return Scan(
        name, tuple(types), {name: ColumnType(own) for name, own in types.items()}, tuple(reads),
        row_size=found.row_size, rows=found.rows, files=tuple(paths), called=called,
    )  # fmt: skip


def _reads(paths: Sequence[Path], schemas: Sequence[pa.Schema], told: Collection[str]) -> list[ParquetRead]:
    """What DuckDB reads: all files together, but for those in which a column of `told` is of another kind."""
    alike: dict[tuple[str, ...], list[Path]] = {}
    for path, schema in zip(paths, schemas or [pa.schema([])] * len(paths), strict=True):
        kinds = (united_as(schema.field(name).type) for name in sorted(told) if name in schema.names)
        alike.setdefault(tuple(kinds), []).append(path)
    return [ParquetRead(tuple(files)) for files in alike.values()]


def footer(paths: Sequence[Path]) -> Footer:
    """What the files say of themselves, sooner than DuckDB would."""
    from pyarrow import parquet

    try:
        held = [parquet.read_metadata(path) for path in paths]
        schemas = [one.schema.to_arrow_schema() for one in held]
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        return Footer()  # DuckDB can tell what is wrong
    rows = sum(one.num_rows for one in held)
    size = sum(one.row_group(k).total_byte_size for one in held for k in range(one.num_row_groups))
    names, kinds = schemas[0].names, [str(kind) for kind in schemas[0].types]
    alike = all(schema.equals(schemas[0]) for schema in schemas) and not _in_named_folders(paths)
    plain = all(names) and len({name.lower() for name in names}) == len(names) and set(kinds) <= set(PLAIN_TYPES)
    types = {name: PLAIN_TYPES[kind] for name, kind in zip(names, kinds, strict=True)} if alike and plain else None
    return Footer(size / max(rows, 1), rows, types, tuple(schemas))


def _in_named_folders(paths: Sequence[Path]) -> bool:
    """Whether the name of a folder, such as year=2024, is a column of its files."""
    return any("=" in folder for path in paths for folder in path.absolute().parts[:-1])


def refuse_other_types(names: Sequence[str], schemas: Sequence[pa.Schema], told: Collection[str]) -> None:
    """A DataError where a column is, say, a number in one file and text in another; `told` are columns that may be.

    Numbers of several types are numbers, and so on: what can be united without a loss is.
    """
    known: dict[str, tuple[str, pa.DataType]] = {}
    for name, schema in zip(names, schemas, strict=False):
        for column, kind in zip(schema.names, schema.types, strict=True):
            other, before = known.setdefault(column, (name, kind)) if not pa.types.is_null(kind) else (name, kind)
            if column not in told and united_as(before) != united_as(kind):
                raise naming_source(
                    DataError(
                        f"{name}: column {column!r} is {plain_type(kind)}, and {plain_type(before)} in {other}; write "
                        f"it with one type in all files, read it with types={{{column!r}: 'text'}}, or leave it out "
                        f"with ignore="
                    )
                )


def united_as(kind: pa.DataType) -> str:
    """What columns have in common that can be united."""
    plain = plain_type(kind)
    zone = " with a time zone" if pa.types.is_timestamp(plain) and plain.tz is not None else ""
    return f"{kind_of(str(plain)) or plain}{zone}"
