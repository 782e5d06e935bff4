"""Metrics, cross-validation, leave-one-out, importance, diagnosis and column selection."""
