"""What the columns of a table are: what the user says of them, and for the others what their cells say."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deciban.arrays import Floats
from deciban.errors import UsageError
from deciban.families import Bernoulli, Categorical, Family, Gaussian, Multinomial, Text
from deciban.families.checks import Unseen
from deciban.schema.looks_like import as_numbers, date_form, thousands_sign, with_unit
from deciban.schema.schema import GIVEN, ColumnGroup, LooksLike, Schema
from deciban.tables.arrow import decoded_cells, take_cells
from deciban.tables.table import DATE_ORIGIN, TIME_ORIGIN, Frame, Matrix, Table, is_text
from deciban.text_tables import counted, listed

# Whole numbers with no more distinct values than this (and each about twice) are taken for codes of categories.
MOST_CODES = 10

# So many cells or more, no two of which are alike, may be identifiers: text, or whole numbers if they look like it.
FEWEST_NAMES = 50
LONG_NUMBER = 10**8

# Of rows that are numbered, some may have been removed since; what is distinct by chance once in e**CHANCE tables.
GAPS = 1.25
CHANCE = 10.0

# A column of text is probably meant as texts if its cells have so many words on average (or letters of scripts without
# spaces) and half of them are different; so many cells are looked at.
TEXT_WORDS = 3.0
TEXT_LETTERS = 8.0
LOOKED_AT = 200

# Letters of scripts that put no spaces between words: Thai, Lao, Khmer, kana, Chinese characters.
UNSPACED = re.compile("[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")

ColumnSpec = Mapping[Any, Family] | Family | None


@dataclass(frozen=True)
class Defaults:
    """What inferred discrete families are given."""

    alpha: float = 1.0
    unseen: Unseen = "ignore"


class Inferred(NamedTuple):
    """The family of a column nobody spoke of, why, and what else it may be meant as."""

    family: Family
    why: str
    looks_like: LooksLike = ""


def extended(
    schema: Schema, table: Table, spec: ColumnSpec, defaults: Defaults, weights: Floats | None = None
) -> Schema:
    """The schema and, behind it, the columns of `table` that it does not know yet."""
    if schema.names is None or table.names is None:
        return schema
    new = [name for name in table.names if name not in schema.columns_with_family]
    if not new or not isinstance(table, Frame):
        return schema
    return schema.union(infer_schema(table.select(new), spec, defaults, partly=True, weights=weights))


def infer_schema(
    table: Table,
    spec: ColumnSpec,
    defaults: Defaults,
    partly: bool = False,
    weights: Floats | None = None,
    rows: int | None = None,
) -> Schema:
    """The schema of a table: what the user says of its columns, and for the others what their cells say.

    `partly`: the user may also speak of columns that are not there (yet). weights: of the rows, none of them 0. rows:
    those of the table that these were drawn from by lot.
    """
    names = table.names
    given = _given(names, table.width, spec, partly)
    taken = {column for columns, _ in given for column in columns}
    groups: dict[Any, tuple[Family, list[int], list[str]]] = {}
    for k, (columns, family) in enumerate(given):
        key = (k, family) if family.joint else family
        _, members, whys = groups.setdefault(key, (family, [], []))
        members += columns
        whys += [GIVEN] * len(columns)
    looks_like: list[LooksLike] = [""] * table.width
    free = [column for column in range(table.width) if column not in taken]
    for columns, found in _inferred(table, free, defaults, weights, rows or table.rows):
        _, members, whys = groups.setdefault(found.family, (found.family, [], []))
        members += columns
        whys += [found.why] * len(columns)
        for column in columns:
            looks_like[column] = found.looks_like
    found_groups = []
    for family, members, whys in groups.values():
        ordered = getattr(family, "cuts", None) is not None  # each cut belongs to a column, in the order given
        order = np.arange(len(members)) if ordered else np.argsort(members, kind="stable")
        alone = family.absorbs and not isinstance(spec, Mapping)
        found_groups.append(ColumnGroup(family, tuple(members[k] for k in order), tuple(whys[k] for k in order), alone))
    types = table.types if isinstance(table, Frame | Matrix) else None
    return Schema(names, table.width, tuple(found_groups), types, tuple(looks_like) if any(looks_like) else None)


def _members(key: Any) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)


def check_columns(names: tuple[str, ...], spec: ColumnSpec, partly: bool) -> None:
    """A UsageError where the user speaks of columns that are not there, or of what is no family."""
    _given(names, len(names), spec, partly)


def _given(known: tuple[str, ...] | None, width: int, spec: ColumnSpec, partly: bool) -> list[tuple[list[int], Family]]:
    """The columns the user speaks of, as positions, with their families."""
    if spec is None:
        return []
    if not isinstance(spec, Mapping):
        _check_family(spec, "columns=")
        return [(list(range(width)), spec)]
    names = known if known is not None else tuple(f"x{j}" for j in range(width))
    place: dict[Any, int] = {name: j for j, name in enumerate(names)}
    if known is None:
        place.update({j: j for j in range(width)})
    given, seen = [], set()
    for key, family in spec.items():
        _check_family(family, f"columns[{key!r}]")
        columns = []
        members = [member if member in place else str(member) for member in _members(key)]
        there = [member in place for member in members]
        if partly and not any(there):
            continue
        if partly and not all(there):
            raise UsageError(f"columns= names the block {key!r}, of which only a part is in the table; give it whole")
        for member in members:
            if member not in place:
                raise UsageError(
                    f"columns= names {member!r}, which is not in the table; it has {listed(names)} "
                    f"(columns that come later are for partial_fit)"
                )
            if place[member] in seen:
                raise UsageError(f"columns= names {member!r} twice; a column belongs to one block")
            seen.add(place[member])
            columns.append(place[member])
        given.append((columns, family))
    return given


def _check_family(family: Any, place: str) -> None:
    if isinstance(family, type):
        raise UsageError(f"{place} is the class {family.__name__}; give an instance: {family.__name__}()")
    if not all(hasattr(family, verb) for verb in ("read", "count", "estimate", "joint")):
        raise UsageError(f"{place} is {family!r}; give a family such as Gaussian() or Categorical()")


def _inferred(
    table: Table, columns: list[int], defaults: Defaults, weights: Floats | None, rows: int
) -> list[tuple[list[int], Inferred]]:
    """What the columns are that nobody spoke of."""
    if not columns:
        return []
    times = np.ones(table.rows) if weights is None else np.maximum(weights, 1.0)  # a row of weight 1/2 is a row too
    if isinstance(table, Matrix):
        kind = table.array.dtype.kind
        if kind == "f":
            return [(columns, Inferred(Gaussian(), "floating point"))]
        if kind == "b":
            return [(columns, Inferred(Bernoulli(defaults.alpha), "true or false"))]
        return [([j], _of_integers(np.asarray(table.array[:, j]), times.sum(), defaults, rows)) for j in columns]
    if isinstance(table, Frame):
        found = [([j], _of_arrow(table.values([j])[0], times, defaults, rows)) for j in columns]
        return [(column, what) for column, what in found if what is not None]
    return [(columns, Inferred(Multinomial(defaults.alpha), "sparse counts"))]


def _of_integers(cells: np.ndarray, times: float, defaults: Defaults, rows: int) -> Inferred:
    """What whole numbers are that stand there so many times, which are more than the cells if rows have weights."""
    values = np.unique(cells)
    why = f"{counted(values.size, 'distinct integer')} in {counted(cells.size, 'row')}"
    if values.size == cells.size >= FEWEST_NAMES and _like_names(cells, values, rows):
        return Inferred(Gaussian(), f"{why}, which looks like an identifier", "identifier")
    if values.size <= min(MOST_CODES, times // 2):
        return Inferred(Categorical(defaults.alpha, unseen=defaults.unseen), why)
    return Inferred(Gaussian(), why)


def _as_text(array: pa.Array, defaults: Defaults) -> Inferred | None:
    """Texts, and why; None where the cells are rather names of categories."""
    filled = np.flatnonzero(array.is_valid().to_numpy(zero_copy_only=False))
    places = np.linspace(0, filled.size - 1, min(filled.size, LOOKED_AT)).astype(np.int64)
    some = [(cell or "")[:10_000] for cell in decoded_cells(take_cells(array, filled[places]))]
    if 2 * len(set(some)) <= len(some):
        return None
    words = float(np.mean([len(cell.split()) for cell in some]))
    if words >= TEXT_WORDS:
        return Inferred(Text(alpha=defaults.alpha), f"text of {words:.0f} words on average")
    letters = float(np.mean([len(UNSPACED.findall(cell)) for cell in some]))
    if letters >= TEXT_LETTERS:
        family = Text(alpha=defaults.alpha, analyzer="char", ngram_range=(1, 2))
        return Inferred(family, f"text without spaces, of {letters:.0f} letters on average")
    return None


def _like_names(cells: np.ndarray, values: np.ndarray, rows: int) -> bool:
    """Whether distinct whole numbers, drawn by lot from so many rows, number things: one by one, or of many digits.

    Numbers that are drawn from hardly more values than there are rows would not all be distinct by chance, unless there
    are very many rows; then they number things if they only grow.
    """
    if np.abs(values).min() >= LONG_NUMBER:
        return True
    span = int(values[-1]) - int(values[0]) + 1
    if span == values.size or rows <= values.size:
        return span == values.size
    return span <= GAPS * rows and (values.size**2 > 2.0 * CHANCE * span or bool((np.diff(cells) > 0).all()))


def _meant(values: pa.Array) -> tuple[LooksLike, str] | None:
    """What distinct texts are probably meant as, and how that is said."""
    if len(values) <= MOST_CODES:
        return None
    if form := date_form(values):
        return "dates", f", dates written {form}"
    if sign := thousands_sign(values):
        return "thousands", f", numbers with thousands written {sign!r}"
    if len(values) >= FEWEST_NAMES and (numbers := as_numbers(values)) is not None:
        return "numbers", numbers
    if cell := with_unit(values):
        return "units", f", numbers with a unit, such as {cell}"
    return None


def _of_arrow(array: pa.Array, times: Floats, defaults: Defaults, rows: int) -> Inferred | None:
    """What a column is; None as long as no cell says it."""
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
        return _of_integers(array.drop_null().to_numpy(zero_copy_only=False), times[filled].sum(), defaults, rows)
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return Inferred(Gaussian(), "floating point" if pa.types.is_floating(kind) else "decimal numbers")
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return Inferred(Gaussian(), f"dates, as {DATE_ORIGIN}")
    if pa.types.is_time(kind):
        return Inferred(Gaussian(), f"times, as {TIME_ORIGIN}")
    if pa.types.is_duration(kind):
        return Inferred(Gaussian(), "durations, in seconds")
    if is_text(kind):
        if (found := _as_text(array, defaults)) is not None:
            return found
        values = pc.unique(array.cast(pa.string()).drop_null())
        distinct = len(values)
        why = f"text, {distinct:,} distinct in {counted(len(array), 'row')}"
        if (meant := _meant(values)) is not None:
            return Inferred(categorical, why + meant[1], meant[0])
        if distinct == len(array) >= FEWEST_NAMES:
            return Inferred(categorical, f"{why}, which looks like an identifier", "identifier")
        return Inferred(categorical, why)
    return Inferred(categorical, str(kind))
