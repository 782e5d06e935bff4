"""Learning more, forgetting, adding: what changes a fitted classifier."""

import copy
from collections.abc import Sequence
from typing import Any, Self

from deciban.errors import UsageError
from deciban.estimators.classifier.state import FittedState
from deciban.fitting import fit, update
from deciban.fitting.fit import Plan
from deciban.model.fitted import Fitted
from deciban.sources.examples import Where
from deciban.sources.open import named_rows


class Updating(FittedState):
    """Methods that learn more rows, forget rows, and add classifiers that were trained apart."""

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        sample_weight: Any = None,
        *,
        query: str | None = None,
        table: str | None = None,
        where: Where = "here",
    ) -> Self:
        """Learn more rows: together with what was learned before, just what `fit` would have counted.

        New classes, new values and new named columns are welcome. What was tuned is kept, and is stale until `retune`.

        Parameters
        ----------
        X : table
            Rows, as for `fit`.
        y : array-like or str
            Their labels, or the name of the column that holds them.
        classes : array-like, default=None
            All the labels there may be; any other is then an error. None takes those of the constructor.
        sample_weight : array-like or str, default=None
            How often each row counts, or the name of the column that says so.
        query : str, default=None
            Where X is a database: the query whose rows are learned, as for `fit`.
        table : str, default=None
            Where X is a database: the table whose rows are learned.
        where : {"here", "engine"}, default="here"
            Where the rows are counted, as for `fit`.

        Returns
        -------
        self : BayesClassifier

        Raises
        ------
        DataError
            If a cell or a label cannot be used; nothing is learned then.

        See Also
        --------
        forget : Unlearn rows.
        shard : Count rows elsewhere, to be added.
        """
        X = named_rows(X, query, table)
        if self.__sklearn_is_fitted__():
            return self._become(update.learn_more(self._fitted(), X, y, sample_weight, classes, where))
        fitted = fit.fit(self._settings(), X, y, sample_weight, classes=classes, partial=True, where=where)
        return self._become(fitted)

    def forget(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        query: str | None = None,
        table: str | None = None,
        where: Where = "here",
    ) -> Self:
        """Unlearn rows that were learned before: exact for counts, to 1e-9 for means and variances.

        Parameters
        ----------
        X : table
            The rows, with every column that was learned (an empty one, if they were learned without it), or all the
            rows of one of the shards.
        y : array-like or str
            Their labels, or the name of the column that holds them.
        sample_weight : array-like or str, default=None
            The weights with which they were learned.
        query : str, default=None
            Where X is a database: the query whose rows are forgotten, as for `fit`.
        table : str, default=None
            Where X is a database: the table whose rows are forgotten.
        where : {"here", "engine"}, default="here"
            Where the rows are counted, as for `fit`.

        Returns
        -------
        self : BayesClassifier

        Raises
        ------
        ForgetError
            If these rows cannot have been learned, or nothing would be left; the classifier stays as it was.
        """
        return self._become(update.forget(self._fitted(), named_rows(X, query, table), y, sample_weight, where))

    def plan(self, X: Any, y: str, sample_weight: str | None = None) -> Plan:
        """Settle on a sample how rows are to be counted, so that they can be counted elsewhere.

        Parameters
        ----------
        X : table
            A sample of the rows, as for `fit`, with their labels. Of more than 20,000 rows or so some are looked at.
        y : str
            The name of the column that holds the labels.
        sample_weight : str, default=None
            The name of the column that holds the weights.

        Returns
        -------
        Plan
            `deciban.count_batches` counts rows by it. It can be pickled; the sample then stays behind.

        See Also
        --------
        fit_shards : Learn from what was counted.
        """
        return fit.plan(self._settings(), X, y, sample_weight)

    def fit_shards(self, shards: Sequence[bytes], plan: Plan, *, force: bool = False) -> Self:
        """Learn from rows that were counted elsewhere, by a plan: as `fit` of all of them.

        Weights and corrections of a tuned classifier are learned on the sample that the plan was made of.

        Parameters
        ----------
        shards : sequence of bytes
            What `deciban.count_batches` has returned of each part of the rows.
        plan : Plan
            The plan that they were counted by, as `plan` has returned it.
        force : bool, default=False
            Whether to accept two shards of the same rows, which then count twice.

        Returns
        -------
        self : BayesClassifier

        Raises
        ------
        DataError
            If two shards are of the same rows, or no row has a label and a weight.
        ModelFileError
            If a shard is damaged.
        """
        if not shards:
            raise UsageError("give the shards that are to be learned in a list")
        return self._become(update.fit_shards(plan, list(shards), force))

    def decay(self, factor: float) -> Self:
        """Let all that was learned so far weigh `factor` times as much.

        Parameters
        ----------
        factor : float
            Between 0 and 1 to let the past fade.

        Returns
        -------
        self : BayesClassifier
        """
        fitted = self._fitted()
        return self._become(update.with_counts(fitted, fitted.counts * factor))

    def retune(self, X: Any, y: Any, sample_weight: Any = None, *, learned: bool = True) -> Self:
        """Learn the weight of each block anew.

        Parameters
        ----------
        X : table
            Rows, as for `fit`.
        y : array-like or str
            Their labels, or the name of the column that holds them.
        sample_weight : array-like or str, default=None
            Their weights, or the name of the column that holds them; of rows that have faded by `decay`, what is left
            of it.
        learned : bool, default=True
            Whether the classifier has learned these rows, so that each is scored without itself.

        Returns
        -------
        self : BayesClassifier
        """
        self.fitted_ = update.retune(self._fitted(), X, y, sample_weight, learned=learned)
        return self

    def shard(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        query: str | None = None,
        table: str | None = None,
        where: Where = "here",
    ) -> Self:
        """Count rows as this classifier counts them: a classifier to be sent and added.

        ``clf + clf.shard(X, y)`` has learned what ``clf.partial_fit(X, y)`` learns.

        Parameters
        ----------
        X : table
            Rows, as for `fit`.
        y : array-like or str
            Their labels, or the name of the column that holds them.
        sample_weight : array-like or str, default=None
            Their weights, or the name of the column that holds them.
        query : str, default=None
            Where X is a database: the query whose rows are counted, as for `fit`.
        table : str, default=None
            Where X is a database: the table whose rows are counted.
        where : {"here", "engine"}, default="here"
            Where the rows are counted, as for `fit`.

        Returns
        -------
        BayesClassifier
            A classifier that has learned these rows alone.
        """
        return self._copy(update.shard(self._fitted(), named_rows(X, query, table), y, sample_weight, where))

    def with_prior(self, prior: Any) -> Self:
        """The same classifier with another prior; the likelihoods stay as they are.

        Parameters
        ----------
        prior : str, mapping or sequence
            As for the constructor, or what `estimate_prior` returns.

        Returns
        -------
        BayesClassifier
            A new classifier.
        """
        changed = self._copy(update.with_prior(self._fitted(), prior))
        changed._training = self._training_rows()
        return changed

    def __add__(self, other: object) -> Self:
        """A classifier that has learned the rows of both; one that has learned rows of no weight alone adds nothing."""
        if not isinstance(other, FittedState):
            return NotImplemented
        mine, theirs = self._fitted(), other._fitted()
        both = update.add(mine, theirs)
        if both is theirs:
            return copy.copy(other)  # type: ignore[return-value]  # this one has learned nothing
        return copy.copy(self) if both is mine else self._copy(both)

    def __radd__(self, other: object) -> Self:
        """0 + classifier, so that sum() adds classifiers up."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __sub__(self, other: object) -> Self:
        """A classifier that has not learned the rows of the other."""
        if not isinstance(other, FittedState):
            return NotImplemented
        mine = self._fitted()
        left = update.subtract(mine, other._fitted())
        return copy.copy(self) if left is mine else self._copy(left)

    def _copy(self, fitted: Fitted) -> Self:
        """A classifier of the same kind that has learned this."""
        changed = copy.copy(self)
        vars(changed)["prior"] = fitted.settings.prior  # of a shard it may be another one
        return changed._become(fitted)
