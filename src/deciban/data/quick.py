"""Files that Arrow reads faster than DuckDB, and as well: Parquet of long texts, CSV and JSON of nothing but text.

Whatever is strange in a file (rows of other lengths, quotes in the middle of a cell, other types) is left to DuckDB,
which reads the file once more and can say what is wrong.
"""

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deciban import kernels
from deciban.data.dialect import GLANCE_BYTES, Look
from deciban.data.tables import is_text
from deciban.data.text_types import text_type

# Bytes of a file of text that are read at a time; a line of JSON has to fit into them.
BLOCK = 12 << 20

# What `kernels.quoting` says of a file: within a cell, or not as it should be.
QUOTED, STRANGE_QUOTE = 3, -1

# Bytes of a column of a Parquet file that are read at a time.
BUFFER = 1 << 20

# Bytes of lines of JSON that are kept when they have been looked at.
HELD_BYTES = 1 << 26

# Whatever has such a letter is no date, no time and no number, in none of the ways in which they are written.
WORDS = "[g-su-yG-SU-Y]"

# Bytes of a row that has more than numbers in it.
LONG_ROW = 400

# Arrow's types that DuckDB gives back as they are, and what it calls them.
PLAIN = {
    "string": "VARCHAR",
    "double": "DOUBLE",
    "float": "FLOAT",
    "bool": "BOOLEAN",
    "int64": "BIGINT",
    "int32": "INTEGER",
    "int16": "SMALLINT",
    "int8": "TINYINT",
}


class StrangeError(Exception):
    """The file is none of those that are read here."""


# What is raised where DuckDB has to be asked.
STRANGE = (StrangeError, pa.ArrowException, OSError)


class Quick(Protocol):
    """A way to read files without DuckDB."""

    @property
    def rows(self) -> int | None:
        """How many there are, if that is known."""
        ...

    @property
    def is_faster(self) -> bool:
        """Whether it reads all rows faster than DuckDB does; if not, it only knows some things sooner."""
        ...

    @property
    def first(self) -> pa.RecordBatch:
        """Some of the first rows, with all columns."""
        ...

    def batches(self, names: Sequence[str]) -> Generator[pa.RecordBatch]:
        """The rows with these columns; StrangeError, or an exception of Arrow, where DuckDB has to be asked."""
        ...


@dataclass(frozen=True)
class ParquetFiles:
    """Parquet files with the same columns; `types` are DuckDB's, `size` the bytes of their cells."""

    paths: tuple[Path, ...]
    types: dict[str, str]
    rows: int
    size: int

    @property
    def is_faster(self) -> bool:
        return self.size > LONG_ROW * self.rows

    @cached_property
    def first(self) -> pa.RecordBatch:
        with closing(self._batches(list(self.types), GLANCE_BYTES)) as batches:
            return _one_of(batches)

    def batches(self, names: Sequence[str]) -> Generator[pa.RecordBatch]:
        yield from self._batches(names, BLOCK)

    def _batches(self, names: Sequence[str], block: int) -> Generator[pa.RecordBatch]:
        import pyarrow.parquet as parquet

        rows = max(1, int(block * self.rows / max(self.size, 1)))
        for path in self.paths:
            with parquet.ParquetFile(path, buffer_size=BUFFER) as file:
                yield from file.iter_batches(rows, columns=list(names), use_threads=False)


def plain_parquet(paths: Sequence[Path]) -> ParquetFiles | None:
    """Files whose columns DuckDB would give back as they are, and add none; None if these are not."""
    import pyarrow.parquet as parquet

    if any("=" in folder for path in paths for folder in path.absolute().parts[:-1]):  # which names a column
        return None
    try:
        footers = [parquet.read_metadata(path) for path in paths]
        schemas = [footer.schema.to_arrow_schema() for footer in footers]
    except (pa.ArrowException, OSError):
        return None
    names, types = schemas[0].names, [str(kind) for kind in schemas[0].types]
    alike = all(schema.equals(schemas[0]) for schema in schemas)
    if not alike or len({name.lower() for name in names}) < len(names) or not all(kind in PLAIN for kind in types):
        return None
    found = {name: PLAIN[kind] for name, kind in zip(names, types, strict=True)}
    rows = sum(footer.num_rows for footer in footers)
    size = sum(footer.row_group(k).total_byte_size for footer in footers for k in range(footer.num_row_groups))
    return ParquetFiles(tuple(paths), found, rows, size)


def _one_of(batches: Iterator[pa.RecordBatch]) -> pa.RecordBatch:
    for batch in batches:
        return batch
    raise StrangeError


