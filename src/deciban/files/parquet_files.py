"""Parquet files, opened as a scan."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from deciban.files.arrow_readers import SHORT_BYTES, ParquetReader, in_named_folders
from deciban.files.duckdb import column_types, list_of
from deciban.files.scan import Scan, select_typed
from deciban.files.typed_source import ColumnType, Types

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
    """Parquet files as DuckDB reads them."""

    paths: tuple[Path, ...]

    @property
    def table(self) -> str:
        """What DuckDB selects from."""
        several = str(len(self.paths) > 1).lower()
        return f"read_parquet({list_of(self.paths)}, union_by_name={several}, hive_partitioning=true)"

    def select(self, names: Sequence[str], types: Types) -> str:
        return select_typed(self.table, names, types)


class Footer(NamedTuple):
    """What Parquet files say: the bytes of a row, how many rows, and types if DuckDB has the same ones."""

    row_size: float = 0.0
    rows: int | None = None
    types: dict[str, str] | None = None


def open_parquet(name: str, paths: Sequence[Path], called: Mapping[str, str]) -> Scan:
    """The scan of files whose columns are united by name."""
    read, found = ParquetRead(tuple(paths)), footer(paths)
    types = found.types or column_types(f"SELECT * FROM {read.table}", name, called)
    rows = found.rows or 0
    size = int(found.row_size * rows)
    return Scan(
        name, tuple(types), {name: ColumnType(own) for name, own in types.items()}, (read,),
        row_size=found.row_size, rows=found.rows, files=tuple(paths), called=called,
        arrow=ParquetReader(tuple(paths), rows, size) if found.types and size <= SHORT_BYTES else None,
    )  # fmt: skip


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
    alike = all(schema.equals(schemas[0]) for schema in schemas) and not in_named_folders(paths)
    plain = all(names) and len({name.lower() for name in names}) == len(names) and set(kinds) <= set(PLAIN_TYPES)
    types = {name: PLAIN_TYPES[kind] for name, kind in zip(names, kinds, strict=True)} if alike and plain else None
    return Footer(size / max(rows, 1), rows, types)
