"""The evidence of each column: its own block, its share of each joint block it is in, and its correction."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from deciban.errors import Argument, UsageError
from deciban.families.base.shapley import MOST_ENUMERATED, Rule, settled
from deciban.model.batching import row_ranges
from deciban.model.model import Evidence, Model
from deciban.model.partial_rows import Known
from deciban.model.posterior import log_normalize
from deciban.schema.schema import ColumnGroup
from deciban.tables.labels import LabelArray
from deciban.tables.table import Table
from deciban.util.arrays import Floats

# Numbers that are held at once while a block of some rows is shared out among its columns.
NUMBERS_SHARED_OUT = 1 << 22


@dataclass(frozen=True)
class ColumnEvidence:
    """What each column says for each class of each row: the terms that add up to the log joint.

    log joint = log prior + sum over columns of value. `BayesClassifier.evidence(X, by="column")` gives it. All
    is in nats, after weights and cap.

    Parameters
    ----------
    columns : tuple of str
        The names of the columns.
    classes : ndarray of shape (n_classes,)
        The labels of the classes.
    alone : ndarray of shape (n_rows, n_columns, n_classes)
        The evidence of each column by itself, with its offset in a tuned model.
    together : ndarray of shape (n_rows, n_columns, n_classes)
        Its share of the evidence of the joint blocks that it is in.
    corrections : ndarray of shape (n_rows, n_columns, n_classes)
        Its share of the corrections of a tuned model.
    log_prior : ndarray of shape (n_classes,) or (n_rows, n_classes)
        The log prior of each class.
    rules : dict of str to str
        How the evidence of each joint block is shared out: the name of the block, and the rule.

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
    >>> found.values.shape, found.rules
    ((2, 4, 3), {'x0+x1+x2+x3': 'Shapley values'})
    >>> bool(abs(found.log_joint - clf.log_joint(X[:2])).max() < 1e-12)
    True
    """

    columns: tuple[str, ...]
    classes: LabelArray
    alone: Floats
    together: Floats
    corrections: Floats
    log_prior: Floats
    rules: dict[str, str]

    @property
    def values(self) -> Floats:
        """The evidence of each row, column and class."""
        return self.alone + self.together + self.corrections

    @property
    def log_joint(self) -> Floats:
        """log prior + the sum of the evidence, of each row and class."""
        return np.asarray(self.values.sum(axis=1) + self.log_prior)

    @property
    def log_posterior(self) -> Floats:
        """The logarithm of the posterior of each row and class."""
        return log_normalize(self.log_joint, self.log_prior, logarithm=True)[0]


def check_by(by: str) -> None:
    """A UsageError unless evidence can be told so."""
    if by not in ("block", "column"):
        raise UsageError(
            "choose 'column', or 'block' for columns that are modelled together", parameter=Argument("by", by)
        )


def column_evidence(model: Model, table: Table, evidence: Evidence) -> ColumnEvidence:
    """The evidence of some rows, by column, from what the blocks say of them (also with each row left out)."""
    shape = (table.rows, model.schema.width, model.classes.size)
    alone, together, corrections = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    rules: dict[str, str] = {}
    weighted, known = evidence.weighted, model.known(table)
    if model.partial is not None:
        offsets = model.partial.offsets[None]
        if known is not None:
            offsets = np.where(known.unknown[:, :, None], 0.0, known.scale[:, None, None] * offsets)
        alone += offsets
    for p, (group, slots) in enumerate(zip(model.schema.groups, model.schema.block_slots, strict=True)):
        if not group.family.joint or len(group.columns) == 1:
            alone[:, list(group.columns)] += weighted[:, slots]
        elif evidence.weights[slots[0]] > 0.0:
            rule = _share_out(model, p, table, evidence, together, known)
            rules[model.schema.block_names[slots[0]]] = str(rule)
    if model.corrections is not None:
        blocks = len(model.schema.block_names)
        places = [one.column for one in model.corrections.columns]
        corrections[:, places] = _corrections(model, table, evidence.values[:, blocks:], known)
    return ColumnEvidence(
        model.schema.column_names, model.classes, alone, together, corrections, evidence.log_prior, rules
    )


def _share_out(model: Model, p: int, table: Table, evidence: Evidence, out: Floats, known: Known | None) -> Rule:
    """Add to out[row, column, class] what the columns of a joint block have of its weighted evidence."""
    group, block = model.schema.groups[p], int(model.schema.block_slots[p][0])
    rule = Rule.EXACT
    for rows in _pieces(group, table.rows, model.classes.size):
        shares = model.likelihoods[p].shares(group.family.read(table.slice(rows.start, rows.stop), group.columns))
        assert shares is not None, "a joint block is shared out"
        rule = shares.rule
        limited = np.zeros(rows.stop - rows.start, dtype=np.bool_)
        if evidence.capped is not None:
            limited = evidence.capped[rows, block]
        values = shares.values if known is None else known.scale[rows, None, None] * shares.values
        found = settled(values, evidence.values[rows, block], limited)
        for k, column in enumerate(group.columns):
            out[rows, column] += evidence.weights[block] * found[:, k]
    return rule


def _pieces(group: ColumnGroup, rows: int, classes: int) -> Iterator[slice]:
    """Rows that are shared out together."""
    columns = len(group.columns)
    sets = 1 << min(columns, MOST_ENUMERATED)  # for each of which rows may be scored
    for span in row_ranges(rows, max(1, NUMBERS_SHARED_OUT // (max(columns, sets) * classes))):
        yield slice(*span)


def _corrections(model: Model, table: Table, given: Floats, known: Known | None) -> Floats:
    """What each corrected column has of the corrections: as given, or where these are given as a whole, by the shares
    of the tables that correct a new row."""
    corrections = model.corrections
    assert corrections is not None, "there are corrections"
    if given.shape[1] == len(corrections.columns):
        return given
    shares = corrections.shares(corrections.read(table), model.unknown_corrected(known))
    if known is not None:
        shares *= known.scale[:, None, None]
    return settled(shares, given[:, 0], np.zeros(table.rows, dtype=np.bool_))
