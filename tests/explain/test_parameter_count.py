"""Free parameters, counted by hand."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from deciban import (
    BayesClassifier,
    Bernoulli,
    Categorical,
    Gaussian,
    JointGaussian,
    JointTable,
    Multinomial,
    Poisson,
    Pooled,
    Text,
)
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
    assert (found.combinations, found.sizes) == (36, (3, 3, 2, 2))
    assert (found.naive_per_class, found.full_per_class) == (6, 35)
    assert str(found).splitlines()[1:] == [
        "fitted model             13",
        "full joint distribution  71  = 1 + 2 classes × 35",
        "combinations             36  = 3 × 3 × 2 × 2",
    ]
    assert (
        str(textbook().fit(X, Y).parameter_count()).splitlines()[2] == "full covariance (QDA)  44  = 2 + 3 classes × 14"
    )


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


TEXTS = ["ant bee cat", "cat dog", "elk ant ant", "bee"]


@pytest.mark.parametrize(
    ("family", "cells", "naive", "full"),
    [
        (Text(), TEXTS, 1 + 2 * 4, math.inf),
        (Text(kind="bernoulli"), TEXTS, 1 + 2 * 5, 1 + 2 * (2**5 - 1)),
        (Multinomial(), np.eye(4), 1 + 2 * 3, math.inf),
        (Poisson(), np.eye(4), 1 + 2 * 4, math.inf),
        (Bernoulli(), np.eye(4), 1 + 2 * 4, 1 + 2 * (2**4 - 1)),
        (Gaussian(), np.eye(4), 1 + 2 * 8, 1 + 2 * (4 + 10)),
        (Gaussian(Pooled()), np.eye(4), 1 + 2 * 4 + 4, 1 + 2 * (4 + 10)),
    ],
    ids=str,
)
def test_the_full_joint_distribution_of_each_family(family, cells, naive: int, full: float) -> None:
    found = textbook(family).fit(cells, [0, 0, 1, 1]).parameter_count()
    assert (found.naive, found.full) == (naive, full)
    assert found.naive == 1 + 2 * found.naive_per_class + found.naive_shared
    assert ("infinite" in str(found)) == (full == math.inf)
    assert found.to_dict()["full"] == (full if full < math.inf else "infinite")


def test_a_table_of_categories_and_numbers() -> None:
    """A joint normal distribution of two numbers in each of six cells, and the shares of these."""
    table = {"a": ["x", "y", "z", "x"], "b": ["p", "q", "p", "q"], "u": [1.0, 2.5, 3.0, 4.5], "v": [0.5, 1.5, 0.2, 0.1]}
    found = textbook({"u": Gaussian(), "v": Gaussian()}).fit(table, [0, 0, 1, 1]).parameter_count()
    assert found.full == 1 + 2 * (6 * (1 + 2 + 3) - 1)
    assert (found.combinations, found.numbers) == (6, 2)
