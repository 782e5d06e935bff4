"""Models of every kind of column, and clients of services that have them."""

import datetime as dt
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from starlette.testclient import TestClient

from deciban import BayesClassifier, Gaussian, Text
from deciban.datasets import weather
from deciban.serve.app import create_app
from deciban.serve.service import Service
from deciban.serve.settings import ServeSettings

Opened = Callable[..., TestClient]


def mixed_table(rows: int = 300, seed: int = 0) -> pa.Table:
    """Every kind of column: numbers, whole numbers, categories, flags, dates, times of day and texts."""
    rng = np.random.default_rng(seed)
    place = rng.integers(0, 3, rows)
    days = (dt.date(2020, 1, 1) + dt.timedelta(days=int(d)) for d in rng.integers(0, 900, rows) + 200 * place)
    moments = (dt.datetime(2021, 5, 1) + dt.timedelta(minutes=int(m)) for m in rng.integers(0, 90_000, rows))
    times = (dt.time(int(h), 30) for h in np.clip(rng.integers(0, 12, rows) + 4 * place, 0, 23))
    notes = np.array(["please call back", "thank you very much", "not happy at all", "cancel: now, please"])
    cities = np.array(["Bern", "Basel", "Zug", 'St. "Gallen", SG'])
    return pa.table(
        {
            "age": pa.array(rng.normal(40 + 5 * place, 10), mask=rng.random(rows) < 0.1),
            "income": np.exp(rng.normal(8 + 0.3 * place, 1)),
            "city": pa.array(cities[(rng.integers(0, 3, rows) + (place > 1)) % 4], mask=rng.random(rows) < 0.05),
            "calls": pa.array(rng.poisson(2 + place), pa.int64()),
            "member": rng.random(rows) < 0.3 + 0.2 * place,
            "since": pa.array(days, pa.date32()),
            "seen": pa.array(moments, pa.timestamp("us")),
            "at": pa.array(times, pa.time64("us")),
            "note": pa.array(notes[(place + rng.integers(0, 2, rows)) % 4]),
            "kind": np.array(["low", "mid", "high"])[place],
        }
    )


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with models."""
    folder = tmp_path_factory.mktemp("models")
    families = {"note": Text(), "calls": Gaussian()}
    BayesClassifier(families).fit(mixed_table(), "kind").save(folder / "mixed.dcb")
    BayesClassifier(families, tune=None).fit(mixed_table(), "kind").save(folder / "plain.dcb")
    BayesClassifier(tune=None).fit(weather(), "play").save(folder / "weather.dcb")
    rng = np.random.default_rng(1)
    numbers, flags = rng.normal(size=(80, 3)), np.arange(80) % 2 == 0
    numbers[flags, 0] += 2.0
    BayesClassifier(tune=None).fit(numbers, flags).save(folder / "matrix.dcb")
    return folder


@pytest.fixture(scope="session")
def opened(models: Path) -> Iterator[Opened]:
    """A function that gives a client of a service of a model, with options; the service is closed in the end."""
    with ExitStack() as stack:
        known: dict[object, TestClient] = {}

        def client(path: str | Path, **options: object) -> TestClient:
            key = (str(path), tuple(sorted(options.items())))
            if key not in known:
                service = Service(ServeSettings.of(str(models / path), **options))  # type: ignore[arg-type]
                service.open()
                stack.callback(service.close)
                known[key] = stack.enter_context(TestClient(create_app(service)))
            return known[key]

        yield client


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk of one megabyte."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting a small disk needs root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)
