"""What a request brings: rows and options, from JSON, CSV or an Arrow stream."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from deciban.errors import DecibanError
from deciban.model.fitted import Fitted
from deciban.schema.schema import Schema
from deciban.serve.bodies.arrow_bodies import table_of_arrow
from deciban.serve.bodies.checks import (
    JSON_KINDS,
    LearnableRows,
    Record,
    checked_options,
    checked_weights,
    refuse_columns,
    refuse_other_columns,
    refuse_rows,
    refuse_unknown,
)
from deciban.serve.bodies.csv_bodies import table_of_csv
from deciban.serve.bodies.records import (
    RecordFrame,
    cells_of_column,
    labels_of_column,
    records_of_table,
    refuse_wrong_kinds,
    table_of_records,
)
from deciban.serve.bodies.strict_json import decoded_json, refuse_repeated_names
from deciban.serve.problems import Problem, RowPlace, place_of, problem_of
from deciban.serve.settings import RequestSettings
from deciban.tables.table import Frame
from deciban.util.arrays import Floats
from deciban.util.text_tables import list_names

JSON, CSV, ARROW_STREAM = "application/json", "text/csv", "application/vnd.apache.arrow.stream"
CONTENT_TYPES = (JSON, CSV, ARROW_STREAM)

# The parameters of the query that name the columns of a table in which options are.
COLUMN_PARAMETERS = {"ids": "id", "labels": "target", "weights": "weight"}


@dataclass(frozen=True)
class Body:
    """The rows of a request, as JSON has them or as a table, and what else it says of them.

    rows: None where there are none, which ids then stand for. first_row: the number that errors give the first row.
    body_bytes: how many there were.
    """

    rows: Sequence[Record] | pa.Table | None
    options: dict[str, Any] = field(default_factory=dict)
    first_row: int = 0
    body_bytes: int = 0

    @property
    def size(self) -> int:
        """The number of rows."""
        if self.rows is None:
            return len(self.options.get("ids", ()))
        return int(self.rows.num_rows) if isinstance(self.rows, pa.Table) else len(self.rows)

    @property
    def ids(self) -> list[str] | None:
        """The id of each row, if they have any."""
        found: list[str] | None = self.options.get("ids")
        return found

    def table(self, schema: Schema) -> Frame:
        """The rows with the columns of the model, as it reads them; a Problem that names the cell that it cannot."""
        if not isinstance(self.rows, pa.Table):
            records = table_of_records(schema, self.rows or (), strict=True)
            if isinstance(records, RecordFrame) and not records.whole:
                self._refuse_strange_rows(schema)
            return records
        with cells_are_read(self.first_row):
            refuse_other_columns(self.rows, schema.column_types)
            found = schema.table_as_learned(Frame(self.rows, schema.names is not None), self.first_row)
        assert isinstance(found, Frame), "it was one"
        return found

    def _refuse_strange_rows(self, schema: Schema) -> None:
        """A Problem where rows have columns, but none that the model knows; one without any is one of missing cells."""
        known = frozenset(schema.names or ())
        strange: dict[str, None] = {}
        for record in self.rows or ():
            if isinstance(record, dict):
                if not known.isdisjoint(record):
                    return
                strange.update(dict.fromkeys(list(record)[:10]))
        if strange:
            cause = f"none of the model's columns is in the rows: they have {list_names(list(strange), 6)}"
            raise Problem(422, cause, f"the model knows {list_names(schema.names or (), 6)}", "rows")

    def unknown(self, schema: Schema, table: Frame) -> list[str]:
        """The names of columns that the model does not know, in their order. table: what was made of the rows."""
        if schema.names is None:
            return []
        if isinstance(table, RecordFrame) and table.whole:
            width = table.width
            if all(len(record) == width for record in self.rows or ()):
                return []
        known = frozenset(schema.names)
        if isinstance(self.rows, pa.Table):
            return [name for name in self.rows.column_names if name not in known]
        extra: dict[str, None] = {}
        for record in self.rows or ():
            if isinstance(record, dict) and not record.keys() <= known:
                extra.update(dict.fromkeys(name for name in record if name not in known))
        return list(extra)

    def records(self, schema: Schema) -> list[Any]:
        """The rows as JSON has them, cells that the model knows as it learned to read them; a Problem where one of
        them is of another kind."""
        if isinstance(self.rows, pa.Table):
            with cells_are_read(self.first_row):
                refuse_other_columns(self.rows, schema.column_types)
                found = schema.cells_as_learned(Frame(self.rows), self.first_row)
                assert isinstance(found, Frame), "it was one"
                records = records_of_table(found.table)
            return records if schema.names is not None else [list(record.values()) for record in records]
        return list(self.rows or ())

    def learnable(self, fitted: Fitted) -> LearnableRows:
        """Return the rows to learn, checked, with the columns of labels and weights apart; a Problem otherwise."""
        labels, weights = self.options.get("labels"), self.options.get("weights")
        if self.rows is None:
            assert self.ids is not None, "a body has rows or ids"
            if labels is None:
                raise Problem(422, "there are ids without labels", 'send {"ids": [...], "labels": [...]}', "labels")
            if weights is not None:
                raise Problem(422, "there are weights without rows", "leave them out, or send the rows", "weights")
            return LearnableRows(None, labels, self.ids, [1.0] * len(self.ids))
        target, weight = fitted.origin.target, fitted.origin.weight
        records = self.records(fitted.schema)
        if labels is not None:
            _refuse_again(records, target, "labels")
        elif target is None:
            raise Problem(422, "there are no labels", "send labels, one for each row", "labels")
        else:
            records, labels = _taken_out(records, target, "labels")
        if weights is not None:
            _refuse_again(records, weight, "weights")
        elif weight is not None and _has(records, weight):
            records, weights = _taken_out(records, weight, "weights")
            weights = checked_weights(weights)
        if not isinstance(self.rows, pa.Table):
            refuse_wrong_kinds(fitted.counts.schema, records)
        return LearnableRows(records, labels, self.ids or [None] * len(records), weights or [1.0] * len(records))

    def forgettable(self, fitted: Fitted) -> LearnableRows:
        """Return the rows to forget, checked: by their ids alone, or as they were learned; a Problem otherwise."""
        if self.rows is not None:
            if self.ids is not None:
                raise Problem(422, "there are rows and ids", "send either ids, or rows with their labels", "ids")
            return self.learnable(fitted)
        if self.ids is None or "labels" in self.options or "weights" in self.options:
            remedy = "send the ids alone, or rows with their labels"
            raise Problem(422, "there are ids, and labels or weights", remedy, "labels")
        return LearnableRows(None, (), self.ids, ())

    def numbers(self, name: str) -> Floats:
        """The numbers in a column of this name, which need not be known to the model."""
        try:
            if isinstance(self.rows, pa.Table):
                return Frame(self.rows).numbers([self.rows.column_names.index(name)])[:, 0]
            cells = [row[name] for row in self.rows or ()]  # type: ignore[call-overload]  # a list has no names
            if not all(type(cell) in (int, float) for cell in cells):
                raise TypeError("no number")
            return np.array(cells, dtype=np.float64)
        except (KeyError, IndexError, TypeError, ValueError, OverflowError, DecibanError):
            remedy = "send a number for each row in this column, or a number as the cost"
            raise Problem(422, f"a cost is {name!r}, which is no column of numbers", remedy, "costs") from None


def _refuse_again(records: list[Any], name: str | None, what: str) -> None:
    """A Problem where a row has the column of the labels, or weights, that the request has beside its rows."""
    if name is None:
        return
    for row, record in enumerate(records):
        if isinstance(record, dict) and name in record:
            raise Problem(422, f"the row holds the column of the {what} too", f"send {what} once", place_of(row, name))


def _has(records: list[Any], name: str) -> bool:
    return any(isinstance(record, dict) and name in record for record in records)


def _taken_out(records: list[Any], name: str, what: str) -> tuple[list[Any], list[Any]]:
    """The records without a column, and its cells."""
    left, cells = [], []
    for row, record in enumerate(records):
        if not isinstance(record, dict) or name not in record:
            remedy = f"send {what}, or the column {name!r} in each row"
            raise Problem(422, f"the row has no {name!r}", remedy, RowPlace(row))
        left.append({other: cell for other, cell in record.items() if other != name})
        cells.append(record[name])
    return left, cells


@contextmanager
def cells_are_read(first_row: int = 0) -> Iterator[None]:
    """Turn errors of the engine, and those of cells that Python or Arrow cannot hold, into problems of the request."""
    try:
        yield
    except DecibanError as error:
        raise problem_of(error, first_row) from None
    except (pa.ArrowException, OverflowError, ValueError):
        raise Problem(422, "some cells cannot be read", "send numbers and dates of usual size", "rows") from None


def read_body(
    body: bytes,
    content_type: str,
    query: Mapping[str, str],
    fitted: Fitted,
    settings: RequestSettings,
    allowed: Sequence[str],
) -> Body:
    """The rows and options of a request; a Problem where they cannot be read. allowed: the options that it may have."""
    if content_type == JSON:
        return _read_json(body, settings, allowed)
    columns = _columns_of_options(query, fitted, allowed)
    with cells_are_read():
        if content_type == CSV:
            weight = columns.get("weights")
            numbers = () if weight is None else (weight,)
            table = table_of_csv(body, fitted, settings, columns.get("labels"), numbers)
        else:
            table = table_of_arrow(body, settings)
        refuse_rows(table.num_rows, settings)
        refuse_columns(table.num_columns, settings)
        size = table.num_rows
        table, options = _taken_apart(table, columns, query)
    options = checked_options(options, size, settings)
    by_ids = "ids" in options and "labels" in allowed and not table.num_columns  # rows that are known already
    return Body(None if by_ids else table, options, 1 if content_type == CSV else 0, len(body))


def _columns_of_options(query: Mapping[str, str], fitted: Fitted, allowed: Sequence[str]) -> dict[str, str]:
    """The columns of a table that hold ids, labels and weights, as the query names them, or else the model does."""
    for option, name in COLUMN_PARAMETERS.items():
        if name in query and option not in allowed:
            known = [COLUMN_PARAMETERS[one] for one in allowed if one in COLUMN_PARAMETERS]
            raise refuse_unknown(name, f"query.{name}", [f"?{one}=" for one in known])
    own = {"labels": fitted.origin.target, "weights": fitted.origin.weight}
    found = {option: query.get(name, own.get(option)) for option, name in COLUMN_PARAMETERS.items()}
    return {option: column for option, column in found.items() if column is not None and option in allowed}


def _taken_apart(
    table: pa.Table, columns: Mapping[str, str], query: Mapping[str, str]
) -> tuple[pa.Table, dict[str, Any]]:
    """The table without the columns of options, and these."""
    options: dict[str, Any] = {}
    taken = []
    for option, column in columns.items():
        name = COLUMN_PARAMETERS[option]
        if column in table.column_names:
            options[option] = (labels_of_column if option == "labels" else cells_of_column)(table[column], option)
            taken.append(column)
        elif name in query:
            raise Problem(422, f"there is no column {column!r}", "name a column of the table", f"query.{name}")
    return table.drop_columns(list(dict.fromkeys(taken))), options


def _read_json(body: bytes, settings: RequestSettings, allowed: Sequence[str]) -> Body:
    value = decoded_json(body)
    rows, options = _rows_and_options(value, allowed)
    widest = 0
    objects = [value] if type(value) is dict else []
    for row, record in enumerate(rows or ()):
        if type(record) is dict:
            objects.append(record)
        elif type(record) is not list:
            found = JSON_KINDS.get(type(record), "null")
            raise Problem(422, f"found {found}, expected a row", "send {column: value, ...}", f"rows[{row}]")
        widest = max(widest, len(record))
    refuse_rows(len(rows or ()), settings)
    refuse_columns(widest, settings)
    refuse_repeated_names(body, value, objects)
    return Body(rows, checked_options(options, None if rows is None else len(rows), settings), 0, len(body))


def _rows_and_options(value: Any, allowed: Sequence[str]) -> tuple[list[Any] | None, dict[str, Any]]:
    if type(value) is list:
        return value, {}
    if type(value) is not dict:
        found = JSON_KINDS.get(type(value), "null")
        raise Problem(
            422, f"found {found}, expected rows", 'send [{column: value, ...}] or {"rows": [...]}', "the body"
        )
    options = dict(value)
    rows = options.pop("rows", None)
    unknown = [name for name in options if name not in allowed]
    if unknown and rows is None and "ids" not in options:
        remedy = "send a list, [{column: value, ...}], also for one row"
        raise Problem(422, "found an object, expected a list of rows", remedy, "the body")
    if unknown:
        raise refuse_unknown(unknown[0], unknown[0][:80], ("rows", *allowed))
    by_ids = "ids" in options and "labels" in allowed  # rows that are known already
    if type(rows) is not list and ("rows" in value or not by_ids):
        remedy = 'send [{column: value, ...}] or {"rows": [{column: value, ...}]}'
        raise Problem(422, "there is no list of rows", remedy, "rows")
    return rows, options
