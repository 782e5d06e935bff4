"""Leaf helpers: arrays, sparse matrices, threads, progress, text tables, signals."""
