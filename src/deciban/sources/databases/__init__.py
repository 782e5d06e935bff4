"""Rows in databases: PostgreSQL by its URL, any connection of ADBC or of Python's DB-API, any table of Ibis.

find             from what the user gives to a source of rows
addresses        URLs of databases; texts without the passwords in them
arguments        no password in the list of processes
source           what all sources in databases have in common
postgres         ADBC's driver: connections, and statements that can be interrupted; nobody else imports it
postgres_errors  its errors in the user's terms
postgres_types   what each column of a query is, and how it is read
postgres_source  a query of PostgreSQL as a source
snapshots        one moment of a database, held over several passes
waiting          waiting that can be interrupted
connections      a query of a connection that the user has, as a source
cells            values of Python as Arrow's columns, for connections that give nothing else
ibis             a table of Ibis as a source
write            rows written into a table, all or none
"""
