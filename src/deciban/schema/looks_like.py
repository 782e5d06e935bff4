"""What a column may be meant as, though its family takes it for something else: texts that are numbers or dates, and
identifiers."""

import re
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deciban.tables.cell_formats import are_dates
from deciban.tables.text_types import LEADING_ZERO, NUMBER_PATTERN

# Texts of fewer distinct values than this are categories, whatever they look like.
FEWEST_MEANT_TEXTS = 11

# So many cells or more may be identifiers: text of which nearly all are different, or whole numbers that all are, if
# they look like it.
FEWEST_NAMES = 50
NAMES_SHARE = 0.9
LEAST_LONG_IDENTIFIER = 10**8

# Of rows that are numbered, some may have been removed since; what is distinct by chance once in e**CHANCE tables.
GAPS = 1.25
CHANCE = 10.0

# A column of text is probably meant as numbers, or as dates, if this share of its values are.
MEANT_SHARE = 0.9

# The most characters of a cell that is shown as an example.
EXAMPLE_LENGTH = 20

# Forms of dates that are not ISO's, and what strptime calls them.
DATE_FORMS = {
    r"^\d{1,2}\.\d{1,2}\.\d{4}$": ("%d.%m.%Y",),
    r"^\d{1,2}/\d{1,2}/\d{4}$": ("%d/%m/%Y", "%m/%d/%Y"),
    r"^\d{1,2}-\d{1,2}-\d{4}$": ("%d-%m-%Y", "%m-%d-%Y"),
    r"^\d{4}/\d{1,2}/\d{1,2}$": ("%Y/%m/%d",),
}
# Numbers with a unit behind, or a sign of money in front.
AMOUNT = r"[-+]?(?:\d+[.,]?\d*|[.,]\d+)"
WITH_UNIT = (
    rf"^\s*{AMOUNT}\s*(?P<unit>[^\d\s.,+\-][^\d\s]{{0,9}})\s*$",
    rf"^\s*[-+]?(?P<unit>[^\w\s.,+\-]|[A-Z]{{3}}\s)\s*{AMOUNT}\s*$",
)
COMMA_BEFORE_DECIMALS = re.compile(r"\d,\d{1,2}(?!\d)")

# An identifier is a name or number of each row; the others are texts: numbers, such with signs between thousands or
# with a unit, and dates in another form than ISO's.
LooksLike = Literal["identifier", "numbers", "thousands", "units", "dates"]


@dataclass(frozen=True)
class MeantAs:
    """What a column may be meant as.

    detail: the form of dates, as strptime has it; the sign between thousands; of numbers a cell that is none, or None
    if all are; of numbers with a unit any cell. decimal_comma: whether numbers do.

    >>> str(MeantAs("numbers", "many"))
    "numbers but for cells like 'many'"
    """

    kind: LooksLike
    detail: str | None = None
    decimal_comma: bool = False

    def __str__(self) -> str:
        if self.kind == "identifier":
            return "which looks like an identifier"
        if self.kind == "dates":
            return f"dates written {self.detail}"
        if self.kind == "thousands":
            return f"numbers with thousands written {self.detail!r}"
        if self.kind == "units":
            return f"numbers with a unit, such as {self.detail!r}"
        if self.detail is not None:
            return f"numbers but for cells like {self.detail!r}"
        return "numbers with decimal commas" if self.decimal_comma else "numbers written as text"


def texts_meant_as(values: pa.Array, cells: int) -> MeantAs | None:
    """What the distinct texts of so many cells, without those of copied rows, are probably meant as; None where they
    are categories."""
    if len(values) < FEWEST_MEANT_TEXTS:
        return None
    if form := date_form(values):
        return MeantAs("dates", form)
    if sign := thousands_sign(values):
        return MeantAs("thousands", sign)
    if len(values) >= FEWEST_NAMES and (numbers := mostly_numbers(values)) is not None:
        return numbers
    if (amounts := mostly_with_unit(values)) is not None:
        return amounts
    return MeantAs("identifier") if len(values) >= max(NAMES_SHARE * cells, FEWEST_NAMES) else None


def number_things(cells: np.ndarray, values: np.ndarray, rows: int) -> bool:
    """Whether whole numbers, with these distinct values and drawn by lot from so many rows, number things: one by one,
    or of many digits.

    Numbers that are drawn from hardly more values than there are rows would not all be distinct by chance, unless there
    are very many rows; then they number things if they only grow.
    """
    if not values.size == cells.size >= FEWEST_NAMES:
        return False
    if np.abs(values).min() >= LEAST_LONG_IDENTIFIER:
        return True
    span = int(values[-1]) - int(values[0]) + 1
    if span == values.size or rows <= values.size:
        return span == values.size
    return span <= GAPS * rows and (values.size**2 > 2.0 * CHANCE * span or bool((np.diff(cells) > 0).all()))


def mostly_numbers(values: pa.Array) -> MeantAs | None:
    """Numbers, if nearly all of these texts are; None where they are not."""
    if pc.any(pc.match_substring_regex(values, LEADING_ZERO)).as_py():
        return None  # codes
    numbers = pc.match_substring_regex(values, NUMBER_PATTERN.replace("POINT", "[.,]"))
    others = values.filter(pc.invert(numbers))
    if len(others) > (1.0 - MEANT_SHARE) * len(values):
        return None
    if len(others):
        return MeantAs("numbers", _example(others))
    return MeantAs("numbers", decimal_comma=bool(pc.any(pc.match_substring(values, ",")).as_py()))


def date_form(values: pa.Array) -> str:
    """The form in which nearly all of these texts are dates, as strptime has it; nothing if they are none."""
    for pattern, forms in DATE_FORMS.items():
        if _share(values, pattern) >= MEANT_SHARE:
            known = values.filter(pc.match_substring_regex(values, pattern))
            return next((form for form in forms if are_dates(known, form)), forms[0])
    return ""


def thousands_sign(values: pa.Array) -> str:
    """The sign between the thousands of numbers, if nearly all of these texts are such; else nothing."""
    for sign, point in ((",", "."), (".", ","), ("'", "."), (" ", ".")):
        apart = rf"^\s*[-+]?[1-9]\d{{0,2}}({re.escape(sign)}\d{{3}})+({re.escape(point)}\d*)?\s*$"
        plain = rf"^\s*[-+]?\d+({re.escape(point)}\d*)?\s*$"
        if _share(values, apart) > 0.0 and _share(values, f"{apart}|{plain}") >= MEANT_SHARE:
            return sign
    return ""


def mostly_with_unit(values: pa.Array) -> MeantAs | None:
    """Numbers with a unit, if nearly all of these texts are, with the same one; None where they are not."""
    for pattern in WITH_UNIT:
        units = pc.struct_field(pc.extract_regex(values, pattern), "unit").drop_null()
        most = max((found["counts"].as_py() for found in pc.value_counts(units)), default=0)
        if most >= MEANT_SHARE * len(values):
            cell = _example(values)
            return MeantAs("units", cell, decimal_comma=COMMA_BEFORE_DECIMALS.search(cell) is not None)
    return None


def _example(cells: pa.Array) -> str:
    """The first of the cells, cut off where it is long."""
    cell = str(cells[0].as_py())
    return cell if len(cell) <= EXAMPLE_LENGTH else cell[: EXAMPLE_LENGTH - 1] + "…"


def _share(values: pa.Array, pattern: str) -> float:
    """The share of the texts that match a pattern."""
    return float(pc.mean(pc.match_substring_regex(values, pattern).cast(pa.float64())).as_py() or 0.0)
