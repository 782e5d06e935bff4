"""What every family answers about itself is true: checked against SciPy, its own samples, or numerically."""

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.integrate import quad
from scipy.special import log_softmax

import deciban
from deciban import families
from deciban.cli.options import families_of
from deciban.errors import BadCell, UsageError
from deciban.families import FAMILIES, SPREADS
from deciban.families.base.contract import ColumnNumbers, cells_of as some_cells
from deciban.model.intervals import LogOdds
from deciban.model.linear_forms import form_of
from deciban.model.model import Model, estimate
from deciban.sources.open import open_table
from deciban.store.layout import ArrayReader, Content
from deciban.store.values import pack, unpack
from tests.laws.cases import CASES, Case, counted, schema_of

every_family = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
CLASSES = 3
SAMPLES, ROWS = 100, 1500  # whose evidence shows how much it errs
SCORES = ("complement", "text-complement", "text-lift")


def fitted(case: Case, rows: int = 90) -> tuple[Any, np.ndarray, Model]:
    """A table, its labels, and the model of it."""
    rng = np.random.default_rng(3)
    X, y = case.draw(rng, rows), np.arange(rows) % CLASSES
    counts = counted(schema_of(case, X), X, y)
    return X, y, estimate(counts, np.log(np.full(CLASSES, 1.0 / CLASSES)))


def cells_of(model: Model, X: Any) -> Any:
    group = model.schema.groups[0]
    return group.family.read(model.schema.table_as_learned(open_table(X)), group.columns)


def blocks_of(model: Model) -> int:
    return len(model.schema.block_names)


def score(model: Model, cells: Any, rows: int) -> np.ndarray:
    """The evidence with its base, row by block by class."""
    likelihood, blocks = model.likelihoods[0], blocks_of(model)
    out = np.zeros((rows, blocks, CLASSES))
    likelihood.score(cells, np.ones(blocks), np.arange(blocks), out)
    base = likelihood.base(cells)
    return out if base is None else out + base[:, :, None]


def test_every_family_has_a_case_and_is_exported() -> None:
    assert {type(case.family) for case in CASES} == set(FAMILIES)
    public = {kind.__name__ for kind in (*FAMILIES, *SPREADS)}
    assert public == set(families.__all__)
    assert public <= set(deciban.__all__)


@every_family
def test_the_evidence_is_what_scipy_says(case: Case) -> None:
    if case.oracle is None:
        pytest.skip("SciPy has no such distribution, or it is in tests/oracles")
    X, y, model = fitted(case)
    found = score(model, cells_of(model, X), len(y))
    for c in range(CLASSES):
        for j, x in enumerate(X.T):
            law = case.oracle(x[(y == c) & ~np.isnan(x)])
            log_density = law.logpdf if hasattr(law, "logpdf") and hasattr(law.dist, "_pdf") else law.logpmf
            expected = np.where(np.isnan(x), 0.0, log_density(np.where(np.isnan(x), 1.0, x)))
            np.testing.assert_allclose(found[:, j, c], expected, rtol=1e-6, atol=1e-9)


@every_family
def test_terms_add_up_to_the_evidence(case: Case) -> None:
    """Up to a term that is the same for every class; rows of which a block has only some cells have no form."""
    X, y, model = fitted(case)
    cells = cells_of(model, X)
    names = [model.schema.column_name(column) for column in model.schema.groups[0].columns]
    terms = model.likelihoods[0].score_terms(names)
    if terms is None:
        with pytest.raises(UsageError, match="no linear or quadratic form"):
            form_of(model, quadratic=True)
        return
    assert len(terms) == blocks_of(model)
    whole = np.ones(len(y), dtype=bool)
    if model.schema.groups[0].family.joint and isinstance(cells, np.ndarray):
        whole = ~np.isnan(cells).any(axis=1)
        cells = cells[whole]
    evidence = score(model, cells, int(whole.sum()))
    for b, term in enumerate(terms):
        assert term.weights.shape == (len(term.names), CLASSES)
        difference = term.scores(cells) - evidence[:, b]
        np.testing.assert_allclose(difference - difference[:, :1], 0.0, atol=1e-9)
        expanded = term.expanded().scores(cells)
        np.testing.assert_allclose(expanded - expanded[:, :1], (evidence[:, b] - evidence[:, b, :1]), atol=1e-8)
    table = X if whole.all() else X[whole]
    scores, log_joint = form_of(model, quadratic=True).scores(table), model.log_joint(open_table(table))
    np.testing.assert_allclose(log_softmax(scores, axis=1), log_softmax(log_joint, axis=1), atol=1e-9)


@every_family
def test_the_cumulative_distribution_is_the_integral_of_the_density(case: Case) -> None:
    X, y, model = fitted(case)
    likelihood = model.likelihoods[0]
    if likelihood.cumulative(np.zeros(0), 0, 0) is None:
        pytest.skip("it is no continuous distribution of a given shape")

    def density(x: float, column: int, label: int) -> float:
        row = np.full((1, blocks_of(model)), np.nan)
        row[0, column] = x
        return float(np.exp(score(model, row, 1)[0, column, label]))

    for j in range(blocks_of(model)):
        x = np.quantile(X[:, j][~np.isnan(X[:, j])].astype(np.float64), [0.05, 0.3, 0.7, 0.95])
        for c in range(CLASSES):
            found = likelihood.cumulative(x, j, c)
            between = [quad(density, a, b, args=(j, c), epsabs=1e-10)[0] for a, b in pairwise(x)]
            np.testing.assert_allclose(np.diff(found), between, atol=1e-7)
            np.testing.assert_allclose(likelihood.cumulative(np.array([-1e30, 1e30]), j, c), [0.0, 1.0], atol=1e-9)
            if case.oracle is not None:
                here = X[(y == c) & ~np.isnan(X[:, j]), j]
                np.testing.assert_allclose(found, case.oracle(here).cdf(x), rtol=1e-6)


