"""Formatting of tables, numbers and names for terminals and JSON."""

import math
import shutil
import sys
import unicodedata
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from difflib import get_close_matches
from itertools import islice, zip_longest
from typing import Any, TypeVar

Name = TypeVar("Name", bound=Hashable)

# Decibans per nat: a deciban is ten times the common logarithm of odds.
DECIBANS = 10.0 / math.log(10.0)

# Characters per line of text output that is not a terminal: a notebook, a file.
DEFAULT_WIDTH = 100

# Cells of text are not wrapped to fewer characters: narrower ones are hard to read.
MIN_CELL_WIDTH = 12

# Probabilities closer to 0 or 1 than this are written as a bound.
MIN_CHANCE_WRITTEN = 1e-4


def align_table(lines: Iterable[Sequence[str]], right: Collection[int] = ()) -> str:
    """Return lines of cells as an aligned table; `right` lists the right-aligned columns, from 0.

    >>> print(align_table([("name", "rows"), ("東京", "7"), ("Ulm", "12")], right=[1]))
    name  rows
    東京     7
    Ulm     12
    """
    cells = [tuple(line) for line in lines]
    widths = [max(map(text_width, column)) for column in zip(*cells, strict=True)]

    def pad(place: int, text: str) -> str:
        blank = " " * (widths[place] - text_width(text))
        return blank + text if place in right else text + blank

    return "\n".join("  ".join(pad(k, text) for k, text in enumerate(line)).rstrip() for line in cells)


def terminal_width() -> int | None:
    """Return the width of the terminal; None if standard output is not one."""
    terminal = sys.stdout is not None and sys.stdout.isatty()
    return shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns if terminal else None


def line_width() -> int:
    """Return the width of the terminal, or 100 if standard output is not one."""
    return terminal_width() or DEFAULT_WIDTH


def wrap_lines(text: str, width: int | None) -> str:
    """Return a text with longer lines wrapped after words, and their continuations indented; None: no limit.

    >>> print(wrap_lines("12 rows: accuracy 0.75, log-loss 0.61", 24))
    12 rows: accuracy 0.75,
      log-loss 0.61
    """
    if width is None:
        return text
    return "\n".join(part for line in text.split("\n") for part in _wrap_cell(line, width, False))


def fit_table(lines: Sequence[Sequence[str]], width: int, right: Collection[int] = (), head: bool = True) -> str:
    """Return lines of cells as an aligned table of at most `width` characters per line, if possible.

    The longest texts are wrapped, but no numbers (`right`). Columns that still do not fit follow below, with the first
    column again. head: the first line contains the names of the columns.

    >>> print(fit_table([("column", "why"), ("size of the shop in 2024", "best of 10 families")], 30))
    column          why
    size of the     best of 10
      shop in 2024    families
    """
    columns = [*zip(*lines, strict=True)]
    sizes = [max(map(text_width, column)) for column in columns]
    if sum(sizes) + 2 * len(sizes) - 2 <= width:
        return align_table(lines, right)
    bodies = [max(map(text_width, column[head:]), default=0) if k in right else 0 for k, column in enumerate(columns)]
    least = [max(body, min(size, MIN_CELL_WIDTH)) for body, size in zip(bodies, sizes, strict=True)]
    tables = []
    for places in _fold(least, width):
        widths = {k: min(sizes[k], max(least[k], width)) for k in places}
        over = sum(widths.values()) + 2 * len(places) - 2 - width
        while over > 0 and (long := [k for k in places if widths[k] > least[k]]):
            widths[max(long, key=widths.__getitem__)] -= 1
            over -= 1
        cells = [[_wrap_cell(line[k], widths[k], k in right) for k in places] for line in lines]
        wrapped = [line for row in cells for line in zip_longest(*row, fillvalue="")]
        tables.append(align_table(wrapped, [j for j, k in enumerate(places) if k in right]))
    return "\n\n".join(tables)


def _fold(least: Sequence[int], width: int) -> Iterator[list[int]]:
    """Yield the places of the columns of each table: those that fit beside the first column."""
    places, used = [0], least[0]
    for k in range(1, len(least)):
        if len(places) > 1 and used + 2 + least[k] > width:
            yield places
            places, used = [0], least[0]
        places.append(k)
        used += 2 + least[k]
    yield places


