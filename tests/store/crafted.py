"""Model files that somebody has tampered with: what becomes of them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import deciban as dc
from tests.support.model_files import content, written

# Values of every type to put in the place of others.
MUTANTS: list[Any] = [None, -1, 3, 2.5, 10**30, 10**400, 1e308, "x", "", True, [], [1], {}, {"a": 1}, {"number": "nan"}]

# Numbers that may be and make no sense overflow with a warning, as they do in a model that is given them by its user.
ignoring_overflow = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def refused(folder: Path, data: bytes, match: str | None = None) -> None:
    with pytest.raises(dc.ModelFileError, match=match):
        dc.load(written(folder, data))


def predicts(data: bytes, X: Any, folder: Path) -> str:
    """What becomes of a crafted file: "refused", or "loaded" if a model that works came out, or "nan" if it babbles."""
    try:
        loaded = dc.load(written(folder, data))
    except dc.ModelFileError:
        return "refused"
    try:
        found = loaded.predict_proba(X)
        str(loaded.schema_), str(loaded.tuning_), loaded.shards_
        content(loaded)
    except dc.DecibanError:
        return "loaded"
    return "loaded" if np.isfinite(found).all() and abs(found.sum(axis=1) - 1.0).max() < 1e-9 else "nan"
