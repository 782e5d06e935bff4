"""Leaf helpers: arrays, Arrow values, sparse matrices, threads, progress, text tables, signals."""
