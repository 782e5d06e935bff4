"""Find and open rows, wherever they are: in memory, in files, in queries, in databases, in Spark.

`kind_of_rows` decides what the user means. `scan` opens files and databases with options; `find_rows` and `open_rows`
open anything without.
"""

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
from deciban.tables.cells import TYPES, CellHabits
from deciban.tables.convert import as_table
from deciban.tables.table import Frame, Table

# What marks the folder of a table whose files are not all of its rows, what it is called, and how to read it.
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

# How URLs begin that are not files of this machine, and where they are.
SCHEME = re.compile(r"([a-z][a-z0-9+.-]+)://", re.IGNORECASE)

# A folder is read as the files of one of these kinds in it; one that holds none but .txt is a folder of documents.
ENDINGS = {
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".feather", ".arrows"),
    "orc": (".orc",),
    "json": (".jsonl", ".ndjson", ".json", ".jsonl.gz", ".ndjson.gz", ".json.gz"),
    "csv": (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".csv.zst", ".txt"),
}
TABLES = tuple(ending for endings in ENDINGS.values() for ending in endings if ending != ".txt")


# What is taken for a database, by what its class can do: a table in memory may have a column of such a name.
CONNECTION = "cursor"
IBIS = "to_pyarrow_batches"

Kind = Literal["source", "spark", "relation", "database", "query", "batches", "files", "memory"]


def kind_of_rows(data: Any, files: bool = False) -> Kind:
    """Return where rows are: nothing else decides that.

    files: whether texts in a list are names of files, as paths always are; else each is a row.
    """
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
    """Whether something is a dataset of pyarrow, which need not be imported to know that."""
    dataset = sys.modules.get("pyarrow.dataset")
    return dataset is not None and isinstance(data, dataset.Dataset)


@dataclass(frozen=True)
class ScanOptions:
    """The options of `scan`."""

    types: Mapping[str, str] | None = None
    ignore: Sequence[str] = ()
    missing: Sequence[str] = MISSING_WORDS
    encoding: str | None = None
    delimiter: str | None = None
    header: bool = True
    thousands: str = ""
    date_format: str = ""

    def refuse(self, names: Sequence[str], name: str, meant: str) -> None:
        """Refuse those of these options that are given: they are meant for something else than `name`."""
        given = {
            "types": self.types,
            "missing": not set(self.missing) <= set(MISSING_WORDS),
            "delimiter": self.delimiter,
            "header": not self.header,
            "thousands": self.thousands,
            "date_format": self.date_format,
        }
        for option in names:
            if given[option]:
                cause = (Argument(option), f" is for {meant}")
                raise UsageError(cause, place=Place(name), remedy="leave it out")


def find_rows(data: Any, *, files: bool = False, in_engine: bool = False) -> Any:
    """Return the source of rows that are named, or that are elsewhere; rows in memory as they are.

    files: see `kind_of_rows`. in_engine: whether relations of DuckDB stay where they are; else they are read at once.
    """
    kind = kind_of_rows(data, files)
    if kind in ("source", "memory") or (kind == "relation" and not in_engine):
        return data
    if kind == "spark":
        return SparkRows.of(data)
    return RelationSource.of(data) if kind == "relation" else _open(kind, data, ScanOptions())


def open_query_or_table(data: Any, query: str | None, table: str | None) -> Any:
    """Return the source of a query or a table of a database; without either, the data as they are."""
    return data if query is None and table is None else scan(data, query=query, table=table)


def open_rows(data: Any, types: Mapping[str, str], habit: CellHabits | None = None) -> Table | Source:
    """Open rows as a table in memory, or as a source.

    types: Arrow's types of columns that are known already. habit: how cells of CSV files were written that were learned
    before.
    """
    named = len(types) > 1 and isinstance(data, list | tuple)  # of one column, each text may be a row
    rows = find_rows(data, files=named and all(isinstance(one, str) and os.path.isfile(one) for one in data))
    return rows.as_learned(types, habit) if isinstance(rows, Source) else as_table(rows)


def open_table(data: Any, types: Mapping[str, str] | None = None, habit: CellHabits | None = None) -> Table:
    """Read all rows into memory, wherever they are."""
    rows = open_rows(data, types or {}, habit)
    return Frame(rows.table()) if isinstance(rows, Source) else rows


