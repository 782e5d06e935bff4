"""The tables of these tests, and the models that are expected of them."""

from typing import Any

import numpy as np

from deciban import BayesClassifier
from tests.support.asserts import assert_same_typed_counts
from tests.support.sources import TOLD, mixed

FEW, MANY = 3_000, 40_000  # more rows than are looked at, and several pieces of a stream


TABLES = {FEW: mixed(FEW), MANY: mixed(MANY)}


LABELED = {(rows, kind): mixed(rows, 3, kind) for rows in (300, 17_000) for kind in ("whole", "flag")}


PROBE = mixed(500, seed=7)


def expected(rows: int, tune: Any, source: str, known: dict[Any, BayesClassifier] = {}) -> BayesClassifier:  # noqa: B006 - remembers
    """The model of the Arrow table, told what a source has to be told."""
    key = rows, tune, source if source in TOLD else None
    if key not in known:
        known[key] = BayesClassifier(TOLD.get(source), tune=tune).fit(TABLES[rows], "label")
    return known[key]


def assert_same(found: BayesClassifier, other: BayesClassifier) -> None:
    """The same counts: discrete ones to the bit, moments to 1e-12 of their scale; labels of the same type."""
    assert_same_typed_counts(found.counts_, other.counts_)
    np.testing.assert_allclose(found.predict_proba(PROBE), other.predict_proba(PROBE), rtol=0, atol=1e-10)
    assert found.predict(PROBE).tolist() == other.predict(PROBE).tolist()
