"""Small tables that come with the package."""

from importlib.resources import as_file, files

import pyarrow as pa
from pyarrow import csv


def weather() -> pa.Table:
    """Fourteen days: outlook, temperature, humidity, wind, and whether tennis was played.

    >>> weather().num_rows
    14
    """
    return _table("weather.csv")


def messages() -> pa.Table:
    """Text messages, each spam or ham.

    >>> messages().slice(1, 1).to_pylist()
    [{'label': 'spam', 'text': 'WINNER! You have been selected for a free prize of 1000 pounds, call now to claim'}]
    """
    return _table("messages.csv")


def reviews() -> pa.Table:
    """What people say of films, books, meals and things, and whether that is good or bad.

    >>> reviews().column_names
    ['verdict', 'text']
    """
    return _table("reviews.csv")


def headlines() -> pa.Table:
    """Headlines of news, each from one of four sections.

    >>> sorted(set(headlines()["section"].to_pylist()))
    ['business', 'politics', 'science', 'sport']
    """
    return _table("headlines.csv")


def _table(name: str) -> pa.Table:
    with as_file(files(__name__) / name) as path:
        return csv.read_csv(path)
