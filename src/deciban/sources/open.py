"""Find and open rows in memory, files, queries, databases and Spark.

`kind_of_rows` decides what the data are. `scan` opens files and databases with options; `find_rows` and `open_rows`
open anything with default options.
"""

from __future__ import annotations

import glob
import os
import re
import stat
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit
from urllib.request import url2pathname

import numpy as np

from deciban.errors import Argument, DataError, Place, UsageError
from deciban.sources.addresses import SCHEMES, Address
from deciban.sources.arrow import (
    open_arrow_files,
    open_arrow_stream,
    open_parquet,
)
from deciban.sources.csv import MISSING_WORDS, CsvSource, copy_as_utf8, open_csv
from deciban.sources.dialects import DUCKDB
from deciban.sources.duckdb import RelationSource, translate_errors
from deciban.sources.json import open_json
from deciban.sources.query import SQL, open_query
from deciban.sources.sniff import FileFormat, sniff
from deciban.sources.source import Source
from deciban.sources.spark import SparkRows
from deciban.sources.temporary import STANDARD_INPUT, spool
from deciban.tables.cells import FORMAT_SEPARATOR, TYPES, CellHabits
from deciban.tables.convert import as_table
from deciban.tables.table import Frame, Table

# Table formats whose files may contain deleted rows: marker in the folder, name, and remedy.
VERSIONED_TABLES = {
    "_delta_log": (
        "Delta Lake",
        "read it with the package deltalake, and pass DeltaTable({name!r}).to_pyarrow_dataset(); or "
        "write its rows as Parquet elsewhere",
    ),
    "metadata/*.metadata.json": (
        "Apache Iceberg",
        "read it with the package pyiceberg, and pass StaticTable.from_metadata(...).scan().to_arrow(); or "
        "write its rows as Parquet elsewhere",
    ),
    ".hoodie": ("Apache Hudi", "read it with Spark, and pass the DataFrame"),
}

# Scheme of a URL.
SCHEME = re.compile(r"([a-z][a-z0-9+.-]+)://", re.IGNORECASE)

# A folder is read as files of the first of these kinds found in it; with only .txt files it is a folder of documents.
ENDINGS = {
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".feather", ".arrows"),
    "orc": (".orc",),
    "json": (".jsonl", ".ndjson", ".json", ".jsonl.gz", ".ndjson.gz", ".json.gz"),
    "csv": (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".csv.zst", ".txt"),
    "excel": (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"),
}
# Excel writes such a file beside an open workbook.
LOCK_FILE = "~$"

TABLES = tuple(ending for endings in ENDINGS.values() for ending in endings if ending != ".txt")


# Methods that identify connections and Ibis tables; checked on the class, because a table may have such a column.
CONNECTION = "cursor"
IBIS = "to_pyarrow_batches"

Kind = Literal["source", "spark", "relation", "database", "query", "batches", "files", "memory"]


def kind_of_rows(data: Any, files: bool = False) -> Kind:
    """Return where rows are. All other functions rely on this decision.

    files: True if texts in a list are names of files (as paths always are); else each is a row.
    """
    if type(data) is np.ndarray:
        return "memory"
    if isinstance(data, Source):
        return "source"
    if isinstance(data, str):
        return "database" if data.startswith(SCHEMES) else "query" if data.startswith(SQL) else "files"
    if isinstance(data, os.PathLike):
        return "files"
    kind = type(data)
    library = kind.__module__.partition(".")[0]
    if library == "pyspark" and hasattr(kind, "mapInArrow"):
        return "spark"
    if hasattr(kind, CONNECTION) or hasattr(kind, IBIS):
        return "database"
    if (library == "polars" and kind.__name__ == "LazyFrame") or _is_dataset(data):
        return "batches"
    if kind.__name__ == "DuckDBPyRelation":
        return "relation"
    names = (str, os.PathLike) if files else (os.PathLike,)
    several = isinstance(data, list | tuple) and len(data) > 0 and all(isinstance(one, names) for one in data)
    return "files" if several else "memory"


def _is_dataset(data: Any) -> bool:
    """Return True for a pyarrow dataset, without importing pyarrow.dataset."""
    dataset = sys.modules.get("pyarrow.dataset")
    return dataset is not None and isinstance(data, dataset.Dataset)


