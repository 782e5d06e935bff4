"""From what the user says (a file, a glob, a folder, a query, standard input) to what is streamed."""

import codecs
import glob
import json
import os
import re
import shutil
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from deciban.errors import DataError, UsageError
from deciban.files.direct_readers import SHORT, ParquetReader, csv_reader, in_named_folders, json_reader
from deciban.files.documents import documents_in, is_mail, mail_files
from deciban.files.duckdb_errors import NOTHING, translated_errors
from deciban.files.line_ends import LineEnds
from deciban.files.scan import ROW_NUMBER, Reading, Scan, connect, literal, quoted
from deciban.files.sniff import FileFormat, look, refuse_long_lines
from deciban.files.stream import STANDARD_INPUT, Source
from deciban.files.temporary import Temporary, temporary
from deciban.tables.arrow import repeated
from deciban.tables.cell_formats import CellHabits
from deciban.tables.text_types import TYPES, text_type

SQL = "sql:"

# Cells of a CSV file that are missing, besides empty ones.
MISSING = ("NA", "N/A", "NaN", "nan", "NULL", "null", "None")

# Arrow's types that DuckDB gives back as they are, and what it calls them.
PLAIN = {
    "string": "VARCHAR",
    "double": "DOUBLE",
    "float": "FLOAT",
    "bool": "BOOLEAN",
    "int64": "BIGINT",
    "int32": "INTEGER",
    "int16": "SMALLINT",
    "int8": "TINYINT",
}

# What columns of JSON are read as. DuckDB takes positive numbers beside negative ones for huge ones, Arrow's decimals.
JSON_TYPES = {"JSON": "VARCHAR", '"NULL"': "VARCHAR", "HUGEINT": "BIGINT"}

# Text and names in SQL; a table there.
IN_QUOTES = re.compile(r"""\$\$(.*?)\$\$|'(?:[^']|'')*'|"(?:[^"]|"")*"|[\w/]+\.[\w.]+""", re.DOTALL)
NAME_IN_SQL = re.compile(rb"""'(?:[^']|'')*'|"(?:[^"]|"")*"|[\w.]+""")

# The rows that the types of CSV columns are first read off from; fewer where there are many columns.
HEAD_ROWS = 20_000
HEAD_CELLS = 1 << 22

# A folder is read as the files of one of these kinds in it; one that holds none but .txt is a folder of documents.
ENDINGS = {
    "parquet": (".parquet", ".pq"),
    "json": (".jsonl", ".ndjson", ".json", ".jsonl.gz", ".ndjson.gz", ".json.gz"),
    "csv": (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".csv.zst", ".txt"),
}
CSV_IN_SQL = tuple(ending for ending in ENDINGS["csv"] if ending != ".txt")  # what SQL takes for such files by name
TABLES = tuple(ending for endings in ENDINGS.values() for ending in endings if ending != ".txt")


def scan(
    source: Any,
    *,
    types: Mapping[str, str] | None = None,
    ignore: Sequence[str] = (),
    missing: Sequence[str] = MISSING,
    encoding: str | None = None,
    delimiter: str | None = None,
    header: bool = True,
    thousands: str = "",
    date_format: str = "",
) -> Source:
    """Files or a query as a table that is streamed: `fit`, `predict` and all the others take it.

    source: a file (CSV, JSON lines, Parquet; gzip or zstd), a glob, a folder, a list of files, "-" for standard input,
        or "sql: select ...", any query of DuckDB; a folder of documents in folders named by their classes, or mail.
    types: for columns that are not what they look like: "text", "number", "bool", "date", "time".
    ignore: columns to leave out. missing: cells of a CSV file that mean a missing one, besides empty ones.
    encoding, delimiter, header: of a CSV file, where they are not found by themselves; the first of documents too.
    thousands: the sign between the thousands of numbers in a CSV file, such as ",". date_format: how dates are written
        in it, such as "%d.%m.%Y", if it is not ISO's way.
    """
    _check_habit(thousands, date_format)
    if isinstance(source, str) and source.startswith(SQL):
        found = _query(source)
    else:
        given = [os.fspath(one) for one in (source if isinstance(source, list | tuple) else [source])]
        name = "standard input" if given == [STANDARD_INPUT] else ", ".join(given)
        folder = _folder_of_documents(given)
        paths = [] if folder is not None else [path for one in given for path in _paths(one)]
        _refuse_twice(paths)
        if folder is not None or _are_mail(name, paths):
            strange = {
                "types": types,
                "missing": tuple(missing) != MISSING,
                "delimiter": delimiter,
                "header": not header,
                "thousands": thousands,
                "date_format": date_format,
            }
            if any(strange.values()):
                option = next(option for option, is_given in strange.items() if is_given)
                raise UsageError(f"{name}: {option} is for tables, and these are documents; leave it out")
            documents = mail_files(name, paths, encoding) if folder is None else documents_in(folder, encoding)
            return documents.without(ignore)
        options = {"encoding": encoding, "delimiter": delimiter, "header": header}
        found = _files(name, paths, options, missing, CellHabits(thousands=thousands, date_format=date_format))
    habits = {"thousands": thousands, "date_format": date_format, "missing": not set(missing) <= set(MISSING)}
    if found.typed and any(habits.values()):
        option = next(option for option, is_given in habits.items() if is_given)
        raise UsageError(f"{found.name}: {option} is for CSV files, and this is none; leave it out")
    if types:
        found = found.with_types({name: _type(name, kind) for name, kind in types.items()})
    return found.without(ignore)


