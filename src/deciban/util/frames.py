"""DataFrames of results, in pandas or polars."""

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from deciban.errors import UsageError

# In order of preference; an imported library comes before one that is only installed.
LIBRARIES = ("pandas", "polars")


def data_frame(columns: Mapping[str, Any]) -> Any:
    """Return a DataFrame of these columns: pandas, or polars if only polars is imported or installed."""
    imported = [name for name in LIBRARIES if name in sys.modules]
    for name in (*imported, *LIBRARIES):
        try:
            return import_module(name).DataFrame(dict(columns))
        except ImportError:
            continue
    raise UsageError("to_frame() needs pandas or polars", remedy="run pip install pandas")
