"""Version of the package, which is written to model files."""

__version__ = "0.1.0"
