"""Shared parts of families: contract, checks, smoothing, variances, Shapley values, export terms, SQL questions."""
