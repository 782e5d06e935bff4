"""What needs a Spark of its own: a cluster, of which a worker dies while tasks are run twice; Spark Connect."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.engines.servers import refuse_without_spark
from tests.engines.spark_programs import PROGRAMS


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_model_is_the_same(name: str) -> None:
    """On a cluster, also where a worker is killed in the middle of a fit and tasks are run twice; over Connect."""
    refuse_without_spark()
    command = [sys.executable, "-m", "tests.engines.spark_programs", name]
    folder = Path(__file__).parent.parent.parent
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    assert done.stdout.strip().endswith("done"), done.stderr[-6_000:]
