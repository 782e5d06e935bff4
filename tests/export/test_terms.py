"""Terms say what the model says: every family that they can say, plain, weighted, capped, corrected."""

from dataclasses import replace

import numpy as np
import pytest

from deciban import BayesClassifier
from deciban.export.ir import CorrectionTables, TermModel
from deciban.export.lower import fold_model, lower_model
from deciban.model.model import Model, log_normalize
from deciban.tables.table import Matrix
from tests.export.agreement import expected_of
from tests.export.models import aligned, as_tuned, plain_model, rows_of_case
from tests.export.targets import Row
from tests.export.term_scorer import log_joint_of_terms
from tests.laws.cases import CASES, Case

SAID = [case for case in CASES if not case.family.is_text]


def fits(model: TermModel, row: Row) -> bool:
    """Whether the cells of a row are of the types that a table in a database would have."""
    texts = {column.name for column in model.columns.values() if column.read_as == "text"}
    return all(cell is None or isinstance(cell, str) == (name in texts) for name, cell in row.items())


def assert_terms_agree(model: Model, rows: list[Row]) -> None:
    terms = fold_model(model)
    for row in (row for row in rows if fits(terms, row)):
        expected = expected_of(model, row)
        if expected.error and "expected a date" in expected.error:
            continue  # a column of dates in a database contains nothing else
        joint = log_joint_of_terms(terms, aligned(model, row))
        if expected.error:
            assert np.isnan(joint).all(), (row, expected.error, joint)
            continue
        found = log_normalize(joint, terms.log_prior, logarithm=True)[0][0]
        known = np.array(expected.log_proba)
        same = (found == known) | (np.abs(found - known) <= 1e-11 * np.maximum(1.0, np.abs(known)) + expected.rounded)
        assert same.all(), (row, found, known)


@pytest.mark.parametrize("case", SAID, ids=lambda case: case.name)
def test_terms_say_what_the_model_says(case: Case) -> None:
    rng = np.random.default_rng(7)
    model = plain_model(case, rng)
    for one in (model, as_tuned(model, rng, cap=3.0), as_tuned(model, rng, cap=np.inf)):
        assert_terms_agree(one, rows_of_case(case, rng))


def corrected_model() -> Model:
    """A model with corrections that were learned."""
    rng = np.random.default_rng(8)
    X = rng.normal(size=(1500, 4))
    return BayesClassifier().fit(X, np.digitize(X[:, 0] * X[:, 1] + rng.normal(size=1500), [-0.5, 0.5])).model_


def test_learned_corrections_are_exported_exactly_and_without_unused_cuts() -> None:
    model = corrected_model()
    known, lowered = model.corrections, lower_model(model).corrections
    assert known is not None
    assert lowered is not None
    found = lowered.corrections
    rows = np.random.default_rng(9).normal(size=(300, 4))
    expected, total = np.zeros((300, 3)), np.zeros((300, 3))
    known.add_to(known.read(Matrix(rows)), expected)
    found.add_to(found.read(Matrix(rows)), total)
    np.testing.assert_array_equal(total, expected)
    contrasts = found.values[:, :, 1:] - found.values[:, :, :1]
    np.testing.assert_array_equal((lowered.unit * lowered.contrasts)[found.used_cells], contrasts[found.used_cells])
    for k, (column, place) in enumerate(zip(found.columns, lowered.places, strict=True)):
        bins = np.unique(found.tests[found.tests[:, :, 0] == k][:, 1])
        assert column.cuts is not None
        assert place.size == column.bins == 2 + column.cuts.size
        assert np.isin(np.arange(1, 1 + column.cuts.size), bins).all()
        known_cuts = known.columns[k].cuts
        assert known_cuts is not None
        assert np.isin(column.cuts, known_cuts).all()


def test_corrections_that_are_not_units_are_rounded_so_that_their_sum_fits_32_bits() -> None:
    lowered = lower_model(corrected_model()).corrections
    assert lowered is not None
    values = np.random.default_rng(10).normal(size=lowered.corrections.values.shape)
    found = CorrectionTables(lowered.places, replace(lowered.corrections, values=values))
    expected = np.where(found.corrections.used_cells[:, :, None], values[:, :, 1:] - values[:, :, :1], 0.0)
    np.testing.assert_allclose(found.unit * found.contrasts, expected, rtol=0, atol=found.unit / 2.0)
    assert np.abs(found.contrasts).max() * len(values) < 1 << 31
    assert found.unit < 1e-3
