"""Data frames of results, in pandas, polars or Arrow: the library of the rows that a result was made from."""

import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar, Literal, TypeVar, get_args

from deciban.errors import Argument, UsageError
from deciban.util.text_tables import format_class

Library = Literal["pandas", "polars", "pyarrow"]

# Names of the libraries, the preferred one first. Arrow is always installed.
LIBRARIES: tuple[Library, ...] = get_args(Library)

# Attribute that holds the library of the rows an object was made from; a classifier has one too.
MADE_FROM = "_library"

Made = TypeVar("Made")


class Tabular:
    """Base of results and displays, whose values can be converted to a data frame.

    `_made_with` names the attributes that are results of the same rows.
    """

    _made_with: ClassVar[tuple[str, ...]] = ()

    def _columns(self) -> Mapping[str, Any]:
        """Return the columns of `to_frame`, by name."""
        raise NotImplementedError

    def to_frame(self, library: Library | None = None) -> Any:
        """Return the values as a data frame.

        Parameters
        ----------
        library : {"pandas", "polars", "pyarrow"} or None, default=None
            Library of the result. None: that of the rows the values were computed from or, if they came from elsewhere
            (a file, a list, a model file), an imported or installed one of pandas and polars, else Arrow.

        Returns
        -------
        pandas.DataFrame, polars.DataFrame or pyarrow.Table
            In polars and Arrow, a column of values of different types is text.
        """
        return self._frame(choose_library(library, self))

    def _frame(self, library: Library) -> Any:
        return make_frame(self._columns(), library)


def library_of(rows: Any) -> Library | None:
    """Return the library of a table, of a dict of columns, of a result or of a classifier; None if it has none.

    >>> import pyarrow as pa
    >>> library_of(pa.table({"x": [1]})), library_of({"x": pa.array([1])}), library_of([[1]])
    ('pyarrow', 'pyarrow', None)
    """
    if isinstance(rows, dict):
        rows = next(iter(rows.values()), None)
    known = getattr(rows, MADE_FROM, None)
    if isinstance(known, str) and known in LIBRARIES:  # a data frame may have a column of this name
        return known  # one of LIBRARIES
    packages = {kind.__module__.partition(".")[0] for kind in type(rows).__mro__}
    return next((library for library in LIBRARIES if library in packages), None)


def remember_library(made: Made, *sources: Any) -> Made:
    """Return an object that remembers the library of the first of these sources that has one, for its data frames."""
    if (library := next(filter(None, map(library_of, sources)), None)) is not None:
        vars(made)[MADE_FROM] = library  # in frozen dataclasses too: no field changes
        for name in getattr(made, "_made_with", ()):
            vars(getattr(made, name))[MADE_FROM] = library
    return made


def choose_library(library: Library | None, rows: Any = None) -> Library:
    """Return the given library, else that of the rows, else the preferred one that is imported or installed."""
    if library is not None and library not in LIBRARIES:
        raise UsageError(f"choose {', '.join(map(repr, LIBRARIES))}", parameter=Argument("library", library))
    if (known := library or library_of(rows)) is not None:
        return known
    frames = LIBRARIES[:2]
    imported = [name for name in frames if sys.modules.get(name) is not None]
    installed = (name for name in frames if name not in sys.modules and find_spec(name) is not None)
    return next(iter((*imported, *installed)), "pyarrow")


def make_frame(columns: Mapping[str, Any], library: Library) -> Any:
    """Return a data frame of these columns: arrays or lists of equal length."""
    if library == "pandas":
        return _import(library).DataFrame(dict(columns))
    import pyarrow as pa  # here, because commands without tables start faster without it

    return convert_arrow(pa.table({name: _arrow_cells(cells) for name, cells in columns.items()}), library)


def convert_arrow(table: Any, library: Library) -> Any:
    """Return an Arrow table as a data frame."""
    if library == "pyarrow":
        return table
    return table.to_pandas() if library == "pandas" else _import(library).DataFrame(table)


def _import(library: Library) -> Any:
    try:
        return import_module(library)
    except ImportError:
        raise UsageError(f"{library} is not installed", remedy=f"run pip install {library}") from None


def _arrow_cells(cells: Any) -> Any:
    """Return the cells of a column as an Arrow array; values of different types become text."""
    import pyarrow as pa

    values = cells.tolist() if str(getattr(cells, "dtype", "")) == "object" else cells
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([None if value is None else format_class(value) for value in values], pa.string())