def _wrap_cell(text: str, width: int, right: bool) -> list[str]:
    """Return the lines of a cell, broken after a word, "(" or "+", else anywhere; left-aligned are indented."""
    lines = []
    while text_width(text) > width:
        start = shorten(text, width + 1)[:-1] or text[:1]
        signs = (text.rfind(sign, 0, len(start)) + 1 for sign in "(+")
        after = (text.rfind(" ", 0, len(start) + 1) + 1, *signs, len(start))
        cut = next(place for place in after if text[:place].strip(" +"))
        lines.append(text[:cut].rstrip())
        text = ("" if right else "  ") + text[cut:].lstrip()
    return [*lines, text]


def text_width(text: str) -> int:
    """Return the number of terminal cells of a text.

    A wide character, such as a Chinese one, takes two; a combining accent takes none.
    """
    if text.isascii():
        return len(text)
    return sum(map(_places, text))


def _places(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def shorten(text: str, max_width: int) -> str:
    """Return a text truncated to `max_width` terminal cells; "…" marks the truncation.

    >>> shorten("a long name", 7), shorten("a name", 7)
    ('a long…', 'a name')
    """
    if text_width(text) <= max_width:
        return text
    kept, width = "", 1
    for character in text:
        width += _places(character)
        if width > max_width:
            break
        kept += character
    return kept.rstrip() + "…"


def shorten_middle(text: str, max_width: int) -> str:
    """Return a text truncated to `max_width` terminal cells, with its beginning and its end.

    >>> shorten_middle("number of siblings aboard = 2", 20)
    'number of…board = 2'
    """
    if text_width(text) <= max_width:
        return text
    end = shorten(text[::-1], max_width // 2)[-2::-1]
    return shorten(text, max_width - text_width(end)) + end.lstrip()


def evidence_column(term: str) -> str:
    """Return the name of the output column with the evidence of a term for the predicted class.

    >>> evidence_column("age")
    'decibans of age'
    """
    return f"decibans of {term}"


def format_class(label: object) -> str:
    """Return a class label as files show it: true and false as in JSON and CSV, not as in Python.

    >>> format_class(True), format_class("True"), format_class(7)
    ('true', 'True', '7')
    """
    return str(label).lower() if type(label).__name__ in ("bool", "bool_") else str(label)


def same_label(one: object, other: object) -> bool:
    """Return True if two labels are equal as text in a file; true may be spelled True or TRUE.

    >>> same_label("TRUE", True), same_label("7", 7), same_label("A", "a")
    (True, True, False)
    """
    if isinstance(one, bool) or isinstance(other, bool):
        return str(one).lower() == str(other).lower()
    return str(one) == str(other)


def count_noun(number: float, noun: str) -> str:
    """Return a number with its noun, in the singular or plural.

    >>> count_noun(1, "row"), count_noun(1234, "row"), count_noun(2, "class"), count_noun(0, "category")
    ('1 row', '1,234 rows', '2 classes', '0 categories')
    """
    return f"{format_amount(number)} {noun if number == 1 else plural(noun)}"


def note_hidden(number: float, noun: str, how: str = "") -> list[str]:
    """Return a note on what is not shown, and how to show it; none if nothing is hidden.

    >>> note_hidden(2, "more row", ": to_frame()"), note_hidden(1, "more class"), note_hidden(0, "more row")
    (['… (2 more rows: to_frame())'], ['… (1 more class)'], [])
    """
    return [f"… ({count_noun(number, noun)}{how})"] if number > 0 else []


def plural(noun: str) -> str:
    if noun.endswith("y"):
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith(("s", "x", "ch")) else "s")


def format_amount(number: float) -> str:
    """Return a number of rows with all its digits; fractional sums of weights have six digits."""
    return f"{number:,.0f}" if number == round(number) else f"{number:,.6g}"


def integer_if_whole(number: float) -> float | int:
    """Return a number as an integer if it is integral.

    >>> integer_if_whole(5.0), integer_if_whole(2.5)
    (5, 2.5)
    """
    return int(number) if number == round(number, 0) and abs(number) < 2**53 else float(number)


def format_digits(value: float) -> str:
    """Return a probability or metric with six significant digits; files and JSON have all of them.

    >>> format_digits(1 / 3), format_digits(1242486.25), format_digits(1e-7)
    ('0.333333', '1242486', '1e-07')
    """
    return f"{value:.0f}" if 1e6 <= abs(value) < 1e15 else f"{value:.6g}"


def format_three(value: float) -> str:
    """Format a number with three significant digits and a real minus sign.

    >>> format_three(0.0863785), format_three(-21.7578), format_three(1234567.0), format_three(2.3e-7)
    ('0.0864', '−21.8', '1,230,000', '2.3e−07')
    """
    if value != 0.0 and abs(value) < MIN_CHANCE_WRITTEN:
        return f"{value:.3g}".replace("-", "−")
    rounded = float(f"{value:.3g}")
    text = f"{rounded:,.0f}" if abs(rounded) >= 1000.0 else f"{rounded:.6g}"
    return text.replace("-", "−")


def format_probability(chance: float) -> str:
    """Format a probability as a percentage. Values next to 0 and 1 are written as bounds.

    >>> format_probability(0.795417), format_probability(0.999989), format_probability(0.0), format_probability(0.5)
    ('79.5%', '> 99.99%', '< 0.01%', '50%')
    """
    if chance > 1.0 - MIN_CHANCE_WRITTEN:
        return "> 99.99%"
    if chance < MIN_CHANCE_WRITTEN:
        return "< 0.01%"
    digits = 2 if min(chance, 1.0 - chance) < 0.01 else 1  # 0.12% and 99.88%, but 12.3%
    text = f"{100.0 * chance:.{digits}f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) + "%"


def format_number(value: float) -> str:
    """Return a number of a table with its own digits, without rounding noise.

    >>> format_number(1242486.0), format_number(0.1 + 0.2), format_number(-12.5), format_number(1e300)
    ('1242486', '0.3', '-12.5', '1e+300')
    """
    return f"{value:.0f}" if value == round(value, 0) and abs(value) < 1e15 else f"{value:.12g}"


def find_duplicate(names: Iterable[Name]) -> Name | None:
    """Return the first name that occurs more than once, or None."""
    seen = set[Name]()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def list_some(names: Collection[str], max_names: int = 12) -> str:
    """List the first names, and the number of the others.

    >>> list_some(["a", "b"]), list_some(["a", "b", "c", "d"], 2)
    ('a, b', 'a, b, … (2 more)')
    """
    more = [f"… ({len(names) - max_names} more)"] if len(names) > max_names else []
    return ", ".join([*islice(names, max_names), *more])


def list_names(names: Iterable[str], max_names: int = 12) -> str:
    """List the first names in quotes, and the number of the others."""
    return list_some([repr(name) for name in names], max_names)


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return the end of a message that suggests the most similar of the known names; empty if none is similar.

    >>> suggestion("Agee", ["age", "town"]), suggestion("size", ["age", "town"])
    ("; did you mean 'age'?", '')
    """
    lower = {one.lower(): one for one in known}
    found = get_close_matches(name.lower(), lower, 1)
    return f"; did you mean {lower[found[0]]!r}?" if found else ""


def escape_line(text: str) -> str:
    r"""Return the text on one line, with control characters escaped.

    >>> escape_line("caf\u00e9\nINFO: \x1b[2J")
    'café\\nINFO: \\x1b[2J'
    """
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)


def to_json(value: Any) -> Any:
    """Return a value as JSON: numbers that JSON lacks become null, dates and the like become text.

    >>> to_json({True: (1, float("inf"))})
    {'true': [1, None]}
    """
    if isinstance(value, dict):
        return {format_class(to_json(key)): to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    if hasattr(value, "tolist"):  # a NumPy value
        return to_json(value.tolist())
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None  # also False for NaN
    return value if value is None or isinstance(value, bool | int | str) else str(value)
