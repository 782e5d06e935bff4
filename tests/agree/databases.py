"""The same table in each database."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyarrow import parquet

from deciban import scan
from tests.support.postgres_tables import adbc_connection, new_name, stored
from tests.support.servers import Postgres

# Types that deciban reads by a cast, or as they are, and which hold the same cells.
OTHER_TYPES = """
    SELECT height::float8, income::numeric(14, 2), visits, grade, town::varchar, member, born, seen, label::{kind}
    FROM {table} -- and all of it
"""


class Databases:
    """The same table in each database."""

    def __init__(self, server: Postgres, folder: Path, stack: ExitStack) -> None:
        self.server, self.folder, self.stack = server, folder, stack

    def postgres(self, table: pa.Table) -> Any:
        return scan(self.server.url, table=stored(self.server, table))

    def postgres_query(self, table: pa.Table) -> Any:
        name = stored(self.server, table)
        self.server.execute(f"CREATE TYPE {name}_label AS ENUM ('yes', 'perhaps', 'no')")
        kind = f"{name}_label" if pa.types.is_string(table["label"].type) else "text"
        if kind == "text":
            return scan(self.server.url, query=f"SELECT * FROM {name};")
        return scan(self.server.url, query=OTHER_TYPES.format(kind=kind, table=name))

    def adbc(self, table: pa.Table) -> Any:
        connection = self.stack.enter_context(adbc_connection(self.server))
        return scan(connection, query=f"SELECT * FROM {stored(self.server, table)}")

    def adbc_duckdb(self, table: pa.Table) -> Any:
        """A connection to another database than PostgreSQL."""
        dbapi = pytest.importorskip("adbc_driver_duckdb.dbapi")
        connection = self.stack.enter_context(dbapi.connect())
        with connection.cursor() as cursor:
            cursor.adbc_ingest("held", table)
        return scan(connection, table="held")

    def psycopg(self, table: pa.Table) -> Any:
        connection = self.stack.enter_context(self.server.connect())
        connection.autocommit = False
        return scan(connection, query=f"SELECT * FROM {stored(self.server, table)}")

    def psycopg_autocommit(self, table: pa.Table) -> Any:
        connection = self.stack.enter_context(self.server.connect())
        return scan(connection, table=stored(self.server, table))

    def duckdb_rows(self, table: pa.Table) -> Any:
        """A connection of DuckDB, which is asked itself."""
        connection = self.stack.enter_context(duckdb.connect())
        connection.register("rows", table)
        connection.execute("CREATE TABLE held AS SELECT * FROM rows")
        return scan(connection, query="SELECT * FROM held")

    def ibis(self, table: pa.Table) -> Any:
        ibis = pytest.importorskip("ibis")
        path = self.folder / f"{new_name()}.parquet"
        parquet.write_table(table, path)
        return ibis.duckdb.connect().read_parquet(path)

    def ibis_memory(self, table: pa.Table) -> Any:
        return pytest.importorskip("ibis").memtable(table)
