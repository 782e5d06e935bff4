"""What texts in a column are probably meant as: dates in some form, numbers with units or signs between thousands."""

import re

import pyarrow as pa
import pyarrow.compute as pc

from deciban.tables.cell_formats import are_dates
from deciban.tables.text_types import LEADING_ZERO, NUMBER

# A column of text is probably meant as numbers, or as dates, if this share of its values are.
MOSTLY = 0.9

# Forms of dates that are not ISO's, and what strptime calls them.
DATES = {
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


def as_numbers(values: pa.Array) -> str | None:
    """What is to be said of texts of which nearly all are numbers; None where they are not."""
    if pc.any(pc.match_substring_regex(values, LEADING_ZERO)).as_py():
        return None  # codes
    numbers = pc.match_substring_regex(values, NUMBER.replace("POINT", "[.,]"))
    others = values.filter(pc.invert(numbers))
    if len(others) > (1.0 - MOSTLY) * len(values):
        return None
    if not len(others):
        commas = pc.any(pc.match_substring(values, ",")).as_py()
        return ", numbers with decimal commas" if commas else ", numbers written as text"
    return f", numbers but for cells like {_shown(others[0].as_py())}"


def date_form(values: pa.Array) -> str:
    """The form in which nearly all of these texts are dates, as strptime has it; nothing if they are none."""
    for pattern, forms in DATES.items():
        if _share(values, pattern) >= MOSTLY:
            known = values.filter(pc.match_substring_regex(values, pattern))
            return next((form for form in forms if are_dates(known, form)), forms[0])
    return ""


def thousands_sign(values: pa.Array) -> str:
    """The sign between the thousands of numbers, if nearly all of these texts are such; else nothing."""
    for sign, point in ((",", "."), (".", ","), ("'", "."), (" ", ".")):
        apart = rf"^\s*[-+]?[1-9]\d{{0,2}}({re.escape(sign)}\d{{3}})+({re.escape(point)}\d*)?\s*$"
        plain = rf"^\s*[-+]?\d+({re.escape(point)}\d*)?\s*$"
        if _share(values, apart) > 0.0 and _share(values, f"{apart}|{plain}") >= MOSTLY:
            return sign
    return ""


def with_unit(values: pa.Array) -> str:
    """One of these texts, if nearly all of them are numbers with the same unit; else nothing."""
    for pattern in WITH_UNIT:
        units = pc.struct_field(pc.extract_regex(values, pattern), "unit").drop_null()
        most = max((found["counts"].as_py() for found in pc.value_counts(units)), default=0)
        if most >= MOSTLY * len(values):
            return _shown(values[0].as_py())
    return ""


def _shown(word: str) -> str:
    return repr(word if len(word) <= 20 else word[:19] + "…")


def _share(values: pa.Array, pattern: str) -> float:
    return float(pc.mean(pc.match_substring_regex(values, pattern).cast(pa.float64())).as_py() or 0.0)