def scan(
    source: Any,
    *,
    query: str | None = None,
    table: str | None = None,
    types: Mapping[str, str] | None = None,
    ignore: Sequence[str] = (),
    missing: Sequence[str] = MISSING_WORDS,
    encoding: str | None = None,
    delimiter: str | None = None,
    header: bool = True,
    thousands: str = "",
    date_format: str = "",
) -> Source:
    """Open files, a query or a table of a database as a table that is streamed.

    `fit`, `predict` and all other methods that take rows accept it in place of a table and read it piece by piece, so
    that memory does not grow with its size. They also accept the name of a file. Use this function to set options of a
    file, or to read from a database.

    Parameters
    ----------
    source : str, path or list of them, connection, Ibis table, dataset or lazy frame
        A file (CSV or JSON lines, which may be packed by gzip or zstd; Parquet, Arrow or ORC), a glob, a folder, a list
        of files, "-" for standard input, or "sql: select ...", any query of DuckDB. A dataset of pyarrow or a lazy
        frame of polars. A folder of documents in folders named by their classes. A database: the URL
        of PostgreSQL ("postgresql://user@host/database"; the password is better in PGPASSWORD or ~/.pgpass), a
        connection of ADBC or of Python's DB-API, or a table of Ibis.
    query : str, default=None
        Of a database: a query, whose rows are read.
    table : str, default=None
        Of a database: a table, all rows of which are read, such as "customers" or "sales.customers".
    types : mapping of str to {"text", "number", "bool", "date", "time"}, default=None
        The types of columns that are not what they look like.
    ignore : sequence of str, default=()
        Columns to leave out.
    missing : sequence of str, default=("NA", "N/A", "NaN", "nan", "NULL", "null", "None")
        Cells of a CSV file that mean a missing one, besides empty ones.
    encoding : str, default=None
        That of a CSV file, or of documents; None finds UTF-8 and UTF-16.
    delimiter : str, default=None
        The sign between the cells of a CSV file; None finds a comma, a semicolon, a tab or a bar.
    header : bool, default=True
        Whether the first row of a CSV file has the names of the columns; else they are column1, column2 and so on.
    thousands : str, default=""
        The sign between the thousands of numbers in a CSV file, such as ",".
    date_format : str, default=""
        How dates are written in a CSV file, such as "%d.%m.%Y", if it is not ISO's way.

    Returns
    -------
    Source
        A stream of tables: `names` are its columns, `head(n)` has the first rows, `table()` all of them.

    Raises
    ------
    UsageError
        If an option cannot be meant as it stands, or a column that is named is not there.
    DataError
        If a file cannot be read as a table; the message has file, line and column, and what to do.
    FileNotFoundError, PermissionError
        If a file is not there, or may not be read.
    ConnectionError, PermissionError, TimeoutError
        If a database cannot be reached, may not be read, or takes too long.

    See Also
    --------
    BayesClassifier.fit : Learns from rows in memory, from files and from what this function returns.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from deciban import scan
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "days.csv"
    ...     _ = path.write_text("day;code;rain\\n01.02.2026;7;2,5\\n02.02.2026;8;-\\n")
    ...     rows = scan(path, types={"code": "text"}, date_format="%d.%m.%Y")
    ...     print(rows.names, rows.table().to_pylist()[0])
    ('day', 'code', 'rain') {'day': datetime.date(2026, 2, 1), 'code': '7', 'rain': 2.5}
    """
    options = ScanOptions(types, ignore, missing, encoding, delimiter, header, thousands, date_format)
    _check_habit(thousands, date_format)
    if query is not None or table is not None:
        return _open("database", source, options, query, table)
    kind = kind_of_rows(source, files=True)
    return _open("files" if kind not in ("database", "query", "batches") else kind, source, options)


def _open(kind: Kind, source: Any, options: ScanOptions, query: str | None = None, table: str | None = None) -> Source:
    """Open rows of a database, a query, Arrow's batches or files."""
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
            raise UsageError("a database is read alone", remedy="give its URL, and neither files nor another one")
        if (folder := _folder_of_documents(given)) is not None:
            from deciban.sources.documents import documents_in  # tables do not need it

            tables = ("types", "missing", "delimiter", "header", "thousands", "date_format")
            options.refuse(tables, name, "tables, and these are documents")
            return documents_in(folder, options.encoding).without(options.ignore)
        paths = [path for one in given for path in _paths(one)]
        _refuse_twice(paths)
        found = _open_files(name, paths, options)
    if not isinstance(found, CsvSource):
        options.refuse(("thousands", "date_format", "missing"), found.name, "CSV files, and this is none")
    if options.types:
        found = found.with_types({name: _type(name, kind) for name, kind in options.types.items()})
    return found.without(options.ignore) if options.ignore else found


