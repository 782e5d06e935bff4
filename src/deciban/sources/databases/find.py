"""From what the user gives, a URL, a connection or a table of Ibis, to a source of rows."""

from typing import Any

from deciban.errors import UsageError
from deciban.sources.databases.addresses import Address, is_address
from deciban.sources.databases.source import DatabaseSource
from deciban.sources.dialects import DUCKDB

# What is taken for a database, by what its class can do: a table in memory may have a column of such a name.
CONNECTION = "cursor"
IBIS = "to_pyarrow_batches"

HOW = (
    "give query='select ...', or table='schema.table'; to a call that takes neither, such as predict, give "
    "deciban.scan(url, query='select ...')"
)


def is_database(source: Any) -> bool:
    """Whether it is the URL of a database, a connection to one, or a table of Ibis."""
    return is_address(source) or hasattr(type(source), CONNECTION) or hasattr(type(source), IBIS)


def open_database(source: Any, query: str | None, table: str | None) -> DatabaseSource:
    """The source of a query, or of all rows of a table."""
    if hasattr(type(source), IBIS):
        if query is not None or table is not None:
            raise UsageError("a table of Ibis is read as it is; leave query= and table= out")
        from deciban.sources.databases.ibis import open_ibis

        return open_ibis(source)
    if not is_database(source):
        raise UsageError(
            "query= and table= are for databases: give a URL such as postgresql://user@host/database, or a connection; "
            "files are queried by 'sql: select ...'"
        )
    query = _one_of(query, table)
    return _of_url(source, query, table) if isinstance(source, str) else _of_connection(source, query, table)


def _one_of(query: str | None, table: str | None) -> str | None:
    """The query without what ends it; a UsageError unless there is either a query or a table."""
    if query is not None and table is not None:
        raise UsageError("query= and table= are both given; leave one of them out")
    text = None if query is None else query.strip().rstrip(";").rstrip()
    if not (text or table):
        raise UsageError(f"which rows of the database are meant is not said; {HOW}")
    return text


def _of_url(url: str, query: str | None, table: str | None) -> DatabaseSource:
    from deciban.sources.databases.postgres_source import open_postgres
    from deciban.sources.databases.snapshots import Snapshots

    address = Address.of(url)
    return open_postgres(Snapshots(address), address.shown, query, table)


def _of_connection(connection: Any, query: str | None, table: str | None) -> DatabaseSource:
    if _is_postgres_by_adbc(connection):
        from deciban.sources.databases.postgres_source import GivenConnection, open_postgres

        return open_postgres(GivenConnection(connection), "the connection", query, table)
    from deciban.sources.databases.connections import open_connection

    name = "the query" if table is None else table
    text = query if query is not None else f"SELECT * FROM {DUCKDB.qualified(table or '')}"  # as most engines quote
    return open_connection(connection, text, name)


def _is_postgres_by_adbc(connection: Any) -> bool:
    return hasattr(connection, "adbc_get_info") and connection.adbc_get_info().get("vendor_name") == "PostgreSQL"
