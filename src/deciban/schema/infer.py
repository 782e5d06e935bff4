"""Which family each column of a table has: the one that the user gives, or else the one that its cells suggest.

`MeantAs` marks columns that look like something else: texts that are numbers or dates, and identifiers.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deciban.errors import Argument, UsageError
from deciban.families import Bernoulli, Categorical, Family, Gaussian, Multinomial, Text
from deciban.families.base.checks import Unseen
from deciban.schema.schema import GIVEN, ChosenBy, ColumnGroup, ColumnSpec, MeantAs, Reason, Schema, union_schemas
from deciban.tables.cells import DATE_ORIGIN, LEADING_ZERO, NUMBER_PATTERN, TIME_ORIGIN, are_dates, is_text
from deciban.tables.row_sampling import places_by_content
from deciban.tables.table import Frame, Matrix, Table, decode_cells, take_cells
from deciban.util.arrays import Floats, Integers
from deciban.util.text_tables import count_noun, list_names

# Whole numbers with no more distinct values than this (and each about twice) are taken for codes of categories.
MAX_CODES = 10

# A column of text is probably meant as texts if its cells have so many words on average (or letters of scripts without
# spaces) and half of them are different; so many cells are looked at.
TEXT_WORDS = 3.0

TEXT_LETTERS = 8.0

LOOKED_AT = 200

# Letters of scripts that put no spaces between words: Thai, Lao, Khmer, kana, Chinese characters.
UNSPACED = re.compile("[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")

# Texts of fewer distinct values than this are categories, whatever they look like.
MIN_MEANT_TEXTS = 11

# So many cells or more may be identifiers: text of which nearly all are different, or whole numbers that all are, if
# they look like it.
MIN_NAMES = 50

NAMES_SHARE = 0.9

MIN_LONG_IDENTIFIER = 10**8

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


@dataclass(frozen=True)
class Defaults:
    """The parameters of families that are inferred."""

    alpha: float = 1.0
    unseen: Unseen = "ignore"


class Inferred(NamedTuple):
    """The family that the cells of a column suggest, what of them does, and what the column may be meant as instead."""

    family: Family
    text: str
    meant_as: MeantAs | None = None

    @property
    def reason(self) -> Reason:
        """Why the column has this family."""
        return Reason(ChosenBy.INFERRED, self.text if self.meant_as is None else f"{self.text}, {self.meant_as}")


class _Members(NamedTuple):
    """The columns of a group in the making."""

    family: Family
    columns: list[int]
    reasons: list[Reason]

    def add(self, columns: Sequence[int], reason: Reason) -> None:
        self.columns.extend(columns)
        self.reasons.extend([reason] * len(columns))

    def group(self, open_: bool) -> ColumnGroup:
        """The group of these columns, in the order of the table unless the family was given for them in another."""
        whole = ColumnGroup(self.family, tuple(self.columns), tuple(self.reasons), open_)
        return (
            whole
            if self.family.column_order_matters
            else whole.subset(np.argsort(self.columns, kind="stable").tolist())
        )


def extend_schema(
    schema: Schema, table: Table, spec: ColumnSpec, defaults: Defaults, weights: Floats | None = None
) -> Schema:
    """The schema and, behind it, the columns of `table` that it does not know yet."""
    if schema.names is None or table.names is None:
        return schema
    new = [name for name in table.names if name not in schema.columns_with_family]
    if not new or not isinstance(table, Frame):
        return schema
    return union_schemas(schema, infer_schema(table.select(new), spec, defaults, partly=True, weights=weights))


def infer_schema(
    table: Table,
    spec: ColumnSpec,
    defaults: Defaults,
    partly: bool = False,
    weights: Floats | None = None,
    rows: int | None = None,
    different: Integers | None = None,
) -> Schema:
    """The schema of a table: the families that the user gives, and for the other columns those their cells suggest.

    spec: the families of columns or blocks, or that of all columns. partly: `spec` may name columns that are still to
    come. weights: of the rows, none of them 0. rows: how many the table has that these were drawn from by lot.
    different: the places of the rows without copies of others, which identifiers are known by; None: all.
    """
    groups: dict[Any, _Members] = {}
    given = _resolve_families(table.names, table.width, spec, partly)
    for k, (columns, family) in enumerate(given):
        key = (k, family) if family.joint else family
        groups.setdefault(key, _Members(family, [], [])).add(columns, GIVEN)
    free = sorted(set(range(table.width)).difference(*(columns for columns, _ in given)))
    looks_like: list[MeantAs | None] = [None] * table.width
    for columns, found in _infer_families(table, free, defaults, weights, rows or table.rows, different):
        groups.setdefault(found.family, _Members(found.family, [], [])).add(columns, found.reason)
        for column in columns:
            looks_like[column] = found.meant_as
    return Schema(
        names=table.names,
        width=table.width,
        groups=tuple(
            one.group(one.family.accepts_new_columns and not isinstance(spec, Mapping)) for one in groups.values()
        ),
        types=table.types if isinstance(table, Frame | Matrix) else None,
        looks_like=tuple(looks_like) if any(looks_like) else None,
    )


def check_columns(names: tuple[str, ...], spec: ColumnSpec, partly: bool) -> None:
    """A UsageError where the user names columns that are not there, or gives what is no family."""
    _resolve_families(names, len(names), spec, partly)


def _resolve_families(
    known: tuple[str, ...] | None, width: int, spec: ColumnSpec, partly: bool
) -> list[tuple[list[int], Family]]:
    """The columns whose family the user gives, by their positions, with the family: a pair for each key of `spec`."""
    if spec is None:
        return []
    if not isinstance(spec, Mapping):
        _check_family(spec, "families=")
        return [(list(range(width)), spec)]
    names = known if known is not None else tuple(f"x{j}" for j in range(width))
    place: dict[Any, int] = {name: j for j, name in enumerate(names)}
    if known is None:
        place.update({j: j for j in range(width)})
    given: list[tuple[list[int], Family]] = []
    seen = set[int]()
    for key, family in spec.items():
        _check_family(family, f"columns[{key!r}]")
        members = _resolve_columns(key, place, names, partly)
        for member in members:
            if place[member] in seen:
                raise UsageError((Argument("families"), f" names {member!r} twice; a column belongs to one block"))
            seen.add(place[member])
        if members or not partly:
            given.append(([place[member] for member in members], family))
    return given


def _resolve_columns(key: Any, place: Mapping[Any, int], names: Sequence[str], partly: bool) -> list[Any]:
    """The columns that a key of `families=` names: one, or those of a block; none if all are still to come."""
    members = [member if member in place else str(member) for member in (key if isinstance(key, tuple) else (key,))]
    absent = [member for member in members if member not in place]
    if partly and len(absent) == len(members):
        return []
    if partly and absent:
        raise UsageError(
            (Argument("families"), f" names the block {key!r}, of which only a part is in the table"),
            remedy="give it whole",
        )
    if absent:
        raise UsageError(
            (
                Argument("families"),
                f" names {absent[0]!r}, which is not in the table; it has {list_names(names)} "
                "(columns that come later are for partial_fit)",
            )
        )
    return members


def _check_family(family: Any, place: str) -> None:
    if isinstance(family, type):
        raise UsageError(f"{place} is the class {family.__name__}", remedy=f"give an instance: {family.__name__}()")
    if not all(hasattr(family, verb) for verb in ("read", "count", "estimate", "joint")):
        raise UsageError(
            f"{place} is {family!r}",
            remedy=(
                "give a family such as ",
                Argument("family", "Gaussian"),
                " or ",
                Argument("family", "Categorical"),
            ),
        )


def _infer_families(
    table: Table,
    columns: list[int],
    defaults: Defaults,
    weights: Floats | None,
    rows: int,
    different: Integers | None,
) -> list[tuple[list[int], Inferred]]:
    """What the cells of columns suggest: of each, or of all together where they have one type."""
    if not columns:
        return []
    times = np.ones(table.rows) if weights is None else np.maximum(weights, 1.0)  # a row of weight 1/2 is a row too
    if isinstance(table, Matrix):
        kind = table.array.dtype.kind
        if kind == "f":
            return [(columns, Inferred(Gaussian(), "floating point"))]
        if kind == "b":
            return [(columns, Inferred(Bernoulli(defaults.alpha), "true or false"))]
        own = np.arange(table.rows) if different is None else different
        numbers = table.array
        return [
            ([j], _infer_from_integers(np.asarray(numbers[:, j]), times.sum(), defaults, rows, own)) for j in columns
        ]
    if isinstance(table, Frame):
        own = np.arange(table.rows) if different is None else different
        found = [([j], _infer_from_column(table.values([j])[0], times, defaults, rows, own)) for j in columns]
        return [(column, what) for column, what in found if what is not None]
    return [(columns, Inferred(Multinomial(defaults.alpha), "sparse counts"))]


def _infer_from_integers(
    cells: np.ndarray, times: float, defaults: Defaults, rows: int, different: Integers
) -> Inferred:
    """What whole numbers suggest.

    times: how often they occur in all, more than the cells if rows have weights. rows, different: as for
    `infer_schema`.
    """
    values = np.unique(cells)
    text = f"integers, {count_noun(values.size, 'distinct value')}"
    if are_identifiers(cells[different], values, rows * different.size // max(cells.size, 1)):
        return Inferred(Gaussian(), text, MeantAs("identifier"))
    if values.size <= min(MAX_CODES, times // 2):
        return Inferred(Categorical(defaults.alpha, unseen=defaults.unseen), text)
    return Inferred(Gaussian(), text)


def _infer_from_texts(array: pa.Array, defaults: Defaults) -> Inferred | None:
    """The family Text, where cells are texts of several words; None where they are rather names of categories."""
    filled = take_cells(array, np.flatnonzero(array.is_valid().to_numpy(zero_copy_only=False)))
    some = [(cell or "")[:10_000] for cell in decode_cells(take_cells(filled, places_by_content(filled, LOOKED_AT)))]
    if 2 * len(set(some)) <= len(some):
        return None
    words = float(np.mean([len(cell.split()) for cell in some]))
    if words >= TEXT_WORDS:
        return Inferred(Text(alpha=defaults.alpha), f"text, {words:.0f} words on average")
    letters = float(np.mean([len(UNSPACED.findall(cell)) for cell in some]))
    if letters >= TEXT_LETTERS:
        family = Text(alpha=defaults.alpha, analyzer="char", ngram_range=(1, 2))
        return Inferred(family, f"text without spaces, {letters:.0f} letters on average")
    return None


def _infer_from_column(
    array: pa.Array, times: Floats, defaults: Defaults, rows: int, different: Integers
) -> Inferred | None:
    """What the cells of a column suggest; None as long as none is filled."""
    kind = array.type
    if array.null_count == len(array) and not pa.types.is_floating(kind):
        return None
    categorical = Categorical(defaults.alpha, unseen=defaults.unseen)
    if pa.types.is_dictionary(kind):
        return Inferred(categorical, "categories")
    if pa.types.is_boolean(kind):
        return Inferred(Bernoulli(defaults.alpha), "true or false")
    if pa.types.is_integer(kind):
        filled = array.is_valid().to_numpy(zero_copy_only=False)
        cells, own = array.drop_null().to_numpy(zero_copy_only=False), (np.cumsum(filled) - 1)[different]
        return _infer_from_integers(cells, times[filled].sum(), defaults, rows, own[filled[different]])
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return Inferred(Gaussian(), "floating point" if pa.types.is_floating(kind) else "decimal numbers")
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return Inferred(Gaussian(), f"dates, as {DATE_ORIGIN}")
    if pa.types.is_time(kind):
        return Inferred(Gaussian(), f"times, as {TIME_ORIGIN}")
    if pa.types.is_duration(kind):
        return Inferred(Gaussian(), "durations, in seconds")
    if is_text(kind):
        return _infer_from_texts(array, defaults) or _infer_from_short_texts(array, categorical, different.size)
    return Inferred(categorical, str(kind))


def _infer_from_short_texts(array: pa.Array, categorical: Categorical, different: int) -> Inferred:
    """What short texts suggest: categories, though they may be meant as something else."""
    values = pc.unique(array.cast(pa.string()).drop_null())
    text = f"text, {count_noun(len(values), 'distinct value')}"
    return Inferred(categorical, text, texts_meant_as(values, different))


def texts_meant_as(values: pa.Array, cells: int) -> MeantAs | None:
    """What the distinct texts of so many cells, without those of copied rows, are probably meant as; None where they
    are categories."""
    if len(values) < MIN_MEANT_TEXTS:
        return None
    if form := date_form(values):
        return MeantAs("dates", form)
    if sign := thousands_sign(values):
        return MeantAs("thousands", sign)
    if len(values) >= MIN_NAMES and (numbers := mostly_numbers(values)) is not None:
        return numbers
    if (amounts := mostly_with_unit(values)) is not None:
        return amounts
    return MeantAs("identifier") if len(values) >= max(NAMES_SHARE * cells, MIN_NAMES) else None


def are_identifiers(cells: np.ndarray, values: np.ndarray, rows: int) -> bool:
    """Whether whole numbers, with these distinct values and drawn by lot from so many rows, number things: one by one,
    or of many digits.

    Numbers that are drawn from hardly more values than there are rows would not all be distinct by chance, unless there
    are very many rows; then they number things if they only grow.
    """
    if not values.size == cells.size >= MIN_NAMES:
        return False
    if np.abs(values).min() >= MIN_LONG_IDENTIFIER:
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
        if _matching_share(values, pattern) >= MEANT_SHARE:
            known = values.filter(pc.match_substring_regex(values, pattern))
            return next((form for form in forms if are_dates(known, form)), forms[0])
    return ""


def thousands_sign(values: pa.Array) -> str:
    """The sign between the thousands of numbers, if nearly all of these texts are such; else nothing."""
    for sign, point in ((",", "."), (".", ","), ("'", "."), (" ", ".")):
        apart = rf"^\s*[-+]?[1-9]\d{{0,2}}({re.escape(sign)}\d{{3}})+({re.escape(point)}\d*)?\s*$"
        plain = rf"^\s*[-+]?\d+({re.escape(point)}\d*)?\s*$"
        if _matching_share(values, apart) > 0.0 and _matching_share(values, f"{apart}|{plain}") >= MEANT_SHARE:
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


def _matching_share(values: pa.Array, pattern: str) -> float:
    """The share of the texts that match a pattern."""
    return float(pc.mean(pc.match_substring_regex(values, pattern).cast(pa.float64())).as_py() or 0.0)
