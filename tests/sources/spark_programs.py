"""Programs that need a Spark session of their own: `python -m tests.sources.spark_programs NAME` runs one.

Each says "done" in the end, if all was as it should be.
"""

import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from deciban import BayesClassifier
from tests.support.asserts import assert_same_typed_counts
from tests.support.servers import SparkCluster, free_port, new_cluster, new_session, spark_class, wait_for_port
from tests.support.sources import mixed

TABLE = mixed(20_000)
HERE = BayesClassifier(tune=None).fit(TABLE, "label")
PARTS = 12

# Tasks are run a second time at once, where they take longer than the first ones did.
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.multiplier": "1.01",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.minTaskRuntime": "10ms",
}


def slowly(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches, so slowly that there is time to do something in the middle."""
    for batch in batches:
        time.sleep(0.5)
        yield batch


def slow_table(session: Any) -> Any:
    """The table in parts that take a while each."""
    frame = session.createDataFrame(TABLE).repartition(PARTS)
    return frame.mapInArrow(slowly, frame.schema)


def cluster_that_fails(cluster: SparkCluster) -> None:
    """A worker dies in the middle of a fit, and tasks that seem slow are run twice: each part counts once."""
    session = new_session(cluster.url, cluster.folder, **SPECULATION)
    status = session.sparkContext.statusTracker()
    killed = threading.Event()

    def kill() -> None:
        while not killed.is_set():
            for stage in status.getActiveStageIds():
                info = status.getStageInfo(stage)
                if info is not None and info.numTasks == PARTS and info.numCompletedTasks >= 3:
                    cluster.kill_worker(0)
                    killed.set()
                    return
            time.sleep(0.05)

    clf = BayesClassifier(tune=None).fit(session.createDataFrame(TABLE).repartition(4), "label")
    assert_same_typed_counts(clf.counts_, HERE.counts_)
    frame = slow_table(session)
    threading.Thread(target=kill, daemon=True).start()
    clf.partial_fit(frame, "label")  # one pass: the one in which the worker dies
    assert killed.is_set(), "no worker was killed in the middle"
    assert_same_typed_counts(clf.counts_, HERE.counts_ + HERE.counts_)


def connect(cluster: SparkCluster) -> None:
    """All that can be done with a DataFrame can be done over Spark Connect."""
    from pyspark.sql import SparkSession

    port = free_port()
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "600m",
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "4",
    }
    given = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    server = spark_class(
        cluster.folder, "org.apache.spark.deploy.SparkSubmit", "--master", cluster.url, *given,
        "--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal",
    )  # fmt: skip
    try:
        wait_for_port(port, server)
        session = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()
        frame = session.createDataFrame(TABLE).repartition(3)
        clf = BayesClassifier(tune=None).fit(frame, "label")
        assert_same_typed_counts(clf.counts_, HERE.counts_)
        found = clf.predict_proba(frame.limit(100)).toArrow()
        posterior = np.column_stack([found[f"P({label})"] for label in clf.classes_])
        np.testing.assert_allclose(posterior, HERE.predict_proba(found.select(TABLE.column_names)), rtol=0, atol=1e-10)
        assert clf.score(frame, "label") == HERE.score(TABLE, "label")
        assert clf.decide(frame.limit(3), reject=0.1).count() == 3
        assert "decibans of height" in clf.explain(frame.limit(3)).columns
        assert_same_typed_counts(clf.partial_fit(frame, "label").forget(frame, "label").counts_, HERE.counts_)
        session.stop()  # it would wait for a server that is gone
    finally:
        server.kill()


PROGRAMS = {"cluster_that_fails": cluster_that_fails, "connect": connect}

if __name__ == "__main__":
    its_own = new_cluster()
    try:
        PROGRAMS[sys.argv[1]](its_own)
    except BaseException:
        for log in sorted(Path(its_own.folder).glob("*.log")):
            print(f"--- {log.name}", *log.read_text(errors="replace").splitlines()[-20:], sep="\n", file=sys.stderr)
        raise
    finally:
        its_own.stop()
    print("done")
