"""Every family says the same when it is exported, of any row: plain, weighted, capped, corrected."""

import numpy as np
import pytest

from deciban.export.likelihoods import EXPORTS
from deciban.families import FAMILIES
from tests.export.agreement import assert_agree
from tests.export.models import as_tuned, plain_model, rows_of_case
from tests.laws.cases import CASES, Case


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_row_has_the_same_log_probabilities(case: Case) -> None:
    rng = np.random.default_rng(7)
    model = plain_model(case, rng)
    models = [model, as_tuned(model, rng, cap=3.0), as_tuned(model, rng, cap=np.inf)]
    assert_agree(models, [rows_of_case(case, rng) for _ in models])


def test_every_family_has_a_case_that_is_exported() -> None:
    """A new family must be exported, or be refused by its name in a test of its own."""
    assert {type(case.family) for case in CASES} == set(FAMILIES)
    rng = np.random.default_rng(1)
    found = {type(likelihood) for case in CASES for likelihood in plain_model(case, rng).likelihoods}
    assert found == set(EXPORTS)
