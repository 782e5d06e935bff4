"""Types of the tables and columns that users pass."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy.typing as npt

from deciban.sources.source import Source


class HasColumns(Protocol):
    """A data frame of pandas, polars or Spark, or a relation of DuckDB or Ibis."""

    @property
    def columns(self) -> Any: ...


class HasArrowStream(Protocol):
    """A table of any library that exports Arrow streams."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...


class HasBatches(Protocol):
    """A dataset of pyarrow."""

    def to_batches(self) -> Any: ...


class HasRows(Protocol):
    """A sparse matrix or array of SciPy."""

    def tocsr(self) -> Any: ...


class HasCursor(Protocol):
    """A connection to a database."""

    def cursor(self) -> Any: ...


TableLike = (
    str
    | os.PathLike[str]
    | Sequence[os.PathLike[str]]
    | npt.ArrayLike
    | Sequence[Sequence[Any]]
    | Sequence[Mapping[str, Any]]
    | Mapping[str, Any]
    | HasColumns
    | HasArrowStream
    | HasBatches
    | HasRows
    | HasCursor
    | Source
)
"""Type of arguments that are tables: data frames, arrays, rows, texts, files, databases. `BayesClassifier.fit` lists
them all.
"""

ColumnLike = str | npt.ArrayLike | Sequence[Any] | HasArrowStream
"""Type of arguments that are labels or weights: their cells, or the name of their column in the table."""
