"""Tables of Spark as a stream: rows are counted and scored where they are, and what is made of them comes here.

Nobody else knows Spark. It is recognized by the name of its package, and imported only where a user has imported it
before. Only DataFrames are used, so that all of it works over Spark Connect too.
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
from deciban.tables.table import find_duplicate, map_columns
from deciban.util.progress import Advance

# What a task answers: the number of its part of the rows, and what it made of them or the error that stopped it.
ANSWER = pa.schema([("part", pa.int32()), ("content", pa.binary()), ("error", pa.binary())])
ANSWER_IN_SPARK = "part int, content binary, error binary"

# Where so large a share of the rows are different from all others, they are sampled by a hash of each alone.
MOSTLY_DIFFERENT = 0.9

# How many more rows have a low hash than are wanted, lest there be too few by chance.
MORE_BY_CHANCE = 1.1

# Batches of Spark, which are short, that are handed on as one table.
ROWS_TOGETHER = 1 << 16

# The collation by which texts are equal only if they are the same.
BYTEWISE = "UTF8_BINARY"

# Types of Spark that no family reads, and Spark's names for the types of what is added to rows.
UNREADABLE_IN_SPARK = ("array", "map", "struct", "binary", "variant", "void", "interval", "day", "year", "geo", "udt")
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
    """The rows of a Spark DataFrame."""

    frame: Any = field(default=None, compare=False)

    @classmethod
    def of(cls, frame: Any) -> "SparkRows":
        """A DataError where two columns have one name."""
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
        """Rows that are drawn by what they hold: how Spark has dealt them out to its parts does not matter."""
        from pyspark.sql import functions

        hashed = _find_unused_name("hash", self.names)
        cells = [functions.col(SPARK.quote_name(name)) for name in self.names]
        holes = [cell.isNull() for cell in cells]  # a hash passes over missing cells, wherever they are
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
        """The rows as Spark SQL has them: its executors need nothing of this package."""
        session, view = self.frame.sparkSession, f"deciban_{uuid4().hex}"
        _number_columns(self._selected).createOrReplaceTempView(view)  # no name of the user's stands in a statement
        try:
            columns = {name: self._bytewise(name, f"c{k}") for k, name in enumerate(self.names)}
            yield SqlRows.of(SPARK, SPARK.identifier(view), columns, partial(_answer, session))
        finally:
            session.catalog.dropTempView(view)

    def _bytewise(self, name: str, column: str) -> str:
        """A column by the name that it has in SQL, in which texts are equal only if they are the same."""
        collation = getattr(self.frame.schema[name].dataType, "collation", BYTEWISE)  # of texts, since Spark 4
        return column if collation == BYTEWISE else f"collate({column}, '{BYTEWISE}')"

    def add_columns(self, work: Callable[[pa.Table], pa.Table]) -> Any:
        """The DataFrame with columns behind its own: those that `work` makes of each piece of it."""
        from pyspark.sql.types import StructType

        schema = StructType(list(self.frame.schema.fields))
        for added in _as_spark_has(work(_no_rows(self.frame.columns))).schema:
            schema = schema.add(added.name, ADDED_TYPES[str(added.type)])
        return _number_columns(self.frame).mapInArrow(AddColumns(work, tuple(self.frame.columns)), schema)

    @property
    def _selected(self) -> Any:
        """The DataFrame with the columns that are read; a DataError that names one which no family can read."""
        kinds = {one.name: one.dataType.typeName() for one in self.frame.schema.fields}
        for name in self.names:
            if kinds[name].startswith(UNREADABLE_IN_SPARK):
                said = f"it holds {kinds[name]}, which no family reads"
                remedy = "turn it into text or numbers, or select the other columns"
                raise DataError(said, place=Place(column=name), remedy=remedy)
        return self.frame.select(*map(SPARK.quote_name, self.names))


@dataclass(frozen=True)
class WorkOnPart:
    """What a task does with its part of the rows: `work`, and answer what that makes of them. names: of the columns."""

    work: Work
    names: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        part, content, error = part_number(), None, None
        try:
            content = self.work(_merge_batches(batches, self.names))
        except DecibanError as problem:  # of the rows: to try again would not help
            error = pickle.dumps(problem.about(source=f"the Spark table, part {part}"))
        yield pa.RecordBatch.from_pylist([{"part": part, "content": content, "error": error}], ANSWER)


@dataclass(frozen=True)
class AddColumns:
    """What a task does with rows that are to have more columns than these."""

    work: Callable[[pa.Table], pa.Table]
    names: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in _merge_batches(batches, self.names):
            added = _as_spark_has(self.work(table))
            whole = pa.table([*table.columns, *added.columns], names=[*table.column_names, *added.column_names])
            yield from whole.combine_chunks().to_batches()


def send(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches as bytes, which Spark hands out one after the other."""
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        content = sink.getvalue().to_pybytes()
        yield pa.RecordBatch.from_pylist([{"part": part_number(), "content": content, "error": None}], ANSWER)