@dataclass(frozen=True)
class ScanOptions:
    """Options of `scan`."""

    types: Mapping[str, str] | None = None
    ignore: Sequence[str] = ()
    missing: Sequence[str] = MISSING_WORDS
    encoding: str | None = None
    delimiter: str | None = None
    header: bool = True
    thousands: str = ""
    date_format: str = ""
    sheet: str | None = None

    def refuse(self, names: Sequence[str], name: str, meant: str) -> None:
        """Raise a UsageError if one of these options is given. meant: what the options apply to."""
        given = {
            "types": self.types,
            "missing": not set(self.missing) <= set(MISSING_WORDS),
            "delimiter": self.delimiter,
            "header": not self.header,
            "thousands": self.thousands,
            "date_format": self.date_format,
            "sheet": self.sheet,
        }
        for option in names:
            if given[option]:
                cause = (Argument(option), f" applies to {meant}")
                raise UsageError(cause, place=Place(name), remedy="leave it out")


def find_rows(data: Any, *, files: bool = False, in_engine: bool = False) -> Any:
    """Return a source for files, queries and databases; rows in memory unchanged.

    files: see `kind_of_rows`.
    in_engine: True to keep DuckDB relations in DuckDB; else they are read at once.
    """
    kind = kind_of_rows(data, files)
    if kind in ("source", "memory") or (kind == "relation" and not in_engine):
        return data
    if kind == "spark":
        return SparkRows.of(data)
    return RelationSource.of(data) if kind == "relation" else _open(kind, data, ScanOptions())


def open_query_or_table(data: Any, query: str | None, table: str | None) -> Any:
    """Return the source of a query or table of a database; without either, the data unchanged."""
    return data if query is None and table is None else scan(data, query=query, table=table)


def open_rows(data: Any, types: Mapping[str, str], habit: CellHabits | None = None) -> Table | Source:
    """Open rows as a table in memory, or as a source.

    types: known Arrow types of columns.
    habit: cell formats that a model has learned from CSV files.
    """
    named = len(types) > 1 and isinstance(data, list | tuple)  # with one column, each text may be a row
    rows = find_rows(data, files=named and all(isinstance(one, str) and os.path.isfile(one) for one in data))
    return rows.as_learned(types, habit) if isinstance(rows, Source) else as_table(rows)


def open_table(data: Any, types: Mapping[str, str] | None = None, habit: CellHabits | None = None) -> Table:
    """Read all rows into memory."""
    rows = open_rows(data, types or {}, habit)
    return Frame(rows.table()) if isinstance(rows, Source) else rows


