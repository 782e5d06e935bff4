"""Rows in files, folders, databases and queries, read piece by piece and written whole or not at all."""
