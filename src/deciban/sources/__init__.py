"""Rows in files, folders, mail and queries, read piece by piece and written whole or not at all."""
