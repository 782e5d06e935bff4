"""The model file: the state of a classifier as data that any program can read."""
