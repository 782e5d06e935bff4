"""A Bayes classifier with scikit-learn's conventions, composed of the rooms below it."""

import copy
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from deciban.arrays import Codes, Floats, Integers
from deciban.counting import batches, fold
from deciban.counts import Counts
from deciban.decisions.bayes_error import mean_with_interval
from deciban.decisions.loss import Loss
from deciban.decisions.policy import CoverageCurve, Decisions, decided, incurred, risks
from deciban.decisions.priors import check_prior, prior_of, prior_variance
from deciban.decisions.ratio import Threshold
from deciban.decisions.shift import EstimatedPrior, estimate_shares
from deciban.errors import DataError, ForgetError, ModelFileError, UsageError
from deciban.explain.diagnose import Diagnosis, diagnose
from deciban.explain.estimates import Estimates
from deciban.explain.parameters import ParameterCount, PlugIn
from deciban.explain.select import select_columns
from deciban.explain.steps import Steps
from deciban.explain.words import TopWords, top_words
from deciban.families.checks import Unseen, check_amount, check_unseen
from deciban.families.text.likelihood import TextLikelihood
from deciban.files.labelled_stream import LabelledStream
from deciban.files.locate import scan
from deciban.files.open import open_rows, open_table
from deciban.files.stream import Source, Stream
from deciban.files.write import FileKind, kind_of_file, refuse_inputs, written
from deciban.fitted import Fitted, Origin, refuse_empty, refuse_nothing_learned
from deciban.forms import Form, form_of
from deciban.intervals import posterior_intervals
from deciban.leave_one_out import LeaveOneOut, leave_one_out
from deciban.model import Evidence, Model
from deciban.posterior import log_normalize, most_probable, posteriors
from deciban.progress import progress
from deciban.schema.infer import ColumnSpec, Defaults, check_columns, extended, infer_schema
from deciban.schema.schema import Schema
from deciban.scoring import Finish, scored
from deciban.store import model_file
from deciban.tables.arrow import with_each
from deciban.tables.cell_formats import CellHabits
from deciban.tables.label_warnings import cut_off, spellings, too_many
from deciban.tables.labelled import Examples, LabelledTable
from deciban.tables.labels import LabelArray, Labels, encode_labels, label_type
from deciban.tables.table import Frame, Table, from_numbers, with_columns
from deciban.tables.text_types import as_whole
from deciban.text_tables import class_name, listed
from deciban.tune.rows import Rows
from deciban.tune.tuning import Tuning, most_rows, retune, tuned

# What labels in a file look like, if it is not dates: these are taken as they are written.
LABELS_IN_WORDS = {"VARCHAR": "text", "DOUBLE": "numbers", "BOOLEAN": "true and false"}


