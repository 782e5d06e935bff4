"""A small model for commands."""

from pathlib import Path

import pytest

from deciban import BayesClassifier
from tests.support.command import Deciban, table


@pytest.fixture(scope="session")
def model_bytes(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("model")
    (folder / "base.csv").write_text(table())
    BayesClassifier(tune=None).fit(folder / "base.csv", "kind").save(folder / "m.dcb")
    return (folder / "m.dcb").read_bytes()


@pytest.fixture
def model(deciban: Deciban, model_bytes: bytes) -> str:
    """A small plain model of base.csv; both are in the folder."""
    Path("base.csv").write_text(table())
    Path("m.dcb").write_bytes(model_bytes)
    return "m.dcb"