def scan(
    source: Any,
    *,
    query: str | None = None,
    table: str | None = None,
    types: Mapping[str, str] | None = None,
    ignore: str | Sequence[str] = (),
    missing: str | Sequence[str] = MISSING_WORDS,
    encoding: str | None = None,
    delimiter: str | None = None,
    header: bool = True,
    thousands: str = "",
    date_format: str = "",
    sheet: str | None = None,
) -> Source:
    r"""Open files, a query or a table of a database for reading in pieces.

    `fit`, `predict` and all other methods that take rows accept the result instead of a table. They read it piece by
    piece, so that memory does not grow with its size. They also accept file names directly. Use this function to set
    options of a file, or to read from a database.

    Parameters
    ----------
    source : str, path or list of them, connection, Ibis table, dataset or LazyFrame
        A file (CSV, JSON lines, Parquet, Arrow, ORC or Excel; CSV and JSON may be compressed by gzip or zstd), a glob,
        a folder, a list of files, "-" for standard input, or "sql: select ..." for a DuckDB query. A pyarrow dataset or
        a polars LazyFrame. A folder with one subfolder of documents per class. A database: a PostgreSQL URL
        ("postgresql://user@host/database"; put the password in PGPASSWORD or ~/.pgpass), an ADBC or DB-API connection,
        or an Ibis table.
    query : str, default=None
        Databases: the query whose rows are read.
    table : str, default=None
        Databases: the table to read, such as "customers" or "sales.customers".
    types : mapping of str to {"text", "number", "bool", "date", "time"}, default=None
        Types of columns, where the detected types are wrong.
    ignore : str or sequence of str, default=()
        Columns to leave out.
    missing : str or sequence of str, default=("NA", "N/A", "NaN", "nan", "NULL", "null", "None")
        CSV and Excel: values to treat as missing, besides empty cells.
    encoding : str, default=None
        Encoding of CSV files and documents; None detects UTF-8 and UTF-16.
    delimiter : str, default=None
        CSV: delimiter; None detects a comma, semicolon, tab or bar.
    header : bool, default=True
        CSV and Excel: True if the first line has the column names; else these are column1, column2 and so on.
    thousands : str, default=""
        CSV and Excel: thousands separator, such as ",".
    date_format : str, default=""
        CSV and Excel: strptime format of dates, such as "%d.%m.%Y", in addition to ISO 8601; "|" separates several
        formats.
    sheet : str, default=None
        Excel: name of the sheet; None reads the first sheet with data.

    Returns
    -------
    Source
        A stream of tables: `names` are its columns, `head(n)` returns the first rows, `table()` all rows.

    Raises
    ------
    UsageError
        If an option is invalid, or a named column does not exist.
    DataError
        If a file cannot be read as a table. The message names file, line and column, and what to do.
    FileNotFoundError, PermissionError
        If a file does not exist, or cannot be read.
    ConnectionError, PermissionError, TimeoutError
        If a database cannot be reached, cannot be read, or takes too long.

    See Also
    --------
    BayesClassifier.fit : Learn from rows in memory, from files and from the result of this function.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from deciban import scan
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "days.csv"
    ...     _ = path.write_text("day;code;rain\n01.02.2026;7;2,5\n02.02.2026;8;-\n")
    ...     rows = scan(path, types={"code": "text"}, date_format="%d.%m.%Y")
    ...     print(rows.names, rows.table().to_pylist()[0])
    ('day', 'code', 'rain') {'day': datetime.date(2026, 2, 1), 'code': '7', 'rain': 2.5}
    """
    ignored, words = ((one,) if isinstance(one, str) else one for one in (ignore, missing))
    options = ScanOptions(types, ignored, words, encoding, delimiter, header, thousands, date_format, sheet)
    _check_habit(thousands, date_format)
    if query is not None or table is not None:
        return _open("database", source, options, query, table)
    kind = kind_of_rows(source, files=True)
    return _open("files" if kind not in ("database", "query", "batches") else kind, source, options)


def _open(kind: Kind, source: Any, options: ScanOptions, query: str | None = None, table: str | None = None) -> Source:
    """Open a database, a query, Arrow batches or files."""
    if kind == "database":
        found = open_database(source, query, table)
    elif kind == "query":
        found = open_query(source)
    elif kind == "batches":
        found = open_arrow_stream(source)
    else:
        given = [_local(os.fspath(one)) for one in (source if isinstance(source, list | tuple) else [source])]
        name = "standard input" if given == [STANDARD_INPUT] else ", ".join(given)
        if any(one.startswith(SCHEMES) for one in given):
            raise UsageError("only one source can be read if it is a database", remedy="give its URL alone")
        if (folder := _folder_of_documents(given)) is not None:
            from deciban.sources.documents import documents_in  # imported only for documents

            tables = ("types", "missing", "delimiter", "header", "thousands", "date_format", "sheet")
            options.refuse(tables, name, "tables, not to documents")
            return documents_in(folder, options.encoding).without(options.ignore)
        paths = [path for one in given for path in _paths(one)]
        _refuse_twice(paths)
        found = _open_files(name, paths, options)
    if not isinstance(found, CsvSource):
        options.refuse(("thousands", "date_format", "missing"), found.name, "CSV and Excel files only")
        options.refuse(("sheet",), found.name, "Excel files only")
    if options.types:
        found = found.with_types({name: _type(name, kind) for name, kind in options.types.items()})
    return found.without(options.ignore) if options.ignore else found


def open_database(source: Any, query: str | None, table: str | None) -> Source:
    """Open a query or a table of a database."""
    if hasattr(type(source), IBIS):
        if query is not None or table is not None:
            remedy = ("leave ", Argument("query"), " and ", Argument("table"), " out")
            raise UsageError("an Ibis table cannot be combined with a query or a table name", remedy=remedy)
        from deciban.sources.connections import open_ibis

        return open_ibis(source)
    if kind_of_rows(source) != "database":
        cause = (
            Argument("query"),
            " and ",
            Argument("table"),
            " apply to databases; give a URL such as postgresql://user@host/database, or a connection",
        )
        raise UsageError(cause, remedy="to query files, use 'sql: select ...'")
    query = _one_of(query, table)
    return _of_url(source, query, table) if isinstance(source, str) else _of_connection(source, query, table)


