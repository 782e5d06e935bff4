"""What every run of the tests needs: compiled kernels, the same random draws, signals, and the marker `house`."""

import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

from deciban.cli.warmup import WARM, warm
from deciban.kernels.compiled import cache_folder
from deciban.util.arrays import CORES

pytest_plugins = ["tests.support.command", "tests.support.servers"]


# The same examples in every run, so that a newcomer's run cannot fail by chance; `--hypothesis-profile=thorough` draws
# others each time, and ten times as many.
settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=100)
settings.register_profile("thorough", deadline=None, max_examples=1000, print_blob=True)
settings.load_profile("fixed")

# The random generators that test modules share, with their states before the first test.
GENERATORS = pytest.StashKey[list[tuple[np.random.Generator, Any]]]()


def restore_signals() -> None:
    """Make programs that tests start get the default of signals that this process was started to ignore.

    nohup ignores SIGHUP, and a shell script SIGINT and SIGQUIT of what it starts with `&`. An ignored signal is
    inherited, a handler is not: in this process it goes on doing nothing.
    """
    for number in (signal.SIGINT, signal.SIGTERM, *(getattr(signal, name, None) for name in ("SIGHUP", "SIGQUIT"))):
        if number is not None and signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


def pytest_configure(config: pytest.Config) -> None:
    """Compile all kernels before the first test, on all cores, unless that was done before.

    The process that starts the others does it, if there are others, so that it is done once.
    """
    folder = cache_folder()
    is_worker = hasattr(config, "workerinput")
    if is_worker or not config.getoption("numprocesses", None):
        restore_signals()
    if folder is not None and not is_worker and not (folder / WARM).exists():
        for _ in warm():
            pass


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """The workers of `-n auto`: one more than cores, as tests of services and servers wait for much of their time."""
    return CORES + 1


@pytest.fixture(autouse=True)
def closed_figures() -> Iterator[None]:
    """Pictures that a test has drawn are closed behind it: matplotlib warns of many that are open."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark examples in documents `house`, and remember the states of generators that modules share."""
    modules = [module for name, module in sys.modules.items() if name.startswith("tests.")]
    found = [value for module in modules for value in vars(module).values() if isinstance(value, np.random.Generator)]
    config.stash[GENERATORS] = [(one, one.bit_generator.state) for one in {id(one): one for one in found}.values()]
    for item in items:
        if isinstance(item, pytest.DoctestItem) and Path(item.path).suffix == ".md":
            item.add_marker("house")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let each test draw the same numbers, whichever tests the same process has run before."""
    for generator, state in item.config.stash[GENERATORS]:
        generator.bit_generator.state = state
