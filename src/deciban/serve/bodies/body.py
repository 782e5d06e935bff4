"""What a request brings: rows and options, from JSON, CSV or an Arrow stream."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from deciban.arrays import Floats
from deciban.errors import DecibanError
from deciban.fitted import Fitted
from deciban.schema.schema import Schema
from deciban.serve.bodies.arrow_bodies import table_of_arrow
from deciban.serve.bodies.csv_bodies import table_of_csv
from deciban.serve.bodies.records import JSON_KINDS, Record, RecordFrame, problem_of, table_of_records
from deciban.serve.bodies.strict_json import decoded_json, refuse_repeated_names
from deciban.serve.bodies.table_records import labels_of_column, records_of_table
from deciban.serve.learning.requests import LONGEST_ID
from deciban.serve.problems import Problem
from deciban.serve.settings import ServeSettings
from deciban.tables.table import Frame

JSON, CSV, ARROW_STREAM = "application/json", "text/csv", "application/vnd.apache.arrow.stream"
CONTENT_TYPES = (JSON, CSV, ARROW_STREAM)


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
            return table_of_records(schema, self.rows or ())
        try:
            found = schema.table_as_learned(Frame(self.rows, schema.names is not None), self.first_row)
        except DecibanError as error:
            raise problem_of(error, self.first_row) from None
        assert isinstance(found, Frame), "it was one"
        return found

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

    def records(self) -> list[Any]:
        """The rows as JSON has them."""
        if isinstance(self.rows, pa.Table):
            return records_of_table(self.rows)
        return list(self.rows or ())

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


def read_body(
    body: bytes,
    content_type: str,
    query: Mapping[str, str],
    fitted: Fitted,
    settings: ServeSettings,
    allowed: Sequence[str],
) -> Body:
    """The rows and options of a request; a Problem where they cannot be read. allowed: the options that it may have."""
    if content_type == JSON:
        return _read_json(body, fitted, settings, allowed)
    read = table_of_csv if content_type == CSV else table_of_arrow
    target = query.get("target") if "labels" in allowed else None
    table = read(body, fitted, settings.most_rows, target)
    _check_size(table.num_rows, table.num_columns, settings)
    options: dict[str, Any] = {}
    for option, name in (("ids", "id"), ("labels", "target"), ("weights", "weight")):
        if name not in query:
            continue
        if option not in allowed:
            raise Problem(422, f"this request has no {name!r}", "leave it out", f"query.{name}")
        column = query[name]
        if column not in table.column_names:
            raise Problem(422, f"there is no column {column!r}", "name a column of the table", f"query.{name}")
        options[option] = labels_of_column(table[column]) if option == "labels" else table[column].to_pylist()
        table = table.drop_columns([column])
    if "ids" in options:
        options["ids"] = _checked_ids(options["ids"])
    if "weights" in options:
        options["weights"] = _checked_weights(options["weights"])
    return Body(table, options, 1 if content_type == CSV else 0, len(body))


def _read_json(body: bytes, fitted: Fitted, settings: ServeSettings, allowed: Sequence[str]) -> Body:
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
    _check_size(len(rows or ()), widest, settings)
    refuse_repeated_names(body, value, objects)
    return Body(rows, _checked(options, rows, fitted), 0, len(body))


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
    if unknown := [name for name in options if name not in allowed]:
        known = ", ".join(("rows", *allowed))
        raise Problem(422, f"this request has no {unknown[0]!r}", f"send {known}", unknown[0][:80])
    by_ids = "ids" in options and "labels" in allowed  # rows that are known already
    if type(rows) is not list and ("rows" in value or not by_ids):
        remedy = 'send [{column: value, ...}] or {"rows": [{column: value, ...}]}'
        raise Problem(422, "there is no list of rows", remedy, "rows")
    return rows, options


def _check_size(rows: int, columns: int, settings: ServeSettings) -> None:
    if rows > settings.most_rows:
        cause = f"found {rows:,} rows, at most {settings.most_rows:,} are taken at a time"
        raise Problem(413, cause, "send them in several requests", "rows")
    if columns > settings.most_columns:
        cause = f"found {columns:,} columns, at most {settings.most_columns:,} are taken"
        raise Problem(413, cause, "send those that the model knows", "rows")


def _checked(options: dict[str, Any], rows: list[Any] | None, fitted: Fitted) -> dict[str, Any]:
    """The options of a JSON body, each of the right type and length."""
    size = None if rows is None else len(rows)
    if "ids" in options:
        options["ids"] = _checked_ids(options["ids"])
        size = len(options["ids"]) if size is None else size
    if "weights" in options:
        options["weights"] = _checked_weights(options["weights"])
    if "labels" in options:
        for place, label in enumerate(_a_list(options["labels"], "labels")):
            if type(label) in (dict, list):
                raise Problem(
                    422,
                    f"found {JSON_KINDS[type(label)]}, expected a class",
                    "send text or a number",
                    f"labels[{place}]",
                )
    for name in ("ids", "weights", "labels"):
        if name in options and len(options[name]) != size:
            raise Problem(422, f"found {len(options[name])} {name} for {size} rows", "send one for each row", name)
    if "reject" in options and type(options["reject"]) not in (int, float):
        raise Problem(422, "reject is no number", "send what it costs to leave a row undecided", "reject")
    return options


def _a_list(value: Any, name: str) -> list[Any]:
    if type(value) is not list:
        raise Problem(
            422, f"found {JSON_KINDS.get(type(value), 'null')}, expected a list", "send one for each row", name
        )
    return value


def _checked_ids(ids: Any) -> list[str]:
    """The ids as texts, each of them once; whole numbers are taken for the text they are written as."""
    found = []
    for place, one in enumerate(_a_list(ids, "ids")):
        if type(one) is float and one.is_integer() and abs(one) < 2.0**53:
            one = int(one)  # a CSV file knows no other numbers
        if type(one) not in (str, int) or not 0 < len(text := str(one)) <= LONGEST_ID:
            remedy = f"send text of at most {LONGEST_ID} characters, or a whole number"
            raise Problem(422, "this is no id", remedy, f"ids[{place}]")
        found.append(text)
    if len(set(found)) != len(found):
        twice = next(one for place, one in enumerate(found) if one in found[:place])
        raise Problem(422, f"the id {twice!r} is there twice", "send each row once", "ids")
    return found


def _checked_weights(weights: Any) -> list[float]:
    for place, one in enumerate(_a_list(weights, "weights")):
        if type(one) not in (int, float) or not 0.0 <= one <= 1e15:
            remedy = "send how often the row counts: a number from 0 to 1e15"
            raise Problem(422, "this is no weight", remedy, f"weights[{place}]")
    return [float(one) for one in weights]
