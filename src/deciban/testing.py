"""Test kit for families: `check_family` checks the laws that every family must satisfy.

Each law is a function of a `Trial` (a family and cells for it) and a seed. It raises an AssertionError if the family
violates it. deciban's own tests call the same functions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass, replace
from io import BytesIO
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from deciban.errors import BadCell, DataError, UsageError, render_message
from deciban.export.model_json import model_as_json
from deciban.export.python_runtime.scorer import DecibanScorer
from deciban.families import Family
from deciban.families.base.checks import COUNTS, FINITE, FLAGS, POSITIVE, VALUES
from deciban.families.base.contract import LeftOutRows
from deciban.model.batches import batches, count_batches
from deciban.model.counts import Counts
from deciban.model.model import VAST_EVIDENCE, Model, estimate, log_normalize
from deciban.schema.infer import Defaults, infer_schema
from deciban.schema.schema import Schema
from deciban.sources.open import open_table
from deciban.statistics import Bins, Combined, Levels, Moments, Scatter, Totals, Tuples, Words
from deciban.statistics.exact import ExactSums
from deciban.store.layout import ArrayReader, pack_file, read_from
from deciban.store.values import pack, unpack
from deciban.tables.examples import LabeledTable
from deciban.tables.labels import encode_labels
from deciban.tables.table import Frame

__all__ = ["check_family"]

# Rows of the tables that laws are checked on: enough for every class, and fast.
ROWS = 60

# Classes of these tables: more than two, because some errors show only then.
CLASSES = 3

# Numbers at the limits of supports and of floating point.
EXTREMES = (1e308, 1e150, 1e-308, 5e-324, -0.0, 0.0, -1.0, 2.5, np.inf)

# Largest count in sums of probabilities, which must be 1.
MAX_COUNT = 2_000

Rng = np.random.Generator
Draw = Callable[[Rng, int], Any]
Refit = Callable[[Model, Counts], Model]


@dataclass(frozen=True)
class Trial:
    """Family to check, and a function that draws cells for it.

    spec: the family, or a mapping from columns to it. draw: function that returns rows of cells. exact: True if counts
    are equal to the last bit. oracle: function from the cells of a class and column to a frozen SciPy distribution.
    samples: True if the family can draw samples. refit: function from the model of all rows and the counts of all but
    one row to the model of these.
    """

    spec: Any
    draw: Draw
    exact: bool = True
    oracle: Callable[[np.ndarray], Any] | None = None
    samples: bool = True
    refit: Refit | None = None

    @property
    def family(self) -> Any:
        return next(iter(self.spec.values())) if isinstance(self.spec, dict) else self.spec


def check_family(
    family: Family,
    draw: Draw | None = None,
    *,
    columns: Any = None,
    oracle: Callable[[np.ndarray], Any] | None = None,
    exact: bool = True,
    samples: bool = True,
    refit: Refit | None = None,
    seeds: Sequence[int] = (0, 1, 2),
) -> list[str]:
    """Check the laws of a family that the rest of deciban relies on.

    Counts add up in any batches and any order. Weights are repetitions. Forgotten rows leave no trace. Leaving out a
    row equals a fit without it. A single row scores as in a batch. Densities match the oracle, or integrate to 1.
    Linear terms and Shapley values add up to the evidence. Samples lie in the support. No score is NaN. Exports score
    the same. Parameters and counts can be saved and loaded.

    Parameters
    ----------
    family : family
        The family, with the parameters to check.
    draw : callable, default=None
        Function of a `numpy.random.Generator` and a number of rows that returns cells: a matrix or an Arrow table.
        None: three columns of numbers in the support of the family, some missing.
    columns : mapping, default=None
        Families of the columns. None: all columns have this family.
    oracle : callable, default=None
        Function from the cells of one class and column (an array) to a frozen SciPy distribution. The density must
        equal it.
    exact : bool, default=True
        True if counts must be equal to the last bit; otherwise to 1e-12.
    samples : bool, default=True
        True if the family can draw samples. A score that is not a distribution cannot.
    refit : callable, default=None
        Function from the model of all rows and the counts of all but one row to the model that scores the left-out
        row. Needed if the family keeps a part of the whole model, as `Binned` keeps its edges. None: the model is
        estimated from these counts alone.
    seeds : sequence of int, default=(0, 1, 2)
        Seeds of the random tables.

    Returns
    -------
    list of str
        Names of the laws, all of which hold.

    Raises
    ------
    AssertionError
        If a law is violated. The message names each violated law, the seed and the difference.

    See Also
    --------
    deciban.families.register : Make a family known to model files.

    Examples
    --------
    >>> from scipy import stats
    >>> from deciban import Poisson
    >>> from deciban.testing import check_family
    >>> laws = check_family(Poisson(), oracle=lambda cells: stats.poisson(cells.mean()))
    >>> "counts_add" in laws
    True
    """
    spec = family if columns is None else columns
    trial = Trial(spec, draw or _default_draw(family), exact, oracle, samples, refit)
    failed = []
    for name, law in LAWS.items():
        for seed in seeds:
            try:
                law(trial, seed)
            except Exception as problem:  # the other laws are checked too
                found = " ".join(str(problem).split()) or "the assertion failed"
                failed.append(f"{name} (seed {seed}): {type(problem).__name__}: {found[:300]}")
                break
    if failed:
        raise AssertionError("\n".join([f"{family!r} breaks {len(failed)} of {len(LAWS)} laws:", *failed]))
    return list(LAWS)


def _default_draw(family: Family) -> Draw:
    """Return a function that draws three columns of numbers in the support of the family, some missing."""
    drawn: dict[str, Draw] = {
        FINITE.expected: lambda rng, rows: rng.normal([0.0, 5.0, -3.0], [1.0, 10.0, 0.1], (rows, 3)),
        POSITIVE.expected: lambda rng, rows: rng.gamma(2.0, 3.0, (rows, 3)) + 1e-6,
        COUNTS.expected: lambda rng, rows: rng.poisson([0.5, 2.0, 5.0], (rows, 3)).astype(np.float64),
        FLAGS.expected: lambda rng, rows: rng.integers(0, 2, (rows, 3)).astype(np.float64),
        VALUES.expected: lambda rng, rows: rng.integers(-3, 4, (rows, 3)).astype(np.float64),
    }
    here = drawn.get(family.support.expected, drawn[COUNTS.expected])

    def draw(rng: Rng, rows: int) -> np.ndarray:
        cells: np.ndarray = here(rng, rows)
        cells[rng.random(cells.shape) < 0.1] = np.nan
        return cells

    return draw


# Tables, counts and models of a trial.


def take_rows(X: Any, index: Any) -> Any:
    """Return some rows of a matrix or an Arrow table."""
    if isinstance(X, pa.Table):
        return X.take(pa.array(np.arange(X.num_rows)[index]))
    return X[index]


def draw_table(trial: Any, seed: int, rows: int = ROWS, classes: int = CLASSES) -> tuple[Any, np.ndarray, Rng]:
    """Return cells, labels and the generator that drew them."""
    rng = np.random.default_rng(seed)
    return trial.draw(rng, rows), rng.integers(0, classes, rows), rng


def infer_trial_schema(trial: Any, X: Any) -> Schema:
    return infer_schema(open_table(X), trial.spec, Defaults())


def count_rows(schema: Schema, X: Any, y: Any, weights: Any = None, threads: int | None = 1) -> Counts:
    """Return the counts of all rows."""
    table = open_table(X)
    labels = encode_labels(np.asarray(y), table.rows)
    weights = None if weights is None else np.asarray(weights, dtype=np.float64)
    return count_batches(batches(LabeledTable(table, labels, weights), schema), Counts.empty(schema), threads)


def estimate_model(counts: Counts) -> Model:
    """Return the model of the counts, with a uniform prior."""
    return estimate(counts, np.log(np.full(counts.classes.size, 1.0 / counts.classes.size)))


def fit_trial(trial: Any, seed: int = 3, rows: int = 90) -> tuple[Any, np.ndarray, Model]:
    """Return a table, its labels, and the model of it."""
    X, y = trial.draw(np.random.default_rng(seed), rows), np.arange(rows) % CLASSES
    return X, y, estimate_model(count_rows(infer_trial_schema(trial, X), X, y))


def read_cells(model: Model, X: Any) -> Any:
    """Return the cells of a table as the family reads them."""
    group = model.schema.groups[0]
    return group.family.read(model.schema.table_as_learned(open_table(X)), group.columns)


def count_blocks(model: Model) -> int:
    return len(model.schema.block_names)


def score(model: Model, cells: Any, rows: int) -> np.ndarray:
    """Return the evidence with its base, row by block by class."""
    likelihood, blocks = model.likelihoods[0], count_blocks(model)
    out = np.zeros((rows, blocks, CLASSES))
    likelihood.score(cells, np.ones(blocks), np.arange(blocks), out)
    base = likelihood.log_common_factor(cells)
    return out if base is None else out + base[:, :, None]


# Comparing counts.


def _floats_agree(a: np.ndarray, b: np.ndarray, exact: bool, scale: np.ndarray | float = 0.0) -> None:
    """Assert that cells are equal: to the last bit, or to 1e-12 of the larger of the cell and its scale."""
    if exact:
        np.testing.assert_array_equal(a, b)
    else:
        assert (np.abs(a - b) <= 1e-12 * np.maximum(np.abs(a), scale)).all(), np.abs(a - b).max()


def assert_same_sums(a: ExactSums, b: ExactSums) -> None:
    """Assert that exact sums are equal, digit by digit."""
    assert a.low == b.low
    np.testing.assert_array_equal(a.limbs, b.limbs)


def assert_same_statistic(a: Any, b: Any, exact: bool, weight: float = 0.0) -> None:
    """Assert that statistics are equal: to the last bit, or to 1e-12 (counts: to 1e-12 of `weight`)."""
    assert type(a) is type(b)
    if isinstance(a, Combined):
        for one, other in zip(a.parts, b.parts, strict=True):
            assert_same_statistic(one, other, exact, weight)
    elif isinstance(a, Levels):
        for one, other in zip(a.levels, b.levels, strict=True):
            assert one.to_pylist() == other.to_pylist()
        for one, other in zip(a.tables, b.tables, strict=True):
            _floats_agree(one, other, exact, weight)
    elif isinstance(a, Totals):
        _floats_agree(a.present, b.present, exact)
        _floats_agree(a.total, b.total, exact)
        if exact:
            assert_same_sums(a.rows, b.rows)
            assert_same_sums(a.sums, b.sums)
    elif isinstance(a, Tuples):
        for one, other in zip(a.levels, b.levels, strict=True):
            assert one.to_pylist() == other.to_pylist()
        np.testing.assert_array_equal(a.tuples, b.tuples)
        _floats_agree(a.table, b.table, exact, weight)
    elif isinstance(a, Words):
        a, b = a.sorted_words, b.sorted_words
        for one, other in zip(a.vocabularies, b.vocabularies, strict=True):
            assert one.array.to_pylist() == other.array.to_pylist()
        for one, other in zip((*a.tables, a.text_weight), (*b.tables, b.text_weight), strict=True):
            _floats_agree(one, other, exact, weight)
    elif isinstance(a, Bins):
        for one, other in zip(a.columns, b.columns, strict=True):
            assert one.exponent == other.exponent
            np.testing.assert_array_equal(one.edges, other.edges)
            _floats_agree(one.table, other.table, exact, weight)
    elif not isinstance(a, Moments | Scatter):
        assert is_dataclass(a), f"{type(a).__name__} is neither a statistic of deciban nor a dataclass"
        for field in fields(a):
            np.testing.assert_equal(getattr(a, field.name), getattr(b, field.name))
    elif exact:
        assert (a.rounding_error is None) == (b.rounding_error is None)
        for name in ("present", "first", "second"):
            assert_same_sums(getattr(a, name), getattr(b, name))
    else:
        _floats_agree(a.weight, b.weight, exact)
        spread = a.scatter + a.scatter_low
        scale: Any = 0.0
        if isinstance(a, Scatter):  # a covariance is as exact as its variances
            own = np.diagonal(spread, axis1=1, axis2=2)
            scale = np.sqrt(own[:, :, None] * own[:, None, :])
            deviation = np.sqrt(own)
        else:
            deviation = np.sqrt(spread)
        _floats_agree(a.mean + a.mean_low, b.mean + b.mean_low, exact, deviation)
        _floats_agree(spread, b.scatter + b.scatter_low, exact, scale)


def assert_same_counts(a: Counts, b: Counts, exact: bool, weight: float = 0.0) -> None:
    assert a.classes.tolist() == b.classes.tolist()
    np.testing.assert_array_equal(a.class_weight, b.class_weight)
    assert (a.rows, a.unlabeled) == (b.rows, b.unlabeled)
    for one, other in zip(a.statistics, b.statistics, strict=True):
        assert_same_statistic(one, other, exact, weight)


# The laws.


def check_empty_is_an_identity(trial: Trial, seed: int) -> None:
    X, y, _ = draw_table(trial, seed)
    schema = infer_trial_schema(trial, X)
    counts = count_rows(schema, X, y)
    assert_same_counts(counts + Counts.empty(schema), counts, exact=True)
    assert_same_counts(Counts.empty(schema) + counts, counts, exact=True)


def check_counts_add(trial: Trial, seed: int) -> None:
    """Check that adding counts is associative and commutative, also if shards have different classes."""
    X, y, _ = draw_table(trial, seed)
    y = y + 2 * (np.arange(ROWS) >= 40)
    schema = infer_trial_schema(trial, X)
    a, b, c = (count_rows(schema, take_rows(X, part), y[part]) for part in (slice(0, 20), slice(20, 40), slice(40, 60)))
    assert_same_counts((a + b) + c, a + (b + c), trial.exact)
    assert_same_counts(a + b, b + a, trial.exact)
    assert_same_counts(c + a, a + c, trial.exact)


def check_batches_and_order_do_not_matter(trial: Trial, seed: int, cuts: Sequence[int] | None = None) -> None:
    """Check that batches (split at `cuts`, or at random; also empty) in any order give the same counts."""
    X, y, rng = draw_table(trial, seed)
    schema = infer_trial_schema(trial, X)
    whole = count_rows(schema, X, y)
    edges = [0, *sorted(rng.integers(0, ROWS, 5).tolist() if cuts is None else cuts), ROWS]
    parts = [slice(a, b) for a, b in pairwise(edges)]
    total = Counts.empty(schema)
    for k in rng.permutation(len(parts)):
        total = total + count_rows(schema, take_rows(X, parts[k]), y[parts[k]])
    assert_same_counts(total, whole, trial.exact)
    shuffled = rng.permutation(ROWS)
    assert_same_counts(count_rows(schema, take_rows(X, shuffled), y[shuffled]), whole, trial.exact)


def check_one_row_at_a_time(trial: Trial, seed: int) -> None:
    X, y, _ = draw_table(trial, seed)
    schema = infer_trial_schema(trial, X)
    total = Counts.empty(schema)
    for i in range(ROWS):
        total = total + count_rows(schema, take_rows(X, slice(i, i + 1)), y[i : i + 1])
    assert_same_counts(total, count_rows(schema, X, y), trial.exact)


def check_weights_are_repetitions(trial: Trial, seed: int) -> None:
    """Check that a row of weight k counts as k rows, and that scaling counts scales the weights."""
    X, y, rng = draw_table(trial, seed)
    schema = infer_trial_schema(trial, X)
    weights = rng.integers(0, 4, ROWS)
    weights[y == CLASSES - 1] = 0  # a class without any weight
    repeated = np.repeat(np.arange(ROWS), weights)
    weighted = count_rows(schema, X, y, weights)
    plain = count_rows(schema, take_rows(X, repeated), y[repeated])
    assert weighted.classes.tolist() == plain.classes.tolist()
    assert_same_counts(replace(weighted, rows=0), replace(plain, rows=0), trial.exact)
    twice = replace(count_rows(schema, X, y, np.full(ROWS, 2.0)), rows=ROWS)
    assert_same_counts(count_rows(schema, X, y) * 2.0, twice, trial.exact)


def check_forgetting_leaves_no_trace(trial: Trial, seed: int) -> None:
    """Check that learning rows and forgetting them in other batches leaves counts and scores unchanged."""
    X, y, rng = draw_table(trial, seed)
    schema, order = infer_trial_schema(trial, X), rng.permutation(np.arange(30, ROWS))
    before = count_rows(schema, take_rows(X, slice(0, 30)), y[:30])
    after = before + count_rows(schema, take_rows(X, slice(30, ROWS)), y[30:])
    for part in (order[:7], order[7:]):
        after = after - count_rows(schema, take_rows(X, part), y[part])
    assert_same_counts(after, before, trial.exact, float(ROWS))
    rows, tolerance = schema.table_as_learned(open_table(X)), 0.0 if trial.exact else 1e-9
    found, expected = estimate_model(after).log_joint(rows), estimate_model(before).log_joint(rows)
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def check_left_out_equals_refit(trial: Trial, seed: int, *, lonely: bool = False, weighted: bool = False) -> None:
    """Check that the left-out score of each row equals its score by a fit to all other rows.

    lonely: a class has only one row. weighted: rows have weights.
    """
    rng = np.random.default_rng(seed)
    X = trial.draw(rng, ROWS)
    y = np.concatenate([[CLASSES if lonely else 0], rng.integers(0, CLASSES, ROWS - 1)])
    weights = rng.choice([0.25, 0.5, 1.0], ROWS) if weighted else np.ones(ROWS)
    schema = infer_trial_schema(trial, X)
    counts = count_rows(schema, X, y, weights)
    model = estimate_model(counts)
    codes = np.searchsorted(counts.classes, y).astype(np.int32)
    found = model.leave_one_out_evidence(counts, schema.table_as_learned(open_table(X)), LeftOutRows(codes, weights))
    for i in range(1, ROWS):
        others = np.arange(ROWS) != i
        rest = count_rows(schema, take_rows(X, others), y[others], weights[others])
        without = estimate_model(rest) if trial.refit is None else trial.refit(model, rest)
        expected = without.evidence(schema.table_as_learned(open_table(take_rows(X, [i])))).values[0]
        np.testing.assert_allclose(found[i], expected, rtol=1e-9, atol=1e-9, err_msg=f"row {i} of class {y[i]}")


def check_a_row_scores_as_in_a_batch(trial: Trial, seed: int) -> None:
    """Check that a single row has the same scores as in a batch, and that no score is NaN."""
    X, y, _ = draw_table(trial, seed)
    schema = infer_trial_schema(trial, X)
    model, rows = estimate_model(count_rows(schema, X, y)), schema.table_as_learned(open_table(X))
    together = model.log_joint(rows)
    assert not np.isnan(together).any(), "a score is NaN"
    for i in range(0, ROWS, 7):
        np.testing.assert_array_equal(model.log_joint(rows.slice(i, i + 1))[0], together[i])


def check_evidence_adds_up(trial: Trial, seed: int) -> None:
    """Check that evidence adds up: blocks to the log joint, columns of a joint block to the block."""
    X, y, model = fit_trial(trial, seed)
    rows = model.schema.table_as_learned(open_table(X))
    evidence = model.evidence(rows)
    np.testing.assert_allclose(evidence.log_joint, model.log_joint(rows), rtol=1e-12, atol=1e-12)
    assert np.isfinite(np.exp(evidence.log_posterior)).all()
    cells = read_cells(model, X)
    shares = model.likelihoods[0].shapley_values(cells)
    if shares is not None:
        whole = score(model, cells, len(y))[:, 0]
        difference = shares.values.sum(axis=1) - whole  # up to a term that is equal for all classes
        np.testing.assert_allclose(difference - difference[:, :1], 0.0, atol=1e-8)


def check_terms_add_up_to_the_evidence(trial: Trial, seed: int) -> None:
    """Check that terms add up to the evidence, up to a term that is equal for all classes.

    Rows with a partly missing joint block are left out: they have no such form.
    """
    X, y, model = fit_trial(trial, seed)
    cells = read_cells(model, X)
    terms = model.likelihoods[0].discriminant_terms(
        [model.schema.column_name(k) for k in model.schema.groups[0].columns]
    )
    if terms is None:
        return
    assert len(terms) == count_blocks(model)
    whole: Any = np.ones(len(y), dtype=bool)
    if model.schema.groups[0].family.joint and isinstance(cells, np.ndarray):
        whole = ~np.isnan(cells).any(axis=1)
        cells = cells[whole]
    evidence = score(model, cells, int(whole.sum()))
    for b, term in enumerate(terms):
        assert term.weights.shape == (len(term.names), CLASSES)
        difference = term.evaluate(cells) - evidence[:, b]
        np.testing.assert_allclose(difference - difference[:, :1], 0.0, atol=1e-9)
        expanded = term.expand().evaluate(cells)
        np.testing.assert_allclose(expanded - expanded[:, :1], (evidence[:, b] - evidence[:, b, :1]), atol=1e-8)


def check_densities_match_the_oracle(trial: Trial, seed: int) -> None:
    if trial.oracle is None:
        return
    X, y, model = fit_trial(trial, seed)
    found = score(model, read_cells(model, X), len(y))
    for c in range(CLASSES):
        for j, x in enumerate(X.T):
            law = trial.oracle(x[(y == c) & ~np.isnan(x)])
            log_density = law.logpdf if hasattr(law, "logpdf") and hasattr(law.dist, "_pdf") else law.logpmf
            expected = np.where(np.isnan(x), 0.0, log_density(np.where(np.isnan(x), 1.0, x)))
            np.testing.assert_allclose(found[:, j, c], expected, rtol=1e-6, atol=1e-9)


def check_densities_integrate_to_one(trial: Trial, seed: int) -> None:
    """Check that the density integrates to the distribution function, or probabilities of counts sum to 1."""
    from scipy.integrate import quad

    X, y, model = fit_trial(trial, seed)
    likelihood, family = model.likelihoods[0], model.schema.groups[0].family

    def density(x: float, column: int, label: int) -> float:
        row = np.full((1, count_blocks(model)), np.nan)
        row[0, column] = x
        return float(np.exp(score(model, row, 1)[0, column, label]))

    if likelihood.cdf(np.zeros(0), 0, 0) is None:
        if family.support is COUNTS and trial.samples and not family.joint:
            cells = np.repeat(np.arange(MAX_COUNT, dtype=np.float64)[:, None], count_blocks(model), axis=1)
            np.testing.assert_allclose(np.exp(score(model, cells, MAX_COUNT)).sum(axis=0), 1.0, atol=1e-6)
        return
    for j in range(count_blocks(model)):
        x = np.quantile(X[:, j][~np.isnan(X[:, j])].astype(np.float64), [0.05, 0.3, 0.7, 0.95])
        for c in range(CLASSES):
            found: Any = likelihood.cdf(x, j, c)
            between = [quad(density, a, b, args=(j, c), epsabs=1e-10)[0] for a, b in pairwise(x)]
            np.testing.assert_allclose(np.diff(found), between, atol=1e-7)
            ends: Any = likelihood.cdf(np.array([-1e30, 1e30]), j, c)
            np.testing.assert_allclose(ends, [0.0, 1.0], atol=1e-9)
            if trial.oracle is not None:
                here = X[(y == c) & ~np.isnan(X[:, j]), j]
                np.testing.assert_allclose(found, trial.oracle(here).cdf(x), rtol=1e-6)


def check_support_contains_samples(trial: Trial, seed: int) -> None:
    """Check that samples lie in the support and have a finite score in their class."""
    X, _, model = fit_trial(trial, seed)
    family, likelihood = model.schema.groups[0].family, model.likelihoods[0]
    if isinstance(X, np.ndarray):
        assert all(family.support.contains(column[~np.isnan(column)]).all() for column in X.T)
    labels, rng = np.arange(300) % CLASSES, np.random.default_rng(seed + 1)
    if not trial.samples:
        cause = ""
        try:
            likelihood.sample(labels, rng)
        except BadCell as bad:
            cause = render_message(bad.cause)
        assert "is a score, not a distribution" in cause, "a score must not draw samples"
        return
    drawn = likelihood.sample(labels, rng)
    assert len(drawn) == len(model.schema.groups[0].columns)
    assert all(family.support.contains(column).all() for column in drawn)
    found = score(model, read_drawn(family, drawn), 300)
    assert np.isfinite(found[np.arange(300), :, labels]).all(), "a sample is impossible in its class"


def read_drawn(family: Family, drawn: Sequence[Any]) -> Any:
    """Return sampled cells in the form that `count` and `score` take."""
    if not isinstance(drawn[0], pa.Array):
        return np.stack(drawn, axis=1).astype(np.float64)
    return family.read(Frame(pa.table(list(drawn), [f"x{j}" for j in range(len(drawn))])), range(len(drawn)))


def check_every_block_has_estimates(trial: Trial, seed: int) -> None:
    """Check that `estimates` and `free_parameters` describe each block."""
    _, _, model = fit_trial(trial, seed)
    likelihood = model.likelihoods[0]
    parameters = likelihood.free_parameters()
    assert len(parameters.blocks) == len(likelihood.estimates()) == count_blocks(model)
    assert min(parameters.blocks) > 0
    assert parameters.independent > 0
    assert parameters.n_values or parameters.n_continuous > 0 or parameters.unbounded
    for one in likelihood.estimates():
        assert all(len(array) == CLASSES for array in one.parameters.values())


def check_saved_and_loaded(trial: Trial, seed: int) -> None:
    """Check that the family and its counts are unchanged after saving and loading."""
    arrays: list[Any] = []
    pack(trial.family, arrays)
    assert not arrays, "parameters must be plain data, not arrays"
    assert _read_back(trial.family) == trial.family
    X, y, _ = draw_table(trial, seed)
    counts = count_rows(infer_trial_schema(trial, X), X, y)
    found = _read_back(counts)
    assert found.schema == counts.schema
    assert_same_counts(found, counts, exact=True)
    found.schema.groups[0].family.check_statistic(found.statistics[0])


def _read_back(value: Any) -> Any:
    """Write a value in the format of a model file and return it as read back."""
    arrays: list[Any] = []
    written = pack_file({"format": 0, "value": pack(value, arrays)}, arrays)
    content = read_from(BytesIO(written), len(written), "model")
    behind = ArrayReader(content)
    found = unpack(content.header["value"], behind)
    behind.finish()
    return found


def check_exports_score_the_same(trial: Trial, seed: int) -> None:
    """Check that an export computes the same probabilities, or rejects the same rows, also for extreme cells."""
    X, _, model = fit_trial(trial, seed)
    try:
        scorer = DecibanScorer(json.loads(json.dumps(model_as_json(model))))
    except UsageError:  # the family cannot be exported
        return
    for row in _some_rows(model, X):
        cells: Any = [row] if model.schema.names is not None else np.array([list(row.values())])
        joint = found = None
        with suppress(DataError):
            joint = model.log_joint(model.schema.table_as_learned(open_table(cells)), full=False)
        with suppress(ValueError):
            found = scorer.predict_log_proba(row)
        assert (joint is None) == (found is None), f"only one of model and export rejects {row}"
        if joint is not None and found is not None:
            expected = log_normalize(joint, model.log_prior, logarithm=True)[0][0]
            largest = np.abs(joint[np.isfinite(joint)]).max(initial=0.0)
            lost = 4.0 * np.spacing(largest) if largest > VAST_EVIDENCE else 0.0  # digits lost in sums
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 + lost, err_msg=f"the export of {row}")


def _some_rows(model: Model, X: Any) -> list[dict[str, Any]]:
    """Return rows as dictionaries: as drawn and, for numbers, also with extreme cells."""
    few = slice(0, len(EXTREMES))
    if isinstance(X, pa.Table):
        return list(X[few].to_pylist())
    names = [model.schema.column_name(column) for column in range(model.schema.width)]
    drawn = np.asarray(X[few].toarray() if hasattr(X, "toarray") else X[few], dtype=np.float64)
    extreme = drawn.copy()
    places = np.arange(len(EXTREMES))
    extreme[places, places % len(names)] = EXTREMES
    return [dict(zip(names, cells, strict=True)) for cells in (*drawn.tolist(), *extreme.tolist())]


# The laws by name, as `check_family` reports them.
LAWS: dict[str, Callable[[Trial, int], None]] = {
    law.__name__.removeprefix("check_"): law
    for law in (
        check_empty_is_an_identity,
        check_counts_add,
        check_batches_and_order_do_not_matter,
        check_one_row_at_a_time,
        check_weights_are_repetitions,
        check_forgetting_leaves_no_trace,
        check_left_out_equals_refit,
        check_a_row_scores_as_in_a_batch,
        check_evidence_adds_up,
        check_terms_add_up_to_the_evidence,
        check_densities_match_the_oracle,
        check_densities_integrate_to_one,
        check_support_contains_samples,
        check_every_block_has_estimates,
        check_exports_score_the_same,
        check_saved_and_loaded,
    )
}
