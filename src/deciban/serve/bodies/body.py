"""Rows and options of a request, from JSON, CSV or an Arrow stream."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from deciban.errors import DecibanError
from deciban.model.fitted import Fitted
from deciban.schema.schema import Schema
from deciban.serve.bodies.arrow_bodies import read_arrow
from deciban.serve.bodies.checks import (
    JSON_KINDS,
    LearnableRows,
    Record,
    check_column_count,
    check_options,
    check_row_count,
    check_text_columns,
    check_weights,
    reject_property,
)
from deciban.serve.bodies.csv_bodies import read_csv
from deciban.serve.bodies.records import (
    RecordFrame,
    check_record_types,
    column_to_cells,
    column_to_labels,
    records_to_table,
    table_to_records,
)
from deciban.serve.bodies.strict_json import check_repeated_names, decode_json
from deciban.serve.problems import Problem, RowPlace, cell_place, to_problem
from deciban.serve.settings import RequestSettings
from deciban.tables.table import Frame
from deciban.util.arrays import Floats
from deciban.util.text_tables import list_names

JSON = "application/json"
CSV = "text/csv"
ARROW_STREAM = "application/vnd.apache.arrow.stream"

# Supported content types.
CONTENT_TYPES = (JSON, CSV, ARROW_STREAM)

# Maximum number of cells and of characters of a row that an error repeats.
MAX_SHOWN_CELLS, MAX_SHOWN_ROW = 20, 200

# Query parameters that name the columns with options.
COLUMN_PARAMETERS = {"ids": "id", "labels": "target", "weights": "weight"}


@dataclass(frozen=True)
class Body:
    """Rows of a request, as JSON records or as a table, with options.

    rows: None if ids stand for them. first_row: number of the first row in error messages. body_bytes: size of the
    body.
    """

    rows: Sequence[Record] | pa.Table | None
    options: dict[str, Any] = field(default_factory=dict)
    first_row: int = 0
    body_bytes: int = 0

    @property
    def size(self) -> int:
        """Number of rows."""
        if self.rows is None:
            return len(self.options.get("ids", ()))
        return int(self.rows.num_rows) if isinstance(self.rows, pa.Table) else len(self.rows)

    @property
    def ids(self) -> list[str] | None:
        """Id of each row, if given."""
        ids: list[str] | None = self.options.get("ids")
        return ids

    def table(self, schema: Schema) -> Frame:
        """Return the rows with the columns and types of the model; raise a Problem that names an invalid cell."""
        if not isinstance(self.rows, pa.Table):
            records = records_to_table(schema, self.rows or (), strict=True)
            if isinstance(records, RecordFrame) and not records.whole:
                self._check_known_columns(schema)
            return records
        with translate_errors(self.first_row):
            check_text_columns(self.rows, schema.column_types)
            found = schema.table_as_learned(Frame(self.rows, schema.names is not None), self.first_row)
        assert isinstance(found, Frame), "a Frame stays a Frame"
        return found

    def _check_known_columns(self, schema: Schema) -> None:
        """Raise a Problem if rows have columns, but none of the model; a row without columns is valid."""
        known = frozenset(schema.names or ())
        unknown: dict[str, None] = {}
        for record in self.rows or ():
            if isinstance(record, dict):
                if not known.isdisjoint(record):
                    return
                unknown.update(dict.fromkeys(list(record)[:10]))
        if unknown:
            cause = f"the rows have no column of the model: found {list_names(list(unknown), 6)}"
            remedy = f"send columns of the model: {list_names(schema.names or (), 6)}"
            raise Problem(422, cause, remedy, "rows", code="unknown-column")

    def unknown(self, schema: Schema, table: Frame) -> list[str]:
        """Return the names of columns that are not in the model, in order. table: the result of `table`."""
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
        """Return the rows as JSON records with the types of the model; raise a Problem for a cell of another type."""
        if isinstance(self.rows, pa.Table):
            with translate_errors(self.first_row):
                check_text_columns(self.rows, schema.column_types)
                found = schema.cells_as_learned(Frame(self.rows), self.first_row)
                assert isinstance(found, Frame), "a Frame stays a Frame"
                records = table_to_records(found.table)
            return records if schema.names is not None else [list(record.values()) for record in records]
        return list(self.rows or ())

    def learnable(self, fitted: Fitted) -> LearnableRows:
        """Return the checked rows to learn, with labels and weights; raise a Problem if they are invalid."""
        labels, weights = self.options.get("labels"), self.options.get("weights")
        if self.rows is None:
            assert self.ids is not None, "checked when the body was read"
            if labels is None:
                raise Problem(422, "ids without labels", 'send {"ids": [...], "labels": [...]}', "labels")
            if weights is not None:
                raise Problem(422, "weights without rows", "omit the weights, or send the rows", "weights")
            return LearnableRows(None, labels, self.ids, [1.0] * len(self.ids))
        target, weight = fitted.origin.target, fitted.origin.weight
        records = self.records(fitted.schema)
        if labels is not None:
            _check_given_once(records, target, "labels")
        elif target is None:
            raise Problem(422, "missing labels", "send a label for each row", "labels")
        else:
            records, labels = _extract_column(records, target, "labels")
        if weights is not None:
            _check_given_once(records, weight, "weights")
        elif weight is not None and _has(records, weight):
            records, weights = _extract_column(records, weight, "weights")
            weights = check_weights(weights)
        if not isinstance(self.rows, pa.Table):
            check_record_types(fitted.counts.schema, records)
        return LearnableRows(records, labels, self.ids or [None] * len(records), weights or [1.0] * len(records))

    def forgettable(self, fitted: Fitted) -> LearnableRows:
        """Return the checked rows to forget, by id or as they were learned; raise a Problem if they are invalid."""
        if self.rows is not None:
            if self.ids is not None:
                raise Problem(422, "both rows and ids", "send either ids, or rows with labels", "ids")
            return self.learnable(fitted)
        if self.ids is None or "labels" in self.options or "weights" in self.options:
            remedy = "send only ids, or rows with labels"
            raise Problem(422, "ids with labels or weights", remedy, "labels")
        return LearnableRows(None, (), self.ids, ())

    def numbers(self, name: str) -> Floats:
        """Return the numbers in a column, which need not be in the model."""
        try:
            if isinstance(self.rows, pa.Table):
                return Frame(self.rows).numbers([self.rows.column_names.index(name)])[:, 0]
            cells = [row[name] for row in self.rows or ()]  # type: ignore[call-overload]  # a list has no names
            if not all(type(cell) in (int, float) for cell in cells):
                raise TypeError("not a number")
            return np.array(cells, dtype=np.float64)
        except (KeyError, IndexError, TypeError, ValueError, OverflowError, DecibanError):
            remedy = "send a number in this column for each row, or a number as the cost"
            raise Problem(422, f"the cost {name!r} is not a numeric column", remedy, "costs") from None


def _check_given_once(records: list[Any], name: str | None, what: str) -> None:
    """Raise a Problem if labels or weights are given both as an option and as a column of the rows."""
    if name is None:
        return
    for row, record in enumerate(records):
        if isinstance(record, dict) and name in record:
            raise Problem(
                422, f"{what} are given twice, as an option and in the row", f"send {what} once", cell_place(row, name)
            )


def _has(records: list[Any], name: str) -> bool:
    return any(isinstance(record, dict) and name in record for record in records)


def _extract_column(records: list[Any], name: str, what: str) -> tuple[list[Any], list[Any]]:
    """Return the records without a column, and its cells."""
    left, cells = [], []
    for row, record in enumerate(records):
        if not isinstance(record, dict) or name not in record:
            remedy = f"send {what}, or the column {name!r} in each row"
            raise Problem(422, f"missing column {name!r}", remedy, RowPlace(row))
        left.append({other: cell for other, cell in record.items() if other != name})
        cells.append(record[name])
    return left, cells


@contextmanager
def translate_errors(first_row: int = 0) -> Iterator[None]:
    """Translate errors of the library, and of cells that Python or Arrow cannot represent, into problems."""
    try:
        yield
    except DecibanError as error:
        raise to_problem(error, first_row) from None
    except (pa.ArrowException, OverflowError, ValueError):
        raise Problem(422, "invalid cells", "send numbers and dates in the usual range", "rows") from None


def read_body(
    body: bytes,
    content_type: str,
    query: Mapping[str, str],
    fitted: Fitted,
    settings: RequestSettings,
    allowed: Sequence[str],
) -> Body:
    """Return the rows and options of a request; raise a Problem if they are invalid. allowed: allowed options."""
    if content_type == JSON:
        return _read_json(body, settings, allowed)
    columns = _columns_of_options(query, fitted, allowed)
    with translate_errors():
        if content_type == CSV:
            weight = columns.get("weights")
            numbers = () if weight is None else (weight,)
            table = read_csv(body, fitted, settings, columns.get("labels"), numbers)
        else:
            table = read_arrow(body, settings)
        check_row_count(table.num_rows, settings)
        check_column_count(table.num_columns, settings)
        size = table.num_rows
        table, options = _extract_options(table, columns, query)
    options = check_options(options, size, settings)
    by_ids = "ids" in options and "labels" in allowed and not table.num_columns  # rows that are already known
    return Body(None if by_ids else table, options, 1 if content_type == CSV else 0, len(body))


def _columns_of_options(query: Mapping[str, str], fitted: Fitted, allowed: Sequence[str]) -> dict[str, str]:
    """Return the columns with ids, labels and weights: those named in the query, or else those of the model."""
    for option, name in COLUMN_PARAMETERS.items():
        if name in query and option not in allowed:
            known = [COLUMN_PARAMETERS[name] for name in allowed if name in COLUMN_PARAMETERS]
            raise reject_property(name, f"query.{name}", [f"?{parameter}=" for parameter in known])
    own = {"labels": fitted.origin.target, "weights": fitted.origin.weight}
    found = {option: query.get(name, own.get(option)) for option, name in COLUMN_PARAMETERS.items()}
    return {option: column for option, column in found.items() if column is not None and option in allowed}


def _extract_options(
    table: pa.Table, columns: Mapping[str, str], query: Mapping[str, str]
) -> tuple[pa.Table, dict[str, Any]]:
    """Return the table without the columns of options, and the options."""
    options: dict[str, Any] = {}
    extracted = []
    for option, column in columns.items():
        name = COLUMN_PARAMETERS[option]
        if column in table.column_names:
            options[option] = (column_to_labels if option == "labels" else column_to_cells)(table[column], option)
            extracted.append(column)
        elif name in query:
            raise Problem(422, f"column {column!r} not found", "name a column of the table", f"query.{name}")
    return table.drop_columns(list(dict.fromkeys(extracted))), options


def _read_json(body: bytes, settings: RequestSettings, allowed: Sequence[str]) -> Body:
    value = decode_json(body)
    rows, options = _rows_and_options(value, allowed)
    widest = 0
    objects = [value] if type(value) is dict else []
    for row, record in enumerate(rows or ()):
        if type(record) is dict:
            objects.append(record)
        elif type(record) is not list:
            found = JSON_KINDS.get(type(record), "null")
            raise Problem(422, f"expected a row, found {found}", "send {column: value, ...}", f"rows[{row}]")
        widest = max(widest, len(record))
    check_row_count(len(rows or ()), settings)
    check_column_count(widest, settings)
    check_repeated_names(body, value, objects)
    return Body(rows, check_options(options, None if rows is None else len(rows), settings), 0, len(body))


def _rows_and_options(value: Any, allowed: Sequence[str]) -> tuple[list[Any] | None, dict[str, Any]]:
    if type(value) is list:
        return value, {}
    if type(value) is not dict:
        found = JSON_KINDS.get(type(value), "null")
        raise Problem(
            422, f"expected rows, found {found}", 'send [{column: value, ...}] or {"rows": [...]}', "the body"
        )
    options = dict(value)
    rows = options.pop("rows", None)
    unknown = [name for name in options if name not in allowed]
    if unknown and rows is None and "ids" not in options:
        raise Problem(422, "expected a list of rows, found an object", _as_list(value), "the body", code="invalid-rows")
    if unknown:
        raise reject_property(unknown[0], unknown[0][:80], ("rows", *allowed))
    by_ids = "ids" in options and "labels" in allowed  # rows that are already known
    if type(rows) is dict:
        raise Problem(422, "expected a list of rows, found an object", _as_list(rows), "rows")
    if type(rows) is not list and ("rows" in value or not by_ids):
        remedy = 'send [{column: value, ...}] or {"rows": [{column: value, ...}]}'
        raise Problem(422, "missing list of rows", remedy, "rows")
    return rows, options


def _as_list(row: dict[str, Any]) -> str:
    """Return the remedy for a row that was sent without a list: the row as it should be sent, if it is short."""
    short = len(row) <= MAX_SHOWN_CELLS and not any(isinstance(cell, dict | list) for cell in row.values())
    shown = json.dumps([row], ensure_ascii=False) if short else ""
    return f"send a list of rows: {shown if 0 < len(shown) <= MAX_SHOWN_ROW else '[{column: value, ...}]'}"
