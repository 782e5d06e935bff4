"""Decisions at least expected cost."""

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from deciban.decisions.decide import CoverageCurve, Decisions, incurred, risks
from deciban.decisions.threshold import Threshold
from deciban.errors import DataError, UsageError
from deciban.estimators.classifier.state import FittedState
from deciban.fitting.update import places_of
from deciban.scoring import scoring
from deciban.scoring.spark import decide_in_spark
from deciban.sources.spark import is_spark_table
from deciban.sources.write import Existing, FileKind
from deciban.util.arrays import Floats


class Deciding(FittedState):
    """Methods that decide: losses, reject, thresholds."""

    def decide(self, X: Any, loss: Any = None, *, reject: float | None = None) -> Decisions:
        """The decision of least expected loss for each row, with its risk and the next best one.

        Parameters
        ----------
        X : table
            Rows, as for `predict`.
        loss : Loss, matrix, mapping, table or path, default=None
            What each decision costs under each truth, decision first, truth second: whatever `Loss.of` takes. None is
            zero-one loss, under which the decisions are those of `predict`.
        reject : float, default=None
            What it costs to leave a row undecided; None does not allow that.

        Returns
        -------
        Decisions
            Arrays ``decision``, ``risk``, ``runner_up`` and ``runner_up_risk``; print it. Of a Spark DataFrame: the
            same with these columns added.

        See Also
        --------
        risk : The expected loss of every decision.
        deciban.decide : The same for posteriors of any classifier.

        Examples
        --------
        >>> from deciban import BayesClassifier
        >>> from deciban.datasets import weather
        >>> days = BayesClassifier().fit(weather(), "play")
        >>> days.decide([{"outlook": "sunny"}], {("yes", "no"): 5, ("no", "yes"): 1}).decision.tolist()
        ['no']
        """
        fitted = self._fitted()
        if is_spark_table(X):
            return decide_in_spark(fitted, X, loss, reject)  # type: ignore[no-any-return]  # a DataFrame
        return scoring.decide_table(fitted, scoring.table_of(fitted, X), scoring.loss_for(fitted, loss, reject))

    def decide_batches(
        self, X: Any, loss: Any = None, *, reject: float | None = None, for_file: FileKind | None = None
    ) -> Iterator[pa.Table]:
        """Decide rows that need not fit into memory, piece by piece.

        Parameters
        ----------
        X : table
            Rows, as for `predict`.
        loss : Loss, matrix, mapping, table or path, default=None
            As for `decide`.
        reject : float, default=None
            As for `decide`.
        for_file : {"csv", "tsv", "json", "parquet"}, default=None
            What the tables are to be written to; see `predict_batches`.

        Yields
        ------
        pyarrow.Table
            Some rows with the columns ``decision``, ``risk``, ``runner_up`` and ``runner_up_risk`` added.
        """
        yield from scoring.decide_batches(self._fitted(), X, loss, reject=reject, for_file=for_file)

    def decide_to(
        self,
        path: str | os.PathLike[str],
        X: Any,
        loss: Any = None,
        *,
        reject: float | None = None,
        table: str | None = None,
        existing: Existing = "refuse",
    ) -> int:
        """Write rows with their decisions to a file, which is whole or not there, or into a table of a database.

        Parameters
        ----------
        path : str or path-like
            As for `predict_to`.
        X : table
            Rows, as for `predict`; they need not fit into memory.
        loss : Loss, matrix, mapping, table or path, default=None
            As for `decide`.
        reject : float, default=None
            As for `decide`.
        table : str, default=None
            The table of the database that is written; see `predict_to`.
        existing : {"refuse", "replace", "append"}, default="refuse"
            What becomes of a table that is there; see `predict_to`.

        Returns
        -------
        int
            The number of rows.
        """
        return scoring.decide_to(self._fitted(), path, X, loss, reject=reject, table=table, existing=existing)

    def risk(self, X: Any, loss: Any = None) -> Floats:
        """The expected loss of every decision.

        Parameters
        ----------
        X : table
            Rows, as for `predict`.
        loss : Loss, matrix, mapping, table or path, default=None
            As for `decide`.

        Returns
        -------
        ndarray of shape (rows, decisions)
            In the order of the decisions of the loss.
        """
        fitted = self._fitted()
        table = scoring.table_of(fitted, X)
        posterior = scoring.predict_posteriors(fitted, table)
        return risks(posterior, scoring.loss_for(fitted, loss), scoring.column_of(table))

    def coverage_curve(self, X: Any, y: Any, loss: Any = None) -> CoverageCurve:
        """What share of rows would be decided, and at what cost, for every cost of rejecting.

        Parameters
        ----------
        X : table
            Rows, as for `fit`.
        y : array-like or str
            Their true classes, or the name of the column that holds them.
        loss : Loss, matrix, mapping, table or path, default=None
            As for `decide`.

        Returns
        -------
        CoverageCurve
            Its ``choose`` finds the cost of rejecting for a wanted risk or coverage.
        """
        fitted = self._fitted()
        rows = self._examples(X, y, None).whole()
        decisions = scoring.decide_table(fitted, rows.table, scoring.loss_for(fitted, loss))
        truths = places_of(fitted, rows.labels)
        if (truths < 0).any():
            raise DataError("a label is missing; the curve needs the true class of every row")
        return CoverageCurve.of(decisions, incurred(decisions, truths, scoring.column_of(rows.table)))

    def threshold(self, loss: Any = None, positive: Any = None) -> Threshold:
        """For two classes: above which likelihood ratio, odds and posterior to decide for the positive class.

        Parameters
        ----------
        loss : Loss, matrix, mapping, table or path, default=None
            As for `decide`.
        positive : label, default=None
            The positive class; None is the last of `classes_`.

        Returns
        -------
        Threshold
            With ``likelihood_ratio``, ``odds`` and ``posterior``; print it.
        """
        fitted = self._fitted()
        labels = fitted.classes.tolist()
        if len(labels) != 2:
            raise UsageError(f"a threshold is for two classes, not {len(labels)}; see decide()")
        first = labels[-1] if positive is None else positive
        if first not in labels:
            raise UsageError(f"positive={first!r} is none of the classes {labels}")
        place = labels.index(first)
        prior = float(np.exp(fitted.model.log_prior[place]))
        return Threshold.of(scoring.loss_for(fitted, loss), prior, (first, labels[1 - place]), (labels[0], labels[1]))
