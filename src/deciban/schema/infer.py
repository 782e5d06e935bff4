"""Infer the family of each column: the one given by the user, or the one suggested by its cells.

`LooksLike` marks columns that look like something else: texts that are numbers or dates, and identifiers.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deciban.errors import Argument, BadCell, UsageError
from deciban.families import Bernoulli, Binned, Categorical, Family, Gaussian, Multinomial, Text
from deciban.families.base.checks import Unseen
from deciban.families.base.contract import Monotone
from deciban.schema.schema import GIVEN, ChosenBy, ColumnGroup, ColumnSpec, LooksLike, Reason, Schema, union_schemas
from deciban.tables.cells import (
    COMPACT_DATE,
    DATE_ORIGIN,
    FORMAT_SEPARATOR,
    LEADING_ZERO,
    NUMBER_PATTERN,
    TIME_ORIGIN,
    are_compact_dates,
    date_of,
    is_missing_word,
    is_moment,
    is_text,
)
from deciban.tables.row_sampling import places_by_content
from deciban.tables.table import Frame, Matrix, Table, decode_cells, take_cells
from deciban.util.arrays import Floats, Integers
from deciban.util.text_tables import count_noun, list_names, suggestion

# Integers with at most this many distinct values (each about twice) are treated as codes of categories.
MAX_CODES = 10

# A column holds texts, not categories, if most cells are distinct and have this many words on average ...
TEXT_WORDS = 3.0

# ... or this many letters, in scripts without spaces.
TEXT_LETTERS = 8.0

# What a fit needs from a family, besides the defaults of its base class.
REQUIRED = ("joint", "read", "empty", "count", "estimate")

# Cells examined for this decision.
LOOKED_AT = 200

# Letters of scripts without spaces between words: Thai, Lao, Khmer, kana, Chinese characters.
UNSPACED = re.compile("[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")

# Texts with fewer distinct values than this are always categories.
MIN_MEANT_TEXTS = 11

# Minimum number of distinct values of an identifier.
MIN_NAMES = 50

# Texts are identifiers if at least this share of them is distinct; integers if all are.
NAMES_SHARE = 0.9

# Distinct integers from here on are identifiers.
MIN_LONG_IDENTIFIER = 10**8

# Range of row numbers divided by the number of rows, at most: some rows may have been removed.
GAPS = 1.25

# Numbers count as distinct by chance if that happens more than once in e**CHANCE tables.
CHANCE = 10.0

# Text looks like numbers, or dates, if at least this share of its values are.
MEANT_SHARE = 0.9

# Maximum length of an example cell in a message.
EXAMPLE_LENGTH = 20

# Dates with and without a time of day. Which numbers are days and months, and what is a month's name, is decided by
# parsing them.
DATE = re.compile(
    r"""\s*(?P<weekday>[A-Za-z]{3},\ )?(?:
    (?P<iso>\d{4}-\d\d-\d\d(?:[T\ ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?(?:Z|[+-]\d\d(?::?\d\d)?)?\s*$)
    |(?P<sign>\d{1,2}[-/.])\d{1,2}(?P<sign2>[-/.])(?P<year>\d{4}|\d\d)
    |\d{4}(?P<sign3>[-/.])\d{1,2}(?P<sign4>[-/.])\d{1,2}
    |\d{1,2}(?P<gap>[-\ ])(?P<month>[A-Za-z]{3,9})(?P<gap2>[-\ ])(?P<year2>\d{4}|\d\d)
    |(?P<month2>[A-Za-z]{3,9})\ \d{1,2}(?P<comma>,?\ )\d{4}
    )(?:(?P<before>,?\ |T)\d{1,2}:\d\d(?P<seconds>:\d\d(?P<fraction>\.\d{1,6})?)?(?P<half>\ ?[AaPp][Mm])?)?\s*""",
    re.VERBOSE,
)

# Distinct texts examined first: if fewer than half are dates, the column is not one of dates.
FIRST_DATES = 100

# Range of integers that may be dates.
FIRST_DATE, LAST_DATE = 19000101, 21001231

# Numbers, also with thousands separators.
AMOUNT = r"[-+]?(?:\d{1,3}(?:[,.'’ \x{a0}\x{202f}]\d{3})+(?:[.,]\d+)?|\d+[.,]?\d*|[.,]\d+)"

# Numbers with a unit, or with a currency symbol in front.
WITH_UNIT = (
    rf"^\s*{AMOUNT}\s*(?P<unit>[^\d\s.,+\-()'’][^\d\s]{{0,9}})\s*$",
    rf"^\s*[-+]?(?P<unit>[A-Z]{{0,3}}[^\w\s.,+\-()'’]|[A-Z]{{2,3}}\s)\s*{AMOUNT}\s*$",
)

# Negative numbers of accountants.
IN_PARENTHESES = r"^\s*\((.*)\)\s*$"

# Decimal commas, and decimal points.
DECIMALS = {mark: rf"\d[{mark}]\d{{1,2}}(\D|$)" for mark in ",."}


@dataclass(frozen=True)
class Defaults:
    """Parameters of inferred families. monotone: directions of monotone columns, whatever their family."""

    alpha: float = 1.0
    unseen: Unseen = "ignore"
    monotone: Mapping[Any, Monotone] = field(default_factory=dict)


class Inferred(NamedTuple):
    """Family suggested by the cells of a column, with the reason, and what else the column looks like."""

    family: Family
    text: str
    looks_like: LooksLike | None = None

    @property
    def reason(self) -> Reason:
        """Reason for this family."""
        return Reason(ChosenBy.INFERRED, self.text if self.looks_like is None else f"{self.text}, {self.looks_like}")


class _Members(NamedTuple):
    """Columns of a group under construction."""

    family: Family
    columns: list[int]
    reasons: list[Reason]

    def add(self, columns: Sequence[int], reason: Reason) -> None:
        self.columns.extend(columns)
        self.reasons.extend([reason] * len(columns))

    def group(self, open_: bool) -> ColumnGroup:
        """Return the group, with columns in table order unless the family is ordered."""
        whole = ColumnGroup(self.family, tuple(self.columns), tuple(self.reasons), open_)
        return (
            whole
            if self.family.column_order_matters
            else whole.subset(np.argsort(self.columns, kind="stable").tolist())
        )


def extend_schema(
    schema: Schema, table: Table, spec: ColumnSpec, defaults: Defaults, weights: Floats | None = None
) -> Schema:
    """Append the columns of `table` that are not in the schema yet."""
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
    """Return the schema of a table: the given families, and inferred ones for all other columns.

    spec: families of columns or blocks, or one family for all columns.
    partly: True if `spec` may name columns that come later.
    weights: positive weights of the rows.
    rows: number of rows in the table that these rows were sampled from.
    different: places of the rows without copies of others, used to detect identifiers; None for all.
    """
    groups: dict[Any, _Members] = {}
    given = _resolve_families(table.names, table.width, spec, partly)
    monotone = _find_monotone_columns(table, defaults, partly)
    for k, (columns, family) in enumerate(given):
        key = (k, family) if family.joint else family
        free = [column for column in columns if column not in monotone]
        for column in monotone.keys() & set(columns):
            same = family.constrain(monotone[column])
            if same is None:
                raise _make_monotone_error(table, column, f"{family} cannot be monotone")
            groups.setdefault(same, _Members(same, [], [])).add([column], GIVEN)
        if free:
            groups.setdefault(key, _Members(family, [], [])).add(free, GIVEN)
    free = _find_free_columns(table.width, given)
    for column in sorted(monotone.keys() & set(free)):
        binned = Binned(alpha=defaults.alpha, monotone=monotone[column])
        reason = Reason(ChosenBy.INFERRED, "monotone")
        groups.setdefault(binned, _Members(binned, [], [])).add([column], reason)
    free = [column for column in free if column not in monotone]
    looks_like: list[LooksLike | None] = [None] * table.width
    for columns, found in _infer_families(table, free, defaults, weights, rows or table.rows, different):
        groups.setdefault(found.family, _Members(found.family, [], [])).add(columns, found.reason)
        for column in columns:
            looks_like[column] = found.looks_like
    return Schema(
        names=table.names,
        width=table.width,
        groups=tuple(
            one.group(one.family.accepts_new_columns and not isinstance(spec, Mapping)) for one in groups.values()
        ),
        types=table.types if isinstance(table, Frame | Matrix) else None,
        looks_like=tuple(looks_like) if any(looks_like) else None,
    )


def _find_monotone_columns(table: Table, defaults: Defaults, partly: bool) -> dict[int, Monotone]:
    """Return the direction of each monotone column, by its position; raise a UsageError if it has no numbers."""
    found = {}
    names, place = _place_columns(table.names, table.width)
    for name, direction in defaults.monotone.items():
        if name in place:
            found[place[name]] = direction
        elif not partly:
            hint = suggestion(str(name), names).removeprefix("; ")
            raise UsageError((Argument("monotone"), f" names {name!r}, which is not a column of the table"),
                             remedy=hint or f"the columns are {list_names(names)}")  # fmt: skip
    for column in found:
        try:
            table.numbers([column])
        except BadCell as bad:
            raise _make_monotone_error(table, column, bad.cause) from None
    return found


def _make_monotone_error(table: Table, column: int, cause: Any) -> UsageError:
    name = _place_columns(table.names, table.width)[0][column]
    causes = cause if isinstance(cause, tuple) else (cause,)
    return UsageError((f"column {name!r} is in ", Argument("monotone"), ": ", *causes),
                      remedy="use a column of numbers without a family, or with Binned(alpha=1)")  # fmt: skip


def needs_cells(table: Table, spec: ColumnSpec, partly: bool = False) -> bool:
    """Return True if the cells of some column decide its family; otherwise `spec` and the types of columns do."""
    free = _find_free_columns(table.width, _resolve_families(table.names, table.width, spec, partly))
    if isinstance(table, Frame):
        kinds = table.table.schema.types
        return not all(pa.types.is_floating(kinds[column]) for column in free)
    return isinstance(table, Matrix) and table.array.dtype.kind not in "fb" and bool(free)


def _find_free_columns(width: int, given: list[tuple[list[int], Family]]) -> list[int]:
    """Return the positions of columns without a given family."""
    return sorted(set(range(width)).difference(*(columns for columns, _ in given)))


def check_columns(names: tuple[str, ...], spec: ColumnSpec, partly: bool) -> None:
    """Raise a UsageError if `spec` names absent columns or contains an object that is not a family."""
    _resolve_families(names, len(names), spec, partly)


def _place_columns(known: tuple[str, ...] | None, width: int) -> tuple[tuple[str, ...], dict[Any, int]]:
    """Return the names of the columns, and their positions by name; without names, also by position."""
    if known is not None:
        return known, {name: j for j, name in enumerate(known)}
    names = tuple(f"x{j}" for j in range(width))
    return names, {key: j for j, name in enumerate(names) for key in (name, j)}


def _resolve_families(
    known: tuple[str, ...] | None, width: int, spec: ColumnSpec, partly: bool
) -> list[tuple[list[int], Family]]:
    """Return the positions of columns with a given family, and the family: one pair per key of `spec`."""
    if spec is None:
        return []
    if not isinstance(spec, Mapping):
        _check_family(spec, "families=")
        return [(list(range(width)), spec)]
    names, place = _place_columns(known, width)
    given: list[tuple[list[int], Family]] = []
    seen = set[int]()
    for key, family in spec.items():
        _check_family(family, f"families[{key!r}]")
        members = _resolve_columns(key, place, names, partly)
        for member in members:
            if place[member] in seen:
                raise UsageError((Argument("families"), f" names {member!r} twice; a column belongs to one block"))
            seen.add(place[member])
        if members or not partly:
            given.append(([place[member] for member in members], family))
    return given


def _resolve_columns(key: Any, place: Mapping[Any, int], names: Sequence[str], partly: bool) -> list[Any]:
    """Return the columns named by a key of `families=`: one, or a block; none if all come later."""
    members = [member if member in place else str(member) for member in (key if isinstance(key, tuple) else (key,))]
    absent = [member for member in members if member not in place]
    if partly and len(absent) == len(members):
        return []
    if partly and absent:
        raise UsageError(
            (Argument("families"), f" names the block {key!r}, but the table has only some of its columns"),
            remedy="give all columns of the block",
        )
    if absent:
        listed = f"the columns are {list_names(names)} (only partial_fit accepts columns that come later)"
        hint = suggestion(absent[0], map(str, names)).removeprefix("; ")
        raise UsageError(
            (
                Argument("families"),
                f" names {absent[0]!r}, which is not a column of the table",
            ),
            remedy=f"{hint} {listed}" if hint else listed,
        )
    return members


def _check_family(family: Any, place: str) -> None:
    if isinstance(family, type):
        raise UsageError(f"{place} is the class {family.__name__}", remedy=f"give an instance: {family.__name__}()")
    absent = [name for name in REQUIRED if not hasattr(family, name)]
    if absent and (hasattr(family, "joint") or hasattr(family, "estimate")):  # a family of one's own
        raise UsageError(
            f"{place} is {family!r}, which lacks {list_names(absent)}",
            remedy="define what is missing; deciban.families.Family documents it",
        )
    if absent:
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
    """Infer families for columns, one by one, or for all together if they have one type."""
    if not columns:
        return []
    times = (
        np.ones(table.rows) if weights is None else np.maximum(weights, 1.0)
    )  # a row of weight 1/2 counts as one row
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
    """Infer the family of a column of integers.

    times: total weight of the cells, larger than their number if rows have weights.
    rows, different: as in `infer_schema`.
    """
    values = np.unique(cells)
    text = f"integers, {count_noun(values.size, 'distinct value')}"
    if are_dates_as_integers(values):
        return Inferred(Gaussian(), text, LooksLike("dates", COMPACT_DATE))
    if are_identifiers(cells[different], values, rows * different.size // max(cells.size, 1)):
        return Inferred(Gaussian(), text, LooksLike("identifier"))
    if values.size <= min(MAX_CODES, times // 2):
        return Inferred(Categorical(defaults.alpha, unseen=defaults.unseen), text)
    return Inferred(Gaussian(), text)


def _infer_from_texts(array: pa.Array, defaults: Defaults) -> Inferred | None:
    """Return the family Text if cells are texts of several words; None if they are more like categories."""
    filled = take_cells(array, np.flatnonzero(array.is_valid().to_numpy(zero_copy_only=False)))
    if len(filled) > LOOKED_AT >= 2 * len(pc.unique(filled)):
        return None  # as below, whichever cells are examined
    some = [(cell or "")[:10_000] for cell in decode_cells(take_cells(filled, places_by_content(filled, LOOKED_AT)))]
    if 2 * len(set(some)) <= len(some):
        return None
    meant = text_looks_like(pa.array(sorted(set(some)), pa.string()), len(some))
    if meant is not None and meant.kind != "identifier":
        return None  # a date may have several words
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
    """Infer the family of an Arrow column; None if no cell is filled."""
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
    if is_moment(kind):
        return Inferred(Gaussian(), f"dates, as {DATE_ORIGIN}")
    if pa.types.is_time(kind):
        return Inferred(Gaussian(), f"times, as {TIME_ORIGIN}")
    if pa.types.is_duration(kind):
        return Inferred(Gaussian(), "durations, in seconds")
    if is_text(kind):
        return _infer_from_texts(array, defaults) or _infer_from_short_texts(array, categorical, different.size)
    return Inferred(categorical, str(kind))


def _infer_from_short_texts(array: pa.Array, categorical: Categorical, different: int) -> Inferred:
    """Infer categories from short texts, and detect what else they may be."""
    values = pc.unique(array.cast(pa.string()).drop_null())
    text = f"text, {count_noun(len(values), 'distinct value')}"
    return Inferred(categorical, text, text_looks_like(values, different))


def text_looks_like(values: pa.Array, cells: int) -> LooksLike | None:
    """Return what distinct texts look like; None if they look like categories.

    cells: number of cells they come from, without those of copied rows.
    """
    if len(values) < MIN_MEANT_TEXTS:
        return None
    if (dates := mostly_dates(values)) is not None:
        return dates
    if (amounts := mostly_in_parentheses(values)) is not None:
        return amounts
    if sign := thousands_sign(values):
        return LooksLike("thousands", sign)
    if len(values) >= MIN_NAMES and (numbers := mostly_numbers(values)) is not None:
        return numbers
    if (amounts := mostly_with_unit(values)) is not None:
        return amounts
    return LooksLike("identifier") if len(values) >= max(NAMES_SHARE * cells, MIN_NAMES) else None


def are_dates_as_integers(values: np.ndarray) -> bool:
    """Return True if distinct integers look like dates from 1900 to 2100, such as 20241031."""
    if values.size < MIN_MEANT_TEXTS or not FIRST_DATE <= values[0] <= values[-1] <= LAST_DATE:
        return False
    months, days = values // 100 % 100, values % 100
    if not ((months >= 1) & (months <= 12) & (days >= 1) & (days <= 31)).all():
        return False
    return are_compact_dates(pa.chunked_array([values.astype(str).tolist()]), COMPACT_DATE)


def are_identifiers(cells: np.ndarray, values: np.ndarray, rows: int) -> bool:
    """Return True if integers look like identifiers: consecutive numbers, or numbers with many digits.

    values: the distinct values.
    rows: number of rows the cells were sampled from.

    Numbers drawn at random from few more values than there are rows would not all be distinct, except in very long
    tables. In these, numbers count as identifiers if they only increase.
    """
    if not values.size == cells.size >= MIN_NAMES:
        return False
    if np.abs(values).min() >= MIN_LONG_IDENTIFIER:
        return True
    span = int(values[-1]) - int(values[0]) + 1
    if span == values.size or rows <= values.size:
        return span == values.size
    return span <= GAPS * rows and (values.size**2 > 2.0 * CHANCE * span or bool((np.diff(cells) > 0).all()))


def mostly_numbers(values: pa.Array) -> LooksLike | None:
    """Return what cells look like if nearly all are numbers, else None."""
    if pc.any(pc.match_substring_regex(values, LEADING_ZERO)).as_py():
        return None  # leading zeros: codes
    numbers = pc.match_substring_regex(values, NUMBER_PATTERN.replace("POINT", "[.,]"))
    others = values.filter(pc.invert(numbers))
    if len(others) > (1.0 - MEANT_SHARE) * len(values):
        return None
    if len(others):
        return LooksLike("numbers", _example(others))
    return LooksLike("numbers", decimal_comma=bool(pc.any(pc.match_substring(values, ",")).as_py()))


def mostly_dates(values: pa.Array) -> LooksLike | None:
    """Return what cells look like if nearly all are dates, else None."""
    known = values.filter(pc.invert(is_missing_word(values)))
    first = [DATE.fullmatch(cell) for cell in decode_texts(known.slice(0, FIRST_DATES))]
    if not first or 2 * sum(found is not None for found in first) < len(first):
        return None
    cells: dict[tuple[str, ...], list[str]] = {}
    for cell in decode_texts(known):
        cells.setdefault(_date_formats(cell), []).append(cell)
    readings = []
    for order in (0, -1) if max(map(len, cells)) > 1 else (0,):  # the day first, or the month
        chosen = {formats: formats[order] if formats else None for formats in cells}
        bad = [cell for formats, some in cells.items() for cell in some if not _is_date(cell, chosen[formats])]
        several = {form: cells[formats] for formats, form in chosen.items() if form}
        needed = [form for form, some in several.items() if not _have_long_months(some, form, several)]
        readings.append((bad, FORMAT_SEPARATOR.join(needed) or None))
    (bad, detail), *others = sorted(readings, key=lambda reading: len(reading[0]))
    if len(bad) > (1.0 - MEANT_SHARE) * len(known):
        return None
    otherwise = next((other for other_bad, other in others if len(other_bad) == len(bad) and other != detail), None)
    return LooksLike("dates", detail, exception=_example(pa.array(bad)) if bad else None, otherwise=otherwise)


def _date_formats(cell: str) -> tuple[str, ...]:
    """Return the strptime formats that a date may have, day first; an empty one for ISO 8601, none for other text."""
    found = DATE.fullmatch(cell)
    if found is None:
        return ()
    part = {name: text or "" for name, text in found.groupdict().items()}
    if part["iso"]:
        return ("",)
    time = ""
    if part["before"]:
        seconds = ("%S" if part["seconds"] else "") + (".%f" if part["fraction"] else "")
        half = part["half"][:-2] + "%p" if part["half"] else ""
        time = part["before"] + ("%I" if half else "%H") + ":%M" + (":" if seconds else "") + seconds + half
    year = "%Y" if len(part["year"] or part["year2"] or "2024") == 4 else "%y"
    month = "%b" if len(part["month"] or part["month2"]) == 3 else "%B"
    if sign := part["sign"][-1:]:
        dates = [f"%d{sign}%m{part['sign2']}{year}", f"%m{sign}%d{part['sign2']}{year}"]
        dates = dates[:1] if sign == "." else dates  # the month is never first there
    elif part["month"]:
        dates = [f"%d{part['gap']}{month}{part['gap2']}{year}"]
    elif part["month2"]:
        dates = [f"{month} %d{part['comma']}%Y"]
    else:
        dates = [f"%Y{part['sign3']}%m{part['sign4']}%d"]
    weekday = "%a, " if part["weekday"] else ""
    return tuple(f"{weekday}{one}{time}" for one in dates)


def _have_long_months(cells: list[str], form: str, formats: Collection[str]) -> bool:
    """Return True if all dates with an abbreviated month are in May, and a format with full names reads them too."""
    long = form.replace("%b", "%B")
    return long != form and long in formats and all(_is_date(cell, long) for cell in cells)


def _is_date(cell: str, date_format: str | None) -> bool:
    """Return True if a text is a date in this format, or in ISO format if it is empty."""
    if date_format is None:
        return False
    with suppress(ValueError):
        date_of(cell.strip(), date_format or "%Y-%m-%d")
        return True
    return False


def decode_texts(values: pa.Array) -> list[str]:
    """Return cells of text without missing ones."""
    return [cell for cell in decode_cells(values) if cell is not None]


def thousands_sign(values: pa.Array) -> str:
    """Return the thousands separator if nearly all texts are numbers with one; else an empty text."""
    for sign, point in ((",", "."), (".", ","), ("'", "."), (" ", ".")):
        apart = rf"^\s*[-+]?[1-9]\d{{0,2}}({re.escape(sign)}\d{{3}})+({re.escape(point)}\d*)?\s*$"
        plain = rf"^\s*[-+]?\d+({re.escape(point)}\d*)?\s*$"
        if _share_of_matches(values, apart) > 0.0 and _share_of_matches(values, f"{apart}|{plain}") >= MEANT_SHARE:
            return sign
    return ""


def mostly_with_unit(values: pa.Array) -> LooksLike | None:
    """Return what cells look like if nearly all are numbers with the same unit, else None."""
    plain = pc.replace_substring_regex(values, IN_PARENTHESES, r"-\1")
    for pattern in WITH_UNIT:
        units = pc.struct_field(pc.extract_regex(plain, pattern), "unit").drop_null()
        highest = max((found["counts"].as_py() for found in pc.value_counts(units)), default=0)
        if highest >= MEANT_SHARE * len(values):
            return LooksLike("units", _example(values), decimal_comma=_have_decimal_commas(values))
    return None


def mostly_in_parentheses(values: pa.Array) -> LooksLike | None:
    """Return what cells look like if nearly all are numbers, some of them negative in parentheses, else None."""
    inside = values.filter(pc.match_substring_regex(values, IN_PARENTHESES))
    number = rf"^\s*\(?{AMOUNT}\)?\s*$"
    if not 0 < len(inside) < len(values):
        return None  # not all amounts are negative
    if _share_of_matches(values, number) < MEANT_SHARE or not _share_of_matches(inside, number):
        return None
    return LooksLike("units", _example(inside), decimal_comma=_have_decimal_commas(values))


def _have_decimal_commas(values: pa.Array) -> bool:
    return _share_of_matches(values, DECIMALS[","]) > 0.0 and not _share_of_matches(values, DECIMALS["."])


def _example(cells: pa.Array) -> str:
    """Return the first cell, truncated if it is long."""
    cell = str(cells[0].as_py())
    return cell if len(cell) <= EXAMPLE_LENGTH else cell[: EXAMPLE_LENGTH - 1] + "…"


def _share_of_matches(values: pa.Array, pattern: str) -> float:
    """Return the share of texts that match a pattern."""
    return float(pc.mean(pc.match_substring_regex(values, pattern).cast(pa.float64())).as_py() or 0.0)
