"""Calls that mypy accepts, and calls whose errors it must find: a comment without an error is an error too."""

import sqlite3
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from scipy.sparse import csr_array, csr_matrix

from deciban import BayesClassifier, ColumnLike, TableLike, scan

FRAME = pl.DataFrame({"a": [1], "b": ["x"]})
CONNECTION = duckdb.connect()

TABLES: list[TableLike] = [
    *(FRAME, FRAME.lazy(), FRAME.to_arrow(), pa.table({}), pd.DataFrame(), CONNECTION.table("a")),
    *(np.ones((2, 2)), csr_array([[1]]), csr_matrix([[1]]), [[1, None, "a"]], ["a text", "another"]),
    *({"a": [1, None], "b": ("x", "y")}, [{"a": 1, "b": None}]),
    *("a.csv", ["a.csv", "b.csv"], Path("a.csv"), [Path("a.csv")], scan("a.csv")),
    *(CONNECTION, sqlite3.connect("a.db")),
]
COLUMNS: list[ColumnLike] = ["a", ["a", None], [True], np.ones(2), FRAME["a"], pd.Series(), pa.array([]), (1, 0.5)]


def make_wrong_calls() -> None:
    BayesClassifier().fit(FRAME, object())  # type: ignore[arg-type]
    BayesClassifier().fit(object(), "b")  # type: ignore[arg-type]
    BayesClassifier().predict(None)  # type: ignore[arg-type]
