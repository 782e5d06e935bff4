"""Tables, numbers and names as people read them in a terminal, and values as programs read them in JSON."""

import math
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from typing import Any

# Evidence in nats times this is in decibans: ten times the common logarithm of odds.
DECIBANS = 10.0 / math.log(10.0)


def align_table(lines: Iterable[Sequence[str]], right: Collection[int] = ()) -> str:
    """Lines of cells as a table; the columns in `right` (their places, from 0) end at one edge, as numbers do.

    >>> print(align_table([("name", "rows"), ("東京", "7"), ("Ulm", "12")], right=[1]))
    name  rows
    東京     7
    Ulm     12
    """
    cells = [tuple(line) for line in lines]
    widths = [max(map(text_width, column)) for column in zip(*cells, strict=True)]

    def padded(place: int, text: str) -> str:
        blank = " " * (widths[place] - text_width(text))
        return blank + text if place in right else text + blank

    return "\n".join("  ".join(padded(k, text) for k, text in enumerate(line)).rstrip() for line in cells)


def text_width(text: str) -> int:
    """How many places of a terminal a text takes: two for a wide character, such as one of Chinese, none for an accent
    that stands over the one before."""
    if text.isascii():
        return len(text)
    return sum(map(_places, text))


def _places(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def shorten(text: str, most: int) -> str:
    """A text that takes at most so many places of a terminal; "…" stands for what was cut off.

    >>> shorten("a long name", 7), shorten("a name", 7)
    ('a long…', 'a name')
    """
    if text_width(text) <= most:
        return text
    kept, width = "", 1
    for character in text:
        width += _places(character)
        if width > most:
            break
        kept += character
    return kept.rstrip() + "…"


def evidence_column(term: str) -> str:
    """The name of a column that has what a term says for the predicted class against the next best.

    >>> evidence_column("age")
    'decibans of age'
    """
    return f"decibans of {term}"


def format_class(label: object) -> str:
    """A class as people and files write it: true and false as in JSON and CSV, not as in Python.

    >>> format_class(True), format_class("True"), format_class(7)
    ('true', 'True', '7')
    """
    return str(label).lower() if type(label).__name__ in ("bool", "bool_") else str(label)


def same_label(one: object, other: object) -> bool:
    """Whether two labels are the same in a file, which knows only text; true may be written True or TRUE.

    >>> same_label("TRUE", True), same_label("7", 7), same_label("A", "a")
    (True, True, False)
    """
    if isinstance(one, bool) or isinstance(other, bool):
        return str(one).lower() == str(other).lower()
    return str(one) == str(other)


def count_noun(number: float, noun: str) -> str:
    """A number of things, in the singular where there is one.

    >>> count_noun(1, "row"), count_noun(1234, "row"), count_noun(2, "class"), count_noun(0, "category")
    ('1 row', '1,234 rows', '2 classes', '0 categories')
    """
    return f"{format_amount(number)} {noun if number == 1 else plural(noun)}"


def plural(noun: str) -> str:
    if noun.endswith("y"):
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith(("s", "x", "ch")) else "s")


def format_amount(number: float) -> str:
    """A number of rows, to the last one; a sum of weights that is no whole number to six digits."""
    return f"{number:,.0f}" if number == round(number) else f"{number:,.6g}"


def integer_if_whole(number: float) -> float | int:
    """A number for programs, as a whole number where it is one.

    >>> integer_if_whole(5.0), integer_if_whole(2.5)
    (5, 2.5)
    """
    return int(number) if number == round(number, 0) and abs(number) < 2**53 else float(number)


def format_digits(value: float) -> str:
    """A probability or another figure as people read it, in six digits; files and JSON have all of them.

    >>> format_digits(1 / 3), format_digits(1242486.25), format_digits(1e-7)
    ('0.333333', '1242486', '1e-07')
    """
    return f"{value:.0f}" if 1e6 <= abs(value) < 1e15 else f"{value:.6g}"


def format_short(value: float) -> str:
    """Format a number with three significant digits, without an exponent unless it is very small or large.

    >>> format_short(0.98574), format_short(3312.4), format_short(0.04781), format_short(1.0)
    ('0.986', '3310', '0.0478', '1')
    """
    return f"{float(f'{value:.3g}'):g}" if 1e-4 <= abs(value) < 1e6 else f"{value:.3g}"


def format_probability(value: float) -> str:
    """Format a probability as a percentage with three significant digits, bounded at 0.01% and 99.99%.

    >>> format_probability(0.95667), format_probability(1.0 - 1e-9), format_probability(1e-7), format_probability(0.5)
    ('95.7%', '> 99.99%', '< 0.01%', '50%')
    """
    if 0.0 < value < 1e-4:
        return "< 0.01%"
    if 0.9999 < value < 1.0:
        return "> 99.99%"
    return f"{format_short(100.0 * value)}%"


def format_number(value: float) -> str:
    """A number of a table as people write it: with its own digits, as far as they are not noise.

    >>> format_number(1242486.0), format_number(0.1 + 0.2), format_number(-12.5), format_number(1e300)
    ('1242486', '0.3', '-12.5', '1e+300')
    """
    return f"{value:.0f}" if value == round(value, 0) and abs(value) < 1e15 else f"{value:.12g}"


def list_names(names: Iterable[str], most: int = 12) -> str:
    shown = [repr(name) for name in names]
    return ", ".join(shown[:most] + ([f"… ({len(shown)} in all)"] if len(shown) > most else []))


def escape_line(text: str) -> str:
    r"""The text on one line, without what would move the cursor or begin another line: such characters are escaped.

    >>> escape_line("caf\u00e9\nINFO: \x1b[2J")
    'café\\nINFO: \\x1b[2J'
    """
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)


def to_json(value: Any) -> Any:
    """A value as JSON has it: numbers that it does not have are null, dates and the like are text.

    >>> to_json({True: (1, float("inf"))})
    {'true': [1, None]}
    """
    if isinstance(value, dict):
        return {format_class(to_json(key)): to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    if hasattr(value, "tolist"):  # of NumPy
        return to_json(value.tolist())
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None  # NaN is not below either
    return value if value is None or isinstance(value, bool | int | str) else str(value)
