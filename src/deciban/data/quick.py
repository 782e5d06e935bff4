"""Files that Arrow reads faster than DuckDB, and as well: CSV and lines of JSON of nothing but text.

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

from deciban.data.dialect import GLANCE_BYTES, Look
from deciban.data.text_types import text_type

# Bytes of a file of text that are read at a time; a line of JSON has to fit into them.
BLOCK = 12 << 20

# Bytes of lines of JSON that are kept when they have been looked at.
HELD_BYTES = 1 << 26

# Whatever has such a letter is no number to DuckDB, and no date or time but for these words.
WORDS = "[g-su-yG-SU-Y]"
DATES = r"^(?i:\s*[-+]?(epoch|infinity)\s*)$"


class StrangeError(Exception):
    """The file is none of those that are read here."""


# What is raised where DuckDB has to be asked.
STRANGE = (StrangeError, pa.ArrowException, OSError, UnicodeDecodeError)


class Quick(Protocol):
    """A way to read files without DuckDB."""

    @property
    def first(self) -> pa.RecordBatch:
        """Some of the first rows, with all columns."""
        ...

    def batches(self, names: Sequence[str]) -> Generator[pa.RecordBatch]:
        """The rows with these columns; StrangeError, or an exception of Arrow, where DuckDB has to be asked."""
        ...


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
    from deciban.kernels.quotes import LINE, QUOTED, WRONG, quoting

    room, held, state = bytearray(size + 1), 0, LINE  # a byte more: what ends with CR may go on with LF
    while True:
        got = stream.readinto(memoryview(room)[held:-1])
        if got and room[held + got - 1] == ord("\r"):
            got += stream.readinto(memoryview(room)[held + got : held + got + 1])
        data = np.frombuffer(room, dtype=np.uint8)[held : held + got]
        state, end = quoting(data, ord(delimiter), state)
        if state == WRONG or (not got and state == QUOTED):
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

    @property
    def first(self) -> pa.RecordBatch:
        return _one_of(self.batches(self.names))

    def batches(self, names: Sequence[str]) -> Generator[pa.RecordBatch]:
        schema = pa.schema([(name, pa.string()) for name in self.names])
        for batch in self.held or _json_batches(self.paths, self.compression, schema):
            yield batch.select(list(names))


def json_of_text(paths: Sequence[Path], compression: str | None) -> TextLines | None:
    """Files of lines whose values are all text, and none a date to anybody; None if these are not."""
    if in_named_folders(paths):
        return None
    short = compression is None and sum(path.stat().st_size for path in paths) <= HELD_BYTES
    held, rows = [], 0
    with suppress(*STRANGE):
        with closing(_json_batches(paths, compression, None)) as batches:
            first = _one_of(batches)
        names = first.schema.names
        different = len({name.lower() for name in names}) == len(names)
        if not names or not all(names) or not different or not all(map(_has_words, first.columns)):
            return None
        for batch in _json_batches(paths, compression, first.schema):
            rows += batch.num_rows
            held += [batch] if short else []
        return TextLines(tuple(paths), compression, tuple(names), rows, tuple(held) if short else None)
    return None


def _has_words(column: pa.Array) -> bool:
    if not pa.types.is_string(column.type):
        return False
    words = pc.and_not(pc.match_substring_regex(column, WORDS), pc.match_substring_regex(column, DATES))
    return bool(pc.any(words).as_py())


def in_named_folders(paths: Sequence[Path]) -> bool:
    """Whether the name of a folder, such as year=2024, is a column of its files."""
    return any("=" in folder for path in paths for folder in path.absolute().parts[:-1])


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
            for batch in pyarrow.json.open_json(stream, read, parse):
                batch.validate(full=True)  # Arrow has not looked whether it is UTF-8
                yield batch