def _check_habit(thousands: str, date_format: str) -> None:
    if len(thousands) > 1 or thousands.isalnum() or thousands in ("-", "+"):
        raise UsageError(f"thousands={thousands!r}: give the one sign that stands between them, such as ','")
    if date_format:
        try:
            again = datetime.strptime(datetime(2024, 11, 30).strftime(date_format), date_format)
        except ValueError:
            again = datetime.min
        if again.date() != date(2024, 11, 30):
            raise UsageError(f"date_format={date_format!r}: write it as strptime has it, such as '%d.%m.%Y'")


def _refuse_twice(paths: Sequence[str]) -> None:
    """The rows of a file that is named twice, be it by links, would count twice."""
    seen: dict[Any, str] = {}
    for path in paths:
        if (file := _identity(path)) in seen:
            raise UsageError(f"{seen[file]} and {path} are one file, whose rows would count twice; name it once")
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
        raise UsageError(f"{folders[0]}: a folder of documents is read alone; give the one folder that holds all")
    return folders[0] if folders else None


def _holds_tables(folder: str) -> bool:
    for _, folders, names in os.walk(os.path.expanduser(folder)):
        folders[:] = [name for name in folders if not name.startswith(".")]
        if any(name.lower().endswith(TABLES) and not name.startswith((".", "_")) for name in names):
            return True
    return False


def _are_mail(name: str, paths: Sequence[str]) -> bool:
    """Whether the files are mail, all or none of them."""
    mail = {path: os.path.isfile(path) and not path.lower().endswith(TABLES) and is_mail(path) for path in paths}
    if any(mail.values()) and not all(mail.values()):
        some, other = (next(path for path, found in mail.items() if found is wanted) for wanted in (True, False))
        raise UsageError(f"{name}: the files are of several kinds ({some} is mail, {other} is not); choose one")
    return any(mail.values())


def _type(name: str, kind: str) -> str:
    if kind not in TYPES:
        raise UsageError(f"the type of column {name!r} is {kind!r}; choose {', '.join(TYPES)}")
    return TYPES[kind]


def _query(source: str) -> Scan:
    text = source.removeprefix(SQL).strip().rstrip(";")
    if not text:
        raise UsageError(f"{source!r} holds no query; write it as 'sql: select ... from ...'")
    name = "the query"
    with translated_errors(name):
        call = f"({_with_words(text)}\n)"
    columns = _described(f"SELECT * FROM {call}", name)
    reading = Reading(call, tuple((column, column) for column in columns))
    return Scan(name, tuple(columns), (reading,), own_types=columns, named=tuple(_files_in(text)))


def _files_in(query: str) -> Iterator[str]:
    """The files that are named in a query, be it as tables, in calls or in lists; globs too."""
    for found in IN_QUOTES.finditer(query):
        text = found[1] if found[1] is not None else _bare(found[0])
        yield from filter(os.path.isfile, (text, *glob.iglob(os.path.expanduser(text), recursive=True)))


def _with_words(query: str) -> str:
    """The query, in which yes and no stay text in CSV files that it names, as in those that are named alone.

    DuckDB takes them for booleans. What stands in a call of read_csv is the user's own.
    """
    import duckdb

    connection = connect()
    text = query.encode()
    try:
        with suppress(duckdb.Error):  # DuckDB will say what is wrong with the query when it is described
            ((parsed,),) = connection.execute("SELECT json_serialize_sql(?)", [query]).fetchall()
            for table in sorted(_tables_in(json.loads(parsed)), key=lambda table: -table["query_location"]):
                name = ".".join(filter(None, (table["schema_name"], table["table_name"])))
                start = table["query_location"]
                found = NAME_IN_SQL.match(text, start)
                if found is None or _bare(found[0].decode()) != name or not name.lower().endswith(CSV_IN_SQL):
                    continue
                if (call := _reading_words(connection, name)) is not None:
                    called = "" if table["alias"] else f" AS {quoted(_called_in_sql(name))}"
                    text = text[:start] + f"{call}{called}".encode() + text[found.end() :]
    finally:
        connection.close()
    return text.decode()


