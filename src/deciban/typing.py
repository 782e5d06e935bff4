"""Types of arguments, for annotations: rows, labels, weights, costs and priors.

They describe what the functions of deciban accept, so that an editor shows it and a type checker reports anything else.
Names with `Supports` are methods of objects of other libraries, which deciban does not import.

Examples
--------
>>> from deciban import BayesClassifier
>>> from deciban.typing import Labels, Table
>>> def train(X: Table, y: Labels) -> BayesClassifier:
...     return BayesClassifier(tune=None).fit(X, y)
>>> train([["sunny"], ["rain"]], ["no", "yes"]).predict([["rain"]]).tolist()
['yes']
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

__all__ = ["Costs", "Labels", "Path", "Prior", "Table", "Weights"]


class SupportsArray(Protocol):
    """A NumPy array, a Series, or anything that NumPy converts to an array."""

    def __array__(self) -> Any: ...


class SupportsArrow(Protocol):
    """A table or column in the format of Arrow: of pandas, polars, pyarrow, Ibis or DuckDB."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


class SupportsCsr(Protocol):
    """A sparse matrix of SciPy."""

    def tocsr(self) -> Any: ...


class SupportsRows(Protocol):
    """A relation or query of DuckDB."""

    def fetchall(self) -> Any: ...


class SupportsCursor(Protocol):
    """A connection to a database."""

    def cursor(self) -> Any: ...


class SupportsCollect(Protocol):
    """A LazyFrame of polars, or a DataFrame of Spark."""

    def collect(self) -> Any: ...


class SupportsBatches(Protocol):
    """A dataset of pyarrow."""

    def to_batches(self) -> Any: ...


class SupportsTables(Protocol):
    """The result of `deciban.scan`."""

    def tables(self) -> Any: ...


Path: TypeAlias = str | os.PathLike[str]
"""Name of a file or folder: text or a path."""

Table: TypeAlias = (
    Path
    | Mapping[Any, Any]
    | Sequence[Mapping[Any, Any] | Sequence[Any] | SupportsArray | os.PathLike[str] | None]
    | SupportsArray
    | SupportsArrow
    | SupportsCsr
    | SupportsRows
    | SupportsCursor
    | SupportsCollect
    | SupportsBatches
    | SupportsTables
)
"""Rows.

In memory: a pandas, polars or Arrow table, a DuckDB relation, a NumPy array, a SciPy sparse matrix, a dict of columns,
a list of dicts or of lists, or a list of texts.

Streamed, of any size: the name of a file, a list of paths, a glob, a folder, ``"sql: select ..."``, the URL of a
PostgreSQL database, a connection, an Ibis table, a polars LazyFrame, a pyarrow dataset, the result of `deciban.scan`,
or a Spark DataFrame.
"""

Labels: TypeAlias = str | Sequence[Any] | SupportsArray | SupportsArrow
"""Label of each row: a list, an array or a Series of texts, integers, booleans or dates, with None for a missing label.

A text is the name of the label column in the rows.
"""

Weights: TypeAlias = str | Sequence[float] | SupportsArray | SupportsArrow
"""Weight of each row: a list, an array or a Series of numbers. A text is the name of the weight column in the rows."""

Costs: TypeAlias = Path | Mapping[Any, Any] | Sequence[Any] | SupportsArray | SupportsArrow
"""Costs, as a `Loss` is created from them.

A matrix with a row per decision and a column per class; a mapping ``{class: cost of missing it}``,
``{decision: {truth: cost}}`` or ``{(decision, truth): cost}``; a table with a row per decision and a column per class;
or the name of a CSV file with such a table.
"""

Prior: TypeAlias = Literal["empirical", "smoothed", "uniform"] | Mapping[Any, float] | Sequence[float] | SupportsArray
"""Prior probability of each class: a rule, a mapping from class, or probabilities in the order of the classes."""
