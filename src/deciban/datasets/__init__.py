"""Small tables that come with the package."""

from importlib.resources import as_file, files

import pyarrow as pa
from pyarrow import csv


def weather() -> pa.Table:
    """Fourteen days: outlook, temperature, humidity, wind, and whether tennis was played.

    >>> weather().num_rows
    14
    """
    with as_file(files(__name__) / "weather.csv") as path:
        return csv.read_csv(path)
