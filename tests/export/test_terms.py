"""Terms say what the model says: every family that they can say, plain, weighted, capped, corrected."""

import numpy as np
import pytest

from deciban.export.ir import TermModel
from deciban.export.lower import fold_model
from deciban.model.model import Model, log_normalize
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