@dataclass(frozen=True)
class TextFiles:
    """CSV files with the same columns, all of them text."""

    paths: tuple[Path, ...]
    look: Look
    missing: tuple[str, ...]

    rows = None
    is_faster = True

    @cached_property
    def first(self) -> pa.RecordBatch:
        with closing(self._batches(self.look.header, GLANCE_BYTES)) as batches:
            return _one_of(batches)

    def are_all_text(self, rows: int) -> bool:
        """Whether the first rows, no more than these, show that every column is text: what fits into no type there."""
        with suppress(*STRANGE):
            columns = self.first.slice(0, rows).columns
            return all(text_type(column, self.look.decimal) == "VARCHAR" for column in columns)
        return False

    def batches(self, names: Sequence[str]) -> Generator[pa.RecordBatch]:
        yield from self._batches(names, BLOCK)

    def _batches(self, names: Sequence[str], block: int) -> Generator[pa.RecordBatch]:
        import pyarrow.csv

        parse = pyarrow.csv.ParseOptions(
            delimiter=self.look.delimiter,
            newlines_in_values=True,
            ignore_empty_lines=len(self.look.header) > 1,  # else it is a missing cell
        )
        convert = pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(self.look.header, pa.string()),
            include_columns=list(names),
            null_values=["", *self.missing],
            strings_can_be_null=True,
        )
        for path in self.paths:
            skipped = int(self.look.named)
            with pa.input_stream(str(path), compression=self.look.compression) as stream:
                for rows in _whole_rows(stream, self.look.delimiter, block):
                    read = pyarrow.csv.ReadOptions(
                        use_threads=False,
                        block_size=len(rows),
                        column_names=list(self.look.header),
                        skip_rows_after_names=skipped,
                    )
                    yield from pyarrow.csv.read_csv(pa.BufferReader(rows), read, parse, convert).to_batches()
                    skipped = 0


def _whole_rows(stream: Any, delimiter: str, size: int) -> Generator[memoryview]:
    """A CSV file in blocks of whole rows, about so many bytes; only as long as its quotes are around cells.

    A block is overwritten by the next one.
    """
    room, held, state = bytearray(size + 1), 0, 0  # a byte more: what ends with CR may go on with LF
    while True:
        got = stream.readinto(memoryview(room)[held:-1])
        if got and room[held + got - 1] == ord("\r"):
            got += stream.readinto(memoryview(room)[held + got : held + got + 1])
        data = np.frombuffer(room, dtype=np.uint8)[held : held + got]
        state, end = kernels.quoting(data, ord(delimiter), state)
        if state == STRANGE_QUOTE or (not got and state == QUOTED):
            raise StrangeError
        del data
        if not got:
            if held:
                yield memoryview(room)[:held]
            return
        if end:
            yield memoryview(room)[: held + end]
            room[: got - end] = room[held + end : held + got]
            held = got - end
        else:
            held += got
        if held >= len(room) // 2:  # a long row
            room = room[:held] + bytes(len(room))


@dataclass(frozen=True)
class TextLines:
    """Lines of JSON with the same keys, all of text; `held` are those of files that are not long."""

    paths: tuple[Path, ...]
    compression: str | None
    names: tuple[str, ...]
    rows: int
    held: tuple[pa.RecordBatch, ...] | None = None

    is_faster = True

    @property
    def first(self) -> pa.RecordBatch:
        return _one_of(self.batches(self.names))

    def batches(self, names: Sequence[str]) -> Generator[pa.RecordBatch]:
        schema = pa.schema([(name, pa.string()) for name in self.names])
        for batch in self.held or _json_batches(self.paths, self.compression, schema):
            yield batch.select(list(names))


def json_of_text(paths: Sequence[Path], compression: str | None) -> TextLines | None:
    """Files of lines whose values are all text, and none a date to anybody; None if these are not."""
    if any("=" in folder for path in paths for folder in path.absolute().parts[:-1]):  # which names a column
        return None
    short = compression is None and sum(path.stat().st_size for path in paths) <= HELD_BYTES
    held, rows = [], 0
    with suppress(*STRANGE):
        with closing(_json_batches(paths, compression, None)) as batches:
            first = _one_of(batches)
        names = first.schema.names
        if not names or len({name.lower() for name in names}) < len(names) or not all(map(_has_words, first.columns)):
            return None
        for batch in _json_batches(paths, compression, first.schema):
            rows += batch.num_rows
            held += [batch] if short else []
        return TextLines(tuple(paths), compression, tuple(names), rows, tuple(held) if short else None)
    return None


def _has_words(column: pa.Array) -> bool:
    return is_text(column.type) and bool(pc.any(pc.match_substring_regex(column, WORDS)).as_py())


def _json_batches(
    paths: Sequence[Path], compression: str | None, schema: pa.Schema | None
) -> Generator[pa.RecordBatch]:
    """The rows of lines of JSON; another key than those of the schema is an exception of Arrow."""
    import pyarrow.json

    if not hasattr(pyarrow.json, "open_json"):
        raise StrangeError
    unexpected = "infer" if schema is None else "error"
    parse = pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior=unexpected)
    read = pyarrow.json.ReadOptions(block_size=BLOCK)
    for path in paths:
        with pa.input_stream(str(path), compression=compression) as stream:
            yield from pyarrow.json.open_json(stream, read, parse)
