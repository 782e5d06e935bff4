"""Sources of Arrow batches: Arrow, ORC and Parquet files, pyarrow datasets, polars LazyFrames.

`BatchSource` streams batches from files and datasets here, and from connections and Ibis tables in `connections`.
Parquet files are read by DuckDB.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from deciban.errors import Argument, BadCell, DataError, Place, UsageError
from deciban.sources.duckdb import DuckDbSource, column_types, files_of, rows_of_relation, select_from, select_typed
from deciban.sources.source import (
    ColumnType,
    Source,
    SqlRows,
    Types,
    duplicate_column_error,
    in_measured_pieces,
    is_sorted_query,
)
from deciban.tables.cells import ARROW, CellFormat, as_whole, is_text, kind_of, plain_type
from deciban.util.text_tables import find_duplicate

# Arrow types for conversions of columns that are not text.
AS_ARROW = {**ARROW, "VARCHAR": pa.string(), "TIME": pa.time64("us")}


class Answer(NamedTuple):
    """Schema and batches of a stream."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]


class Batches(Protocol):
    """Provider of the batches of a source."""

    def open_batches(self, source: "BatchSource") -> AbstractContextManager[Answer]:
        """Open the batches. They have the columns of the source, and perhaps more."""
        ...

    def relation(self, source: "BatchSource") -> Any:
        """Return the DuckDB relation with these rows; None if they are not in DuckDB."""
        ...


@dataclass(frozen=True)
class BatchSource(Source):
    """Rows that arrive as Arrow batches; columns with another wanted type are converted here.

    batches: provider of the batches.
    declared: columns whose types are known before rows are read; None if all are.
    """

    batches: Batches = field(repr=False, compare=False)
    declared: frozenset[str] | None = None

    @property
    def in_order(self) -> bool:
        return isinstance(self.batches, StoredBatches) or is_sorted_query(getattr(self.batches, "query", ""))

    @property
    def typed(self) -> bool:
        return self.declared is None or self.declared.issuperset(self.names)

    def resolve_types(self, sample: pa.Table) -> tuple["BatchSource", pa.Table]:
        """Convert numbers of unknown type to integers if all of a sample are whole."""
        if self.declared is None:
            return self, sample
        names = sample.column_names
        cells = [sample[name] if name in self.declared else as_whole(sample[name]) for name in names]
        return self, pa.Table.from_arrays(cells, names=names)

    def tables(self) -> Iterator[pa.Table]:
        self._refuse_unreadable()
        with self.batches.open_batches(self) as answer:
            first_row = 1
            for piece in in_measured_pieces(answer.batches, answer.schema):
                columns = [self._as_wanted(name, piece[name], first_row) for name in self.names]
                yield pa.Table.from_arrays(columns, names=list(self.names))
                first_row += piece.num_rows

    def sql(self) -> AbstractContextManager[SqlRows]:
        """Return the rows as DuckDB rows, if they are in DuckDB."""
        self._refuse_unreadable()
        if (relation := self.batches.relation(self)) is None:
            return super().sql()
        return nullcontext(
            rows_of_relation(relation, self.name, {name: self.types[name].wanted for name in self.names})
        )

    def _as_wanted(self, name: str, cells: pa.ChunkedArray, first_row: int) -> pa.ChunkedArray:
        kind = self.types[name].wanted
        if not kind or kind_of(str(plain_type(cells.type))) == kind:
            return cells
        try:
            if is_text(plain_type(cells.type)):
                return CellFormat(kind, markers=False).read(cells.cast(pa.string()))
            return cells.cast(AS_ARROW[kind])
        except BadCell as bad:
            raise bad.as_error(name, first_row) from None
        except pa.ArrowException as problem:
            remedy = f"read it with its own type, {cells.type}"
            raise DataError(str(problem), place=Place(column=name), remedy=remedy) from None


def distinct_names(names: Iterable[str], place: str) -> list[str]:
    """Return the names of columns; raise an error for no columns or a duplicate name."""
    found = list(names)
    if not found:
        raise UsageError("the query has no columns", place=Place(place), remedy="select at least one column")
    if (twice := find_duplicate(found)) is not None:
        raise duplicate_column_error(twice, place)
    return found


def types_of(kinds: Mapping[str, pa.DataType]) -> dict[str, ColumnType]:
    """Return the column types for Arrow types."""
    names = {name: str(plain_type(kind)) for name, kind in kinds.items()}
    return {name: ColumnType(kind_of(kind) or kind, called=kind) for name, kind in names.items()}


