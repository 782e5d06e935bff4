"""Version of the package, which is written to model files."""

__version__ = "1.1.0"
