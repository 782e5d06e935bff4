"""Rows counted by an engine: none of them leaves it, but for the cells of columns that SQL cannot count."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from deciban.errors import Argument, DataError, warn_user
from deciban.families.base.sql_questions import Later
from deciban.fitting.engines.answers import CountingRun
from deciban.fitting.engines.asking import CHANGED, Classes, EngineRows
from deciban.fitting.engines.columns import Columns
from deciban.fitting.engines.hints import Hints
from deciban.fitting.engines.numbers import Numbers, reject_unusable
from deciban.fitting.engines.questions import GroupQuestions, NotInSql, Questions
from deciban.model.counts import Counts, Guard
from deciban.schema.schema import Schema
from deciban.sources.examples import LabelledStream
from deciban.sources.source import Source
from deciban.tables.labels import Labels
from deciban.util.progress import progress
from deciban.util.text_tables import listed

# Counts the rows of some columns under a schema of theirs, by reading them.
Read = Callable[[Schema, LabelledStream], Counts]


class Stopped(Exception):  # noqa: N818 - never leaves this module
    """An engine could not answer, because of what it found."""


def count_in_engine(schema: Schema, examples: LabelledStream, read: Read) -> Counts:
    """The counts of all rows under a schema, as reading them gives: discrete ones to the bit, moments to 1e-12.

    read: counts what SQL cannot.
    """
    try:
        classes, found = _asked(schema, examples, careful=False)
    except Stopped:  # perhaps by numbers that are more than the engine can add up
        classes, found = _asked(schema, examples, careful=True)
    rest = [place for place in range(len(schema.groups)) if place not in found]
    if rest:
        found |= _read(schema, rest, examples, classes, read)
    statistics = tuple(found[place] for place in range(len(schema.groups)))
    counts = Counts(schema, classes.labels, classes.weight, statistics, classes.rows, classes.unlabelled)
    return counts.without_empty_classes()


def _asked(schema: Schema, examples: LabelledStream, careful: bool) -> tuple[Classes, dict[int, Any]]:
    """The classes, and the statistics of the column groups that SQL can count, by their places in the schema."""
    guard = Guard(schema)
    made: dict[int, Later[Any]] = {}
    looking: set[int] = set()  # column groups that read numbers, which they may reject
    with examples.stream.sql() as rows, progress(f"counting in {rows.dialect.name}", "statements") as advance:

        def ask(query: str) -> pa.Table:
            try:
                answer = rows.ask(query)
            except DataError as problem:
                if careful:
                    raise
                raise Stopped from problem
            advance(1)
            return answer

        def refuse(found: Numbers) -> None:
            for place in sorted(looking):
                group = schema.groups[place]
                guard(place, reject_unusable, group.family, found, group.columns)

        careful = careful or rows.fragile
        asked, questions = EngineRows.of(replace(rows, ask=ask), examples, careful), Questions()
        columns = Columns.of(asked, schema)
        for place, group in enumerate(schema.groups):
            own = GroupQuestions(questions, columns)
            with suppress(NotInSql):
                if (later := group.family.count_in_sql(own, group.columns)) is not None:
                    made[place] = later
                    looking |= {place} if own.looks else set()
        run = CountingRun.of(asked, columns, questions, Hints.of(asked, schema))
        classes, questions.answers = run.answers(refuse)
    return classes, {place: guard(place, later) for place, later in made.items()}


def _read(
    schema: Schema, places: Sequence[int], examples: LabelledStream, classes: Classes, read: Read
) -> dict[int, Any]:
    """The statistics of other column groups, from rows of their columns alone."""
    groups = tuple(schema.groups[place] for place in places)
    names = {schema.column_name(column) for group in groups for column in group.columns}
    what = (
        "this column is read, for SQL cannot count it" if len(names) == 1 else "columns are read that SQL cannot count"
    )
    warn_user((Argument("where", "engine"), f": {what}: {listed(sorted(names))}"))
    stream = examples.stream
    if isinstance(stream, Source) and schema.names is not None:
        kept = names | {examples.target, examples.weight}
        stream = stream.without([name for name in stream.names if name not in kept])
    counts = read(replace(schema, groups=groups), replace(examples, stream=stream, where="here"))
    codes = Labels(counts.classes, np.arange(counts.classes.size, dtype=np.int32)).places_among(classes.labels)
    there = classes.weight > 0.0
    if counts.rows != classes.rows or not np.array_equal(np.sort(codes), np.flatnonzero(there)):
        raise DataError(CHANGED)
    return {p: one.place_classes(codes, there.size) for p, one in zip(places, counts.statistics, strict=True)}
