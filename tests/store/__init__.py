"""Tests of the model file."""
