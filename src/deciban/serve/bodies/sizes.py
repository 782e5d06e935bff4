"""How many rows and columns a request may have."""

from deciban.serve.problems import Problem
from deciban.serve.settings import ServeSettings


def refuse_rows(rows: int, settings: ServeSettings, place: str = "rows") -> None:
    """A Problem where there are more rows, or ids of rows, than are taken."""
    if rows > settings.most_rows:
        cause = f"found more than the {settings.most_rows:,} {place} that are taken at a time"
        raise Problem(413, cause, "send them in several requests", place)


def refuse_columns(columns: int, settings: ServeSettings) -> None:
    """A Problem where there are more columns than are taken."""
    if columns > settings.most_columns:
        cause = f"found {columns:,} columns, at most {settings.most_columns:,} are taken"
        raise Problem(413, cause, "send those that the model knows", "rows")