def _tables_in(parsed: Any) -> Iterator[dict[str, Any]]:
    """The tables that a query reads from, which DuckDB has taken apart."""
    if isinstance(parsed, dict) and parsed.get("type") == "BASE_TABLE":
        yield parsed
    for item in parsed.values() if isinstance(parsed, dict) else parsed if isinstance(parsed, list) else ():
        yield from _tables_in(item)


def _bare(token: str) -> str:
    """A name or text in SQL without its quotes."""
    quote = token[0]
    return token[1:-1].replace(2 * quote, quote) if quote in "'\"" else token


def _called_in_sql(name: str) -> str:
    """What DuckDB calls a table that is a file, if the query gives it no name."""
    return name if any(mark in name for mark in "*?[") else os.path.basename(name).split(".")[0]


def _reading_words(connection: Any, name: str) -> str | None:
    """The call that reads a CSV file; None where what DuckDB takes for booleans is true and false."""
    found = connection.sql(f"SELECT * FROM read_csv({literal(name)})")
    flags = [name for name, kind in zip(found.columns, found.types, strict=True) if str(kind) == "BOOLEAN"]
    if not flags:
        return None
    shown = ", ".join(map(quoted, flags))
    call = _as_text(name, flags)
    cells = connection.sql(f"SELECT {shown} FROM {call} LIMIT {HEAD_ROWS}").to_arrow_table()
    words = [flag for flag in flags if text_type(cells[flag]) == "VARCHAR"]
    return _as_text(name, words) if words else None


def _as_text(name: str, columns: Sequence[str]) -> str:
    types = ", ".join(f"{literal(column)}: 'VARCHAR'" for column in columns)
    return f"read_csv({literal(name)}, types={{{types}}})"


def _described(query: str, name: str, called: Mapping[str, str] = NOTHING, json_files: int = 0) -> dict[str, str]:
    """The names and types of the columns of a query; it opens all files of JSON at once."""
    connection = connect(json_files=json_files)
    try:
        with translated_errors(name, called=called):
            if len(connection.extract_statements(query)) != 1:  # before any of them is run
                raise UsageError(f"{name}: these are several statements; give one query")
            relation = connection.sql(query)
            names, types = relation.columns, [str(kind) for kind in relation.types]
    finally:
        connection.close()
    if (twice := repeated(names)) is not None:
        raise DataError(f"{name}: column {twice!r} is there more than once; give every column its own name")
    return dict(zip(names, types, strict=True))


def _files(
    name: str, given: Sequence[str], options: Mapping[str, Any], missing: Sequence[str], habit: CellHabits
) -> Scan:
    paths: list[Path] = []
    kept: list[Any] = []
    called: dict[str, str] = {}  # what the user calls a file that is read elsewhere
    for file in given:
        if file == STANDARD_INPUT or not Path(file).is_file():
            kept.append(_spooled(file))
            called[kept[-1].name] = "standard input" if file == STANDARD_INPUT else file
            file = kept[-1].name
        paths.append(Path(file))
    looks = []
    for place, path in enumerate(paths):
        shown = called.get(str(path), str(path))
        with translated_errors(shown):
            found = look(path, shown, **options)
        if found.kind != "parquet" and (found.encoding != "utf-8" or found.mixed_ends):
            copy = _recoded(path, shown, found)
            kept.append(copy)
            called[copy.name] = shown
            paths[place] = Path(copy.name)
            found = replace(found, compression=None, encoding="utf-8", mixed_ends=False)
        looks.append(found)
    if len({found.kind for found in looks}) > 1:
        raise UsageError(
            f"{name}: the files are of several kinds ({', '.join(found.kind for found in looks)}); choose one"
        )
    if looks[0].kind == "csv":
        made = _csv(name, paths, looks, missing, called, habit)
    else:
        made = {"parquet": _parquet, "json": _json}[looks[0].kind](name, paths, looks, called)
    return replace(made, files=tuple(paths), kept=tuple(kept), called=called)