def open_database(source: Any, query: str | None, table: str | None) -> Source:
    """Open a query of a database, or all rows of a table."""
    if hasattr(type(source), IBIS):
        if query is not None or table is not None:
            remedy = ("leave ", Argument("query"), " and ", Argument("table"), " out")
            raise UsageError("a table of Ibis is read as it is", remedy=remedy)
        from deciban.sources.connections import open_ibis

        return open_ibis(source)
    if kind_of_rows(source) != "database":
        cause = (
            Argument("query"),
            " and ",
            Argument("table"),
            " are for databases: give a URL such as postgresql://user@host/database, or a connection",
        )
        raise UsageError(cause, remedy="files are queried by 'sql: select ...'")
    query = _one_of(query, table)
    return _of_url(source, query, table) if isinstance(source, str) else _of_connection(source, query, table)


def _one_of(query: str | None, table: str | None) -> str | None:
    """The query without what ends it; a UsageError unless there is either a query or a table."""
    if query is not None and table is not None:
        cause = (Argument("query"), " and ", Argument("table"), " are both given")
        raise UsageError(cause, remedy="leave one of them out")
    text = None if query is None else query.strip().rstrip(";").rstrip()
    if not (text or table):
        remedy = (
            "give ",
            Argument("query", "select ..."),
            ", or ",
            Argument("table", "schema.table"),
            "; to a call that takes neither, such as predict, give deciban.scan(url, query='select ...')",
        )
        raise UsageError("which rows of the database are meant is not said", remedy=remedy)
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
    text = query if query is not None else f"SELECT * FROM {DUCKDB.quote_table(table or '')}"  # as most engines quote
    return open_connection(connection, text, name)


def _is_postgres_by_adbc(connection: Any) -> bool:
    return hasattr(connection, "adbc_get_info") and connection.adbc_get_info().get("vendor_name") == "PostgreSQL"


def _check_habit(thousands: str, date_format: str) -> None:
    if len(thousands) > 1 or thousands.isalnum() or thousands in ("-", "+"):
        remedy = "give the one sign that stands between them, such as ','"
        raise UsageError(remedy, parameter=Argument("thousands", thousands))
    if date_format:
        try:
            again = datetime.strptime(datetime(2024, 11, 30).strftime(date_format), date_format)
        except ValueError:
            again = datetime.min
        if again.date() != date(2024, 11, 30):
            remedy = "write it as strptime has it, such as '%d.%m.%Y'"
            raise UsageError(remedy, parameter=Argument("date_format", date_format))


def _refuse_twice(paths: Sequence[str]) -> None:
    """The rows of a file that is named twice, be it by links, would count twice."""
    seen: dict[Any, str] = {}
    for path in paths:
        if (file := _identity(path)) in seen:
            cause = f"{seen[file]} and {path} are one file, whose rows would count twice"
            raise UsageError(cause, remedy="name it once")
        seen[file] = path


def _identity(path: str) -> Any:
    """What tells a file from all others: where it is on a disk, or its name if it is on none."""
    try:
        status = os.fstat(sys.stdin.fileno()) if path == STANDARD_INPUT else os.stat(path)
    except (OSError, AttributeError, ValueError):
        return path
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else path


def _folder_of_documents(given: Sequence[str]) -> str | None:
    """The folder that is meant, if it holds no tables."""
    folders = [one for one in given if os.path.isdir(os.path.expanduser(one)) and not _holds_tables(one)]
    if folders and len(given) > 1:
        cause, remedy = "a folder of documents is read alone", "give the one folder that holds all"
        raise UsageError(cause, place=Place(folders[0]), remedy=remedy)
    return folders[0] if folders else None


def _holds_tables(folder: str) -> bool:
    return any(name.lower().endswith(TABLES) for name in _files_in(Path(folder).expanduser()))


def _files_in(folder: Path) -> list[str]:
    """The files in a folder and in those within it, but for those whose name, or folder, begins with a dot or _."""
    found = []
    for here, folders, names in os.walk(folder):
        _refuse_versioned(Path(here))
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        found += [os.path.join(here, name) for name in names if not name.startswith((".", "_"))]
    return sorted(found)