def _one_of(query: str | None, table: str | None) -> str | None:
    """Return the query without a final semicolon; raise a UsageError unless either a query or a table is given."""
    if query is not None and table is not None:
        cause = (Argument("query"), " and ", Argument("table"), " cannot be combined")
        raise UsageError(cause, remedy="give only one of them")
    text = None if query is None else query.strip().rstrip(";").rstrip()
    if not (text or table):
        remedy = (
            "give ",
            Argument("query", "select ..."),
            ", or ",
            Argument("table", "schema.table"),
            "; in Python, pass deciban.scan(url, query='select ...') to predict and other methods",
        )
        raise UsageError("no query or table given for the database", remedy=remedy)
    return text


def _of_url(url: str, query: str | None, table: str | None) -> Source:
    from deciban.sources.postgres import Snapshots, open_postgres

    address = Address.of(url)
    return open_postgres(Snapshots(address), address.shown, query, table)


def _of_connection(connection: Any, query: str | None, table: str | None) -> Source:
    if _is_postgres_by_adbc(connection):
        from deciban.sources.postgres import GivenConnection, open_postgres

        return open_postgres(GivenConnection(connection), "the connection", query, table)
    from deciban.sources.connections import open_connection

    name = "the query" if table is None else table
    text = (
        query if query is not None else f"SELECT * FROM {DUCKDB.quote_table(table or '')}"
    )  # most engines quote like DuckDB
    return open_connection(connection, text, name)


def _is_postgres_by_adbc(connection: Any) -> bool:
    return hasattr(connection, "adbc_get_info") and connection.adbc_get_info().get("vendor_name") == "PostgreSQL"


def _check_habit(thousands: str, date_format: str) -> None:
    if len(thousands) > 1 or thousands.isalnum() or thousands in ("-", "+"):
        remedy = "expected one character, such as ','"
        raise UsageError(remedy, parameter=Argument("thousands", thousands))
    for form in date_format.split(FORMAT_SEPARATOR) if date_format else ():
        try:
            again = datetime.strptime(datetime(2024, 11, 30).strftime(form), form)
        except ValueError:
            again = datetime.min
        if again.date() != date(2024, 11, 30):
            remedy = "expected a strptime format, such as '%d.%m.%Y'"
            raise UsageError(remedy, parameter=Argument("date_format", date_format))


def _refuse_twice(paths: Sequence[str]) -> None:
    """Raise a UsageError if a file is given twice, under any name."""
    seen: dict[Any, str] = {}
    for path in paths:
        if (file := _identity(path)) in seen:
            cause = f"{seen[file]} and {path} are the same file"
            raise UsageError(cause, remedy="give it once")
        seen[file] = path


def _identity(path: str) -> Any:
    """Return the identity of a file: device and inode, or its name if it is not on a disk."""
    try:
        status = os.fstat(sys.stdin.fileno()) if path == STANDARD_INPUT else os.stat(path)
    except (OSError, AttributeError, ValueError):
        return path
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else path


def _folder_of_documents(given: Sequence[str]) -> str | None:
    """Return the folder of documents, if one is given."""
    folders = [one for one in given if os.path.isdir(os.path.expanduser(one)) and not _holds_tables(one)]
    if folders and len(given) > 1:
        cause = "a folder of documents cannot be combined with other inputs"
        remedy = "give one folder that contains all documents"
        raise UsageError(cause, place=Place(folders[0]), remedy=remedy)
    return folders[0] if folders else None


def _holds_tables(folder: str) -> bool:
    return any(name.lower().endswith(TABLES) for name in _files_in(Path(folder).expanduser()))


def _files_in(folder: Path) -> list[str]:
    """Return the files in a folder and its subfolders, without names that start with . or _."""
    found = []
    for here, folders, names in os.walk(folder):
        _refuse_versioned(Path(here))
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        found += [os.path.join(here, name) for name in names if not name.startswith((".", "_", LOCK_FILE))]
    return sorted(found)


def _refuse_versioned(folder: Path) -> None:
    """Raise a DataError for a folder of a table format whose log decides which files and rows are valid."""
    for mark, (kind, remedy) in VERSIONED_TABLES.items():
        if any(folder.glob(mark)):
            cause = f"{kind} tables are not supported, because their files may contain deleted rows"
            raise DataError(cause, place=Place(str(folder)), remedy=remedy.format(name=str(folder)))


