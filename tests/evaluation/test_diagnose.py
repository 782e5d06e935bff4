"""A diagnosis speaks of losses where there are any."""

import json

import numpy as np

from tests import textbook

RNG = np.random.default_rng(11)


def test_a_dependence_that_loses_nothing_costs_nothing() -> None:
    """Two columns that depend alike in both classes and say nothing of these: their pairs only add noise."""
    x = RNG.normal(size=200)
    table = {"x": x, "y": x + RNG.normal(0.0, 0.7, 200), "z": RNG.normal(size=200)}
    found = textbook().fit(table, RNG.integers(0, 2, 200)).diagnose()
    assert [pair.columns for pair in found.dependences] == [("x", "y")]
    assert found.dependences[0].cost == 0.0
    assert "none" in str(found).split("x and y")[1].splitlines()[0]
    assert "remedy: nothing to do" in str(found)
    assert "-0." not in str(found)


def test_a_dependence_that_differs_between_classes_costs_what_pairs_would_save() -> None:
    """Of two fair signs whose product is the class the product of shares knows nothing, their pairs all: one bit."""
    signs = RNG.integers(0, 2, (4000, 2))
    found = textbook().fit({"a": signs[:, 0], "b": signs[:, 1]}, signs[:, 0] ^ signs[:, 1]).diagnose()
    assert abs(found.dependences[0].cost - 1.0) < 0.01
    assert f"{found.dependences[0].cost:.4f}" in str(found)


def test_a_constant_column_follows_its_family() -> None:
    """It is no evidence, whatever its family says; one that is constant within a class only is still looked at."""
    y = np.arange(300) % 2
    table = {"constant": np.full(300, 3.5), "uniform": RNG.uniform(size=300) ** 4}
    assert {misfit.column for misfit in textbook().fit(table, y).diagnose().misfits} == {"uniform"}


def test_a_diagnosis_as_a_frame_and_as_plain_values() -> None:
    rng = np.random.default_rng(4)
    y = np.arange(600) % 2
    x = y + rng.normal(size=600)
    table = {"x": x, "again": x + 1e-3 * rng.normal(size=600), "own": rng.normal(size=600)}
    found = textbook().fit(table, y).diagnose()
    assert repr(found) == str(found)
    frame = found.to_frame()
    assert list(frame["columns"]) == ["x, again"]
    values = json.loads(json.dumps(found.to_dict()))
    assert values["dependences"][0]["bits"] == frame["bits"][0] == found.dependences[0].bits
    assert values["plain"]["log_loss"] == found.before.log_loss
    assert values["remedies"] == found.remedies()
    nothing = textbook().fit({"own": table["own"]}, y).diagnose()
    assert len(nothing.to_frame()) == 0
    assert nothing.to_dict()["remedies"] == []
