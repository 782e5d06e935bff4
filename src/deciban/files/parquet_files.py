"""Parquet files, opened as a scan."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from deciban.files.arrow_readers import SHORT_BYTES, ParquetReader, in_named_folders
from deciban.files.duckdb import column_types, list_of
from deciban.files.scan import Scan, select_typed
from deciban.files.typed_source import ColumnType, Types
from deciban.progress import Advance
from deciban.tables.row_sampling import rows_that_fit, sampled_places

# What DuckDB calls the number of a row.
ROW_NUMBER = "file_row_number"

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
    """Parquet files as DuckDB reads them; `numbered` ones can be asked for rows by number."""

    paths: tuple[Path, ...]
    numbered: bool = False

    @property
    def table(self) -> str:
        """What DuckDB selects from."""
        several = str(len(self.paths) > 1).lower()
        number = f", {ROW_NUMBER}=true" if self.numbered else ""
        return f"read_parquet({list_of(self.paths)}, union_by_name={several}, hive_partitioning=true{number})"

    def select(self, names: Sequence[str], types: Types) -> str:
        return select_typed(self.table, names, types)


@dataclass(frozen=True)
class ParquetScan(Scan):
    """A table in Parquet files; of a single one, rows are found by their numbers."""

    reads: tuple[ParquetRead, ...]

    def sample(self, most: int, advance: Advance) -> tuple[pa.Table, int]:
        if not self.reads[0].numbered or self.rows is None:
            return super().sample(most, advance)
        places = pa.table({"place": sampled_places(self.rows, rows_that_fit(most, self.row_size))})
        query = f"{self._query} WHERE {ROW_NUMBER} IN (SELECT place FROM drawn) ORDER BY {ROW_NUMBER}"
        with self._answer(query, drawn=places) as reader:
            return self._named(reader.read_all()), self.rows

    def sample_in_engine(self, most: int, advance: Advance) -> tuple[pa.Table, int]:
        numbered = self.reads[0].numbered and self.rows is not None
        return self.sample(most, advance) if numbered else super().sample_in_engine(most, advance)


class Footer(NamedTuple):
    """What Parquet files say: the bytes of a row, how many rows, and types if DuckDB has the same ones."""

    row_size: float = 0.0
    rows: int | None = None
    types: dict[str, str] | None = None


def open_parquet(name: str, paths: Sequence[Path], called: Mapping[str, str]) -> ParquetScan:
    """The scan of files whose columns are united by name."""
    read, found = ParquetRead(tuple(paths)), footer(paths)
    types = found.types or column_types(f"SELECT * FROM {read.table}", name, called)
    read = replace(read, numbered=len(paths) == 1 and ROW_NUMBER not in map(str.lower, types))
    rows = found.rows or 0
    size = int(found.row_size * rows)
    return ParquetScan(
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
