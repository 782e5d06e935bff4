"""What every run of the tests needs: compiled kernels, and the mark of what checks the house and not the program."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from deciban.kernels.compiled import cache_folder
from deciban.warmup import WARM, warm

pytest_plugins = ["tests.engines.servers"]


def pytest_configure(config: pytest.Config) -> None:
    """All kernels are compiled before the first test, on all cores, unless that was done before: by the process that
    starts the others, if there are others, so that it is done once."""
    folder = cache_folder()
    is_worker = hasattr(config, "workerinput")
    if folder is not None and not is_worker and not (folder / WARM).exists():
        for _ in warm():
            pass


@pytest.fixture(autouse=True)
def closed_figures() -> Iterator[None]:
    """Pictures that a test has drawn are closed behind it: matplotlib warns of many that are open."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Examples in documents are marked `house`, those in modules are not."""
    for item in items:
        if isinstance(item, pytest.DoctestItem) and Path(item.path).suffix == ".md":
            item.add_marker("house")
