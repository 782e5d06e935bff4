"""What needs a Spark of its own: a cluster, of which a worker dies while tasks are run twice; Spark Connect."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pyarrow import parquet

from deciban import load
from tests.sources.spark_programs import PROGRAMS
from tests.support.servers import refuse_without_spark, spark_environment
from tests.support.sources import mixed

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_model_is_the_same(name: str) -> None:
    """On a cluster, also where a worker is killed in the middle of a fit and tasks are run twice; over Connect."""
    refuse_without_spark()
    try:
        out, err = run_program(name, 200)
    except subprocess.TimeoutExpired:  # perhaps another program took the port before Spark did
        out, err = run_program(name, 300)
    assert out.strip().endswith("done"), err[-6_000:]


def run_program(name: str, timeout: float) -> tuple[str, str]:
    """What a program prints on both streams. If it takes too long, it ends with all that it has started."""
    command = [sys.executable, "-m", "tests.sources.spark_programs", name]
    started = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        return started.communicate(timeout=timeout)
    finally:
        if started.poll() is None:
            os.killpg(started.pid, signal.SIGKILL)
            started.communicate()


def test_the_job_for_spark_submit_learns_and_scores(tmp_path: Path) -> None:
    refuse_without_spark()
    parquet.write_table(mixed(2_000), tmp_path / "visits.parquet")
    submit = Path(sys.executable).parent / "spark-submit"
    command = ["bash", str(submit), "--master", "local[2]", "--conf", "spark.ui.enabled=false", "examples/spark_job.py"]
    command += [str(tmp_path / name) for name in ("visits.parquet",)] + ["label"]
    command += [str(tmp_path / name) for name in ("model.dcb", "scores.parquet")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=spark_environment())
    assert done.returncode == 0, done.stderr[-3_000:]
    assert "log-loss" in done.stdout
    scores = parquet.read_table(tmp_path / "scores.parquet")
    known = load(tmp_path / "model.dcb").predict(scores.select(mixed(1).column_names))
    assert scores["predicted"].to_pylist() == known.tolist()
