"""Requests per second of `deciban serve`, against FastAPI with scikit-learn, in one run on loopback.

    python bench/serving.py [--seconds 10] [--requests 1000000] [--only predicting learning memory] [--write]

Needs Debian's `wrk`, and `pip install fastapi pandas`. The load comes from the same machine and shares its cores with
the service; it is bounded in time, and goes to 127.0.0.1 alone. Contenders take turns; the best turn of each counts.
--write puts the page into bench/SERVING.md.
"""

import json
import os
import pickle
import platform
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from files import aim, table_query

NUMBERS = [f"n{k}" for k in range(10)]
TEXTS = ["s3", "s10", "s200"]
TABLES = {"mixed": [*NUMBERS, *TEXTS], "numbers": NUMBERS}
TRAINING_ROWS = 50_000
CONNECTIONS = 8
TURNS = 2
ONE_FASTER, MANY_FASTER, LEARNED_A_SECOND = 3.0, 10.0, 2_000
Found = dict[str, Any]

# What wrk sends again and again, and what it prints at the end.
SCRIPT = """
wrk.method = "POST"
wrk.headers["Content-Type"] = "{kind}"
local file = io.open("{body}", "rb")
wrk.body = file:read("*all")
file:close()
done = function(summary, latency, requests)
  local errors = summary.errors.connect + summary.errors.read + summary.errors.status + summary.errors.timeout
  print(string.format('{{"requests": %d, "microseconds": %d, "p99": %f, "errors": %d}}',
    summary.requests, summary.duration, latency:percentile(99.0), errors))
end
"""


# models


def train(folder: Path) -> None:
    """The same rows learned by both, from numbers and texts, and from numbers alone."""
    import duckdb
    import pyarrow as pa
    from sklearn.compose import make_column_transformer
    from sklearn.naive_bayes import GaussianNB
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    from deciban import BayesClassifier

    for name, columns in TABLES.items():
        table = duckdb.sql(f"SELECT {', '.join(columns)}, label FROM ({table_query(TRAINING_ROWS)})").to_arrow_table()
        BayesClassifier(tune=None).fit(table, "label").save(folder / f"{name}.dcb")
        if name == "mixed":
            BayesClassifier().fit(table, "label").save(folder / "tuned.dcb")
        frame = table.to_pandas()
        encode = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
        steps = [make_column_transformer((encode, TEXTS), remainder="passthrough")] if name == "mixed" else []
        pipeline = make_pipeline(*steps, GaussianNB()).fit(frame[columns], frame["label"])
        kinds = {column: str if column in TEXTS else float for column in columns}
        (folder / f"{name}.pickle").write_bytes(pickle.dumps((pipeline, kinds)))
        rows = table.slice(0, 1000).to_pylist()
        for size in (1, 1000):
            body = [{column: row[column] for column in columns} for row in rows[:size]]
            (folder / f"{name}-{size}.json").write_text(json.dumps({"rows": body}))
        with pa.ipc.new_stream(folder / f"{name}-1000.arrow", table.select(columns).schema) as stream:
            stream.write_table(table.select(columns).slice(0, 1000))
        (folder / f"{name}-labeled.json").write_text(json.dumps(rows))


