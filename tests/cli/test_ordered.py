"""The options --ordered, --classes and --monotone: the model file keeps what they say."""

import json
import random
from pathlib import Path

import pytest

from deciban import load
from tests.support.command import Deciban, records


@pytest.fixture
def grades(deciban: Deciban) -> str:
    draw, lines = random.Random(5), ["income,grade"]
    for _ in range(200):
        income = draw.gauss(5.0, 2.0)
        place = sum(income + draw.gauss(0.0, 1.5) > cut for cut in (4.0, 6.0))
        lines.append(f"{income:.2f},{('low', 'medium', 'high')[place]}")
    Path("grades.csv").write_text("\n".join(lines) + "\n")
    return "grades.csv"


def test_a_model_of_ordered_classes_is_fitted_and_predicts_medians(deciban: Deciban, grades: str) -> None:
    order = ("--classes", "low,medium,high", "--ordered")
    deciban("fit", grades, "-t", "grade", "-o", "m.dcb", *order, "--monotone", "income=+1")
    model = load("m.dcb")
    assert (model.ordered, model.monotone) == (True, {"income": 1})
    posterior = model.predict_proba({"income": [0.1 * k for k in range(100)]})[:, [1, 2, 0]]
    assert (posterior.cumsum(axis=1)[1:] <= posterior.cumsum(axis=1)[:-1] + 1e-12).all()
    predicted = [line["predicted"] for line in records(deciban("predict", "m.dcb", grades).out)]
    assert predicted == model.predict(grades).tolist()
    metrics = json.loads(deciban("evaluate", "m.dcb", grades, "--json").out)
    assert 0.0 < metrics["ranked_probability_score"] < metrics["mean_absolute_distance"] < 1.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--ordered",), "give all of them in ascending order in --classes"),
        (("--monotone", "income=+1"), "--monotone income=1: there are 3 classes without an order; pass --ordered"),
        (("--monotone", "income=up"), "write it as income=+1 or income=-1"),
        (("--monotone", "incom=-1", "--ordered", "--classes", "low,medium,high"), "did you mean 'income'?"),
    ],
)
def test_options_that_cannot_be_followed_are_rejected(
    deciban: Deciban, grades: str, options: tuple[str, ...], message: str
) -> None:
    failed = deciban("fit", grades, "-t", "grade", "-o", "m.dcb", *options)
    assert message in " ".join(failed.err.split())
    assert not Path("m.dcb").exists()
