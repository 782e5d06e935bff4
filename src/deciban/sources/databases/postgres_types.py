"""What the columns of a query of PostgreSQL are, and how each is read: by a cast in a query around it."""

from collections.abc import Mapping
from dataclasses import dataclass

from deciban.sources.databases.postgres import Statement
from deciban.sources.databases.source import DatabaseType, distinct_names
from deciban.sources.dialects import POSTGRES

# Infinite dates, and those that Arrow cannot hold, are missing: as numbers of days they would be others.
DATES = "CASE WHEN {0} BETWEEN '4713-01-01 BC' AND '290000-01-01' THEN {0} END"

# PostgreSQL's types that are read, how, and what they are then in DuckDB's names. A decimal number would come as text.
READ = {
    "bool": ("{0}", "BOOLEAN"),
    "int2": ("{0}", "SMALLINT"),
    "int4": ("{0}", "INTEGER"),
    "int8": ("{0}", "BIGINT"),
    "oid": ("{0}::int8", "BIGINT"),
    "float4": ("{0}", "FLOAT"),
    "float8": ("{0}", "DOUBLE"),
    "numeric": ("{0}::float8", "DOUBLE"),
    "money": ("{0}::numeric::float8", "DOUBLE"),
    "date": (DATES, "DATE"),
    "timestamp": (DATES, "TIMESTAMP"),
    "timestamptz": (DATES, "TIMESTAMP WITH TIME ZONE"),
    "time": ("{0}", "TIME"),
    "uuid": ("{0}::text", "VARCHAR"),
    "char": ("{0}::text", "VARCHAR"),
}

# Categories of types that are read as text: strings of any kind, enums, addresses of networks, bits.
TEXT_CATEGORIES = frozenset("SEIV")

# What columns are read as that are to be something else.
AS_TYPES = {"VARCHAR": "text", "DOUBLE": "float8", "BOOLEAN": "boolean", "TIMESTAMP": "timestamp", "TIME": "time"}

# The names and categories of types, behind domains the types that these are made of; a row for each column even where
# the query has none.
TYPES_OF_COLUMNS = """
WITH RECURSIVE found(place, called, type) AS (
    SELECT columns.place, format_type(columns.type, NULL), columns.type
    FROM (SELECT 1) AS one LEFT JOIN (SELECT * FROM {source} AS q LIMIT 0) AS q ON true,
        unnest(ARRAY[{types}]) WITH ORDINALITY AS columns(type, place)
    UNION ALL
    SELECT place, called, typbasetype FROM found JOIN pg_type ON oid = type WHERE typtype = 'd'
)
SELECT called, typname::text AS name, typcategory::text AS category
FROM found JOIN pg_type ON oid = type WHERE typtype <> 'd' ORDER BY place
"""


@dataclass(frozen=True)
class PostgresType(DatabaseType):
    """A column of a query. read: an expression of its own type, in which {0} is the column."""

    read: str = "{0}"

    def expression(self, name: str) -> str:
        """What is selected for the column of this name of q."""
        column = f"q.{POSTGRES.identifier(name)}"
        if self.kind == self.own:
            return self.read.format(column)
        if self.kind == "VARCHAR":  # as the server writes it: a number on the way would lose digits
            return f"{column}::text"
        made = self.read.format(column) if self.own else column
        return f"CAST({made}{'::int' if self.own == 'BOOLEAN' else ''} AS {AS_TYPES[self.kind]})"


def described(statement: Statement, source: str, place: str) -> dict[str, PostgresType]:
    """The columns of a table or a query, as it stands behind FROM, and their types."""
    names = distinct_names(statement.schema(f"SELECT * FROM {source} AS q").names, place)
    types = ", ".join(f"pg_typeof(q.{POSTGRES.identifier(name)})::oid" for name in names)
    rows = statement.rows(TYPES_OF_COLUMNS.format(source=source, types=types))
    return {name: _type_of(row) for name, row in zip(names, rows, strict=True)}


def _type_of(row: Mapping[str, str]) -> PostgresType:
    read, own = READ.get(row["name"], ("{0}::text", "VARCHAR") if row["category"] in TEXT_CATEGORIES else ("{0}", ""))
    return PostgresType(own, called=row["called"], read=read)
