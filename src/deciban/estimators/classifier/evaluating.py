"""How good a classifier is, and where its assumptions fail."""

import os
from typing import Any

import numpy as np

from deciban.decisions.shift import EstimatedPrior, estimate_shares
from deciban.errors import UsageError
from deciban.estimators.classifier.state import FittedState
from deciban.evaluation import evaluate
from deciban.evaluation.diagnose import Diagnosis
from deciban.evaluation.importance import (
    Importance,
    importance_of_drawn,
    importance_of_learned,
    importance_of_new,
    select_columns,
)
from deciban.evaluation.leave_one_out import LeaveOneOut
from deciban.evaluation.metrics import Evaluation
from deciban.fitting.fit import open_examples
from deciban.fitting.tune.propose import most_rows
from deciban.fitting.tune.rows import Rows
from deciban.report.figures import report_figures
from deciban.report.report import Report
from deciban.scoring.scoring import loss_for, predict_posteriors
from deciban.scoring.simulate import PlugInRisk, model_risk


class Evaluating(FittedState):
    """Methods that tell how good the posteriors are, which assumptions fail, and which columns matter."""

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
        evaluate_folds : Cross-validation, from the table alone.
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

    def evaluate_folds(
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
        >>> round(BayesClassifier(tune=None).evaluate_folds(X, y).accuracy, 2)
        0.96
        """
        if not isinstance(folds, int | np.integer) or folds < 2:
            raise UsageError(f"folds={folds!r}: give a whole number that is at least 2")
        settings = self._settings()
        settings.check()
        return evaluate.evaluate_folds(settings, open_examples(None, X, y, sample_weight), int(folds), loss)

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
        return evaluate.left_out(fitted, *evaluate.learned_rows(fitted, rows))

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
            Arrays over the columns; print it, or ask for ``frame()``. Of many rows a sample is looked at.

        See Also
        --------
        explain : What each column says of single rows.
        """
        fitted = self._fitted()
        if X is not None and y is None:
            return importance_of_new(fitted, X)
        if X is None and self._training_rows() is None:
            return importance_of_drawn(fitted)
        return importance_of_learned(fitted, self._examples(X, y, sample_weight))

    def select(self, k: int | None = None, X: Any = None, y: Any = None, sample_weight: Any = None) -> list[str]:
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
            raise UsageError(f"select(k={k!r}): give a whole number up to {width}, the number of columns")
        return [self.schema_.column_name(column) for column in self._selected_columns(k, X, y, sample_weight)]

    def estimate_prior(self, X: Any, level: float = 0.95) -> EstimatedPrior:
        """The shares of the classes among unlabelled rows, by expectation and maximisation.

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
            error = self.leave_one_out().calibration().error
        elif fitted.is_tuned:
            error = 0.0  # tuned, and nothing to check it by
        return estimate_shares(predict_posteriors(fitted, X), np.exp(fitted.log_prior), fitted.classes, level, error)

    def bayes_error(self, loss: Any = None, rows: int = 100_000, random_state: int = 0) -> PlugInRisk:
        """The risk of the best rule if the model were true, beside the leave-one-out risk.

        Each column has the family that the model uses for it, with weight 1. Exact for one column of listed values, of
        bins, or of a family with a cumulative distribution; simulated otherwise.

        Parameters
        ----------
        loss : Loss, matrix, mapping, table or path, default=None
            As for `decide`; None is zero-one loss, under which the risk is the error.
        rows : int, default=100_000
            How many rows to simulate.
        random_state : int, default=0
            The seed.

        Returns
        -------
        PlugInRisk
            ``risk``, its ``interval``, and ``left_out``, the leave-one-out risk if the training rows are known.

        See Also
        --------
        deciban.bayes_error : For known distributions.
        """
        fitted = self._fitted()
        costs = loss_for(fitted, loss)
        risk, interval = model_risk(fitted, costs, rows, random_state)
        known = self._training_rows() is not None
        return PlugInRisk(risk, interval, self.leave_one_out().expected_cost(costs) if known else None, costs)

    def report(
        self,
        path: str | os.PathLike[str] | None = None,
        data: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        *,
        loss: Any = None,
        title: str | None = None,
        examples: int = 3,
    ) -> Report:
        """A report as one HTML page: what the model is, how good it is, what each column says, and a form to try it.

        Without `data` it is made from counts, with the rows of the last `fit` left out in turn where they are
        remembered, and no row is in it.

        Parameters
        ----------
        path : str or path-like, default=None
            The file to write, such as "churn.html". None: none is written.
        data : table, default=None
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
            How many rows of `data` are shown with their evidence; 0 keeps all rows out of the page.

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
        >>> report.figures["model"]["rows"], report.figures["quality"]["source"]
        (14, 'rows that the model has learned, each left out in its turn')
        """
        fitted = self._fitted()
        target = fitted.origin.target if y is None else y
        held_out = None if data is None else open_examples(fitted, data, target, sample_weight)
        training = None if self._training_rows() is None else self._examples(None, None, None)
        told = title or f"Report on {fitted.origin.target or 'a model'}"
        found = Report(report_figures(fitted, told, held_out, training, loss, examples))
        if path is not None:
            found.save(path)
        return found

    def _selected_columns(self, k: int | None, X: Any, y: Any, sample_weight: Any) -> list[int]:
        """The places of the columns that `select` names."""
        fitted = self._fitted()
        table, labels, weights = evaluate.learned_rows(fitted, self._examples(X, y, sample_weight), few=True)
        schema, classes = fitted.model.schema, fitted.classes.size
        rows = Rows.of(table, labels, weights, classes, most_rows(schema, classes)).of_classes_present()
        return select_columns(rows, schema, k, None if fitted.tuning is None else fitted.tuning.corrections)
