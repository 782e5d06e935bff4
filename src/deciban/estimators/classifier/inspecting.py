"""What is inside a fitted classifier: evidence, estimates, forms; and rows drawn from it."""

from typing import Any, Literal, overload

from deciban.estimators.classifier.state import FittedState
from deciban.explain.columns import ColumnEvidence, check_by, column_evidence
from deciban.explain.estimates import Estimates, ParameterCount
from deciban.explain.words import TopWords, top_words_of
from deciban.model.linear_forms import Form, form_of
from deciban.model.model import Evidence, log_normalize
from deciban.scoring import scoring
from deciban.scoring.simulate import sample_rows
from deciban.tables.labels import LabelArray
from deciban.util.arrays import Floats


class Inspecting(FittedState):
    """Methods that show what was learned and how a posterior comes about."""

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
            A block is a column by itself, or columns that are modelled together. By column, what a joint block says is
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
        """log P(row, class), before it is normalised.

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
        return Estimates.of(fitted.plain if plain else fitted.model)

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
        return top_words_of(fitted.plain, fitted.place_of(label), n, column)

    def sample(
        self, rows: int = 1, random_state: Any = None, *, label: Any = None, length: int | None = None
    ) -> tuple[Any, LabelArray]:
        """Draw rows from the model: a class by the prior, then each column by the family that the model uses for it.

        Columns are drawn independently within the class, those of a declared joint block together. Blocks, weights and
        corrections that tuning added are left out, and texts are drawn from plain word counts.

        Parameters
        ----------
        rows : int, default=1
            How many rows.
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
        return sample_rows(self._fitted(), rows, random_state, label, length)

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
        return ParameterCount.of(fitted.counts, fitted.plain, fitted.model)
