"""Compiled loops over arrays: no objects, no policy, no messages.

A module is imported on first use (`kernels.scoring.normalize`), so that importing deciban imports neither numba nor a
kernel.
"""

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    try:
        return import_module(f"{__name__}.{name}")  # the import makes it an attribute, so this runs once per module
    except ModuleNotFoundError as error:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from error