# servers


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def serving(command: list[str], port: int, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """A server that has said that it is ready; it is stopped in the end."""
    process = subprocess.Popen(command, env={**os.environ, **environment}, stdout=subprocess.DEVNULL)
    try:
        for _ in range(600):
            try:
                if urllib.request.urlopen(f"http://127.0.0.1:{port}/health/ready", timeout=5).status == 200:
                    break
            except OSError:
                if process.poll() is not None:
                    raise RuntimeError(f"{command} has ended with {process.returncode}") from None
                time.sleep(0.1)
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def deciban(model: Path, port: int, *options: str) -> list[str]:
    return [sys.executable, "-m", "deciban", "serve", str(model), "--port", str(port), *options]


def peer(port: int, workers: int) -> list[str]:
    place = ["--app-dir", str(Path(__file__).parent), "--port", str(port), "--workers", str(workers)]
    return [sys.executable, "-m", "uvicorn", "serving_peer:app", "--log-level", "warning", "--no-access-log", *place]


# predicting


def load(folder: Path, port: int, body: Path, seconds: float) -> Found:
    """What wrk has found of a server that runs."""
    script = folder / "post.lua"
    kind = "application/vnd.apache.arrow.stream" if body.suffix == ".arrow" else "application/json"
    script.write_text(SCRIPT.format(body=body, kind=kind))
    url = f"http://127.0.0.1:{port}/predict"
    command = [
        "wrk",
        "-t1",
        f"-c{CONNECTIONS}",
        f"-d{seconds:g}s",
        "--timeout",
        "20s",
        "--latency",
        "-s",
        str(script),
        url,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: Found = json.loads(done.stdout.strip().splitlines()[-1])
    assert not found["errors"], (url, body, done.stdout)
    return {"rate": found["requests"] / found["microseconds"] * 1e6, "p99": found["p99"] / 1000}


def measure(folder: Path, who: str, table: str, workers: int, size: int, seconds: float) -> Found:
    """One contender in one turn, after a second of warming up."""
    port = free_port()
    options = ["--workers", str(workers)] if workers > 1 else []
    model = folder / f"{'tuned' if who == 'deciban, tuned' else table}.dcb"
    command = peer(port, workers) if who == "FastAPI" else deciban(model, port, *options)
    with serving(command, port, PEER_MODEL=str(folder / f"{table}.pickle"), OMP_NUM_THREADS="1"):
        body = folder / f"{table}-{size}.{'arrow' if who == 'deciban, Arrow' else 'json'}"
        load(folder, port, body, 1)
        found = load(folder, port, body, seconds)
    print(f"  {who}, {table}, {workers} worker(s), {size} row(s): {found}", file=sys.stderr, flush=True)
    return found


def predicting_page(folder: Path, options: Namespace) -> list[str]:
    lines = ["## Predicting", ""]
    for table, columns in TABLES.items():
        lines += [f"### {len(columns)} columns: {'numbers and texts' if table == 'mixed' else 'numbers alone'}", ""]
        lines += ["| method | workers | rows per request | requests per second | rows per second | p99, ms |"]
        lines += ["|---|--:|--:|--:|--:|--:|"]
        told = []
        for workers in (1, 2):
            for size in (1, 1000):
                best: dict[str, Found] = {}
                for _ in range(TURNS):
                    tuned = ["deciban, tuned"] if table == "mixed" else []
                    for who in ("deciban", *(["deciban, Arrow"] if size > 1 else []), *tuned, "FastAPI"):
                        one = measure(folder, who, table, workers, size, options.seconds)
                        best[who] = max(best.get(who, one), one, key=lambda found: found["rate"])
                for who, one in best.items():
                    name = "FastAPI + scikit-learn" if who == "FastAPI" else who
                    numbers = f"{one['rate']:,.0f} | {one['rate'] * size:,.0f} | {one['p99']:.1f}"
                    lines.append(f"| {name} | {workers} | {size:,} | {numbers} |")
                ratio, wanted = (
                    best["deciban"]["rate"] / best["FastAPI"]["rate"],
                    ONE_FASTER if size == 1 else MANY_FASTER,
                )
                text = f"- {size:,} row(s), {workers} worker(s): {ratio:.1f} times as many requests per second"
                told.append(aim(text, f">= {wanted:g}", ratio >= wanted))
        lines += ["", *told, ""]
    return lines


# learning


def learning_page(folder: Path, options: Namespace) -> list[str]:
    """Acknowledged rows per second, each with an id, in requests of 100 rows and of one."""
    rows = json.loads((folder / "mixed-labeled.json").read_text())
    lines = ["## Learning", "", "Rows with ids; each is durable (journal synced) and in the model before the response."]
    lines += ["", "| rows per request | clients | rows per second |", "|--:|--:|--:|"]
    rates = {}
    for size, clients in ((1, 1), (1, 8), (100, 1), (100, 4)):
        model = folder / f"learning-{size}-{clients}.dcb"
        model.write_bytes((folder / "mixed.dcb").read_bytes())
        port = free_port()
        with serving(deciban(model, port, "--learn"), port), ThreadPoolExecutor(clients) as pool:
            end = time.monotonic() + options.seconds
            started = time.monotonic()
            done = sum(pool.map(lambda k: _learn(port, rows, size, f"{size}-{k}", end), range(clients)))  # noqa: B023
            rates[size, clients] = done / (time.monotonic() - started)
        lines.append(f"| {size} | {clients} | {rates[size, clients]:,.0f} |")
    best = max(rate for (size, _), rate in rates.items() if size == 100)
    return [
        *lines,
        "",
        aim(f"- in batches {best:,.0f} rows per second", f">= {LEARNED_A_SECOND:,}", best >= LEARNED_A_SECOND),
        "",
    ]


def _learn(port: int, rows: list[Found], size: int, name: str, end: float) -> int:
    """How many rows were acknowledged until the end."""
    connection, learned = HTTPConnection("127.0.0.1", port, timeout=60), 0
    while time.monotonic() < end:
        some = [rows[(learned + k) % len(rows)] for k in range(size)]
        body = json.dumps({"rows": some, "ids": [f"{name}-{learned + k}" for k in range(size)]})
        connection.request("POST", "/learn", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        told = json.loads(answer.read())
        assert answer.status == 200, told
        learned += sum(one["result"] == "learned" for one in told["rows"])
    return learned


# memory


def memory_page(folder: Path, options: Namespace) -> list[str]:
    """The memory of the service while it answers many requests."""
    port, asked, seen = free_port(), 0, []
    with serving(deciban(folder / "mixed.dcb", port), port) as process:
        load(folder, port, folder / "mixed-1.json", 5)
        while asked < options.requests:
            found = load(folder, port, folder / "mixed-1.json", 20)
            asked += int(found["rate"] * 20)
            seen.append((asked, _resident(process.pid)))
            print(f"  {asked:,} requests: {seen[-1][1]:.0f} MB", file=sys.stderr, flush=True)
    first, last = statistics.mean(mb for _, mb in seen[:3]), statistics.mean(mb for _, mb in seen[-3:])
    start = f"{seen[0][1]:.0f} MB after the first {seen[0][0]:,}"
    text = f"- {asked:,} one-row requests: {start}, {seen[-1][1]:.0f} MB at the end"
    return ["## Memory", "", aim(text, "flat", last <= first * 1.02), ""]


def _resident(process: int) -> float:
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("the service has ended")


# the page

PAGES = {"predicting": predicting_page, "learning": learning_page, "memory": memory_page}


def opening() -> list[str]:
    packages = ("deciban", "starlette", "uvicorn", "msgspec", "fastapi", "pydantic", "scikit-learn", "pandas")
    return [
        "# The service under load",
        "",
        f"Written by `python bench/serving.py --write`: requests over loopback by wrk, {CONNECTIONS} connections,",
        "all in one run; the load shares the cores with the service. All models learned the same 50,000 rows of three",
        "classes; both return the class and all probabilities. scikit-learn's pipeline encodes texts one-hot for",
        "GaussianNB; deciban is plain Bayes (`tune=None`) unless marked tuned. Requests and responses are JSON",
        "unless marked Arrow, which FastAPI does not support.",
        "",
        f"- machine: {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        f"- versions: {', '.join(f'{name} {version(name)}' for name in packages)}",
        "",
    ]


def main(options: Namespace) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        train(folder)
        lines = opening()
        for name in options.only:
            lines += PAGES[name](folder, options)
            print("\n".join(lines), flush=True)
    if options.write:
        (Path(__file__).parent / "SERVING.md").write_text("\n".join(lines).rstrip() + "\n")


if __name__ == "__main__":
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--only", nargs="+", choices=tuple(PAGES), default=list(PAGES))
    parser.add_argument("--write", action="store_true")
    main(parser.parse_args())
