"""CSV in request bodies, read as `deciban predict` reads a CSV file."""

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from deciban.errors import DecibanError
from deciban.model.fitted import Fitted
from deciban.serve.bodies.checks import check_column_count, check_row_count
from deciban.serve.problems import Problem, to_problem
from deciban.serve.settings import RequestSettings
from deciban.sources.csv import MISSING_WORDS, copy_as_utf8, open_csv
from deciban.sources.duckdb import translate_errors
from deciban.sources.sniff import compression_of, sniff
from deciban.sources.temporary import Temporary, create_temporary
from deciban.tables.cells import CellHabits

# Name of the body in messages.
BODY_NAME = "the body"

# Possible column separators.
SEPARATORS = (b",", b";", b"\t", b"|")

# Quoted cells, which may contain separators.
QUOTED = re.compile(rb'"[^"]*"')


def read_csv(
    body: bytes, fitted: Fitted, settings: RequestSettings, target: str | None = None, numbers: tuple[str, ...] = ()
) -> pa.Table:
    """Return all rows, with known columns in the types of the model and others as text.

    target: column with labels, if any. numbers: columns with numbers, whether or not they are in the model. Raises a
    Problem if the body is not CSV or is too large.
    """
    try:
        import duckdb  # noqa: F401 - a light installation lacks it
    except ImportError:
        cause = "this service cannot read CSV, because DuckDB is not installed"
        raise Problem(415, cause, "send JSON", "Content-Type") from None
    if compression_of(body[:16]) is not None or body.startswith(b"PAR1"):
        raise Problem(422, "the body is compressed or not CSV", "send uncompressed CSV", BODY_NAME)
    try:
        body.decode()
    except UnicodeDecodeError as error:
        raise Problem(422, "not valid UTF-8", "send the body in UTF-8", f"byte {error.start}") from None
    _check_size(body, settings)
    kept: list[Temporary] = []
    try:
        types = {**fitted.column_types(target), **dict.fromkeys(numbers, "double")}
        return _read(body, fitted, types, target, kept)
    except DecibanError as error:
        raise _problem_of(error) from None
    except OSError:  # disk full, or too many open files
        raise Problem(503, "the body cannot be buffered on disk", "try again later, or send JSON") from None
    finally:
        for temporary_file in kept:
            temporary_file.file.close()


def _check_size(body: bytes, settings: RequestSettings) -> None:
    """Raise a Problem if there are too many columns or rows, before they are parsed."""
    head = QUOTED.sub(b"", body[: body.find(b"\n") + 1 or len(body)])
    check_column_count(1 + max(head.count(separator) for separator in SEPARATORS), settings)
    if body.count(b"\n") > settings.max_rows and b'"' not in body:  # line breaks in quotes do not end a row
        check_row_count(sum(1 for line in body.splitlines() if line.strip()) - 1, settings)


def _read(body: bytes, fitted: Fitted, types: Mapping[str, str], target: str | None, kept: list[Temporary]) -> pa.Table:
    kept.append(create_temporary())
    kept[0].file.write(body)
    kept[0].file.flush()
    path = Path(kept[0].name)
    with translate_errors(BODY_NAME):
        form = sniff(path, BODY_NAME)
    if form.kind != "csv":
        raise Problem(422, f"expected CSV, found {form.kind.upper()}", "send the matching content type", BODY_NAME)
    if form.mixed_ends:
        kept.append(copy_as_utf8(path, BODY_NAME, form))
        path = Path(kept[-1].name)
        form = replace(form, mixed_ends=False)
    called = {os.fspath(path): BODY_NAME}
    found = open_csv(BODY_NAME, [path], [form], called, MISSING_WORDS, CellHabits())
    source = found.as_learned(types, fitted.origin.habit)
    if fitted.schema.names is not None:  # else names have no meaning, and types are detected
        source = source.as_text([name for name in source.names if name not in types])
    if target is not None and target in source.names:
        source = source.with_label_as_written(target)
    with source.locate_errors():
        return source.table()


def _problem_of(error: DecibanError) -> Problem:
    """Return the problem with its place in the body; clients must not see the path of the temporary file."""
    text = str(error)
    if "/proc/self/fd/" in text or os.sep + "tmp" in text:
        return Problem(422, "not valid CSV", "send a header line and rows separated by commas", BODY_NAME)
    found = to_problem(error, 1)
    if error.place.row is not None or (error.place and error.place.source is None):
        return found
    remedy = found.remedy if error.place.column is None else "correct the cell, or omit it"
    return Problem(422, found.cause, remedy, str(error.place) or BODY_NAME)