class Classifier:
    """All that BayesClassifier does, without scikit-learn, which takes longer to import than most tables to score."""

    fitted_: Fitted
    _training: tuple[Any, Any, Any] | None

    def __init__(
        self,
        columns: ColumnSpec = None,
        *,
        prior: Any = "empirical",
        classes: Any = None,
        alpha: float = 1.0,
        unseen: Unseen = "ignore",
        threads: int | None = None,
        tune: Literal["auto"] | None = "auto",
    ) -> None:
        self.columns = columns
        self.prior = prior
        self.classes = classes
        self.alpha = alpha
        self.unseen = unseen
        self.threads = threads
        self.tune = tune

    def parameters(self) -> dict[str, Any]:
        """What the classifier was made with, by name and in the order of names."""
        names = ("alpha", "classes", "columns", "prior", "threads", "tune", "unseen")
        return {name: getattr(self, name) for name in names}

    # learning

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # noqa: N803 - scikit-learn's name
        """Learn from the rows of X alone. `y` holds the labels, or is the name of the column that does."""
        self.fitted_ = self._learned(None, X, y, sample_weight, self.classes)
        self._training = X, y, sample_weight  # not copied
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:  # noqa: N803
        """Learn from the rows of X too. New classes, levels and named columns are welcome; see `classes`."""
        before = self._known() if self.__sklearn_is_fitted__() else None
        declared = classes if classes is not None else self.classes
        if before is not None and not before.counts.class_weight.any():  # it has learned nothing that could decide
            declared = before.counts.classes if before.counts.declared else declared
            before = None
        self.fitted_ = self._learned(before, X, y, sample_weight, declared, partly=True)
        self._training = None
        return self

    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # noqa: N803
        """Unlearn rows that were learned before: exact for counts, to 1e-9 for means and variances.

        The rows have every column that was learned (an empty one, if they were learned without it), or are all the rows
        of one of the shards.
        """
        known = self._known()
        examples = self._opened(X, y, sample_weight)
        with examples.naming():
            rows = self._counted(known.counts.schema, examples)
            shard = model_file.identity(rows)
            if (absent := _lacking(known.counts.schema, examples.names)) and shard not in self.shards_:
                raise _half_forgotten(absent)
            remaining = known.counts - rows
            if not remaining.class_weight.any():
                raise ForgetError("these are all the rows that were learned; nothing would be left of the model")
            left = self._changed(remaining, known)
        self.fitted_ = replace(left, origin=left.origin.without(shard))
        self._training = None
        return self

    def decay(self, factor: float) -> Self:
        """Let all that was learned so far weigh `factor` times as much."""
        known = self._known()
        self.fitted_ = self._changed(known.counts * factor, known)
        self._training = None
        return self

    def retune(self, X: Any, y: Any, sample_weight: Any = None, *, learned: bool = True) -> Self:  # noqa: N803
        """Learn the weights of the blocks anew from rows that the model has learned (or from others: learned=False)."""
        known = self._known()
        rows, _ = self._opened(X, y, sample_weight).sample()
        places = self._places_of(rows.labels, rows.weights)  # refuses labels that are no classes
        labels = Labels(known.counts.classes, places)
        tuning = Tuning.plain(known.counts) if known.tuning is None else known.tuning
        table = known.counts.schema.align(rows.table)
        self.fitted_ = replace(known, tuning=retune(tuning, known.counts, table, labels, rows.weights, learned))
        return self

    def __add__(self, other: object) -> Self:
        """A classifier that has learned the rows of both; one that has learned rows of no weight alone adds nothing."""
        if not isinstance(other, Classifier):
            return NotImplemented
        for whole, nothing in ((self, other), (other, self)):
            if nothing._known().counts.adds_nothing_to(whole._known().counts):
                return copy.copy(whole)  # type: ignore[return-value]  # of the kind that has learned something
        both = self._with(self._known().counts + other._known().counts, self._known())
        both.fitted_ = replace(both.fitted_, origin=both.fitted_.origin.with_shards((*self.shards_, *other.shards_)))
        return both

    def __radd__(self, other: object) -> Self:
        """0 + classifier, so that sum() adds classifiers up."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __sub__(self, other: object) -> Self:
        """A classifier that has not learned the rows of the other."""
        if not isinstance(other, Classifier):
            return NotImplemented
        if other._known().counts.adds_nothing_to(self._known().counts):
            return copy.copy(self)
        absent = _lacking(self._known().counts.schema, other._known().counts.schema.names)
        if absent and not set(other.shards_) <= set(self.shards_):
            raise _half_forgotten(absent)
        left = self._with(self._known().counts - other._known().counts, self._known())
        left.fitted_ = replace(left.fitted_, origin=left.fitted_.origin.without(*other.shards_))
        return left

    def shard(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # noqa: N803
        """A classifier that knows these rows alone, counted as this one counts: add it, or send it to be added.

        `clf + clf.shard(X, y)` has learned what `clf.partial_fit(X, y)` learns.
        """
        self._check_parameters()
        known = self._known()
        examples = self._opened(X, y, sample_weight)
        with examples.naming():
            counts = self._counted(*self._extended(known.counts.schema, examples, Defaults(self.alpha, self.unseen)))
            _refuse_other_labels(examples, counts, known.counts)
            _warn_of_labels(examples, counts, known.counts)
            refuse_nothing_learned(counts, partly=True)
        alone = copy.copy(self)
        try:
            prior = prior_of(self.prior, counts)
        except UsageError:  # it speaks of classes that are not in these rows
            alone.prior = "empirical"
            prior = prior_of("empirical", counts)
        alone.fitted_ = Fitted(counts, prior, origin=known.origin.with_shards(()))
        alone._training = None
        return alone

    def with_prior(self, prior: Any) -> Self:
        """The same classifier with another prior; the likelihoods stay as they are."""
        changed = copy.copy(self)
        changed.prior = prior
        known = self._known()
        changed.fitted_ = replace(changed._fitted(known.counts, known.origin), tuning=known.tuning)
        changed._training = vars(self).get("_training")
        return changed

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The classifier that was saved to a model file; see `deciban.load`."""
        parameters, fitted = model_file.load(path)
        try:
            loaded = cls(**parameters)
            loaded._check_parameters()
        except (TypeError, OverflowError, UsageError) as problem:
            raise ModelFileError(f"{path}: the file cannot be a model of deciban: {problem}") from problem
        loaded.fitted_ = fitted
        return loaded

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all that was learned to a model file (.dcb), which `deciban.load` reads; see docs/model-file.md."""
        model_file.save(path, {**self.parameters(), "threads": None}, self._known())

    # scoring

    def predict(self, X: Any) -> LabelArray:  # noqa: N803
        """The most probable class of each row; ties go to the first of `classes_`."""
        model = self._known().model
        return np.asarray(model.classes[self._scored(X, most_probable, model=model)])

    def predicted(
        self,
        X: Any,  # noqa: N803
        *,
        probabilities: bool = False,
        observe: Callable[[Table], None] | None = None,
        for_file: FileKind | None = None,
    ) -> Iterator[pa.Table]:
        """Tables of the rows of X, piece by piece, with what is predicted beside: `predicted` and its `probability`.

        probabilities: also those of every class. observe: is called with each piece as the model reads it. for_file:
        what the tables are written to: for "csv" cells of a CSV file stay as they are written there, for "json" its
        whole numbers are integers; None is typed columns. Memory does not grow with a file.
        """
        model = self._known().model

        def beside(table: Table, first_row: int, shown: Table) -> pa.Table:
            table = model.schema.as_learned_types(table, first_row)
            if observe is not None:
                observe(table)
            posterior, best = self._posterior_and_best(model, table, first_row)
            added = {"predicted": model.classes[best], "probability": posterior[np.arange(best.size), best]}
            if probabilities:
                added |= {f"P({class_name(label)})": posterior[:, c] for c, label in enumerate(model.classes.tolist())}
            return with_columns(shown, added)

        yield from self._each(X, beside, others_as_text=True, for_file=for_file)

    def predict_to(self, path: str | os.PathLike[str], X: Any, *, probabilities: bool = False) -> int:  # noqa: N803
        """Write the tables of `predicted` to a .csv, .jsonl or .parquet file; the number of rows."""
        source = open_rows(X, self.column_types(), self._habit)
        if isinstance(source, Source):
            refuse_inputs(path, source.inputs)
        rows = 0
        with written(path) as write:
            for table in self.predicted(source, probabilities=probabilities, for_file=kind_of_file(path)):
                write(table)
                rows += table.num_rows
        return rows

    def predict_proba(self, X: Any) -> Floats:  # noqa: N803
        """The posterior probability of each class, in the order of `classes_`."""
        return self._scored(X, posteriors)

    def predict_log_proba(self, X: Any) -> Floats:  # noqa: N803
        """The logarithm of the posterior."""
        return self._scored(X, lambda joint, prior: log_normalize(joint, prior, logarithm=True)[0])

    def predict_interval(self, X: Any, level: float = 0.95) -> tuple[Floats, Floats]:  # noqa: N803
        """Between which bounds each posterior lies, given how few rows stand behind it: (low, high), as predict_proba.

        By the delta method on the log-odds of each class against all others. A prior that was given has no error, a
        counted one has. Weights that were tuned are held fixed, and that the model may be of the wrong kind is not
        in it.
        """
        if not 0.0 < level < 1.0:
            raise UsageError(f"level={level!r}: give a probability between 0 and 1, such as 0.95")
        known = self._known()
        table = known.model.schema.align(self._open(X))
        counts = known.counts.for_schema(known.model.schema)
        return posterior_intervals(known.model, counts, prior_variance(self.prior, counts.class_weight), table, level)

    def log_joint(self, X: Any) -> Floats:  # noqa: N803
        """log P(row, class), before it is normalised."""
        return self._scored(X, lambda joint, prior: joint, full=True)

    def log_density(self, X: Any) -> Floats:  # noqa: N803
        """log P(row), by plain Bayes: very low for a stranger, -inf for a row that no class can produce."""
        plain = self._known().plain
        return self._scored(X, lambda joint, prior: log_normalize(joint, prior)[1], full=True, model=plain)

    def evidence(self, X: Any) -> Evidence:  # noqa: N803
        """What each block says for each class of each row, with what it is added to."""
        model = self._known().model
        return model.evidence(model.schema.align(self._open(X)))

    def explain(self, X: Any) -> Steps:  # noqa: N803
        """The calculation in steps; print it."""
        model = self._known().model
        return Steps.of(model, model.schema.align(self._open(X)))

    def estimates(self, *, plain: bool = False) -> Estimates:
        """What was estimated of each column: means and variances, P(value | class), rates; print it.

        It is a mapping from the name of a column (of a joint block: "a+b") to arrays by parameter, with the classes in
        the order of `classes_`: `clf.estimates()["age"]["mean"]`; see docs/families.md for the parameters of each
        family. `to_frame`, `to_arrow` and `to_dict` give all of it.

        plain: of the model that tuning started from, which has each column once by its own family, and from which
            `sample` and `log_density` come. Without, of the model that predicts, each block with its weight.
        """
        known = self._known()
        return Estimates.of(known.plain if plain else known.model)

    def top_words(self, label: Any, n: int = 20, column: str | None = None) -> TopWords:
        """The n words by which texts of a class are known, the most telling first; `column` if several hold texts."""
        if not isinstance(n, int | np.integer) or n < 0:
            raise UsageError(f"top_words(n={n!r}): give a whole number that is at least 0")
        model = self._known().plain
        texts = {
            model.schema.column_name(place): likelihood.columns[j]
            for group, likelihood in zip(model.schema.groups, model.likelihoods, strict=True)
            if isinstance(likelihood, TextLikelihood)
            for j, place in enumerate(group.columns)
        }
        if not texts or (column is not None and column not in texts):
            problem = "no column is Text()" if column is None else f"column {column!r} is not Text()"
            raise UsageError(f"top_words: {problem}; see schema_")
        if column is None and len(texts) > 1:
            raise UsageError(f"top_words: several columns are Text(): {', '.join(texts)}; name one in column=")
        chosen = texts[column] if column is not None else next(iter(texts.values()))
        return top_words(chosen, self._place_of(label), n)

    def sample(
        self, rows: int = 1, random_state: Any = None, *, label: Any = None, length: int | None = None
    ) -> tuple[Any, LabelArray]:
        """Rows drawn from plain Bayes and their classes: an Arrow table, or an array where the columns are numbers.

        label: the class of all rows. length: the number of words of each text.
        """
        for name, value in (("rows", rows), ("length", length)):
            if value is not None and (not isinstance(value, int | np.integer) or value < 0):
                raise UsageError(f"sample({name}={value!r}): give a whole number that is at least 0")
        model = self._known().plain
        if length is not None and not any(isinstance(likelihood, TextLikelihood) for likelihood in model.likelihoods):
            raise UsageError(f"sample(length={length!r}): no column is Text(), which alone has words; leave it out")
        place = None if label is None else self._place_of(label)
        columns, labels = model.sample(int(rows), _generator(random_state), place, length)
        names = [model.schema.column_name(column) for column in range(model.schema.width)]
        types = model.schema.types or ("",) * len(names)
        if model.schema.names is None and all(isinstance(column, np.ndarray) for column in columns):
            matrix = np.stack(columns, axis=1)
            return matrix > 0.5 if set(types) == {"bool"} else matrix, model.classes[labels]
        cells = [
            from_numbers(column, kind)
            if isinstance(column, np.ndarray) and (column.dtype.kind == "f" or kind == "bool")
            else pa.array(column)
            for column, kind in zip(columns, types, strict=True)
        ]
        return pa.table(cells, names=names), model.classes[labels]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:  # noqa: N803
        """The share of the labelled rows whose class is predicted rightly. `y` is as for `fit`."""
        right = total = 0.0
        for piece in self._opened(X, y, sample_weight).pieces():
            known = piece.labels.codes >= 0
            weights = np.ones(known.size) if piece.weights is None else piece.weights
            hits = self.predict(piece.table)[known] == piece.labels.classes[piece.labels.codes[known]]
            right += float(weights[known] @ hits)
            total += float(weights[known].sum())
        if not total > 0.0:
            raise DataError("no row has a label and a weight; give at least one to compare with")
        return right / total

    # judging

    def leave_one_out(self, X: Any = None, y: Any = None, sample_weight: Any = None) -> LeaveOneOut:  # noqa: N803
        """What the model would say of each row it has learned, had it not learned that row: exact, in one more pass.

        Without X the rows of the last `fit` are meant, which are remembered as long as nothing else is learned.
        """
        known = self._known()
        tuned = known.tuning is not None and known.tuning.rows > 0
        return self._left_out(known.model, self._learned_rows(X, y, sample_weight), tuned)

    def diagnose(self, X: Any = None, y: Any = None, sample_weight: Any = None) -> Diagnosis:  # noqa: N803
        """Which assumptions fail, where, what that costs in leave-one-out bits, and the remedy; rows as above."""
        known = self._known()
        rows = self._learned_rows(X, y, sample_weight, few=True)
        tuned = known.tuning is not None and known.tuning.rows > 0
        after = self._left_out(known.model, rows, tuned)
        before = after if known.tuning is None else self._left_out(known.plain, rows, False)
        return diagnose(known.model, before, after, *rows)

    def select(self, k: int | None = None, X: Any = None, y: Any = None, sample_weight: Any = None) -> list[str]:  # noqa: N803
        """The names of the k columns that together say most, the most telling first; rows as above.

        Columns are added one at a time, each time the one whose evidence, its row left out, adds most to what those
        before it say. Without k, as long as that is more than chance.
        """
        width = self.n_features_in_
        if k is not None and not (isinstance(k, int | np.integer) and 0 <= k <= width):
            raise UsageError(f"select(k={k!r}): give a whole number up to {width}, the number of columns")
        return [self.schema_.column_name(column) for column in self._most_telling(k, X, y, sample_weight)]

    # deciding

    def decide(self, X: Any, loss: Any = None, *, reject: float | None = None) -> Decisions:  # noqa: N803
        """The decision of least expected loss for each row, with its risk and the next best one.

        loss: whatever `Loss.of` takes, decision first, truth second; None is zero-one, whose decisions are `predict`.
        reject: what it costs to leave a row undecided.
        """
        return self._decided(self._open(X), self._loss(loss, reject))

    def decided(
        self,
        X: Any,  # noqa: N803
        loss: Any = None,
        *,
        reject: float | None = None,
        observe: Callable[[Table], None] | None = None,
        for_file: FileKind | None = None,
    ) -> Iterator[pa.Table]:
        """Tables of the rows of X, piece by piece, with the decision beside, its risk, and the next best one.

        observe, for_file: as for `predicted`.
        """
        loss_for_classes = self._loss(loss, reject)
        schema = self._known().model.schema

        def beside(table: Table, first_row: int, shown: Table) -> pa.Table:
            table = schema.as_learned_types(table, first_row)
            if observe is not None:
                observe(table)
            found = self._decided(table, loss_for_classes, first_row)
            chosen = {"decision": found.decision, "risk": found.risk}
            return with_columns(shown, {**chosen, "runner_up": found.runner_up, "runner_up_risk": found.runner_up_risk})

        others_as_text = not loss_for_classes.varies  # costs that vary may be columns
        yield from self._each(X, beside, others_as_text=others_as_text, for_file=for_file)

    def risk(self, X: Any, loss: Any = None) -> Floats:  # noqa: N803
        """The expected loss of every decision, row by decision, in the order of the loss."""
        table = self._open(X)
        return risks(self.predict_proba(table), self._loss(loss), _column_of(table))

    def coverage_curve(self, X: Any, y: Any, loss: Any = None) -> CoverageCurve:  # noqa: N803
        """What share of rows would be decided, and at what cost, for every cost of rejecting; to choose that by."""
        rows = self._opened(X, y, None).whole()
        decisions = self._decided(rows.table, self._loss(loss))
        truths = self._places_of(rows.labels)
        if (truths < 0).any():
            raise DataError("a label is missing; the curve needs the true class of every row")
        return CoverageCurve.of(decisions, incurred(decisions, truths, _column_of(rows.table)))

    def threshold(self, loss: Any = None, positive: Any = None) -> Threshold:
        """For two classes: above which likelihood ratio, odds and posterior to decide for the positive class (the last
        one unless given)."""
        labels = self.classes_.tolist()
        if len(labels) != 2:
            raise UsageError(f"a threshold is for two classes, not {len(labels)}; see decide()")
        first = labels[-1] if positive is None else positive
        if first not in labels:
            raise UsageError(f"positive={first!r} is none of the classes {labels}")
        prior = float(np.exp(self.model_.log_prior[labels.index(first)]))
        return Threshold.of(self._loss(loss), prior, (first, labels[1 - labels.index(first)]), (labels[0], labels[1]))

    def estimate_prior(self, X: Any, level: float = 0.95) -> EstimatedPrior:  # noqa: N803
        """The shares of the classes among unlabelled rows, each with an interval; `with_prior` takes the result.

        It rests on calibrated posteriors and warns where there is reason to doubt them.
        """
        known = self._known()
        error = None
        if vars(self).get("_training") is not None:
            error = self.leave_one_out().calibration().error
        elif known.tuning is not None and known.tuning.rows:
            error = 0.0  # tuned, and nothing to check it by
        before = np.exp(known.log_prior)
        return estimate_shares(self.predict_proba(X), before, known.counts.classes, level, error)

    def bayes_error(self, loss: Any = None, rows: int = 100_000, random_state: int = 0) -> PlugIn:
        """The risk of the best rule if plain Bayes were true, by simulating it, beside the leave-one-out risk."""
        known = self._known()
        loss_for_classes = self._loss(loss)
        if not isinstance(rows, int | np.integer) or rows < 100:
            raise UsageError(f"bayes_error(rows={rows!r}): give at least 100 rows to simulate")
        drawn, _ = self.sample(rows, random_state)
        table = known.plain.schema.align(open_table(drawn))
        posterior = scored(known.plain, table, posteriors, False, self.threads)
        mean, interval = mean_with_interval((posterior @ loss_for_classes.matrix.T).min(axis=1))
        left_out = None
        if vars(self).get("_training") is not None:
            left_out = self.leave_one_out().expected_cost(loss_for_classes.matrix)
        return PlugIn(mean, interval, left_out, loss_for_classes)

    def linear_form(self) -> Form:
        """The model as weights times features, with an offset for each class; refused where it is not linear."""
        return form_of(self._known().model, quadratic=False)

    def quadratic_form(self) -> Form:
        """The same for models with a variance for each class."""
        return form_of(self._known().model, quadratic=True)

    def parameter_count(self) -> ParameterCount:
        """How many numbers the naive, this and the full joint model have to learn."""
        known = self._known()
        return ParameterCount.of(known.counts, known.plain, known.model)

    # what was learned

    @property
    def classes_(self) -> LabelArray:
        return self._known().counts.classes

    @property
    def schema_(self) -> Schema:
        """What each column is, as the model hears it."""
        tuning = self._known().tuning
        return self._known().counts.schema if tuning is None else tuning.schema

    @property
    def tuning_(self) -> Tuning | None:
        """What was tuned, and how; print it."""
        return self._known().tuning

    @property
    def counts_(self) -> Counts:
        return self._known().counts

    @property
    def model_(self) -> Model:
        return self._known().model

    @property
    def shards_(self) -> tuple[str, ...]:
        """Names of the sets of rows that were added up, the same for the same rows: to see that none is there twice."""
        return model_file.shards_of(self._known())

    @property
    def target_(self) -> str | None:
        """The name of the column that held the labels, if it was given by name."""
        return self._known().origin.target

    @property
    def n_features_in_(self) -> int:
        return self.schema_.width

    @property
    def feature_names_in_(self) -> npt.NDArray[np.object_]:
        names = self.schema_.names
        if names is None:
            raise AttributeError("feature_names_in_: the columns have no names")
        return np.array(names, dtype=object)

    def column_types(self, target: str | None = None) -> dict[str, str]:
        """As what Arrow type each named column was learned; with `target`, its labels too. So are files read."""
        if not self.__sklearn_is_fitted__():
            return {}
        counts = self._known().counts
        types = dict(zip(counts.schema.names or (), counts.schema.types or (), strict=False))
        return {**types, target: label_type(counts.classes)} if target is not None else types

    def __getstate__(self) -> dict[str, Any]:
        """Without the training rows."""
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]  # it is that of an object with attributes
        return {name: value for name, value in state.items() if name != "_training"}

    def __sklearn_is_fitted__(self) -> bool:
        return "fitted_" in vars(self)

    # how

    def _most_telling(self, k: int | None, X: Any, y: Any, sample_weight: Any) -> list[int]:  # noqa: N803
        """The places of these columns."""
        known = self._known()
        table, labels, weights = self._learned_rows(X, y, sample_weight, few=True)
        schema, classes = known.model.schema, known.model.classes.size
        rows = Rows.of(table, labels, weights, classes, most_rows(schema, classes)).of_classes_present()
        return select_columns(rows, schema, k)

    def _left_out(self, model: Model, rows: tuple[Table, Codes, Floats], tuned: bool) -> LeaveOneOut:
        """Leave-one-out of learned rows by one of the models of these counts."""
        counts = self._known().counts.for_schema(model.schema)
        return leave_one_out(model, counts, self.prior, *rows, self.threads, tuned)

    def _learned_rows(self, X: Any, y: Any, sample_weight: Any, few: bool = False) -> tuple[Table, Codes, Floats]:  # noqa: N803
        """Rows the model has learned, with the places of their labels among its classes; of a long file `few`."""
        if X is None:
            X, y, sample_weight = self._training_rows()  # noqa: N806
        examples = self._opened(X, y, sample_weight)
        rows = examples.sample()[0] if few and isinstance(examples, LabelledStream) else examples.whole()
        every = np.ones(rows.table.rows) if rows.weights is None else rows.weights
        return self._known().counts.schema.align(rows.table), self._places_of(rows.labels, rows.weights), every

    def _training_rows(self) -> tuple[Any, Any, Any]:
        kept: tuple[Any, Any, Any] | None = vars(self).get("_training")
        if kept is None:
            raise UsageError("only the rows of a fit are remembered, and not in a file; give X and y")
        return kept

    def _loss(self, loss: Any, reject: float | None = None) -> Loss:
        labels = list(self.model_.classes)
        given = (Loss.zero_one(labels) if loss is None else Loss.of(loss)).for_classes(labels)
        return given if reject is None else given.with_reject(reject)

    def _decided(self, table: Table, loss: Loss, first_row: int = 0) -> Decisions:
        posterior, best = self._posterior_and_best(self._known().model, table, first_row)
        found = decided(posterior, loss, _column_of(table))
        if not loss.is_zero_one:
            return found
        second = np.where(found.second == best, found.chosen, found.second)
        return replace(found, chosen=best.astype(np.int32), second=second)  # the same ties as predict

    def _posterior_and_best(self, model: Model, table: Table, first_row: int) -> tuple[Floats, Integers]:
        """The posterior of each row, and the place of the class that `predict` says."""

        def finish(joint: Floats, prior: Floats) -> Floats:
            return np.column_stack([log_normalize(joint, prior)[0], most_probable(joint, prior)])

        found = scored(model, model.schema.align(table, first_row), finish, False, self.threads, first_row)
        return np.ascontiguousarray(found[:, :-1]), found[:, -1].astype(np.int64)

    def _places_of(self, labels: Labels, weights: Floats | None = None) -> Codes:
        """The places of labels among the model's classes, -1 where one is missing; rows of weight 0 may have any."""
        classes = self.model_.classes
        known = np.append(np.isin(labels.classes, classes), True)  # what is missing is not strange
        strange = ~known[labels.codes]
        counts = strange if weights is None else strange & (weights > 0.0)
        if counts.any():
            found = labels.classes[labels.codes[counts][:1]].tolist()[0]
            raise DataError(f"the label {found!r} is none of the model's classes {classes.tolist()}")
        place = np.where(known, np.append(np.searchsorted(classes, labels.classes), -1), -1).astype(np.int32)
        return np.asarray(place[labels.codes])

    def _place_of(self, label: Any) -> int:
        """The place of a class."""
        labels = self.classes_.tolist()
        if label not in labels:
            raise UsageError(f"the class {label!r} is none of {labels}")
        return int(labels.index(label))

    def _known(self) -> Fitted:
        try:
            return self.fitted_
        except AttributeError:
            from sklearn.exceptions import NotFittedError

            name = type(self).__name__
            raise NotFittedError(f"This {name} instance is not fitted yet. Call 'fit' first.") from None

    def _with(self, counts: Counts, before: Fitted) -> Self:
        changed = copy.copy(self)
        changed.fitted_ = self._changed(counts, before)
        changed._training = None
        return changed

    def _changed(self, counts: Counts, before: Fitted) -> Fitted:
        """What is known when the counts have changed: what was tuned is kept, and stale; so are the names of shards."""
        if not counts.class_weight.any():
            raise DataError("no row is left: all that was learned would weigh nothing; fit anew instead")
        fitted = self._fitted(counts, before.origin.with_shards(model_file.shards_of(before)))
        if before.tuning is None:
            return fitted
        return replace(fitted, tuning=before.tuning.after(counts, before.counts.classes))

    def _fitted(self, counts: Counts, origin: Origin) -> Fitted:
        return Fitted(counts, prior_of(self.prior, counts), origin=origin)

    def _learned(
        self, before: Fitted | None, X: Any, y: Any, sample_weight: Any, declared: Any, partly: bool = False  # noqa: N803
    ) -> Fitted:  # fmt: skip
        """What will be known after these rows; nothing changes if it fails."""
        self._check_parameters()
        defaults = Defaults(self.alpha, self.unseen)
        examples = self._opened(X, y, sample_weight, anew=before is None)
        with examples.naming():
            if before is not None:
                schema, everything = self._extended(before.counts.schema, examples, defaults)
                known = before.counts.extended_to(schema)
                known = known if declared is None else known.declaring(_declared(declared))
                counted = self._counted(schema, everything)
                _refuse_other_labels(examples, counted, known)
                _warn_of_labels(examples, counted, before.counts)
                if not counted.rows and not counted.unlabelled and known.classes.size == before.counts.classes.size:
                    return before
                return self._changed(known + counted, before)
            if examples.names is not None:
                check_columns(examples.names, self.columns, partly)
            if isinstance(examples, LabelledStream) and declared is None:
                check_prior(self.prior, examples.first_classes() if isinstance(self.prior, Mapping) else None)
            said = self.tune is None and self.columns is not None and not isinstance(self.columns, Mapping)
            sample, everything = examples.peek() if said else examples.sample()
            if isinstance(examples, LabelledStream) and not sample.table.rows:
                raise DataError("the table has no rows; there is nothing to learn from")
            refuse_empty(sample.table)
            sample = sample.weighing()
            notes = everything.notes or examples.notes
            rows = everything.expected
            base = infer_schema(sample.table, self.columns, defaults, partly, sample.weights, rows).with_notes(notes)
            if not partly and (doubt := too_many(sample.labels)):
                warnings.warn(doubt, stacklevel=4)

            def count(schema: Schema) -> Counts:
                start = Counts.empty(schema)
                start = start if declared is None else start.declaring(_declared(declared))
                counts = start + self._counted(schema, everything)
                refuse_nothing_learned(counts, partly)
                _warn_of_labels(examples, counts)
                return counts

            target, weight = (name if isinstance(name, str) else None for name in (y, sample_weight))
            origin = Origin(target, weight, ignored=examples.ignored, habit=everything.habit or examples.habit)
            if self.tune is None:
                return self._fitted(count(base), origin)
            table = base.align(sample.table)
            counts, tuning = tuned(table, sample.labels, sample.weights, base, count, self.threads)
            tuning = replace(tuning, schema=tuning.schema.with_notes(notes))
            return replace(self._fitted(counts, origin), tuning=tuning)

    def _extended(self, schema: Schema, examples: Examples, defaults: Defaults) -> tuple[Schema, Examples]:
        """The schema with the columns of these rows that it does not know yet, and the rows to be counted by it."""
        if schema.names is None or examples.names is None or set(examples.names) <= schema.columns_with_family:
            return schema, examples
        sample, everything = examples.sample()
        sample = sample.weighing()
        return extended(schema, sample.table, self.columns, defaults, sample.weights), everything

    def _check_parameters(self) -> None:
        check_amount("alpha", self.alpha)
        check_unseen(self.unseen)
        check_prior(self.prior)
        if self.tune not in ("auto", None):
            raise UsageError(f"tune={self.tune!r}: choose 'auto', or None for plain Bayes")
        if self.threads is not None and not (isinstance(self.threads, int) and self.threads >= 1):
            raise UsageError(f"threads={self.threads!r}: give a whole number that is at least 1, or None for all cores")

    def _counted(self, schema: Schema, examples: Examples) -> Counts:
        return fold(batches(examples, schema), Counts.empty(schema), self.threads, examples.expected)

    def _opened(self, X: Any, y: Any, sample_weight: Any, anew: bool = False) -> Examples:  # noqa: N803
        """Rows with their labels and weights, which files hold in columns of their own.

        Columns of a file are read as those that were learned, and left out if those were; unless it is learned `anew`.
        """
        given = scan(X) if isinstance(X, str | os.PathLike) else X
        types = {} if anew else self.column_types(y if isinstance(y, str) else None)
        source = open_rows(given, types, None if anew else self._habit)
        if not isinstance(source, Stream):
            return LabelledTable.of(source, y, sample_weight)
        if isinstance(source, Source) and not anew:
            source = source.without([name for name in self._known().origin.ignored if name in source.names])
        examples = LabelledStream.of(source, y, sample_weight)
        if isinstance(given, Source) and isinstance(source, Source) and source.looks_like(y) != given.looks_like(y):
            return replace(examples, labels_look_like=given.looks_like(y))
        return examples

    def _source(self, source: Source) -> Source:
        """A table that is read as the model has learned to."""
        return (source if self._habit is None else source.with_habit(self._habit)).reading_as(self.column_types())

    @property
    def _habit(self) -> CellHabits | None:
        return self._known().origin.habit if self.__sklearn_is_fitted__() else None

    def _open(self, X: Any) -> Table:  # noqa: N803
        """All rows in memory."""
        return open_table(X, self.column_types(), self._habit)

    def _scored(self, X: Any, finish: Finish, full: bool = False, model: Model | None = None) -> npt.NDArray[Any]:  # noqa: N803
        """finish(log joint, log prior) of all rows, batch by batch on threads, by one and the same model."""
        fitted = self._known().model if model is None else model
        source = open_rows(X, self.column_types(), self._habit)
        if not isinstance(source, Stream):
            return scored(fitted, fitted.schema.align(source), finish, full, self.threads)

        def score(table: Table, first_row: int, shown: Table) -> npt.NDArray[Any]:
            return scored(fitted, fitted.schema.align(table, first_row), finish, full, self.threads, first_row)

        return np.concatenate(list(self._each(source, score)))

    def _each(
        self,
        X: Any,  # noqa: N803
        what: Callable[[Table, int, Table], Any],
        others_as_text: bool = False,
        for_file: FileKind | None = None,
    ) -> Iterator[Any]:
        """`what` of tables, the numbers of their first rows, and the tables as they are shown in such a file.

        The table is one in memory, or those of a stream. others_as_text: the columns of a CSV file that the model does
        not know are passed on as they are written.
        """
        source = open_rows(X, self.column_types(), self._habit)
        if others_as_text and isinstance(source, Source):
            known = self.column_types()
            source = source.as_text([name for name in source.names if name not in known])
        if not isinstance(source, Stream):
            yield what(source, 0, source)
            return
        with source.naming(), progress("reading", "rows", source.expected) as advance:
            first_row = 1  # as people count the rows of a file
            for table, shown in _shown(source, for_file):
                yield what(Frame(table), first_row, Frame(shown))
                first_row += table.num_rows
                advance(table.num_rows)


