"""Base of results: described once as paragraphs and tables, shown as text and, in a notebook, as HTML."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from deciban.util.frames import Tabular
from deciban.util.text_tables import escape_line, fit_table, line_width, terminal_width, wrap_lines

# Space that does not end a line.
NO_BREAK = "\N{NO-BREAK SPACE}"


@dataclass(frozen=True)
class TextTable:
    """A table of a result: lines of cells, with a title above and notes below.

    head: names of the columns; empty for none. right: right-aligned columns. bars: start and end of a bar for each
    line, all in one unit, drawn in HTML beside column `bar_column`, on an axis that reaches at least to `bar_reach`.
    total: True if the last line is a total.

    >>> print(TextTable([("sex", "5.6"), ("age", "1.3")], ("column", "decibans"), [1], notes=["… (1 more column)"]))
    column  decibans
    sex          5.6
    age          1.3
    … (1 more column)
    """

    lines: Sequence[Sequence[str]]
    head: Sequence[str] = ()
    right: Collection[int] = ()
    title: str = ""
    notes: Sequence[str] = ()
    bars: Sequence[tuple[float, float]] = field(default=(), repr=False)
    bar_column: int = 1
    bar_reach: float = 0.0
    total: bool = False

    def __str__(self) -> str:
        return self.format(line_width())

    def format(self, width: int) -> str:
        """Return the table as text, in lines of at most `width` characters if possible."""
        every = [[*map(escape_line, line)] for line in ([self.head, *self.lines] if self.head else self.lines)]
        table = [fit_table(every, width, self.right, bool(self.head))] if every else []
        title = [escape_line(self.title)] if self.title else []
        notes = [escape_line(line) for note in self.notes for line in note.splitlines()]
        title, notes = ([wrap_lines(line, terminal_width()) for line in lines] for lines in (title, notes))
        return "\n".join([*title, *table, *notes])


@dataclass(frozen=True)
class Metrics:
    """Numbers of a result with their names, after a title; notes are paragraphs below.

    >>> print(Metrics("12 rows", [("accuracy", "0.75"), ("log-loss", "0.61")]))
    12 rows: accuracy 0.75, log-loss 0.61
    """

    title: str
    values: Sequence[tuple[str, str]]
    notes: Sequence[str] = ()

    def __str__(self) -> str:
        values = ", ".join(f"{name} {value}".replace(" ", NO_BREAK) for name, value in self.values)
        first = wrap_lines(f"{self.title}: {values}", terminal_width()).replace(NO_BREAK, " ")
        return "\n".join([first, *(wrap_lines(note, terminal_width()) for note in self.notes)])


class Aligned(str):
    """Text whose line breaks and spaces matter."""

    __slots__ = ()


# A part of a result. A string is one paragraph per line.
Part = str | TextTable | Metrics | Aligned


def format_part(part: Part) -> str:
    """Return a part as text; a terminal wraps its paragraphs after words."""
    return wrap_lines(part, terminal_width()) if type(part) is str else str(part)


class Result(Tabular):
    """Base of results: `str` and `repr` are readable text, a notebook shows HTML, `to_frame` returns a data frame."""

    def _parts(self) -> Sequence[Part]:
        """Return the contents as paragraphs and tables."""
        raise NotImplementedError

    def __str__(self) -> str:
        return "\n\n".join(map(format_part, self._parts()))

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        from deciban.web.notebook import render_result  # a program without a notebook never needs it

        return render_result(self._parts())


class Pair(Result):
    """Base of results that can also be unpacked and indexed as a pair."""

    @property
    def _pair(self) -> tuple[Any, Any]:
        raise NotImplementedError

    def __iter__(self) -> Iterator[Any]:
        return iter(self._pair)

    def __getitem__(self, place: Any) -> Any:
        return self._pair[place]

    def __len__(self) -> int:
        return 2
