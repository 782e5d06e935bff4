"""One family of errors: each message names the cause, the place and the remedy."""

import sys
import warnings
from typing import TypeVar


class DecibanError(Exception):
    """The base class of all errors that deciban raises on purpose; catch this to catch them all.

    See Also
    --------
    UsageError : A parameter or a call that cannot be right.
    DataError : Data that cannot be used.
    ModelFileError : A model file that cannot be loaded.

    Examples
    --------
    >>> from deciban import BayesClassifier, DecibanError
    >>> try:
    ...     BayesClassifier().fit([[1.0], [2.0]], ["a"])
    ... except DecibanError as error:
    ...     print(type(error).__name__)
    DataError
    """

    names_source = False  # whether the message begins with the file, or whatever else, that it is about


class UsageError(DecibanError, ValueError):
    """A parameter or a call that cannot be right, whatever the data are. It is a ValueError too.

    Examples
    --------
    >>> from deciban import Gaussian
    >>> Gaussian(floor=-1)
    Traceback (most recent call last):
        ...
    deciban.errors.UsageError: floor=-1: give a finite number that is at least 0
    """


def missing_package(purpose: str, package: str, extra: str) -> UsageError:
    """The error for an optional package that is not installed; `extra` is the extra of deciban that installs it.

    deciban is on no package index, so extras are installed from its source.
    """
    return UsageError(
        f"{purpose} needs {package}, which is not installed; "
        f"run pip install '.[{extra}]' in the source folder of deciban"
    )


class LossError(UsageError):
    """Costs that cannot be right, or that do not fit the classes."""


class DataError(DecibanError, ValueError):
    """Data that cannot be used: the message names the column and row, the cause and the remedy. A ValueError too.

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
    """Two tables, or a table and a model, whose columns do not fit together. A DataError and a ValueError too.

    Examples
    --------
    >>> from deciban import BayesClassifier, SchemaError
    >>> numbers = BayesClassifier(tune=None).fit({"size": [1.5, 2.5]}, ["a", "b"])
    >>> words = BayesClassifier(tune=None).fit({"size": ["S", "L"]}, ["a", "b"])
    >>> try:
    ...     numbers + words
    ... except SchemaError as error:
    ...     print(error)
    column 'size' is Gaussian() in one and Categorical() in the other; fit both with the same columns=
    """


class ForgetError(DataError):
    """Rows that cannot be forgotten because they cannot have been learned. A DataError and a ValueError too.

    Examples
    --------
    >>> from deciban import BayesClassifier, ForgetError
    >>> clf = BayesClassifier(tune=None).fit({"outlook": ["sunny", "rain"]}, ["no", "yes"])
    >>> try:
    ...     clf.forget({"outlook": ["sunny"]}, ["yes"])
    ... except ForgetError as error:
    ...     print(error)
    these rows cannot be forgotten: more is taken away than was counted; give just the rows that the model has learned
    """


class ModelFileError(DecibanError, ValueError):
    """A file that is no model, is damaged, or was written by a newer version. It is a ValueError too.

    Examples
    --------
    >>> import tempfile
    >>> from deciban import ModelFileError, load
    >>> with tempfile.NamedTemporaryFile(suffix=".dcb") as file:
    ...     _ = file.write(b"something else") + file.seek(0)
    ...     try:
    ...         load(file.name)
    ...     except ModelFileError as error:
    ...         print("refused")
    refused
    """


Problem = TypeVar("Problem", bound=DecibanError)


def naming_source(problem: Problem) -> Problem:
    """The error, marked as one whose message begins with its source, so that nobody names that again."""
    problem.names_source = True
    return problem


def warn_user(message: str) -> None:
    """Warn of something, at the line outside of this package that brought it about."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == __package__:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, stacklevel=level)


class BadCell(Exception):  # noqa: N818 - never leaves the package: a DataError is made of it where names are known
    """A cell that a family cannot use: its column (as a position among those given), row, content, and the remedy."""

    def __init__(self, column: int, row: int | None, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.column = column
        self.row = row
        self.problem = problem
        self.remedy = remedy

    def as_error(self, column_name: str, first_row: int = 0) -> DataError:
        """The error a user sees, with the name of the column and the row counted from 0 in the whole table."""
        place = f"column {column_name!r}"
        if self.row is not None:
            place += f", row {self.row + first_row}"
        return DataError(f"{place}: {self.problem}; {self.remedy}")
