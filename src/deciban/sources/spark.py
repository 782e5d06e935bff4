"""Spark tables as a source: rows are counted and scored on the executors, and only results are collected.

No other module uses Spark. It is recognized by its package name, and imported only if the user has imported it. Only
DataFrames are used, so everything works with Spark Connect.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import uuid4

import pyarrow as pa

from deciban.errors import Argument, DataError, DecibanError, Place, UsageError
from deciban.sources.dialects import SPARK
from deciban.sources.source import Source, SqlRows, Work, duplicate_column_error
from deciban.tables.row_sampling import LONG_ROWS, rows_that_fit
from deciban.tables.table import map_columns
from deciban.util.progress import Advance
from deciban.util.text_tables import find_duplicate

# Result of a task: partition number, and the result or the error.
ANSWER = pa.schema([("part", pa.int32()), ("content", pa.binary()), ("error", pa.binary())])
ANSWER_IN_SPARK = "part int, content binary, error binary"

# If at least this share of the rows is distinct, they are sampled by their hash alone.
MOSTLY_DIFFERENT = 0.9

# Factor for the number of rows with a low hash, so that there are enough.
MORE_BY_CHANCE = 1.1

# Minimum number of rows in a table of merged batches: Spark's batches are short.
ROWS_TOGETHER = 1 << 16

# Binary collation: only identical texts are equal.
BYTEWISE = "UTF8_BINARY"

# Unsupported types of Spark (prefixes of their names).
UNREADABLE_IN_SPARK = ("array", "map", "struct", "binary", "variant", "void", "interval", "day", "year", "geo", "udt")

# Spark's types for added columns, by Arrow type.
ADDED_TYPES = {
    "int8": "byte",
    "int16": "short",
    "int32": "integer",
    "int64": "long",
    "float": "float",
    "double": "double",
    "string": "string",
    "bool": "boolean",
    "date32[day]": "date",
    "timestamp[us]": "timestamp_ntz",
}


@dataclass(frozen=True)
class SparkRows(Source):
    """Rows of a Spark DataFrame."""

    frame: Any = field(default=None, compare=False)

    @classmethod
    def of(cls, frame: Any) -> "SparkRows":
        """Open a DataFrame; raise a DataError for a duplicate column."""
        if (twice := find_duplicate(frame.columns)) is not None:
            raise duplicate_column_error(twice)
        return cls("the Spark table", tuple(frame.columns), frame=frame)

    @property
    def elsewhere(self) -> bool:
        return True

    def head(self, rows: int) -> pa.Table:
        with translate_spark_errors():
            return collect(self._selected.limit(rows))

    def tables(self) -> Iterator[pa.Table]:
        sent = _number_columns(self._selected).mapInArrow(send, ANSWER_IN_SPARK)
        none = True
        with translate_spark_errors():
            for answer in sent.toLocalIterator(prefetchPartitions=True):
                none = False
                yield _read_sent_table(answer, self.names)
        if none:
            yield _no_rows(self.names)

    def sample(self, max_rows: int, advance: Advance, labels: Sequence[str] = ()) -> tuple[pa.Table, int]:
        """Draw rows by their content, independent of partitioning."""
        from pyspark.sql import functions

        hashed = _find_unused_name("hash", self.names)
        cells = [functions.col(SPARK.quote_name(name)) for name in self.names]
        holes = [cell.isNull() for cell in cells]  # a hash skips missing cells
        drawn = self._selected.withColumn(hashed, functions.xxhash64(*cells, *holes))
        with translate_spark_errors():
            rows, different = drawn.agg(functions.count("*"), functions.approx_count_distinct(hashed)).first()
            advance(rows)
            if rows > LONG_ROWS:
                max_rows = rows_that_fit(max_rows, self.head(LONG_ROWS).nbytes / LONG_ROWS)
            if rows <= max_rows:
                return collect(self._selected), rows
            if different >= MOSTLY_DIFFERENT * rows:
                low = drawn.filter(functions.col(hashed) < _lowest(MORE_BY_CHANCE * max_rows / rows))
                return collect(low.orderBy(hashed).limit(max_rows).drop(hashed)), rows
            return collect(_some_of_each(drawn, hashed, self.names, max_rows / rows)), rows

    def each_part(self, work: Work) -> Iterator[bytes]:
        answers = _number_columns(self._selected).mapInArrow(WorkOnPart(work, self.names), ANSWER_IN_SPARK)
        with translate_spark_errors():
            found = sorted(answers.collect(), key=lambda answer: answer.part)
        for answer in found:
            if answer.error is not None:
                raise pickle.loads(answer.error)
        return (bytes(answer.content) for answer in found)

    @contextmanager
    def sql(self) -> Iterator[SqlRows]:
        """Return the rows in Spark SQL; executors do not need this package."""
        session, view = self.frame.sparkSession, f"deciban_{uuid4().hex}"
        _number_columns(self._selected).createOrReplaceTempView(view)  # statements contain no user names
        try:
            columns = {name: self._bytewise(name, f"c{k}") for k, name in enumerate(self.names)}
            yield SqlRows.of(SPARK, SPARK.identifier(view), columns, partial(_answer, session))
        finally:
            session.catalog.dropTempView(view)

    def _bytewise(self, name: str, column: str) -> str:
        """Return a column in SQL with binary collation."""
        collation = getattr(
            self.frame.schema[name].dataType, "collation", BYTEWISE
        )  # texts have collations since Spark 4
        return column if collation == BYTEWISE else f"collate({column}, '{BYTEWISE}')"

    def add_columns(self, work: Callable[[pa.Table], pa.Table]) -> Any:
        """Return the DataFrame with more columns, computed by `work` for each piece."""
        from pyspark.sql.types import StructType

        schema = StructType(list(self.frame.schema.fields))
        for added in _as_spark_has(work(_no_rows(self.frame.columns))).schema:
            schema = schema.add(added.name, ADDED_TYPES[str(added.type)])
        return _number_columns(self.frame).mapInArrow(AddColumns(work, tuple(self.frame.columns)), schema)

    @property
    def _selected(self) -> Any:
        """DataFrame with the columns that are read; raises a DataError for an unsupported type."""
        kinds = {one.name: one.dataType.typeName() for one in self.frame.schema.fields}
        for name in self.names:
            if kinds[name].startswith(UNREADABLE_IN_SPARK):
                message = f"unsupported type {kinds[name]}"
                remedy = "convert it to text or numbers, or select other columns"
                raise DataError(message, place=Place(column=name), remedy=remedy)
        return self.frame.select(*map(SPARK.quote_name, self.names))


@dataclass(frozen=True)
class WorkOnPart:
    """Task for one partition: run `work` and return its result. names: names of the columns."""

    work: Work
    names: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        part, content, error = part_number(), None, None
        try:
            content = self.work(_merge_batches(batches, self.names))
        except DecibanError as problem:  # caused by the rows: a retry would not help
            error = pickle.dumps(problem.add_place(source=f"the Spark table, part {part}"))
        yield pa.RecordBatch.from_pylist([{"part": part, "content": content, "error": error}], ANSWER)


@dataclass(frozen=True)
class AddColumns:
    """Task that adds columns to rows. names: names of the columns."""

    work: Callable[[pa.Table], pa.Table]
    names: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in _merge_batches(batches, self.names):
            added = _as_spark_has(self.work(table))
            whole = pa.table([*table.columns, *added.columns], names=[*table.column_names, *added.column_names])
            yield from whole.combine_chunks().to_batches()


def send(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches serialized as bytes."""
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        content = sink.getvalue().to_pybytes()
        yield pa.RecordBatch.from_pylist([{"part": part_number(), "content": content, "error": None}], ANSWER)


