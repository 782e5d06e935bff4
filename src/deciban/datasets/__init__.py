"""Small example tables."""

from importlib.resources import as_file, files

import pyarrow as pa
from pyarrow import csv

__all__ = ["headlines", "messages", "reviews", "weather"]


def weather() -> pa.Table:
    """Return fourteen days of weather, and whether tennis was played.

    Returns
    -------
    pyarrow.Table
        14 rows of text: outlook, temperature, humidity, wind, play (the class, yes or no).

    Examples
    --------
    >>> from deciban.datasets import weather
    >>> weather().slice(0, 1).to_pylist()
    [{'outlook': 'sunny', 'temperature': 'hot', 'humidity': 'high', 'wind': 'weak', 'play': 'no'}]
    """
    return _table("weather.csv")


def messages() -> pa.Table:
    """Return text messages, labeled spam or ham.

    Returns
    -------
    pyarrow.Table
        48 rows: label (the class, spam or ham) and text.

    Examples
    --------
    >>> from deciban.datasets import messages
    >>> messages().slice(1, 1).to_pylist()
    [{'label': 'spam', 'text': 'WINNER! You have been selected for a free prize of 1000 pounds, call now to claim'}]
    """
    return _table("messages.csv")


def reviews() -> pa.Table:
    """Return reviews of films, books, meals and products, labeled good or bad.

    Returns
    -------
    pyarrow.Table
        240 rows: verdict (the class, good or bad) and text.

    Examples
    --------
    >>> from deciban.datasets import reviews
    >>> reviews().num_rows, reviews().column_names
    (240, ['verdict', 'text'])
    """
    return _table("reviews.csv")


def headlines() -> pa.Table:
    """Return news headlines from four sections.

    Returns
    -------
    pyarrow.Table
        48 rows: section (the class) and text.

    Examples
    --------
    >>> from deciban.datasets import headlines
    >>> sorted(set(headlines()["section"].to_pylist()))
    ['business', 'politics', 'science', 'sport']
    """
    return _table("headlines.csv")


def _table(name: str) -> pa.Table:
    with as_file(files(__name__) / name) as path:
        return csv.read_csv(path)
