"""What every family answers about itself is true: checked against SciPy, its own samples, or numerically."""

from typing import Any

import numpy as np
import pytest
from scipy.special import log_softmax

import deciban
from deciban import families, testing
from deciban.cli.options import parse_families
from deciban.errors import UsageError
from deciban.families import FAMILIES, SPREADS, register
from deciban.families.base.contract import NumericSummary, take_rows as some_cells
from deciban.model.intervals import LogOdds
from deciban.model.linear_forms import form_of
from deciban.sources.open import open_table
from deciban.testing import CLASSES, count_blocks, fit_trial, read_cells, read_drawn
from tests.laws.cases import CASES, SCORES, Case

every_family = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
SAMPLES, ROWS = 100, 1500  # whose evidence shows how much it errs


def test_every_family_has_a_case_and_is_exported() -> None:
    assert {type(case.family) for case in CASES} == set(FAMILIES)
    public = {kind.__name__ for kind in (*FAMILIES, *SPREADS)}
    for_authors = ("deciban.families.base.contract", "deciban.families.base.checks", register.__module__)
    assert public == {name for name in families.__all__ if getattr(families, name).__module__ not in for_authors}
    assert public <= set(deciban.__all__)


@every_family
def test_the_evidence_is_what_scipy_says(case: Case) -> None:
    if case.oracle is None:
        pytest.skip("SciPy has no such distribution, or it is in tests/oracles")
    testing.check_densities_match_the_oracle(case.trial, 3)


@every_family
def test_terms_add_up_to_the_evidence(case: Case) -> None:
    """And the form of the model, which is made of them, to its scores."""
    testing.check_terms_add_up_to_the_evidence(case.trial, 3)
    X, _, model = fit_trial(case)
    cells, group = read_cells(model, X), model.schema.groups[0]
    if model.likelihoods[0].discriminant_terms([model.schema.column_name(column) for column in group.columns]) is None:
        with pytest.raises(UsageError, match="no linear or quadratic form"):
            form_of(model, quadratic=True)
        return
    table = X[~np.isnan(cells).any(axis=1)] if group.family.joint and isinstance(cells, np.ndarray) else X
    scores, log_joint = form_of(model, quadratic=True).scores(table), model.log_joint(open_table(table))
    np.testing.assert_allclose(log_softmax(scores, axis=1), log_softmax(log_joint, axis=1), atol=1e-9)


@every_family
def test_densities_add_up_to_one(case: Case) -> None:
    testing.check_densities_integrate_to_one(case.trial, 3)


@every_family
def test_the_support_holds_samples_and_what_is_learned(case: Case) -> None:
    testing.check_support_contains_samples(case.trial, 3)


@every_family
def test_there_are_estimates_and_parameters_of_each_block(case: Case) -> None:
    testing.check_every_block_has_estimates(case.trial, 3)


@every_family
def test_a_family_is_written_and_read_back(case: Case) -> None:
    testing.check_saved_and_loaded(case.trial, 3)
    assert parse_families([f"x={case.family!r}"]) == {"x": case.family}
    assert eval(repr(case.family), {kind.__name__: kind for kind in (*FAMILIES, *SPREADS)}) == case.family


@every_family
def test_exports_score_the_same(case: Case) -> None:
    testing.check_exports_score_the_same(case.trial, 3)


@every_family
def test_what_is_suggested_instead_can_be_learned(case: Case) -> None:
    """One column of a block alone, and what tuning tries in its place."""
    X, y, model = fit_trial(case)
    family, table = case.family, model.schema.table_as_learned(open_table(X))
    alone = family.marginal_family()
    assert not alone.joint
    suggested = [alone, *family.alternatives(None, [], 100)]
    if isinstance(X, np.ndarray):
        values = np.unique(X[~np.isnan(X)]) if X.dtype.kind == "f" else np.unique(X)
        numbers = NumericSummary(values.astype(np.float64), 90.0, "number", True, True)
        suggested += type(family).candidates_for(numbers)
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
    if case.name in SCORES or case.family.is_text:
        pytest.skip("scores draw no samples, and rare words need many rows; see tests/model/test_intervals.py")
    _, _, model = fit_trial(case, rows=ROWS)
    family, rng, blocks = case.family, np.random.default_rng(5), count_blocks(model)
    labels, ones, slots = np.arange(ROWS) % CLASSES, np.ones(blocks), np.zeros(blocks, dtype=np.int64)

    def draw() -> Any:
        return read_drawn(family, model.likelihoods[0].sample(labels, rng))

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