def part_number() -> int:
    """Return the partition number of this task."""
    from pyspark import TaskContext

    task = TaskContext.get()
    assert task is not None, "a task runs this"
    return int(task.partitionId())


def _answer(session: Any, query: str) -> pa.Table:
    """Return the result of a Spark SQL query."""
    try:
        return collect(session.sql(query))
    except Exception as problem:
        if not type(problem).__module__.startswith(("pyspark.", "py4j.")):
            raise
        message = str(problem).strip().partition("\n")[0]
        remedy = ("fix the rows, or leave ", Argument("pushdown"), " out")
        raise DataError(f"Spark cannot count these rows: {message}", remedy=remedy) from problem


def collect(frame: Any) -> pa.Table:
    """Return all rows of a DataFrame."""
    if hasattr(frame, "toArrow"):  # since Spark 4
        return frame.toArrow()
    sent = _number_columns(frame).mapInArrow(send, ANSWER_IN_SPARK).collect()
    return (
        pa.concat_tables(_read_sent_table(answer, frame.columns) for answer in sent)
        if sent
        else _no_rows(frame.columns)
    )


@contextmanager
def translate_spark_errors() -> Iterator[None]:
    """Translate Spark's error for executors without this package."""
    try:
        yield
    except DecibanError:
        raise
    except Exception as problem:
        if "No module named 'deciban'" not in str(problem):
            raise
        raise UsageError(
            "deciban is not installed on Spark's executors",
            place=Place("the Spark table"),
            remedy=(
                "install it there (or ship it with spark.archives), or count by SQL with ",
                Argument("pushdown", True),
                " and without text columns",
            ),
        ) from problem


