"""`BayesClassifier`: the classifier as an estimator of scikit-learn."""

import os
from collections.abc import Iterator
from typing import Any, Literal, Self

import pyarrow as pa
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags

from deciban.estimators.classifier.deciding import Deciding
from deciban.estimators.classifier.evaluating import Evaluating
from deciban.estimators.classifier.exporting import Exporting
from deciban.estimators.classifier.inspecting import Inspecting
from deciban.estimators.classifier.state import SETTINGS
from deciban.estimators.classifier.updating import Updating
from deciban.evaluation import evaluate
from deciban.explain.explanation import Explanation
from deciban.families.base.checks import Unseen
from deciban.fitting import fit
from deciban.model.fitted import Fitted
from deciban.model.model import log_normalize
from deciban.schema.schema import ColumnSpec
from deciban.scoring import scoring
from deciban.scoring.spark import explain_in_spark, predict_in_spark
from deciban.sources.examples import Where
from deciban.sources.open import named_rows
from deciban.sources.spark import is_spark_table
from deciban.sources.write import Existing, FileKind
from deciban.store import model_file
from deciban.tables.labels import LabelArray
from deciban.util.arrays import Floats


class BayesClassifier(Updating, Deciding, Evaluating, Inspecting, Exporting, ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Bayes classifier for tables of numbers, categories, flags, counts and texts, with missing cells.

    Each column is modelled within each class by a family (normal, categorical, Bernoulli, Poisson, text, ...) that is
    inferred from its cells or given; the classes are then as probable as Bayes' theorem says. By default the model is
    tuned: rows that are left out choose the family of each column, which columns are modelled together, and how much
    the evidence of each block weighs, so that the probabilities can be believed. ``tune=None`` is textbook naive Bayes.
    Every prediction is an exact sum of evidence, and everything learned is counts, which can be added and subtracted.

    Parameters
    ----------
    columns : family, mapping or None, default=None
        What the columns are. A family such as ``Gaussian()`` for every column, or a mapping from the name (or number)
        of a column, or a tuple of columns that form one joint block, to its family. What it leaves out is inferred.
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
    `diagnose`, `evaluate_folds` and `select` tell how good it is; `evidence`, `estimates`, `top_words`, `linear_form`
    and `sample` show what is inside.

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
    outlook  Categorical()  text, 3 distinct in 4 rows
    wind     Categorical()  text, 2 distinct in 4 rows
    """

    def __init__(
        self,
        columns: ColumnSpec = None,
        *,
        prior: Any = "empirical",
        classes: Any = None,
        alpha: float = 1.0,
        unseen: Unseen = "ignore",
        threads: int | None = None,
        tune: Literal["auto", "weights"] | None = "auto",
    ) -> None:
        self.columns = columns
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
        where: Where = "here",
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
            left out and counted in ``counts_.unlabelled``.
        sample_weight : array-like or str, default=None
            How often each row counts (0 is a row that is not there, 2 is the row twice), or the name of the column of X
            that says so.
        query : str, default=None
            Where X is the URL of a database, or a connection: the query whose rows are learned.
        table : str, default=None
            Where X is such: the table whose rows are learned, in place of a query.
        where : {"here", "engine"}, default="here"
            Where the rows are counted: here, or by the engine that has them (DuckDB for Parquet and queries,
            PostgreSQL, Spark SQL), so that only a sample of them is read. Columns that SQL cannot count, such as texts,
            are read.

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
        X = named_rows(X, query, table)
        fitted = fit.fit(self._settings(), X, y, sample_weight, where=where)
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
        if is_spark_table(X):
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
        if is_spark_table(X):
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
        self, X: Any, *, probabilities: bool = False, for_file: FileKind | None = None
    ) -> Iterator[pa.Table]:
        """Predict rows that need not fit into memory, piece by piece.

        Parameters
        ----------
        X : table
            Rows, as for `predict`.
        probabilities : bool, default=False
            Whether to add the probability of every class.
        for_file : {"csv", "tsv", "json", "parquet"}, default=None
            What the tables are to be written to: for "csv" cells of a CSV file stay as they are written there, for
            "json" its whole numbers are integers; None is typed columns.

        Yields
        ------
        pyarrow.Table
            Some rows with the columns ``predicted`` and ``probability`` added.
        """
        yield from scoring.predict_batches(self._fitted(), X, probabilities=probabilities, for_file=for_file)

    def predict_to(
        self,
        path: str | os.PathLike[str],
        X: Any,
        *,
        probabilities: bool = False,
        table: str | None = None,
        existing: Existing = "refuse",
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
        existing : {"refuse", "replace", "append"}, default="refuse"
            What becomes of a table that is there: an error, a new one in its place, or rows behind those it has.

        Returns
        -------
        int
            The number of rows.

        See Also
        --------
        decide_to : The same of decisions.
        """
        return scoring.predict_to(self._fitted(), path, X, probabilities=probabilities, table=table, existing=existing)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The accuracy: the share of labelled rows whose class is predicted.

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
        return evaluate.accuracy_of(fitted, fit.open_examples(fitted, X, y, sample_weight))

    def explain(self, X: Any, by: str = "column") -> Explanation:
        """Why each row is classified as it is: what each column says for it, in decibans.

        Parameters
        ----------
        X : table
            A few rows, as for `predict`.
        by : {"column", "block"}, default="column"
            By column, each column has one number: its own evidence and its exact share of what it says together with
            others. By block, columns that are modelled together have one number, and the calculation is shown as in a
            lecture.

        Returns
        -------
        Explanation
            Print it, or ask for ``summary(row)``, ``calculation(row)``, ``reasons(row)``, ``steps(row)`` or
            ``frame()``. Of a Spark DataFrame: the same with the columns ``predicted``, ``against``, ``decibans``,
            ``decibans of prior`` and ``decibans of`` each column added.

        See Also
        --------
        evidence : The same as arrays.
        importance : What columns say of many rows.
        """
        fitted = self._fitted()
        if is_spark_table(X):
            return explain_in_spark(fitted, X)  # type: ignore[no-any-return]  # a DataFrame
        return Explanation.of(fitted.model, scoring.aligned_table(fitted, X), by)

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

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags
