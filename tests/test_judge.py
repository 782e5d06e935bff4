"""Figures of rows whose class is known."""

import numpy as np

from deciban.decisions.loss import Loss
from deciban.judge import Judgement


def test_millions_of_rows_are_shown_to_the_last_one() -> None:
    posterior, labels = np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([0, 0], dtype=np.int32)
    weights = np.array([1_234_567.0, 2.5])
    one = Judgement.of(posterior, labels, weights, np.array(["a", "b"]), 2_000_001.0, Loss.zero_one(["a", "b"]))
    text = str(one)
    assert "of a class that was not learned: 2,000,001 rows" in text
    assert "a  1,234,567  2.5" in text
    assert "0.900  1.000  1,234,567" in text
    assert one.as_dict()["rows_of_unknown_classes"] == 2_000_001.0