def _number_columns(frame: Any) -> Any:
    """Rename columns to c0, c1 ...: Spark does not pass names with dots or quotes to Arrow."""
    return frame.toDF(*(f"c{k}" for k in range(len(frame.columns))))


def _merge_batches(batches: Iterable[pa.RecordBatch], names: tuple[str, ...]) -> Iterator[pa.Table]:
    """Yield the rows of batches in fewer tables, with these column names."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(one.num_rows for one in held) >= ROWS_TOGETHER:
            yield pa.Table.from_batches(held).rename_columns(list(names))
            held = []
    if held:
        yield pa.Table.from_batches(held).rename_columns(list(names))


def _as_spark_has(table: pa.Table) -> pa.Table:
    """Convert types that Spark does not have to text."""
    return map_columns(table, lambda column: column if str(column.type) in ADDED_TYPES else column.cast(pa.string()))


def _some_of_each(drawn: Any, hashed: str, names: Iterable[str], share: float) -> Any:
    """Return a share of the rows if many are equal: for each hash its share, rounded by a second hash."""
    from pyspark.sql import functions as F  # noqa: N812 - Spark's convention

    lot = F.shiftrightunsigned(F.xxhash64(hashed, F.lit(1)), 11) / F.lit(2.0**53)
    times = _find_unused_name("times", names)
    counted = drawn.groupBy(hashed).agg(F.floor(F.count("*") * share + lot).cast("int").alias(times))
    kept = F.broadcast(counted.filter(F.col(times) > 0))
    rows = drawn.join(kept, hashed).groupBy(hashed).agg(
        F.first(F.struct(*map(SPARK.quote_name, names))).alias("row"), F.first(times).alias(times)
    )  # fmt: skip
    return rows.orderBy(hashed).select(F.explode(F.array_repeat("row", F.col(times))).alias("row")).select("row.*")


def _lowest(share: float) -> int:
    """Return the hash below which this share of all hashes lies."""
    return min(int(share * 2.0**64) - (1 << 63), (1 << 63) - 1)


def _read_sent_table(answer: Any, names: Iterable[str]) -> pa.Table:
    return pa.ipc.open_stream(bytes(answer.content)).read_all().rename_columns(list(names))


def _no_rows(names: Iterable[str]) -> pa.Table:
    """Return a table without rows, and so without types."""
    return pa.table({name: pa.nulls(0) for name in names})


def _find_unused_name(name: str, taken: Iterable[str]) -> str:
    """Return a name that no column has, ignoring case."""
    known = {one.lower() for one in taken}
    while name in known:
        name += "_"
    return name
