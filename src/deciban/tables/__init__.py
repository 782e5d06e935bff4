"""Rows in memory: tables, labels and weights, and what their cells are."""
