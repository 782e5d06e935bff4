"""What deciban says of rows, and that what is exported says the same."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from deciban.errors import DataError
from deciban.model.model import VAST_EVIDENCE, Model, log_normalize
from deciban.sources.open import open_table
from tests.export.targets import Row, everywhere


@dataclass(frozen=True)
class Expected:
    """What Python says of a row that is alone, and by how much that may err.

    error: the message of the DataError where it refuses the row. rounded: where evidence is so large that sums of it
    have lost digits (beyond VAST_EVIDENCE), the size of these digits.
    """

    log_proba: list[float]
    error: str | None = None
    rounded: float = 0.0


def expected_of(model: Model, row: Row) -> Expected:
    """What Python says of a row."""
    names = model.schema.names
    try:
        if names is None:
            cells = [row.get(f"x{j}") for j in range(model.schema.width)]
            table = open_table([[math.nan if cell is None else cell for cell in cells]])
        else:
            table = open_table([{**dict.fromkeys(names), **row}])
        joint = model.log_joint(model.schema.table_as_learned(table), full=False)
    except DataError as error:
        return Expected([], str(error))
    largest = float(np.abs(joint[np.isfinite(joint)]).max(initial=0.0))
    rounded = 4.0 * np.spacing(largest) if largest > VAST_EVIDENCE else 0.0
    return Expected(log_normalize(joint, model.log_prior, logarithm=True)[0][0].tolist(), None, rounded)


def assert_same(found: dict[str, Any], expected: Expected, row: Row) -> None:
    """Both refuse a row, or give each class the same log probability to 1e-12 of the larger of 1 and itself."""
    if expected.error is not None:
        assert "error" in found, (row, expected, found)
        column = expected.error.split("'")[1]
        assert f"'{column}'" in found["error"], (row, expected, found)
        return
    assert "error" not in found, (row, found["error"], expected)
    for mine, theirs in zip(found["predict_log_proba"], expected.log_proba, strict=True):
        same = mine == theirs or abs(mine - theirs) <= 1e-12 * max(1.0, abs(theirs)) + expected.rounded
        assert same, (row, found["predict_log_proba"], expected)


def assert_agree(models: Sequence[Model], rows: Sequence[Sequence[Row]]) -> None:
    """Each model says of its rows in JavaScript and in plain Python what it says here."""
    expected = [[expected_of(model, row) for row in some] for model, some in zip(models, rows, strict=True)]
    for answers in everywhere(models, rows):
        for found, some, known in zip(answers, rows, expected, strict=True):
            for answer, row, one in zip(found.rows, some, known, strict=True):
                assert_same(answer, one, row)
