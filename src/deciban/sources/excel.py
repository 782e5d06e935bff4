"""Spreadsheets: sheets of Excel and OpenDocument workbooks as CSV files, and tables written as workbooks.

A sheet is copied to a temporary CSV file, so that its cells have the same rules as the cells of CSV files.
"""

import csv
import datetime as dt
import io
import re
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from decimal import Decimal
from difflib import get_close_matches
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deciban.errors import Argument, DataError, Place, UsageError, missing_package, warn_user
from deciban.sources.sniff import FileFormat
from deciban.sources.temporary import Temporary, create_temporary
from deciban.tables.cells import is_moment, plain_type
from deciban.util.text_tables import find_duplicate, list_names

# Excel's limits: rows and columns of a sheet, and characters of a cell.
MAX_SHEET_ROWS = 1 << 20
MAX_SHEET_COLUMNS = 1 << 14
MAX_CELL_LENGTH = (1 << 15) - 1

# Numbers of a workbook are doubles: integers are exact up to this one.
MAX_EXACT = 1 << 53

# Maximum number of cells between the first cell of a sheet and the last ones, also empty: each takes about 24 bytes.
MAX_CELLS = 1 << 27

# Sheets in .xlsx files, the names of their cells, and those of cells far down. Other sheets are not large.
SHEET_MEMBER = re.compile(r"xl/worksheets/[^/]+\.xml", re.IGNORECASE)
COLUMN_OF_CELL = re.compile(rb' r="([A-Z]{1,3})[0-9]')
FAR_ROW_OF_CELL = re.compile(rb' r="[A-Z]{1,3}([0-9]{4,7})"')

# Bytes of a sheet read at once, and the maximum length of the name of a cell.
READ_BYTES = 1 << 20
MAX_CELL_NAME = 16

# The first year of dates in Excel.
FIRST_YEAR = 1900

# Remedy for tables that do not fit into a workbook.
OTHER_FORMAT = "write a .csv or .parquet file"


def copy_as_csv(path: Path, name: str, sheet: str | None, header: bool) -> tuple[Temporary, FileFormat]:
    """Copy a sheet of a workbook to a CSV file, and return its format. Lines of the file are rows of the sheet.

    name: name of the workbook in messages.
    sheet: name of the sheet; None for the first one with data.
    """
    with open(path, "rb") as file:
        _check_extent(file, name)
        workbook = _open_workbook(file, name)
        chosen = _choose_sheet(workbook, name, sheet)
        filled = np.array([[cell != "" for cell in row] for row in chosen.iter_rows()])
        used_rows, columns = np.flatnonzero(filled.any(axis=1)), np.flatnonzero(filled.any(axis=0)).tolist()
        first, last = int(used_rows[0]), int(used_rows[-1])
        if header:
            _check_header(filled[first:, columns], Place(f"{name}, sheet {chosen.name!r}, row {first + 1}"))
        copy, names = create_temporary(), [f"column{k + 1}" for k in range(len(columns))]
        text = io.TextIOWrapper(copy.file, encoding="utf-8", newline="", write_through=True)
        writer = csv.writer(text, lineterminator="\n")
        for number, row in enumerate(chosen.iter_rows()):
            cells = [_as_text(row[column]) for column in columns]
            if number == first and header:
                names = [cell.strip() or known for cell, known in zip(cells, names, strict=True)]
            if number < first:
                text.write("\n")
            elif number <= last:
                writer.writerow(cells)
        text.detach()
        copy.file.flush()
    if (twice := find_duplicate(names)) is not None:
        place = Place(f"{name}, sheet {chosen.name!r}, row {first + 1}")
        raise DataError(f"duplicate column {twice!r}", place=place, remedy="give each column a unique name")
    rows = max(last - first + (not header), 1)
    size = Path(copy.name).stat().st_size / rows
    return copy, FileFormat("excel", header=tuple(names), named=header, skipped=first, row_bytes=size)


