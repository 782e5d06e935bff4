"""The model file: what a classifier has learned, as data that any program can read."""
