"""One family of errors: each names the cause, the place and the remedy."""


class DecibanError(Exception):
    """Anything deciban refuses to do; catch this to catch them all."""


class UsageError(DecibanError, ValueError):
    """A parameter or a call that cannot be meant as it stands."""


class LossError(UsageError):
    """Costs that cannot be meant as they stand, or do not fit the classes."""


class DataError(DecibanError, ValueError):
    """Data that cannot be used; the message says where, why and what to do."""


class SchemaError(DataError):
    """Two tables, or a table and a model, whose columns do not fit together."""


class ForgetError(DataError):
    """Rows that cannot be taken away because they cannot have been counted."""


class ModelFileError(DecibanError, ValueError):
    """A file that is not a model, is damaged, or was written by a newer version."""


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