def _paths(source: str) -> list[str]:
    """The files that are meant."""
    if source == STANDARD_INPUT:
        return [source]
    path = Path(source).expanduser()
    if path.is_dir():
        inside = sorted(
            str(file) for file in path.rglob("*") if file.is_file() and not file.name.startswith((".", "_"))
        )
        for endings in ENDINGS.values():
            if files := [file for file in inside if file.lower().endswith(endings)]:
                return files
        raise DataError(f"{source}: the folder holds no CSV, JSON or Parquet files; give a file")
    if not path.exists() and any(mark in source for mark in "*?["):
        if files := sorted(file for file in glob.glob(str(path), recursive=True) if not Path(file).is_dir()):
            return files
        raise FileNotFoundError(f"{source}: no file matches; check the pattern")
    if not path.exists():
        raise FileNotFoundError(f"{source}: there is no such file; check the name")
    if not os.access(path, os.R_OK):
        raise PermissionError(f"{source}: you may not read this file; ask its owner")
    return [str(path)]


def _spooled(path: str) -> Temporary:
    """Standard input or a pipe as a file on disk, so that it can be read twice."""
    if path != STANDARD_INPUT and not stat.S_ISFIFO(os.stat(path).st_mode) and not stat.S_ISCHR(os.stat(path).st_mode):
        raise DataError(f"{path}: this is no file; give a file, a folder or a pipe")
    if path == STANDARD_INPUT and sys.stdin is None:
        raise DataError("standard input is closed; give a file, or something that is read through a pipe")
    copy = temporary()
    if path == STANDARD_INPUT:
        shutil.copyfileobj(sys.stdin.buffer, copy.file, 1 << 20)
    else:
        with open(path, "rb") as pipe:
            shutil.copyfileobj(pipe, copy.file, 1 << 20)
    copy.file.flush()
    return copy


def _recoded(path: Path, name: str, found: FileFormat) -> Temporary:
    """The file as UTF-8 with lines that all end alike; line breaks within quotes stay as they are."""
    copy = temporary()
    encoding = "utf-8-sig" if found.encoding == "utf-8" else found.encoding
    decoder, ends = codecs.getincrementaldecoder(encoding)(), LineEnds(found.delimiter if found.kind == "csv" else None)
    line = 1
    with pa.input_stream(str(path), compression=found.compression) as stream:
        while block := stream.read(1 << 20):
            try:
                text = ends.unified(decoder.decode(block))
            except UnicodeDecodeError as problem:
                raise DataError(
                    f"{name}, after line {line}: {problem.reason} for {encoding}; give its encoding"
                ) from None
            line += text.count("\n")
            copy.file.write(text.encode())
        copy.file.write(ends.unified(decoder.decode(b"", final=True), final=True).encode())
    copy.file.flush()
    return copy


def _parquet(name: str, paths: Sequence[Path], looks: Sequence[FileFormat], called: Mapping[str, str]) -> Scan:
    call = f"read_parquet({_list(paths)}, union_by_name={str(len(paths) > 1).lower()}, hive_partitioning=true"
    footer = _footer(paths)
    columns = footer.types or _described(f"SELECT * FROM {call})", name, called)
    numbered = len(paths) == 1 and ROW_NUMBER not in map(str.lower, columns)
    call += f", {ROW_NUMBER}=true)" if numbered else ")"
    same = tuple((column, column) for column in columns)
    readings = (Reading(call, same),)
    rows = footer.rows or 0
    size = int(footer.row_size * rows)
    quick = ParquetReader(tuple(paths), rows, size) if footer.types and size <= SHORT else None
    return Scan(
        name, tuple(columns), readings, own_types=columns, row_size=footer.row_size, rows=footer.rows, quick=quick
    )


class Footer(NamedTuple):
    """What Parquet files say: the bytes of a row, how many rows, and types if DuckDB has the same ones."""

    row_size: float = 0.0
    rows: int | None = None
    types: dict[str, str] | None = None


def _footer(paths: Sequence[Path]) -> Footer:
    """Sooner than DuckDB would say it."""
    import pyarrow.parquet as parquet

    try:
        held = [parquet.read_metadata(path) for path in paths]
        schemas = [one.schema.to_arrow_schema() for one in held]
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        return Footer()  # DuckDB can tell what is wrong
    rows = sum(one.num_rows for one in held)
    size = sum(one.row_group(k).total_byte_size for one in held for k in range(one.num_row_groups))
    names, kinds = schemas[0].names, [str(kind) for kind in schemas[0].types]
    alike = all(schema.equals(schemas[0]) for schema in schemas) and not in_named_folders(paths)
    plain = all(names) and len({name.lower() for name in names}) == len(names) and set(kinds) <= set(PLAIN)
    types = {name: PLAIN[kind] for name, kind in zip(names, kinds, strict=True)} if alike and plain else None
    return Footer(size / max(rows, 1), rows, types)


