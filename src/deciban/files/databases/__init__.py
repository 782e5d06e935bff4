"""Rows in databases: PostgreSQL by its URL, any connection of ADBC or of Python's DB-API, any table of Ibis.

addresses        URLs of databases; texts without the passwords in them
find             from what the user gives to a source of rows
postgres         ADBC's driver: connections, queries, errors in the user's terms; nobody else imports it
snapshots        one moment of a database, held over several passes
postgres_types   what each column of a query is, and how it is read
postgres_source  a query of PostgreSQL as a source
connections      a query of a connection that the user has, as a source
cells            values of Python as Arrow's columns, for connections that give nothing else
ibis             a table of Ibis as a source
write            rows written into a table, all or none
"""
