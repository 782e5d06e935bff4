"""Errors with a place, a cause, a remedy and a parameter.

Python renders them with ``str``. The command line renders arguments as options, and the service renders the place as
a path in the request. No code parses a message.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any, Self

from deciban.util.text_tables import list_some, shorten

__all__ = [
    "DataError",
    "DecibanError",
    "DecibanWarning",
    "ForgetError",
    "LossError",
    "ModelFileError",
    "Place",
    "SchemaError",
    "UsageError",
]

NOT_GIVEN: Any = type("NotGiven", (), {"__repr__": lambda self: ""})()

# Characters shown of a value that prints on several lines, such as a table or an array.
MAX_VALUE_LENGTH = 60


@dataclass(frozen=True)
class Argument:
    """Argument in a message: Python shows ``alpha=3``, the command line ``--alpha 3``.

    Without a value, only the name is shown: ``families=``. A family is mentioned as ``Argument("family", "Gamma")``.
    `call` is the start of a call that Python shows around the argument. A method is mentioned as
    ``Argument("method", "retune")``.

    >>> str(Argument("missing", "n/a")), str(Argument("families")), str(Argument("family", "Gamma"))
    ("missing='n/a'", 'families=', 'Gamma()')
    >>> str(Argument("ignore", "id", call="deciban.scan('a.csv', "))
    "deciban.scan('a.csv', ignore='id')"
    """

    name: str
    value: Any = NOT_GIVEN
    call: str = ""

    def __str__(self) -> str:
        if self.name in ("family", "method"):
            return f"{self.value}()"
        text = f"{self.name}=" if self.value is NOT_GIVEN else f"{self.name}={_format_value(self.value)}"
        return f"{self.call}{text})" if self.call else text


def _format_value(value: Any) -> str:
    """Return the value of an argument on one line."""
    text = repr(value)
    return shorten(" ".join(text.split()), MAX_VALUE_LENGTH) if "\n" in text else text


@dataclass(frozen=True)
class Labels:
    """Labels in a message: Python shows ``['a', 'b']``, the command line ``a, b``. At most a dozen are shown.

    >>> str(Labels(("no", "yes"))), str(Labels(range(14)))
    ("['no', 'yes']", '[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, … (2 more)]')
    """

    values: Collection[Any]

    def __str__(self) -> str:
        return f"[{list_some(list(map(repr, self.values)))}]"


# A message: text, arguments and labels. Text is never parsed, so that a cell cannot be mistaken for an argument.
Part = Argument | Labels
Message = str | tuple[str | Part, ...]


def render_message(message: Message, argument: Callable[[Part], str] = str) -> str:
    """Return the text of a message. `argument` renders its arguments and labels."""
    if isinstance(message, str):
        return message
    return "".join(part if isinstance(part, str) else argument(part) for part in message)


@dataclass(frozen=True)
class Place:
    """Place of invalid data: source (a file or query), column, and row counted from 0. All are optional.

    >>> print(Place("a.csv", "age", 12))
    a.csv, column 'age', row 12
    >>> print(Place(column="it's"))
    column "it's"
    """

    source: str | None = None
    column: str | None = None
    row: int | None = None

    def __str__(self) -> str:
        column = None if self.column is None else f"column {self.column!r}"
        row = None if self.row is None else f"row {self.row}"
        return ", ".join(part for part in (self.source, column, row) if part is not None)

    def __bool__(self) -> bool:
        return not (self.source is None and self.column is None and self.row is None)


NOWHERE = Place()


class DecibanError(Exception):
    """Base class of all errors that deciban raises on purpose.

    Catch it to catch every error of deciban. Any other exception is a bug.

    Parameters
    ----------
    cause : str or tuple, default=""
        Description of the problem. A tuple mixes text, `Argument` and `Labels`.

    place : Place, default=Place()
        Source, column and row of the problem.

    remedy : str or tuple, default=""
        Advice on how to fix it.

    parameter : Argument, default=None
        The invalid argument.

    See Also
    --------
    UsageError : Raised for an invalid parameter or call.
    DataError : Raised for invalid data.
    ModelFileError : Raised if a model file cannot be loaded.

    Examples
    --------
    >>> from deciban import BayesClassifier, DecibanError
    >>> try:
    ...     BayesClassifier().fit([[1.0], [2.0]], ["a"])
    ... except DecibanError as error:
    ...     print(type(error).__name__)
    DataError
    """

    def __init__(
        self, cause: Message = "", *, place: Place = NOWHERE, remedy: Message = "", parameter: Argument | None = None
    ) -> None:
        super().__init__(cause)
        self.cause = cause
        self.place = place
        self.remedy = remedy
        self.parameter = parameter

    def render(
        self,
        argument: Callable[[Part], str] = str,
        place: Callable[[Place], str] = str,
        remedy: Callable[[Part], str] | None = None,
    ) -> str:
        """Return the message in one line: "place: parameter: cause; remedy".

        Parameters
        ----------
        argument : callable, default=str
            Function that renders an `Argument` or `Labels`.

        place : callable, default=str
            Function that renders the `Place`.

        remedy : callable, default=None
            Function that renders arguments in the remedy. None: use `argument`.

        Returns
        -------
        str
            The message. Missing parts are left out.
        """
        parameter = "" if self.parameter is None else argument(self.parameter)
        done = render_message(self.remedy, argument if remedy is None else remedy)
        what = "; ".join(text for text in (render_message(self.cause, argument), done) if text)
        return ": ".join(text for text in (place(self.place), parameter, what) if text)

    def __str__(self) -> str:
        return self.render()

    def add_place(self, source: str | None = None, column: str | None = None, row: int | None = None) -> Self:
        """Add the source, column or row of the problem. Known parts are kept.

        Parameters
        ----------
        source : str, default=None
            The file, query or table.

        column : str, default=None
            The name of the column.

        row : int, default=None
            The row, counted from 0.

        Returns
        -------
        DecibanError
            This error.
        """
        known = self.place
        self.place = replace(
            known,
            source=source if known.source is None else known.source,
            column=column if known.column is None else known.column,
            row=row if known.row is None else known.row,
        )
        return self


class UsageError(DecibanError, ValueError):
    """Raised for an invalid parameter or call, independent of the data.

    It is also a ValueError.

    Examples
    --------
    >>> from deciban import Gaussian
    >>> Gaussian(floor=-1)
    Traceback (most recent call last):
        ...
    deciban.errors.UsageError: floor=-1: expected a finite number, at least 0
    """


def missing_package(purpose: str, package: str, extra: str) -> UsageError:
    """Return the error for an optional package that is not installed. `extra`: the extra that installs it.

    deciban is not on a package index, so extras are installed from its source.
    """
    return UsageError(
        f"{purpose} needs {package}, which is not installed",
        remedy=f"run pip install '.[{extra}]' in the source folder of deciban",
    )


class LossError(UsageError):
    """Raised for invalid costs, and for costs that do not match the classes."""


class DataError(DecibanError, ValueError):
    """Raised for data that cannot be used, such as a negative count or a text in a column of numbers.

    The message names the column, the row, the cause and the remedy. It is also a ValueError.

    Examples
    --------
    >>> from deciban import BayesClassifier, DataError, Poisson
    >>> try:
    ...     BayesClassifier({"calls": Poisson()}).fit({"calls": [1, 2, -3]}, ["a", "b", "b"])
    ... except DataError as error:
    ...     print(error)
    column 'calls', row 2: found -3.0, expected a count 0, 1, 2, ...; use Gamma() or Gaussian() for this column
    """


class SchemaError(DataError):
    """Raised if the columns of two tables, or of a table and a model, do not match.

    It is also a DataError and a ValueError.

    Examples
    --------
    >>> from deciban import BayesClassifier, SchemaError
    >>> numbers = BayesClassifier(tune=None).fit({"size": [1.5, 2.5]}, ["a", "b"])
    >>> words = BayesClassifier(tune=None).fit({"size": ["S", "L"]}, ["a", "b"])
    >>> try:
    ...     numbers + words
    ... except SchemaError as error:
    ...     print(error)
    column 'size' is Gaussian() in one table and Categorical() in the other; fit both with the same families=
    """


class ForgetError(DataError):
    """Raised if rows to be forgotten cannot have been learned.

    It is also a DataError and a ValueError.

    Examples
    --------
    >>> from deciban import BayesClassifier, ForgetError
    >>> clf = BayesClassifier(tune=None).fit({"outlook": ["sunny", "rain"]}, ["no", "yes"])
    >>> try:
    ...     clf.forget({"outlook": ["sunny"]}, ["yes"])
    ... except ForgetError as error:
    ...     print(error)
    cannot forget these rows: some counts would become negative; pass only rows the model was trained on
    """


class ModelFileError(DecibanError, ValueError):
    """Raised if a file is not a model, is damaged, or was written by a newer version.

    It is also a ValueError.

    Examples
    --------
    >>> import tempfile
    >>> from deciban import ModelFileError, load
    >>> with tempfile.NamedTemporaryFile(suffix=".dcb") as file:
    ...     _ = file.write(b"something else") + file.seek(0)
    ...     try:
    ...         load(file.name)
    ...     except ModelFileError as error:
    ...         print("not a model")
    not a model
    """


class DecibanWarning(UserWarning):
    """Warning of deciban. The command line shows the arguments in its message as options."""

    def __init__(self, message: Message) -> None:
        super().__init__(render_message(message))
        self.message = message


class ClassPerRowWarning(DecibanWarning):
    """Warning about a target with about one class per row. The command turns it into an error."""


def warn_user(message: Message, kind: type[DecibanWarning] = DecibanWarning) -> None:
    """Issue a warning that points to the calling line outside this package."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == __package__:
        level, frame = level + 1, frame.f_back
    warnings.warn(kind(message), stacklevel=level)


class BadCell(Exception):  # noqa: N818 - internal; it becomes a DataError where the column names are known
    """Raised by a family for a cell that it cannot use. `column` is a position among the columns of the family."""

    def __init__(self, column: int, row: int | None, cause: Message, remedy: Message) -> None:
        super().__init__(cause)
        self.column = column
        self.row = row
        self.cause = cause
        self.remedy = remedy

    def as_error(self, column_name: str, first_row: int = 0) -> DataError:
        """Return the public error, with the column name and the row counted from 0 in the whole table."""
        row = None if self.row is None else self.row + first_row
        return DataError(self.cause, place=Place(column=column_name, row=row), remedy=self.remedy)