def _check_extent(file: BinaryIO, name: str) -> None:
    """Raise a DataError if a sheet of an .xlsx file has cells so far apart that it does not fit into memory."""
    with suppress(zipfile.BadZipFile, NotImplementedError, RuntimeError, zlib.error), zipfile.ZipFile(file) as archive:
        for member in filter(SHEET_MEMBER.fullmatch, archive.namelist()):
            rows, letters, rest = 0, set[bytes](), b""
            with archive.open(member) as sheet:
                while piece := sheet.read(READ_BYTES):
                    text = rest + piece
                    letters.update(COLUMN_OF_CELL.findall(text))
                    rows = max(rows, max(map(int, FAR_ROW_OF_CELL.findall(text)), default=0))
                    rest = text[-MAX_CELL_NAME:]
            columns = max(map(_column_number, letters), default=0)
            if rows * columns > MAX_CELLS:
                raise DataError(
                    f"a sheet has cells down to row {rows:,} and up to column {columns:,}",
                    place=Place(name),
                    remedy="delete the cells far from the table, or save the sheet as CSV",
                )
    file.seek(0)


def _column_number(letters: bytes) -> int:
    """Return the number of a column.

    >>> _column_number(b"A"), _column_number(b"XFD")
    (1, 16384)
    """
    number = 0
    for letter in letters:
        number = 26 * number + letter - 64
    return number


def _open_workbook(file: Any, name: str) -> Any:
    try:
        import python_calamine
    except ModuleNotFoundError:
        raise missing_package("reading spreadsheets", "python-calamine", "excel") from None
    try:
        return python_calamine.load_workbook(file)
    except python_calamine.PasswordError:
        raise DataError(
            "the workbook is protected by a password", place=Place(name), remedy="save it without one"
        ) from None
    except (python_calamine.CalamineError, OSError) as problem:
        cause = f"not a readable workbook ({' '.join(str(problem).split())})"
        raise DataError(cause, place=Place(name), remedy="save it again as .xlsx, or save the sheet as CSV") from None


def _choose_sheet(workbook: Any, name: str, wanted: str | None) -> Any:
    """Return the sheet of this name, or the first visible one with data; warn if others have data too."""
    from python_calamine import SheetTypeEnum, SheetVisibleEnum

    known = [one for one in workbook.sheets_metadata if one.typ == SheetTypeEnum.WorkSheet]
    names = [one.name for one in known]
    if wanted is not None:
        if wanted not in names:
            near = get_close_matches(wanted, names, 1)
            hint = f"did you mean {near[0]!r}? The sheets are" if near else "the sheets are"
            cause = f"the workbook has no sheet {wanted!r}"
            raise UsageError(cause, place=Place(name), remedy=f"{hint} {list_names(names)}")
        chosen = workbook.get_sheet_by_name(wanted)
        if chosen.start is None:
            raise DataError(f"the sheet {wanted!r} is empty", place=Place(name), remedy="choose another sheet")
        return chosen
    visible = [one.name for one in known if one.visible == SheetVisibleEnum.Visible]
    chosen = None
    for one in visible or names:
        sheet = workbook.get_sheet_by_name(one)
        if sheet.start is None:
            continue
        if chosen is not None:
            use = (f"{name}: only the sheet {chosen.name!r} is read; use ", Argument("sheet", one), " to read another")
            warn_user(use)
            return chosen
        chosen = sheet
    if chosen is None:
        raise DataError(
            "the workbook has no data", place=Place(name), remedy="give a table with a header and at least one row"
        )
    return chosen


def _check_header(filled: Any, place: Place) -> None:
    """Raise a DataError if the first row is a title rather than a header: most columns have no name in it.

    The first column may lack a name, because tables with row names are often saved without one.
    """
    named = filled.sum(axis=1)
    width = filled.shape[1]
    if width == 1 or 2 * filled[0, 1:].sum() > width - 1:
        return
    row = next((k for k, number in enumerate(named.tolist()) if 2 * number > width), None)
    cause = f"only {named[0]} of {width} columns have a name in this row"
    where = f"; the header may be {row} {'row' if row == 1 else 'rows'} further down" if row else ""
    raise DataError(cause + where, place=place, remedy="delete the rows above the header, and name all columns")


