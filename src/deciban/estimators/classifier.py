"""`BayesClassifier`, a scikit-learn estimator, and `load`, `merge` and `count_batches`.

This module holds signatures and documentation; the packages below do the work.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from operator import attrgetter, is_
from typing import Any, Literal, Self, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags

from deciban.decisions.decide import CoverageCurve, Decisions, compute_incurred_costs, compute_risks
from deciban.decisions.loss import Loss
from deciban.decisions.sets import PredictionSets
from deciban.decisions.shift import EstimatedPrior, estimate_shares
from deciban.decisions.threshold import Threshold
from deciban.errors import Argument, DataError, Labels as ShownLabels, UsageError
from deciban.estimators.spark import decide_in_spark, explain_in_spark, predict_in_spark
from deciban.evaluation import validation as evaluate
from deciban.evaluation.comparison import Comparison, compare
from deciban.evaluation.diagnose import Diagnosis
from deciban.evaluation.importance import (
    Importance,
    compute_new_row_importance,
    compute_simulated_importance,
    compute_training_importance,
    select_learned_columns,
)
from deciban.evaluation.label_issues import MIN_PROBABILITY, LabelIssues, find_label_issues
from deciban.evaluation.leave_one_out import LeaveOneOut
from deciban.evaluation.metrics import Evaluation
from deciban.evaluation.model_risk import BayesRiskEstimate, model_risk
from deciban.explain.columns import ColumnEvidence, check_by, compute_column_evidence
from deciban.explain.estimates import Estimates, ParameterCount
from deciban.explain.explanation import Explanation
from deciban.explain.words import TopWords, list_top_words
from deciban.export.javascript import to_javascript
from deciban.export.onnx.model import to_onnx
from deciban.export.python import to_python
from deciban.export.sql.statement import to_sql
from deciban.families import Family
from deciban.fitting import fit, update
from deciban.fitting.fit import Plan, open_examples
from deciban.fitting.release import release
from deciban.fitting.update import find_class_places
from deciban.model.counts import Counts
from deciban.model.fitted import Fitted, Settings
from deciban.model.linear_forms import Form, form_of
from deciban.model.model import Evidence, Model, log_normalize
from deciban.model.priors import Empirical, Uniform
from deciban.model.tuning import Tuning
from deciban.report.data import collect_report_data
from deciban.report.report import Report
from deciban.schema.schema import Schema
from deciban.scoring import predict as scoring
from deciban.scoring.outliers import score_outliers
from deciban.scoring.predict import loss_for, predict_posteriors
from deciban.scoring.simulate import Sample, sample_rows
from deciban.sources.open import kind_of_rows, open_query_or_table
from deciban.sources.streams import Examples
from deciban.store import model_file
from deciban.store.lock import check_no_service
from deciban.store.model_file import describe_fit, shards_of
from deciban.typing import Costs, Labels, Path, Prior, Table, Weights
from deciban.util.frames import Library, library_of, remember_library

SETTINGS = tuple(field.name for field in fields(Settings))

_read_settings = attrgetter(*SETTINGS)


class BayesClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    r"""Bayes classifier for tables of numbers, categories, booleans, counts and texts, with missing values.

    Each column has a family of distributions (normal, categorical, Bernoulli, Poisson, text, ...), which is inferred
    from its cells or given. Bayes' theorem turns them into class probabilities. By default the model is tuned: left-out
    rows choose the family of each column, the columns to model jointly, and the weight of each block of evidence, so
    that probabilities are calibrated. ``tune=None`` is textbook naive Bayes. Every prediction is an exact sum of
    evidence. The model stores only counts and sums, which can be added and subtracted.

    Parameters
    ----------
    families : family, mapping or None, default=None
        Families of the columns: one family such as ``Gaussian()`` for every column, or a mapping from a column (its
        name or number), or from a tuple of columns that form one joint block, to its family. The family of every
        other column is inferred.
    prior : str, mapping, sequence, Empirical or Uniform, default="empirical"
        Prior probability of each class: ``"empirical"`` (its share of the rows), ``"smoothed"`` (one additional row in
        each class), ``"uniform"``, ``Empirical(alpha)``, ``Uniform()``, or probabilities: a mapping from class, or a
        sequence in the order of `classes_`.
    classes : array-like, default=None
        All allowed labels; any other label raises an error. None: new labels are accepted at any time.
    alpha : float, default=1.0
        Smoothing: added to every count of inferred discrete columns. 0 is maximum likelihood, 1 is Laplace smoothing.
    unseen : {"ignore", "smooth", "error"}, default="ignore"
        How to treat a category not seen in training, in inferred discrete columns: as no evidence, as a count of 0, or
        as an error.
    threads : int or None, default=None
        Number of threads. None: all cores. Results do not depend on it.
    tune : {"auto", "weights"} or None, default="auto"
        "auto" chooses families, joint blocks and evidence weights on left-out rows, and learns corrections of the sum.
        "weights" omits the corrections. None is plain Bayes.
    ordered : bool, default=False
        If True, the classes are ordered: `predict` returns the posterior median, `decide` minimizes the number of
        steps between the decision and the true class, and evaluations include metrics of ordered classes. The order
        is that of `classes`, of an ordered categorical target (pandas, or an Enum of polars), or else ascending;
        three or more classes that are texts need one of the first two.
    monotone : mapping from column to 1 or -1, default=None
        Numeric columns whose evidence must favor higher classes the higher the number (1), or the lower (-1), all
        else being equal: for two classes the second of `classes_`, for more classes with ``ordered=True`` the higher
        of any two. Such a column is binned and belongs to no joint block and no correction.
    unlabeled : {"em"} or None, default=None
        How `fit` treats rows without a label. None ignores them. "em" also learns from them by
        expectation-maximization: each counts in every class with its posterior. They are ignored unless left-out
        labeled rows gain by them; ``tuning_.unlabeled`` reports it. Up to 16,384 rows are used.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Classes, sorted, with the type of the labels.
    schema_ : Schema
        Family of each column and the reason for it. Print it for a table.
    counts_ : Counts
        Sufficient statistics of the training rows, which can be added, subtracted and scaled.
    model_ : Model
        Prior and likelihoods estimated from the counts.
    tuning_ : Tuning or None
        Results of tuning; None for plain Bayes. Print it for a table.
    fitted_ : Fitted
        The complete fitted state, replaced as a whole.
    shards_ : tuple of str
        Identifiers of the learned sets of rows, computed from their counts.
    target_ : str or None
        Name of the label column.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Column names; only if the columns have names.

    See Also
    --------
    load : Load a classifier from a model file.
    merge : Merge separately trained classifiers.
    deciban.dropin : Drop-in replacements for scikit-learn's naive Bayes classifiers and discriminants.
    MinimumRisk : Least-cost decisions with any classifier.

    Notes
    -----
    The posterior of class c, from its prior and the evidence of each block j of columns; in plain Bayes each weight
    :math:`w_j` is 1 and each bias :math:`b_c` is 0:

    .. math:: \log P(c \mid x) = \log P(c) + b_c + \sum_j w_j \log P(x_j \mid c) + \mathrm{const}

    The common methods are `fit`, `predict`, `predict_proba`, `explain`, `decide`, `evaluate`, `score` and `save`.
    `partial_fit`, `forget`, `decay`, `retune`, `shard`, ``+`` and ``-`` change what was learned; `leave_one_out`,
    `label_issues`, `diagnose`, `cross_validate` and `select_columns` evaluate it; `evidence`, `estimates`, `top_words`,
    `linear_form` and `sample` show what it has learned.

    Missing cells (None, NaN, null) are skipped in training and ignored in prediction, unless tuning found that missing
    values are informative; the schema then reports it. Columns without names are matched by position.

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
        families: Family | Mapping[Any, Family] | None = None,
        *,
        prior: Prior | Empirical | Uniform = "empirical",
        classes: Labels | None = None,
        alpha: float = 1.0,
        unseen: Literal["ignore", "smooth", "error"] = "ignore",
        threads: int | None = None,
        tune: Literal["auto", "weights"] | None = "auto",
        ordered: bool = False,
        monotone: Mapping[Any, int] | None = None,
        unlabeled: Literal["em"] | None = None,
    ) -> None:
        self.families = families
        self.prior = prior
        self.classes = classes
        self.alpha = alpha
        self.unseen = unseen
        self.threads = threads
        self.tune = tune
        self.ordered = ordered
        self.monotone = monotone
        self.unlabeled = unlabeled

    def fit(
        self,
        X: Table,
        y: Labels,
        sample_weight: Weights | None = None,
        *,
        query: str | None = None,
        table: str | None = None,
        pushdown: bool = False,
        max_seconds: float | None = None,
    ) -> Self:
        """Fit the classifier. Any previous fit is replaced.

        Parameters
        ----------
        X : table
            In memory: a pandas, polars or Arrow table, a DuckDB relation, a NumPy array, a SciPy sparse matrix, a dict
            of columns, a list of dicts or of lists, or a list of texts. Streamed, of any size: a file name (CSV, JSON
            lines, Parquet, Arrow, ORC) or a list of them, a glob, a folder, ``"sql: select ..."``, the URL of a
            PostgreSQL database, a database connection, an Ibis table, a polars LazyFrame, a pyarrow dataset, the result
            of `deciban.scan`, or a Spark DataFrame, whose rows are counted by Spark's executors.
        y : array-like or str
            Label of each row, or the name of the label column in X. Rows without a label are counted in
            ``counts_.unlabeled``; the model ignores them without ``unlabeled="em"``.
        sample_weight : array-like or str, default=None
            Weight of each row (0 ignores the row, 2 counts it twice), or the name of the weight column in X.
        query : str, default=None
            Query whose rows are learned, if X is a database URL or connection.
        table : str, default=None
            Table whose rows are learned, if X is a database URL or connection.
        pushdown : bool, default=False
            Count rows by SQL inside the database (PostgreSQL, Spark SQL, DuckDB for Parquet files and queries). Only
            a sample is read, and columns that SQL cannot count, such as texts.
        max_seconds : float, default=None
            Wall time for the fit. Tuning uses as many rows as there is time for; with too little time the model is
            plain Bayes, with a warning. Reading and counting all rows is not shortened; a warning states a large
            overrun. The compilation of kernels (once per machine) does not count. None: no limit. With a limit,
            two fits of the same rows may differ.

        Returns
        -------
        self : BayesClassifier

        Raises
        ------
        DataError
            If a cell, a label or a weight is invalid. The message names its place, the cause and the remedy. The
            classifier is unchanged.
        UsageError
            If a parameter is invalid.
        OSError
            If a file or a database cannot be read. The classifier is unchanged.

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
        fitted = fit.fit(self._settings(), X, y, sample_weight, pushdown=pushdown, max_seconds=max_seconds)
        return self._become(fitted, training=(X, y, sample_weight))  # not copied

    def predict(self, X: Table) -> npt.NDArray[Any]:
        """Return the most probable class of each row, or the posterior median of ordered classes.

        Parameters
        ----------
        X : table
            Rows in any form that `fit` accepts. Columns are matched by name if they have names, else by position. A
            missing column counts as missing values.

        Returns
        -------
        ndarray of shape (rows,)
            Predicted classes; ties go to the first of `classes_`, or to the lowest of ordered classes. For a Spark
            DataFrame: the DataFrame with the columns ``predicted`` and ``probability`` added.

        See Also
        --------
        predict_proba : Probability of each class.
        decide : Least-cost decisions.
        """
        if kind_of_rows(X) == "spark":
            return predict_in_spark(self._get_fitted(), X)  # type: ignore[no-any-return]  # a DataFrame
        return scoring.predict(self._get_fitted(), X)

    def predict_proba(self, X: Table) -> npt.NDArray[np.float64]:
        """Return the posterior probability of each class.

        Parameters
        ----------
        X : table
            Rows, as for `predict`.

        Returns
        -------
        ndarray of shape (rows, classes)
            Columns in the order of `classes_`. A row that is impossible in every class gets the prior. For a Spark
            DataFrame: the DataFrame with the columns ``predicted``, ``probability`` and ``P(class)`` added.

        Examples
        --------
        >>> from deciban import BayesClassifier
        >>> from deciban.datasets import weather
        >>> BayesClassifier().fit(weather(), "play").predict_proba([{"outlook": "overcast"}]).round(3).tolist()
        [[0.143, 0.857]]
        """
        if kind_of_rows(X) == "spark":
            return predict_in_spark(self._get_fitted(), X, probabilities=True)  # type: ignore[no-any-return]  # a DataFrame
        return scoring.predict_posteriors(self._get_fitted(), X)

    def predict_log_proba(self, X: Table) -> npt.NDArray[np.float64]:
        """Return the log posterior of each class.

        Parameters
        ----------
        X : table
            Rows, as for `predict`.

        Returns
        -------
        ndarray of shape (rows, classes)
        """
        return scoring.score_rows(
            self._get_fitted(), X, lambda joint, prior: log_normalize(joint, prior, logarithm=True)[0]
        )

    def predict_set(
        self, X: Table, coverage: float = 0.9, *, per_class: bool = False, allow_empty: bool = True
    ) -> PredictionSets:
        """Return for each row a set of classes that contains the true class with the given probability.

        Conformal prediction with scores of left-out rows: training rows are enough, none is set aside for calibration.
        A tuned classifier has these scores from `fit`; of others, the first call computes them from the training rows.

        Parameters
        ----------
        X : table
            Rows, as for `predict`.
        coverage : float, default=0.9
            Share of new rows whose set contains their class.
        per_class : bool, default=False
            If True, the coverage holds for the rows of each class ("Mondrian"). Sets are then larger.
        allow_empty : bool, default=True
            If False, a set that would be empty contains the most probable class.

        Returns
        -------
        PredictionSets
            The sets, also as an array of flags, row by class.

        Raises
        ------
        UsageError
            If the classifier has no conformity scores. `conformalize` computes them.

        See Also
        --------
        conformalize : Compute the conformity scores again.
        predict_interval : Confidence intervals of the probabilities.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from deciban import BayesClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> sets = BayesClassifier().fit(X[::2], y[::2]).predict_set(X[[1, 83]], 0.98)
        >>> sets[0], sets[1], sets.sizes.tolist()
        ([0], [1, 2], [1, 2])
        """
        fitted = self._with_scores(X, coverage)
        return remember_library(scoring.predict_sets(fitted, X, coverage, per_class, allow_empty), X)

    def predict_batches(
        self,
        X: Table,
        *,
        probabilities: bool = False,
        coverage: float | None = None,
        output_format: Literal["csv", "tsv", "json", "parquet"] | None = None,
    ) -> Iterator[pa.Table]:
        """Predict rows of any number, in batches.

        Parameters
        ----------
        X : table
            Rows, as for `predict`.
        probabilities : bool, default=False
            If True, add the probability of every class.
        coverage : float, default=None
            If given, add the column ``set``: the prediction set of this coverage, as text.
        output_format : {"csv", "tsv", "json", "parquet"}, default=None
            Format in which the batches will be written. "csv" keeps the cells of a CSV file as written there; "json"
            turns its whole numbers into integers. None: typed columns.

        Yields
        ------
        pyarrow.Table
            A batch of rows with the columns ``predicted`` and ``probability`` added.
        """
        yield from scoring.predict_batches(
            self._get_fitted(), X, probabilities=probabilities, coverage=coverage, output_format=output_format
        )

    def predict_to(
        self,
        path: Path,
        X: Table,
        *,
        probabilities: bool = False,
        coverage: float | None = None,
        table: str | None = None,
        if_exists: Literal["fail", "replace", "append"] = "fail",
    ) -> int:
        """Write rows with their predictions to a file or a database table, atomically.

        Parameters
        ----------
        path : str or path-like
            File name ending with .csv, .jsonl, .parquet or .xlsx (or .csv.gz), or the URL of a PostgreSQL database.
        X : table
            Rows of any number, as for `predict`.
        probabilities : bool, default=False
            If True, add the probability of every class.
        coverage : float, default=None
            If given, add the column ``set``: the prediction set of this coverage, as text.
        table : str, default=None
            Database table to write to, in one transaction, such as "scores" or "sales.scores".
        if_exists : {"fail", "replace", "append"}, default="fail"
            If the table exists: raise an error, replace the table, or append rows to it.

        Returns
        -------
        int
            Number of rows written.

        See Also
        --------
        decide_to : Write decisions.
        """
        fitted = self._get_fitted()
        return scoring.predict_to(
            fitted, path, X, probabilities=probabilities, coverage=coverage, table=table, if_exists=if_exists
        )

    def score(self, X: Table, y: Labels, sample_weight: Weights | None = None) -> float:
        """Return the accuracy on labeled rows.

        Parameters
        ----------
        X : table
            Rows, as for `fit`.
        y : array-like or str
            True classes, or the name of the label column.
        sample_weight : array-like or str, default=None
            Row weights, or the name of the weight column.

        Returns
        -------
        float

        See Also
        --------
        evaluate : All other metrics.
        """
        fitted = self._get_fitted()
        return evaluate.compute_accuracy(fitted, fit.open_examples(fitted, X, y, sample_weight))

    def explain(self, X: Table, by: Literal["column", "block"] = "column") -> Explanation:
        """Explain the prediction of each row by the evidence of each column, in decibans.

        Parameters
        ----------
        X : table
            A few rows, as for `predict`.
        by : {"column", "block"}, default="column"
            "column" gives one number per column: its own evidence plus its exact share of the evidence of joint blocks
            and corrections. "block" gives one number per block of columns modeled together, and shows the textbook
            calculation.

        Returns
        -------
        Explanation
            Print it, or use ``summary(row)``, ``calculation(row)``, ``to_dict(row)``, ``steps(row)`` or
            ``to_frame()``. Rows are counted from 0 (the command line counts them from 1). For a Spark DataFrame: the
            DataFrame with the columns ``predicted``, ``against``, ``decibans``, ``decibans of prior`` and one
            ``decibans of`` column per column added.

        See Also
        --------
        evidence : The same as arrays.
        importance : Importance of columns over many rows.
        """
        fitted = self._get_fitted()
        if kind_of_rows(X) == "spark":
            return explain_in_spark(fitted, X)  # type: ignore[no-any-return]  # a DataFrame
        return remember_library(Explanation.from_model(fitted.model, scoring.align_rows(fitted, X), by), X)

    # --- learning more, and forgetting

    def partial_fit(
        self,
        X: Table,
        y: Labels,
        classes: Labels | None = None,
        sample_weight: Weights | None = None,
        *,
        query: str | None = None,
        table: str | None = None,
        pushdown: bool = False,
    ) -> Self:
        """Learn more rows. This changes the classifier itself and returns it.

        The counts equal those of one `fit` on all rows. New classes, new categories and new named columns are accepted.
        Tuning is kept unchanged until `retune`.

        Parameters
        ----------
        X : table
            Rows, as for `fit`.
        y : array-like or str
            Labels, or the name of the label column.
        classes : array-like, default=None
            All allowed labels; any other label raises an error. None: those of the constructor.
        sample_weight : array-like or str, default=None
            Row weights, or the name of the weight column.
        query : str, default=None
            Query whose rows are learned, if X is a database.
        table : str, default=None
            Table whose rows are learned, if X is a database.
        pushdown : bool, default=False
            Count rows by SQL inside the database, as in `fit`.

        Returns
        -------
        self : BayesClassifier

        Raises
        ------
        DataError
            If a cell or a label is invalid. The classifier is unchanged.

        See Also
        --------
        forget : Forget rows.
        shard : Count rows separately, to be added later.
        """
        X = open_query_or_table(X, query, table)
        if self.__sklearn_is_fitted__():
            return self._become(update.learn_more(self._get_fitted(), X, y, sample_weight, classes, pushdown))
        fitted = fit.fit(self._settings(), X, y, sample_weight, classes=classes, partial=True, pushdown=pushdown)
        return self._become(fitted)

    def forget(
        self,
        X: Table,
        y: Labels,
        sample_weight: Weights | None = None,
        *,
        query: str | None = None,
        table: str | None = None,
        pushdown: bool = False,
    ) -> Self:
        """Forget rows, as if they had never been learned. This changes the classifier itself and returns it.

        Counts of rows with whole-number weights, and sums of numbers, are exact to the bit. Rows that cannot have been
        learned raise an error. Rows that could have been learned, but were not, are not detected: remember which rows
        were learned, or use the ids of the service.

        Parameters
        ----------
        X : table
            The rows, with every column of the model (an empty column if they were learned without it), or all rows of
            one shard.
        y : array-like or str
            Labels, or the name of the label column.
        sample_weight : array-like or str, default=None
            Weights with which the rows were learned.
        query : str, default=None
            Query whose rows are forgotten, if X is a database.
        table : str, default=None
            Table whose rows are forgotten, if X is a database.
        pushdown : bool, default=False
            Count rows by SQL inside the database, as in `fit`.

        Returns
        -------
        self : BayesClassifier

        Raises
        ------
        ForgetError
            If the rows cannot have been learned, since a count or a variance would become negative, or if no rows
            would be left. The classifier is unchanged.

        See Also
        --------
        decay : Reduce the weight of all rows learned so far.

        Examples
        --------
        >>> from deciban import BayesClassifier
        >>> from deciban.datasets import weather
        >>> clf = BayesClassifier().fit(weather(), "play")
        >>> clf.forget(weather().slice(0, 5), "play").counts_.rows
        9
        """
        return self._become(
            update.forget(self._get_fitted(), open_query_or_table(X, query, table), y, sample_weight, pushdown)
        )

    def plan(self, X: Table, y: str, sample_weight: str | None = None) -> Plan:
        """Choose the schema on a sample, so that rows can be counted in other processes or machines.

        Parameters
        ----------
        X : table
            A sample of the rows, as for `fit`, with their labels. At most 16,384 of them are used, and up to about
            330,000 for the corrections of a tuned classifier.
        y : str
            Name of the label column.
        sample_weight : str, default=None
            Name of the weight column.

        Returns
        -------
        Plan
            Pass it to `deciban.count_batches`. It can be pickled, without the sample.

        See Also
        --------
        fit_shards : Fit from the counted shards.
        """
        return fit.plan(self._settings(), X, y, sample_weight)

    def fit_shards(self, shards: Sequence[bytes], plan: Plan, *, force: bool = False) -> Self:
        """Fit from rows that were counted elsewhere with a plan, as `fit` would on all of them.

        The weights and corrections of a tuned classifier are learned on the sample of the plan.

        Parameters
        ----------
        shards : sequence of bytes
            Results of `deciban.count_batches`, one per part of the rows.
        plan : Plan
            The plan used to count them, as returned by `plan`.
        force : bool, default=False
            If True, accept two shards with the same rows, which then count twice.

        Returns
        -------
        self : BayesClassifier

        Raises
        ------
        DataError
            If two shards have the same rows, or no row has a label and a weight.
        ModelFileError
            If a shard is damaged.
        """
        if not shards:
            raise UsageError("the list of shards is empty", remedy="give at least one")
        return self._become(update.fit_shards(plan, list(shards), force))

    def decay(self, factor: float) -> Self:
        """Multiply all counts by a factor, so that earlier rows weigh less.

        This changes the classifier itself and returns it.

        Parameters
        ----------
        factor : float
            Factor between 0 and 1, such as 0.99.

        Returns
        -------
        self : BayesClassifier
        """
        fitted = self._get_fitted()
        return self._become(update.replace_counts(fitted, fitted.counts * factor))

    def retune(
        self,
        X: Table,
        y: Labels,
        sample_weight: Weights | None = None,
        *,
        already_learned: bool = True,
        max_seconds: float | None = None,
    ) -> Self:
        """Learn the evidence weights again. The families and blocks stay as they are.

        This changes the classifier itself and returns it.

        Parameters
        ----------
        X : table
            Rows, as for `fit`.
        y : array-like or str
            Labels, or the name of the label column.
        sample_weight : array-like or str, default=None
            Row weights, or the name of the weight column. After `decay`, give the weights that remain.
        already_learned : bool, default=True
            True if the classifier has learned these rows: each row is then left out when it is scored.
        max_seconds : float, default=None
            Wall time, as for `fit`.

        Returns
        -------
        self : BayesClassifier
        """
        self.fitted_ = update.retune(
            self._get_fitted(), X, y, sample_weight, already_learned=already_learned, max_seconds=max_seconds
        )
        return self

    def conformalize(
        self,
        X: Table | None = None,
        y: Labels | None = None,
        sample_weight: Weights | None = None,
        *,
        already_learned: bool = True,
    ) -> Self:
        """Compute the conformity scores of rows, for prediction sets. The model stays as it is.

        Parameters
        ----------
        X : table, default=None
            Rows, as for `fit`. None: the rows of the last `fit`. A sample of many rows is used.
        y : array-like or str, default=None
            Labels, or the name of the label column.
        sample_weight : array-like or str, default=None
            Row weights, or the name of the weight column. After `decay`, give the weights that remain.
        already_learned : bool, default=True
            True if the classifier has learned these rows: each is then left out when it is scored. False for held-out
            rows, which make the coverage exact (split conformal prediction).

        Returns
        -------
        self : BayesClassifier

        See Also
        --------
        predict_set : Prediction sets.
        """
        if X is None:
            X, y, sample_weight = self._training_or_raise()
        self.fitted_ = update.conformalize(self._get_fitted(), X, y, sample_weight, already_learned=already_learned)
        return self

    def shard(
        self,
        X: Table,
        y: Labels,
        sample_weight: Weights | None = None,
        *,
        query: str | None = None,
        table: str | None = None,
        pushdown: bool = False,
    ) -> Self:
        """Return a new classifier that has learned only these rows, with the schema of this one.

        ``clf + clf.shard(X, y)`` equals ``clf.partial_fit(X, y)``.

        Parameters
        ----------
        X : table
            Rows, as for `fit`.
        y : array-like or str
            Labels, or the name of the label column.
        sample_weight : array-like or str, default=None
            Row weights, or the name of the weight column.
        query : str, default=None
            Query whose rows are counted, if X is a database.
        table : str, default=None
            Table whose rows are counted, if X is a database.
        pushdown : bool, default=False
            Count rows by SQL inside the database, as in `fit`.

        Returns
        -------
        BayesClassifier
            A new classifier that can be sent elsewhere and added.
        """
        return self._copy(
            update.shard(self._get_fitted(), open_query_or_table(X, query, table), y, sample_weight, pushdown)
        )

    def release(
        self,
        X: Table,
        y: Labels,
        *,
        epsilon: float,
        bounds: Mapping[str, Any],
        random_state: int | None = None,
    ) -> Self:
        """Count rows and add noise once, so that the counts can be published: differential privacy.

        The result is a plain classifier, which can be merged and used as any other, but not forgotten from. Whatever is
        computed from it has the same guarantee: with one row more or less, no result is more probable by a factor above
        exp(epsilon). Releases of the same rows add up; merged releases of different rows have the largest epsilon.

        Noise is discrete and drawn exactly. A fifth of epsilon is for the class counts. The rest is divided evenly
        among the columns, so a column that is left out makes the others more accurate. Intervals (`predict_interval`)
        do not include the noise.

        Parameters
        ----------
        X : table
            Rows with named columns, or files, as for `fit`. Every row counts once.
        y : array-like or str
            Labels, or the name of the label column. The classifier must declare `classes`.
        epsilon : float
            The guarantee, above 0: the smaller, the more noise. 1 is a usual value, 10 protects little.
        bounds : mapping
            For each released column either a tuple (low, high), the range to which its numbers are limited, or a list
            of all its values. They are published, so they must not come from the rows. Columns that are not listed are
            not released. Numbers become `Gaussian`, listed values `Categorical`.
        random_state : int, default=None
            Seed for examples and tests. None draws unpredictable noise; anyone who knows the seed can remove it.

        Returns
        -------
        BayesClassifier
            A new classifier. ``counts_.epsilon`` is the guarantee, and model files keep it.

        Examples
        --------
        >>> from deciban import BayesClassifier
        >>> rows = {"age": [31, 44, 58, 67] * 100, "smokes": ["no", "no", "yes", "no"] * 100}
        >>> clf = BayesClassifier(classes=["ill", "well"])
        >>> bounds = {"age": (0, 100), "smokes": ["no", "yes"]}
        >>> released = clf.release(rows, ["well", "well", "ill", "ill"] * 100, epsilon=1, bounds=bounds, random_state=0)
        >>> released.counts_.epsilon
        1.0
        """
        return self.from_fitted(release(self._settings(), X, y, epsilon, bounds, random_state))

    def with_prior(self, prior: Prior | Empirical | Uniform) -> Self:
        """Return a new classifier with another prior and the same likelihoods. This one does not change.

        Parameters
        ----------
        prior : str, mapping, sequence or EstimatedPrior
            As for the constructor, or the result of `estimate_prior`. A mapping contains all classes, and the
            probabilities sum to 1.

        Returns
        -------
        BayesClassifier
            A new classifier. Save it to use this prior on the command line.

        Examples
        --------
        >>> from deciban import BayesClassifier
        >>> from deciban.datasets import weather
        >>> clf = BayesClassifier().fit(weather(), "play")
        >>> rainy = clf.with_prior({"no": 0.9, "yes": 0.1})
        >>> day = [{"outlook": "overcast"}]
        >>> clf.predict(day).tolist(), rainy.predict(day).tolist()
        (['yes'], ['no'])
        """
        changed = self._copy(update.set_prior(self._get_fitted(), prior))
        changed._training = self._get_training_rows()
        return changed

    def __add__(self, other: object) -> Self:
        """Return a new classifier that has learned the rows of both."""
        if not isinstance(other, BayesClassifier):
            return NotImplemented
        mine, theirs = self._get_fitted(), other._get_fitted()
        both = update.add(mine, theirs)
        if both is theirs:
            return copy.copy(other)  # this classifier has learned no rows
        return copy.copy(self) if both is mine else self._copy(both)

    def __radd__(self, other: object) -> Self:
        """Return the classifier for 0 + classifier, so that sum() works."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __sub__(self, other: object) -> Self:
        """Return a new classifier without the rows of the other."""
        if not isinstance(other, BayesClassifier):
            return NotImplemented
        mine = self._get_fitted()
        left = update.subtract(mine, other._get_fitted())
        return copy.copy(self) if left is mine else self._copy(left)

    def _copy(self, fitted: Fitted) -> Self:
        """Return a classifier of the same type with this fitted state."""
        changed = copy.copy(self)
        changed.prior = fitted.settings.prior  # may differ from that of a shard
        return changed._become(fitted)

    # --- decisions

    def decide(
        self,
        X: Table,
        loss: Loss | Costs | None = None,
        *,
        reject: float | None = None,
        coverage: float | None = None,
    ) -> Decisions:
        """Return the decision with the least expected loss for each row.

        Parameters
        ----------
        X : table
            Rows, as for `predict`.
        loss : Loss, matrix, mapping, table or path, default=None
            Cost of each decision under each true class (decision first), in any form that `Loss.from_costs` accepts.
            None is zero-one loss, under which the decisions equal those of `predict`.
        reject : float, default=None
            Cost of leaving a row undecided. None: every row is decided.
        coverage : float, default=None
            If given, a row is decided only if one decision is best for every class of its prediction set. Otherwise its
            decision is the set of the decisions that are best for some of them, such as ``"{no, yes}"``, and its risk
            is the expected cost if the best of them is taken once the class is known.

        Returns
        -------
        Decisions
            Arrays ``decision``, ``risk``, ``second_best`` and ``second_best_risk``. For a Spark DataFrame: the
            DataFrame with these columns added.

        See Also
        --------
        risk : Expected loss of every decision.
        deciban.decide : The same for posteriors from any classifier.

        Examples
        --------
        >>> from deciban import BayesClassifier
        >>> from deciban.datasets import weather
        >>> days = BayesClassifier().fit(weather(), "play")
        >>> days.decide([{"outlook": "sunny"}], {("yes", "no"): 5, ("no", "yes"): 1}).decision.tolist()
        ['no']
        """
        fitted = self._get_fitted() if coverage is None else self._with_scores(X, coverage)
        if kind_of_rows(X) == "spark":
            return decide_in_spark(fitted, X, loss, reject)  # type: ignore[no-any-return]  # a DataFrame
        table, costs = scoring.table_of(fitted, X), scoring.loss_for(fitted, loss, reject)
        if coverage is not None:
            scoring.prepare_sets(fitted, coverage)
        return remember_library(scoring.decide_table(fitted, table, costs, coverage=coverage), X)

    def decide_batches(
        self,
        X: Table,
        loss: Loss | Costs | None = None,
        *,
        reject: float | None = None,
        output_format: Literal["csv", "tsv", "json", "parquet"] | None = None,
    ) -> Iterator[pa.Table]:
        """Decide rows of any number, in batches.

        Parameters
        ----------
        X : table
            Rows, as for `predict`.
        loss : Loss, matrix, mapping, table or path, default=None
            As for `decide`.
        reject : float, default=None
            As for `decide`.
        output_format : {"csv", "tsv", "json", "parquet"}, default=None
            Format in which the batches will be written; see `predict_batches`.

        Yields
        ------
        pyarrow.Table
            A batch of rows with the columns ``decision``, ``risk``, ``second_best`` and ``second_best_risk`` added.
        """
        yield from scoring.decide_batches(self._get_fitted(), X, loss, reject=reject, output_format=output_format)

    def decide_to(
        self,
        path: Path,
        X: Table,
        loss: Loss | Costs | None = None,
        *,
        reject: float | None = None,
        table: str | None = None,
        if_exists: Literal["fail", "replace", "append"] = "fail",
    ) -> int:
        """Write rows with their decisions to a file or a database table, atomically.

        Parameters
        ----------
        path : str or path-like
            As for `predict_to`.
        X : table
            Rows of any number, as for `predict`.
        loss : Loss, matrix, mapping, table or path, default=None
            As for `decide`.
        reject : float, default=None
            As for `decide`.
        table : str, default=None
            Database table to write to; see `predict_to`.
        if_exists : {"fail", "replace", "append"}, default="fail"
            What to do if the table exists; see `predict_to`.

        Returns
        -------
        int
            Number of rows written.
        """
        return scoring.decide_to(self._get_fitted(), path, X, loss, reject=reject, table=table, if_exists=if_exists)

    def risk(self, X: Table, loss: Loss | Costs | None = None) -> npt.NDArray[np.float64]:
        r"""Return the expected loss of every decision.

        Parameters
        ----------
        X : table
            Rows, as for `predict`.
        loss : Loss, matrix, mapping, table or path, default=None
            As for `decide`.

        Returns
        -------
        ndarray of shape (rows, decisions)
            Columns in the order of the decisions of the loss.

        Notes
        -----
        The risk of decision d is its loss L, weighted by the posterior of each class c:

        .. math:: R(d \mid x) = \sum_c L(d, c) \, P(c \mid x)
        """
        fitted = self._get_fitted()
        table = scoring.table_of(fitted, X)
        posterior = scoring.predict_posteriors(fitted, table)
        return compute_risks(posterior, scoring.loss_for(fitted, loss), scoring.column_of(table))

    def coverage_curve(self, X: Table, y: Labels, loss: Loss | Costs | None = None) -> CoverageCurve:
        """Return the share of decided rows and their cost, for every cost of rejecting a row.

        Parameters
        ----------
        X : table
            Rows, as for `fit`.
        y : array-like or str
            True classes, or the name of the label column.
        loss : Loss, matrix, mapping, table or path, default=None
            As for `decide`.

        Returns
        -------
        CoverageCurve
            ``choose_reject`` returns the cost of rejecting for a wanted risk or coverage.
        """
        fitted = self._get_fitted()
        rows = self._examples(X, y, None).whole()
        decisions = scoring.decide_table(fitted, rows.table, scoring.loss_for(fitted, loss))
        truths = find_class_places(fitted, rows.labels)
        if (truths < 0).any():
            raise DataError("a label is missing", remedy="give the true class of every row")
        costs = compute_incurred_costs(decisions, truths, scoring.column_of(rows.table))
        return remember_library(CoverageCurve.from_decisions(decisions, costs), X, self)

    def threshold(self, loss: Loss | Costs | None = None, positive: Any = None) -> Threshold:
        """Return the decision threshold for two classes, on likelihood ratio, odds and posterior.

        Parameters
        ----------
        loss : Loss, matrix, mapping, table or path, default=None
            As for `decide`.
        positive : label, default=None
            The positive class. None: the last of `classes_`.

        Returns
        -------
        Threshold
            ``likelihood_ratio``, ``odds`` and ``posterior``.
        """
        fitted = self._get_fitted()
        labels = fitted.classes.tolist()
        if len(labels) != 2:
            raise UsageError(f"a threshold needs two classes; the model has {len(labels)}", remedy="use decide()")
        first = labels[-1] if positive is None else positive
        if first not in labels:
            raise UsageError(
                "not a known class", remedy=("choose from ", ShownLabels(labels)), parameter=Argument("positive", first)
            )
        place = labels.index(first)
        prior = float(np.exp(fitted.model.log_prior[place]))
        costs, names = scoring.loss_for(fitted, loss), (first, labels[1 - place])
        return remember_library(Threshold.from_loss(costs, prior, names, (labels[0], labels[1])), self)

    # --- evaluation and diagnosis

    def evaluate(
        self, X: Table, y: Labels, sample_weight: Weights | None = None, *, loss: Loss | Costs | None = None
    ) -> Evaluation:
        """Return all metrics on held-out rows: accuracy, log-loss, ROC AUC, calibration, confusion matrix and costs.

        Parameters
        ----------
        X : table
            Rows, as for `fit`.
        y : array-like or str
            True classes, or the name of the label column.
        sample_weight : array-like or str, default=None
            Row weights, or the name of the weight column.
        loss : Loss, matrix, mapping, table or path, default=None
            Costs of decisions, as for `decide`; adds the mean cost of the least-cost decisions.

        Returns
        -------
        Evaluation
            Metrics, each with that of a baseline that uses only the class shares.

        See Also
        --------
        cross_validate : Cross-validated metrics.
        leave_one_out : Metrics on training rows, each left out.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from deciban import BayesClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> clf = BayesClassifier(tune=None).fit(X[::2], y[::2])
        >>> round(clf.evaluate(X[1::2], y[1::2]).accuracy, 3)
        0.96
        """
        fitted = self._get_fitted()
        return remember_library(evaluate.evaluate_rows(fitted, open_examples(fitted, X, y, sample_weight), loss), X)

    def cross_validate(
        self,
        X: Table,
        y: Labels,
        sample_weight: Weights | None = None,
        *,
        folds: int = 5,
        loss: Loss | Costs | None = None,
        hold_out_last: float | None = None,
        max_seconds: float | None = None,
    ) -> Evaluation:
        """Return cross-validated metrics, or those of the last rows.

        Only the parameters of the classifier are used; it need not be fitted and is not changed. Folds are stratified
        by class and deterministic.

        Parameters
        ----------
        X : table
            Rows, as for `fit`. A file is read once per fold and may be of any size.
        y : array-like or str
            Labels, or the name of the label column.
        sample_weight : array-like or str, default=None
            Row weights, or the name of the weight column.
        folds : int, default=5
            Number of folds, at least 2.
        loss : Loss, matrix, mapping, table or path, default=None
            Costs of decisions, as for `decide`.
        hold_out_last : float, default=None
            Instead of folds, hold out the last labeled rows, this share of them, and fit the rows before them. Use it
            if rows are in the order of time. Rows are not sorted.
        max_seconds : float, default=None
            Wall time for each fit, as for `fit`: the metrics are those of ``fit(..., max_seconds=...)``.

        Returns
        -------
        Evaluation
            Metrics over all rows, each predicted by a model fitted without its fold; or over the last rows.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from deciban import BayesClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> round(BayesClassifier(tune=None).cross_validate(X, y).accuracy, 2)
        0.96
        """
        if not isinstance(folds, int | np.integer) or folds < 2:
            raise UsageError("expected an integer of at least 2", parameter=Argument("folds", folds))
        settings = self._settings()
        settings.check()
        if (order := fit.find_class_order(settings, X, y)) is not None:
            settings = replace(settings, classes=order)
        rows = open_examples(None, X, y, sample_weight)
        if hold_out_last is not None:
            found = evaluate.evaluate_last(settings, rows, hold_out_last, loss, max_seconds)
        else:
            found = evaluate.cross_validate(settings, rows, int(folds), loss, max_seconds=max_seconds)
        return remember_library(found, X)

    def leave_one_out(
        self, X: Table | None = None, y: Labels | None = None, sample_weight: Weights | None = None
    ) -> LeaveOneOut:
        """Return the leave-one-out predictions of the training rows: exact, in one pass over them.

        Parameters
        ----------
        X : table, default=None
            Training rows. None: the rows of the last `fit`, if nothing was learned since.
        y : array-like or str, default=None
            Labels, or the name of the label column.
        sample_weight : array-like or str, default=None
            Weights with which the rows were learned.

        Returns
        -------
        LeaveOneOut
            Posterior of each row, and metrics. For a Spark DataFrame: an `Evaluation` with the metrics only.
        """
        fitted = self._get_fitted()
        rows = self._examples(X, y, sample_weight)
        if rows.elsewhere:
            return evaluate.evaluate_left_out(fitted, rows)  # type: ignore[return-value]  # rows stay there
        return remember_library(evaluate.score_left_out(fitted, *evaluate.read_learned_rows(fitted, rows)), X, self)

    def label_issues(
        self,
        X: Table | None = None,
        y: Labels | None = None,
        sample_weight: Weights | None = None,
        *,
        min_probability: float = MIN_PROBABILITY,
        already_learned: bool = True,
    ) -> LabelIssues:
        """Find rows whose label is probably wrong, the most probable errors first.

        Each training row is scored without itself. The rate of wrong labels is estimated for each pair of classes, from
        rows that are easy to classify. If the classes overlap, hard rows with a correct label are listed too, with a
        note in the printed text.

        Parameters
        ----------
        X : table, default=None
            Labeled rows. None: the rows of the last `fit`, if nothing was learned since. They are held in memory.
        y : array-like or str, default=None
            Labels, or the name of the label column.
        sample_weight : array-like or str, default=None
            Weights with which the rows were learned.
        min_probability : float, default=0.2
            Smallest probability of a wrong label for an issue. Use the cost of a check divided by the cost of an
            overlooked error.
        already_learned : bool, default=True
            True if the classifier has learned these rows: each row is then left out when it is scored.

        Returns
        -------
        LabelIssues
            The rows, each with its suggested label, the probability of an error, and the evidence.

        See Also
        --------
        forget : Remove rows from a classifier.
        leave_one_out : Posteriors of all training rows.
        """
        rows = self._examples(X, y, sample_weight)
        with rows.locate_errors():
            found = find_label_issues(self._get_fitted(), rows, min_probability, already_learned)
        return remember_library(found, X, self)

    def diagnose(
        self, X: Table | None = None, y: Labels | None = None, sample_weight: Weights | None = None
    ) -> Diagnosis:
        """Find violated assumptions of plain Bayes, their cost in leave-one-out bits per row, and remedies.

        Parameters
        ----------
        X : table, default=None
            Training rows. None: the rows of the last `fit`. A sample of a long file is used.
        y : array-like or str, default=None
            Labels, or the name of the label column.
        sample_weight : array-like or str, default=None
            Weights with which the rows were learned.

        Returns
        -------
        Diagnosis
            Dependent columns, columns that do not match their family, and small classes.
        """
        return remember_library(
            evaluate.diagnose_rows(self._get_fitted(), self._examples(X, y, sample_weight)), X, self
        )

    def importance(
        self, X: Table | None = None, y: Labels | None = None, sample_weight: Weights | None = None
    ) -> Importance:
        """Return the importance of each column: the mean size of its evidence, and its gain in bits.

        Parameters
        ----------
        X : table, default=None
            Rows. With `y`: training rows, each left out in turn. Without `y`: any rows. None: the rows of the last
            `fit` or, for a loaded model, rows sampled from the model.
        y : array-like or str, default=None
            Labels of training rows, or the name of the label column.
        sample_weight : array-like or str, default=None
            Weights with which the rows were learned.

        Returns
        -------
        Importance
            Arrays over the columns; ``to_frame()`` for a table. A sample of many rows is used.

        See Also
        --------
        explain : Evidence of each column for single rows.
        """
        fitted = self._get_fitted()
        if X is not None and y is None:
            found = compute_new_row_importance(fitted, X)
        elif X is None and self._get_training_rows() is None:
            found = compute_simulated_importance(fitted)
        else:
            found = compute_training_importance(fitted, self._examples(X, y, sample_weight))
        return remember_library(found, X, self)

    def select_columns(
        self,
        k: int | None = None,
        X: Table | None = None,
        y: Labels | None = None,
        sample_weight: Weights | None = None,
    ) -> list[str]:
        """Return the columns that together predict the class best, most informative first.

        Forward selection: each step adds the column that lowers the leave-one-out log-loss most.

        Parameters
        ----------
        k : int, default=None
            Number of columns. None: stop when a column adds no more than chance would.
        X : table, default=None
            Training rows. None: the rows of the last `fit`.
        y : array-like or str, default=None
            Labels, or the name of the label column.
        sample_weight : array-like or str, default=None
            Weights with which the rows were learned.

        Returns
        -------
        list of str
            Column names.

        See Also
        --------
        EvidenceSelector : The same as a scikit-learn transformer.
        """
        width = self.n_features_in_
        if k is not None and not (isinstance(k, int | np.integer) and 0 <= k <= width):
            raise UsageError(f"expected an integer from 0 to {width} (all columns)", parameter=Argument("k", k))
        return [self.schema_.column_name(column) for column in self._select_positions(k, X, y, sample_weight)]

    def estimate_prior(self, X: Table, level: float = 0.95) -> EstimatedPrior:
        """Estimate the class shares of unlabeled rows, by expectation maximization (EM).

        The estimate needs calibrated posteriors; a warning is issued if they may be uncalibrated.

        Parameters
        ----------
        X : table
            Rows, as for `predict`.
        level : float, default=0.95
            Confidence level of the intervals.

        Returns
        -------
        EstimatedPrior
            Share of each class with its interval. Pass it to `with_prior`.
        """
        fitted = self._get_fitted()
        error = None
        if self._get_training_rows() is not None:
            error = self.leave_one_out().expected_calibration_error
        elif fitted.is_tuned:
            error = 0.0  # tuned models are calibrated; without training rows this cannot be checked
        posterior = predict_posteriors(fitted, X)
        shares = estimate_shares(posterior, np.exp(fitted.log_prior), fitted.classes, level, error)
        return remember_library(shares, X)

    def compare(
        self, other: Table | Counts | Self, loss: Loss | Costs | None = None, *, level: float = 0.01
    ) -> Comparison:
        """Compare what was learned with other rows, counts or another classifier: find drift.

        Each column is tested for a change of its distribution, by the counts alone. For rows, the class shares, the
        outliers and the performance are estimated too, without labels.

        Parameters
        ----------
        other : table, Counts or BayesClassifier
            Rows, with or without labels; they are held in memory. Or counts or a classifier of other rows.
        loss : Loss or array-like, default=None
            Costs, for the expected cost per row.
        level : float, default=0.01
            Probability of any false alarm if nothing has changed.

        Returns
        -------
        Comparison
            Divergence, p-value and largest change of each column, class shares, and expected accuracy and cost.

        See Also
        --------
        estimate_prior : Class shares of unlabeled rows, with intervals.
        outliers : Outlier score of each row.
        """
        fitted = self._get_fitted()
        if isinstance(other, BayesClassifier):
            return remember_library(compare(fitted, other._get_fitted(), loss, level), other, self)
        return remember_library(compare(fitted, other, loss, level), other, self)

    def bayes_error(
        self, loss: Loss | Costs | None = None, n_samples: int = 100_000, random_state: int = 0
    ) -> BayesRiskEstimate:
        """Estimate the Bayes error as if the model were true, with the leave-one-out error for comparison.

        Each column has the family that the model uses, with weight 1. The result is exact for a single column that is
        discrete or binned, or whose cumulative distribution function deciban can evaluate; otherwise it is simulated.

        Parameters
        ----------
        loss : Loss, matrix, mapping, table or path, default=None
            As for `decide`. None is zero-one loss, under which the risk is the error rate.
        n_samples : int, default=100_000
            Number of rows to simulate.
        random_state : int, default=0
            Seed of the simulation.

        Returns
        -------
        BayesRiskEstimate
            ``risk``, its 95% ``interval``, and ``leave_one_out``, the leave-one-out risk of the training rows or None.

        See Also
        --------
        deciban.bayes_error : For known distributions.
        """
        fitted = self._get_fitted()
        costs = loss_for(fitted, loss)
        risk, interval = model_risk(fitted, costs, n_samples, random_state)
        known = self._get_training_rows() is not None
        left_out = self.leave_one_out().mean_cost(costs) if known else None
        return remember_library(BayesRiskEstimate(risk, interval, left_out, costs), self)

    def report(
        self,
        path: Path | None = None,
        X: Table | None = None,
        y: Labels | None = None,
        sample_weight: Weights | None = None,
        *,
        loss: Loss | Costs | None = None,
        title: str | None = None,
        examples: int = 3,
    ) -> Report:
        """Create a report as one HTML page: model, metrics, evidence of each column, and a form to try the model.

        Without `X`, the report is made from the counts, and metrics from the rows of the last `fit`, each left out. It
        then contains no rows.

        Parameters
        ----------
        path : str or path-like, default=None
            File to write, such as "churn.html". None: no file is written.
        X : table, default=None
            Held-out rows, as for `fit`.
        y : array-like or str, default=None
            True classes, or the name of the label column. None: the label column of `fit`.
        sample_weight : array-like or str, default=None
            Row weights, or the name of the weight column.
        loss : Loss, matrix, mapping, table or path, default=None
            Costs of decisions, as for `decide`.
        title : str, default=None
            Title of the page. None: the name of the label column.
        examples : int, default=3
            Number of rows of `X` to show with their evidence; 0 for none.

        Returns
        -------
        Report
            ``data`` has all numbers as plain data, ``html`` is the page.

        Examples
        --------
        >>> from deciban import BayesClassifier
        >>> from deciban.datasets import weather
        >>> clf = BayesClassifier(tune=None).fit(weather(), "play")
        >>> report = clf.report()
        >>> report.data["model"]["rows"], report.data["quality"]["source"]
        (14, 'the training rows (each left out in turn)')
        """
        fitted = self._get_fitted()
        target = fitted.origin.target if y is None else y
        held_out = None if X is None else open_examples(fitted, X, target, sample_weight)
        training = None if self._get_training_rows() is None else self._examples(None, None, None)
        heading = title or f"Report on {fitted.origin.target or 'a model'}"
        report = Report(collect_report_data(fitted, heading, held_out, training, loss, examples))
        if path is not None:
            report.save(path)
        return report

    def _select_positions(self, k: int | None, X: Any, y: Any, sample_weight: Any) -> list[int]:
        """Return the positions of the columns that `select_columns` returns by name."""
        return select_learned_columns(self._get_fitted(), self._examples(X, y, sample_weight), k)

    # --- model contents

    @overload
    def evidence(self, X: Table) -> Evidence: ...

    @overload
    def evidence(self, X: Table, by: Literal["block"]) -> Evidence: ...

    @overload
    def evidence(self, X: Table, by: Literal["column"]) -> ColumnEvidence: ...

    def evidence(self, X: Table, by: Literal["block", "column"] = "block") -> Evidence | ColumnEvidence:
        """Return the evidence of each block, or of each column, for each class: the terms of the log joint.

        Parameters
        ----------
        X : table
            Rows, as for `predict`.
        by : {"block", "column"}, default="block"
            "block": one term per block, a single column or several modeled together. "column": one term per column;
            the evidence of a joint block is shared among its columns by Shapley values.

        Returns
        -------
        Evidence or ColumnEvidence
            ``values`` has shape (rows, blocks or columns, classes). ``log_joint`` is ``log_prior`` + ``bias`` + the sum
            of weight times value; by column, values already include the weights.

        See Also
        --------
        explain : The same as text.
        """
        check_by(by)
        fitted = self._get_fitted()
        table = scoring.align_rows(fitted, X)
        evidence = fitted.model.evidence(table)
        found = evidence if by == "block" else compute_column_evidence(fitted.model, table, evidence)
        return remember_library(found, X)

    def log_joint(self, X: Table) -> npt.NDArray[np.float64]:
        """Return log P(row, class), the log posterior before normalization.

        Parameters
        ----------
        X : table
            Rows, as for `predict`.

        Returns
        -------
        ndarray of shape (rows, classes)
        """
        return scoring.score_rows(self._get_fitted(), X, lambda joint, prior: joint, full=True)

    def log_density(self, X: Table) -> npt.NDArray[np.float64]:
        """Return log P(row) according to plain Bayes: very low for outliers.

        Parameters
        ----------
        X : table
            Rows, as for `predict`.

        Returns
        -------
        ndarray of shape (rows,)
            -inf for a row that is impossible in every class.
        """
        fitted = self._get_fitted()
        return scoring.score_rows(
            fitted, X, lambda joint, prior: log_normalize(joint, prior)[1], full=True, model=fitted.plain
        )

    def outliers(self, X: Table) -> npt.NDArray[np.float64]:
        """Return how unusual each row is, as the share of rows sampled from plain Bayes that are at most as dense.

        It is 0.001 or less for an *outlier*. A missing cell, or one with an unseen value, neither makes an outlier nor
        hides one: such a row is compared with sampled rows without the same cells.

        Parameters
        ----------
        X : table
            Rows, as for `predict`. They are held in memory.

        Returns
        -------
        ndarray of shape (rows,)

        See Also
        --------
        log_density : Density of each row.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from deciban import BayesClassifier
        >>> clf = BayesClassifier(tune=None).fit(*load_iris(return_X_y=True))
        >>> (clf.outliers([[5.1, 3.5, 1.4, 0.2], [5.1, 3.5, 1.4, 2.5]]) <= 0.001).tolist()
        [False, True]
        """
        fitted = self._get_fitted()
        scores = score_outliers(fitted, scoring.table_of(fitted, X))
        if scores is None:
            raise UsageError("rows cannot be sampled from this model", remedy="use log_density(X)")
        return scores

    def predict_interval(self, X: Table, level: float = 0.95) -> scoring.Intervals:
        """Return confidence intervals of the posteriors, given the number of training rows.

        They come from the delta method on the log-odds of each class against all others. A given prior has no error,
        a counted one has. Tuned weights are held fixed, and errors of the model itself are not included.

        Parameters
        ----------
        X : table
            Rows, as for `predict`.
        level : float, default=0.95
            Confidence level.

        Returns
        -------
        Intervals
            ``posterior``, ``low`` and ``high``, arrays of shape (rows, classes). ``low, high = intervals`` unpacks the
            bounds; `to_frame` returns a line for each row and class.
        """
        return remember_library(scoring.intervals(self._get_fitted(), X, level), X)

    def estimates(self, *, plain: bool = False) -> Estimates:
        """Return the estimated parameters: prior, means and variances, P(value | class), rates.

        Parameters
        ----------
        plain : bool, default=False
            If True, show the plain model before tuning, with each column once by its inferred family, which
            `log_density` uses. Otherwise show the model that predicts, with the weight of each block.

        Returns
        -------
        Estimates
            A mapping from the name of a column (of a joint block: "a+b") to arrays by parameter, in the order of
            `classes_`: ``clf.estimates()["age"]["mean"]``. ``clf.estimates().prior`` is the prior of each class.
            ``to_frame`` and ``to_dict`` return everything. A categorical column has the parameter "probability", the
            table P(value | class), with a row for each class and a column for each of its `values`.

        Examples
        --------
        >>> from deciban import BayesClassifier
        >>> from deciban.datasets import weather
        >>> clf = BayesClassifier(alpha=0, tune=None).fit(weather(), "play")
        >>> wind = clf.estimates()["wind"]
        >>> wind.to_dict()["probability"]["no"]["strong"]  # P(strong | no)
        0.6
        >>> clf.classes_.tolist(), wind.values, wind["probability"].round(3).tolist()
        (['no', 'yes'], ('strong', 'weak'), [[0.6, 0.4], [0.333, 0.667]])
        """
        fitted = self._get_fitted()
        return remember_library(Estimates.from_model(fitted.plain if plain else fitted.model), self)

    def top_words(self, label: Any, n: int = 20, column: str | None = None) -> TopWords:
        """Return the most characteristic words of a class, most informative first.

        Parameters
        ----------
        label : label
            The class.
        n : int, default=20
            Number of words.
        column : str, default=None
            Name of the text column; required if there are several.

        Returns
        -------
        TopWords
            List of words with their evidence in decibans and their counts.
        """
        fitted = self._get_fitted()
        return remember_library(list_top_words(fitted.plain, fitted.class_index(label), n, column), self)

    def sample(
        self,
        n_samples: int = 1,
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
        *,
        label: Any = None,
        length: int | None = None,
    ) -> Sample:
        """Sample rows from the model: a class from the prior, then each column from its family.

        Columns are independent within a class, except those of a declared joint block. Joint blocks, weights and
        corrections added by tuning are not used, and texts are drawn from word counts.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows to draw.
        random_state : int, RandomState, Generator or None, default=None
            Seed or random generator.
        label : label, default=None
            Class of all rows. None: drawn from the prior.
        length : int, default=None
            Number of words of each text, and of each row of a `Multinomial` block. None: drawn.

        Returns
        -------
        Sample
            ``X, y = sample`` unpacks the rows and their classes. ``X`` is a data frame in the library of the training
            rows, or an array if the columns are numbers without names. `to_frame` returns both in one.
        """
        fitted = self._get_fitted()
        rows, labels = sample_rows(fitted, n_samples, random_state, label, length)
        return remember_library(Sample(rows, labels, fitted.origin.target), self)

    def linear_form(self) -> Form:
        r"""Return the model as a linear classifier: weights times features plus an intercept per class.

        Returns
        -------
        Form
            ``score[class] = weights · features + intercept``, and `hyperplane` between two classes.

        Raises
        ------
        UsageError
            If the model is not linear. The message names the column and the reason.

        Notes
        -----
        The score of class c, and the log-odds of two classes, with weights w and intercepts b:

        .. math:: s_c(x) = w_c^T x + b_c, \quad \log \frac{P(1 \mid x)}{P(0 \mid x)} = (w_1 - w_0)^T x + b_1 - b_0
        """
        return remember_library(form_of(self._get_fitted().model, quadratic=False), self)

    def quadratic_form(self) -> Form:
        r"""Return the model as a quadratic classifier, for variances that differ between classes.

        Returns
        -------
        Form

        Notes
        -----
        The score of class c, with the matrix :math:`Q_c`, the weights :math:`w_c` and the intercept :math:`b_c`:

        .. math:: s_c(x) = x^T Q_c \, x + w_c^T x + b_c
        """
        return remember_library(form_of(self._get_fitted().model, quadratic=True), self)

    def parameter_count(self) -> ParameterCount:
        """Return the number of free parameters of naive Bayes, of this model and of the full joint distribution.

        Returns
        -------
        ParameterCount
            ``naive``, ``model``, ``full`` and ``combinations``.
        """
        fitted = self._get_fitted()
        return remember_library(ParameterCount.from_counts(fitted.counts, fitted.plain, fitted.model), self)

    # --- files and exports

    def save(self, path: Path, note: str | None = None) -> None:
        """Save the classifier to a model file (.dcb), which holds data and no code. `deciban.load` reads it.

        Parameters
        ----------
        path : str or path-like
            File name. An existing file is replaced atomically, but not the model of a learning service: save to
            another name and use ``deciban upgrade``.
        note : str or None, default=None
            Note to store with the time, the number of rows and the versions of deciban, NumPy and Python;
            `deciban inspect` shows them. With None, those of the file that was loaded are kept, if any. Without them,
            equal classifiers give equal bytes.
        """
        fitted = self._get_fitted()
        check_no_service(path)
        if note is not None:
            fitted = fitted.with_about(describe_fit(fitted.counts.rows, note))
        model_file.save(path, fitted)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Load a classifier from a model file; see `deciban.load`.

        Parameters
        ----------
        path : str or path-like
            Model file.

        Returns
        -------
        BayesClassifier
        """
        return cls.from_fitted(model_file.load(path))

    @classmethod
    def from_fitted(cls, fitted: Fitted) -> Self:
        """Create a classifier from a fitted state, with its settings as parameters.

        Parameters
        ----------
        fitted : Fitted
            Fitted state, as in the attribute `fitted_`.

        Returns
        -------
        BayesClassifier
        """
        return cls(**{name: getattr(fitted.settings, name) for name in SETTINGS})._become(fitted)

    def to_javascript(self) -> str:
        """Export the model as a self-contained JavaScript module for browsers and Node.

        Returns
        -------
        str
            Source code of an ES module. It exports `columns`, `classes` and functions of a row: `predict`,
            `predictProba`, `predictLogProba`, `predictJointLogProba`, `evidence` and `columnEvidence`. Its log
            probabilities equal those of `predict_log_proba` to 1e-12.

        Raises
        ------
        UsageError
            If a column cannot be exported; the message names it.

        See Also
        --------
        report : An HTML page with the same scorer.
        to_python : A Python file.
        to_onnx : An ONNX model.

        Examples
        --------
        >>> from deciban import BayesClassifier
        >>> from deciban.datasets import weather
        >>> module = BayesClassifier(tune=None).fit(weather(), "play").to_javascript()
        >>> "export const" in module
        True
        """
        return to_javascript(self._get_fitted())

    def to_python(self) -> str:
        """Export the model as one Python file that needs only the standard library of Python 3.8 or later.

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
            If a column cannot be exported; the message names it.

        See Also
        --------
        to_javascript : A JavaScript module.
        to_onnx : An ONNX model.

        Examples
        --------
        >>> from deciban import BayesClassifier
        >>> from deciban.datasets import weather
        >>> source = BayesClassifier(tune=None).fit(weather(), "play").to_python()
        >>> source.splitlines()[-1]
        '    sys.exit(main())'
        """
        return to_python(self._get_fitted())

    def to_onnx(self) -> Any:
        """Export the model to ONNX, in double precision.

        Returns
        -------
        onnx.ModelProto
            A model with an input of shape (rows, 1) for each used column (strings or doubles) and the outputs `label`
            and `probabilities`, which match `predict_proba` to 1e-9. Missing values are NaN, or "" for strings.

        Raises
        ------
        UsageError
            If onnx is not installed, or a column cannot be exported, such as `Text`; the message names it.

        See Also
        --------
        to_javascript, to_python : Exports for every family, with the evidence of columns.

        Examples
        --------
        >>> from deciban import BayesClassifier
        >>> from deciban.datasets import weather
        >>> model = BayesClassifier(tune=None).fit(weather(), "play").to_onnx()
        >>> [one.name for one in model.graph.input]
        ['outlook', 'temperature', 'humidity', 'wind']
        """
        return to_onnx(self._get_fitted())

    def to_sql(
        self,
        table: str,
        dialect: Literal["duckdb", "postgres", "spark"] = "duckdb",
        explain: bool = False,
        keep: Sequence[str] | None = None,
    ) -> str:
        """Export the model as one SELECT statement that scores a table inside the database.

        Parameters
        ----------
        table : str
            Name of the table, such as "customers" or "sales.customers". It must have the columns of the model.
        dialect : {"duckdb", "postgres", "spark"}, default="duckdb"
            SQL dialect.
        explain : bool, default=False
            If True, add the evidence of each column for the predicted class against the second best, in decibans.
        keep : sequence of str, default=None
            Columns of the table to return, such as its key. None: all.

        Returns
        -------
        str
            The statement. It returns the kept columns, `predicted`, and the probability of each class as `P(class)`,
            which match `predict_proba` to 1e-9. With `explain` it also returns `against` (the second-best class),
            `decibans` (the log-odds of the two), `decibans of prior` (including the bias) and `decibans of` each
            column, which sum to `decibans`. Rows for which `predict` would raise an error have NULL.

        Raises
        ------
        UsageError
            If a column cannot be exported to SQL, such as `Text`; the message names it.

        See Also
        --------
        to_python, to_javascript : Exports for every family.
        explain : The same explanation in Python.

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
        return to_sql(self._get_fitted(), table, dialect, explain, keep)

    def _with_scores(self, X: Any, coverage: float) -> Fitted:
        """Return the fitted state, with conformity scores of the training rows if it has none and they are known."""
        if kind_of_rows(X) == "spark":
            raise UsageError(
                "Spark DataFrames do not support prediction sets",
                remedy="compare the columns of predict_proba with the thresholds of predict_set",
                parameter=Argument("coverage", coverage),
            )
        tuning = self._get_fitted().tuning
        if (tuning is None or tuning.conformity is None) and self._get_training_rows() is not None:
            self.conformalize()
        return self._get_fitted()

    # --- fitted state: one value, `fitted_`, replaced as a whole

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """Classes, sorted, with the type of the labels."""
        return self._get_fitted().classes

    @property
    def schema_(self) -> Schema:
        """Family of each column and the reason for it, after tuning."""
        return remember_library(self._get_fitted().schema, self)

    @property
    def tuning_(self) -> Tuning | None:
        """Results of tuning: families, joint blocks and the weight of each block. None for plain Bayes."""
        tuning = self._get_fitted().tuning
        return None if tuning is None else remember_library(tuning, self)

    @property
    def counts_(self) -> Counts:
        """Sufficient statistics of the training rows, which can be added, subtracted and scaled."""
        return self._get_fitted().counts

    @property
    def model_(self) -> Model:
        """Prior and likelihoods estimated from the counts."""
        return self._get_fitted().model

    @property
    def shards_(self) -> tuple[str, ...]:
        """Identifiers of the learned sets of rows, computed from their counts: equal rows have equal identifiers."""
        return shards_of(self._get_fitted())

    @property
    def target_(self) -> str | None:
        """Name of the label column; None if labels were given as an array."""
        return self._get_fitted().origin.target

    @property
    def n_features_in_(self) -> int:
        """Number of columns."""
        return self.schema_.width

    @property
    def feature_names_in_(self) -> npt.NDArray[np.object_]:
        """Names of the columns; raises AttributeError if they have none."""
        names = self.schema_.names
        if names is None:
            raise AttributeError("feature_names_in_: the columns have no names")
        return np.array(names, dtype=object)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the training rows, for pickling."""
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_training"}

    def __sklearn_is_fitted__(self) -> bool:
        return "fitted_" in vars(self)

    def _settings(self) -> Settings:
        """Return the current parameters."""
        return Settings(**{name: getattr(self, name) for name in SETTINGS})

    def _get_fitted(self) -> Fitted:
        """Return the fitted state with the current parameters, which may have changed since the fit."""
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(f"This {type(self).__name__} instance is not fitted yet. Call 'fit' first.")
        fitted = self.fitted_
        if not all(map(is_, _read_settings(fitted.settings), _read_settings(self))):
            fitted = self.fitted_ = fitted.with_settings(self._settings())
        return fitted

    def _become(self, fitted: Fitted, training: tuple[Any, Any, Any] | None = None) -> Self:
        """Set the fitted state; `training` are the rows, if nothing else was learned."""
        self.fitted_ = fitted
        self._training = training
        return self

    @property
    def _library(self) -> Library | None:
        """Library of the training rows, for data frames of results."""
        training = self._get_training_rows()
        return None if training is None else library_of(training[0])

    def _get_training_rows(self) -> tuple[Any, Any, Any] | None:
        """Return the rows of the last fit, or None if something else was learned since."""
        return vars(self).get("_training")

    def _training_or_raise(self) -> tuple[Any, Any, Any]:
        """Return the rows of the last fit; raise a UsageError if something else was learned since."""
        kept = self._get_training_rows()
        if kept is None:
            raise UsageError(
                "the training rows are unavailable: only fit keeps them, and model files do not hold them",
                remedy="pass X and y",
            )
        return kept

    def _examples(self, X: Any, y: Any, sample_weight: Any) -> Examples:
        """Return rows with their labels; without X, those of the last fit."""
        if X is None:
            X, y, sample_weight = self._training_or_raise()
        return fit.open_examples(self._get_fitted(), X, y, sample_weight)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def load(path: Path) -> BayesClassifier:
    """Load a classifier from a model file.

    The loaded classifier can predict, learn more rows, forget rows and be merged. Training rows are not in the file.

    Parameters
    ----------
    path : str or path-like
        Model file (``.dcb``), as written by `BayesClassifier.save` or by the command ``deciban fit``.

    Returns
    -------
    BayesClassifier
        The fitted classifier.

    Raises
    ------
    ModelFileError
        If the file is damaged, is not a model, or was written by a newer version.
    OSError
        If the file cannot be read.

    See Also
    --------
    BayesClassifier.save : Save a classifier.
    merge : Merge separately trained classifiers.

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
    models: Sequence[BayesClassifier | bytes | Path],
    *,
    force: bool = False,
    names: Sequence[str] | None = None,
) -> BayesClassifier:
    """Merge separately trained classifiers: the result has learned the rows of all of them.

    The given models are not changed. The tuning of the first model is kept until `retune`.

    Parameters
    ----------
    models : sequence of BayesClassifier, bytes, str or path-like
        Fitted classifiers, names of model files, or results of `count_batches`.
    force : bool, default=False
        If True, merge models even if they were trained on the same rows (which then count twice), predict different
        columns, or have no column in common.
    names : sequence of str, default=None
        Names of the models for error messages. None: the file names, or "model 1", "model 2", ...

    Returns
    -------
    BayesClassifier
        A new classifier with the parameters of the first.

    Raises
    ------
    DataError
        If two models were trained on the same rows (unless `force`), or their labels have different types.
    SchemaError
        If a column has different families in two models, or (unless `force`) they predict different columns or have no
        column in common.

    See Also
    --------
    BayesClassifier.shard : Count rows with the schema of a classifier.

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
    deciban.errors.DataError: model 1 and model 3 were trained on the same rows; leave one out, or pass force=True
    """
    if not models or isinstance(models, str):
        raise UsageError("expected a list of models", remedy="give at least one")
    names_shown = list(names) if names is not None else [_name_of(model, place) for place, model in enumerate(models)]
    if len(names_shown) != len(models):
        raise UsageError(
            (Argument("names"), f" has {len(names_shown)} names for {len(models)} models"), remedy="give one for each"
        )
    kind = type(models[0]) if isinstance(models[0], BayesClassifier) else BayesClassifier
    parts = [_load_fitted(model, name) for model, name in zip(models, names_shown, strict=True)]
    return kind.from_fitted(update.merge(parts, names_shown, force))