def _warn_of_labels(examples: Examples, counts: Counts, known: Counts | None = None) -> None:
    """Say what is strange about the labels of rows that were counted, to be learned beside what is known."""
    old = [] if known is None else known.classes.tolist()
    new = set(counts.classes.tolist()).difference(old)
    if new and (doubt := spellings([*old, *sorted(new, key=str)])):
        warnings.warn(doubt, stacklevel=5)
    unfinished = examples.unfinished_labels if isinstance(examples, LabelledStream) else ()
    before = None if known is None else known.classes
    if doubt := cut_off(unfinished, counts.classes, counts.class_weight, before):
        warnings.warn(doubt, stacklevel=5)


def _lacking(schema: Schema, names: tuple[str, ...] | None) -> list[str]:
    """The columns that were learned and are not among these."""
    return sorted(schema.columns_with_family.difference(names)) if names else []


def _half_forgotten(absent: list[str]) -> ForgetError:
    """Rows without a column that was learned would stay in it and go from others, unless they were learned so."""
    return ForgetError(
        f"these rows cannot be forgotten: the model has learned {listed(absent)}, which the table does not have; "
        f"correct the name, or add an empty column of it if the rows were learned without"
    )


def _refuse_other_labels(examples: Examples, rows: Counts, known: Counts) -> None:
    """Labels of another type that became new classes by being read as the type of those that are known, or cannot."""
    if not isinstance(examples, LabelledStream) or not known.classes.size:
        return
    old = set(known.classes.tolist())
    new = [label for label in rows.classes.tolist() if label not in old]
    found, text = examples.labels_look_like, known.classes.dtype.kind in "OU"
    remedy = "correct the labels"
    if found in LABELS_IN_WORDS and (new or known.classes.dtype.kind == "b"):
        kind = "text" if text else "bool" if known.classes.dtype.kind == "b" else "number"
        remedy += f", or read them as the classes are with types={{{examples.target!r}: {kind!r}}}"
    elif new and not text and rows.classes.dtype.kind in "OU":
        found = "VARCHAR"
    else:
        return
    shown = LABELS_IN_WORDS[found] + (f", such as {new[0]}" if new else "")
    raise DataError(
        f"the labels are {shown}, and the model's classes are {listed(known.classes.tolist(), 6)}; {remedy}"
    )


