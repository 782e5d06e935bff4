"""Real servers for tests: PostgreSQL, and a Spark cluster of a master and two workers; started when first asked for.

Without Debian's `postgresql`, Java or a package, tests that need them are skipped and say so; `.ci/run` installs them.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests import PATIENCE


def free_port() -> int:
    """A port of the loopback address that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def postgres_program(name: str) -> str | None:
    """Where Debian has a program of PostgreSQL, the newest version first."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), reverse=True)
    return str(found[0]) if found else shutil.which(name)


@dataclass
class Postgres:
    """A PostgreSQL server in a folder of its own."""

    folder: Path
    port: int
    user: str = "tester"
    password: str = "s3cr&t pass"

    @property
    def url(self) -> str:
        """How to connect to it, with the password."""
        return f"postgresql://{self.user}:s3cr%26t%20pass@127.0.0.1:{self.port}/postgres"

    def connect(self) -> Any:
        """A connection of psycopg."""
        import psycopg

        return psycopg.connect(self.url, autocommit=True)

    def execute(self, query: str) -> list[tuple[Any, ...]]:
        """The rows that a query answers."""
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(query)
            return list(cursor.fetchall()) if cursor.description is not None else []

    def start(self) -> None:
        log = self.folder / "log"
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off"
        self.run("pg_ctl", "-D", str(self.folder / "data"), "-w", "-l", str(log), "-o", options, "start")

    def stop(self, mode: str = "immediate") -> None:
        """Stop the server; in "immediate" mode as if it were killed."""
        self.run("pg_ctl", "-D", str(self.folder / "data"), "-w", "-m", mode, "stop")

    def run(self, program: str, *arguments: str) -> None:
        """Run a program of PostgreSQL, which refuses to be root, as its own user then."""
        path = postgres_program(program)
        assert path is not None
        as_user: dict[str, Any] = {"user": "postgres", "group": "postgres"} if os.getuid() == 0 else {}
        # a server that keeps the output open would make a pipe wait for it
        done = subprocess.run(
            [path, *arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self.folder,
            check=False,
            **as_user,
        )
        assert done.returncode == 0, (program, arguments, self.log)

    @property
    def log(self) -> str:
        path = self.folder / "log"
        return path.read_text() if path.exists() else ""


def new_postgres() -> Postgres:
    """A server that has just started, with one user; the caller stops it and removes its folder."""
    if postgres_program("initdb") is None:
        pytest.skip("there is no PostgreSQL server: install Debian's postgresql")
    pytest.importorskip("psycopg")
    folder = Path(tempfile.mkdtemp(prefix="deciban-postgres-"))
    if os.getuid() == 0:
        import pwd  # not on Windows

        owner = pwd.getpwnam("postgres")
        os.chown(folder, owner.pw_uid, owner.pw_gid)
    server = Postgres(folder, free_port())
    secret = folder / "password"
    secret.write_text(server.password)
    secret.chmod(0o644)
    data = str(folder / "data")
    server.run(
        "initdb",
        "-D",
        data,
        "-U",
        server.user,
        f"--pwfile={secret}",
        "-A",
        "scram-sha-256",
        "-E",
        "UTF8",
        "--locale=C.UTF-8",
        "-N",
    )
    server.start()
    return server


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server that tests of this process share: each makes tables of its own names."""
    server = new_postgres()
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(server.folder, ignore_errors=True)


@dataclass
class SparkCluster:
    """A standalone Spark cluster on loopback: a master and some workers, each a process."""

    folder: Path
    url: str
    master: "subprocess.Popen[bytes]"
    workers: "list[subprocess.Popen[bytes]]"

    def kill_worker(self, number: int) -> None:
        """Kill a worker with its executors, as if its machine had died."""
        os.killpg(self.workers[number].pid, signal.SIGKILL)

    def stop(self) -> None:
        for process in (*self.workers, self.master):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def spark_class(folder: Path, *arguments: str) -> "subprocess.Popen[bytes]":
    """A process of Spark, which the package of pip has no start scripts for."""
    import pyspark

    program = Path(pyspark.__file__).parent / "bin" / "spark-class"
    environment = spark_environment()
    log = (folder / f"{arguments[0].rsplit('.', 1)[-1]}-{time.monotonic_ns()}.log").open("wb")
    return subprocess.Popen(
        ["bash", str(program), *arguments], stdout=log, stderr=log, env=environment, cwd=folder, start_new_session=True
    )


def spark_environment() -> dict[str, str]:
    """Where Spark's processes find Python and this project."""
    import pyspark

    return {
        **os.environ,
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }


def refuse_without_spark() -> None:
    """Skip a test where there is no Spark."""
    pytest.importorskip("pyspark")
    if shutil.which("java") is None:
        pytest.skip("there is no Java, which Spark needs: install Debian's default-jre-headless")


def new_cluster(workers: int = 2, memory: str = "1g") -> SparkCluster:
    """A cluster that answers; the caller stops it."""
    folder = Path(tempfile.mkdtemp(prefix="deciban-spark-"))
    port = free_port()
    home = ("--host", "127.0.0.1", "--webui-port", "0")
    master = spark_class(folder, "org.apache.spark.deploy.master.Master", *home, "--port", str(port))
    wait_for_port(port, master)
    url = f"spark://127.0.0.1:{port}"
    started = [
        spark_class(folder, "org.apache.spark.deploy.worker.Worker", *home, "--cores", "1", "--memory", memory,
                    "--work-dir", str(folder / f"work{k}"), url)
        for k in range(workers)
    ]  # fmt: skip
    return SparkCluster(folder, url, master, started)


def wait_for_port(port: int, process: "subprocess.Popen[bytes]", seconds: float = PATIENCE) -> None:
    """Until somebody listens on a port; an error if the process ends before."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert process.poll() is None, "the server ended before it answered"
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError(f"nobody listens on port {port}")


def new_session(master: str, folder: Path, **settings: str) -> Any:
    """A session of Spark, on a cluster or in this process ("local[2]")."""
    from pyspark.sql import SparkSession

    os.environ.update(spark_environment())
    builder = SparkSession.builder.master(master).appName("deciban tests")
    usual = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "600m",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    for name, value in {**usual, **settings}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session of Spark that tests of this process share. What needs a real cluster is in `spark_programs`."""
    refuse_without_spark()
    session = new_session("local[2]", tmp_path_factory.mktemp("spark"))
    try:
        yield session
    finally:
        session.stop()