def count_batches(batches: Iterable[Any], plan: Plan) -> bytes:
    """Count rows with a plan, in any process or machine.

    Parameters
    ----------
    batches : iterable of table
        Batches of rows with their labels: Arrow record batches, data frames or dicts of columns. One batch is held in
        memory at a time.
    plan : Plan
        Plan returned by `BayesClassifier.plan`; it can be pickled.

    Returns
    -------
    bytes
        A shard: the counts, whose size does not depend on the number of rows. Pass it to `BayesClassifier.fit_shards`
        or `merge`. Written to a file, it is a model file.

    See Also
    --------
    BayesClassifier.plan : Choose the schema on a sample.
    BayesClassifier.fit_shards : Fit from shards.

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


def _load_fitted(model: BayesClassifier | bytes | Path, name: str) -> Fitted:
    if isinstance(model, bytes):
        return model_file.from_content(model, name)
    if not isinstance(model, BayesClassifier | str | os.PathLike):
        raise UsageError(
            f"{name} is not a model", remedy="pass a BayesClassifier, or the name or content of a model file"
        )
    return model._get_fitted() if isinstance(model, BayesClassifier) else model_file.load(model)


def _name_of(model: Any, place: int) -> str:
    return f"model {place + 1}" if isinstance(model, BayesClassifier | bytes) else str(model)