def _json(name: str, paths: Sequence[Path], looks: Sequence[FileFormat], called: Mapping[str, str]) -> Scan:
    """All of the file is looked at for its keys and types; then it is read by these."""
    alike: dict[str, list[Path]] = {}
    for path, found in zip(paths, looks, strict=True):
        options = f"compression='{found.compression or 'none'}', map_inference_threshold=-1, hive_partitioning=true"
        alike.setdefault(options, []).append(path)
    quick = json_reader(paths, looks[0].compression) if len(alike) == 1 else None
    looked = (
        f"SELECT * FROM read_json({_list(files)}, sample_size=-1, union_by_name=true, {options})"
        for options, files in alike.items()
    )
    if quick is not None:
        columns = dict.fromkeys(quick.names, "VARCHAR")
    else:
        columns = _described(" UNION ALL BY NAME ".join(looked), name, called, len(paths))
        _refuse_keys_by_case(name, columns)
    types = {column: JSON_TYPES.get(kind, kind) for column, kind in columns.items()}
    given = ", ".join(f"{literal(column)}: {literal(kind)}" for column, kind in types.items())
    same = tuple((column, column) for column in types)
    calls = (f"read_json({_list(files)}, columns={{{given}}}, {options})" for options, files in alike.items())
    readings, size = tuple(Reading(call, same, json=True) for call in calls), looks[0].row_bytes or 0.0
    return Scan(
        name, tuple(types), readings, own_types=types, row_size=size, quick=quick, rows=quick.rows if quick else None
    )


def _refuse_keys_by_case(name: str, columns: Mapping[str, str]) -> None:
    """DuckDB tells keys that differ only in case apart by a number, and then finds no cell."""
    known = {column.lower() for column in columns}
    for column in columns:
        base, _, number = column.rpartition("_")
        if number.isdigit() and base not in columns and base.lower() in known:
            raise DataError(f"{name}: the key {base!r} is there with capitals and without; name every key in one way")


def _csv(
    name: str, paths: Sequence[Path], looks: Sequence[FileFormat], missing: Sequence[str], called: Mapping[str, str],
    habit: CellHabits,
) -> Scan:  # fmt: skip
    """Files with the same header are read together; the columns of others are united by name."""
    alike: dict[Any, list[Path]] = {}
    for path, found in zip(paths, looks, strict=True):
        if found.compression is None:
            refuse_long_lines(path, called.get(str(path), str(path)))
        key = found.header, found.delimiter, found.decimal, found.skipped, found.compression
        alike.setdefault(key, []).append(path)
    names = tuple(dict.fromkeys(column for found in looks for column in found.header))
    inner = {column: f"d{j}" for j, column in enumerate(names)}
    readings = []
    for (header, delimiter, decimal, skipped, compression), files in alike.items():
        call = (
            f"read_csv({_list(files)}, auto_detect=false, columns={{%COLUMNS%}}, header={str(looks[0].named).lower()}, "
            f"delim={literal(delimiter)}, quote='\"', escape='\"', decimal_separator='{decimal}', skip={skipped}, "
            f"comment='', nullstr=[%MISSING%], strict_mode=true, compression='{compression or 'none'}')"
        )
        columns = tuple((inner[column], column) for column in header)
        packed = compression is not None
        readings.append(Reading(call, columns, csv=True, compressed=packed, delimiter=delimiter, files=tuple(files)))
    row_bytes = None if any(found.row_bytes is None for found in looks) else looks[0].row_bytes
    scan = Scan(
        name, names, tuple(readings), row_bytes=row_bytes, decimal=looks[0].decimal, called=called, files=tuple(paths),
        missing=tuple(missing), habit=replace(habit, missing=tuple(word for word in missing if word not in MISSING)),
    )  # fmt: skip
    rows = max(1_000, min(HEAD_ROWS, HEAD_CELLS // len(names)))
    special = f'"\r\n{looks[0].delimiter}'
    plain = looks[0].delimiter.isascii() and not any(sign in cell for cell in missing for sign in special)
    if len(readings) == 1 and looks[0].text and not looks[0].skipped and plain:
        quick = csv_reader(paths, looks[0], missing, rows)
        if quick is not None:
            looked = scan.looked_at(pa.Table.from_batches([quick.first.slice(0, rows)]))
            return looked if looked.written else replace(looked, quick=quick)
    return scan.looked_at(scan.head(rows))


def _list(paths: Sequence[Path]) -> str:
    return "[" + ", ".join(literal(str(path)) for path in paths) + "]"