# Arrow types that DuckDB returns unchanged, and its names for them.
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
    """Parquet files as DuckDB reads them. columns: names of their columns, if other files have more."""

    paths: tuple[Path, ...]
    columns: frozenset[str] | None = None

    @property
    def table(self) -> str:
        """Table expression for FROM."""
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
    """Metadata of Parquet files: bytes per row, number of rows, types if DuckDB has the same ones, all schemas."""

    row_size: float = 0.0
    rows: int | None = None
    types: dict[str, str] | None = None
    schemas: tuple[pa.Schema, ...] = ()


def open_parquet(
    name: str, paths: Sequence[Path], called: Mapping[str, str], overridden: Collection[str]
) -> DuckDbSource:
    """Open Parquet files, with columns matched by name. overridden: columns whose type the user gives."""
    found = footer(paths)
    refuse_other_types([called.get(str(path), str(path)) for path in paths], found.schemas, overridden)
    reads = _reads(paths, found.schemas, overridden)
    types = dict(found.types or {})
    for k, read in enumerate(reads if found.types is None else ()):
        own = column_types(f"SELECT * FROM {read.table}", name, called)
        types |= own
        reads[k] = replace(read, columns=frozenset(own))
    return DuckDbSource(
        name, tuple(types), tuple(reads), types={name: ColumnType(own) for name, own in types.items()},
        row_size=found.row_size, rows=found.rows, files=tuple(paths), called=called,
    )  # fmt: skip


def _reads(paths: Sequence[Path], schemas: Sequence[pa.Schema], overridden: Collection[str]) -> list[ParquetRead]:
    """Group files for DuckDB: all together, except those in which a column of `overridden` has another type."""
    alike: dict[tuple[str, ...], list[Path]] = {}
    for path, schema in zip(paths, schemas or [pa.schema([])] * len(paths), strict=True):
        kinds = (union_kind(schema.field(name).type) for name in sorted(overridden) if name in schema.names)
        alike.setdefault(tuple(kinds), []).append(path)
    return [ParquetRead(tuple(files)) for files in alike.values()]


def footer(paths: Sequence[Path]) -> Footer:
    """Read the metadata of Parquet files, which is faster than asking DuckDB."""
    from pyarrow import parquet

    try:
        held = [parquet.read_metadata(path) for path in paths]
        schemas = [one.schema.to_arrow_schema() for one in held]
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        return Footer()  # DuckDB reports the error
    rows = sum(one.num_rows for one in held)
    size = sum(one.row_group(k).total_byte_size for one in held for k in range(one.num_row_groups))
    names, kinds = schemas[0].names, [str(kind) for kind in schemas[0].types]
    alike = all(schema.equals(schemas[0]) for schema in schemas) and not _in_named_folders(paths)
    plain = all(names) and len({name.lower() for name in names}) == len(names) and set(kinds) <= set(PLAIN_TYPES)
    types = {name: PLAIN_TYPES[kind] for name, kind in zip(names, kinds, strict=True)} if alike and plain else None
    return Footer(size / max(rows, 1), rows, types, tuple(schemas))


def _in_named_folders(paths: Sequence[Path]) -> bool:
    """Return True if the name of a folder, such as year=2024, is a column of its files."""
    return any("=" in folder for path in paths for folder in path.absolute().parts[:-1])


def refuse_other_types(names: Sequence[str], schemas: Sequence[pa.Schema], overridden: Collection[str]) -> None:
    """Raise a DataError if a column has incompatible types in two files. overridden: columns exempt from this.

    Types that can be merged without loss are compatible, for example all types of numbers.
    """
    known: dict[str, tuple[str, pa.DataType]] = {}
    for name, schema in zip(names, schemas, strict=False):
        for column, kind in zip(schema.names, schema.types, strict=True):
            other, before = known.setdefault(column, (name, kind)) if not pa.types.is_null(kind) else (name, kind)
            if column not in overridden and union_kind(before) != union_kind(kind):
                raise DataError(
                    f"column {column!r} is {plain_type(kind)}, but {plain_type(before)} in {other}",
                    place=Place(name),
                    remedy=(
                        "use one type in all files, read it with ",
                        Argument("types", {column: "text"}),
                        ", or leave it out with ",
                        Argument("ignore"),
                    ),
                )


def union_kind(kind: pa.DataType) -> str:
    """Return a key that is equal for types that can be merged."""
    plain = plain_type(kind)
    zone = " with a time zone" if pa.types.is_timestamp(plain) and plain.tz is not None else ""
    return f"{kind_of(str(plain)) or plain}{zone}"


