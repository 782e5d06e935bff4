"""CSV in the body of a request, read as `deciban predict` reads a CSV file."""

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from deciban.errors import DecibanError
from deciban.model.fitted import Fitted
from deciban.serve.bodies.checks import refuse_columns, refuse_rows
from deciban.serve.problems import Problem, problem_of
from deciban.serve.settings import RequestSettings
from deciban.sources.csv import MISSING_WORDS, copy_as_utf8, open_csv
from deciban.sources.duckdb import translate_errors
from deciban.sources.sniff import compression_of, sniff
from deciban.sources.temporary import Temporary, create_temporary
from deciban.tables.cells import CellHabits

# What messages call the file that the body is read from.
CALLED = "the body"

# What stands between the columns, and cells in quotes, in which it may stand too.
SEPARATORS = (b",", b";", b"\t", b"|")
QUOTED = re.compile(rb'"[^"]*"')


def table_of_csv(
    body: bytes, fitted: Fitted, settings: RequestSettings, target: str | None = None, numbers: tuple[str, ...] = ()
) -> pa.Table:
    """All rows, with the columns that the model knows as it learned to read them and the others as they are written.

    target: the column with labels, if there is one. numbers: columns that hold numbers, whether the model knows them or
    not. A Problem where it is no CSV, or too large.
    """
    if compression_of(body[:16]) is not None or body.startswith(b"PAR1"):
        raise Problem(422, "the body is compressed, or no CSV", "send plain text", CALLED)
    try:
        body.decode()
    except UnicodeDecodeError as error:
        raise Problem(422, "the bytes are no UTF-8", "send it in UTF-8", f"byte {error.start}") from None
    _refuse_large(body, settings)
    kept: list[Temporary] = []
    try:
        types = {**fitted.column_types(target), **dict.fromkeys(numbers, "double")}
        return _read(body, fitted, types, target, kept)
    except DecibanError as error:
        raise _problem_of(error) from None
    except OSError:  # there is no room for it, or no more files can be opened
        raise Problem(503, "the body cannot be put down to be read", "try again later, or send JSON") from None
    finally:
        for one in kept:
            one.file.close()


def _refuse_large(body: bytes, settings: RequestSettings) -> None:
    """A Problem where there are more columns or rows than are taken, before anybody reads them."""
    head = QUOTED.sub(b"", body[: body.find(b"\n") + 1 or len(body)])
    refuse_columns(1 + max(head.count(separator) for separator in SEPARATORS), settings)
    if body.count(b"\n") > settings.max_rows and b'"' not in body:  # in quotes it ends no row
        refuse_rows(sum(1 for line in body.splitlines() if line.strip()) - 1, settings)


def _read(body: bytes, fitted: Fitted, types: Mapping[str, str], target: str | None, kept: list[Temporary]) -> pa.Table:
    kept.append(create_temporary())
    kept[0].file.write(body)
    kept[0].file.flush()
    path = Path(kept[0].name)
    with translate_errors(CALLED):
        form = sniff(path, CALLED)
    if form.kind != "csv":
        raise Problem(422, f"this is {form.kind.upper()} and no CSV", "send its own content type", CALLED)
    if form.mixed_ends:
        kept.append(copy_as_utf8(path, CALLED, form))
        path = Path(kept[-1].name)
        form = replace(form, mixed_ends=False)
    called = {os.fspath(path): CALLED}
    found = open_csv(CALLED, [path], [form], called, MISSING_WORDS, CellHabits())
    source = found.as_learned(types, fitted.origin.habit)
    if fitted.schema.names is not None:  # else names mean nothing, and columns are what they look like
        source = source.as_text([name for name in source.names if name not in types])
    if target is not None and target in source.names:
        source = source.with_label_as_written(target)
    with source.locate_errors():
        return source.table()


def _problem_of(error: DecibanError) -> Problem:
    """Return the problem, whose place is in the body; the path of the temporary file is not for clients."""
    text = str(error)
    if "/proc/self/fd/" in text or os.sep + "tmp" in text:
        return Problem(422, "this cannot be read as CSV", "send a header and rows with commas between", CALLED)
    found = problem_of(error, 1)
    if error.place.row is not None or (error.place and error.place.source is None):
        return found
    remedy = found.remedy if error.place.column is None else "correct the cell, or leave it out"
    return Problem(422, found.cause, remedy, str(error.place) or CALLED)