def _as_text(cell: Any) -> str:
    """Return a cell as a CSV file has it. Durations are in seconds."""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, dt.timedelta):
        cell = cell.total_seconds()
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < MAX_EXACT else repr(cell)
    return cell.isoformat(" ") if isinstance(cell, dt.datetime) else str(cell)


class ExcelWriter:
    """Writer of one sheet. Text stays text: no cell is a formula."""

    def __init__(self, file: Any, schema: pa.Schema) -> None:
        try:
            from openpyxl import Workbook
            from openpyxl.cell import WriteOnlyCell
            from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE
        except ModuleNotFoundError:
            raise missing_package("writing spreadsheets", "openpyxl", "excel") from None
        if len(schema) > MAX_SHEET_COLUMNS:
            raise DataError(f"an Excel sheet has at most {MAX_SHEET_COLUMNS:,} columns", remedy=OTHER_FORMAT)
        self._file, self._rows, self._cell, self._illegal = file, 0, WriteOnlyCell, ILLEGAL_CHARACTERS_RE
        self._workbook = Workbook(write_only=True)
        self._sheet = self._workbook.create_sheet("predictions")
        self._append([schema.names], schema.names)

    def write_table(self, table: pa.Table) -> None:
        """Write rows."""
        if self._rows + table.num_rows > MAX_SHEET_ROWS:
            cause = f"an Excel sheet has at most {MAX_SHEET_ROWS:,} rows, with the header"
            raise DataError(cause, remedy=OTHER_FORMAT)
        columns = [_as_excel(column) for column in table.columns]
        self._append(zip(*columns, strict=True), table.column_names)

    def _append(self, rows: Iterable[Sequence[Any]], names: Sequence[str]) -> None:
        for row in rows:
            self._sheet.append(
                [self._text(cell, name) if type(cell) is str else cell for cell, name in zip(row, names, strict=True)]
            )
            self._rows += 1

    def _text(self, text: str, column: str) -> Any:
        """Return a cell of text; one that starts like a formula or an error value would be taken for one."""
        if len(text) > MAX_CELL_LENGTH:
            cause = f"a cell of an Excel sheet has at most {MAX_CELL_LENGTH:,} characters, this one has {len(text):,}"
            raise DataError(cause, place=Place(column=column), remedy=OTHER_FORMAT)
        if self._illegal.search(text):
            cause = f"{text[:40]!r} contains a control character, which Excel sheets cannot contain"
            raise DataError(cause, place=Place(column=column), remedy=OTHER_FORMAT)
        if not text or text[0].isalnum():
            return text or None
        cell = self._cell(self._sheet)
        cell.value = text
        cell.data_type = "s"
        cell.quotePrefix = True  # Excel's own mark of text: it stays text if the cell is edited
        return cell

    def close(self) -> None:
        """Write the file."""
        self._workbook.save(self._file)


def _as_excel(column: pa.ChunkedArray) -> list[Any]:
    """Return the cells as values of Excel: numbers, text, true and false, dates and times."""
    kind = plain_type(column.type)
    column = column.cast(kind)
    if pa.types.is_floating(kind):
        column = pc.if_else(pc.is_finite(column), column, pa.scalar(None, column.type))
    if pa.types.is_integer(kind):  # Excel's numbers are doubles
        return [str(cell) if cell is not None and abs(cell) > MAX_EXACT else cell for cell in column.to_pylist()]
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp("us"), safe=False)
    if is_moment(kind):
        year = pc.year(column)
        known = pc.and_(pc.greater_equal(year, dt.MINYEAR), pc.less_equal(year, dt.MAXYEAR))
        dates = pc.if_else(known, column, None).to_pylist()
        others = pc.if_else(known, None, column).cast(pa.string()).to_pylist()  # infinity, for example
        return [
            other if date is None else str(date) if date.year < FIRST_YEAR else date
            for date, other in zip(dates, others, strict=True)
        ]
    known = (str, bool, float, Decimal, dt.time)
    return [cell if cell is None or isinstance(cell, known) else str(cell) for cell in column.to_pylist()]
