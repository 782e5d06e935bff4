"""`BayesClassifier`, an estimator of scikit-learn's kind, and models from files, parts and batches.

Signatures and documentation stand here; the work is done in the rooms below.
"""

import copy
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from typing import Any, Literal, Self, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags

from deciban.decisions.decide import CoverageCurve, Decisions, compute_incurred_costs, compute_risks
from deciban.decisions.shift import EstimatedPrior, estimate_shares
from deciban.decisions.threshold import Threshold
from deciban.errors import Argument, DataError, Labels, UsageError
from deciban.estimators.spark import decide_in_spark, explain_in_spark, predict_in_spark
from deciban.evaluation import validation as evaluate
from deciban.evaluation.diagnose import Diagnosis
from deciban.evaluation.importance import (
    Importance,
    compute_new_row_importance,
    compute_simulated_importance,
    compute_training_importance,
    select_columns,
)
from deciban.evaluation.leave_one_out import LeaveOneOut
from deciban.evaluation.metrics import Evaluation
from deciban.evaluation.model_risk import BayesRiskEstimate, model_risk
from deciban.explain.columns import ColumnEvidence, check_by, column_evidence
from deciban.explain.estimates import Estimates, ParameterCount
from deciban.explain.explanation import Explanation
from deciban.explain.words import TopWords, top_words_of
from deciban.export.javascript import to_javascript
from deciban.export.onnx.model import to_onnx
from deciban.export.python import to_python
from deciban.export.sql.statement import to_sql
from deciban.families.base.checks import Unseen
from deciban.fitting import fit, update
from deciban.fitting.fit import Plan, open_examples
from deciban.fitting.tune.propose import limit_tuning_rows
from deciban.fitting.tune.rows import Rows
from deciban.fitting.update import find_class_places
from deciban.model.counts import Counts
from deciban.model.fitted import Fitted, Settings
from deciban.model.linear_forms import Form, form_of
from deciban.model.model import Evidence, Model, log_normalize
from deciban.model.tuning import Tuning
from deciban.report.data import collect_report_data
from deciban.report.report import Report
from deciban.schema.schema import ColumnSpec, Schema
from deciban.scoring import predict as scoring
from deciban.scoring.predict import loss_for, predict_posteriors
from deciban.scoring.simulate import sample_rows
from deciban.sources.open import kind_of_rows, open_query_or_table
from deciban.sources.streams import Examples
from deciban.sources.write import FileKind, IfExists
from deciban.store import model_file
from deciban.store.model_file import shards_of
from deciban.tables.labels import LabelArray
from deciban.util.arrays import Floats

SETTINGS = tuple(field.name for field in fields(Settings))


class BayesClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Bayes classifier for tables of numbers, categories, flags, counts and texts, with missing cells.

    Each column is modeled within each class by a family (normal, categorical, Bernoulli, Poisson, text, ...) that is
    inferred from its cells or given; the classes are then as probable as Bayes' theorem says. By default the model is
    tuned: rows that are left out choose the family of each column, which columns are modeled together, and how much
    the evidence of each block weighs, so that the probabilities can be believed. ``tune=None`` is textbook naive Bayes.
    Every prediction is an exact sum of evidence, and everything learned is counts, which can be added and subtracted.

    Parameters
    ----------
    families : family, mapping or None, default=None
        Families of the columns: one family such as ``Gaussian()`` for every column, or a mapping from a column (its
        name or number), or from a tuple of columns that form one joint block, to its family. The family of every
        other column is inferred.
    prior : str, mapping, sequence, Empirical or Uniform, default="empirical"
        The prior probability of each class: ``"empirical"`` (its share of the rows), ``"smoothed"`` (one row more in
        each class), ``"uniform"``, ``Empirical(alpha)``, ``Uniform()``, or probabilities: a mapping from class, or a
        sequence in the order of `classes_`.
    classes : array-like, default=None
        All the labels there may be; any other is then an error. None accepts new ones at any time.
    alpha : float, default=1.0
        What is added to every count of inferred discrete columns: 0 is maximum likelihood, 1 is Laplace smoothing.
    unseen : {"ignore", "smooth", "error"}, default="ignore"
        What a value that was never learned is worth in inferred discrete columns: no evidence, that of a count of 0, or
        an error.
    threads : int or None, default=None
        How many threads count and score; None uses every core. The result does not depend on it.
    tune : {"auto", "weights"} or None, default="auto"
        Whether rows that are left out choose families, joint blocks and evidence weights, and teach corrections of
        their sum; "weights" does without corrections, None is plain Bayes.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted, of the type that the labels came in.
    schema_ : Schema
        What each column is taken for, and why; print it.
    counts_ : Counts
        All that was counted: a value that can be added, subtracted and scaled.
    model_ : Model
        The prior and the likelihoods that the counts support.
    tuning_ : Tuning or None
        What was tuned, and how; None for plain Bayes. Print it.
    fitted_ : Fitted
        All of the above as one value, which is replaced as a whole.
    shards_ : tuple of str
        Names of the sets of rows that were learned, the same for the same rows.
    target_ : str or None
        The name of the column that held the labels.
    n_features_in_ : int
        The number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names; only where they have names.

    See Also
    --------
    load : Load a classifier from a model file.
    merge : Add up classifiers that were trained apart.
    deciban.dropin : scikit-learn's naive Bayes classifiers and discriminants by name.
    MinimumRisk : Decisions at least cost by any classifier.

    Notes
    -----
    The common methods are `fit`, `predict`, `predict_proba`, `explain`, `decide`, `evaluate`, `score` and `save`.
    `partial_fit`, `forget`, `decay`, `retune`, `shard`, ``+`` and ``-`` change what was learned; `leave_one_out`,
    `diagnose`, `cross_validate` and `select_columns` evaluate it; `evidence`, `estimates`, `top_words`,
    `linear_form` and `sample` show what it has learned.

    Missing cells (None, NaN, null) are skipped when counting and are no evidence when predicting, unless tuning found
    that they were evidence in training: then the schema says so. Columns of the table that are not named are known by
    position.

    Examples
    --------
    >>> from deciban import BayesClassifier
    >>> days = [{"outlook": "sunny", "wind": "weak"}, {"outlook": "rain", "wind": "strong"},
    ...         {"outlook": "rain", "wind": "weak"}, {"outlook": "overcast", "wind": "weak"}]
    >>> clf = BayesClassifier().fit(days, ["no", "no", "yes", "yes"])
    >>> clf.predict([{"outlook": "overcast", "wind": None}]).tolist()
    ['yes']
    >>> print(clf.schema_)
    column   family         why
    outlook  Categorical()  text, 3 distinct values
    wind     Categorical()  text, 2 distinct values
    """

    fitted_: Fitted
    _training: tuple[Any, Any, Any] | None

    def __init__(
        self,
        families: ColumnSpec = None,
        *,
        prior: Any = "empirical",
        classes: Any = None,
        alpha: float = 1.0,
        unseen: Unseen = "ignore",
        threads: int | None = None,
        tune: Literal["auto", "weights"] | None = "auto",
    ) -> None:
        self.families = families
        self.prior = prior
        self.classes = classes
        self.alpha = alpha
        self.unseen = unseen
        self.threads = threads
        self.tune = tune

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        query: str | None = None,
        table: str | None = None,
        pushdown: bool = False,
    ) -> Self:
        """Learn rows; whatever was learned before is replaced.

        Parameters
        ----------
        X : table
            The rows: a pandas, polars or Arrow table, a DuckDB relation, a NumPy array, a SciPy sparse matrix, a dict
            of columns, a list of dicts or of lists, or a list of texts; or rows that need not fit into memory: the name
            of a file (CSV, JSON lines, Parquet, Arrow, ORC) or a list of them, a glob, a folder, ``"sql: select ..."``,
            the URL of a PostgreSQL database or a connection to any database, an Ibis table, a lazy frame of polars, a
            dataset of pyarrow, what `deciban.scan` returns, or a Spark DataFrame, whose rows are counted by Spark's
            executors.
        y : array-like or str
            The label of each row, or the name of the column of X that holds the labels. Rows whose label is missing are
            left out and counted in ``counts_.unlabeled``.
        sample_weight : array-like or str, default=None
            How often each row counts (0 is a row that is not there, 2 is the row twice), or the name of the column of X
            that says so.
        query : str, default=None
            Where X is the URL of a database, or a connection: the query whose rows are learned.
        table : str, default=None
            Where X is such: the table whose rows are learned, in place of a query.
        pushdown : bool, default=False
            Count rows by SQL inside the database (PostgreSQL, Spark SQL, DuckDB for Parquet files and queries). Only
            a sample is read, and columns that SQL cannot count, such as texts.

        Returns
        -------
        self : BayesClassifier

        Raises
        ------
        DataError
            If a cell, a label or a weight cannot be used: the message has its place, the cause and the remedy. The
            classifier stays as it was.
        UsageError
            If a parameter cannot be used.
        OSError
            If a file or a database cannot be read, or a server goes away; the classifier stays as it was.

        See Also
        --------
        partial_fit : Learn more rows.

        Examples
        --------
        >>> from deciban import BayesClassifier
        >>> from deciban.datasets import weather
        >>> BayesClassifier().fit(weather(), "play").classes_.tolist()
        ['no', 'yes']
        """
        X = open_query_or_table(X, query, table)
        fitted = fit.fit(self._settings(), X, y, sample_weight, pushdown=pushdown)
        return self._become(fitted, training=(X, y, sample_weight))  # not copied

    def predict(self, X: Any) -> LabelArray:
        """The most probable class of each row.

        Parameters
        ----------
        X : table
            Rows in any form that `fit` takes. Columns with names are found by name, others by position; a column that
            is not there is missing.

        Returns
        -------
        ndarray of shape (rows,)
            Classes; ties go to the first of `classes_`. Of a Spark DataFrame: the same with the columns ``predicted``
            and ``probability`` added.

        See Also
        --------
        predict_proba : The probability of each class.
        decide : Decisions at least cost.
        """
        if kind_of_rows(X) == "spark":
            return predict_in_spark(self._fitted(), X)  # type: ignore[no-any-return]  # a DataFrame
        return scoring.predict(self._fitted(), X)

    def predict_proba(self, X: Any) -> Floats:
        """The posterior probability of each class.

        Parameters
        ----------
        X : table
            Rows, as for `predict`.

        Returns
        -------
        ndarray of shape (rows, classes)
            In the order of `classes_`; the prior for a row to which every class gives probability 0. Of a Spark
            DataFrame: the same with the columns ``predicted``, ``probability`` and ``P(...)`` of each class added.

        Examples
        --------
        >>> from deciban import BayesClassifier
        >>> from deciban.datasets import weather
        >>> BayesClassifier().fit(weather(), "play").predict_proba([{"outlook": "overcast"}]).round(3).tolist()
        [[0.143, 0.857]]
        """
        if kind_of_rows(X) == "spark":
            return predict_in_spark(self._fitted(), X, probabilities=True)  # type: ignore[no-any-return]  # a DataFrame
        return scoring.predict_posteriors(self._fitted(), X)

    def predict_log_proba(self, X: Any) -> Floats:
        """The logarithm of the posterior.

        Parameters
        ----------
        X : table
            Rows, as for `predict`.

        Returns
        -------
        ndarray of shape (rows, classes)
        """
        return scoring.score_rows(
            self._fitted(), X, lambda joint, prior: log_normalize(joint, prior, logarithm=True)[0]
        )

    def predict_batches(
        self, X: Any, *, probabilities: bool = False, output_format: FileKind | None = None
    ) -> Iterator[pa.Table]:
        """Predict rows that need not fit into memory, piece by piece.

        Parameters
        ----------
        X : table
            Rows, as for `predict`.
        probabilities : bool, default=False
            Whether to add the probability of every class.
        output_format : {"csv", "tsv", "json", "parquet"}, default=None
            What the tables are to be written to: for "csv" cells of a CSV file stay as they are written there, for
            "json" its whole numbers are integers; None is typed columns.

        Yields
        ------
        pyarrow.Table
            Some rows with the columns ``predicted`` and ``probability`` added.
        """
        yield from scoring.predict_batches(self._fitted(), X, probabilities=probabilities, output_format=output_format)

    def predict_to(
        self,
        path: str | os.PathLike[str],
        X: Any,
        *,
        probabilities: bool = False,
        table: str | None = None,
        if_exists: IfExists = "fail",
    ) -> int:
        """Write rows with their predictions to a file, which is whole or not there, or into a table of a database.

        Parameters
        ----------
        path : str or path-like
            A name that ends with .csv, .jsonl or .parquet (or .csv.gz); or the URL of a PostgreSQL database.
        X : table
            Rows, as for `predict`; they need not fit into memory.
        probabilities : bool, default=False
            Whether to add the probability of every class.
        table : str, default=None
            The table of the database that is written, such as "scores" or "sales.scores", in one transaction.
        if_exists : {"fail", "replace", "append"}, default="fail"
            If the table exists: raise an error, replace the table, or append rows to it.

        Returns
        -------
        int
            The number of rows.

        See Also
        --------
        decide_to : The same of decisions.
        """
        fitted = self._fitted()
        return scoring.predict_to(fitted, path, X, probabilities=probabilities, table=table, if_exists=if_exists)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The accuracy: the share of labeled rows whose class is predicted.

        Parameters
        ----------
        X : table
            Rows, as for `fit`.
        y : array-like or str
            Their true classes, or the name of the column that holds them.
        sample_weight : array-like or str, default=None
            Their weights, or the name of the column that holds them.

        Returns
        -------
        float

        See Also
        --------
        evaluate : All other figures.
        """
        fitted = self._fitted()
        return evaluate.compute_accuracy(fitted, fit.open_examples(fitted, X, y, sample_weight))

    def explain(self, X: Any, by: str = "column") -> Explanation:
        """Why each row is classified as it is: what each column says for it, in decibans.

        Parameters
        ----------
        X : table
            A few rows, as for `predict`.
        by : {"column", "block"}, default="column"
            By column, each column has one number: its own evidence and its exact share of what it says together with
            others. By block, columns that are modeled together have one number, and the calculation is shown as in a
            lecture.

        Returns
        -------
        Explanation
            Print it, or ask for ``summary(row)``, ``calculation(row)``, ``to_dict(row)``, ``steps(row)`` or
            ``to_frame()``. Of a Spark DataFrame: the same with the columns ``predicted``, ``against``, ``decibans``,
            ``decibans of prior`` and ``decibans of`` each column added.

        See Also
        --------
        evidence : The same as arrays.
        importance : What columns say of many rows.
        """
        fitted = self._fitted()
        if kind_of_rows(X) == "spark":
            return explain_in_spark(fitted, X)  # type: ignore[no-any-return]  # a DataFrame
        return Explanation.from_model(fitted.model, scoring.aligned_table(fitted, X), by)

    # --- learning more, and forgetting

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        sample_weight: Any = None,
        *,
        query: str | None = None,
        table: str | None = None,
        pushdown: bool = False,
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
        pushdown : bool, default=False
            Count rows by SQL inside the database, as in `fit`.

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
        X = open_query_or_table(X, query, table)
        if self.__sklearn_is_fitted__():
            return self._become(update.learn_more(self._fitted(), X, y, sample_weight, classes, pushdown))
        fitted = fit.fit(self._settings(), X, y, sample_weight, classes=classes, partial=True, pushdown=pushdown)
        return self._become(fitted)

    def forget(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        query: str | None = None,
        table: str | None = None,
        pushdown: bool = False,
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
        pushdown : bool, default=False
            Count rows by SQL inside the database, as in `fit`.

        Returns
        -------
        self : BayesClassifier

        Raises
        ------
        ForgetError
            If these rows cannot have been learned, or nothing would be left; the classifier stays as it was.
        """
        return self._become(
            update.forget(self._fitted(), open_query_or_table(X, query, table), y, sample_weight, pushdown)
        )

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
        return self._become(update.replace_counts(fitted, fitted.counts * factor))

    def retune(self, X: Any, y: Any, sample_weight: Any = None, *, already_learned: bool = True) -> Self:
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
        already_learned : bool, default=True
            True if the classifier has learned these rows: each row is then left out when it is scored.

        Returns
        -------
        self : BayesClassifier
        """
        self.fitted_ = update.retune(self._fitted(), X, y, sample_weight, learned=already_learned)
        return self

    def shard(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        query: str | None = None,
        table: str | None = None,
        pushdown: bool = False,
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
        pushdown : bool, default=False
            Count rows by SQL inside the database, as in `fit`.

        Returns
        -------
        BayesClassifier
            A classifier that has learned these rows alone.
        """
        return self._copy(
            update.shard(self._fitted(), open_query_or_table(X, query, table), y, sample_weight, pushdown)
        )

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
        changed = self._copy(update.set_prior(self._fitted(), prior))
        changed._training = self._training_rows()
        return changed

    def __add__(self, other: object) -> Self:
        """A classifier that has learned the rows of both; one that has learned rows of no weight alone adds nothing."""
        if not isinstance(other, BayesClassifier):
            return NotImplemented
        mine, theirs = self._fitted(), other._fitted()
        both = update.add(mine, theirs)
        if both is theirs:
            return copy.copy(other)  # this one has learned nothing
        return copy.copy(self) if both is mine else self._copy(both)

    def __radd__(self, other: object) -> Self:
        """0 + classifier, so that sum() adds classifiers up."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __sub__(self, other: object) -> Self:
        """A classifier that has not learned the rows of the other."""
        if not isinstance(other, BayesClassifier):
            return NotImplemented
        mine = self._fitted()
        left = update.subtract(mine, other._fitted())
        return copy.copy(self) if left is mine else self._copy(left)

    def _copy(self, fitted: Fitted) -> Self:
        """A classifier of the same kind that has learned this."""
        changed = copy.copy(self)
        changed.prior = fitted.settings.prior  # of a shard it may be another one
        return changed._become(fitted)

    # --- decisions

    def decide(self, X: Any, loss: Any = None, *, reject: float | None = None) -> Decisions:
        """The decision of least expected loss for each row, with its risk and the next best one.

        Parameters
        ----------
        X : table
            Rows, as for `predict`.
        loss : Loss, matrix, mapping, table or path, default=None
            Cost of each decision under each true class (decision first), in any form that `Loss.from_costs` accepts.
            None is zero-one loss, under which the decisions equal those of `predict`.
        reject : float, default=None
            What it costs to leave a row undecided; None does not allow that.

        Returns
        -------
        Decisions
            Arrays ``decision``, ``risk``, ``second_best`` and ``second_best_risk``; print it. Of a Spark DataFrame: the
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
        if kind_of_rows(X) == "spark":
            return decide_in_spark(fitted, X, loss, reject)  # type: ignore[no-any-return]  # a DataFrame
        return scoring.decide_table(fitted, scoring.table_of(fitted, X), scoring.loss_for(fitted, loss, reject))

    def decide_batches(
        self, X: Any, loss: Any = None, *, reject: float | None = None, output_format: FileKind | None = None
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
        output_format : {"csv", "tsv", "json", "parquet"}, default=None
            What the tables are to be written to; see `predict_batches`.

        Yields
        ------
        pyarrow.Table
            Some rows with the columns ``decision``, ``risk``, ``second_best`` and ``second_best_risk`` added.
        """
        yield from scoring.decide_batches(self._fitted(), X, loss, reject=reject, output_format=output_format)

    def decide_to(
        self,
        path: str | os.PathLike[str],
        X: Any,
        loss: Any = None,
        *,
        reject: float | None = None,
        table: str | None = None,
        if_exists: IfExists = "fail",
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
        if_exists : {"fail", "replace", "append"}, default="fail"
            What to do if the table exists; see `predict_to`.

        Returns
        -------
        int
            The number of rows.
        """
        return scoring.decide_to(self._fitted(), path, X, loss, reject=reject, table=table, if_exists=if_exists)

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
        return compute_risks(posterior, scoring.loss_for(fitted, loss), scoring.column_of(table))

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
        truths = find_class_places(fitted, rows.labels)
        if (truths < 0).any():
            raise DataError("a label is missing; the curve needs the true class of every row")
        return CoverageCurve.from_decisions(
            decisions, compute_incurred_costs(decisions, truths, scoring.column_of(rows.table))
        )

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
            raise UsageError(f"a threshold is for two classes, not {len(labels)}", remedy="see decide()")
        first = labels[-1] if positive is None else positive
        if first not in labels:
            raise UsageError((Argument("positive", first), " is not one of the classes ", Labels(labels)))
        place = labels.index(first)
        prior = float(np.exp(fitted.model.log_prior[place]))
        return Threshold.from_loss(
            scoring.loss_for(fitted, loss), prior, (first, labels[1 - place]), (labels[0], labels[1])
        )

    # --- how good it is, and where its assumptions fail

    def evaluate(self, X: Any, y: Any, sample_weight: Any = None, *, loss: Any = None) -> Evaluation:
        """All figures of rows that were not learned: accuracy, log-loss, AUC, calibration, confusions, costs.

        Parameters
        ----------
        X : table
            Rows, as for `fit`.
        y : array-like or str
            Their true classes, or the name of the column that holds them.
        sample_weight : array-like or str, default=None
            Their weights, or the name of the column that holds them.
        loss : Loss, matrix, mapping, table or path, default=None
            What decisions cost, as for `decide`; adds the mean cost of the least-risk decisions.

        Returns
        -------
        Evaluation
            Figures, each beside that of a baseline that knows only the shares of the classes; print it.

        See Also
        --------
        cross_validate : Cross-validation, from the table alone.
        leave_one_out : For rows that were learned.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from deciban import BayesClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> clf = BayesClassifier(tune=None).fit(X[::2], y[::2])
        >>> round(clf.evaluate(X[1::2], y[1::2]).accuracy, 3)
        0.96
        """
        fitted = self._fitted()
        return evaluate.evaluate_rows(fitted, open_examples(fitted, X, y, sample_weight), loss)

    def cross_validate(
        self, X: Any, y: Any, sample_weight: Any = None, *, folds: int = 5, loss: Any = None
    ) -> Evaluation:
        """Cross-validation: all figures of each part of a table by what the other parts teach.

        The classifier gives the parameters; it need not be fitted and is not changed. Each class is spread evenly over
        the folds, the same way each time.

        Parameters
        ----------
        X : table
            Rows, as for `fit`; a file is read once for each fold and need not fit into memory.
        y : array-like or str
            Their labels, or the name of the column that holds them.
        sample_weight : array-like or str, default=None
            Their weights, or the name of the column that holds them.
        folds : int, default=5
            The number of parts, at least 2.
        loss : Loss, matrix, mapping, table or path, default=None
            What decisions cost, as for `decide`.

        Returns
        -------
        Evaluation
            The figures of all rows, each predicted by a model that has not learned it.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from deciban import BayesClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> round(BayesClassifier(tune=None).cross_validate(X, y).accuracy, 2)
        0.96
        """
        if not isinstance(folds, int | np.integer) or folds < 2:
            raise UsageError("give a whole number that is at least 2", parameter=Argument("folds", folds))
        settings = self._settings()
        settings.check()
        return evaluate.cross_validate(settings, open_examples(None, X, y, sample_weight), int(folds), loss)

    def leave_one_out(self, X: Any = None, y: Any = None, sample_weight: Any = None) -> LeaveOneOut:
        """What the model would say of each row it has learned, had it not learned that row: exact, in one more pass.

        Parameters
        ----------
        X : table, default=None
            Rows that were learned; None is those of the last `fit`, as long as nothing else was learned since.
        y : array-like or str, default=None
            Their labels, or the name of the column that holds them.
        sample_weight : array-like or str, default=None
            The weights with which they were learned.

        Returns
        -------
        LeaveOneOut
            The posterior of each row, and figures; print it. Of a Spark DataFrame, whose rows stay where they are: an
            `Evaluation`, the figures alone.
        """
        fitted = self._fitted()
        rows = self._examples(X, y, sample_weight)
        if rows.elsewhere:
            return evaluate.evaluate_left_out(fitted, rows)  # type: ignore[return-value]  # rows stay there
        return evaluate.score_left_out(fitted, *evaluate.read_learned_rows(fitted, rows))

    def diagnose(self, X: Any = None, y: Any = None, sample_weight: Any = None) -> Diagnosis:
        """Which assumptions of plain Bayes fail, where, what that costs in leave-one-out bits, and the remedy.

        Parameters
        ----------
        X : table, default=None
            Rows that were learned; None is those of the last `fit`. Of a long file a sample is looked at.
        y : array-like or str, default=None
            Their labels, or the name of the column that holds them.
        sample_weight : array-like or str, default=None
            The weights with which they were learned.

        Returns
        -------
        Diagnosis
            Dependent columns, columns that do not follow their family, small classes; print it.
        """
        return evaluate.diagnose_rows(self._fitted(), self._examples(X, y, sample_weight))

    def importance(self, X: Any = None, y: Any = None, sample_weight: Any = None) -> Importance:
        """How much each column matters: the mean size of its evidence, and what it adds in bits.

        Parameters
        ----------
        X : table, default=None
            Rows. With `y`, rows that were learned, each scored without itself; without, rows of any kind. None is the
            rows of the last `fit` where they are remembered, and otherwise rows that are drawn from the model.
        y : array-like or str, default=None
            The labels of rows that were learned, or the name of the column that holds them.
        sample_weight : array-like or str, default=None
            The weights with which they were learned.

        Returns
        -------
        Importance
            Arrays over the columns; print it, or ask for ``to_frame()``. Of many rows a sample is looked at.

        See Also
        --------
        explain : What each column says of single rows.
        """
        fitted = self._fitted()
        if X is not None and y is None:
            return compute_new_row_importance(fitted, X)
        if X is None and self._training_rows() is None:
            return compute_simulated_importance(fitted)
        return compute_training_importance(fitted, self._examples(X, y, sample_weight))

    def select_columns(
        self, k: int | None = None, X: Any = None, y: Any = None, sample_weight: Any = None
    ) -> list[str]:
        """The columns that together tell most about the class, the most informative first.

        Columns are added one at a time, each time the one whose evidence, its row left out, adds most to that of those
        before it.

        Parameters
        ----------
        k : int, default=None
            How many columns; None stops where a column adds no more than chance would.
        X : table, default=None
            Rows that were learned; None is those of the last `fit`.
        y : array-like or str, default=None
            Their labels, or the name of the column that holds them.
        sample_weight : array-like or str, default=None
            The weights with which they were learned.

        Returns
        -------
        list of str
            The names of the columns.

        See Also
        --------
        EvidenceSelector : The same as a step of a pipeline.
        """
        width = self.n_features_in_
        if k is not None and not (isinstance(k, int | np.integer) and 0 <= k <= width):
            raise UsageError(f"select_columns(k={k!r}): give a whole number up to {width}, the number of columns")
        return [self.schema_.column_name(column) for column in self._selected_columns(k, X, y, sample_weight)]

    def estimate_prior(self, X: Any, level: float = 0.95) -> EstimatedPrior:
        """The shares of the classes among unlabeled rows, by expectation and maximization.

        It rests on calibrated posteriors and warns where there is reason to doubt them.

        Parameters
        ----------
        X : table
            Rows, as for `predict`.
        level : float, default=0.95
            The probability with which each share lies in its interval.

        Returns
        -------
        EstimatedPrior
            The share of each class with its interval; `with_prior` takes it.
        """
        fitted = self._fitted()
        error = None
        if self._training_rows() is not None:
            error = self.leave_one_out().expected_calibration_error
        elif fitted.is_tuned:
            error = 0.0  # tuned, and nothing to check it by
        return estimate_shares(predict_posteriors(fitted, X), np.exp(fitted.log_prior), fitted.classes, level, error)

    def bayes_error(self, loss: Any = None, n_samples: int = 100_000, random_state: int = 0) -> BayesRiskEstimate:
        """The risk of the best rule if the model were true, beside the leave-one-out risk.

        Each column has the family that the model uses for it, with weight 1. Exact for one column of listed values, of
        bins, or of a family with a cumulative distribution; simulated otherwise.

        Parameters
        ----------
        loss : Loss, matrix, mapping, table or path, default=None
            As for `decide`; None is zero-one loss, under which the risk is the error.
        n_samples : int, default=100_000
            Number of rows to simulate.
        random_state : int, default=0
            The seed.

        Returns
        -------
        BayesRiskEstimate
            ``risk``, its ``interval``, and ``leave_one_out``, the leave-one-out risk if the training rows are known.

        See Also
        --------
        deciban.bayes_error : For known distributions.
        """
        fitted = self._fitted()
        costs = loss_for(fitted, loss)
        risk, interval = model_risk(fitted, costs, n_samples, random_state)
        known = self._training_rows() is not None
        return BayesRiskEstimate(risk, interval, self.leave_one_out().mean_cost(costs) if known else None, costs)

    def report(
        self,
        path: str | os.PathLike[str] | None = None,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        *,
        loss: Any = None,
        title: str | None = None,
        examples: int = 3,
    ) -> Report:
        """A report as one HTML page: what the model is, how good it is, what each column says, and a form to try it.

        Without `X` it is made from counts, with the rows of the last `fit` left out in turn where they are
        remembered, and no row is in it.

        Parameters
        ----------
        path : str or path-like, default=None
            The file to write, such as "churn.html". None: none is written.
        X : table, default=None
            Rows that were held out, as for `fit`.
        y : array-like or str, default=None
            Their classes, or the name of the column that holds them; None is the column that `fit` was told.
        sample_weight : array-like or str, default=None
            Their weights, or the name of the column that holds them.
        loss : Loss, matrix, mapping, table or path, default=None
            What decisions cost, as for `decide`.
        title : str, default=None
            The title of the page. None: what is predicted.
        examples : int, default=3
            How many rows of `X` are shown with their evidence; 0 keeps all rows out of the page.

        Returns
        -------
        Report
            ``figures`` has all figures as data, ``html`` the page.

        Examples
        --------
        >>> from deciban import BayesClassifier
        >>> from deciban.datasets import weather
        >>> clf = BayesClassifier(tune=None).fit(weather(), "play")
        >>> report = clf.report()
        >>> report.data["model"]["rows"], report.data["quality"]["source"]
        (14, 'rows that the model has learned, each left out in its turn')
        """
        fitted = self._fitted()
        target = fitted.origin.target if y is None else y
        held_out = None if X is None else open_examples(fitted, X, target, sample_weight)
        training = None if self._training_rows() is None else self._examples(None, None, None)
        told = title or f"Report on {fitted.origin.target or 'a model'}"
        found = Report(collect_report_data(fitted, told, held_out, training, loss, examples))
        if path is not None:
            found.save(path)
        return found

    def _selected_columns(self, k: int | None, X: Any, y: Any, sample_weight: Any) -> list[int]:
        """The places of the columns that `select_columns` names."""
        fitted = self._fitted()
        table, labels, weights = evaluate.read_learned_rows(fitted, self._examples(X, y, sample_weight), sample=True)
        schema, classes = fitted.model.schema, fitted.classes.size
        rows = Rows.of(table, labels, weights, classes, limit_tuning_rows(schema, classes)).of_classes_present()
        return select_columns(rows, schema, k, None if fitted.tuning is None else fitted.tuning.corrections)

    # --- inside the model

    @overload
    def evidence(self, X: Any) -> Evidence: ...

    @overload
    def evidence(self, X: Any, by: Literal["block"]) -> Evidence: ...

    @overload
    def evidence(self, X: Any, by: Literal["column"]) -> ColumnEvidence: ...

    def evidence(self, X: Any, by: str = "block") -> Evidence | ColumnEvidence:
        """What each block of columns, or each column, says for each class: the terms that add up to the log joint.

        Parameters
        ----------
        X : table
            Rows, as for `predict`.
        by : {"block", "column"}, default="block"
            A block is a column by itself, or columns that are modeled together. By column, what a joint block says is
            shared out among its columns by Shapley values.

        Returns
        -------
        Evidence or ColumnEvidence
            ``values`` is row by block (or column) by class; ``log_joint`` = ``log_prior`` + ``bias`` + sum of weight
            times value (of columns, the weight is in the value).

        See Also
        --------
        explain : The same as text.
        """
        check_by(by)
        fitted = self._fitted()
        table = scoring.aligned_table(fitted, X)
        evidence = fitted.model.evidence(table)
        return evidence if by == "block" else column_evidence(fitted.model, table, evidence)

    def log_joint(self, X: Any) -> Floats:
        """log P(row, class), before it is normalized.

        Parameters
        ----------
        X : table
            Rows, as for `predict`.

        Returns
        -------
        ndarray of shape (rows, classes)
        """
        return scoring.score_rows(self._fitted(), X, lambda joint, prior: joint, full=True)

    def log_density(self, X: Any) -> Floats:
        """log P(row), by plain Bayes: very low for a row unlike all that was learned.

        Parameters
        ----------
        X : table
            Rows, as for `predict`.

        Returns
        -------
        ndarray of shape (rows,)
            -inf for a row that no class can produce.
        """
        fitted = self._fitted()
        return scoring.score_rows(
            fitted, X, lambda joint, prior: log_normalize(joint, prior)[1], full=True, model=fitted.plain
        )

    def predict_interval(self, X: Any, level: float = 0.95) -> tuple[Floats, Floats]:
        """The bounds between which each posterior lies, given how few rows it was learned from.

        By the delta method on the log-odds of each class against all others. A prior that was given has no error, a
        counted one has. Weights that were tuned are held fixed, and that the model may be of the wrong kind is not in
        it.

        Parameters
        ----------
        X : table
            Rows, as for `predict`.
        level : float, default=0.95
            The probability with which a posterior lies between its bounds.

        Returns
        -------
        low, high : ndarray of shape (rows, classes)
        """
        return scoring.intervals(self._fitted(), X, level)

    def estimates(self, *, plain: bool = False) -> Estimates:
        """What was estimated: the prior, and of each column means and variances, P(value | class), rates.

        Parameters
        ----------
        plain : bool, default=False
            Whether to show the model that tuning started from, which has each column once by its inferred family, and
            from which `log_density` comes. Otherwise the model that predicts, each block with its weight.

        Returns
        -------
        Estimates
            A mapping from the name of a column (of a joint block: "a+b") to arrays by parameter, in the order of
            `classes_`: ``clf.estimates()["age"]["mean"]``; ``clf.estimates().prior`` has the prior of each class.
            ``to_frame``, ``to_arrow`` and ``to_dict`` give all of it; print it.
        """
        fitted = self._fitted()
        return Estimates.from_model(fitted.plain if plain else fitted.model)

    def top_words(self, label: Any, n: int = 20, column: str | None = None) -> TopWords:
        """The words by which texts of a class are known, the most informative first.

        Parameters
        ----------
        label : label
            The class.
        n : int, default=20
            How many words.
        column : str, default=None
            The column of texts, if there are several.

        Returns
        -------
        TopWords
            A list of words with their evidence in decibans and their counts; print it.
        """
        fitted = self._fitted()
        return top_words_of(fitted.plain, fitted.class_index(label), n, column)

    def sample(
        self, n_samples: int = 1, random_state: Any = None, *, label: Any = None, length: int | None = None
    ) -> tuple[Any, LabelArray]:
        """Draw rows from the model: a class by the prior, then each column by the family that the model uses for it.

        Columns are drawn independently within the class, those of a declared joint block together. Blocks, weights and
        corrections that tuning added are left out, and texts are drawn from plain word counts.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows to draw.
        random_state : int, RandomState, Generator or None, default=None
            The seed, or where random numbers come from.
        label : label, default=None
            The class of all rows; None draws it.
        length : int, default=None
            The number of words of each text, and of each row of a `Multinomial` block; None draws it.

        Returns
        -------
        X : pyarrow.Table or ndarray
            The rows; an array where the columns are numbers without names.
        y : ndarray of shape (rows,)
            Their classes.
        """
        return sample_rows(self._fitted(), n_samples, random_state, label, length)

    def linear_form(self) -> Form:
        """The model as weights times features, with an offset for each class.

        Returns
        -------
        Form
            ``score[class] = weights · features + offset``; with hyperplanes between classes.

        Raises
        ------
        UsageError
            If the model is not linear; the message says which column and why.
        """
        return form_of(self._fitted().model, quadratic=False)

    def quadratic_form(self) -> Form:
        """The same with a quadratic term for each class, for models with a variance for each class.

        Returns
        -------
        Form
        """
        return form_of(self._fitted().model, quadratic=True)

    def parameter_count(self) -> ParameterCount:
        """How many numbers the naive, this and the full joint model have to learn.

        Returns
        -------
        ParameterCount
            ``naive``, ``model``, ``full`` and ``combinations``; print it.
        """
        fitted = self._fitted()
        return ParameterCount.from_counts(fitted.counts, fitted.plain, fitted.model)

    # --- files, and other languages

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all that was learned to a model file (.dcb): data only, no code; `deciban.load` reads it.

        Parameters
        ----------
        path : str or path-like
            The file; one that is there is replaced when all is written.
        """
        model_file.save(path, self._fitted())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The classifier that was saved to a model file; see `deciban.load`.

        Parameters
        ----------
        path : str or path-like
            A model file.

        Returns
        -------
        BayesClassifier
        """
        return cls.from_fitted(model_file.load(path))

    @classmethod
    def from_fitted(cls, fitted: Fitted) -> Self:
        """The classifier that knows what `fitted` knows, with its settings as parameters.

        Parameters
        ----------
        fitted : Fitted
            As in the attribute `fitted_`.

        Returns
        -------
        BayesClassifier
        """
        return cls(**{name: getattr(fitted.settings, name) for name in SETTINGS})._become(fitted)

    def to_javascript(self) -> str:
        """The model as a JavaScript module that needs nothing else, for browsers and for Node.

        Returns
        -------
        str
            Source code of an ES module. It exports `columns`, `classes` and functions of a row: `predict`,
            `predictProba`, `predictLogProba`, `predictJointLogProba`, `evidence` and `columnEvidence`. Its log
            probabilities equal those of `predict_log_proba` to 1e-12.

        Raises
        ------
        UsageError
            If JavaScript cannot score a column; it is named.

        See Also
        --------
        report : A page that has the same scorer in it.
        to_python : The same as a Python file.
        to_onnx : For programs that run ONNX.

        Examples
        --------
        >>> from deciban import BayesClassifier
        >>> from deciban.datasets import weather
        >>> module = BayesClassifier(tune=None).fit(weather(), "play").to_javascript()
        >>> "export const" in module
        True
        """
        return to_javascript(self._fitted())

    def to_python(self) -> str:
        """The model as one Python file that needs nothing but the standard library of Python 3.8 or later.

        Returns
        -------
        str
            Source code of a module. It has `columns`, `classes` and functions of a row (a dict from column name to
            value): `predict`, `predict_proba`, `predict_log_proba`, `predict_joint_log_proba`, `evidence` and
            `column_evidence`. Its log probabilities equal those of `predict_log_proba` to 1e-12. As a script it
            scores rows in JSON Lines format.

        Raises
        ------
        UsageError
            If a column cannot be exported; it is named.

        See Also
        --------
        to_javascript : The same for browsers and Node.
        to_onnx : For programs that run ONNX.

        Examples
        --------
        >>> from deciban import BayesClassifier
        >>> from deciban.datasets import weather
        >>> source = BayesClassifier(tune=None).fit(weather(), "play").to_python()
        >>> source.splitlines()[-1]
        '    sys.exit(main())'
        """
        return to_python(self._fitted())

    def to_onnx(self) -> Any:
        """The model as an ONNX model that computes in doubles, for onnxruntime and what else runs ONNX.

        Returns
        -------
        onnx.ModelProto
            It has an input of shape (rows, 1) for each column that is read, texts or doubles, and the outputs `label`
            and `probabilities`, which are those of `predict_proba` to 1e-9. Missing is NaN, and "" of texts.

        Raises
        ------
        UsageError
            If onnx is not installed, or if a column cannot be scored there, such as one of `Text`; it is named.

        See Also
        --------
        to_javascript, to_python : Every family, with the evidence of columns.

        Examples
        --------
        >>> from deciban import BayesClassifier
        >>> from deciban.datasets import weather
        >>> model = BayesClassifier(tune=None).fit(weather(), "play").to_onnx()
        >>> [one.name for one in model.graph.input]
        ['outlook', 'temperature', 'humidity', 'wind']
        """
        return to_onnx(self._fitted())

    def to_sql(
        self,
        table: str,
        dialect: Literal["duckdb", "postgres", "spark"] = "duckdb",
        explain: bool = False,
        keep: Sequence[str] | None = None,
    ) -> str:
        """The model as one SELECT statement, which scores a table in the database where it is.

        Parameters
        ----------
        table : str
            The name of the table; dots part the schema from it. It has the columns that the model reads.
        dialect : {"duckdb", "postgres", "spark"}, default="duckdb"
            Whose SQL it is.
        explain : bool, default=False
            Whether to say, in decibans, what each column says for the predicted class against the next best.
        keep : sequence of str, default=None
            The columns of the table that are passed on, such as its key. None: all.

        Returns
        -------
        str
            The statement. It answers the columns that are kept, `predicted`, the probability of each class as
            `P(class)`, which are those of `predict_proba` to 1e-9, and with `explain` also `against`, the next best
            class, `decibans`, the log-odds of these two, `decibans of prior` (with the bias) and `decibans of` each
            column, which add up to them. A row that `predict` would refuse has NULL.

        Raises
        ------
        UsageError
            If SQL cannot score a column, such as one of `Text`; it is named.

        See Also
        --------
        to_python, to_javascript : Every family.
        explain : The same explanation, of rows here.

        Examples
        --------
        >>> import duckdb
        >>> from deciban import BayesClassifier
        >>> from deciban.datasets import weather
        >>> days = weather()
        >>> statement = BayesClassifier(tune=None).fit(days, "play").to_sql("days", keep=["outlook"])
        >>> outlook, predicted, *probabilities = duckdb.sql(statement).fetchall()[0]
        >>> outlook, predicted, [round(p, 3) for p in probabilities]
        ('sunny', 'no', [0.688, 0.312])
        """
        return to_sql(self._fitted(), table, dialect, explain, keep)

    # --- the fitted state: one value, `fitted_`, that is replaced as a whole

    @property
    def classes_(self) -> LabelArray:
        """The classes, sorted, of the type that the labels came in."""
        return self._fitted().classes

    @property
    def schema_(self) -> Schema:
        """What each column is taken for, and why; print it. Tuning may have chosen other families than inferred."""
        return self._fitted().schema

    @property
    def tuning_(self) -> Tuning | None:
        """What was tuned: families, joint blocks and the weight of each block; None for plain Bayes. Print it."""
        return self._fitted().tuning

    @property
    def counts_(self) -> Counts:
        """All that was counted: a value that can be added, subtracted and scaled."""
        return self._fitted().counts

    @property
    def model_(self) -> Model:
        """The prior and the likelihoods that the counts support."""
        return self._fitted().model

    @property
    def shards_(self) -> tuple[str, ...]:
        """Names of the sets of rows that were learned, the same for the same rows: to see that none was added twice."""
        return shards_of(self._fitted())

    @property
    def target_(self) -> str | None:
        """The name of the column that held the labels; None where they were given apart."""
        return self._fitted().origin.target

    @property
    def n_features_in_(self) -> int:
        """The number of columns."""
        return self.schema_.width

    @property
    def feature_names_in_(self) -> npt.NDArray[np.object_]:
        """The names of the columns; an AttributeError where they have none."""
        names = self.schema_.names
        if names is None:
            raise AttributeError("feature_names_in_: the columns have no names")
        return np.array(names, dtype=object)

    def __getstate__(self) -> dict[str, Any]:
        """Without the training rows."""
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_training"}

    def __sklearn_is_fitted__(self) -> bool:
        return "fitted_" in vars(self)

    def _settings(self) -> Settings:
        """The parameters as they are now."""
        return Settings(**{name: getattr(self, name) for name in SETTINGS})

    def _fitted(self) -> Fitted:
        """What was learned, with the parameters as they are now, which may have been set since."""
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(f"This {type(self).__name__} instance is not fitted yet. Call 'fit' first.")
        fitted = self.fitted_
        if any(getattr(fitted.settings, name) is not getattr(self, name) for name in SETTINGS):
            fitted = self.fitted_ = fitted.with_settings(self._settings())
        return fitted

    def _become(self, fitted: Fitted, training: tuple[Any, Any, Any] | None = None) -> Self:
        """Take over what was learned; `training` are the rows, if they are all that was learned."""
        self.fitted_ = fitted
        self._training = training
        return self

    def _training_rows(self) -> tuple[Any, Any, Any] | None:
        """The rows of the last fit, unless something else was learned since."""
        return vars(self).get("_training")

    def _examples(self, X: Any, y: Any, sample_weight: Any) -> Examples:
        """Rows with their labels; without X those of the last fit."""
        if X is None:
            kept = self._training_rows()
            if kept is None:
                raise UsageError("only the rows of a fit are remembered, and not in a file", remedy="give X and y")
            X, y, sample_weight = kept
        return fit.open_examples(self._fitted(), X, y, sample_weight)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def load(path: str | os.PathLike[str]) -> BayesClassifier:
    """Load a classifier from a model file.

    It can do all that it could when it was saved: predict, learn more, forget, be added to others. Only the training
    rows are not in the file.

    Parameters
    ----------
    path : str or path-like
        A model file (``.dcb``), as written by `BayesClassifier.save` or by the command ``deciban fit``.

    Returns
    -------
    BayesClassifier
        The fitted classifier.

    Raises
    ------
    ModelFileError
        If the file is damaged, is no model, or was written by a newer version.
    OSError
        If the file cannot be read.

    See Also
    --------
    BayesClassifier.save : Write the file.
    merge : Add up models that were trained apart.

    Examples
    --------
    >>> from deciban import BayesClassifier, load
    >>> from deciban.datasets import weather
    >>> from tempfile import mkdtemp
    >>> path = mkdtemp() + "/weather.dcb"
    >>> BayesClassifier().fit(weather(), "play").save(path)
    >>> load(path).predict([{"outlook": "overcast"}]).tolist()
    ['yes']
    """
    return BayesClassifier.load(path)


def merge(
    models: Sequence[BayesClassifier | bytes | str | os.PathLike[str]],
    *,
    force: bool = False,
    names: Sequence[str] | None = None,
) -> BayesClassifier:
    """Add up classifiers that were trained apart: the result has learned the rows of all of them.

    Nothing that is given is changed. What the first model was tuned to is kept, and is stale until `retune`.

    Parameters
    ----------
    models : sequence of BayesClassifier, bytes, str or path-like
        Fitted classifiers, the names of model files, or what `count_batches` returns.
    force : bool, default=False
        Merge models even if they have learned the same rows, which then count twice, predict different columns, or have
        no column in common.
    names : sequence of str, default=None
        What error messages call the models; by default the names of their files, or "model 1", "model 2", ...

    Returns
    -------
    BayesClassifier
        A new classifier with the parameters of the first.

    Raises
    ------
    DataError
        If two models have learned the same rows, unless `force`; if their labels are of different types.
    SchemaError
        If a column has different families in two models; if they predict different columns or have none in common,
        unless `force`.

    See Also
    --------
    BayesClassifier.shard : Count rows as a classifier counts them, to be added to it.

    Examples
    --------
    >>> from deciban import BayesClassifier, merge
    >>> from deciban.datasets import weather
    >>> spring, autumn = (BayesClassifier().fit(half, "play") for half in (weather().slice(0, 7), weather().slice(7)))
    >>> merge([spring, autumn]).counts_.rows
    14
    >>> merge([spring, autumn, spring])
    Traceback (most recent call last):
        ...
    deciban.errors.DataError: model 1 and model 3 have learned the same rows; leave one out, or pass force=True
    """
    if not models or isinstance(models, str):
        raise UsageError("give the models that are to be merged in a list")
    called = list(names) if names is not None else [_name_of(model, place) for place, model in enumerate(models)]
    if len(called) != len(models):
        raise UsageError(
            (Argument("names"), f" has {len(called)} names for {len(models)} models"), remedy="give one for each"
        )
    kind = type(models[0]) if isinstance(models[0], BayesClassifier) else BayesClassifier
    parts = [_fitted(model, name) for model, name in zip(models, called, strict=True)]
    return kind.from_fitted(update.merge(parts, called, force))


def count_batches(batches: Iterable[Any], plan: Plan) -> bytes:
    """Count rows by a plan, wherever they are: in another process, on another machine.

    Parameters
    ----------
    batches : iterable of table
        Rows with their labels, piece by piece: Arrow record batches, data frames, dicts of columns. One is held at a
        time.
    plan : Plan
        What is to be counted, as `BayesClassifier.plan` has settled it; it can be pickled.

    Returns
    -------
    bytes
        What was counted, a shard: small, whatever the number of rows. `BayesClassifier.fit_shards` takes shards, and so
        does `merge`; written to a file, it is a model file.

    See Also
    --------
    BayesClassifier.plan : Settle what is counted on a sample.
    BayesClassifier.fit_shards : Learn from shards.

    Examples
    --------
    >>> from deciban import BayesClassifier, count_batches
    >>> from deciban.datasets import weather
    >>> clf = BayesClassifier(tune=None)
    >>> plan = clf.plan(weather(), "play")
    >>> shards = [count_batches([part], plan) for part in (weather().slice(0, 7), weather().slice(7))]
    >>> clf.fit_shards(shards, plan).counts_.rows
    14
    """
    return plan.count(batches)


def _fitted(model: BayesClassifier | bytes | str | os.PathLike[str], name: str) -> Fitted:
    if isinstance(model, bytes):
        return model_file.from_content(model, name)
    return model._fitted() if isinstance(model, BayesClassifier) else model_file.load(model)


def _name_of(model: Any, place: int) -> str:
    return f"model {place + 1}" if isinstance(model, BayesClassifier | bytes) else str(model)