@every_family
def test_the_support_holds_samples_and_what_is_learned(case: Case) -> None:
    X, _, model = fitted(case)
    family, likelihood = model.schema.groups[0].family, model.likelihoods[0]
    if isinstance(X, np.ndarray):
        assert all(family.support.contains(column[~np.isnan(column)]).all() for column in X.T)
    labels = np.arange(300) % CLASSES
    if case.name in SCORES:
        with pytest.raises(BadCell, match="is a score, not a distribution"):
            likelihood.sample(labels, np.random.default_rng(4))
        return
    drawn = likelihood.sample(labels, np.random.default_rng(4))
    assert len(drawn) == len(model.schema.groups[0].columns)
    assert all(family.support.contains(column).all() for column in drawn)
    cells = drawn if isinstance(drawn[0], pa.Array) else np.stack(drawn, axis=1).astype(np.float64)
    found = score(model, cells, 300)
    assert np.isfinite(found[np.arange(300), :, labels]).all(), "the class cannot have drawn this"


@every_family
def test_there_are_estimates_and_parameters_of_each_block(case: Case) -> None:
    _, _, model = fitted(case)
    likelihood = model.likelihoods[0]
    parameters = likelihood.parameters()
    assert len(parameters.blocks) == len(likelihood.estimates()) == blocks_of(model)
    assert min(parameters.blocks) > 0
    assert parameters.apart > 0
    assert parameters.sizes or parameters.numbers > 0 or parameters.unbounded
    for one in likelihood.estimates():
        assert all(len(array) == CLASSES for array in one.parameters.values())


@every_family
def test_a_family_is_written_and_read_back(case: Case) -> None:
    arrays: list[Any] = []
    assert unpack(pack(case.family, arrays), ArrayReader(Content(None, memoryview(b""), "", 0))) == case.family
    assert not arrays
    assert families_of([f"x={case.family!r}"]) == {"x": case.family}
    assert eval(repr(case.family), {kind.__name__: kind for kind in (*FAMILIES, *SPREADS)}) == case.family


@every_family
def test_what_is_suggested_instead_can_be_learned(case: Case) -> None:
    """One column of a block alone, and what tuning tries in its place."""
    X, y, model = fitted(case)
    family, table = case.family, model.schema.table_as_learned(open_table(X))
    alone = family.alone()
    assert not alone.joint
    suggested = [alone, *family.alternatives(None, [])]
    if isinstance(X, np.ndarray):
        values = np.unique(X[~np.isnan(X)]) if X.dtype.kind == "f" else np.unique(X)
        numbers = ColumnNumbers(values.astype(np.float64), 90.0, "number", True, True)
        suggested += type(family).suited_to(numbers)
    for other in suggested:
        columns = range(model.schema.width) if other.joint else [0]
        cells = other.read(table, columns)
        statistic = other.count(cells, y.astype(np.int32), np.ones(len(y)), CLASSES)
        out = np.zeros((len(y), 1, CLASSES))
        other.estimate(statistic).score(cells, np.ones(1), np.zeros(1, dtype=np.int64), out)
        assert np.isfinite(out).all()


@every_family
def test_the_errors_of_evidence_are_those_of_samples(case: Case) -> None:
    """The deviation of log-odds that `add_covariance` claims, and their deviation over samples drawn from the model."""
    if case.name in SCORES or case.family.holds_texts:
        pytest.skip("scores draw no samples, and rare words need many rows; see tests/test_intervals.py")
    _, _, model = fitted(case, ROWS)
    family, rng, blocks = case.family, np.random.default_rng(5), blocks_of(model)
    labels, ones, slots = np.arange(ROWS) % CLASSES, np.ones(blocks), np.zeros(blocks, dtype=np.int64)

    def draw() -> Any:
        drawn = model.likelihoods[0].sample(labels, rng)
        return drawn if isinstance(drawn[0], pa.Array) else np.stack(drawn, axis=1).astype(np.float64)

    points = some_cells(draw(), [0, 1, 2])
    values, claimed = [], []
    for _ in range(SAMPLES):
        statistic = family.count(draw(), labels.astype(np.int32), np.ones(ROWS), CLASSES)
        whole = family.estimate(statistic)
        joint = np.zeros((3, 1, CLASSES))
        whole.score(points, ones, slots, joint)
        odds = LogOdds.of(joint[:, 0])
        covariance = odds.no_errors()
        family.add_covariance(whole, statistic, points, ones, covariance)
        values.append(odds.value)
        claimed.append(np.sqrt(odds.variance(covariance)))
    ratio = np.median(claimed, axis=0) / np.std(values, axis=0)
    assert (ratio > 0.7).all(), ratio
    assert (ratio < 1.4).all(), ratio
