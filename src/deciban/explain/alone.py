"""What some columns say where all others are missing."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from deciban.explain.column_values import ColumnValues
from deciban.model.intervals import LogOdds
from deciban.model.model import Model
from deciban.schema.schema import Schema
from deciban.tables.table import Frame, Table
from deciban.util.arrays import Floats
from deciban.util.text_tables import DECIBANS

# Cells that are scored at a time, where many columns are looked at one by one.
CELLS_AT_A_TIME = 1 << 22


def table_of_columns(schema: Schema, cells: Mapping[int, pa.Array], rows: int) -> Table:
    """Rows in which only these columns, known by their places, are there."""
    columns = [cells.get(column, pa.nulls(rows)) for column in range(schema.width)]
    return schema.table_as_learned(
        Frame(pa.Table.from_arrays(columns, names=list(schema.column_names)), schema.names is not None)
    )


def log_joint_of(model: Model, columns: Sequence[ColumnValues]) -> Floats:
    """log P(cells, class) at every combination of values of these columns, the last changing fastest."""
    sizes = [len(column.cells) for column in columns]
    places = np.indices(sizes).reshape(len(sizes), -1) if sizes else np.zeros((0, 1), dtype=np.int64)
    cells = {one.column: one.cells.take(pa.array(place)) for one, place in zip(columns, places, strict=True)}
    return model.log_joint(table_of_columns(model.schema, cells, places.shape[1]))


def evidence_alone(model: Model, columns: Sequence[ColumnValues], against: int | None = None) -> Floats:
    """What the values of these columns say for each class, in decibans, all other columns missing.

    Against all other classes together, or against one of them: by how much the odds change where the columns are there.
    """
    there, nothing = log_joint_of(model, columns), log_joint_of(model, ())
    with np.errstate(invalid="ignore"):  # where there is but one class, no odds are known
        return _known(DECIBANS * (log_odds(there, against) - log_odds(nothing, against)))


def evidence_of_each(model: Model, columns: Sequence[ColumnValues], against: int | None = None) -> list[Floats]:
    """The same for each column by itself; many of them are scored together."""
    nothing = log_odds(log_joint_of(model, ()), against)
    with np.errstate(invalid="ignore"):
        return [_known(DECIBANS * (log_odds(joint, against) - nothing)) for joint in _log_joint_of_each(model, columns)]


def density_of_each(generative: Model, columns: Sequence[ColumnValues]) -> list[Floats]:
    """P(value | class), or its density, for each column by itself; 0 for a value without evidence."""
    nothing = log_joint_of(generative, ())
    found = []
    for joint in _log_joint_of_each(generative, columns):
        with np.errstate(invalid="ignore", over="ignore"):
            log_density = _known(joint - nothing)
            unseen = (log_density == 0.0).all(axis=1, keepdims=True)
            found.append(np.where(unseen, 0.0, np.exp(log_density)))
    return found


def _log_joint_of_each(model: Model, columns: Sequence[ColumnValues]) -> Iterator[Floats]:
    """log P(value, class) of each column by itself: in one table the values of each stand below those of the last."""
    for some in _together(columns, max(CELLS_AT_A_TIME // max(model.schema.width, 1), 1)):
        ends = np.cumsum([len(one.cells) for one in some])
        cells = {one.column: _padded(one.cells, int(end), int(ends[-1])) for one, end in zip(some, ends, strict=True)}
        joint = model.log_joint(table_of_columns(model.schema, cells, int(ends[-1])))
        yield from np.split(joint, ends[:-1])


def _together(columns: Sequence[ColumnValues], most: int) -> Iterator[list[ColumnValues]]:
    """The columns, some at a time, which have no more than so many values in all, unless one alone has."""
    some: list[ColumnValues] = []
    values = 0
    for one in columns:
        if some and values + len(one.cells) > most:
            yield some
            some, values = [], 0
        some.append(one)
        values += len(one.cells)
    if some:
        yield some


def _padded(cells: pa.Array, end: int, rows: int) -> pa.Array:
    """Cells that end at a row, and are missing before and behind."""
    missing = (pa.nulls(size, cells.type) for size in (end - len(cells), rows - end))
    return pa.concat_arrays([next(missing), cells, next(missing)])


def log_odds(log_joint: Floats, against: int | None = None) -> Floats:
    """The log-odds of each class, against all others or against one of them; 0 where nothing is known."""
    with np.errstate(all="ignore"):
        odds = LogOdds.of(log_joint).value if against is None else log_joint - log_joint[:, [against]]
    return _known(odds)


def _known(values: Floats) -> Floats:
    """The values, 0 in place of NaN."""
    return np.where(np.isnan(values), 0.0, values)
