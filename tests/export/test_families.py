"""Every family says the same when it is exported, of any row: plain, weighted, capped, corrected."""

import numpy as np
import pytest

from deciban import BayesClassifier, Gamma, LogNormal
from deciban.families import FAMILIES, Family
from tests.export.agreement import assert_agree, expected_of
from tests.export.models import as_tuned, plain_model, rows_of_case
from tests.export.targets import everywhere
from tests.laws.cases import CASES, Case


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_row_has_the_same_log_probabilities(case: Case) -> None:
    rng = np.random.default_rng(7)
    model = plain_model(case, rng)
    models = [model, as_tuned(model, rng, cap=3.0), as_tuned(model, rng, cap=np.inf)]
    assert_agree(models, [rows_of_case(case, rng) for _ in models])


@pytest.mark.parametrize("family", [LogNormal(), Gamma()], ids=str)
@pytest.mark.parametrize(("size", "deviation"), [(1e4, 1.0), (1e-6, 1e-11), (1e9, 1e5)])
def test_logarithms_that_hardly_vary_differ_by_their_last_digit(family: Family, size: float, deviation: float) -> None:
    """Which a mathematical library rounds as it likes: log-loss scales it by size over deviation, as the page says."""
    rng = np.random.default_rng(11)
    labels = rng.integers(0, 2, 2_000)
    cells = size + deviation * rng.normal(size=2_000) + 0.5 * deviation * labels
    model = BayesClassifier({"x": family}, tune=None).fit({"x": cells}, labels).model_
    rows = [{"x": float(x)} for x in cells[:500]]
    expected = np.array([expected_of(model, row).log_proba for row in rows])
    logs = np.log(cells)
    digits = 1e-15 * np.abs(logs) / logs.std() * (1.0 + np.abs(logs - logs.mean()) / logs.std())
    for (answers,) in everywhere([model], [rows]):
        found = np.array([answer["predict_log_proba"] for answer in answers.rows])
        allowed = 1e-12 * np.maximum(1.0, np.abs(expected)) + digits[:500, None]
        assert (np.abs(found - expected) <= allowed).all()


def test_every_family_has_a_case_that_is_exported() -> None:
    """A new family must be exported, or be rejected by its name in a test of its own."""
    assert {type(case.family) for case in CASES} == set(FAMILIES)
