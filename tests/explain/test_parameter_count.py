"""Free parameters, counted by hand."""

import numpy as np
import pandas as pd
from sklearn.datasets import load_iris

from deciban import BayesClassifier, Categorical, JointGaussian, JointTable, Pooled
from deciban.datasets import weather
from tests import textbook

RNG = np.random.default_rng(0)
X, Y = load_iris(return_X_y=True)


def test_parameters_are_counted() -> None:
    found = textbook().fit(weather(), "play").parameter_count()
    assert found.naive == 1 + 2 * (2 + 2 + 1 + 1)
    assert found.model == found.naive
    assert found.full == 1 + 2 * (3 * 3 * 2 * 2 - 1)
    blocked = textbook({("outlook", "wind"): JointTable()}).fit(weather(), "play").parameter_count()
    assert blocked.model == 1 + 2 * (5 + 2 + 1)
    assert textbook().fit(X, Y).parameter_count().naive == 2 + 3 * 2 * 4
    assert textbook(JointGaussian(Pooled())).fit(X, Y).parameter_count().model == 2 + 12 + 10
    assert "full joint" in str(found)


def test_parameters_of_unusual_models() -> None:
    a, b = np.random.default_rng(1).integers(0, 2, (2, 2000))
    xor = BayesClassifier().fit(pd.DataFrame({"a": np.where(a, "x", "y"), "b": np.where(b, "x", "y")}), a ^ b)
    assert xor.parameter_count().naive == 5
    assert xor.parameter_count().full == 7
    assert textbook(Categorical()).fit({"a": [None] * 6, "b": ["x"] * 6}, [0, 1] * 3).parameter_count().naive == 1
    normal = RNG.normal(size=(90, 3))
    joint = textbook(JointGaussian()).fit(normal, np.arange(90) % 3).parameter_count()
    assert (joint.naive, joint.model) == (2 + 18, 2 + 9 + 18)
    wide = textbook(Categorical()).fit(RNG.integers(0, 5, (200, 600)), np.arange(200) % 3).parameter_count()
    assert "10^" in str(wide)