# Function that returns the batches with these columns, each time from the first row.
ReadBatches = Callable[[Sequence[str]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True)
class StoredBatches:
    """Batches that can be read again for every pass. schema: schema of all columns."""

    schema: pa.Schema
    read: ReadBatches

    @contextmanager
    def open_batches(self, source: BatchSource) -> Iterator[Answer]:
        wanted = pa.schema([self.schema.field(name) for name in source.names])
        try:
            yield Answer(wanted, (batch.select(wanted.names).cast(wanted) for batch in self.read(source.names)))
        except (pa.ArrowException, OSError) as problem:
            message = str(problem).strip().partition("\n")[0]
            raise DataError(f"cannot read the rows ({message})", place=Place(source.name)) from problem

    def relation(self, source: BatchSource) -> Any:
        return None


def _source_of(name: str, schema: pa.Schema, read: ReadBatches, **more: Any) -> BatchSource:
    types = types_of(dict(zip(distinct_names(schema.names, name), schema.types, strict=True)))
    return BatchSource(name, tuple(types), StoredBatches(schema, read), types=types, **more)


def open_arrow_stream(data: Any) -> BatchSource:
    """Open a dataset, or a LazyFrame, which polars computes again for every pass, in batches."""
    if hasattr(data, "to_batches"):  # a dataset
        return _source_of("the dataset", data.schema, lambda names: data.to_batches(columns=list(names)))

    def batches(names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        chosen = data.select(list(names))
        frames = chosen.collect_batches() if hasattr(chosen, "collect_batches") else [chosen.collect()]
        for frame in frames:
            yield from frame.to_arrow().to_batches()

    return _source_of("the lazy frame", data.limit(0).collect().to_arrow().schema, batches)


def open_arrow_files(
    name: str, paths: Sequence[Path], kind: str, called: Mapping[str, str], overridden: Collection[str]
) -> BatchSource:
    """Open Arrow files, Arrow streams or ORC files, with columns matched by name."""
    files = {str(path): called.get(str(path), str(path)) for path in paths}
    schemas = [_schema_of(path, kind, shown) for path, shown in files.items()]
    refuse_other_types(list(files.values()), schemas, overridden)
    united = _unite_schemas(schemas)

    def batches(names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for path in files:
            for batch in _batches_of(path, kind):
                there = {one: batch.column(one) for one in batch.schema.names}
                cells = [there[one].cast(united.field(one).type) if one in there
                         else pa.nulls(batch.num_rows, united.field(one).type) for one in names]  # fmt: skip
                yield pa.RecordBatch.from_arrays(cells, names=list(names))

    return _source_of(name, united, batches, files=tuple(paths), called=called)


def _unite_schemas(schemas: Sequence[pa.Schema]) -> pa.Schema:
    """Merge the schemas of files. Columns with several types of values become text."""
    kinds: dict[str, list[pa.DataType]] = {}
    for schema in schemas:
        for one in schema:
            known = kinds.setdefault(one.name, [])
            if not pa.types.is_null(one.type) and one.type not in known:
                known.append(one.type)
    return pa.schema([(name, _common_type(found)) for name, found in kinds.items()])


def _common_type(kinds: Sequence[pa.DataType]) -> pa.DataType:
    if len(kinds) < 2:
        return kinds[0] if kinds else pa.null()
    common = {union_kind(kind) for kind in kinds}
    if common == {"DOUBLE"}:
        whole = all(pa.types.is_integer(kind) for kind in kinds) and pa.uint64() not in kinds
        return pa.int64() if whole else pa.float64()
    if len(common) == 1 and common != {"VARCHAR"}:  # dates and times
        zone = next((kind.tz for kind in kinds if pa.types.is_timestamp(kind)), None)
        return pa.time64("us") if common == {"TIME"} else pa.timestamp("us", zone)
    return pa.string()


def _batches_of(path: str, kind: str) -> Iterator[pa.RecordBatch]:
    if kind == "orc":
        from pyarrow import orc

        file = orc.ORCFile(path)
        for stripe in range(file.nstripes):
            yield file.read_stripe(stripe)
        return
    with pa.memory_map(path) as mapped:
        if kind == "arrow":
            reader = pa.ipc.open_file(mapped)
            for k in range(reader.num_record_batches):
                yield reader.get_batch(k)
        else:
            yield from pa.ipc.open_stream(mapped)


def _schema_of(path: str, kind: str, shown: str) -> pa.Schema:
    try:
        if kind == "orc":
            from pyarrow import orc

            return orc.ORCFile(path).schema
        with pa.memory_map(path) as mapped:
            return (pa.ipc.open_file(mapped) if kind == "arrow" else pa.ipc.open_stream(mapped)).schema
    except (pa.ArrowException, OSError) as problem:
        message = str(problem).strip().partition("\n")[0]
        what = "an ORC file" if kind == "orc" else "an Arrow file"
        raise DataError(
            f"{what} that is damaged or truncated ({message})", place=Place(shown), remedy="write it again"
        ) from None
