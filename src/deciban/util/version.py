"""The version, which model files name."""

__version__ = "0.1.0"
