"""The model for other programs, which score rows alike and need no deciban."""

from collections.abc import Sequence
from typing import Any, Literal

from deciban.estimators.classifier.state import FittedState
from deciban.export.javascript import to_javascript
from deciban.export.onnx.model import to_onnx
from deciban.export.python import to_python
from deciban.export.sql.statement import to_sql


class Exporting(FittedState):
    """Methods that write the model in other languages."""

    def to_javascript(self) -> str:
        """The model as a JavaScript module that needs nothing else, for browsers and for Node.

        Returns
        -------
        str
            The source of an ES module, which exports `predict`, `proba`, `logProba`, `evidence` and `columnEvidence`
            of a row, `columns` and `classes`. Its log probabilities are those of `predict_log_proba` to 1e-12.

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
            The source of a module, which has `predict`, `proba`, `log_proba`, `log_joint`, `evidence` and
            `column_evidence` of a row (a dict from names of columns to cells), `columns` and `classes`. Its log
            probabilities are those of `predict_log_proba` to 1e-12. As a program it reads rows as lines of JSON.

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
