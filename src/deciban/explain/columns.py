"""Evidence by column: own block, share of joint blocks and correction; labels of cells and blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from deciban.errors import Argument, UsageError
from deciban.families import Family
from deciban.families.base.parts import name_part
from deciban.families.base.shapley import MAX_ENUMERATED, Rule, settle
from deciban.model.batches import row_ranges
from deciban.model.model import Evidence, EvidenceTable, Model, log_normalize, measure_raised, raise_to_limit
from deciban.model.partial_rows import MissingAdjustment, PartialRows
from deciban.schema.schema import ColumnGroup
from deciban.tables.cells import is_text
from deciban.tables.labels import LabelArray
from deciban.tables.table import Frame, Table, decode_cells
from deciban.util.arrays import Floats
from deciban.util.progress import progress
from deciban.util.text_tables import DECIBANS, escape_line, evidence_column, format_digits, integer_if_whole, shorten

# Longer cells are truncated in text output.
MAX_CELL_LENGTH = 40


# Rows whose corrections are shared out at once: their shares stay in the cache of the processor.
MAX_ROWS_SHARED = 2_000


def read_row_values(row: Table) -> list[Any]:
    """Return the values of a one-row table, None if missing; 32-bit floats keep their short decimal form."""
    cells = row.values(range(row.width))
    if isinstance(cells, list):
        values = [_read_value(column) for column in cells]
    elif cells.dtype == np.float32:
        values = [float(str(value)) for value in cells[0]]
    else:
        values = cells[0].tolist()
    return [None if value is None or value != value else value for value in values]


def _read_value(column: pa.Array) -> Any:
    if is_text(column.type):
        return decode_cells(column)[0]
    value = column[0].as_py()
    short = value is not None and (pa.types.is_float16(column.type) or pa.types.is_float32(column.type))
    return float(str(np.float32(value))) if short else value


def plain_cell(value: Any) -> Any:
    """Return a cell as plain data; whole floats become integers."""
    return integer_if_whole(value) if isinstance(value, float) else value


def format_cell(value: Any) -> str:
    """Return a cell as text; numbers have six digits, and midnight is left out.

    >>> format_cell(datetime(2012, 1, 31)), format_cell(datetime(2012, 1, 31, 12, 30)), format_cell(1 / 3)
    ('2012-01-31', '2012-01-31 12:30:00', '0.333333')
    """
    if value is None:
        return "missing"
    if isinstance(value, float):
        return format_digits(value)
    text = str(value).removesuffix(" 00:00:00") if isinstance(value, datetime) else str(value)
    return shorten(escape_line(text), MAX_CELL_LENGTH)


def form_cell(value: Any) -> Any:
    """Return a cell as entered in a form: number, text, boolean or None; dates are text."""
    plain = plain_cell(value)
    return plain if plain is None or isinstance(plain, bool | int | float | str) else str(plain)


# Numbers held in memory at once while joint blocks are shared among their columns.
MAX_NUMBERS_HELD = 1 << 22


@dataclass(frozen=True, repr=False)
class ColumnEvidence(EvidenceTable):
    """Evidence of each column for each class of each row: the terms of the log joint.

    log joint = log prior + sum of the values over columns + raised. `BayesClassifier.evidence(X, by="column")` returns
    it. Values are in nats and include weights and the cap.

    Parameters
    ----------
    columns : tuple of str
        Column names.
    classes : ndarray of shape (n_classes,)
        Class labels.
    own : ndarray of shape (n_rows, n_columns, n_classes)
        Evidence of each column alone, with its offset in a tuned model.
    joint : ndarray of shape (n_rows, n_columns, n_classes)
        Its share of the evidence of joint blocks that contain it.
    correction : ndarray of shape (n_rows, n_columns, n_classes)
        Its share of the corrections of a tuned model.
    log_prior : ndarray of shape (n_classes,) or (n_rows, n_classes)
        Log prior of each class.
    sharing_rules : dict of str to str
        Rule by which the evidence of each joint block is shared among its columns.
    limit : float, default=inf
        Maximum total evidence for a class against another, in nats.

    Attributes
    ----------
    values : ndarray of shape (n_rows, n_columns, n_classes)
        own + joint + correction.
    raised : ndarray of shape (n_rows, n_classes)
        Amount added to a class that is further below the best one than the limit; mostly 0.

    See Also
    --------
    Evidence : The same by block.
    BayesClassifier.explain : The same as text, in decibans.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from deciban import BayesClassifier, JointGaussian
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = BayesClassifier({(0, 1, 2, 3): JointGaussian()}, tune=None).fit(X, y)
    >>> found = clf.evidence(X[:2], by="column")
    >>> found.values.shape, found.sharing_rules
    ((2, 4, 3), {'x0+x1+x2+x3': 'Shapley values'})
    >>> bool(abs(found.log_joint - clf.log_joint(X[:2])).max() < 1e-12)
    True
    """

    columns: tuple[str, ...]
    classes: LabelArray
    own: Floats
    joint: Floats
    correction: Floats
    log_prior: Floats
    sharing_rules: dict[str, str]
    limit: float = np.inf

    def _terms(self) -> tuple[list[str], Floats]:
        raised = self.raised
        if not raised.any():
            return list(self.columns), self.values
        return ["limit", *self.columns], np.concatenate([raised[:, None], self.values], axis=1)

    @property
    def values(self) -> Floats:
        """Total evidence of each row, column and class: own + joint + correction."""
        return self.own + self.joint + self.correction

    @property
    def log_joint(self) -> Floats:
        """Log joint of each row and class: log prior plus the sum of the values, raised to the limit."""
        return np.asarray(raise_to_limit(self.values.sum(axis=1), self.limit) + self.log_prior)

    @property
    def raised(self) -> Floats:
        """Amount added to a class that is further below the best one than the limit, row by class."""
        return measure_raised(self.values.sum(axis=1), self.limit)

    @property
    def log_posterior(self) -> Floats:
        """Log posterior of each row and class."""
        return log_normalize(self.log_joint, self.log_prior, logarithm=True)[0]


def check_by(by: str) -> None:
    """Raise a UsageError if `by` is not "block" or "column"."""
    if by not in ("block", "column"):
        raise UsageError("choose 'column', or 'block' for columns modeled together", parameter=Argument("by", by))


def compute_offsets(partial: PartialRows, known: MissingAdjustment | None) -> Floats:
    """Return the offset of each column for each class of each row; of one row if no cell is missing."""
    offsets = partial.offsets[None]
    if known is None:
        return offsets
    return np.where(known.unknown[:, :, None], 0.0, known.scale[:, None, None] * offsets)


def compute_column_evidence(model: Model, table: Table, evidence: Evidence) -> ColumnEvidence:
    """Return the evidence of rows by column, from their evidence by block (which may be leave-one-out)."""
    shape = (table.rows, model.schema.width, model.classes.size)
    own, joint, correction = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    rules: dict[str, str] = {}
    weighted, known = evidence.weighted, model.adjust_for_missing(table)
    if model.partial is not None:
        own += compute_offsets(model.partial, known)
    for p, (group, slots) in enumerate(zip(model.schema.groups, model.schema.block_slots, strict=True)):
        if not group.family.joint or len(group.columns) == 1:
            own[:, list(group.columns)] += weighted[:, slots]
        elif evidence.weights[slots[0]] > 0.0:
            rule = _share_out(model, p, table, evidence, joint, known)
            rules[model.schema.block_names[slots[0]]] = str(rule)
    if model.corrections is not None:
        blocks = len(model.schema.block_names)
        places = [one.column for one in model.corrections.columns]
        correction[:, places] = share_corrections(model, table, evidence.values[:, blocks:], known)
    start, names = evidence.log_prior, model.schema.column_names
    return ColumnEvidence(names, model.classes, own, joint, correction, start, rules, evidence.limit)


def _share_out(
    model: Model, p: int, table: Table, evidence: Evidence, out: Floats, known: MissingAdjustment | None
) -> Rule:
    """Add the shares of the weighted evidence of a joint block to out[row, column, class]."""
    group, block = model.schema.groups[p], int(model.schema.block_slots[p][0])
    rule = Rule.EXACT
    with progress("explaining", "rows", table.rows) as advance:
        for rows in _slice_rows(group, table.rows, model.classes.size):
            shares = model.likelihoods[p].shapley_values(
                group.family.read(table.slice(rows.start, rows.stop), group.columns)
            )
            assert shares is not None, "a joint block has shares"
            rule = shares.rule
            limited = np.zeros(rows.stop - rows.start, dtype=np.bool_)
            if evidence.capped is not None:
                limited = evidence.capped[rows, block]
            values = shares.values if known is None else known.scale[rows, None, None] * shares.values
            found = settle(values, evidence.values[rows, block], limited)
            for k, column in enumerate(group.columns):
                out[rows, column] += evidence.weights[block] * found[:, k]
            advance(rows.stop - rows.start)
    return rule


def _slice_rows(group: ColumnGroup, rows: int, classes: int) -> Iterator[slice]:
    """Yield slices of rows that fit into memory."""
    columns = len(group.columns)
    sets = 1 << min(columns, MAX_ENUMERATED)  # for each of which rows may be scored
    for span in row_ranges(rows, max(1, MAX_NUMBERS_HELD // (max(columns, sets) * classes))):
        yield slice(*span)


def share_corrections(model: Model, table: Table, given: Floats, known: MissingAdjustment | None) -> Floats:
    """Return the correction of each column: as given or, for a single total, by the shares of the tables."""
    corrections = model.corrections
    assert corrections is not None, "there are corrections"
    if given.shape[1] == len(corrections.columns):
        return given
    bins, unknown = corrections.read(table), model.unknown_corrected_cells(known)
    shares = np.empty((table.rows, len(corrections.columns), model.classes.size))
    with progress("explaining", "rows", table.rows) as advance:
        for start, stop in row_ranges(table.rows, MAX_ROWS_SHARED):
            holes = None if unknown is None else unknown[:, start:stop]
            shares[start:stop] = corrections.shares(bins[:, start:stop], holes)
            advance(stop - start)
    if known is not None:
        shares *= known.scale[:, None, None]
    return settle(shares, given[:, 0], np.zeros(table.rows, dtype=np.bool_))


@dataclass(frozen=True)
class Block:
    """Block of a model: its position, family and columns. auxiliary: its columns are also in another block."""

    group: int
    place: int
    name: str
    family: Family
    columns: tuple[int, ...]
    names: tuple[str, ...]
    auxiliary: bool

    @classmethod
    def of(cls, model: Model, block: int) -> Block:
        group, place = model.schema.group_of_block(block)
        here = model.schema.groups[group]
        columns = here.columns if here.family.joint else here.columns[place : place + 1]
        names = tuple(model.schema.column_name(column) for column in columns)
        return cls(group, place, model.schema.block_names[block], here.family, columns, names, here.auxiliary)

    def to_dict(self, row: list[Any]) -> dict[str, Any]:
        """Return the block and its values in a row as plain data; word counts of 0 are omitted."""
        cells = [(name, row[column]) for name, column in zip(self.names, self.columns, strict=True)]
        if self.family.accepts_new_columns:
            cells = [cell for cell in cells if cell[1] != 0]
        return {
            "block": self.name,
            "columns": [name for name, _ in cells],
            "values": [plain_cell(value) for _, value in cells],
        }

    def label(self, row: list[Any]) -> str:
        """Return the block of a row as text, such as outlook = sunny."""
        if len(self.columns) > 4:
            return f"{len(self.columns)} columns as {self.family}"
        cells = zip(self.names, self.columns, strict=True)
        if (part := self.family.part) is not None:
            return ", ".join(f"{part} of {name} = {self._part_of(row[column])}" for name, column in cells)
        return ", ".join(f"{name} = {format_cell(row[column])}" for name, column in cells)

    def short_label(self, row: list[Any]) -> str:
        """Return a block of a column as text without the name of the column, such as first word = Mr."""
        if self.family.part is None:
            return f"as {str(self.family).partition('(')[0]}"
        return f"{self.family.part} = {self._part_of(row[self.columns[0]])}"

    def _part_of(self, value: Any) -> str:
        """Return the part of a value as text."""
        found = self.family.read(Frame(pa.table([pa.array([value])], ["x"])), [0])[0][0].as_py()
        return format_cell(name_part(self.family.part, found))


def add_up_by_block(blocks: Sequence[Block], values: Floats) -> Floats:
    """Return values of columns (column by class) as block by class; a column counts in the block of its own family."""
    found = np.zeros((len(blocks), values.shape[1]))
    placed: set[int] = set()
    for b in sorted(range(len(blocks)), key=lambda b: blocks[b].auxiliary):
        fresh = [column for column in blocks[b].columns if column not in placed]
        found[b] = values[fresh].sum(axis=0)
        placed.update(fresh)
    return found


def label_blocks(blocks: Sequence[Block], row: list[Any]) -> list[str]:
    """Return a unique label for each block of a row, with the family if needed."""
    labels = [escape_line(block.label(row)) for block in blocks]
    counts = Counter(labels)
    labels = [
        label if counts[label] == 1 else f"{label} as {block.family}"
        for label, block in zip(labels, blocks, strict=True)
    ]
    counts = Counter(labels)
    return [label if counts[label] == 1 else f"{label} ({b + 1})" for b, label in enumerate(labels)]


def explain_as_columns(model: Model, table: Table) -> dict[str, Any]:
    """Return the explanation of each row as columns: predicted class, second best, log-odds, and evidence by column.

    The evidence of the prior, the columns and, if the model has one, the limit sums to the log-odds. NaN if the row is
    impossible in every class, or there is only one class. The table must have the columns of the model, in its order.
    """
    evidence = model.evidence(table)
    columns = compute_column_evidence(model, table, evidence)
    order = np.argsort(-evidence.log_posterior, axis=1, kind="stable")
    best, other = order[:, 0], order[:, min(1, order.shape[1] - 1)]
    explained = ~evidence.impossible & (best != other)
    rows = np.arange(table.rows)

    def decibans(values: Floats) -> Floats:
        """Return the difference between the two classes, in decibans."""
        with np.errstate(invalid="ignore"):
            return np.where(explained, DECIBANS * (values[rows, best] - values[rows, other]), np.nan)

    start = np.broadcast_to(evidence.log_prior, (table.rows, model.classes.size))
    labels, values = model.classes, columns.values
    found = {"predicted": labels[best], "against": labels[other], "decibans": decibans(evidence.log_joint)}
    found[evidence_column("prior")] = decibans(start)
    if evidence.limit < np.inf:
        found[evidence_column("limit")] = decibans(evidence.raised)
    for k, column in enumerate(columns.columns):
        name = evidence_column(column)
        found[f"{name}_" if name in found else name] = decibans(values[:, k])  # a column may be called prior
    return found
