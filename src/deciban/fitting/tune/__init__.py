"""Tuning on left-out rows: families, evidence weights, corrections, and rows with missing cells."""