def _refuse_versioned(folder: Path) -> None:
    """A DataError for the folder of a table of which only a log tells which files, and which of their rows, count."""
    for mark, (kind, remedy) in VERSIONED_TABLES.items():
        if any(folder.glob(mark)):
            cause = f"this is a table of {kind}, whose files also have rows that were deleted"
            raise DataError(cause, place=Place(str(folder)), remedy=remedy.format(name=str(folder)))


def _local(source: str) -> str:
    """The name of a file: that of a file:// URL as a path. A UsageError for what is not on this machine."""
    found = SCHEME.match(source)
    if found is None or source.startswith(SCHEMES):
        return source
    if found[1].lower() == "file":
        parts = urlsplit(source)
        if parts.netloc in ("", "localhost"):
            return url2pathname(parts.path)
    if found[1].lower() in ("http", "https", "ftp"):
        raise UsageError("this is on the web", place=Place(source), remedy="download it")
    remedy = f"download it, or pass pyarrow.dataset.dataset({source!r}), which may know such a store"
    raise UsageError("this is not on this machine", place=Place(source), remedy=remedy)


def _type(name: str, kind: str) -> str:
    if kind not in TYPES:
        raise UsageError(f"the type of column {name!r} is {kind!r}", remedy=f"choose {', '.join(TYPES)}")
    return TYPES[kind]


def _open_files(name: str, given: Sequence[str], options: ScanOptions) -> Source:
    """Open files of one kind."""
    paths: list[Path] = []
    forms: list[FileFormat] = []
    kept: list[Any] = []
    called: dict[str, str] = {}  # what the user calls a file that is read elsewhere
    for file in given:
        if file == STANDARD_INPUT or not Path(file).is_file():
            kept.append(spool(file))
            called[kept[-1].name] = "standard input" if file == STANDARD_INPUT else file
            file = kept[-1].name
        path, shown = Path(file), called.get(file, file)
        with translate_errors(shown):
            found = sniff(path, shown, options.encoding, options.delimiter, options.header)
        if found.kind in ("csv", "json") and (found.encoding != "utf-8" or found.mixed_ends):
            kept.append(copy_as_utf8(path, shown, found))
            path = Path(kept[-1].name)
            called[kept[-1].name] = shown
            found = replace(found, compression=None, encoding="utf-8", mixed_ends=False)
        paths.append(path)
        forms.append(found)
    if len({found.kind for found in forms}) > 1:
        kinds = ", ".join(found.kind for found in forms)
        raise UsageError(f"the files are of several kinds ({kinds})", place=Place(name), remedy="choose one")
    opened: Source
    told = {*(options.types or ()), *options.ignore}
    if forms[0].kind == "parquet":
        opened = open_parquet(name, paths, called, told)
    elif forms[0].kind == "json":
        opened = open_json(name, paths, forms, called)
    elif forms[0].kind != "csv":
        opened = open_arrow_files(name, paths, forms[0].kind, called, told)
    else:
        habit = CellHabits(thousands=options.thousands, date_format=options.date_format)
        opened = open_csv(name, paths, forms, called, options.missing, habit)
    return replace(opened, kept=tuple(kept))


def _paths(source: str) -> list[str]:
    """The files that are meant."""
    if source == STANDARD_INPUT:
        return [source]
    if not source:
        raise UsageError("the name of the file is empty", remedy="give a file, a folder ('.' is this one) or '-'")
    path = Path(source).expanduser()
    if path.is_dir():
        inside = _files_in(path)
        for endings in ENDINGS.values():
            if files := [file for file in inside if file.lower().endswith(endings)]:
                return files
        cause = "no CSV, JSON, Parquet, Arrow or ORC file found in the folder"
        raise DataError(cause, place=Place(source), remedy="give a file")
    if not path.exists() and any(mark in source for mark in "*?["):
        if files := sorted(file for file in glob.glob(str(path), recursive=True) if not Path(file).is_dir()):
            for folder in {folder for file in files for folder in Path(file).absolute().parents}:
                _refuse_versioned(folder)
            return files
        raise FileNotFoundError(f"{source}: no file matches; check the pattern")
    if not path.exists():
        raise FileNotFoundError(f"{source}: there is no such file; check the name")
    if not os.access(path, os.R_OK):
        raise PermissionError(f"{source}: you may not read this file; ask its owner")
    return [str(path)]
