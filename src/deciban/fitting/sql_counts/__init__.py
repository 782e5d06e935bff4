"""Counting of rows by SQL inside a database: questions of families, statements, and statistics from the answers."""
