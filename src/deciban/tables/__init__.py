"""Rows in memory: cells, labels, tables, samples."""