def part_number() -> int:
    """The number of the part of the rows that this task has."""
    from pyspark import TaskContext

    task = TaskContext.get()
    assert task is not None, "a task runs this"
    return int(task.partitionId())


def _answer(session: Any, query: str) -> pa.Table:
    """The answer of Spark SQL to a query."""
    try:
        return collect(session.sql(query))
    except Exception as problem:
        if not type(problem).__module__.startswith(("pyspark.", "py4j.")):
            raise
        said = str(problem).strip().partition("\n")[0]
        remedy = ("correct the rows, or leave ", Argument("pushdown"), " out")
        raise DataError(f"Spark cannot count these rows: {said}", remedy=remedy) from problem


def collect(frame: Any) -> pa.Table:
    """All rows of a DataFrame, here."""
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
    """While it lasts, an error of Spark for want of this package is one that says so."""
    try:
        yield
    except DecibanError:
        raise
    except Exception as problem:
        if "No module named 'deciban'" not in str(problem):
            raise
        raise UsageError(
            "Spark's executors have no deciban",
            place=Place("the Spark table"),
            remedy=(
                "install it there (or send it with spark.archives), or count by SQL alone with ",
                Argument("pushdown", True),
                " and without columns of texts",
            ),
        ) from problem


def _number_columns(frame: Any) -> Any:
    """A DataFrame whose columns are called c0, c1 ...: Spark hands none with dots or quotes in its name to Arrow."""
    return frame.toDF(*(f"c{k}" for k in range(len(frame.columns))))


def _merge_batches(batches: Iterable[pa.RecordBatch], names: tuple[str, ...]) -> Iterator[pa.Table]:
    """The rows of batches, in fewer tables, whose columns have these names."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(one.num_rows for one in held) >= ROWS_TOGETHER:
            yield pa.Table.from_batches(held).rename_columns(list(names))
            held = []
    if held:
        yield pa.Table.from_batches(held).rename_columns(list(names))


def _as_spark_has(table: pa.Table) -> pa.Table:
    """The same, with text where Spark has no such type."""
    return map_columns(table, lambda column: column if str(column.type) in ADDED_TYPES else column.cast(pa.string()))


def _some_of_each(drawn: Any, hashed: str, names: Iterable[str], share: float) -> Any:
    """A share of the rows where many are alike: of those with one hash as many as the share says, and one more or
    less by what a second hash says."""
    from pyspark.sql import functions as F  # noqa: N812 - as all who use Spark call it

    lot = F.shiftrightunsigned(F.xxhash64(hashed, F.lit(1)), 11) / F.lit(2.0**53)
    times = _find_unused_name("times", names)
    counted = drawn.groupBy(hashed).agg(F.floor(F.count("*") * share + lot).cast("int").alias(times))
    kept = F.broadcast(counted.filter(F.col(times) > 0))
    rows = drawn.join(kept, hashed).groupBy(hashed).agg(
        F.first(F.struct(*map(SPARK.quote_name, names))).alias("row"), F.first(times).alias(times)
    )  # fmt: skip
    return rows.orderBy(hashed).select(F.explode(F.array_repeat("row", F.col(times))).alias("row")).select("row.*")


def _lowest(share: float) -> int:
    """The hash below which this share of all hashes lies."""
    return min(int(share * 2.0**64) - (1 << 63), (1 << 63) - 1)


def _read_sent_table(answer: Any, names: Iterable[str]) -> pa.Table:
    return pa.ipc.open_stream(bytes(answer.content)).read_all().rename_columns(list(names))


def _no_rows(names: Iterable[str]) -> pa.Table:
    """A table of columns without rows, and so without types."""
    return pa.table({name: pa.nulls(0) for name in names})


def _find_unused_name(name: str, taken: Iterable[str]) -> str:
    """A name that none of the columns has, whether or not capitals count."""
    known = {one.lower() for one in taken}
    while name in known:
        name += "_"
    return name