def _local(source: str) -> str:
    """Return the path of a file:// URL, or the name unchanged; raise a UsageError for remote files."""
    found = SCHEME.match(source)
    if found is None or source.startswith(SCHEMES):
        return source
    if found[1].lower() == "file":
        parts = urlsplit(source)
        if parts.netloc in ("", "localhost"):
            return url2pathname(parts.path)
    if found[1].lower() in ("http", "https", "ftp"):
        raise UsageError("remote files are not supported", place=Place(source), remedy="download it")
    remedy = f"download it, or in Python pass pyarrow.dataset.dataset({source!r}), which may support this store"
    raise UsageError("this is not a local file", place=Place(source), remedy=remedy)


def _type(name: str, kind: str) -> str:
    if kind not in TYPES:
        *some, last = TYPES
        raise UsageError(
            "unknown type", parameter=Argument("types", {name: kind}), remedy=f"choose {', '.join(some)} or {last}"
        )
    return TYPES[kind]


def _open_files(name: str, given: Sequence[str], options: ScanOptions) -> Source:
    """Open files of one kind."""
    paths: list[Path] = []
    forms: list[FileFormat] = []
    kept: list[Any] = []
    called: dict[str, str] = {}  # names of spooled files in messages
    for file in given:
        if file == STANDARD_INPUT or not Path(file).is_file():
            kept.append(spool(file))
            called[kept[-1].name] = "standard input" if file == STANDARD_INPUT else file
            file = kept[-1].name
        path, shown = Path(file), called.get(file, file)
        with translate_errors(shown):
            found = sniff(path, shown, options.encoding, options.delimiter, options.header)
        if found.kind != "excel":
            options.refuse(("sheet",), shown, "Excel files only")
        if found.kind in ("csv", "json") and (found.encoding != "utf-8" or found.mixed_ends):
            kept.append(copy_as_utf8(path, shown, found))
            path = Path(kept[-1].name)
            called[kept[-1].name] = shown
            found = replace(found, compression=None, encoding="utf-8", mixed_ends=False)
        elif found.kind == "excel":
            from deciban.sources.excel import copy_as_csv  # imported only for spreadsheets

            copy, found = copy_as_csv(path, shown, options.sheet, options.header)
            kept.append(copy)
            path = Path(copy.name)
            called[copy.name] = shown
        paths.append(path)
        forms.append(found)
    if len({found.kind for found in forms}) > 1:
        kinds = ", ".join(found.kind for found in forms)
        raise UsageError(
            f"the files have different formats ({kinds})", place=Place(name), remedy="read files of one format"
        )
    opened: Source
    overridden = {*(options.types or ()), *options.ignore}
    if forms[0].kind == "parquet":
        opened = open_parquet(name, paths, called, overridden)
    elif forms[0].kind == "json":
        opened = open_json(name, paths, forms, called)
    elif forms[0].kind not in ("csv", "excel"):
        opened = open_arrow_files(name, paths, forms[0].kind, called, overridden)
    else:
        habit = CellHabits(thousands=options.thousands, date_format=options.date_format)
        opened = open_csv(name, paths, forms, called, options.missing, habit)
    return replace(opened, kept=tuple(kept))


def _paths(source: str) -> list[str]:
    """Return the files for a name, a folder or a glob."""
    if source == STANDARD_INPUT:
        return [source]
    if not source:
        raise UsageError("the file name is empty", remedy="give a file, a folder ('.' is the current one) or '-'")
    path = Path(source).expanduser()
    if path.is_dir():
        inside = _files_in(path)
        for endings in ENDINGS.values():
            if files := [file for file in inside if file.lower().endswith(endings)]:
                return files
        cause = "no CSV, JSON, Parquet, Arrow, ORC or Excel file found in the folder"
        raise DataError(cause, place=Place(source), remedy="give a file")
    if not path.exists() and any(mark in source for mark in "*?["):
        matches = (file for file in glob.glob(str(path), recursive=True) if not Path(file).is_dir())
        if files := sorted(file for file in matches if not Path(file).name.startswith(LOCK_FILE)):
            for folder in {folder for file in files for folder in Path(file).absolute().parents}:
                _refuse_versioned(folder)
            return files
        raise FileNotFoundError(f"{source}: no file matches this pattern")
    if not path.exists():
        raise FileNotFoundError(f"{source}: no such file")
    if not os.access(path, os.R_OK):
        raise PermissionError(f"{source}: permission denied")
    return [str(path)]
