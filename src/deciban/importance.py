"""How much each column of a model matters, over many rows."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from deciban.arrays import Codes, Floats, Integers
from deciban.errors import DataError, DecibanError, UsageError
from deciban.evaluate import sample_left_out
from deciban.evaluation import LEAST_PROBABILITY
from deciban.explain.columns import ColumnEvidence, column_evidence
from deciban.files.labelled_stream import Examples
from deciban.fitted import Fitted
from deciban.leave_one_out import LeaveOneOut
from deciban.posterior import log_normalize
from deciban.scoring import aligned_table
from deciban.simulate import sample_rows
from deciban.tables.row_sampling import sampled_places
from deciban.tables.table import Table
from deciban.text_tables import DECIBANS, aligned, counted

# Numbers of evidence (row by column by class) that are looked at; of more rows a sample is taken.
MOST_NUMBERS_OF_IMPORTANCE = 1 << 22

# Multiplications by which large joint blocks may be shared out.
MOST_SHARING_WORK = 10_000_000_000

# Rows at least and at most, and rows that are drawn from the model where none are given.
FEWEST_ROWS_OF_IMPORTANCE = 30
MOST_ROWS_OF_IMPORTANCE = 10_000
ROWS_DRAWN = 1_000

# Columns that are printed.
MOST_COLUMNS_PRINTED = 30


@dataclass(frozen=True, repr=False)
class Importance:
    """What each column says over many rows; print it.

    `BayesClassifier.importance` makes it. The columns are in the order of the model; `order` sorts them.

    Parameters
    ----------
    columns : tuple of str
        The names of the columns.
    decibans : ndarray of shape (n_columns,)
        The mean size of what each column says for the predicted class against the next best.
    bits : ndarray of shape (n_columns,)
        What each column adds on average to log2 P(true class): how much is lost if what it says is left out. Where the
        true classes are not known, as the posteriors expect it.
    rows : int
        How many rows were looked at.
    source : str
        Which rows these are: left out, new, or drawn from the model.

    See Also
    --------
    BayesClassifier.explain : The same of single rows.
    BayesClassifier.select : Columns that together tell most.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from deciban import BayesClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> print(BayesClassifier(tune=None).fit(X, y).importance())
    what each column says in 150 rows left out:
    column             decibans    bits
    petal width (cm)      37.26   0.132
    petal length (cm)     36.81   0.056
    sepal length (cm)      6.10  -0.041
    sepal width (cm)       5.26  -0.042
    """

    columns: tuple[str, ...]
    decibans: Floats
    bits: Floats
    rows: int
    source: str

    @property
    def order(self) -> Integers:
        """The places of the columns, the most telling first."""
        return np.argsort(-self.decibans, kind="stable")

    def frame(self) -> Any:
        """A line for each column, the most telling first.

        Returns
        -------
        pandas.DataFrame
            With the columns ``column``, ``decibans`` and ``bits``.
        """
        import pandas as pd

        order = self.order
        names = [self.columns[k] for k in order]
        return pd.DataFrame({"column": names, "decibans": self.decibans[order], "bits": self.bits[order]})

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        order = self.order.tolist()
        lines = [("column", "decibans", "bits")]
        lines += [
            (self.columns[k], f"{self.decibans[k]:.2f}", f"{self.bits[k]:.3f}") for k in order[:MOST_COLUMNS_PRINTED]
        ]
        text = f"what each column says in {counted(self.rows, 'row')} {self.source}:\n{aligned(lines, right=[1, 2])}"
        more = len(order) - MOST_COLUMNS_PRINTED
        return text + (f"\n… ({more:,} more columns)" if more > 0 else "")


def importance_of_learned(fitted: Fitted, examples: Examples) -> Importance:
    """Of rows that were learned, each scored without itself."""
    return importance_left_out(fitted, *sample_left_out(fitted, examples, _most_rows(fitted)))


def importance_left_out(fitted: Fitted, table: Table, found: LeaveOneOut) -> Importance:
    """The same, of rows that were left out already; of many, some of them."""
    kept = sampled_places(table.rows, _most_rows(fitted))
    evidence = column_evidence(fitted.model, table.take(kept), found.evidence.rows(kept))
    return _importance(evidence, found.labels[kept], found.weights[kept], "left out")


def importance_of_new(fitted: Fitted, X: Any) -> Importance:
    """Of rows that were not learned, whose classes are not known."""
    return _unlabelled(fitted, aligned_table(fitted, X), "as they are predicted")


def importance_of_drawn(fitted: Fitted) -> Importance:
    """Of rows that are drawn from plain Bayes."""
    try:
        rows, _ = sample_rows(fitted, ROWS_DRAWN, 0)
    except DecibanError as error:
        raise UsageError(f"importance: no rows are known, and none can be drawn ({error}); give X") from None
    return _unlabelled(fitted, aligned_table(fitted, rows), "drawn from the model")


def _most_rows(fitted: Fitted) -> int:
    """How many rows are looked at: to share out a row of a large joint block takes the cube of its columns."""
    schema, classes = fitted.model.schema, max(fitted.classes.size, 1)
    numbers = MOST_NUMBERS_OF_IMPORTANCE // max(schema.width * classes, 1)
    cubes = sum(len(group.columns) ** 3 for group in schema.groups if group.family.joint and not group.family.absorbs)
    return max(
        FEWEST_ROWS_OF_IMPORTANCE, min(MOST_ROWS_OF_IMPORTANCE, numbers, MOST_SHARING_WORK // max(cubes * classes, 1))
    )


def _unlabelled(fitted: Fitted, table: Table, source: str) -> Importance:
    if not table.rows:
        raise DataError("there are no rows; give at least one, or none at all")
    some = table.take(sampled_places(table.rows, _most_rows(fitted)))
    evidence = column_evidence(fitted.model, some, fitted.model.evidence(some))
    return _importance(evidence, None, np.ones(some.rows), source)


def _importance(evidence: ColumnEvidence, labels: Codes | None, weights: Floats, source: str) -> Importance:
    """The mean over rows; `labels` are the true classes, if they are known."""
    values, log_posterior = evidence.values, evidence.log_posterior
    rows, share = np.arange(len(values)), weights / weights.sum()
    order = np.argsort(-log_posterior, axis=1, kind="stable")
    best, other = order[:, 0], order[:, min(1, order.shape[1] - 1)]
    with np.errstate(invalid="ignore"):
        size = np.abs(values[rows, :, best] - values[rows, :, other])
    decibans = DECIBANS * (share @ np.where(np.isnan(size), 0.0, size))
    bits = np.array([share @ gain for gain in _gains(evidence, values, log_posterior, labels)])
    return Importance(evidence.columns, np.asarray(decibans), bits / np.log(2.0), len(values), source)


def _gains(evidence: ColumnEvidence, values: Floats, log_posterior: Floats, labels: Codes | None) -> Iterator[Floats]:
    """What each column adds to the log posterior of the true class of each row; where that is unknown, as expected."""
    least, rows = np.log(LEAST_PROBABILITY), np.arange(len(values))
    log_posterior = np.maximum(log_posterior, least)
    endless = (values == -np.inf).sum(axis=1)
    sums = np.where(values == -np.inf, 0.0, values).sum(axis=1) + evidence.log_prior
    for column in range(values.shape[1]):
        own, impossible = values[:, column], values[:, column] == -np.inf
        joint = np.where(endless - impossible > 0, -np.inf, sums - np.where(impossible, 0.0, own))
        without = np.maximum(log_normalize(joint, evidence.log_prior, logarithm=True)[0], least)
        gain = log_posterior - without
        yield np.asarray((np.exp(log_posterior) * gain).sum(axis=1) if labels is None else gain[rows, labels])