def _shown(source: Stream, for_file: FileKind | None) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Tables of a stream, each with what is shown of it in such a file."""
    if for_file in ("csv", "tsv") and isinstance(source, Source):
        yield from source.beside_text()
        return
    for table in source.tables():
        yield table, with_each(table, as_whole) if for_file == "json" and not source.typed else table


def _column_of(table: Table) -> Callable[[str], Any]:
    """A way to the columns of a table by name, as numbers."""

    def column(name: str) -> Any:
        if table.names is None or name not in table.names:
            raise UsageError(f"the loss names a column {name!r}, which is not in the table; give an array instead")
        return table.numbers([table.names.index(name)])[:, 0]

    return column


def _declared(classes: Any) -> LabelArray:
    """The declared classes as an array, none of them missing."""
    labels = sorted(classes) if isinstance(classes, set | frozenset) else classes
    found = encode_labels(labels, len(labels))
    if (found.codes < 0).any():
        raise UsageError(f"classes={classes!r}: a missing value is no class")
    return found.classes


def _generator(random_state: Any) -> np.random.Generator:
    """What scikit-learn calls random_state: None, a seed, a RandomState, or a generator."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if random_state is None:
        return np.random.default_rng(np.random.randint(0, 2**31 - 1))
    if not isinstance(random_state, np.random.RandomState):
        random_state = np.random.RandomState(random_state)
    return np.random.default_rng(random_state.randint(0, 2**31 - 1))
