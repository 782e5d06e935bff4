"""Rows that come as Arrow's batches from elsewhere: Arrow and ORC files, datasets of pyarrow, lazy frames of polars."""

import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from deciban.errors import DataError, naming_source
from deciban.sources.databases.source import Answer, ArrowSource, distinct_names, types_of
from deciban.sources.parquet_files import refuse_other_types, united_as

# The batches with these columns, each time from the first row on.
Batches = Callable[[Sequence[str]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True)
class BatchSource(ArrowSource):
    """The rows of batches that can be had again for every pass. schema: of all columns. kept: temporary files."""

    schema: pa.Schema = field(repr=False)
    batches: Batches = field(repr=False, compare=False)
    kept: tuple[Any, ...] = field(default=(), repr=False, compare=False)

    @contextmanager
    def _asked(self) -> Iterator[Answer]:
        wanted = pa.schema([self.schema.field(name) for name in self.names])
        try:
            yield Answer(wanted, (batch.select(wanted.names).cast(wanted) for batch in self.batches(self.names)))
        except (pa.ArrowException, OSError) as problem:
            said = str(problem).strip().partition("\n")[0]
            raise naming_source(DataError(f"{self.name}: the rows cannot be read ({said})")) from problem


def _opened(name: str, schema: pa.Schema, batches: Batches, **more: Any) -> BatchSource:
    types = types_of(dict(zip(distinct_names(schema.names, name), schema.types, strict=True)))
    return BatchSource(name, tuple(types), types, schema, batches, **more)


def is_arrow_stream(data: Any) -> bool:
    """Whether something is a dataset of pyarrow or a lazy frame of polars."""
    return _is_dataset(data) or _is_lazy(data)


def _is_dataset(data: Any) -> bool:
    dataset = sys.modules.get("pyarrow.dataset")
    return dataset is not None and isinstance(data, dataset.Dataset)


def _is_lazy(data: Any) -> bool:
    polars = sys.modules.get("polars")
    return polars is not None and isinstance(data, polars.LazyFrame)


def open_arrow_stream(data: Any) -> BatchSource:
    """The source of a dataset, or of a lazy frame, which polars works out again for every pass, batch by batch."""
    if _is_dataset(data):
        return _opened("the dataset", data.schema, lambda names: data.to_batches(columns=list(names)))

    def batches(names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        chosen = data.select(list(names))
        frames = chosen.collect_batches() if hasattr(chosen, "collect_batches") else [chosen.collect()]
        for frame in frames:
            yield from frame.to_arrow().to_batches()

    return _opened("the lazy frame", data.limit(0).collect().to_arrow().schema, batches)


def open_arrow_files(
    name: str, paths: Sequence[Path], kind: str, called: Mapping[str, str], told: Collection[str]
) -> BatchSource:
    """The source of files of one of these kinds: "arrow", "arrow stream" and "orc". Columns are united by name."""
    files = {str(path): called.get(str(path), str(path)) for path in paths}
    schemas = [_schema_of(path, kind, shown) for path, shown in files.items()]
    refuse_other_types(list(files.values()), schemas, told)
    united = _united(schemas)

    def batches(names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for path in files:
            for batch in _batches_of(path, kind):
                there = {one: batch.column(one) for one in batch.schema.names}
                cells = [there[one].cast(united.field(one).type) if one in there
                         else pa.nulls(batch.num_rows, united.field(one).type) for one in names]  # fmt: skip
                yield pa.RecordBatch.from_arrays(cells, names=list(names))

    return _opened(name, united, batches, files=tuple(paths), called=called)


def _united(schemas: Sequence[pa.Schema]) -> pa.Schema:
    """All columns of files, each of a type that holds the cells of all; text, if they are of several kinds."""
    kinds: dict[str, list[pa.DataType]] = {}
    for schema in schemas:
        for one in schema:
            known = kinds.setdefault(one.name, [])
            if not pa.types.is_null(one.type) and one.type not in known:
                known.append(one.type)
    return pa.schema([(name, _holding(found)) for name, found in kinds.items()])


def _holding(kinds: Sequence[pa.DataType]) -> pa.DataType:
    if len(kinds) < 2:
        return kinds[0] if kinds else pa.null()
    common = {united_as(kind) for kind in kinds}
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
        said = str(problem).strip().partition("\n")[0]
        what = "an ORC file" if kind == "orc" else "an Arrow file"
        raise naming_source(
            DataError(f"{shown}: {what} that is damaged or truncated ({said}); write it again")
        ) from None
